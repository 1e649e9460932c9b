"""Show what the model writes: a story, a chat that remembers a name, thinking, a tool call and its answer.

    python -m models.samples > models/samples.md

Greedy, so the text is the same on every run; the command's output is committed beside the model card.
"""

import argparse
from pathlib import Path

import course.route  # noqa: F401 - before mlx.core

# isort: split
import mlx.core as mx

from models.chatml import Tool, Turn, prompt_text, response_text
from models.evaluate import answers, load_float32, without_thoughts
from models.tools import TOOLS

LISTED = [TOOLS[name] for name in ("get_weather", "add", "get_time")]


def main() -> None:
    """Print the samples as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(__file__).parent / "tiny")
    options = parser.parse_args()
    mx.set_default_device(mx.cpu)
    model, tokenizer = load_float32(options.model)

    def ask(turns: list[Turn], question: str, tools: list[Tool] | None = None, *, thinking: bool = False) -> list[Turn]:
        """Ask, print, and return the chat with the answer."""
        turns = [*turns, Turn("user", question)]
        said = answers(model, tokenizer, [prompt_text(turns, tools=tools, thinking=thinking)])[0]
        print(f"user: {question}\nassistant: {said}\n")
        return [*turns, Turn("assistant", without_thoughts(said))]

    print("# Samples, greedy\n\n## Stories\n```")
    ask([], "Tell me a story about a bear named Olga.")
    ask([], "Write a story where Nadia goes to the lake.")
    print("```\n## A chat over several turns\n```")
    chat = ask([], "Hello, I am Karim.")
    for question in ("I have a pet owl.", "What is the capital of Japan?", "What is a KV cache?", "12 + 30",
                     "What is my name?", "What pet do I have?"):  # fmt: skip
        chat = ask(chat, question)
    print("```\n## Thinking (plain assistant header)\n```")
    ask([], "What is 47 + 38?", thinking=True)
    ask([], "What is 81 minus 26?", thinking=True)
    print("```\n## A tool call and its answer\n```")
    chat = ask([], "What is the weather in Oslo?", LISTED)
    ask(chat, response_text({"weather": "snowy", "degrees": 3}), LISTED)
    print("```")


if __name__ == "__main__":
    main()
