# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 7 in another style: exact fractions, NumPy, tables of rules, and a search by bisection of the columns' border."""


# file: cluster/profile.py
def decode_rate(self, context, itl):
    """All batches at once, in NumPy."""
    batches = np.array(self.batches, np.float64)
    rows = np.array(self.itl, np.float64)
    times = np.array([np.interp(context, self.contexts, column) for column in rows.T])
    usable = (times <= itl) & (batches * context <= self.kv_tokens)
    rates = np.where(usable, batches / times, -1.0)
    best = rates.max() if usable.any() else batches[0] / times[0]
    return float(best) * SECOND / self.decode_gpus


Profile.decode_rate = decode_rate


# file: cluster/planner.py
def _exact(*numbers):
    """A product and quotients in decimal fractions."""
    from fractions import Fraction

    return [Fraction(repr(float(number))) for number in numbers]


def prefill_replicas(requests, input_length, seconds, correction, rate, gpus=1):
    """In exact fractions."""
    requests, tokens, seconds, share, rate = _exact(requests, input_length, seconds, min(correction, 1.0), rate)
    return whole(float(requests * tokens * share / (seconds * rate * gpus)))


def decode_replicas(requests, output_length, seconds, rate, gpus=1):
    """The same without a correction."""
    return prefill_replicas(requests, output_length, seconds, 1.0, rate, gpus)


def learn(self, seen):
    """Corrections as two small questions."""
    traffic = seen.traffic
    self.demand.add(traffic)
    length, output = traffic.input_length, traffic.output_length
    if length is not None and traffic.ttft is not None:
        self.prefill_correction = traffic.ttft / self.profile.ttft_at(length)
    engines = len(seen.pools["decode"].engines)
    if None not in (length, output, traffic.itl) and engines > 0:
        decoding = traffic.itl * output  # ns of one answer
        at_once = traffic.requests * decoding / traffic.duration / engines
        self.decode_correction = traffic.itl / self.profile.itl_at(length + 0.5 * output, at_once)


def replicas(self, demand, new):
    """Requests per second over those of one engine."""
    profile = self.profile
    prompts = profile.prefill_rate(new) * profile.prefill_gpus / new / min(self.prefill_correction, 1.0)
    middle = demand.input_length + 0.5 * demand.output_length
    tokens = profile.decode_rate(middle, self.itl / self.decode_correction) * profile.decode_gpus
    return {
        "prefill": whole(demand.requests / prompts),
        "decode": whole(demand.requests * demand.output_length / tokens),
    }


ClassicPlanner.learn = learn
ClassicPlanner.replicas = replicas


def later_targets(self):
    """A list of lower bounds, of which the largest counts."""
    demand = self.demand.next()
    if demand.input_length == 0 or demand.output_length == 0:
        return {}
    new = demand.input_length - demand.input_length * demand.hit_rate
    counts = self.replicas(demand, new if new > 1 else 1.0)
    bounds = [counts.pop("prefill")]
    if self.profile.ttft_at(max(new, 1.0)) > self.ttft:
        bounds.append(math.ceil(round(self.profile.ttft_at(max(new, 1.0)) / self.ttft, 9)))
    return {"prefill": max(bounds)} | counts


ThroughputPlanner.targets = later_targets


# file: cluster/regression.py
def fit(points):
    """Sorted lists instead of `median`, slopes from a matrix."""
    import numpy as np

    if not points:
        return None
    x, y = np.array(points, np.float64).T
    run, rise = x[None] - x[:, None], y[None] - y[:, None]
    some = run > 0
    if some.any():
        slope = max(float(np.median(rise[some] / run[some])), 0.0)
    else:
        slope = float(np.median(y)) / x[0] if x[0] else 0.0
    return Line(float(np.median(y - slope * x)), slope)


def add(self, age, load, duration):
    """Refuse early."""
    if age < self.warm_up:
        return
    self.points.append((load, duration))


Regression.add = add


# file: cluster/vote.py
def combined(votes):
    """By the set of votes."""
    kinds = {int(vote) for vote in votes}
    return Vote(1 if 1 in kinds else -1 if kinds == {-1} else 0)


# file: cluster/load_planner.py
def prefill(self, engines):
    """By the shortest and the longest queue."""
    line = self.prompts.line()
    if line is None:
        return Vote.STAY
    own = self.prefill_time(line, self.prompt)
    short, long = (pick(engine.queued_tokens for engine in engines) for pick in (min, max))
    if self.prefill_time(line, short) + own > self.ttft:
        return Vote.UP
    if len(engines) > 1:
        after = long * len(engines) / (len(engines) - 1)
        if self.prefill_time(line, after) < (self.ttft - own) * self.sensitivity:
            return Vote.DOWN
    return Vote.STAY


def decode(self, engines):
    """Engine by engine, with early returns."""
    line = self.decodes.line()
    if line is None:
        return Vote.STAY
    for engine in engines:
        if not line.at(engine.kv_used + engine.kv_queued) > self.itl:
            break
    else:
        return Vote.UP
    others = len(engines) - 1
    if others == 0:
        return Vote.STAY
    for engine in engines:
        after = (engine.kv_used + engine.kv_queued) * (others + 1) / others
        if after >= self.kv_most * engine.kv_total or line.at(after) >= self.itl * self.sensitivity:
            return Vote.STAY
    return Vote.DOWN


LoadPlanner.prefill = prefill
LoadPlanner.decode = decode


# file: cluster/threshold.py
def _vote(loads, beyond, below):
    """Of ratios, by two conditions."""
    if any(map(beyond, loads)):
        return Vote.UP
    if len(loads) < 2 or not all(map(below, loads)):
        return Vote.STAY
    after = [load * len(loads) / (len(loads) - 1) for load in loads]
    return Vote.STAY if any(map(beyond, after)) else Vote.DOWN


def queues(self, engines):
    """In contexts."""
    limits = self.limits
    ratios = [engine.queued_tokens / self.context for engine in engines]
    return _vote(ratios, lambda r: r >= limits.prefill_up, lambda r: r == 0 or r < limits.prefill_down)


def memories(self, engines):
    """In whole memories."""
    limits = self.limits
    ratios = [(engine.kv_used + engine.kv_queued) / engine.kv_total for engine in engines]
    return _vote(ratios, lambda r: r > limits.decode_up, lambda r: r < limits.decode_down)


ThresholdPlanner.prefill = queues
ThresholdPlanner.decode = memories


# file: cluster/planner_loop.py
def asked(self, pools):
    """Name by name."""
    if self.load is None:
        return dict(self.bounds)
    result = dict(self.load.targets(pools))
    for name, bound in self.bounds.items():
        if name not in result or result[name] < bound:
            result[name] = bound
    return result


PlannerLoop.asked = asked


# file: cluster/actuation.py
def observe(self, pools, now):
    """One question after the other, with early returns."""
    wanted = {name: pools[name].wanted for name in self.limits}
    if wanted == self.known and self.pending is None:
        return
    if wanted != self.known:
        outcome = "superseded"
    elif not [name for name in self.limits if not pools[name].settled]:
        outcome = "done"
    elif now >= self.since + self.time_out:
        outcome = "timed out"
    else:
        return
    if self.pending is not None:
        self.outcomes[self.pending.number] = outcome
        self.pending = None
    self.known = wanted
    self.asked = {}
    for name, count in wanted.items():
        self.asked[name] = [(now, count)]


def steady(self, name, target, current, now):
    """Forget from the front."""
    notes = self.asked[name]
    notes.append((now, target))
    while notes[0][0] <= now - self.patience and len(notes) > 1:
        notes.pop(0)
    most = max(count for _, count in notes)
    if target >= current:
        return target
    return current if most > current else most


def share(self, targets):
    """Rounds over a list of wishes."""
    counts = {name: limit.least for name, limit in self.limits.items()}
    left = self.budget - sum(self.limits[name].gpus * count for name, count in counts.items())
    wishes = list(self.limits)
    while wishes:
        again = []
        for name in wishes:
            if counts[name] < targets[name] and self.limits[name].gpus <= left:
                counts[name] += 1
                left -= self.limits[name].gpus
                again.append(name)
        wishes = again
    return counts


def decide(self, targets, pools, now):
    """Three dicts, one after the other."""
    if self.pending:
        return None
    current = {name: pools[name].wanted for name in self.limits}
    calm = {name: self.steady(name, targets.get(name, count), count, now) for name, count in current.items()}
    near = {name: sorted([count - self.step, calm[name], count + self.step])[1] for name, count in current.items()}
    inside = {name: sorted([limit.least, near[name], limit.most])[1] for name, limit in self.limits.items()}
    aims = self.share(inside)
    needed = 0
    for name, limit in self.limits.items():
        needed += limit.gpus * max(aims[name], pools[name].held)
    if needed > self.budget:
        for name, limit in self.limits.items():
            aims[name] = max(limit.least, min(aims[name], current[name]))
    if aims == current:
        return None
    self.count += 1
    self.since, self.known = now, dict(aims)
    self.pending = Decision(self.count, aims)
    return self.pending


Actuation.observe = observe
Actuation.steady = steady
Actuation.share = share
Actuation.decide = decide


# file: cluster/choose.py
def walk(space, met):
    """Row by row: down the decode sizes of each number of prefill workers, from where the last row ended."""
    best, left = None, list(space.decode)
    for count in space.prefill:
        while left:
            sizes = Sizes(count, left[-1])
            if best is None or space.gpus(sizes) < space.gpus(best):
                if not met(sizes):
                    break
                best = sizes
            left.pop()
    return best


def choose(space, attained, target=0.9):
    """Two lists, those that are good enough and those that are not, compared at the end."""
    predictions = {}

    def met(sizes):
        share = predictions.get(sizes)
        if share is None:
            share = predictions[sizes] = attained(sizes)
        return share >= target

    best = walk(space, met)
    if best is None:
        good, bad = [], list(predictions)
    else:
        for sizes in larger(space, best):
            met(sizes)
        good = [sizes for sizes, share in predictions.items() if share >= target]
        bad = [sizes for sizes, share in predictions.items() if share < target]
    monotone = not [1 for a in good for b in bad if a[0] <= b[0] and a[1] <= b[1]]
    if not monotone:
        for _, sizes in sorted((space.gpus(Sizes(p, d)), Sizes(p, d)) for p in space.prefill for d in space.decode):
            if met(sizes):
                best = sizes
                break
    if best is None:
        return None
    return Chosen(best, space.gpus(best), predictions[best], predictions, monotone)
