# This file is yours to edit. Read book/src/week4-01-virtual-time.md.
"""What theory says of queues: exact recursions for any arrivals, closed forms for random ones.

Recursions are in integer nanoseconds, first come, first served. Closed forms are in seconds or any one unit of time:
`rate` is arrivals per unit, `service` the mean time of one. Each raises ValueError where the queue would grow for ever.
"""

from collections.abc import Sequence


def lindley(arrivals: Sequence[int], services: Sequence[int], servers: int = 1) -> list[int]:
    """When each job ends, in ns: it starts when it has come and the first of the servers is free.

    arrivals: ns, not decreasing. For one server this is Lindley's recursion (1952), for more Kiefer and Wolfowitz's.
    Raises ValueError unless the lists are equally long and the arrivals in order.
    """
    raise NotImplementedError("Week 4 Day 1 Task 2: lindley - see book/src/week4-01-virtual-time.md#task-2")


# ANCHOR: load
def load(rate: float, service: float, servers: int = 1) -> float:
    """Utilisation rho of each server. Raises ValueError from 1 on."""
    rho = rate * service / servers
    if not 0 <= rho < 1:
        raise ValueError(f"utilisation is {rho:g}: a queue is stable below 1 only")
    return rho
    # ANCHOR_END: load


def mg1_wait(rate: float, service: float, second_moment: float) -> float:
    """Mean wait before service for any distribution of service times (Pollaczek and Khinchine).

    second_moment: the mean of their squares.
    """
    raise NotImplementedError("Week 4 Day 1 Task 2: mg1_wait - see book/src/week4-01-virtual-time.md#task-2")


def md1_time(rate: float, service: float) -> float:
    """Mean time from arrival to end where each job takes `service`: the TTFT of prefills (DistServe, equation 1)."""
    raise NotImplementedError("Week 4 Day 1 Task 2: md1_time - see book/src/week4-01-virtual-time.md#task-2")


def pipeline_time(rate: float, service: float) -> float:
    """Mean time where a job of `service` goes through two stages of equal length (DistServe, equation 2).

    The second never queues, so this is M/D/1 with half the service time, and the other half.
    """
    raise NotImplementedError("Week 4 Day 1 Task 2: pipeline_time - see book/src/week4-01-virtual-time.md#task-2")


def speedup_time(rate: float, service: float, speedup: float) -> float:
    """Mean time where each job is `speedup` times as fast (DistServe, equation 3)."""
    raise NotImplementedError("Week 4 Day 1 Task 2: speedup_time - see book/src/week4-01-virtual-time.md#task-2")


def erlang_c(offered: float, servers: int) -> float:
    """Probability that a job must wait, with Poisson arrivals and exponential service times.

    offered: mean number of busy servers, rate * service.
    """
    raise NotImplementedError("Week 4 Day 1 Task 2: erlang_c - see book/src/week4-01-virtual-time.md#task-2")


def mmc_wait(rate: float, service: float, servers: int) -> float:
    """Mean wait before service with exponential service times and `servers` servers."""
    raise NotImplementedError("Week 4 Day 1 Task 2: mmc_wait - see book/src/week4-01-virtual-time.md#task-2")


def closed_loop_bound(clients: int, response: float, think: float, bottleneck: float) -> float:
    """The highest throughput of `clients` that each wait for a response, then think.

    response: time of one without any queue. bottleneck: time that one takes of the busiest server.
    """
    raise NotImplementedError("Week 4 Day 1 Task 2: closed_loop_bound - see book/src/week4-01-virtual-time.md#task-2")
