"""Day 1, continuous batching: plain counts, a hash for a model, and Qwen3 in float64, alone, are the oracles."""

from collections import deque
from itertools import pairwise

import mlx.core as mx
import numpy as np

from course.attention_case import attention64
from course.case import case, error_of
from course.checkpoint_files import wide
from course.compare import close, refused, same
from course.model_case import MULTI_QUERY, SMALL, TOLERANCE, model_inputs, model_of, oracle
from course.sampling_case import acceptable
from course.serving_case import judge
from course.serving_case.by_hand import (
    adds_of,
    admitted,
    batch_of,
    ended,
    noted,
    plain,
    read,
    request_of,
    sampled,
    scheduler_of,
    told,
)
from course.serving_case.drive import drive
from course.serving_case.timeline import prefills, timeline
from course.serving_case.workload import workload
from course.suspects import named


def explained(got: object, want: object, what: str, mistakes: dict[str, object]) -> None:
    """As `same`; the mistakes that would give `got` are named."""
    try:
        same(got, want, what)
    except AssertionError as error:
        likely = named(mistake for mistake, value in mistakes.items() if value == got)
        raise AssertionError(f"{error}\n{likely}") from None


# Task 1: what a request knows

LENGTHS = ("cached_len", "device_len", "extend_len", "remain_len", "in_flight", "prompt_len")
WHY = {
    ("launch", "cached_len"): "a launch moves cached_len, by the tokens that it runs",
    (
        "launch",
        "device_len",
    ): "a launch that reaches the last token chooses one more, so device_len grows by 1; a chunk "
    "of a prompt chooses none",
    ("launch", "ids"): "the ids grow when a result is read, not at the launch",
    ("launch", "in_flight"): "a launched step is in flight until its batch is committed",
    ("read", "cached_len"): "the lengths move at the launch, not when a result is read",
    ("read", "device_len"): "the lengths move at the launch, not when a result is read",
    ("read", "in_flight"): "who commits the batch counts the step down, not `append`",
    ("read", "ids"): "a result is one token at the end of ids",
    ("reset", "cached_len"): "nothing is computed any more",
    ("reset", "device_len"): "what the device must compute again is all ids, the results that were read included",
    ("reset", "ids"): "a reset forgets no token: the ids are the prompt to compute again",
    ("reset", "row"): "the row was given back",
    ("reset", "prompt_len"): "the prompt stays what the client sent, and its answer is counted from there",
}


def state_of(request) -> dict[str, object]:
    return {name: int(getattr(request, name)) for name in LENGTHS} | {"ids": list(request.ids), "row": request.row}


def lengths_are(got: dict[str, object], want: dict[str, object], did: str, text: str) -> None:
    """Raise AssertionError, with the rule that was broken, where a length or the ids are not as wanted."""
    for name in ("ids", "cached_len", "device_len", "in_flight", "row", *LENGTHS):
        if name in want and got[name] != want[name]:
            rule = WHY.get((did, name), "extend_len and remain_len follow from the lengths")
            raise AssertionError(f"{text}: {name} is {got[name]}, expected {want[name]}: {rule}")


def after(ids: list[int], max_tokens: int, actions: list, tokens: list[int]) -> list[dict[str, object]]:
    """The state after each action: a number is a launch of so many tokens, "read" a result."""
    cached, device, read, launches, states = 0, len(ids), 0, 0, []
    for action in actions:
        if action == "read":
            read += 1
        else:
            cached, launches = cached + action, launches + 1
            device += cached == device
        known = {"cached_len": cached, "device_len": device, "in_flight": launches, "ids": ids + tokens[:read]}
        states.append(known | {"extend_len": device - cached, "remain_len": len(ids) + max_tokens - device})
    return states


def walk_of(rng: np.random.Generator, prompt: int, max_tokens: int) -> list:
    """Launches of any size, and reads at any time after them."""
    actions, left, chosen, read = [], prompt, 0, 0
    while read < max_tokens:
        if chosen == max_tokens or (chosen > read and rng.random() < 0.5):
            read += 1
            actions.append("read")
        else:
            n = int(rng.integers(1, left + 1))
            actions.append(n)
            left -= n
            if left == 0:
                left, chosen = 1, chosen + 1
    return actions


@case(
    task=1,
    params=[
        {"prompt": 1, "max_tokens": 1, "actions": [1, "read"]},
        {"prompt": 5, "max_tokens": 3, "actions": [5, "read", 1, "read", 1, "read"]},
        {"prompt": 7, "max_tokens": 2, "actions": [3, 3, 1, "read", 1, "read"]},  # in chunks
        {"prompt": 6, "max_tokens": 1, "actions": [2, 4, "read"]},
        {"prompt": 4, "max_tokens": 4, "actions": [4, 1, "read", 1, "read", 1, "read", "read"]},  # one step ahead
        {"prompt": 9, "max_tokens": 5},
        {"prompt": 30, "max_tokens": 12},
    ],
)
class LengthsMoveAtLaunch:
    """Lengths advance when a step is launched, the ids when its result is read."""

    def inputs(rng, prompt, max_tokens, actions=None):
        return {
            "ids": rng.integers(0, 1000, prompt).tolist(),
            "tokens": rng.integers(0, 1000, max_tokens).tolist(),
            "actions": actions or walk_of(rng, prompt, max_tokens),
        }

    def observe(solution, inputs):
        request = request_of(solution, inputs["ids"], len(inputs["tokens"]))
        tokens, states = iter(inputs["tokens"]), []

        def act(action: int | str) -> list | None:
            if action == "read":
                request.append(next(tokens))
                return None
            own, start, end, samples = request.launch(action)
            return [own is request, int(start), int(end), bool(samples)]

        for action in inputs["actions"]:
            states.append({"did": error_of(lambda action=action: act(action)), "state": state_of(request)})
            if states[-1]["did"]["type"] is not None:
                break
        return states

    def verify(inputs, got):
        wanted = after(inputs["ids"], len(inputs["tokens"]), inputs["actions"], inputs["tokens"])
        cached, device = 0, len(inputs["ids"])
        for i, (found, action, want) in enumerate(zip(got, inputs["actions"], wanted, strict=False)):
            text = f"after {inputs['actions'][: i + 1]} on a prompt of {len(inputs['ids'])} tokens"
            if found["did"]["type"] is not None:
                raise AssertionError(f"{text}: {found['did']['type']}: {found['did']['message']}")
            lengths_are(found["state"], want, "read" if action == "read" else "launch", text)
            if action != "read":
                start, end, samples = cached, cached + action, cached + action == device
                mistakes = {
                    "it samples if it reaches the last token that the device knows": [True, start, end, not samples],
                    "it was made after cached_len moved": [True, end, end + action, samples],
                }
                what = f"{text}, the step (of this request, start, end, samples)"
                explained(found["did"]["value"], [True, start, end, samples], what, mistakes)
            cached, device = want["cached_len"], want["device_len"]


@case(
    task=1,
    params=[
        {"before": [], "tokens": 0},
        {"before": [], "tokens": -1},
        {"before": [], "tokens": 7},
        {"before": [4], "tokens": 3},
        {"before": [6], "tokens": 2},
        {"before": [6, 1, 1], "tokens": 1},  # all its 3 tokens are launched
    ],
)
class LaunchRefusesOtherNumbers:
    """A launch of no token, of more than are left, or beyond the last token is a ValueError and changes nothing."""

    def inputs(rng, before, tokens):
        return {"ids": rng.integers(0, 1000, 6).tolist(), "before": before, "tokens": tokens}

    def observe(solution, inputs):
        request = request_of(solution, inputs["ids"], 3)
        for n in inputs["before"]:
            request.launch(n)
        before = state_of(request)
        return {
            "error": error_of(lambda: (request.launch(inputs["tokens"]), None)[1]),
            "states": [before, state_of(request)],
        }

    def verify(inputs, got):
        what = f"a launch of {inputs['tokens']} tokens after {inputs['before']} of a prompt of 6 with max_tokens 3"
        refused(got["error"], what, str(3 if len(inputs["before"]) == 3 else inputs["tokens"]))
        same(got["states"][1], got["states"][0], f"the state after {what} was refused")


@case(
    task=1,
    params=[
        {"max_tokens": 4},
        {"max_tokens": 1},
        {"max_tokens": 6, "stop_at": 2},
        {"max_tokens": 3, "stop_at": 2},  # both at once
        {"max_tokens": 3, "stop_at": 0},
        {"max_tokens": 5, "stop_at": 1, "stop": 0},  # the token with id 0
        {"max_tokens": 4, "in_prompt": True},
        {"max_tokens": 9, "cut": 3},
        {"max_tokens": 5, "ahead": True},
        {"max_tokens": 5, "ahead": True, "stop_at": 1},
    ],
)
class ResultsTellTheEnd:
    """A stop token ends a request with "stop", its last token with "length", and no other result ends it."""

    def inputs(rng, max_tokens, stop_at=None, stop=7, in_prompt=False, cut=None, ahead=False):
        tokens = rng.integers(10, 1000, max_tokens).tolist()
        if stop_at is not None:
            tokens[stop_at] = stop
        ids = rng.integers(10, 1000, 4).tolist()
        return {
            "ids": [*ids, stop] if in_prompt else ids,
            "tokens": tokens,
            "stop": [stop, 1001],
            "cut": cut,
            "ahead": ahead,
        }

    def observe(solution, inputs):
        request = request_of(solution, inputs["ids"], len(inputs["tokens"]), stop=inputs["stop"])
        if inputs["cut"]:  # as `Scheduler.add` does
            request.max_device_len = len(inputs["ids"]) + inputs["cut"]
        reasons = []
        for token in inputs["tokens"]:
            while (
                request.remain_len and request.extend_len and request.device_len - len(request.ids) <= inputs["ahead"]
            ):
                request.launch(request.extend_len)
            reasons.append(request.append(token))
            if reasons[-1] is not None or len(reasons) == inputs["cut"]:
                break
        return {"reasons": reasons, "ids": list(request.ids)}

    def verify(inputs, got):
        most = inputs["cut"] or len(inputs["tokens"])
        stops = [i for i, token in enumerate(inputs["tokens"][:most]) if token in inputs["stop"]]
        end = min([*stops, most - 1])
        want = [None] * end + ["stop" if stops else "length"]
        mistakes = {
            "the length was counted one token too early": [None] * (most - 2) + ["length"],
            "the length was compared with device_len, which is ahead of the results": [None] * (most - 2) + ["length"],
            "a stop token that comes last is a stop": [None] * end + ["length"],
            "the stop token was not recognised": [None] * (most - 1) + ["length"],
            "the end of the length was missed": [None] * most,
            "a stop token of the prompt ended it": ["stop"],
            "max_tokens was counted, not max_device_len, which a scheduler may cut": [None] * most,
        }
        what = f"what the results {inputs['tokens'][: end + 1]} with stop tokens {inputs['stop']} mean"
        if inputs["cut"] is None:
            del mistakes["max_tokens was counted, not max_device_len, which a scheduler may cut"]
        if not inputs["ahead"]:
            del mistakes["the length was compared with device_len, which is ahead of the results"]
        explained(got["reasons"], want, what, mistakes)
        if got["ids"] == inputs["ids"] + inputs["tokens"][:end]:
            raise AssertionError("the last token is missing in ids: also a stop token is a result")
        same(got["ids"], inputs["ids"] + inputs["tokens"][: end + 1], "the ids")


@case(task=1, params=[{"before": []}, {"before": [2]}, {"before": [5, "read"]}, {"before": [5, 1, "read", "read"]}])
class AppendRefusesATokenOfNoStep:
    """A result that no launched step has chosen is a ValueError, and is not appended."""

    def inputs(rng, before):
        return {"ids": rng.integers(0, 1000, 5).tolist(), "before": before, "token": int(rng.integers(1000, 2000))}

    def observe(solution, inputs):
        request = request_of(solution, inputs["ids"], 9)
        for action in inputs["before"]:
            request.append(5) if action == "read" else request.launch(action)
        before = list(request.ids)
        return {"error": error_of(lambda: request.append(inputs["token"])), "ids": [before, list(request.ids)]}

    def verify(inputs, got):
        what = f"a result after {inputs['before'] or 'no launch'} of a prompt of 5 tokens"
        refused(got["error"], what, str(inputs["token"]))
        same(got["ids"][1], got["ids"][0], f"the ids after {what} was refused")


@case(task=1, params=[{"reads": 0, "again": [4]}, {"reads": 1, "again": [5]}, {"reads": 3, "again": [3, 4]}])
class ResetBeginsAgainWithAllIds:
    """After a reset the ids are the prompt to compute again, and the next result goes on where they end."""

    def inputs(rng, reads, again):
        return {
            "ids": rng.integers(0, 1000, 4).tolist(),
            "tokens": rng.integers(0, 1000, 5).tolist(),
            "reads": reads,
            "again": again,
        }

    def observe(solution, inputs):
        request = request_of(solution, inputs["ids"], 5)
        tokens = iter(inputs["tokens"])
        request.row = 3
        request.launch(4 if inputs["reads"] else 2)
        for i in range(inputs["reads"]):
            if i:
                request.launch(1)
            request.append(next(tokens))
        request.in_flight = 0
        request.reset()
        reset = state_of(request)

        def go_on() -> dict[str, object]:
            for n in inputs["again"]:
                request.launch(n)
            again, reasons = state_of(request), []
            for token in tokens:
                reasons.append(request.append(token))
                if request.remain_len:
                    request.launch(1)
            return {"state": again, "reasons": reasons}

        return {"reset": reset, "again": error_of(go_on), "ids": list(request.ids)}

    def verify(inputs, got):
        known, n = inputs["ids"] + inputs["tokens"][: inputs["reads"]], 4 + inputs["reads"]
        want = {"cached_len": 0, "device_len": n, "ids": known, "row": None, "extend_len": n, "remain_len": 9 - n}
        want["prompt_len"] = 4
        lengths_are(got["reset"], want, "reset", f"after a reset with {inputs['reads']} results read")
        again = got["again"]
        if again["type"] is not None:
            raise AssertionError(f"the reset request could not go on: {again['type']}: {again['message']}")
        want = {"cached_len": n, "device_len": n + 1, "ids": known}
        lengths_are(again["value"]["state"], want, "launch", "after all ids were launched again")
        same(got["ids"], inputs["ids"] + inputs["tokens"], "the ids at the end")
        same(
            again["value"]["reasons"], [None] * (4 - inputs["reads"]) + ["length"], "the finish reasons after the reset"
        )


@case(task=1, params=[{"in_flight": 1}, {"in_flight": 2}])
class ResetWaitsForSteps:
    """A reset with a step in flight is a ValueError and changes nothing: its result would have no place."""

    def inputs(rng, in_flight):
        return {"in_flight": in_flight}

    def observe(solution, inputs):
        request = request_of(solution, [5, 6, 7], 4)
        request.row = 2
        for _ in range(inputs["in_flight"]):
            request.launch(request.extend_len)
        before = state_of(request)
        return {"error": error_of(request.reset), "states": [before, state_of(request)]}

    def verify(inputs, got):
        refused(got["error"], f"a reset with {inputs['in_flight']} steps in flight", str(inputs["in_flight"]))
        same(got["states"][1], got["states"][0], "the state after a reset was refused")


# Task 2: who runs next


@case(
    task=2,
    params=[
        {"prompts": [3, 1, 8], "max_tokens": [4, 1, 2]},
        {"prompts": [9, 2, 5], "max_tokens": [1, 8, 5]},  # the longest prompt, and exactly full
        {"prompts": [3, 9, 1], "max_tokens": [8, 2, 10**9]},
    ],
)
class AddPutsRequestsInLine:
    """An accepted request waits in its turn, and may fill the memory's longest row but no more."""

    def inputs(rng, prompts, max_tokens):
        return {"adds": adds_of(rng, prompts, max_tokens)}

    def observe(solution, inputs):
        memory, log = noted(solution, 4, 10)
        scheduler = scheduler_of(solution, memory, inputs["adds"])
        return {
            "waiting": [request.uid for request in scheduler.waiting],
            "requests": sorted(scheduler.requests),
            "running": sorted(scheduler.running),
            "longest": [request.max_device_len for request in scheduler.waiting],
            "log": log,
        }

    def verify(inputs, got):
        uids = [add["uid"] for add in inputs["adds"]]
        mistakes = {"the newest stands first": uids[::-1], "the uids were sorted": sorted(uids)}
        explained(got["waiting"], uids, "the uids of waiting", mistakes)
        same(got["requests"], sorted(uids), "the uids of requests")
        same(got["running"], [], "the uids of running: nothing was launched")
        if got["log"]:
            raise AssertionError(
                f"`add` asked the memory for something: {got['log'][0]}; a request only waits at first"
            )
        full = [len(add["ids"]) + add["max_tokens"] for add in inputs["adds"]]
        mistakes = {
            "max_tokens was not cut to what fits": full,
            "a request ends one token too early": [min(n, 9) for n in full],
            "max_tokens alone was cut to max_len, without the prompt": [
                len(add["ids"]) + min(add["max_tokens"], 10) for add in inputs["adds"]
            ],
        }
        what = f"max_device_len of prompts of {[len(add['ids']) for add in inputs['adds']]} tokens where max_len is 10"
        explained(got["longest"], [min(n, 10) for n in full], what, mistakes)


@case(task=2, params=[{"prompt": 10}, {"prompt": 25}, {"prompt": 3, "same_uid": True}, {"prompt": 3, "running": True}])
class AddRefusesWhatCannotEnd:
    """A prompt that leaves no room for a token, and a uid in use, are ValueErrors: nobody waits for ever."""

    def inputs(rng, prompt, same_uid=False, running=False):
        first, second = adds_of(rng, [4, prompt], [2, 2])
        return {
            "first": first,
            "second": second | ({"uid": first["uid"]} if same_uid or running else {}),
            "run": running,
        }

    def observe(solution, inputs):
        memory, log = noted(solution, 2, 10)
        scheduler = scheduler_of(solution, memory, [inputs["first"]])
        if inputs["run"]:
            scheduler.next_batch()
        before = len(log)
        second = request_of(solution, inputs["second"]["ids"], 2, inputs["second"]["uid"])
        error = error_of(lambda: scheduler.add(second))
        same_one = [request is second for request in (*scheduler.waiting, *scheduler.requests.values())]
        return {"error": error, "accepted": any(same_one), "waiting": len(scheduler.waiting), "log": log[before:]}

    def verify(inputs, got):
        length, uid = len(inputs["second"]["ids"]), inputs["second"]["uid"]
        if uid == inputs["first"]["uid"]:
            refused(got["error"], f"a second request with uid {uid}", str(uid))
        else:
            what = f"a prompt of {length} tokens where max_len is 10"
            if got["error"]["type"] is None and not got["accepted"]:
                raise AssertionError(f"{what} was dropped silently: its client would wait for ever; raise ValueError")
            refused(got["error"], what, str(length), "9")
        if got["accepted"] or got["waiting"] != (not inputs["run"]):
            raise AssertionError("a refused request must leave no trace in waiting and requests")


@case(
    task=2,
    params=[
        {"prompts": [3, 5, 2], "rows": 3, "budget": 100},
        {"prompts": [3, 5, 2], "rows": 3, "budget": 8},  # two fit exactly
        {"prompts": [3, 5, 2], "rows": 3, "budget": 7},  # the third would fit, but it is not its turn
        {"prompts": [12, 2, 9, 1], "rows": 4, "budget": 6},  # longer than the budget: alone
        {"prompts": [4, 4, 4, 4], "rows": 2, "budget": 100},  # rows run out
        {"prompts": [4, 4, 4, 4], "rows": 3, "budget": 4},
        {"prompts": [2, 6, 1, 1, 7, 3, 2, 9, 1, 5], "rows": 9, "budget": 10},
    ],
)
class PrefillAdmitsInOrder:
    """A prefill batch takes whole prompts in their order, while rows are free and the budget lasts, but always one."""

    def inputs(rng, prompts, rows, budget):
        return {"adds": adds_of(rng, prompts, [3] * len(prompts)), "rows": rows, "budget": budget}

    def observe(solution, inputs):
        memory, log = noted(solution, inputs["rows"], 32)
        scheduler = scheduler_of(solution, memory, inputs["adds"], token_budget=inputs["budget"])
        batches = []
        while len(batches) <= len(inputs["adds"]) and (steps := scheduler.prefill()):
            batches.append(plain(steps))
        left = [request.uid for request in scheduler.waiting]
        return {"batches": batches, "waiting": left, "running": list(scheduler.running), "log": log}

    def verify(inputs, got):
        args = inputs["adds"], inputs["rows"], inputs["budget"]
        want = prefills(*args)
        mistakes = {
            "a later prompt overtook one that did not fit": prefills(*args, "overtake"),
            "one prompt per batch, although the budget has room": prefills(*args, "alone"),
            "the budget is not counted down": prefills(*args, "each"),
            "the budget was not looked at": prefills(*args, "no budget"),
            "a prompt longer than the budget never runs": prefills(*args, "refuse"),
        }
        lengths = [len(add["ids"]) for add in inputs["adds"]]
        what = f"prefill batches of prompts of {lengths} tokens, {inputs['rows']} rows, budget {inputs['budget']}"
        explained(got["batches"], want, what, mistakes)
        uids, launched = [add["uid"] for add in inputs["adds"]], [step[0] for batch in want for step in batch]
        same(got["waiting"], uids[len(launched) :], "the uids that still wait")
        same(got["running"], launched, "the uids of running, in the order of their launch")


@case(task=2, params=[{"prompts": [5, 9, 3], "prefix": 0}, {"prompts": [5, 9, 3, 1], "prefix": 4}])
class EveryStepHasItsMemory:
    """A request is opened with what the memory matched, and its row grows to the end of each step before it runs."""

    def inputs(rng, prompts, prefix):
        return {"adds": adds_of(rng, prompts, [3] * len(prompts)), "prefix": prefix}

    def observe(solution, inputs):
        memory, log = noted(solution, 8, 32, inputs["prefix"])
        scheduler = scheduler_of(solution, memory, inputs["adds"])
        batches = []
        for _ in range(3):
            batch = scheduler.next_batch()
            batches.append(plain(batch.steps))
            read(scheduler, batch)
        return {"batches": batches, "log": [entry for entry in log if entry[0] != "close"]}

    def verify(inputs, got):
        log, batches = [], []
        starts = {add["uid"]: min(inputs["prefix"], len(add["ids"]) - 1) for add in inputs["adds"]}
        for i in range(3):
            batches.append([])
            for add in inputs["adds"]:
                uid, end = add["uid"], len(add["ids"]) + i
                log += [["open", uid, starts[uid]]] * (i == 0) + [["grow", uid, end]]
                batches[-1].append([uid, end - 1 if i else starts[uid], end, True])
        cold = [[[uid, 0 if i == 0 else start, end, yes] for uid, start, end, yes in b] for i, b in enumerate(batches)]
        explained(got["batches"], batches, f"batches where the memory knows {inputs['prefix']} tokens of each prompt",
                  {"what the memory matched was not used": cold})  # fmt: skip
        same(sorted(got["log"]), sorted(log), "what the memory was asked")
        opened = [entry[1] for entry in got["log"] if entry[0] == "open"]
        same(opened, [add["uid"] for add in inputs["adds"]], "the uids in the order in which they were opened")


@case(
    task=2,
    params=[
        {"prompts": [4, 2], "max_tokens": [3, 5], "at": [0, 0], "rows": 2},
        {"prompts": [4, 2, 3], "max_tokens": [6, 2, 2], "at": [0, 2, 3], "rows": 3},  # joins while one runs
        {"prompts": [4, 2, 3], "max_tokens": [5, 3, 2], "at": [0, 0, 0], "rows": 2},  # waits for a row
        {"prompts": [1, 1, 1], "max_tokens": [1, 1, 1], "at": [0, 0, 5], "rows": 1},
        {
            "prompts": [3, 9, 5, 2, 8, 1, 4],
            "max_tokens": [9, 1, 4, 7, 2, 3, 8],
            "at": [0, 0, 1, 4, 4, 9, 12],
            "rows": 3,
        },
        {"prompts": [2, 1, 3], "max_tokens": [6, 4, 5], "at": [0, 0, 0], "rows": 3, "budget": 2},
    ],
)
class RequestsJoinAndLeaveBetweenSteps:
    """A request joins as soon as a row is free, all that run get a token in each decode step, and nobody starves."""

    def inputs(rng, prompts, max_tokens, at, rows, budget=12):
        return {"adds": adds_of(rng, prompts, max_tokens, at), "rows": rows, "budget": budget}

    def observe(solution, inputs):
        memory, _ = noted(solution, inputs["rows"], 32)
        scheduler = scheduler_of(solution, memory, token_budget=inputs["budget"])
        batches = []
        for step in range(60):
            for add in inputs["adds"]:
                if add["at"] == step:
                    scheduler.add(request_of(solution, add["ids"], add["max_tokens"], add["uid"]))
            batch = scheduler.next_batch()
            batches.append([] if batch is None else plain(batch.steps))
            if batch is not None:
                read(scheduler, batch)
        return batches

    def verify(inputs, got):
        args = inputs["adds"], inputs["rows"], inputs["budget"]
        mistakes = {
            "token_budget is for prompts: all that run get their token": timeline(*args, "cut"),
            "static batching: nobody joins before all that run have ended": timeline(*args, "static"),
            "those that run starve while others wait": timeline(*args, "starve"),
        }
        for step, (batch, want) in enumerate(zip(got, timeline(*args), strict=True)):
            if batch != want:
                likely = [text for text, batches in mistakes.items() if batches[: step + 1] == got[: step + 1]]
                raise AssertionError(
                    f"batch {step} of {[[a['uid'], len(a['ids']), a['max_tokens'], a['at']] for a in inputs['adds']]} "
                    f"(uid, prompt, max_tokens, step of arrival) on {inputs['rows']} rows is wrong\n"
                    f"  expected  {want}\n  got       {batch}  (uid, start, end, samples)\n{named(likely)}"
                )


@case(task=2, params=[{"prompts": [4, 2, 3], "max_tokens": [1, 3, 2]}, {"prompts": [5], "max_tokens": [4]}])
class NextBatchNeedsNoResult:
    """Batches can be chosen ahead of the results: a request runs on, and stops when all its tokens are launched."""

    def inputs(rng, prompts, max_tokens):
        return {"adds": adds_of(rng, prompts, max_tokens)}

    def observe(solution, inputs):
        memory, _ = noted(solution, 4, 32)
        scheduler = scheduler_of(solution, memory, inputs["adds"])
        batches = [error_of(lambda: plain(getattr(scheduler.next_batch(), "steps", ()))) for _ in range(6)]
        return {"batches": batches, "requests": len(scheduler.requests), "running": list(scheduler.running)}

    def verify(inputs, got):
        adds = inputs["adds"]
        for i, result in enumerate(got["batches"]):
            lengths = [(add["uid"], len(add["ids"]), add["max_tokens"]) for add in adds]
            want = [[uid, n + i - 1 if i else 0, n + i, True] for uid, n, most in lengths if most > i]
            what = f"batch {i} of (uid, prompt, max_tokens) {lengths}, without a result of those before"
            if result["type"] is not None:
                raise AssertionError(
                    f"{what}: {result['type']}: {result['message']}\n"
                    "  likely mistake: a request whose tokens are all launched was launched again"
                )
            explained(result["value"], want, what, {"it waits for the results": []})
        same(got["running"], [add["uid"] for add in adds], "the uids of running: nothing has ended before it is read")


# Task 3: what a result means


def commit_of(scheduler, batch, results: list) -> dict[str, list]:
    """The outputs, and whether each holds its result itself."""
    outputs = scheduler.commit(batch, results)
    return {"outputs": told(outputs), "whole": [o.sampled is r for o, r in zip(outputs, results, strict=False)]}


@case(
    task=3,
    params=[
        {"prompts": [3, 4], "launches": [3, 4]},
        {"prompts": [5, 2, 6, 3], "launches": [2, 2, 3, 3]},  # chunks do not sample
        {"prompts": [5, 2, 6], "launches": [5, 1, 6]},
        {"prompts": [4, 4], "launches": [2, 1]},  # nobody samples
    ],
)
class EachResultGoesToItsRequest:
    """Each step that samples takes one result, in the order of the batch, and gives one output; a chunk gives none."""

    def inputs(rng, prompts, launches):
        adds = adds_of(rng, prompts, [5] * len(prompts))
        tokens = rng.permutation(np.arange(1000, 2000))[: sum(a == b for a, b in zip(prompts, launches, strict=True))]
        return {"adds": adds, "launches": launches, "tokens": tokens.tolist()}

    def observe(solution, inputs):
        memory, log = noted(solution, 8, 32)
        scheduler = scheduler_of(solution, memory, inputs["adds"])
        admitted(scheduler)
        uids = [add["uid"] for add in inputs["adds"]]
        requests = [scheduler.requests[uid] for uid in uids]
        batch = batch_of(solution, scheduler, list(zip(uids, inputs["launches"], strict=True)))
        results = [sampled(solution, token, -token / 1000, ((token, 0.5),)) for token in inputs["tokens"]]
        done = error_of(lambda: commit_of(scheduler, batch, results))
        return done | {
            "ids": [request.ids[len(add["ids"]) :] for request, add in zip(requests, inputs["adds"], strict=True)],
            "in_flight": [request.in_flight for request in requests],
            "closed": [entry for entry in log if entry[0] == "close"],
        }

    def verify(inputs, got):
        adds, left = inputs["adds"], list(inputs["tokens"])
        own = [[left.pop(0)] if n == len(add["ids"]) else [] for add, n in zip(adds, inputs["launches"], strict=True)]
        outputs = [[add["uid"], tokens[0], None] for add, tokens in zip(adds, own, strict=True) if tokens]
        everyone = [[add["uid"], token, None] for add, token in zip(adds, inputs["tokens"], strict=False)]
        turned = [[o[0], t, None] for o, t in zip(outputs, inputs["tokens"][::-1], strict=True)]
        what = f"the outputs (uid, token, finish reason) of launches {inputs['launches']} of prompts of "
        what += f"{[len(add['ids']) for add in adds]} tokens, with results {inputs['tokens']}"
        mistakes = {
            "a step that samples nothing took a result": everyone,
            "the results were handed out in the wrong order": turned,
            "the outputs came in the wrong order": outputs[::-1],
        }
        if got["type"] is not None:
            likely = named(["a step that samples nothing took a result"] * (len(own) > len(outputs)))
            raise AssertionError(f"{what}: {got['type']}: {got['message']}\n{likely}")
        explained(got["value"]["outputs"], outputs, what, mistakes)
        same(got["ids"], own, "the new ids of each request")
        if not all(got["value"]["whole"]):
            raise AssertionError("an output holds the result as it came, with its log-probabilities")
        if any(got["in_flight"]):
            raise AssertionError(
                f"in_flight is {got['in_flight']} after the commit: each step of the batch counts down"
            )
        if got["closed"]:
            raise AssertionError("memory was taken back from a request that goes on")


@case(
    task=3,
    params=[
        {"max_tokens": [1, 3, 2], "stop_at": {}},
        {"max_tokens": [5, 3, 4], "stop_at": {0: 0, 2: 1}},
        {"max_tokens": [2, 2, 2], "stop_at": {1: 1}},  # all at once
    ],
)
class EndsGiveEverythingBack:
    """The result that ends a request tells why, takes its row back once, and nothing is left of it."""

    def inputs(rng, max_tokens, stop_at):
        adds = adds_of(rng, [4, 2, 3], max_tokens)
        return {"adds": [add | {"stop": [7]} for add in adds], "stop_at": [stop_at.get(i, 99) for i in range(3)]}

    def observe(solution, inputs):
        memory, log = noted(solution, 4, 32)
        scheduler = scheduler_of(solution, memory, inputs["adds"])
        stop_at = {add["uid"]: at for add, at in zip(inputs["adds"], inputs["stop_at"], strict=True)}
        steps = []
        for number in range(max(add["max_tokens"] for add in inputs["adds"])):
            batch = scheduler.next_batch()
            if batch is None:
                break
            tokens = [7 if stop_at[step.request.uid] == number else 50 for step in batch.sampling]
            outputs = scheduler.commit(batch, [sampled(solution, token) for token in tokens])
            steps.append({
                "outputs": told(outputs),
                "closed": [entry[1] for entry in log if entry[0] == "close"],
                "requests": sorted(scheduler.requests),
                "running": list(scheduler.running),
                "free": memory.free_rows,
            })  # fmt: skip
        return steps

    def verify(inputs, got):
        ends = [min(add["max_tokens"] - 1, at) for add, at in zip(inputs["adds"], inputs["stop_at"], strict=True)]
        uids = [add["uid"] for add in inputs["adds"]]
        for step in range(max(ends) + 1):
            outputs = []
            for uid, end, at in zip(uids, ends, inputs["stop_at"], strict=True):
                if end >= step:
                    reason = ("stop" if end == at else "length") if end == step else None
                    outputs.append([uid, 7 if at == step else 50, reason])
            if step >= len(got):
                raise AssertionError(f"there is no batch {step}, but requests are left")
            found, what = got[step], f"after the commit of batch {step}"
            same(found["outputs"], outputs, f"the outputs (uid, token, finish reason) {what}")
            gone, left = [u for u, e in zip(uids, ends, strict=True) if e <= step], [
                u for u, e in zip(uids, ends, strict=True) if e > step
            ]  # fmt: skip
            if missing := set(gone) - set(found["closed"]):
                raise AssertionError(f"{what} request {min(missing)} has ended, but its row was not given back: a leak")
            if early := set(found["closed"]) - set(gone):
                raise AssertionError(f"{what} the row of request {min(early)} was given back, but it goes on")
            if len(found["closed"]) > len(gone):
                raise AssertionError(f"{what} a row was given back twice: {found['closed']}")
            same(found["requests"], sorted(left), f"the uids of requests {what}: ended ones are forgotten")
            same(found["running"], left, f"the uids of running {what}: ended ones are forgotten")
            same(found["free"], 4 - len(left), f"free rows {what}")


EVENTS = {
    "stop": [("commit", 7, ["A", 7, "stop"], 0), ("commit", 50, None, 1)],
    "abort before the first result": [("abort", None, ["A", None, "abort"], 0), ("commit", 50, None, 0),
                                      ("commit", 50, None, 1)],
    "abort between the results": [("commit", 50, ["A", 50, None], 0), ("abort", None, ["A", None, "abort"], 0),
                                  ("commit", 50, None, 1)],
    "abort twice": [("abort", None, ["A", None, "abort"], 0), ("abort", None, None, 0), ("commit", 7, None, 0),
                    ("commit", 50, None, 1)],
    "abort after a stop": [("commit", 7, ["A", 7, "stop"], 0), ("abort", None, None, 0), ("commit", 50, None, 1)],
    "abort with nothing in flight": [("commit", 50, ["A", 50, None], 0), ("commit", 50, ["A", 50, None], 0),
                                     ("abort", None, ["A", None, "abort"], 1), ("abort", None, None, 1)],
}  # fmt: skip
"""What happens to request A with two steps in flight: (event, token read, its output, how often its row is back)."""


@case(task=3, params=[{"how": how} for how in EVENTS])
class MemoryWaitsForTheLastStep:
    """A request that ends with a step in flight keeps its row until that is committed; late results are dropped."""

    def inputs(rng, how):
        first, second = adds_of(rng, [3, 2], [9, 9])
        return {"how": how, "A": first | {"stop": [7]}, "B": second}

    def observe(solution, inputs):
        memory, log = noted(solution, 2, 32)
        scheduler = scheduler_of(solution, memory, [inputs["A"], inputs["B"]])
        uid, request = inputs["A"]["uid"], scheduler.requests[inputs["A"]["uid"]]
        batches, seen = deque([scheduler.next_batch(), scheduler.next_batch()]), []
        for event, token, *_ in EVENTS[inputs["how"]]:
            if event == "abort":
                outputs = ended(scheduler, uid)
            else:
                results = [sampled(solution, token), sampled(solution, 60)]
                outputs = told(scheduler.commit(batches.popleft(), results))
            seen.append({
                "outputs": outputs,
                "closed": [entry[2] for entry in log if entry[:2] == ["close", uid]],
                "known": [uid in scheduler.requests, uid in scheduler.running],
                "ids": len(request.ids) - len(inputs["A"]["ids"]),
            })  # fmt: skip
        return seen

    def verify(inputs, got):
        A, B, ended, count = inputs["A"]["uid"], inputs["B"]["uid"], False, 0
        for i, (found, (event, _, output, closed)) in enumerate(zip(got, EVENTS[inputs["how"]], strict=True)):
            text = f"two steps in flight, then {[name for name, *_ in EVENTS[inputs['how']]][: i + 1]}"
            own = [o for o in found["outputs"] if o[0] == A]
            if ended and own:
                raise AssertionError(f"{text}: request {A} has ended, but gave {own[0]}: a late result is dropped")
            same(own, [[A, *output[1:]]] if output else [], f"{text}: the outputs (uid, token, finish reason)")
            others = [[B, 60, None]] * (event == "commit")
            same([o for o in found["outputs"] if o[0] != A], others, f"{text}: the outputs of the other request")
            ended, count = ended or bool(output and output[2]), count + bool(output and output[1] is not None)
            if len(found["closed"]) > 1:
                raise AssertionError(f"{text}: the row was given back twice")
            if any(found["closed"]) or len(found["closed"]) > closed:
                raise AssertionError(f"{text}: the row was given back while a step that writes there was in flight")
            if len(found["closed"]) < closed:
                raise AssertionError(f"{text}: the row was not given back: a leak")
            same(found["known"], [not ended] * 2, f"{text}: whether it is in requests, and in running")
            same(found["ids"], count, f"{text}: results in its ids")


@case(task=3, params=[{"uid": 0}, {"uid": 1}, {"uid": 2}])
class RequestsThatWaitHaveNoRow:
    """A request that ends while it waits is forgotten at once, and has no row to give back."""

    def inputs(rng, uid):
        return {"adds": [add | {"uid": i} for i, add in enumerate(adds_of(rng, [3, 2, 4], [2, 2, 2]))], "uid": uid}

    def observe(solution, inputs):
        memory, log = noted(solution, 1, 32)
        scheduler = scheduler_of(solution, memory, inputs["adds"])
        outputs = error_of(lambda: ended(scheduler, inputs["uid"]))
        batch = scheduler.next_batch()
        return {
            "outputs": outputs,
            "batch": plain(batch.steps),
            "waiting": [request.uid for request in scheduler.waiting],
            "closed": [entry[1] for entry in log if entry[0] == "close"],
        }

    def verify(inputs, got):
        uid, left = inputs["uid"], [add for add in inputs["adds"] if add["uid"] != inputs["uid"]]
        outputs = got["outputs"]
        if outputs["type"] is not None:
            raise AssertionError(
                f"the end of request {uid}, which waits, raised {outputs['type']}: {outputs['message']}\n"
                "  likely mistake: a request that was never admitted has no row to give back"
            )
        same(got["closed"], [], "uids of rows that were given back: nobody had one")
        same(got["batch"], [[left[0]["uid"], 0, len(left[0]["ids"]), True]], "the next batch")
        same(got["waiting"], [left[1]["uid"]], "the uids that still wait")


@case(
    task=3,
    params=[
        {"chunks": [4], "aborts_after": 1},
        {"chunks": [2, 3], "aborts_after": 1},
        {"chunks": [2, 3], "aborts_after": 2},
    ],
)
class AChunkInFlightHoldsTheRow:
    """A request that is aborted half prefilled gives its row back when the last chunk in flight is committed."""

    def inputs(rng, chunks, aborts_after):
        return {"adds": adds_of(rng, [9], [3]), "chunks": chunks, "aborts_after": aborts_after}

    def observe(solution, inputs):
        memory, log = noted(solution, 1, 32)
        scheduler = scheduler_of(solution, memory, inputs["adds"])
        admitted(scheduler)
        uid, batches, outputs = inputs["adds"][0]["uid"], [], []
        for i, n in enumerate(inputs["chunks"], 1):
            batches.append(batch_of(solution, scheduler, [(uid, n)]))
            if i == inputs["aborts_after"]:
                outputs = ended(scheduler, uid)
                break
        closed = []
        for batch in batches:
            outputs += told(scheduler.commit(batch, []))
            closed.append(sum(entry[0] == "close" for entry in log))
        return {"outputs": outputs, "closed": closed, "free": memory.free_rows}

    def verify(inputs, got):
        same(got["outputs"], [[inputs["adds"][0]["uid"], None, "abort"]], "the outputs")
        n = inputs["aborts_after"]
        what = f"how often its row was given back, after the commit of each of {n} chunks that were in flight"
        mistakes = {"a leak: an ended request is retired also by a step that samples nothing": [0] * n}
        explained(got["closed"], [0] * (n - 1) + [1], what, mistakes)
        same(got["free"], 1, "free rows at the end")


@case(task=3, params=[{"admit": False}, {"admit": True}])
class AUidIsFreeOnceItsRequestHasEnded:
    """A new request may take the uid of an ended one whose last step is in flight, and is not taken for it."""

    def inputs(rng, admit):
        first, second = adds_of(rng, [3, 2], [9, 2])
        return {"first": first, "second": second | {"uid": first["uid"]}, "admit": admit}

    def observe(solution, inputs):
        memory, _ = noted(solution, 2, 32)
        scheduler = scheduler_of(solution, memory, [inputs["first"]])
        old = scheduler.next_batch()
        outputs = ended(scheduler, inputs["first"]["uid"])
        new = request_of(solution, inputs["second"]["ids"], 2, inputs["second"]["uid"])
        scheduler.add(new)
        batches = [scheduler.next_batch()] if inputs["admit"] else []
        outputs += told(scheduler.commit(old, [sampled(solution, 50)]))
        known = [scheduler.requests.get(new.uid) is new, scheduler.running.get(new.uid) is new]
        for token in (51, 52):
            batch = batches.pop() if batches else scheduler.next_batch()
            outputs += told(scheduler.commit(batch, [sampled(solution, token)])) if batch else []
        return {"known": known, "outputs": outputs, "free": memory.free_rows, "left": len(scheduler.requests)}

    def verify(inputs, got):
        if got["known"] != [True, inputs["admit"]]:
            raise AssertionError("when the step of the old request came back, the new one with its uid was forgotten")
        uid = inputs["first"]["uid"]
        same(got["outputs"], [[uid, None, "abort"], [uid, 51, None], [uid, 52, "length"]], "the outputs of this uid")
        same([got["free"], got["left"]], [2, 0], "free rows and requests at the end")


@case(
    task=3,
    params=[{"chunks": [6], "max_tokens": 4}, {"chunks": [2, 3, 1], "max_tokens": 4}, {"chunks": [6], "max_tokens": 1}],
)
class ThePromptIsOfferedOnce:
    """When the first result of a prompt is read, and the request goes on, the memory may share the prompt: once."""

    def inputs(rng, chunks, max_tokens):
        return {"adds": adds_of(rng, [6], [max_tokens]), "chunks": chunks}

    def observe(solution, inputs):
        memory, log = noted(solution, 2, 32)
        scheduler = scheduler_of(solution, memory, inputs["adds"])
        admitted(scheduler)
        for n in inputs["chunks"]:
            batch = batch_of(solution, scheduler, [(inputs["adds"][0]["uid"], n)])
            scheduler.commit(batch, [sampled(solution, 50) for _ in batch.sampling])
        for _ in range(inputs["adds"][0]["max_tokens"] - 1):
            scheduler.commit(scheduler.next_batch(), [sampled(solution, 50)])
        return [[entry[0], *entry[2:]] for entry in log if entry[0] in ("share", "close")]

    def verify(inputs, got):
        goes_on = inputs["adds"][0]["max_tokens"] > 1
        want = [["share", 7]] * goes_on + [["close", 0]]
        mistakes = {
            "each result was offered, not only that of the prompt": [["share", n] for n in (7, 8, 9)] + [["close", 0]],
            "the prompt was never offered": [["close", 0]],
            "it was offered before the result was appended": [["share", 6], ["close", 0]],
            "a request that ends keeps nothing to offer: `close` does that": [["share", 7], ["close", 0]],
            "each chunk was offered": [["share", 6]] * (len(inputs["chunks"]) - 1) + want,
        }
        what = f"with a prompt in chunks of {inputs['chunks']}, the calls of the memory"
        explained(calls(got), calls(want), what, {mistake: calls(each) for mistake, each in mistakes.items()})


def calls(entries: list[list]) -> str:
    """Calls of `share` and `close` in words."""
    return ", ".join(f"share with {n} ids" if name == "share" else name for name, n in entries)


@case(
    task=3,
    params=[
        {"rows": 1},
        {"rows": 3},
        {"rows": 8, "budget": 40},
        {"rows": 4, "stops": 0.9, "requests": 20},
        {"rows": 3, "depth": 2},
        {"rows": 5, "depth": 3, "stops": 0.8},
        {"rows": 2, "depth": 2, "requests": 25, "stops": 0.6},
    ],
)
class BatchedEqualsAlone:
    """In any workload each request gets the tokens that it gets alone, ends once, and gives its row back."""

    def inputs(rng, rows, budget=8192, depth=1, requests=14, stops=0.4):
        seed = int(rng.integers(2**31))
        script = workload(seed, requests=requests, max_len=40, aborts=0.0, stops=stops)
        return {"script": script, "rows": rows, "budget": budget, "depth": depth}

    def observe(solution, inputs):
        memory = solution.module("serving.memory").RowMemory(inputs["rows"], 40)
        scheduler = scheduler_of(solution, memory, token_budget=inputs["budget"])
        engine = solution.module("serving.engine").Engine if inputs["depth"] == 1 else None
        return drive(solution, scheduler, inputs["script"], engine, inputs["depth"])

    def verify(inputs, got):
        judge.verify(inputs["script"], got)
        judge.assert_budget(got, inputs["budget"], whole_prompts=True)


# Task 4: one forward for many requests


def batch_by_hand(solution, requests: list[dict]):
    """A batch of steps over given ids: nothing is launched."""
    module = solution.module("serving.request")
    steps = [
        module.Step(request_of(solution, r["ids"], 5, uid), r["start"], r["end"], r["samples"])
        for uid, r in enumerate(requests)
    ]
    return module.Batch(tuple(steps))


def steps_of(rng: np.random.Generator, shape: list[tuple[int, int, bool]], vocab: int = 1000) -> list[dict]:
    """(start, end, samples) of each step, and ids for it; without `samples` the prompt goes on behind."""
    return [
        {"ids": rng.integers(0, vocab, b + (0 if s else 3)).tolist(), "start": a, "end": b, "samples": s}
        for a, b, s in shape
    ]


SHAPES_OF_BATCHES = [
    [(0, 5, True)],
    [(0, 3, True), (0, 1, True), (0, 4, True)],
    [(7, 8, True), (2, 3, True), (11, 12, True)],  # decode
    [(4, 9, False), (6, 7, True), (0, 2, True), (3, 8, True), (0, 6, False)],  # all kinds at once
    [(0, 4, False), (8, 11, False)],  # nobody samples
]


@case(
    task=4,
    params=[{"shape": shape} for shape in SHAPES_OF_BATCHES]
    + [{"shape": [(3, 4, True), (0, 4, True), (5, 6, True), (2, 3, True)], "unread": [0, 2]}],  # one step ahead
)
class RowsOfABatch:
    """Tokens of all steps follow one another, each at the position that it has in its own request."""

    def inputs(rng, shape, unread=()):
        steps = steps_of(rng, shape)
        for i in unread:
            del steps[i]["ids"][-1]
        return {"steps": steps}

    def observe(solution, inputs):
        rows = error_of(lambda: solution.module("serving.ragged").ragged(batch_by_hand(solution, inputs["steps"])))
        if rows["type"] is not None:
            return rows
        return {
            "type": None,
            "device": any(isinstance(part, mx.array) for part in rows["value"]),
            "rows": [[int(x) for x in part] for part in rows["value"]],
        }

    def verify(inputs, got):
        steps = inputs["steps"]
        if got["type"] is not None:
            known = [len(step["ids"]) for step in steps]
            raise AssertionError(
                f"{got['type']}: {got['message']}, for steps {[(s['start'], s['end']) for s in steps]} of requests "
                f"with {known} ids: a token that nobody has read yet is missing in `tokens`, and its row is counted"
            )
        sizes = [step["end"] - step["start"] for step in steps]
        ends = np.cumsum(sizes).tolist()
        known = np.cumsum([len(step["ids"][step["start"] : step["end"]]) for step in steps]).tolist()
        want = {
            "tokens": [t for step in steps for t in step["ids"][step["start"] : step["end"]]],
            "positions": [p for step in steps for p in range(step["start"], step["end"])],
            "bounds": [0, *ends],
            "lengths": [step["end"] for step in steps],
            "last": [end - 1 for step, end in zip(steps, ends, strict=True) if step["samples"]],
        }
        mistakes = {
            "tokens": {
                "the first tokens of a request were taken, not those from `start` on": [
                    t for step, n in zip(steps, sizes, strict=True) for t in step["ids"][:n]
                ],
                "a token that nobody has read yet is missing, not 0: the device knows it": [
                    t for step in steps for t in (step["ids"] + [0])[step["start"] : step["end"]]
                ],
            },
            "positions": {
                "a position counts rows of the batch, not tokens of its request": list(range(sum(sizes))),
                "each step begins at position 0": [p for n in sizes for p in range(n)],
                "all rows of a step are at its start": [
                    s["start"] for s, n in zip(steps, sizes, strict=True) for _ in range(n)
                ],
            },
            "bounds": {
                "the first bound is 0": ends,
                "bounds are sums, not sizes": [0, *sizes],
                "known tokens were counted: a row whose token nobody has read yet counts too": [0, *known],
            },
            "lengths": {
                "the new tokens were counted, not all keys up to the last row": sizes,
                "known tokens were counted": [min(step["end"], len(step["ids"])) for step in steps],
            },
            "last": {
                "every request was scored, also one that does not sample": [end - 1 for end in ends],
                "the first row of a request was scored": [
                    e - n for s, e, n in zip(steps, ends, sizes, strict=True) if s["samples"]
                ],
                "a bound is the row after the last": [e for s, e in zip(steps, ends, strict=True) if s["samples"]],
                "the last row is counted in the batch, not in its request": [
                    n - 1 for s, n in zip(steps, sizes, strict=True) if s["samples"]
                ],
                "known tokens were counted: a row whose token nobody has read yet counts too": [
                    n - 1 for s, n in zip(steps, known, strict=True) if s["samples"]
                ],
            },
        }  # fmt: skip
        if got["device"]:
            raise AssertionError(
                "the rows are plain ints of the host: to read an array waits for all that was launched"
            )
        for part, (name, value) in zip(got["rows"], want.items(), strict=True):
            what = f"{name} of steps {[(s['start'], s['end'], s['samples']) for s in steps]} (start, end, samples)"
            explained(part, value, what, mistakes[name])


def attended(requests: list[list[np.ndarray]], all_keys: bool = False) -> np.ndarray:
    """Each request alone, in float64. requests: q (L, H, 1, D), k and v (S, H_kv, 1, D). Returns the rows of all."""
    rows = []
    for request in requests:
        q, k, v = (mx.array(x.transpose(2, 1, 0, 3).astype(np.float32)) for x in request)
        last = np.full(q.shape[2], k.shape[2]) if all_keys else None
        rows.append(attention64(q, k, v, last=last).transpose(2, 1, 0, 3))
    return np.concatenate(rows)


@case(
    task=4,
    params=[
        {"shape": shape, "sizes": sizes}
        for shape in SHAPES_OF_BATCHES[:4]
        for sizes in ({"H": 4, "H_kv": 2, "D": 8}, {"H": 3, "H_kv": 1, "D": 4})
    ]
    + [{"shape": SHAPES_OF_BATCHES[3], "sizes": {"H": 2, "H_kv": 2, "D": 8}, "dtype": mx.bfloat16}],
)
class EachRowSeesItsOwnRequest:
    """A row attends to its own request up to itself: what its cache held, and the new rows before it, and no other."""

    def inputs(rng, shape, sizes, dtype=mx.float32):
        def numbers(rows, heads):
            return mx.array(rng.standard_normal((rows, heads, 1, sizes["D"])).astype(np.float32)).astype(dtype)

        T = sum(b - a for a, b, _ in shape)
        return {
            "bounds": [0, *np.cumsum([b - a for a, b, _ in shape]).tolist()],
            "positions": [p for a, b, _ in shape for p in range(a, b)],
            "old": [[numbers(a, sizes["H_kv"]) for _ in "kv"] for a, _, _ in shape],
            "new": [numbers(T, sizes["H"]), numbers(T, sizes["H_kv"]), numbers(T, sizes["H_kv"])],
        }

    def observe(solution, inputs):
        DenseCache, calls = solution.module("cache.dense").DenseCache, []
        caches = []
        for old in inputs["old"]:
            caches.append(DenseCache(4))
            if len(old[0]):
                caches[-1].update(*(x.swapaxes(0, 2) for x in old))

        def attend(q, k, v, cache):
            calls.append(
                [list(q.shape), list(k.shape), list(v.shape), next(i for i, c in enumerate(caches) if c is cache)]
            )
            k, v = cache.update(k, v)
            return mx.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask="causal")

        layer = solution.module("serving.ragged").RaggedLayer(inputs["positions"], inputs["bounds"], caches)
        result = layer.attend(*inputs["new"], attend)
        return {"result": result, "offset": list(layer.offset), "calls": calls, "held": [c.offset for c in caches]}

    def verify(inputs, got):
        q, k, v = (wide(x) for x in inputs["new"])
        own, bounds = [], list(pairwise(inputs["bounds"]))
        for old, (a, b) in zip(inputs["old"], bounds, strict=True):
            own.append([q[a:b], *(np.concatenate([wide(o), x[a:b]]) for o, x in zip(old, (k, v), strict=True))])
        everything = [np.concatenate(parts) for parts in zip(*(part[1:] for part in own), strict=True)]
        want = attended(own)
        suspects = {
            "the rows of the batch were taken for one sequence: a row sees those of other requests": lambda: attended(
                [[q, k, v]]
            ),
            "a row saw the keys of all requests": lambda: attended(
                [[part[0], *everything] for part in own], all_keys=True
            ),
            "a row saw the rows behind it": lambda: attended(own, all_keys=True),
            "what the cache held was not seen": lambda: attended([[x[a:b] for x in (q, k, v)] for a, b in bounds]),
        }
        for i, (q_shape, k_shape, v_shape, _) in enumerate(got["calls"]):
            if {q_shape[0], k_shape[0], v_shape[0]} != {1}:
                raise AssertionError(
                    f"call {i} of attend got q {q_shape} and k {k_shape}: the rows of one request are one sequence, "
                    "(1, heads, L, D)"
                )
        used = [call[3] for call in got["calls"]]
        explained(used, list(range(len(own))), "which request's cache each call of attend got",
                  {"the caches are in the wrong order": list(range(len(own)))[::-1]})  # fmt: skip
        close(
            got["result"], want, dtype=inputs["new"][0].dtype, suspects=suspects, what="the attended rows (T, H, 1, D)"
        )
        ends = [old[0].shape[0] + b - a for old, (a, b) in zip(inputs["old"], bounds, strict=True)]
        same(got["held"], ends, "positions in each request's cache afterwards")


@case(task=4)
class AttendOnlyBuildsTheGraph:
    """Attention of a batch is computed when its tokens are needed, not while the batch is being built."""

    def inputs(rng):
        return {"bounds": [0, 100, 101, 256], "shape": [256, 8, 1, 64]}

    def observe(solution, inputs):
        x = mx.ones(inputs["shape"])
        mx.eval(x)
        mx.synchronize()
        before = mx.get_active_memory()
        layer = solution.module("serving.ragged").RaggedLayer([0] * 256, inputs["bounds"], [None] * 3)
        result = layer.attend(x + 1.0, x, x, lambda q, k, v, cache: q * 2.0)
        called = mx.get_active_memory() - before
        return {"called": called, "result": result}

    def verify(inputs, got):
        close(got["result"], np.full(inputs["shape"], 4.0), dtype=mx.float32, what="q of all requests, plus 1, times 2")
        if got["called"] > got["result"].nbytes // 8:
            raise AssertionError(
                f"the call alone computed {got['called']:,} bytes: it must only add to the graph, or the engine waits "
                "in each layer for all that was launched before"
            )


def ragged_logits(solution, inputs: dict) -> list[list]:
    """Run the batches on a model with a dense cache for each request. Returns [uid, end, logits] of each scored row."""
    module, ragged = solution.module("serving.request"), solution.module("serving.ragged")
    model = model_of(solution, inputs, ragged.batched(solution.module("model.qwen3").Ops()))
    DenseCache = solution.module("cache.dense").DenseCache
    requests = [request_of(solution, ids, 5, uid) for uid, ids in enumerate(inputs["ids"])]
    caches = [[DenseCache(4) for _ in model.layers] for _ in requests]
    scored = []
    for steps in inputs["batches"]:
        batch = module.Batch(tuple(module.Step(requests[uid], *rest) for uid, *rest in steps))
        rows = ragged.ragged(batch)
        own = [caches[uid] for uid, *_ in steps]
        layers = [ragged.RaggedLayer(rows.positions, rows.bounds, each) for each in zip(*own, strict=True)]
        hidden = model.hidden(mx.array(rows.tokens)[:, None], layers)
        if rows.last:
            logits = model.ops.head(model, hidden[mx.array(rows.last)])[:, 0]
            ends = [(uid, end) for uid, _, end, samples in steps if samples]
            scored += [[uid, end, row] for (uid, end), row in zip(ends, logits, strict=True)]
    return scored


def cuts_of(rng: np.random.Generator, lengths: list[int]) -> list[list[list]]:
    """Cut each request into steps, and mix the steps into batches: every request at its own pace."""
    left = dict.fromkeys(range(len(lengths)), 0)
    batches = []
    while left:
        batch = []
        for uid in rng.permutation(sorted(left)).tolist():
            if rng.random() < 0.7:
                start = left[uid]
                end = min(start + int(rng.choice([1, 1, 3, 6])), lengths[uid])
                batch.append([uid, start, end, bool(end == lengths[uid] or rng.random() < 0.4)])
                left[uid] = end
                if end == lengths[uid]:
                    del left[uid]
        if batch:
            batches.append(batch)
    return batches


@case(
    task=4,
    params=[
        {"sizes": SMALL, "lengths": [6]},
        {"sizes": SMALL, "lengths": [9, 4, 13, 1]},
        {"sizes": MULTI_QUERY, "lengths": [7, 12, 3]},
        {"sizes": SMALL, "lengths": [9, 4, 13], "dtype": mx.bfloat16},
    ],
    timeout=20.0,
)
class RaggedLogitsEqualTheFullPrefix:
    """Prompts, chunks and single tokens of many requests in one forward score as each whole prefix alone."""

    def inputs(rng, sizes, lengths, dtype=mx.float32):
        inputs = model_inputs(rng, sizes, dtype)
        ids = [rng.integers(0, inputs["sizes"]["vocab"], n).tolist() for n in lengths]
        return inputs | {"ids": ids, "batches": cuts_of(rng, lengths)}

    def observe(solution, inputs):
        return ragged_logits(solution, inputs)

    def verify(inputs, got):
        model, dtype = oracle(inputs), next(iter(inputs["weights"].values())).dtype
        want = [model.logits(np.array([ids]))[0] for ids in inputs["ids"]]
        ends = [(uid, end) for batch in inputs["batches"] for uid, _, end, samples in batch if samples]
        same([(uid, end) for uid, end, _ in got], ends, "which rows were scored: (uid, tokens before)")
        for uid, end, logits in got:
            others = {
                f"these are the logits of request {other} after {n} tokens: the head scored the wrong row": row
                for other in range(len(want))
                for n, row in enumerate(want[other], 1)
                if (other, n) != (uid, end)
            }
            what = f"the logits of request {uid} after {end} tokens"
            close(logits, want[uid][end - 1], tol=TOLERANCE[dtype], dtype=dtype, suspects=others, what=what)


@case(task=4, params=[{"rows": 4, "greedy": True}, {"rows": 3}, {"rows": 6, "budget": 12}], timeout=30.0)
class SampledTokensAreThoseAlone:
    """With a real model, seeds and mixed sampling parameters, each request draws what it would draw alone."""

    def inputs(rng, rows, greedy=False, budget=8192):
        inputs = model_inputs(rng, SMALL)
        requests = []
        for uid in range(8):
            sampling = {} if greedy or rng.random() < 0.2 else {
                "temperature": float(rng.uniform(0.4, 1.5)), "top_k": int(rng.choice([0, 5])),
                "top_p": float(rng.choice([1.0, 0.8])), "repetition_penalty": float(rng.choice([1.0, 1.3])),
                "seed": int(rng.integers(1000)),
            }  # fmt: skip
            ids = rng.integers(0, 31, int(rng.integers(1, 12))).tolist()
            requests.append({"uid": uid, "ids": ids, "max_tokens": int(rng.integers(1, 9)), "sampling": sampling})
        return inputs | {"requests": requests, "rows": rows, "budget": budget}

    def observe(solution, inputs):
        serving, make = (
            (lambda name: solution.module(f"serving.{name}")),
            solution.module("text.sampler").SamplingParams,
        )
        model = model_of(solution, inputs, serving("ragged").batched(solution.module("model.qwen3").Ops()))
        runner = serving("model_runner")
        scheduler = scheduler_of(
            solution, serving("memory").RowMemory(inputs["rows"], 64), token_budget=inputs["budget"]
        )
        caches = runner.DenseRows(len(model.layers))
        engine = serving("engine").Engine(
            scheduler, runner.ModelRunner(model, caches, serving("batch_sampler").BatchSampler())
        )
        for r in inputs["requests"]:
            params = make(**({"temperature": 0.0} | r["sampling"]))
            engine.add(serving("request").Request(r["uid"], list(r["ids"]), r["max_tokens"], params))
        outputs = []
        while engine.busy and len(outputs) < 200:
            outputs += engine.step()
        return {"outputs": told(outputs), "free": scheduler.memory.free_rows, "left": len(scheduler.requests)}

    def verify(inputs, got):
        model = oracle(inputs)
        for r in inputs["requests"]:
            tokens = [token for uid, token, _ in got["outputs"] if uid == r["uid"]]
            same(len(tokens), r["max_tokens"], f"tokens of request {r['uid']}")
            logits = model.logits(np.array([r["ids"] + tokens]))[0]
            for i, token in enumerate(tokens):
                seen = r["ids"] + tokens[:i]
                if not acceptable(token, logits[len(seen) - 1], seen, draw=i, **r["sampling"]):
                    raise AssertionError(
                        f"request {r['uid']} with {r['sampling'] or 'greedy sampling'} chose {token} as its token {i}, "
                        f"which it would not choose alone after {seen}"
                    )
        same([got["free"], got["left"]], [inputs["rows"], 0], "free rows and requests at the end")
