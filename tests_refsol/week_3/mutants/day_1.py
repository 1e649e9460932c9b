"""Plausible wrong solutions of Week 3 Day 1, and the case that catches each."""

from course.mutants import Mutant

REQUEST, SCHEDULER, RAGGED = "serving/request.py", "serving/scheduler.py", "serving/ragged.py"


def knows(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, REQUEST, old, new, message, killer)


def chooses(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, SCHEDULER, old, new, message, killer)


def reads(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, SCHEDULER, old, new, message, killer)


def runs(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, RAGGED, old, new, message, killer)


SAMPLES = "samples = tokens == self.extend_len\n"
STEP = "step = Step(self, self.cached_len, self.cached_len + tokens, samples)\n"
CACHED, DEVICE = "        self.cached_len += tokens\n", "        self.device_len += samples\n"
COUNT = "        self.in_flight += 1\n"
FEW = "if not 1 <= tokens <= self.extend_len:"
LAST = "if samples and self.remain_len == 0:"
CHOSEN = "if len(self.ids) >= self.device_len:"
APPEND = "        self.ids.append(token)\n"
STOP = "        if token in self.stop_tokens:\n"
LENGTH = 'return "length" if len(self.ids) == self.max_device_len else None'
RESET = "self.cached_len, self.device_len, self.row = 0, len(self.ids), None"
BUSY = "        if self.in_flight:\n"

_KNOWS = [
    knows("cached-at-result", CACHED, "", "a launch moves cached_len", "LengthsMoveAtLaunch"),
    knows(
        "cached-is-device",
        CACHED,
        "        self.cached_len = self.device_len\n",
        "by the tokens that it runs",
        "LengthsMoveAtLaunch",
    ),
    knows("device-at-result", DEVICE, "", "device_len grows by 1", "LengthsMoveAtLaunch"),
    knows(
        "device-grows-with-append",
        APPEND,
        APPEND + "        self.device_len = len(self.ids) + 1\n",
        "not when a result is read",
        "LengthsMoveAtLaunch",
    ),
    knows("chunk-chooses", DEVICE, "        self.device_len += 1\n", "a chunk of a prompt", "LengthsMoveAtLaunch"),
    knows("chunk-samples", SAMPLES, "samples = True\n", "a chunk of a prompt", "LengthsMoveAtLaunch"),
    knows(
        "prompt-only-samples",
        SAMPLES,
        "samples = self.cached_len + tokens == self.prompt_len\n",
        "device_len grows by 1",
        "LengthsMoveAtLaunch",
    ),
    knows(
        "step-after-launch",
        STEP + CACHED,
        CACHED.lstrip() + "        " + STEP,
        "it was made after cached_len moved",
        "LengthsMoveAtLaunch",
    ),
    knows("flight-uncounted", COUNT, "", "is in flight until its batch is committed", "LengthsMoveAtLaunch"),
    knows(
        "flight-ends-with-append",
        APPEND,
        APPEND + "        self.in_flight -= 1\n",
        "who commits the batch counts",
        "LengthsMoveAtLaunch",
    ),
    knows("no-token-launched", FEW, "if tokens > self.extend_len:", "was accepted", "LaunchRefusesOtherNumbers"),
    knows("too-many-launched", FEW, "if tokens < 1:", "was accepted", "LaunchRefusesOtherNumbers"),
    knows("launched-beyond-the-end", LAST, "if False:", "was accepted", "LaunchRefusesOtherNumbers"),
    knows(
        "refused-too-late",
        LAST,
        "self.in_flight += 1\n        " + LAST,
        "the state after",
        "LaunchRefusesOtherNumbers",
    ),
    knows("stop-unknown", STOP, "        if False:\n", "the stop token was not recognised", "ResultsTellTheEnd"),
    knows(
        "stop-only-nonzero",
        STOP,
        "        if token and token in self.stop_tokens:\n",
        "the stop token was not recognised",
        "ResultsTellTheEnd",
    ),
    knows(
        "stop-dropped",
        APPEND + STOP + '            return "stop"\n',
        STOP + '            return "stop"\n' + APPEND,
        "the last token is missing in ids",
        "ResultsTellTheEnd",
    ),
    knows(
        "stop-in-prompt",
        STOP,
        "        if self.stop_tokens.intersection(self.ids):\n",
        "a stop token of the prompt",
        "ResultsTellTheEnd",
    ),
    knows(
        "length-before-stop",
        STOP,
        '        if len(self.ids) == self.max_device_len:\n            return "length"\n' + STOP,
        "a stop token that comes last is a stop",
        "ResultsTellTheEnd",
    ),
    knows(
        "length-early", LENGTH, LENGTH.replace("_len else", "_len - 1 else"), "one token too early", "ResultsTellTheEnd"
    ),
    knows("length-late", LENGTH, LENGTH.replace("==", ">"), "the end of the length was missed", "ResultsTellTheEnd"),
    knows(
        "length-at-launch",
        LENGTH,
        LENGTH.replace("len(self.ids)", "self.device_len"),
        "which is ahead of the results",
        "ResultsTellTheEnd",
    ),
    knows(
        "length-uncut",
        LENGTH,
        LENGTH.replace("self.max_device_len", "self.prompt_len + self.max_tokens"),
        "which a scheduler may cut",
        "ResultsTellTheEnd",
    ),
    knows("any-result-taken", CHOSEN, "if False:", "was accepted", "AppendRefusesATokenOfNoStep"),
    knows("one-result-too-many", CHOSEN, CHOSEN.replace(">=", ">"), "was accepted", "AppendRefusesATokenOfNoStep"),
    knows(
        "appended-before-refused",
        CHOSEN,
        "self.ids.append(token)\n        if len(self.ids) > self.device_len:",
        "the ids",
        "AppendRefusesATokenOfNoStep",
    ),
    knows(
        "reset-stale-cached",
        RESET,
        "self.device_len, self.row = len(self.ids), None",
        "nothing is computed any more",
        "ResetBeginsAgainWithAllIds",
    ),
    knows(
        "reset-to-prompt",
        RESET,
        RESET.replace("len(self.ids)", "self.prompt_len"),
        "the results that were read included",
        "ResetBeginsAgainWithAllIds",
    ),
    knows(
        "reset-drops-results",
        RESET,
        "del self.ids[self.prompt_len :]\n        " + RESET,
        "a reset forgets no token",
        "ResetBeginsAgainWithAllIds",
    ),
    knows(
        "reset-keeps-row",
        RESET,
        "self.cached_len, self.device_len = 0, len(self.ids)",
        "the row was given back",
        "ResetBeginsAgainWithAllIds",
    ),
    knows(
        "reset-moves-the-prompt",
        RESET,
        RESET + "\n        self.prompt_len = len(self.ids)",
        "the prompt stays what the client sent",
        "ResetBeginsAgainWithAllIds",
    ),
    knows("reset-in-flight", BUSY, "        if False:\n", "was accepted", "ResetWaitsForSteps"),
    knows("reset-with-one-in-flight", BUSY, "        if self.in_flight > 1:\n", "was accepted", "ResetWaitsForSteps"),
]

TWICE = "if request.uid in self.requests:"
LONG = "if request.prompt_len >= self.memory.max_len:"
CUT = "request.max_device_len = min(request.max_device_len, self.memory.max_len)"
LINE = "self.waiting.append(request)"
ADMIT = "while self.waiting and self.memory.free_rows:"
NEXT = "request = self.waiting[0]\n"
OVER = "            if steps and request.extend_len > budget:\n                break\n"
PAY = "            budget -= request.extend_len\n"
OPEN = "self.memory.open(self.waiting.popleft(), self.memory.match(request))"
WHOLE = "steps.append(self.launch(request, request.extend_len))"
DECODE = "return [self.launch(request, 1) for request in self.running.values() if request.remain_len]"

_CHOOSES = [
    chooses("uid-taken-twice", TWICE, "if False:", "was accepted", "AddRefusesWhatCannotEnd"),
    chooses(
        "uid-of-waiting-only",
        TWICE,
        "if any(other.uid == request.uid for other in self.waiting):",
        "was accepted",
        "AddRefusesWhatCannotEnd",
    ),
    chooses(
        "long-prompt-dropped",
        LONG,
        LONG + "\n            return\n        if False:",
        "was dropped silently",
        "AddRefusesWhatCannotEnd",
    ),
    chooses("long-prompt-taken", LONG, LONG.replace(">=", ">"), "was accepted", "AddRefusesWhatCannotEnd"),
    chooses(
        "longest-prompt-refused",
        LONG,
        LONG.replace("max_len:", "max_len - 1:"),
        "the prompt has 9 tokens",
        "AddPutsRequestsInLine",
    ),
    chooses(
        "refused-but-kept",
        LONG,
        "self.waiting.append(request)\n        if request.prompt_len < self.memory.max_len:\n"
        "            self.waiting.pop()\n        else:",
        "a refused request must leave no trace",
        "AddRefusesWhatCannotEnd",
    ),
    chooses("max-tokens-uncut", CUT, "pass", "max_tokens was not cut", "AddPutsRequestsInLine"),
    chooses(
        "cut-too-much", CUT, CUT.replace("max_len)", "max_len - 1)"), "one token too early", "AddPutsRequestsInLine"
    ),
    chooses(
        "cut-without-prompt",
        CUT,
        "request.max_device_len = request.prompt_len + min(request.max_tokens, self.memory.max_len)",
        "without the prompt",
        "AddPutsRequestsInLine",
    ),
    chooses(
        "newest-first", LINE, "self.waiting.appendleft(request)", "the newest stands first", "AddPutsRequestsInLine"
    ),
    chooses(
        "opened-on-arrival",
        LINE,
        LINE + "\n        self.memory.match(request)\n        self.memory.open(request, self.memory.match(request))",
        "`add` asked the memory",
        "AddPutsRequestsInLine",
    ),
    chooses(
        "static-batching",
        ADMIT,
        "while self.waiting and self.memory.free_rows and (steps or not self.running):",
        "static batching",
        "RequestsJoinAndLeaveBetweenSteps",
    ),
    chooses("rows-unchecked", ADMIT, "while self.waiting:", "rows are free", "PrefillAdmitsInOrder"),
    chooses(
        "one-prompt-a-batch",
        ADMIT,
        "while self.waiting and self.memory.free_rows and not steps:",
        "one prompt per batch",
        "PrefillAdmitsInOrder",
    ),
    chooses("budget-ignored", OVER, "", "the budget was not looked at", "PrefillAdmitsInOrder"),
    chooses("budget-not-paid", PAY, "", "the budget is not counted down", "PrefillAdmitsInOrder"),
    chooses("long-prompt-starves", OVER, OVER.replace("steps and ", ""), "never runs", "PrefillAdmitsInOrder"),
    chooses(
        "exact-fit-refused", OVER, OVER.replace("> budget", ">= budget"), "prefill batches", "PrefillAdmitsInOrder"
    ),
    chooses(
        "overtakes",
        NEXT + OVER,
        "request = next((r for r in self.waiting if not steps or r.extend_len <= budget), None)\n"
        "            if request is None:\n                break\n"
        "            self.waiting.remove(request)\n            self.waiting.appendleft(request)\n",
        "a later prompt overtook",
        "PrefillAdmitsInOrder",
    ),
    chooses(
        "last-in-line-first",
        NEXT,
        "self.waiting.rotate(1)\n            request = self.waiting[0]\n",
        "prefill batches",
        "PrefillAdmitsInOrder",
    ),
    chooses(
        "match-ignored",
        OPEN,
        "found = self.memory.match(self.waiting.popleft())\n            self.memory.open(request, type(found)())",
        "what the memory matched was not used",
        "EveryStepHasItsMemory",
    ),
    chooses(
        "not-grown",
        WHOLE,
        "self.running[request.uid] = request\n            steps.append(request.launch(request.extend_len))",
        "what the memory was asked",
        "EveryStepHasItsMemory",
    ),
    chooses(
        "decode-not-grown",
        DECODE,
        DECODE.replace("self.launch(request, 1)", "request.launch(1)"),
        "what the memory was asked",
        "EveryStepHasItsMemory",
    ),
    chooses(
        "runs-beyond-the-end",
        DECODE,
        DECODE.replace(" if request.remain_len", ""),
        "whose tokens are all launched",
        "NextBatchNeedsNoResult",
    ),
    chooses(
        "waits-for-the-result",
        DECODE,
        DECODE.replace("request.remain_len", "request.remain_len and not request.in_flight"),
        "it waits for the results",
        "NextBatchNeedsNoResult",
    ),
    chooses(
        "decodes-within-the-budget",
        DECODE,
        DECODE.replace("self.running.values()", "list(self.running.values())[: self.token_budget]"),
        "token_budget is for prompts",
        "RequestsJoinAndLeaveBetweenSteps",
    ),
    chooses(
        "one-decodes",
        DECODE,
        DECODE + "[:1]",
        "is wrong",
        "RequestsJoinAndLeaveBetweenSteps",
    ),
    chooses(
        "starves-the-running",
        DECODE,
        "if self.waiting:\n            return []\n        " + DECODE,
        "those that run starve",
        "RequestsJoinAndLeaveBetweenSteps",
    ),
    chooses(
        "decode-first",
        ADMIT,
        "if any(request.remain_len for request in self.running.values()):\n            return steps\n        " + ADMIT,
        "static batching",
        "RequestsJoinAndLeaveBetweenSteps",
    ),
]

DOWN = "            request.in_flight -= 1\n            sampled ="
TAKE = "sampled = next(results) if samples else None"
ALIVE = "if request.finish_reason is None and sampled is not None:"
ENDS = "request.finish_reason = request.append(sampled.token)"
OUT = "outputs.append(Output(request.uid, sampled, request.finish_reason))"
GOES_ON = "if request.finish_reason is None and start < request.prompt_len:"
GONE = "            if request.finish_reason is not None:\n                self.retire(request)\n"
OWN = "if self.requests.get(request.uid) is request:"
FORGET = "            del self.requests[request.uid]\n"
STOPS = "            self.running.pop(request.uid, None)\n"
CLOSE = "if request.in_flight == 0 and request.row is not None:"

_READS = [
    reads(
        "chunk-takes-a-result",
        TAKE,
        "sampled = next(results, None)",
        "a step that samples nothing took a result",
        "EachResultGoesToItsRequest",
    ),
    reads(
        "results-backwards",
        "results = iter(results)",
        "results = iter(list(results)[::-1])",
        "in the wrong order",
        "EachResultGoesToItsRequest",
    ),
    reads(
        "outputs-backwards",
        OUT,
        OUT.replace("append(", "insert(0, "),
        "outputs came in the wrong order",
        "EachResultGoesToItsRequest",
    ),
    reads(
        "logprobs-dropped",
        OUT,
        OUT.replace("sampled,", "Sampled(sampled.token),"),
        "with its log-probabilities",
        "EachResultGoesToItsRequest",
    ),
    reads(
        "flight-not-counted",
        DOWN,
        "            sampled =",
        "each step of the batch counts down",
        "EachResultGoesToItsRequest",
    ),
    reads(
        "chunks-not-counted",
        DOWN,
        "            request.in_flight -= samples\n            sampled =",
        "each step of the batch counts down",
        "EachResultGoesToItsRequest",
    ),
    reads("reason-lost", ENDS, "request.append(sampled.token)", "finish reason", "EndsGiveEverythingBack"),
    reads("never-retired", GONE, "", "a leak", "EndsGiveEverythingBack"),
    reads(
        "length-only-retired",
        GONE,
        GONE.replace("is not None", '== "length"'),
        "a leak",
        "EndsGiveEverythingBack",
    ),
    reads(
        "end-twice",
        ALIVE,
        "if sampled is not None:",
        "a late result is dropped",
        "MemoryWaitsForTheLastStep",
    ),
    reads(
        "dropped-but-told",
        ALIVE,
        "if request.finish_reason is not None and sampled is not None:\n"
        "                outputs.append(Output(request.uid, sampled, request.finish_reason))\n            " + ALIVE,
        "a late result is dropped",
        "MemoryWaitsForTheLastStep",
    ),
    reads(
        "dropped-but-appended",
        ALIVE,
        "if request.finish_reason is not None and sampled is not None:\n"
        "                request.append(sampled.token)\n            " + ALIVE,
        "results in its ids",
        "MemoryWaitsForTheLastStep",
    ),
    reads(
        "closed-in-flight",
        CLOSE,
        "if request.row is not None:",
        "while a step that writes there was in flight",
        "MemoryWaitsForTheLastStep",
    ),
    reads(
        "closed-twice",
        CLOSE,
        "if request.in_flight == 0:",
        "has no row to give back",
        "RequestsThatWaitHaveNoRow",
    ),
    reads(
        "retired-at-its-result-only",
        GONE,
        "                if request.finish_reason is not None:\n                    self.retire(request)\n",
        "the row was not given back",
        "MemoryWaitsForTheLastStep",
    ),
    reads(
        "chunk-leaks",
        GONE,
        GONE.replace("if request", "if sampled is not None and request"),
        "retired also by a step that samples nothing",
        "AChunkInFlightHoldsTheRow",
    ),
    reads(
        "forgotten-late",
        OWN,
        "if request.in_flight == 0:",
        "whether it is in requests",
        "MemoryWaitsForTheLastStep",
    ),
    reads("still-known", FORGET, "            pass\n", "the uids of requests", "EndsGiveEverythingBack"),
    reads("still-running", STOPS, "", "the uids of running", "EndsGiveEverythingBack"),
    reads(
        "old-forgets-new",
        OWN + "  # its uid may belong to a new request by now\n" + FORGET,
        "if self.requests.pop(request.uid, None) is not None:\n",
        "the new one with its uid was forgotten",
        "AUidIsFreeOnceItsRequestHasEnded",
    ),
    reads(
        "offers-every-result",
        GOES_ON,
        "if request.finish_reason is None:",
        "each result was offered",
        "ThePromptIsOfferedOnce",
    ),
    reads("never-offers", GOES_ON, "if False:", "the prompt was never offered", "ThePromptIsOfferedOnce"),
    reads(
        "offers-at-the-end-too",
        GOES_ON,
        "if start < request.prompt_len:",
        "`close` does that",
        "ThePromptIsOfferedOnce",
    ),
    reads(
        "offers-before-append",
        ENDS,
        "if start < request.prompt_len:\n                    self.memory.share(request)\n                " + ENDS,
        "before the result was appended",
        "ThePromptIsOfferedOnce",
    ),
]

TOKENS = "rows.tokens.extend(request.ids[start:end])"
POSITIONS = "rows.positions.extend(range(start, end))"
BOUNDS = "rows.bounds.append(rows.bounds[-1] + end - start)"
LENGTHS = "rows.lengths.append(end)"
SCORED = "        if samples:\n            rows.last.append(rows.bounds[-1] - 1)\n"
CUTS = "sequences = (x[start:end].swapaxes(0, 2) for x in (q, k, v))\n"
JOIN = "parts.append(attend(*sequences, cache).swapaxes(0, 2))"
ZIP = "zip(self.bounds, self.bounds[1:], self.caches, strict=False)"
LOOP = (
    f"        for start, end, cache in {ZIP}:\n            {CUTS}            {JOIN}\n"
    "        return mx.concatenate(parts)\n"
)

_RUNS = [
    runs(
        "unread-token-refused",
        TOKENS,
        "rows.tokens.extend(request.ids[i] for i in range(start, end))",
        "a token that nobody has read yet is missing in `tokens`",
        "RowsOfABatch",
    ),
    runs(
        "unread-token-is-0",
        TOKENS,
        "rows.tokens.extend((request.ids + [0] * end)[start:end])",
        "is missing, not 0",
        "RowsOfABatch",
    ),
    runs(
        "bounds-of-known-tokens",
        BOUNDS,
        "rows.bounds.append(len(rows.tokens))",
        "known tokens were counted",
        "RowsOfABatch",
    ),
    runs(
        "waits-in-each-layer",
        "return mx.concatenate(parts)",
        "result = mx.concatenate(parts)\n        mx.eval(result)\n        return result",
        "it must only add to the graph",
        "AttendOnlyBuildsTheGraph",
    ),
    runs(
        "tokens-from-the-front",
        TOKENS,
        "rows.tokens.extend(request.ids[: end - start])",
        "the first tokens",
        "RowsOfABatch",
    ),
    runs(
        "positions-of-rows",
        POSITIONS,
        "rows.positions.extend(range(rows.bounds[-1], rows.bounds[-1] + end - start))",
        "a position counts rows of the batch",
        "RowsOfABatch",
    ),
    runs(
        "positions-from-zero",
        POSITIONS,
        "rows.positions.extend(range(end - start))",
        "each step begins at position 0",
        "RowsOfABatch",
    ),
    runs(
        "positions-of-start",
        POSITIONS,
        "rows.positions.extend([start] * (end - start))",
        "all rows of a step are at its start",
        "RowsOfABatch",
    ),
    runs(
        "rows-on-the-device",
        "    return rows\n",
        "    return rows._replace(positions=mx.array(rows.positions))\n",
        "waits for all that was launched",
        "RowsOfABatch",
    ),
    runs("bounds-are-sizes", BOUNDS, "rows.bounds.append(end - start)", "bounds are sums", "RowsOfABatch"),
    runs(
        "lengths-of-queries", LENGTHS, "rows.lengths.append(end - start)", "the new tokens were counted", "RowsOfABatch"
    ),
    runs("all-scored", SCORED, SCORED.replace("if samples", "if True"), "every request was scored", "RowsOfABatch"),
    runs("scored-behind", SCORED, SCORED.replace("[-1] - 1", "[-1]"), "the row after the last", "RowsOfABatch"),
    runs(
        "first-scored",
        SCORED,
        SCORED.replace("[-1] - 1", "[-2]"),
        "the first row of a request was scored",
        "RowsOfABatch",
    ),
    runs(
        "scored-in-request",
        SCORED,
        SCORED.replace("rows.bounds[-1] - 1", "end - start - 1"),
        "not in its request",
        "RowsOfABatch",
    ),
    runs(
        "one-sequence",
        LOOP,
        "        return attend(*(x.swapaxes(0, 2) for x in (q, k, v)), self.caches[0]).swapaxes(0, 2)\n",
        "which request's cache",
        "EachRowSeesItsOwnRequest",
    ),
    runs(
        "one-cache-for-all",
        JOIN,
        JOIN.replace("cache", "self.caches[0]"),
        "which request's cache each call of attend got",
        "EachRowSeesItsOwnRequest",
    ),
    runs(
        "caches-backwards",
        ZIP,
        ZIP.replace("self.caches", "self.caches[::-1]"),
        "the caches are in the wrong order",
        "EachRowSeesItsOwnRequest",
    ),
    runs(
        "rows-as-a-batch",
        CUTS + "            " + JOIN,
        "parts.append(attend(q[start:end], k[start:end], v[start:end], cache))",
        "the rows of one request are one sequence",
        "EachRowSeesItsOwnRequest",
    ),
    runs(
        "token-by-token-backwards",
        JOIN,
        "flipped = [x[:, :, ::-1] for x in sequences]\n"
        "            parts.append(attend(*flipped, cache)[:, :, ::-1].swapaxes(0, 2))",
        "values are wrong",
        "EachRowSeesItsOwnRequest",
    ),
    runs(
        "joined-backwards",
        "return mx.concatenate(parts)",
        "return mx.concatenate(parts[::-1])",
        "values are wrong",
        "EachRowSeesItsOwnRequest",
    ),
    runs(
        "joined-as-heads",
        JOIN,
        JOIN.replace(
            "attend(*sequences, cache).swapaxes(0, 2)",
            "attend(*sequences, cache).reshape(end - start, q.shape[1], 1, -1)",
        ),
        "values are wrong",
        "EachRowSeesItsOwnRequest",
    ),
]

MUTANTS = _KNOWS + _CHOOSES + _READS + _RUNS
