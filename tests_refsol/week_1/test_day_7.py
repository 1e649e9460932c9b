"""Day 7, sampling: float64 formulas applied one after the other are the oracle, and statistics for what is random."""

import math
from functools import cache
from itertools import chain

import mlx.core as mx
import numpy as np

from course.case import case
from course.compare import close
from course.suspects import named

PARAMETERS = ("temperature", "top_k", "top_p", "min_p")
OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
LOW = [mx.float16, mx.bfloat16]


def f64(x: mx.array) -> np.ndarray:
    return np.array(x.astype(mx.float32)).astype(np.float64)


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: mx.Dtype = mx.float32, scale: float = 2.0):
    return mx.array((scale * rng.standard_normal(shape)).astype(np.float32)).astype(dtype)


def log_softmax(x: np.ndarray, axis: int | None = -1) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        shifted = x - x.max(axis=axis, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(log_softmax(x))


def narrow_log(x: np.ndarray) -> np.ndarray:
    """log(softmax(x)) as float32 has it: small probabilities are 0."""
    with np.errstate(divide="ignore"):
        e = np.exp((x - x.max(-1, keepdims=True)).astype(np.float32))
        return np.log(e / e.sum(-1, keepdims=True, dtype=np.float32)).astype(np.float64)


def unshifted(x: np.ndarray, divide: bool) -> np.ndarray:
    """The formula without the maximum, as float32 has it: exponentials overflow, or all of them are 0."""
    with np.errstate(all="ignore"):
        e = np.exp(x.astype(np.float32))
        total = e.sum(-1, keepdims=True, dtype=np.float32)
        return (np.log(e / total) if divide else x - np.log(total)).astype(np.float64)


@case(
    task=1,
    params=[
        {"shape": (6,)},
        {"shape": (4, 4)},
        {"shape": (2, 3, 17)},
        *({"shape": (3, 50), "dtype": dtype} for dtype in LOW),
    ],
)
class LogProbabilitiesMatchFloat64:
    """The result is the logarithm of softmax along the last axis, in float32 whatever the dtype of the logits."""

    def inputs(rng, shape, dtype=mx.float32):
        return normal(rng, shape, dtype, 3.0)

    def observe(solution, logits):
        return solution.module("text.sampler").log_probabilities(logits)

    def verify(logits, got):
        x = f64(logits)
        suspects = {
            "the logarithm of the sum was not subtracted": x - x.max(-1, keepdims=True),
            "the result holds probabilities, not their logarithms": softmax(x),
            "softmax ran along the first axis": log_softmax(x, 0),
            "softmax ran over the whole array": log_softmax(x, None),
            "logarithms to base 2": log_softmax(x) / math.log(2),
        }
        what = "log_probabilities(logits)"
        close(got, log_softmax(x), dtype=mx.float32, suspects=suspects, what=what)


@case(task=1, params=[{"gap": 120.0}, {"gap": 1000.0}, {"gap": 3e4}])
class UnlikelyTokensKeepTheirValue:
    """A token far below the best one has a large negative log-probability, not -inf."""

    def inputs(rng, gap):
        far = gap * (rng.permuted(np.tile(np.arange(8), (3, 1)), axis=1) > 3)
        return mx.array((rng.normal(size=(3, 8)) - far).astype(np.float32))

    def observe(solution, logits):
        return solution.module("text.sampler").log_probabilities(logits)

    def verify(logits, got):
        suspects = {"the logarithm was taken of a probability that had become 0": narrow_log(f64(logits))}
        close(got, log_softmax(f64(logits)), suspects=suspects, what="log_probabilities(logits)")


@case(task=1, params=[{"level": 200.0}, {"level": -200.0}, {"level": 6e4, "dtype": mx.float16}, {"level": 1e30}])
class LargeLogitsDoNotOverflow:
    """Adding a constant to all logits changes nothing, however large it is."""

    def inputs(rng, level, dtype=mx.float32):
        return (normal(rng, (3, 9)) * (1 + abs(level) / 1e3) + level).astype(dtype)

    def observe(solution, logits):
        return solution.module("text.sampler").log_probabilities(logits)

    def verify(logits, got):
        suspects = {
            "the maximum was not subtracted before exp": unshifted(f64(logits), divide=False),
            "the maximum was not subtracted before exp ": unshifted(f64(logits), divide=True),
            "the logarithm was taken of a probability that had become 0": narrow_log(f64(logits)),
        }
        close(got, log_softmax(f64(logits)), dtype=mx.float32, suspects=suspects, what="log_probabilities(logits)")


@case(task=1, params=[{"dtype": dtype} for dtype in LOW])
class LowPrecisionIsWidenedFirst:
    """float16 and bfloat16 logits are widened before the sums, so the result is as good as float32 allows."""

    def inputs(rng, dtype):
        return normal(rng, (2, 3000), dtype, 1.0)

    def observe(solution, logits):
        return solution.module("text.sampler").log_probabilities(logits)

    def verify(logits, got):
        def rounded():
            narrow = logits - mx.max(logits, axis=-1, keepdims=True)
            return f64(narrow - mx.log(mx.sum(mx.exp(narrow), axis=-1, keepdims=True)))

        want = log_softmax(f64(logits))
        close(got, want, tol=1e-5, dtype=mx.float32, what="log_probabilities(logits)", suspects={
            "computed in the dtype of the logits, not in float32": rounded,
        })  # fmt: skip


@case(task=1)
class MaskedTokensStayMasked:
    """A logit of -inf has log-probability -inf, and the others are what they would be without it."""

    def inputs(rng):
        hide = rng.random((4, 10)) < 0.5
        hide[:, rng.integers(10)] = False
        return mx.where(mx.array(hide), -mx.inf, normal(rng, (4, 10)))

    def observe(solution, logits):
        return solution.module("text.sampler").log_probabilities(logits)

    def verify(logits, got):
        close(got, log_softmax(f64(logits)), what="log_probabilities with -inf logits")


def penalised(logits, history, penalties, change=lambda x, p, count: np.where(x > 0, x / p, x * p)) -> np.ndarray:
    """The repetition penalty in float64. `change` gets logits, penalty and how often each token occurred."""
    out = logits.copy()
    for row, (tokens, penalty) in enumerate(zip(history, penalties, strict=True)):
        count = np.bincount(np.asarray(tokens, dtype=int), minlength=logits.shape[1])
        with np.errstate(invalid="ignore"):
            out[row] = np.where(count > 0, change(logits[row], penalty, count), logits[row])
    return out


def history_of(rng: np.random.Generator, rows: int, vocabulary: int, length: int) -> list[list[int]]:
    """Tokens of each row, some of them several times; the rows differ in length."""
    rows_ = [rng.integers(0, vocabulary, length + row).tolist() for row in range(rows)]
    return [[*row, *row[:2]] for row in rows_]


def penalise(solution, inputs):
    apply = solution.module("text.sampler").apply_repetition_penalty
    return apply(inputs["logits"], inputs["history"], inputs["penalties"])


def check_penalty(inputs: dict[str, object], got: mx.array) -> None:
    x, history, penalties = f64(inputs["logits"]), inputs["history"], inputs["penalties"]
    sign = {
        "every logit was divided: that makes negative ones larger": lambda x, p, count: x / p,
        "every logit was multiplied": lambda x, p, count: x * p,
        "positive logits were multiplied and negative ones divided": lambda x, p, count: np.where(x > 0, x * p, x / p),
        "the penalty was applied once for each time the token occurs": (
            lambda x, p, count: np.where(x > 0, x / p**count, x * p**count)
        ),
        "the penalty was subtracted": lambda x, p, count: x - p,
    }
    suspects = {text: penalised(x, history, penalties, change) for text, change in sign.items()}
    every = [list(range(x.shape[1]))] * len(x)
    suspects |= {
        "all tokens were penalised, not only those of the history": penalised(x, every, penalties),
        "only the last token of the history was penalised": penalised(x, [h[-1:] for h in history], penalties),
        "only the last 64 tokens of the history were penalised": penalised(x, [h[-64:] for h in history], penalties),
        "every row got the penalty of the first row": penalised(x, history, [penalties[0]] * len(x)),
        "every row got the history of the first row": penalised(x, [history[0]] * len(x), penalties),
        "every row got the history of all rows": penalised(x, [list(chain(*history))] * len(x), penalties),
    }
    dtype = inputs["logits"].dtype
    close(got, penalised(x, history, penalties), dtype=dtype, suspects=suspects, what="the penalised logits")


@case(
    task=2,
    params=[
        {"rows": 1},
        {"rows": 1, "penalty": 0.7},
        {"rows": 3},
        {"rows": 4, "vocabulary": 101},
        {"rows": 2, "vocabulary": 3000, "length": 1500},
        *({"rows": 2, "dtype": dtype} for dtype in LOW),
    ],
)
class PenaltyMatchesFloat64:
    """A seen token's logit is divided by the penalty where positive and multiplied where negative, once."""

    def inputs(rng, rows, vocabulary=13, penalty=1.3, dtype=mx.float32, length=5):
        logits = normal(rng, (rows, vocabulary), dtype)
        history = history_of(rng, rows, vocabulary, length)
        return {"logits": logits, "history": history, "penalties": [penalty] * rows}

    observe = penalise

    def verify(inputs, got):
        check_penalty(inputs, got)


@case(task=2)
class EachRowHasItsOwnPenalty:
    """Every row has its own history and its own penalty, 1 among them."""

    def inputs(rng):
        penalties = [1.8, 1.0, 1.2, 0.5, 3.0]
        return {"logits": normal(rng, (5, 11)), "history": history_of(rng, 5, 11, 2), "penalties": penalties}

    observe = penalise

    def verify(inputs, got):
        check_penalty(inputs, got)


@case(task=2, params=[{"penalty": 1.00045, "dtype": mx.float16}, {"penalty": 1.0035, "dtype": mx.bfloat16}])
class SmallPenaltiesCount:
    """A penalty near 1 acts on float16 and bfloat16 logits, too: only the result is rounded to their dtype."""

    def inputs(rng, penalty, dtype):
        sizes = rng.uniform(1.4, 1.9, (2, 40)) * rng.choice([-1, 1], (2, 40))
        logits = mx.array(sizes.astype(np.float32)).astype(dtype)
        return {"logits": logits, "history": [list(range(40)), list(range(0, 40, 2))], "penalties": [penalty] * 2}

    observe = penalise

    def verify(inputs, got):
        x, history = f64(inputs["logits"]), inputs["history"]
        want = penalised(x, history, inputs["penalties"])
        half_a_step = {mx.float16: 2**-11, mx.bfloat16: 2**-8}[inputs["logits"].dtype]
        suspects = {"the penalty was rounded to the dtype of the logits, where it is 1": x}
        tol = 1.02 * half_a_step / np.abs(want).max()
        close(got, want, tol=tol, dtype=inputs["logits"].dtype, suspects=suspects, what="the penalised logits")


@case(task=2, params=[{"dtype": dtype} for dtype in (mx.float32, *LOW)])
class PenaltyOneIsOff:
    """A penalty of 1 and an empty history change nothing at all."""

    def inputs(rng, dtype):
        history = [*history_of(rng, 2, 20, 6), []]
        return {"logits": normal(rng, (3, 20), dtype), "history": history, "penalties": [1.0, 1, 1.5]}

    observe = penalise

    def verify(inputs, got):
        what = "logits with penalty 1, or without history"
        close(got, inputs["logits"], tol=0, dtype=inputs["logits"].dtype, what=what)


@case(task=2)
class ZeroAndMaskedLogitsStay:
    """A logit of 0 stays 0 and one of -inf stays -inf: there is nothing to divide."""

    def inputs(rng):
        logits = normal(rng, (2, 12))
        kind = mx.array(rng.permuted(np.tile(np.arange(12) % 4, (2, 1)), axis=1))
        logits = mx.where(kind == 0, -mx.inf, mx.where(kind == 1, 0.0, logits))
        return {"logits": logits, "history": [list(range(12)), [3, 5, 5]], "penalties": [1.4, 2.0]}

    observe = penalise

    def verify(inputs, got):
        check_penalty(inputs, got)


def ranked(x: np.ndarray) -> np.ndarray:
    """Token ids from best to worst; lower ids first among equals."""
    return np.argsort(-x, kind="stable")


def keep(x: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    out = np.full_like(x, -np.inf)
    out[tokens] = x[tokens]
    return out


def after_temperature(x, row):
    return keep(x, ranked(x)[:1]) if row["temperature"] == 0 else x / row["temperature"]


def after_top_k(x, row):
    return keep(x, ranked(x)[: row["top_k"]]) if row["top_k"] else x


def after_top_p(x, row):
    order = ranked(x)
    before = np.concatenate([[0.0], np.cumsum(softmax(x)[order])[:-1]])
    return keep(x, order[before < row["top_p"]]) if row["top_p"] < 1 else x


def after_min_p(x, row):
    probabilities = softmax(x)
    return np.where(probabilities >= row["min_p"] * probabilities.max(), x, -np.inf) if row["min_p"] else x


STEPS = {"t": after_temperature, "k": after_top_k, "p": after_top_p, "m": after_min_p}


def filtered(x: np.ndarray, row: dict[str, float], steps: str = "tkpm") -> np.ndarray:
    """One row of logits after the steps, in float64."""
    for step in steps:
        x = STEPS[step](x, row)
    return x


def decided(x: np.ndarray, row: dict[str, float], margin: float = 2e-5) -> bool:
    """Whether every token is in or out by a margin, so that rounding does not matter."""
    x = filtered(x, row, "tk")
    probabilities = softmax(x)
    sums = np.cumsum(np.sort(probabilities)[::-1])
    ratios = probabilities[np.isfinite(x)] / probabilities.max()
    clear_p = row["top_p"] == 1 or np.abs(sums - row["top_p"]).min() > margin
    return bool(clear_p and (not 0 < row["min_p"] < 1 or np.abs(ratios / row["min_p"] - 1).min() > margin))


MISTAKES = {
    "temperature came after the filters": lambda x, row: filtered(x, row, "kpmt"),
    "top-p came before top-k, so it added up tokens that are hidden": lambda x, row: filtered(x, row, "tpkm"),
    "min-p came before top-p": lambda x, row: filtered(x, row, "tkmp"),
    "temperature was ignored": lambda x, row: filtered(x, row, "kpm"),
    "a temperature below 0.1 was raised to 0.1": (
        lambda x, row: filtered(x, {**row, "temperature": max(row["temperature"], 0.1) if row["temperature"] else 0})
    ),
    "the logits were multiplied by the temperature": (
        lambda x, row: filtered(x, {**row, "temperature": 1 / (row["temperature"] or 1)})
    ),
    "top-k was ignored": lambda x, row: filtered(x, row, "tpm"),
    "top-p was ignored": lambda x, row: filtered(x, row, "tkm"),
    "min-p was ignored": lambda x, row: filtered(x, row, "tkp"),
    "only tokens whose sum stays within top_p were kept: the one that reaches it belongs to them": (
        lambda x, row: (
            after_min_p(
                keep(y := filtered(x, row, "tk"), (order := ranked(y))[np.cumsum(softmax(y)[order]) <= row["top_p"]]),
                row,
            )
            if row["top_p"] < 1
            else filtered(x, row)
        )
    ),
    "min-p was compared with the probability itself, not with its share of the best": (
        lambda x, row: np.where(softmax(y := filtered(x, row, "tkp")) >= row["min_p"], y, -np.inf)
    ),
}


def batch(logits: mx.array, rows: list[dict[str, float]]) -> dict[str, object]:
    return {"logits": logits, "rows": [{**OFF, **row} for row in rows]}


def run_filter(solution, inputs):
    columns = [[row[name] for row in inputs["rows"]] for name in PARAMETERS]
    return solution.module("text.sampler").filter_logits(inputs["logits"], *columns)


def check_filter(inputs: dict[str, object], got: mx.array, **more: np.ndarray) -> None:
    """Compare with the steps in float64. The value of the token that temperature 0 leaves is free."""
    x, rows = f64(inputs["logits"]), inputs["rows"]
    is_greedy = np.array([row["temperature"] == 0 for row in rows])[:, None]

    def whole(mistake, rows=rows):
        with np.errstate(all="ignore"):
            values = np.stack([mistake(x[i], row) for i, row in enumerate(rows)])
        seen = f64(got) if isinstance(got, mx.array) and got.shape == values.shape else values
        return np.where(is_greedy & np.isfinite(values) & np.isfinite(seen), seen, values)

    suspects = {text: whole(mistake) for text, mistake in MISTAKES.items()}
    suspects["every row got the parameters of the first row"] = whole(filtered, [rows[0]] * len(rows))
    what = f"logits filtered by {show(rows)}"
    close(got, whole(filtered), dtype=mx.float32, suspects={**more, **suspects}, what=what)


def show(rows: list[dict[str, float]]) -> str:
    """The parameters that are on."""
    texts = [", ".join(f"{name}={row[name]:.3g}" for name in PARAMETERS if row[name] != OFF[name]) for row in rows[:4]]
    return "; ".join(text or "nothing" for text in texts) + (" ..." if len(rows) > 4 else "")


@case(task=3, params=[{"dtype": dtype} for dtype in (mx.float32, *LOW)])
class OffMeansOff:
    """temperature 1, top_k 0, top_p 1 and min_p 0 leave every logit as it is, also those of very unlikely tokens."""

    def inputs(rng, dtype):
        logits = f64(normal(rng, (3, 300)))
        logits[1] = 0.0
        logits[1, rng.integers(300)] = 20.0
        logits[2, :250] -= 200.0
        return batch(mx.array(logits.astype(np.float32)).astype(dtype), [OFF] * 3)

    observe = run_filter

    def verify(inputs, got):
        share = np.mean(~np.isfinite(f64(got))) if isinstance(got, mx.array) else 0.0
        assert not share, f"with every filter off, {100 * share:.3g} % of the tokens are hidden"
        check_filter(inputs, got)


@case(
    task=3,
    params=[{"dtype": dtype} for dtype in (mx.float32, *LOW)] + [{"temperatures": (0.05, 0.03, 0.02, 0.01)}],
)
class TemperatureDividesTheLogits:
    """Each row's logits are divided by its temperature, in float32, however low it is."""

    def inputs(rng, dtype=mx.float32, temperatures=(0.1, 0.7, 1.0, 2.5)):
        return batch(normal(rng, (4, 40), dtype, 4.0), [{"temperature": t} for t in temperatures])

    observe = run_filter

    def verify(inputs, got):
        check_filter(inputs, got)


@case(task=3)
class ZeroTemperatureLeavesTheBest:
    """temperature 0 leaves one token, the best one with the lowest id, whatever the other parameters say."""

    def inputs(rng):
        logits = np.round(f64(normal(rng, (5, 30), scale=1.0)))  # many equal ones
        others = [{}, {"top_k": 7}, {"top_p": 0.5}, {"min_p": 0.9}, {"top_k": 3, "top_p": 0.9, "min_p": 0.1}]
        logits[0] -= 50
        return batch(mx.array(logits.astype(np.float32)), [{**row, "temperature": 0.0} for row in others])

    observe = run_filter

    def verify(inputs, got):
        count = np.isfinite(f64(got)).sum(-1)
        assert (count == 1).all(), f"temperature 0 leaves one token in each row; finite logits left: {count.tolist()}"
        check_filter(inputs, got)


@case(task=3, params=[{"ties": False}, {"ties": True}, {"ties": False, "dtype": mx.bfloat16}])
class TopKKeepsTheBest:
    """top_k keeps the k best tokens, lower ids first among equals; k may be larger than the vocabulary."""

    def inputs(rng, ties, dtype=mx.float32):
        logits = f64(normal(rng, (6, 25)))
        logits = np.round(logits / 2) if ties else logits
        rows = [{"top_k": k} for k in (1, 2, 5, 24, 25, 1000)]
        return batch(mx.array(logits.astype(np.float32)).astype(dtype), rows)

    observe = run_filter

    def verify(inputs, got):
        def all_equals(x, row):
            return np.where(x >= np.sort(x)[::-1][min(row["top_k"], len(x)) - 1], x, -np.inf)

        x = f64(inputs["logits"])
        value = np.stack([all_equals(x[i], row) for i, row in enumerate(inputs["rows"])])
        low = np.stack([keep(x[i], ranked(-x[i])[: row["top_k"]]) for i, row in enumerate(inputs["rows"])])
        suspects = {
            "all tokens equal to the k-th were kept: more than k": value,
            "the k worst tokens were kept": low,
        }
        check_filter(inputs, got, **suspects)


def decided_batch(
    rng: np.random.Generator, rows: list[dict[str, float]], vocabulary: int, scale: float, dtype=mx.float32
):
    """Random logits for which no token is at the edge of a filter."""
    logits = []
    for row in rows:
        candidate = normal(rng, (1, vocabulary), dtype, scale)
        while not decided(f64(candidate)[0], {**OFF, **row}):
            candidate = normal(rng, (1, vocabulary), dtype, scale)
        logits.append(candidate)
    return batch(mx.concatenate(logits), rows)


@case(task=3, params=[{"scale": 1.0}, {"scale": 4.0}, {"scale": 2.0, "dtype": mx.float16}])
class TopPKeepsTheFewest:
    """top_p keeps the fewest best tokens that together have probability p or more; the best one always stays."""

    def inputs(rng, scale, dtype=mx.float32):
        return decided_batch(rng, [{"top_p": p} for p in (1e-6, 0.2, 0.5, 0.9, 0.97)], 30, scale, dtype)

    observe = run_filter

    def verify(inputs, got):
        assert np.isfinite(f64(got)).any(-1).all(), "no token is left in some row: the best one must stay"
        check_filter(inputs, got)


@case(task=3)
class TopPAmongEquals:
    """Of eight equal tokens top_p 0.5 keeps exactly four, those with the lowest ids."""

    def inputs(rng):
        return batch(mx.full((4, 8), float(rng.normal())), [{"top_p": p} for p in (0.5, 0.3, 0.9, 0.25)])

    observe = run_filter

    def verify(inputs, got):
        count = np.isfinite(f64(got)).sum(-1).tolist()
        assert count == [4, 3, 8, 2], f"of 8 equal tokens top_p 0.5, 0.3, 0.9, 0.25 keep 4, 3, 8, 2; got {count}"
        check_filter(inputs, got)


@case(task=3, params=[{"scale": 1.0}, {"scale": 3.0}])
class MinPComparesWithTheBest:
    """min_p keeps tokens at least min_p times as likely as the best one; with min_p 1 all that equal the best stay."""

    def inputs(rng, scale):
        inputs = decided_batch(rng, [{"min_p": m} for m in (0.02, 0.1, 0.4, 0.9)], 30, scale)
        equals = np.zeros((1, 30), dtype=np.float32) - 1
        equals[0, rng.permutation(30)[:3]] = 2.0
        logits = mx.concatenate([inputs["logits"], mx.array(equals)])
        return batch(logits, [*inputs["rows"], {"min_p": 1.0}])

    observe = run_filter

    def verify(inputs, got):
        check_filter(inputs, got)


ORDERS = [
    ({"temperature": 2.0, "top_p": 0.7}, "temperature came after the filters"),
    ({"temperature": 0.5, "min_p": 0.2}, "temperature came after the filters"),
    ({"top_k": 3, "top_p": 0.75}, "top-p came before top-k, so it added up tokens that are hidden"),
    ({"top_k": 5, "top_p": 0.8}, "top-p came before top-k, so it added up tokens that are hidden"),
    ({"top_p": 0.9, "min_p": 0.15}, "min-p came before top-p"),
]


@case(task=3, params=[{"row": row, "mistake": mistake} for row, mistake in ORDERS])
class StepsFollowInOrder:
    """Temperature, then top-k, then top-p among the tokens that are left, then min-p."""

    def inputs(rng, row, mistake):
        while True:
            inputs = decided_batch(rng, [row], 12, 1.5)
            x, full = f64(inputs["logits"])[0], inputs["rows"][0]
            if not np.array_equal(MISTAKES[mistake](x, full), filtered(x, full)):
                return inputs

    observe = run_filter

    def verify(inputs, got):
        check_filter(inputs, got)


def any_row(rng: np.random.Generator) -> dict[str, float]:
    """Random parameters; each is off now and then."""
    return {
        "temperature": float(rng.choice([0.0, 1.0, rng.uniform(0.3, 3)], p=[0.1, 0.2, 0.7])),
        "top_k": int(rng.choice([0, rng.integers(1, 15)])),
        "top_p": float(rng.choice([1.0, rng.uniform(0.1, 0.99)])),
        "min_p": float(rng.choice([0.0, rng.uniform(0.01, 0.5)])),
    }


@case(
    task=3,
    params=[
        {"rows": 1, "vocabulary": 40},
        {"rows": 12, "vocabulary": 40},
        {"rows": 24, "vocabulary": 300},
        {"rows": 6, "vocabulary": 1},
        {"rows": 12, "vocabulary": 64, "dtype": mx.bfloat16},
    ],
)
class EachRowHasItsOwnParameters:
    """Rows of one batch have different parameters, some of them off, and each gets what it would get alone."""

    def inputs(rng, rows, vocabulary, dtype=mx.float32):
        return decided_batch(rng, [any_row(rng) for _ in range(rows)], vocabulary, 2.5, dtype)

    observe = run_filter

    def verify(inputs, got):
        check_filter(inputs, got)


@case(task=3)
class MaskedTokensAreNeverLetIn:
    """Logits of -inf stay -inf, also where fewer tokens are left than top_k or top_p ask for."""

    def inputs(rng):
        rows = [{"top_k": 10}, {"top_p": 0.99}, {"min_p": 0.001}, {"temperature": 0.0}, {"temperature": 3.0}, {}]
        logits = np.full((6, 20), -np.inf)
        for row in logits:
            row[rng.permutation(20)[:3]] = [1.5, 0.7, -0.2]
        return batch(mx.array(logits.astype(np.float32)), rows)

    observe = run_filter

    def verify(inputs, got):
        check_filter(inputs, got)


FALSE_ALARM = 1e-8  # for each comparison; a run makes twelve


@cache
def limit_of(cells: int) -> float:
    """What `surprise` exceeds with a chance below FALSE_ALARM where the distribution is right.

    For any number of draws, P(surprise >= s) <= e^-s (e s / d)^d with d = cells - 1 and s > d (Agrawal, 2020).
    """
    d = max(cells - 1, 1)
    s = float(d)
    while s - d * (1 + math.log(s / d)) < -math.log(FALSE_ALARM):
        s += 0.1
    return s


def surprise(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Half the likelihood-ratio chi-square statistic: the sum of count * log(count / expected count)."""
    drawn = counts > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(counts[drawn] * np.log(counts[drawn] / (counts.sum() * probabilities[drawn]))))


def check_draws(draws: np.ndarray, want: np.ndarray, suspects: dict[str, np.ndarray], what: str) -> None:
    """Raise AssertionError unless `draws` may come from the probabilities `want`."""
    assert draws.min() >= 0, f"{what}: a token below 0 was drawn"
    assert draws.max() < len(want), f"{what}: a token beyond the vocabulary was drawn"
    counts = np.bincount(draws, minlength=len(want))
    limit = limit_of(int((want > 0).sum()))
    if surprise(counts, want) <= limit:
        return
    fits = {text: p for text, p in suspects.items() if surprise(counts, p) <= limit_of(int((p > 0).sum()))}
    best = min(fits.values(), key=lambda p: surprise(counts, p), default=None)
    likely = named(text for text, p in fits.items() if np.allclose(p, best))
    hidden = np.flatnonzero((counts > 0) & (want == 0)).tolist()
    text = f"{what}: {len(draws)} draws do not follow the distribution"
    text += f"\n  expected shares  {np.round(want, 3).tolist()}\n  drawn shares     "
    text += f"{np.round(counts / len(draws), 3).tolist()}"
    text += f"\n  tokens {hidden} are hidden by the filters and were drawn" if hidden else ""
    raise AssertionError(text + (f"\n{likely}" if likely else ""))


def sampled(solution, inputs, steps: int, select: slice = slice(None)) -> np.ndarray:
    """Draw `steps` tokens for every row, each with the history before it. (steps, B)"""
    module = solution.module("text.sampler")
    sampler = module.Sampler([module.SamplingParams(**params) for params in inputs["params"][select]])
    history = [list(tokens) for tokens in inputs["history"][select]]
    draws = []
    for _ in range(steps):
        tokens = np.array(sampler(inputs["logits"][select], history))
        assert tokens.shape == (len(history),), f"one token for each row: shape {(len(history),)}, got {tokens.shape}"
        draws.append(tokens)
        for row, token in zip(history, tokens.tolist(), strict=True):
            row.append(int(token))
    return np.array(draws)


def seeds_of(rng: np.random.Generator, count: int) -> list[int]:
    """Different seeds."""
    return [int(seed) for seed in rng.choice(2**30, count, replace=False)]


ROWS = [
    {"temperature": 0.4},
    {"temperature": 0.5, "top_k": 6},
    {"temperature": 1.6, "top_p": 0.75},
    {"temperature": 2.0, "min_p": 0.25},
    {"temperature": 0.4, "repetition_penalty": 2.5},
    {"temperature": 2.0, "top_k": 6, "top_p": 0.6, "repetition_penalty": 3.0},
]
COPIES, STEPS_EACH = 12, 50
DRAWS = COPIES * STEPS_EACH


def distribution(x: np.ndarray, row: dict[str, float], history: list[int], filter_=filtered) -> np.ndarray:
    """What a row's tokens are drawn from."""
    x = penalised(x[None], [history], [row.get("repetition_penalty", 1.0)])[0]
    return softmax(filter_(x, {**OFF, **row}))


def wrong_distributions(x: np.ndarray, row: dict[str, float], history: list[int]) -> dict[str, np.ndarray]:
    """Distributions of likely mistakes, of those that matter for this row."""
    full = {**OFF, **row}
    late = penalised(filtered(x, full)[None], [history], [row.get("repetition_penalty", 1.0)])[0]
    wrong = {
        "the repetition penalty came after the filters": softmax(late),
        "the repetition penalty was not applied": softmax(filtered(x, full)),
        "no filter was applied": distribution(x, row, history, lambda x, row: x),
        "temperature and filters of the first row were used": distribution(x, {**row, **OFF, **ROWS[0]}, history),
        "probabilities were given to the draw as if they were logits": softmax(
            np.where(distribution(x, row, history) > 0, distribution(x, row, history), -np.inf)
        ),
    }
    return wrong | {text: distribution(x, row, history, mistake) for text, mistake in MISTAKES.items()}


def telling_logits(rng: np.random.Generator, row: dict[str, float]) -> mx.array:
    """Logits for which DRAWS draws tell the row's distribution from that of any parameter ignored."""
    while True:
        logits, history = normal(rng, (1, 10), scale=1.5), list(range(10))
        x = f64(logits)[0]
        want, wrong = distribution(x, row, history), wrong_distributions(x, row, history)
        ignored = [p for text, p in wrong.items() if "ignored" in text or "not applied" in text]
        gaps = [surprise(DRAWS * p, want) for p in ignored if not np.allclose(p, want)]
        if min(gaps, default=np.inf) > 2 * limit_of(10):
            return logits


@case(task=4, timeout=30.0)
class StreamsAreIndependent:
    """Rows with different seeds, and the steps of one row, do not share random numbers."""

    def inputs(rng):
        logits = mx.repeat(normal(rng, (1, 3), scale=0.3), 3, axis=0)
        seed = int(rng.integers(2**20))
        params = [{"seed": seed}, {"seed": seed + 1}, {"seed": seed + 77}]
        return {"logits": logits, "params": params, "history": [[0]] * 3}

    def observe(solution, inputs):
        return sampled(solution, inputs, 400)

    def verify(inputs, draws):
        p = softmax(f64(inputs["logits"])[0])
        for row in range(3):
            assert len(set(draws[:, row].tolist())) > 1, "every step uses the same random numbers: one token repeats"
        for a, b in ((0, 1), (0, 2), (1, 2)):
            assert not np.array_equal(draws[:, a], draws[:, b]), "rows with different seeds share random numbers"
        pairs = {
            "the tokens of two rows at the same step": (draws[:, 0], draws[:, 1]),
            "the tokens of a row and of the next seed one step earlier": (draws[1:, 0], draws[:-1, 1]),
            "the tokens of one row at two steps": (draws[:-1:2, 2], draws[1::2, 2]),
        }
        for what, (first, second) in pairs.items():
            check_draws(3 * first + second, np.outer(p, p).ravel(), {}, f"{what}, seen as pairs")


@case(task=4, timeout=30.0)
class DrawsFollowTheFilteredDistribution:
    """Over many steps each row's tokens follow softmax of its own penalised, scaled and filtered logits."""

    def inputs(rng):
        logits = [telling_logits(rng, row) for row in ROWS] * COPIES
        rows = [{**row, "seed": seed} for row, seed in zip(ROWS * COPIES, seeds_of(rng, len(logits)), strict=True)]
        # All tokens are in the history from the start, so that the penalty stays the same while it grows.
        return {"logits": mx.concatenate(logits), "params": rows, "history": [list(range(10))] * len(rows)}

    def observe(solution, inputs):
        return sampled(solution, inputs, STEPS_EACH)

    def verify(inputs, draws):
        for i, row in enumerate(ROWS):
            x, history = f64(inputs["logits"])[i], inputs["history"][i]
            likely = wrong_distributions(x, row, history)
            check_draws(draws[:, i :: len(ROWS)].ravel(), distribution(x, row, history), likely, f"row {i} with {row}")


SHARP = {"temperature": 0.8, "repetition_penalty": 1.5}


@case(task=4, timeout=30.0)
class SharesAreRightToAFewPercent:
    """Over 10,000 draws a likely token and 99 unlikely ones get just the shares that temperature and penalty give."""

    def inputs(rng):
        wanted = np.log(99) * (np.arange(100) < 1) + rng.uniform(-0.5, 0.5, 100)
        # All logits are negative and seen: the penalty multiplies them, the temperature divides them.
        logits = (rng.permutation(wanted) - 6) * SHARP["temperature"] / SHARP["repetition_penalty"]
        rows = [{**SHARP, "seed": seed} for seed in seeds_of(rng, 1000)]
        history = [list(range(100))] * len(rows)
        logits = mx.repeat(mx.array(logits.astype(np.float32))[None], len(rows), axis=0)
        return {"logits": logits, "params": rows, "history": history}

    def observe(solution, inputs):
        return sampled(solution, inputs, 10)

    def verify(inputs, draws):
        want = distribution(f64(inputs["logits"])[0], SHARP, list(range(100)))
        best = int(np.argmax(want))
        chosen, due = (draws == best).astype(int).ravel(), want[best]
        fault = "too seldom: logits too close together" if chosen.mean() < due else "too often: logits too far apart"
        only = {"unlikely tokens are never drawn": np.array([0.0, 1.0])}
        check_draws(chosen, np.array([1 - due, due]), only, f"the best token comes {fault}; others and the best")
        check_draws(draws.ravel(), want, {}, "tokens of 1,000 rows in 10 steps")


@case(task=4, timeout=30.0)
class SeedsAreAsGoodAsDraws:
    """The first tokens of many rows that differ only in their seeds follow the distribution, too."""

    def inputs(rng):
        rows, first = 600, int(rng.integers(2**20))
        logits = mx.repeat(normal(rng, (1, 5), scale=1.0), rows, axis=0)
        params = [{"temperature": 0.9, "seed": first + i} for i in range(rows)]
        return {"logits": logits, "params": params, "history": [[0, 1]] * rows}

    def observe(solution, inputs):
        return sampled(solution, inputs, 1)

    def verify(inputs, draws):
        assert len(set(draws[0].tolist())) > 1, "rows with different seeds share random numbers: all draw one token"
        want = distribution(f64(inputs["logits"])[0], {"temperature": 0.9}, [0, 1])
        check_draws(draws[0], want, {}, "the first tokens of rows with different seeds")


@case(task=4, timeout=30.0)
class SameSeedSameTokens:
    """The same seeds give the same tokens again, also in another place of the batch, alone, or with other mates."""

    def inputs(rng):
        seeds = seeds_of(rng, 5)
        rows = [{**row, "seed": seed} for row, seed in zip(ROWS[:5], seeds, strict=True)]
        logits, history = normal(rng, (5, 30), scale=1.5), history_of(rng, 5, 30, 2)
        return {"logits": logits, "params": rows, "history": history}

    def observe(solution, inputs):
        mx.random.seed(1)
        first = sampled(solution, inputs, 8)
        mx.random.seed(2)
        again = sampled(solution, inputs, 8)
        turned = sampled(solution, inputs, 8, slice(None, None, -1))
        alone = [sampled(solution, inputs, 8, slice(row, row + 1)) for row in range(5)]
        return {
            "again": again,
            "turned": turned[:, ::-1],
            "alone": np.concatenate(alone, axis=1),
            "first": first,
        }

    def verify(inputs, got):
        texts = {
            "again": "the same seeds give other tokens the second time: MLX's global random state was used",
            "turned": "a row's tokens change with its place in the batch",
            "alone": "a row's tokens change with the rows it is batched with",
        }
        for name, text in texts.items():
            assert np.array_equal(got["first"], got[name]), text


@case(task=4, params=[{"dtype": dtype} for dtype in (mx.float32, *LOW)])
class GreedyRowsTakeTheBest:
    """With temperature 0 a row takes its best token after the penalty, whatever its seed and its mates."""

    def inputs(rng, dtype):
        logits = f64(normal(rng, (6, 16), scale=1.0))
        history = history_of(rng, 6, 16, 3)
        for row in range(6):
            logits[row, history[row][0]] = 5.0  # the best token has been seen; penalised it is 2.5
            logits[row, (np.argmax(logits[row]) + 1) % 16] = 4.0
            history[row] = [token for token in history[row] if logits[row, token] != 4.0]
        temperatures = [0.0, 1.0, 0.0, 0.0, 2.0, 0.0]
        penalties = [2.0, 1.0, 2.0, 1.0, 1.0, 2.0]
        params = [
            {"temperature": t, "repetition_penalty": p, "seed": seed, "top_p": 0.9}
            for t, p, seed in zip(temperatures, penalties, seeds_of(rng, 6), strict=True)
        ]
        return {"logits": mx.array(logits.astype(np.float32)).astype(dtype), "params": params, "history": history}

    def observe(solution, inputs):
        return sampled(solution, inputs, 1)

    def verify(inputs, draws):
        x = f64(inputs["logits"])
        for row, params in enumerate(inputs["params"]):
            if params["temperature"] == 0:
                one = penalised(x[row : row + 1], [inputs["history"][row]], [params["repetition_penalty"]])
                want, got = int(np.argmax(one)), int(draws[0, row])
                likely = "the repetition penalty was not applied" if got == np.argmax(x[row]) else "it was drawn"
                assert got == want, f"greedy row {row}: the best token is {want}, got {got}\n  likely mistake: {likely}"
