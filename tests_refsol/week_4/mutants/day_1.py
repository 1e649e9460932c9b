"""Plausible wrong solutions of Week 4 Day 1, and the case that catches each."""

from course.mutants import Mutant

KERNEL, QUEUES, COST = "cluster/kernel.py", "cluster/queueing.py", "cluster/cost.py"
ROOFLINE, TABLE = "cluster/roofline.py", "cluster/table.py"
REPLICA, FORWARD = "cluster/replica.py", "cluster/fast_forward.py"


def kernel(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, KERNEL, old, new, message, killer)


def queue(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, QUEUES, old, new, message, killer)


def cost(name: str, file: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, file, old, new, message, killer)


def replica(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, REPLICA, old, new, message, killer)


def forward(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 5, FORWARD, old, new, message, killer)


def settle(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 5, REPLICA, old, new, message, killer)


EVENT = "event = [time, phase, self._sequence, callback, args]"
GUARD = "if time.__class__ is not int or time < self.now:"
MARK = "        event[CALLBACK] = None\n"
UNTIL = "while heap and (until is None or heap[0][0] <= until):"
SET = "                self.now, self.phase = time, phase\n"
SKIP = """                if callback is None:
                    continue
"""
ORDER, GONE, STOPS, WHOLE = (
    "EventsComeInOrder",
    "CancelledEventsDoNotHappen",
    "RunStopsWhereItIsTold",
    "TimeIsAWholeNanosecond",
)

_KERNEL = [
    kernel("no-phase", EVENT, EVENT.replace("phase", "0", 1), "the phase does not count", ORDER),
    kernel("last-first", EVENT, EVENT.replace("self._s", "-self._s"), "the last one asked for comes first", ORDER),
    kernel("phases-turned", EVENT, EVENT.replace("phase", "-phase", 1), "phases are turned round", ORDER),
    kernel("no-number", EVENT, EVENT.replace("self._sequence", "0"), "not supported between", ORDER),
    kernel("not-counted", "                happened += 1\n", "", "events happened", ORDER),
    kernel("phase-stays", "            self.phase = None\n", "            pass\n", "[now, phase] after the run", ORDER),
    kernel("never-cancelled", MARK, "        return None\n", "a cancelled event happens", GONE),
    kernel(
        "searched",
        MARK,
        "        self._heap.remove(event)\n",
        "do not look for it in the heap",
        "CancellingIsQuick",
    ),
    kernel("counts-cancelled", SKIP, SKIP.replace("continue", "happened += 1; continue"), "events happened", GONE),
    kernel("clock-moves", SKIP + SET, SET + SKIP, "must not move the clock", GONE),
    kernel("until-left-out", UNTIL, UNTIL.replace("<=", "<"), "at `until` itself is left out", STOPS),
    kernel("now-stays", "            self.now = until\n", "            pass\n", "after run(until=", STOPS),
    kernel(
        "pops-too-much",
        UNTIL,
        "while heap and (until is None or heap[0][0] <= until or (heapq.heappop(heap) and False)):",
        "expected",
        STOPS,
    ),
    kernel("nought-is-no-time", UNTIL, UNTIL.replace("until is None", "not until"), "0 is a time", STOPS),
    kernel("phase-is-a-number", EVENT, EVENT.replace("phase", "phase.value", 1), "keep the Phase", ORDER),
    kernel(
        "first-argument-only", EVENT, EVENT.replace("args", "args[:1]"), "all of its arguments", "AnErrorEndsTheRun"
    ),
    kernel(
        "clock-over-an-error",
        """            self.phase = None
        if until is not None:
            self.now = until
""",
        """            self.phase = None
            if until is not None:
                self.now = until
""",
        "the clock went on",
        "AnErrorEndsTheRun",
    ),
    kernel("back-in-time", "if until is not None and until < self.now:", "if False:", "was accepted", STOPS),
    kernel("past", GUARD, "if time.__class__ is not int:", "was accepted", WHOLE),
    kernel("rounded", GUARD, "time = int(time)\n        if time < self.now:", "was accepted", WHOLE),
    kernel("floats-refused-only", GUARD, "if isinstance(time, float) or time < self.now:", "was accepted", WHOLE),
    kernel(
        "phase-after-error",
        """        finally:
            self.phase = None
""",
        """        except LookupError:
            raise
        else:
            self.phase = None
""",
        "phase is still that of the event that failed",
        "AnErrorEndsTheRun",
    ),
]

END = "end = max(arrival, free[0]) + service"
REPLACE = "        heapq.heapreplace(free, end)\n"
STRICT = "zip(arrivals, services, strict=True)"
WAIT = "return rate * second_moment / (2 * (1 - load(rate, service)))"
PIPE = "return md1_time(rate, service / 2) + service / 2"
SPEED = "return md1_time(rate, service / speedup)"
MD1 = "return service + mg1_wait(rate, service, service**2)"
BLOCKED = "        blocked = offered * blocked / (n + offered * blocked)\n"
C = "return blocked / (1 - offered / servers * (1 - blocked))"
MMC = "return erlang_c(offered, servers) * service / (servers - offered)"
LINDLEY, FORMS, ERLANG, ENDLESS = (
    "LindleyIsTheQueue",
    "ClosedFormsAreThoseOfTheory",
    "ErlangCIsTheBalanceOfStates",
    "QueuesWithoutEndAreRefused",
)

_QUEUES = [
    queue("nobody-waits", END, "end = arrival + service", "nobody waits", LINDLEY),
    queue(
        "starts-early", END, "end = free[0] + service if ends else arrival + service", "even if it comes later", LINDLEY
    ),
    queue("one-server", "free = [0] * servers", "free = [0]", "there is one server only", LINDLEY),
    queue("takes-turns", REPLACE, "        free = [*free[1:], end]\n", "the servers take turns", LINDLEY),
    queue("in-floats", END, "end = int(max(arrival, free[0]) + float(service))", "ends: entry", LINDLEY),
    queue("zip-cuts", STRICT, "zip(arrivals, services)", "was accepted", "LindleyRefusesNonsense"),
    queue(
        "any-order",
        "if any(later < earlier for earlier, later in pairwise(arrivals)):",
        "if False:",
        "was accepted",
        "LindleyRefusesNonsense",
    ),
    queue("square-of-mean", WAIT, WAIT.replace("second_moment", "service**2"), "the square of the mean", FORMS),
    queue("no-half", WAIT, WAIT.replace("2 * ", ""), "the 2 is missing", FORMS),
    queue("wait-and-service", WAIT, WAIT.replace("return ", "return service + "), "was counted as wait", FORMS),
    queue("exponential", MD1, MD1.replace("service**2", "2 * service**2"), "twice the wait", FORMS),
    queue("wait-only", MD1, MD1.replace("service + ", ""), "the service itself is left out", FORMS),
    queue("both-wait", PIPE, "return 2 * md1_time(rate, service / 2)", "a wait was counted in both stages", FORMS),
    queue("one-stage", PIPE, "return md1_time(rate, service / 2)", "the second stage is left out", FORMS),
    queue("wait-divided", SPEED, "return md1_time(rate, service) / speedup", "the wait was divided", FORMS),
    queue("erlang-b", C, "return blocked", "this is Erlang B", ERLANG),
    queue("busy-share", C, "return offered / servers", "this is the utilisation", ERLANG),
    queue("one-step-short", "range(1, servers + 1)", "range(1, servers)", "Erlang C of", ERLANG),
    queue(
        "factorials",
        "    for n in range(1, servers + 1):\n" + BLOCKED,
        "    from math import factorial\n\n"
        "    terms = [offered**n / factorial(n) for n in range(servers + 1)]\n"
        "    blocked = terms[-1] / sum(terms)\n",
        "OverflowError",
        ERLANG,
    ),
    queue("time-of-those-that-wait", MMC, "return service / (servers - offered)", "of those that wait", ERLANG),
    queue("with-service", MMC, MMC + " + service", "the service was counted as wait", ERLANG),
    queue(
        "one-fast-server", MMC, MMC.replace("erlang_c(offered, servers)", "offered / servers"), "one server as", ERLANG
    ),
    queue("full-is-fine", "if not 0 <= rho < 1:", "if not 0 <= rho <= 1:", "ZeroDivisionError", ENDLESS),
    queue("erlang-unchecked", "    load(offered, 1, servers)\n", "", "erlang_c at load 1", ENDLESS),
    queue("larger-bound", "return min(clients", "return max(clients", "the larger of the two", "ClosedLoopsHaveABound"),
    queue("no-thinking", "(response + think)", "response", "thinking was left out", "ClosedLoopsHaveABound"),
]

CONTEXT = "context += (end * (end + 1) - start * (start + 1)) // 2"
DECODE = "            decode_context += end\n"
SHAPE = "return StepShape(tokens, context, decodes, decode_context, len(steps))"
ANSWER = "if is_decode(step):"
SQUARES = "time = a + b * tokens + c * (2 * context - tokens)"
LARGE = "a, b, c = self.decode if self.large is None or batch < self.large else self.decode_large"
USE = "use = np.minimum(context / self.capacity, 1.0)"
PROMPT = "+ 16.50142 if tokens else 0.0"
MOST = "time = time + np.maximum((54.01 - 25.74 * use) * use + 5.74, 1.0)"
SHAPES, FORM, MOCKER, STEPS = (
    "ShapesCountWhatIsAttendedTo",
    "LinearIsDistServesForm",
    "MockerHasItsPublishedTimes",
    "ManyStepsCostWhatEachCosts",
)

_COST = [
    cost(
        "own-left-out", COST, CONTEXT, "context += (end * (end - 1) - start * (start - 1)) // 2", "own position", SHAPES
    ),
    cost("all-pairs", COST, CONTEXT, "context += end * (end - start)", "those behind them, too", SHAPES),
    cost(
        "again-is-decode",
        COST,
        ANSWER,
        "if step.end - step.start == 1 <= 1 + step.start - step.request.prompt_len:",
        "computed again was taken for a decode",
        SHAPES,
    ),
    cost("decode-before", COST, DECODE, DECODE.replace("end", "start"), "own token was left out", SHAPES),
    cost(
        "samplers-only",
        COST,
        SHAPE,
        SHAPE.replace("len(steps)", "sum(s.samples for s in steps)"),
        "that choose no token were not counted",
        SHAPES,
    ),
    cost(
        "pairs-for-squares",
        COST,
        SQUARES,
        SQUARES.replace("(2 * context - tokens)", "context"),
        "pairs were taken",
        FORM,
    ),
    cost(
        "milliseconds",
        COST,
        "            time = time + (a + b * decode_context + c * batch)\n        return time * MS",
        "            time = time + (a + b * decode_context + c * batch)\n        return time",
        "in milliseconds",
        FORM,
    ),
    cost(
        "always-a-prompt",
        COST,
        "        time = 0.0\n        if tokens:\n            a, b, c = self.prefill\n",
        "        time = 0.0\n        if True:\n            a, b, c = self.prefill\n",
        "expected",
        FORM,
    ),
    cost(
        "95-is-few", COST, LARGE, LARGE.replace("batch < self", "batch <= self"), "95 decodes were taken for few", FORM
    ),
    cost("always-few", COST, LARGE, "a, b, c = self.decode", "95 decodes were taken for few", FORM),
    cost("unlimited", COST, USE, "use = context / self.capacity", "not limited to 1", MOCKER),
    cost(
        "larger-only",
        COST,
        MOST,
        MOST.replace("time + np.maximum(", "np.maximum(time, ").replace(", 1.0)", ")"),
        "the larger of the two, not both",
        MOCKER,
    ),
    cost("square-first", COST, "4.209989e-7 * tokens * tokens", "4.209989e-7 * tokens", "ms of 1024 tokens", MOCKER),
    cost("min-of-python", COST, USE, "use = min(context / self.capacity, 1.0)", "truth value of an array", STEPS),
    cost("python-max", ROOFLINE, "seconds = np.maximum(", "seconds = max(", "truth value of an array", STEPS),
    cost(
        "mean-in-ints",
        TABLE,
        "mean = decode_context / decodes",
        "mean = decode_context // decodes",
        "ns of",
        "TablesAddTheirKernels",
    ),
]

WORK = "return 2.0 * (body + shape.n_sequences * model.head_weights + attention)"
ATTENTION = "attention = 2 * model.layers"
READ = "model.experts_read(tokens) * model.expert_weights"
TRAFFIC = "return model.itemsize * weights + model.kv_bytes * (shape.decode_context + prompt + tokens)"
KEYS = "prompt = shape.prefill_context / shape.prefill_tokens + shape.prefill_tokens / 2 if shape.prefill_tokens else 0"
SLOWER = "seconds = np.maximum(self.work(shape) / self.flops, self.traffic(shape) / self.bandwidth)"
SUM = "return (seconds + self.overhead + self.communication(shape)) * (1000 * MS)"
TALK = "return 2 * model.layers * all_reduce("
RING = "return 2 * (cards - 1) * (latency + size / (cards * bandwidth)) if cards > 1 else 0.0"
COUNTS, TWO, RINGS = "RooflineCountsWorkAndBytes", "RooflineTakesTheSlowerOfTwo", "RingsMoveTwiceTheirPart"

_ROOFLINE = [
    cost("one-operation", ROOFLINE, WORK, WORK.replace("2.0 * ", ""), "were counted as one", COUNTS),
    cost(
        "head-each-token",
        ROOFLINE,
        WORK,
        WORK.replace("shape.n_sequences", "tokens"),
        "head was counted for each",
        COUNTS,
    ),
    cost("scores-only", ROOFLINE, ATTENTION, "attention = model.layers", "not for scores and for sums", COUNTS),
    cost("no-attention", ROOFLINE, WORK, WORK.replace(" + attention", ""), "attention is left out", COUNTS),
    cost("nothing-written", ROOFLINE, TRAFFIC, TRAFFIC.replace(" + tokens)", ")"), "what the new tokens write", COUNTS),
    cost("no-keys", ROOFLINE, TRAFFIC, "return model.itemsize * weights", "keys and values are left out", COUNTS),
    cost(
        "all-experts", ROOFLINE, READ, "model.experts * model.expert_weights", "that no token goes to were read", COUNTS
    ),
    cost("keys-each-token", ROOFLINE, KEYS, "prompt = shape.prefill_context", "again for each of its tokens", COUNTS),
    cost(
        "added", ROOFLINE, SLOWER, SLOWER.replace("np.maximum(", "(").replace("flops, ", "flops + "), "were added", TWO
    ),
    cost("seconds", ROOFLINE, SUM, SUM.replace(" * (1000 * MS)", ""), "this is in seconds", TWO),
    cost("no-overhead", ROOFLINE, SUM, SUM.replace(" + self.overhead", ""), "the overhead is left out", TWO),
    cost(
        "silent-cards", ROOFLINE, SUM, SUM.replace(" + self.communication(shape)", ""), "the messages are left out", TWO
    ),
    cost("smaller", ROOFLINE, SLOWER, SLOWER.replace("maximum", "minimum"), "the smaller of the two", TWO),
    cost("one-reduce", ROOFLINE, TALK, "return model.layers * all_reduce(", "one all-reduce in each layer", TWO),
    cost(
        "links-of-memory",
        ROOFLINE,
        "self.machine.link or 1e9",
        "self.machine.link or self.machine.bandwidth",
        "without a link the memory's bandwidth",
        TWO,
    ),
    cost("one-layer", ROOFLINE, TALK, "return 2 * all_reduce(", "two all-reduces in all", TWO),
    cost("everything-sent", ROOFLINE, RING, RING.replace("(cards * bandwidth)", "bandwidth"), "held everything", RINGS),
    cost("half-a-ring", ROOFLINE, RING, RING.replace("2 * ", ""), "half of it", RINGS),
    cost(
        "one-latency",
        ROOFLINE,
        RING,
        "return latency + 2 * (cards - 1) * size / (cards * bandwidth) if cards > 1 else 0.0",
        "one latency for all",
        RINGS,
    ),
    cost(
        "alone-talks",
        ROOFLINE,
        RING,
        "return 2 * max(cards - 1, 1) * (latency + size / (cards * bandwidth))",
        "all-reduce among 1 cards",
        RINGS,
    ),
]

WEIGHTS = "[(low, 1 - share), (high, share)]"
BEFORE = "before = max(context / tokens - (tokens + 1) / 2, 0.0) if tokens else 0.0"
FIXED = "fixed = self.dense(tokens + decodes) + self.sequence(sequences) + self.overhead"
TOTAL = "return (fixed + self.layers * attention) * US"
BLEND, KERNELS = "BlendsLieOnStraightLines", "TablesAddTheirKernels"

_TABLE = [
    cost("exchanged", TABLE, WEIGHTS, "[(low, share), (high, 1 - share)]", "the weights were exchanged", BLEND),
    cost(
        "held",
        TABLE,
        "share = (x - low) / (high - low)",
        "share = min((x - low) / (high - low), 1.0)",
        "was held beyond the last key",
        BLEND,
    ),
    cost(
        "nearest",
        TABLE,
        "return [(high, 1.0)] if x == high else " + WEIGHTS,
        "return [(high, 1.0)] if share > 0.5 else [(low, 1.0)]",
        "expected",
        BLEND,
    ),
    cost("line-before", TABLE, "if x <= keys[0] or len(keys) == 1:", "if len(keys) == 1:", "expected", BLEND),
    cost(
        "logarithmic",
        TABLE,
        "share = (x - low) / (high - low)",
        "share = (np.log(x) - np.log(low)) / (np.log(high) - np.log(low)) if low and x < high else "
        "(x - low) / (high - low)",
        "straight in the logarithm",
        BLEND,
    ),
    cost("microseconds", TABLE, TOTAL, TOTAL.replace(" * US", ""), "in microseconds", KERNELS),
    cost("one-layers-attention", TABLE, TOTAL, TOTAL.replace("self.layers * ", ""), "for one layer", KERNELS),
    cost(
        "all-multiplied",
        TABLE,
        TOTAL,
        "return (self.overhead + self.layers * (fixed - self.overhead + attention)) * US",
        "of all layers were multiplied",
        KERNELS,
    ),
    cost("overhead-lost", TABLE, FIXED, FIXED.replace(" + self.overhead", ""), "the overhead is left out", KERNELS),
    cost(
        "own-positions", TABLE, BEFORE, "before = context / tokens if tokens else 0.0", "of the chunk itself", KERNELS
    ),
    cost(
        "whole-positions",
        TABLE,
        BEFORE,
        "before = max(context // tokens - (tokens + 1) // 2, 0) if tokens else 0",
        "were rounded: of several chunks",
        KERNELS,
    ),
    cost(
        "summed-context",
        TABLE,
        "decode_context / decodes if decodes else 0.0",
        "decode_context",
        "of all decodes was taken for that of each",
        KERNELS,
    ),
    cost(
        "prompts-only",
        TABLE,
        FIXED,
        FIXED.replace("tokens + decodes", "tokens"),
        "not counted among the tokens",
        KERNELS,
    ),
]

REPORT = "        self.report(batch, start, ends)\n        if len(ends) > 1:\n"
COMMIT = "        self.scheduler.commit(batch, [self.result(step.request) for step in batch.sampling])\n"
ENDS = """        for request, *_ in batch.steps:
            if request.finish_reason is not None:
                self.end(request)
"""
ONE = "self.fly(batch, now, [now + self.cost.step_time(shape)])"
BATCH = "        batch = self.scheduler.next_batch()\n"
FREE = """        self.flight = None
        self.report(batch, start, ends)
        if len"""
LOOP, FIRST, NEXT, ALONE = (
    "StepsAreThoseOfTheLoop",
    "TheSinkHearsOfStepsFirst",
    "WhoComesAtTheEndOfAStepIsInTheNext",
    "WithoutLoadNobodyWaits",
)

_REPLICA = [
    replica(
        "results-first",
        REPORT + "            advance(self.scheduler.memory, batch, len(ends) - 1)\n" + COMMIT,
        COMMIT + "        self.report(batch, start, ends)\n",
        "after its results were taken",
        FIRST,
    ),
    replica(
        "waiting-too-late",
        "steps = self.repeats(batch, shape, waiting)",
        "steps = self.repeats(batch, shape, len(self.scheduler.waiting))",
        "[start, end, uids] of steps",
        "ThePreemptedComesBackAtOnce",
    ),
    replica("never-reported", ENDS, "", "only aborts were reported", LOOP),
    replica("ends-before-results", COMMIT + ENDS, ENDS + COMMIT, "of ends, entry", LOOP),
    replica(
        "reported-twice",
        ENDS,
        ENDS.replace("self.end(request)", "self.sink.ended(request, self.simulation.now)"),
        "of ends, entry",
        LOOP,
    ),
    replica("all-end-by-length", COMMIT, COMMIT.replace("self.result(step.request)", "NEXT"), "of steps", LOOP),
    replica("not-reported", REPORT, "        if len(ends) > 1:\n", "[start, end, uids] of steps", LOOP),
    replica("flies-for-ever", FREE, FREE.replace("self.flight = None", "pass"), "times of tokens: entry", ALONE),
    replica(
        "a-step-of-nothing",
        ONE,
        ONE.replace("step_time(shape)", "step_time(shape._replace(n_decode=0))"),
        "times of tokens: entry",
        ALONE,
    ),
    replica(
        "launches-at-once",
        "Phase.LAUNCH, self.turn",
        "Phase.STEP_DONE, self.turn",
        "was chosen before all else of that time",
        NEXT,
    ),
    replica(
        "no-batch-is-an-error",
        "        if batch is None:\n            return\n        now",
        "        if batch is None:\n            raise RuntimeError('nothing to run')\n        now",
        "next_batch() may give None",
        "NothingToRunIsNoError",
    ),
]

STEADY = "return shape.n_decode == shape.n_sequences == len(scheduler.running) and waiting == len(scheduler.waiting)"
MORE = "pages_for(request.cached_len + steps - 1, memory.page_size) - memory.held(request)"
BISECT = "return bisect_right(range(1, left + 1), spare, key=partial(more_pages, memory, batch))"
GROW = "            memory.grow(request, request.cached_len)\n"
CUT = "count = bisect_right(ends, self.simulation.now)"
EXACT = "        if count and ends[count - 1] == self.simulation.now:\n"
ON = "        self.fly(batch, start, ends[count : count + 1])\n"
PART = "            self.report(batch, start, ends[:count])\n            advance"
SAME, LOOKS, MISSING, ADVANCE, AGAIN = (
    "FastForwardIsStepByStep",
    "LookingChangesNothing",
    "RunsEndWhereAPageIsMissing",
    "ToAdvanceIsToCommitAndLaunch",
    "SteadyBatchesComeAgain",
)

_FORWARD = [
    forward(
        "any-queue", STEADY, STEADY.replace(" and waiting == len(scheduler.waiting)", ""), "one was preempted", AGAIN
    ),
    forward("empty-queue-only", STEADY, STEADY.replace("waiting == len", "0 == len"), "others wait as before", AGAIN),
    forward("chunks-too", STEADY, STEADY.replace("shape.n_decode == ", ""), "there is a chunk of a prompt", AGAIN),
    forward("some-of-them", STEADY, STEADY.replace("== len(scheduler.running) and", "and"), "is not in it", AGAIN),
    forward("never", STEADY, "return False", "batches that do not change are one event", SAME),
    forward("one-page-late", MORE, MORE.replace("steps - 1", "steps - 2"), "a run too few was counted", MISSING),
    forward("one-page-early", MORE, MORE.replace(" - 1,", ","), "a run too many was counted", MISSING),
    forward("held-again", MORE, MORE.replace(" - memory.held(request)", ""), "were counted, too", MISSING),
    forward("no-pages", BISECT, "return left", "pages were not asked for", MISSING),
    forward(
        "bisect-left",
        BISECT,
        BISECT.replace("bisect_right(", "__import__('bisect').bisect_left("),
        "runs, expected",
        MISSING,
    ),
    forward("no-grow", GROW, "            pass\n", "no pages were taken", ADVANCE),
    forward("device-stands", "        request.device_len += steps\n", "", "device_len stood still", ADVANCE),
    forward("ids-stand", "        request.ids.extend(tokens)\n", "", "the ids stood still", ADVANCE),
    settle(
        "end-not-yet",
        CUT,
        "count = __import__('bisect').bisect_left(ends, self.simulation.now)",
        "a step that ends at this very time has happened",
        LOOKS,
    ),
    settle("one-too-many", CUT, CUT + " + (ends[0] != self.simulation.now)", "expected", LOOKS),
    settle("always-in-the-middle", EXACT, "        if False:\n", "expected", LOOKS),
    settle(
        "event-stays", "        self.simulation.cancel(done)\n        count", "        count", "cannot unpack", LOOKS
    ),
    settle("all-steps-go-on", ON, ON.replace("ends[count : count + 1]", "ends[count:]"), "expected", SAME),
    settle(
        "begins-again",
        ON,
        "        self.fly(batch, start, [self.simulation.now + ends[count] - start])\n",
        "[steps, cached_len, ids, pages] at",
        LOOKS,
    ),
    settle("not-told", PART, "            advance", "[steps, cached_len", LOOKS),
    settle(
        "advances-first",
        REPORT + "            advance(self.scheduler.memory, batch, len(ends) - 1)\n",
        REPORT.replace("        self.report(batch, start, ends)\n", "")
        + "            advance(self.scheduler.memory, batch, len(ends) - 1)\n        self.report(batch, start, ends)\n",
        "first report, then advance",
        LOOKS,
    ),
    settle("start-stays", "            start = int(ends[count - 1])\n", "", "busy_time is", LOOKS),
]

MUTANTS = [*_KERNEL, *_QUEUES, *_COST, *_ROOFLINE, *_TABLE, *_REPLICA, *_FORWARD]
