"""Plausible wrong solutions of Week 3 Day 2, and the case that catches each."""

from course.mutants import Mutant

PREFILL, CHUNKED, MIXED = "serving/prefill.py", "serving/chunked.py", "serving/mixed.py"


def adder(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, PREFILL, old, new, message, killer)


def chunked(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, CHUNKED, old, new, message, killer)


def mixed(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, MIXED, old, new, message, killer)


def preempts(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, MIXED, old, new, message, killer)


WORST = "return pages_for(request.max_device_len - 1, page_size)"
GUARD = "if self.token_budget == 0 or (request.row is None and not self.admit(request)):"
CHUNK = "chunk = min(self.token_budget, request.extend_len)"
NEEDED = "needed = worst_case(request, memory.page_size) - prefix.tokens // memory.page_size"
FIRST = """        if self.reserved + needed > memory.available:
            return False
        memory.open(request, prefix)
"""
SECOND = """        if self.reserved + needed > memory.available:  # its prefix cannot be evicted any more
            memory.close(request)
            request.reset()
            return False
"""
RESERVE = "        self.reserved += needed\n"
ROWS = """        if memory.free_rows == 0:
            return False
"""

_ADDER = [
    adder("last-counted", WORST, WORST.replace(" - 1", ""), "the last token was counted", "WorstCaseIsAClosedForm"),
    adder(
        "as-asked-for",
        WORST,
        "return pages_for(request.prompt_len + request.max_tokens - 1, page_size)",
        "max_tokens was taken, though memory allows fewer",
        "WorstCaseIsAClosedForm",
    ),
    adder(
        "row-zero-is-no-row",
        GUARD,
        GUARD.replace("request.row is None", "not request.row"),
        "it was tested again",
        "ABegunPromptGoesOn",
    ),
    adder(
        "prompt-counted",
        WORST,
        "return pages_for(request.prompt_len, page_size)",
        "only the prompt was counted",
        "WorstCaseIsAClosedForm",
    ),
    adder(
        "tokens-counted",
        WORST,
        "return request.max_device_len - 1",
        "tokens were counted, not pages",
        "WorstCaseIsAClosedForm",
    ),
    adder(
        "rounded-down",
        WORST,
        "return (request.max_device_len - 1) // page_size",
        "pages were rounded down",
        "WorstCaseIsAClosedForm",
    ),
    adder(
        "what-is-left",
        WORST,
        WORST.replace(" - 1", " - 1 - request.cached_len"),
        "it shrinks while the request runs",
        "WorstCaseIsAClosedForm",
    ),
    adder(
        "budget-not-accumulated",  # mini-sglang 2dfd96f
        "        self.token_budget -= chunk\n",
        "",
        "the budget does not shrink",
        "AddFillsTheBudget",
    ),
    adder(
        "prompt-against-budget",  # sglang-jax PR 1328
        GUARD,
        GUARD.replace("self.token_budget == 0", "self.token_budget < request.extend_len"),
        "the prompt was compared with the budget, and not its chunk",
        "AddFillsTheBudget",
    ),
    adder(
        "whole-prompt",
        CHUNK,
        CHUNK.replace("extend_len", "prompt_len"),
        "a prompt that was begun started again",
        "AddFillsTheBudget",
    ),
    adder(
        "admitted-without-tokens",
        GUARD,
        "if (request.row is None and not self.admit(request)) or self.token_budget == 0:",
        "without tokens nobody is admitted",
        "AddFillsTheBudget",
    ),
    adder(
        "begun-tested-again",
        GUARD,
        "if self.token_budget == 0 or not self.admit(request):",
        "it was tested again",
        "ABegunPromptGoesOn",
    ),
    adder(
        "nothing-reserved",
        NEEDED,
        NEEDED + "\n        self.reserved = 0",
        "nothing that was promised is counted",
        "AdmitsWhatRunsToItsEnd",
    ),
    adder("not-accumulated", RESERVE, "", "those admitted in the same batch are not counted", "AdmitsWhatRunsToItsEnd"),
    adder(
        "answer-not-reserved",
        NEEDED,
        NEEDED.replace("worst_case(request, memory.page_size)", "pages_for(request.prompt_len, memory.page_size)"),
        "only the prompt is reserved, not the answer",
        "AdmitsWhatRunsToItsEnd",
    ),
    adder("a-page-kept-back", FIRST, FIRST.replace(">", ">="), "were admitted, expected", "AdmitsWhatRunsToItsEnd"),
    adder(
        "always-fits", FIRST + SECOND, "        memory.open(request, prefix)\n", "expected", "AdmitsWhatRunsToItsEnd"
    ),
    adder("tested-once", SECOND, "", "its cached prefix was counted twice", "LocksThenTestsAgain"),
    adder(
        "not-unlocked",
        SECOND,
        SECOND.replace("            memory.close(request)\n", ""),
        "it must be closed again",
        "LocksThenTestsAgain",
    ),
    adder(
        "stale-cached-len",
        SECOND,
        SECOND.replace("            request.reset()\n", ""),
        "a request that was refused must be as before",
        "LocksThenTestsAgain",
    ),
    adder(
        "prefix-not-subtracted",
        NEEDED,
        "needed = worst_case(request, memory.page_size)",
        "its cached prefix was not subtracted from what it needs",
        "LocksThenTestsAgain",
    ),
    adder(
        "promised-though-refused",
        FIRST,
        "        self.reserved += needed\n        if self.reserved > memory.available:\n            return False\n"
        "        self.reserved -= needed\n        memory.open(request, prefix)\n",
        "nothing is promised to it",
        "LocksThenTestsAgain",
    ),
    adder("prefix-run-again", CHUNK, CHUNK.replace("extend_len", "device_len"), "run again", "LocksThenTestsAgain"),
    adder("rows-not-asked", ROWS, "", "ask `free_rows` before a row is opened", "RowsRunOut"),
]

NOBODY = """        if not self.waiting:
            return []
"""
ADDER = "adder = PrefillAdder(self.memory, chain(self.running.values(), begun), self.token_budget)"
STOP = """            if tokens == 0:
                break
"""
LAUNCH = "        steps = [self.launch(request, tokens) for request, tokens in chunks]\n"
EACH = "        for step in steps:\n"
LEAVE = """            if step.samples:
                self.waiting.popleft()
"""
NOTE = "            chunks.append((request, tokens))\n"

_CHUNKED = [
    chunked("empty-queue", NOBODY, "", "IndexError", "ChunkedEqualsOneShot"),
    chunked(
        "waits-for-a-chunk",
        NOBODY,
        "        if not self.waiting or (self.waiting[0].row is not None and self.waiting[0].in_flight):\n"
        "            return []\n",
        "a chunk waits for the result of the one before",
        "ChunksNeedNoResult",
    ),
    chunked(
        "launched-at-once",
        NOTE + LAUNCH,
        NOTE.replace("(request, tokens)", "self.launch(request, tokens)") + "        steps = chunks\n",
        "pages were counted twice",
        "AdmitsAllThatFit",
    ),
    chunked(
        "begun-not-reserved",
        ADDER,
        ADDER.replace("chain(self.running.values(), begun)", "self.running.values()"),
        "an admitted request asked for a page and there was none",
        "AllocationNeverFails",
    ),
    chunked(
        "begun-row-zero",
        "if request.row is not None]",
        "if request.row]",
        "the pages that the begun one may still ask for are not reserved",
        "ABegunPromptKeepsItsPromise",
    ),
    chunked(
        "running-not-reserved",
        ADDER,
        ADDER.replace("chain(self.running.values(), begun)", "chain(begun)"),
        "an admitted request asked for a page and there was none",
        "AllocationNeverFails",
    ),
    chunked(
        "overtaken",
        STOP + NOTE + LAUNCH + EACH + LEAVE,
        STOP.replace("break", "continue") + NOTE + LAUNCH + EACH + LEAVE.replace("popleft()", "remove(step.request)"),
        "somebody was overtaken",
        "AllocationNeverFails",
    ),
    chunked(
        "forgotten-after-a-chunk", LEAVE, "            self.waiting.popleft()\n", "expected", "ChunksAreCutFromTheQueue"
    ),
    chunked("never-leaves", LEAVE, "            pass\n", "expected", "ChunksAreCutFromTheQueue"),
    chunked(
        "begun-goes-to-the-end",
        LEAVE,
        LEAVE + "            else:\n                self.waiting.rotate(-1)\n",
        "the first batches are",
        "ChunksAreCutFromTheQueue",
    ),
    chunked(
        "one-prompt-a-batch",
        NOTE,
        NOTE + "            break\n",
        "the first batches are",
        "ChunksAreCutFromTheQueue",
    ),
    chunked(
        "a-budget-for-each",
        "            tokens = adder.add(request)\n",
        "            adder.token_budget = self.token_budget\n            tokens = adder.add(request)\n",
        "the first batches are",
        "ChunksAreCutFromTheQueue",
    ),
    chunked(
        "no-budget",
        ADDER,
        ADDER.replace("self.token_budget)", "8192)"),
        "the first batches are",
        "ChunksAreCutFromTheQueue",
    ),
]

SPARE = "spare = self.token_budget - len(running)  # one token is set aside for each"
TOKENS = "tokens = min(request.extend_len, self.max_chunk, 1 + spare)"
SPEND = "            spare -= tokens - 1\n"
LOOP = f"""        {SPARE}
        steps = []
        for request in running:
            {TOKENS}
            step = None if request.row is None else self.run(request, tokens)
            if step is None:
                break
            steps.append(step)
{SPEND}"""
FINISHED = "[request for request in self.running.values() if request.remain_len]"
FIRST_CHUNK = "tokens = min(request.extend_len, self.max_chunk, budget)"
ASKS = "while self.waiting and self.memory.free_rows and budget:"
MOVE = "            self.running[request.uid] = self.waiting.popleft()\n"
UNDO = """                self.memory.close(request)
                request.reset()
                break
"""
OPEN = "            self.memory.open(request, self.memory.match(request))\n"
ADMIT = """        else:
            steps += self.admit(spare)
"""

_MIXED = [
    mixed("mixed-budget-not-accumulated", SPEND, "", "the budget is", "MixedEqualsAlone"),
    mixed(
        "set-aside-for-the-done",
        "spare = self.token_budget - len(running)",
        "spare = max(self.token_budget - len(self.running), 0)",
        "for requests that choose none any more",
        "NoTokenIsSetAsideForTheDone",
    ),
    mixed(
        "own-token-spent-twice",
        SPEND,
        "            spare = max(spare - tokens, 0)\n",
        "could run with a budget",
        "TheBudgetIsUsed",
    ),
    mixed("nothing-set-aside", SPARE, "spare = self.token_budget", "the budget is", "MixedEqualsAlone"),
    mixed(
        "prompts-first",
        LOOP,
        LOOP.replace("for request in running", "for request in sorted(running, key=lambda r: -r.extend_len)")
        .replace(SPARE, "spare = self.token_budget")
        .replace("1 + spare", "spare")
        .replace("if request.row is None", "if request.row is None or not tokens")
        .replace("spare -= tokens - 1", "spare -= tokens"),
        "was decoding, and is not in batches",
        "MixedEqualsAlone",
    ),
    mixed(
        "not-mixed",
        ADMIT,
        ADMIT.replace("self.admit(spare)", "[] if steps else self.admit(spare)"),
        "could run with a budget",
        "TheBudgetIsUsed",
    ),
    mixed(
        "prefill-only",
        SPARE,
        SPARE + "\n        running = [r for r in running if r.extend_len > 1] or running",
        "was decoding, and is not in batches",
        "MixedEqualsAlone",
    ),
    mixed("finished-goes-on", FINISHED, "list(self.running.values())", "has had its", "MixedEqualsAlone"),
    mixed(
        "no-limit", TOKENS, "tokens = min(request.extend_len, 1 + spare)", "max_chunk is", "OneLongPromptDoesNotBlock"
    ),
    mixed(
        "no-limit-at-first",
        FIRST_CHUNK,
        "tokens = min(request.extend_len, budget)",
        "max_chunk is",
        "OneLongPromptDoesNotBlock",
    ),
    mixed("first-chunks-not-counted", "            budget -= tokens\n", "", "the budget is", "TheBudgetIsUsed"),
    mixed("mixed-rows-not-asked", ASKS, "while self.waiting and budget:", "rows are free", "MixedEqualsAlone"),
    mixed(
        "worst-case-reserved",
        OPEN,
        "            if -(-(request.max_device_len - 1) // self.memory.page_size) > self.memory.available:\n"
        "                break\n" + OPEN,
        "the worst case was reserved",
        "FirstChunkIsEnough",
    ),
    mixed(
        "half-prefilled-lost",
        MOVE,
        "            self.waiting.popleft()\n",
        "also the one whose prompt was launched in part",
        "FirstChunkIsEnough",
    ),
    mixed(
        "not-closed",
        UNDO,
        UNDO.replace("                self.memory.close(request)\n", ""),
        "must be closed again",
        "FirstChunkIsEnough",
    ),
    mixed(
        "mixed-stale-cached-len",
        UNDO,
        UNDO.replace("                request.reset()\n", ""),
        "it must be as before",
        "FirstChunkIsEnough",
    ),
    mixed(
        "sent-to-the-end",
        UNDO,
        UNDO.replace("break", "self.waiting.rotate(-1)\n                break"),
        "those that wait are",
        "FirstChunkIsEnough",
    ),
    mixed(
        "mixed-overtaken",
        "            except OutOfPagesError:\n                self.memory.close(request)\n",
        "            except OutOfPagesError:\n                self.memory.close(request)\n"
        "                if len(self.waiting) > 1 and self.memory.available > 2:\n"
        "                    self.memory.open(self.waiting[1], self.memory.match(self.waiting[1]))\n"
        "                    self.running[self.waiting[1].uid] = self.waiting[1]\n"
        "                    steps.append(self.launch(self.waiting[1], 1))\n"
        "                    del self.waiting[1]\n",
        "a request was overtaken",
        "FirstChunkIsEnough",
    ),
]

NEWEST = "newest = self.running[next(reversed(self.running))]"
WAITS = "if newest is request or newest.in_flight:"
PREEMPT = """        del self.running[request.uid]
        self.memory.close(request)
        request.reset()
        self.waiting.appendleft(request)
"""
MISSED = """            if step is None:
                break
"""

_PREEMPTS = [
    preempts(
        "oldest",
        NEWEST,
        "newest = next(r for r in self.running.values() if r is not request)",
        "an old one was preempted",
        "TheNewestIsPreempted",
    ),
    preempts(
        "largest-uid",
        NEWEST,
        "newest = self.running[max(self.running)]",
        "go on, expected",
        "TheNewestIsPreempted",
    ),
    preempts(
        "sorted-by-uid",
        PREEMPT,
        PREEMPT + "        self.waiting = type(self.waiting)(sorted(self.waiting, key=lambda one: one.uid))\n",
        "those that wait are",
        "TheNewestIsPreempted",
    ),
    preempts(
        "moves-the-prompt",
        PREEMPT,
        PREEMPT + "        request.prompt_len = len(request.ids)\n",
        "prompt_len stays what the client sent",
        "TheNewestIsPreempted",
    ),
    preempts(
        "to-the-end",
        PREEMPT,
        PREEMPT.replace("appendleft", "append"),
        "to the end of the queue",
        "TheNewestIsPreempted",
    ),
    preempts(
        "lost",
        PREEMPT,
        PREEMPT.replace("        self.waiting.appendleft(request)\n", ""),
        "one that was preempted is lost",
        "TheNewestIsPreempted",
    ),
    preempts(
        "stale-counters",  # nano-vllm 211, 233
        PREEMPT,
        PREEMPT.replace("        request.reset()\n", ""),
        "tokens are computed again",
        "TheNewestIsPreempted",
    ),
    preempts(
        "answer-forgotten",  # nano-vllm 217
        PREEMPT,
        PREEMPT.replace("request.reset()", "request.ids.pop()\n        request.reset()"),
        "tokens are computed again",
        "TheNewestIsPreempted",
    ),
    preempts(
        "begins-its-answer-again",
        PREEMPT,
        PREEMPT.replace("request.reset()", "del request.ids[request.prompt_len :]\n        request.reset()"),
        "tokens are computed again",
        "TheNewestIsPreempted",
    ),
    preempts(
        "pages-kept",
        PREEMPT,
        PREEMPT.replace("        self.memory.close(request)\n", ""),
        "go on, expected",
        "TheNewestIsPreempted",
    ),
    preempts(
        "still-running",
        PREEMPT,
        PREEMPT.replace("        del self.running[request.uid]\n", ""),
        "was closed before",
        "TheNewestIsPreempted",
    ),
    preempts(
        "all-newer-ones",
        "        self.preempt(newest)\n",
        "        self.preempt(newest)\n"
        "        order = list(self.running)\n"
        "        for uid in order[order.index(request.uid) + 1 :][::-1]:\n"
        "            self.preempt(self.running[uid])\n",
        "go on, expected",
        "TheNewestIsPreempted",
    ),
    preempts(
        "admitted-at-once",
        ADMIT,
        "        steps += self.admit(spare)\n",
        "somebody was admitted although pages were missing",
        "TheNewestIsPreempted",
    ),
    preempts(
        "nobody-preempted",
        WAITS,
        "if newest:",
        "expected",
        "TheNewestIsPreempted",
    ),
    preempts(
        "in-flight-preempted",
        WAITS,
        "if newest is request:",
        "with a step in flight a request cannot be preempted",
        "InFlightIsLeftAlone",
    ),
    preempts(
        "empty-batch",
        "return Batch(tuple(steps)) if steps else None",
        "return Batch(tuple(steps))",
        "a batch without steps was launched",
        "InFlightIsLeftAlone",
    ),
    preempts(
        "newest-flies-on",
        MISSED,
        MISSED.replace("break", "continue"),
        "the oldest never gets its page",
        "InFlightIsLeftAlone",
    ),
    preempts(
        "preempts-itself",
        WAITS + "\n            return False\n",
        "if newest.in_flight:\n            return False\n        if newest is request:\n"
        "            self.preempt(newest)\n            return False\n",
        "it preempted itself",
        "TheNewestItselfWaits",
    ),
]

MUTANTS = _ADDER + _CHUNKED + _MIXED + _PREEMPTS
