"""Malformed kernels: seeded mutations of correct sources."""

import random
import re

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_ODD = ["\0", "\x07", "\u200b", "\ufffd", "@", "`", "\\", '"', "'", "#", "#if", "/*", "*/", "??(", "\r", "é"]
_WORDS = [
    *(
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "[[",
        "]]",
        "<",
        ">",
        ";",
        ",",
        "::",
        "threadgroup",
        "constant",
        "device",
        "kernel",
    ),
    *("template", "struct", "float", "static", "=", "*", "&", ".", "xy", "->", "1.0", "0x", "1e", "return", "for(;;)"),
]


def mutate(source: str, seed: int) -> str:
    """The source with one to three changes: tokens deleted, doubled, swapped or replaced, odd bytes, a cut, nesting."""
    rng = random.Random(seed)
    tokens = _TOKEN.findall(source)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(tokens))
        match rng.randrange(9):
            case 0:
                del tokens[place]
            case 1:
                tokens.insert(place, tokens[place])
            case 2:
                other = rng.randrange(len(tokens))
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 3:
                tokens.insert(place, rng.choice(_ODD))
            case 4:
                tokens[place] = rng.choice(_WORDS)
            case 5:
                tokens.insert(place, rng.choice(_WORDS))
            case 6:
                tokens = tokens[: max(place, 1)]
            case 7:
                depth = rng.choice([20, 300, 20_000])
                opener, closer = rng.choice(["()", "{}", "[]", "<>"])
                tokens.insert(place, opener * depth + (closer * depth if rng.random() < 0.5 else ""))
            case _:
                tokens[place] = "".join(rng.sample(tokens[place], len(tokens[place])))
        if not tokens:
            return ""
    return "".join(tokens)
