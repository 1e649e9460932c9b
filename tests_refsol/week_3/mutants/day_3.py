"""Plausible wrong solutions of Week 3 Day 3, and the case that catches each."""

from course.mutants import Mutant

PAGED, POOL, MEMORY, PADDING = "cache/paged.py", "cache/pool.py", "serving/paged_memory.py", "serving/padding.py"


def allocator(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, PAGED, old, new, message, killer)


def table(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, PAGED, old, new, message, killer)


def pool(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, POOL, old, new, message, killer)


def memory(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, MEMORY, old, new, message, killer)


def padding(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 5, PADDING, old, new, message, killer)


FREE_PAGES = "self._free = list(range(pages - 1, -1, -1))"
ENOUGH = "        if not 0 <= n <= len(self._free):\n"
OFF = "        del self._free[len(self._free) - n :]\n"
MARK = "        self._taken.update(pages)\n"
OWNED = "if len(back) < len(pages) or not back <= self._taken:"
COLLECT = "        self._taken -= back\n        self._free += pages\n"
CHECKED = """        back = set(pages)
        if len(back) < len(pages) or not back <= self._taken:
            page = next(page for i, page in enumerate(pages) if page not in self._taken or page in pages[:i])
            raise ValueError(f"page {page} cannot be freed: it is not allocated, or named twice")
"""

_ALLOCATOR = [
    allocator(
        "dummy-page-given-out",
        FREE_PAGES,
        "self._free = list(range(pages, -1, -1))",
        "pages are available, expected",
        "EveryPageIsGivenOutOnce",
    ),
    allocator(
        "counts-from-one",
        FREE_PAGES,
        "self._free = list(range(pages, 0, -1))",
        "the dummy page: pages are 0 ..",
        "EveryPageIsGivenOutOnce",
    ),
    allocator(
        "free-list-searched",
        OWNED,
        "if len(back) < len(pages) or any(page in self._free or not 0 <= page < self.pages for page in pages):",
        "no call searches through a list of pages",
        "LargePoolsAreQuick",
    ),
    allocator("double-free", OWNED, "if len(back) < len(pages):", "is given to two requests next", "PagesAreFreedOnce"),
    allocator(
        "foreign-page-freed",
        OWNED,
        "if len(back) < len(pages) or any(page in self._free for page in pages):",
        "page -1 is one negative, was accepted",
        "PagesAreFreedOnce",
    ),
    allocator(
        "named-twice",
        OWNED,
        "if not back <= self._taken:",
        "one named twice, was accepted",
        "PagesAreFreedOnce",
    ),
    allocator(
        "frees-while-checking",
        CHECKED + COLLECT,
        """        for page in pages:
            if page not in self._taken:
                raise ValueError(f"page {page} cannot be freed: it is not allocated, or named twice")
            self._taken.discard(page)
            self._free.append(page)
""",
        "was refused, but it freed other pages",
        "PagesAreFreedOnce",
    ),
    allocator(
        "fewer-than-asked",
        ENOUGH,
        "        n = min(n, len(self._free))\n" + ENOUGH,
        "expected a ValueError",
        "TooManyPagesAreRefused",
    ),
    allocator(
        "negative-taken",
        ENOUGH,
        "        if n > len(self._free):\n",
        "allocate(-1) with 2 free pages: expected a ValueError",
        "TooManyPagesAreRefused",
    ),
    allocator(
        "last-page-kept",
        ENOUGH,
        "        if not 0 <= n < max(len(self._free), 1):\n",
        "was refused",
        "EveryPageIsGivenOutOnce",
    ),
    allocator(
        "takes-before-it-raises",
        ENOUGH,
        ENOUGH + "            self._free.clear()\n",
        "pages are available, expected",
        "TooManyPagesAreRefused",
    ),
    allocator(
        "stays-on-the-free-list",
        OFF,
        "",
        "pages are available, expected",
        "EveryPageIsGivenOutOnce",
    ),
    allocator("not-marked", MARK, "", "all these pages are allocated", "AllocatorKeepsItsBooks"),
    allocator(
        "never-comes-back",
        COLLECT,
        COLLECT.replace("        self._free += pages\n", ""),
        "pages are available, expected",
        "AllocatorKeepsItsBooks",
    ),
    allocator(
        "stays-taken",
        COLLECT,
        COLLECT.replace("        self._taken -= back\n", ""),
        "is free already, so this needs a ValueError",
        "AllocatorKeepsItsBooks",
    ),
]

COLUMNS = "columns = -(-max_len // page_size)"
FULL = "self.entries = np.full((rows + 1, columns), dummy_page, np.int32)"
COUNTS = "self.counts = [0] * rows + [columns]"
FITS = "        if end > self.entries.shape[1]:\n"
PUT, COUNTED = "        self.entries[row, count:end] = pages\n", "        self.counts[row] = end\n"
WITHIN = "if not 0 <= start <= end <= self.counts[row]:"
PUT_AGAIN = "self.entries[row, start:end] = pages"
PAGES, WIPE, EMPTY = "pages = self.pages(row)", "        self.entries[row] = self.dummy_page\n", "self.counts[row] = 0"
HELD, IN_HELD = "held = self.counts[row] * self.page_size", "if not 0 <= start <= end <= held:"
SLOTS = "return self.entries[row, positions // self.page_size] * self.page_size + positions % self.page_size"

_TABLE = [
    table(
        "columns-rounded-down",
        COLUMNS,
        "columns = max_len // page_size",
        "only partly used, has no column",
        "EntriesBeginAsTheDummyPage",
    ),
    table(
        "column-too-many",
        COLUMNS,
        "columns = max_len // page_size + 1",
        "one column too many",
        "EntriesBeginAsTheDummyPage",
    ),
    table(
        "column-per-position",
        COLUMNS,
        "columns = max_len",
        "a column for each position",
        "EntriesBeginAsTheDummyPage",
    ),
    table("no-dummy-row", FULL, FULL.replace("rows + 1", "rows"), "no row for the dummy", "EntriesBeginAsTheDummyPage"),
    table(
        "zeros",
        FULL,
        "self.entries = np.zeros((rows + 1, columns), np.int32)",
        "unused entries hold a real page",
        "EntriesBeginAsTheDummyPage",
    ),
    table(
        "dummy-row-uninitialised",
        FULL,
        FULL + "\n        self.entries[-1] = 0",
        "the dummy row holds a real page",
        "EntriesBeginAsTheDummyPage",
    ),
    table(
        "minus-one",
        FULL,
        FULL + "\n        self.entries[:-1] = -1",
        "unused entries hold no page at all",
        "EntriesBeginAsTheDummyPage",
    ),
    table("int64", FULL, FULL.replace("int32", "int64"), "expected int32", "EntriesBeginAsTheDummyPage"),
    table(
        "dummy-row-empty",
        COUNTS,
        "self.counts = [0] * (rows + 1)",
        "all for the dummy row",
        "EntriesBeginAsTheDummyPage",
    ),
    table(
        "one-dummy-row-off",
        "self.dummy_row = rows",
        "self.dummy_row = rows - 1",
        "dummy_row is",
        "EntriesBeginAsTheDummyPage",
    ),
    table(
        "append-in-front",
        PUT,
        "        self.entries[row, : len(pages)] = pages\n",
        "the entries after",
        "TableKeepsItsBooks",
    ),
    table("append-uncounted", COUNTED, "", "the counts are", "TableKeepsItsBooks"),
    table(
        "count-replaced",
        COUNTED,
        "        self.counts[row] = len(pages)\n",
        "the counts are",
        "TableKeepsItsBooks",
    ),
    table(
        "too-many-cut",
        FITS,
        "        end = min(end, self.entries.shape[1])\n        pages = pages[: end - count]\n" + FITS,
        "expected a ValueError, got none",
        "WhatARowCannotHoldIsRefused",
    ),
    table(
        "written-before-the-check",
        FITS,
        "        self.entries[row, count:end] = pages[: self.entries.shape[1] - count]\n" + FITS,
        "the entries after",
        "WhatARowCannotHoldIsRefused",
    ),
    table(
        "replace-beyond-the-pages",
        WITHIN,
        "if not 0 <= start <= end <= self.entries.shape[1]:",
        "expected a ValueError, got none",
        "WhatARowCannotHoldIsRefused",
    ),
    table(
        "replace-from-the-end",
        WITHIN,
        "if end > self.counts[row]:",
        "expected a ValueError",
        "WhatARowCannotHoldIsRefused",
    ),
    table(
        "replace-drops-the-rest",
        PUT_AGAIN,
        PUT_AGAIN + "\n        self.counts[row] = end",
        "the counts are",
        "TableKeepsItsBooks",
    ),
    table(
        "replace-at-the-front",
        PUT_AGAIN,
        "self.entries[row, : len(pages)] = pages",
        "the entries after",
        "TableKeepsItsBooks",
    ),
    table("stale-row", WIPE, "", "pages of the request before", "ClearedRowsAreEmpty"),
    table(
        "books-of-the-class",
        "        self.counts = [0] * rows + [columns]\n",
        "        counts = type(self).__dict__.get('_counts') or []\n        type(self)._counts = self.counts = counts\n"
        "        counts[:] = [0] * rows + [columns]\n",
        "each has its own books",
        "EntriesBeginAsTheDummyPage",
    ),
    table("stale-count", EMPTY, "pass", "the counts are", "ClearedRowsAreEmpty"),
    table(
        "view-returned",
        PAGES,
        "pages = self.entries[row, : self.counts[row]]",
        "returned",
        "ClearedRowsAreEmpty",
    ),
    table("all-entries-returned", PAGES, "pages = self.entries[row].tolist()", "returned", "ClearedRowsAreEmpty"),
    table(
        "all-rows-cleared",
        WIPE,
        "        self.entries[:] = self.dummy_page\n",
        "the entries after",
        "ClearedRowsAreEmpty",
    ),
    table(
        "columns-checked",
        HELD,
        "held = self.entries.shape[1] * self.page_size",
        "expected a ValueError, got none",
        "WhatARowCannotHoldIsRefused",
    ),
    table(
        "one-position-too-far",
        IN_HELD,
        "if not 0 <= start <= end <= held + 1:",
        "expected a ValueError, got none",
        "WhatARowCannotHoldIsRefused",
    ),
    table(
        "last-position-refused",
        IN_HELD,
        "if not 0 <= start <= end < held:",
        "has pages for",
        "SlotsFollowThePages",
    ),
    table(
        "negative-position",
        IN_HELD,
        "if end > held:",
        "expected a ValueError",
        "WhatARowCannotHoldIsRefused",
    ),
    table(
        "pages-for-slots",
        SLOTS,
        SLOTS.replace(" * self.page_size +", " +"),
        "the page was not multiplied by the page size",
        "SlotsFollowThePages",
    ),
    table(
        "wrong-page-size",
        SLOTS,
        SLOTS.replace(" * self.page_size +", " * self.counts[row] +"),
        "the page was multiplied by the number of entries",
        "SlotsFollowThePages",
    ),
    table(
        "off-by-one-at-the-boundary",
        SLOTS,
        SLOTS.replace(
            "positions // self.page_size]",
            "np.minimum(-(-positions // self.page_size), self.counts[row] - 1)]",
        ),
        "the first position of a page was counted to the page before",
        "SlotsFollowThePages",
    ),
    table(
        "places-forgotten",
        SLOTS,
        SLOTS.replace(" + positions % self.page_size", ""),
        "the place in the page was forgotten",
        "SlotsFollowThePages",
    ),
    table("positions-for-slots", SLOTS, "return positions", "the pages were not looked up", "SlotsFollowThePages"),
    table(
        "places-from-the-start",
        SLOTS,
        SLOTS.replace("+ positions %", "+ (positions - start) %"),
        "places were counted from the first position asked for",
        "SlotsFollowThePages",
    ),
]

SPLIT = "page, place = (mx.array(x) for x in np.divmod(slots, self.page_size))"
WRITE_KEYS, WRITE_VALUES = "self.keys[layer][page, :, place] = k", "self.values[layer][page, :, place] = v"
USED = "used = mx.array(pages[: -(-length // self.page_size)], mx.int32)"
READ = "return _dense(self.keys[layer][used], length), _dense(self.values[layer][used], length)"
DENSE = "return pages.swapaxes(0, 1).flatten(1, 2)[None, :, :length]"
NUMBERS = "2 * config.num_hidden_layers * config.num_key_value_heads * page_size * config.head_dim"
FIT = "pages = memory // size - 1"

_POOL = [
    pool("keys-to-layer-0", WRITE_KEYS, WRITE_KEYS.replace("layer", "0"), "the wrong layer", "WritesGoToTheirSlots"),
    pool(
        "layer-off-by-one",
        WRITE_VALUES,
        WRITE_VALUES.replace("[layer]", "[layer - 1]"),
        "written to the wrong layer",
        "WritesGoToTheirSlots",
    ),
    pool(
        "keys-as-values", WRITE_VALUES, WRITE_VALUES.replace("= v", "= k"), "values stand where", "WritesGoToTheirSlots"
    ),
    pool("values-not-written", WRITE_VALUES, "pass", "nothing was written", "WritesGoToTheirSlots"),
    pool(
        "page-and-place-swapped",
        SPLIT,
        "place, page = (mx.array(x) for x in np.divmod(slots, self.pages + 1))",
        "page and place in the page were swapped",
        "WritesGoToTheirSlots",
    ),
    pool(
        "slots-from-one",
        SPLIT,
        SPLIT.replace("slots,", "np.maximum(slots - 1, 0),"),
        "of layer",
        "WritesGoToTheirSlots",
    ),
    pool(
        "added-not-written",
        WRITE_KEYS,
        "self.keys[layer] = self.keys[layer].at[page, :, place].add(k)",
        "of layer",
        "WritesGoToTheirSlots",
    ),
    pool(
        "pool-copied",
        WRITE_KEYS,
        "before = self.keys[layer][page, :, place]\n"
        "        self.keys[layer] = self.keys[layer].at[page, :, place].add(k - before)",
        "the pool was copied",
        "ThePoolIsNotCopied",
    ),
    pool(
        "last-pool-kept",
        WRITE_KEYS,
        "self.before = mx.array(self.keys[layer])\n        " + WRITE_KEYS,
        "the pool was copied",
        "ThePoolIsNotCopied",
    ),
    pool(
        "pages-rounded-down",
        USED,
        "used = mx.array(pages[: max(length // self.page_size, 1)], mx.int32)",
        "the shape is wrong",
        "GatherReadsInOrder",
    ),
    pool(
        "page-rest-returned",
        DENSE,
        DENSE.replace("[None, :, :length]", "[None]"),
        "rest of the last page",
        "GatherReadsInOrder",
    ),
    pool(
        "heads-not-in-front",
        DENSE,
        "return pages.reshape(1, pages.shape[1], -1, pages.shape[3])[:, :, :length]",
        "heads and pages were mixed",
        "GatherReadsInOrder",
    ),
    pool(
        "writes-at-once",
        "        self.values[layer][page, :, place] = v\n",
        "        self.values[layer][page, :, place] = v\n        mx.eval(self.values[layer])\n",
        "the call of write alone computed",
        "ThePoolOnlyBuildsTheGraph",
    ),
    pool(
        "gathers-at-once",
        READ,
        "dense = " + READ.removeprefix("return ") + "\n        mx.eval(dense)\n        return dense",
        "the call of gather alone computed",
        "ThePoolOnlyBuildsTheGraph",
    ),
    pool(
        "row-by-row",
        WRITE_KEYS,
        "for t, slot in enumerate(slots.tolist()):\n"
        "            self.keys[layer][slot // self.page_size, :, slot % self.page_size] = k[t]",
        "not row by row",
        "AWriteIsOneStep",
    ),
    pool(
        "all-pages-gathered",
        USED,
        "used = mx.array(pages, mx.int32)",
        "pages behind the last position were read",
        "GatherTakesWhatItNeeds",
    ),
    pool(
        "gathers-once",
        READ,
        "key = layer, tuple(pages), length\n        dense = self.__dict__.setdefault('dense', {})\n"
        "        return dense.setdefault(key, (" + READ.removeprefix("return ") + "))",
        "positions in pages",
        "GatherReadsInOrder",
    ),
    pool(
        "values-of-layer-0",
        READ,
        READ.replace("values[layer]", "values[0]"),
        "from another layer",
        "GatherReadsInOrder",
    ),
    pool("pages-sorted", USED, USED.replace("pages[:", "sorted(pages)[:"), "of layer", "GatherReadsInOrder"),
    pool("keys-twice", READ, READ.replace("self.values", "self.keys"), "the values of layer", "GatherReadsInOrder"),
    pool("bytes-of-keys", NUMBERS, NUMBERS.replace("2 * ", ""), "only keys, or only values", "PageBytesIsAClosedForm"),
    pool(
        "bytes-of-a-layer",
        NUMBERS,
        NUMBERS.replace("config.num_hidden_layers * ", ""),
        "one layer was counted",
        "PageBytesIsAClosedForm",
    ),
    pool(
        "bytes-of-query-heads",
        NUMBERS,
        NUMBERS.replace("num_key_value_heads", "num_attention_heads"),
        "query heads were counted",
        "PageBytesIsAClosedForm",
    ),
    pool("bytes-of-a-position", NUMBERS, NUMBERS.replace("page_size * ", ""), "one position", "PageBytesIsAClosedForm"),
    pool(
        "head-dim-guessed",
        NUMBERS,
        NUMBERS.replace("config.head_dim", "(config.hidden_size // config.num_attention_heads)"),
        "hidden_size / heads was taken for head_dim",
        "PageBytesIsAClosedForm",
    ),
    pool("numbers", "return numbers * dtype.size", "return numbers", "numbers were counted", "PageBytesIsAClosedForm"),
    pool("no-dummy-page", FIT, "pages = memory // size", "the dummy page needs memory too", "PagesFitTheMemory"),
    pool("rounded-up", FIT, "pages = -(-memory // size) - 1", "the dummy page needs memory too", "PagesFitTheMemory"),
    pool("two-dummies", FIT, "pages = memory // size - 2", "expected", "PagesFitTheMemory"),
    pool("no-pages", "if pages < 1:", "if pages < 0:", "was accepted", "PagesFitTheMemory"),
]

ADMITTED = "if request.row is not None or not self._rows:"
CACHED, PREFIX = "request.cached_len = prefix.tokens", "self.table.append(request.row, prefix.pages)"
POSSIBLE = "if request.row is None or length > self.max_len:"
MORE = "more = max(pages_for(length, self.page_size) - self.held(request), 0)"
SHORT = "        if more > self.available:\n"
EVICT_IF, EVICT = "if more > self.allocator.available:", "self.evict(more - self.allocator.available)"
GROW = "self.table.append(request.row, self.allocator.allocate(more))"
CLOSED = 'if request.row is None:\n            raise ValueError(f"request {request.uid} has no row: it was closed'
GIVE_BACK = "self.allocator.free(self.table.clear(request.row)[keep:])"
ROW_BACK, NO_ROW = "        self._rows.append(request.row)\n", "        request.row = None\n"

_MEMORY = [
    memory("opened-twice", ADMITTED, "if not self._rows:", "expected ValueError", "RowsAreGivenOnceAndBackOnce"),
    memory("no-row-free", ADMITTED, "if request.row is not None:", "IndexError", "RowsAreGivenOnceAndBackOnce"),
    memory("prefix-not-counted", CACHED, "request.cached_len = 0", "cached_len is 0", "ARowBeginsWithItsPrefix"),
    memory("prefix-not-in-the-row", PREFIX, "pass", "the row begins as", "ARowBeginsWithItsPrefix"),
    memory(
        "part-of-a-page-is-none",
        MORE,
        MORE.replace("pages_for(length, self.page_size)", "length // self.page_size"),
        "round up",
        "RowsGrowByPages",
    ),
    memory(
        "page-too-early",
        MORE,
        MORE.replace("pages_for(length, self.page_size)", "length // self.page_size + 1"),
        "a page that is just full is no reason to take another",
        "RowsGrowByPages",
    ),
    memory(
        "positions-for-pages",
        MORE,
        "more = max(length - self.held(request), 0)",
        "positions were counted as pages",
        "RowsGrowByPages",
    ),
    memory(
        "held-not-counted",
        MORE,
        "more = pages_for(length, self.page_size)",
        "the pages that the row has already were not counted",
        "RowsGrowByPages",
    ),
    memory(
        "cannot-stay-small",
        MORE,
        "more = pages_for(length, self.page_size) - self.held(request)",
        "gave ValueError, expected none",
        "RowsGrowByPages",
    ),
    memory(
        "pages-against-positions",
        SHORT,
        "        if more * self.page_size > self.available:\n",
        "gave OutOfPagesError, expected none",
        "RowsGrowByPages",
    ),
    memory(
        "last-page-refused",
        SHORT,
        "        if more >= self.available:\n",
        "gave OutOfPagesError, expected none",
        "AGrowThatFailsChangesNothing",
    ),
    memory(
        "not-out-of-pages",
        SHORT,
        "        if False:\n",
        "gave ValueError, expected OutOfPagesError",
        "AGrowThatFailsChangesNothing",
    ),
    memory(
        "takes-what-there-is",
        SHORT,
        "        if more > self.available:\n"
        "            self.table.append(request.row, self.allocator.allocate(self.available))\n"
        + SHORT.replace("more", "1"),
        "changed something, though it was refused",
        "AGrowThatFailsChangesNothing",
    ),
    memory(
        "grow-leaks-on-failure",
        SHORT,
        SHORT + "            self.allocator.allocate(self.allocator.available)\n",
        "pages leak",
        "AGrowThatFailsChangesNothing",
    ),
    memory(
        "taken-before-the-check",
        POSSIBLE,
        "if request.row is None:",
        "pages leak",
        "AGrowThatFailsChangesNothing",
    ),
    memory(
        "length-rounded-up",
        POSSIBLE,
        "if request.row is None or length > self.page_size * len(self.table.entries[0]):",
        "gave no error, expected ValueError",
        "AGrowThatFailsChangesNothing",
    ),
    memory(
        "grows-without-a-row",
        POSSIBLE,
        "if length > self.max_len:",
        "expected ValueError",
        "RowsAreGivenOnceAndBackOnce",
    ),
    memory(
        "evicts-too-much", EVICT, "self.evict(more)", "it evicts all pages that are missing", "GrowEvictsWhatIsShort"
    ),
    memory("never-evicts", EVICT, "pass", "cannot allocate", "GrowEvictsWhatIsShort"),
    memory(
        "evictable-not-available",
        SHORT,
        "        if more > self.allocator.available:\n",
        "more pages",
        "GrowEvictsWhatIsShort",
    ),
    memory("row-not-written", GROW, "self.allocator.allocate(more)", "the row has 0 pages", "RowsGrowByPages"),
    memory(
        "keeps-nothing", GIVE_BACK, GIVE_BACK.replace("[keep:]", ""), "keep were freed too", "ARowBeginsWithItsPrefix"
    ),
    memory(
        "frees-the-kept", GIVE_BACK, GIVE_BACK.replace("keep:", ":keep"), "the others not", "ARowBeginsWithItsPrefix"
    ),
    memory("pages-not-freed", GIVE_BACK, "self.table.clear(request.row)", "pages leak", "MemoryKeepsItsBooks"),
    memory(
        "row-left-as-it-was",
        GIVE_BACK,
        "self.allocator.free(self.table.pages(request.row)[keep:])",
        "left wrong books",
        "RowsAreGivenOnceAndBackOnce",
    ),
    memory("row-not-given-back", ROW_BACK, "", "rows are free, expected", "RowsAreGivenOnceAndBackOnce"),
    memory("still-has-its-row", NO_ROW, "", "expected", "RowsAreGivenOnceAndBackOnce"),
    memory(
        "row-given-back-twice",
        ROW_BACK,
        ROW_BACK + ROW_BACK,
        "rows are free, expected",
        "RowsAreGivenOnceAndBackOnce",
    ),
    memory(
        "closed-twice",
        CLOSED,
        "if request.row is None:\n            return\n        if False:\n"
        '            raise ValueError(f"request {request.uid} has no row: it was closed',
        "gave no error, expected ValueError",
        "RowsAreGivenOnceAndBackOnce",
    ),
    memory(
        "freed-twice-on-abort",
        GIVE_BACK,
        "pages = self.table.pages(request.row)\n        " + GIVE_BACK + "\n        self.allocator.free(pages)",
        "gave ValueError, expected none",
        "MemoryKeepsItsBooks",
    ),
]

SIZE = "size = next((size for size in ladder if size >= steps), steps)"
AS_IS = "if batch.tokens > steps or size == steps:"
NOBODY, ROW = "nobody = Request(-1, [0], 1)", "nobody.row = row"
RETURN = "return Batch(batch.steps + (Step(nobody, 0, 1, False),) * (size - steps))"

_PADDING = [
    padding(
        "pads-full-batches", SIZE, SIZE.replace(">=", ">"), "just full was padded too", "BatchesArePaddedToTheLadder"
    ),
    padding(
        "pads-to-the-largest", SIZE, "size = max(ladder[-1], steps)", "the largest size", "BatchesArePaddedToTheLadder"
    ),
    padding(
        "doubles-beyond-the-ladder",
        SIZE,
        SIZE.replace("), steps)", "), 2 * steps)"),
        "dummy steps, expected 0",
        "BatchesArePaddedToTheLadder",
    ),
    padding(
        "next-size-up",
        SIZE,
        "size = 1 << (steps - 1).bit_length()",
        "dummy steps, expected",
        "BatchesArePaddedToTheLadder",
    ),
    padding("pads-prefill", AS_IS, "if size == steps:", "a prefill stays as it is", "BatchesArePaddedToTheLadder"),
    padding(
        "changes-the-given-batch",
        RETURN,
        "steps = batch.steps + (Step(nobody, 0, 1, False),) * (size - steps)\n"
        "    object.__setattr__(batch, 'steps', steps)\n    return batch",
        "nobody may see the padding",
        "BatchesArePaddedToTheLadder",
    ),
    padding("row-0", ROW, "nobody.row = 0", "not the dummy row", "BatchesArePaddedToTheLadder"),
    padding(
        "repeats-the-last-step",
        RETURN,
        "return Batch(batch.steps + batch.steps[-1:] * (size - steps))",
        "not the dummy row",
        "BatchesArePaddedToTheLadder",
    ),
    padding(
        "dummies-first",
        RETURN,
        "return Batch((Step(nobody, 0, 1, False),) * (size - steps) + batch.steps)",
        "its own steps must come first",
        "BatchesArePaddedToTheLadder",
    ),
    padding(
        "dummies-choose", RETURN, RETURN.replace("False", "True"), "chooses a token", "BatchesArePaddedToTheLadder"
    ),
    padding(
        "dummies-are-empty",
        RETURN,
        RETURN.replace("0, 1,", "0, 0,"),
        "expected position 0",
        "BatchesArePaddedToTheLadder",
    ),
    padding(
        "rows-counted-from-the-batch", ROW, "nobody.row = steps", "not the dummy row", "BatchesArePaddedToTheLadder"
    ),
]

MUTANTS = _ALLOCATOR + _TABLE + _POOL + _MEMORY + _PADDING
