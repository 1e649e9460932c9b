"""What front ends count between two looks at a deployment."""

from dataclasses import dataclass

from .observation import Traffic
from .record import Record


@dataclass
class Tally:
    """Requests since the last look: sums of tokens, and of times in ns."""

    arrived: int = 0
    asked: int = 0
    ended: int = 0
    told: int = 0
    hit: int = 0
    prompts: int = 0
    first: int = 0
    ttft: float = 0.0
    gaps: int = 0
    itl: float = 0.0

    def arrive(self, tokens: int) -> None:
        """A request came."""
        self.arrived += 1
        self.asked += tokens

    def start(self, record: Record) -> None:
        """A request had its first token."""
        self.first += 1
        self.ttft += record.ttft

    def end(self, record: Record) -> None:
        """A request had its last token."""
        tokens = record.output_length
        self.ended += 1
        self.told += tokens
        self.hit += record.hit_tokens
        self.prompts += record.input_length
        if record.tpot is not None:
            self.gaps += tokens - 1
            self.itl += record.tpot * (tokens - 1)

    def traffic(self, duration: int) -> Traffic:
        """The same as means, for a planner."""
        return Traffic(
            duration=duration,
            requests=self.arrived,
            input_length=self.asked / self.arrived if self.arrived else None,
            output_length=self.told / self.ended if self.ended else None,
            ttft=self.ttft / self.first if self.first else None,
            itl=self.itl / self.gaps if self.gaps else None,
            hit_rate=self.hit / max(self.prompts, 1),
        )
