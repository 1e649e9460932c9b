"""The front end of a simulated disaggregated deployment: each request visits two workers.

Carries out what two-stage routing orders, and tells it what became of that.
"""

from collections.abc import Callable, Sequence
from functools import partial

from ..serving.request import Request
from .active import News
from .connector import Release
from .deployment import Pool
from .disaggregation import TwoStage
from .front_end import FrontEnd
from .handoff import Peer, Ticket
from .job import Job, SplitJob
from .journey import Cancel, Decode, Fail, Prefill, RouteOrder
from .kernel import Phase
from .linked_worker import LinkedWorker
from .receiver import handed_over
from .run import Moved
from .synced_router import SyncedRouter
from .trace_request import TOKEN
from .worker import Worker


class SplitFront(FrontEnd):
    """All front ends of a disaggregated deployment. stages: the two-stage routing of each."""

    new_job = SplitJob
    stages: Sequence[TwoStage] = ()

    def stage(self, job: Job) -> TwoStage:
        """The routing of a request's front end."""
        return self.stages[job.uid % len(self.stages)]

    def route(self, job: SplitJob) -> None:
        """Ask where the request should go."""
        job.prompt, job.apart = None, False
        if job.request.prompt_len >= self.longest:
            self.end(job, "rejected")
        else:
            self.carry(self.stage(job).submit(self.question(job), self.simulation.now))

    @property
    def longest(self) -> int:
        """Tokens that a worker of either pool can hold."""
        pools = (self.deployment.prefill, self.deployment.pool)
        return min(min(pool.max_len, (pool.kv_blocks - 1) * pool.block_size) for pool in pools) - 1

    def carry(self, orders: Sequence[RouteOrder]) -> None:
        """Carry orders out, one after the other."""
        for order in orders:
            worker = None if isinstance(order, Fail) else self.workers[order.worker]
            match order:
                case Prefill(uid, _, ticket):
                    job = self.jobs[uid]
                    job.prompt = job.request.clone(1)
                    job.transfer, job.record.prefill_worker = ticket.transfer, worker.name
                    accept = partial(self.reach, worker, worker.accept, job.prompt, ticket.transfer)
                    self.fetch.bring(job.prompt, worker, self.stage(job).prefill.index, accept)
                case Decode(uid, _, ticket):
                    self.decode(self.jobs[uid], worker, ticket)
                case Cancel(uid):
                    self.reach(worker, worker.cancel, uid)
                case Release(transfer):
                    self.reach(worker, worker.released, transfer)
                case Fail(uid, "overloaded"):
                    self.end(self.jobs[uid], "rejected")
                case Fail(uid):
                    self.again(self.jobs[uid])

    def decode(self, job: SplitJob, worker: LinkedWorker, ticket: Ticket | None) -> None:
        """Let a worker answer. ticket: where the prompt comes from, None for nowhere else."""
        job.worker, job.apart = worker, ticket is not None
        job.record.decode_worker = worker.name
        if ticket is None:
            self.reach(worker, worker.add, job.request)
        else:
            self.reach(worker, worker.begin, handed_over(job.request, TOKEN), ticket)

    def reach(self, worker: LinkedWorker, call: Callable[..., object], *args: object) -> None:
        """Tell a worker something as soon as it can be reached."""
        if worker.silent_until > self.simulation.now:
            self.simulation.at(worker.silent_until, Phase.ADMISSION, self.reach, worker, call, *args)
        elif worker.alive:
            call(*args)

    def first_token(self, worker: Worker, request: Request) -> None:
        """The prompt of a request was computed where its answer is."""
        if (job := self.jobs.get(request.uid)) and job.request is request and not job.apart:
            if not job.moves:
                self.ledger.tally.start(job.record)
            self.carry(self.stage(job).first_token(job.uid, self.simulation.now))

    def ended(self, worker: LinkedWorker, request: Request) -> None:
        """A worker is done with its part of a request. What a dead one left is no news: `lose` has seen to it."""
        worker.after(request)
        job, now = self.jobs.get(request.uid), self.simulation.now
        if job is None or request.finish_reason not in ("stop", "length"):
            return
        complete = request.finish_reason == "stop"
        if request is job.prompt:
            job.hits = request.hit_tokens
            if not job.moves:
                self.ledger.tally.start(job.record)
            self.carry(self.stage(job).prefilled(job.transfer, complete, now))
        elif request is job.request:
            complete = True
            self.carry(self.stage(job).done(job.uid, now))
        if complete and request in (job.prompt, job.request):
            self.end(job, request.finish_reason)

    def needs(self, worker: Worker) -> bool:
        """Whether a request is there, or on its way there, for its prompt or its answer."""
        prompts = (job for job in self.jobs.values() if job.prompt is not None)
        return super().needs(worker) or any(job.record.prefill_worker == worker.name for job in prompts)

    def began(self, request: Request) -> bool:
        """Whether all tokens that a request says it has have come."""
        job = self.jobs.get(request.uid)
        return job is not None and job.record.output_length >= len(request.ids) - job.record.input_length

    def failed(self, worker: LinkedWorker, request: Request) -> None:
        """A worker could not get the prompt of a request."""
        if (job := self.jobs.get(request.uid)) and job.request is request:
            self.carry(self.stage(job).done(job.uid, self.simulation.now))
            self.again(job)

    def moved(self, moved: Moved) -> None:
        """KV of a request was moved, or was not."""
        self.run.moves.append(moved)
        record = self.run.records[moved.uid]
        if moved.status == "done" and record.decode_start is None and record.done is None:
            record.transfer_start = moved.start if record.transfer_start is None else record.transfer_start
            record.transfer_end = moved.end

    def end(self, job: SplitJob, reason: str) -> None:
        """A request leaves."""
        if job.prompt is not None:
            job.request.hit_tokens = job.hits
            if reason in ("error", "rejected"):
                self.ledger.lose(job.record, job.parts, self.simulation.now)
        super().end(job, reason)

    def worker(self, number: int, name: str, kind: str, pool: Pool) -> LinkedWorker:
        """A new worker, which nobody knows yet."""
        tells = any(channel.kind == kind for channel in self.channels)
        worker = LinkedWorker(self.simulation, number, name, kind, pool, self, tells)
        carrier = "decode" if self.deployment.handoff == "pull" else "prefill"
        worker.link(self.workers, self.deployment.transport, carrier)
        return worker

    def join(self, worker: LinkedWorker) -> None:
        """A worker serves from now on."""
        self.workers[worker.number] = worker
        for stage in self.stages:
            if worker.kind == "prefill":
                self.carry(stage.add_prefill(Peer(worker.number, worker.pool.gpus, worker.name), self.simulation.now))
            else:
                self.carry(stage.add_decode(worker.number, self.simulation.now))

    def leave(self, worker: LinkedWorker) -> None:
        """A worker gets no more requests. Those that it has are its business."""
        for stage in self.stages:
            router = stage.prefill if worker.kind == "prefill" else stage.decode
            for uid in router.remove_worker(worker.number):
                self.carry([*stage.cancel(uid, self.simulation.now), Fail(uid, "no worker")])

    def lose(self, worker: LinkedWorker) -> None:
        """A worker is gone: what it had goes on elsewhere."""
        for stage in self.stages:
            remove = stage.remove_prefill if worker.kind == "prefill" else stage.remove_decode
            self.carry(remove(worker.number, self.simulation.now))
        for peer in self.workers.values():
            peer.lose(worker)

    def heard(self, router: SyncedRouter, news: News) -> None:
        """News of another front end's router are at this one."""
        decisions, now = router.merge(news, self.simulation.now), self.simulation.now
        for stage in self.stages:
            if router is stage.prefill:
                self.carry(stage.begun(decisions, now))
            elif router is stage.decode:
                self.carry(stage.sent(decisions))

    def tidy(self) -> None:
        """Let routers forget requests whose end they never heard of."""
        now = self.simulation.now
        for stage in self.stages:
            self.carry([*stage.begun(stage.prefill.expire(now), now), *stage.sent(stage.decode.expire(now))])

    @property
    def queued(self) -> int:
        """Requests that wait at routers."""
        return sum(len(stage.prefill.queue) + len(stage.decode.queue) for stage in self.stages)
