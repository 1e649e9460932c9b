"""What must come out of a script, whatever was batched with what: words for what did not.

Knows scripts and traces, both plain values; nothing of the package under test.
"""

from collections.abc import Sequence

from .hash_model import DUMMY
from .oracle import alone


def verify(script: dict[str, object], trace: dict[str, object]) -> None:
    """Raise AssertionError unless all requests got what they get alone, ended once, and gave everything back."""
    assert_ends_once(script, trace)
    assert_alone(script, trace)
    assert_no_faults(trace)
    assert_idle(trace)


def outputs_of(trace: dict[str, object]) -> dict[int, list[tuple[int | None, str | None]]]:
    """The (token, finish reason) of each request's outputs, in their order."""
    outputs: dict[int, list[tuple[int | None, str | None]]] = {}
    for _, uid, token, reason in trace["outputs"]:
        outputs.setdefault(uid, []).append((token, reason))
    return outputs


def tokens_of(trace: dict[str, object]) -> dict[int, list[int]]:
    """The tokens of each request, in their order."""
    return {uid: [t for t, _ in given if t is not None] for uid, given in outputs_of(trace).items()}


def expected(script: dict[str, object], max_len: int) -> dict[int, tuple[list[int], str]]:
    """What each request answers alone, and why it ends; those whose prompt does not fit are left out."""
    return {
        add["uid"]: alone(
            add["ids"],
            min(add["max_tokens"], max_len - len(add["ids"])),
            add["stop"],
            add["penalty"],
            script["vocab"],
        )
        for add in script["adds"]
        if len(add["ids"]) < max_len
    }


def assert_ends_once(script: dict[str, object], trace: dict[str, object]) -> None:
    """Every accepted request gives exactly one finish reason, as its last output; no other gives anything."""
    want, outputs = expected(script, trace["max_len"]), outputs_of(trace)
    prompts = {add["uid"]: len(add["ids"]) for add in script["adds"]}
    for uid, message in trace["refused"].items():
        if uid in want:
            raise AssertionError(f"request {uid}, a prompt of {prompts[uid]} tokens, was refused: {message}")
    for uid, length in prompts.items():
        if uid not in want and uid not in trace["refused"]:
            raise AssertionError(
                f"request {uid} was accepted: its prompt of {length} tokens leaves no room for one more within "
                f"{trace['max_len']}"
            )
    for uid, alive, gave in trace["aborted"]:
        if alive and not gave:
            raise AssertionError(f"the abort of request {uid} gave no output, although it had not ended")
    for uid in want:
        _assert_one_end(uid, outputs.get(uid, []), trace)
    if strangers := sorted(set(outputs) - set(want)):
        raise AssertionError(f"there are outputs of requests {strangers}, which were never accepted")


def _assert_one_end(uid: int, given: list[tuple[int | None, str | None]], trace: dict[str, object]) -> None:
    ends = [i for i, (_, reason) in enumerate(given) if reason is not None]
    if not ends:
        raise AssertionError(
            f"request {uid} never ended: it gave {len(given)} tokens and no finish reason in {trace['steps']} steps; "
            f"at the end {trace['end']['waiting']} requests wait, and {trace['end']['pages']} pages are free"
        )
    reasons = [given[i][1] for i in ends]
    if len(ends) > 1:
        raise AssertionError(f"request {uid} ended {len(ends)} times: {reasons}")
    if ends[0] != len(given) - 1:
        raise AssertionError(
            f"request {uid} gave {len(given) - 1 - ends[0]} outputs after its end ({reasons[0]}): "
            "the result of a request that has ended is dropped"
        )


def assert_alone(script: dict[str, object], trace: dict[str, object]) -> None:
    """Each request's tokens and end are those it gets alone; up to the abort, if it was aborted."""
    want, outputs = expected(script, trace["max_len"]), outputs_of(trace)
    tokens = {uid: [t for t, _ in given if t is not None] for uid, given in outputs.items()}
    aborted = {uid for uid, _, gave in trace["aborted"] if gave}
    for uid, (answer, reason) in want.items():
        got, end = tokens[uid], outputs[uid][-1][1]
        hoped = answer[: len(got)] if uid in aborted else answer
        if end == "error":
            raise AssertionError("\n  ".join([f"request {uid} ended with an error:", *trace["logged"]]))
        if got != hoped:
            raise AssertionError(_wrong_tokens(uid, got, hoped, want, trace))
        if end != (reason := "abort" if uid in aborted else reason):
            raise AssertionError(f"request {uid} ended with {end!r}, expected {reason!r}")


def _wrong_tokens(
    uid: int, got: list[int], hoped: list[int], want: dict[int, tuple[list[int], str]], trace: dict[str, object]
) -> str:
    at = next((i for i, (a, b) in enumerate(zip(got, hoped, strict=False)) if a != b), min(len(got), len(hoped)))
    lines = [
        f"request {uid} got other tokens than alone: {len(got)} tokens, expected {len(hoped)}",
        f"  first wrong: number {at}, expected {_at(hoped, at)}, got {_at(got, at)}",
        *(f"  {fault}" for fault in trace["faults"]),
    ]
    if likely := _likely(uid, got, hoped, at, want, trace):
        lines.append(f"  likely mistake: {likely}")
    return "\n".join(lines)


def _at(tokens: Sequence[int], at: int) -> str:
    return str(tokens[at]) if at < len(tokens) else "the end"


def _likely(
    uid: int,
    got: list[int],
    hoped: list[int],
    at: int,
    want: dict[int, tuple[list[int], str]],
    trace: dict[str, object],
) -> str | None:
    if at == len(got):
        return "it ended too early: a stop or the length was counted wrong, or a result was lost"
    if at == len(hoped):
        return "it went on after its end"
    if got[at:] == hoped[at + 1 :]:
        return f"the result number {at} was lost"
    if at and got[at] == got[at - 1]:
        return "the same result was appended twice"
    others = [other for other, (answer, _) in want.items() if other != uid and got[at] in answer]
    if others and not trace["faults"]:
        return f"it got a result of request {others[0]}: results belong to the steps that sample, in their order"
    return None


def assert_no_faults(trace: dict[str, object]) -> None:
    """The model met nothing that no engine may do, even where the tokens came out right."""
    if trace["faults"]:
        raise AssertionError("\n  ".join(["the tokens are right, but", *trace["faults"]]))


def assert_idle(trace: dict[str, object]) -> None:
    """Nobody is left, and all rows and pages are free again, or in the prefix cache and not locked."""
    start, end = trace["start"], trace["end"]
    left = {name: end[name] for name in ("requests", "waiting", "running") if end[name]}
    if left:
        counts = ", ".join(f"{count} in {name}" for name, count in left.items())
        raise AssertionError(f"all requests have ended, but the scheduler still holds some: {counts}")
    for name in ("rows", "pages"):
        if end[name] < start[name]:
            raise AssertionError(
                f"{start[name] - end[name]} of {start[name]} {name} leak: a request ended and did not give them back"
            )
        if end[name] > start[name]:
            raise AssertionError(f"{end[name]} {name} are free, of {start[name]}: some were given back twice")


def assert_budget(trace: dict[str, object], budget: int, whole_prompts: bool = False) -> None:
    """No batch runs more tokens than `budget`. whole_prompts: unless it is one prompt alone, that is longer."""
    for number, batch in enumerate(trace["batches"]):
        tokens = sum(end - start for uid, start, end, _ in batch if uid != DUMMY)
        if tokens > budget and not (whole_prompts and len(batch) == 1):
            raise AssertionError(f"batch {number} runs {tokens} tokens in {len(batch)} steps: the budget is {budget}")
