# ruff: noqa: E402, F821
"""Day 6 in another style: the model's choice as an iterator, whole decodes, one pattern for all stop strings."""

# file: text/generate.py
import itertools as _itertools


def _choices(model, tokens, sample):
    while True:
        last = model(mx.array(tokens)[None])[0, -1, :]
        tokens = [*tokens, mx.array(sample(last[None], [list(tokens)])).tolist()[0]]
        yield tokens[-1]


def generate(model, prompt, sample, *, max_tokens, stop_tokens=()):
    """Yield tokens; the value is the finish reason."""
    if len(prompt) == 0:
        raise ValueError("empty prompt")
    if max_tokens < 0:
        raise ValueError(f"max_tokens must not be negative, got {max_tokens}")
    ends = frozenset(stop_tokens)
    for token in _itertools.islice(_choices(model, list(prompt), sample), max_tokens):
        if token in ends:
            return "stop"
        yield token
    return "length"


def stream_text(tokenizer, tokens, stop=()):
    """Yield text character by character through a window of the last characters."""
    if not all(stop):
        raise ValueError("stop strings must not be empty")
    detokenizer, window, ends = Detokenizer(tokenizer), "", []

    def texts():
        yield from map(detokenizer.add, _noting(tokens, ends))
        yield detokenizer.finish()

    for text in texts():
        out = ""
        for character in text:
            window += character
            hits = [s for s in stop if window.endswith(s)]
            if hits:
                out += window[: len(window) - max(map(len, hits))]
                if out:
                    yield out
                return "stop"
            while window and not any(s.startswith(window) for s in stop):
                out, window = out + window[0], window[1:]
        if out:
            yield out
    if window:
        yield window
    return ends[0] or "length"


def _noting(tokens, ends):
    ends.append((yield from tokens))


# file: text/detokenizer.py
class Detokenizer(Detokenizer):
    """Decodes a growing list of tokens and hands out what is new; the list is cut now and then."""

    def __init__(self, tokenizer):
        super().__init__(tokenizer)
        self.shown = 0

    def _new(self, whole):
        text = self.tokenizer.decode(self.tokens)
        if not whole:
            text = text.rstrip(REPLACEMENT)
        new, self.shown = text[self.shown :], max(self.shown, len(text))
        return new

    def add(self, token):
        self.tokens.append(token)
        new = self._new(whole=False)
        if len(self.tokens) > 30 and new and self.tokenizer.decode(self.tokens)[-1] != REPLACEMENT:
            while self.tokenizer.decode(self.tokens[1:]):
                self.tokens = self.tokens[1:]
            self.shown = len(self.tokenizer.decode(self.tokens))
        return new

    def finish(self):
        return self._new(whole=True)


# file: text/chat.py
import re as _re


def render_chat(messages, enable_thinking=True):
    """One list of lines, joined at the end."""
    roles = [message.role for message in messages]
    if not roles:
        raise ValueError("a conversation needs a message")
    for role in roles:
        if role not in ("system", "user", "assistant"):
            raise ValueError(f"unknown role {role!r}")
    if "system" in roles[1:]:
        raise ValueError("only the first message may be the system's")
    if roles[-1] != "user":
        raise ValueError(f"the last message is the {roles[-1]}'s, not the user's")
    lines = []
    for message in messages:
        content = message.content
        if message.role == "assistant":
            content = _re.sub(r"\A.*</think>\n*", "", content, flags=_re.DOTALL)
        lines += [f"<|im_start|>{message.role}", f"{content}<|im_end|>"]
    lines += ["<|im_start|>assistant", ""]
    if not enable_thinking:
        lines[-1:] = ["<think>", "", "</think>", "", ""]
    return "\n".join(lines)
