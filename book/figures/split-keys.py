"""Decoding with one query and ten keys, dealt to four SIMD groups: group 0 takes keys 0, 4 and 8, group 1 takes 1, 5
and 9, and so on. Each ends with a maximum m, a sum l and an unnormalised result o of its own keys. They are brought to
the largest maximum by the factors exp(m_i - m), added, and divided once.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas

KEYS, GROUPS = 10, 4


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.4, 3.75)
    axes.text(0.2, 3.6, "keys and values, dealt to four SIMD groups", va="center", fontsize=9.5, color=theme.muted)
    for key in range(KEYS):
        box(axes, 0.2 + key * 0.6, 3.05, 0.52, 0.36, str(key), theme, theme.series[key % GROUPS], fontsize=9)
    for group in range(GROUPS):
        x = 0.2 + group * 1.52
        keys = ", ".join(str(key) for key in range(group, KEYS, GROUPS))
        box(axes, x, 2.2, 1.4, 0.5, f"SIMD group {group}\nkeys {keys}", theme, theme.series[group], fontsize=8.5)
        arrow(axes, (x + 0.7, 2.17), (x + 0.7, 1.95), theme.muted)
        box(
            axes,
            x,
            1.55,
            1.4,
            0.36,
            f"$m_{group}$,  $l_{group}$,  $o_{group}$",
            theme,
            theme.series[group],
            fontsize=9.5,
        )
        arrow(axes, (x + 0.7, 1.2), (x + 0.7, 0.92), theme.muted)
        axes.text(x + 0.76, 1.04, f"$e^{{m_{group} - m}}$", va="center", fontsize=9, color=theme.ink)
    axes.plot([0.2, 6.16], [1.36, 1.36], linewidth=3, color=theme.series[4])
    axes.text(6.16, 1.3, "barrier", ha="right", va="top", fontsize=8.5, color=theme.series[4])
    sums = r"$l = \sum_i e^{m_i - m}\, l_i$     $o = \sum_i e^{m_i - m}\, o_i$"
    text = rf"$m = \max_i m_i$     {sums}     result $= o\, /\, l$"
    box(axes, 0.2, 0.35, 5.96, 0.5, text, theme, theme.muted, fontsize=10)
    return figure
