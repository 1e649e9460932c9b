"""Plausible wrong solutions of Week 4 Day 7, and the case that catches each."""

from course.mutants import Mutant

PROFILE, PLANNER, ACTUATION, CHOOSE = (f"cluster/{name}.py" for name in ("profile", "planner", "actuation", "choose"))
LINE, VOTE, LOAD = "cluster/regression.py", "cluster/vote.py", "cluster/load_planner.py"
THRESHOLD, LOOP = "cluster/threshold.py", "cluster/planner_loop.py"


def best(name: str, old: str, new: str, message: str) -> Mutant:
    return Mutant(name, 1, PROFILE, old, new, message, "TheBestRateUnderATarget")


def plan(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, PLANNER, old, new, message, killer)


def load(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, LOAD, old, new, message, killer)


def threshold(name: str, old: str, new: str, message: str) -> Mutant:
    return Mutant(name, 2, THRESHOLD, old, new, message, "ThresholdsUpIfAnyDownIfAll")


def act(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, ACTUATION, old, new, message, killer)


def pick(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, CHOOSE, old, new, message, killer)


FIT = "if time <= itl and batch * context <= self.kv_tokens]"
BEST = "best = max(batch / times[batch] for batch in fit or self.batches[:1])"
PREFILL = "return whole(requests * input_length / seconds * min(1.0, correction) / rate / gpus)"
DECODE = "return whole(requests * output_length / seconds / rate / gpus)"
LITTLE = "batch = traffic.requests / traffic.duration * traffic.output_length * traffic.itl / engines"
MIDDLE = "context = traffic.input_length + traffic.output_length / 2"
EMPTY = """        if traffic.input_length is None:
            return
        if traffic.ttft is not None:"""
TARGET = "decode_rate = profile.decode_rate(context, self.itl / self.decode_correction)"

_TASK_1 = [
    best("target-forgotten", FIT, "if batch * context <= self.kv_tokens]", "the target was forgotten"),
    best("memory-forgotten", FIT, "if time <= itl]", "the KV memory was forgotten"),
    best("largest-batch", BEST, "best = max(fit or self.batches[:1]) / times[max(fit or self.batches[:1])]",
        "the largest batch was taken"),
    best("nothing-fits", BEST, BEST.replace("[:1]", "[-1:]"), "the smallest batch comes nearest"),
    best("per-worker", "return best * SECOND / self.decode_gpus", "return best * SECOND", "not that of a GPU"),
    best("just-in-time-is-late", FIT, FIT.replace("time <= itl", "time < itl"), "just as long as it may"),
    best("just-full-is-too-much", FIT, FIT.replace("<= self.kv", "< self.kv"), "what just fits"),
    plan("a-hair-is-a-worker", PREFILL, PREFILL.replace("whole(", "max(1, math.ceil(") + ")",
        "9.0000000001 are 9 workers", "ReplicasAreExact"),
    plan("nobody-is-left", DECODE, DECODE.replace("whole(", "math.ceil(round(")[:-1] + ", 9))",
        "one worker must be left", "ReplicasAreExact"),
    plan("starting-share-too", 'len(seen.pools["decode"].engines)', 'seen.pools["decode"].wanted',
        "engines that do not serve yet share nothing", "CorrectionsCompareWithTheProfile"),
    plan("all-or-nothing", "        if traffic.input_length is None:\n            return\n        if traffic.ttft",
        "        if None in (traffic.input_length, traffic.ttft, traffic.itl, traffic.output_length) or not engines:\n"
        "            return\n        if traffic.ttft", "one mean is missing", "CorrectionsCompareWithTheProfile"),
    plan("not-seen-is-perfect", "        if traffic.ttft is not None:\n",
        "        self.prefill_correction = self.decode_correction = 1.0\n        if traffic.ttft is not None:\n",
        "what was not seen stays", "CorrectionsCompareWithTheProfile"),
    plan("silence-not-told",
        "        self.demand.add(traffic)\n        if traffic.input_length is None:\n            return\n",
        "        if traffic.input_length is None:\n            return\n        self.demand.add(traffic)\n",
        "an interval in which nobody came", "CorrectionsCompareWithTheProfile"),
    plan("rate-of-whole-prompts", "profile.prefill_rate(new)", "profile.prefill_rate(demand.input_length)",
        "prompts of `new` tokens", "TheClassicPlannerCorrects"),
    plan("queueing-counted", PREFILL, PREFILL.replace("min(1.0, correction)", "correction"),
        "a correction above 1 is queueing", "ReplicasAreExact"),
    plan("no-correction", PREFILL, PREFILL.replace(" * min(1.0, correction)", ""), "the correction was not counted",
        "ReplicasAreExact"),
    plan("max-for-min", PREFILL, PREFILL.replace("min(", "max("), "counts only above 1", "ReplicasAreExact"),
    plan("gpus-forgotten", DECODE, DECODE.replace(" / gpus", ""), "the GPUs of a worker were forgotten",
        "ReplicasAreExact"),
    plan("rounding-errors", PREFILL, PREFILL.replace("whole(", "math.ceil(1e-6 + "), "one more than enough",
        "ReplicasAreExact"),
    plan("rounded-down", DECODE, DECODE.replace("whole(", "max(1, int(") + ")", "rounded down", "ReplicasAreExact"),
    plan("one-engine-s-batch", LITTLE, LITTLE.replace(" / engines", ""), "not shared by the decode engines",
        "CorrectionsCompareWithTheProfile"),
    plan("last-token-s-context", MIDDLE, MIDDLE.replace(" / 2", ""), "the context of the last token",
        "CorrectionsCompareWithTheProfile"),
    plan("upside-down", "traffic.ttft / self.profile.ttft_at(traffic.input_length)",
        "self.profile.ttft_at(traffic.input_length) / traffic.ttft", "profiled over observed",
        "CorrectionsCompareWithTheProfile"),
    plan("empty-is-perfect", EMPTY, """        if traffic.input_length is None:
            self.prefill_correction = self.decode_correction = 1.0
            return
        if traffic.ttft is not None:""", "an empty interval was taken for one without delay",
        "CorrectionsCompareWithTheProfile"),
    plan("demand-not-told", "self.demand.add(traffic)\n", "traffic.requests\n", "did not tell the forecast",
        "CorrectionsCompareWithTheProfile"),
    plan("itl-not-corrected", TARGET, TARGET.replace(" / self.decode_correction", ""),
        "the ITL target was not corrected", "TheClassicPlannerCorrects"),
    plan("itl-times-d", TARGET, TARGET.replace("itl / ", "itl * "), "multiplied by d", "TheClassicPlannerCorrects"),
    plan("prompt-s-context", "context = demand.input_length + demand.output_length / 2",
        "context = demand.input_length", "the context of the prompt", "TheClassicPlannerCorrects"),
    plan("hits-forgotten", "demand.input_length * (1 - demand.hit_rate)", "demand.input_length",
        "cached tokens were counted", "TheLaterPlannerCountsWhatIsNew"),
    plan("missed-forgotten", "if alone > self.ttft:", "if False:", "a target that cannot be met asks for more",
        "TheLaterPlannerCountsWhatIsNew"),
    plan("missed-added", 'max(counts["prefill"], whole(alone / self.ttft))',
        'counts["prefill"] + whole(alone / self.ttft)', "were added", "TheLaterPlannerCountsWhatIsNew"),
]  # fmt: skip

UP = "if all(self.prefill_time(line, tokens) + own > self.ttft for tokens in queued):"
SAFE = "safe = count > 1 and all("
DUE = "if all(line.at(blocks) > self.itl for blocks, _ in loads):"
LOADS = "[(engine.kv_used + engine.kv_queued, engine.kv_total) for engine in engines]"
BOTH = "all(b < self.kv_most * total and line.at(b) < self.itl * self.sensitivity for b, total in merged)"
GUARD_P, GUARD_D = (
    "low and all(queue < up for queue in spread(queues))",
    "low and all(use <= up for use in spread(uses))",
)

_TASK_2 = [
    Mutant("mean-slope", 2, LINE, "slope = max(0.0, median(slopes))", "slope = max(0.0, sum(slopes) / len(slopes))",
        "the mean was taken", "ALineThroughOutliers"),
    Mutant("least-squares", 2, LINE, """    slope = max(0.0, median(slopes))
    return Line(median(y - slope * x for x, y in points), slope)""", """    xs, ys = zip(*points, strict=True)
    mean, level = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean) * (y - level) for x, y in points) / (sum((x - mean) ** 2 for x in xs) or 1)
    return Line(level - slope * mean, slope)""", "least squares", "ALineThroughOutliers"),
    Mutant("one-load-flat", 2, LINE, " or [y / x for x, y in points if x > 0] or [0.0]", " or [0.0]",
        "points of one load do have a line", "ALineThroughOutliers"),
    Mutant("one-load-none", 2, LINE, "    if not points:\n        return None\n    slopes = ",
        "    if len({x for x, _ in points}) < 2:\n        return None\n    slopes = ",
        "points of one load do have a line", "ALineThroughOutliers"),
    Mutant("falling", 2, LINE, "max(0.0, median(slopes))", "median(slopes)", "a slope below 0 counts as 0",
        "ALineThroughOutliers"),
    Mutant("cold-taken", 2, LINE, "if age >= self.warm_up:", "if age >= 0:", "samples of a cold engine were taken",
        "ColdSamplesAreLeftOut"),
    Mutant("warm-a-tick-late", 2, LINE, "if age >= self.warm_up:", "if age > self.warm_up:", "is warm",
        "ColdSamplesAreLeftOut"),
    Mutant("the-oldest-kept", 2, LINE, "        if age >= self.warm_up:",
        "        if age >= self.warm_up and len(self.points) < self.points.maxlen:", "the newest samples are kept",
        "ColdSamplesAreLeftOut"),
    Mutant("added-up", 2, VOTE, """    if Vote.UP in votes:
        return Vote.UP
    return Vote.DOWN if votes and all(vote is Vote.DOWN for vote in votes) else Vote.STAY""",
        "    return Vote(max(-1, min(1, sum(votes))))", "the votes were added up", "VotesPutTogether"),
    Mutant("all-of-nobody", 2, VOTE, "if votes and all(", "if all(", "a pool without any vote stays",
        "VotesPutTogether"),
    Mutant("any-down", 2, VOTE, "if votes and all(vote is Vote.DOWN for", "if any(vote is Vote.DOWN for",
        "one vote down is not enough", "VotesPutTogether"),
    load("any-queue", UP, UP.replace("all(", "any("), "up if any engine is late", "QueuesDecideOnPrefill"),
    load("own-time-forgotten", "own, count = self.prefill_time(line, self.prompt), len(engines)",
        "own, count = 0.0, len(engines)", "own time was forgotten", "QueuesDecideOnPrefill"),
    load("just-in-time-is-a-miss", UP, UP.replace("> self", ">= self"), "just as long as the TTFT",
        "QueuesDecideOnPrefill"),
    load("one-batch-for-all", "own, count = self.prefill_time(line, self.prompt)", "own, count = line.at(self.prompt)",
        "two batches", "QueuesDecideOnPrefill"),
    load("one-sum", UP, UP.replace("tokens) + own", "tokens + self.prompt)"), "each has batches of its own",
        "QueuesDecideOnPrefill"),
    load("just-full-is-room", BOTH, BOTH.replace("b < self.kv_most", "b <= self.kv_most"), "below `kv_most`",
        "MemoryDecidesOnDecode"),
    load("down-without-a-line", """        line = self.decodes.line()
        if line is None:
            return Vote.STAY""", """        line = self.decodes.line()
        if line is None:
            return Vote.DOWN""", "there is no line", "MemoryDecidesOnDecode"),
    load("no-room", "room = (self.ttft - own) * self.sensitivity", "room = self.ttft - own", "no room was kept",
        "QueuesDecideOnPrefill"),
    load("its-load-forgotten", "tokens * count / (count - 1)", "tokens", "the load of the one that goes",
        "QueuesDecideOnPrefill"),
    load("last-one-goes", SAFE + "self.prefill_time(line, tokens * count / (count - 1)) < room for tokens in queued)",
        "safe = all(self.prefill_time(line, tokens * count / max(count - 1, 1)) < room for tokens in queued)",
        "the last worker was taken away", "QueuesDecideOnPrefill"),
    load("any-memory", DUE, DUE.replace("all(", "any("), "up if any engine is slow", "MemoryDecidesOnDecode"),
    load("waiting-forgotten", LOADS, LOADS.replace(" + engine.kv_queued", ""), "blocks that requests wait for",
        "MemoryDecidesOnDecode"),
    load("time-only", BOTH, "all(line.at(b) < self.itl * self.sensitivity for b, _ in merged)",
        "the memory may not be full", "MemoryDecidesOnDecode"),
    load("as-it-is", "(blocks * count / (count - 1), total)", "(blocks, total)", "the load of the one that goes",
        "MemoryDecidesOnDecode"),
    load("no-room-for-tokens", BOTH, BOTH.replace(" * self.sensitivity", ""), "no room was kept",
        "MemoryDecidesOnDecode"),
    threshold("all-above", "if any(use > up for use in uses):", "if all(use > up for use in uses):",
        "up only if all engines are above"),
    threshold("any-below", "low = all(use < down for use in uses)", "low = any(use < down for use in uses)",
        "down if any engine is below"),
    threshold("flip-flop", GUARD_D, "low and len(uses) > 1", "what goes down comes up again"),
    threshold("last-one-too", GUARD_P, "low", "the last worker was taken away"),
    threshold("queue-above", "if any(queue >= up for queue in queues):", "if any(queue > up for queue in queues):",
        "at the upper threshold itself"),
    threshold("memory-at", "if any(use > up for use in uses):", "if any(use >= up for use in uses):",
        "at the upper threshold itself"),
    threshold("one-memory-for-all", "/ engine.kv_total for", "/ engines[0].kv_total for", "a memory of its own"),
    threshold("used-only", "(engine.kv_used + engine.kv_queued) / engine.kv_total", "engine.kv_used / engine.kv_total",
        "blocks that requests wait for were forgotten"),
    Mutant("bounds-forgotten", 2, LOOP, "asked | {", "asked or {", "the bounds were not counted", "BoundsFromBelow"),
    Mutant("bounds-win", 2, LOOP, "max(bound, asked.get(name, bound))", "bound", "the bounds took the place",
        "BoundsFromBelow"),
    Mutant("bounds-above", 2, LOOP, "max(bound, asked.get(name, bound))", "min(bound, asked.get(name, bound))",
        "lower bounds, not upper ones", "BoundsFromBelow"),
]  # fmt: skip

PENDING = """        if self.pending is not None:
            return None
        aims"""
SETTLED = "elif self.pending is not None and all(pools[name].settled for name in self.limits):"
STEP = "aim = min(max(aim, current - self.step), current + self.step)"
LEAST = "aims[name] = min(max(aim, limit.least), limit.most)"
HELD = "if sum(limit.gpus * max(pools[name].held, aims[name]) for name, limit in self.limits.items()) > self.budget:"
TAKES = "and limit.gpus <= left:\n                    counts[name] += 1\n                    left -= limit.gpus"
STEADY = "return max(target, min(current, max(count for _, count in self.asked[name])))"
ANEW = "        self.asked = {name: [(now, count)] for name, count in wanted.items()}\n"

_TASK_3 = [
    act("two-pending", PENDING, "        aims", "while a decision was pending", "OneDecisionAtATime"),
    act("done-while-draining", SETTLED,
        SETTLED.replace("pools[name].settled", "len(pools[name].engines) == wanted[name]"),
        "done before those that drain were gone", "OneDecisionAtATime"),
    act("others-count-too", "pools[name].settled for name in self.limits", "pool.settled for pool in pools.values()",
        "none of its business", "OneDecisionAtATime"),
    act("old-wishes", STEADY, "return max(count for _, count in self.asked[name])", "it makes none grow",
        "OldWishesMakeNothingGrow"),
    act("from-what-is-held", "current = pools[name].wanted\n", "current = pools[name].held\n",
        "not with those that drain", "StepsAndLimits"),
    act("stays-below-its-least", "max(self.limits[name].least, min(aim, pools[name].wanted))",
        "min(aim, pools[name].wanted)", "grows to it", "GrowthFitsBesideWhatIsHeld"),
    act("from-zero", """        self.count += 1
        self.pending, self.since, self.known = Decision(self.count, aims), now, aims""",
        """        self.pending, self.since, self.known = Decision(self.count, aims), now, aims
        self.count += 1""", "decisions are numbered from 1 on", "OneDecisionAtATime"),
    act("waits-for-ever", "now - self.since >= self.time_out", "now - self.since < 0", "never timed out",
        "ADecisionEnds"),
    act("a-tick-late", "now - self.since >= self.time_out", "now - self.since > self.time_out",
        "when time_out ns have passed", "ADecisionEnds"),
    act("hand-not-seen", """        if wanted != self.known:
            outcome = "superseded"
        elif""", """        if self.known is None:
            outcome = "superseded"
        elif""", "somebody else decided", "ADecisionEnds"),
    act("done-by-a-hand", """        if wanted != self.known:
            outcome = "superseded"
        elif self.pending is not None and all(pools[name].settled for name in self.limits):
            outcome = "done"
""", """        if self.pending is not None and all(pools[name].settled for name in self.limits):
            outcome = "done"
        elif wanted != self.known:
            outcome = "superseded"
""", "look first whether somebody changed", "ADecisionEnds"),
    act("at-once", STEADY, "return target", "shrank at once", "PatienceBeforeItShrinks"),
    act("the-newest", STEADY, """over = max(count for _, count in self.asked[name]) < current
        return target if over else max(target, current)""", "not to the most within the patience",
        "PatienceBeforeItShrinks"),
    act("patience-and-one", "if now - time < self.patience]", "if now - time <= self.patience]",
        "of exactly the patience ago", "PatienceBeforeItShrinks"),
    act("old-patience", ANEW, ANEW.replace("= {", "= self.asked or {"),
        "patience begins anew", "PatienceBeforeItShrinks"),
    act("any-step", STEP, "aim = int(aim)", "the step was not limited", "StepsAndLimits"),
    act("no-limits", LEAST, "aims[name] = aim", "least and most", "StepsAndLimits"),
    act("step-wins", STEP + "\n            " + LEAST, "aim = min(max(aim, limit.least), limit.most)\n            "
        + "aims[name] = min(max(aim, current - self.step), current + self.step)", "count more than the step",
        "StepsAndLimits"),
    act("budget-forgotten", "and limit.gpus <= left:", "and limit.gpus > 0:", "the budget was forgotten",
        "TheBudgetIsSharedInTurns"),
    act("workers-counted", TAKES, TAKES.replace("limit.gpus", "1"), "workers were counted, not their GPUs",
        "TheBudgetIsSharedInTurns"),
    act("first-takes-all", "if counts[name] < targets[name] and limit.gpus <= left:",
        "while counts[name] < targets[name] and limit.gpus <= left:", "the first pool took all",
        "TheBudgetIsSharedInTurns"),
    act("drained-is-free", HELD, "if not aims:", "GPUs of workers that drain are not free yet",
        "InvariantsOfRandomHistories"),
    act("at-once-into-held", HELD, "if not aims:", "it grew and shrank at once", "GrowthFitsBesideWhatIsHeld"),
    act("drain-not-held", HELD, HELD.replace("pools[name].held", "pools[name].wanted"),
        "GPUs of workers that drain were taken for free", "GrowthFitsBesideWhatIsHeld"),
    act("last-gpu-idle", HELD, HELD.replace("> self.budget", ">= self.budget"), "to the last GPU",
        "GrowthFitsBesideWhatIsHeld"),
    act("empty-decisions", """        if all(aims[name] == pools[name].wanted for name in aims):
            return None
""", "", "nothing changes", "InvariantsOfRandomHistories"),
    Mutant("flip-flop-runs", 3, THRESHOLD, GUARD_D, "low and len(uses) > 1", "the threshold planner flaps",
        "AConstantLoadSettles"),
    Mutant("cold-runs", 3, LINE, "if age >= self.warm_up:", "if age >= 0:", "samples of cold engines poison",
        "ColdEnginesDoNotCallForMore"),
]  # fmt: skip

MET = "return predictions[sizes] >= target"
COST = "if best is not None and space.gpus(sizes) >= space.gpus(best):"

_TASK_4 = [
    pick("strictly-above", MET, "return predictions[sizes] > target", "exactly the target is good enough",
        "TheCheapestThatIsGoodEnough"),
    pick("workers-not-gpus", COST, "if best is not None and sum(sizes) >= sum(best):", "workers were counted",
        "TheCheapestThatIsGoodEnough"),
    pick("first-found", COST, "if best is not None and sizes.prefill > best.prefill:", "[prefill, decode] workers",
        "TheCheapestThatIsGoodEnough"),
    pick("all-of-them", "    best = walk(space, met)\n",
        """    list(map(met, map(Sizes._make, product(space.prefill, space.decode))))
    best = walk(space, met)
""", "all sizes were predicted", "FewPredictions"),
    pick("twice", "        if sizes not in predictions:\n            predictions[sizes] = attained(sizes)\n",
        "        predictions[sizes] = attained(sizes)\n", "predicted twice", "FewPredictions"),
    pick("unchecked", "        for sizes in larger(space, best):\n", "        for sizes in []:\n", "was not checked",
        "FewPredictions"),
    pick("no-proof-asked", "    if not monotone:\n", "    if not predictions:\n", "the walk's answer was kept",
        "AContradictionIsNoProof"),
    pick("seen-one-way", "met(small) and not met(large)", "False and met(large)", "a contradiction was not seen",
        "AContradictionIsNoProof"),
    pick("by-workers", "key=lambda s: (space.gpus(s), s)", "key=lambda s: (sum(s), s)", "is the cheapest of all",
        "AContradictionIsNoProof"),
]  # fmt: skip

MUTANTS = _TASK_1 + _TASK_2 + _TASK_3 + _TASK_4
