"""How fast `main` talks with Week 1 code, which runs the whole prefix for every token: new tokens/s near a context."""

import argparse

from course.assistant import Assistant
from course.errors import CourseError
from course.models import locate
from course.options import number
from course.timing import Spread, seconds
from course.variant import SOLUTIONS, Variant

HELP = "tokens/s of the embedded model at 200 tokens of context"
BAR = 20.0  # tokens/s on two cores
TOKENS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    count = number(int, "of at least 1", lambda x: x >= 1, 200)
    parser.add_argument("--model", default="tiny", help="a model name or folder, as for `pdm run main`")
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose code runs")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16", "stored"], help="of the weights")
    parser.add_argument("--context", type=count, default=200, metavar="TOKENS", help="where to measure (default 200)")
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="readings")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and one line; each reading is a stream of ten tokens that begins at the context."""
    assistant = Assistant(locate(args.model), Variant(args.solution), args.dtype)
    if args.context + TOKENS > assistant.context:
        limit = assistant.context - TOKENS
        raise CourseError(
            f"context {args.context} exceeds what this model can be measured at, {limit}: lower --context"
        )
    generation = assistant.module("text.generate")
    prompt = [i % 64 for i in range(args.context)]

    def stream() -> None:
        tokens = generation.generate(assistant.model, prompt, generation.greedy, max_tokens=TOKENS)
        list(generation.stream_text(assistant.tokenizer, tokens))

    stream()
    speed = Spread.of([seconds(stream) for _ in range(args.rounds)]).per(TOKENS)
    verdict = "meets" if speed.median >= BAR else "misses"
    dtype = assistant.format.dtype
    line = f"{assistant.folder.name} in {dtype} at {args.context} tokens: {speed} tokens/s: {verdict} {BAR:g}"
    numbers = {"model": assistant.folder.name, "dtype": dtype, "context": args.context, "bar": BAR}
    return numbers | {"tokens_per_s": speed.plain()}, [line]
