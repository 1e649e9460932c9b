"""A table of one stream of tokens with the stop string STOP, one row for each token: the text of the token, what was
sent after it, and what is held back. Held text that turns out to be no beginning of STOP is sent with the next token;
at the end the stop string is complete, and nothing of it was ever sent.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, canvas
from course.serving_case.scripted import text_tokenizer
from tiny_llm_ref.serving.text_stream import TextStream

PIECES = ["Go", " on", " S", "TO", "NE", " and", " ST", "OP", " now"]
STOP = "STOP"


def rows() -> list[tuple[str, str, str, bool]]:
    """Of a real run: each token's text, what `add` returned, what is held back, and whether it has stopped."""
    tokenizer, tokens = text_tokenizer([piece.encode() for piece in PIECES])
    stream = TextStream(tokenizer, [STOP])
    return [
        (piece, stream.add(token), stream.held, stream.stopped) for piece, token in zip(PIECES, tokens, strict=True)
    ]


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.6, 3.6)
    _, orange, green, _, red = theme.series
    columns = ((0.3, "token", theme.muted), (1.6, "sent", green), (3.6, "held back", orange), (4.55, "", red))
    for x, title, color in columns:
        axes.text(x, 3.35, title, ha="left", va="center", color=color)
    axes.plot([0.2, 5.4], [3.15, 3.15], color=theme.muted, linewidth=1)
    for i, (piece, sent, held, stopped) in enumerate(rows()):
        y = 2.92 - 0.33 * i
        texts = (piece, sent, held, "stopped" if stopped else "")
        for (x, _, color), text in zip(columns, texts, strict=True):
            ink = theme.ink if x == columns[0][0] else color
            axes.text(x, y, text.replace(" ", "\u2423"), ha="left", va="center", color=ink, family="monospace")
    return figure
