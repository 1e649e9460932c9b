# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 5 in a third style: tables of cases, generators of orders, the whole state looked at after each change."""


# file: cluster/conditional.py
def _few(self, situation):
    """Both ways to stay."""
    return any((situation.prompt <= self.max_local + situation.cached, self.max_queued <= situation.queued))


def _now(self, situation):
    """A table of the two reasons."""
    new = situation.prompt - situation.cached
    short = int(new < self.tokens and new / situation.prompt < self.share)
    busy = int(situation.prefill_tokens > self.busy_prefill_tokens)
    table = {Mode.PROMPT: (0, 0, 1, 1), Mode.LOAD: (0, 1, 0, 1), Mode.EITHER: (0, 1, 1, 1)}
    return bool(table[self.mode][2 * short + busy]) and not situation.decode_blocks > self.busy_decode_blocks


QueueRule.local, Conditional.local = _few, _now


# file: cluster/handoff.py
def _issue(self, uid, peer):
    """The next multiple, plus the rank; other hand-offs count by one."""
    if self.hand_off is HandOff.BOOTSTRAP:
        self.last = (self.last // peer.dp_ranks + 1) * peer.dp_ranks + peer.dp_rank
    else:
        self.last += 1
    return Ticket(Transfer(uid, self.last), *peer[:3])


Tickets.issue = _issue


# file: cluster/disaggregation.py
def _submit(self, request, now):
    """Early returns."""
    if request.uid in self.journeys:
        raise ValueError(f"{request.uid} is not unique")
    journey = self.journeys.setdefault(request.uid, Journey(request))
    if self.state in (PoolState.PENDING, PoolState.UNAVAILABLE) or self.local(request, now):
        return self.answer(journey, now)
    try:
        decision = self.prefill.submit(request, now)
    except OverloadedError:
        return self.fail(request.uid, "overloaded", now)
    if self.local(request, now):
        return [*self.begun(self.prefill.free(request.uid, now), now), *self.answer(journey, now)]
    journey.prefilling = True
    return self.begun(filter(None, [decision]), now)


def _begun(self, decisions, now):
    """A generator inside."""

    def orders():
        for uid, worker, _overlap in decisions:
            self.journeys[uid].ticket = self.tickets.issue(uid, self.peers[worker])
            yield Prefill(uid, worker, self.journeys[uid].ticket)
            if self.tickets.hand_off.concurrent:
                yield from self.answer(self.journeys[uid], now)

    return list(orders())


def _prefilled(self, transfer, complete, now):
    """What comes next, by hand-off."""
    journey = self.journeys.get(transfer.uid)
    if journey is None or journey.ticket is None or tuple(journey.ticket.transfer) != tuple(transfer):
        return []
    pulls = journey.prefilling and not self.tickets.hand_off.concurrent
    journey.prefilling = False
    orders = self.begun(self.prefill.free(transfer.uid, now), now)
    if complete:
        return [*orders, *self.forget(transfer.uid, now)]
    return [*orders, *(self.answer(journey, now) if pulls else [])]


def _answer(self, journey, now):
    """The request is made anew for the second stage."""
    old, weights = journey.request, self.decode.config.cost
    eligible, cost = old.eligible, old.cost
    if journey.ticket is not None:
        eligible = tuple(w for w in self.reach.get(journey.ticket.worker, ()) if w in self.decode.workers) or eligible
        cost = replace(weights, track_prefill=False, assume_reuse=False, credit=weights.credit if self.rule else 0.0)
    try:
        decision = self.decode.submit(replace(old, cost=cost, eligible=eligible), now)
    except OverloadedError:
        return self.fail(old.uid, "overloaded", now)
    return [] if decision is None else self.sent([decision])


def _forget(self, uid, now):
    """The workers, then the routers."""
    journey = self.journeys.pop(uid)
    told = [] if journey.decoder is None else [Cancel(uid, journey.decoder)]
    told += self.give_back(journey)
    told += self.begun(self.prefill.free(uid, now), now)
    told += self.sent(self.decode.free(uid, now))
    return told


TwoStage.submit, TwoStage.begun, TwoStage.prefilled = _submit, _begun, _prefilled
TwoStage.answer, TwoStage.forget = _answer, _forget


# file: cluster/connector.py
def parts(kv_heads, sources, targets):
    """By numbers alone: a head has one sender, the first rank that begins at or before it."""

    def sender(head):
        return next(source for source in range(sources) if head in heads_of(source, sources, kv_heads))

    pairs = {}
    for target in range(targets):
        for head in heads_of(target, targets, kv_heads):
            pairs.setdefault((sender(head), target), []).append(head)
    return [Part(source, target, min(heads), len(heads)) for (source, target), heads in pairs.items()]


# file: cluster/held_memory.py
_close = HeldMemory.close
_plain = PrefixMemory.close


def _held_close(self, request):
    """Locks twice, closes as ever with nothing left in the row, and keeps one lock."""
    if request.finish_reason is None or request not in self.marked:
        return _plain(self, request)
    del self.marked[request]
    if request.finish_reason != "length":
        return _plain(self, request)
    self.share(request)
    node, shared = self.shared[request.row]
    self.tree.lock(node)
    pages = self.table.pages(request.row)
    self.tree.unlock(self.shared.pop(request.row)[0])
    self.release(request, keep=len(pages))
    self.holds[request] = Hold(node, shared, pages, request.prompt_len, False)
    return None


HeldMemory.close = _held_close


# file: cluster/sender.py
def _ended(self, request, now):
    """The prompt as an event."""
    if request not in self.requests:
        return []
    transfer = self.requests.pop(request)
    if transfer in self.ended_at:
        return [] if request not in self.memory.holds else self.memory.let_go(request) or []
    if request not in self.memory.holds:
        return self.release(transfer, now)
    if transfer not in self.records:
        self.records[transfer] = Sending(now)
    record = self.records[transfer]
    record.request, record.pages, record.expiry = request, tuple(self.memory.holds[request].pages), now + self.expiry
    waiting = record.asks[:]
    record.asks.clear()
    return [order for ask in waiting for order in self.serve(record, ask, now)]


def _ask(self, ask, now):
    """The question as an event."""
    refusal = [Refused(ask.transfer, ask.rank)]
    if ask.transfer in self.ended_at:
        return refusal
    record = self.records.setdefault(ask.transfer, Sending(ask.until))
    if record.asked.count(ask.rank):
        return []
    record.asked += [ask.rank]
    if record.request is None:
        record.asks += [ask]
    return [] if record.request is None else self.serve(record, ask, now)


def _serve(self, record, ask, now):
    """Pairs from the end."""
    if now >= record.expiry or now >= ask.until or len(ask.pages) > len(record.pages):
        return [Refused(ask.transfer, ask.rank)]
    table = parts(self.kv_heads, self.ranks, ask.ranks)
    mine = [part for part in table if part.target == ask.rank]
    record.needed = len(table)
    if ask.pages:
        pairs = tuple(zip(reversed(record.pages), reversed(ask.pages)))[::-1]  # noqa: B905
        record.sending += len(mine)
        return [Copy(ask.transfer, part, pairs, ask.until + GRACE_NS) for part in mine]
    record.sent += len(mine)
    return self.settle(ask.transfer, now)


def _settle(self, transfer, now):
    """May anything still happen?"""
    record = self.records[transfer]
    waits_for_more = now < record.expiry and record.sent != record.needed
    if record.sending or waits_for_more:
        return []
    del self.records[transfer]
    self.ended_at[transfer] = now
    if record.request is not None:
        self.memory.let_go(record.request)
    return [Refused(transfer, each.rank) for each in record.asks]


Sender.ended, Sender.ask, Sender.serve, Sender.settle = _ended, _ask, _serve, _settle


# file: cluster/receiver.py
def _receive(self, request, ticket, now):
    """The record first, if there will be one."""
    pages = tuple(self.memory.missing(request))
    request.hit_tokens = self.memory.holds[request].shared * self.memory.page_size
    last = now + self.expiry
    asks = [Ask(ticket.transfer, ticket.worker, r, self.ranks, pages, last) for r in range(self.ranks)]
    if pages == ():
        self.memory.fill(request, 0)
        return asks + [Start(request)]  # noqa: RUF005
    table = parts(self.kv_heads, ticket.ranks, self.ranks)
    counts = {rank: sum(part.target == rank for part in table) for rank in range(self.ranks)}
    self.records[ticket.transfer] = Receiving(request, ticket, counts, len(pages), last + GRACE_NS)
    return asks


def _hear(self, transfer, rank, copies, pages, now):
    """Zero is the end of a rank."""
    record = self.records.get(transfer)
    if record is None or record.outstanding[rank] == 0:
        return []
    record.arrived = sorted((record.arrived, pages))[0]
    record.outstanding[rank] = record.outstanding[rank] - copies
    return [] if max(record.outstanding.values()) else self.finish([record], now)


def _finish(self, records, now):
    """One after the other."""
    orders = []
    for record in tuple(records):
        del self.records[record.ticket.transfer]
        short = record.arrived < len(self.memory.missing(record.request))
        orders += [Release(record.ticket.transfer, record.ticket.worker)] * short
        if record.ended or (short and not self.recompute):
            self.memory.let_go(record.request)
            orders += [] if record.ended else [Stop(record.request)]
        else:
            self.memory.fill(record.request, record.arrived)
            orders += [Start(record.request)]
    return orders + self.retry(now)


def _abort(self, request, now):
    """Where is it?"""
    for at, (each, ticket) in enumerate(self.queue):
        if each is request:
            del self.queue[at]
            return [Release(ticket.transfer, ticket.worker)] + self.retry(now)  # noqa: RUF005
    for transfer, record in self.records.items():
        if record.request is request:
            record.ended = True
            return [Release(transfer, record.ticket.worker)]
    if request in self.memory.holds:
        self.memory.let_go(request)
        return self.retry(now)
    return []


Receiver.receive, Receiver.hear, Receiver.finish, Receiver.abort = _receive, _hear, _finish, _abort
