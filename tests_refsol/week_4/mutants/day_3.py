"""Plausible wrong solutions of Week 4 Day 3, and the case that catches each."""

from course.mutants import Mutant

DISCOVERY, LEASE, MIGRATION = "cluster/discovery.py", "cluster/lease.py", "cluster/migration.py"
BALANCE, CLIENT, RPC, RUNTIME = "cluster/balance.py", "cluster/client.py", "cluster/rpc.py", "cluster/runtime.py"


def exists(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, DISCOVERY, old, new, message, killer)


def lease(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, LEASE, old, new, message, killer)


def leaves(name: str, file: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, file, old, new, message, killer)


def migrates(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, MIGRATION, old, new, message, killer)


COVERS = 'return not prefix or key == prefix or key.startswith(prefix + "/")'
LEDGER, TOLD = "TheRegistryKeepsItsLedger", "EveryChangeIsToldOnce"
VIEW, RESYNC = "AViewFollowsChanges", "AResyncIsADifference"
GONE = (
    "gone = [change for key in list(self.entries) if key not in snapshot for change in self.apply(Change(key, None))]"
)
PARSE = """        except ValueError:
            return []
        if"""

_EXISTS = [
    exists("no-boundary", COVERS, "return key.startswith(prefix)", "any text that begins with the prefix",
        "APrefixEndsAtASlash"),
    exists("not-itself", COVERS, 'return not prefix or key.startswith(prefix + "/")', "a prefix covers itself",
        "APrefixEndsAtASlash"),
    exists("empty-covers-nothing", COVERS, 'return key == prefix or key.startswith(prefix + "/")',
        "an empty prefix covers everything", "APrefixEndsAtASlash"),
    exists("prefix-without-boundary-at-the-watchers", COVERS, "return key.startswith(prefix)",
        "should not have heard", TOLD),
    exists("id-again", "lease = next(self.numbers)", "lease = len(self.leases) + 1", "came back", "NoIdComesBack"),
    exists("lives-at-its-deadline", "if lease.deadline <= now]", "if lease.deadline < now]",
        "a lease ends at its deadline, not after it", LEDGER),
    exists("adds-to-the-rest", "self._living(lease, now).deadline = now + self.ttl",
        "self._living(lease, now).deadline += self.ttl", "a renewal adds ttl to what is left", LEDGER),
    exists("too-late-is-accepted", "self._living(lease, now).deadline = now + self.ttl",
        "self.leases[lease].deadline = now + self.ttl", "a renewal that comes too late is accepted", LEDGER),
    exists("first-keeps-it", "other.keys.pop(key, None)", "pass", "expected", LEDGER),
    exists("keys-survive", "del self.values[key]\n", "pass\n", "expected", LEDGER),
    exists("only-revoked-not-removed", """        self.expire(now)
        self._end(lease)
""", """        self.expire(now)
        self.leases.pop(lease, None)
""", "a revoked lease keeps its keys", LEDGER),
    exists("put-not-told", "        self.tell(Change(key, value))\n", "", "did not hear of", TOLD),
    exists("removal-not-told", "                self.tell(Change(key, None))\n", "", "did not hear of", TOLD),
    exists("told-of-the-lease-only-at-revoke", "            self._end(lease)\n\n    def _living",
        "            for key in self.leases.pop(lease).keys:\n                del self.values[key]\n\n    def _living",
        "did not hear of", TOLD),
    exists("broken-removes", PARSE, PARSE.replace("return []", "return self.apply(Change(key, None))"),
        "what cannot be parsed removed the entry", VIEW),
    exists("known-is-told", "        if self.entries.get(key) == entry:\n            return []\n", "",
        "told again", VIEW),
    exists("removal-told-twice", "return [Change(key, None)] if self.entries.pop(key, None) is not None else []",
        "self.entries.pop(key, None)\n            return [Change(key, None)]", "what was not there", VIEW),
    exists("raw-values", "entry = self.parse(value)", "self.parse(value)\n            entry = value",
        "values go through parse", VIEW),
    exists("misses-a-resync", GONE, "gone = []", "what is missing in the snapshot stayed", RESYNC),
    exists("grants-without-a-look", "        self.expire(now)\n        lease = next", "        lease = next",
        "did not hear of", TOLD),
    exists("same-again-not-told", "        self.values[key] = value\n        self.tell(Change(key, value))",
        "        if self.values.get(key) != value:\n            self.values[key] = value\n"
        "            self.tell(Change(key, value))", "did not hear of", TOLD),
    exists("gone-before-it-is-set-again", "        self.values[key] = value\n        self.tell",
        "        if key in self.values:\n            self.tell(Change(key, None))\n        self.values[key] = value\n"
        "        self.tell", "should not have heard of", TOLD),
    exists("emptied-first", GONE, GONE + "\n        self.entries.clear()", "emptied first", RESYNC),
]  # fmt: skip

ACK = """        granted = await self.ask("grant")
"""
RENEWED = "self.deadline, due = sent + self.ttl, sent + self.ttl // 2"
OWN = """async with self.clock.timeout_at(self.deadline):
                    await self.ask("renew", lease=self.lease)"""
LOST = """            except (LeaseError, TimeoutError, RemoteError):
                self.deadline = min(self.deadline, self.clock.now)
                return
"""
KEPT = """            if not self.alive:
                return
            sent = self.clock.now
            try:
                async with self.clock.timeout_at(self.deadline):
                    await self.ask("renew", lease=self.lease)
            except ConnectionError:
                due = sent + self.ttl // 8
            except (LeaseError, TimeoutError, RemoteError):
                self.deadline = min(self.deadline, self.clock.now)
                return
            else:
                if not self.alive:
                    return
"""
NAIVE = """            sent = self.clock.now
            try:
                await self.ask("renew", lease=self.lease)
            except ConnectionError:
                due = sent + self.ttl // 8
            except (LeaseError, RemoteError):
                self.deadline = min(self.deadline, self.clock.now)
                return
            else:
"""
STOPS, STEP = "TheProcessStopsFirst", "AViewIsKeptInStep"

_LEASE = [
    lease("from-the-answer", ACK, ACK + "        sent = self.clock.now\n", "counted from when the answer came",
        "ALeaseCountsFromWhenItWasAskedFor"),
    lease("late-is-a-lease", """        if not self.alive:
            raise LeaseError(f"the lease took""", """        if False:
            raise LeaseError(f"the lease took""", "expected LeaseError", "ALeaseThatComesTooLateIsNone"),
    lease("just-in-time-is-a-lease", """        if not self.alive:
            raise LeaseError(f"the lease took""", """        if self.clock.now > self.deadline:
            raise LeaseError(f"the lease took""", "expected LeaseError", "ALeaseThatComesTooLateIsNone"),
    lease("a-late-answer-counts", KEPT, "            if not self.alive:\n                return\n" + NAIVE,
        "Look at `alive` after the answer", "AnAnswerThatComesTooLate"),
    lease("cannot-be-cancelled", "            except ConnectionError:\n                due = sent",
        "            except (ConnectionError, __import__('asyncio').CancelledError):\n                due = sent",
        "must not catch CancelledError", "KeepAliveCanBeCancelled"),
    lease("raises-what-the-registry-raises", "except (LeaseError, TimeoutError, RemoteError):",
        "except (LeaseError, TimeoutError):", "nobody else would stop this process", "ARegistryThatStumbles"),
    lease("watches-until-it-stumbles", "except (ConnectionError, RemoteError, StopAsyncIteration):",
        "except (ConnectionError, StopAsyncIteration):", "it goes on for ever", "ARegistryThatStumbles"),
    lease("watches-until-nothing-comes", "except (ConnectionError, RemoteError, StopAsyncIteration):",
        "except (ConnectionError, RemoteError):", "it goes on for ever", "ARegistryThatStumbles"),
    lease("renewal-from-the-answer", RENEWED, RENEWED.replace("sent + self.ttl,", "self.clock.now + self.ttl,"),
        "counted from when the answer came", STOPS),
    lease("believed-before-the-answer", "            sent = self.clock.now\n            try:",
        "            sent = self.clock.now\n            self.deadline = sent + self.ttl\n            try:",
        "a renewal counts only once it is answered", STOPS),
    lease("keep-alive-late", RENEWED, RENEWED.replace("self.ttl // 2", "self.ttl - self.ttl // 50"),
        "one each ttl comes too late", "ARenewalEachHalfOfItsLife"),
    lease("keep-alive-too-often", RENEWED, RENEWED.replace("self.ttl // 2", "self.ttl // 8"),
        "only for those that broke", "ARenewalEachHalfOfItsLife"),
    lease("hangs-for-ever", OWN, "await self.ask(\"renew\", lease=self.lease)", "never returns", STOPS),
    lease("tries-on-when-cut-off", LOST, LOST.replace("TimeoutError, ", "").replace("                return\n", "")
        + "                return\n            except TimeoutError:\n                due = sent + self.ttl // 8\n"
        + "                self.deadline = sent + 2 * self.ttl\n", "never returns", STOPS),
    lease("broken-is-the-end", "                due = sent + self.ttl // 8\n", "                return\n", "gave up",
        "ABrokenRenewalIsTriedAgain"),
    lease("broken-is-raised", "            except ConnectionError:\n                due = sent + self.ttl // 8\n", "",
        "it should try again", "ABrokenRenewalIsTriedAgain"),
    lease("tries-at-once", "due = sent + self.ttl // 8", "due = sent + self.ttl // 200",
        "connections were tried", "ABrokenRenewalIsTriedAgain"),
    lease("tries-too-late", "due = sent + self.ttl // 8", "due = sent + self.ttl // 2", "try each ttl / 8",
        "ABrokenRenewalIsTriedAgain"),
    lease("sleeps-past-the-end", "min(due, self.deadline)", "due", "the lease ended at",
        "ABrokenRenewalIsTriedAgain"),
    lease("tries-from-the-failure", "due = sent + self.ttl // 8", "due = self.clock.now + self.ttl // 8",
        "counted from when it broke", "ATryIsCountedFromWhenItWasSent"),
    lease("renews-after-the-answer", RENEWED, RENEWED.replace("due = sent + self.ttl, sent", "due = sent + self.ttl, "
        "self.clock.now"), "it was counted from the answer", "ARenewalEachHalfOfItsLife"),
    lease("raised-is-broken", """            except ConnectionError:
                due = sent + self.ttl // 8
            except (LeaseError, TimeoutError, RemoteError):""", """            except (ConnectionError, RemoteError):
                due = sent + self.ttl // 8
            except (LeaseError, TimeoutError):""", "RemoteError is final", "ARegistryThatStumbles"),
    lease("asks-at-its-deadline", "            if not self.alive:\n                return\n            sent = self",
        "            sent = self", "again and again without a wait", "ABrokenRenewalIsTriedAgain"),
    lease("refused-is-alive", "                self.deadline = min(self.deadline, self.clock.now)\n", "",
        "`alive` still says yes", "WhatTheRegistryHasEndedIsOver"),
    lease("refused-is-raised", "except (LeaseError, TimeoutError, RemoteError):", "except (TimeoutError, RemoteError):",
        "it should return", "WhatTheRegistryHasEndedIsOver"),
    lease("comes-back-to-life", KEPT, NAIVE, "came back to life", "ABlockedLoopLosesItsLease"),
    lease("never-looks-at-its-clock", KEPT, NAIVE, "never returns", STOPS),
    lease("revoke-gives-up", """                except ConnectionError:
                    await self.clock.sleep_until(self.clock.now + self.ttl // 8)
""", """                except ConnectionError:
                    return
""", "keys are left at the registry", "GivingALeaseBack"),
    lease("revoke-waits-for-ever", "async with self.clock.timeout_at(self.deadline):\n            while",
        "async with self.clock.timeout_at(self.deadline + 100 * self.ttl):\n            while", "it does not return",
        "GivingALeaseBack"),
    lease("no-snapshot", "yield view.resync(await anext(events))", "await anext(events)\n                yield []",
        "difference to all that there is", STEP),
    lease("misses-resync-after-a-break", "yield view.resync(await anext(events))",
        "snapshot = await anext(events)\n                yield [] if view.entries else view.resync(snapshot)",
        "the view believes", STEP),
    lease("ends-with-its-connection", "await self.clock.sleep_until(self.clock.now + retry)", "return",
        "`changes` has ended", STEP),
    lease("asks-at-once", "await self.clock.sleep_until(self.clock.now + retry)",
        "await self.clock.sleep_until(self.clock.now + retry // 50)", "wait `retry` between two", STEP),
]  # fmt: skip

AFTER = """        after = bisect_right(ids, self.last)
        self.last = ids[after] if after < len(ids) else ids[0]
        return self.last
"""
LEASTS = "return self.rng.choice([i for i in ids if inflight.get(i, 0) == least])"
WEIGHTS = "return self.rng.choice([i for i, load in zip(ids, loads, strict=True) if load == min(loads)])"
TWO = "return min(self.rng.sample(ids, min(2, len(ids))), key=lambda i: inflight.get(i, 0))"
TURN, LEAST, POWER = "RoundRobinTakesEachInTurn", "TheLeastLoadedAndTiesByChance", "PowerOfTwoComparesTwo"
DOWN = "            self.inflight[instance.id] -= 1\n"
ALIVE = 'return self.state == "draining" or (self.state in ("running", "leaving") and self.discovery.alive)'
REVOKE = """            await self.discovery.revoke()
            self.state = "draining"
"""
DRAINED = """            self.state = "draining"
            await self.server.drain()
"""
LEAVING = "LeavingLosesNoRequest"

_LEAVES = [
    leaves("counts-choices", BALANCE, AFTER,
        "        self.last += 1\n        return ids[self.last % len(ids)]\n", "shifts all turns", TURN),
    leaves("the-same-again", BALANCE, "ids[after] if after < len(ids) else ids[0]", "ids[min(after, len(ids) - 1)]",
        "expected", TURN),
    leaves("ties-to-the-first", BALANCE, LEASTS, "return next(i for i in ids if inflight.get(i, 0) == least)",
        "ties go to the first", LEAST),
    leaves("only-those-in-flight", BALANCE, "least = min(inflight.get(i, 0) for i in ids)\n        " + LEASTS,
        "ids = [i for i in ids if i in inflight] or ids\n        least = min(inflight.get(i, 0) for i in ids)\n        "
        + LEASTS, "who is not in `inflight` has no call", LEAST),
    leaves("weighted-ties-to-the-first", BALANCE, WEIGHTS, "return min(zip(loads, ids))[1]",
        "ties go to the first", LEAST),
    leaves("weights-left-out", BALANCE, "inflight.get(i, 0) / self.weights.get(i, 1.0)", "inflight.get(i, 0)",
        "the weights were left out", LEAST),
    leaves("times-weight", BALANCE, "inflight.get(i, 0) / self.weights.get(i, 1.0)",
        "inflight.get(i, 0) * self.weights.get(i, 1.0)", "divide by it", LEAST),
    leaves("a-random-of-its-own", BALANCE, LEASTS, LEASTS.replace("self.rng", "__import__('random')"),
        "the same seed gave other choices", LEAST),
    leaves("least-of-those-gone", BALANCE, "least = min(inflight.get(i, 0) for i in ids)",
        "least = min(inflight.values()) if len(inflight) >= len(ids) else 0", "IndexError", LEAST),
    leaves("two-may-be-one", BALANCE, TWO, "return min(self.rng.choices(ids, k=2), key=lambda i: inflight.get(i, 0))",
        "draw different ones", POWER),
    leaves("two-are-all", BALANCE, TWO, "return min(ids, key=lambda i: inflight.get(i, 0))", "all were compared",
        POWER),
    leaves("of-equal-ones-the-lower", BALANCE, TWO, TWO.replace("inflight.get(i, 0))", "(inflight.get(i, 0), i))"),
        "the lower id was taken", POWER),
    leaves("one-of-one", BALANCE, "self.rng.sample(ids, min(2, len(ids)))", "self.rng.sample(ids, 2)", "ValueError",
        POWER),
    leaves("never-counted-down", CLIENT, DOWN, "            pass\n", "still counts", "ACallIsCountedUntilItEnds"),
    leaves("counted-down-at-the-end-only", CLIENT, "        except StopAsyncIteration:\n            return\n",
        "        except StopAsyncIteration:\n            return\n        except GeneratorExit:\n"
        "            self.inflight[instance.id] += 1\n            raise\n", "still counts",
        "ACallIsCountedUntilItEnds"),
    leaves("one-end-is-all", CLIENT, DOWN, "            self.inflight[instance.id] = 0\n",
        "ended the count of the other", "ACallIsCountedUntilItEnds"),
    leaves("asks-though-named", CLIENT, "        return instances[self.balancer",
        "        self.balancer.choose(list(instances), self.inflight)\n        return instances[self.balancer",
        "who is named needs no choice", "ACallIsCountedUntilItEnds"),
    leaves("refusal-is-no-failure", CLIENT,
        "        except ConnectionError:\n            self.report_down(instance.id)\n",
        "        except ConnectionError as error:\n            if type(error).__name__ != 'RefusedError':\n"
        "                self.report_down(instance.id)\n", "RefusedError is a ConnectionError", "WhoFailsIsLeftAlone"),
    leaves("routes-when-stopped", CLIENT, "if self.runtime.alive else {}", "if self.runtime.discovery.alive else {}",
        "in a process that has stopped", "NobodyRoutesWithoutALease"),
    leaves("named-without-a-lease", CLIENT, "if self.runtime.alive else {}",
        "if self.runtime.alive or instance_id is not None else {}", "by name, it chose", "NobodyRoutesWithoutALease"),
    leaves("balancer-is-told-nothing", CLIENT, "choose(list(instances), self.inflight)", "choose(list(instances), {})",
        "it needs those in flight", "ACallIsCountedUntilItEnds"),
    leaves("failed-is-asked-again", CLIENT, "            self.report_down(instance.id)\n            raise\n",
        "            raise\n", "leave it alone", "WhoFailsIsLeftAlone"),
    leaves("errors-are-down-too", CLIENT, "        except ConnectionError:\n            self.report",
        "        except Exception:\n            self.report", "nobody is down", "WhoFailsIsLeftAlone"),
    leaves("names-are-ignored", CLIENT, "if instance_id is None else instance_id]", "if True else instance_id]",
        "was named", "WhoFailsIsLeftAlone"),
    leaves("named-but-down", CLIENT, " or (instance_id is not None and instance_id not in instances):", ":",
        "may not be called", "WhoFailsIsLeftAlone"),
    leaves("waits-for-ever", CLIENT, "yield await self.item(items)", "yield await anext(items)", "use `self.item`",
        "SilenceIsAFailure"),
    leaves("routes-without-a-lease", CLIENT, "self.instances() if self.runtime.alive else {}", "self.instances()",
        "without a lease", "NobodyRoutesWithoutALease"),
    leaves("serves-on-after-expiry", RUNTIME, ALIVE, 'return self.state in ("running", "leaving", "draining")',
        "it serves on after its lease has expired", "NothingIsSentWithoutALease"),
    leaves("silent-while-draining", RUNTIME, ALIVE,
        'return self.state in ("running", "leaving") and self.discovery.alive',
        "answers were cut off", LEAVING),
    leaves("silent-while-leaving", RUNTIME, ALIVE,
        'return self.state == "draining" or (self.state == "running" and self.discovery.alive)', "go on to answer",
        "LeavingWithoutARegistry"),
    leaves("drops-requests", RUNTIME, "await self.server.drain()", "pass", "answers were cut off", LEAVING),
    leaves("drains-first", RUNTIME, REVOKE, DRAINED + "            await self.discovery.revoke()\n",
        "still registered", LEAVING),
    leaves("never-gives-back", RUNTIME, REVOKE, '            self.state = "draining"\n', "still registered", LEAVING),
    leaves("no-limit-to-draining", RUNTIME,
        "self.clock.timeout_at(self.clock.now + drain) if drain is not None else nullcontext()",
        "nullcontext()", "expected about", LEAVING),
    leaves("drains-as-long-as-its-lease", RUNTIME, 'return self.state == "draining" or (self.state in ("running", ',
        'return self.discovery.alive and (self.state == "draining") or (self.state in ("running", ',
        "answers were cut off", LEAVING),
    leaves("stopped-is-alive", RUNTIME, 'self.state == "draining" or', 'self.state in ("draining", "stopped") or',
        "`alive` still says yes", LEAVING),
    leaves("stops-again", RUNTIME, """        if self.state != "running":
            return
        self.state = "leaving\"""", """        self.state = "leaving\"""", "it changes nothing", LEAVING),
    leaves("nought-is-no-limit", RUNTIME, "if drain is not None else", "if drain else", "0 is a limit",
        "NoTimeToDrain"),
    leaves("late-is-raised", RUNTIME, "        with suppress(TimeoutError):\n            await self.discovery.revoke()",
        "        with nullcontext():\n            await self.discovery.revoke()", "it raised TimeoutError", LEAVING),
    leaves("never-ends", RUNTIME, "                await self.server.drain()\n        self.cancel()\n",
        "                await self.server.drain()\n", "then the state is", LEAVING),
    leaves("begins-while-draining", RPC, "and wait for those that were begun.\"\"\"\n        self.accepting = False\n",
        "and wait for those that were begun.\"\"\"\n", "it must be refused", "ADrainWaitsForTheLast"),
    leaves("gathers", RPC, "await asyncio.wait(list(self.active))", "await asyncio.gather(*self.active)",
        "CancelledError", "ADrainWaitsForTheLast"),
    leaves("open-again", RPC, "            await asyncio.wait(list(self.active))\n",
        "            await asyncio.wait(list(self.active))\n        self.accepting = True\n", "after it has drained",
        "ADrainWaitsForTheLast"),
    leaves("waits-for-one", RPC, "        while self.active:\n            await asyncio.wait(list(self.active))\n",
        "        if self.active:\n            await asyncio.wait(list(self.active), return_when='FIRST_COMPLETED')\n",
        "the last call's end", "ADrainWaitsForTheLast"),
]  # fmt: skip

ASKS = 'return {"token_ids": self.prompt + self.tokens, "max_tokens": self.max_tokens - len(self.tokens)}'
REST, ANY, LIMIT = "TheRestIsWhatIsMissing", "AnyTokenMayBeTheLast", "MigrationHasALimit"
ENDS = """                if progress.finish_reason is not None:
                    return
"""
EARLY = '        raise ConnectionError("the worker ended its answer before the last token")\n'

_MIGRATES = [
    migrates("begins-again", ASKS, ASKS.replace("self.prompt + self.tokens", "self.prompt"),
        "the answer begins again", REST),
    migrates("tokens-come-twice", ASKS, 'return {"token_ids": self.prompt, "max_tokens": self.max_tokens}',
        "the whole request was sent again", REST),
    migrates("too-many", ASKS, ASKS.replace(" - len(self.tokens)", ""), "max_tokens shrinks", REST),
    migrates("twice-in-the-stream", ASKS, 'return {"token_ids": self.prompt, "max_tokens": self.max_tokens}',
        "tokens came twice", ANY),
    migrates("asks-for-nothing", "if self.finish_reason is not None or len(self.tokens) >= self.max_tokens:",
        "if len(self.tokens) > self.max_tokens:", "expected ValueError", REST),
    migrates("full-is-not-complete", "if self.finish_reason is None and len(self.tokens) == self.max_tokens:",
        "if False:", "expected 'length'", REST),
    migrates("length-wins", "if self.finish_reason is None and len(self.tokens)", "if len(self.tokens)",
        "expected 'stop'", REST),
    migrates("one-limit-for-all", "if lost > self.limit:", "if self.migrations >= self.limit:",
        "that of one request", "EachRequestHasItsOwnLimit"),
    migrates("pauses-before-it-raises", """                if lost > self.limit:
                    raise
                self.migrations += 1
                await self.clock.sleep_until(self.clock.now + self.pause)
""", """                await self.clock.sleep_until(self.clock.now + self.pause)
                if lost > self.limit:
                    raise
                self.migrations += 1
""", "before the error is raised", LIMIT),
    migrates("stop-is-forgotten", 'self.finish_reason = item["finish_reason"]', "self.finish_reason = None",
        "after a stop token", REST),
    migrates("token-dropped", "        self.tokens.append(item[\"token\"])\n",
        "        if len(self.tokens) != 5:\n            self.tokens.append(item[\"token\"])\n",
        "it asks for", REST),
    migrates("after-the-last", ENDS, "", "what breaks after the last token does not matter", ANY),
    migrates("one-too-many", "if lost > self.limit:", "if lost > self.limit + 1:", "one too many", LIMIT),
    migrates("one-too-few", "if lost > self.limit:", "if lost >= self.limit:", "one too few", LIMIT),
    migrates("for-ever", "if lost > self.limit:", "if False:", "the limit was not looked at", LIMIT),
    migrates("no-pause", "await self.clock.sleep_until(self.clock.now + self.pause)", "pass", "pauses of", ANY),
    migrates("any-error", "            except ConnectionError:\n", "            except Exception:\n",
        "Another worker raises too", "OnlyTheLostAreReplaced"),
    migrates("early-end-is-complete", EARLY, "        progress.finish_reason = \"length\"\n",
        "an answer that just ends is taken for complete", "OnlyTheLostAreReplaced"),
    migrates("count-forgotten", "                self.migrations += 1\n", "", "migrations counted", ANY),
    migrates("lost-tokens-anywhere", ASKS, ASKS.replace("self.prompt + self.tokens", "self.prompt"),
        "a token came twice or not at all", "WhateverHappens"),
]  # fmt: skip

MUTANTS = [*_EXISTS, *_LEASE, *_LEAVES, *_MIGRATES]
