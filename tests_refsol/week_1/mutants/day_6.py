"""Wrong solutions of day 6 that its tests must catch."""

from course.mutants import Mutant

GENERATE, DETOKENIZER, CHAT = "text/generate.py", "text/detokenizer.py", "text/chat.py"

MUTANTS = [
    Mutant(
        name="first-position",
        task=1,
        file=GENERATE,
        old="model(mx.array([tokens]))[:, -1]",
        new="model(mx.array([tokens]))[:, 0]",
        message="the logits of the first position were used, not of the last",
        killer="FollowsTheModel",
    ),
    Mutant(
        name="newest-token-only",
        task=1,
        file=GENERATE,
        old="model(mx.array([tokens]))",
        new="model(mx.array([tokens if len(tokens) == len(prompt) else tokens[-1:]]))",
        message="only the newest token was shown to the model",
        killer="FollowsTheModel",
    ),
    Mutant(
        name="stop-token-yielded",
        task=1,
        file=GENERATE,
        old="""        if token in stop_tokens:
            return "stop"
        tokens.append(token)
        yield token
""",
        new="""        tokens.append(token)
        yield token
        if token in stop_tokens:
            return "stop"
""",
        message="the stop token was yielded",
        killer="StopTokenEndsTheOutput",
    ),
    Mutant(
        name="no-reason-at-stop",
        task=1,
        file=GENERATE,
        old="""        if token in stop_tokens:
            return "stop"
""",
        new="""        if token in stop_tokens:
            break
""",
        message="the finish reason at a stop token is 'stop'",
        killer="StopTokenEndsTheOutput",
    ),
    Mutant(
        name="last-64-tokens",
        task=1,
        file=GENERATE,
        old="model(mx.array([tokens]))",
        new="model(mx.array([tokens[-64:]]))",
        message="only the last 64 tokens were shown to the model",
        killer="FollowsTheModel",
    ),
    Mutant(
        name="prompt-changed",
        task=1,
        file=GENERATE,
        old="tokens = list(prompt)",
        new="tokens = prompt if isinstance(prompt, list) else list(prompt)",
        message="the caller's prompt grew",
        killer="PromptStaysAsItWas",
    ),
    Mutant(
        name="history-of-output",
        task=1,
        file=GENERATE,
        old="sample(logits, [tokens])",
        new="sample(logits, [tokens[len(prompt):]])",
        message="the history holds only the output",
        killer="SampleChooses",
    ),
    Mutant(
        name="always-greedy",
        task=1,
        file=GENERATE,
        old="int(sample(logits, [tokens])[0])",
        new="int((sample(logits, [tokens]), greedy(logits, [tokens]))[1][0])",
        message="the tokens yielded are those that sample chose",
        killer="SampleChooses",
    ),
    Mutant(
        name="collects-first",
        task=1,
        file=GENERATE,
        old="""    for _ in range(max_tokens):
        logits = model(mx.array([tokens]))[:, -1]
        token = int(sample(logits, [tokens])[0])
        if token in stop_tokens:
            return "stop"
        tokens.append(token)
        yield token
    return "length"
""",
        new="""    reason = "length"
    for _ in range(max_tokens):
        logits = model(mx.array([tokens]))[:, -1]
        token = int(sample(logits, [tokens])[0])
        if token in stop_tokens:
            reason = "stop"
            break
        tokens.append(token)
    yield from tokens[len(prompt) :]
    return reason
""",
        message="tokens are collected before the first one is yielded",
        killer="TokensComeOneByOne",
    ),
    Mutant(
        name="zero-refused",
        task=1,
        file=GENERATE,
        old="if max_tokens < 0:",
        new="if max_tokens < -1:",
        message="a negative max_tokens was not refused",
        killer="BadRequestsAreRefused",
    ),
    Mutant(
        name="empty-list-only",
        task=1,
        file=GENERATE,
        old="if not prompt:",
        new="if prompt == []:",
        message="an empty tuple as the prompt should name",
        killer="BadRequestsAreRefused",
    ),
    Mutant(
        name="each-token-alone",
        task=2,
        file=DETOKENIZER,
        old="""        text = self._pending()
        if not text or text.endswith(REPLACEMENT):
            return ""
        self.start, self.read = self.read, len(self.tokens)
        return text
""",
        new="""        self.start = self.read = len(self.tokens)
        return self._decode([token])
""",
        message="each token was decoded alone",
        killer="JoinedIsTheWholeText",
    ),
    Mutant(
        name="no-holding-back",
        task=2,
        file=DETOKENIZER,
        old="if not text or text.endswith(REPLACEMENT):",
        new="if not text:",
        message="half a character was shown",
        killer="NoHalfCharacterIsShown",
    ),
    Mutant(
        name="hold-any-replacement",
        task=2,
        file=DETOKENIZER,
        old="text.endswith(REPLACEMENT)",
        new="REPLACEMENT in text",
        message="complete text is held back",
        killer="WholeTextIsNotHeldBack",
    ),
    Mutant(
        name="all-at-the-end",
        task=2,
        file=DETOKENIZER,
        old="if not text or text.endswith(REPLACEMENT):",
        new="if text:",
        message="complete text is held back",
        killer="WholeTextIsNotHeldBack",
    ),
    Mutant(
        name="no-flush",
        task=2,
        file=DETOKENIZER,
        old="""        text = self._pending()
        self.start, self.read = self.read, len(self.tokens)
        return text

    def _pending""",
        new="""        text = self._pending()
        self.start, self.read = self.read, len(self.tokens)
        return "" if text.endswith(REPLACEMENT) else text

    def _pending""",
        message="finish() lost the text that was held back",
        killer="FinishReleasesWhatIsHeld",
    ),
    Mutant(
        name="flush-drops-broken",
        task=2,
        file=DETOKENIZER,
        old="""        self.start, self.read = self.read, len(self.tokens)
        return text

    def finish""",
        new="""        self.start, self.read = self.read, len(self.tokens)
        return text.replace(REPLACEMENT, "")

    def finish""",
        message="bytes that are no UTF-8 are dropped",
        killer="JoinedIsTheWholeText",
    ),
    Mutant(
        name="special-written",
        task=2,
        file=DETOKENIZER,
        old="skip_special_tokens=True",
        new="skip_special_tokens=False",
        message="a special token was written out",
        killer="SpecialTokensGiveNoText",
    ),
    Mutant(
        name="no-window",
        task=2,
        file=DETOKENIZER,
        old="""        if not text or text.endswith(REPLACEMENT):
            return ""
        self.start, self.read = self.read, len(self.tokens)
""",
        new="""        if not text or text.endswith(REPLACEMENT):
            return ""
        self.start = self.read = len(self.tokens)
""",
        message="tokens were decoded without the ones before them",
        killer="SpacesBetweenWordsStay",
    ),
    Mutant(
        name="start-stripped",
        task=2,
        file=DETOKENIZER,
        old="""        self.start, self.read = self.read, len(self.tokens)
        return text

    def finish""",
        new="""        first = self.read == 0
        self.start, self.read = self.read, len(self.tokens)
        return text.lstrip(" ") if first else text

    def finish""",
        message="white space at the start of the text was stripped",
        killer="SpaceAtTheStartStays",
    ),
    Mutant(
        name="everything-again",
        task=2,
        file=DETOKENIZER,
        old="""        self.start, self.read = self.read, len(self.tokens)
        return text

    def finish""",
        new="""        self.read = len(self.tokens)
        return text

    def finish""",
        message="tokens are decoded again although their text has been handed out",
        killer="LongStreamsStayCheap",
    ),
    Mutant(
        name="no-newline-between-turns",
        task=3,
        file=CHAT,
        old='{content}<|im_end|>\\n"',
        new='{content}<|im_end|>"',
        message="there is no newline between <|im_end|> and the next turn",
        killer="MatchesTheTemplate",
    ),
    Mutant(
        name="no-reply-header",
        task=3,
        file=CHAT,
        old='return "".join(turns) + header',
        new='return "".join(turns)',
        message="the header of the reply is missing",
        killer="MatchesTheTemplate",
    ),
    Mutant(
        name="content-stripped",
        task=3,
        file=CHAT,
        old="content = message.content",
        new="content = message.content.strip()",
        message="the content was stripped",
        killer="MatchesTheTemplate",
    ),
    Mutant(
        name="thinking-inverted",
        task=3,
        file=CHAT,
        old='"" if enable_thinking else',
        new='"" if not enable_thinking else',
        message="the empty thinking block is missing",
        killer="ThinkingCanBeSwitchedOff",
    ),
    Mutant(
        name="thoughts-kept",
        task=3,
        file=CHAT,
        old='message.role == "assistant" and "</think>" in content',
        new="False",
        message="the thoughts of earlier replies are shown again",
        killer="EarlierThoughtsAreNotShownAgain",
    ),
    Mutant(
        name="first-think-end",
        task=3,
        file=CHAT,
        old='content.rpartition("</think>")[2]',
        new='content.partition("</think>")[2]',
        message="cut at the first </think>, not at the last",
        killer="EarlierThoughtsAreNotShownAgain",
    ),
    Mutant(
        name="thoughts-of-everyone",
        task=3,
        file=CHAT,
        old='message.role == "assistant" and "</think>" in content',
        new='"</think>" in content',
        message="the prompt",
        killer="UserMayWriteAboutThinking",
    ),
    Mutant(
        name="markers-removed",
        task=3,
        file=CHAT,
        old="content = message.content",
        new='content = message.content.replace("<|im_end|>", "")',
        message="markers inside a content were removed",
        killer="NothingIsEscaped",
    ),
    Mutant(
        name="late-system",
        task=3,
        file=CHAT,
        old='message.role == "system" and not first',
        new="False",
        message="a system message after others was not refused",
        killer="BadConversationsAreRefused",
    ),
    Mutant(
        name="any-role",
        task=3,
        file=CHAT,
        old="if message.role not in ROLES:",
        new="if not ROLES:",
        message="was not refused",
        killer="BadConversationsAreRefused",
    ),
    Mutant(
        name="nothing-held-back",
        task=4,
        file=GENERATE,
        old="return max((n for s in stop for n in range(1, len(s)) if text.endswith(s[:n])), default=0)",
        new="return 0",
        message="a stop string that spans tokens was not found",
        killer="StopStringMaySpanTokens",
    ),
    Mutant(
        name="holds-too-much",
        task=4,
        file=GENERATE,
        old="return max((n for s in stop for n in range(1, len(s)) if text.endswith(s[:n])), default=0)",
        new="return min(len(text), max(map(len, stop), default=1) - 1)",
        message="text that cannot be a stop string is held back",
        killer="OnlyPossibleStopsAreHeldBack",
    ),
    Mutant(
        name="shortest-beginning",
        task=4,
        file=GENERATE,
        old="return max((n for s in stop",
        new="return min((n for s in stop",
        message="text that may begin a stop string was shown",
        killer="OnlyPossibleStopsAreHeldBack",
    ),
    Mutant(
        name="held-text-lost",
        task=4,
        file=GENERATE,
        old="ready = len(held) if reason else len(held) - _possible_start(held, stop)",
        new="ready = len(held) - _possible_start(held, stop)",
        message="text that may begin a stop string was still held at the end and is lost",
        killer="EndsBeforeTheFirstStopString",
    ),
    Mutant(
        name="earliest-start",
        task=4,
        file=GENERATE,
        old="found := [(at + len(s), at) for s in stop",
        new="found := [(at, at) for s in stop",
        message="the stop string that starts first was taken",
        killer="EndsBeforeTheFirstStopString",
    ),
    Mutant(
        name="first-in-the-list",
        task=4,
        file=GENERATE,
        old="held[: min(found)[1]]",
        new="held[: found[0][1]]",
        message="the first stop string in the list was taken",
        killer="EndsBeforeTheFirstStopString",
    ),
    Mutant(
        name="stop-included",
        task=4,
        file=GENERATE,
        old="held[: min(found)[1]]",
        new="held[: min(found)[0]]",
        message="the stop string itself was yielded",
        killer="EndsBeforeTheFirstStopString",
    ),
    Mutant(
        name="any-case",
        task=4,
        file=GENERATE,
        old="""        if found := [(at + len(s), at) for s in stop if (at := held.find(s)) >= 0]:
            held, reason = held[: min(found)[1]], "stop"
        ready = len(held) if reason else len(held) - _possible_start(held, stop)
""",
        new="""        low = [s.lower() for s in stop]
        if found := [(at + len(s), at) for s in low if (at := held.lower().find(s)) >= 0]:
            held, reason = held[: min(found)[1]], "stop"
        ready = len(held) if reason else len(held) - _possible_start(held.lower(), low)
""",
        message="capital and small letters were taken as equal",
        killer="StopStringMaySpanTokens",
    ),
    Mutant(
        name="wrong-reason",
        task=4,
        file=GENERATE,
        old='held[: min(found)[1]], "stop"',
        new='held[: min(found)[1]], "length"',
        message="the finish reason at a stop string is 'stop'",
        killer="EndsBeforeTheFirstStopString",
    ),
    Mutant(
        name="no-detokenizer-flush",
        task=4,
        file=GENERATE,
        old="held += detokenizer.finish()",
        new='held += ""',
        message="what the detokenizer still held at the end is lost",
        killer="WithoutStopsItIsTheWholeText",
    ),
    Mutant(
        name="reason-of-the-tokens-lost",
        task=4,
        file=GENERATE,
        old='reason = end.value or "length"',
        new='reason = "length"',
        message="the finish reason is the one the tokens ended with",
        killer="WithoutStopsItIsTheWholeText",
    ),
    Mutant(
        name="no-reason-for-plain-tokens",
        task=4,
        file=GENERATE,
        old='reason = end.value or "length"',
        new='reason = end.value or "end"',
        message="'length' where they have none",
        killer="WithoutStopsItIsTheWholeText",
    ),
    Mutant(
        name="empty-pieces",
        task=4,
        file=GENERATE,
        old="        if ready:\n            yield",
        new="        if True:\n            yield",
        message="an empty piece was yielded",
        killer="WithoutStopsItIsTheWholeText",
    ),
]
