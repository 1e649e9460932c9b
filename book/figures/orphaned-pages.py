"""Pages that a prefill worker keeps, over 20 minutes in which a prompt of 32 pages is computed every 4 seconds and each
third client leaves between the two hops. If nobody tells the worker, it soon keeps 1,280 pages, those of the last 480
seconds, for ever. With an expiry of 60 seconds it keeps 160. With a release it never keeps more than 32.
"""

from collections.abc import Callable

from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.cluster.connector import Ask, Copy
from tiny_llm_ref.cluster.handoff import Transfer
from tiny_llm_ref.cluster.held_memory import HeldTraceMemory
from tiny_llm_ref.cluster.sender import Sender
from tiny_llm_ref.cluster.trace_request import TraceRequest

SECOND, PAGES, MINUTES = 10**9, 4096, 20
EVERY, TOKENS, PAGE = 4, 2048, 64


def run(expiry: int, release: bool) -> list[int]:
    """Pages held, second by second. expiry: seconds."""
    memory = HeldTraceMemory(8, 8192, PAGE, PAGES)
    sender = Sender(memory, expiry=expiry * SECOND)
    held, later = [], {}

    def ask(transfer: Transfer) -> Callable[[int], None]:
        def begin(second: int) -> None:
            question = Ask(transfer, "P", 0, 1, tuple(range(TOKENS // PAGE)), 10**15)
            for copy in sender.ask(question, second * SECOND):
                later[second + 1] = lambda now, copy=copy: end(copy, now)

        def end(copy: Copy, second: int) -> None:
            sender.moved(copy, True, second * SECOND)

        return begin

    for second in range(60 * MINUTES):
        if second % EVERY == 0:
            request, transfer = TraceRequest(second, TOKENS, 1), Transfer(second, second)
            sender.accept(request, transfer)
            memory.open(request, memory.match(request))
            memory.grow(request, TOKENS)
            request.cached_len, request.finish_reason = TOKENS, "length"
            memory.close(request)
            sender.ended(request, second * SECOND)
            leaves = second // EVERY % 3 == 0
            if not leaves:
                later[second + 1] = ask(transfer)
            elif release:
                later[second + 1] = lambda now, transfer=transfer: sender.release(transfer, now * SECOND)
        if (action := later.pop(second, None)) is not None:
            action(second)
        sender.expire(second * SECOND)
        held.append(PAGES - memory.available)
    return held


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    axes = figure.subplots()
    lines = {"nobody tells it, expiry 480 s": (480, False), "expiry 60 s": (60, False), "released": (480, True)}
    for color, (label, options) in zip((theme.series[4], theme.series[1], theme.series[2]), lines.items(), strict=True):
        held = run(*options)
        axes.plot([second / 60 for second in range(len(held))], held, color=color, label=label, linewidth=1.5)
    axes.set(xlabel="minutes", ylabel="pages kept", xlim=(0, MINUTES), ylim=(0, None), xticks=range(0, MINUTES + 1, 4))
    axes.legend(loc="center right")
    return figure
