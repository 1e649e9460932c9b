"""Plausible wrong solutions of Week 3 Day 5, and the case that catches each."""

from course.mutants import Mutant

RADIX, MEMORY = "cache/radix.py", "serving/prefix_memory.py"


def walk(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, RADIX, old, new, message, killer)


def lock(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, RADIX, old, new, message, killer)


def begin(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, MEMORY, old, new, message, killer)


def hand(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, MEMORY, old, new, message, killer)


STEP = "            node = child if same == len(child.keys) else self.split(child, same)\n"
STAMP = "            node.time = self.time\n"
EQUAL = "child.keys[same] == keys[length + same]"
CLOCK = "        self.time += 1\n"
HUNG = "        node.parent.children[front.keys[0]] = front\n"
CUT = "        node.keys, node.pages, node.parent = node.keys[at:], node.pages[at:], front\n"
BELOW = "        front.children[node.keys[0]] = node\n        return front\n"
FRONT = "node.parent, node.time, node.ref_count)"
LEAF = "leaf = Node(list(keys[already:]), list(pages[already:]), node, self.time)"
MATCH, INSERT, SPLIT = "MatchFindsTheLongestPrefix", "InsertTakesOnlyWhatIsNew", "ASplitKeepsTheRest"
STAMPS = "AWalkStampsWhatItMatched"

_WALK = [
    walk("handle-is-root", "return node, length\n", "return self.root, length\n", "the end of the node that", INSERT),
    walk("never-split", STEP, "            node = child\n", "behind the first key that differs", MATCH),
    walk(
        "part-given-up",
        STEP,
        "            if same < len(child.keys):\n                break\n            node = child\n",
        "pages too early",
        MATCH,
    ),
    walk("hashes-compared", EQUAL, f"hash({EQUAL.replace(' ==', ') == hash(')})", "pages were there already", MATCH),
    walk("first-key-decides", EQUAL, "True", "behind the first key that differs", MATCH),
    walk("rest-stamped", STEP, "            child.time = self.time\n" + STEP, "stamped the rest", STAMPS),
    walk(
        "front-not-stamped",
        STAMP,
        "            if node is child:\n    " + STAMP,
        "did not stamp the front part",
        STAMPS,
    ),
    walk(
        "only-the-end-stamped",
        STAMP + "            length += same\n",
        "            length += same\n        node.time = self.time\n",
        "did not stamp every node",
        STAMPS,
    ),
    walk(
        "wall-clock", CLOCK, "        self.time = __import__('time').monotonic_ns()\n", "the tree counts walks", STAMPS
    ),
    walk("clock-stands-still", CLOCK, "", "did not stamp", STAMPS),
    walk(
        "walks-by-recursion",
        CLOCK,
        CLOCK + "\n        def depth(node):\n"
        "            return 1 + max(map(depth, node.children.values()), default=0)\n\n        depth(self.root)\n",
        "RecursionError",
        "LongPromptsAreFine",
    ),
    walk(
        "node-becomes-front",
        CUT + BELOW,
        "        rest = Node(node.keys[at:], node.pages[at:], node, node.time, node.ref_count, node.children)\n"
        "        for child in rest.children.values():\n            child.parent = rest\n"
        "        node.parent.children[node.keys[0]] = node\n"
        "        node.keys, node.pages, node.children = node.keys[:at], node.pages[:at], {rest.keys[0]: rest}\n"
        "        return node\n",
        "the node became the front",
        SPLIT,
    ),
    walk("front-unlocked", FRONT, "node.parent, node.time, 0)", "ref_count of the front", SPLIT),
    walk("split-stamps", FRONT, "node.parent, self.time, node.ref_count)", "changed a time", SPLIT),
    walk("front-not-in-tree", HUNG, "", "is filed under", SPLIT),
    walk(
        "rest-keeps-parent",
        CUT,
        CUT.replace(", node.parent =", " =").replace(", front\n", "\n"),
        "names its old parent",
        SPLIT,
    ),
    walk(
        "split-at-an-end", "if not 0 < at < len(node.keys)", "if not 0 <= at <= len(node.keys)", "not ValueError", SPLIT
    ),
    walk(
        "row-view-kept", LEAF, LEAF.replace("list(pages[already:])", "pages[already:]"), "later", "TheTreeKeepsCopies"
    ),
    walk("returns-new", "return already, node\n", "return len(keys) - already, node\n", "what is new was", INSERT),
    walk("leaf-not-returned", "            node = leaf\n", "", "the end of the node that the insert", INSERT),
    walk("leaf-holds-all", LEAF, LEAF.replace("[already:]", "[:]"), "the end of the node that the insert", INSERT),
    walk("not-evictable", "            self.evictable += len(leaf.keys)\n", "", "evictable, protected are", INSERT),
    walk(
        "later-pages-win",
        "        if already < len(keys):\n",
        "        if already == len(keys) == len(node.keys):\n            node.pages = list(pages)\n"
        "        if already < len(keys):\n",
        "those that came first stay",
        INSERT,
    ),
    walk(
        "numbers-unchecked",
        "if len(keys) != len(pages):",
        "if len(keys) > len(pages):",
        "was accepted",
        "PagesAndKeysMustBeAsMany",
    ),
]

LOCK = """        while node.parent is not None:
            if node.ref_count == 0:
                self.evictable -= len(node.keys)
"""
UP = "            node.ref_count += 1\n            node = node.parent\n"
NEED = "        if node.ref_count == 0:\n            raise ValueError("
BACK = "            node.ref_count -= 1\n            if node.ref_count == 0:\n"
FREED = "                self.protected -= len(node.keys)\n                self.offer(node)\n"
OLDEST = "            leaf = self.oldest()\n"
KEPT = "kept = max(len(leaf.keys) - (pages - len(evicted)), 0)"
TAKEN = "evicted += leaf.pages[kept:]"
BOUND = "        if not 0 <= pages <= self.evictable:\n"
PATH, ENDS, SET = "ALockHoldsThePathToTheRoot", "EvictTakesTheOldestEnd", "TheTreeIsASetOfPrefixes"


def search(choose: str, condition: str) -> str:
    """Eviction that looks through all nodes, with a mistake in what it looks for."""
    return (
        "            stack, found = [self.root], []\n            while stack:\n                node = stack.pop()\n"
        "                stack += node.children.values()\n"
        f"                if node is not self.root and node.pages and {condition}:\n"
        "                    found.append(node)\n"
        f"            leaf = {choose}(found, key=lambda node: node.time)\n"
    )


_LOCK = [
    lock("node-skipped", LOCK, "        node = node.parent or node\n" + LOCK, "the node itself was left out", PATH),
    lock("only-the-node", UP, "            node.ref_count += 1\n            break\n", "only the node itself", PATH),
    lock("every-lock-moves", LOCK, LOCK.replace("node.ref_count == 0", "True"), "every lock moved the pages", PATH),
    lock("not-counted-down", LOCK, LOCK.replace("self.evictable -= len(node.keys)", "pass"), "counted down", PATH),
    lock("nothing-moves", LOCK, LOCK.replace("node.ref_count == 0", "False"), "nothing was moved", PATH),
    lock("wrong-assertion", NEED, NEED.replace("== 0", "<= 1"), "raised ValueError", PATH),
    lock("unlock-unchecked", NEED, NEED.replace("== 0", "< 0"), "an unlock without a lock gave no", "UnlockNeedsALock"),
    lock("every-unlock-moves", BACK, BACK.replace("node.ref_count == 0", "True"), "evictable, protected are", PATH),
    lock(
        "unlocks-only-the-node",
        FREED + "            node = node.parent\n",
        FREED + "            break\n",
        "has ref_count",
        PATH,
    ),
    lock("not-offered-again", FREED, FREED.splitlines()[0] + "\n", "LookupError", "AnUnlockedLeafCanGo"),
    lock("whole-leaf", KEPT, "kept = 0", "more than was asked for", ENDS),
    lock("front-of-the-leaf", TAKEN, "evicted += leaf.pages[: len(leaf.pages) - kept]", "is an inner one", ENDS),
    lock("newest-first", OLDEST, search("max", "not (node.children or node.ref_count)"), "went first", ENDS),
    lock("locked-too", OLDEST, search("min", "not node.children"), "is locked", SET),
    lock("inner-nodes-too", OLDEST, search("min", "not node.ref_count"), "is an inner one", ENDS),
    lock("parent-not-offered", "                self.offer(leaf.parent)\n", "", "LookupError", ENDS),
    lock(
        "end-not-offered",
        "                self.offer(leaf)\n            else",
        "            else",
        "asked for longer",
        ENDS,
    ),
    lock("stays-in-the-tree", "                del leaf.parent.children[leaf.keys[0]]\n", "", "the tree holds", ENDS),
    lock("still-evictable", "        self.evictable -= pages\n", "", "evictable, protected are", ENDS),
    lock(
        "takes-what-there-is",
        BOUND,
        "        pages = min(max(pages, 0), self.evictable)\n" + BOUND,
        "not a ValueError",
        "EvictRefusesWhatIsLocked",
    ),
    lock(
        "locked-counted",
        BOUND,
        BOUND.replace("self.evictable", "self.evictable + self.protected"),
        "not a ValueError",
        "EvictRefusesWhatIsLocked",
    ),
]

ASK = "request.page_keys(self.page_size, len(request.ids) - 1)"
OPEN = """        super().open(request, prefix)
        node = prefix.node if isinstance(prefix.node, Node) else self.tree.root
        self.tree.lock(node)
"""
AVAILABLE = "return self.allocator.available + self.tree.evictable"
EVICT = "self.allocator.free(self.tree.evict(pages))"
TOKENS = "MatchLeavesATokenToRun"
OPENS, GROWS = "OpenLocksWhatItFound", "GrowEvictsWhatNobodyReads"

_BEGIN = [
    begin("fully-cached-prompt", ASK, ASK.replace(" - 1", ""), "nothing is left to run", TOKENS),
    begin("pages-as-tokens", "Prefix(len(pages) * self.page_size,", "Prefix(len(pages),", "not tokens", TOKENS),
    begin(
        "only-the-prompt-matched",
        ASK,
        "request.page_keys(self.page_size, request.prompt_len - 1)",
        "only the prompt was matched",
        TOKENS,
    ),
    begin("last-page-never", f"self.tree.match({ASK})", f"self.tree.match({ASK}[:-1])", "is left out", TOKENS),
    begin("match-locks", "return Prefix(", "self.tree.lock(node)\n        return Prefix(", "must hold nothing", TOKENS),
    begin(
        "own-keys",
        ASK,
        "[tuple(request.ids[i : i + 4]) for i in range(0, len(request.ids) - 4, 4)]",
        "the keys of a trace",
        "KeysAreTheRequestsBusiness",
    ),
    begin("not-locked", OPEN, OPEN.replace("        self.tree.lock(node)\n", ""), "was not locked", OPENS),
    begin("locked-before-refused", OPEN, OPEN.replace(OPEN.splitlines(True)[0], "") + OPEN.splitlines(True)[0],
          "the state after a refused open", OPENS),
    begin("evictable-not-counted", AVAILABLE, AVAILABLE.replace(" + self.tree.evictable", ""), "could evict", OPENS),
    begin("tokens-as-pages", AVAILABLE, AVAILABLE + " * self.page_size", "positions were counted, not pages", OPENS),
    begin("locked-counted-as-free", AVAILABLE, AVAILABLE + " + self.tree.protected", "also locked ones", OPENS),
    begin("evicted-not-freed", EVICT, "self.tree.evict(pages)", "got ValueError", GROWS),
    begin("evicts-tokens", EVICT, EVICT.replace("(pages)", "(min(pages * self.page_size, self.tree.evictable))"),
          "more pages were evicted than were short", GROWS),
    begin("evicts-everything", EVICT, EVICT.replace("(pages)", "(self.tree.evictable)"), "than were short", GROWS),
    begin("prefix-counted-as-own", "node, len(prefix.pages)\n", "node, 0\n", "cannot be freed", "EveryPageHasOneOwner"),
]  # fmt: skip

COUNTED = "min(request.cached_len, len(request.ids) - 1)"
REMAP = "        self.table.replace(row, 0, self.tree.pages(node))\n"
DUPLICATES = "        self.allocator.free(own[shared:already])\n"
MOVED = "        self.tree.lock(node)\n        self.tree.unlock(locked)\n"
AT_END = "        self.share(request)\n        node, shared = self.shared.pop(request.row)\n"
ROWS, OWNER, KNOWN = "RowsGoToTheTreesPages", "EveryPageHasOneOwner", "OnlyWhatWasComputedAndIsKnown"
TURNS = "TheNextTurnFindsTheAnswer"
SHARES, CLOSES = "ShareGivesWholePages", "CloseGivesAllBack"

_HAND = [
    hand("row-keeps-duplicates", REMAP, "", "its row still points to them", ROWS),
    hand("third-takes-freed-page", REMAP, "", "it was freed too early", "ThirdRequestTakesFreedPages"),
    hand("freed-before-remapped", REMAP + DUPLICATES, DUPLICATES + REMAP, "was freed while the row", ROWS),
    hand("duplicates-leak", DUPLICATES, "", "pages leak", ROWS),
    hand("frees-shared-again", DUPLICATES, DUPLICATES.replace("shared:", ":"), "free and in use at once", SHARES),
    hand(
        "frees-the-trees",
        DUPLICATES,
        "        self.allocator.free(self.tree.pages(node)[shared:already])\n",
        "was freed while the row",
        ROWS,
    ),
    hand("lock-not-moved", MOVED, "", "which is not locked", SHARES),
    hand("old-lock-kept", MOVED, MOVED.splitlines(True)[0], "pages leak", TURNS),
    hand("new-not-locked", MOVED, MOVED.splitlines(True)[1], "this node is not locked", SHARES),
    hand("in-flight-counted", COUNTED, "request.cached_len", "that a step in flight is writing", KNOWN),
    hand("uncomputed-counted", COUNTED, "len(request.ids) - 1", "that no step has computed", KNOWN),
    hand("unknown-ids-counted", COUNTED, "request.cached_len", "launched positions were counted whose ids", KNOWN),
    hand("only-the-prompt", COUNTED, f"min(request.prompt_len, {COUNTED})", "only the prompt", TURNS),
    hand("nothing-at-the-end", AT_END, AT_END.splitlines(True)[1], "not the answer", TURNS),
    hand("never-shared", COUNTED, "self.shared[row][1] * self.page_size", "nothing is locked", SHARES),
    hand("lock-leaks", "        self.tree.unlock(node)\n", "", "are locked, and nobody is there", CLOSES),
    hand("tree-pages-freed", "keep=shared", "keep=0", "free and in use at once", CLOSES),
    hand("tail-leaks", "keep=shared", "keep=self.held(request)", "pages leak", CLOSES),
    hand(
        "stale-after-share",
        AT_END,
        "        node, shared = self.shared[request.row]\n        self.share(request)\n",
        "free and in use at once",
        CLOSES,
    ),
    hand("stale-row", AT_END, AT_END.replace(".pop(request.row)", "[request.row]").replace(
        "        node", "        request.cached_len = 0\n        self.share(request)\n        node"), "pages",
        OWNER),
    hand("closed-twice", "        if request.row is None:\n", "        if request.row is None:\n            return\n"
         "        if request.uid < 0:\n", "was accepted", CLOSES),
]  # fmt: skip

MUTANTS = _WALK + _LOCK + _BEGIN + _HAND
