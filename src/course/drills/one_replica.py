"""One engine serves a workload: the smallest whole simulation, for figures and exercises of the book."""

import importlib
from types import ModuleType


class OneReplica:
    """An engine of OPT-13B on an A100 (DistServe's times), of a package. Answers are as long as the workload says.

    module: finds the package's modules. recorder: what is noted.
    """

    def __init__(self, package: str, rows: int = 64, token_budget: int = 2048, pages: int = 1024):
        self.package = package
        self.simulation = self.module("cluster.kernel").Simulation()
        self.admission = self.module("cluster.kernel").Phase.ADMISSION
        self.recorder = self.module("cluster.recorder").Recorder()
        memory = self.module("cluster.trace_memory").TraceMemory(rows, 16_384, 64, pages)
        scheduler = self.module("serving.mixed").MixedScheduler(memory, token_budget)
        sink = self.recorder.sink("workers")
        self.noted, sink.ended = sink.ended, self.ended
        cost = self.module("cluster.cost").OPT_13B_A100
        finish = lambda request: self.arrivals[request.uid].output_length  # noqa: E731
        self.replica = self.module("cluster.replica").Replica(self.simulation, scheduler, cost, finish, sink)
        self.arrivals: list[object] = []

    def module(self, name: str) -> ModuleType:
        """A module of the package."""
        return importlib.import_module(f"{self.package}.{name}")

    def arrive(self, arrival: object) -> None:
        """A request reaches the engine."""
        uid = len(self.arrivals)
        self.arrivals.append(arrival)
        self.recorder.arrived(uid, arrival.input_length, self.simulation.now)
        request = self.module("cluster.trace_request").TraceRequest
        self.replica.add(request(uid, arrival.input_length, arrival.output_length + 1, arrival.hash_ids))

    def ended(self, request: object, time: int) -> None:
        """Note an end, and let what follows the answer come."""
        self.noted(request, time)
        after = self.workload.after(self.arrivals[request.uid], time)
        if after is not None:
            self.simulation.at(after.time_ns, self.admission, self.arrive, after)

    def serve(self, workload: object) -> list[object]:
        """The records of all requests of a workload."""
        self.workload = workload
        for arrival in workload.initial():
            self.simulation.at(arrival.time_ns, self.admission, self.arrive, arrival)
        self.simulation.run()
        return list(self.recorder.records.values())
