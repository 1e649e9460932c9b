"""The held-out evaluation set: prompts that no training document contains, with the one right answer to each.

    python -m models.heldout --count 5

What keeps each kind apart from training:
- facts: the phrasing that the fact holds out;
- unseen sums: pairs of numbers that training never adds or subtracts (seen sums are the contrast);
- sequences, tool calls and tool answers: questions that `tasks.text_held_out` keeps back;
- reading, passages, names and memory: texts and chats drawn anew from a seed that training does not use.
"""

import argparse
from dataclasses import dataclass
from random import Random

from models import tasks
from models.chatml import Tool, Turn, prompt_text
from models.corpus import fact_turns, reading_turns
from models.facts import FACTS
from models.tools import TOOLS, tool_use
from models.world import NAMES

SEED = 20_261_129
COUNTS = {
    "facts": len(FACTS), "names": 300, "sequences": 300, "seen sums": 300, "unseen sums": 300, "reading": 400,
    "tool call": 250, "tool answer": 250, "made-up names": 200, "memory": 200, "unseen sums to 99": 200,
    "passages": 200,
}  # fmt: skip
FLOORS = {
    "facts": 97, "names": 97, "sequences": 97, "seen sums": 95, "unseen sums": 75, "reading": 75, "tool call": 90,
    "tool answer": 80,
}  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One question: its category, the chat up to it, the tools listed, and the answer."""

    category: str
    turns: tuple[Turn, ...]
    answer: str
    tools: tuple[str, ...] = ()

    def prompt(self, *, thinking: bool = False) -> str:
        """Prompt text up to the assistant's header, with the empty think block unless `thinking`."""
        listed: list[Tool] = [TOOLS[name] for name in self.tools]
        return prompt_text(list(self.turns), tools=listed, thinking=thinking)


def _item(category: str, turns: list[Turn], tools: list[str] | None = None) -> Item:
    """The last turn of `turns` is the answer, those before it the prompt."""
    return Item(category, tuple(turns[:-1]), turns[-1].content, tuple(tools or ()))


def _chat_item(category: str, rng: Random) -> Item:
    """A chat in which the user tells things, talks of something else, and then asks for one of the things."""
    while True:
        items = tasks.memory(rng)
        index = rng.randrange(len(items))
        answer = items[index][1][1].content
        name = answer.removeprefix("Your name is ").rstrip(".") if answer.startswith("Your name is ") else ""
        found = "memory" if not name else "names" if name in NAMES else "made-up names"
        if found == category:
            break
    turns = [turn for said, _ in items for turn in said]
    for _ in range(rng.randrange(3)):
        turns += fact_turns(rng)
    return _item(category, turns + items[index][1])


def _tool_item(category: str, rng: Random) -> Item:
    """A question for a tool, up to the call or up to the answer, under a list of two to four tools."""
    use = tool_use(rng, held_out=True)
    others = [name for name in TOOLS if name != use.name]
    listed = [use.name, *rng.sample(others, rng.randrange(1, 4))]
    rng.shuffle(listed)
    return _item(category, list(use.turns[:2] if category == "tool call" else use.turns), listed)


def draw(category: str, rng: Random) -> Item:
    """One item of `category`, which is any but "facts"."""
    if category in ("names", "made-up names", "memory"):
        return _chat_item(category, rng)
    if category in ("tool call", "tool answer"):
        return _tool_item(category, rng)
    if category in ("reading", "passages"):
        return _item(category, reading_turns(rng, limit=1, passages=float(category == "passages")))
    if category == "sequences":
        return _item(category, tasks.sequence(rng, held_out=True))
    limit = tasks.LIMIT if category == "unseen sums to 99" else tasks.SMALL
    return _item(category, tasks.arithmetic(rng, held_out=category != "seen sums", limit=limit))


def held_out_set(seed: int = SEED, share: float = 1.0) -> list[Item]:
    """The evaluation set of `seed`: `share` of `COUNTS` in each category."""
    rng = Random(seed)
    facts = rng.sample(FACTS, round(COUNTS["facts"] * share))
    items = [_item("facts", [Turn("user", fact.held_out), Turn("assistant", fact.answer)]) for fact in facts]
    for category, count in COUNTS.items():
        if category != "facts":
            items += [draw(category, rng) for _ in range(round(count * share))]
    return items


def main() -> None:
    """Print a few items of each category."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2, help="items per category")
    options = parser.parse_args()
    shown: dict[str, int] = {}
    for item in held_out_set():
        shown[item.category] = shown.get(item.category, 0) + 1
        if shown[item.category] <= options.count:
            print(f"== {item.category}\n{item.prompt()}>>> {item.answer}\n")


if __name__ == "__main__":
    main()
