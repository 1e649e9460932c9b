"""Flows on one link: random scripts, a driver for a package's link, and what fractions say about the same script.

An action is [time in ns, "start" | "cancel" | "rate", flow, bytes or bytes/s, whether arrivals are asked for before].
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil
from random import Random

SECOND = 10**9

Action = Sequence
Shares = Callable[[Mapping[int, Fraction], Mapping[int, int]], dict[int, Fraction]]
"""Which part of the rate each flow gets: of the bytes left by flow, and how many were there when each flow began."""


def equal(left: Mapping[int, Fraction], _: Mapping[int, int]) -> dict[int, Fraction]:
    """The right way: equal parts."""
    return {flow: Fraction(1, len(left)) for flow in left}


def first(left: Mapping[int, Fraction], _: Mapping[int, int]) -> dict[int, Fraction]:
    """A mistake: one after the other."""
    return {flow: Fraction(i == 0) for i, flow in enumerate(left)}


def frozen(left: Mapping[int, Fraction], among: Mapping[int, int]) -> dict[int, Fraction]:
    """A mistake: the share that a flow had at its start, for ever."""
    return {flow: Fraction(1, among[flow]) for flow in left}


def whole_rate(left: Mapping[int, Fraction], _: Mapping[int, int]) -> dict[int, Fraction]:
    """A mistake: nobody shares."""
    return dict.fromkeys(left, Fraction(1))


def arrivals(script: Sequence[Action], latency: int, shares: Shares = equal) -> dict[int, int]:
    """When each flow arrives, in ns, rounded up. By going from one end of a flow to the next, in fractions."""
    left: dict[int, Fraction] = {}
    among: dict[int, int] = {}
    arrived: dict[int, int] = {}
    rate, now = 0, Fraction(0)
    for time, action, flow, amount, *_ in [*script, [10**18, "end", None, 0]]:
        while left:
            part = {each: share * rate / SECOND for each, share in shares(left, among).items()}
            span = min((left[each] / part[each] for each in left if part[each]), default=None)
            ends = span is not None and now + span <= time
            step = span if ends else time - now
            left = {each: rest - step * part[each] for each, rest in left.items()}
            now += step
            for each in [each for each, rest in left.items() if rest == 0]:
                del left[each]
                arrived[each] = ceil(now) + latency
            if not ends:
                break
        now = Fraction(time)
        if action == "start":
            left[flow] = Fraction(amount)
            among[flow] = len(left)
        elif action == "cancel" and flow in left:
            del left[flow]
        elif action == "cancel" and arrived.get(flow, 0) > time:
            del arrived[flow]
        elif action == "rate":
            rate = amount
    return arrived


def play(link, script: Sequence[Action]) -> dict[str, list]:
    """Drive a link. Returns "told": [time, flow] as it told them, and "cancelled": [time, flow, answer]."""
    told, cancelled = [], []

    def ask(until: int) -> None:
        while (time := link.next_time()) is not None and time <= until:
            flows = link.collect(time)
            if not flows:
                raise RuntimeError(f"next_time says {time} ns, and nothing is there to collect at that time")
            told.extend([time, flow] for flow in flows)

    for time, action, flow, amount, asked in script:
        if asked:
            ask(time)
        if action == "start":
            link.start(flow, amount, time)
        elif action == "cancel":
            ask(time)
            cancelled.append([time, flow, link.cancel(flow, time)])
        else:
            link.set_rate(amount, time)
    ask(10**18)
    return {"told": told, "cancelled": cancelled}


KINDS = {"whole": (SECOND, 60, 40), "odd": (3 * SECOND, 60, 40), "large": (25 * SECOND, 4 << 30, 10**8)}
"""Highest rate in bytes/s, largest flow in bytes, longest pause in ns."""


def random_script(rng: Random, kind: str, actions: int) -> list[list]:
    """Flows that come, are cancelled, and change places with changes of the rate; at the end the rate is not 0."""
    most, largest, pause = KINDS[kind]
    script: list[list] = [[0, "rate", None, most if kind == "whole" else rng.randrange(most // 5, most), True]]
    time = flows = 0
    for _ in range(actions):
        time += rng.choice([0, 1, rng.randrange(pause)])
        roll, asked = rng.random(), rng.random() < 0.5  # else the link is asked late: that changes nothing
        if roll < 0.75 or not flows:
            script.append([time, "start", flows, rng.randrange(1, largest), asked])
            flows += 1
        elif roll < 0.87:
            script.append([time, "cancel", rng.randrange(flows), 0, asked])
        else:
            rate = most if kind == "whole" else rng.randrange(1, most)
            script.append([time, "rate", None, rate if rng.random() < 0.6 else 0, asked])
    return [*script, [time, "rate", None, most, False]]
