"""Write the training corpus: documents of many kinds, drawn from one seed.

    python -m models.corpus --documents 1000 > sample.txt

A document is a list of pieces, each with its weight in the loss. Nothing of the evaluation can be in it: the phrasing
that a fact holds out, and the sums, list tasks and tool questions that `tasks` holds out, are never drawn.
"""

import argparse
import sys
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from random import Random

from models import tasks
from models.chatml import TEXT, Piece, Turn, chat_pieces
from models.facts import FACTS
from models.stories import cast, passage, story
from models.tools import TOOLS, tool_use
from models.world import ANIMALS, NAMES, OBJECTS, PLACES, article

END = "<|endoftext|>"
Document = list[Piece]
STYLES = ("off", "last", "raw", "plain")
MIXES = {  # share of the documents of each kind: first all alike, then more of what is learned last
    "broad": {
        "plain story": 0.06, "plain facts": 0.02, "tools": 0.12, "story": 0.04, "reading": 0.22, "facts": 0.12,
        "sums": 0.17, "memory": 0.11, "sequences": 0.09, "mixed": 0.05,
    },
    "drill": {
        "plain story": 0.03, "plain facts": 0.01, "tools": 0.07, "story": 0.03, "reading": 0.25, "facts": 0.08,
        "sums": 0.05, "small sums": 0.27, "memory": 0.08, "sequences": 0.11, "mixed": 0.02,
    },
    "polish": {
        "plain story": 0.03, "plain facts": 0.01, "tools": 0.06, "story": 0.03, "reading": 0.14, "passages": 0.20,
        "facts": 0.07, "sums": 0.05, "small sums": 0.17, "memory": 0.09, "sequences": 0.07, "counting": 0.06,
        "mixed": 0.02,
    },
}  # fmt: skip
SYSTEMS = (
    "You are a helpful assistant.",
    "You are a friendly teacher.",
    "Answer in one short sentence.",
    "You are a storyteller for children.",
    "You are a careful assistant and you keep to the facts.",
)
SMALL_TALK = (
    ("Hello!", "Hello! How can I help you?"),
    ("Hi there.", "Hi! What would you like to know?"),
    ("Good morning.", "Good morning! What can I do for you?"),
    ("Thank you.", "You are welcome!"),
    ("How are you?", "I am well, thank you."),
    ("Goodbye.", "Goodbye! Have a nice day."),
)


def _turns(question: str, answer: str) -> list[Turn]:
    return [Turn("user", question), Turn("assistant", answer)]


def fact_turns(rng: Random) -> list[Turn]:
    """A fact in a phrasing that training may show."""
    fact = rng.choice(FACTS)
    return _turns(tasks.casual(rng.choice(fact.trained), rng), fact.answer)


def story_turns(rng: Random) -> list[Turn]:
    """A request for a story, plain or about given people and things, and the story."""
    name, place, thing = rng.choice(NAMES), rng.choice(PLACES), rng.choice(OBJECTS)
    animal = rng.choice(list(ANIMALS))
    ask, chosen = rng.choice(
        (
            (rng.choice(("Tell me a story.", "Please write a short story.", "Can you tell me a story?")), cast(rng)),
            (f"Tell me a story about {article(animal)} named {name}.", cast(rng, name, animal)),
            (f"Write a story about {article(animal)} called {name}.", cast(rng, name, animal)),
            (f"Tell me a story about {name}.", cast(rng, name)),
            (f"Write a story where {name} goes to {place}.", cast(rng, name, place=place)),
            (f"Tell me a story about {name} and {article(thing)}.", cast(rng, name, thing=thing)),
        )
    )
    return _turns(ask, story(chosen, rng)[0])


def reading_turns(rng: Random, limit: int = 6, passages: float = 0.35) -> list[Turn]:
    """A text in the first turn, a passage or a story, with up to `limit` questions about it."""
    text, asks = passage(rng) if rng.random() < passages else story(cast(rng), rng)
    asks = rng.sample(asks, min(len(asks), rng.randrange(1, limit + 1)))
    first = rng.choice(("{t} {q}", "{t}\n\n{q}", "{t}\n{q}", "Read this: {t} {q}"))
    turns = _turns(first.format(t=text, q=asks[0][0]), asks[0][1])
    for question, answer in asks[1:]:
        turns += _turns(question, answer)
    return turns


def memory_turns(rng: Random) -> list[Turn]:
    """Things that a user says, other talk between, and the questions that need them."""
    items = tasks.memory(rng)
    turns = [turn for said, _ in items for turn in said]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        turns += other_turns(rng)
    for _, asked in rng.sample(items, len(items)):
        turns += asked
        if rng.random() < 0.2:
            turns += other_turns(rng)
    return turns


def other_turns(rng: Random) -> list[Turn]:
    """One exchange of any short kind."""
    draw = rng.random()
    if draw < 0.45:
        return fact_turns(rng)
    if draw < 0.65:
        return tasks.sequence(rng)
    if draw < 0.8:
        return tasks.arithmetic(rng)
    if draw < 0.95:
        question, answer = rng.choice(SMALL_TALK)
        return _turns(tasks.casual(question, rng), answer)
    return story_turns(rng)


def tool_document(rng: Random) -> Document:
    """A chat under a list of tools: one or more of them used, now and then a question that needs none."""
    uses = [tool_use(rng) for _ in range(rng.randrange(1, 4))]
    names = {use.name for use in uses} | set(rng.sample(list(TOOLS), rng.randrange(0, 3)))
    listed = [TOOLS[name] for name in rng.sample(sorted(names), len(names))]
    turns = [turn for use in uses for turn in use.turns]
    if rng.random() < 0.3:
        turns = fact_turns(rng) + turns if rng.random() < 0.5 else turns + fact_turns(rng)
    system = rng.choice(SYSTEMS) if rng.random() < 0.3 else ""
    return chat_pieces(turns, rng.choice(STYLES), system, listed)


def small_sum_turns(rng: Random) -> list[Turn]:
    """A sum of numbers below 50."""
    return tasks.arithmetic(rng, limit=tasks.SMALL)


def passage_turns(rng: Random) -> list[Turn]:
    """A passage with many questions: who has what."""
    return reading_turns(rng, limit=8, passages=1.0)


def chat_turns(kind: str, rng: Random) -> list[Turn]:
    """The turns of one chat of `kind`: one exchange of a long kind, several of a short one."""
    once = {"story": story_turns, "reading": reading_turns, "passages": passage_turns, "memory": memory_turns}
    if kind in once:
        return once[kind](rng)
    fewest, most, make = {
        "facts": (1, 5, fact_turns),
        "sums": (1, 10, tasks.arithmetic),
        "small sums": (1, 10, small_sum_turns),
        "sequences": (1, 5, tasks.sequence),
        "counting": (1, 6, tasks.counting),
        "mixed": (2, 11, other_turns),
    }[kind]
    return [turn for _ in range(rng.randrange(fewest, most + 1)) for turn in make(rng)]


def document(rng: Random, mix: str) -> Document:
    """Draw one document of `mix`."""
    shares = MIXES[mix]
    kind = list(shares)[bisect(list(accumulate(shares.values()))[:-1], rng.random())]
    if kind == "plain story":
        return [Piece(story(cast(rng, kind=rng.choice(("", rng.choice(list(ANIMALS))))), rng)[0], TEXT)]
    if kind == "plain facts":
        return [Piece(" ".join(fact.answer for fact in rng.sample(FACTS, rng.randrange(3, 7))), TEXT)]
    if kind == "tools":
        return tool_document(rng)
    turns = chat_turns(kind, rng)
    system = rng.choice(SYSTEMS) if rng.random() < 0.2 else ""
    return chat_pieces(turns, rng.choices(STYLES, (45, 25, 20, 10))[0], system)


def documents(seed: int, count: int, mix: str = "broad") -> Iterator[Document]:
    """`count` documents of the corpus that `seed` and `mix` name, each with its end marker."""
    rng = Random(seed)
    for _ in range(count):
        pieces = document(rng, mix)
        yield [*pieces, Piece(END, TEXT)] if len(pieces) == 1 else [*pieces, Piece("\n" + END, 0.0)]


def main() -> None:
    """Print documents as text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for pieces in documents(options.seed, options.documents):
        sys.stdout.write("".join(piece.text for piece in pieces) + "\n")


if __name__ == "__main__":
    main()
