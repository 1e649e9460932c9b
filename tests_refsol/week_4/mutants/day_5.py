"""Plausible wrong solutions of Week 4 Day 5, and the case that catches each."""

from course.mutants import Mutant

RULE, HANDOFF, ROUTER = "cluster/conditional.py", "cluster/handoff.py", "cluster/disaggregation.py"
CONNECTOR, MEMORY, SENDER, RECEIVER = (
    f"cluster/{name}.py" for name in ("connector", "held_memory", "sender", "receiver")
)


def rule(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, RULE, old, new, message, killer)


def route(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, ROUTER, old, new, message, killer)


def send(name: str, old: str, new: str, message: str, killer: str, file: str = SENDER) -> Mutant:
    return Mutant(name, 3, file, old, new, message, killer)


def receive(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, RECEIVER, old, new, message, killer)


QUEUE = "situation.prompt - situation.cached <= self.max_local or situation.queued >= self.max_queued"
SHORT = "new < self.tokens and new / situation.prompt < self.share"
WANTED = "return wanted and situation.decode_blocks <= self.busy_decode_blocks"
BUSY = "situation.prefill_tokens > self.busy_prefill_tokens"

_RULES = [
    rule("v02-and", QUEUE, QUEUE.replace(" or ", " and "), "one of the two limits is enough", "TheFirstRuleNeedsBoth"),
    rule("v02-edge", QUEUE, QUEUE.replace("<=", "<"), "exactly max_local tokens", "TheFirstRuleNeedsBoth"),
    rule("v02-full", QUEUE, QUEUE.replace(">=", ">"), "exactly max_queued prompts", "TheFirstRuleNeedsBoth"),
    rule(
        "v02-whole-prompt",
        QUEUE,
        QUEUE.replace(" - situation.cached", ""),
        "cached tokens need not be computed",
        "TheFirstRuleNeedsBoth",
    ),
    rule("tokens-edge", SHORT, SHORT.replace("new < ", "new <= "), "2048 tokens are not fewer", "TheTruthTable"),
    rule("share-edge", SHORT, SHORT.replace("t < ", "t <= "), "0.7 is not less than 0.7", "TheTruthTable"),
    rule(
        "one-is-enough", SHORT, SHORT.replace(" and ", " or "), "one of the two limits is not enough", "TheTruthTable"
    ),
    rule(
        "a-product",
        SHORT,
        "new < self.tokens and new < self.share * situation.prompt",
        "the share times the prompt is rounded",
        "TheTruthTable",
    ),
    rule(
        "cached-share",
        SHORT,
        SHORT.replace("new / s", "situation.cached / s"),
        "the share that is cached was compared",
        "TheTruthTable",
    ),
    rule("no-veto", WANTED, "return wanted", "a busy decode worker computes no prompt", "ModesAndTheVeto"),
    rule("veto-edge", WANTED, WANTED.replace("<=", "<"), "at its limit is not over it", "ModesAndTheVeto"),
    rule("busy-edge", BUSY, BUSY.replace(">", ">="), "a prefill worker at its limit", "ModesAndTheVeto"),
    rule(
        "both",
        "Mode.EITHER: short or busy",
        "Mode.EITHER: short and busy",
        "either reason is enough",
        "ModesAndTheVeto",
    ),
]

ACTIVE = "if self.state is not PoolState.ACTIVE or self.local(request, now):"
AGAIN = """        if self.local(request, now):
            return self.begun(self.prefill.free(uid, now), now) + self.answer(journey, now)
"""
AT_ONCE = "            if self.tickets.hand_off.concurrent:\n                orders += self.answer(journey, now)\n"
FIRST = """        told = self.tickets.hand_off.concurrent or not journey.prefilling
        journey.prefilling = False
        orders = self.begun(self.prefill.free(transfer.uid, now), now)
"""
COMPLETE = """        if complete:
            return orders + self.forget(transfer.uid, now)
"""
STALE = """        journey = self.journey(transfer)
        if journey is None:
            return []  # the client has left, and the worker was told; or it is an earlier try's
"""
COST = "cost = replace(cost, credit=credit, track_prefill=False, assume_reuse=False)"
CANCEL = "[] if journey.decoder is None else [Cancel(uid, journey.decoder)]"
FREED = "return orders + self.begun(self.prefill.free(uid, now), now) + self.sent(self.decode.free(uid, now))"
LATER = "return orders if told else orders + self.answer(journey, now)"
ROOM = "self.last += (peer.dp_rank - self.last) % peer.dp_ranks"

_ROUTES = [
    Mutant("one-number", 2, HANDOFF, "        self.last += 1\n", "", "given twice", "EveryHandOffHasItsOwnName"),
    Mutant(
        "uid-is-enough",
        2,
        HANDOFF,
        "Transfer(uid, self.last)",
        "Transfer(uid, uid)",
        "given twice",
        "EveryHandOffHasItsOwnName",
    ),
    Mutant(
        "other-engine",
        2,
        HANDOFF,
        ROOM,
        ROOM.replace("peer.dp_rank -", "peer.dp_rank +"),
        "belong to other engines",
        "EveryHandOffHasItsOwnName",
    ),
    route(
        "any-state", ACTIVE, "if self.local(request, now):", "it was refused", "WithoutAPrefillPoolTheDecoderDoesAll"
    ),
    route("asked-once", AGAIN, "", "asked again when a prefill worker is chosen", "ALocalPromptSkipsTheFirstStage"),
    route(
        "left-behind",
        AGAIN,
        AGAIN.replace("self.begun(self.prefill.free(uid, now), now) + ", ""),
        "must be freed at the prefill router",
        "ALocalPromptSkipsTheFirstStage",
    ),
    route(
        "one-uid-twice",
        "        if uid in self.journeys:\n            raise",
        "        if False:\n            raise",
        "refuse that before anything changes",
        "OneUidOneRequest",
    ),
    route(
        "told-twice-decoded-twice",
        "told = self.tickets.hand_off.concurrent or not journey.prefilling",
        "told = self.tickets.hand_off.concurrent",
        "the same answer came again",
        "ToldTwiceIsDecodedOnce",
    ),
    route(
        "any-worker-s-ticket",
        "self.tickets.issue(uid, self.peers[worker])",
        "self.tickets.issue(uid, next(iter(self.peers.values())))",
        "another worker than the one that was chosen",
        "TheTicketNamesItsWorker",
    ),
    route(
        "decoder-s-decisions-dropped",
        FREED,
        FREED.replace("self.sent(self.decode.free(uid, now))", "(self.decode.free(uid, now) and [])"),
        "the decision for a request that waited got lost",
        "WhoWaitsIsToldOfACancel",
    ),
    route("never-at-once", AT_ONCE, "", "the decode worker was not told at once", "BothAreToldAtOnce"),
    route(
        "always-at-once",
        AT_ONCE,
        "            orders += self.answer(journey, now)\n",
        "told before there was anything to pull",
        "PullTellsTheDecoderAfterwards",
    ),
    route("told-twice", LATER, "return orders + self.answer(journey, now)", "is here already", "BothAreToldAtOnce"),
    route("never-told", LATER, "return orders", "the decode worker was never told", "PullTellsTheDecoderAfterwards"),
    route(
        "decoder-tells",
        FIRST,
        FIRST.replace("self.tickets.hand_off.concurrent or not journey.prefilling", "journey.decoder is not None"),
        "`decoder` does not tell",
        "OneDecodeWorkerIsEnough",
    ),
    route("eos-decoded", COMPLETE, "", "the answer is complete, and yet", "TheFirstTokenMayBeTheLast"),
    route(
        "any-try",
        STALE,
        STALE.replace("self.journey(transfer)", "self.journeys.get(transfer.uid)"),
        "an answer of the first try was taken",
        "AnOldAnswerIsNobodys",
    ),
    route(
        "decisions-dropped",
        FIRST,
        FIRST.replace("orders = self.begun(self.prefill.free(transfer.uid, now), now)", "orders = []").replace(
            "        orders", "        self.prefill.free(transfer.uid, now)\n        orders"
        ),
        "the decision for a request that waited got lost",
        "WhoWaitsIsToldLater",
    ),
    route("own-weights", COST, "pass", "the router's own weights were used", "TheDecoderIsChosenByItsLoad"),
    route(
        "request-weights",
        "            cost = self.decode.config.cost\n",
        "            cost = request.cost or self.decode.config.cost\n",
        "not those that came with the request",
        "TheDecoderIsChosenByItsLoad",
    ),
    route("credit-kept", COST, COST.replace("credit=credit, ", ""), "w must be 0", "TheDecoderIsChosenByItsLoad"),
    route(
        "prefill-tracked",
        COST,
        COST.replace("track_prefill=False, ", ""),
        "no prompt is computed there",
        "TheDecoderIsChosenByItsLoad",
    ),
    route(
        "reuse-assumed",
        COST,
        COST.replace(", assume_reuse=False", ""),
        "reuse must not be assumed",
        "TheDecoderIsChosenByItsLoad",
    ),
    route(
        "credit-lost",
        "0.0 if self.rule is None else cost.credit",
        "0.0",
        "cached blocks keep their credit",
        "TheDecoderIsChosenByItsLoad",
    ),
    route(
        "anywhere",
        "eligible=tuple(near) or request.eligible",
        "eligible=request.eligible",
        "far away",
        "NearWorkersComeFirst",
    ),
    route(
        "orphan",
        "        orders += self.give_back(journey)\n        return orders +",
        "        return orders +",
        "nobody tells the prefill worker",
        "CancelTellsWhoeverKeepsSomething",
    ),
    route("decodes-on", CANCEL, "[]", "the decode worker was not told", "CancelTellsWhoeverKeepsSomething"),
    route(
        "kept-in-the-books",
        FREED,
        "return orders + self.begun(self.prefill.free(uid, now), now)",
        "must be freed at both routers",
        "CancelTellsWhoeverKeepsSomething",
    ),
    route(
        "kept-at-prefill",
        FREED,
        "return orders + self.sent(self.decode.free(uid, now))",
        "must be freed at both routers",
        "CancelTellsWhoeverKeepsSomething",
    ),
]

DONE = "done = stop\n"
WANT = 'request.finish_reason == "length" and request in self.marked'
MARK = """        if request.finish_reason is not None:
            self.marked.pop(request, None)
"""
SHARED = """        self.share(request)
        pages, (node, shared) = self.table.pages(request.row), self.shared.pop(request.row)
"""
STOPPED = """        if request not in self.memory.holds:
            return self.release(transfer, now)
"""
GONE = """        if transfer in self.ended_at:
            self.memory.let_go(request)
            return []
"""
ANSWERED = """        if ask.transfer in self.ended_at:
            return [Refused(ask.transfer, ask.rank)]
"""
TWICE = """        if ask.rank in record.asked:
            return []  # the network said it twice
"""
LATE = "now >= min(record.expiry, ask.until) or count > len(record.pages)"
SETTLE = "if record.sending or not (record.sent == record.needed or now >= record.expiry):"
NONE = """        if count == 0:
            record.sent += len(mine)
            return self.settle(ask.transfer, now)
"""
KEEP = "self.release(request, keep=len(pages))"

_SENDS = [
    send("each-sends", DONE, "pass\n", "are sent by each of them", "EachHeadGoesWhereItIsNeeded", CONNECTOR),
    send(
        "any-end",
        WANT,
        "request in self.marked",
        "only a request that ended with length",
        "ThePagesOutliveTheRow",
        MEMORY,
    ),
    send("all-kept", WANT, WANT.split(" and ")[0], "only a marked request", "ThePagesOutliveTheRow", MEMORY),
    send(
        "preempted-forgotten",
        MARK,
        "        self.marked.pop(request, None)\n",
        "the mark of a request that was preempted got lost",
        "ThePagesOutliveTheRow",
        MEMORY,
    ),
    send(
        "half-page-lost",
        KEEP,
        "self.release(request, keep=shared)",
        "the last page, which is not whole, was freed",
        "ThePagesOutliveTheRow",
        MEMORY,
    ),
    send("not-shared", SHARED, SHARED.split("\n")[1] + "\n", "is dead", "WhatIsHeldIsShared", MEMORY),
    send(
        "read-too-early",
        SHARED,
        """        pages = self.table.pages(request.row)
        self.share(request)
        node, shared = self.shared.pop(request.row)
""",
        "were read before it was shared",
        "WhatIsHeldIsShared",
        MEMORY,
    ),
    send(
        "filled",
        "Hold(node, shared, pages, request.prompt_len, filled=False)",
        "Hold(node, shared, pages, request.prompt_len, filled=True)",
        "is not `filled`",
        "HoldsWithOneBeginning",
        MEMORY,
    ),
    send(
        "any-end-is-ours",
        "self.requests.pop(request, None)",
        "self.requests.pop(request)",
        "and raises nothing",
        "OnlyAcceptedPromptsAreHandedOver",
    ),
    send(
        "refusal-frees",
        "            return [Refused(ask.transfer, ask.rank)]\n        every",
        "            return [Refused(ask.transfer, ask.rank), *self.settle(ask.transfer, now)]\n        every",
        "a question that is refused frees nothing",
        "NothingBeginsAfterTheExpiry",
    ),
    send(
        "waiting-forgotten",
        "for ask in asks for order in",
        "for ask in asks[:0] for order in",
        "the question that came before the prompt was forgotten",
        "EitherMayComeFirst",
    ),
    send(
        "first-waiter-only",
        "for ask in asks for order in",
        "for ask in asks[:1] for order in",
        "only the first rank that waited",
        "AllWhoWaitAreServed",
    ),
    send(
        "kept-as-long-as-asked",
        "record.request, record.expiry = request, now + self.expiry",
        "record.request, record.expiry = request, max(record.expiry, now + self.expiry)",
        "does not make the pages be kept longer",
        "AllWhoWaitAreServed",
    ),
    send(
        "ended-and-here",
        "transfer = self.requests.pop(request, None)",
        "transfer = self.requests.get(request)",
        "left in `requests`",
        "AllWhoWaitAreServed",
    ),
    send(
        "a-token-too-many",
        "Hold(node, shared, pages, request.prompt_len, filled=False)",
        "Hold(node, shared, pages, request.device_len, filled=False)",
        "has no keys and values yet",
        "ThePagesOutliveTheRow",
        MEMORY,
    ),
    send(
        "nothing-said",
        STOPPED,
        STOPPED.replace("self.release(transfer, now)", "[]"),
        "a prompt that will never come must get an answer",
        "AnotherEndHandsNothingOver",
    ),
    send(
        "released-and-kept", GONE, "", "a prompt that was given up while it was computed is kept", "ReleasedAtAnyMoment"
    ),
    send(
        "no-expiry",
        "record.request, record.expiry = request, now + self.expiry",
        "record.request = request",
        "it is kept for 480 s from when it was computed",
        "EitherMayComeFirst",
    ),
    send(
        "first-come-only",
        "            record.asks.append(ask)\n            return []\n",
        "            return [Refused(ask.transfer, ask.rank)]\n",
        "comes before the prompt was refused",
        "EitherMayComeFirst",
    ),
    send("late-unanswered", ANSWERED, "", "late questions wait for ever", "ReleasedAtAnyMoment"),
    send("said-twice", TWICE, "", "a question that came twice was answered twice", "SaidTwiceIsSentOnce"),
    send(
        "late-start",
        LATE,
        LATE.replace("min(record.expiry, ask.until)", "ask.until"),
        "a copy began after the expiry",
        "NothingBeginsAfterTheExpiry",
    ),
    send(
        "late-start-of-two",
        LATE,
        LATE.replace("min(record.expiry, ask.until)", "ask.until"),
        "a copy began after the expiry",
        "NotFreedWhileSending",
    ),
    send(
        "expiry-edge",
        LATE,
        LATE.replace(">= min", "> min"),
        "a copy began after the expiry",
        "NothingBeginsAfterTheExpiry",
    ),
    send(
        "question-for-ever",
        LATE,
        LATE.replace("min(record.expiry, ask.until)", "record.expiry"),
        "who asked waits no longer",
        "AQuestionIsGoodForSomeTime",
    ),
    send("too-many", LATE, LATE.split(" or ")[0], "ValueError", "OnlyTheLastPagesGo"),
    send(
        "first-pages",
        "zip(record.pages[-count:], ask.pages, strict=True)",
        "zip(record.pages[:count], ask.pages, strict=True)",
        "the last pages go, not the first",
        "OnlyTheLastPagesGo",
    ),
    send(
        "one-rank-is-all",
        "record.needed = len(every)",
        "record.needed = sum(part.target == ask.rank for part in every)",
        "the first that has all must not free the pages",
        "KeptUntilAllHaveIt",
    ),
    send(
        "empty-unheard",
        "            record.sent += len(mine)\n",
        "",
        "nobody needs these pages: the decode worker has all",
        "NothingMissingIsSentAtOnce",
    ),
    send(
        "empty-is-all",
        NONE,
        NONE.replace("len(mine)", "len(every)"),
        "only one of two ranks has asked",
        "NothingMissingIsSentAtOnce",
    ),
    send(
        "freed-while-sending",
        SETTLE,
        SETTLE.replace("record.sending or ", ""),
        "pages were freed while they are sent",
        "NotFreedWhileSending",
    ),
    send(
        "never-too-old",
        SETTLE,
        SETTLE.replace(" or now >= record.expiry", ""),
        "nobody takes these pages any more",
        "NothingBeginsAfterTheExpiry",
    ),
    send(
        "never-done",
        SETTLE,
        SETTLE.replace("record.sent == record.needed or ", ""),
        "all was sent, and the pages are kept",
        "EitherMayComeFirst",
    ),
    send(
        "waits-unanswered",
        "        return [Refused(transfer, ask.rank) for ask in record.asks]\n",
        "        return []\n",
        "who waits for a prompt that was given up must get an answer",
        "ReleasedAtAnyMoment",
    ),
    send(
        "no-tombstone",
        "        self.ended_at[transfer] = now\n",
        "",
        "it was given up before it came",
        "ReleasedAtAnyMoment",
    ),
]

ASKS = "for rank in range(self.ranks)\n"
EMPTY = "            return [*asks, Start(request)]\n"
HEARD = "if record is None or not record.outstanding[rank]:"
ALL = "if not any(record.outstanding.values()) else []"
GIVE = """            if not complete:
                orders.append(Release(ticket.transfer, ticket.worker))
"""
RUN = "if not record.ended and (complete or self.recompute):"
KEPT = """                record.ended = True
                return [Release(record.ticket.transfer, record.ticket.worker)]
"""
LEFT = "return [Release(entry[1].transfer, entry[1].worker), *self.retry(now)]"
RECEIVED = """        self.memory.let_go(request)
        return self.retry(now)
"""

_RECEIVES = [
    receive(
        "hits-are-pages",
        "self.memory.holds[request].shared * self.memory.page_size",
        "self.memory.holds[request].shared",
        "counts tokens, not pages",
        "AskForWhatIsMissing",
    ),
    receive(
        "refused-once",
        "record.outstanding[rank] -= copies",
        "record.outstanding[rank] -= 1",
        "still waits for its other copies",
        "ARefusalEndsAllOfItsRank",
    ),
    receive(
        "partly-is-nothing",
        "self.memory.fill(request, record.arrived)",
        "self.memory.fill(request, record.arrived if complete else 0)",
        "expected",
        "WhatDidNotArriveIsComputed",
    ),
    receive(
        "only-the-first-may-leave",
        "for entry in self.queue:",
        "for entry in list(self.queue)[:1]:",
        "expected",
        "PagesGoToTheOldest",
    ),
    receive(
        "asks-for-all",
        "pages = tuple(self.memory.missing(request))",
        "pages = tuple(self.memory.holds[request].pages[: -(-request.prompt_len // self.memory.page_size)])",
        "what is cached here was asked for as well",
        "AskForWhatIsMissing",
    ),
    receive("one-rank-asks", ASKS, "for rank in range(1)\n", "each must ask", "AskForWhatIsMissing"),
    receive(
        "silent-hit",
        EMPTY,
        "            return [Start(request)]\n",
        "does not hear that its pages are not needed",
        "NothingMissingStartsAtOnce",
    ),
    receive(
        "no-grace",
        "len(pages), until + GRACE_NS)",
        "len(pages), until)",
        "a copy that began in time may last 60 s more",
        "GivenUpInTime",
    ),
    receive(
        "first-rank-starts",
        ALL,
        "if not record.outstanding[rank] else []",
        "it runs though not all has arrived",
        "RunsWhenAllHasArrived",
    ),
    receive(
        "first-copy-starts",
        "            outstanding[part.target] += 1\n",
        "            outstanding[part.target] = 1\n",
        "it runs though not all has arrived",
        "RunsWhenAllHasArrived",
    ),
    receive("any-rank", HEARD, "if record is None:", "action 4", "OnlyItsOwnCopiesCount"),
    receive(
        "most-arrived",
        "record.arrived = min(record.arrived, pages)",
        "record.arrived = pages",
        "only what all have counts",
        "WhatDidNotArriveIsComputed",
    ),
    receive("keeps-p-waiting", GIVE, "", "release them", "WhatDidNotArriveIsComputed"),
    receive("always-recomputes", RUN, "if not record.ended:", "it should fail", "WhatDidNotArriveIsComputed"),
    receive(
        "never-recomputes",
        RUN,
        RUN.replace("(complete or self.recompute)", "complete"),
        "it should be computed again",
        "WhatDidNotArriveIsComputed",
    ),
    receive(
        "starts-the-dead",
        RUN,
        RUN.replace("not record.ended and ", ""),
        "a request whose client left was started",
        "AbortAtEveryPoint",
    ),
    receive(
        "late-write",
        KEPT,
        """                del self.records[record.ticket.transfer]
                self.memory.let_go(request)
                return [Release(record.ticket.transfer, record.ticket.worker)]
""",
        "a late write hits another's KV",
        "AbortAtEveryPoint",
    ),
    receive(
        "late-write-somewhere",
        KEPT,
        """                del self.records[record.ticket.transfer]
                self.memory.let_go(request)
                return [Release(record.ticket.transfer, record.ticket.worker)]
""",
        "while they are written to",
        "AnythingMayGoWrong",
    ),
    receive(
        "leak-at-p",
        KEPT,
        KEPT.replace("[Release(record.ticket.transfer, record.ticket.worker)]", "[]"),
        "the prefill worker keeps its pages until they expire",
        "AbortAtEveryPoint",
    ),
    receive(
        "leak-at-p-without-pages",
        LEFT,
        "return self.retry(now)",
        "the prefill worker keeps its pages until they expire",
        "AbortAtEveryPoint",
    ),
    receive(
        "leak-at-d", RECEIVED, "        return self.retry(now)\n", "the pages are never freed", "AbortAtEveryPoint"
    ),
    receive(
        "waits-behind-nobody", LEFT, LEFT.replace(", *self.retry(now)", ""), "has its turn now", "PagesGoToTheOldest"
    ),
    receive(
        "nobody-served",
        "        return orders + self.retry(now)\n\n    def abort",
        "        return orders\n\n    def abort",
        "who waits for them was not served",
        "FreedPagesServeWhoWaits",
    ),
]

MUTANTS = [*_RULES, *_ROUTES, *_SENDS, *_RECEIVES]
