"""Plausible wrong solutions of Week 3 Day 6, bugs that real engines had among them, and the case that catches each."""

from course.mutants import Mutant

STREAMS, HAZARDS, SIMULATED = "serving/streams.py", "serving/hazards.py", "serving/simulated.py"
POOL, RUNNER, OVERLAP = "serving/token_pool.py", "serving/pool_runner.py", "serving/overlap.py"
SCHEDULER, REQUEST = "serving/scheduler.py", "serving/request.py"


def streams(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, STREAMS, old, new, message, killer)


def hazards(name: str, old: str, new: str, message: str, killer: str, file: str = HAZARDS) -> Mutant:
    return Mutant(name, 2, file, old, new, message, killer)


def overlap(name: str, old: str, new: str, message: str, killer: str, file: str = OVERLAP) -> Mutant:
    return Mutant(name, 3, file, old, new, message, killer)


def abort(name: str, old: str, new: str, message: str, killer: str, file: str = SCHEDULER) -> Mutant:
    return Mutant(name, 4, file, old, new, message, killer)


START = "start = max(self.now, stream.free, self.engines.get(engine, 0) if engine else 0)"
COST = '        self.advance(self.now + self.launch_cost, f"launch {name}")\n'
RETURN_OP = "        return op\n\n    def copy("
RECORD = "        event.time = max(self.now, stream.free)\n"
WAIT = "            stream.free = max(stream.free, event.time)\n"
SYNC = '            self.advance(event.time, f"wait for {event.name}")\n'
DONE = "        done = event.time is None or event.time <= self.now\n"
PUSH = "            heappush(self.effects, (op.end, len(self.log), effect))\n"

_STREAMS = [
    streams(
        "waits-for-the-op",
        RETURN_OP,
        "        self.advance(op.end)\n" + RETURN_OP,
        "a launch waits until its op is done",
        "ALaunchReturnsAtOnce",
    ),
    streams("launch-is-free", COST, "", "the launch itself takes no time", "ALaunchReturnsAtOnce"),
    streams(
        "starts-before-the-launch",
        START,
        START.replace("self.now", "self.now - self.launch_cost"),
        "an op starts before its launch has returned",
        "ALaunchReturnsAtOnce",
    ),
    streams(
        "no-fifo",
        START,
        START.replace("stream.free, ", ""),
        "the ops of one stream do not wait for each other",
        "StreamsRunInOrder",
    ),
    streams(
        "one-queue",
        START,
        START.replace("stream.free", "*(other.free for other in self.streams)"),
        "ops of different streams wait for each other",
        "StreamsRunInOrder",
    ),
    streams(
        "record-is-reached-at-once",
        RECORD,
        "        event.time = self.now\n",
        "a record is reached at once",
        "EventsOrderStreams",
    ),
    streams(
        "keeps-the-first-record",
        RECORD,
        "        if event.time is None:\n    " + RECORD,
        "an event keeps its first record",
        "EventsOrderStreams",
    ),
    streams("wait-orders-nothing", WAIT, "", "a stream does not wait for an event", "EventsOrderStreams"),
    streams(
        "wait-stops-the-cpu",
        WAIT,
        WAIT + "            self.advance(event.time)\n",
        "the CPU waits where only the stream should",
        "EventsOrderStreams",
    ),
    streams(
        "waits-for-everything",
        SYNC,
        SYNC.replace("event.time", "max(stream.free for stream in self.streams)"),
        "the CPU waits for all streams",
        "TheHostWaits",
    ),
    streams(
        "time-goes-back",
        "self.now = max(self.now, time)",
        "self.now = time",
        "the CPU's clock should be 70 ns afterwards",
        "TheHostWaits",
    ),
    streams(
        "never-recorded-is-not-done",
        DONE,
        "        done = event.time is not None and event.time <= self.now\n",
        "an event that was never recorded counts as not done",
        "TheHostWaits",
    ),
    streams(
        "query-is-free",
        "        self.advance(self.now + self.poll_cost)\n",
        "",
        "a query takes no time",
        "TheHostWaits",
    ),
    streams(
        "query-tells-the-log-nothing",
        "        if done and event.time is not None:\n",
        "        if not done:\n",
        "the log should hold",
        "TheHostWaits",
    ),
    streams(
        "measures-too-early",
        "        if max(start.time, end.time) > self.now:\n",
        "        if start.time > self.now:\n",
        "expected NotReadyError",
        "TimeBetweenEvents",
    ),
    streams(
        "measures-without-timing",
        "            if not event.timing:\n",
        "            if not event.timing and event.time is None:\n",
        "expected ValueError",
        "TimeBetweenEvents",
    ),
    streams("microseconds", "/ 1e6", "/ 1e3", "expected 1.5, got 1500.0", "TimeBetweenEvents"),
    streams(
        "effect-at-the-start",
        PUSH,
        PUSH.replace("op.end", "start"),
        "an op takes effect when it starts or is launched",
        "OpsTakeEffectWhenTheyEnd",
    ),
    streams(
        "effects-in-order-of-launches",
        PUSH,
        "            self.effects.append((op.end, len(self.log), effect))\n",
        "should find in p what",
        "OpsTakeEffectWhenTheyEnd",
    ),
    streams(
        "copies-at-the-same-time",
        "            self.engines[engine] = op.end\n",
        "            self.engines[stream.name] = op.end\n",
        "two ops use one engine at the same time",
        "SharedUnits",
    ),
    streams(
        "default-stream-is-free",
        "        for other in self.ordered_with(stream):\n            self.wait(stream, self.marker(other))\n",
        "",
        "the default stream is not ordered with blocking streams",
        "SharedUnits",
    ),
    streams(
        "default-order-is-not-logged",
        "            self.wait(stream, self.marker(other))\n",
        "            stream.free = max(stream.free, other.free)\n",
        "kept in time, and the log does not show it",
        "TheLogKnowsTheDefaultStream",
    ),
    streams(
        "negative-duration",
        "        if duration < 0:\n",
        "        if duration is None:\n",
        "a duration of -3 ns should be a ValueError",
        "BadOpsAreRefused",
    ),
]

HOST = "        clock |= self.clocks[CPU]  # the host launched it, after all that it did before\n"
CAPTURE = "            self.events[call.name] = self.clocks[call.who].copy()\n"
JOIN = "            self.clocks[call.who] |= self.events[call.name]\n"
UNORDERED = "if clock[old.who] < old.count]\n"

_HAZARDS = [
    hazards(
        "launch-orders-nothing",
        HOST,
        "",
        "an op was compared with what the host had done before it launched it",
        "SmallLogs",
    ),
    hazards(
        "event-shares-the-clock",
        CAPTURE,
        CAPTURE.replace(".copy()", ""),
        "a record shared its stream's clock",
        "SmallLogs",
    ),
    hazards(
        "first-record",
        CAPTURE,
        CAPTURE.replace("self.events[call.name] =", "self.events[call.name] = self.events[call.name] or"),
        "an event kept its first record",
        "SmallLogs",
    ),
    hazards("wait-adds-nothing", JOIN, "            pass\n", "a wait for an event ordered nothing", "TwoAccesses"),
    hazards(
        "wait-replaces-the-clock",
        JOIN,
        "            self.clocks[call.who] = self.events[call.name].copy()\n",
        "not a hazard",
        "RandomLogs",
    ),
    hazards(
        "clocks-are-added-up",
        JOIN,
        "            self.clocks[call.who] += self.events[call.name]\n",
        "missing:",
        "RandomLogs",
    ),
    hazards(
        "reads-race",
        "    return [kind for kind, found in pairs.items() if found]\n",
        '    return [kind for kind, found in pairs.items() if found] or ["WAR"]\n',
        "not a hazard",
        "TwoAccesses",
    ),
    hazards(
        "only-writes",
        '"RAW": old.writes and new.reads, "WAR": old.reads and new.writes',
        '"RAW": False, "WAR": False',
        "a read and a write were not compared",
        "TwoAccesses",
    ),
    hazards(
        "kinds-turned-round",
        '"RAW": old.writes and new.reads, "WAR": old.reads and new.writes',
        '"WAR": old.writes and new.reads, "RAW": old.reads and new.writes',
        "missing: RAW",
        "TwoAccesses",
    ),
    hazards(
        "counts-from-the-next",
        UNORDERED,
        UNORDERED.replace("<", "<="),
        "not a hazard",
        "TwoAccesses",
    ),
    hazards(
        "keeps-them-all",
        "self.accesses[buffer] = [old for old in (*self.accesses[buffer], new) if known[old.who] < old.count]",
        "self.accesses[buffer].append(new)",
        "a call takes no longer in a long log",
        "LongLogsAreQuick",
    ),
    hazards(
        "keeps-the-latest-only",
        "self.accesses[buffer] = [old for old in (*self.accesses[buffer], new) if known[old.who] < old.count]",
        "self.accesses[buffer] = [new] if known[new.who] < new.count else []",
        "the latest one to its buffer only",
        "SmallLogs",
    ),
    hazards(
        "counts-calls-of-the-host-only",
        "        clock[call.who] += 1\n",
        "        clock[CPU] += 1\n",
        "missing: ",
        "TwoAccesses",
    ),
    # Mini-SGLang 46255ef: the event that says "copied" was recorded on the model's stream.
    hazards(
        "event-on-the-wrong-stream",
        "        device.record(copied, self.download)\n",
        "        device.record(copied, self.model)\n",
        "('host', ",
        "NoHazards",
        SIMULATED,
    ),
    # Mini-SGLang PR 103: the staging buffer was filled again while a copy still read it.
    hazards(
        "staging-buffer-used-again",
        "        device.synchronize(self.uploaded)\n",
        "",
        "'staging': the write by 'stage' does not wait for the read by 'up",
        "NoHazards",
        SIMULATED,
    ),
    hazards(
        "wait-before-record",
        "        device.wait(self.download, computed)\n",
        "",
        "does not wait for the write by 'forward",
        "NoHazards",
        SIMULATED,
    ),
    hazards(
        "model-does-not-wait",
        "        device.wait(self.model, self.uploaded)\n",
        "",
        "does not wait for the write by 'up",
        "NoHazards",
        SIMULATED,
    ),
]

PLACES = "places = [(step.request.row, step.end) if step.samples else nowhere for step in steps]"
KNOWN = "            if request.row != self.dummy_row:\n"
READ_FIRST = "        if self.flight and self.reads_first(self.flight.batch):\n            return self.read()\n"
LAUNCH = "        launched = None if batch is None else Flight(batch, self.launch(batch))\n"
READ = "        outputs = self.read()\n        self.flight = launched\n"
BUSY = "return self.flight is not None or super().busy"
PENALTY = "if any(step.request.sampling.repetition_penalty != 1 for step in batch.sampling):"
FROM_POOL = "self.tokens[self._index([(step.request.row, p) for step in steps for p in range(step.start, step.end)])]"
CAUGHT = "        except Exception as error:\n            return error\n"

_OVERLAP = [
    # Mini-SGLang ef4367f.
    overlap(
        "chunk-overwrites-the-prompt",
        PLACES,
        "places = [(step.request.row, step.end) for step in steps]",
        "what a chunk chose was written over the next token of its prompt",
        "ChunksKeepThePrompt",
        POOL,
    ),
    # Mini-SGLang 0e5f1e7.
    overlap(
        "dummy-row-not-initialised",
        "xp.zeros((rows + 1, max_len), xp.int32)",
        "xp.zeros((rows + 1, max_len), xp.int32) - 1",
        "the dummy row must hold a token",
        "PaddingReadsAToken",
        POOL,
    ),
    overlap(
        "written-one-too-early",
        PLACES,
        PLACES.replace("step.end)", "step.end - 1)"),
        "read was",
        "PoolKeepsAllTokens",
        POOL,
    ),
    overlap(
        "written-to-the-lane",
        PLACES,
        PLACES.replace("(step.request.row, step.end)", "(lane, step.end)").replace(
            "for step in steps", "for lane, step in enumerate(steps)"
        ),
        "read was",
        "PoolKeepsAllTokens",
        POOL,
    ),
    overlap(
        "loads-the-whole-prompt-again",
        "known = request.ids[start:end]",
        "known = request.ids[:end]",
        "read was",
        "PoolKeepsAllTokens",
        POOL,
    ),
    overlap(
        "always-on-mlx",
        FROM_POOL,
        FROM_POOL.replace("self.tokens[", "mx.array(self.tokens[") + ")",
        "xp=numpy gave an array of mlx",
        "PoolKeepsAllTokens",
        POOL,
    ),
    overlap(
        "int64-tokens",
        "xp.zeros((rows + 1, max_len), xp.int32)",
        "xp.zeros((rows + 1, max_len), xp.int64)",
        "token ids are int32",
        "PoolKeepsAllTokens",
        POOL,
    ),
    overlap(
        "takes-the-tokens-of-the-host",
        "        self.pool.load(batch.steps)\n        return self.pool.read(batch.steps)[:, None]\n",
        "        steps = [(step.request.ids, p) for step in batch.steps for p in range(step.start, step.end)]\n"
        "        return mx.array([ids[p : p + 1] or [0] for ids, p in steps])\n",
        "in the overlap loop",
        "OverlapOnTheModel",
        RUNNER,
    ),
    overlap(
        "results-not-put-into-the-pool",
        "            self.pool.write(batch.sampling, launched.chosen.tokens)\n",
        "",
        "in the overlap loop",
        "OverlapOnTheModel",
        RUNNER,
    ),
    overlap(
        "evaluates-in-the-launch",
        "            mx.async_eval(self.pool.tokens)\n",
        "            mx.eval(self.pool.tokens)\n",
        "a launch called mx.eval",
        "OverlapOnTheModel",
        RUNNER,
    ),
    overlap(
        "reads-a-number-in-the-launch",
        "        self.pool.load(batch.steps)\n",
        "        assert 0 <= int(self.pool.tokens.max())\n        self.pool.load(batch.steps)\n",
        "a launch called mx.array.__int__",
        "OverlapOnTheModel",
        RUNNER,
    ),
    overlap(
        "copies-the-pool-in-the-launch",
        "        self.pool.load(batch.steps)\n",
        "        import numpy as np\n\n        self.seen = np.array(self.pool.tokens)\n"
        "        self.pool.load(batch.steps)\n",
        "a launch called np.array",
        "OverlapOnTheModel",
        RUNNER,
    ),
    overlap(
        "reads-before-it-launches",
        READ_FIRST,
        READ_FIRST.replace(" and self.reads_first(self.flight.batch)", ""),
        "each batch is read before the next one is launched",
        "LaunchesAhead",
    ),
    overlap(
        "reads-when-nothing-runs",
        READ,
        "        outputs = self.read() if batch is None else []\n        self.flight = launched\n",
        "never ended",
        "LaunchesAhead",
    ),
    overlap(
        "last-batch-never-read",
        BUSY,
        "return super().busy",
        "leak",
        "OneStepForNothing",
    ),
    overlap(
        "chooses-before-it-reads-the-history",
        READ_FIRST,
        "",
        "a request with a repetition penalty was launched before its last token was read",
        "HistoryIsReadFirst",
    ),
    overlap(
        "penalty-of-the-first-request-only",
        PENALTY,
        PENALTY.replace("in batch.sampling)", "in batch.sampling[:1])"),
        "a request with a repetition penalty was launched before its last token was read",
        "HistoryIsReadFirst",
    ),
    overlap(
        "draws-are-read-first",
        PENALTY,
        PENALTY.replace("any(", "any(step.request.sampling.temperature > 0 or "),
        "must be read first",
        "OthersKeepTheirOverlap",
    ),
    overlap(
        "begun-prompts-are-forgotten",
        "any(request.cached_len < request.prompt_len for request in self.scheduler.requests.values())",
        "bool(self.scheduler.waiting)",
        "a prefill after a prefill, was launched before that was read",
        "PrefillsOneByOne",
    ),
    overlap(
        "one-penalty-stops-all",
        PENALTY,
        "if any(r.sampling.repetition_penalty != 1 for r in self.scheduler.requests.values()) or batch.tokens > 2:",
        "launches and reads came in the order",
        "OthersKeepTheirOverlap",
    ),
    overlap(
        "prefills-always-overlap",
        "        if self.overlap_prefills or not",
        "        if True or self.overlap_prefills or not",
        "a prefill after a prefill, was launched before that was read",
        "PrefillsOneByOne",
    ),
    overlap(
        "first-token-waits-for-the-next-prompt",
        "            return self.read()\n        batch = self.scheduler.next_batch()\n"
        "        launched = None if batch is None else Flight(batch, self.launch(batch))\n"
        "        outputs = self.read()\n",
        "            early = self.read()\n        else:\n            early = []\n"
        "        batch = self.scheduler.next_batch()\n"
        "        launched = None if batch is None else Flight(batch, self.launch(batch))\n"
        "        outputs = early + self.read()\n",
        "the next prompt was prepared before",
        "FirstTokens",
    ),
    overlap(
        "prefills-stop-decodes",
        "return any(request.cached_len < request.prompt_len for request in self.scheduler.requests.values())",
        "return True",
        "a decode after a prefill, was launched after that was read",
        "PrefillsOneByOne",
    ),
    overlap(
        "synchronises-everything",
        "        device.synchronize(self.copied)\n",
        "        device.synchronize_device()\n",
        "a step of the overlap loop takes",
        "AStepTakesTheLongerOfBoth",
        SIMULATED,
    ),
    # SGLang and vLLM drop the result of a request that has ended; Mini-SGLang sends it on.
    overlap(
        "wasted-token-is-emitted",
        "            if request.finish_reason is None and sampled is not None:\n",
        "            if sampled is not None and len(request.ids) < request.device_len:\n",
        "the result of a request that has ended is dropped",
        "OverlapIsNormal",
        SCHEDULER,
    ),
    overlap(
        "length-is-read-not-known",
        "return [self.launch(request, 1) for request in self.running.values() if request.remain_len]",
        "return [\n            self.launch(request, 1)\n            for request in self.running.values()\n"
        "            if len(request.ids) < request.max_device_len\n        ]",
        "has had its",
        "OverlapIsNormal",
        SCHEDULER,
    ),
    overlap(
        "ids-advance-at-the-launch",
        "        self.device_len += samples\n",
        "        self.device_len += samples and self.in_flight == 0\n",
        "chosen by no launched step",
        "OverlapIsNormal",
        REQUEST,
    ),
]

LOOKUP = '        return None if request is None else self.end(request, "abort")\n'
END = "        if request in self.waiting:\n            self.waiting.remove(request)\n        self.retire(request)\n"
LAST = "        if request.in_flight == 0 and request.row is not None:\n"

_ABORT = [
    # Mini-SGLang PR 111, SGLang 36926: freed by the abort, and again when the result comes.
    abort(
        "freed-at-the-abort",
        LAST,
        "        if request.row is not None:\n",
        "while a step of it was in flight",
        "AbortAtEveryPoint",
    ),
    abort(
        "row-races-after-an-abort",
        LAST,
        "        if request.row is not None:\n",
        "does not wait for the read by 'forward",
        "AbortsAreNoHazards",
    ),
    abort(
        "freed-twice",
        LAST,
        LAST.replace("request.in_flight == 0 and request.row is not None", "request.in_flight == 0"),
        "was closed before",
        "AbortAtEveryPoint",
    ),
    abort(
        "left-in-the-queue",
        END,
        "        self.retire(request)\n",
        "still in `requests`, `running` or `waiting`",
        "AnAbortSaysWhatItDid",
    ),
    abort(
        "only-the-waiting-ones",
        END,
        END.replace("        self.retire", "            self.retire"),
        "a request ended twice",
        "AnAbortSaysWhatItDid",
    ),
    abort(
        "memory-is-never-given-back",
        END,
        END.replace(
            "self.retire(request)", "self.requests.pop(request.uid)\n        self.running.pop(request.uid, None)"
        ),
        "leak",
        "AbortAtEveryPoint",
    ),
    abort(
        "no-reason",
        "        request.finish_reason = reason\n        if request in",
        "        if request in",
        "outputs after its end",
        "AbortAtEveryPoint",
    ),
    abort(
        "says-nothing",
        LOOKUP,
        '        return self.end(request, "abort") and None if request else None\n',
        "gave no output",
        "AbortAtEveryPoint",
    ),
    abort(
        "answers-for-strangers",
        LOOKUP,
        LOOKUP.replace("None if request is None else", "Output(uid, None, 'abort') if request is None else"),
        "a request ended twice",
        "AnAbortSaysWhatItDid",
    ),
    # SGLang 34149, 34153: the last chunk of a prompt is in flight when the request is aborted.
    abort(
        "abort-of-the-last-chunk",
        "            if request.finish_reason is None and sampled is not None:\n",
        "            begins = start < request.prompt_len\n"
        "            if sampled is not None and (begins or request.finish_reason is None):\n",
        "the result of an aborted request gave an output",
        "AnAbortSaysWhatItDid",
    ),
    abort(
        "uid-used-again",
        "        if self.requests.get(request.uid) is request:  # its uid may belong to a new request by now\n",
        "        if request.uid in self.requests:\n",
        "a new request with the same uid was lost",
        "MemoryStaysWhileInFlight",
    ),
    abort(
        "failed-pages-are-shared",
        "            request.cached_len = min(request.cached_len, start)  "
        "# nobody may find what this step did not compute\n",
        "",
        "somebody found pages that the failed batch never computed",
        "AFailedBatchEndsItsRequests",
    ),
    abort(
        "launch-error-ends-the-engine",
        CAUGHT,
        "        except ValueError as error:\n            return error\n",
        "cannot be launched",
        "AFailedBatchEndsItsRequests",
        OVERLAP,
    ),
    abort(
        "errors-are-not-logged",
        '            logger.exception("a batch of %d requests failed", len(batch.steps))\n',
        "",
        "and not what the runner raised",
        "AFailedBatchEndsItsRequests",
        OVERLAP,
    ),
    abort(
        "launch-error-is-asked-for-results",
        "            if isinstance(pending, Exception):\n                raise pending\n",
        "",
        "and not what the runner raised",
        "AFailedBatchEndsItsRequests",
        OVERLAP,
    ),
    abort(
        "error-ends-both-batches",
        "            return self.scheduler.fail(batch)\n",
        '            return [self.scheduler.end(r, "error") for r in list(self.scheduler.requests.values())]\n',
        "leak",
        "AFailedBatchEndsItsRequests",
        OVERLAP,
    ),
]

MUTANTS = _STREAMS + _HAZARDS + _OVERLAP + _ABORT
