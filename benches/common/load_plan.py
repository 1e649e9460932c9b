"""What a load generator sends, and when: prompts of given lengths, shared prefixes, and arrival times from one seed."""

from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer


@dataclass(frozen=True)
class Plan:
    """The load. Lengths are in tokens, `rate` in requests per second.

    rate: mean of Poisson arrivals; None sends as fast as `concurrency` allows, all at once where that is None too.
    concurrency: requests that wait for an answer at one time at most, a closed loop where there is no rate.
    prefix: tokens that all requests of one of `prefixes` groups begin with, part of `input_length`; they are the same
    for every seed.
    """

    requests: int
    input_length: int
    output_length: int
    rate: float | None = None
    concurrency: int | None = None
    prefix: int = 0
    prefixes: int = 1
    seed: int = 0

    def arrivals(self) -> list[float]:
        """Seconds after the start at which each request is sent, or may be sent under `concurrency`."""
        if self.rate is None:
            return [0.0] * self.requests
        gaps = np.random.default_rng([self.seed, 1]).exponential(1 / self.rate, self.requests)
        return np.cumsum(gaps).tolist()

    def prompts(self, tokenizer: Tokenizer) -> list[str]:
        """Text of about `input_length` tokens each: random tokens, decoded, may be cut differently when read again."""
        rng = np.random.default_rng([self.seed, 2])
        usable = plain_tokens(tokenizer)
        prefixes = np.random.default_rng(self.prefix).choice(usable, (self.prefixes, self.prefix))
        own = rng.choice(usable, (self.requests, self.input_length - self.prefix))
        rows = [[*prefixes[i % self.prefixes], *row] for i, row in enumerate(own)]
        return [tokenizer.decode(row) for row in rows]


def plain_tokens(tokenizer: Tokenizer) -> list[int]:
    """Tokens that are text of their own: a letter or more, perhaps after a space, so that few merge with neighbours."""
    texts = {token: tokenizer.decode([token]) for token in sorted(tokenizer.get_vocab().values())}
    return [token for token, text in texts.items() if text.strip().isalpha() and text.startswith(" ")]
