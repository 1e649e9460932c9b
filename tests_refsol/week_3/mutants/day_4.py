"""Plausible wrong solutions of Week 3 Day 4, and the case that catches each.

A Metal kernel is compiled once for each head dimension and type, so killers are cases with few of them.
"""

from course.mutants import Mutant

PAGES, RAGGED = "extensions/src/pages.cpp", "extensions/src/ragged.cpp"
CPP, LAYER = "extensions/src/paged_attention.cpp", "serving/paged_layer.py"
DECODE, PREFILL = "extensions/metal/paged_decode.metal", "extensions/metal/paged_prefill.metal"
FACE, METAL_FACE = "kernels/paged.py", "kernels/metal_paged.py"

NEXT_ENTRY = "looked up in the next entry of the table"
NO_TABLE = "the table was ignored"
ROW_FORGOTTEN = "every position read row 0"
PAGE_STRIDE = "the page stride forgot them"
UNUSED = "a slot was read that no position of the request stands in"
PREFIX = "the cached prefix was forgotten"
FIRST_REQUEST = "every request read the pages of the first request"
MODULO = "query head h read key/value head h % H_kv"
ONE_MORE = "a query sees one key too many"
NOT_ITSELF = "a query does not see its own position"
ONE_PIECE = "each in one piece"
RACE = "data race"


def walk(name: str, old: str, new: str, message: str) -> Mutant:
    return Mutant(name, 1, PAGES, old, new, message, "RowsAreFoundThroughTheTable")


def pieces(name: str, old: str, new: str, message: str, killer: str = "PiecesCoverTheBatch") -> Mutant:
    return Mutant(name, 2, RAGGED, old, new, message, killer)


def cpp(name: str, old: str, new: str, message: str, killer: str = "PagedMatchesFloat64") -> Mutant:
    return Mutant(name, 2, CPP, old, new, message, killer)


def layer(name: str, old: str, new: str, message: str, killer: str = "ServedModelMatchesFloat64") -> Mutant:
    return Mutant(name, 2, LAYER, old, new, message, killer)


def decode(name: str, old: str, new: str, message: str, killer: str = "DecodeMatchesFloat64") -> Mutant:
    return Mutant(name, 3, DECODE, old, new, message, killer)


def prefill(name: str, old: str, new: str, message: str, killer: str = "PrefillMatchesFloat64") -> Mutant:
    return Mutant(name, 4, PREFILL, old, new, message, killer)


ENTRY = "pages.table[page] * pages.page_stride"

_WALK = [
    walk("walk-next-entry", ENTRY, "pages.table[page + 1] * pages.page_stride", NEXT_ENTRY),
    walk("walk-no-lookup", ENTRY, "page * pages.page_stride", "the page numbers were not looked up"),
    walk("walk-forgot-heads", ENTRY, "pages.table[page] * pages.size * pages.row_stride", "use page_stride"),
    walk(
        "walk-from-zero", "page = first / pages.size, row = first % pages.size;", "page = 0, row = 0;", "at position 0"
    ),
    walk("walk-from-row-zero", "row = first % pages.size;", "row = 0;", "always begins in row 0"),
    walk("walk-one-page", "      ++page;\n", "", "expected offset"),
    walk("walk-no-row", " + row * pages.row_stride", "", "the row within the page was forgotten"),
    walk("walk-row-stride", "row * pages.row_stride", "row", "row_stride apart"),
    walk("walk-page-size", "if (++row == pages.size) {", "if (++row == 16) {", "expected offset"),
    walk("walk-page-too-long", "if (++row == pages.size) {", "if (++row > pages.size) {", "expected offset"),
    walk(
        "walk-32-bits",
        "offsets[i] = pages.table[page] * pages.page_stride + row * pages.row_stride;",
        "offsets[i] = static_cast<int32_t>(pages.table[page] * pages.page_stride + row * pages.row_stride);",
        "an offset needs 64 bits",
    ),
]

VISIBLE = "before + query + 1, 0, keys"
SHARE = "std::max(kLeastKeys, all_keys / (4 * threads))"
RETURN = "return paged_attention(q, *written, *self.places)"
WRITE = "written = paged_write(k, v, keys[self.layer], values[self.layer], *self.places)"

_PIECES = [
    pieces("pieces-first-positions", VISIBLE, "query - batch.bounds[i] + 1, 0, keys", PREFIX),
    pieces("pieces-one-less", VISIBLE, "before + query, 0, keys", "a query sees its own position too"),
    pieces("pieces-one-more", VISIBLE, "before + query + 2, 0, keys", "no position behind its own"),
    pieces("pieces-no-mask", VISIBLE, "batch.lengths[i], 0, keys", "only the last query of a request sees all"),
    pieces("pieces-all-keys", "keys = before + query + queries", "keys = batch.lengths[i]", "are seen by none"),
    pieces("pieces-first-length", "before = batch.lengths[i] - end", "before = batch.lengths[0] - end", "got"),
    pieces(
        "pieces-over-requests",
        "std::min(kQueries, end - query)",
        "std::min(kQueries, batch.bounds[batch.requests] - query)",
        "not all of one request",
    ),
    pieces("pieces-row-as-request", "wholes.push_back({i, query,", "wholes.push_back({query, query,", "of one request"),
    pieces("pieces-last-tile", "query < end; query", "query + kQueries <= end; query", "must be in one piece each"),
    pieces("pieces-too-large", "std::min(kQueries, end - query)", "end - query", "more than 64 queries"),
    pieces("pieces-lost-key", "first_key = key;", "first_key = key + (key > 0);", ONE_PIECE),
    pieces("pieces-key-twice", "std::min(key + share, whole", "std::min(key + share + 1, whole", ONE_PIECE),
    pieces("pieces-last-share", "key < whole.last_key; key", "key + share <= whole.last_key; key", "in one piece each"),
    pieces(
        "pieces-never-cut",
        SHARE,
        "std::max(kLeastKeys, all_keys)",
        "threads have nothing to do",
        "KeysAreSharedWhereThreadsWouldWait",
    ),
    pieces("pieces-always-cut", SHARE, "kLeastKeys", "only costs time", "KeysAreSharedWhereThreadsWouldWait"),
    pieces(
        "pieces-heads-forgotten",
        "keys * kv_heads",
        "keys * threads * 64",
        "threads have nothing to do",
        "KeysAreSharedWhereThreadsWouldWait",
    ),
    pieces(
        "pieces-threads-guessed",
        SHARE,
        "std::max(kLeastKeys, all_keys / 32)",
        "threads have nothing to do",
        "KeysAreSharedWhereThreadsWouldWait",
    ),
    pieces(
        "pieces-heads-twice",
        "keys * kv_heads",
        "keys * kv_heads * kv_heads",
        "threads have nothing to do",
        "KeysAreSharedWhereThreadsWouldWait",
    ),
    cpp("cpp-first-request", "batch.of(piece.request)", "batch.of(0)", FIRST_REQUEST),
    cpp("cpp-first-head", "head = kv_head * batch.strides[1];", "head = 0;", "the first key/value head"),
    cpp(
        "cpp-heads-modulo",
        "(kv_head * G + r % G) * q.strides(1)",
        "(kv_head + r % G * H_kv) * q.strides(1)",
        "expected",
    ),
    cpp("cpp-visible", "piece.visible + r / G", "piece.visible + r", "expected"),
    cpp("cpp-first-part", "join(parts, count, r, D, row.data());", "join(parts, 1, r, D, row.data());", "expected"),
    cpp(
        "cpp-past-the-end",
        "piece.first_key, piece.last_key, scale",
        "piece.first_key, (piece.last_key + batch.page_size - 1) / batch.page_size * batch.page_size, scale",
        UNUSED,
        "UnusedSlotsAreNeverRead",
    ),
    layer("layer-not-written", WRITE, "written = keys[self.layer], values[self.layer]", "paged_write was never called"),
    layer(
        "layer-not-kept",
        "        keys[self.layer], values[self.layer] = written\n",
        "",
        "keep it in the pool",
        "StepsWaitForEachOther",
    ),
    layer(
        "layer-not-waiting",
        "        keys[self.layer], values[self.layer] = written\n        return paged_attention(q, *written,",
        "        old = keys[self.layer], values[self.layer]\n"
        "        keys[self.layer], values[self.layer] = written\n        return paged_attention(q, *old,",
        "must read what paged_write returns",
        "StepsWaitForEachOther",
    ),
    layer("layer-keys-as-values", "paged_write(k, v,", "paged_write(k, k,", "values are wrong"),
    layer("layer-exchanged", RETURN, "return paged_attention(q, *written[::-1], *self.places)", "values are wrong"),
    layer(
        "layer-first-layer", RETURN, "return paged_attention(q, keys[0], values[0], *self.places)", "values are wrong"
    ),
    layer(
        "layer-dense-copy",
        RETURN,
        "k, v = self.pool.gather(self.layer, self.places.table[0].tolist(), int(self.places.lengths[0]))\n"
        "        return attend(q, k, v, None)",
        "pool.gather was called",
    ),
    layer(
        "layer-take",
        RETURN,
        "return paged_attention(q, *(mx.take(x, mx.arange(len(x)), axis=0) for x in written), *self.places)",
        "is what this day teaches",
    ),
    layer(
        "layer-copied-pool",
        RETURN,
        "return paged_attention(q, *(x + 0 for x in written), *self.places)",
        "it was copied",
        "PoolIsNeverCopied",
    ),
    layer(
        "layer-scatter",
        WRITE,
        "self.pool.write(self.layer, k.squeeze(2), v.squeeze(2), self.slots)\n"
        "        written = keys[self.layer], values[self.layer]",
        "it was copied",
        "PoolIsNeverCopied",
    ),
    layer(
        "layer-waits",
        RETURN,
        "mx.eval(written)\n        " + RETURN,
        "that waits for all that was launched before",
        "PoolIsNeverCopied",
    ),
    layer("layer-no-kernel", RETURN, "return q + 0 * paged_attention(q, *written, *self.places)", "does not depend"),
    Mutant(
        "face-beside-the-kernel",
        2,
        FACE,
        "return _ext.paged_attention(q, keys, values, table, bounds, lengths, scale_of(scale, q.shape[-1]))",
        "_ext.paged_attention(q, keys, values, table, bounds, lengths, scale_of(scale, q.shape[-1]))\n    return q * 1",
        "does not depend on what the kernel paged_attention returns",
        "PagedIsComputedByTheKernel",
    ),
]

PAGE = "const long page = pages[s / page_size];"
LOOP = "s < length; s += simdgroups"
KEY = "k_head + page * keys_strides[0] + row * keys_strides[2]"
VALUE = "v_head + page * values_strides[0] + row * values_strides[2]"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
DECODE_LOOP = "for (uint s = simdgroup; s < length; s += simdgroups) {"
FIRST_PASS = """for (uint s = simdgroup; s < length; s += simdgroups) {
  const auto key = k_head + pages[s / page_size] * keys_strides[0] + s % page_size * keys_strides[2];
  float score = 0.0f;
  for (int j = 0; j < PER_LANE; j++) {
    const int d = lane + 32 * j;
    score += d < D ? query[j] * float(key[d * keys_strides[3]]) : 0.0f;
  }
  maximum = max(maximum, simd_sum(score));
}
"""
WHOLE_PAGES = "s < (length + page_size - 1) / page_size * page_size; s += simdgroups"

_DECODE = [
    decode("decode-next-entry", PAGE, "const long page = pages[s / page_size + 1];", NEXT_ENTRY),
    decode("decode-no-table", PAGE, "const long page = s / page_size;", NO_TABLE),
    decode("decode-first-page", PAGE, "const long page = pages[0];", "in the first entry of the table"),
    decode("decode-in-order", PAGE, "const long page = pages[0] + s / page_size;", "taken to follow each other"),
    decode("decode-page-size", PAGE, "const long page = pages[s / 16];", "expected"),
    decode("decode-row", "row = s % page_size;", "row = 0;", ROW_FORGOTTEN),
    decode(
        "decode-page-stride",
        f"{KEY};\n  const auto value = {VALUE};",
        "k_head + (page * page_size + row) * D;\n  const auto value = v_head + (page * page_size + row) * D;",
        PAGE_STRIDE,
    ),
    decode(
        "decode-strides-of-q",
        "float(q_head[d * q_strides[3]])",
        "float(q[(request * q_shape[1] + h) * D + d])",
        "the strides of q were ignored",
        "DecodeReadsByStrides",
    ),
    decode(
        "decode-feature-stride",
        "float(value[d * values_strides[3]])",
        "float(value[d])",
        "values are wrong",
        "DecodeReadsByStrides",
    ),
    decode("decode-key-as-value", VALUE, VALUE.replace("v_head", "k_head"), "expected"),
    decode("decode-whole-pages", LOOP, WHOLE_PAGES, UNUSED, "DecodeReadsNoUnusedSlot"),
    decode("decode-one-more", LOOP, "s <= length; s += simdgroups", UNUSED, "DecodeReadsNoUnusedSlot"),
    decode("decode-one-less", LOOP, "s + 1 < length; s += simdgroups", "expected"),
    decode("decode-heads-modulo", "h / (q_shape[1] / keys_shape[1])", "h % keys_shape[1]", MODULO),
    decode("decode-first-request", "table + request * table_shape[1]", "table", FIRST_REQUEST),
    decode("decode-first-length", "lengths[request]", "lengths[0]", "expected"),
    decode(
        "decode-merge",
        "const float share = exp(maxima[i] - largest);",
        "const float share = 1.0f;",
        "values are wrong",
        "DecodeMergesItsParts",
    ),
    decode("decode-no-barrier", BARRIER, "\n", RACE),
    decode("decode-no-scale", "float(q_head[d * q_strides[3]]) * scale", "float(q_head[d * q_strides[3]])", "expected"),
    decode("decode-two-passes", DECODE_LOOP, FIRST_PASS + DECODE_LOOP, "device read bytes", "DecodeReadsKeysOnce"),
    Mutant(
        "decode-never-launched",
        3,
        METAL_FACE,
        "    decode = n == T\n",
        "    decode = False\n",
        "the kernel paged_decode was never",
        "DecodeReadsKeysOnce",
    ),
]

AT_OR_BEFORE = "if (uint(bounds[middle]) / QUERIES + middle <= tile) {"
FOUND = "const long page = pages[s / page_size];"
LOAD_KEYS = "load_pages<T, KEYS, D>(tile, k_head, keys_strides, pages, page_size, first_key, S, t);\n"
LOAD_VALUES = "load_pages<T, KEYS, D>(tile, v_head, values_strides, pages, page_size, first_key, S, t);\n"
SEEN = "visible - first_key, lane"
TILES = "first_key < last_visible; first_key += KEYS"

_PREFILL = [
    prefill("prefill-before", AT_OR_BEFORE, AT_OR_BEFORE.replace("<=", "<"), "expected"),
    prefill("prefill-tiles-only", AT_OR_BEFORE, AT_OR_BEFORE.replace(" + middle", ""), "expected"),
    prefill("prefill-rows-as-tiles", AT_OR_BEFORE, AT_OR_BEFORE.replace(" / QUERIES", ""), "expected"),
    prefill("prefill-first-request", "  return low;", "  return 0;", "expected"),
    prefill("prefill-next-entry", FOUND, "const long page = pages[s / page_size + 1];", NEXT_ENTRY),
    prefill("prefill-no-table", FOUND, "const long page = s / page_size;", NO_TABLE),
    prefill("prefill-tile-page", FOUND, "const long page = pages[first / page_size];", "expected"),
    prefill("prefill-row", "s % page_size * strides[2]", "i / D % page_size * strides[2]", "expected"),
    prefill("prefill-feature-stride", "d * strides[3]", "d", "values are wrong", "PrefillReadsByStrides"),
    prefill("prefill-page-stride", "page * strides[0]", "page * page_size * strides[2]", PAGE_STRIDE),
    prefill(
        "prefill-past-the-end", "    if (s < end) {", "    if (s < end + ROWS) {", UNUSED, "PrefillReadsNoUnusedSlot"
    ),
    prefill("prefill-garbage", "float number = 0.0f;", "float number = NAN;", UNUSED, "PrefillReadsNoUnusedSlot"),
    prefill("prefill-one-more", SEEN, "visible - first_key + 1, lane", ONE_MORE),
    prefill("prefill-one-less", SEEN, "visible - first_key - 1, lane", NOT_ITSELF),
    prefill(
        "prefill-no-prefix",
        "const int visible = int(S) - int(end_query) + int(first_query",
        "const int visible = -int(bounds[request]) + int(first_query",
        PREFIX,
    ),
    prefill("prefill-heads-modulo", "h / (q_shape[1] / keys_shape[1])", "h % keys_shape[1]", MODULO),
    prefill(
        "prefill-all-tiles",
        TILES,
        "first_key < int(S); first_key += KEYS",
        "must be skipped",
        "PrefillSkipsWhatNobodySees",
    ),
    prefill("prefill-last-tile", TILES, "first_key + KEYS <= last_visible; first_key += KEYS", "expected"),
    prefill("prefill-keys-for-values", LOAD_VALUES, LOAD_VALUES.replace("v_head", "k_head"), "expected"),
    prefill("prefill-no-barrier-1", LOAD_KEYS + "  " + BARRIER, LOAD_KEYS, RACE),
    prefill("prefill-no-barrier-2", BARRIER + "\n  " + LOAD_VALUES, LOAD_VALUES, RACE),
    prefill("prefill-no-barrier-3", LOAD_VALUES + "  " + BARRIER, LOAD_VALUES, RACE),
    prefill("prefill-result-kept", "diagonal[row * 9] = keep;", "diagonal[row * 9] = 1.0f;", "expected"),
    Mutant(
        "prefill-never-launched",
        4,
        METAL_FACE,
        "    decode = n == T\n",
        "    decode = True\n",
        "the kernel paged_prefill was never",
        "PrefillIsComputedByTheKernel",
    ),
]

MUTANTS = [*_WALK, *_PIECES, *_DECODE, *_PREFILL]
