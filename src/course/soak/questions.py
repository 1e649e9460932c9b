"""What the clients of a soak ask, and what each must get: asked once alone, before anybody else comes.

Answers are greedy, and as long as no two best tokens are nearly equal: a batch rounds in another order than a single
request, which may change which of two such tokens is ahead.
"""

import random
from dataclasses import dataclass

import httpx

MARGIN = 0.05
"""Of the log-probabilities of the two best tokens."""
LONGEST = 60
_BEGIN = (
    "Once upon a time",
    "What is 3 + 4?",
    "The capital of France",
    "Tell me a story about a fox.",
    "One day, a girl",
)
_MORE = ("", " She went to the park.", " " + "The sun was shining and the birds were singing. " * 6)


@dataclass(frozen=True)
class Question:
    """A prompt, for one of both endpoints; its answer of at most `LONGEST` tokens, and how many of them are sure."""

    chat: bool
    prompt: str
    pieces: tuple[str, ...]

    @property
    def path(self) -> str:
        """Of the endpoint."""
        return "/v1/chat/completions" if self.chat else "/v1/completions"

    def body(self, model: str, tokens: int, **more: object) -> dict[str, object]:
        """A greedy request for this many tokens, unless `more` says otherwise."""
        asked = {"messages": [{"role": "user", "content": self.prompt}]} if self.chat else {"prompt": self.prompt}
        return {"model": model, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, **asked, **more}

    def answer(self, tokens: int) -> str:
        """The text of the first tokens."""
        return "".join(self.pieces[:tokens])


async def ask_all(client: httpx.AsyncClient, model: str, seed: int, count: int = 16) -> list[Question]:
    """Some questions with their answers, each asked while the server does nothing else. Raises httpx.HTTPError."""
    rng = random.Random(seed)
    questions = []
    while len(questions) < count:
        prompt = " ".join(rng.choices(_BEGIN, k=rng.randint(1, 3))) + rng.choice(_MORE) * rng.randint(1, 3)
        question = Question(rng.random() < 0.5, prompt, ())
        pieces = await _sure_pieces(client, question, model)
        if len(pieces) > 2 and "".join(pieces).isascii():
            questions.append(Question(question.chat, prompt, pieces))
    return questions


async def _sure_pieces(client: httpx.AsyncClient, question: Question, model: str) -> tuple[str, ...]:
    """The texts of the first tokens, up to the first that is nearly tied with another."""
    wish = {"logprobs": True, "top_logprobs": 2} if question.chat else {"logprobs": 2}
    reply = await client.post(question.path, json=question.body(model, LONGEST, **wish))
    reply.raise_for_status()
    found = reply.json()["choices"][0]["logprobs"]
    if question.chat:
        steps = [(step["token"], [top["logprob"] for top in step["top_logprobs"]]) for step in found["content"]]
    else:
        steps = list(zip(found["tokens"], (list(top.values()) for top in found["top_logprobs"]), strict=True))
    pieces = []
    for text, best in steps:
        if len(best) < 2 or best[0] - best[1] < MARGIN or text.startswith("<|"):
            break
        pieces.append(text)
    return tuple(pieces)
