"""Where the requests of a simulated deployment arrive and where their answers leave.

Asks routers where to send a request, sends it again where a worker was lost, and notes everything.
"""

from collections.abc import Iterator
from functools import partial

from ..serving.request import Request
from .active import News
from .deployment import Deployment, Pool
from .event_channel import EventChannel
from .events import Event
from .hashing import key_hashes
from .job import Job
from .kernel import Phase, Simulation
from .ledger import Ledger
from .prefix_fetch import PrefixFetch
from .router import Decision
from .router_queue import OverloadedError
from .routing import RouteRequest
from .run import Choice, Run
from .synced_router import SyncedRouter
from .trace_request import TraceRequest
from .worker import Worker
from .workload import Arrival, Workload


class FrontEnd:
    """All front ends of a deployment. jobs: by uid. names: whether routers ask which blocks a prompt has."""

    new_job = Job

    def __init__(self, simulation: Simulation, deployment: Deployment, run: Run, workload: Workload):
        self.simulation, self.deployment, self.run, self.workload = simulation, deployment, run, workload
        self.ledger = Ledger(workload.block_tokens, deployment.max_tokens)
        run.records = self.ledger.recorder.records
        self.routers: list[SyncedRouter] = []
        self.channels: list[EventChannel] = []
        self.workers: dict[int, Worker] = {}
        self.fetch = PrefixFetch(simulation, deployment, run, self.workers)
        self.jobs: dict[int, Job] = {}
        self.coming = self.names = False
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
            self.simulation.at(int(arrival.time_ns), Phase.ADMISSION, self.arrive, arrival)
            self.simulation.at(int(arrival.time_ns), Phase.ADMISSION, self.open)

    def arrive(self, arrival: Arrival) -> None:
        """A request comes."""
        record = self.ledger.arrive(arrival, self.simulation.now)
        uid = record.uid
        job = self.jobs[uid] = self.new_job(uid, arrival, record, self.request(uid, arrival, 0))
        self.route(job)

    def request(self, uid: int, arrival: Arrival, told: int) -> TraceRequest:
        """A request as an engine sees it, after `told` tokens of its answer: those are part of its prompt then."""
        block = self.workload.block_tokens
        hashes = arrival.hash_ids[: arrival.input_length // block] if told else arrival.hash_ids
        return TraceRequest(uid, arrival.input_length + told, self.deployment.max_tokens - told, hashes, block)

    def router(self, job: Job) -> SyncedRouter:
        """The router of a request's front end."""
        return self.routers[job.uid % len(self.routers)]

    def question(self, job: Job) -> RouteRequest:
        """A request as routers see it."""
        request = job.request
        blocks = request.page_keys(self.deployment.pool.block_size, request.prompt_len) if self.names else ()
        return RouteRequest(job.uid, request.prompt_len, key_hashes(blocks), self.simulation.now)

    def route(self, job: Job) -> None:
        """Ask the router where to send a request."""
        try:
            decision = self.router(job).submit(self.question(job), self.simulation.now)
        except OverloadedError:
            self.end(job, "rejected")
        else:
            self.send([decision] if decision else [])

    def send(self, decisions: list[Decision]) -> None:
        """Send requests to the workers that a router chose."""
        for uid, number, _ in decisions:
            job, worker = self.jobs[uid], self.workers[number]
            job.worker = worker
            job.record.decode_worker = worker.name
            self.fetch.bring(job.request, worker, self.router(job).index, partial(self.deliver, job, worker))

    def deliver(self, job: Job, worker: Worker) -> None:
        """A request reaches its worker, or waits until that can be reached. It may have gone elsewhere meanwhile."""
        if job.worker is not worker or worker.lost:
            return
        if worker.silent_until > self.simulation.now:
            self.simulation.at(worker.silent_until, Phase.ADMISSION, self.deliver, job, worker)
            return
        try:
            worker.add(job.request)
        except ValueError:
            self.release(job)
            self.end(job, "rejected")

    def first_token(self, worker: Worker, request: Request) -> None:
        """The prompt of a request was computed."""
        if (job := self.jobs.get(request.uid)) and job.worker is worker:
            if not job.moves:
                self.ledger.tally.start(job.record)
            self.send(self.router(job).prefill_done(job.uid, self.simulation.now))

    def ended(self, worker: Worker, request: Request) -> None:
        """A worker is done with a request."""
        if (job := self.jobs.get(request.uid)) and job.worker is worker:
            self.release(job)
            self.end(job, request.finish_reason)

    def lose(self, worker: Worker) -> None:
        """A worker is gone: what it had goes on elsewhere."""
        self.leave(worker)
        for job in [job for job in self.jobs.values() if job.worker is worker]:
            self.again(job)

    def needs(self, worker: Worker) -> bool:
        """Whether a request that has not ended is at a worker, or on its way there."""
        return any(job.worker is worker for job in self.jobs.values())

    def again(self, job: Job) -> None:
        """Send the rest of a request to another worker, unless that was done too often: then it has failed."""
        if job.moves == self.deployment.control.migrations:
            self.end(job, "error")
            return
        job.moves += 1
        job.record.migrations += 1
        self.ledger.lose(job.record, job.parts, self.simulation.now)
        job.request = self.request(job.uid, job.arrival, job.record.output_length)
        job.worker = None
        self.route(job)

    def release(self, job: Job) -> None:
        """A router need not count a request any more."""
        self.send(self.router(job).free(job.uid, self.simulation.now))

    def end(self, job: Job, reason: str) -> None:
        """A request leaves, with its whole answer or without."""
        now = self.simulation.now
        del self.jobs[job.uid]
        self.ledger.end(job.request, reason, now)
        if (following := self.workload.after(job.arrival, now)) is not None:
            self.simulation.at(int(following.time_ns), Phase.ADMISSION, self.arrive, following)

    def worker(self, number: int, name: str, kind: str, pool: Pool) -> Worker:
        """A new worker, which nobody knows yet."""
        worker = Worker(self.simulation, number, name, kind, pool, self, tells=bool(self.channels))
        worker.wire(self.deployment.transport)
        return worker

    def event(self, worker: Worker, event: Event) -> None:
        """A worker's cache has changed: the routers of its pool hear of it."""
        for channel in self.channels:
            if channel.kind == worker.kind:
                channel.send(worker, event)

    def join(self, worker: Worker) -> None:
        """A worker serves from now on."""
        self.workers[worker.number] = worker
        for router in self.routers:
            self.send(router.add_worker(worker.number, self.simulation.now))

    def leave(self, worker: Worker) -> None:
        """A worker gets no more requests. Those that it has are its business."""
        for router in self.routers:
            for uid in router.remove_worker(worker.number):
                self.end(self.jobs[uid], "rejected")

    def heard(self, router: SyncedRouter, news: News) -> None:
        """News of another front end's router are at this one."""
        self.send(router.merge(news, self.simulation.now))

    def tidy(self) -> None:
        """Let routers forget requests whose end they never heard of."""
        for router in self.routers:
            self.send(router.expire(self.simulation.now))

    def chosen(self, decision: Decision) -> None:
        """A router has decided."""
        worker = self.workers[decision.worker].name
        self.run.choices.append(Choice(self.simulation.now, decision.uid, worker, decision.overlap))

    @property
    def queued(self) -> int:
        """Requests that wait at routers."""
        return sum(len(router.queue) for router in self.routers)
