"""Wrong solutions of day 7 that its tests must catch."""

from course.mutants import Mutant

SAMPLER = "text/sampler.py"
_LOG = "return shifted - mx.log(mx.sum(mx.exp(shifted), axis=-1, keepdims=True))"
_MAX = "    shifted = shifted - mx.max(shifted, axis=-1, keepdims=True)\n"
_SIGN = "mx.where(logits > 0, logits / penalty, logits * penalty)"
_TOP_K = "ranked = mx.where(mx.arange(V) < k, ranked, -mx.inf)"
_TOP_P = "    ranked = mx.where((before < top_p) | (top_p >= 1), ranked, -mx.inf)\n"
_PROBABILITIES = "    probabilities = softmax(ranked)\n"
_SPLIT = "self.keys[row], key = mx.random.split(self.keys[row])"
_PENALTY = "        logits = apply_repetition_penalty(logits, history, [p.repetition_penalty for p in self.params])\n"
_FILTER = """        filtered = filter_logits(
            logits,
            [p.temperature for p in self.params],
            [p.top_k for p in self.params],
            [p.top_p for p in self.params],
            [p.min_p for p in self.params],
        )
"""
_STACK = "return mx.stack([self._draw(row, filtered[row]) for row in range(len(self.params))])"


def mutant(task: int, name: str, killer: str, message: str, old: str, new: str) -> Mutant:
    return Mutant(name=name, task=task, file=SAMPLER, old=old, new=new, message=message, killer=killer)


LOG_PROBABILITIES = [
    mutant(
        1,
        "log-of-softmax",
        "UnlikelyTokensKeepTheirValue",
        "the logarithm was taken of a probability that had become 0",
        _LOG,
        "return mx.log(mx.exp(shifted) / mx.sum(mx.exp(shifted), axis=-1, keepdims=True))",
    ),
    mutant(1, "no-maximum", "LargeLogitsDoNotOverflow", "the maximum was not subtracted before exp", _MAX, ""),
    mutant(
        1,
        "not-widened",
        "LowPrecisionIsWidenedFirst",
        "computed in the dtype of the logits, not in float32",
        "shifted = logits.astype(mx.float32)\n",
        "shifted = logits\n",
    ),
    mutant(
        1,
        "widened-last",
        "LowPrecisionIsWidenedFirst",
        "computed in the dtype of the logits, not in float32",
        f"shifted = logits.astype(mx.float32)\n{_MAX}    {_LOG}",
        f"shifted = logits\n{_MAX}    return ({_LOG.removeprefix('return ')}).astype(mx.float32)",
    ),
    mutant(
        1,
        "first-axis",
        "LogProbabilitiesMatchFloat64",
        "softmax ran along the first axis",
        f"{_MAX}    {_LOG}",
        f"{_MAX}    {_LOG}".replace("axis=-1", "axis=0"),
    ),
    mutant(
        1,
        "sum-of-everything",
        "LogProbabilitiesMatchFloat64",
        "softmax ran over the whole array",
        _LOG,
        "shifted = logits.astype(mx.float32) - mx.max(logits)\n    return shifted - mx.log(mx.sum(mx.exp(shifted)))",
    ),
    mutant(
        1,
        "no-sum",
        "LogProbabilitiesMatchFloat64",
        "the logarithm of the sum was not subtracted",
        _LOG,
        "return shifted",
    ),
]

PENALTY = [
    mutant(
        2,
        "always-divided",
        "PenaltyMatchesFloat64",
        "every logit was divided: that makes negative ones larger",
        _SIGN,
        "logits / penalty",
    ),
    mutant(
        2,
        "signs-swapped",
        "PenaltyMatchesFloat64",
        "positive logits were multiplied and negative ones divided",
        _SIGN,
        "mx.where(logits < 0, logits / penalty, logits * penalty)",
    ),
    mutant(
        2,
        "once-for-each-time",
        "PenaltyMatchesFloat64",
        "the penalty was applied once for each time the token occurs",
        """    seen = np.zeros(logits.shape, dtype=bool)
    for row, tokens in enumerate(history):
        seen[row, list(tokens)] = True
    penalty = mx.array(penalties, dtype=mx.float32)[:, None]
""",
        """    seen = np.zeros(logits.shape, dtype=np.float32)
    for row, tokens in enumerate(history):
        np.add.at(seen[row], list(tokens), 1)
    penalty = mx.array(penalties, dtype=mx.float32)[:, None] ** mx.array(seen)
    seen = seen > 0
""",
    ),
    mutant(
        2,
        "last-token-only",
        "PenaltyMatchesFloat64",
        "only the last token of the history was penalised",
        "seen[row, list(tokens)] = True",
        "seen[row, list(tokens)[-1:]] = True",
    ),
    mutant(
        2,
        "rows-mixed",
        "EachRowHasItsOwnPenalty",
        "every row got the history of all rows",
        "seen[row, list(tokens)] = True",
        "seen[:, list(tokens)] = True",
    ),
    mutant(
        2,
        "one-penalty",
        "EachRowHasItsOwnPenalty",
        "every row got the penalty of the first row",
        "mx.array(penalties, dtype=mx.float32)[:, None]",
        "mx.array(penalties, dtype=mx.float32)[:1, None]",
    ),
    mutant(
        2,
        "everything-penalised",
        "PenaltyMatchesFloat64",
        "all tokens were penalised, not only those of the history",
        "mx.where(mx.array(seen), penalised, logits)",
        "mx.where(mx.array(seen) | True, penalised, logits)",
    ),
    mutant(
        2,
        "dtype-changed",
        "PenaltyMatchesFloat64",
        "the dtype is wrong",
        "mx.where(mx.array(seen), penalised, logits).astype(logits.dtype)",
        "mx.where(mx.array(seen), penalised, logits)",
    ),
    mutant(
        2,
        "short-memory",
        "PenaltyMatchesFloat64",
        "only the last 64 tokens of the history were penalised",
        "seen[row, list(tokens)] = True",
        "seen[row, list(tokens)[-64:]] = True",
    ),
    mutant(
        2,
        "narrow-penalty",
        "SmallPenaltiesCount",
        "the penalty was rounded to the dtype of the logits",
        "mx.array(penalties, dtype=mx.float32)[:, None]",
        "mx.array(penalties, dtype=logits.dtype)[:, None]",
    ),
]

FILTERS = [
    mutant(
        3,
        "temperature-last",
        "StepsFollowInOrder",
        "temperature came after the filters",
        "    V = logits.shape[-1]\n",
        """    if any(t not in (0, 1) for t in temperature):
        late = filter_logits(logits, [float(t > 0) for t in temperature], top_k, top_p, min_p)
        return late / mx.array([t or 1.0 for t in temperature])[:, None]
    V = logits.shape[-1]
""",
    ),
    mutant(
        3,
        "multiplied",
        "TemperatureDividesTheLogits",
        "the logits were multiplied by the temperature",
        "/ mx.where(is_greedy, 1.0, temperature)",
        "* mx.where(is_greedy, 1.0, temperature)",
    ),
    mutant(
        3,
        "whole-vocabulary-sum",
        "StepsFollowInOrder",
        "top-p came before top-k",
        f"    {_TOP_K}\n\n{_PROBABILITIES}",
        f"{_PROBABILITIES}    {_TOP_K}\n\n",
    ),
    mutant(
        3,
        "min-p-first",
        "StepsFollowInOrder",
        "min-p came before top-p",
        _PROBABILITIES,
        f"{_PROBABILITIES}    ranked = mx.where(probabilities >= min_p * probabilities[:, :1], ranked, -mx.inf)\n"
        + _PROBABILITIES,
    ),
    mutant(
        3,
        "sum-includes-itself",
        "TopPKeepsTheFewest",
        "no token is left in some row",
        "(before < top_p)",
        "(before + probabilities < top_p)",
    ),
    mutant(
        3,
        "rounding-hides",
        "OffMeansOff",
        "with every filter off",
        "(before < top_p) | (top_p >= 1)",
        "before < top_p",
    ),
    mutant(
        3,
        "absolute-min-p",
        "MinPComparesWithTheBest",
        "min-p was compared with the probability itself, not with its share of the best",
        "probabilities >= min_p * probabilities[:, :1]",
        "probabilities >= min_p",
    ),
    mutant(
        3,
        "one-more",
        "TopKKeepsTheBest",
        "values are wrong",
        "mx.arange(V) < k",
        "mx.arange(V) <= k",
    ),
    mutant(
        3,
        "ties-kept",
        "TopKKeepsTheBest",
        "all tokens equal to the k-th were kept: more than k",
        _TOP_K,
        "last = mx.take_along_axis(ranked, mx.broadcast_to(mx.minimum(k, V) - 1, (len(ranked), 1)), axis=-1)\n"
        "    ranked = mx.where(ranked >= last, ranked, -mx.inf)",
    ),
    mutant(
        3,
        "worst-first",
        "TopKKeepsTheBest",
        "the k worst tokens were kept",
        "order = mx.argsort(-scaled, axis=-1)",
        "order = mx.argsort(scaled, axis=-1)",
    ),
    mutant(
        3,
        "parameters-of-row-0",
        "EachRowHasItsOwnParameters",
        "every row got the parameters of the first row",
        "mx.array(values)[:, None] for values",
        "mx.array(values)[:1, None] for values",
    ),
    mutant(
        3,
        "greedy-forgotten",
        "ZeroTemperatureLeavesTheBest",
        "temperature 0 leaves one token",
        "mx.where(is_greedy, 1, mx.where(top_k == 0, V, top_k))",
        "mx.where(top_k == 0, V, top_k)",
    ),
    mutant(
        3,
        "order-not-undone",
        "EachRowHasItsOwnParameters",
        "values are wrong",
        "return mx.put_along_axis(mx.full(ranked.shape, -mx.inf), order, ranked, axis=-1)",
        "return ranked",
    ),
    mutant(
        3,
        "top-k-ignored",
        "EachRowHasItsOwnParameters",
        "top-k was ignored",
        "mx.where(top_k == 0, V, top_k)",
        "V",
    ),
    mutant(
        3,
        "narrow",
        "TemperatureDividesTheLogits",
        "values are wrong",
        "scaled = logits.astype(mx.float32) / mx.where(is_greedy, 1.0, temperature)",
        "scaled = (logits / mx.where(is_greedy, 1.0, temperature).astype(logits.dtype)).astype(mx.float32)",
    ),
    mutant(
        3,
        "temperature-raised",
        "TemperatureDividesTheLogits",
        "a temperature below 0.1 was raised to 0.1",
        "/ mx.where(is_greedy, 1.0, temperature)",
        "/ mx.where(is_greedy, 1.0, mx.maximum(temperature, 0.1))",
    ),
]

DRAWS = [
    mutant(
        4,
        "no-penalty",
        "DrawsFollowTheFilteredDistribution",
        "the repetition penalty was not applied",
        _PENALTY,
        "",
    ),
    mutant(
        4,
        "no-filter",
        "DrawsFollowTheFilteredDistribution",
        "no filter was applied",
        "self._draw(row, filtered[row])",
        "self._draw(row, logits[row])",
    ),
    mutant(
        4,
        "late-penalty",
        "DrawsFollowTheFilteredDistribution",
        "the repetition penalty came after the filters",
        f"{_PENALTY}{_FILTER}",
        f"{_FILTER}{_PENALTY.replace('logits = ', 'filtered = ').replace('(logits', '(filtered')}",
    ),
    mutant(
        4,
        "draw-of-probabilities",
        "DrawsFollowTheFilteredDistribution",
        "probabilities were given to the draw as if they were logits",
        "mx.random.categorical(logits, key=key)",
        "mx.random.categorical(mx.where(mx.isinf(logits), logits, softmax(logits)), key=key)",
    ),
    mutant(
        4,
        "one-row-for-all",
        "DrawsFollowTheFilteredDistribution",
        "temperature and filters of the first row were used",
        _STACK,
        """first = self.params[0]
        columns = [[value] * len(self.params) for value in (first.temperature, first.top_k, first.top_p, first.min_p)]
        filtered = filter_logits(logits, *columns)
        """
        + _STACK,
    ),
    mutant(
        4,
        "key-not-advanced",
        "StreamsAreIndependent",
        "every step uses the same random numbers",
        _SPLIT,
        "key = self.keys[row]",
    ),
    mutant(
        4,
        "key-of-row-0",
        "StreamsAreIndependent",
        "rows with different seeds share random numbers",
        _SPLIT,
        "key = mx.random.split(self.keys[0])[1]\n        if row == len(self.params) - 1:\n"
        "            self.keys[0] = mx.random.split(self.keys[0])[0]",
    ),
    mutant(
        4,
        "seed-plus-step",
        "StreamsAreIndependent",
        "the tokens of a row and of the next seed one step earlier",
        f"        {_SPLIT}\n",
        """        if row == 0:
            self.step = getattr(self, "step", -1) + 1
        key = mx.random.key(self.params[row].seed + self.step)
""",
    ),
    mutant(
        4,
        "seed-ignored",
        "SeedsAreAsGoodAsDraws",
        "rows with different seeds share random numbers",
        "for p in self.params]\n\n    def __call__",
        "for p in [SamplingParams()] * len(self.params)]\n\n    def __call__",
    ),
    mutant(
        4,
        "global-state",
        "SameSeedSameTokens",
        "MLX's global random state was used",
        "mx.random.categorical(logits, key=key)",
        "mx.random.categorical(logits)",
    ),
    mutant(
        4,
        "key-of-the-place",
        "SameSeedSameTokens",
        "a row's tokens change with its place in the batch",
        "mx.random.categorical(logits, key=key)",
        "mx.random.categorical(logits, key=mx.random.split(key, row + 1)[row])",
    ),
    mutant(
        4,
        "one-draw-for-all",
        "SameSeedSameTokens",
        "a row's tokens change with",
        _STACK,
        "self.keys[0], key = mx.random.split(self.keys[0])\n        return mx.random.categorical(filtered, key=key)",
    ),
    mutant(
        4,
        "always-greedy",
        "DrawsFollowTheFilteredDistribution",
        "draws do not follow the distribution",
        "return mx.random.categorical(logits, key=key)",
        "return mx.argmax(logits)",
    ),
    mutant(
        4,
        "greedy-before-penalty",
        "GreedyRowsTakeTheBest",
        "the repetition penalty was not applied",
        _PENALTY,
        "        raw = logits\n"
        + _PENALTY
        + "        greedy = mx.array([p.temperature == 0 for p in self.params])[:, None]\n"
        "        logits = mx.where(greedy, raw, logits)\n",
    ),
    mutant(
        4,
        "slightly-flat",
        "SharesAreRightToAFewPercent",
        "the best token comes too seldom",
        "mx.random.categorical(logits, key=key)",
        "mx.random.categorical(logits * 0.9, key=key)",
    ),
    mutant(
        4,
        "slightly-sharp",
        "SharesAreRightToAFewPercent",
        "the best token comes too often",
        "mx.random.categorical(logits, key=key)",
        "mx.random.categorical(logits * 1.1, key=key)",
    ),
    mutant(
        4,
        "temperature-a-little-high",
        "SharesAreRightToAFewPercent",
        "the best token comes too seldom",
        "[p.temperature for p in self.params]",
        "[p.temperature * 1.05 for p in self.params]",
    ),
    mutant(
        4,
        "unlikely-never",
        "SharesAreRightToAFewPercent",
        "unlikely tokens are never drawn",
        "mx.random.categorical(logits, key=key)",
        "mx.random.categorical(mx.where(softmax(logits) < 0.02, -mx.inf, logits), key=key)",
    ),
    mutant(
        4,
        "penalty-power",
        "SharesAreRightToAFewPercent",
        "the best token comes too often",
        "[p.repetition_penalty for p in self.params]",
        "[p.repetition_penalty**1.2 for p in self.params]",
    ),
]

MUTANTS = [*LOG_PROBABILITIES, *PENALTY, *FILTERS, *DRAWS]
