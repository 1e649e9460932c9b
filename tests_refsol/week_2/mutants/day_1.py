"""Plausible wrong solutions of Week 2 Day 1, and the case that catches each."""

from course.mutants import Mutant

DENSE, CACHED = "cache/dense.py", "cache/cached.py"


def update(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, DENSE, old, new, message, killer)


def rewind(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, DENSE, old, new, message, killer)


def cached(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, CACHED, old, new, message, killer)


DOUBLE = """        while self.capacity < end:
            self.capacity *= 2
"""
WRITE_KEYS, WRITE_VALUES = "self.keys[:, :, self.offset : end] = k\n", "self.values[:, :, self.offset : end] = v\n"
ADVANCE = "        self.offset = end\n"
RETURN = "return self.keys[:, :, :end], self.values[:, :, :end]\n"
GROWN = "return mx.concatenate([buffer[:, :, : self.offset], spare], axis=2)"
FIRST = "return mx.zeros((B, H_kv, self.capacity, D), new.dtype)"
NBYTES = "self.keys.nbytes + self.values.nbytes"
SAME_DTYPE = "        if k.dtype != self.keys.dtype:\n"

_UPDATE = [
    update("no-spare-room", DOUBLE, "        self.capacity = max(end, 1)\n", "no spare room", "CapacityDoubles"),
    update(
        "copies-each-step",
        "            return buffer\n",
        "            return mx.concatenate([buffer[:, :, : self.offset], buffer[:, :, self.offset :]], axis=2)\n",
        "the buffers are copied at each step",
        "NoCopyPerStep",
    ),
    update(
        "grows-by-one-step",
        DOUBLE,
        "        if self.capacity < end:\n            self.capacity += k.shape[2]\n",
        "nbytes is",
        "CapacityDoubles",
    ),
    update("doubles-once", DOUBLE, DOUBLE.replace("while", "if"), "cannot be broadcast", "UpdateReturnsAllSoFar"),
    update("grows-early", DOUBLE, DOUBLE.replace("<", "<="), "grew before they were full", "CapacityDoubles"),
    update(
        "keys-as-values",
        WRITE_VALUES,
        WRITE_VALUES.replace("= v", "= k"),
        "keys stand where values should",
        "UpdateReturnsAllSoFar",
    ),
    update("offset-stays", ADVANCE, "", "the offset is 0", "UpdateReturnsAllSoFar"),
    update("offset-by-one", ADVANCE, "        self.offset += 1\n", "the offset is 1", "UpdateReturnsAllSoFar"),
    update(
        "one-too-early",
        WRITE_KEYS,
        "self.keys[:, :, max(self.offset - 1, 0) : end - (self.offset > 0)] = k\n",
        "one position too early",
        "UpdateReturnsAllSoFar",
    ),
    update(
        "old-rows-lost",
        GROWN,
        "return mx.concatenate([mx.zeros_like(buffer[:, :, : self.offset]), spare], axis=2)",
        "the older rows were lost when the buffer grew",
        "UpdateReturnsAllSoFar",
    ),
    update("spare-room-returned", RETURN, "return self.keys, self.values\n", "spare room", "UpdateReturnsAllSoFar"),
    update("only-new-returned", RETURN, "return k, v\n", "those that are new", "UpdateReturnsAllSoFar"),
    update(
        "copies-returned",
        RETURN,
        "return self.keys[:, :, :end] + 0, self.values[:, :, :end] + 0\n",
        "the buffers are copied at each step",
        "NoCopyPerStep",
    ),
    update("float32-buffers", FIRST, FIRST.replace(", new.dtype", ""), "the dtype is wrong", "UpdateReturnsAllSoFar"),
    update(
        "placed-at-zero",
        "        self._check(k, v)\n        end",
        "        self._check(k, v)\n        self.offset = self.offset if k.shape[2] > 1 else 0\n        end",
        "the logits of a prompt cut into pieces",
        "EverySplitEqualsTheWhole",
    ),
    update("nbytes-of-keys", NBYTES, "self.keys.nbytes", "only one of the two buffers", "CapacityDoubles"),
    update("nbytes-in-numbers", NBYTES, "2 * self.keys.size", "numbers were counted", "CapacityDoubles"),
    update(
        "nbytes-of-used-rows",
        NBYTES,
        "(self.keys.nbytes + self.values.nbytes) * self.offset // self.capacity",
        "no spare room",
        "CapacityDoubles",
    ),
    update("nbytes-before-use", "return 0 if", "return 1 if", "before the first update", "CapacityDoubles"),
    update("batch-unchecked", '("B", 0), ', "", "in which B is another one", "RowsThatDoNotFitAreRefused"),
    update("heads-unchecked", '("H_kv", 1), ', "", "in which H_kv is another one", "RowsThatDoNotFitAreRefused"),
    update("dims-unchecked", ', ("D", 3)', "", "in which D is another one", "RowsThatDoNotFitAreRefused"),
    update("dtype-unchecked", SAME_DTYPE, "        if False:\n", "the dtype is", "RowsThatDoNotFitAreRefused"),
    update(
        "unlike-rows-taken",
        "if k.shape != v.shape or k.dtype != v.dtype:",
        "if k.shape[:2] != v.shape[:2]:",
        "of another kind was not refused",
        "KeysAndValuesMustBeAlike",
    ),
    update(
        "checked-too-late",
        "        self._check(k, v)\n        end",
        "        self.offset += k.shape[2]\n        self._check(k, v)\n        self.offset -= k.shape[2]\n        end",
        "a refused update moved the offset",
        "RowsThatDoNotFitAreRefused",
    ),
    update(
        "grown-too-early",
        "        self._check(k, v)\n        end = self.offset + k.shape[2]\n" + DOUBLE,
        "        end = self.offset + k.shape[2]\n" + DOUBLE + "        self._check(k, v)\n",
        "the refused one changed the capacity",
        "RowsThatDoNotFitAreRefused",
    ),
]

SET = "        self.offset = length\n"
CHECK = "if not 0 <= length <= self.offset:"
ROWS = "rows = 2 * config.num_hidden_layers * config.num_key_value_heads"
BYTES = "return rows * tokens * config.head_dim * dtype.size"

_REWIND = [
    rewind("drops-length-rows", SET, "        self.offset -= length\n", "the number of rows to drop", "RewindForgets"),
    rewind(
        "forgets-nothing",
        SET,
        "        pass\n",
        "the tokens forgotten were still seen",
        "RewoundEqualsNeverGoneFurther",
    ),
    rewind("keeps-one-more", SET, "        self.offset = length + 1\n", "the offset is", "RewindForgets"),
    rewind("keeps-one-less", SET, "        self.offset = max(length - 1, 0)\n", "the offset is", "RewindForgets"),
    rewind(
        "starts-again",
        SET,
        "        self.offset, self.keys, self.values = 0, None, None\n",
        "nothing was kept",
        "RewoundEqualsNeverGoneFurther",
    ),
    rewind(
        "cuts-the-buffers",
        SET,
        SET + "        if self.keys is not None:\n"
        "            self.keys, self.values = self.keys[:, :, :length], self.values[:, :, :length]\n",
        "the buffers should stay as they are",
        "RewindMovesOnlyTheOffset",
    ),
    rewind(
        "gives-room-back",
        SET,
        SET + "        if length == 0:\n            self.capacity = max(1, self.capacity // 2)\n",
        "the buffers should stay as they are",
        "RewindMovesOnlyTheOffset",
    ),
    rewind("negative-taken", CHECK, "if length > self.offset:", "was not refused", "RewindRefusesOtherLengths"),
    rewind(
        "up-to-the-capacity",
        CHECK,
        "if not 0 <= length <= self.capacity:",
        "in buffers for 16 was not refused",
        "RewindRefusesOtherLengths",
    ),
    rewind(
        "stretched", CHECK, "length = max(length, 0)\n        if False:", "not refused", "RewindRefusesOtherLengths"
    ),
    rewind(
        "clamped",
        CHECK,
        "length = min(max(length, 0), self.offset)\n        if False:",
        "was not refused",
        "RewindRefusesOtherLengths",
    ),
    rewind("whole-length-refused", CHECK, "if not 0 <= length < self.offset:", "cannot rewind", "RewindForgets"),
    rewind("bytes-of-keys", ROWS, ROWS.replace("2 * ", ""), "only keys or only values", "CacheBytesIsAClosedForm"),
    rewind(
        "bytes-of-query-heads",
        ROWS,
        ROWS.replace("num_key_value_heads", "num_attention_heads"),
        "query heads were counted",
        "CacheBytesIsAClosedForm",
    ),
    rewind(
        "bytes-of-a-layer",
        ROWS,
        ROWS.replace("config.num_hidden_layers * ", ""),
        "one layer was counted",
        "CacheBytesIsAClosedForm",
    ),
    rewind(
        "head-dim-guessed",
        BYTES,
        BYTES.replace("config.head_dim", "(config.hidden_size // config.num_attention_heads)"),
        "hidden_size / heads was taken for head_dim",
        "CacheBytesIsAClosedForm",
    ),
    rewind("numbers", BYTES, BYTES.replace(" * dtype.size", ""), "numbers were counted", "CacheBytesIsAClosedForm"),
]

START = "start = min(self._common_prefix(tokens), L - 1)"
EQUAL = "equal = mx.all(self.tokens[:, :n] == tokens[:, :n], axis=0)"
COUNT = "return int(mx.cumprod(equal.astype(mx.int32)).sum())"
NEW = "if self.tokens is None or len(self.tokens) != len(tokens):"
MAKE = "self.caches = [self.make_cache() for _ in self.model.layers]"
HEAD = "return self.model.ops.head(self.model, x[:, -1:])"
END = "end = min(start + self.chunk, L)"
BEGIN = "        self.tokens = tokens[:, :start]\n"
NOTE = "            self.tokens = tokens[:, :end]\n"
RUN = "x = self.model.hidden(tokens[:, start:end], self.caches)"
SHAPE = "if tokens.ndim != 2 or 0 in tokens.shape:"

_CACHED = [
    cached("nothing-to-run", START, "start = self._common_prefix(tokens)", "UnboundLocalError", "RunsOnlyWhatIsNew"),
    cached("runs-everything", START, "start = 0", "everything was run again", "RunsOnlyWhatIsNew"),
    cached(
        "one-too-few",
        START,
        START.replace("L - 1)", "L - 1) - 1") + "\n        start = max(start, 0)",
        "one token too few was kept",
        "RunsOnlyWhatIsNew",
    ),
    cached(
        "length-compared",
        EQUAL,
        "equal = mx.ones((n,), mx.bool_)",
        "a changed token was not seen",
        "RunsOnlyWhatIsNew",
    ),
    cached(
        "first-row-compared",
        EQUAL,
        "equal = self.tokens[0, :n] == tokens[0, :n]",
        "only the first row",
        "RunsOnlyWhatIsNew",
    ),
    cached(
        "any-row-compared",
        EQUAL,
        EQUAL.replace("mx.all", "mx.any"),
        "the longest prefix of any row",
        "RunsOnlyWhatIsNew",
    ),
    cached(
        "equals-counted",
        COUNT,
        "return int(equal.astype(mx.int32).sum())",
        "all equal tokens were counted",
        "RunsOnlyWhatIsNew",
    ),
    cached(
        "all-or-nothing", COUNT, "return n if mx.all(equal) else 0", "everything was run again", "RunsOnlyWhatIsNew"
    ),
    cached("rows-uncounted", NEW, "if self.tokens is None:", "another one needs new caches", "RunsOnlyWhatIsNew"),
    cached(
        "no-rewind",
        "            cache.rewind(start)\n",
        "            pass\n",
        "began to run at position",
        "RunsOnlyWhatIsNew",
    ),
    cached(
        "one-cache-for-all",
        MAKE,
        "self.caches = [self.make_cache()] * len(self.model.layers)",
        "each layer needs one of its own",
        "EachLayerHasItsOwnCache",
    ),
    cached(
        "caches-never-renewed",
        "if start == 0:",
        "if not self.caches:",
        "another one needs new caches",
        "RunsOnlyWhatIsNew",
    ),
    cached(
        "own-kind-of-cache",
        MAKE,
        "self.caches = [DenseCache() for _ in self.model.layers]",
        "without a cache that make_cache had made",
        "EachLayerHasItsOwnCache",
    ),
    cached("no-caches", RUN, "x = self.model.hidden(tokens[:, :end])", "without a cache", "EachLayerHasItsOwnCache"),
    cached(
        "all-scored",
        HEAD,
        HEAD.replace("x[:, -1:]", "x"),
        "more than the last position",
        "EveryWayToGrowEqualsTheFullPrefix",
    ),
    cached(
        "all-scored-then-cut",
        HEAD,
        "return self.model.ops.head(self.model, x)[:, -1:]",
        "the head got",
        "RunsInChunksAndScoresOnce",
    ),
    cached(
        "first-scored",
        HEAD,
        HEAD.replace("-1:", ":1"),
        "the first new position was scored",
        "EveryWayToGrowEqualsTheFullPrefix",
    ),
    cached(
        "axis-dropped", HEAD, HEAD + "[:, 0]", "the axis of positions is missing", "EveryWayToGrowEqualsTheFullPrefix"
    ),
    cached("new-tokens-noted", NOTE, NOTE.replace(":end", "start:end"), "are kept in every row", "RunsOnlyWhatIsNew"),
    cached(
        "scored-per-chunk",
        NOTE,
        NOTE + "            self.model.ops.head(self.model, x[:, -1:])\n",
        "the head got",
        "RunsInChunksAndScoresOnce",
    ),
    cached("not-chunked", END, "end = L", "larger than the chunk", "RunsInChunksAndScoresOnce"),
    cached(
        "one-over-the-chunk",
        END,
        "end = min(start + self.chunk + 1, L)",
        "larger than the chunk",
        "RunsInChunksAndScoresOnce",
    ),
    cached("token-by-token", END, "end = start + 1", "more pieces than it takes", "RunsInChunksAndScoresOnce"),
    cached("old-tokens-kept", BEGIN, "", "the tokens noted are not those in the caches", "AFailedCallLeavesNoTrace"),
    cached(
        "noted-too-early",
        BEGIN,
        "        self.tokens = tokens[:, :]\n",
        "the tokens noted are not those in the caches",
        "AFailedCallLeavesNoTrace",
    ),
    cached(
        "callers-array-kept",
        NOTE,
        "            self.tokens = tokens if end == L else tokens[:, :end]\n",
        "the caller's array was kept",
        "TheCallersArrayStaysTheCallers",
    ),
    cached("flat-tokens-taken", SHAPE, "if 0 in tokens.shape:", "was not refused", "TokensOfAnotherShapeAreRefused"),
    cached("no-tokens-taken", SHAPE, "if tokens.ndim != 2:", "was not refused", "TokensOfAnotherShapeAreRefused"),
]

MUTANTS = _UPDATE + _REWIND + _CACHED
