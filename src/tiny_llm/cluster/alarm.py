"""Brings the time of a simulation to an object that has none: to a link, an engine for transfers, an agent."""

from collections.abc import Callable

from .kernel import Event, Phase, Simulation


class Alarm:
    """Calls `ring(now)` whenever it is the time that `next_time` names.

    Whoever changes the object calls `set` afterwards: the time may be another one then.
    """

    def __init__(
        self,
        sim: Simulation,
        next_time: Callable[[], int | None],
        ring: Callable[[int], object],
        phase: Phase = Phase.TRANSFER_DONE,
    ):
        self.sim, self.next_time, self.ring, self.phase = sim, next_time, ring, phase
        self._time: int | None = None
        self._event: Event | None = None

    def set(self) -> None:
        """Look again at what time to ring."""
        time = self.next_time()
        if time == self._time:
            return
        if self._event is not None:
            self.sim.cancel(self._event)
        self._time = time
        self._event = None if time is None else self.sim.at(time, self.phase, self._ring)

    def _ring(self) -> None:
        self._time = self._event = None
        self.ring(self.sim.now)
        self.set()
