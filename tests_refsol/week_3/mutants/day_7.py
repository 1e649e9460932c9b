"""Plausible wrong solutions of Week 3 Day 7, and the case that catches each."""

from course.mutants import Mutant

TEXT, BRIDGE, LIMITS, METRICS = (f"serving/{name}.py" for name in ("text_stream", "async_engine", "limits", "metrics"))
GENERATION, ANSWER, SERVER = (f"serving/{name}.py" for name in ("generation", "answer", "server"))


def text(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, TEXT, old, new, message, killer)


def bridge(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, BRIDGE, old, new, message, killer)


def limit(name: str, file: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, file, old, new, message, killer)


def answer(name: str, file: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, file, old, new, message, killer)


SURE = "len(held) if last or self.stopped else len(held) - self._possible_start(held)"

_TEXT = [
    text(
        "stop-string-sent",
        "min(found)[1]], True",
        "min(found)[0]], True",
        "the stop string was sent too",
        "TextEndsBeforeTheStopString",
    ),
    text(
        "first-to-begin-wins",
        "[(at + len(s), at)",
        "[(at, at)",
        "the stop string that begins first was taken",
        "TextEndsBeforeTheStopString",
    ),
    text(
        "first-in-the-list-wins",
        "min(found)[1]], True",
        "found[0][1]], True",
        "the stop string that is first in the list was taken",
        "TextEndsBeforeTheStopString",
    ),
    text(
        "looks-at-new-text-only",
        "at := held.find(s)",
        "at := text.find(s)",
        "the text of",
        "TextEndsBeforeTheStopString",
    ),
    text("nothing-held-back", SURE, "len(held)", "the beginning of a stop string was sent", "SentAsSoonAsItIsSure"),
    text(
        "holds-by-length",
        SURE,
        "len(held) if last or self.stopped else max(0, len(held) - max(map(len, self.stop), default=1) + 1)",
        "as much was held back as the longest stop string is long",
        "SentAsSoonAsItIsSure",
    ),
    text(
        "goes-on-after-the-stop",
        '        if self.stopped:\n            return ""\n',
        "",
        "what each `add` returned",
        "NothingAfterTheStop",
    ),
    text(
        "rest-is-lost",
        "self._take(self.detokenizer.finish(), last=True)",
        "self._take(self.detokenizer.finish(), last=False)",
        "what was held back at the end was lost",
        "TextEndsBeforeTheStopString",
    ),
    text(
        "stop-string-at-the-end",
        "        return self._take(self.detokenizer.finish(), last=True)\n",
        "        rest, self.held = self.held + self.detokenizer.finish(), ''\n"
        "        return '' if self.stopped else rest\n",
        "`finish` did not look for stop strings",
        "AStopStringEndsAtTheEnd",
    ),
    text(
        "broken-rest-is-lost",
        "self._take(self.detokenizer.finish(), last=True)",
        'self._take("", last=True)',
        "what `finish` returned, twice",
        "TheRestComesOnce",
    ),
    text(
        "tokens-decoded-alone",
        "self._take(self.detokenizer.add(token), last=False)",
        "self._take(self.detokenizer.tokenizer.decode([token]), last=False)",
        "holds a broken character",
        "CharactersStayWhole",
    ),
    text(
        "stops-in-any-case",
        "if found := [(at + len(s), at) for s in self.stop if (at := held.find(s)) >= 0]:",
        "if found := [(at + len(s), at) for s in self.stop if (at := held.upper().find(s.upper())) >= 0]:",
        "upper and lower case were taken for the same",
        "NothingAfterTheStop",
    ),
    text(
        "length-in-bytes",
        "        self.length += len(text)\n",
        "        self.length += len(text.encode())\n",
        "bytes were counted, not characters",
        "CharactersStayWhole",
    ),
    text(
        "length-without-what-is-held",
        "        self.length += len(text)\n",
        "        self.length += len(self.held)\n",
        "characters of all tokens so far",
        "SentAsSoonAsItIsSure",
    ),
]

OBEY = "        while not (engine.busy and self.inbox.empty()):\n"
ABORT_ALL = """            for request in requests:
                self.abort(request.uid)

    def admit"""
ABORT = """        if self.close(uid, Output(uid, None, "abort")):
            self.inbox.put(lambda engine: engine.abort(uid))
"""
REFUSED = """            try:
                engine.add(request)
            except ValueError as error:
                self.tell(self.close, request.uid, RefusedError(str(error)))
"""
DELIVER = """            if output.finish_reason:
                self.close(output.uid, output)
            elif output.uid in self.queues:
"""
POP = "queue = self.queues.pop(uid, None)\n"
TIMER = "timer = None if seconds is None else self.loop.call_later(seconds, queue.put_nowait, late)"
FULL = "if len(self.queues) + requests > self.limit:"

_BRIDGE = [
    bridge(
        "no-stats-at-first",
        "        self.publish(engine)\n        self.tell(self.ready",
        "        self.tell(self.ready",
        "publish them before it is ready",
        "TheStatsFollow",
    ),
    bridge(
        "no-stats-after-a-command",
        "            command(engine)\n            self.publish(engine)\n",
        "            command(engine)\n",
        "after a step only, not after a command",
        "TheStatsFollow",
    ),
    bridge(
        "no-stats-after-a-step",
        "            outputs = engine.step()\n            self.publish(engine)\n",
        "            outputs = engine.step()\n",
        "after a command only, not after a step",
        "TheStatsFollow",
    ),
    bridge(
        "inbox-only-when-idle",
        OBEY,
        "        while not engine.busy:\n",
        "nobody aborted",
        "WhoLeavesIsAborted",
    ),
    bridge(
        "spins-when-idle",
        "        while self.obey(engine):\n            outputs = engine.step()\n",
        "        while self.inbox.empty() or self.obey(engine):\n            outputs = engine.step()\n",
        "its thread spins",
        "IdleEnginesSleep",
    ),
    bridge(
        "looks-now-and-then",
        OBEY,
        "        while not engine.busy and self.inbox.empty():\n"
        "            __import__('time').sleep(0.01)\n        while not self.inbox.empty():\n",
        "or looks now and then",
        "IdleEnginesSleep",
    ),
    bridge(
        "goes-on-after-stop",
        "            if command is None:\n                return False\n",
        "            if command is None:\n                continue\n",
        "goes on after `stop`",
        "OutputsReachTheirRequest",
    ),
    bridge(
        "a-call-for-each-token",
        "            if outputs:\n                self.tell(self.deliver, outputs)\n",
        "            for output in outputs:\n                self.tell(self.deliver, [output])\n",
        "what a step gave is one list",
        "AStepIsOneCall",
    ),
    bridge(
        "adds-in-the-event-loop",
        "                self.inbox.put(self.addition(request))\n",
        "                from threading import Event\n\n                got, engines = Event(), []\n"
        "                self.inbox.put(lambda engine: (engines.append(engine), got.set()))\n"
        "                got.wait()\n"
        "                self.addition(request)(engines[0])\n                self.inbox.put(lambda engine: None)\n",
        "the threads that call `add` and `abort`",
        "TheEngineHasItsThread",
    ),
    bridge(
        "refusal-past-tell",
        "                self.tell(self.close, request.uid, RefusedError(str(error)))\n",
        "                self.close(request.uid, RefusedError(str(error)))\n",
        "until something else wakes the event loop",
        "WhatCannotFitIsRefused",
    ),
    bridge(
        "counts-until-it-is-read",
        "            if output.finish_reason:\n                self.close(output.uid, output)\n            elif",
        "            if",
        "have ended unread, with a limit of 16",
        "EndedRequestsMakeRoom",
    ),
    bridge(
        "timer-goes-on",
        "            if timer:\n                timer.cancel()\n",
        "",
        "a timer keeps what has ended in time",
        "NothingIsKeptOfThePast",
    ),
    bridge(
        "waits-for-the-inbox",
        OBEY,
        "        for _ in range(1):\n",
        "no output came, or the iterator did not end",
        "OutputsReachTheirRequest",
    ),
    bridge(
        "leaver-not-aborted",
        ABORT_ALL,
        """            for request in requests:
                self.queues.pop(request.uid, None)

    def admit""",
        "nobody aborted",
        "WhoLeavesIsAborted",
    ),
    bridge(
        "map-keeps-the-leaver",
        ABORT_ALL,
        """            for request in requests:
                self.inbox.put(lambda engine, uid=request.uid: engine.abort(uid))

    def admit""",
        "how 16 requests end that are submitted to an idle engine",
        "NothingIsKeptOfThePast",
    ),
    bridge(
        "map-keeps-all",
        POP,
        "queue = self.queues.get(uid)\n",
        "finish reasons of the aborted request: exactly one",
        "OneOfManyCanBeAborted",
    ),
    bridge(
        "abort-not-told-to-the-engine",
        ABORT,
        '        self.close(uid, Output(uid, None, "abort"))\n',
        "nobody aborted",
        "WhoLeavesIsAborted",
    ),
    bridge(
        "abort-without-an-end",
        ABORT,
        """        if self.queues.pop(uid, None):
            self.inbox.put(lambda engine: engine.abort(uid))
""",
        "the iterator does not end once one of its requests was aborted",
        "OneOfManyCanBeAborted",
    ),
    bridge(
        "cleans-up-only-at-the-end",
        """            yield self.outputs(queue, {request.uid for request in requests})
        finally:
            if timer:
                timer.cancel()
""",
        """            yield self.outputs(queue, {request.uid for request in requests})
        except GeneratorExit:
            return
        else:
            if timer:
                timer.cancel()
""",
        "nobody aborted",
        "WhoLeavesIsAborted",
    ),
    bridge(
        "end-never-given",
        DELIVER,
        """            if output.finish_reason:
                self.queues.pop(output.uid, None)
            elif output.uid in self.queues:
""",
        "no output came, or the iterator did not end",
        "OutputsReachTheirRequest",
    ),
    bridge(
        "end-given-twice",
        DELIVER,
        """            if output.finish_reason and output.uid in self.queues:
                self.queues[output.uid].put_nowait(output)
                self.close(output.uid, output)
            elif output.uid in self.queues:
""",
        "the last output was given twice",
        "OutputsReachTheirRequest",
    ),
    bridge(
        "stops-at-the-first-end",
        "        while uids:\n",
        "        count = len(uids)\n        while len(uids) == count:\n",
        "the outputs of request",
        "OutputsReachTheirRequest",
    ),
    bridge(
        "late-outputs-are-errors",
        "            elif output.uid in self.queues:\n",
        "            else:\n",
        "errors that the server logged though a client may leave",
        "LeavingClientsFreeTheEngine",
    ),
    bridge(
        "too-long-kills-the-thread",
        REFUSED,
        "            engine.add(request)\n",
        "must not end the engine's thread",
        "WhatCannotFitIsRefused",
    ),
    bridge(
        "too-long-hangs",
        "                self.tell(self.close, request.uid, RefusedError(str(error)))\n",
        '                logger.warning("dropped: %s", error)\n',
        "its stream never ends",
        "WhatCannotFitIsRefused",
    ),
    bridge(
        "no-limit",
        FULL,
        "if len(self.queues) > 10**9:",
        "were not refused with FullError",
        "FullIsRefused",
    ),
    bridge(
        "limit-looks-at-one",
        FULL,
        "if len(self.queues) >= self.limit:",
        "were not refused with FullError",
        "FullIsRefused",
    ),
    bridge(
        "dead-accepts",
        '            raise DeadError(f"the engine has died: {self.error}: restart the server")\n',
        "            self.queues.clear()\n",
        "a submit to a dead engine should raise DeadError",
        "DeathEndsEveryStream",
    ),
    bridge(
        "errors-are-swallowed",
        "        engine = self.build()\n",
        """        try:
            engine = self.build()
        except OSError:
            return
""",
        "what `start` raised",
        "BuildErrorsReachStart",
    ),
    bridge("no-time-limit", TIMER, "timer = None", "should raise TimeoutError", "TimeIsLimited"),
    bridge(
        "step-in-the-event-loop",
        "            outputs = engine.step()\n",
        """            stepped = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop)
            stepped.result()
            done = SimpleQueue()
            self.loop.call_soon_threadsafe(lambda: done.put(engine.step()))
            outputs = done.get()
""",
        "the thread that launches batches is the one that built the engine",
        "TheEngineHasItsThread",
    ),
]

GATHER = """        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
"""
DRAIN = """        try:
            await asyncio.wait_for(self.idle.wait(), seconds)
        except TimeoutError:
            for uid in list(self.queues):
                self.abort(uid)

    async def stop"""

_LIMITS = [
    limit(
        "trusts-no-declaration",
        LIMITS,
        'if int(request.headers.get("content-length", 0)) > limits.body_bytes:',
        "if False:",
        "parts were read of a body that is known to be too large",
        "BodiesOverTheLimitAreNotRead",
    ),
    limit(
        "trusts-the-declaration",
        LIMITS,
        "                if len(body) > limits.body_bytes:\n                    raise too_large\n",
        "",
        "was accepted with a limit of 100",
        "BodiesOverTheLimitAreNotRead",
    ),
    limit(
        "measures-when-all-is-read",
        LIMITS,
        """                body += part
                if len(body) > limits.body_bytes:
                    raise too_large
""",
        """                body += part
            if len(body) > limits.body_bytes:
                raise too_large
""",
        "parts were read of a body that is known to be too large",
        "BodiesOverTheLimitAreNotRead",
    ),
    limit(
        "last-part-only",
        LIMITS,
        "                body += part\n",
        "                body = part or body\n",
        "only the last part was kept",
        "BodiesWithinTheLimitAreRead",
    ),
    limit(
        "body-has-all-day",
        LIMITS,
        "asyncio.timeout(limits.body_seconds)",
        "asyncio.timeout(None)",
        "a body that never comes hangs the server",
        "SlowBodiesAreRefused",
    ),
    limit(
        "each-part-has-its-time",
        LIMITS,
        "        async with asyncio.timeout(limits.body_seconds):\n            async for part in request.stream():\n",
        "        if parts := request.stream():\n"
        "            while (part := await asyncio.wait_for(anext(parts, None), limits.body_seconds)) is not None:\n",
        "0.1 s is for the whole body",
        "SlowBodiesAreRefused",
    ),
    limit(
        "last-token-checked",
        LIMITS,
        "for token in ids if token >= vocabulary]",
        "for token in ids[-1:] if token >= vocabulary]",
        "which is not the last was accepted",
        "PromptsAreChecked",
    ),
    limit(
        "no-room-to-answer",
        LIMITS,
        "if len(ids) >= max_len:",
        "if len(ids) > max_len:",
        "it can never be answered",
        "PromptsAreChecked",
    ),
    limit(
        "unknown-token-passes",
        LIMITS,
        "token >= vocabulary]",
        "token > vocabulary]",
        "token 50 of 50 was accepted",
        "PromptsAreChecked",
    ),
    limit(
        "client-not-watched",
        LIMITS,
        "        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)\n",
        "        await asyncio.wait(tasks[:1])\n",
        "unless_gone does not return (leaves)",
        "WorkEndsWhenTheClientLeaves",
    ),
    limit(
        "nobody-waits-for-the-end",
        LIMITS,
        "        await asyncio.gather(*tasks, return_exceptions=True)\n",
        "",
        "or nobody waited until it had ended",
        "WorkEndsWhenTheClientLeaves",
    ),
    limit(
        "work-goes-on",
        LIMITS,
        GATHER,
        "        tasks[1].cancel()\n        await asyncio.sleep(0)\n",
        "the work goes on although the client has left",
        "WorkEndsWhenTheClientLeaves",
    ),
    limit(
        "error-of-the-work-lost",
        LIMITS,
        "        if tasks[0].done():\n            tasks[0].result()\n",
        "",
        "the error of the work was lost",
        "WorkEndsWhenTheClientLeaves",
    ),
    limit(
        "any-message-is-a-leaver",
        LIMITS,
        'while (await receive())["type"] != "http.disconnect":',
        'while (await receive())["type"] not in ("http.disconnect", "http.request"):',
        "what the work noted (late body)",
        "WorkEndsWhenTheClientLeaves",
    ),
    limit(
        "ttft-from-the-choice",
        METRICS,
        "        self.arrived = arrived\n",
        "        self.arrived = metrics.clock()\n",
        "TTFT was measured from the moment when the choice was made",
        "TimesBeginAtTheArrival",
    ),
    limit(
        "itl-from-the-first",
        METRICS,
        "        self.last = now\n",
        "        self.last = self.last or now\n",
        "each token was measured from the first one",
        "TimesBeginAtTheArrival",
    ),
    limit(
        "first-token-is-a-gap",
        METRICS,
        "        else:\n            self.metrics.itl.observe(now - self.last)\n",
        "        self.metrics.itl.observe(now - (self.last or self.arrived))\n",
        "the first token was counted too",
        "TimesBeginAtTheArrival",
    ),
    limit(
        "drain-drops-streams",
        BRIDGE,
        DRAIN,
        """        for uid in list(self.queues):
            self.abort(uid)

    async def stop""",
        "the drain ended while requests were running",
        "DrainLetsRequestsEnd",
    ),
    limit(
        "drain-accepts",
        BRIDGE,
        "        self.draining = True\n        try:\n",
        "        try:\n",
        "what a submit during a drain raises",
        "DrainLetsRequestsEnd",
    ),
    limit(
        "drain-without-an-end",
        BRIDGE,
        "await asyncio.wait_for(self.idle.wait(), seconds)",
        "await self.idle.wait()",
        "how running requests end in a drain of 0.15 s",
        "DrainLetsRequestsEnd",
    ),
]

RAISED = """    except Exception:
        for choice in choices.values():
            choice.finish_reason = choice.finish_reason or "error"
        raise
"""
FAILED = """        if output.finish_reason in ("error", "abort"):
"""
RESET = "        tokens, self.pending = tuple(self.pending), []\n"
STOPPED = 'self.finish_reason = "stop" if self.text.stopped else output.finish_reason\n'
EARLY = """            if piece.finish_reason and not output.finish_reason:
                engine.abort(output.uid)
"""
CAUGHT = """        except Exception as error:
            told = api_error(error)
"""
FINISHED = """            finally:
                for choice in self.choices.values():
                    self.metrics.finished.labels(choice.finish_reason or "abort").inc()
"""
PIECES = """                yield event(self.reply.chunk(self.reply.delta(piece)))
"""

_ANSWERS = [
    answer(
        "stop-token-has-text",
        GENERATION,
        'if output.finish_reason != "stop":',
        "if output.sampled.token:",
        "the text of the stop token was sent",
        "StopTokensHaveNoText",
    ),
    answer(
        "rest-not-sent",
        GENERATION,
        "            text += self.text.finish()\n",
        "            pass\n",
        "the text of choice 0 of a stream of characters in parts",
        "StreamsKeepCharactersWhole",
    ),
    answer(
        "stop-string-is-no-end",
        GENERATION,
        STOPPED,
        "self.finish_reason = output.finish_reason\n",
        "a completion with stop",
        "StopStringsEndAnswers",
    ),
    answer(
        "stop-string-not-aborted",
        GENERATION,
        EARLY,
        "",
        "nobody aborted",
        "StopStringsEndAnswers",
    ),
    answer(
        "held-tokens-lost",
        GENERATION,
        "        if not text and not self.finish_reason:\n            return None\n",
        "        if not text and not self.finish_reason:\n            self.pending.clear()\n            return None\n",
        "the tokens of a completion's logprobs",
        "LogprobsBelongToTheirTokens",
    ),
    answer(
        "tokens-sent-again",
        GENERATION,
        RESET,
        "        tokens = tuple(self.pending)\n",
        "the tokens of a completion's logprobs",
        "LogprobsBelongToTheirTokens",
    ),
    answer(
        "offset-after-the-token",
        GENERATION,
        "                text = self.text.add(output.sampled.token)\n",
        """                text = self.text.add(output.sampled.token)
                self.pending[-1] = Token(self.text.length, output.sampled)
""",
        "text_offset: characters before each token",
        "LogprobsBelongToTheirTokens",
    ),
    answer(
        "end-token-not-counted",
        GENERATION,
        "            self.tokens += 1\n",
        '            self.tokens += output.finish_reason != "stop"\n',
        "completion tokens, the end token included",
        "StopTokensHaveNoText",
    ),
    answer(
        "failure-is-an-end",
        GENERATION,
        FAILED,
        '        if output.finish_reason == "abort":\n',
        "should hold one error event",
        "FailuresEndTheirRequestOnly",
    ),
    answer(
        "error-counts-as-abort",
        GENERATION,
        RAISED,
        "    finally:\n        pass\n",
        "requests finished, by reason",
        "DeadEnginesSaySo",
    ),
    answer(
        "end-told-twice",
        ANSWER,
        PIECES,
        PIECES
        + """                if piece.finish_reason:
                    yield event(self.reply.chunk(self.reply.delta(piece._replace(text="", tokens=()))))
""",
        "the end was told twice",
        "StreamsSayWhatAnswersSay",
    ),
    answer(
        "end-never-told",
        ANSWER,
        PIECES,
        "                yield event(self.reply.chunk(self.reply.delta(piece._replace(finish_reason=None))))\n",
        "the end was never told",
        "StreamsSayWhatAnswersSay",
    ),
    answer(
        "no-done",
        ANSWER,
        "        yield DONE\n",
        "",
        "ended without [DONE]",
        "StreamsSayWhatAnswersSay",
    ),
    answer(
        "no-done-after-an-error",
        ANSWER,
        "            yield event(told.body())\n",
        "            yield event(told.body())\n            return\n",
        "ended without [DONE]",
        "FailuresEndTheirRequestOnly",
    ),
    answer(
        "stream-breaks-at-an-error",
        ANSWER,
        CAUGHT,
        """        except ZeroDivisionError as error:
            told = api_error(error)
""",
        "that fails",
        "FailuresEndTheirRequestOnly",
    ),
    answer(
        "stream-sent-at-the-end",
        ANSWER,
        "            async for piece in parts:\n" + PIECES,
        "            for piece in [piece async for piece in parts]:\n" + PIECES,
        "tokens are kept back",
        "TokensAreSentAsTheyCome",
    ),
    answer(
        "usage-of-one-choice",
        ANSWER,
        "sum(choice.tokens for choice in self.choices.values())",
        "next(iter(self.choices.values())).tokens",
        "one choice was counted",
        "UsageIsCounted",
    ),
    answer(
        "prompt-counted-for-each-choice",
        ANSWER,
        """            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
""",
        """            "prompt_tokens": sum(request.prompt_len for request in self.requests),
            "completion_tokens": completion,
            "total_tokens": sum(request.prompt_len for request in self.requests) + completion,
""",
        "a prompt was counted for each of its choices",
        "UsageIsCounted",
    ),
    answer(
        "a-chunk-for-no-usage",
        ANSWER,
        "            if self.reply.include_usage:\n",
        "            if self.reply:\n",
        "a chunk without choices was sent though nobody asked",
        "UsageIsCounted",
    ),
    answer(
        "error-as-it-is",
        ANSWER,
        "            yield event(told.body())\n",
        "            told = {'message': repr(error), 'type': 'error', 'param': None, 'code': None}\n"
        "            yield event({'error': told})\n",
        "the error object in a stream, as in an answer at once",
        "FailuresEndTheirRequestOnly",
    ),
    answer(
        "all-choices-fail",
        GENERATION,
        'choice.finish_reason or "error"',
        '"error"',
        "a choice that had ended before the failure failed, too",
        "FailuresEndTheirRequestOnly",
    ),
    answer(
        "end-token-not-timed",
        GENERATION,
        "            self.timing.token()\n",
        "            if output.finish_reason != 'stop':\n                self.timing.token()\n",
        "tokens that ended an answer were not counted",
        "StopTokensHaveNoText",
    ),
    answer(
        "usage-unasked",
        ANSWER,
        "            if self.reply.include_usage:\n                yield event(self.reply.chunk(usage=self.usage()))\n",
        '            yield event({**self.reply.chunk(), "usage": self.usage()})\n',
        "usage was sent though nobody asked",
        "UsageIsCounted",
    ),
    answer(
        "client-not-watched-by-the-answer",
        ANSWER,
        "await unless_gone(receive, self.send(parts, scope, receive, send))",
        "await self.send(parts, scope, receive, send)",
        "nobody aborted the request",
        "LeavingClientsFreeTheEngine",
    ),
    answer(
        "counted-only-at-a-good-end",
        ANSWER,
        FINISHED,
        """            finally:
                pass
            for choice in self.choices.values():
                if choice.finish_reason:
                    self.metrics.finished.labels(choice.finish_reason).inc()
""",
        "requests finished, by reason",
        "LeavingClientsFreeTheEngine",
    ),
    answer(
        "no-answer-in-time",
        ANSWER,
        "self.engine.submit(self.requests, self.seconds)",
        "self.engine.submit(self.requests)",
        "takes too long",
        "LateAnswersEnd",
    ),
    answer(
        "seed-ignored", SERVER, "seed=(seed + number) % 2**64,", "seed=secrets.randbits(63),", "seed", "SeedsDecide"
    ),
    answer(
        "choices-share-a-seed",
        SERVER,
        "seed=(seed + number) % 2**64,",
        "seed=seed % 2**64,",
        "choices share one seed",
        "SeedsDecide",
    ),
    answer(
        "negative-seed",
        SERVER,
        "seed=(seed + number) % 2**64,",
        "seed=seed + number,",
        "seeds of choices",
        "SamplingIsWhatWasAsked",
    ),
    answer(
        "zero-temperature-is-no-temperature",
        SERVER,
        "temperature=1.0 if asked.temperature is None else asked.temperature,",
        "temperature=asked.temperature or 1.0,",
        "temperature 0",
        "SamplingIsWhatWasAsked",
    ),
]

MUTANTS = [*_TEXT, *_BRIDGE, *_LIMITS, *_ANSWERS]
