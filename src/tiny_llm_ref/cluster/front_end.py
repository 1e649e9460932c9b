"""Where the requests of a simulated deployment arrive and where their answers leave.

Knows who asked what and how far each answer is. It asks routers where to send a request, sends it again where a worker
was lost, and notes everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..serving.request import Request
from .deployment import Deployment
from .event_channel import EventChannel
from .events import Event
from .hashing import key_hashes
from .kernel import Phase, Simulation
from .record import Record, check_conserved
from .recorder import Recorder
from .router import Decision, Router
from .router_queue import OverloadedError
from .routing import RouteRequest
from .run import Choice, Run
from .tally import Tally
from .trace_request import TraceRequest
from .worker import Worker
from .workload import Arrival, Workload


@dataclass(slots=True)
class Job:
    """A request that has not ended. request: as its engine sees it. worker: where it is; None: at the router.

    moves: how often it was sent again.
    """

    arrival: Arrival
    record: Record
    router: Router
    request: TraceRequest
    worker: Worker | None = None
    moves: int = 0


class FrontEnd:
    """All front ends of a deployment. jobs: by uid. tally: counts since somebody last replaced it."""

    def __init__(self, simulation: Simulation, deployment: Deployment, run: Run, workload: Workload):
        self.simulation, self.deployment, self.run, self.workload = simulation, deployment, run, workload
        self.recorder = Recorder()
        run.records = self.recorder.records
        self.routers: list[Router] = []
        self.channels: list[EventChannel] = []
        self.workers: dict[int, Worker] = {}
        self.jobs: dict[int, Job] = {}
        self.outputs: dict[int, int] = {}
        """The true length of each answer that has not ended: only `left` reads it."""
        self.done = self.rejected = 0
        self.coming = False
        self.tally = Tally()
        self._coming: Iterator[Arrival] = workload.initial()

    @property
    def busy(self) -> bool:
        """Whether a request is here, or one will come."""
        return bool(self.jobs) or self.coming

    def open(self) -> None:
        """Let requests come, one after the other."""
        arrival = next(self._coming, None)
        self.coming = arrival is not None
        if arrival:
            self.simulation.at(int(arrival.time_ns), Phase.ADMISSION, self._next, arrival)

    def _next(self, arrival: Arrival) -> None:
        self.arrive(arrival)
        self.open()

    def arrive(self, arrival: Arrival) -> None:
        """A request comes."""
        uid = len(self.recorder.records)
        record = self.recorder.arrived(uid, arrival.input_length, self.simulation.now)
        self.tally.arrive(arrival.input_length)
        request = TraceRequest(uid, arrival.input_length, self.deployment.pool.max_len, arrival.hash_ids)
        self.outputs[uid] = max(arrival.output_length, 1)
        job = self.jobs[uid] = Job(arrival, record, self.routers[uid % len(self.routers)], request)
        self.route(job)

    def left(self, request: Request) -> int:
        """Tokens that a request will still have."""
        return self.outputs[request.uid] - self.recorder.records[request.uid].output_length

    def route(self, job: Job) -> None:
        """Ask the router where to send a request."""
        request, pool = job.request, self.deployment.pool
        blocks = key_hashes(request.page_keys(pool.block_size, request.prompt_len)) if job.router.index else ()
        now = self.simulation.now
        try:
            decision = job.router.submit(RouteRequest(request.uid, request.prompt_len, blocks, now), now)
        except OverloadedError:
            self.reject(job)
        else:
            self.send([decision] if decision else [])

    def send(self, decisions: list[Decision]) -> None:
        """Send requests to the workers that a router chose."""
        for uid, number, overlap in decisions:
            job, worker = self.jobs[uid], self.workers[number]
            self.run.choices.append(Choice(self.simulation.now, uid, worker.name, overlap))
            job.worker = worker
            job.record.decode_worker = worker.name
            self.deliver(job)

    def deliver(self, job: Job) -> None:
        """A request reaches its worker, or waits until that can be reached."""
        worker = job.worker
        if worker.silent_until > self.simulation.now and not worker.lost:
            self.simulation.at(worker.silent_until, Phase.ADMISSION, self.deliver, job)
        elif not worker.lost:
            try:
                worker.add(job.request)
            except ValueError:
                self.release(job)
                self.reject(job)

    def reject(self, job: Job) -> None:
        """Refuse a request."""
        self.rejected += 1
        job.request.finish_reason = "rejected"
        self.close(job)

    def first_token(self, worker: Worker, request: Request) -> None:
        """The prompt of a request was computed."""
        if (job := self.jobs.get(request.uid)) and job.worker is worker:
            if not job.moves:
                self.tally.start(job.record)
            self.send(job.router.prefill_done(request.uid, self.simulation.now))

    def ended(self, worker: Worker, request: Request) -> None:
        """A worker is done with a request."""
        if (job := self.jobs.get(request.uid)) and job.worker is worker:
            self.release(job)
            self.done += 1
            self.close(job)

    def lose(self, worker: Worker) -> None:
        """A worker is gone: what it had goes on elsewhere, unless it was moved too often before."""
        self.leave(worker)
        for job in [job for job in self.jobs.values() if job.worker is worker]:
            if job.moves < self.deployment.control.migrations:
                self.again(job)
            else:
                job.request.finish_reason = "error"
                self.done += 1
                self.close(job)

    def again(self, job: Job) -> None:
        """Send the rest of a request to another worker: its answer so far becomes part of the prompt."""
        job.moves += 1
        job.record.migrations += 1
        arrival, told = job.arrival, job.record.output_length
        hashes = arrival.hash_ids[: arrival.input_length // job.request.block] if told else arrival.hash_ids
        job.request = TraceRequest(job.request.uid, arrival.input_length + told, job.request.max_tokens, hashes)
        job.worker = None
        self.route(job)

    def release(self, job: Job) -> None:
        """A router need not count a request any more."""
        self.send(job.router.free(job.request.uid, self.simulation.now))

    def close(self, job: Job) -> None:
        """A request leaves, with its whole answer or without."""
        now, uid = self.simulation.now, job.request.uid
        if job.request.hit_tokens:  # a request that was sent again has a longer prompt
            job.request.hit_tokens = min(job.request.hit_tokens, job.arrival.input_length)
        self.recorder.ended(job.request, now)
        if job.record.complete:
            self.tally.end(job.record)
        del self.jobs[uid], self.outputs[uid]
        if (following := self.workload.after(job.arrival, now)) is not None:
            self.simulation.at(int(following.time_ns), Phase.ADMISSION, self.arrive, following)

    def event(self, worker: Worker, event: Event) -> None:
        """A worker's cache has changed: all routers hear of it."""
        for channel in self.channels:
            channel.send(worker, event)

    def join(self, worker: Worker) -> None:
        """A worker serves from now on."""
        self.workers[worker.number] = worker
        for router in self.routers:
            self.send(router.add_worker(worker.number, self.simulation.now))

    def leave(self, worker: Worker) -> None:
        """A worker gets no more requests. Those that it has are its business."""
        for router in self.routers:
            if worker.number in router.workers:
                for uid in router.remove_worker(worker.number):
                    self.reject(self.jobs[uid])

    def check(self) -> None:
        """Raise InvariantError unless each request that came is somewhere."""
        queued = sum(len(router.queue) for router in self.routers)
        check_conserved(len(self.recorder.records), self.done, queued, len(self.jobs) - queued, self.rejected)
