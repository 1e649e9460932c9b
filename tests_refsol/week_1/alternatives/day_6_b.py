# ruff: noqa: F821
"""Day 6 in a third style: an iterator class behind the generator, a list of pending tokens, a table of turns."""


# file: text/generate.py
class _State:
    def __init__(self, model, prompt, sample):
        self.model, self.sample = model, sample
        self.row = mx.array(list(prompt), dtype=mx.int32)

    def next(self):
        scores = self.model(self.row.reshape(1, -1))
        choice = self.sample(scores[:, self.row.size - 1, :], [self.row.tolist()])
        self.row = mx.concatenate([self.row, choice.astype(mx.int32).reshape(1)])
        return self.row[-1].item()


def generate(model, prompt, sample, *, max_tokens, stop_tokens=()):
    """Count down the tokens that remain."""
    if not list(prompt):
        raise ValueError("no token in the prompt")
    remaining = max_tokens
    if remaining < 0:
        raise ValueError(f"cannot generate {max_tokens} tokens")
    state = _State(model, prompt, sample)
    while remaining > 0:
        token = state.next()
        if any(token == end for end in stop_tokens):
            return "stop"
        yield token
        remaining -= 1
    return "length"


def stream_text(tokenizer, tokens, stop=()):
    """Keep the whole text and the number of characters shown."""
    for s in stop:
        if len(s) == 0:
            raise ValueError("empty stop string")
    detokenizer, text, shown, finished, reason = Detokenizer(tokenizer), "", 0, False, None
    while not finished:
        try:
            text += detokenizer.add(next(tokens))
        except StopIteration as end:
            text, finished, reason = text + detokenizer.finish(), True, end.value or "length"
        limit = len(text)
        for end in range(shown + 1, len(text) + 1):
            starts = [end - len(s) for s in stop if text[:end].endswith(s)]
            if starts:
                limit, finished, reason = min(starts), True, "stop"
                break
        if not finished:
            while limit > shown and not _settled(text, limit, stop):
                limit -= 1
        if limit > shown:
            yield text[shown:limit]
            shown = limit
    return reason


def _settled(text, limit, stop):
    """Whether no stop string can begin before `limit`."""
    tails = [text[at:] for at in range(max(0, limit - max(map(len, stop), default=0)), limit)]
    return not any(s.startswith(tail) for s in stop for tail in tails)


# file: text/detokenizer.py
def _add(self, token):
    """`tokens` holds the last token shown and those since; `read` is 0 or 1."""
    self.tokens.append(token)
    before, text = self._texts()
    if text == before or text[-1] == REPLACEMENT:
        return ""
    keep = len(self.tokens) - self.read
    self.tokens, self.read = self.tokens[-keep:], keep
    return text[len(before) :]


def _finish(self):
    before, text = self._texts()
    self.tokens, self.read = [], 0
    return text[len(before) :]


def _texts(self):
    return self.tokenizer.decode(self.tokens[: self.read]), self.tokenizer.decode(self.tokens)


Detokenizer.add, Detokenizer.finish, Detokenizer._texts = _add, _finish, _texts


# file: text/chat.py
def render_chat(messages, enable_thinking=True):
    """Write turn after turn into one string."""
    prompt, known = "", {"system": 0, "user": 1, "assistant": 2}
    last = None
    for index, message in enumerate(messages):
        last = message.role
        if last not in known:
            raise ValueError(f"I do not know the role {last!r}")
        if last == "system" and index > 0:
            raise ValueError("the system speaks first or never")
        said = message.content
        end = said.rfind("</think>")
        if last == "assistant" and end >= 0:
            said = said[end + len("</think>") :]
            while said.startswith("\n"):
                said = said[1:]
        prompt += "<|im_start|>" + last + "\n" + said + "<|im_end|>" + "\n"
    if last != "user":
        raise ValueError("the last message must be from the user")
    return prompt + "<|im_start|>assistant\n" + ("<think>\n\n</think>\n\n" if enable_thinking is False else "")
