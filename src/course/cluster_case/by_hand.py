"""The oracle of a replica: the same scheduler in a plain loop that knows no events, one step after another.

Works with either package through public names. Scripts and reports are those of `replay`; times are ns.
"""

from .replay import Log, Price, look_at, report_of, request_of, scheduler_of


def by_hand(solution: object, script: dict[str, object]) -> dict[str, object]:
    """The same without a replica or a simulation: choose a batch, let pass what it costs, take its results."""
    return _ByHand(solution, script).run()


class _ByHand:
    def __init__(self, solution: object, script: dict[str, object]):
        self.solution, self.script = solution, script
        self.scheduler, self.log, self.states = scheduler_of(solution, script), Log(), []
        self.answers = {add["uid"]: add["answer"] for add in script["adds"]}
        events = [(add["time"], 0, i, self.add, add) for i, add in enumerate(script["adds"])]
        events += [(abort["time"], 1, i, self.abort, abort) for i, abort in enumerate(script["aborts"])]
        events += [(time, 2, i, self.look, time) for i, time in enumerate(script["looks"])]
        self.events = sorted(events, key=lambda event: event[:3])

    def run(self) -> dict[str, object]:
        now, price = 0, Price(self.script["price"])
        while True:
            self.happen(now + 1)
            batch = self.scheduler.next_batch()
            if batch is not None:
                end = now + price.step_time(shape_by_hand(batch))
                self.happen(end)
                self.log.ran(batch, now, [end])
                self.commit(batch, end)
                now = end
            elif self.events:
                now = self.events[0][0]
            else:
                busy = sum(end - start for start, end, _ in self.log.runs)
                return report_of(self.log, self.states, self.scheduler, busy) | {"steps": len(self.log.runs)}

    def happen(self, before: int) -> None:
        while self.events and self.events[0][0] < before:
            *_, action, what = self.events.pop(0)
            action(what)

    def add(self, add: dict[str, object]) -> None:
        self.scheduler.add(request_of(self.solution, add))

    def abort(self, abort: dict[str, int]) -> None:
        request = self.scheduler.requests.get(abort["uid"])
        if request is not None:
            self.scheduler.abort(abort["uid"])
            self.log.ended(request, abort["time"])

    def look(self, time: int) -> None:
        self.states.append(look_at(self.scheduler, time))

    def commit(self, batch: object, end: int) -> None:
        going = [step.request for step in batch.steps if step.request.finish_reason is None]
        names, sampled = self.solution.module("cluster.trace_request"), self.solution.module("serving.request").Sampled
        last = [len(r.ids) + 1 == r.prompt_len + self.answers[r.uid] for r in (step.request for step in batch.sampling)]
        self.scheduler.commit(batch, [sampled(names.STOP if ends else names.TOKEN) for ends in last])
        for request in going:
            if request.finish_reason is not None:
                self.log.ended(request, end)


def shape_by_hand(batch: object) -> tuple[int, int, int, int, int]:
    """The shape of a batch, position by position."""
    tokens = pairs = decodes = context = 0
    for request, start, end, samples in batch.steps:
        if samples and end - start == 1 and start >= request.prompt_len:
            decodes, context = decodes + 1, context + end
        else:
            tokens, pairs = tokens + end - start, pairs + sum(range(start + 1, end + 1))
    return tokens, pairs, decodes, context, len(batch.steps)
