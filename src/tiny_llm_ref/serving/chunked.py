"""Prompts in chunks, and no request is admitted that could run out of pages: Mini-SGLang's scheduler."""

from itertools import chain

from .prefill import PrefillAdder
from .request import Step
from .scheduler import Scheduler


class ChunkedScheduler(Scheduler):
    """Prefill first, at most `token_budget` tokens at a time; a prompt that is longer runs in several batches.

    A request whose prompt was launched in part stands at the front of `waiting`, with a row; there is at most one.
    """

    def prefill(self) -> list[Step]:
        """The next chunk of a prompt that was begun, then waiting requests in their order.

        Ends at the first that cannot be added, however small those behind it are: nobody is overtaken.
        """
        if not self.waiting:
            return []
        begun = [request for request in (self.waiting[0],) if request.row is not None]
        adder = PrefillAdder(self.memory, chain(self.running.values(), begun), self.token_budget)
        chunks = []
        for request in self.waiting:
            tokens = adder.add(request)
            if tokens == 0:
                break
            chunks.append((request, tokens))
        steps = [self.launch(request, tokens) for request, tokens in chunks]
        for step in steps:
            if step.samples:
                self.waiting.popleft()
        return steps
