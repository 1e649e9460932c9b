"""Step times of an engine that is slower than it should be."""

import numpy as np

from .cost import Formula, StepCost, StepShape


class Slowed(Formula):
    """A step-time model whose steps take `factor` times as long."""

    def __init__(self, cost: StepCost):
        self.cost, self.factor = cost, 1.0

    def step_time(self, shape: StepShape) -> int:
        """Nanoseconds."""
        return int(self.cost.step_time(shape) * self.factor + 0.5)

    def step_times(self, shape: StepShape, steps: int) -> np.ndarray:
        """(steps,) int64, as `step_time` each."""
        return (self.cost.step_times(shape, steps) * self.factor + 0.5).astype(np.int64)
