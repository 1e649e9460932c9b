"""Day 1, virtual time: brute force for the kernel, exact fractions for queues, sums by position for costs, and a plain
loop over the scheduler for replicas."""

from bisect import insort
from fractions import Fraction
from itertools import count, pairwise
from math import sqrt
from time import perf_counter

import numpy as np

from course.case import case, error_of
from course.cluster_case.by_hand import by_hand
from course.cluster_case.replay import Log, Price, on_a_replica, replica_of, script
from course.compare import refused
from course.suspects import named

STUDENT_999 = 4.781
"""Two-sided 99.9 % quantile of Student's t with 9 degrees of freedom: for the mean of 10 seeds."""


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def near(got: float, want: float, what: str, mistakes: dict[str, float] | None = None, tol: float = 1e-9) -> None:
    """The same for a number, up to a share of it."""
    equal = lambda value: abs(float(got) - float(value)) <= tol * max(abs(float(value)), 1e-12)  # noqa: E731
    if not equal(want):
        likely = named(m for m, value in (mistakes or {}).items() if equal(value))
        raise AssertionError(f"{what}: expected {float(want):.9g}, got {float(got):.9g}\n{likely}".strip())


def first_difference(got: list, want: list) -> str:
    """Where two lists part."""
    at = next((i for i, (a, b) in enumerate(zip(got, want, strict=False)) if a != b), min(len(got), len(want)))
    ends = [repr(some[at]) if at < len(some) else "nothing more" for some in (want, got)]
    return f"entry {at}: expected {ends[0]}, got {ends[1]}"


# Task 1


def tree(rng: np.random.Generator, events: int) -> list[dict]:
    """Events, each with a parent that asks for it when it happens (None: from the beginning), a delay and a phase."""
    found = []
    for name in range(events):
        parent = int(rng.integers(name)) if name and rng.random() < 0.6 else None
        found.append({"parent": parent, "delay": int(rng.choice([0, 0, 1, 5])), "phase": int(rng.integers(7))})
    return found


def happened(events: list[dict], key) -> list[list[int]]:
    """[event, time, phase] in the order that `key(time, phase, number)` says, by brute force."""
    waiting, order, numbers = [], [], count()

    def ask(parent: int | None, now: int) -> None:
        for name, event in enumerate(events):
            if event["parent"] == parent:
                time = now + event["delay"]
                insort(waiting, (key(time, event["phase"], next(numbers)), time, name))

    ask(None, 0)
    while waiting:
        _, time, name = waiting.pop(0)
        order.append([name, time, events[name]["phase"]])
        ask(name, time)
    return order


@case(task=1, params=[{"events": 8}, {"events": 60}, {"events": 400}])
class EventsComeInOrder:
    """Events happen by time, then by phase, then in the order in which they were asked for, also those that other
    events ask for while they happen."""

    def inputs(rng, events):
        return tree(rng, events)

    def observe(solution, inputs):
        kernel = solution.module("cluster.kernel")
        simulation, order, kinds = kernel.Simulation(), [], []

        def ask(parent):
            for name, event in enumerate(inputs):
                if event["parent"] == parent:
                    time = simulation.now + event["delay"]
                    simulation.at(time, kernel.Phase(event["phase"]), happen, {"name": name, **event})

        def happen(event):
            order.append([event["name"], simulation.now, int(simulation.phase)])
            kinds.append(simulation.phase is kernel.Phase(event["phase"]))
            ask(event["name"])

        ask(None)
        count = simulation.run()
        return {"count": count, "order": order, "after": [simulation.now, simulation.phase], "phases": all(kinds)}

    def verify(inputs, got):
        orders = {
            "": happened(inputs, lambda time, phase, number: (time, phase, number)),
            "the phase does not count": happened(inputs, lambda time, phase, number: (time, number)),
            "the last one asked for comes first": happened(inputs, lambda time, phase, number: (time, phase, -number)),
            "phases are turned round": happened(inputs, lambda time, phase, number: (time, -phase, number)),
            "events come in the order in which they were asked for": happened(inputs, lambda time, phase, n: n),
        }
        names = {text: [name for name, *_ in order] for text, order in orders.items()}
        want, order = orders.pop(""), [name for name, *_ in got["order"]]
        right = names.pop("")
        explain(order, right, f"the order of events: {first_difference(order, right)}", names)
        explain(got["order"], want, f"[event, now, phase]: {first_difference(got['order'], want)}")
        explain(got["count"], len(inputs), f"run() returned {got['count']}: {len(inputs)} events happened")
        explain(got["phases"], True, "`phase` is a number while an event runs: keep the Phase")
        want = [want[-1][1], None]
        explain(got["after"], want, f"[now, phase] after the run are {got['after']}, expected {want}")


@case(task=1)
class CancelledEventsDoNotHappen:
    """A cancelled event does not happen, and moves no clock. Cancelling it again, or after it has happened, does
    nothing."""

    def inputs(rng):
        return {"times": sorted(rng.integers(1, 50, 30).tolist()), "gone": rng.permutation(30)[:12].tolist()}

    def observe(solution, inputs):
        kernel = solution.module("cluster.kernel")
        simulation, seen, ask = kernel.Simulation(), [], kernel.Phase.ADMISSION
        events = [simulation.at(time, ask, seen.append, i) for i, time in enumerate(inputs["times"])]
        late = [simulation.at(100, ask, seen.append, "late") for _ in range(3)]
        simulation.at(60, ask, lambda: [simulation.cancel(event) for event in (late[0], events[0], late[0])])
        simulation.at(100, kernel.Phase.STEP_DONE, lambda: simulation.cancel(late[2]))
        for i in inputs["gone"] * 2:
            simulation.cancel(events[i])
        last = simulation.at(1000, ask, seen.append, "cancelled")
        simulation.cancel(last)
        return {"count": simulation.run(), "seen": seen, "now": simulation.now}

    def verify(inputs, got):
        want = [i for i in range(30) if i not in inputs["gone"]] + ["late"]
        explain(got["seen"], want, f"events that happened: {first_difference(got['seen'], want)}", {
            "a cancelled event happens": [*range(30), *["late"] * 3, "cancelled"],
            "an event that is cancelled by another happens": [*want, *["late"] * 2],
        })  # fmt: skip
        now = got["now"]
        explain(now, 100, f"it is {now} ns after the run, expected 100: a cancelled event must not move the clock")
        happen = len(want) + 2
        explain(got["count"], happen, f"run() returned {got['count']}: {happen} events happened", {
            "cancelled events are counted": 30 + 3 + 2 + 1,
        })  # fmt: skip


@case(task=1)
class CancellingIsQuick:
    """To cancel an event takes no longer where many others wait: nobody looks through the heap."""

    def inputs(rng):
        return rng.integers(1, 10**9, 20_000).tolist()

    def observe(solution, inputs):
        kernel = solution.module("cluster.kernel")
        seconds = []
        for many in (400, 20_000):
            simulation = kernel.Simulation()
            events = [simulation.at(t, kernel.Phase.ADMISSION, print) for t in inputs[:many]]
            start, taken = perf_counter(), []
            for event in events[-100:]:
                start = perf_counter()
                simulation.cancel(event)
                taken.append(perf_counter() - start)
            seconds.append(float(np.median(taken)))
        return seconds

    def verify(inputs, got):
        if got[1] > 8 * got[0] + 5e-6:
            raise AssertionError(
                f"to cancel one of 400 events took {1e6 * got[0]:.1f} us, one of 20,000 {1e6 * got[1]:.1f} us: "
                "mark the event, do not look for it in the heap"
            )


@case(task=1)
class RunStopsWhereItIsTold:
    """run(until) lets everything happen up to that time, that time included, and leaves the rest for the next run; then
    it is `until`, whether something happened or not."""

    def inputs(rng):
        return {"times": rng.integers(0, 40, 60).tolist(), "stops": [0, *sorted(rng.integers(0, 45, 6).tolist())]}

    def observe(solution, inputs):
        kernel = solution.module("cluster.kernel")
        simulation, seen = kernel.Simulation(), []
        for time in inputs["times"]:
            simulation.at(time, kernel.Phase.LAUNCH, seen.append, time)
        runs = [[simulation.run(until=stop), simulation.now, len(seen)] for stop in inputs["stops"]]
        end = [simulation.run(), simulation.now, len(seen)]
        simulation.run(until=200)
        simulation.after(7, kernel.Phase.LAUNCH, seen.append, 207)
        back = error_of(lambda: simulation.run(until=199))
        idle = [simulation.run(until=206), simulation.now, simulation.run(until=207), simulation.now]
        return {"runs": runs, "end": end, "back": back, "idle": idle}

    def verify(inputs, got):
        times, done = np.array(inputs["times"]), 0
        for stop, run in zip(inputs["stops"], got["runs"], strict=True):
            want = [int((times <= stop).sum()) - done, stop, int((times <= stop).sum())]
            explain(run, want, f"[happened, now, in all] are {run} after run(until={stop}), expected {want}", {
                "what happens at `until` itself is left out": [
                    int((times < stop).sum()) - done, stop, int((times < stop).sum())
                ],
                "0 is a time, None is none": [60, stop, 60],
            })  # fmt: skip
            if run[1] != stop:
                raise AssertionError(f"it is {run[1]} ns after run(until={stop})")
            done = want[2]
        want = [60 - done, max(int(times.max()), inputs["stops"][-1]), 60]
        explain(got["end"], want, f"[happened, now, in all] are {got['end']} after a run to the end, expected {want}")
        refused(got["back"], "run(until=199) at 200 ns", "199")
        want = [0, 206, 1, 207]
        explain(got["idle"], want, f"runs to 206 and 207 gave {got['idle']}, expected {want}: the event at 207 waits")


@case(task=1, params=[{"kind": kind} for kind in ("past", "float", "numpy", "from an event")])
class TimeIsAWholeNanosecond:
    """Nothing is scheduled in the past, nor at a time that is no Python int; then nothing changes."""

    def inputs(rng, kind):
        return {"kind": kind, "now": int(rng.integers(10, 10**12))}

    def observe(solution, inputs):
        kernel, now = solution.module("cluster.kernel"), inputs["now"]
        simulation, seen = kernel.Simulation(), []
        simulation.run(until=now)
        ask = lambda time: simulation.at(time, kernel.Phase.ADMISSION, seen.append, 1)  # noqa: E731
        times = {"past": now - 1, "float": float(now + 5), "numpy": np.int64(now + 5)}
        if inputs["kind"] != "from an event":
            got = error_of(lambda: ask(times[inputs["kind"]]) and None)
        else:
            found = []
            at = simulation.at(now + 9, kernel.Phase.LAUNCH, lambda: found.append(error_of(lambda: ask(now) and None)))
            simulation.run()
            got = found[0] if at else None
        happened = simulation.run(until=now + 20)
        return {"error": got, "happened": happened, "seen": len(seen)}

    def verify(inputs, got):
        what = {"past": "a time that is past", "float": "a float as time", "numpy": "a NumPy integer as time"}
        refused(got["error"], what.get(inputs["kind"], "a time before now, asked for by an event,"))
        explain([got["happened"], got["seen"]], [0, 0], "what was refused happened all the same")


@case(task=1)
class AnErrorEndsTheRun:
    """An error of a callback comes out of run(). Afterwards nothing is running: phase is None, and a run goes on with
    the next event."""

    def inputs(rng):
        return int(rng.integers(1, 100))

    def observe(solution, inputs):
        kernel = solution.module("cluster.kernel")
        simulation, seen = kernel.Simulation(), []
        simulation.at(inputs, kernel.Phase.ADMISSION, {}.__getitem__, "missing")
        simulation.at(inputs, kernel.Phase.TELEMETRY, lambda *args: seen.append(list(args)), 1, 2)
        error = error_of(lambda: simulation.run(until=inputs + 50))["type"]
        state = [error, simulation.now, simulation.phase, list(seen)]
        return [*state, simulation.run(), seen]

    def verify(inputs, got):
        want = ["KeyError", inputs, None, [], 1, [[1, 2]]]
        explain(got, want, f"[error, now, phase, seen; then: happened, seen] are {got}, expected {want}", {
            "phase is still that of the event that failed": ["KeyError", inputs, 3, [], 1, [[1, 2]]],
            "the clock went on to `until`, over an event that has not happened": ["KeyError", inputs + 50, *want[2:]],
            "a callback gets all of its arguments": [*want[:5], [[1]]],
        })  # fmt: skip


# Task 2


def jobs(rng: np.random.Generator, n: int) -> tuple[list[int], list[int]]:
    """Arrivals in bursts, long after the beginning of time, and services that may be 0."""
    gaps = rng.choice([0, 0, 3, 900], n) + rng.integers(0, 40, n)
    return (10**17 + np.cumsum(gaps)).tolist(), (rng.choice([0, 1, 100], n) * rng.integers(1, 30, n)).tolist()


def by_servers(arrivals: list[int], services: list[int], servers: int, shortest: bool = True) -> list[int]:
    """Each server one by one: who is free first takes the next job. Not `shortest`: they take turns."""
    free, ends = [0] * servers, []
    for job, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
        server = min(range(servers), key=free.__getitem__) if shortest else job % servers
        free[server] = max(free[server], arrival) + service
        ends.append(free[server])
    return ends


@case(task=2, params=[{"servers": servers} for servers in (1, 2, 3, 7)])
class LindleyIsTheQueue:
    """Jobs end when a first come, first served queue ends them, to the nanosecond, with any number of servers."""

    def inputs(rng, servers):
        return {"servers": servers, "runs": [jobs(rng, int(n)) for n in (1, 2, 40, 300)] + [([], [])]}

    def observe(solution, inputs):
        lindley = solution.module("cluster.queueing").lindley
        return [lindley(arrivals, services, inputs["servers"]) for arrivals, services in inputs["runs"]]

    def verify(inputs, got):
        for (arrivals, services), ends in zip(inputs["runs"], got, strict=True):
            if inputs["servers"] == 1:  # the longest sum of services from some job's arrival on
                want, best = [], -1
                for arrival, service in zip(arrivals, services, strict=True):
                    best = max(best, arrival) + service
                    want.append(best)
            else:
                want = by_servers(arrivals, services, inputs["servers"])
            pairs = list(zip(arrivals, services, strict=True))
            explain([int(end) for end in ends], want, f"ends: {first_difference([int(e) for e in ends], want)}", {
                "nobody waits": [a + s for a, s in pairs],
                "a job starts when the one before it ends, even if it comes later": np.cumsum(
                    [a if not i else 0 for i, a in enumerate(arrivals)] + np.array(services, int)).tolist(),
                "there is one server only": by_servers(arrivals, services, 1),
                "the servers take turns": by_servers(arrivals, services, inputs["servers"], shortest=False),
            })  # fmt: skip
            if any(type(end) is not int for end in ends):
                raise AssertionError(f"ends are {type(ends[0]).__name__}: nanoseconds are Python ints")


@case(task=2)
class LindleyRefusesNonsense:
    """Lists of different lengths, and arrivals that go back in time, are refused; the lists stay as they are."""

    def inputs(rng):
        return jobs(rng, 20)

    def observe(solution, inputs):
        lindley = solution.module("cluster.queueing").lindley
        arrivals, services = inputs
        back = [*arrivals[:9], arrivals[8] - 1, *arrivals[10:]]
        kept = list(arrivals), list(services)
        lindley(*kept, 2)
        return {
            "short": error_of(lambda: lindley(arrivals, services[:-1])),
            "long": error_of(lambda: lindley(arrivals, [*services, 1])),
            "back": error_of(lambda: lindley(back, services)),
            "kept": kept == (arrivals, services),
        }

    def verify(inputs, got):
        refused(got["short"], "a list with one service less than arrivals")
        refused(got["long"], "a list with one service more than arrivals")
        refused(got["back"], "an arrival before the one that came before it")
        explain(got["kept"], True, "the lists of arrivals and services were changed")


@case(task=2, params=[{"rho": rho} for rho in (0.0, 0.05, 0.5, 0.9, 0.99)])
class ClosedFormsAreThoseOfTheory:
    """M/D/1, M/G/1, two stages and a speed-up have the values of their formulas, from no load at all to nearly full."""

    def inputs(rng, rho):
        service = float(rng.uniform(0.002, 3.0))
        spread = rng.choice([1.0, 9.0], 50) * rng.uniform(0.1, 1, 50)
        services = (spread / spread.mean() * service).tolist()
        return {"rate": rho / service, "service": service, "services": services, "k": float(rng.uniform(1.1, 4))}

    def observe(solution, inputs):
        queueing, rate, service = solution.module("cluster.queueing"), inputs["rate"], inputs["service"]
        second = sum(time * time for time in inputs["services"]) / len(inputs["services"])
        return {
            "M/D/1": queueing.md1_time(rate, service),
            "M/G/1": queueing.mg1_wait(rate, service, second),
            "two stages": queueing.pipeline_time(rate, service),
            "speed-up": queueing.speedup_time(rate, service, inputs["k"]),
        }

    def verify(inputs, got):
        r, d, k = (Fraction(inputs[name]) for name in ("rate", "service", "k"))
        squares = sum(Fraction(time) ** 2 for time in inputs["services"]) / len(inputs["services"])
        wait = r * d * d / (2 * (1 - r * d))
        general = r * squares / (2 * (1 - r * d))
        near(got["M/G/1"], general, "mean wait in M/G/1", {
            "the square of the mean was taken for the mean of the squares": wait,
            "the service was counted as wait": d + general,
            "the 2 is missing": 2 * general,
        })  # fmt: skip
        near(got["M/D/1"], d + wait, "mean time in M/D/1", {
            "the service itself is left out": wait,
            "this is M/M/1: twice the wait": d + 2 * wait,
            "nobody waits": d,
        })  # fmt: skip
        near(got["two stages"], d + r * d * d / (4 * (2 - r * d)), "mean time in two stages", {
            "a wait was counted in both stages": d + r * d * d / (2 * (2 - r * d)),
            "the second stage is left out": d / 2 + r * d * d / (4 * (2 - r * d)),
            "one stage with all of the service": d + wait,
        })  # fmt: skip
        near(got["speed-up"], d / k + r * d * d / (2 * k * (k - r * d)), "mean time with a speed-up", {
            "the wait was divided, and not the service that causes it": (d + wait) / k,
            "the service only was divided": d / k + wait,
        })  # fmt: skip


def waiting_share(offered: Fraction, servers: int) -> Fraction:
    """Probability that all servers are busy, from the balance of births and deaths, summed up exactly."""
    weight, total = Fraction(1), Fraction(0)
    for n in range(servers):
        total += weight
        weight = weight * offered / (n + 1)
    full = weight / (1 - offered / servers)
    return full / (total + full)


@case(task=2, params=[{"servers": servers} for servers in (1, 2, 3, 8, 40, 1000)])
class ErlangCIsTheBalanceOfStates:
    """The share of jobs that wait, and how long, follow from the balance of births and deaths, for many servers too."""

    def inputs(rng, servers):
        return {"servers": servers, "service": float(rng.uniform(0.01, 5)), "rho": float(rng.uniform(0.3, 0.97))}

    def observe(solution, inputs):
        queueing, servers = solution.module("cluster.queueing"), inputs["servers"]
        offered = inputs["rho"] * servers
        wait = queueing.mmc_wait(offered / inputs["service"], inputs["service"], servers)
        return [queueing.erlang_c(offered, servers), wait, queueing.erlang_c(0.0, servers)]

    def verify(inputs, got):
        servers, service = inputs["servers"], Fraction(inputs["service"])
        offered = Fraction(inputs["rho"] * servers)
        share = waiting_share(offered, servers)
        blocked = share * (1 - offered / servers) / (1 - offered / servers * share)
        near(got[0], share, f"Erlang C of {float(offered):.3f} on {servers} servers", {
            "this is Erlang B: jobs that find no server are lost": blocked,
            "this is the utilisation": offered / servers,
        }, tol=1e-8)  # fmt: skip
        wait = share * service / (servers - offered)
        near(got[1], wait, f"mean wait with {servers} servers", {
            "the service was counted as wait": wait + service,
            "the mean of those that wait, not of all": service / (servers - offered),
            "one server as fast as all of them": offered / servers * service / (servers - offered),
        }, tol=1e-8)  # fmt: skip
        explain(float(got[2]), 0.0, f"Erlang C of no load at all is {got[2]}: nobody waits")


@case(task=2)
class QueuesWithoutEndAreRefused:
    """Where work comes as fast as it can be done, or faster, a queue has no mean: that is a ValueError that tells the
    utilisation."""

    def inputs(rng):
        return {"service": 0.25, "over": float(rng.uniform(1.01, 3))}

    def observe(solution, inputs):
        q, s = solution.module("cluster.queueing"), inputs["service"]
        full, over = 1 / s, inputs["over"] / s
        calls = {
            "md1_time at load 1": lambda: q.md1_time(full, s),
            "mg1_wait at load 1": lambda: q.mg1_wait(full, s, 1.0),
            "pipeline_time at load 2": lambda: q.pipeline_time(2 * full, s),
            "speedup_time at load 1": lambda: q.speedup_time(2 * full, s, 2.0),
            "erlang_c at load 1": lambda: q.erlang_c(3.0, 3),
            "mmc_wait at load 1": lambda: q.mmc_wait(4 * full, s, 4),
        }
        calls |= {"mmc_wait over load 1": lambda: q.mmc_wait(over, s, 1), "md1_time over": lambda: q.md1_time(over, s)}
        fine = [q.pipeline_time(1.5 * full, s) > 0, q.speedup_time(1.5 * full, s, 2.0) > 0]
        return {"refused": {what: error_of(call) for what, call in calls.items()}, "fine": fine}

    def verify(inputs, got):
        for what, error in got["refused"].items():
            refused(error, what, "utilisation")
        explain(got["fine"], [True, True], "a stage, or a faster machine, has less load than the whole")


@case(task=2)
class ClosedLoopsHaveABound:
    """N clients that think between requests get no more than N per turn, and no more than the bottleneck gives."""

    def inputs(rng):
        clients, parts = rng.integers(1, 60, 20), rng.uniform(0.1, 2, (20, 2))
        bottlenecks = parts.sum(1) / clients * rng.uniform(0.2, 2, 20)
        rows = zip(clients.tolist(), parts.tolist(), bottlenecks.tolist(), strict=True)
        return [[n, *times, bottleneck] for n, times, bottleneck in rows]

    def observe(solution, inputs):
        return [solution.module("cluster.queueing").closed_loop_bound(*one) for one in inputs]

    def verify(inputs, got):
        for (clients, response, think, bottleneck), bound in zip(inputs, got, strict=True):
            turn, server = clients / (response + think), 1 / bottleneck
            near(bound, min(turn, server), f"bound of {clients} clients", {
                "the larger of the two bounds": max(turn, server),
                "thinking was left out": min(clients / response, server),
            })  # fmt: skip


def interval(samples: list[float], want: float, what: str) -> None:
    """The mean of 10 seeds' means is as theory says, within 99.9 %."""
    mean, half = np.mean(samples), STUDENT_999 * np.std(samples, ddof=1) / sqrt(len(samples))
    if abs(mean - want) > half:
        raise AssertionError(f"{what}: {mean:.6g} +- {half:.2g} by simulation, {want:.6g} by theory")


@case(task=2, timeout=20.0)
class TheoryMeetsTheRecursion:
    """Over 10 fixed seeds the mean times of random queues are those of theory, within 99.9 %: M/D/1, M/G/1, M/M/1,
    M/M/3, and two stages, the second of which never queues."""

    def inputs(rng):
        return {"rate": 0.7e-6, "service": 1_000_000, "n": 2500}

    def observe(solution, inputs):
        lindley, n, service = solution.module("cluster.queueing").lindley, inputs["n"], inputs["service"]
        means, second = {}, []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            arrivals = np.cumsum(rng.exponential(1 / inputs["rate"], n)).astype(np.int64)
            fast = (arrivals // 3).tolist()
            arrivals = arrivals.tolist()
            exponential = rng.exponential(service, n).astype(np.int64).tolist()
            queues = {
                "M/D/1": (arrivals, [service] * n, 1),
                "M/G/1": (arrivals, rng.integers(0, 2 * service, n).tolist(), 1),
                "M/M/1": (arrivals, exponential, 1),
                "M/M/3": (fast, exponential, 3),
            }
            for name, (begin, services, servers) in queues.items():
                means.setdefault(name, []).append(mean_gap(begin, lindley(begin, services, servers)))
            first = lindley(arrivals, [service // 2] * n)
            last = lindley(first, [service // 2] * n)
            means.setdefault("two stages", []).append(mean_gap(arrivals, last))
            second.append([int(max(b - a for a, b in zip(first, last, strict=True)))])
        return {"means": means, "second": second}

    def verify(inputs, got):
        r, d = inputs["rate"], float(inputs["service"])
        rho = r * d
        want = {
            "M/D/1": d + r * d * d / (2 * (1 - rho)),
            "M/G/1": d + r * (4 / 3 * d * d) / (2 * (1 - rho)),
            "M/M/1": d / (1 - rho),
            "M/M/3": d + float(waiting_share(Fraction(3 * rho), 3)) * d / (3 - 3 * rho),
            "two stages": d + r * d * d / (4 * (2 - rho)),
        }
        for name, samples in got["means"].items():
            interval(samples, want[name], f"mean time in {name}")
        half = inputs["service"] // 2
        explain(got["second"], [[half]] * 10, "somebody waits before the second stage of equal length")


def mean_gap(begin: list[int], end: list[int]) -> float:
    return float(np.mean([e - b for b, e in zip(begin, end, strict=True)]))


# Task 3


def shape_of(cost, numbers: dict) -> object:
    return cost.StepShape(**numbers)


def mixed_shapes(rng: np.random.Generator, n: int) -> list[dict]:
    """Shapes of prompts, of decodes, and of both. Chunks come after some positions of their prompt."""
    shapes = []
    for kind in rng.integers(1, 4, n).tolist():
        shape = dict.fromkeys(("prefill_tokens", "prefill_context", "n_decode", "decode_context", "n_sequences"), 0)
        if kind & 1:
            chunks = [rng.integers([1, 0], [1000, 2000]).tolist() for _ in range(int(rng.integers(1, 4)))]
            context = sum(tokens * before + tokens * (tokens + 1) // 2 for tokens, before in chunks)
            shape |= {"prefill_tokens": sum(tokens for tokens, _ in chunks), "prefill_context": context}
            shape["n_sequences"] = len(chunks)
        if kind & 2:
            decodes = int(rng.integers(1, 200))
            context = decodes * int(rng.integers(1, 4000)) + int(rng.integers(decodes))
            shape |= {"n_decode": decodes, "decode_context": context}
            shape["n_sequences"] += decodes
        shapes.append(shape)
    return shapes


@case(task=3)
class ShapesCountWhatIsAttendedTo:
    """A prompt's tokens attend to those before them and to themselves, position by position; a decode attends to all
    its positions. What is computed again after preemption counts as a prompt."""

    def inputs(rng):
        batches = []
        for _ in range(25):
            steps = []
            for _ in range(int(rng.integers(1, 7))):
                prompt, start = int(rng.integers(1, 60)), 0
                kind = rng.choice(["prompt", "chunk", "decode", "again", "again, the last token"])
                if kind == "prompt":
                    end, samples = prompt, True
                elif kind == "chunk":
                    start = int(rng.integers(prompt))
                    end = int(rng.integers(start + 1, prompt + 1))
                    samples = end == prompt
                elif kind == "decode":
                    start = prompt + int(rng.integers(50))
                    end, samples = start + 1, True
                elif kind == "again":
                    start, end, samples = 0, prompt + int(rng.integers(1, 30)), True
                else:
                    start = prompt + int(rng.integers(30))
                    end, samples = start + 1, False
                steps.append([prompt, start, end, bool(samples)])
            batches.append(steps)
        return batches

    def observe(solution, inputs):
        names, step = solution.module("cluster.trace_request"), solution.module("serving.request").Step
        request = lambda uid, prompt: names.TraceRequest(uid, prompt, 500)  # noqa: E731
        batches = [[step(request(i, p), *rest) for i, (p, *rest) in enumerate(batch)] for batch in inputs]
        return [list(solution.module("cluster.cost").shape_of(batch)) for batch in batches]

    def verify(inputs, got):
        for steps, shape in zip(inputs, got, strict=True):
            want, own, squares, starts, again = ([0] * 4 for _ in range(5))
            for prompt, start, end, samples in steps:
                decode = samples and end - start == 1 and start >= prompt
                pairs = sum(range(start + 1, end + 1))
                counts = [0, 0, 1, end] if decode else [end - start, pairs, 0, 0]
                want = [a + b for a, b in zip(want, counts, strict=True)]
                own = [a + b for a, b in zip(own, [0, 0, 1, start] if decode else
                       [end - start, pairs - (end - start), 0, 0], strict=True)]  # fmt: skip
                squares = [a + b for a, b in zip(squares, [0, 0, 1, end] if decode else
                           [end - start, end * (end - start), 0, 0], strict=True)]  # fmt: skip
                late = end - start == 1 and start >= prompt
                again = [a + b for a, b in zip(again, [0, 0, 1, end] if late else
                         [end - start, pairs, 0, 0], strict=True)]  # fmt: skip
                first = samples and end - start == 1
                starts = [a + b for a, b in zip(starts, [0, 0, 1, end] if first else
                          [end - start, pairs, 0, 0], strict=True)]  # fmt: skip
            text = f"shape of steps [prompt, start, end, samples] {steps} is {shape}, expected {[*want, len(steps)]}"
            explain([int(n) for n in shape], [*want, len(steps)], text, {
                "a token's own position was left out": [*own, len(steps)],
                "the position of a decode's own token was left out": [*want[:3], want[3] - want[2], len(steps)],
                "tokens were taken to attend to those behind them, too": [*squares, len(steps)],
                "a token that is computed again was taken for a decode": [*again, len(steps)],
                "the end of a prompt was taken for a decode": [*starts, len(steps)],
                "requests that choose no token were not counted": [
                    *want, sum(samples for *_, samples in steps)],
            })  # fmt: skip


@case(task=3)
class LinearIsDistServesForm:
    """The linear model has the published terms of OPT-13B on an A100: a constant for either kind that is there, linear
    terms, squares of whole prompts, and other numbers from 95 decodes on."""

    def inputs(rng):
        prompts = [rng.integers(1, 900, int(n)).tolist() for n in rng.integers(0, 5, 12)]
        decodes = [rng.integers(1, 2000, n).tolist() for n in (0, 1, 94, 95, 96, 200, 7, 0, 30, 94, 95, 3)]
        return {"prompts": [*prompts, [], [40]], "decodes": [*decodes, [900] * 95, []]}

    def observe(solution, inputs):
        cost, times = solution.module("cluster.cost"), []
        for prompts, decodes in zip(inputs["prompts"], inputs["decodes"], strict=True):
            pairs = sum(n * (n + 1) // 2 for n in prompts)
            shape = cost.StepShape(sum(prompts), pairs, len(decodes), sum(decodes), len(prompts) + len(decodes))
            times.append(float(cost.OPT_13B_A100.time(shape)))
        return times

    def verify(inputs, got):
        for prompts, decodes, time in zip(inputs["prompts"], inputs["decodes"], got, strict=True):
            a, b, c = (19.93, 6.27e-4, 0.0385) if len(decodes) < 95 else (7.17, 5.80e-4, 0.158)
            decode = a + b * sum(decodes) + c * len(decodes)
            linear, squares = 18.10 + 0.10191 * sum(prompts), 7.12e-6 * sum(n * n for n in prompts)
            pairs = 7.12e-6 * sum(n * (n + 1) / 2 for n in prompts)
            parts = (linear + squares if prompts else 0) + (decode if decodes else 0)
            what = f"ns of prompts {prompts} and {len(decodes)} decodes over {sum(decodes)} positions"
            large = 7.17 + 5.80e-4 * sum(decodes) + 0.158 * len(decodes)
            near(time, 1e6 * parts, what, {
                "this is in milliseconds": parts,
                "pairs were taken for squares": 1e6 * (linear + pairs + (decode if decodes else 0)),
                "a constant was charged for what is not there": 1e6 * (linear + squares + decode),
                "95 decodes were taken for few": 1e6 * ((linear + squares if prompts else 0) + 19.93
                    + 6.27e-4 * sum(decodes) + 0.0385 * len(decodes)),
                "94 decodes were taken for many": 1e6 * ((linear + squares if prompts else 0) + large),
            })  # fmt: skip


@case(task=3)
class MockerHasItsPublishedTimes:
    """The polynomials of Dynamo's mocker: prompts by their new tokens, decodes by the share of memory that they use."""

    def inputs(rng):
        return {"capacity": int(rng.integers(2000, 10**6)) * 4, "tokens": int(rng.integers(1, 9000))}

    def observe(solution, inputs):
        cost, capacity = solution.module("cluster.cost"), inputs["capacity"]
        time = lambda *shape: float(cost.Mocker(capacity).time(cost.StepShape(*shape)))  # noqa: E731
        prompts = [time(n, 10**6, 0, 0, 1) for n in (128, 1024, 2048, 8192, 32768, inputs["tokens"])]
        uses = [time(0, 0, 1, context, 1) for context in uses_of(capacity)]
        return {"prompts": prompts, "uses": uses, "both": time(2048, 10**6, 4, capacity // 4, 5)}

    def verify(inputs, got):
        for tokens, time, want in zip((128, 1024, 2048, 8192, 32768), got["prompts"], PREFILL, strict=False):
            near(time / 1e6, want, f"ms of {tokens} tokens of prompts", {"this is in milliseconds": want / 1e6}, 0.002)
        n = inputs["tokens"]
        near(got["prompts"][-1], 1e6 * (4.209989e-7 * n * n + 1.518344e-2 * n + 16.50142), f"ns of {n} prompt tokens")
        for use, time, want in zip((0, 0.25, 0.5, 0.75, 1, 3), got["uses"], DECODE, strict=True):
            over = max(1.0, -25.74 * use * use + 54.01 * use + 5.74)
            text = f"ms of decodes that use {use:g} of the memory"
            near(time / 1e6, want, text, {"the share of the memory was not limited to 1": over}, 0.001)
        near(got["both"] / 1e6, 49.36 + 17.63, "ms of 2,048 prompt tokens and decodes with a quarter", {
            "the larger of the two, not both": 49.36,
        }, 0.001)  # fmt: skip


PREFILL, DECODE = (18.45, 32.49, 49.36, 169.14, 966.1), (5.74, 17.63, 26.31, 31.77, 34.01, 34.01)


def uses_of(capacity: int) -> list[int]:
    return [0, capacity // 4, capacity // 2, capacity * 3 // 4, capacity, 3 * capacity]


DENSE = {"layers": 3, "hidden": 512, "intermediate": 1024, "heads": 8, "kv_heads": 2, "head_dim": 48, "vocab": 3000}
SPARSE = DENSE | {"intermediate": 256, "experts": 16, "active": 3, "itemsize": 1}


def roofline_of(solution, model: dict, cards: int, machine: dict, **options):
    module = solution.module("cluster.roofline")
    return module.Roofline(module.Machine(**machine), module.ModelShape(**model), cards, **options)


def counted(model: dict, shape: dict) -> dict[str, float]:
    """Operations and bytes of a step, matrix by matrix and position by position; the parts by name."""
    m = {"experts": 1, "active": 1, "itemsize": 2} | model
    tokens, decodes = shape["prefill_tokens"] + shape["n_decode"], shape["n_decode"]
    q, kv = m["heads"] * m["head_dim"], m["kv_heads"] * m["head_dim"]
    projections = m["layers"] * (m["hidden"] * q + 2 * m["hidden"] * kv + q * m["hidden"])
    expert, head = m["layers"] * 3 * m["hidden"] * m["intermediate"], m["vocab"] * m["hidden"]
    pairs = shape["prefill_context"] + shape["decode_context"]
    read = m["experts"] * (1 - (1 - m["active"] / m["experts"]) ** tokens)
    keys = shape["prefill_context"] / shape["prefill_tokens"] + shape["prefill_tokens"] / 2 if tokens > decodes else 0
    token = 2 * m["layers"] * kv * m["itemsize"]
    return {
        "body": 2 * tokens * (projections + m["active"] * expert),
        "head": 2 * shape["n_sequences"] * head,
        "attention": m["layers"] * pairs * 2 * 2 * q,
        "weights": m["itemsize"] * (projections + head + read * expert),
        "all experts": m["itemsize"] * (projections + head + m["experts"] * expert),
        "read": token * (shape["decode_context"] + keys),
        "written": token * tokens,
        "message": tokens * m["hidden"] * m["itemsize"],
    }


@case(task=3, params=[{"model": DENSE}, {"model": SPARSE}])
class RooflineCountsWorkAndBytes:
    """Operations: two for each weight that a token meets, the head's once for each request, and attention. Bytes: the
    weights once, keys and values of all contexts, and those of the new tokens."""

    def inputs(rng, model):
        return {"model": model, "shapes": mixed_shapes(rng, 30)}

    def observe(solution, inputs):
        cost, machine = solution.module("cluster.cost"), {"flops": 1e12, "bandwidth": 1e11}
        roofline = roofline_of(solution, inputs["model"], 1, machine)
        shapes = [shape_of(cost, shape) for shape in inputs["shapes"]]
        return [[float(roofline.work(shape)), float(roofline.traffic(shape))] for shape in shapes]

    def verify(inputs, got):
        for shape, (work, traffic) in zip(inputs["shapes"], got, strict=True):
            n = counted(inputs["model"], shape)
            tokens = shape["prefill_tokens"] + shape["n_decode"]
            near(work, n["body"] + n["head"] + n["attention"], f"operations of {shape}", {
                "a multiplication and an addition were counted as one": (n["body"] + n["head"] + n["attention"]) / 2,
                "the head was counted for each token, not for each request":
                    n["body"] + n["head"] / max(shape["n_sequences"], 1) * tokens + n["attention"],
                "attention was counted once, not for scores and for sums":
                    n["body"] + n["head"] + n["attention"] / 2,
                "the head is left out": n["body"] + n["attention"],
                "attention is left out": n["body"] + n["head"],
            })  # fmt: skip
            near(traffic, n["weights"] + n["read"] + n["written"], f"bytes of {shape}", {
                "what the new tokens write is left out": n["weights"] + n["read"],
                "keys and values are left out": n["weights"],
                "the weights were read again for each token": n["weights"] * tokens + n["read"] + n["written"],
                "experts that no token goes to were read": n["all experts"] + n["read"] + n["written"],
                "a chunk's keys were read again for each of its tokens": n["weights"] + n["written"]
                    + n["written"] / max(tokens, 1) * (shape["prefill_context"] + shape["decode_context"]),
            })  # fmt: skip


@case(task=3, params=[{"cards": 1}, {"cards": 2}, {"cards": 8}])
class RooflineTakesTheSlowerOfTwo:
    """A step takes as long as the slower of arithmetic and memory at their efficiencies, both shared by the cards, and
    an overhead, and two all-reduces in each layer."""

    def inputs(rng, cards):
        machine = {"flops": float(rng.uniform(1e12, 1e14)), "bandwidth": float(rng.uniform(1e11, 2e12)), "link": 3e10}
        options = {"compute": float(rng.uniform(0.3, 1)), "memory": float(rng.uniform(0.3, 1)), "overhead": 2e-4}
        return {"cards": cards, "machine": machine, "options": options | {"latency": 7e-6},
                "shapes": mixed_shapes(rng, 30)}  # fmt: skip

    def observe(solution, inputs):
        cost = solution.module("cluster.cost")
        roofline = roofline_of(solution, DENSE, inputs["cards"], inputs["machine"], **inputs["options"])
        shapes = [shape_of(cost, shape) for shape in inputs["shapes"]]
        alone = roofline_of(solution, DENSE, inputs["cards"], inputs["machine"] | {"link": 0.0}, **inputs["options"])
        return {"unlinked": float(alone.communication(shapes[0])), "steps": [
            [float(roofline.time(shape)), float(roofline.communication(shape))] for shape in shapes]}  # fmt: skip

    def verify(inputs, got):
        cards, machine, options = inputs["cards"], inputs["machine"], inputs["options"]
        for shape, (time, talk) in zip(inputs["shapes"], got["steps"], strict=True):
            n = counted(DENSE, shape)
            work = (n["body"] + n["head"] + n["attention"]) / machine["flops"] / options["compute"] / cards
            bytes_ = (n["weights"] + n["read"] + n["written"]) / machine["bandwidth"] / options["memory"] / cards
            once = 2 * (cards - 1) * (options["latency"] + n["message"] / cards / machine["link"])
            reduces = 2 * DENSE["layers"] * once
            near(talk, reduces, f"seconds of messages among {cards} cards for {shape}", {
                "one all-reduce in each layer": reduces / 2,
                "two all-reduces in all": 2 * once,
            })  # fmt: skip
            fixed = options["overhead"] + reduces
            near(time, 1e9 * (max(work, bytes_) + fixed), f"ns of {shape} on {cards} cards", {
                "arithmetic and memory traffic were added: they go on at once": 1e9 * (work + bytes_ + fixed),
                "this is in seconds": max(work, bytes_) + fixed,
                "the overhead is left out": 1e9 * (max(work, bytes_) + reduces),
                "the messages are left out": 1e9 * (max(work, bytes_) + options["overhead"]),
                "the smaller of the two": 1e9 * (min(work, bytes_) + fixed),
            })  # fmt: skip
        message = counted(DENSE, inputs["shapes"][0])["message"]
        slow = lambda link: 4 * DENSE["layers"] * (cards - 1) * (options["latency"] + message / cards / link)  # noqa: E731
        near(got["unlinked"], slow(1e9), f"seconds of messages among {cards} cards of a machine whose `link` is 0", {
            "without a link the memory's bandwidth was taken, not 1e9": slow(machine["bandwidth"]),
        })  # fmt: skip


@case(task=3)
class SmallModelsNeedTheOverhead:
    """A decode step of Qwen3-0.6B on an H200 is 0.27 ms by its roofline alone, and 1.55 ms in truth."""

    def inputs(rng):
        return int(rng.integers(400, 600))

    def observe(solution, inputs):
        r, cost = solution.module("cluster.roofline"), solution.module("cluster.cost")
        shape = cost.StepShape(0, 0, 1, inputs, 1)
        pure = r.Roofline(r.MACHINES["H200"], r.QWEN3["0.6B"], compute=1, memory=1, overhead=0)
        return [float(pure.time(shape)) / 1e6, float(r.Roofline(r.MACHINES["H200"], r.QWEN3["0.6B"]).time(shape)) / 1e6]

    def verify(inputs, got):
        near(got[0], 0.27, "ms of one decode by the roofline alone", tol=0.1)
        near(got[1], 1.55, "ms of one decode with efficiencies and an overhead", tol=0.06)


@case(task=3)
class RingsMoveTwiceTheirPart:
    """A ring all-reduce takes 2 (p - 1) messages of a p-th each, and nothing at all on one card."""

    def inputs(rng):
        return [[float(rng.integers(1, 10**9)), cards, *rng.uniform([1e-6, 1e9], [1e-4, 1e12]).tolist()]
                for cards in (1, 2, 3, 4, 8, 64)]  # fmt: skip

    def observe(solution, inputs):
        return [solution.module("cluster.roofline").all_reduce(*one) for one in inputs]

    def verify(inputs, got):
        for (size, cards, latency, bandwidth), seconds in zip(inputs, got, strict=True):
            want = sum(latency + size / cards / bandwidth for _ in range(2 * (cards - 1)))
            near(seconds, want, f"all-reduce among {cards} cards", {
                "each message held everything, not a part": 2 * (cards - 1) * (latency + size / bandwidth),
                "half of it: a reduce-scatter without the all-gather": want / 2,
                "one latency for all messages": latency + 2 * (cards - 1) / cards * size / bandwidth,
            })  # fmt: skip


def models(solution) -> dict[str, object]:
    """One of each step-time model."""
    cost, table = solution.module("cluster.cost"), solution.module("cluster.table")
    machine = {"flops": 3e13, "bandwidth": 2e11, "link": 3e10}
    entries = {(0, 0, n, c): 3.0 + n * c / 7 for n in (1, 4, 16) for c in (16, 64, 512)}
    lines = table.Line([(1, 10), (8, 12), (64, 40)]), table.Line([(1, 5), (16, 8)])
    return {
        "linear": cost.OPT_13B_A100,
        "thirds": cost.Linear((1, 0, 0), (1 / 3, 0, 0)),
        "mocker": cost.Mocker(30_000),
        "roofline": roofline_of(solution, DENSE, 1, machine),
        "experts on two cards": roofline_of(solution, SPARSE, 2, machine),
        "table": table.Table(*lines, table.Attention(entries), 2, 100.0),
    }


@case(task=3, params=[{"name": name} for name in ("linear", "thirds", "mocker", "roofline", "table")]
      + [{"name": "experts on two cards"}])  # fmt: skip
class ManyStepsCostWhatEachCosts:
    """The times of many decode steps at once, from an array of contexts, are those of each one to the nanosecond."""

    def inputs(rng, name):
        runs = []
        for _ in range(12):
            decodes = int(rng.integers(1, 130))
            runs.append([decodes, decodes * int(rng.integers(1, 700)), int(rng.integers(1, 150))])
        return {"name": name, "runs": runs}

    def observe(solution, inputs):
        shape, model = solution.module("cluster.cost").StepShape, models(solution)[inputs["name"]]
        many = [model.step_times(shape(0, 0, n, context, n), steps) for n, context, steps in inputs["runs"]]
        each = [[model.step_time(shape(0, 0, n, context + i * n, n)) for i in range(steps)]
                for n, context, steps in inputs["runs"]]  # fmt: skip
        return {"many": many, "each": each}

    def verify(inputs, got):
        for many, each in zip(got["many"], got["each"], strict=True):
            explain(many.tolist(), each, f"steps at once and one by one: {first_difference(many.tolist(), each)}")


@case(task=3)
class BlendsLieOnStraightLines:
    """Between two keys their weights are linear and give 1; before the first key there is that one; beyond the last
    key the line of the last two goes on."""

    def inputs(rng):
        runs = []
        for n in (1, 2, 2, 5, 9):
            keys = np.sort(rng.choice(200, n, replace=False)).tolist()
            xs = [*keys, *rng.uniform(-20, 300, 12).tolist(), keys[-1] + 50.0, keys[0] - 1.0]
            runs.append({"keys": keys, "xs": xs, "values": rng.normal(size=n).tolist()})
        return runs

    def observe(solution, inputs):
        blend = solution.module("cluster.table").blend
        return [[[[int(k), float(w)] for k, w in blend(run["keys"], x)] for x in run["xs"]] for run in inputs]

    def verify(inputs, got):
        for run, blends in zip(inputs, got, strict=True):
            keys, values = run["keys"], dict(zip(run["keys"], run["values"], strict=True))
            for x, parts in zip(run["xs"], blends, strict=True):
                if not {key for key, _ in parts} <= set(keys) or not 1 <= len(parts) <= 2:
                    raise AssertionError(f"blend({keys}, {x:.4g}) is {parts}: expected one or two of the keys")
                near(sum(w for _, w in parts), 1.0, f"sum of the weights of blend({keys}, {x:.4g})")
                far = x > keys[-1] and len(keys) > 1
                slope = (values[keys[-1]] - values[keys[-2]]) / (keys[-1] - keys[-2]) if far else 0.0
                held = float(np.interp(x, keys, run["values"]))
                log = held
                if keys[0] < x < keys[-1] and keys[0] > 0:
                    log = float(np.interp(np.log(x), np.log(keys), run["values"]))
                value = sum(w * values[key] for key, w in parts)
                want = held + slope * (x - keys[-1]) if far else held
                if abs(value - want) > 1e-9:
                    exchanged = [(key, 1 - w) for key, w in parts]
                    likely = {
                        "the value was held beyond the last key": far and abs(value - held) < 1e-9,
                        "the weights were exchanged": abs(sum(w * values[k] for k, w in exchanged) - want) < 1e-9,
                        "straight in the logarithm of x": abs(value - log) < 1e-9,
                    }
                    found = named(text for text, is_so in likely.items() if is_so)
                    raise AssertionError(
                        f"blend({keys}, {x:.4g}) is {parts}: with values {run['values']} this is {value:.6g}, "
                        f"expected {want:.6g}\n{found}".strip()
                    )


@case(task=3)
class TablesAddTheirKernels:
    """A step by a table: kernels by tokens and by sequences, attention in each layer at the chunk, the positions before
    it, the decodes and their mean context, and an overhead. Where all of these are linear, the time is exact."""

    def inputs(rng):
        numbers = rng.uniform(0.1, 5, 9).tolist()
        return {"numbers": numbers, "layers": int(rng.integers(2, 9)), "overhead": float(rng.uniform(50, 900)),
                "shapes": mixed_shapes(rng, 40)}  # fmt: skip

    def observe(solution, inputs):
        table, cost, p = solution.module("cluster.table"), solution.module("cluster.cost"), inputs["numbers"]
        entries = {}
        for chunk in (0, 1, 4000):
            for before in (0, 48, 3000) if chunk else (0,):
                entries |= {(chunk, before, 0, 0): p[4] + p[5] * chunk + p[6] * before}
                entries |= {(chunk, before, n, c): p[4] + p[5] * chunk + p[6] * before + p[7] * n + p[8] * n * c
                            for n in (1, 16, 300) for c in (1, 5000)}  # fmt: skip
        lines = [table.Line([(x, a + b * x) for x in (0, 10, 5000)]) for a, b in (p[:2], p[2:4])]
        model = table.Table(*lines, table.Attention(entries), inputs["layers"], inputs["overhead"])
        return [float(model.time(shape_of(cost, shape))) for shape in inputs["shapes"]]

    def verify(inputs, got):
        p, layers, overhead = inputs["numbers"], inputs["layers"], inputs["overhead"]
        for shape, time in zip(inputs["shapes"], got, strict=True):
            tokens, context, n, positions, sequences = shape.values()
            before = max(context / tokens - (tokens + 1) / 2, 0) if tokens else 0
            whole = max(context // tokens - (tokens + 1) // 2, 0) if tokens else 0
            dense, sequence = p[0] + p[1] * (tokens + n), p[2] + p[3] * sequences
            fixed = p[4] + p[5] * tokens + p[7] * n
            attention = lambda before=before, at=positions, fixed=fixed: fixed + p[6] * before + p[8] * at  # noqa: E731
            rest = dense + sequence + overhead
            near(time, 1e3 * (rest + layers * attention()), f"ns of {shape}", {
                "this is in microseconds": rest + layers * attention(),
                "attention was counted for one layer": 1e3 * (rest + attention()),
                "kernels that are those of all layers were multiplied": 1e3 * (overhead
                    + layers * (dense + sequence + attention())),
                "the overhead is left out": 1e3 * (rest - overhead + layers * attention()),
                "positions of the chunk itself were taken for those before it": 1e3 * (rest + layers
                    * attention(before=context / tokens if tokens else 0)),
                "the positions before a chunk were rounded: of several chunks they are a mean": 1e3 * (rest
                    + layers * attention(before=whole)),
                "the context of all decodes was taken for that of each": 1e3 * (rest
                    + layers * attention(at=positions * n)),
                "decodes were not counted among the tokens": 1e3 * (rest - p[1] * n + layers * attention()),
            }, 1e-8)  # fmt: skip


# Task 4


LOOK = "[time, waiting, pages, rows, [uid, cached_len, device_len, ids, held]]"


def agree(got: dict, want: dict, what: str) -> None:
    """Raise AssertionError unless a replica reported what the loop by hand gave."""
    ended, aborted = ([end for end in want["ends"] if (end[2] == "abort") == gone] for gone in (False, True))
    late = {uid: times[:-1] if uid in {end[1] for end in ended} else times for uid, times in want["tokens"].items()}
    late = {uid: times for uid, times in late.items() if times}
    parts = {
        "runs": ("[start, end, uids] of steps", {}),
        "tokens": ("times of tokens", {
            "the sink was told of a step after its results were taken": late,
        }),
        "ends": ("[time, uid, reason] of ends", {
            "only aborts were reported": aborted,
        }),
        "looks": (f"{LOOK} where somebody looked", {}),
        "left": ("[requests, pages, rows] that are left", {}),
        "hits": ("[asked, hit] tokens", {}),
    }  # fmt: skip
    for name, (meaning, mistakes) in parts.items():
        lists = [sorted(some.items()) if isinstance(some, dict) else some for some in (got[name], want[name])]
        explain(got[name], want[name], f"{what}, {meaning}, {first_difference(*lists)}", mistakes)
    for name in ("busy", "steps"):
        explain(got[name], want[name], f"{what}, {name}: expected {want[name]}, got {got[name]}")


ENGINES = [("whole", "rows"), ("chunked", "prefix"), ("mixed", "rows"), ("mixed", "prefix"), ("mixed", "trace")]


@case(task=4, params=[{"scheduler": s, "memory": m} for s, m in ENGINES], timeout=20.0)
class StepsAreThoseOfTheLoop:
    """Step by step, a replica runs the batches of its scheduler at the times that their costs give, whoever comes or is
    aborted meanwhile: as a plain loop does."""

    def inputs(rng, scheduler, memory):
        return [script(rng, 16, scheduler=scheduler, memory=memory) for _ in range(4)]

    def observe(solution, inputs):
        return [[on_a_replica(solution, one, 1), by_hand(solution, one)] for one in inputs]

    def verify(inputs, got):
        for one, (replica, hand) in zip(inputs, got, strict=True):
            agree(replica, hand, f"{one['scheduler']} scheduler, {one['memory']}")


def stations(solution, many: int, rows: int = 1, price: tuple[int, ...] = (0, 1000, 0, 0, 0, 0)):
    """A simulation, and replicas with a log each: their requests have one token, and take 1 us per prompt token."""
    kernel, scheduler = solution.module("cluster.kernel"), solution.module("serving.scheduler").Scheduler
    simulation, memory = kernel.Simulation(), solution.module("serving.memory").RowMemory
    logs = [Log() for _ in range(many)]
    one = dict.fromkeys(range(10**4), 1)
    replicas = [
        replica_of(solution, simulation, scheduler(memory(rows, 10**9), 1), one, log, cost=Price(price), max_steps=1)
        for log in logs
    ]
    return simulation, kernel.Phase, replicas, logs


def prompt_of(solution, uid: int, length: int):
    return solution.module("cluster.trace_request").TraceRequest(uid, length, 1)


@case(task=4)
class AReplicaIsLindleysQueue:
    """A replica that takes one prompt at a time is a queue: requests end when Lindley's recursion says, exactly."""

    def inputs(rng):
        runs = []
        for _ in range(3):
            arrivals = np.sort(rng.choice([0, 4_000_000], 150) + rng.integers(0, 2, 150) * rng.integers(0, 10**9, 150))
            runs.append([arrivals.tolist(), rng.integers(1, 9000, 150).tolist()])
        return runs

    def observe(solution, inputs):
        found = []
        for arrivals, lengths in inputs:
            simulation, phase, (replica,), (log,) = stations(solution, 1)
            for uid, (time, length) in enumerate(zip(arrivals, lengths, strict=True)):
                simulation.at(time, phase.ADMISSION, replica.add, prompt_of(solution, uid, length))
            simulation.run()
            found.append([log.tokens, log.ends, replica.busy_time])
        return found

    def verify(inputs, got):
        for (arrivals, lengths), (tokens, ends, busy) in zip(inputs, got, strict=True):
            free, want = 0, {}
            for uid, (arrival, length) in enumerate(zip(arrivals, lengths, strict=True)):
                free = max(free, arrival) + 1000 * length
                want[uid] = [free]
            texts = list(want.items()), list(tokens.items())
            explain(tokens, want, f"(uid, times of tokens): {first_difference(texts[1], texts[0])}")
            want = [[times[0], uid, "stop"] for uid, times in want.items()]
            explain(ends, want, f"[time, uid, reason] of ends: {first_difference(ends, want)}")
            explain(busy, 1000 * sum(lengths), f"busy_time is {busy}, expected {1000 * sum(lengths)}: all the services")


@case(task=4)
class TheSinkHearsOfStepsFirst:
    """At the end of a step the sink hears that it ran, with its requests as they were, then who ended by it; and the
    scheduler has the results by then."""

    def inputs(rng):
        return {"prompts": rng.integers(1, 20, 4).tolist(), "answers": rng.integers(1, 6, 4).tolist()}

    def observe(solution, inputs):
        simulation, phase, (replica,), (log,) = stations(solution, 1, 4, (100, 1, 0, 50, 0, 0))
        heard, memory = [], replica.scheduler.memory
        replica.finish = lambda request: inputs["answers"][request.uid]

        def ran(batch, start, ends):
            heard.append(["ran", int(ends[-1]), [[s.request.uid, s.request.finish_reason] for s in batch.steps]])

        log.ran = ran
        log.after = lambda request, time: heard.append(["ended", time, [[request.uid, memory.free_rows]]])
        names = solution.module("cluster.trace_request")
        for uid, length in enumerate(inputs["prompts"]):
            simulation.at(0, phase.ADMISSION, replica.add, names.TraceRequest(uid, length, 9))
        simulation.run()
        return heard

    def verify(inputs, got):
        alive = [entry for entry in got if entry[0] == "ran" for entry in entry[2] if entry[1] is not None]
        explain(alive, [], f"the sink heard of steps whose requests had ended: {alive[:3]}\n"
                "  likely mistake: the sink was told of a step after its results were taken")  # fmt: skip
        now, want = 0, []
        for uid, length in enumerate(inputs["prompts"]):
            now += 100 + length  # a budget of one token: one prompt each
            if inputs["answers"][uid] == 1:
                want.append([now, uid])
        going = {uid: n - 1 for uid, n in enumerate(inputs["answers"]) if n > 1}
        while going:
            now += 50
            for uid in [uid for uid in going if going[uid] == 1]:
                want.append([now, uid])
            going = {uid: n - 1 for uid, n in going.items() if n > 1}
        ends = [[time, uid] for kind, time, ((uid, *_), *_) in got if kind == "ended"]
        ends, want = sorted(ends), sorted(want)
        explain(ends, want, f"[time, uid] of ends: {first_difference(ends, want)}")
        rows = [row for kind, _, ((_, row), *_) in got if kind == "ended"]
        if 4 not in rows:
            raise AssertionError(f"free rows at each end were {rows}: the last one finds all 4, if results were taken")


@case(task=4)
class WhoComesAtTheEndOfAStepIsInTheNext:
    """Steps end first, and the next batch is chosen last: it holds who comes at that very nanosecond."""

    def inputs(rng):
        return int(rng.integers(10, 1000))

    def observe(solution, inputs):
        simulation, phase, (replica,), (log,) = stations(solution, 1, 4, (inputs, 0, 0, inputs, 0, 0))
        replica.finish = lambda request: 5
        names = solution.module("cluster.trace_request")
        for uid, (time, when) in enumerate([(0, "ADMISSION"), (2 * inputs, "ADMISSION"), (4 * inputs, "SCALING")]):
            simulation.at(time, getattr(phase, when), replica.add, names.TraceRequest(uid, 3, 9))
        simulation.run()
        return [times[0] for times in log.tokens.values()]

    def verify(inputs, got):
        want = [inputs, 3 * inputs, 5 * inputs]
        explain(got, want, f"first tokens came at {got}, expected {want}", {
            "the next batch was chosen before all else of that time had happened": [inputs, 4 * inputs, 6 * inputs],
        })  # fmt: skip


@case(task=4)
class NothingToRunIsNoError:
    """Where all requests are gone again before the batch is chosen, nothing runs, and the next request finds the engine
    idle."""

    def inputs(rng):
        return {"times": np.cumsum(rng.integers(1, 9000, 3)).tolist(), "length": int(rng.integers(1, 50))}

    def observe(solution, inputs):
        simulation, phase, (replica,), (log,) = stations(solution, 1, 4)
        for uid, time in enumerate(inputs["times"]):
            simulation.at(time, phase.ADMISSION, replica.add, prompt_of(solution, uid, inputs["length"]))
            if uid < 2:
                simulation.at(time, phase.ADMISSION, replica.abort, uid)
        return {"error": error_of(simulation.run), "ends": log.ends, "steps": replica.steps}

    def verify(inputs, got):
        if got["error"]["type"]:
            raise AssertionError(f"{got['error']['type']}: {got['error']['message']}: next_batch() may give None")
        last = inputs["times"][2] + 1000 * inputs["length"]
        want = [[time, uid, "abort"] for uid, time in enumerate(inputs["times"][:2])] + [[last, 2, "stop"]]
        explain(got["ends"], want, f"[time, uid, reason] of ends: {first_difference(got['ends'], want)}")
        explain(got["steps"], 1, f"{got['steps']} steps ran, expected 1")


@case(task=4, params=[{"rows": 3}, {"rows": 8}])
class SaturatedDecodeIsASum:
    """N equal requests that are all there at the beginning take exactly the sum of their steps."""

    def inputs(rng, rows):
        lengths = {"answer": int(rng.integers(20, 90)), "prompt": int(rng.integers(1, 9))}
        return lengths | {"rows": rows, "prices": [int(n) for n in rng.integers(1, 999, 6)]}

    def observe(solution, inputs):
        kernel = solution.module("cluster.kernel")
        simulation, memory = kernel.Simulation(), solution.module("serving.memory").RowMemory(inputs["rows"], 500)
        scheduler, log = solution.module("serving.scheduler").Scheduler(memory), Log()
        how = {"cost": Price(inputs["prices"]), "max_steps": 1}
        answers = dict.fromkeys(range(24), inputs["answer"])
        replica = replica_of(solution, simulation, scheduler, answers, log, **how)
        for uid in range(24):
            request = solution.module("cluster.trace_request").TraceRequest(uid, inputs["prompt"], 300)
            simulation.at(0, kernel.Phase.ADMISSION, replica.add, request)
        simulation.run()
        return [simulation.now, replica.busy_time, replica.steps]

    def verify(inputs, got):
        rows, n, length = inputs["rows"], inputs["answer"], inputs["prompt"]
        base, token, pair, decode_base, decode, position = inputs["prices"]
        wave = base + rows * (token * length + pair * length * (length + 1) // 2)
        wave += sum(decode_base + decode * rows + position * rows * (length + i) for i in range(1, n))
        waves = 24 // rows
        want = [waves * wave, waves * wave, waves * n]
        explain(got, want, f"[makespan, busy_time, steps] are {got}, expected {want}: {waves} waves of {n} steps")


@case(task=4)
class TheSecondStationNeverWaits:
    """Prompts that go through two equal replicas wait before the first only; with a faster second one, too."""

    def inputs(rng):
        arrivals = np.sort(rng.integers(0, 10**8, 120)).tolist()
        return {"arrivals": arrivals, "length": int(rng.integers(500, 900)), "faster": int(rng.integers(0, 400))}

    def observe(solution, inputs):
        simulation, phase, (one, two), (first, second) = stations(solution, 2)
        length = inputs["length"]

        def onward(request, time):
            other = prompt_of(solution, request.uid, length - inputs["faster"])
            simulation.at(time, phase.WORKER_READY, two.add, other)

        first.after = onward
        for uid, time in enumerate(inputs["arrivals"]):
            simulation.at(time, phase.ADMISSION, one.add, prompt_of(solution, uid, length))
        simulation.run()
        return [first.tokens, second.tokens]

    def verify(inputs, got):
        free, want = 0, {}
        for uid, time in enumerate(inputs["arrivals"]):
            free = max(free, time) + 1000 * inputs["length"]
            want[uid] = [free]
        explain(got[0], want, f"first station: {first_difference(list(got[0].items()), list(want.items()))}")
        service = 1000 * (inputs["length"] - inputs["faster"])
        waits = [got[1].get(uid, [0])[0] - times[0] - service for uid, times in want.items()]
        explain(waits, [0] * len(waits), f"waits before the second station are {waits[:5]}..., expected 0 for all")


@case(task=4)
class NothingIsLostOnTheWay:
    """Little's law holds exactly, busy and idle time make up the whole, and no station idles while somebody waits."""

    def inputs(rng):
        arrivals = np.cumsum(rng.exponential(8e6, 250)).astype(np.int64).tolist()
        return {"arrivals": arrivals, "lengths": rng.integers(1, 12_000, 250).tolist()}

    def observe(solution, inputs):
        simulation, phase, (replica,), (log,) = stations(solution, 1)
        for uid, (time, length) in enumerate(zip(inputs["arrivals"], inputs["lengths"], strict=True)):
            simulation.at(time, phase.ADMISSION, replica.add, prompt_of(solution, uid, length))
        simulation.run()
        return {"ends": log.ends, "runs": log.runs, "busy": replica.busy_time, "now": simulation.now}

    def verify(inputs, got):
        arrivals, ends = inputs["arrivals"], [time for time, *_ in got["ends"]]
        explain(len(ends), len(arrivals), f"{len(arrivals)} requests came, {len(ends)} ended")
        steps = [(time, 1) for time in arrivals] + [(time, -1) for time in ends]
        area = inside = last = 0
        for time, change in sorted(steps):
            area, inside, last = area + inside * (time - last), inside + change, time
        times = sum(ends) - sum(arrivals)
        explain(area, times, f"requests in the system over time are {area}, their times {times}: L = lambda W")
        idle = sum(start - end for (_, end, _), (start, *_) in pairwise([[0, 0, []], *got["runs"]]))
        explain(
            got["busy"] + idle, got["now"], f"busy {got['busy']} and idle {idle} are not {got['now']}, the makespan"
        )
        for (_, end, _), (start, _, (uid,)) in pairwise(got["runs"]):
            if start > max(end, arrivals[uid]):
                raise AssertionError(f"the station idled from {end} to {start}: request {uid} came at {arrivals[uid]}")


def loop(solution, clients: int, length: int, think: int) -> list[int]:
    """How many answers so many clients had, and by when."""
    simulation, phase, (replica,), (log,) = stations(solution, 1)
    uids = count()

    def ask():
        replica.add(prompt_of(solution, next(uids), length))

    log.after = lambda request, time: simulation.at(time + think, phase.ADMISSION, ask)
    for client in range(clients):
        simulation.at(client * think // clients, phase.ADMISSION, ask)
    simulation.run(until=100 * (think + 1000 * length))
    return [len(log.ends), simulation.now]


@case(task=4)
class ClosedLoopsStayBelowTheirBound:
    """Clients that think between requests never get more than min(N / (R + Z), 1 / D)."""

    def inputs(rng):
        return {
            "clients": [1, 2, 5, 20],
            "length": int(rng.integers(500, 3000)),
            "think": int(rng.integers(1, 9)) * 10**6,
        }

    def observe(solution, inputs):
        return [loop(solution, clients, inputs["length"], inputs["think"]) for clients in inputs["clients"]]

    def verify(inputs, got):
        service, think = 1000 * inputs["length"], inputs["think"]
        for clients, (done, now) in zip(inputs["clients"], got, strict=True):
            most = min(Fraction(clients, service + think), Fraction(1, service)) * now
            if not most * Fraction(9, 10) - clients - 20 <= done <= most + clients:
                raise AssertionError(
                    f"{clients} clients had {done} answers in {now} ns: at most {float(most):.1f} are possible"
                )


@case(task=4)
class WithoutLoadNobodyWaits:
    """A request that is alone has its first token after its prefill, and the others after a step each."""

    def inputs(rng):
        one = {"prompt": int(rng.integers(1, 300)), "answer": int(rng.integers(2, 40))}
        return one | {"start": int(rng.integers(10**6)), "prices": [int(n) for n in rng.integers(1, 999, 6)]}

    def observe(solution, inputs):
        simulation, phase, (replica,), (log,) = stations(solution, 1, 4, inputs["prices"])
        replica.finish = lambda request: inputs["answer"]
        request = solution.module("cluster.trace_request").TraceRequest(0, inputs["prompt"], 999)
        simulation.at(inputs["start"], phase.ADMISSION, replica.add, request)
        simulation.run()
        return log.tokens[0]

    def verify(inputs, got):
        base, token, pair, decode_base, decode, position = inputs["prices"]
        n, now = inputs["prompt"], inputs["start"]
        times = [now + base + token * n + pair * n * (n + 1) // 2]
        for i in range(1, inputs["answer"]):
            times.append(times[-1] + decode_base + decode + position * (n + i))
        explain(got, times, f"times of tokens: {first_difference(got, times)}")


# Task 5


@case(task=5, params=[{"scheduler": s, "memory": m} for s, m in ENGINES], timeout=20.0)
class FastForwardIsStepByStep:
    """Many steps in one event give what they give one by one, to the nanosecond and to the page: for every batch, every
    token, every end, and whoever looks in between."""

    def inputs(rng, scheduler, memory):
        return [script(rng, 24, scheduler=scheduler, memory=memory) for _ in range(7)]

    def observe(solution, inputs):
        return [[on_a_replica(solution, one, 4096), by_hand(solution, one)] for one in inputs]

    def verify(inputs, got):
        for one, (replica, hand) in zip(inputs, got, strict=True):
            agree(replica, hand, f"fast-forward, {one['scheduler']} scheduler, {one['memory']}")
        events, steps = (sum(runs[0][name] for runs in got) for name in ("events", "steps"))
        if events > 1.6 * steps:  # it would be more than two for each, one by one
            raise AssertionError(f"{steps} steps took {events} events: batches that do not change are one event")


@case(task=5, params=[{"memory": "rows"}, {"memory": "trace"}])
class ThePreemptedComesBackAtOnce:
    """Who is preempted because no token was left for a prompt comes back with the very next batch: the batch that sent
    it away does not come again, though all in it decode."""

    def inputs(rng, memory):
        scripts = []
        for page in (1, 2, 4):
            requests = [{"time": 0, "uid": uid, "prompt": int(rng.integers(1, 5)), "answer": 16} for uid in range(2)]
            adds = [one | {"limit": 17, "hashes": []} for one in requests]
            engine = {"scheduler": "mixed", "memory": memory, "page": page, "pages": 24 // page, "rows": 2, "budget": 0}
            scripts.append({"adds": adds, "aborts": [], "looks": [], "price": [90, 9, 1, 70, 5, 1]} | engine)
        return scripts

    def observe(solution, inputs):
        return [[on_a_replica(solution, one, 4096), by_hand(solution, one)] for one in inputs]

    def verify(inputs, got):
        for replica, hand in got:
            agree(replica, hand, "fast-forward, a memory of 24 positions")


@case(task=5)
class ALongAnswerIsAFewEvents:
    """A request that is alone is two events for its prompt and a few for its answer, however long that is."""

    def inputs(rng):
        return {"answer": int(rng.integers(200, 340)), "page": int(rng.choice([2, 4, 8, 16]))}

    def observe(solution, inputs):
        one = {"uid": 0, "time": 0, "prompt": 50, "answer": inputs["answer"], "limit": 400}
        few = {"adds": [one], "aborts": [], "looks": [], "budget": 32, "price": [100, 1, 1, 50, 1, 1]}
        few |= {"page": inputs["page"], "pages": 400, "rows": 2, "scheduler": "mixed"}
        found = []
        for memory in ("rows", "trace"):
            report = on_a_replica(solution, few | {"memory": memory}, 4096)
            found.append([report["events"], report["steps"]])
        return found

    def verify(inputs, got):
        for events, steps in got:
            if events > 12:
                raise AssertionError(f"{steps} steps of one request took {events} events: expected at most 12")


@case(task=5)
class LookingChangesNothing:
    """Whoever looks in the middle sees the steps that have ended, and the one that runs goes on: it ends when it would
    have."""

    def inputs(rng):
        step = int(rng.integers(2, 50)) * 10
        looks = (step * rng.integers(1, 60, 8) + np.repeat([0, 1, step - 1, step // 2], 2)).tolist()
        return {"step": step, "looks": sorted(set(looks))}

    def observe(solution, inputs):
        step = inputs["step"]
        kernel = solution.module("cluster.kernel")
        simulation, memory = kernel.Simulation(), solution.module("serving.memory").RowMemory(2, 500, 4)
        scheduler, log, seen = solution.module("serving.scheduler").Scheduler(memory), Log(), []
        replica = replica_of(solution, simulation, scheduler, {0: 80}, log, cost=Price([step, 0, 0, step, 0, 0]))
        request, told, ran = solution.module("cluster.trace_request").TraceRequest(0, 10, 200), [], log.ran

        def hear(batch, start, ends):
            told.append([start, len(request.ids)])
            ran(batch, start, ends)

        def look():
            replica.settle()
            seen.append([simulation.now, replica.steps, request.cached_len, len(request.ids), memory.held(request)])

        log.ran = hear
        simulation.at(0, kernel.Phase.ADMISSION, replica.add, request)
        for time in inputs["looks"]:
            simulation.at(time, kernel.Phase.TELEMETRY, look)
        simulation.run()
        return {"seen": seen, "told": told, "tokens": log.tokens[0], "busy": replica.busy_time}

    def verify(inputs, got):
        step = inputs["step"]
        for time, *seen in got["seen"]:
            done = time // step
            running = time % step > 0  # else the next batch has not been launched yet
            cached = 9 + done + running
            want = [done, cached, 10 + done, -(-cached // 4)]
            explain(seen, want, f"[steps, cached_len, ids, pages] at {time} ns, with steps of {step}: expected {want}, "
                    f"got {seen}", {
                "a step that ends at this very time has happened": [done - 1, cached, 9 + done, -(-cached // 4)],
                "the step that runs has not ended": [done + 1, cached + 1, 11 + done, -(-(cached + 1) // 4)],
            })  # fmt: skip
        want = [step * i for i in range(1, 81)]
        explain(got["tokens"], want, f"times of tokens: {first_difference(got['tokens'], want)}", {
            "the step that ran began again": None,
        })  # fmt: skip
        explain(got["busy"], 80 * step, f"busy_time is {got['busy']}, expected {80 * step}: each step counts once")
        want = [[start, 10 + start // step] for start, _ in got["told"]]
        explain(got["told"], want, f"[start, ids] when the sink was told of steps: "
                f"{first_difference(got['told'], want)}: first report, then advance or commit")  # fmt: skip


def decoding(solution, lengths: list[int], page: int, pages: int):
    """A memory, and a launched batch that decodes at each of these lengths."""
    memory = solution.module("serving.memory").RowMemory(len(lengths), 10**6, page, pages)
    serving, names, steps = solution.module("serving.request"), solution.module("cluster.trace_request"), []
    for uid, length in enumerate(lengths):
        request = names.TraceRequest(uid, length, 10**5)
        memory.open(request, memory.match(request))
        memory.grow(request, length + 1)
        request.launch(length)
        request.append(names.TOKEN)
        request.in_flight -= 1
        steps.append(request.launch(1))
    return memory, serving.Batch(tuple(steps))


def needed(lengths: list[int], page: int, runs: int) -> int:
    """Pages that so many runs need, over those that requests which decode at these lengths hold."""
    return sum(-(-(length + runs) // page) - -(-(length + 1) // page) for length in lengths)


@case(task=5)
class RunsEndWhereAPageIsMissing:
    """A batch runs as often as its requests need no more pages than there are to spare, up to `left` times, and once in
    any case: it has been launched."""

    def inputs(rng):
        runs = []
        for _ in range(60):
            lengths, page = rng.integers(1, 60, int(rng.integers(1, 6))).tolist(), int(rng.choice([1, 2, 5, 16]))
            left, spare = (
                int(rng.choice([1, 2, rng.integers(1, 300)])),
                int(rng.choice([0, 1, 3, rng.integers(0, 200)])),
            )
            runs.append({"lengths": lengths, "page": page, "left": left, "spare": spare})
        return runs

    def observe(solution, inputs):
        forward, found = solution.module("cluster.fast_forward"), []
        for one in inputs:
            memory, batch = decoding(solution, one["lengths"], one["page"], 10**6)
            more = [int(forward.more_pages(memory, batch, n)) for n in (1, 2, 7, 100)]
            found.append([int(forward.runs(memory, batch, one["left"], one["spare"])), more])
        return found

    def verify(inputs, got):
        for one, (runs, more) in zip(inputs, got, strict=True):
            page, lengths, many = one["page"], one["lengths"], (1, 2, 7, 100)
            want = [needed(lengths, page, n) for n in many]
            text = f"at lengths {lengths}, pages of {page}"
            explain(more, want, f"pages for {many} runs {text}: {more}, expected {want}", {
                "a run too many was counted": [needed(lengths, page, n + 1) for n in many],
                "a run too few was counted": [needed(lengths, page, n - 1) for n in many],
                "pages that the requests hold were counted, too": [
                    sum(-(-(length + n) // page) for length in lengths) for n in many],
            })  # fmt: skip
            fit = [n for n in range(1, one["left"] + 1) if needed(lengths, page, n) <= one["spare"]]
            fit = max(fit, default=1)
            text = f"{text}, left {one['left']}, spare {one['spare']}: {runs} runs, expected {fit}"
            explain(runs, fit, text, {
                "pages were not asked for": one["left"],
                "one run less than there are pages for": fit - 1,
                "the last run misses a page": fit + 1,
            })  # fmt: skip


@case(task=5)
class ToAdvanceIsToCommitAndLaunch:
    """Advancing by n steps leaves what n commits and launches leave: lengths, ids, pages, and one step in flight."""

    def inputs(rng):
        lengths = [rng.integers(1, 40, int(n)).tolist() for n in rng.integers(1, 5, 40)]
        pages, steps = rng.choice([1, 3, 4, 16], 40).tolist(), rng.choice([1, 2, 5, 60, 89], 40).tolist()
        return [
            dict(zip(("lengths", "page", "steps"), one, strict=True)) for one in zip(lengths, pages, steps, strict=True)
        ]

    def observe(solution, inputs):
        found = []
        for one in inputs:
            memory, batch = decoding(solution, one["lengths"], one["page"], 1000)
            solution.module("cluster.fast_forward").advance(memory, batch, one["steps"])
            states = [[r.cached_len, r.device_len, len(r.ids), memory.held(r), r.in_flight] for r, *_ in batch.steps]
            found.append([states, memory.available])
        return found

    def verify(inputs, got):
        for one, (states, available) in zip(inputs, got, strict=True):
            n, page = one["steps"], one["page"]
            want = [[m + 1 + n, m + 2 + n, m + 1 + n, -(-(m + 1 + n) // page), 1] for m in one["lengths"]]
            held = [-(-(m + 1) // page) for m in one["lengths"]]
            text = f"[cached_len, device_len, ids, pages, in_flight], {n} steps after {one['lengths']}, pages of {page}"
            explain(states, want, f"{text}: {states}, expected {want}", {
                "no pages were taken": [[*s[:3], before, 1] for s, before in zip(want, held, strict=True)],
                "device_len stood still": [[s[0], s[1] - n, *s[2:]] for s in want],
                "the ids stood still": [[*s[:2], s[2] - n, *s[3:]] for s in want],
            })  # fmt: skip
            explain(available, 1000 - sum(s[3] for s in want), f"{available} pages are available after {text}")


@case(task=5)
class SteadyBatchesComeAgain:
    """A batch comes again if it is all of the running requests, each of them decodes, and nobody was put back into the
    queue when it was chosen."""

    def inputs(rng):
        n, waits = int(rng.integers(2, 9)), int(rng.integers(1, 5))
        return {"n": n, "cases": [
            ["all decode, nobody waits", n, n, n, 0, 0, True],
            ["all decode, others wait as before", n, n, n, waits, waits, True],
            ["there is a chunk of a prompt in it", n - 1, n, n, 0, 0, False],
            ["one of the running requests is not in it", n, n, n + 1, 0, 0, False],
            ["one was preempted", n, n, n, waits, waits + 1, False],
            ["one was preempted from an empty queue", n, n, n, 0, 1, False],
            ["one was admitted", n, n + 1, n + 1, 1, 0, False],
        ]}  # fmt: skip

    def observe(solution, inputs):
        found, names = [], solution.module("cluster.trace_request")
        for _, decodes, batch, running, before, after, _ in inputs["cases"]:
            scheduler = solution.module("serving.mixed").MixedScheduler(
                solution.module("serving.memory").RowMemory(9, 99)
            )
            scheduler.running = {uid: names.TraceRequest(uid, 3, 9) for uid in range(running)}
            scheduler.waiting.extend(names.TraceRequest(100 + uid, 3, 9) for uid in range(after))
            prefill = batch - decodes
            shape = solution.module("cluster.cost").StepShape(4 * prefill, 10 * prefill, decodes, 7 * decodes, batch)
            found.append(bool(solution.module("cluster.fast_forward").steady(scheduler, shape, before)))
        return found

    def verify(inputs, got):
        for (what, *_, want), steady in zip(inputs["cases"], got, strict=True):
            explain(steady, want, f"steady() is {steady} although {what}: expected {want}")


@case(task=5, timeout=20.0)
class OneSeedGivesTheSameBytes:
    """The same script gives the same report, byte for byte, whatever else the process did meanwhile."""

    def inputs(rng):
        return script(rng, 24, scheduler="mixed", memory="trace")

    def observe(solution, inputs):
        reports = []
        for i in range(2):
            kept = [object() for _ in range(1000 * i)]
            reports.append(repr(on_a_replica(solution, inputs, 4096)))
            del kept
        return reports

    def verify(inputs, got):
        explain(got[0] == got[1], True, "two runs of one script differ: look for sets, id() and hash()")
        if len(got[0]) < 3000:
            raise AssertionError(f"the report has {len(got[0])} characters only: requests were lost")
