"""One answer of fourteen tokens, and the workers that computed it, from left to right in time. The first worker is
killed after five tokens, the second after four more, and a third one ends the answer. In the lowest row, the client's,
the tokens follow each other from 1 to 14 without a gap in their numbers. After each kill the next worker gets the
prompt and all tokens so far.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, arrow, canvas
from course.cluster_case.greedy import alone
from course.cluster_case.scene import MS, Imported, Scene

PROMPT, TOKENS, KILLS = [3, 1, 4], 14, (5, 9)
LEFT, CELL, ROW = 1.1, 0.43, 0.62


def run() -> tuple[list[tuple[int, float]], list[tuple[int, int]]]:
    """A real run: which worker gave each token and when, in ms; prompt and max_tokens that each was asked for."""

    async def main(scene: Scene):
        await scene.open()
        workers = [await scene.worker(f"worker-{i}") for i in range(3)]
        client, given, got, asked = await scene.client(), [], [], []
        names = {worker.discovery.lease: i for i, worker in enumerate(workers)}

        async def route(body: dict[str, object]):
            asked.append((len(body["token_ids"]), body["max_tokens"]))
            async for item in client.call(body):
                yield item

        begun = scene.now
        async for token in scene.part("migration.Migration")(route, scene.clock(), pause=8 * MS).generate(
            PROMPT, TOKENS
        ):
            busy = names[next(iter(client.inflight))]
            given.append((busy, (scene.now - begun) / MS))
            got.append(token)
            if len(got) in KILLS:
                scene.network.crash(f"worker-{busy}")
        if got != alone(PROMPT, TOKENS):
            raise AssertionError(got)
        return given, asked

    return Scene(Imported("tiny_llm_ref")).run(main)


def cell(axes: Axes, x: float, y: float, text: str, color: str, theme: Theme) -> None:
    """A token."""
    shape = Rectangle((x, y), CELL - 0.06, 0.36, facecolor=theme.soft, edgecolor=color, linewidth=1.4)
    axes.add_patch(shape)
    axes.text(x + CELL / 2 - 0.03, y + 0.18, text, ha="center", va="center", fontsize=8.5)


def draw(theme: Theme) -> Figure:
    """The figure."""
    given, asked = run()
    scale = CELL / 10.5
    at = lambda time: LEFT + (time - given[0][1]) * scale  # noqa: E731
    figure, axes = canvas(at(given[-1][1]) + 1.1, 3.1)
    bottoms = [0.25 + ROW * row for row in (3, 2, 1, 0)]
    for y, name in zip(bottoms, ("worker 1", "worker 2", "worker 3", "client"), strict=True):
        axes.text(LEFT - 0.15, y + 0.18, name, ha="right", va="center", fontsize=9.5)
    for number, (worker, time) in enumerate(given, 1):
        color = theme.series[worker]
        cell(axes, at(time), bottoms[worker], str(number), color, theme)
        cell(axes, at(time), bottoms[3], str(number), color, theme)
        if number in KILLS:
            axes.text(at(time) + CELL + 0.02, bottoms[worker] + 0.18, "✕ killed", fontsize=9.5, va="center",
                      color=theme.series[4])  # fmt: skip
            after = given[number]
            arrow(axes, (at(time) + CELL - 0.06, bottoms[worker]), (at(after[1]) - 0.04, bottoms[after[0]] + 0.3),
                  theme.muted, linewidth=1.2)  # fmt: skip
            prompt, most = asked[after[0]]
            axes.text(at(after[1]) - 0.1, bottoms[after[0]] + 0.06, f"prompt of {prompt},\nmax_tokens {most}",
                      fontsize=8, ha="right", va="center", color=theme.muted)  # fmt: skip
    return figure
