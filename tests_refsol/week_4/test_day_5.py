"""Day 5, disaggregation: truth tables in fractions, scripts of calls whose orders are known, brute force over heads,
and two pools of workers through random faults, on a device that remembers every slot."""

from fractions import Fraction
from itertools import product

from course.case import case
from course.cluster_case.connector_scripts import DecodeScript, PrefillScript, Side
from course.cluster_case.connector_world import World
from course.cluster_case.device import heads_of
from course.cluster_case.route_script import RouteScript
from course.suspects import named

SECOND = 10**9
GRACE = 60 * SECOND


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def steps(script: list, got: list, want: list, mistakes: dict[int, dict[str, object]] | None = None) -> None:
    """Raise AssertionError for the first action of a script whose outcome is not as expected."""
    for at, (action, outcome, right) in enumerate(zip(script, got, want, strict=True)):
        text = f"action {at}, {action}: got {outcome}, expected {right}"
        explain(outcome, right, text, (mistakes or {}).get(at))


# Task 1


def rule_of(solution, options: dict):
    """A rule of the package. options: "queue" for the first one, else the present one's."""
    module = solution.module("cluster.conditional")
    if "queue" in options:
        return module.QueueRule(*options["queue"])
    return module.Conditional(module.Mode(options["mode"]), **{k: v for k, v in options.items() if k != "mode"})


def locals_of(solution, inputs: dict) -> list[bool]:
    """What a rule says to each situation."""
    rule = rule_of(solution, inputs["rule"])
    situation = solution.module("cluster.conditional").Situation
    return [bool(rule.local(situation(*each))) for each in inputs["situations"]]


def judge(inputs: dict, got: list[bool], right, mistakes: dict) -> None:
    """Compare with a rule in fractions. A mistake is named if it says everywhere what was said."""
    want = [right(*each) for each in inputs["situations"]]
    wrong = [i for i, pair in enumerate(zip(got, want, strict=True)) if pair[0] != pair[1]]
    if wrong:
        situation, said = inputs["situations"][wrong[0]], "local" if got[wrong[0]] else "remote"
        found = named(text for text, rule in mistakes.items() if [rule(*s) for s in inputs["situations"]] == got)
        raise AssertionError(
            f"{inputs['rule']}: prompt, cached, queued, prefill tokens, decode blocks = {situation} is {said}: "
            f"{len(wrong)} of {len(got)} situations are wrong\n{found}".strip()
        )


@case(task=1)
class TheFirstRuleNeedsBoth:
    """v0.2: remote if and only if more than max_local tokens are not cached, and fewer than max_queued prompts wait."""

    def inputs(rng):
        most, queue = int(rng.integers(5, 2000)), int(rng.integers(1, 9))
        cached = [0, int(rng.integers(1, 99))]
        news = [most + d for d in (-1, 0, 1)] + [1, 5 * most]
        situations = [[new + c, c, q] for new in news for c in cached for q in (0, queue - 1, queue, queue + 1)]
        return {"rule": {"queue": [most, queue]}, "situations": situations}

    def observe(solution, inputs):
        return locals_of(solution, inputs)

    def verify(inputs, got):
        most, queue = inputs["rule"]["queue"]
        judge(inputs, got, lambda p, c, q: not (p - c > most and q < queue), {
            "one of the two limits is enough to stay, not both together": lambda p, c, q: p - c <= most and q >= queue,
            "a prompt of exactly max_local tokens stays": lambda p, c, q: not (p - c >= most and q < queue),
            "a queue of exactly max_queued prompts is full": lambda p, c, q: not (p - c > most and q <= queue),
            "cached tokens need not be computed": lambda p, c, q: not (p > most and q < queue),
            "local and remote are the wrong way round": lambda p, c, q: p - c > most and q < queue,
            "the queue was not asked": lambda p, c, q: p - c <= most,
        })  # fmt: skip


EDGES = [(2925, 2047), (2925, 2048), (4000, 2047), (4000, 2048), (4000, 2049), (2900, 2001), (2900, 2030), (2900, 2040)]
"""Prompts, and tokens of them that are not cached: 2047 and 2048, and 0.69 and 0.70 of the prompt."""


@case(task=1, params=[{"percent": 70}, {"percent": 56}])
class TheTruthTable:
    """A prompt stays if fewer than 2048 tokens and less than 0.7 of it are to compute, exactly at the edges too."""

    def inputs(rng, percent):
        hundreds = [int(n) for n in rng.choice(29, 20, replace=False) + 1]
        pairs = [*EDGES, (100, 69), (100, 70), (100, 71), (1, 1), (1, 0), (8000, 2047), (8000, 2048)]
        pairs += [(100 * n, percent * n + d) for n in hundreds for d in (-1, 0, 1)]
        rule = {"mode": "prompt"} if percent == 70 else {"mode": "prompt", "share": percent / 100}
        return {"rule": rule, "percent": percent, "situations": [[p, p - new] for p, new in pairs]}

    def observe(solution, inputs):
        return locals_of(solution, inputs)

    def verify(inputs, got):
        share, rounded = Fraction(inputs["percent"], 100), inputs["percent"] / 100
        judge(inputs, got, lambda p, c: p - c < 2048 and Fraction(p - c, p) < share, {
            "2048 tokens are not fewer than 2048": lambda p, c: p - c <= 2048 and Fraction(p - c, p) < share,
            "0.7 is not less than 0.7": lambda p, c: p - c < 2048 and Fraction(p - c, p) <= share,
            "one of the two limits is not enough": lambda p, c: p - c < 2048 or Fraction(p - c, p) < share,
            "the share times the prompt is rounded, and may be too much": lambda p, c: p - c < 2048
            and p - c < rounded * p,
            "the share that is cached was compared": lambda p, c: p - c < 2048 and Fraction(c, p) < share,
            "the whole prompt was compared with `tokens`": lambda p, c: p < 2048 and Fraction(p - c, p) < share,
            "the share was not asked": lambda p, c: p - c < 2048,
        })  # fmt: skip


@case(task=1, params=[{"mode": mode} for mode in ("prompt", "load", "either")])
class ModesAndTheVeto:
    """The mode picks the reason to stay; a decode worker over its limit computes no prompt at all."""

    def inputs(rng, mode):
        tokens, busy, blocks = (int(rng.integers(10, 500)) for _ in range(3))
        situations = [
            [prompt, prompt - new, 0, ahead, active]
            for prompt, new in ((4 * tokens, tokens - 1), (4 * tokens, tokens), (tokens, tokens - 1))
            for ahead in (0, busy, busy + 1)
            for active in (0, blocks, blocks + 0.5)
        ]
        rule = {"mode": mode, "tokens": tokens, "share": 0.5}
        rule |= {"busy_prefill_tokens": busy, "busy_decode_blocks": blocks}
        return {"rule": rule, "situations": situations}

    def observe(solution, inputs):
        return locals_of(solution, inputs)

    def verify(inputs, got):
        rule = inputs["rule"]

        def right(p, c, q, ahead, active, veto=True, edge=0, mode=None, least=0):
            short = p - c < rule["tokens"] and Fraction(p - c, p) < Fraction(1, 2)
            busy = ahead + edge > rule["busy_prefill_tokens"]
            reason = {"prompt": short, "load": busy, "either": short or busy, "both": short and busy}
            return reason[mode or rule["mode"]] and (not veto or active + least <= rule["busy_decode_blocks"])

        judge(inputs, got, right, {
            "a busy decode worker computes no prompt": lambda *s: right(*s, veto=False),
            "a decode worker at its limit is not over it": lambda *s: right(*s, least=1e-9),
            "a prefill worker at its limit is not over it": lambda *s: right(*s, edge=1),
            "either reason is enough": lambda *s: right(*s, mode="both"),
            "the mode was not asked: prompt": lambda *s: right(*s, mode="prompt"),
            "the mode was not asked: load": lambda *s: right(*s, mode="load"),
            "the mode was not asked: either": lambda *s: right(*s, mode="either"),
        })  # fmt: skip


@case(task=1)
class TheDefaultsSetNoLimitOnLoad:
    """Without limits no worker is busy; what is cached beyond the prompt leaves nothing to compute."""

    def inputs(rng):
        huge = float(rng.integers(10**6, 10**9))
        return {"rule": {"mode": "either"}, "situations": [[5000, 0, 9, huge, huge], [64, 64, 0, 0, huge], [60, 64]]}

    def observe(solution, inputs):
        return locals_of(solution, inputs)

    def verify(inputs, got):
        explain(got, [False, True, True], f"{inputs['situations']}: local is {got}, expected [False, True, True]")


# Task 2


def played(solution, inputs: dict) -> dict:
    """A script of a two-stage router, played."""
    run = RouteScript(solution, inputs["options"]).play(inputs["script"])
    return {"log": run.log, "books": run.books(), "queries": run.queries, "state": run.two.state.value}


def routed(inputs: dict, got: dict, want: list, mistakes: dict[int, dict[str, object]] | None = None) -> None:
    """The orders of each call, and empty books at the end."""
    steps(inputs["script"], got["log"], want, mistakes)
    explain(got["books"], [0] * 5, f"all is over, but the books (requests counted at the two routers, placed or "
        f"waiting there, journeys) say {got['books']}: whoever is forgotten must be freed at both routers")  # fmt: skip


@case(task=2)
class PullTellsTheDecoderAfterwards:
    """Pull: first the prefill worker, and when its token came the decode worker, with the same ticket."""

    def inputs(rng):
        uid = int(rng.integers(1, 99))
        return {
            "options": {"hand_off": "pull"},
            "script": [["submit", uid], ["prefilled", uid, False], ["done", uid]],
        }

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        uid = inputs["script"][0][1]
        prefill, decode = ["Prefill", uid, "P0", 0], ["Decode", uid, "D0", 0]
        routed(inputs, got, [[prefill], [decode], []], {
            0: {"the decode worker was told before there was anything to pull": [prefill, decode],
                "the prefill pool was passed over": [["Decode", uid, "D0", None]]},
            1: {"the ticket got lost": [["Decode", uid, "D0", None]], "the decode worker was never told": [],
                "the decode worker got a ticket of its own": [["Decode", uid, "D0", -1]]},
        })  # fmt: skip


@case(task=2, params=[{"hand_off": "push"}, {"hand_off": "bootstrap"}])
class BothAreToldAtOnce:
    """Push and bootstrap: both workers are told at once, the prefill worker first, once each."""

    def inputs(rng, hand_off):
        uid = int(rng.integers(1, 99))
        script = [["submit", uid], ["prefilled", uid, False], ["done", uid]]
        return {"options": {"hand_off": hand_off}, "script": script}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        uid = inputs["script"][0][1]
        prefill, decode = ["Prefill", uid, "P0", 0], ["Decode", uid, "D0", 0]
        routed(inputs, got, [[prefill, decode], [], []], {
            0: {"the decode worker was not told at once": [prefill],
                "the prefill worker comes first": [decode, prefill],
                "the decode worker got no ticket": [prefill, ["Decode", uid, "D0", None]]},
            1: {"the decode worker was told a second time": [decode]},
        })  # fmt: skip


@case(task=2, params=[{"hand_off": h} for h in ("pull", "push", "bootstrap")])
class EveryHandOffHasItsOwnName:
    """No two tickets have one generation; a room tells which engine it belongs to: room % dp_ranks = dp_rank."""

    def inputs(rng, hand_off):
        peers = [[int(rng.integers(0, n)), int(n)] for n in rng.integers(1, 9, 40)]
        return {"hand_off": hand_off, "peers": peers, "uids": rng.integers(0, 3, 40).tolist()}

    def observe(solution, inputs):
        module = solution.module("cluster.handoff")
        tickets, result = module.Tickets(module.HandOff(inputs["hand_off"])), []
        for uid, (rank, ranks) in zip(inputs["uids"], inputs["peers"], strict=True):
            ticket = tickets.issue(uid, module.Peer(f"P{rank}", 4, "host:1", rank, ranks))
            result.append([*ticket.transfer, ticket.worker, ticket.ranks, ticket.address])
        return result

    def verify(inputs, got):
        rest = [[uid, f"P{rank}", 4, "host:1"] for uid, (rank, _) in zip(inputs["uids"], inputs["peers"], strict=True)]
        explain([[uid, *more] for uid, _, *more in got], rest, f"uids and workers of the tickets: {got}")
        numbers = [generation for _, generation, *_ in got]
        if len(set(numbers)) < len(numbers):
            raise AssertionError(
                f"generations {numbers}: one was given twice, so a late message finds the wrong prompt"
            )
        wrong = [n for n, (rank, ranks) in zip(numbers, inputs["peers"], strict=True) if n % ranks != rank]
        if inputs["hand_off"] == "bootstrap" and wrong:
            raise AssertionError(f"rooms {wrong} belong to other engines: room % dp_ranks must be dp_rank")


@case(task=2)
class TheDecoderIsChosenByItsLoad:
    """After a remote prompt nothing cached counts, no prompt work is booked, and no reuse is assumed."""

    def inputs(rng):
        return {
            "active": float(rng.integers(1, 9)),
            "own": float(rng.integers(10, 99)),
            "uid": int(rng.integers(1, 99)),
        }

    def observe(solution, inputs):
        config, result = solution.module("cluster.routing").CostConfig, {}
        cost = config(active=inputs["active"])
        for kind, rule in (("always", None), ("conditional", Never())):
            options = {"rule": rule, "limits": {"decode": {"cost": cost}}}
            run = RouteScript(solution, options)
            run.submit(inputs["uid"], cost=config(active=inputs["own"]))
            run.play([["prefilled", inputs["uid"], False]])
            result[kind] = [*run.queries[-1][2], run.decode.load.workers["D0"].prefill_tokens]
        return result

    def verify(inputs, got):
        text = "credit, track_prefill, assume_reuse and active of the decode choice, and prompt tokens booked there"
        a = inputs["active"]
        explain(got["always"], [0.0, False, False, a, 0], f"{text}: {got['always']}", {
            "the router's own weights were used": [1.0, True, True, a, 8],
            "w must be 0: what is cached there need not be sent, but the choice is one of decode load": [
                1.0, False, False, a, 0],
            "no prompt is computed there: prefill is not to be tracked": [0.0, True, False, a, 8],
            "reuse must not be assumed: 3 of 5 workers take all the traffic": [0.0, False, True, a, 0],
            "the other weights are the router's": [0.0, False, False, 0.0, 0],
            "the weights are the router's own, not those that came with the request": [
                0.0, False, False, inputs["own"], 0],
        })  # fmt: skip
        explain(got["conditional"], [1.0, False, False, a, 0], f"with a rule, {text}: {got['conditional']}", {
            "with a rule cached blocks keep their credit": [0.0, False, False, a, 0],
        })  # fmt: skip


class Never:
    """A rule by which every prompt goes away."""

    def local(self, situation) -> bool:
        """No."""
        return False


class Noted:
    """A rule that answers from a list, and notes what it was asked."""

    def __init__(self, answers: list[bool]):
        self.answers, self.asked = list(answers), []

    def local(self, situation) -> bool:
        """The next answer."""
        self.asked.append(list(situation))
        return self.answers.pop(0)


@case(task=2)
class WithoutAPrefillPoolTheDecoderDoesAll:
    """While the pool is pending or unavailable, and for prompts that wait when it goes, the decode worker computes."""

    def inputs(rng):
        script = [["submit", 1], ["first_token", 1], ["done", 1]]
        waits = [["submit", 1], ["submit", 2], ["remove_prefill", "P0"], ["submit", 3]]
        waits += [[name, uid] for uid in (2, 3) for name in ("first_token", "done")]
        return {"pending": script, "gone": waits}

    def observe(solution, inputs):
        limits = {"prefill": {"busy_prefill_tokens": 0}}
        pending = {"options": {"prefills": 0}, "script": inputs["pending"]}
        gone = {"options": {"limits": limits}, "script": inputs["gone"]}
        return {"pending": played(solution, pending), "gone": played(solution, gone)}

    def verify(inputs, got):
        script = {"script": inputs["pending"]}
        explain(got["pending"]["state"], "pending", "nobody has come yet")
        routed(script, got["pending"], [[["Decode", 1, "D0", None]], [], []], {
            0: {"a pool without workers cannot compute: nobody was told": [],
                "it was refused": [["Fail", 1, "overloaded"]]},
        })  # fmt: skip
        explain(got["gone"]["state"], "unavailable", "all have gone")
        want = [[["Prefill", 1, "P0", 0]], [], [["Decode", 2, "D0", None], ["Release", 1, 0, "P0"],
            ["Fail", 1, "prefill"]], [["Decode", 3, "D0", None]], [], [], [], []]  # fmt: skip
        routed({"script": inputs["gone"]}, got["gone"], want, {
            3: {"the pool has gone: nobody was told": [], "it was refused": [["Fail", 3, "overloaded"]]},
        })  # fmt: skip


@case(task=2, params=[{"hand_off": h} for h in ("pull", "push")])
class TheFirstTokenMayBeTheLast:
    """If the prefill worker's token ends the answer, nobody decodes, and the pages are given back."""

    def inputs(rng, hand_off):
        return {"options": {"hand_off": hand_off}, "script": [["submit", 4], ["prefilled", 4, True], ["done", 4]]}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        prefill, decode, release = ["Prefill", 4, "P0", 0], ["Decode", 4, "D0", 0], ["Release", 4, 0, "P0"]
        at_once = inputs["options"]["hand_off"] == "push"
        want = [[prefill, decode], [["Cancel", 4, "D0"], release], []] if at_once else [[prefill], [release], []]
        routed(inputs, got, want, {
            1: {"the answer is complete, and yet somebody decodes": [decode],
                "the answer is complete, and yet somebody decodes on": [],
                "the decode worker that was told must hear that it is over": [release],
                "an answer of one token leaves pages at the prefill worker": want[1][:-1]},
        })  # fmt: skip


AT = ("waiting for a prefill worker", "being computed", "computed, waiting for a decode worker", "decoding", "over")


@case(task=2, params=[{"at": at} for at in range(len(AT))])
class CancelTellsWhoeverKeepsSomething:
    """Wherever the client leaves: a decode worker that was told is cancelled, and a prompt that is kept is released."""

    def inputs(rng, at):
        first = [["submit", 1], ["submit", 2], ["prefilled", 1, False]]
        limits = {"prefill": {"busy_prefill_tokens": 0}, "decode": {"busy_prefill_tokens": 0}}
        if at == 0:
            script, options = [*first[:2], ["cancel", 2], ["cancel", 1]], {"limits": limits}
        elif at == 1:
            script, options = [["submit", 1], ["cancel", 1], ["prefilled", 1, False]], {}
        elif at == 2:  # the decode worker computes request 9's prompt: no other one may come
            script = [["add_prefill_later"], ["submit", 1], ["prefilled", 1, False], ["cancel", 1], ["cancel", 9]]
            options = {"limits": limits, "prefills": 0}
        elif at == 3:
            script, options = [["submit", 1], ["prefilled", 1, False], ["cancel", 1], ["done", 1]], {}
        else:
            script, options = [["submit", 1], ["prefilled", 1, False], ["done", 1], ["cancel", 1]], {}
        return {"at": at, "options": options, "script": script}

    def observe(solution, inputs):
        run, script = RouteScript(solution, inputs["options"]), inputs["script"]
        if script[0] == ["add_prefill_later"]:
            run.submit(9)
            run.call("add_prefill", run.part("handoff.Peer")("P0"))
            run.log.clear()
            script = script[1:]
        run.play(script)
        return {"log": run.log, "books": run.books()}

    def verify(inputs, got):
        release, decode = ["Release", 1, 0, "P0"], ["Decode", 1, "D0", 0]
        want = [
            [[["Prefill", 1, "P0", 0]], [], [], [release]],
            [[["Prefill", 1, "P0", 0]], [release], []],
            [[["Prefill", 1, "P0", 0]], [], [release], [["Cancel", 9, "D0"]]],
            [[["Prefill", 1, "P0", 0]], [decode], [["Cancel", 1, "D0"], release], []],
            [[["Prefill", 1, "P0", 0]], [decode], [], []],
        ][inputs["at"]]
        script = [action for action in inputs["script"] if action != ["add_prefill_later"]]
        leak = (
            f"the client left while its request was {AT[inputs['at']]}: nobody tells the prefill worker, which keeps "
        )
        routed({"script": script}, got, want, {
            at: {leak + "the pages until they expire": [order for order in orders if order != release],
                 "the decode worker was not told": [order for order in orders if order[0] != "Cancel"]}
            for at, orders in enumerate(want) if orders and script[at][0] == "cancel"
        })  # fmt: skip


@case(task=2)
class WhoWaitsIsToldLater:
    """A router that lets a request wait decides in a later call, made for another request: its orders are returned."""

    def inputs(rng):
        script = [["submit", 1], ["submit", 2], ["submit", 3], ["prefilled", 1, False], ["cancel", 2]]
        script += [["prefilled", 3, False], ["done", 1], ["done", 3]]
        return {"options": {"limits": {"prefill": {"busy_prefill_tokens": 0}}}, "script": script}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        two, three = ["Prefill", 2, "P0", 0], ["Prefill", 3, "P0", 0]
        release = ["Release", 2, 0, "P0"]
        want = [[["Prefill", 1, "P0", 0]], [], [], [two, ["Decode", 1, "D0", 0]], [release, three],
            [["Decode", 3, "D0", 0]], [], []]  # fmt: skip
        sorted_log = [sorted(orders, key=str) for orders in got["log"]]
        lost = "the decision for a request that waited got lost: `free` returns it"
        routed(inputs, got | {"log": sorted_log}, [sorted(orders, key=str) for orders in want], {
            3: {lost: [["Decode", 1, "D0", 0]]}, 4: {lost: [release]},
        })  # fmt: skip


@case(task=2, params=[{"pool": "prefill"}, {"pool": "decode"}])
class WhoWaitsIsToldOfACancel:
    """A client that leaves makes room at either router: whoever waited there gets its turn in the same call."""

    def inputs(rng, pool):
        limits = {pool: {"busy_prefill_tokens": 0}}
        options = {"limits": limits, "prefills": 1 if pool == "prefill" else 0}
        return {
            "pool": pool,
            "options": options,
            "script": [["submit", 1], ["submit", 2], ["cancel", 1], ["cancel", 2]],
        }

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        prefill = lambda uid: [["Prefill", uid, "P0", 0]]  # noqa: E731
        decode = lambda uid: [["Decode", uid, "D0", None]]  # noqa: E731
        over = lambda uid: [["Release", uid, 0, "P0"] if inputs["pool"] == "prefill" else ["Cancel", uid, "D0"]]  # noqa: E731
        begin = prefill if inputs["pool"] == "prefill" else decode
        routed(inputs, got, [begin(1), [], [*over(1), *begin(2)], over(2)], {
            2: {"the decision for a request that waited got lost: `free` returns it": over(1)},
        })  # fmt: skip


@case(task=2)
class OneUidOneRequest:
    """A uid that is here is refused, and nothing changes; when it is over, it may come again."""

    def inputs(rng):
        uid = int(rng.integers(1, 99))
        again = [["submit", uid], ["submit", uid], ["prefilled", uid, False], ["submit", uid], ["done", uid]]
        return {"options": {}, "script": [*again, ["submit", uid], ["cancel", uid]]}

    def observe(solution, inputs):
        got = played(solution, inputs)
        kind = lambda order: ["Raised", order[1].split(":")[0]] if order[0] == "Raised" else order  # noqa: E731
        return got | {"log": [[kind(order) for order in orders] for orders in got["log"]]}

    def verify(inputs, got):
        uid = inputs["script"][0][1]
        raised, first, second = [["Raised", "ValueError"]], [["Prefill", uid, "P0", 0]], [["Prefill", uid, "P0", 1]]
        want = [first, raised, [["Decode", uid, "D0", 0]], raised, [], second, [["Release", uid, 1, "P0"]]]
        routed(inputs, got, want, {
            1: {"two requests have one uid: refuse the second with ValueError": second,
                "two requests have one uid: say so, with ValueError": []},
            2: {"the first request got lost when the second came: refuse that before anything changes": []},
        })  # fmt: skip


@case(task=2)
class ToldTwiceIsDecodedOnce:
    """The prefill worker's answer may come twice: only the first one sends the request on."""

    def inputs(rng):
        script = [["submit", 3], ["prefilled", 3, False], ["prefilled", 3, False], ["done", 3]]
        return {"options": {"hand_off": "pull"}, "script": script}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        prefill, decode = [["Prefill", 3, "P0", 0]], [["Decode", 3, "D0", 0]]
        text = "; ".join(str(orders) for orders in got["log"][2:3])
        explain(got["log"][2], [], f"the same answer came again, and this was ordered: {text}. Expected nothing")
        routed(inputs, got, [prefill, decode, [], []])


@case(task=2)
class TheTicketNamesItsWorker:
    """With several prefill workers a ticket names the one that was chosen: it is told when the client leaves."""

    def inputs(rng):
        options = {"prefills": 3, "limits": {"prefill": {"busy_prefill_tokens": 0}}}
        return {"options": options, "script": [["submit", n] for n in (1, 2, 3)] + [["cancel", n] for n in (2, 3, 1)]}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        begun = [[["Prefill", n, f"P{n - 1}", 0]] for n in (1, 2, 3)]
        released = [[["Release", n, 0, f"P{n - 1}"]] for n in (2, 3, 1)]
        routed(inputs, got, [*begun, *released], {
            3: {"the ticket names another worker than the one that was chosen": [["Release", 2, 0, "P0"]]},
        })  # fmt: skip


@case(task=2, params=[{"hand_off": h} for h in ("pull", "push", "bootstrap")])
class OneDecodeWorkerIsEnough:
    """A request that waits at the decode router was submitted there: the prompt's end submits it no second time."""

    def inputs(rng, hand_off):
        script = [["submit", 1], ["prefilled", 1, False], ["prefilled", 1, False], ["first_token", 9]]
        return {"options": {"hand_off": hand_off}, "script": [*script, ["done", 9], ["done", 1]]}

    def observe(solution, inputs):
        limits = {"decode": {"busy_prefill_tokens": 0}}  # it computes request 9's prompt: no other one may come
        run = RouteScript(solution, inputs["options"] | {"limits": limits, "prefills": 0})
        run.submit(9)
        run.call("add_prefill", run.part("handoff.Peer")("P0"))
        run.log.clear()
        run.play(inputs["script"])
        return {"log": run.log, "books": run.books()}

    def verify(inputs, got):
        raised = [orders for orders in got["log"][1:3] if orders and orders[0][0] == "Raised"]
        twice = "it waits at the decode router, and was submitted there a second time: `decoder` does not tell"
        routed(inputs, got, [[["Prefill", 1, "P0", 0]], [], [], [["Decode", 1, "D0", 0]], [], []], {
            at: {twice: raised[0]} for at in (1, 2) if raised
        })  # fmt: skip


@case(task=2)
class AnOldAnswerIsNobodys:
    """A request that is tried again has another transfer: what comes late for the first one is dropped."""

    def inputs(rng):
        script = [["submit", 1], ["cancel", 1], ["submit", 1], ["prefilled", 1, False, 0], ["prefilled", 1, True, 0]]
        return {"options": {}, "script": [*script, ["prefilled", 1, False, 1], ["done", 1]]}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        release = ["Release", 1, 0, "P0"]
        want = [[["Prefill", 1, "P0", 0]], [release], [["Prefill", 1, "P0", 1]], [], [], [["Decode", 1, "D0", 1]], []]
        routed(inputs, got, want, {
            3: {"an answer of the first try was taken for the second's": [["Decode", 1, "D0", 1]]},
            4: {"an answer of the first try ended the second": [["Release", 1, 1, "P0"]]},
        })  # fmt: skip


@case(task=2, params=[{"fallback": False}, {"fallback": True}])
class AFailedPromptFailsOrFallsBack:
    """A prefill worker that fails ends the request; with `fallback` the decode worker computes the prompt."""

    def inputs(rng, fallback):
        return {"options": {"fallback": fallback}, "script": [["submit", 1], ["failed", 1], ["done", 1]]}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        last = [["Decode", 1, "D0", None]] if inputs["options"]["fallback"] else [["Fail", 1, "prefill"]]
        routed(inputs, got, [[["Prefill", 1, "P0", 0]], [["Release", 1, 0, "P0"], *last], []], {
            1: {"the ticket of a prompt that failed was given to the decode worker": [["Decode", 1, "D0", 0]]},
        })  # fmt: skip


@case(task=2)
class ALocalPromptSkipsTheFirstStage:
    """A prompt that stays, at once or because the chosen worker is busy, leaves no trace at the prefill router."""

    def inputs(rng):
        return {"answers": [True, False, True, False, False], "ahead": int(rng.integers(2, 9)) * 4}

    def observe(solution, inputs):
        rule = Noted(inputs["answers"])
        run = RouteScript(solution, {"rule": rule})
        for uid in (1, 2):
            run.submit(uid)
        log, books = list(run.log), run.books()
        run.submit(3, inputs["ahead"])
        return {"log": log, "books": books, "asked": len(rule.asked)}

    def verify(inputs, got):
        want = [[["Decode", 1, "D0", None]], [["Decode", 2, "D0", None]]]
        explain(got["log"], want, f"two prompts that stay give {got['log']}, expected {want}", {
            "the prompt stays, and yet the prefill worker was told": [*want[:1], [["Prefill", 2, "P0", 0], *want[1]]],
            "the rule is to be asked again when a prefill worker is chosen": [*want[:1], [["Prefill", 2, "P0", 0]]],
            "local and remote are the wrong way round": [[["Prefill", 1, "P0", 0]], [["Prefill", 2, "P0", 0]]],
        })  # fmt: skip
        explain(got["books"], [0, 2, 0, 2, 2], f"the books (counted, placed, journeys) say {got['books']}: "
            "a prompt that stays must be freed at the prefill router")  # fmt: skip
        explain(got["asked"], 5, f"the rule was asked {got['asked']} times for three prompts, expected 5: before a "
            "prefill worker is chosen, and again when one is")  # fmt: skip


@case(task=2, params=[{"stage": "prefill"}, {"stage": "decode"}])
class ARefusedRequestFails:
    """A router that refuses a request ends it: the client is told, and the other router forgets it."""

    def inputs(rng, stage):
        return {"stage": stage, "options": {"hand_off": "pull"}}

    def observe(solution, inputs):
        run = RouteScript(solution, {"limits": {inputs["stage"]: {"overload_blocks": 0}}})
        if inputs["stage"] == "prefill":
            return {"log": run.play([["submit", 1], ["submit", 2], ["cancel", 1]]).log, "books": run.books()}
        script = [["submit", 1], ["submit", 2], ["prefilled", 1, False], ["prefilled", 2, False], ["done", 1]]
        return {"log": run.play(script).log, "books": run.books()}

    def verify(inputs, got):
        fail = ["Fail", 2, "overloaded"]
        if inputs["stage"] == "prefill":
            script, want = (
                ["submit", "submit", "cancel"],
                [[["Prefill", 1, "P0", 0]], [fail], [["Release", 1, 0, "P0"]]],
            )
        else:
            script = ["submit", "submit", "prefilled 1", "prefilled 2", "done"]
            want = [[["Prefill", 1, "P0", 0]], [["Prefill", 2, "P0", 0]], [["Decode", 1, "D0", 0]],
                [["Release", 2, 0, "P0"], fail], []]  # fmt: skip
        routed({"script": script}, got, want, {
            3: {"a prompt that nobody will decode keeps its pages: release it": [fail]},
        })  # fmt: skip


@case(task=2)
class NearWorkersComeFirst:
    """With `reach`, only decode workers near the chosen prefill worker may decode; if none is left, any."""

    def inputs(rng):
        return {"script": [["submit", 1], ["prefilled", 1, False], ["remove_decode", "D1"], ["submit", 2],
            ["prefilled", 2, False], ["done", 2]]}  # fmt: skip

    def observe(solution, inputs):
        return played(solution, {"options": {"decodes": 3, "reach": {"P0": ["D1"]}}, **inputs})

    def verify(inputs, got):
        asked = [workers for _, workers, _ in got["queries"] if "D0" in workers or "D1" in workers or "D2" in workers]
        explain(asked, [["D1"], ["D0", "D2"]], f"decode workers to choose from were {asked}", {
            "workers far away may decode too": [["D0", "D1", "D2"], ["D0", "D2"]],
        })  # fmt: skip


# Task 3


def sends(solution, inputs: dict) -> list:
    """A script of a prefill side, played."""
    return PrefillScript(solution, SENDER | inputs.get("options", {})).play(inputs["script"])


SENDER = {"page_size": 4, "pages": 32, "ranks": 1, "kv_heads": 4, "expiry": 480 * SECOND}
EXPIRY = SENDER["expiry"]
FOREVER = 10**15
KEPT, GIVEN_BACK = 29, 32
"""Pages that can be had while a prompt of 10 tokens is kept, and after."""


def copied(number: int, pairs: list, until: int, part: tuple = (0, 0, 0, 4)) -> list:
    """A Copy in plain values."""
    return ["Copy", number, list(part), pairs, until + GRACE]


@case(task=3)
class EachHeadGoesWhereItIsNeeded:
    """Every rank of the decode worker gets each of its heads once, from the first rank that has it."""

    def inputs(rng):
        return {"sizes": [list(each) for each in product((1, 2, 4, 8), repeat=3)]}

    def observe(solution, inputs):
        parts = solution.module("cluster.connector").parts
        return [[list(part) for part in parts(*sizes)] for sizes in inputs["sizes"]]

    def verify(inputs, got):
        for (heads, sources, targets), parts in zip(inputs["sizes"], got, strict=True):

            def flat(parts) -> list:
                return sorted([t, h, s] for s, t, first, count in parts for h in range(first, first + count))

            def every(choose, targets=targets, heads=heads, sources=sources) -> list:
                held = [heads_of(s, sources, heads) for s in range(sources)]
                wanted = [[t, h] for t in range(targets) for h in heads_of(t, targets, heads)]
                return sorted([t, h, s] for t, h in wanted for s in choose([s for s in range(sources) if h in held[s]]))

            text = f"{heads} KV heads from {sources} ranks to {targets}: parts {parts}"
            explain(flat(parts), every(lambda having: having[:1]), text, {
                "heads that several ranks have are sent by each of them": every(lambda having: having),
                "heads that several ranks have are sent by the last, not the first": every(lambda having: having[-1:]),
            })  # fmt: skip
            if len({(s, t) for s, t, *_ in parts}) < len(parts):
                raise AssertionError(f"{text}: neighbouring heads between two ranks are one part")


@case(task=3, params=[{"trace": False}, {"trace": True}])
class ThePagesOutliveTheRow:
    """A marked request that had all its tokens leaves its row, not its pages; any other end frees both."""

    def inputs(rng, trace):
        return {"trace": trace, "tokens": 4 * int(rng.integers(1, 7)) + int(rng.integers(1, 4))}

    def observe(solution, inputs):
        ids, result = list(range(inputs["tokens"])), {}
        for marked, reason in product((True, False), ("length", "stop", "abort", None)):
            side = Side(solution, 4, 16, inputs["trace"])
            request = side.request(1, ids)
            if marked:
                side.memory.marked[request] = None
            pages = side.compute(request, reason)
            hold = side.memory.holds.get(request)
            same = hold is not None and list(hold.pages) == pages
            name = f"{'marked' if marked else 'not marked'}, ended with {reason}"
            result[name] = [side.memory.free_rows, 16 - side.free, same, request in side.memory.marked]
            if hold is not None:
                result["tokens"] = int(hold.tokens)
        return result

    def verify(inputs, got):
        pages = -(-inputs["tokens"] // 4)
        tokens = got.pop("tokens", None)
        for name, outcome in got.items():
            text = (
                f"{name}: free rows, pages that cannot be had, whether the hold has the row's, still marked: {outcome}"
            )
            kept = name == "marked, ended with length"
            want = [4, pages, True, False] if kept else [4, 0, False, name == "marked, ended with None"]
            explain(outcome, want, text, {
                "a request that was preempted has not ended: its pages are computed again": [4, pages, True, False],
                "the mark of a request that was preempted got lost: it will run again": [4, 0, False, False],
                "the row must be free: only the pages are kept": [3, pages, True, False],
                "the last page, which is not whole, was freed": [4, inputs["tokens"] // 4, True, False],
            } if kept or "None" in name else {
                "only a marked request that had all its tokens is kept": [4, pages, True, name.startswith("marked")],
                "only a request that ended with length has a prompt to hand over": [4, pages, True, False],
            })  # fmt: skip
        explain(tokens, inputs["tokens"], f"the hold of a prompt of {inputs['tokens']} tokens says {tokens}", {
            "the token that was just chosen has no keys and values yet": inputs["tokens"] + 1,
        })  # fmt: skip


@case(task=3, params=[{"trace": False}, {"trace": True}])
class HoldsWithOneBeginning:
    """Prompts with a common beginning are held apart: each keeps what it needs, until it is let go, once."""

    def inputs(rng, trace):
        return {"trace": trace, "common": int(rng.integers(2, 5)) * 4, "rest": [3, 6]}

    def observe(solution, inputs):
        side, free = Side(solution, 4, 32, inputs["trace"]), []
        requests = [
            side.request(n, [*range(inputs["common"]), *range(100 * (n + 1), 100 * (n + 1) + rest)])
            for n, rest in enumerate(inputs["rest"])
        ]
        for request in requests:
            side.memory.marked[request] = None
            side.compute(request)
            free.append(side.free)
        for request in requests:
            side.memory.let_go(request)
            free.append(side.free)
        return [free, side.memory.tree.evictable + side.memory.allocator.available, side.memory.held_pages]

    def verify(inputs, got):
        common = inputs["common"] // 4
        want = [32 - common - 1, 32 - common - 3, 32 - common - 2, 32]
        text = f"pages that can be had after two prompts were computed and let go: {got[0]}, expected {want}"
        explain(got[0], want, text, {
            "a hold here is not `filled`: no row will begin with it, and nobody may give it up": [
                *want[:2], want[2] - 1, want[3] - 2],
        })  # fmt: skip
        explain(got[1:], [32, 0], "at the end all pages are free or in the tree")


@case(task=3, params=[{"trace": False}, {"trace": True}])
class WhatIsHeldIsShared:
    """A prompt that is held was shared first: the next one with its beginning finds it, and two alike keep one copy."""

    def inputs(rng, trace):
        return {"trace": trace, "tokens": 4 * int(rng.integers(1, 7)) + int(rng.integers(1, 4))}

    def observe(solution, inputs):
        side, ids = Side(solution, 4, 32, inputs["trace"]), list(range(inputs["tokens"]))
        memory, requests, free = side.memory, [side.request(n, ids) for n in range(2)], []
        for request in requests:
            memory.marked[request] = None
            side.prefill(request)
        for request in requests:
            request.finish_reason = "length"
            memory.close(request)
            free.append(side.free)
        first, second = (list(memory.holds[request].pages) for request in requests)
        found = [memory.match(side.request(2, ids)).tokens]
        for request in requests:
            memory.let_go(request)
        found.append(memory.match(side.request(3, ids)).tokens)
        common = sum(a == b for a, b in zip(first, second, strict=True))
        return {"found": found, "common": common, "free": [*free, side.free]}

    def verify(inputs, got):
        whole = inputs["tokens"] // 4
        text = f"{inputs['tokens']} tokens, computed twice at once, pages of 4"
        explain(got["found"], [4 * whole] * 2, f"{text}: tokens that the next one finds, while they are held and "
            f"after: {got['found']}, expected {[4 * whole] * 2}", {
            "it was not shared before its pages were held: the prefix cache of the prefill worker is dead": [0, 0],
        })  # fmt: skip
        explain(got["common"], whole, f"{text}: the holds have {got['common']} pages in common, expected {whole}", {
            "the row's pages were read before it was shared: the tree had other ones, and these are free": 0,
        })  # fmt: skip
        want = [32 - 2 * whole - 2, 32 - whole - 2, 32]
        explain(got["free"], want, f"{text}: pages that can be had while one is held, both are, and none is: "
            f"{got['free']}, expected {want}")  # fmt: skip


@case(task=3)
class OnlyAcceptedPromptsAreHandedOver:
    """The worker tells of all that end: one that was never accepted here, or has ended before, gives no orders."""

    def inputs(rng):
        own, ready = [1, "own", 9, int(rng.integers(5, 30))], [3, "ready", 1, "length"]
        script = [own, [2, "accept", 1, 10], ready, [4, "again", 1], [5, "release", 1], [6, "again", 1]]
        return {"script": [*script, [7, *own[1:]]]}

    def observe(solution, inputs):
        return sends(solution, inputs)

    def verify(inputs, got):
        raised = "a request that is not in `self.requests` has no orders, and raises nothing: `get`, or `pop` with None"
        want = [[[], 32], [True, 32], [[], KEPT], [[], KEPT], [[], GIVEN_BACK], [[], GIVEN_BACK], [[], GIVEN_BACK]]
        steps(inputs["script"], got, want, {
            at: {raised: outcome} for at, outcome in enumerate(got) if isinstance(outcome[0], str)
        })  # fmt: skip


@case(task=3)
class EitherMayComeFirst:
    """The prompt or the question: whoever comes second starts the same copies."""

    def inputs(rng):
        ask = ["ask", 7, 0, 1, [51, 50, 52], FOREVER]
        first = [[1, "accept", 7, 10], [5, "ready", 7, "length"], [6, *ask], [9, "moved", 0, True]]
        second = [[1, "accept", 7, 10], [4, *ask], [6, "ready", 7, "length"], [9, "moved", 0, True]]
        third = [[0, *ask], [1, "accept", 7, 10], [6, "ready", 7, "length"], [9, "moved", 0, True]]
        return {"scripts": [first, second, third]}

    def observe(solution, inputs):
        return [sends(solution, {"script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        copy = [copied(7, [[0, 51], [1, 50], [2, 52]], FOREVER)]
        last = [[], GIVEN_BACK]
        wants = [
            [[True, 32], [[], KEPT], [copy, KEPT], last],
            [[True, 32], [[], 32], [copy, KEPT], last],
            [[[], 32], [True, 32], [copy, KEPT], last],
        ]
        for script, log, want in zip(inputs["scripts"], got, wants, strict=True):
            steps(script, log, want, {
                1: {"a question that comes before the prompt was refused": [[["Refused", 7, 0]], 32],
                    "nobody has asked yet: the pages must be kept": [[], GIVEN_BACK]},
                2: {"the question that came before the prompt was forgotten": [[], KEPT],
                    "it is kept for 480 s from when it was computed": [[["Refused", 7, 0]], KEPT],
                    "the pages were freed though a copy is under way": [copy, GIVEN_BACK]},
                3: {"all was sent, and the pages are kept": [[], KEPT]},
            })  # fmt: skip


@case(task=3)
class AllWhoWaitAreServed:
    """Every rank that asked before the prompt gets its copy; who waited long does not make the pages be kept longer."""

    def inputs(rng):
        asks = [[n, "ask", 7, n, 2, [60 + n], FOREVER] for n in rng.permutation(2).tolist()]
        base = [[1, "accept", 7, 3], *asks, [6, "ready", 7, "length"]]
        return {"script": [*base, [9, "moved", 0, True], [5 + EXPIRY, "expire"], [6 + EXPIRY, "expire"]]}

    def observe(solution, inputs):
        run = PrefillScript(solution, SENDER)
        log = run.play(inputs["script"][:-2])
        failed = run.play([[9, "moved", 1, False]]) + run.play(inputs["script"][-2:])
        return [log, failed, len(run.sender.requests), run.sender.ended(run.request(99, [1, 2]), 10)]

    def verify(inputs, got):
        log, failed, left, stranger = got
        copies = [copied(7, [[0, 60 + n]], FOREVER, (0, n, 2 * n, 2)) for _, _, _, n, *_ in inputs["script"][1:3]]
        want = [[True, 32], [[], 32], [[], 32], [copies, 31], [[], 31]]
        steps(inputs["script"][:-2], log, want, {
            3: {"only the first rank that waited was served": [copies[:1], 31]},
        })  # fmt: skip
        explain(failed, [[[], 31], [[], 31], [[], 32]], f"one of two copies failed, and 480 s after the prompt its "
            f"page is to be free, not before: {failed}", {
            "whoever asks does not make the pages be kept longer": [[[], 31]] * 3,
        })  # fmt: skip
        explain(left, 0, f"{left} requests are left in `requests`, though all have ended")
        explain(stranger, [], f"a request that goes nowhere has ended: {stranger}")


@case(task=3)
class OnlyTheLastPagesGo:
    """If the other side has the beginning, the last n pages go; more than there are is refused, and frees nothing."""

    def inputs(rng):
        base = [[1, "accept", 1, 10], [2, "ready", 1, "length"]]
        return {"scripts": [[*base, [3, "ask", 1, 0, 1, list(range(60, 60 + n)), 900]] for n in (1, 2, 3, 4)]}

    def observe(solution, inputs):
        return [sends(solution, {"script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        for n, (script, log) in enumerate(zip(inputs["scripts"], got, strict=True), 1):
            pairs = [[3 - n + i, 60 + i] for i in range(n)]
            right = [[copied(1, pairs, 900)] if n < 4 else [["Refused", 1, 0]], KEPT]
            wrong = [[copied(1, [[i, 60 + i] for i in range(n)], 900)], KEPT]
            steps(script, log, [[True, 32], [[], KEPT], right], {
                2: {"the other side has the beginning: the last pages go, not the first": wrong,
                    "fewer pages than were asked for: nothing may be sent": [
                        [copied(1, [[i, 60 + i] for i in range(3)], 900)], KEPT],
                    "a question that cannot be answered frees nothing": [[["Refused", 1, 0]], GIVEN_BACK]},
            })  # fmt: skip


SIZES = [(1, 4), (2, 4), (4, 2), (8, 2), (4, 4)]


@case(task=3, params=[{"sources": s, "targets": t, "in_turn": turn} for s, t in SIZES for turn in (False, True)])
class KeptUntilAllHaveIt:
    """The pages are free when every part has arrived at every rank, not before, whatever the order."""

    def inputs(rng, sources, targets, in_turn):
        each = max(min(sources, 4) // targets, 1)
        asks = [[3, "ask", 1, rank, targets, [40 + rank], 900] for rank in rng.permutation(targets).tolist()]
        moves = [[4, "moved", int(copy), True] for copy in rng.permutation(targets * each)]
        actions = [*asks, *moves]
        if in_turn:  # a rank asks when the one before it has all
            moves = [[4, "moved", copy, True] for copy in range(targets * each)]
            actions = [a for i, ask in enumerate(asks) for a in (ask, *moves[i * each : (i + 1) * each])]
        return {"options": {"ranks": sources}, "script": [[1, "accept", 1, 3], [2, "ready", 1, "length"], *actions]}

    def observe(solution, inputs):
        return sends(solution, inputs)

    def verify(inputs, got):
        free, script = [outcome[1] for outcome in got[2:]], inputs["script"][2:]
        want = [31] * (len(free) - 1) + [32]
        first = next(i for i, action in enumerate(script) if action[1] == "moved")
        sent = f"{inputs['options']['ranks']} ranks send to the ranks that ask in {script}"
        explain(free, want, f"{sent}: free pages after each: {free}, expected {want}", {
            "several ranks take from one: the first that has all must not free the pages": [
                *[31] * first, *[32] * (len(want) - first)],
            "all parts have arrived, and the pages are kept": [31] * len(free),
        })  # fmt: skip
        begun, ended = sum(len(outcome[0]) for outcome in got[2:]), sum(action[1] == "moved" for action in script)
        explain(begun, ended, f"{sent}: {begun} copies were begun, expected {ended}")


@case(task=3)
class AFailedCopyIsNotSent:
    """A copy that failed does not count; the pages wait for a release, or expire."""

    def inputs(rng):
        base = [[1, "accept", 1, 10], [2, "ready", 1, "length"], [3, "ask", 1, 0, 1, [4, 5, 6], 900]]
        return {"script": [*base, [4, "moved", 0, False], [5, "release", 1]]}

    def observe(solution, inputs):
        return sends(solution, inputs)

    def verify(inputs, got):
        copy = copied(1, [[0, 4], [1, 5], [2, 6]], 900)
        want = [[True, 32], [[], KEPT], [[copy], KEPT], [[], KEPT], [[], GIVEN_BACK]]
        steps(inputs["script"], got, want, {3: {"a copy that failed was counted as sent": [[], GIVEN_BACK]}})


@case(task=3)
class NothingBeginsAfterTheExpiry:
    """480 s after the prompt nobody gets it any more; pages that nobody takes are free then, exactly."""

    def inputs(rng):
        start = int(rng.integers(1, 10**12))
        base, end = [[1, "accept", 1, 10], [start, "ready", 1, "length"]], start + EXPIRY
        ask = ["ask", 1, 0, 1, [4, 5, 6], end + EXPIRY]
        kept = [[*base, [end - 1, "expire"], [end - 1, *ask]]]
        return {"scripts": [*kept, [*base, [end, *ask], [end, "expire"]], [*base, [end, "expire"], [end, *ask]]]}

    def observe(solution, inputs):
        return [sends(solution, {"script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        refused, until = [["Refused", 1, 0]], inputs["scripts"][0][3][-1]
        copy = [copied(1, [[0, 4], [1, 5], [2, 6]], until)]
        base = [[True, 32], [[], KEPT]]
        wants = [
            [*base, [[], KEPT], [copy, KEPT]],
            [*base, [refused, KEPT], [[], GIVEN_BACK]],
            [*base, [[], GIVEN_BACK], [refused, GIVEN_BACK]],
        ]
        for script, log, want in zip(inputs["scripts"], got, wants, strict=True):
            steps(script, log, want, {
                2: {"a copy began after the expiry": [copy, KEPT], "the pages expired too early": [[], GIVEN_BACK],
                    "a question that is refused frees nothing: `expire` does": [refused, GIVEN_BACK],
                    "nobody takes these pages any more: free them": [[], KEPT]},
                3: {"nobody takes these pages any more: free them": [[], KEPT],
                    "what had expired is forgotten, and late questions wait for ever": [[], GIVEN_BACK],
                    "the pages expired too early": [refused, KEPT]},
            })  # fmt: skip


@case(task=3)
class NotFreedWhileSending:
    """At its expiry a prompt that is being copied stays; no other copy begins, and the end of the last one frees it."""

    def inputs(rng):
        base = [[1, "accept", 1, 10], [2, "ready", 1, "length"]]
        late = [[2 + EXPIRY, "expire"], [3 + EXPIRY, "ask", 1, 1, 2, [7, 8, 9], FOREVER]]
        script = [*base, [9, "ask", 1, 0, 2, [4, 5, 6], FOREVER], *late, [5 + EXPIRY, "moved", 0, True]]
        return {"script": script}

    def observe(solution, inputs):
        return sends(solution, inputs)

    def verify(inputs, got):
        first = copied(1, [[0, 4], [1, 5], [2, 6]], FOREVER, (0, 0, 0, 2))
        second = copied(1, [[0, 7], [1, 8], [2, 9]], FOREVER, (0, 1, 2, 2))
        refused = [["Refused", 1, 1]]
        want = [[True, 32], [[], KEPT], [[first], KEPT], [[], KEPT], [refused, KEPT], [[], GIVEN_BACK]]
        steps(inputs["script"], got, want, {
            3: {"pages were freed while they are sent: somebody else's KV arrives": [[], GIVEN_BACK]},
            4: {"a copy began after the expiry": [[second], KEPT]},
            5: {"it is too old and nothing is under way: free it": [[], KEPT]},
        })  # fmt: skip


@case(task=3)
class AQuestionIsGoodForSomeTime:
    """A question is refused from `until` on; one that waited so long is answered, and its prompt freed later."""

    def inputs(rng):
        base = [[1, "accept", 1, 10], [2, "ready", 1, "length"]]
        ask = ["ask", 1, 0, 1, [4, 5, 6], 100]
        waits = [[1, "accept", 1, 10], [5, *ask], [100, "expire"], [150, "ready", 1, "length"]]
        return {"scripts": [[*base, [99, *ask]], [*base, [100, *ask]], waits, [*waits[:2], [100, *base[1][1:]]]]}

    def observe(solution, inputs):
        return [sends(solution, {"script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        refused, copy = [["Refused", 1, 0]], [copied(1, [[0, 4], [1, 5], [2, 6]], 100)]
        base = [[True, 32], [[], KEPT]]
        wants = [
            [*base, [copy, KEPT]],
            [*base, [refused, KEPT]],
            [[True, 32], [[], 32], [refused, 32], [[], GIVEN_BACK]],
            [[True, 32], [[], 32], [refused, KEPT]],
        ]
        for script, log, want in zip(inputs["scripts"], got, wants, strict=True):
            steps(script, log, want, {
                2: {"a copy began when who asked waits no longer": [copy, KEPT],
                    "who asked in vain must get an answer": [[], 32]},
                3: {"nobody will ask for this prompt any more: its pages are kept in vain": [[], KEPT]},
            })  # fmt: skip


@case(task=3)
class ReleasedAtAnyMoment:
    """A release ends a hand-off: before the prompt comes, while it is computed, kept or sent, or again."""

    def inputs(rng):
        accept, ready, release = [1, "accept", 1, 10], [4, "ready", 1, "length"], [6, "release", 1]
        ask = [5, "ask", 1, 0, 1, [4, 5, 6], 900]
        before = [[0, "release", 1], accept]
        computing = [accept, [2, *ask[1:]], [3, *release[1:]], ready]
        kept = [accept, ready, release, [7, *release[1:]], [8, *ask[1:]]]
        sent = [accept, ready, ask, release, [9, "moved", 0, True]]
        return {"scripts": [before, computing, kept, sent]}

    def observe(solution, inputs):
        return [sends(solution, {"script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        refused, copy = [["Refused", 1, 0]], [copied(1, [[0, 4], [1, 5], [2, 6]], 900)]
        wants = [
            [[[], 32], [False, 32]],
            [[True, 32], [[], 32], [refused, 32], [[], GIVEN_BACK]],
            [[True, 32], [[], KEPT], [[], GIVEN_BACK], [[], GIVEN_BACK], [refused, GIVEN_BACK]],
            [[True, 32], [[], KEPT], [copy, KEPT], [[], KEPT], [[], GIVEN_BACK]],
        ]
        for script, log, want in zip(inputs["scripts"], got, wants, strict=True):
            steps(script, log, want, {
                1: {"it was given up before it came: it must not run": [True, 32]},
                2: {"who waits for a prompt that was given up must get an answer": [[], 32],
                    "nobody will take it: free it at once": [[], KEPT]},
                3: {"a prompt that was given up while it was computed is kept": [[], KEPT],
                    "pages were freed while they are sent: somebody else's KV arrives": [[], GIVEN_BACK]},
                4: {"it was given up: late questions wait for ever": [[], GIVEN_BACK]},
            })  # fmt: skip


@case(task=3, params=[{"reason": "stop"}, {"reason": "abort"}])
class AnotherEndHandsNothingOver:
    """A prefill request that did not reach its one token's length is freed at once, and who asks is refused."""

    def inputs(rng, reason):
        ask = ["ask", 1, 0, 1, [4, 5, 6], 900]
        early = [[1, "accept", 1, 10], [2, *ask], [3, "ready", 1, reason]]
        return {"scripts": [early, [early[0], early[2], [4, *ask]]]}

    def observe(solution, inputs):
        return [sends(solution, {"script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        refused = [["Refused", 1, 0]]
        wants = [[[True, 32], [[], 32], [refused, 32]], [[True, 32], [[], 32], [refused, 32]]]
        for script, log, want in zip(inputs["scripts"], got, wants, strict=True):
            steps(script, log, want, {
                1: {"there is nothing to hand over, and pages are kept": [[], KEPT]},
                2: {"who asks for a prompt that will never come must get an answer": [[], 32]},
            })  # fmt: skip


@case(task=3)
class NothingMissingIsSentAtOnce:
    """A decode worker that has all asks for no page: that counts as sent, for this rank."""

    def inputs(rng):
        base = [[1, "accept", 1, 10], [2, "ready", 1, "length"]]
        return {"script": [*base, [3, "ask", 1, 1, 2, [], 900], [4, "ask", 1, 0, 2, [], 900], [5, "release", 1]]}

    def observe(solution, inputs):
        return sends(solution, inputs)

    def verify(inputs, got):
        want = [[True, 32], [[], KEPT], [[], KEPT], [[], GIVEN_BACK], [[], GIVEN_BACK]]
        every = copied(1, [], 900, (0, 1, 2, 2))
        steps(inputs["script"], got, want, {
            2: {"only one of two ranks has asked": [[], GIVEN_BACK],
                "nothing is missing, and something is copied": [[every], KEPT]},
            3: {"nobody needs these pages: the decode worker has all": [[], KEPT]},
        })  # fmt: skip


@case(task=3)
class SaidTwiceIsSentOnce:
    """A question that the network delivers twice starts one copy; after the end it is refused."""

    def inputs(rng):
        ask = ["ask", 1, 0, 2, [4, 5, 6], 900]
        base = [[1, "accept", 1, 10], [2, "ready", 1, "length"], [3, *ask], [4, *ask], [5, "moved", 0, True]]
        return {"script": [*base, [6, "ask", 1, 1, 2, [7, 8, 9], 900], [7, "moved", 1, True], [8, *ask]]}

    def observe(solution, inputs):
        return sends(solution, inputs)

    def verify(inputs, got):
        first = [copied(1, [[0, 4], [1, 5], [2, 6]], 900, (0, 0, 0, 2))]
        second = [copied(1, [[0, 7], [1, 8], [2, 9]], 900, (0, 1, 2, 2))]
        want = [[True, 32], [[], KEPT], [first, KEPT], [[], KEPT], [[], KEPT], [second, KEPT], [[], GIVEN_BACK]]
        steps(inputs["script"], got, [*want, [[["Refused", 1, 0]], GIVEN_BACK]], {
            3: {"a question that came twice was answered twice": [first, KEPT]},
        })  # fmt: skip


@case(task=3)
class GenerationsAreApart:
    """Two hand-offs of one uid have nothing to do with each other: the end of the first does not touch the second."""

    def inputs(rng):
        first = [[1, "accept", 1, 10], [2, "ready", 1, "length"]]
        second = [[3, "accept", 2, 10], [4, "ready", 2, "length"]]
        return {
            "script": [*first, *second, [5, "release", 1], [6, "ask", 2, 0, 1, [4, 5, 6], 900], [7, "moved", 0, True]]
        }

    def observe(solution, inputs):
        return sends(solution, inputs)

    def verify(inputs, got):
        copy = [copied(2, [[0, 4], [1, 5], [2, 6]], 900)]
        want = [[True, 32], [[], 29], [True, 29], [[], 26], [[], 29], [copy, 29], [[], 32]]
        steps(inputs["script"], got, want)


# Task 4


def receives(solution, inputs: dict) -> list:
    """A script of a decode side, played."""
    return DecodeScript(solution, RECEIVER | inputs.get("options", {})).play(inputs["script"])


RECEIVER = {"page_size": 4, "pages": 16, "ranks": 1, "kv_heads": 4, "sources": 1, "expiry": EXPIRY}
TEN = list(range(10))
"""A prompt of three pages, the last of them not whole."""


def asked(number: int, pages: int, now: int, rank: int = 0, ranks: int = 1) -> list:
    """An Ask in plain values."""
    return ["Ask", number, "P", rank, ranks, pages, now + EXPIRY]


@case(task=4, params=[{"trace": False, "ranks": 1}, {"trace": False, "ranks": 4}])
class AskForWhatIsMissing:
    """Every rank asks for the pages that are not cached here, for 480 s; all pages of the prompt are held meanwhile."""

    def inputs(rng, trace, ranks):
        return {
            "options": {"ranks": ranks, "trace": trace},
            "now": int(rng.integers(1, 10**12)),
            "hit": int(rng.integers(0, 3)),
        }

    def observe(solution, inputs):
        script = [[0, "cached", [*TEN[: 4 * inputs["hit"]], 77]], [inputs["now"], "begin", 1, TEN]]
        run = DecodeScript(solution, RECEIVER | inputs["options"])
        return [*run.play(script), int(run.requests[1].hit_tokens)]

    def verify(inputs, got):
        ranks, now, hit = inputs["options"]["ranks"], inputs["now"], inputs["hit"]
        every = lambda pages: [asked(1, pages, now, rank, ranks) for rank in range(ranks)]  # noqa: E731
        want = [every(3 - hit), 13]
        explain(got[1], want, f"{hit} of 3 pages are cached: got {got[1]}, expected {want}", {
            "what is cached here was asked for as well": [every(3), 13],
            "every rank has pages of its own to fill: each must ask": [every(3 - hit)[:1], 13],
        })  # fmt: skip
        explain(got[2], 4 * hit, f"{hit} of 3 pages are cached here, and `hit_tokens` of the request is {got[2]}", {
            "`hit_tokens` counts tokens, not pages": hit,
        })  # fmt: skip


@case(task=4)
class NothingMissingStartsAtOnce:
    """A prompt that is cached here runs at once, and the prefill worker hears that it may free its pages."""

    def inputs(rng):
        eight = TEN[:8]
        return {"script": [[0, "cached", [*eight, 77]], [5, "begin", 1, eight], [6, "next"], [7, "run", 1]]}

    def observe(solution, inputs):
        return receives(solution, inputs)

    def verify(inputs, got):
        want = [[None, 16], [[asked(1, 0, 5), ["Start", 1]], 13], [None, 13], [8, 16]]
        steps(inputs["script"], got, want, {
            1: {"the prefill worker does not hear that its pages are not needed: they expire": [[["Start", 1]], 13],
                "nothing is missing, and the request waits": [[asked(1, 0, 5)], 13]},
        })  # fmt: skip


@case(task=4, params=[{"sources": s, "ranks": r} for s, r in ((1, 1), (1, 4), (2, 4), (4, 2), (8, 2), (8, 4))])
class RunsWhenAllHasArrived:
    """A request starts when every copy for every rank has arrived, whatever the order; then all is there."""

    def inputs(rng, sources, ranks):
        parts = [[s, t] for t in range(ranks) for h in heads_of(t, ranks, 4)
                 for s in [next(s for s in range(sources) if h in heads_of(s, sources, 4))]]  # fmt: skip
        parts = [list(pair) for pair in dict.fromkeys(map(tuple, parts))]
        moves = [[10 + i, "moved", 1, parts[j], 3, 3] for i, j in enumerate(rng.permutation(len(parts)).tolist())]
        return {
            "options": {"sources": sources, "ranks": ranks},
            "script": [[5, "begin", 1, TEN], *moves, [99, "run", 1]],
        }

    def observe(solution, inputs):
        return receives(solution, inputs)

    def verify(inputs, got):
        ranks, moves = inputs["options"]["ranks"], len(inputs["script"]) - 2
        asks = [asked(1, 3, 5, rank, ranks) for rank in range(ranks)]
        want = [[asks, 13], *[[[], 13]] * (moves - 1), [[["Start", 1]], 13], [10, 16]]
        steps(inputs["script"], got, want, {
            at: {"it runs though not all has arrived: KV of some heads is wrong": [[["Start", 1]], 13],
                 "all has arrived, and it waits": [[], 13]}
            for at in range(1, moves + 1)
        })  # fmt: skip


@case(task=4, params=[{"recompute": True}, {"recompute": False}])
class WhatDidNotArriveIsComputed:
    """After a failure a request begins with the pages that all ranks have, or fails; the prefill worker is told."""

    def inputs(rng, recompute):
        first = int(rng.integers(0, 2))
        second = first + int(rng.integers(1, 3 - first))
        arrive = [[10, "moved", 1, [0, 0], 3, first], [11, "moved", 1, [0, 1], 3, second]]
        partly = [[10, "moved", 1, [0, 1], 3, 2], [11, "moved", 1, [0, 0], 3, 1]]
        refuse = [[10, "moved", 1, [0, 0], 3, 3], [11, "refused", 1, 1]]
        options = {"ranks": 2, "recompute": recompute}
        last = [[20, "run", 1]] if recompute else []
        return {
            "options": options,
            "scripts": [[[5, "begin", 1, TEN], *each, *last] for each in (arrive, partly, refuse)],
        }

    def observe(solution, inputs):
        return [receives(solution, {"options": inputs["options"], "script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        asks = [asked(1, 3, 5, rank, 2) for rank in range(2)]
        release = ["Release", 1, "P"]
        for script, log in zip(inputs["scripts"], got, strict=True):
            came = [action[-1] for action in script[1:3] if action[1] == "moved"]
            least = min(came) if len(came) == 2 else 0
            if inputs["options"]["recompute"]:
                last = [[[release, ["Start", 1]], 16 - least], [4 * least, 16]]
            else:
                last = [[[release, ["Stop", 1]], 16]]
            steps(script, log, [[asks, 13], [[], 13], *last], {
                2: {"the prefill worker keeps pages that nobody will take: release them": [last[0][0][1:], last[0][1]],
                    "not all has arrived, and it runs as if it had": [[["Start", 1]], 13],
                    "it should fail, not be computed again": [[release, ["Start", 1]], 16 - least],
                    "it should be computed again, not fail": [[release, ["Stop", 1]], 16],
                    "one rank lacks these pages: only what all have counts": [[release, ["Start", 1]], 16 - max(came)]},
            })  # fmt: skip


STATES = ("without pages", "waiting for its prompt", "received", "with a row")


@case(task=4, params=[{"state": state} for state in range(len(STATES))])
class AbortAtEveryPoint:
    """Wherever the client leaves, all pages come back; those that somebody may write to, only when nobody does."""

    def inputs(rng, state):
        begin = [[5, "begin", 1, TEN]]
        script = [
            [
                [1, "begin", 9, list(range(100, 157))],
                *begin,
                [6, "abort", 1],
                [7, "moved", 9, [0, 0], 15, 15],
                [8, "run", 9],
            ],
            [*begin, [6, "abort", 1], [9, "moved", 1, [0, 0], 3, 3]],
            [*begin, [6, "moved", 1, [0, 0], 3, 3], [7, "abort", 1], [8, "abort", 1]],
            [*begin, [6, "moved", 1, [0, 0], 3, 3], [7, "run", 1], [8, "abort", 1]],
        ][state]
        return {"state": state, "script": script}

    def observe(solution, inputs):
        return receives(solution, inputs)

    def verify(inputs, got):
        ask, release, start = [[asked(1, 3, 5)], 13], ["Release", 1, "P"], [[["Start", 1]], 13]
        want = [
            [[[asked(9, 15, 1)], 1], [[], 1], [[release], 1], [[["Start", 9]], 1], [57, 16]],
            [ask, [[release], 13], [[], 16]],
            [ask, start, [[], 16], [[], 16]],
            [ask, start, [10, 16], [[], 16]],
        ][inputs["state"]]
        name = STATES[inputs["state"]]
        steps(inputs["script"], got, want, {
            1: {"pages were freed that somebody may still write to: a late write hits another's KV": [[release], 16],
                f"aborted {name}: the prefill worker keeps its pages until they expire": [[], 13]},
            2: {f"aborted {name}: the pages are never freed": [[], 13],
                f"aborted {name}: the prefill worker keeps its pages until they expire": [[], 1],
                "a request whose client left was started": [[["Start", 1]], 13],
                "nobody releases what was taken already: it is not there": [[release], 16]},
        })  # fmt: skip


@case(task=4)
class GivenUpInTime:
    """60 s after its question has lost its force a request waits no longer: by then nobody writes any more."""

    def inputs(rng):
        end = 5 + EXPIRY + GRACE
        base = [
            [5, "begin", 1, TEN],
            [6, "next"],
            [end - 1, "expire"],
            [end, "expire"],
            [end + 9, "moved", 1, [0, 0], 3, 3],
        ]
        gone = [[5, "begin", 1, TEN], [6, "abort", 1], [end - 1, "expire"], [end, "expire"]]
        return {"scripts": [[*base, [end + 10, "run", 1]], gone]}

    def observe(solution, inputs):
        return [receives(solution, {"script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        end, ask, release = 5 + EXPIRY + GRACE, [[asked(1, 3, 5)], 13], ["Release", 1, "P"]
        wants = [
            [ask, [end, 13], [[], 13], [[release, ["Start", 1]], 16], [[], 16], [0, 16]],
            [ask, [[release], 13], [[], 13], [[release], 16]],
        ]
        for script, log, want in zip(inputs["scripts"], got, wants, strict=True):
            steps(script, log, want, {
                1: {"a copy that began in time may last 60 s more: wait for it": [5 + EXPIRY, 13]},
                3: {"it waits for ever": [[], 13]},
                4: {"what came after the end was taken for something": [[["Start", 1]], 13]},
            })  # fmt: skip


@case(task=4)
class ARefusalEndsAllOfItsRank:
    """A rank that was refused waits for none of its copies any more, however many there would be."""

    def inputs(rng):
        moves = [[10 + i, "moved", 1, [2 + i, 1], 3, 3] for i in rng.permutation(2).tolist()]
        at = int(rng.integers(0, 3))
        moves.insert(at, [15, "refused", 1, 0])
        return {"options": {"sources": 4, "ranks": 2}, "script": [[5, "begin", 1, TEN], *moves], "at": at}

    def observe(solution, inputs):
        return receives(solution, inputs)

    def verify(inputs, got):
        asks = [asked(1, 3, 5, rank, 2) for rank in range(2)]
        end = [[["Release", 1, "P"], ["Start", 1]], 16]
        steps(inputs["script"], got, [[asks, 13], [[], 13], [[], 13], end], {
            3: {"a rank that was refused still waits for its other copies": [[], 13]},
        })  # fmt: skip


@case(task=4)
class OnlyItsOwnCopiesCount:
    """Another generation's copy, or more for a rank than it waits for, changes nothing."""

    def inputs(rng):
        script = [[5, "begin", 2, TEN], [6, "moved", 1, [0, 0], 3, 0], [7, "moved", 2, [0, 0], 3, 3]]
        return {
            "options": {"ranks": 2},
            "script": [*script, [8, "moved", 2, [0, 0], 3, 3], [9, "moved", 2, [0, 1], 3, 3]],
        }

    def observe(solution, inputs):
        return receives(solution, inputs)

    def verify(inputs, got):
        asks = [asked(2, 3, 5, rank, 2) for rank in range(2)]
        steps(inputs["script"], got, [[asks, 13], [[], 13], [[], 13], [[], 13], [[["Start", 2]], 13]], {
            3: {"a copy for one rank was counted for another": [[["Start", 2]], 13]},
        })  # fmt: skip


@case(task=4)
class PagesGoToTheOldest:
    """Requests without pages wait in their order: a small one does not overtake, and gets its turn when it is first."""

    def inputs(rng):
        long, small = list(range(200, 240)), list(range(300, 303))
        begin = [[1, "begin", 1, list(range(100, 130))], [2, "begin", 2, long], [3, "begin", 3, small]]
        ends = [[4, "moved", 1, [0, 0], 8, 8], [5, "run", 1], [6, "retry"]]
        return {"scripts": [[*begin, *ends], [*begin, [4, "abort", 2]], [*begin, [4, "abort", 3], *ends[:2]]]}

    def observe(solution, inputs):
        return [receives(solution, {"script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        begin = [[[asked(1, 8, 1)], 8], [[], 8], [[], 8]]
        ends = [[[["Start", 1]], 8], [30, 16], [[asked(2, 10, 6), asked(3, 1, 6)], 4]]
        left = [[["Release", 2, "P"], asked(3, 1, 4)], 7]
        wants = ([*begin, *ends], [*begin, left], [*begin, [[["Release", 3, "P"]], 8], *ends[:2]])
        for script, log, want in zip(inputs["scripts"], got, wants, strict=True):
            steps(script, log, want, {
                2: {"a small prompt overtook one that waits for pages": [[asked(3, 1, 3)], 7]},
                3: {"whoever stood behind it has its turn now": [[["Release", 2, "P"]], 8],
                    "its client left, and it still waits": [[], 8]},
            })  # fmt: skip


@case(task=4)
class FreedPagesServeWhoWaits:
    """Pages that an abort or a failure frees go to those that wait, in the same call."""

    def inputs(rng):
        full, more = list(range(100, 157)), TEN
        begin = [[1, "begin", 1, full], [2, "begin", 2, more]]
        failed = [*begin, [3, "refused", 1, 0]]
        aborted = [*begin, [3, "moved", 1, [0, 0], 15, 15], [4, "abort", 1]]
        return {"scripts": [failed, aborted]}

    def observe(solution, inputs):
        options = {"recompute": False}
        return [receives(solution, {"options": options, "script": script}) for script in inputs["scripts"]]

    def verify(inputs, got):
        begin = [[[asked(1, 15, 1)], 1], [[], 1]]
        failed = [*begin, [[["Release", 1, "P"], ["Stop", 1], asked(2, 3, 3)], 13]]
        aborted = [*begin, [[["Start", 1]], 1], [[asked(2, 3, 4)], 13]]
        lost = "pages became free, and who waits for them was not served"
        for script, log, want in zip(inputs["scripts"], got, (failed, aborted), strict=True):
            steps(script, log, want, {2: {lost: [[["Release", 1, "P"], ["Stop", 1]], 16]}, 3: {lost: [[], 16]}})


@case(task=4)
class ALostWorkerMayStillWrite:
    """When the prefill worker seems gone requests go on without it; pages stay until nothing can be written."""

    def inputs(rng):
        return {"script": [[5, "begin", 1, TEN], [6, "lost"], [7, "moved", 1, [0, 0], 3, 3], [8, "run", 1]]}

    def observe(solution, inputs):
        return receives(solution, inputs)

    def verify(inputs, got):
        want = [[[asked(1, 3, 5)], 13], [[["Start", 1]], 13], [[], 16], [0, 16]]
        steps(inputs["script"], got, want, {
            2: {"it was started a second time": [[["Start", 1]], 13], "the pages are never freed": [[], 13]},
        })  # fmt: skip


@case(task=4, params=[{"first": first} for first in range(3)], timeout=20.0)
class AnythingMayGoWrong:
    """Crashes, cut lines, false alarms, failed copies, clients that leave: tokens are right, and nothing is left."""

    def inputs(rng, first):
        return {"seeds": rng.integers(0, 10**6, 40).tolist()}

    def observe(solution, inputs):
        return worlds(solution, inputs)

    def verify(inputs, got):
        held(inputs, got)


def worlds(solution, inputs: dict) -> dict:
    """Random schedules. Returns the first violations, by seed."""
    found = {}
    for seed in inputs["seeds"]:
        violations = World(solution, seed).run().violations
        if violations:
            found[str(seed)] = violations[:3]
            break
    return found


def held(inputs: dict, got: dict) -> None:
    """No violation."""
    for seed, violations in got.items():
        replay = f"pdm run soak cluster --world connector --solution tiny_llm --seed {seed}"
        raise AssertionError("\n".join([f"the schedule of seed {seed}:", *violations, f"replay: {replay}"]))
