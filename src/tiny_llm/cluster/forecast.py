"""The next value of a series, from those so far, in place of ARIMA and the like."""


class Holt:
    """A level and a trend, both smoothed exponentially (Holt, 1957): follows a load that rises steadily.

    alpha, beta: weights of what is new in the level and in the trend. 1 and 0: as the last value. Less than 1, and 0: a
    moving average, in which each value counts 1 - alpha times as much as the one after it.
    """

    def __init__(self, alpha: float = 1.0, beta: float = 0.0):
        self.alpha, self.beta = alpha, beta
        self.level: float | None = None
        self.trend = 0.0

    def add(self, value: float) -> None:
        """What was observed. The first value is the level; each later one moves the level, and that the trend."""
        if self.level is None:
            self.level = value
            return
        before = self.level
        self.level = self.alpha * value + (1 - self.alpha) * (before + self.trend)
        self.trend = self.beta * (self.level - before) + (1 - self.beta) * self.trend

    def next(self) -> float:
        """Level and trend, never below 0; 0 before the first value."""
        return max(0.0, (self.level or 0.0) + self.trend)
