# This file is yours to edit. Read book/src/week4-01-virtual-time.md.
"""A step's time from what the machine can do: arithmetic or memory traffic, whichever takes longer, and an overhead.

Knows numbers of machines (dense bf16) and of Qwen3 models, from their data sheets and configurations.
"""

from dataclasses import dataclass
from typing import NamedTuple

from .cost import Formula, Nanoseconds, StepShape


class Machine(NamedTuple):
    """flops: dense bf16, per second. bandwidth: of the memory, bytes/s. memory: bytes. link: to the next card, bytes/s
    and direction. nic: to other machines, likewise."""

    flops: float
    bandwidth: float
    memory: float = 0
    link: float = 0
    nic: float = 0


GIB = 2**30
MACHINES = {
    "A100": Machine(312e12, 2.039e12, 80 * GIB, 300e9, 25e9),
    "H100": Machine(989e12, 3.35e12, 80 * GIB, 450e9, 50e9),
    "H200": Machine(989e12, 4.8e12, 141 * GIB, 450e9, 50e9),
    "B200": Machine(2250e12, 7.7e12, 180 * GIB, 900e9, 100e9),
    "L40S": Machine(362e12, 0.864e12),
    "RTX PRO 6000": Machine(468e12, 1.792e12),
}


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a Qwen3. experts: of each MLP, `active` of which see a token; 1 and 1 where it is dense.

    itemsize: bytes of a weight, and of a key or value.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int = 128
    vocab: int = 151_936
    experts: int = 1
    active: int = 1
    itemsize: int = 2

    # ANCHOR: sizes
    @property
    def kv_bytes(self) -> int:
        """Bytes of keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.itemsize

    @property
    def attention_weights(self) -> int:
        """Weights of the four projections of all layers."""
        return self.layers * 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)

    @property
    def expert_weights(self) -> int:
        """Weights of one expert in each layer."""
        return self.layers * 3 * self.hidden * self.intermediate

    @property
    def head_weights(self) -> int:
        """Weights of the head. The embedding is looked up, not read."""
        return self.vocab * self.hidden

    def experts_read(self, tokens: int) -> float:
        """Experts that some of `tokens` go to, if each chooses at random."""
        return self.experts * (1 - (1 - self.active / self.experts) ** tokens)
        # ANCHOR_END: sizes


QWEN3 = {
    "0.6B": ModelShape(28, 1024, 3072, 16, 8),
    "1.7B": ModelShape(28, 2048, 6144, 16, 8),
    "4B": ModelShape(36, 2560, 9728, 32, 8),
    "8B": ModelShape(36, 4096, 12_288, 32, 8),
    "14B": ModelShape(40, 5120, 17_408, 40, 8),
    "32B": ModelShape(64, 5120, 25_600, 64, 8),
    "30B-A3B": ModelShape(48, 2048, 768, 32, 4, experts=128, active=8),
}


def all_reduce(size: float, cards: int, latency: float, bandwidth: float) -> float:
    """Seconds of a ring all-reduce of `size` bytes (alpha-beta model), in seconds and bytes/s; 0 on one card."""
    raise NotImplementedError("Week 4 Day 1 Task 3: all_reduce - see book/src/week4-01-virtual-time.md#task-3")


class Roofline(Formula):
    """A `StepCost` for `cards` cards that share each layer (tensor parallel).

    compute, memory: shares of the machine's peak that are reached. overhead, latency: seconds of each step, of each
    message between cards.
    """

    def __init__(
        self,
        machine: Machine,
        model: ModelShape,
        cards: int = 1,
        compute: float = 0.6,
        memory: float = 0.8,
        overhead: float = 1.2e-3,
        latency: float = 5e-6,
    ):
        self.machine = machine
        self.model = model
        self.cards = cards
        self.flops = cards * compute * machine.flops
        self.bandwidth = cards * memory * machine.bandwidth
        self.overhead = overhead
        self.latency = latency

    def time(self, shape: StepShape) -> Nanoseconds:
        """Nanoseconds."""
        raise NotImplementedError("Week 4 Day 1 Task 3: Roofline.time - see book/src/week4-01-virtual-time.md#task-3")

    def work(self, shape: StepShape) -> Nanoseconds:
        """Floating-point operations: two for each weight and token; scores and sums of values for each context."""
        raise NotImplementedError("Week 4 Day 1 Task 3: Roofline.work - see book/src/week4-01-virtual-time.md#task-3")

    def traffic(self, shape: StepShape) -> Nanoseconds:
        """Bytes: each weight once, keys and values of all contexts, those of new tokens.

        A prompt's chunk reads each key once: as many as its tokens attend to on average, and half of its own.
        """
        raise NotImplementedError(
            "Week 4 Day 1 Task 3: Roofline.traffic - see book/src/week4-01-virtual-time.md#task-3"
        )

    def communication(self, shape: StepShape) -> float:
        """Seconds: two all-reduces of all hidden states in each layer."""
        raise NotImplementedError(
            "Week 4 Day 1 Task 3: Roofline.communication - see book/src/week4-01-virtual-time.md#task-3"
        )
