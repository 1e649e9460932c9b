"""Small tokenizers made to measure, for tests: which token holds which bytes is up to the caller.

They only decode; nothing is trained.
"""

from collections.abc import Sequence

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models

SPECIAL = "<|special|>"
"""A token that has no text."""


def byte_level(pieces: Sequence[bytes]) -> tuple[Tokenizer, list[int]]:
    """A byte-level tokenizer with one token for each different piece, after SPECIAL as token 0.

    Returns it with the tokens of `pieces` in order.
    """
    names = [_written(piece) for piece in pieces]
    vocabulary = {name: i for i, name in enumerate([SPECIAL, *dict.fromkeys(names)])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.add_special_tokens([AddedToken(SPECIAL, special=True, normalized=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, [vocabulary[name] for name in names]


def spaced(words: Sequence[str]) -> tuple[Tokenizer, list[int]]:
    """A tokenizer whose words carry the space before them; its decoder drops the space of the first one.

    Returns it with the tokens of `words` in order. SPECIAL is token 0.
    """
    names = ["\u2581" + word for word in words]
    vocabulary = {name: i for i, name in enumerate([SPECIAL, *dict.fromkeys(names)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL))
    tokenizer.add_special_tokens([AddedToken(SPECIAL, special=True, normalized=False)])
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer, [vocabulary[name] for name in names]


def cut(rng: np.random.Generator, data: bytes, longest: int) -> list[bytes]:
    """Cut `data` into pieces of 1 to `longest` bytes, without regard for characters."""
    pieces, at = [], 0
    while at < len(data):
        length = int(rng.integers(1, longest + 1))
        pieces.append(data[at : at + length])
        at += length
    return pieces


def _written(data: bytes) -> str:
    """The characters that stand for bytes in a byte-level vocabulary (GPT-2's table)."""
    return "".join(_CHARACTER[byte] for byte in data)


_SHOWN = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _SHOWN]
_CHARACTER = {byte: chr(byte) for byte in _SHOWN} | {byte: chr(256 + i) for i, byte in enumerate(_HIDDEN)}
