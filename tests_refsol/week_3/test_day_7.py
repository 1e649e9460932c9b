"""Day 7, the server: written-down tokens, Python's own string search, and a real server on a loopback port."""

import asyncio
import signal
import threading
import time
from dataclasses import asdict

import numpy as np
from starlette.requests import Request

from course.case import case, error_of
from course.serving_case.bridge import bridged, build_engine
from course.serving_case.http import served
from course.serving_case.scripted import (
    END,
    ScriptedRunner,
    continued,
    logprob_of,
    prompt_tokens,
    text_of,
    text_tokenizer,
    top_of,
)
from course.stub import stub_of
from course.suspects import named
from course.toy_tokenizer import cut

TEXTS = [
    "naïve café, crème brûlée",
    "你好，世界。数据流",  # noqa: RUF001
    "🦊🐢 👩‍🚀👨‍👩‍👧‍👦 🇨🇭 👍🏽",
    "x² ≤ ∑𝒳, 𝔘 → ∞",  # noqa: RUF001
]


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got == want:
        return
    likely = named(mistake for mistake, value in (mistakes or {}).items() if value == got)
    raise AssertionError("\n".join(filter(None, [text, f"  expected  {want!r}", f"  got       {got!r}", likely])))


def need(holds: object, text: str) -> None:
    """Raise AssertionError with `text` unless it holds."""
    if not holds:
        raise AssertionError(text)


# Task 1: text that streams


def until_stop(text: str, stops: list[str]) -> tuple[str, bool]:
    """The text before the stop string that is complete first (the longest of those), and whether there is one."""
    found = [(text.find(s) + len(s), text.find(s)) for s in stops if s in text]
    return (text[: min(found)[1]], True) if found else (text, False)


def sure(text: str, stops: list[str]) -> str:
    """What of `text` can be sent while more may follow."""
    before, stopped = until_stop(text, stops)
    if stopped:
        return before
    held = max((n for s in stops for n in range(len(s)) if n and text.endswith(s[:n])), default=0)
    return text[: len(text) - held]


def push(solution, pieces: list[bytes], stops: list[str], extra: int = 0) -> dict[str, object]:
    """Feed a TextStream: what each call returned, and its state after it."""
    tokenizer, tokens = text_tokenizer(pieces)
    stream = solution.module("serving.text_stream").TextStream(tokenizer, stops)
    added = [(stream.add(token), stream.stopped, stream.length) for token in tokens]
    return {"added": added, "finish": [stream.finish() for _ in range(1 + extra)], "stopped": stream.stopped}


@case(
    task=1,
    params=[
        {"stops": []},
        {"stops": ["STOP"]},
        {"stops": ["abc", "b"]},
        {"stops": ["aab", "ab", "aaab"]},
        {"stops": ["abab", "bb"], "longest": 4},
        {"stops": ["ba"], "longest": 1},
        {"stops": ["bbb", "ca", "acb"], "longest": 7},
        {"stops": ["aacb", "cb", "a"], "longest": 40},  # all in one piece
    ],
)
class TextEndsBeforeTheStopString:
    """The text that was sent is that of all tokens, up to the stop string that is complete first."""

    def inputs(rng, stops, longest=3):
        texts = ["".join(rng.choice(list("abc"), 24)) for _ in range(12)]
        texts += ["b" * int(rng.integers(3)) + stop + text for stop, text in zip(stops, texts, strict=False)]
        if stops == ["STOP"]:
            texts = ["STSTOPOP and on", "SSSTOPTOP", "no ST here", "STOP", "a STO", "STO P", "xSTOPSTOP", "STOPx"]
        return {"stops": stops, "pieces": [cut(rng, text.encode(), longest) for text in texts]}

    def observe(solution, inputs):
        return [push(solution, pieces, inputs["stops"]) for pieces in inputs["pieces"]]

    def verify(inputs, got):
        for pieces, result in zip(inputs["pieces"], got, strict=True):
            text, stops = b"".join(pieces).decode(), inputs["stops"]
            want, stopped = until_stop(text, stops)
            found = [s for s in stops if s in text]
            mistakes = {
                "the stop string was sent too": next((want + s for s in found if (want + s) in text), None),
                "the stop string that begins first was taken, not the one that is complete first": text[
                    : min((text.find(s) for s in found), default=None)
                ],
                "the stop string that is first in the list was taken": text[: text.find(found[0])] if found else None,
                "the stop strings were ignored": text,
                "what was held back at the end was lost": sure(text, stops),
            }
            sent = "".join(piece for piece, *_ in result["added"]) + result["finish"][0]
            explain(sent, want, f"the text of {text!r} with the stop strings {stops}:", mistakes)
            explain(result["stopped"], stopped, f"`stopped` at the end of {text!r} with the stop strings {stops}:")


@case(task=1, params=[{"stops": ["abc", "b"]}, {"stops": ["aaab"]}, {"stops": ["cc", "cab", "abca"]}, {"stops": []}])
class SentAsSoonAsItIsSure:
    """After each token exactly that text has been sent which no later token can turn into a stop string."""

    def inputs(rng, stops):
        texts = ["".join(rng.choice(list("abc"), 20, p=[0.6, 0.1, 0.3])) for _ in range(8)]
        return {"stops": stops, "pieces": [cut(rng, text.encode(), 2) for text in texts]}

    def observe(solution, inputs):
        return [push(solution, pieces, inputs["stops"]) for pieces in inputs["pieces"]]

    def verify(inputs, got):
        stops = inputs["stops"]
        for pieces, result in zip(inputs["pieces"], got, strict=True):
            text = sent = ""
            for piece, (new, stopped, length) in zip(pieces, result["added"], strict=True):
                text, sent = text + piece.decode(), sent + new
                mistakes = {
                    "the beginning of a stop string was sent": text,
                    "as much was held back as the longest stop string is long, whatever it holds": text[
                        : max(0, len(text) - max(map(len, stops), default=1) + 1)
                    ],
                    "nothing is sent before the end": "",
                }
                explain(sent, sure(text, stops), f"sent after {text!r} with the stop strings {stops}:", mistakes)
                explain(length, len(text), f"`length` after {text!r}: characters of all tokens so far")
                if stopped:
                    break


@case(task=1)
class NothingAfterTheStop:
    """Once a stop string was found, `add` and `finish` return nothing more."""

    def inputs(rng):
        return {"pieces": [b"on", b"e ST", b"op ST", b"OP tw", b"o", b" three"]}

    def observe(solution, inputs):
        return push(solution, inputs["pieces"], ["STOP"], extra=1)

    def verify(inputs, got):
        mistakes = {"upper and lower case were taken for the same": ["on", "e ", "", "", "", ""]}
        want = ["on", "e ", "STop ", "", "", ""]
        explain([piece for piece, *_ in got["added"]], want, "what each `add` returned:", mistakes)
        explain([stopped for _, stopped, _ in got["added"]], [False] * 3 + [True] * 3, "`stopped` after each:")
        explain(got["finish"], ["", ""], "what `finish` returned after the stop:")


@case(task=1)
class TheRestComesOnce:
    """`finish` returns what was held back, a broken character as U+FFFD, and then nothing."""

    def inputs(rng):
        pieces = [[b"one ST"], [b"fox ", b"\xf0\x9f"], [b"a ST", b"\xe4"], [b"plain"]]
        return {"pieces": pieces}

    def observe(solution, inputs):
        return [push(solution, pieces, ["STOP"], extra=1)["finish"] for pieces in inputs["pieces"]]

    def verify(inputs, got):
        for pieces, finish, want in zip(inputs["pieces"], got, ["ST", "\ufffd", "ST\ufffd", ""], strict=True):
            explain(finish, [want, ""], f"what `finish` returned, twice, after {pieces}:")


@case(task=1)
class AStopStringEndsAtTheEnd:
    """A broken character is known as U+FFFD only at the end: a stop string may be complete only then."""

    def inputs(rng):
        return {"pieces": [b"xS", b"T", b"\xc3"], "stops": ["ST\ufffd"]}

    def observe(solution, inputs):
        return push(solution, inputs["pieces"], inputs["stops"])

    def verify(inputs, got):
        sent = "".join(piece for piece, *_ in got["added"]) + got["finish"][0]
        explain([sent, got["stopped"]], ["x", True], f"text and `stopped` of {inputs['pieces']}, {inputs['stops']}:", {
            "`finish` did not look for stop strings": ["xST\ufffd", False],
        })  # fmt: skip


@case(task=1, params=[{"stops": []}, {"stops": ["🐢"]}, {"stops": ["é", "界。"]}])
class CharactersStayWhole:
    """A character whose bytes are spread over tokens is sent when it is whole; a stop string may be such a one."""

    def inputs(rng, stops):
        return {"stops": stops, "pieces": [cut(rng, text.encode(), 3) for text in TEXTS]}

    def observe(solution, inputs):
        return [push(solution, pieces, inputs["stops"]) for pieces in inputs["pieces"]]

    def verify(inputs, got):
        for pieces, result in zip(inputs["pieces"], got, strict=True):
            text = b"".join(pieces).decode()
            sent = [piece for piece, *_ in result["added"]] + result["finish"]
            need("\ufffd" not in "".join(sent), f"a piece of {text!r} holds a broken character: {sent}")
            if not result["stopped"]:
                mistakes = {"bytes were counted, not characters": len(text.encode())}
                explain(result["added"][-1][2], len(text), f"`length` at the end of {text!r}: in characters", mistakes)
            explain("".join(sent), until_stop(text, inputs["stops"])[0], f"the text with stops {inputs['stops']}:")


# Task 2: from a thread to coroutines


def said(uid: int, tokens: list[int], reason: str = "length") -> list[list[object]]:
    """The outputs of a request that gives `tokens` and then ends."""
    return [[uid, token, reason if i == len(tokens) - 1 else None] for i, token in enumerate(tokens)]


def of(outputs: list[object], uid: int) -> list[object]:
    """Those of one request."""
    return [output for output in outputs if not isinstance(output, str) and output[0] == uid]


IDLE = {"requests": 0, "pages": 0, "free_rows": 4}


def assert_idle(left: dict[str, int], after: str) -> None:
    """Raise AssertionError unless the engine holds nothing any more."""
    need(
        left["requests"] == 0, f"{left['requests']} requests are still in the engine after {after}: nobody aborted them"
    )
    explain(left, IDLE, f"what the engine holds after {after}:")


def prompts_of(rng: np.random.Generator, count: int) -> list[list[int]]:
    """Prompts that differ."""
    return [[1 + i, *rng.integers(1, 250, int(rng.integers(1, 9))).tolist()] for i in range(count)]


@case(task=2)
class OutputsReachTheirRequest:
    """Every request gets its own outputs, in order and to its end, however many wait at the same time."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 9), "counts": rng.integers(1, 7, 9).tolist()}

    def observe(solution, inputs):
        async def main(bridge):
            requests = [bridge.request(p, n) for p, n in zip(inputs["prompts"], inputs["counts"], strict=True)]
            groups = [requests[:1], requests[1:4], requests[4:5], requests[5:9]]
            outputs = await asyncio.gather(*[bridge.answer(*group) for group in groups])
            return {"outputs": outputs, "left": await bridge.settled()}

        return bridged(solution, main, ScriptedRunner())

    def verify(inputs, got):
        groups = [range(0, 1), range(1, 4), range(4, 5), range(5, 9)]
        for group, outputs in zip(groups, got["outputs"], strict=True):
            need(
                "hung" not in outputs, f"requests {list(group)}: no output came, or the iterator did not end: {outputs}"
            )
            strange = [output for output in outputs if isinstance(output, str) or output[0] not in group]
            need(not strange, f"whoever submitted requests {list(group)} got outputs of others: {strange}")
            for uid in group:
                want = said(uid, continued(inputs["prompts"][uid], inputs["counts"][uid]))
                mistakes = {
                    "the last output was given twice": [*want, want[-1]],
                    "the last output is missing": want[:-1],
                }
                explain(of(outputs, uid), want, f"the outputs of request {uid}:", mistakes)
        assert_idle(got["left"], "all requests have ended")


@case(task=2)
class TheStatsFollow:
    """The stats are published when the engine is ready, after each command, and after each step."""

    def inputs(rng):
        return {"prompt": prompts_of(rng, 1)[0]}

    def observe(solution, inputs):
        runner = ScriptedRunner()
        runner.hold()

        async def seen(engine, like):
            for _ in range(200):
                if (engine.stats.running, engine.stats.waiting) == like:
                    break
                await asyncio.sleep(0.005)
            return [engine.stats.running, engine.stats.waiting]

        async def main(bridge):
            engine, pages = bridge.engine, bridge.engine.stats.pages
            with engine.submit([bridge.request(inputs["prompt"], 2)]) as outputs:
                added = await seen(engine, (0, 1))
                runner.release()
                await bridge.take(outputs)
                ended = await seen(engine, (0, 0))
            return {"ready": pages > 0, "added": added, "ended": ended}

        return bridged(solution, main, runner)

    def verify(inputs, got):
        need(got["ready"], "once the engine had started its stats had no pages: publish them before it is ready")
        text = "[running, waiting] in the stats while the first step of a request was held:"
        explain(got["added"], [0, 1], text, {"they are published after a step only, not after a command": [0, 0]})
        text = "[running, waiting] in the stats after a request's last step:"
        explain(got["ended"], [0, 0], text, {"they are published after a command only, not after a step": [0, 1]})


@case(task=2)
class TheEngineHasItsThread:
    """The engine is built and stepped in one thread that is not the event loop's, which goes on meanwhile."""

    def inputs(rng):
        return {"prompt": prompts_of(rng, 1)[0]}

    def observe(solution, inputs):
        runner, built, used = ScriptedRunner(seconds=0.1), [], set()
        launch, running = runner.launch, threading.Event()

        def watched(batch):
            running.set()
            try:
                return launch(batch)
            finally:
                running.clear()

        runner.launch = watched

        def build():
            built.append(threading.current_thread().name)
            engine = build_engine(solution, runner, 4, 64)

            class Watched(type(engine)):
                def add(self, request):
                    used.add(threading.current_thread().name)
                    return super().add(request)

                def abort(self, uid):
                    used.add(threading.current_thread().name)
                    return super().abort(uid)

            engine.__class__ = Watched
            return engine

        async def main(bridge):
            ticks = []

            async def tick():
                while True:
                    ticks.append(running.is_set())
                    await asyncio.sleep(0.01)

            ticking = asyncio.ensure_future(tick())
            outputs = await bridge.answer(bridge.request(inputs["prompt"], 2))
            ticking.cancel()
            with bridge.engine.submit([bridge.request(inputs["prompt"], 9)]):
                await asyncio.sleep(0.05)
            await bridge.settled()
            here = threading.current_thread().name
            return {
                "ticks": sum(ticks),
                "outputs": len(outputs),
                "here": here,
                "max_len": bridge.engine.max_len,
            }

        got = bridged(solution, main, runner, build=build)
        return {**got, "built": built, "stepped": sorted(runner.threads), "used": sorted(used)}

    def verify(inputs, got):
        need(got["built"] and got["here"] not in got["built"], "the engine was built in the event loop's thread")
        explain(got["stepped"], got["built"], "the thread that launches batches is the one that built the engine:")
        text = "the threads that call `add` and `abort` of the engine, which can only do one thing at a time:"
        explain(got["used"], got["built"], text)
        explain(got["max_len"], 64, "max_len once the engine has started:")
        explain(got["outputs"], 2, "the number of outputs:")
        need(got["ticks"], "the event loop stood still while the engine ran its steps of 0.1 s: they block it")


@case(task=2)
class IdleEnginesSleep:
    """An engine without requests waits for commands: nobody steps it, or asks it again and again whether it is busy."""

    def inputs(rng):
        return {"prompt": prompts_of(rng, 1)[0]}

    def observe(solution, inputs):
        runner, calls = ScriptedRunner(), []

        def build():
            engine = build_engine(solution, runner, 4, 64)

            class Counting(type(engine)):
                @property
                def busy(self):
                    calls.append("busy")
                    return super().busy

                def step(self):
                    calls.append("step")
                    return super().step()

            engine.__class__ = Counting
            return engine

        async def main(bridge):
            await bridge.answer(bridge.request(inputs["prompt"]))
            await asyncio.sleep(0.05)
            before = len(calls)
            await asyncio.sleep(0.2)
            asked = len(calls) - before
            return {"asked": asked, "again": await bridge.answer(bridge.request(inputs["prompt"]))}

        return bridged(solution, main, runner, build=build)

    def verify(inputs, got):
        text = f"an idle engine was asked or stepped {got['asked']} times in 0.2 s: its thread spins"
        need(got["asked"] < 12, f"{text}, or looks now and then, and does not wait for a command")
        explain(got["again"], said(1, continued(inputs["prompt"], 4)), "the outputs of a request that wakes it:")


LEAVE = ["breaks", "raises", "before the first output", "cancelled"]


@case(task=2, params=[{"how": how} for how in LEAVE])
class WhoLeavesIsAborted:
    """However the body of `with submit(...)` is left, its requests are aborted; others go on, and nothing is left."""

    def inputs(rng, how):
        return {"prompts": prompts_of(rng, 3), "how": how}

    def observe(solution, inputs):
        runner, how = ScriptedRunner(), inputs["how"]

        async def leave(bridge, requests):
            with bridge.engine.submit(requests) as outputs:
                if how == "before the first output":
                    return
                await bridge.take(outputs, 1)
                if how == "raises":
                    raise KeyError("the consumer fails")
                if how == "cancelled":
                    await asyncio.sleep(60)

        async def main(bridge):
            runner.hold()
            other = asyncio.ensure_future(bridge.answer(bridge.request(inputs["prompts"][2], 9)))
            await asyncio.sleep(0)
            requests = [bridge.request(prompt, 40) for prompt in inputs["prompts"][:2]]
            task = asyncio.ensure_future(leave(bridge, requests))
            await asyncio.sleep(0)
            runner.hold(3)
            await asyncio.wait([task], timeout=0.2 if how == "cancelled" else 1.5)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            runner.release()
            outputs, left, steps = await other, await bridge.settled(), len(runner.steps)
            requests = None
            return {"other": outputs, "left": left, "steps": steps, "objects": bridge.objects()}

        return bridged(solution, main, runner)

    def verify(inputs, got):
        explain(
            of(got["other"], 0), said(0, continued(inputs["prompts"][2], 9)), "the outputs of the request that stays:"
        )
        assert_idle(got["left"], f"the consumer has gone ({inputs['how']})")
        need(
            got["steps"] < 30, f"{got['steps']} steps were run for a client that has gone: nobody aborted its requests"
        )


@case(task=2)
class NothingIsKeptOfThePast:
    """Nothing refers to requests that have ended, were aborted or refused, and their places are free again."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 24), "kinds": rng.permutation(np.arange(24) % 4).tolist()}

    def observe(solution, inputs):
        async def one(bridge, prompt, kind):
            request = bridge.request(prompt * 40 if kind == 1 else prompt, 40 if kind == 3 else 5)
            with bridge.engine.submit([request], 600.0) as outputs:
                if kind == 2:
                    bridge.engine.abort(request.uid)
                return len(await bridge.take(outputs, 2 if kind == 3 else None))

        async def main(bridge):
            counts = []
            for prompt, kind in zip(inputs["prompts"], inputs["kinds"], strict=True):
                counts.append(await one(bridge, prompt, kind))
            left = await bridge.settled()
            # As many as the limit allows: each is refused if an old one still counts.
            after = await bridge.answer(*[bridge.request(prompt, 1) for prompt in inputs["prompts"][:16]])
            await bridge.settled()
            return {"left": left, "after": after, "objects": bridge.objects(), "queues": bridge.objects(asyncio.Queue)}

        return bridged(solution, main, ScriptedRunner(seconds=0.001))

    def verify(inputs, got):
        assert_idle(got["left"], "24 requests that ended in four ways")
        reasons = [output if isinstance(output, str) else output[2] for output in got["after"]]
        explain(reasons, ["length"] * 16, "how 16 requests end that are submitted to an idle engine with limit 16:")
        need(
            got["objects"] <= 1,  # the frame of a finished coroutine may keep the last one for a while
            f"{got['objects']} of 40 requests that have ended are still referred to: a map keeps what has gone",
        )
        need(
            got["queues"] <= 1,
            f"{got['queues']} of 40 queues are still referred to: for 600 s a timer keeps what has ended in time",
        )


@case(task=2)
class EndedRequestsMakeRoom:
    """A request counts until it has ended, not until its outputs have been taken: a slow reader blocks nobody."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 32)}

    def observe(solution, inputs):
        async def main(bridge):
            requests = [bridge.request(prompt, 2) for prompt in inputs["prompts"]]
            with bridge.engine.submit(requests[:16]) as outputs:
                first = await bridge.settled()  # all have ended, and nobody has read anything
                late = await bridge.answer(*requests[16:])
                return {"first": first, "late": late, "early": await bridge.take(outputs)}

        return bridged(solution, main, ScriptedRunner())

    def verify(inputs, got):
        assert_idle(got["first"], "16 requests of which nobody has read an output")
        refused = [output for output in got["late"] if isinstance(output, str)]
        need(not refused, f"16 requests have ended unread, with a limit of 16, and 16 more were refused: {refused}")
        counts = [len(got[name]) for name in ("early", "late")]
        explain(counts, [32, 32], "outputs of 16 requests of 2 tokens, of those that ended unread and of the others:")


@case(task=2)
class AStepIsOneCall:
    """What a step gives crosses over in one call: the event loop is not woken for each token."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 4)}

    def observe(solution, inputs):
        runner, calls = ScriptedRunner(), []

        async def main(bridge):
            tell = bridge.engine.tell
            bridge.engine.tell = lambda function, *args: (calls.append(function.__name__), tell(function, *args))[1]
            outputs = await bridge.answer(*[bridge.request(prompt, 8) for prompt in inputs["prompts"]])
            return {"outputs": len(outputs), "calls": list(calls), "steps": len(runner.steps)}

        return bridged(solution, main, runner)

    def verify(inputs, got):
        explain(got["outputs"], 32, "outputs of 4 requests of 8 tokens:")
        calls, steps = len(got["calls"]), got["steps"]
        need(calls <= steps, f"{steps} steps told the event loop {calls} times: what a step gave is one list")


@case(task=2, params=[{"running": 14, "more": 3}, {"running": 16, "more": 1}])
class FullIsRefused:
    """Requests over the limit are refused with FullError, all of a group or none, until others have ended."""

    def inputs(rng, running, more):
        return {"prompts": prompts_of(rng, running + more), "running": running}

    def observe(solution, inputs):
        runner, count = ScriptedRunner(), inputs["running"]

        async def main(bridge):
            runner.hold()
            first = [bridge.request(prompt, 1) for prompt in inputs["prompts"][:count]]
            late = [bridge.request(prompt, 2) for prompt in inputs["prompts"][count:]]

            with bridge.engine.submit(first) as outputs:
                refusal = await asyncio.wait([asyncio.ensure_future(bridge.answer(*late))], timeout=0.3)
                refusal = [task.result() for task in refusal[0]]
                runner.release()
                served = await bridge.take(outputs)
            return {"refusal": refusal, "served": len(served), "late": await bridge.answer(*late)}

        return bridged(solution, main, runner)

    def verify(inputs, got):
        count, late = inputs["running"], len(inputs["prompts"]) - inputs["running"]
        refusal = str(got["refusal"])
        need("FullError" in refusal, f"{late} requests beside {count} of 16 were not refused with FullError: {refusal}")
        need("16" in refusal, f"FullError should name the limit: {refusal}")
        explain(got["served"], count, "the outputs of the requests that were there first:")
        text = "the outputs of the refused ones when they are submitted again (2 each):"
        explain(len(got["late"]), 2 * late, text)


@case(task=2)
class WhatCannotFitIsRefused:
    """A request that the engine does not take raises RefusedError in its own iterator; others go on."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 2), "long": rng.integers(1, 250, 64).tolist()}

    def observe(solution, inputs):
        runner = ScriptedRunner()

        def build():
            engine = build_engine(solution, runner, 4, 64)
            add = engine.add
            engine.add = lambda request: (time.sleep(0.05), add(request))[1]  # the event loop has gone to sleep by then
            return engine

        async def main(bridge):
            a, b = inputs["prompts"]
            requests = [bridge.request(prompt) for prompt in (a, inputs["long"], b)]
            answers = await asyncio.gather(*[bridge.answer(request) for request in requests])
            error = bridge.engine.error
            left = await bridge.settled() if error is None else None
            start = time.perf_counter()
            if error is None:
                await bridge.answer(bridge.request(inputs["long"]))
            took = time.perf_counter() - start
            return {"answers": answers, "left": left, "error": error and str(error), "took": took}

        return bridged(solution, main, runner, build=build)

    def verify(inputs, got):
        first, refused, last = got["answers"]
        explain(got["error"], None, "a prompt that does not fit must not end the engine's thread:")
        need(refused != ["hung"], "a prompt of 64 tokens in 64 positions hangs: its stream never ends")
        need(
            got["took"] < 1.0,
            f"a refusal took {got['took']:.1f} s: it waits until something else wakes the event loop. Only `tell` does",
        )
        need(
            str(refused[0]).startswith("RefusedError"),
            f"a prompt that does not fit should raise RefusedError: {refused}",
        )
        need("64" in refused[0], f"RefusedError should pass on what the engine said: {refused[0]!r}")
        explain(first, said(0, continued(inputs["prompts"][0], 4)), "the outputs of another request:")
        explain(last, said(2, continued(inputs["prompts"][1], 4)), "the outputs of another request:")
        assert_idle(got["left"], "a refusal")


@case(task=2)
class DeathEndsEveryStream:
    """When the engine's thread dies, every stream ends with DeadError, and so does every later submit."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 3)}

    def observe(solution, inputs):
        runner = ScriptedRunner(seconds=0.01)

        def build():
            engine = build_engine(solution, runner, 4, 64)
            step, count = engine.step, iter(range(100))

            def failing():
                if next(count) == 3:
                    raise RuntimeError("the scheduler has lost its mind")
                return step()

            engine.step = failing
            return engine

        async def main(bridge):
            answers = await asyncio.gather(*[bridge.answer(bridge.request(p, 30)) for p in inputs["prompts"]])
            after = await bridge.answer(bridge.request([1], 1))
            return {"ends": [answer[-1] for answer in answers], "after": after[-1], "error": str(bridge.engine.error)}

        return bridged(solution, main, runner, build=build)

    def verify(inputs, got):
        for end in got["ends"]:
            need(end != "hung", "a stream hangs after the engine's thread has died")
            need(str(end).startswith("DeadError"), f"a stream should end with DeadError: {end!r}")
        need("lost its mind" in got["error"], f"`error` should be what ended the thread: {got['error']}")
        need(
            str(got["after"]).startswith("DeadError"),
            f"a submit to a dead engine should raise DeadError: {got['after']}",
        )


@case(task=2)
class BuildErrorsReachStart:
    """What `build` raises in the engine's thread is raised by `start`."""

    def inputs(rng):
        return {}

    def observe(solution, inputs):
        def build():
            raise OSError("no such checkpoint")

        async def main(bridge):
            return None

        return error_of(lambda: bridged(solution, main, ScriptedRunner(), build=build))

    def verify(inputs, got):
        explain(got, {"type": "OSError", "message": "no such checkpoint"}, "what `start` raised:")


@case(task=2)
class OneOfManyCanBeAborted:
    """`abort` ends one request of a group, with one last output; the others go on, and a second abort does nothing."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 3)}

    def observe(solution, inputs):
        runner = ScriptedRunner()

        async def main(bridge):
            runner.hold(2)
            requests = [bridge.request(prompt, 6) for prompt in inputs["prompts"]]
            with bridge.engine.submit(requests) as outputs:
                taken = await bridge.take(outputs, 3)
                bridge.engine.abort(1)
                bridge.engine.abort(1)
                bridge.engine.abort(77)
                runner.release()
                taken += await bridge.take(outputs)
            bridge.engine.abort(0)
            return {"outputs": taken, "left": await bridge.settled()}

        return bridged(solution, main, runner)

    def verify(inputs, got):
        outputs = got["outputs"]
        need("hung" not in outputs, f"the iterator does not end once one of its requests was aborted: {outputs}")
        for uid in (0, 2):
            want = said(uid, continued(inputs["prompts"][uid], 6))
            explain(of(outputs, uid), want, f"the outputs of request {uid}, which was not aborted:")
        reasons = [reason for *_, reason in of(outputs, 1) if reason]
        explain(
            reasons,
            ["abort"],
            "finish reasons of the aborted request: exactly one",
            {"the end was sent twice": ["abort"] * 2},
        )
        assert_idle(got["left"], "an abort")


@case(task=2)
class TimeIsLimited:
    """A stream raises TimeoutError once its seconds have passed, and its requests are aborted."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 2)}

    def observe(solution, inputs):
        runner = ScriptedRunner()

        async def main(bridge):
            early = await bridge.answer(bridge.request(inputs["prompts"][0], 3), seconds=1.0)
            runner.hold(2)
            start = time.perf_counter()
            late = await bridge.answer(bridge.request(inputs["prompts"][1], 40), seconds=0.2)
            took = time.perf_counter() - start
            runner.release()
            return {"early": early, "late": late, "took": took, "left": await bridge.settled()}

        return bridged(solution, main, runner)

    def verify(inputs, got):
        explain(got["early"], said(0, continued(inputs["prompts"][0], 3)), "the outputs of a request that is in time:")
        late = str(got["late"][-1])
        need(late.startswith("TimeoutError"), f"a stream that may take 0.2 s should raise TimeoutError: {got['late']}")
        need(0.15 < got["took"] < 1.0, f"TimeoutError came after {got['took']:.2f} s, not after 0.2 s")
        assert_idle(got["left"], "a time limit")


# Task 3: limits, leavers and a clock


class Body:
    """A request that sends its body in parts; counts the parts that were asked for. slow: never sends the last.
    pause: seconds before each part."""

    def __init__(self, parts: list[bytes], declared: int | None, slow: bool = False, pause: float = 0.0):
        self.parts, self.slow, self.pause, self.asked = parts, slow, pause, 0
        headers = [] if declared is None else [(b"content-length", str(declared).encode())]
        self.request = Request({"type": "http", "method": "POST", "headers": headers}, self.receive)

    async def receive(self) -> dict[str, object]:
        """The next part."""
        await asyncio.sleep(60 if self.slow and self.asked == len(self.parts) - 1 else self.pause)
        self.asked += 1
        more = self.asked < len(self.parts)
        return {"type": "http.request", "body": self.parts[self.asked - 1], "more_body": more}


def refusal(error: Exception) -> list[object]:
    """An ApiError as plain values."""
    return [type(error).__name__, getattr(error, "status", None), str(error), getattr(error, "param", None)]


async def tried(work) -> object:
    """What a coroutine returns, or how it failed."""
    try:
        return await asyncio.wait_for(work, 2.0)
    except TimeoutError:
        return "hung"
    except Exception as error:
        if stub_of(error):
            raise
        return refusal(error)


@case(
    task=3,
    params=[
        {"sizes": [100], "declared": True},
        {"sizes": [60, 39, 1], "declared": False},
        {"sizes": [0], "declared": True},
        {"sizes": [1] * 100, "declared": False},
    ],
)
class BodiesWithinTheLimitAreRead:
    """A body up to the limit, with or without a declared length, is returned whole."""

    def inputs(rng, sizes, declared):
        return {"parts": [rng.bytes(size) for size in sizes], "declared": declared}

    def observe(solution, inputs):
        limits = solution.module("serving.limits")
        body = Body(inputs["parts"], sum(map(len, inputs["parts"])) if inputs["declared"] else None)
        return asyncio.run(tried(limits.read_body(body.request, limits.Limits(body_bytes=100, body_seconds=1.0))))

    def verify(inputs, got):
        whole = b"".join(inputs["parts"])
        mistakes = {"only the last part was kept": inputs["parts"][-1], "only the first": inputs["parts"][0]}
        explain(got, whole, f"a body of {len(whole)} bytes with a limit of 100:", mistakes)


@case(
    task=3,
    params=[
        {"count": 20, "declared": 2000, "asked": 0},
        {"count": 1, "declared": 101, "asked": 0, "size": 101},
        {"count": 50, "declared": None, "asked": 2},
        {"count": 101, "declared": None, "asked": 101, "size": 1},
    ],
)
class BodiesOverTheLimitAreNotRead:
    """A body over the limit is refused with 413 as soon as that is known, by its declared length or while it comes."""

    def inputs(rng, count, declared, asked, size=100):
        return {"parts": [b"x" * size] * count, "declared": declared, "asked": asked}

    def observe(solution, inputs):
        limits, body = solution.module("serving.limits"), Body(inputs["parts"], inputs["declared"])
        result = asyncio.run(tried(limits.read_body(body.request, limits.Limits(body_bytes=100, body_seconds=1.0))))
        return {"result": result, "asked": body.asked}

    def verify(inputs, got):
        size = sum(map(len, inputs["parts"]))
        need(isinstance(got["result"], list), f"a body of {size} bytes was accepted with a limit of 100")
        explain(got["result"][:2], ["ApiError", 413], f"the refusal of {size} bytes with a limit of 100:")
        need("100" in got["result"][2], f"the message should name the limit: {got['result'][2]!r}")
        need(
            got["asked"] <= inputs["asked"],
            f"{got['asked']} parts were read of a body that is known to be too large after {inputs['asked']}",
        )


@case(task=3, params=[{"drip": False}, {"drip": True}])
class SlowBodiesAreRefused:
    """A body that does not arrive in its time is refused with 408, also one of which something comes all the time."""

    def inputs(rng, drip):
        return {"parts": [b"x"] * 40 if drip else [b"x" * 10, b"y"], "drip": drip}

    def observe(solution, inputs):
        limits, drip = solution.module("serving.limits"), inputs["drip"]
        body = Body(inputs["parts"], None, slow=not drip, pause=0.02 if drip else 0.0)
        return asyncio.run(tried(limits.read_body(body.request, limits.Limits(body_seconds=0.1))))

    def verify(inputs, got):
        need(got != "hung", "a body that never comes hangs the server: nothing limits its time")
        need(isinstance(got, list), "a body that came byte by byte in 0.8 s was accepted: 0.1 s is for the whole body")
        explain(list(got)[:2], ["ApiError", 408], "the refusal of a body that takes too long:")


@case(task=3)
class PromptsAreChecked:
    """A prompt is refused with 400 if it is empty, leaves no room for one token, or holds an unknown token."""

    def inputs(rng):
        max_len = int(rng.integers(8, 30))
        longest = rng.integers(0, 50, max_len - 1).tolist()
        bad = [[], [*longest, 1], longest * 3, [3, 50], [50, 3]]
        return {"max_len": max_len, "good": [[0], [49], longest], "bad": bad}

    def observe(solution, inputs):
        check = solution.module("serving.limits").check_prompt

        async def one(prompt):
            return check(prompt, inputs["max_len"], 50)

        return {kind: [asyncio.run(tried(one(p))) for p in inputs[kind]] for kind in ("good", "bad")}

    def verify(inputs, got):
        max_len = inputs["max_len"]
        explain(got["good"], [None] * 3, f"one token, the last of 50, and {max_len - 1} tokens in {max_len} positions:")
        names = [
            "an empty prompt",
            f"{max_len} tokens in {max_len} positions",
            "a far too long prompt",
            "token 50 of 50",
            "token 50 of 50, which is not the last",
        ]
        for name, result, prompt in zip(names, got["bad"], inputs["bad"], strict=True):
            need(result is not None, f"{name} was accepted: it can never be answered")
            explain(result[:2], ["ApiError", 400], f"the refusal of {name}:")
            if len(prompt) >= max_len:
                for value in (len(prompt), max_len - 1):
                    need(str(value) in result[2], f"the refusal of {name} should name {value}: {result[2]!r}")


@case(task=3, params=[{"how": how} for how in ("ends", "fails", "leaves", "cancelled", "late body")])
class WorkEndsWhenTheClientLeaves:
    """`unless_gone` runs work to its end; a client that leaves cancels it; no task is left behind."""

    def inputs(rng, how):
        return {"how": how}

    def observe(solution, inputs):
        unless_gone, how, log = solution.module("serving.limits").unless_gone, inputs["how"], []

        async def work():
            try:
                await asyncio.sleep(0.05 if how in ("ends", "fails", "late body") else 60)
                if how == "fails":
                    raise KeyError("in the work")
                log.append("done")
            except asyncio.CancelledError:
                await asyncio.sleep(0.02)  # it puts things in order
                log.append("cancelled")
                raise

        messages = [{"type": "http.request"}] * (3 if how == "late body" else 0)

        async def receive():
            if messages:
                return messages.pop()
            await asyncio.sleep(0.05 if how == "leaves" else 60)
            return {"type": "http.disconnect"}

        async def main():
            task = asyncio.ensure_future(unless_gone(receive, work()))
            await asyncio.wait([task], timeout=0.1 if how == "cancelled" else 1.0)
            hangs = not task.done() and how != "cancelled"
            task.cancel()
            result = (await asyncio.gather(task, return_exceptions=True))[0]
            if isinstance(result, Exception) and stub_of(result):
                raise result
            left = len(asyncio.all_tasks()) - 1
            return {"log": list(log), "hangs": hangs, "result": type(result).__name__, "left": left}

        return asyncio.run(main())

    def verify(inputs, got):
        how = inputs["how"]
        need(not got["hangs"], f"unless_gone does not return ({how})")
        log = {
            "ends": ["done"],
            "fails": [],
            "leaves": ["cancelled"],
            "cancelled": ["cancelled"],
            "late body": ["done"],
        }
        left = {"the work goes on although the client has left, or nobody waited until it had ended": []}
        mistakes = left if how in ("leaves", "cancelled") else {}
        explain(got["log"], log[how], f"what the work noted ({how}):", mistakes)
        result = {"fails": "KeyError", "cancelled": "CancelledError"}.get(how, "NoneType")
        explain(
            got["result"], result, f"how unless_gone ended ({how}):", {"the error of the work was lost": "NoneType"}
        )
        explain(got["left"], 0, f"tasks left behind ({how}):")


@case(task=3)
class TimesBeginAtTheArrival:
    """TTFT runs from the arrival of the request to its first token, ITL between two tokens of one choice."""

    def inputs(rng):
        return {"arrived": 2.0 + float(rng.integers(0, 9)), "times": np.cumsum(rng.integers(1, 9, 6) / 4.0).tolist()}

    def observe(solution, inputs):
        metrics, now = solution.module("serving.metrics"), [inputs["arrived"] + 0.5]
        kept = metrics.Metrics(solution.module("serving.state").Stats, clock=lambda: now[0])
        choices = [metrics.Timing(kept, inputs["arrived"]) for _ in range(2)]
        for i, time_ in enumerate(inputs["times"]):
            now[0] = inputs["arrived"] + 0.5 + time_
            choices[i % 2].token()
        names = ("time_to_first_token_seconds", "inter_token_latency_seconds")
        lines = kept.text().decode().splitlines()
        values = {line.split(" ")[0]: float(line.split(" ")[1]) for line in lines if line[0] != "#"}
        sums = {f"{name}_{part}": values[f"tiny_llm_{name}_{part}"] for name in names for part in ("count", "sum")}
        return {**sums, "tokens": values["tiny_llm_generation_tokens_total"]}

    def verify(inputs, got):
        times = [0.5 + t for t in inputs["times"]]
        first, gaps = times[0] + times[1], [b - a for a, b in zip(times, times[2:], strict=False)]
        explain(got["time_to_first_token_seconds_count"], 2, "TTFT observations of two choices:")
        mistakes = {
            "TTFT was measured from the moment when the choice was made, not from the arrival": round(first - 1.0, 6),
            "TTFT was measured to the last token": round(times[4] + times[5], 6),
        }
        explain(round(got["time_to_first_token_seconds_sum"], 6), round(first, 6), "the sum of TTFT:", mistakes)
        mistakes = {"the first token was counted too, from the arrival": len(times)}
        explain(got["inter_token_latency_seconds_count"], len(gaps), "ITL observations of six tokens:", mistakes)
        mistakes = {
            "each token was measured from the first one": round(sum(times[2:]) - times[0] * 2 - times[1] * 2, 6)
        }
        explain(round(got["inter_token_latency_seconds_sum"], 6), round(sum(gaps), 6), "the sum of ITL:", mistakes)
        explain(got["tokens"], 6, "generation tokens:")


@case(task=3, params=[{"seconds": 2.0}, {"seconds": 0.15}])
class DrainLetsRequestsEnd:
    """A drain refuses new requests, lets those that were accepted end, and aborts what has not ended in its time."""

    def inputs(rng, seconds):
        return {"prompts": prompts_of(rng, 3), "seconds": seconds}

    def observe(solution, inputs):
        runner = ScriptedRunner()

        async def main(bridge):
            engine, seconds = bridge.engine, inputs["seconds"]
            runner.hold(3)
            running = [asyncio.ensure_future(bridge.answer(bridge.request(p, 6))) for p in inputs["prompts"][:2]]
            await asyncio.sleep(0.05)
            began = time.perf_counter()
            drain = asyncio.ensure_future(engine.drain(seconds))
            await asyncio.sleep(0.05)
            new = await bridge.answer(bridge.request(inputs["prompts"][2], 1))
            early, start = drain.done(), time.perf_counter()
            early = early and start - began < seconds  # a busy machine may have taken longer
            if seconds > 1:
                runner.release()
            await asyncio.wait([drain], timeout=1.2)
            took = time.perf_counter() - start
            runner.release()
            ends = [outputs[-1] for outputs in await asyncio.gather(*running)]
            idle = time.perf_counter()
            await asyncio.wait_for(engine.drain(1.0), 2.0)
            return {"new": new, "early": early, "took": took, "ends": ends, "draining": engine.draining,
                    "idle": time.perf_counter() - idle, "left": await bridge.settled()}  # fmt: skip

        return bridged(solution, main, runner)

    def verify(inputs, got):
        need(
            "DrainingError" in str(got["new"]),
            f"what a submit during a drain raises: not DrainingError but {got['new']}",
        )
        need(not got["early"], "the drain ended while requests were running and its time was not over")
        reason = "length" if inputs["seconds"] > 1 else "abort"
        ends = [end if isinstance(end, str) else end[2] for end in got["ends"]]
        text = f"how running requests end in a drain of {inputs['seconds']} s:"
        explain(ends, [reason] * 2, text, {"running requests were dropped": ["abort"] * 2})
        need(got["took"] < 1.0, f"the drain of {inputs['seconds']} s went on for {got['took']:.1f} s")
        need(got["idle"] < 0.5, "a drain of an idle engine should end at once")
        assert_idle(got["left"], "a drain")


# Task 4: answers


def chunks_of(events: list[object]) -> list[dict[str, object]]:
    """The JSON events."""
    return [event for event in events if isinstance(event, dict)]


def streamed(events: list[object]) -> dict[int, dict[str, object]]:
    """What a stream says for each choice: its pieces of text, and its finish reasons."""
    choices: dict[int, dict[str, list[object]]] = {}
    for chunk in chunks_of(events):
        for choice in chunk.get("choices", []):
            said = choices.setdefault(choice["index"], {"pieces": [], "reasons": []})
            text = choice["text"] if "text" in choice else choice["delta"].get("content")
            said["pieces"] += [text] if text else []
            said["reasons"] += [choice["finish_reason"]] if choice["finish_reason"] else []
    return choices


def whole(answer: dict[str, object]) -> list[list[object]]:
    """Text and finish reason of each choice of an answer at once."""
    choices = answer["json"]["choices"] if answer["status"] == 200 else []
    return [[c["text"] if "text" in c else c["message"]["content"], c["finish_reason"]] for c in choices]


def assert_done(events: list[object], what: str) -> None:
    """Raise AssertionError unless [DONE] is the last event, and only that."""
    need("[DONE]" in events, f"{what} ended without [DONE]: clients wait for it: {events[-2:]}")
    explain(
        [i for i, event in enumerate(events) if event == "[DONE]"], [len(events) - 1], f"where [DONE] stands in {what}:"
    )


def ends_once(events: list[object], want: dict[int, list[object]], what: str) -> None:
    """Raise AssertionError unless each choice gives the text, then its finish reason once, and [DONE] follows."""
    assert_done(events, what)
    got = streamed(events)
    explain(sorted(got), sorted(want), f"the choices of {what}:")
    for index, (text, reason) in want.items():
        explain("".join(got[index]["pieces"]), text, f"the text of choice {index} of {what}:")
        mistakes = {"the end was told twice": [reason] * 2, "the end was never told": []}
        explain(got[index]["reasons"], [reason], f"the finish reasons of choice {index} of {what}:", mistakes)


CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


@case(task=4, params=[{"length": 1}, {"length": 12}])
class StreamsSayWhatAnswersSay:
    """Both endpoints give the model's text, at once or in pieces that come as tokens do; [DONE] ends a stream."""

    def inputs(rng, length):
        return {"prompt": "".join(rng.choice(list("abcdef "), length)), "count": int(rng.integers(5, 9))}

    def observe(solution, inputs):
        tokenizer, _ = text_tokenizer()
        options = {"max_tokens": inputs["count"], "temperature": 0}
        with served(solution, tokenizer, ScriptedRunner()) as server:
            return {
                "whole": server.complete(prompt=inputs["prompt"], **options),
                "tokens": server.complete(prompt=prompt_tokens(inputs["prompt"]), **options),
                "stream": server.complete(prompt=inputs["prompt"], stream=True, **options),
                "chat": server.chat(inputs["prompt"], **options),
                "chat stream": server.chat(inputs["prompt"], stream=True, **options),
                "idle": server.idle(),
                "errors": server.watch.errors,
            }

    def verify(inputs, got):
        text = text_of(continued(prompt_tokens(inputs["prompt"]), inputs["count"]))
        chat = text_of(continued(prompt_tokens(CHAT.format(inputs["prompt"])), inputs["count"]))
        explain(whole(got["whole"]), [[text, "length"]], "text and finish reason of a completion:")
        explain(whole(got["tokens"]), [[text, "length"]], "text and finish reason of a completion of tokens:")
        explain(whole(got["chat"]), [[chat, "length"]], "text and finish reason of a chat completion:")
        for name, want in (("stream", text), ("chat stream", chat)):
            explain(got[name]["status"], 200, f"the status of the {name}:")
            events = got[name]["events"]
            ends_once(events, {0: [want, "length"]}, f"the {name}")
            explain(len(streamed(events)[0]["pieces"]), inputs["count"], f"pieces of the {name}, one for each token:")
        roles = [c["choices"][0]["delta"].get("role") for c in chunks_of(got["chat stream"]["events"]) if c["choices"]]
        explain(roles[:1], ["assistant"], "the role in the first chunk of a chat stream:")
        explain(got["errors"], [], "errors that the server logged:")
        need(got["idle"], "the engine is not idle after all requests were answered")


@case(task=4)
class TokensAreSentAsTheyCome:
    """A stream sends each token when the engine gives it, and does not wait for the next."""

    def inputs(rng):
        return {"prompt": "".join(rng.choice(list("abcdef"), 5))}

    def observe(solution, inputs):
        runner = ScriptedRunner()
        with served(solution, text_tokenizer()[0], runner) as server:
            runner.hold(2)
            stream = server.stream("/v1/completions", {"prompt": inputs["prompt"], "max_tokens": 5, "temperature": 0})
            early = stream.read(2)
            runner.release()
            events = stream.read()
            stream.close()
            return {"early": len(early), "events": events, "steps": len(runner.steps)}

    def verify(inputs, got):
        need(got["early"] >= 2, f"after two steps of the engine {got['early']} events have come: tokens are kept back")
        text = text_of(continued(prompt_tokens(inputs["prompt"]), 5))
        ends_once(got["events"], {0: [text, "length"]}, "the stream")


@case(task=4, params=[{"stop": "XY"}, {"stop": ["QQ", "YZ", "Z"]}])
class StopStringsEndAnswers:
    """A stop string ends an answer with "stop"; nothing of it is sent, and the engine's request is aborted at once."""

    def inputs(rng, stop):
        return {"stop": stop, "pieces": [b"on", b"e X", b" two X", b"YZ th", b"ree", b" four", b"."]}

    def observe(solution, inputs):
        tokenizer, tokens = text_tokenizer(inputs["pieces"])
        prompt = prompt_tokens("p")
        runner = ScriptedRunner({tuple(prompt): tokens}, seconds=0.002)
        options = {"prompt": prompt, "max_tokens": 200, "stop": inputs["stop"]}
        with served(solution, tokenizer, runner) as server:
            answers = {"whole": server.complete(**options), "stream": server.complete(**options, stream=True)}
            answers |= {"idle": server.idle(), "steps": len(runner.steps), "finished": server.finished(2)}
            # A stop string in one of two choices: the other one goes on.
            answers["both"] = server.complete(
                prompt=[prompt, prompt_tokens("q")], max_tokens=40, temperature=0, stop="XY"
            )
            return answers

    def verify(inputs, got):
        want = "one X two " if inputs["stop"] == "XY" else "one X two X"
        want = want if inputs["stop"] == "XY" else until_stop("one X two XYZ th", inputs["stop"])[0]
        mistakes = {"the stop string was sent too": [["one X two XY", "stop"]], "the end is not told": [[want, None]]}
        explain(whole(got["whole"]), [[want, "stop"]], f"a completion with stop {inputs['stop']!r}:", mistakes)
        ends_once(got["stream"]["events"], {0: [want, "stop"]}, f"a stream with stop {inputs['stop']!r}")
        usage = got["whole"]["json"]["usage"]["completion_tokens"]
        explain(usage, 4, "completion tokens until the stop string was complete:")
        need(got["idle"], "the engine goes on after a stop string: nobody aborted its request")
        need(
            got["steps"] < 100,
            f"the engine ran {got['steps']} steps for two answers of four tokens: nobody aborted them",
        )
        explain(got["finished"], {"stop": 2}, "requests finished, by reason:")
        other = text_of(continued(prompt_tokens("q"), 40))
        explain(whole(got["both"]), [["one X two ", "stop"], [other, "length"]], "two choices, one of which stops:")


@case(task=4)
class StopTokensHaveNoText:
    """A stop token ends an answer with "stop" and counts as a token, but its text is not sent; ignore_eos goes on."""

    def inputs(rng):
        return {"pieces": [b"one", b" two", b"END", b" three"]}

    def observe(solution, inputs):
        tokenizer, tokens = text_tokenizer(inputs["pieces"])
        prompt = prompt_tokens("p")
        script = [*tokens[:2], END, tokens[3]]
        runner = ScriptedRunner({tuple(prompt): script, tuple(prompt_tokens("q")): tokens})
        with served(solution, tokenizer, runner) as server:
            return {
                "end": server.complete(prompt=prompt, max_tokens=9),
                "stream": server.complete(
                    prompt=prompt, max_tokens=9, stream=True, stream_options={"include_usage": True}
                ),
                "own": server.complete(prompt=prompt_tokens("q"), max_tokens=9, stop_token_ids=[tokens[2]]),
                "ignored": server.complete(prompt=prompt, max_tokens=4, ignore_eos=True),
                "metrics": server.metrics(),
            }

    def verify(inputs, got):
        explain(whole(got["end"]), [["one two", "stop"]], "an answer that ends at the end token:")
        explain(got["end"]["json"]["usage"]["completion_tokens"], 3, "completion tokens, the end token included:")
        ends_once(got["stream"]["events"], {0: ["one two", "stop"]}, "a stream that ends at the end token")
        mistakes = {"the text of the stop token was sent": [["one twoEND", "stop"]]}
        explain(whole(got["own"]), [["one two", "stop"]], "an answer that ends at a token of stop_token_ids:", mistakes)
        counted = got["metrics"]["tiny_llm_generation_tokens_total"]
        mistakes = {"tokens that ended an answer were not counted": 10}
        explain(counted, 13, "generation tokens in /metrics after answers of 3, 3, 3 and 4 tokens:", mistakes)
        explain(whole(got["ignored"]), [["one two three", "length"]], "an answer that ignores the end token:")


@case(task=4, params=[{"longest": 1}, {"longest": 3}])
class StreamsKeepCharactersWhole:
    """No chunk holds a half of a character, and text held back is sent at the end."""

    def inputs(rng, longest):
        return {"pieces": [cut(rng, text.encode(), longest) for text in TEXTS]}

    def observe(solution, inputs):
        pieces = inputs["pieces"]
        tokenizer, tokens = text_tokenizer([piece for text in pieces for piece in text])
        prompts, at, script = [prompt_tokens("abcd"[i]) for i in range(len(pieces))], 0, {}
        for prompt, text in zip(prompts, pieces, strict=True):
            script[tuple(prompt)] = tokens[at : at + len(text)]
            at += len(text)
        with served(solution, tokenizer, ScriptedRunner(script)) as server:
            return [
                server.complete(prompt=prompt, max_tokens=len(script[tuple(prompt)]) - short, stream=True)["events"]
                for prompt in prompts
                for short in (0, 1)
            ]

    def verify(inputs, got):
        for i, events in enumerate(got):
            pieces = inputs["pieces"][i // 2]
            data = b"".join(pieces[: len(pieces) - i % 2])
            sent = streamed(events)[0]["pieces"]
            early = [piece for piece in sent[:-1] if "\ufffd" in piece]
            need(not early, f"chunks of {data.decode(errors='replace')!r} hold broken characters: {early}")
            ends_once(events, {0: [data.decode(errors="replace"), "length"]}, "a stream of characters in parts")


@case(task=4)
class UsageIsCounted:
    """Usage counts each prompt once and the tokens of all choices; in a stream it comes last, and only if asked for."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 2)}

    def observe(solution, inputs):
        options = {"prompt": inputs["prompts"], "n": 2, "max_tokens": 5}
        with served(solution, text_tokenizer()[0], ScriptedRunner()) as server:
            return {
                "whole": server.complete(**options)["json"]["usage"],
                "asked": server.complete(**options, stream=True, stream_options={"include_usage": True})["events"],
                "not asked": server.complete(**options, stream=True)["events"],
                "metrics": server.metrics(),
            }

    def verify(inputs, got):
        prompt = sum(map(len, inputs["prompts"]))
        want = {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}
        mistakes = {
            "a prompt was counted for each of its choices": {
                "prompt_tokens": 2 * prompt, "completion_tokens": 20, "total_tokens": 2 * prompt + 20
            },
            "one choice was counted": {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5},
        }  # fmt: skip
        explain(got["whole"], want, "the usage of 2 prompts with 2 choices of 5 tokens:", mistakes)
        assert_done(got["asked"], "a stream with usage")
        last = chunks_of(got["asked"])[-1]
        explain([last["choices"], last.get("usage")], [[], want], "choices and usage of the last chunk:")
        before = [chunk.get("usage", 0) for chunk in chunks_of(got["asked"])[:-1]]
        explain(set(before), {None}, "the usage of the chunks before:")
        need(not any(chunk.get("usage") for chunk in chunks_of(got["not asked"])), "usage was sent though nobody asked")
        text = "a chunk without choices was sent though nobody asked for usage: clients read the first choice of each"
        need(all(chunk["choices"] for chunk in chunks_of(got["not asked"])), text)
        counted = [got["metrics"][f"tiny_llm_{name}_tokens_total"] for name in ("prompt", "generation")]
        explain(counted, [3 * prompt, 60], "prompt and generation tokens in /metrics after three such requests:")


@case(task=4)
class SeedsDecide:
    """The same seed gives the same text; each of n choices has a seed of its own, the first one the client's."""

    def inputs(rng):
        return {"seed": int(rng.integers(0, 2**40)), "prompt": prompts_of(rng, 1)[0]}

    def observe(solution, inputs):
        options = {"prompt": inputs["prompt"], "max_tokens": 12}
        with served(solution, text_tokenizer()[0], ScriptedRunner()) as server:
            ask = server.complete
            return {
                "one": [whole(ask(**options, seed=inputs["seed"])) for _ in range(2)],
                "many": whole(ask(**options, seed=inputs["seed"], n=3)),
                "again": whole(ask(**options, seed=inputs["seed"], n=3)),
                "negative": ask(**options, seed=-5)["status"],
                "stream": ask(**options, seed=inputs["seed"], n=3, stream=True)["events"],
                "random": [whole(ask(**options)) for _ in range(2)],
                "greedy": whole(ask(**options, temperature=0)),
            }

    def verify(inputs, got):
        text = text_of(continued(inputs["prompt"], 12, inputs["seed"]))
        mistakes = {"the seed was ignored": got["random"][0]}
        explain(got["one"], [[[text, "length"]]] * 2, f"the text with seed {inputs['seed']}, twice:", mistakes)
        texts = [choice[0] for choice in got["many"]]
        explain(len(texts), 3, "the number of choices:")
        need(len(set(texts)) == 3, f"choices share one seed: {texts}")
        explain(texts[0], text, "the first of three choices has the client's seed:")
        explain(got["again"], got["many"], "three choices with the same seed again:")
        ends_once(got["stream"], dict(enumerate(got["many"])), "a stream of three choices")
        need(got["random"][0] != got["random"][1], "without a seed, two requests gave the same text: one seed for all")
        explain(got["negative"], 200, "the status with seed -5:")
        explain(got["greedy"][0][0], text_of(continued(inputs["prompt"], 12)), "the text with temperature 0:")


@case(task=4)
class SamplingIsWhatWasAsked:
    """`sampling_of` passes on what was asked; temperature and top_p are 1 where left out, and the rest is off."""

    def inputs(rng):
        asked = {
            "temperature": float(rng.integers(1, 8)) / 4, "top_p": float(rng.integers(1, 4)) / 4, "min_p": 0.25,
            "top_k": int(rng.integers(1, 50)), "repetition_penalty": 1.25,
        }  # fmt: skip
        return {"asked": asked, "seed": int(rng.integers(0, 2**50))}

    def observe(solution, inputs):
        asked, seed = solution.module("serving.protocol").CompletionRequest, inputs["seed"]
        sampling_of = solution.module("serving.server").sampling_of
        kinds = [inputs["asked"], {}, {"temperature": 0.0, "top_k": -1}]
        seeds = [(seed, 0), (seed, 3), (-1, 0), (2**63 - 1, 1)]
        return {
            "params": [asdict(sampling_of(asked(model="m", prompt="p", **kind), seed, 2)) for kind in kinds],
            "seeds": [sampling_of(asked(model="m", prompt="p"), *pair).seed for pair in seeds],
        }

    def verify(inputs, got):
        default = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
        seed = inputs["seed"] + 2
        names = ["all fields", "no field", "temperature 0 and top_k -1"]
        wants = [inputs["asked"], default, {**default, "temperature": 0.0}]
        for name, want, params in zip(names, wants, got["params"], strict=True):
            explain(params, {**want, "seed": seed}, f"the parameters of choice 2 with {name}:")
        explain(got["seeds"], [inputs["seed"], inputs["seed"] + 3, 2**64 - 1, 2**63], "seeds of choices:")


@case(task=4)
class LogprobsBelongToTheirTokens:
    """Each token that was chosen has its own log-probability and alternatives, in order, held back text or not."""

    def inputs(rng):
        return {"pieces": [b"fox \xf0", b"\x9f\xa6", b"\x8a ST", b"EP", b" on ST", b"O"]}

    def observe(solution, inputs):
        tokenizer, tokens = text_tokenizer(inputs["pieces"])
        prompt = prompt_tokens("p")
        chat = tuple(prompt_tokens(CHAT.format("p")))
        options = {"max_tokens": len(tokens), "stop": "STOP"}
        with served(solution, tokenizer, ScriptedRunner({tuple(prompt): tokens, chat: tokens})) as server:
            return {
                "tokens": tokens,
                "names": [tokenizer.decode([token]) for token in tokens],
                "whole": server.complete(prompt=prompt, logprobs=2, **options),
                "stream": server.complete(prompt=prompt, logprobs=0, stream=True, **options)["events"],
                "chat": server.chat("p", logprobs=True, top_logprobs=3, **options),
                "chat stream": server.chat("p", logprobs=True, stream=True, **options)["events"],
                "none": server.complete(prompt=prompt, **options)["json"]["choices"][0]["logprobs"],
            }

    def verify(inputs, got):
        want = [logprob_of(token) for token in got["tokens"]]
        columns = got["whole"]["json"]["choices"][0]["logprobs"]
        explain(columns["tokens"], got["names"], "the tokens of a completion's logprobs:")
        explain(columns["token_logprobs"], want, "the logprobs of a completion:")
        explain([len(top) for top in columns["top_logprobs"]], [2] * 6, "alternatives for each token:")
        offsets = {"the offsets count from the piece that a token was sent with": [0, 0, 0, 0, 0, 0]}
        explain(columns["text_offset"], [0, 0, 0, 8, 10, 16], "text_offset: characters before each token:", offsets)
        rows = got["chat"]["json"]["choices"][0]["logprobs"]["content"]
        explain([row["logprob"] for row in rows], want, "the logprobs of a chat completion:")
        tops = [[top["logprob"] for top in row["top_logprobs"]] for row in rows]
        explain(
            tops,
            [[p for _, p in top_of(token, 3)] for token in got["tokens"]],
            "the alternatives of a chat completion:",
        )
        sent = [p for c in chunks_of(got["stream"]) for x in c["choices"] for p in x["logprobs"]["token_logprobs"]]
        mistakes = {"tokens whose text was held back were lost": [p for i, p in enumerate(want) if i in (2, 3, 4, 5)]}
        explain(sent, want, "the logprobs of all chunks of a stream:", mistakes)
        content = [
            (x["logprobs"] or {}).get("content") or [] for c in chunks_of(got["chat stream"]) for x in c["choices"]
        ]
        explain([row["logprob"] for rows in content for row in rows], want, "the logprobs of a chat stream:")
        explain(got["none"], None, "logprobs where nobody asked for them:")


LEAVING = {"in a stream": True, "before the first token of a stream": True, "before an answer at once": False}


@case(task=4, params=[{"when": when} for when in LEAVING])
class LeavingClientsFreeTheEngine:
    """When a client leaves, at any moment, its request is aborted; others are served as before."""

    def inputs(rng, when):
        return {"when": when, "prompt": prompts_of(rng, 1)[0]}

    def observe(solution, inputs):
        runner, when = ScriptedRunner(seconds=0.005), inputs["when"]
        with served(solution, text_tokenizer()[0], runner) as server:
            runner.hold(3 if when == "in a stream" else 0)
            body = {"prompt": inputs["prompt"], "max_tokens": 240, "n": 2, "stream": LEAVING[when]}
            stream = server.stream("/v1/completions", body)
            came = len(stream.read(2)) if when == "in a stream" else 0
            server.until(lambda: server.engine.stats.waiting or runner.steps or server.engine.queues)
            time.sleep(0.05)
            stream.close()
            time.sleep(0.1)
            runner.release()
            idle, steps = server.idle(1.0), len(runner.steps)
            other = server.complete(prompt=inputs["prompt"], max_tokens=3, temperature=0)
            finished = server.finished(3)
            return {"came": came, "idle": idle, "steps": steps, "other": whole(other), "finished": finished,
                    "errors": server.watch.errors}  # fmt: skip

    def verify(inputs, got):
        when = inputs["when"]
        need(when != "in a stream" or got["came"] >= 2, "no events came before the client left")
        need(
            got["idle"], f"the engine is still busy 1 s after its client has left ({when}): nobody aborted the request"
        )
        need(got["steps"] < 60, f"{got['steps']} steps were run for a client that has left ({when})")
        text = text_of(continued(inputs["prompt"], 3))
        explain(got["other"], [[text, "length"]], "the answer to another client after that:")
        explain(got["finished"], {"abort": 2, "length": 1}, "requests finished, by reason:")
        explain(got["errors"], [], f"errors that the server logged though a client may leave ({when}):")


@case(task=4)
class FailuresEndTheirRequestOnly:
    """A batch that fails ends its streams with an error event, before it answers with 500; the server goes on."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 2), "at": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        bad, good = inputs["prompts"]
        ended = prompt_tokens("ended")
        runner = ScriptedRunner({tuple(ended): [END]}, fails={tuple(bad): inputs["at"]})
        with served(solution, text_tokenizer()[0], runner) as server:
            return {
                "stream": server.complete(prompt=bad, max_tokens=9, stream=True),
                "whole": server.complete(prompt=bad, max_tokens=9),
                "after": server.complete(prompt=good, max_tokens=3, temperature=0),
                "health": server.get("/health")["status"],
                "both": server.complete(prompt=[ended, bad], max_tokens=9)["status"],
                "idle": server.idle(),
                "finished": server.finished(5),
            }

    def verify(inputs, got):
        need(got["stream"]["status"] == 200, f"the stream that fails in its middle was not sent: {got['stream']}")
        events = got["stream"]["events"]
        errors = [chunk["error"] for chunk in chunks_of(events) if "error" in chunk]
        need(len(errors) == 1, f"a stream that fails should hold one error event, not {len(errors)}: {events}")
        explain(sorted(errors[0]), ["code", "message", "param", "type"], "the fields of the error object:")
        assert_done(events, "a stream that fails")
        pieces = streamed(events)
        need(
            len(pieces[0]["pieces"]) == inputs["at"] and not pieces[0]["reasons"],
            f"before the failure {inputs['at']} pieces and no finish reason should have come: {pieces}",
        )
        explain(got["whole"]["status"], 500, "the status of an answer at once that fails:")
        need("error" in got["whole"]["json"], f"a failure should be answered by an error object: {got['whole']}")
        explain(errors[0], got["whole"]["json"]["error"], "the error object in a stream, as in an answer at once:")
        explain(got["both"], 500, "the status of an answer of two choices, one of which fails:")
        text = text_of(continued(inputs["prompts"][1], 3))
        explain(whole(got["after"]), [[text, "length"]], "the answer to another request after that:")
        explain(got["health"], 200, "the status of /health after that:")
        need(got["idle"], "the engine is not idle after a failure")
        mistakes = {"a choice that had ended before the failure failed, too": {"error": 4, "length": 1}}
        explain(got["finished"], {"error": 3, "length": 1, "stop": 1}, "requests finished, by reason:", mistakes)


@case(task=4)
class WrongRequestsAreExplained:
    """What cannot be served is answered with a status of its own and OpenAI's error object, and costs nothing else."""

    def inputs(rng):
        return {}

    def observe(solution, inputs):
        def body(**fields):
            return {"prompt": "abc", "max_tokens": 2, "temperature": 0, **fields}

        asked = {
            "malformed JSON": (400, b'{"model": "scripted", "prompt": '),
            "invalid UTF-8": (400, b'{"model": "scripted", "prompt": "\xff"}'),
            "no JSON object": (400, b"[]"),
            "another model": (404, body(model="gpt-9")),
            "max_tokens 0": (400, body(max_tokens=0)),
            "temperature 3": (400, body(temperature=3)),
            "a prompt of 256 tokens": (400, body(prompt=[1] * 256)),
            "a prompt without tokens": (400, body(prompt="")),
            "an unknown token": (400, body(prompt=[99999])),
            "an empty stop string": (400, body(stop="")),
            "17 choices": (400, body(n=17)),
            "a body of 5000 bytes": (413, body(prompt="x" * 5000)),
            "max_tokens 10**15": (200, body(prompt=[1] * 250, max_tokens=10**15)),
            "fields that are null": (200, body(stop=None, seed=None, n=None, logprobs=None, stream=None)),
        }
        with served(solution, text_tokenizer()[0], ScriptedRunner(), limits={"body_bytes": 4096}) as server:
            answers = {name: (status, server.post("/v1/completions", sent)) for name, (status, sent) in asked.items()}
            answers["no such path"] = (404, server.get("/v2/none"))
            answers["the wrong method"] = (405, server.get("/v1/completions"))
            return {"answers": answers, "good": server.complete(**body()), "idle": server.idle()}

    def verify(inputs, got):
        for name, (status, answer) in got["answers"].items():
            need(answer["status"], f"{name}: no answer came ({answer.get('error')})")
            explain(answer["status"], status, f"the status for {name}:")
            if status != 200:
                error = answer["json"].get("error") if isinstance(answer["json"], dict) else None
                need(error and error["message"], f"{name}: the answer is no error object: {answer['json']}")
        explain(len(whole(got["good"])), 1, "choices of a good request after all that:")
        need(got["idle"], "the engine is not idle after requests that were refused")


@case(task=4)
class FullQueuesAnswer429:
    """Over the limit of requests the answer is 429, for streams too; it is 200 again when others have ended."""

    def inputs(rng):
        return {"prompt": prompts_of(rng, 1)[0]}

    def observe(solution, inputs):
        runner = ScriptedRunner()
        body = {"prompt": inputs["prompt"], "max_tokens": 3}
        with served(solution, text_tokenizer()[0], runner, limit=3) as server:
            runner.hold()
            streams = [server.stream("/v1/completions", body) for _ in range(3)]
            server.until(lambda: len(server.engine.queues) == 3, 1.0)
            full = [server.complete(**body), server.complete(**body, stream=True)]
            runner.release()
            ended = [stream.read()[-1:] for stream in streams]
            for stream in streams:
                stream.close()
            return {"full": full, "ended": ended, "after": server.complete(**body)["status"]}

    def verify(inputs, got):
        for answer in got["full"]:
            explain(answer["status"], 429, "the status while 3 of 3 requests have not ended:")
        explain(got["ended"], [["[DONE]"]] * 3, "the last event of the three that were accepted:")
        explain(got["after"], 200, "the status when they have ended:")


@case(task=4)
class MetricsTellTheTruth:
    """/metrics shows what runs and waits while it does, and measures times from the arrival at the server."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 3)}

    def observe(solution, inputs):
        runner = ScriptedRunner()
        with served(solution, text_tokenizer()[0], runner, rows=2) as server:
            runner.hold()
            streams = [server.stream("/v1/completions", {"prompt": p, "max_tokens": 4}) for p in inputs["prompts"]]
            server.until(lambda: len(server.engine.queues) == 3, 1.0)
            runner.hold(2)
            server.until(lambda: server.engine.stats.running == 2 and server.engine.stats.waiting == 1, 1.0)
            time.sleep(0.15)
            during = server.metrics()
            runner.release()
            for stream in streams:
                stream.read()
                stream.close()
            server.idle()
            return {"during": during, "after": server.metrics()}

    def verify(inputs, got):
        during = [got["during"][f"tiny_llm_requests_{name}"] for name in ("running", "waiting")]
        explain(during, [2, 1], "requests running and waiting with two rows for three requests:")
        need(0 < got["during"]["tiny_llm_kv_cache_usage"] < 1, "kv_cache_usage should be between 0 and 1 while two run")
        after = {name.removeprefix("tiny_llm_"): value for name, value in got["after"].items()}
        explain(
            [after["requests_running"], after["kv_cache_usage"]], [0, 0], "running and KV usage when all have ended:"
        )
        explain(after["time_to_first_token_seconds_count"], 3, "TTFT observations of three requests:")
        explain(after["inter_token_latency_seconds_count"], 9, "ITL observations of three requests of four tokens:")
        need(
            after["time_to_first_token_seconds_sum"] > 0.14,
            f"the sum of TTFT is {after['time_to_first_token_seconds_sum']:.3f} s, though one request waited 0.15 s",
        )


@case(task=4)
class SigtermDrains:
    """After SIGTERM new requests get 503, running ones end as they should, and then the server stops by itself."""

    def inputs(rng):
        return {"prompt": prompts_of(rng, 1)[0]}

    def observe(solution, inputs):
        runner = ScriptedRunner()
        body = {"prompt": inputs["prompt"], "max_tokens": 6, "temperature": 0}
        with served(solution, text_tokenizer()[0], runner, limits={"drain_seconds": 3.0}) as server:
            runner.hold(2)
            stream = server.stream("/v1/completions", body)
            stream.read(1)
            server.server.handle_exit(signal.SIGTERM, None)
            server.until(lambda: server.engine.draining, 1.0)
            new, health = server.complete(**body)["status"], server.get("/health")["status"]
            runner.release()
            events = stream.read()
            stream.close()
            stopped = server.until(lambda: server.server.should_exit, 2.0)
            return {"new": new, "health": health, "events": events, "stopped": stopped}

    def verify(inputs, got):
        explain([got["new"], got["health"]], [503, 503], "the status of a new request and of /health while draining:")
        text = text_of(continued(inputs["prompt"], 6))
        ends_once(got["events"], {0: [text, "length"]}, "the stream that ran when SIGTERM came")
        need(got["stopped"], "the server does not stop although its last request has ended")


@case(task=4)
class LateAnswersEnd:
    """An answer that takes too long is a 504, or an error event in a stream, and its request is aborted."""

    def inputs(rng):
        return {"prompt": prompts_of(rng, 1)[0]}

    def observe(solution, inputs):
        runner = ScriptedRunner()
        body = {"prompt": inputs["prompt"], "max_tokens": 200}
        with served(solution, text_tokenizer()[0], runner, limits={"seconds": 0.2}) as server:
            runner.hold(2)
            stream, answer = server.complete(**body, stream=True), server.complete(**body)
            runner.release()
            return {"stream": stream, "whole": answer, "idle": server.idle()}

    def verify(inputs, got):
        explain(got["whole"]["status"], 504, "the status of an answer at once that takes too long:")
        need("events" in got["stream"], f"a stream that takes too long never ended: {got['stream']}")
        errors = [chunk for chunk in chunks_of(got["stream"]["events"]) if "error" in chunk]
        need(len(errors) == 1, "a stream that takes too long should hold one error event")
        assert_done(got["stream"]["events"], "a stream that takes too long")
        need(got["idle"], "the engine is not idle after answers that took too long")


@case(task=4)
class DeadEnginesSaySo:
    """When the engine's thread dies, streams end with an error event, /health says 503, and so do new requests."""

    def inputs(rng):
        return {"prompts": prompts_of(rng, 2), "at": int(rng.integers(2, 5))}

    def observe(solution, inputs):
        runner = ScriptedRunner(seconds=0.01)

        def build():
            engine = build_engine(solution, runner, 4, 256)
            step, count = engine.step, iter(range(100))

            def failing():
                if next(count) == inputs["at"]:
                    raise RuntimeError("the scheduler has lost its mind")
                return step()

            engine.step = failing
            return engine

        with served(solution, text_tokenizer()[0], runner, build=build) as server:
            before = server.get("/health")["status"]
            streams = [server.stream("/v1/completions", {"prompt": p, "max_tokens": 50}) for p in inputs["prompts"]]
            events = [stream.read() for stream in streams]
            for stream in streams:
                stream.close()
            new = server.complete(prompt=inputs["prompts"][0], max_tokens=2)
            return {"before": before, "events": events, "new": new, "health": server.get("/health")["status"],
                    "finished": server.finished(2)}  # fmt: skip

    def verify(inputs, got):
        explain(got["before"], 200, "the status of /health before:")
        for events in got["events"]:
            errors = [chunk for chunk in chunks_of(events) if "error" in chunk]
            need(len(errors) == 1, f"a stream of an engine that dies should hold one error event: {events[-2:]}")
            assert_done(events, "a stream of an engine that dies")
        explain([got["new"]["status"], got["health"]], [503, 503], "the status of a new request and of /health:")
        explain(got["finished"], {"error": 2}, "requests finished, by reason:")
