"""Plausible wrong solutions of Week 4 Day 6, and the case that catches each. Numbers are those of Mooncake's issues."""

from course.mutants import Mutant

LINK, TRANSFER, ENGINE = "cluster/link.py", "cluster/transfer.py", "cluster/transfer_engine.py"
SEGMENT, AGENT, STORE, CLIENT = (f"cluster/{name}.py" for name in ("segment", "agent", "store", "store_client"))


def link(name: str, old: str, new: str, message: str, killer: str = "EndsAreExact") -> Mutant:
    return Mutant(name, 1, LINK, old, new, message, killer)


def engine(name: str, old: str, new: str, message: str, killer: str, file: str = ENGINE) -> Mutant:
    return Mutant(name, 2, file, old, new, message, killer)


def agent(name: str, old: str, new: str, message: str, killer: str, file: str = AGENT) -> Mutant:
    return Mutant(name, 3, file, old, new, message, killer)


def store(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, STORE, old, new, message, killer)


def client(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 5, CLIENT, old, new, message, killer)


ALONE = "return latency + -(-size * SECOND // bytes_per_s)"
RING = "return steps * latency + -(-steps * size * SECOND // (ranks * bytes_per_s))"
STEPS = "steps = 2 * (ranks - 1)"
ROWS = """rows = np.stack([1 / times, sizes / times], axis=1)
    latency, per_byte = np.linalg.lstsq(rows, np.ones(len(samples)), rcond=None)[0]"""
IN_NS = """rows = np.stack([np.ones(len(sizes)), sizes], axis=1)
    latency, per_byte = np.linalg.lstsq(rows, times, rcond=None)[0]"""
NEXT = "-(-(self._heap[0][0] - self.served) * len(self._ends) * SECOND // self.bytes_per_s)"
SHARE = "self.served += (until - self._time) * self.bytes_per_s // (len(self._ends) * SECOND)"
ARRIVAL = "self._arrivals[flow] = whole(end) + self.latency"
LOOP = "while (end := self.next_end()) is not None and end <= until + SLACK:"
RATE = "if not self._heap or not self.bytes_per_s:"
ON_ITS_WAY = "if flow in self._ends or flow in self._arrivals:"

_LINK = [
    link("rounded-down", ALONE, "return latency + size * SECOND // bytes_per_s",
         "it was rounded down", "AlphaAndBeta"),
    link("no-alpha", ALONE, ALONE.replace("latency + ", ""), "the latency was forgotten", "AlphaAndBeta"),
    link("float", ALONE, "return latency + -int(-size * SECOND / bytes_per_s // 1)",
         "a float has 53 bits", "AlphaAndBeta"),
    link("half-a-ring", STEPS, STEPS.replace("2 * ", ""), "only half of it", "TheRing"),
    link("p-steps", STEPS, STEPS.replace("(ranks - 1)", "ranks"), "p steps for p ranks", "TheRing"),
    link("all-bytes", RING, RING.replace("(ranks * bytes_per_s)", "bytes_per_s"), "all bytes in each step", "TheRing"),
    link("one-latency", RING, RING.replace("steps * latency", "latency"), "paid in each step", "TheRing"),
    link("absolute-errors", ROWS, IN_NS, "errors in ns were made small", "TheLineThroughMeasurements"),
    link("bytes-per-ns", "round(SECOND / per_byte)", "round(1 / per_byte)",
         "the rate is bytes per second", "TheLineThroughMeasurements"),
    link("one-size", "    if len({size for size, _ in samples}) < 2:\n", "    if not samples:\n",
         "was accepted", "TheLineThroughMeasurements"),
    link("nobody-shares", NEXT, NEXT.replace(" * len(self._ends)", ""), "nobody shares", "EqualFlowsShare"),
    link("one-after-the-other", "end = self._ends[flow] = self.served + size * FINE, self._starts",
         "last = max((e for e, _ in self._ends.values()), default=self.served)\n"
         "        end = self._ends[flow] = last + size * FINE, self._starts",
         "flow "),
    link("share-of-no-one", SHARE, SHARE.replace("(len(self._ends) * SECOND)", "SECOND"), "flow "),
    link("latency-forgotten", ARRIVAL, ARRIVAL.replace(" + self.latency", ""), "flow "),
    link("floor", SHARE, SHARE.replace("(until - self._time)", "(until - self._time) // FINE * FINE"),
         "flow "),
    link("whole-ns-inside", "self._time = min(end, until)", "self._time = min(-(-end // FINE) * FINE, until)",
         "times are not exact", "SharesAddUp"),
    link("cut-link-divides", RATE, "if not self._heap:", "ZeroDivisionError"),
    link("left-is-gone", ON_ITS_WAY, "if flow in self._ends:", "a flow that has left", "WrongStartsAreRefused"),
    link("past", "        if until < self._time:\n            raise ValueError(f",
         "        if until < 0:\n            raise ValueError(f", "a start at 4 ns", "WrongStartsAreRefused"),
]  # fmt: skip

CUT = "return [Slice(request, start, min(size, request.length - start)) for start in starts]"
UP = "if up := [name for name in names.get(location, ()) if name not in down]:"
COUNT = """        for _, nic in transfer.flying.values():
            carried[nic] = carried.get(nic, 0) + 1
"""
WINDOW = "and carried[nic] < self.window:"
LEAST = "(nic := min(path, key=carried.__getitem__))"
LOST = "                    transfer.lost[start] = transfer.lost.get(start, 0) + 1\n"
CANCEL = """                    self.nics[name].cancel((transfer, start), now)
                    del transfer.flying[start]
"""
BACK = "                    transfer.pending.appendleft(piece)\n"
POP = "                piece, _ = transfer.flying.pop(start)\n"

_ENGINE = [
    engine("last-too-long", CUT, CUT.replace("min(size, request.length - start)", "size"),
           "the last slice is longer than what is left", "SlicesCoverARequest", TRANSFER),
    engine("rest-dropped", "starts = range(0, request.length, size)",
           "starts = range(0, request.length - request.length % size, size)",
           "what is left behind the last full slice was dropped", "SlicesCoverARequest", TRANSFER),
    engine("empty-slice", "starts = range(0, request.length, size)", "starts = range(0, request.length + 1, size)",
           "a slice of no bytes", "SlicesCoverARequest", TRANSFER),
    engine("down-is-used", UP, UP.replace(" if name not in down", ""), "a NIC that is down was used",
           "PreferredThenSecondary", TRANSFER),
    engine("preferred-only", "for names in (self.preferred, self.secondary):", "for names in (self.preferred,):",
           "the secondary NICs were never used", "PreferredThenSecondary", TRANSFER),
    engine("all-at-once", "for names in (self.preferred, self.secondary):",
           "for names in ({n: [*v, *self.secondary.get(n, ())] for n, v in self.preferred.items()}, self.secondary):",
           "secondary NICs are for when no preferred one is up", "PreferredThenSecondary", TRANSFER),
    engine("one-nic", LEAST, "(nic := path[0])", "only one NIC was used", "MoreNicsAreFaster"),
    engine("dealt-out", WINDOW, "and carried[nic] < 10**9:", "a slow one must carry less", "ASlowNicCarriesLess"),
    engine("not-counted", COUNT, "", "both NICs carried half", "ASlowNicCarriesLess"),
    engine("window-for-all", COUNT, "        for nic in path:\n            carried[nic] = self.nics[nic].flows\n",
           "`window` is for each transfer", "TheSecondaryHelpsOut"),
    engine("slice-is-lost", BACK, "", "a slice was lost", "AFailureHalves"),
    engine("not-cancelled", CANCEL, "                    del transfer.flying[start]\n", "KeyError", "AFailureHalves"),
    engine("not-down", "        self.down[name] = None\n", "", "the rest", "AFailureHalves"),
    engine("not-fed", LOST + "            self.feed(transfer, now)\n", LOST, "the secondary got nothing",
           "TheSecondaryHelpsOut"),
    engine("fewest-of-all", LEAST,
           "(nic := min((p for p in path if carried[p] < self.window), key=lambda p: self.nics[p].flows, "
           "default=path[0]))", "of this transfer count, not of all", "FewestOfThisTransfer"),
    engine("arrived-is-lost", "        self.advance(now)\n        self.down[name] = None\n",
           "        self.down[name] = None\n", "what had arrived by then was lost", "WhatHasArrivedIsNotLost"),
    engine("starts-late", "self.feed(transfer, time)", "self.feed(transfer, now)",
           "the next slice started when it was asked", "SlicesGoOnAtTheirTime"),
    engine("tries-for-ever", LOST, "", "nobody counted how often a slice was lost", "LostTooOften"),
    engine("one-more-try", ">= self.tries", "> self.tries", "one failure too many", "LostTooOften"),
    engine("done-too-early", "if not transfer.pending and not transfer.flying:", "if not transfer.pending:",
           "their bytes are wrong", "StatusIsMonotone"),
    engine("delivered-twice", "                self.deliver(piece)\n", "                self.deliver(piece)\n" * 2,
           "delivered more than once", "AFailureHalves"),
    engine("no-path-waits", "(not path or max(", "(path and max(", "ValueError", "StatusIsMonotone"),
]  # fmt: skip

RUN = "(source, target) == (merged[-1][0] + merged[-1][2], merged[-1][1] + merged[-1][2])"
THERE = "there.address(second)"
REQUEST = f"TransferRequest(op, self.blocks.address(first), name, {THERE}, count * size)"
DONE = "if handle.message is not None and handle.status is Status.DONE:"
WAIT = """            if Status.WAITING in found:
                continue
"""
POSTED = "        self._posted[handle] = None\n"
UNKNOWN = "if handle.remote not in self.remotes:"
BUSY = "if handle.batch is not None:"

_AGENT = [
    agent("source-only", RUN, "source == merged[-1][0] + merged[-1][2]", "only the source was looked at",
          "RunsOnBothSides", SEGMENT),
    agent("target-only", RUN, "target == merged[-1][1] + merged[-1][2]", "only the target was looked at",
          "RunsOnBothSides", SEGMENT),
    agent("nothing-merged", f"if merged and {RUN}:", "if not merged and source < target < source:",
          "nothing was merged", "RunsOnBothSides", SEGMENT),
    agent("my-addresses", THERE, "self.blocks.address(second)", "blocks of the peer lie from its own first address",
          "BlocksComeAcross"),
    agent("one-block-each", REQUEST, REQUEST.replace("count * size", "size"), "each run was sent as one block",
          "BlocksComeAcross"),
    agent("bytes-are-blocks", REQUEST, REQUEST.replace("count * size", "count"), "lengths are in bytes",
          "BlocksComeAcross"),
    agent("asks-each-time", "self.engine.learn(Segment(metadata.name, (metadata.blocks.buffer,)))", "pass",
          "somebody was asked for the segment", "BlocksComeAcross"),
    agent("too-early", POSTED, POSTED + "        self.notify(handle.remote, handle.message or '')\n",
          "the message went out before the data", "NotifyAfterTheData"),
    agent("first-request", WAIT, "            if Status.DONE not in found:\n                continue\n",
          "under way", "NotifyAfterTheData"),
    agent("failed-notifies", DONE, "if handle.message is not None:", "a failed post was notified",
          "NotifyAfterTheData"),
    agent("again-and-again", "            del self._posted[handle]\n", "", "KeyError", "NotifyAfterTheData"),
    agent("batch-kept", "            self.engine.free(handle.batch)\n", "", "was not freed", "OnePostAtATime"),
    agent("two-posts", BUSY, "if handle.status is Status.FAILED:", "was accepted", "OnePostAtATime"),
    agent("dead-is-posted", UNKNOWN, "if not handle.remote:", "a handle of a dead agent was posted",
          "StrangersAndTheDead"),
    agent("engine-remembers", "        self.engine.invalidate(name)\n", "", "the engine still knows",
          "StrangersAndTheDead"),
    agent("any-size", "if metadata.blocks.size != self.blocks.size:", "if metadata.blocks.size < 1:",
          "was accepted", "StrangersAndTheDead"),
    agent("first-of-a-run", "                blocks.address(block)\n", "                pass\n",
          "in a run that begins inside", "StrangersAndTheDead"),
    agent("unequal-pairs", "strict=True", "strict=False", "two blocks here and one there", "StrangersAndTheDead"),
]  # fmt: skip

GET = """        entry = self.objects.get(key)
        if entry is None or not entry.complete:
            return None
"""
EXISTS = "        return entry is not None and entry.complete\n"
REPLACED = "            self.zombies.append(self.objects.pop(key))\n"
READY = "if entry.complete and not entry.hard and entry.leased < now]"
SOFT_LAST = "for entry in sorted(ready, key=lambda entry: entry.soft >= now):"
WANTED = "wanted, before = max(least, int(self.config.share * self.pool.capacity)), self.pool.free"
AWAY = "            self.beats = dict.fromkeys(self.beats, now)\n"
UNHEARD = """        if client not in self.beats:
            return False
"""
LEASED = "        entry.leased = max(entry.leased, now + self.config.lease)\n"
RELEASED = "now - entry.started >= self.config.release]"
HIGH = "> self.config.high * self.pool.capacity:"
YOUNG = "if entry.complete or now - entry.started < self.config.discard:"
FITS = "while pieces is None and self.pool.possible(size, replicas) and self.evict(size * replicas, now):"

_STORE = [
    store("2187-poll-leases", EXISTS, "        if entry is not None:\n            entry.leased = self.ticked or 10**6\n"
          + EXISTS, "who polls keeps it for ever", "ToPollIsNoUse"),
    store("poll-is-use", EXISTS, "        if entry is not None:\n            self.objects.move_to_end(key)\n" + EXISTS,
          "counted as its use", "ToPollIsNoUse"),
    store("849-key-is-kept", YOUNG, "if entry.started <= now:",
          "an old put kept its key", "TwoClocksOfAPut"),
    store("849-space-at-once", REPLACED, "            self.pool.release(self.objects.pop(key).put.replicas)\n",
          "used again at once", "TwoClocksOfAPut"),
    store("849-zombies-stay", "for entry in [entry for entry in never + self.zombies if",
          "for entry in [entry for entry in never if", "a zombie's space was never freed", "TwoClocksOfAPut"),
    store("849-abandoned-stays", "for entry in [entry for entry in never + self.zombies if",
          "for entry in [entry for entry in self.zombies if", "kept its space for ever", "TwoClocksOfAPut"),
    store("849-one-clock", RELEASED, RELEASED.replace("release", "discard"), "action", "TwoClocksOfAPut"),
    store("1753-not-told", UNHEARD, "", "a dropped client is not told", "SilenceIsDeath"),
    store("1753-told-nothing", UNHEARD, UNHEARD.replace("False", "True"), "a dropped client is not told",
          "SilenceIsDeath"),
    store("1753-told-once", UNHEARD, UNHEARD.replace("            return", "            self.beats[client] = now\n"
          "            return"), "is told once, and then taken for known", "SilenceIsDeath"),
    store("2254-restart", AWAY, "            pass\n", "the whole cache is lost", "TheMasterWasAway"),
    store("away-before-its-first-tick", "if self.ticked is not None and now - self.ticked > self.config.heartbeat:",
          "if now - (self.ticked or 0) > self.config.heartbeat:", "a master was not away", "TheFirstTickIsNoPause"),
    store("one-segment-each", "for name in self.pool.of(client):", "for name in self.pool.of(client)[:1]:",
          "all of its segments", "TheFirstTickIsNoPause"),
    store("share-of-what-is-used", "int(self.config.share * self.pool.capacity)",
          "int(self.config.share * (self.pool.capacity - self.pool.free))", "not of what is in use",
          "AShareIsOfTheCapacity"),
    store("never-dropped", "now - beat > self.config.heartbeat]:", "now - beat > 10**6 * self.config.heartbeat]:",
          "nobody was dropped", "SilenceIsDeath"),
    store("a-beat-early", "now - beat > self.config.heartbeat]:", "now - beat >= self.config.heartbeat]:",
          "silence of exactly `heartbeat`", "SilenceIsDeath"),
    store("no-lease", LEASED, "", "outcome, free bytes and keys", "ALeaseKeepsAnObject"),
    store("leased-goes", READY, READY.replace(" and entry.leased < now", ""), "a leased object was evicted",
          "ALeaseKeepsAnObject"),
    store("last-ns", READY, READY.replace("< now", "<= now"), "a lease holds at its last ns", "ALeaseKeepsAnObject"),
    store("unfinished-goes", READY, READY.replace("entry.complete and ", ""), "while its put is under way",
          "WhoGoesFirst"),
    store("no-hard-pin", READY, READY.replace("not entry.hard and ", ""), "a hard pin was evicted", "WhoGoesFirst"),
    store("no-soft-pin", SOFT_LAST, "for entry in ready:", "soft pins were forgotten", "WhoGoesFirst"),
    store("soft-is-hard", READY, READY.replace("]", " and entry.soft < now]"), "a soft pin was taken for a hard one",
          "WhoGoesFirst"),
    store("newest-first", SOFT_LAST, SOFT_LAST.replace("sorted(ready,", "sorted(ready[::-1],"),
          "the most recently used went first", "WhoGoesFirst"),
    store("get-is-no-use", LEASED + "        self.use(entry, now)\n", LEASED, "a get did not count as a use",
          "WhoGoesFirst"),
    store("share-ignored", WANTED, "wanted, before = least, self.pool.free", "only what was asked for", "AboveTheMark"),
    store("all-goes", "            if self.pool.free - before >= wanted:\n                break\n", "",
          "everything was evicted that could be", "AboveTheMark"),
    store("at-the-mark", HIGH, HIGH.replace(">", ">=", 1), "eviction began at `high`", "AboveTheMark"),
    store("no-eviction", "            self.evict(0, now)\n", "            pass\n", "nothing was evicted above `high`",
          "AboveTheMark"),
    store("evicts-in-vain", FITS, FITS.replace("self.pool.possible(size, replicas) and ", ""),
          "for a put that can never fit", "WhatDoesNotFit"),
    store("evicts-once", FITS, FITS.replace("while", "if"), "not in one piece", "WhatDoesNotFit"),
    store("which-error", "raise NoSpaceError(", "raise StoreError(", "there is a NoSpaceError for that",
          "WhatDoesNotFit"),
    store("seen-unfinished", GET + LEASED, GET.replace(" or not entry.complete", "") + LEASED,
          "before its put had ended", "AnObjectIsThereFromItsEnd"),
    store("overwritten", YOUNG, YOUNG.replace("entry.complete or", "not entry.complete and"),
          "objects never change", "AnObjectIsThereFromItsEnd"),
    store("same-version", "        self.versions += 1\n", "        self.versions = len(self.objects)\n",
          "each put has its own", "VersionsAreUnique"),
]  # fmt: skip

HOLDS = "self.results[key] = self.reading.pop(key).holds(now)"
ASK = "            grant = self.master.get(key, now)\n"
WHILE = "while self.waiting and len(self.reading) < self.window:"
MISS = """                self.results[key] = False
                continue
"""
LATER = "self.again.append((now + self.pause, key, size, number + 1))"
AGAIN = "if number < self.tries:"
NO_SPACE = "        except NoSpaceError:\n"
THERE_IS = "        except StoreError:\n            self.results[key] = True\n        else:\n"

_CLIENT = [
    client("850-not-checked", HOLDS, "self.results[key] = self.reading.pop(key) is not None",
           "the lease was not looked at when the read had ended", "ALateReadHasFailed"),
    client("850-whole-path", HOLDS, "self.results[key] = self.reading.pop(key) is not None",
           "the lease was not looked at when the read had ended", "TheWholePath"),
    client("4239-first-of-batch", HOLDS, HOLDS + " or len(self.results) > 0",
           "only one read of the batch was looked at", "ALateReadHasFailed"),
    client("3076-all-leases-first", WHILE, "while self.waiting:", "all reads began at once", "LeasesAreAskedForLate"),
    client("3076-early-leases", ASK,
           "            self.early = getattr(self, 'early', None) or {k: self.master.get(k, now) for k in"
           " [key, *self.waiting]}\n            grant = self.early[key]\n",
           "all leases were asked for at the start", "LeasesAreAskedForLate"),
    client("at-the-last-ns", HOLDS, "self.results[key] = now < self.reading.pop(key).until",
           "the lease holds at its last ns", "ALateReadHasFailed"),
    client("a-miss-is-nothing", MISS, "                continue\n", "a key that is not there has no result",
           "ALateReadHasFailed"),
    client("a-miss-ends", MISS, MISS.replace("continue", "break"), "results", "ALateReadHasFailed"),
    client("no-next", "        self.begin(now)\n", "", "results", "ALateReadHasFailed"),
    client("3331-given-up", AGAIN, "if number < 1:", "refused for space was never tried again", "PutsAreTriedAgain"),
    client("for-ever", AGAIN, "if number <= self.tries:", "it was tried once more", "PutsAreTriedAgain"),
    client("all-errors-again", NO_SPACE, "        except StoreError:\n", "a put of a key that exists was tried again",
           "PutsAreTriedAgain"),
    client("exists-is-failure", THERE_IS, THERE_IS.replace("True", "False"), "somebody else put it",
           "PutsAreTriedAgain"),
    client("when-it-was-due", """            _, key, size, number = self.again.popleft()
            self.put(key, size, now, number)""", """            due, key, size, number = self.again.popleft()
            self.put(key, size, due, number)""", "which is past", "ALateTryIsMadeNow"),
    client("at-once", LATER, LATER.replace("now + self.pause", "now"), "put_start was called", "PutsAreTriedAgain"),
    client("counts-from-one", LATER, LATER.replace("number + 1", "number"), "put_start was called",
           "PutsAreTriedAgain"),
]  # fmt: skip

MUTANTS = _LINK + _ENGINE + _AGENT + _STORE + _CLIENT
