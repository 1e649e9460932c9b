"""A step's time from a few numbers that were fitted to measured steps of an engine."""

from .cost import Formula, Nanoseconds, StepShape
from .table import US, Line


class Fitted(Formula):
    """A `StepCost`: what a batch takes by its tokens, and more for each sequence and each pair of query and key.

    tokens: microseconds by the tokens of a batch. sequence, pair: microseconds of each.
    """

    def __init__(self, tokens: Line, sequence: float, pair: float):
        self.tokens, self.sequence, self.pair = tokens, sequence, pair

    def time(self, shape: StepShape) -> Nanoseconds:
        """Nanoseconds."""
        tokens, context, decodes, decode_context, sequences = shape
        time = self.tokens(tokens + decodes) + self.sequence * sequences
        return (time + self.pair * (context + decode_context)) * US
