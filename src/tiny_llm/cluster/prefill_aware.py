"""How a worker is chosen that computes prompts and nothing else."""

from .indexer import Worker
from .policies import KvAware
from .query import Query
from .routing import costs, probabilities


class PrefillAware(KvAware):
    """`KvAware` for workers that only compute prompts: what they hold costs them nothing."""

    def choose(self, query: Query) -> Worker:
        """One of them, by prompt work alone."""
        candidates = [each._replace(decode_blocks=0) for each in query.candidates()]
        values = costs(candidates, query.request.tokens, query.block_size, query.cost)
        return self.rng.choices(query.workers, probabilities(values, self.temperature))[0]
