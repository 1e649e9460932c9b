"""Plausible wrong solutions of Week 4 Day 4, and the case that catches each."""

from course.mutants import Mutant

HASHING, EVENTS, INDEXER, RECENT = (f"cluster/{name}.py" for name in ("hashing", "events", "indexer", "recent_index"))
ACTIVE, ROUTING, POLICIES = (f"cluster/{name}.py" for name in ("active", "routing", "policies"))
QUEUE, ROUTER = "cluster/router_queue.py", "cluster/router.py"


def names(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, HASHING, old, new, message, killer)


def news(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, EVENTS, old, new, message, killer)


def index(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, INDEXER, old, new, message, killer)


def recent(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, RECENT, old, new, message, killer)


def active(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, ACTIVE, old, new, message, killer)


def cost(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, ROUTING, old, new, message, killer)


def choose(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, POLICIES, old, new, message, killer)


def queue(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, QUEUE, old, new, message, killer)


def router(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, ROUTER, old, new, message, killer)


CHAINED = 'parent = local if parent is None else digest(pack("<QQ", parent, local))'

_NAMES = [
    names("local-names", CHAINED, "parent = local", "equal blocks have one name after any prefix",
          "NamesHoldAllThatIsBefore"),
    names("swapped", CHAINED, CHAINED.replace("parent, local)", "local, parent)"),
          "the local hash came before the parent", "NamesHoldAllThatIsBefore"),
    names("zero-is-none", CHAINED, CHAINED.replace("if parent is None", "if not parent"),
          "a parent of 0 was taken for none", "NamesHoldAllThatIsBefore"),
    names("two-blocks", "        hashes.append(parent)\n", "        hashes.append(parent)\n        parent = local\n",
          "the block before goes in with its local hash", "NamesHoldAllThatIsBefore"),
    names("forgets-the-parent", "    hashes = []\n", "    hashes = []\n    parent = None\n", "the parent is not used",
          "NamesHoldAllThatIsBefore"),
]  # fmt: skip

OLDEST = "oldest = self.last + 1 - len(self.recent)"
NEXT = "if event.number == cursor.last + 1:"
ASKED = "if cursor.asked is not None or cursor.heard <= cursor.last:"
QUESTION = "cursor.asked = Question(cursor.last + 1 if cursor.complete else None)"
TREE = "for change in (Cleared(), *answer.changes):"
COVERS = "cursor.last, cursor.complete = answer.last, True"

_NEWS = [
    news("ring-has-all", "if question.first is None or question.first < oldest:", "if question.first is None:",
         "the events that are still there were sent", "AnswersComeByAge"),
    news("only-what-is-left", "if question.first is None or question.first < oldest:",
         "first = max(question.first or 0, oldest)\n        question = Question(first)\n        if first > self.last:",
         "the events that are still there were sent, though older ones were asked for", "AnswersComeByAge"),
    news("always-the-tree", "if question.first is None or question.first < oldest:", "if True:",
         "the whole tree was sent, though the events are in the ring", "AnswersComeByAge"),
    news("nothing-is-too-new", "question.first > self.last:", "question.first > self.last + 10**9:",
         "no events at all were sent for a number to come", "AnswersComeByAge"),
    news("newest-is-too-new", "question.first > self.last:", "question.first >= self.last:",
         "the newest number is asked for, and is no number to come", "AnswersComeByAge"),
    news("twice", NEXT, "if event.number <= cursor.last + 1:", "one that came twice was applied twice",
         "EventsApplyOnceAndInOrder"),
    news("over-the-gap", f"{NEXT}\n            cursor.complete = self.index.apply(worker, event.change)\n"
         "            cursor.last += cursor.complete",
         "if event.number > cursor.last:\n            cursor.complete = self.index.apply(worker, event.change)\n"
         "            cursor.last = event.number", "one behind a gap was applied", "EventsApplyOnceAndInOrder"),
    news("asks-each-time", ASKED, "if cursor.heard <= cursor.last:", "it asks again with each event behind the gap",
         "AGapIsAskedForOnce"),
    news("asks-from-the-last", QUESTION, QUESTION.replace("cursor.last + 1", "cursor.last"),
         "it asks from the last event that it has", "AGapIsAskedForOnce"),
    news("asks-for-all", QUESTION, "cursor.asked = Question(None)", "it asks for the whole tree", "AGapIsAskedForOnce"),
    news("never-asks-again", "        cursor.asked = None\n", "", "events that were heard of are still missing",
         "AGapIsAskedForOnce"),
    news("asks-for-nothing", ASKED, "if cursor.asked is not None or cursor.heard < cursor.last:",
         "it asks although nothing is missing", "TheLastEventCanBeLost"),
    news("orphan-counted", "cursor.last += cursor.complete", "cursor.complete = True\n            cursor.last += 1",
         "the block was passed over in silence", "AnOrphanAsksForTheTree"),
    news("orphan-again", QUESTION, "cursor.asked = Question(cursor.last + 1)",
         "it asks for the event again", "AnOrphanAsksForTheTree"),
    news("never-complete-again", COVERS, "cursor.last = answer.last", "after the tree it still asks for everything",
         "AnOrphanAsksForTheTree"),
    news("tree-counted", COVERS, "cursor.last, cursor.complete = answer.last + len(answer.changes), True",
         "its changes were counted behind its last event", "ATreeIsNoEvent"),
    news("synthetic-numbers", f"{TREE}\n                self.index.apply(worker, change)\n            {COVERS}",
         "self.index.apply(worker, Cleared())\n            cursor.complete = True\n"
         "            for n, change in enumerate(answer.changes, cursor.last + 1):\n"
         "                self.take(worker, cursor, Event(n, change))",
         "its changes were counted as if they were events", "ATreeIsNoEvent"),
    news("cursor-stays", COVERS, "cursor.complete = True", "the cursor did not move", "ATreeIsNoEvent"),
    news("tree-on-top", TREE, "for change in answer.changes:", "a block that the worker has lost meanwhile stayed",
         "ATreeIsNoEvent"),
    news("old-tree", "elif answer.last > cursor.last:", "else:", "a tree that came late was applied",
         "AnOldTreeChangesNothing"),
    news("old-tree-is-no-answer", "        cursor.asked = None\n        if isinstance",
        "        if not hasattr(answer, 'changes') or answer.last > cursor.last:\n            cursor.asked = None\n"
        "        if isinstance", "must end the question, too", "AnOldTreeChangesNothing"),
    news("asks-for-what-is-not", "cursor.heard = cursor.last  #", "pass  #", "it asks again for what does not exist",
         "TooNewEndsTheQuestions"),
    news("gone-worker", """        if (cursor := self.cursors.get(worker)) is None:
            return None
        cursor.asked = None
""", "        cursor = self.cursors[worker]\n        cursor.asked = None\n", "as if it were there",
         "GoneWorkersStayGone"),
]  # fmt: skip

ORPHAN = """            if change.parent is not None and change.parent not in blocks:
                return False
            parent = None if change.parent is None else blocks[change.parent]
"""
BOTH = "both = self.holders.get(name, 0) & left"
DROPPED = "if both != left and depth:"
CLEAR = "holders[name] &= ~bit"
GONE = "gone = tuple(name for name in names if last.get(name) == number)"

_INDEX = [
    index("membership", BOTH, "both = self.holders.get(name, 0) | (left if left != -1 else 0)",
          "the prompt", "ScoresAreLeadingBlocks"),
    index("goes-on-behind-a-gap", """            if not left:
                return scores
        if names:
            scores.update(dict.fromkeys(self.workers_of(left), len(names)))
        return scores
""", """            if not left:
                break
        every = {}
        for name in names:
            for worker in self.workers_of(self.holders.get(name, 0)):
                every[worker] = every.get(worker, 0) + 1
        return every
""", "blocks behind one that is missing were counted", "ScoresAreLeadingBlocks"),
    index("only-the-best", "scores.update(dict.fromkeys(self.workers_of(left & ~both), depth))",
          "scores.update({} if both else dict.fromkeys(self.workers_of(left & ~both), depth))",
          "only those are there that have as much as the best", "ScoresAreLeadingBlocks"),
    index("zeros-too", DROPPED, "if depth == 0:\n                scores.update(dict.fromkeys(self.blocks, 0))\n"
          "            if both != left and depth:", "workers without the first block are there too",
          "ScoresAreLeadingBlocks"),
    index("one-less", "len(names)))", "len(names) - 1))", "the prompt", "ScoresAreLeadingBlocks"),
    index("external-is-the-name", "names = self.naming([block.local for block in change.blocks], parent)",
          "names = [block.external for block in change.blocks]",
          "what workers call their blocks was taken for what is in them", "NamesOfWorkersAreTheirOwn"),
    index("local-is-the-name", "names = self.naming([block.local for block in change.blocks], parent)",
          "names = [block.local for block in change.blocks]", "the prompt", "TheSameBlockElsewhereIsAnother"),
    index("parents-name-of-the-worker", "else blocks[change.parent]", "else change.parent",
          "its parent's name is a worker's own", "NamesOfWorkersAreTheirOwn"),
    index("removed-for-all", CLEAR, "holders[name] = 0", "removed for all workers", "NamesOfWorkersAreTheirOwn"),
    index("nought-is-none", ORPHAN, ORPHAN.replace("change.parent is not None and", "change.parent and").replace(
        "None if change.parent is None else blocks[change.parent]", "blocks[change.parent] if change.parent else None"),
        "a parent of 0 was taken for none", "ABlockMayBeCalledNought"),
    index("orphan-is-a-root", ORPHAN, "            parent = blocks.get(change.parent)\n",
          "blocks whose parent is unknown were taken", "WhatHappensTwiceHappensOnce"),
    index("unknown-removal", "name = blocks.pop(external, None)", "name = blocks.pop(external)",
          "to remove what is not there is no mistake", "WhatHappensTwiceHappensOnce"),
    index("turned-over", "holders[name] = holders.get(name, 0) | bit", "holders[name] = holders.get(name, 0) ^ bit",
          "stored again", "WhatHappensTwiceHappensOnce"),
    index("added-bits", "holders[name] = holders.get(name, 0) | bit", "holders[name] = holders.get(name, 0) + bit",
          "has a bit of no worker", "WhatHappensTwiceHappensOnce"),
    index("keeps-empty-entries", """                if not holders[name]:
                    del holders[name]
""", "", "blocks that nobody has stay in the index for ever", "NothingIsLeftBehind"),
    index("clears-names-only", "for external in list(blocks) if isinstance(change, Cleared) else change.blocks:",
          "if isinstance(change, Cleared):\n            blocks.clear()\n            return True\n"
          "        for external in change.blocks:", "the prompt", "NothingIsLeftBehind"),
    recent("until-and-with", "self.prompts[0].deadline <= now", "self.prompts[0].deadline < now",
           "at `ttl` ns it is over", "DecisionsAreBelievedForAWhile"),
    recent("no-limit", " or self.blocks > self.limit)", ")", "the limit is not kept", "DecisionsAreBelievedForAWhile"),
    recent("takes-all-along", GONE, "gone = tuple(name for name in names if name in last)",
           "though a later one had it too", "DecisionsAreBelievedForAWhile"),
    recent("stays-in-the-index", "            self.index.apply(worker, Removed(gone))\n", "",
           "nothing is ever forgotten", "DecisionsAreBelievedForAWhile"),
    recent("not-counted-down", "            self.blocks -= len(gone)\n", "", "blocks are counted",
           "DecisionsAreBelievedForAWhile"),
]  # fmt: skip

WITH = "return len(self.references) + len(names) - bisect_left(names, True, key=lambda n: n not in self.references)"
DONE = """            self.prefill_tokens -= request.prefill_tokens
            request.prefill_tokens = 0
"""
MERGE = "        if news.router != self.router:\n            self.take(news, now)\n"
ADD = "        self.prefill_tokens += prefill_tokens\n        self.references.update(names)\n"

_ACTIVE = [
    active("counts-active-again", WITH, "return len(self.references) + len(names)",
           "blocks that are active already were counted again", "ABlockCountsOnce"),
    active("only-the-new", WITH, "return sum(name not in self.references for name in names)",
           "only the new blocks were counted", "ABlockCountsOnce"),
    active("added-twice", "        if uid in self.requests:\n            return False\n", "",
           "a request was added twice", "ToldTwiceIsToldOnce"),
    active("computed-twice", DONE, "            self.prefill_tokens -= request.prefill_tokens\n",
           "its tokens were taken off twice", "ToldTwiceIsToldOnce"),
    active("freed-twice", "if (request := self.requests.pop(uid, None)) is None:",
           "if (request := self.requests.get(uid)) is None:", "a request ended twice", "ToldTwiceIsToldOnce"),
    active("free-keeps-prefill", "        self.prefill_done(uid)\n        if", "        if",
           "its prompt still counts as work", "ToldTwiceIsToldOnce"),
    active("free-raises", "if (request := self.requests.pop(uid, None)) is None:",
           "if (request := self.requests.pop(uid)) is None:", "that is no error", "ToldTwiceIsToldOnce"),
    active("free-drops-shared", """            if references[name] > 1:
                references[name] -= 1
            else:
                del references[name]
""", "            references.pop(name, None)\n", "blocks are active", "ABlockCountsOnce"),
    active("keeps-zeros", """            if references[name] > 1:
                references[name] -= 1
            else:
                del references[name]
""", "            references[name] -= 1\n", "blocks are active", "ABlockCountsOnce"),
    active("expires-late", "now - request.start >= age]", "now - request.start > age]",
           "one that is exactly that old stays", "LostEndsExpire"),
    active("expires-the-young", "now - request.start >= age]", "now - request.start < age]",
           "the young ones were freed", "LostEndsExpire"),
    active("expires-the-list-only", "            self.free(uid)\n", "            del self.requests[uid]\n",
           "they left the list, and their blocks and tokens stayed", "LostEndsExpire"),
    active("takes-echoes", MERGE, "        self.take(news, now)\n", "x's own word came back", "EchoesAreDropped"),
    active("deaf", MERGE, "        if news.router == self.router:\n            self.take(news, now)\n",
           "the news of other routers are not taken", "EchoesAreDropped"),
]  # fmt: skip

RAW = "raw = (each.prefill_tokens + tokens) / block_size"
WEIGHT = "weight = config.credit * credit_decay(config, each.prefill_tokens - least, tokens, block_size)"
PREFILL = "prefill = config.prefill_scale * max(raw - weight * each.overlap - slower, 0.0)"
TOTAL = "result.append(prefill + each.decode_blocks + config.active * each.requests)"
FLOOR = "request_blocks = max(tokens / block_size, 1)"
DECAY = "return 1 / (1 + config.decay * (excess_tokens / block_size) / request_blocks)"
SOFT = "math.exp(-(value - low) / (high - low) / temperature)"
TIES = "weights = [float(value == low) for value in values]"

_COST = [
    cost("tokens-for-blocks", PREFILL, PREFILL.replace("max(raw -", "max(raw * block_size -"), "expected",
         "CostsOfTheWorkedExample"),
    cost("caches-not-seen", PREFILL, PREFILL.replace("raw - weight * each.overlap", "raw"),
         "cached blocks count as work", "CostsOfTheWorkedExample"),
    cost("credit-added", PREFILL, PREFILL.replace("raw - weight", "raw + weight"), "the credit was added",
         "CostsOfTheWorkedExample"),
    cost("decode-left-out", TOTAL, TOTAL.replace(" + each.decode_blocks", ""), "decode blocks are left out",
         "CostsOfTheWorkedExample"),
    cost("scale-for-all", TOTAL, "result.append(prefill + config.prefill_scale * each.decode_blocks + config.active * "
         "each.requests)", "the scale holds for decode blocks, too", "CostsOfTheWorkedExample"),
    cost("below-zero", PREFILL, PREFILL.replace("max(raw - weight * each.overlap - slower, 0.0)",
         "(raw - weight * each.overlap - slower)"), "work is never less than nothing", "CostsEqualExactFractions"),
    cost("requests-not-counted", TOTAL, TOTAL.replace(" + config.active * each.requests", ""),
         "active requests are not counted", "CostsEqualExactFractions"),
    cost("prompts-not-counted", RAW, "raw = tokens / block_size", "prompts that the worker has still to compute",
         "CostsEqualExactFractions"),
    cost("no-decay", WEIGHT, "weight = config.credit", "`decay` is not used", "CostsEqualExactFractions"),
    cost("decay-of-all", WEIGHT, WEIGHT.replace(" - least", ""), "the credit falls with all prefill work",
         "CostsEqualExactFractions"),
    cost("slower-tiers", PREFILL, PREFILL.replace(" - slower", ""), "what slower tiers have is not counted",
         "CostsEqualExactFractions"),
    cost("excess-of-blocks", DECAY, "return 1 / (1 + config.decay * (excess_tokens / block_size))",
         "the excess was not divided by the request's own blocks", "DecayOfTheWorkedExample"),
    cost("no-floor", FLOOR, "request_blocks = tokens / block_size", "a request counts as one block at least",
         "DecayOfTheWorkedExample"),
    cost("tokens-decay", DECAY, "return 1 / (1 + config.decay * excess_tokens / request_blocks)",
         "tokens were taken for blocks", "DecayOfTheWorkedExample"),
    cost("least-of-nobody", "in candidates), default=0)", "in candidates))", "`min` of nothing raises",
        "CostsEqualExactFractions"),
    cost("not-scaled", SOFT, "math.exp(-(value - low) / temperature)", "costs were not divided by highest less lowest",
         "ProbabilitiesOfTheWorkedExample"),
    cost("times-temperature", SOFT, "math.exp(-(value - low) / (high - low) * temperature)",
         "the temperature was multiplied", "ProbabilitiesOfTheWorkedExample"),
    cost("dearest", SOFT, "math.exp(-(high - value) / (high - low) / temperature)", "the dearest is the likeliest",
         "ProbabilitiesOfTheWorkedExample"),
    cost("first-of-the-cheapest", TIES, "weights = [float(i == values.index(low)) for i in range(len(values))]",
         "the first of the cheapest takes all", "ProbabilitiesAtTheLimits"),
    cost("divides-by-zero", "if low == high or temperature == 0:", "if temperature == 0:", "ZeroDivisionError",
         "ProbabilitiesAtTheLimits"),
    cost("lowest-not-taken-off", SOFT, "math.exp(-value / (high - low) / temperature)", "ZeroDivisionError",
         "ProbabilitiesAtTheLimits"),
    cost("any-temperature", "    if temperature < 0:\n", "    if temperature < -1e9:\n", "expected a ValueError",
         "NegativeTemperatureIsRefused"),
]  # fmt: skip

CHOICE = "return self.rng.choices(query.workers, probabilities(values, self.temperature))[0]"

_CHOOSE = [
    choose("first-of-equals", CHOICE, "return query.workers[values.index(min(values))]",
           "a fixed order decides ties", "TiesAreDrawnAtRandom"),
    choose("no-temperature", CHOICE, CHOICE.replace("self.temperature", "0.0"), "the temperature is not used",
           "TemperatureSpreadsTheChoice"),
    choose("no-costs", CHOICE, "return self.rng.choice(query.workers)", "chosen without looking at the costs",
           "TemperatureSpreadsTheChoice"),
    choose("own-chance", CHOICE, CHOICE.replace("self.rng.choices", "__import__('random').choices"),
           "chance was taken from elsewhere", "ASeedRepeatsEveryChoice"),
    choose("default-weights", "query.block_size, query.cost)",
           "query.block_size, __import__('dataclasses').replace(query.cost, credit=1.0))",
           "requests of each decode worker", "DecodeWorkersShareTheLoad"),
]  # fmt: skip

REMOVED = """            if self.waiting.get(request.uid) is not request:
                continue  # it was removed, and its entry stayed
"""
STOP = """            if request.eligible is None:
                break
"""
BACK = """        for entry in kept:
            heapq.heappush(self.heap, entry)
"""

_QUEUE = [
    queue("last-first", "return request.jump - request.arrival", "return request.jump + request.arrival",
          "that is the order of lcfs", "TheQueueHasAnOrder"),
    queue("jump-holds-back", "return request.jump - request.arrival", "return -request.jump - request.arrival",
          "the jump holds them back", "TheQueueHasAnOrder"),
    queue("no-jump", "return (1 + request.jump) / max(1, new_tokens)", "return 1 / max(1, new_tokens)",
          "the jump is not looked at", "TheQueueHasAnOrder"),
    queue("all-tokens", "return (1 + request.jump) / max(1, new_tokens)",
          "return (1 + request.jump) / max(1, request.tokens)", "they went in the order", "TheQueueHasAnOrder"),
    queue("asks-the-removed", REMOVED, "", "one that was removed was asked", "ReleaseAsksWhoCouldGo"),
    queue("by-uid-only", "self.waiting.get(request.uid) is not request", "request.uid not in self.waiting",
          "Asked were", "ReleaseAsksWhoCouldGo"),
    queue("asks-all", STOP, "", "all were asked", "ReleaseAsksWhoCouldGo"),
    queue("stops-at-the-first", STOP, "            break\n", "though others may go elsewhere", "ReleaseAsksWhoCouldGo"),
    queue("loses-the-passed-over", BACK, "        del kept\n", "those that were passed over are lost",
          "ReleaseAsksWhoCouldGo"),
    queue("removes-nobody", "                self.remove(request.uid)\n", "", "wait", "ReleaseAsksWhoCouldGo"),
]  # fmt: skip

OVERLOADED = "if all(self.overloaded(worker) for worker in eligible):"
CACHED = "cached = max(scores.get(worker, 0) for worker in eligible) * self.config.block_size"
KNOWN = "if request.uid in self.placed or request.uid in self.queue:"

_ROUTER = [
    router("cached-counts", "self.queue.push(request, request.tokens - cached)",
           "self.queue.push(request, request.tokens)", "cached tokens were not taken off", "NewTokensDecideWhoIsShort"),
    router("best-of-all", CACHED, "cached = max(scores.values(), default=0) * self.config.block_size",
           "the best of all workers was taken", "NewTokensDecideWhoIsShort"),
    router("waits-for-ever", OVERLOADED, "if not eligible:", "a request that nobody can take waits for ever",
           "RefusesWhatNobodyCanTake"),
    router("any-overload-refuses", OVERLOADED, OVERLOADED.replace("all(", "any("), "expected no error",
           "RefusesWhatNobodyCanTake"),
    router("forgets-the-placed", KNOWN, "if request.uid in self.queue:", "its uid is placed already",
           "RefusesWhatNobodyCanTake"),
    router("forgets-the-waiting", KNOWN, "if request.uid in self.placed:", "its uid waits already",
           "RefusesWhatNobodyCanTake"),
    router("everybody-waits", "if decision := self.place(request, now):\n            return decision",
           "if not self.queue and (decision := self.place(request, now)):\n            return decision",
           "and are not busy", "NobodyWaitsForNothing"),
    router("one-at-a-time", "return decision is not None", "return decision is not None and len(decisions) < 2",
           "operation", "NobodyWaitsForNothing"),
    router("nobody-is-released", "        self.queue.release(ready)\n", "",
           "must be looked at again whenever something ends", "NobodyWaitsForNothing"),
]  # fmt: skip

MUTANTS = [*_NAMES, *_NEWS, *_INDEX, *_ACTIVE, *_COST, *_CHOOSE, *_QUEUE, *_ROUTER]
