"""Scripts for the two sides of a connector: what each call orders, as plain values.

Works with either package through public names. Times are ns. A request is named by its uid.
"""

from collections.abc import Sequence

from course.solution import Solution

ROWS, MAX_LEN = 4, 64


class Side:
    """A memory of the package with holds, and what was computed in it."""

    def __init__(self, solution: Solution, page_size: int, pages: int, trace: bool = False):
        self.solution = solution
        self.held = solution.module("cluster.held_memory")
        kind = self.held.HeldTraceMemory if trace else self.held.HeldMemory
        self.memory = kind(ROWS, MAX_LEN, page_size, pages)

    def part(self, name: str):
        """A public name of the package's cluster."""
        module, _, attribute = name.partition(".")
        return getattr(self.solution.module(f"cluster.{module}"), attribute)

    def request(self, uid: int, ids: Sequence[int], max_tokens: int = 1):
        """A request."""
        return self.solution.module("serving.request").Request(uid, list(ids), max_tokens)

    def prefill(self, request) -> None:
        """Run the whole prompt of a request in a row, as a scheduler would."""
        self.memory.open(request, self.memory.match(request))
        self.memory.grow(request, request.prompt_len)
        request.launch(request.extend_len)
        request.in_flight -= 1
        request.append(1)

    def compute(self, request, reason: str | None = "length") -> list[int]:
        """Run the whole prompt of a request to its end. Returns the pages that it had."""
        memory = self.memory
        self.prefill(request)
        memory.share(request)
        pages = memory.table.pages(request.row)
        request.finish_reason = reason
        memory.close(request)
        return pages

    def play(self, script: Sequence[Sequence[object]]) -> list[list[object]]:
        """For each action [time, name, ...]: what came of it, or what it raised, and how many pages are free."""
        log = []
        for now, name, *args in script:
            try:
                result = getattr(self, name)(now, *args)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                result = f"{type(error).__name__}: {error}"
            log.append([self.told(result) if isinstance(result, list) else result, self.free])
        return log

    def told(self, orders: list) -> list[object]:
        """Orders as plain values."""
        raise NotImplementedError

    @property
    def free(self) -> int:
        """Pages that can be had."""
        return self.memory.available


class PrefillScript(Side):
    """A prefill side. An action is [time, name, transfer's number, ...]; pages of Copy are places in the prompt.

    "accept" tokens | "ready" reason | "own" tokens: one that was never accepted ends | "again": an end is told once
    more | "ask" rank ranks pages until | "moved" which copy, ok | "release" | "expire".
    """

    def __init__(self, solution: Solution, options: dict[str, object]):
        super().__init__(solution, options["page_size"], options["pages"])
        expiry, heads = options["expiry"], options["kv_heads"]
        self.sender = self.part("sender.Sender")(self.memory, options["ranks"], heads, expiry)
        self.requests: dict[int, object] = {}
        self.rows: dict[int, list[int]] = {}
        self.copies: list[object] = []

    def transfer(self, number: int):
        """Its name."""
        return self.part("handoff.Transfer")(5, number)

    def told(self, orders: list) -> list[object]:
        """Orders as plain values."""
        result = []
        for order in orders:
            if type(order).__name__ == "Copy":
                self.copies.append(order)
                row = self.rows[order.transfer.generation]
                pairs = [[row.index(page) if page in row else -1, target] for page, target in order.pages]
                result.append(["Copy", order.transfer.generation, list(order.part), pairs, order.until])
            else:
                result.append([type(order).__name__, order.transfer.generation, *list(order)[1:]])
        return result

    def accept(self, now: int, number: int, tokens: int):
        """A prompt comes."""
        ids = [100 * number + i for i in range(tokens)]
        request = self.requests[number] = self.request(number, ids)
        return self.sender.accept(request, self.transfer(number))

    def ready(self, now: int, number: int, reason: str):
        """Its prompt is computed."""
        self.rows[number] = self.compute(self.requests[number], reason)
        return self.sender.ended(self.requests[number], now)

    def own(self, now: int, number: int, tokens: int):
        """A request ends whose prompt was for nobody else."""
        request = self.request(number, range(tokens))
        self.compute(request)
        return self.sender.ended(request, now)

    def again(self, now: int, number: int):
        """Its end is told a second time."""
        return self.sender.ended(self.requests[number], now)

    def ask(self, now: int, number: int, rank: int, ranks: int, pages: Sequence[int], until: int):
        """A decode rank asks."""
        ask = self.part("connector.Ask")(self.transfer(number), "P", rank, ranks, tuple(pages), until)
        return self.sender.ask(ask, now)

    def moved(self, now: int, copy: int, ok: bool):
        """The copy of this number has ended."""
        return self.sender.moved(self.copies[copy], ok, now)

    def release(self, now: int, number: int):
        """Nobody wants it."""
        return self.sender.release(self.transfer(number), now)

    def expire(self, now: int):
        """The time has come."""
        return self.sender.expire(now)


class DecodeScript(Side):
    """A decode side. An action is [time, name, ...]; a request is named by its number, its transfer as well.

    "begin" number ids | "moved" number (source, target) pages | "refused" number rank | "abort" number | "retry" |
    "expire" | "run" number: it gets its row, computes one token and ends | "cached" ids: a prompt that was here.
    """

    def __init__(self, solution: Solution, options: dict[str, object]):
        super().__init__(solution, options["page_size"], options["pages"], options.get("trace", False))
        self.options = options
        make = self.part("receiver.Receiver")
        arguments = options["ranks"], options["kv_heads"], options.get("recompute", True)
        self.receiver = make(self.memory, *arguments, expiry=options["expiry"])
        self.requests: dict[int, object] = {}

    def transfer(self, number: int):
        """Its name: all have the same uid."""
        return self.part("handoff.Transfer")(5, number)

    @property
    def free(self) -> int:
        """Pages that are free or in the tree, and that nobody holds, received prompts included."""
        return self.memory.allocator.available + self.memory.tree.evictable

    def told(self, orders: list) -> list[object]:
        """Orders as plain values. The pages of an Ask are counted."""
        result = []
        for order in orders:
            kind = type(order).__name__
            if kind == "Ask":
                pages = len(order.pages) if len(set(order.pages)) == len(order.pages) else -1
                result.append(
                    [kind, order.transfer.generation, order.worker, order.rank, order.ranks, pages, order.until]
                )
            elif kind == "Release":
                result.append([kind, order.transfer.generation, order.worker])
            else:
                result.append([kind, order.request.uid])
        return result

    def cached(self, now: int, ids: Sequence[int]) -> None:
        """A prompt was computed here before."""
        self.compute(self.request(99, ids), "stop")

    def begin(self, now: int, number: int, ids: Sequence[int], token: bool = True):
        """A request comes; its first token is known."""
        request = self.requests[number] = self.request(number, ids, 5)
        if token:
            self.part("receiver.handed_over")(request, 1)
        ticket = self.part("handoff.Ticket")(self.transfer(number), "P", self.options["sources"])
        return self.receiver.begin(request, ticket, now)

    def moved(self, now: int, number: int, pair: Sequence[int], asked: int, pages: int):
        """A copy has ended: of `asked` pages the first `pages` came."""
        part = self.part("connector.Part")(pair[0], pair[1], 0, 1)
        copy = self.part("connector.Copy")(self.transfer(number), part, ((0, 0),) * asked, 0)
        return self.receiver.moved(copy, pages, now)

    def refused(self, now: int, number: int, rank: int):
        """Nothing will come for a rank."""
        return self.receiver.refused(self.part("connector.Refused")(self.transfer(number), rank), now)

    def abort(self, now: int, number: int):
        """Its client leaves."""
        return self.receiver.abort(self.requests[number], now)

    def lost(self, now: int):
        """The prefill worker is gone, it seems."""
        return self.receiver.lost("P")

    def retry(self, now: int):
        """There may be pages."""
        return self.receiver.retry(now)

    def expire(self, now: int):
        """The time has come."""
        return self.receiver.expire(now)

    def next(self, now: int):
        """When it wants to be called."""
        return self.receiver.next_time()

    def run(self, now: int, number: int) -> int:
        """Give it its row. Returns the positions that need not be computed. Then it ends."""
        request, memory = self.requests[number], self.memory
        memory.open(request, memory.match(request))
        cached = request.cached_len
        request.finish_reason = "abort"
        memory.close(request)
        return cached
