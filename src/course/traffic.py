"""How many bytes a decode step must read, whoever computes it: every weight once, and the keys and values so far."""

from dataclasses import dataclass
from typing import Protocol

from course.folder import Contents
from course.memory import BYTES, Format


class Sizes(Protocol):
    """What is asked of a package's `ModelConfig`."""

    hidden_size: int
    num_hidden_layers: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    tie_word_embeddings: bool


@dataclass(frozen=True)
class Traffic:
    """Bytes of one step: of weights, and of cached keys and values."""

    weights: float
    cache: float

    @property
    def bytes(self) -> float:
        """Both."""
        return self.weights + self.cache


def step_traffic(config: Sizes, found: Contents, form: Format, cached_tokens: int) -> Traffic:
    """The least that a decode step reads with weights held as `form` and `cached_tokens` tokens in the cache.

    An embedding table that is not also the head does not count: a step reads one row of it.
    """
    table = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    rows = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    return Traffic((found.parameters - table) * form.bytes_per_weight, rows * cached_tokens * BYTES[form.dtype])
