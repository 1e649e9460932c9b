# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""Names of blocks: what is in one, and what is in it together with all that is before it.

A block is `block_size` tokens that a cache keeps or drops as one. Knows token ids and 64-bit numbers. Dynamo's two
functions, with BLAKE2b for xxh3: stable between processes, which Python's own `hash` is not.
"""

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from struct import pack

SALT = 1337
LIMIT = 1 << 64

Naming = Callable[[Sequence[int], int | None], Sequence[int]]
"""Sequence hashes from local hashes, and the sequence hash of the block before them, None for a beginning."""


# ANCHOR: local
def digest(data: bytes, salt: int = SALT) -> int:
    """64 bits of BLAKE2b. Another salt, below 2 ** 64, gives unrelated numbers."""
    hashed = blake2b(data, digest_size=8, salt=salt.to_bytes(8, "little"))
    return int.from_bytes(hashed.digest(), "little")


def local_hash(tokens: Sequence[int], salt: int = SALT) -> int:
    """The content of one block alone, wherever it stands.

    tokens: ids below 2 ** 32, hashed as unsigned 32-bit little-endian numbers.
    """
    return digest(pack(f"<{len(tokens)}I", *tokens), salt)
    # ANCHOR_END: local


def salt_for(lora: str | None = None, namespace: str | None = None) -> int:
    """The salt of blocks that this adapter computed, in this cache namespace: no other may use them."""
    names = [name for name in (("lora", lora), ("namespace", namespace)) if name[1] is not None]
    return (SALT + sum(digest(f"{kind}:{name}".encode()) for kind, name in names)) % LIMIT


def local_hashes(tokens: Sequence[int], block_size: int, salt: int = SALT) -> list[int]:
    """The local hash of each complete block of `tokens`; what is left over has none."""
    return [local_hash(tokens[end - block_size : end], salt) for end in range(block_size, len(tokens) + 1, block_size)]


def sequence_hashes(locals_: Sequence[int], parent: int | None = None) -> list[int]:
    """What each block holds given all blocks before it: s_0 = b_0, s_i = digest(s_{i-1}, b_i), after Dynamo.

    The two numbers are hashed as unsigned 64-bit little-endian ones, 16 bytes.
    parent: the sequence hash of the block before the first of them, None for a beginning.
    """
    raise NotImplementedError("Week 4 Day 4 Task 1: sequence_hashes - see book/src/week4-04-kv-aware-routing.md#task-1")


def key_hashes(keys: Sequence[Hashable]) -> list[int]:
    """The local hash of each page key: a trace's number is one already, a tuple of ids is hashed."""
    return [key if isinstance(key, int) else local_hash(key) for key in keys]


def traced_hashes(locals_: Sequence[int], parent: int | None = None) -> Sequence[int]:
    """A `Naming` for traces: their block hashes cover all that is before, and are sequence hashes already."""
    return locals_
