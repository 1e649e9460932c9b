"""Two lines of time, a worker's above and a router's below, with a run of the reference between them. Events 0 and 1
arrive. Event 2 is lost. A second copy of event 1 arrives and is dropped. When event 3 arrives, the router's cursor
stays at 1, and it asks for all events from 2 on. Event 4 arrives and is dropped, without a second question. The
worker answers with events 2 to 5, and the cursor goes from 1 to 5. Event 5, which was on its way, arrives after the
answer and is dropped.
"""

import heapq
from itertools import count

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.book.style import Theme, arrow, canvas
from tiny_llm_ref.cluster.events import EventFeed, EventLog, Events, Question
from tiny_llm_ref.cluster.indexer import PrefixIndex, Removed

TOP, BOTTOM, LEFT, STEP = 1.95, 0.85, 1.0, 0.63
SENT = [(0, 0.9), (1, 0.9), (1, 2.4), (2, None), (3, 0.9), (4, 0.9), (5, 2.3)]
"""Copies of events that are sent: the event, at the time of its number, and how long it takes; None: it is lost."""
WAY = 1.2
"""How long a question takes, or an answer."""


class Talk:
    """What goes between the two, in the order of time."""

    def __init__(self, axes: Axes, theme: Theme):
        self.axes, self.theme = axes, theme
        self.log, self.feed = EventLog(8, tuple), EventFeed(PrefixIndex())
        self.feed.add_worker("w")
        self.numbers, self.due = count(), []
        for number, delay in SENT:
            self.plan(number, self.publish, number, delay)
        while self.due:
            time, _, call, args = heapq.heappop(self.due)
            call(time, *args)

    def plan(self, time: float, call, *args) -> None:
        """Do something later."""
        heapq.heappush(self.due, (time, next(self.numbers), call, args))

    def place(self, time: float) -> float:
        """Where a time is."""
        return LEFT + STEP * time

    def publish(self, time: float, number: int, delay: float | None) -> None:
        """A copy of an event leaves the worker."""
        if number > self.log.last:
            self.log.publish(Removed((number,)))
        x, color = self.place(time), self.theme.series[0]
        self.axes.text(x, TOP + 0.1, str(number), ha="center", va="bottom", fontsize=9.5)
        if delay is None:
            end = (self.place(time + 0.4), TOP - 0.45 * (TOP - BOTTOM))
            self.axes.plot([x, end[0]], [TOP, end[1]], color=color, linewidth=1.4)
            self.axes.plot(*end, marker="x", markersize=8, markeredgewidth=2, color=self.theme.series[4])
            return
        arrow(self.axes, (x, TOP), (self.place(time + delay), BOTTOM), color, linewidth=1.4)
        self.plan(time + delay, self.receive, self.log.recent[number])

    def receive(self, time: float, event) -> None:
        """An event is at the router."""
        before = self.feed.cursors["w"].last
        question = self.feed.receive("w", event)
        after = self.feed.cursors["w"].last
        self.tell(time, str(after) if after != before else "-")
        if question:
            self.ask(time, question)

    def ask(self, time: float, question: Question) -> None:
        """A question goes up."""
        color = self.theme.series[1]
        arrow(self.axes, (self.place(time), BOTTOM), (self.place(time + WAY), TOP), color, linewidth=1.4)
        self.axes.text(self.place(time + WAY), TOP + 0.36, f"asked from {question.first}", ha="center", va="bottom",
                       fontsize=9, color=color)  # fmt: skip
        self.plan(time + WAY, self.answer, question)

    def answer(self, time: float, question: Question) -> None:
        """The answer goes down."""
        answer, color = self.log.answer(question), self.theme.series[2]
        arrow(self.axes, (self.place(time), TOP), (self.place(time + WAY), BOTTOM), color, linewidth=2.4)
        assert isinstance(answer, Events)
        text = f"{answer.events[0].number} to {answer.events[-1].number}"
        self.axes.text(self.place(time + 0.35), BOTTOM + 0.14, text, ha="center", fontsize=9, color=color)
        self.plan(time + WAY, self.recover, answer)

    def recover(self, time: float, answer: Events) -> None:
        """The answer is at the router."""
        assert self.feed.recover("w", answer) is None
        self.tell(time, str(self.feed.cursors["w"].last))

    def tell(self, time: float, text: str) -> None:
        """What the router makes of it."""
        self.axes.text(self.place(time), BOTTOM - 0.12, text, ha="center", va="top", fontsize=9.5)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.9, 2.75)
    for y, name in ((TOP, "worker"), (BOTTOM, "router")):
        axes.plot([LEFT - 0.25, 6.7], [y, y], color=theme.muted, linewidth=1)
        axes.text(LEFT - 0.35, y, name, ha="right", va="center", fontsize=9.5)
    axes.text(LEFT - 0.35, TOP + 0.1, "event", ha="right", va="bottom", fontsize=8.5, color=theme.muted)
    axes.text(LEFT - 0.35, BOTTOM - 0.12, "cursor", ha="right", va="top", fontsize=8.5, color=theme.muted)
    Talk(axes, theme)
    axes.text(LEFT - 0.25, 0.25, "-  dropped: it was there already, or there is a gap before it", fontsize=8.5,
              color=theme.muted)  # fmt: skip
    return figure
