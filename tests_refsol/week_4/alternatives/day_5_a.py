# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 5 in another style: exact fractions, sets instead of counts, one function for each state of a request."""

# file: cluster/conditional.py
from fractions import Fraction


def _queue_local(self, situation):
    """The opposite of remote, word by word."""
    remote = (situation.prompt - situation.cached > self.max_local) and (situation.queued < self.max_queued)
    return not remote


def _conditional_local(self, situation):
    """In fractions of the decimal number that was written."""
    if situation.decode_blocks > self.busy_decode_blocks:
        return False
    new = situation.prompt - situation.cached
    reasons = set()
    if new < self.tokens and Fraction(new, situation.prompt) < Fraction(str(self.share)):
        reasons.add(Mode.PROMPT)
    if situation.prefill_tokens > self.busy_prefill_tokens:
        reasons.add(Mode.LOAD)
    return bool(reasons) if self.mode is Mode.EITHER else self.mode in reasons


QueueRule.local = _queue_local
Conditional.local = _conditional_local


# file: cluster/handoff.py
class Tickets(Tickets):
    """Looks for the next number that fits."""

    def issue(self, uid, peer):
        """Count on until it fits."""
        self.last += 1
        while self.hand_off is HandOff.BOOTSTRAP and self.last % peer.dp_ranks != peer.dp_rank:
            self.last += 1
        return Ticket(transfer=Transfer(uid=uid, generation=self.last), worker=peer.worker, ranks=peer.ranks,
            address=peer.address)  # fmt: skip


# file: cluster/disaggregation.py
class TwoStage(TwoStage):
    """Collects orders in one list that is passed around."""

    def submit(self, request, now):
        """First stage, or straight to the second."""
        if request.uid in self.journeys:
            raise ValueError(f"request {request.uid} is already on its way")
        journey = Journey(request)
        self.journeys[request.uid] = journey
        remote = self.state is PoolState.ACTIVE and not self.local(request, now)
        orders = []
        if remote:
            try:
                chosen = self.prefill.submit(request, now)
            except OverloadedError:
                return self.fail(request.uid, "overloaded", now)
            remote = not self.local(request, now)
            if remote:
                journey.prefilling = True
                orders.extend(self.begun([chosen] if chosen is not None else (), now))
            else:
                orders.extend(self.begun(self.prefill.free(request.uid, now), now))
        if not remote:
            orders.extend(self.answer(journey, now))
        return orders

    def begun(self, decisions, now):
        """One after the other."""
        orders = []
        for decision in decisions:
            ticket = self.tickets.issue(decision.uid, self.peers[decision.worker])
            journey = self.journeys[decision.uid]
            journey.ticket = ticket
            orders.append(Prefill(decision.uid, decision.worker, ticket))
            orders.extend(self.answer(journey, now) if self.tickets.hand_off is not HandOff.PULL else ())
        return orders

    def prefilled(self, transfer, complete, now):
        """Second stage of a pull, or the end."""
        journey = self.journey(transfer)
        if journey is None:
            return []
        first_time, journey.prefilling = journey.prefilling, False
        orders = list(self.begun(self.prefill.free(transfer.uid, now), now))
        if complete:
            orders.extend(self.forget(transfer.uid, now))
        elif first_time and self.tickets.hand_off is HandOff.PULL:
            orders.extend(self.answer(journey, now))
        return orders

    def answer(self, journey, now):
        """With the weights of a worker that computes no prompt, if it does not."""
        request, uid = journey.request, journey.request.uid
        if journey.ticket:
            weights = {"track_prefill": False, "assume_reuse": False}
            if self.rule is None:
                weights["credit"] = 0.0
            near = tuple(filter(self.decode.workers.__contains__, self.reach.get(journey.ticket.worker, ())))
            request = replace(request, cost=replace(self.decode.config.cost, **weights))
            if near:
                request = replace(request, eligible=near)
        try:
            decision = self.decode.submit(request, now)
        except OverloadedError:
            return self.fail(uid, "overloaded", now)
        return self.sent(() if decision is None else (decision,))

    def forget(self, uid, now):
        """Both routers first, then the workers: the order does not matter."""
        journey = self.journeys.pop(uid)
        orders = [Cancel(uid, journey.decoder)] if journey.decoder is not None else []
        if journey.ticket is not None:
            orders.append(Release(journey.ticket.transfer, journey.ticket.worker))
            journey.ticket = None
        released = self.prefill.free(uid, now)
        orders.extend(self.begun(released, now))
        orders.extend(self.sent(self.decode.free(uid, now)))
        return orders


# file: cluster/connector.py
def parts(kv_heads, sources, targets):
    """Head by head, then neighbours put together."""
    owner = {}
    for source in reversed(range(sources)):
        for head in heads_of(source, sources, kv_heads):
            owner[head] = source
    result = []
    for target in range(targets):
        for head in heads_of(target, targets, kv_heads):
            last = result[-1] if result else None
            if last is not None and last.source == owner[head] and last.target == target:
                result[-1] = last._replace(heads=last.heads + 1)
            else:
                result.append(Part(owner[head], target, head, 1))
    return result


# file: cluster/held_memory.py
class HeldMemory(HeldMemory):
    """Takes what the row has before anything else."""

    def close(self, request):
        """Keep, or free."""
        ended, marked = request.finish_reason, request in self.marked
        if ended:
            self.marked.pop(request, None)
        if not (marked and ended == "length"):
            return super().close(request)
        self.share(request)
        row = request.row
        node, count = self.shared.pop(row)
        pages = list(self.table.pages(row))
        self.holds[request] = Hold(node=node, shared=count, pages=pages, tokens=request.prompt_len, filled=False)
        self.release(request, len(pages))
        return None


class HeldTraceMemory(HeldMemory, TraceMemory):
    """The same for traces."""


# file: cluster/sender.py
class Sender(Sender):
    """Asks of everything whether it may still begin."""

    def ended(self, request, now):
        """Three kinds of end."""
        transfer = self.requests.pop(request, None)
        held = request in self.memory.holds
        if transfer is None:
            return []
        if transfer in self.ended_at:
            if held:
                self.memory.let_go(request)
            return []
        if not held:
            return self.release(transfer, now)
        record = self.records.get(transfer)
        if record is None:
            record = self.records[transfer] = Sending(0)
        record.request, record.pages = request, tuple(self.memory.holds[request].pages)
        record.expiry = now + self.expiry
        orders = []
        while record.asks:
            orders += self.serve(record, record.asks.pop(0), now)
        return orders

    def ask(self, ask, now):
        """Late, twice, early, or in time."""
        if ask.transfer in self.ended_at:
            return [Refused(ask.transfer, ask.rank)]
        if ask.transfer not in self.records:
            self.records[ask.transfer] = Sending(expiry=ask.until)
        record = self.records[ask.transfer]
        again = ask.rank in record.asked
        if not again:
            record.asked.append(ask.rank)
            if record.request is not None:
                return self.serve(record, ask, now)
            record.asks.append(ask)
        return []

    def serve(self, record, ask, now):
        """One Copy for each part of this rank."""
        fits = len(ask.pages) <= len(record.pages)
        if not fits or now >= record.expiry or now >= ask.until:
            return [Refused(ask.transfer, ask.rank)]
        table = parts(self.kv_heads, self.ranks, ask.ranks)
        record.needed = len(table)
        mine = [part for part in table if part.target == ask.rank]
        if not ask.pages:
            record.sent += len(mine)
            return self.settle(ask.transfer, now)
        skipped = len(record.pages) - len(ask.pages)
        pairs = tuple((record.pages[skipped + i], page) for i, page in enumerate(ask.pages))
        record.sending += len(mine)
        return [Copy(ask.transfer, part, pages=pairs, until=ask.until + GRACE_NS) for part in mine]

    def settle(self, transfer, now):
        """Ended for good, or not yet."""
        record = self.records[transfer]
        over = record.needed == record.sent or record.expiry <= now
        if not over or record.sending > 0:
            return []
        self.records.pop(transfer)
        self.ended_at[transfer] = now
        if record.request:
            self.memory.let_go(record.request)
        return list(Refused(transfer, ask.rank) for ask in record.asks)  # noqa: C400


# file: cluster/receiver.py
class Receiver(Receiver):
    """Counts down a dictionary."""

    def receive(self, request, ticket, now):
        """Ask, then note what will come."""
        hold, until = self.memory.holds[request], now + self.expiry
        missing = self.memory.missing(request)
        request.hit_tokens = hold.shared * self.memory.page_size
        orders = []
        for rank in range(self.ranks):
            orders.append(Ask(ticket.transfer, ticket.worker, rank, self.ranks, tuple(missing), until))
        if missing:
            coming = [part.target for part in parts(self.kv_heads, ticket.ranks, self.ranks)]
            outstanding = {rank: coming.count(rank) for rank in range(self.ranks)}
            record = Receiving(request, ticket, outstanding, arrived=len(missing), until=until + GRACE_NS)
            self.records[ticket.transfer] = record
        else:
            self.memory.fill(request, 0)
            orders.append(Start(request))
        return orders

    def hear(self, transfer, rank, copies, pages, now):
        """Only for those that still wait for this rank."""
        record = self.records.get(transfer)
        if record is not None and record.outstanding[rank] > 0:
            record.outstanding[rank] -= copies
            if pages < record.arrived:
                record.arrived = pages
            if sum(record.outstanding.values()) == 0:
                return self.finish((record,), now)
        return []

    def finish(self, records, now):
        """Four ends."""
        orders = []
        for record in list(records):
            transfer = record.ticket.transfer
            self.records.pop(transfer)
            whole = record.arrived >= len(self.memory.missing(record.request))
            if not whole:
                orders.append(Release(transfer, record.ticket.worker))
            if record.ended:
                self.memory.let_go(record.request)
            elif whole or self.recompute:
                self.memory.fill(record.request, record.arrived)
                orders.append(Start(record.request))
            else:
                self.memory.let_go(record.request)
                orders.append(Stop(record.request))
        orders.extend(self.retry(now))
        return orders

    def abort(self, request, now):
        """By where it is."""
        waiting = [ticket for each, ticket in self.queue if each is request]
        if waiting:
            self.queue = deque(entry for entry in self.queue if entry[0] is not request)
            return [Release(waiting[0].transfer, waiting[0].worker), *self.retry(now)]
        coming = next((record for record in self.records.values() if record.request is request), None)
        if coming is not None:
            coming.ended = True
            return [Release(coming.ticket.transfer, coming.ticket.worker)]
        if request in self.memory.holds:
            self.memory.let_go(request)
            return self.retry(now)
        return []
