# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 7 in a third style: loops and running numbers, subclasses that replace a method, recursion in the search."""


# file: cluster/profile.py
class Profile(Profile):
    """Keeps the best so far."""

    def decode_rate(self, context, itl):
        """Batch after batch."""
        best = None
        for batch in self.batches:
            time = self.itl_at(context, batch)
            if time > itl or batch * context > self.kv_tokens:
                continue
            if best is None or batch / time > best:
                best = batch / time
        if best is None:
            best = self.batches[0] / self.itl_at(context, self.batches[0])
        return best / self.decode_gpus * SECOND


# file: cluster/planner.py
def decode_replicas(requests, output_length, seconds, rate, gpus=1):
    """What comes over what a worker gives."""
    comes, gives = requests * output_length, seconds * (rate * gpus)
    return whole(comes / gives)


def prefill_replicas(requests, input_length, seconds, correction, rate, gpus=1):
    """Shorter prompts, if they were faster than in the profile."""
    if correction < 1.0:
        input_length = input_length * correction
    return decode_replicas(requests, input_length, seconds, rate, gpus)


class ClassicPlanner(ClassicPlanner):
    """Methods of its own."""

    def learn(self, seen):
        """Return early where nothing can be compared."""
        traffic, profile = seen.traffic, self.profile
        self.demand.add(traffic)
        if traffic.input_length is None:
            return
        if traffic.ttft is not None:
            self.prefill_correction = traffic.ttft / profile.ttft_at(traffic.input_length)
        engines = len(seen.pools["decode"].engines)
        if traffic.itl is None or traffic.output_length is None or engines == 0:
            return
        seconds = traffic.duration / SECOND
        tokens_per_s = traffic.requests * traffic.output_length / seconds
        running = tokens_per_s * (traffic.itl / SECOND)
        context = traffic.input_length + traffic.output_length / 2
        self.decode_correction = traffic.itl / profile.itl_at(context, running / engines)

    def replicas(self, demand, new):
        """An hour of it."""
        profile, requests = self.profile, demand.requests * 3600
        context = demand.input_length + demand.output_length / 2
        target = self.itl / self.decode_correction
        rates = profile.prefill_rate(new), profile.decode_rate(context, target)
        prefill = prefill_replicas(requests, new, 3600, self.prefill_correction, rates[0], profile.prefill_gpus)
        decode = decode_replicas(requests, demand.output_length, 3600, rates[1], profile.decode_gpus)
        return {"prefill": prefill, "decode": decode}


class ThroughputPlanner(ClassicPlanner):
    """Corrections stay at 1."""

    def learn(self, seen):
        """As given."""
        self.demand.add(seen.traffic)

    def targets(self):
        """Ask for the workers of the tokens that are new."""
        demand = self.demand.next()
        if not (demand.input_length and demand.output_length):
            return {}
        cached = demand.input_length * demand.hit_rate
        new = max(demand.input_length - cached, 1.0)
        counts, times = self.replicas(demand, new), self.profile.ttft_at(new) / self.ttft
        if times > 1.0 and whole(times) > counts["prefill"]:
            counts["prefill"] = whole(times)
        return counts


# file: cluster/regression.py
def fit(points):
    """Plain lists."""
    slopes = []
    for i in range(len(points)):
        for j in range(i):
            run = points[i][0] - points[j][0]
            if run:
                slopes.append((points[i][1] - points[j][1]) / run)
    if not points:
        return None
    if slopes == []:
        load = points[0][0]
        slopes = [_middle([y for _, y in points]) / load if load else 0.0]
    slope = _middle(slopes)
    if slope < 0:
        slope = 0.0
    return Line(_middle([y - slope * x for x, y in points]), slope)


def _middle(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


class Regression(Regression):
    """Compares the other way round."""

    def add(self, age, load, duration):
        """Old enough, or not."""
        cold = self.warm_up > age
        if not cold:
            self.points.append((load, duration))


# file: cluster/vote.py
def combined(votes):
    """The largest vote decides, since one vote up is enough and one that stays is too."""
    return max(votes, default=Vote.STAY)


# file: cluster/load_planner.py
class LoadPlanner(LoadPlanner):
    """Counts engines."""

    def prefill(self, engines):
        """How many are late, and how many would be."""
        line, n = self.prompts.line(), len(engines)
        if not line:
            return Vote.STAY
        own = self.prefill_time(line, self.prompt)
        late = sum(self.prefill_time(line, e.queued_tokens) > self.ttft - own for e in engines)
        if late == n:
            return Vote.UP
        if n == 1:
            return Vote.STAY
        full = sum(
            self.prefill_time(line, e.queued_tokens * n / (n - 1)) >= self.sensitivity * (self.ttft - own)
            for e in engines
        )
        return Vote.STAY if full else Vote.DOWN

    def decode(self, engines):
        """The same of memories."""
        line, n = self.decodes.line(), len(engines)
        if not line:
            return Vote.STAY
        blocks = [e.kv_used + e.kv_queued for e in engines]
        if sum(line.at(b) > self.itl for b in blocks) == n:
            return Vote.UP
        if n > 1:
            for engine, used in zip(engines, blocks, strict=True):
                used = used * n / (n - 1)
                if not (used < engine.kv_total * self.kv_most and line.at(used) < self.sensitivity * self.itl):
                    break
            else:
                return Vote.DOWN
        return Vote.STAY


# file: cluster/threshold.py
class ThresholdPlanner(ThresholdPlanner):
    """By the largest ratio, since that decides both."""

    def prefill(self, engines):
        """The longest queue."""
        return self.by_largest(
            max(e.queued_tokens for e in engines) / self.context,
            len(engines),
            lambda ratio: ratio >= self.limits.prefill_up,
            lambda ratio: ratio < self.limits.prefill_down or not ratio,
        )

    def decode(self, engines):
        """The fullest memory."""
        return self.by_largest(
            max((e.kv_used + e.kv_queued) / e.kv_total for e in engines),
            len(engines),
            lambda ratio: ratio > self.limits.decode_up,
            lambda ratio: ratio < self.limits.decode_down,
        )

    def by_largest(self, ratio, count, beyond, below):
        """Up, down or neither."""
        if beyond(ratio):
            return Vote.UP
        if count > 1 and below(ratio) and not beyond(ratio * count / (count - 1)):
            return Vote.DOWN
        return Vote.STAY


# file: cluster/planner_loop.py
class PlannerLoop(PlannerLoop):
    """Both in one dict."""

    def asked(self, pools):
        """The larger of two dicts, at each name of either."""
        if self.load is None:
            return self.bounds
        asked = self.load.targets(pools)
        return {
            name: max(targets[name] for targets in (asked, self.bounds) if name in targets)
            for name in [*asked, *(name for name in self.bounds if name not in asked)]
        }


# file: cluster/actuation.py
class Actuation(Actuation):
    """Methods that call smaller ones."""

    def observe(self, pools, now):
        """What is wanted first, the decision then."""
        wanted = {name: pools[name].wanted for name in self.limits}
        if wanted != self.known:
            self.over("superseded", wanted, now)
        if self.pending is not None:
            if not [name for name in self.limits if not pools[name].settled]:
                self.over("done", wanted, now)
            elif self.since + self.time_out <= now:
                self.over("timed out", wanted, now)

    def over(self, outcome, wanted, now):
        """Begin anew."""
        if self.pending is not None:
            self.outcomes[self.pending.number] = outcome
        self.pending, self.known = None, wanted
        self.asked = {name: [(now, count)] for name, count in wanted.items()}

    def steady(self, name, target, current, now):
        """Look back until the patience ends."""
        most = target
        for time, count in reversed(self.asked[name]):
            if time + self.patience <= now:
                break
            most = max(most, count)
        self.asked[name].append((now, target))
        return target if target > current else min(most, current)

    def share(self, targets):
        """One worker at a time, to the pool that has got least beyond its least."""
        given = dict.fromkeys(self.limits, 0)
        left = self.budget - sum(limit.gpus * limit.least for limit in self.limits.values())
        while True:
            open_ = [
                (given[name], place, name)
                for place, (name, limit) in enumerate(self.limits.items())
                if limit.least + given[name] < targets[name] and limit.gpus <= left
            ]
            if not open_:
                return {name: limit.least + given[name] for name, limit in self.limits.items()}
            name = min(open_)[-1]
            given[name] += 1
            left -= self.limits[name].gpus

    def decide(self, targets, pools, now):
        """Aim, share, wait for what drains."""
        if self.pending is not None:
            return None
        aims = self.share({name: self.aim(name, targets, pools[name].wanted, now) for name in self.limits})
        gpus = sum(max(pools[name].held, aims[name]) * self.limits[name].gpus for name in aims)
        if gpus > self.budget:
            aims = {
                name: aim if aim <= pools[name].wanted else max(pools[name].wanted, self.limits[name].least)
                for name, aim in aims.items()
            }
        if {name: pools[name].wanted for name in aims} != aims:
            self.count, self.since, self.known = self.count + 1, now, dict(aims)
            self.pending = Decision(self.count, aims)
        return self.pending

    def aim(self, name, targets, current, now):
        """Of one pool."""
        target = self.steady(name, targets.get(name, current), current, now)
        target = current + max(-self.step, min(self.step, target - current))
        limit = self.limits[name]
        return max(limit.least, min(limit.most, target))


# file: cluster/choose.py
def walk(space, met):
    """Recursively: what is left of a row, then the next one."""

    def go(i, j, best):
        if i == len(space.prefill) or j < 0:
            return best
        here = Sizes(space.prefill[i], space.decode[j])
        if best is not None and space.gpus(best) <= space.gpus(here):
            return go(i, j - 1, best)
        return go(i, j - 1, here) if met(here) else go(i + 1, j, best)

    return go(0, len(space.decode) - 1, None)


def choose(space, attained, target=0.9):
    """The check after each prediction that was made."""
    known = {}

    def met(sizes):
        if sizes not in known:
            known[sizes] = attained(sizes)
        return known[sizes] >= target

    answer = walk(space, met)
    list(map(met, larger(space, answer) if answer else []))
    monotone = True
    for one in known:
        for other in known:
            smaller = one[0] <= other[0] and one[1] <= other[1]
            if smaller and known[one] >= target > known[other]:
                monotone = False
    if not monotone:
        answer = None
        rest = [Sizes(p, d) for p in space.prefill for d in space.decode]
        rest.sort(key=lambda sizes: (space.gpus(sizes), sizes.prefill, sizes.decode))
        for sizes in rest:
            if met(sizes):
                answer = sizes
                break
    return None if answer is None else Chosen(answer, space.gpus(answer), known[answer], known, monotone)
