"""`pdm run main`: chat with a model, or generate once, with course code only."""

import argparse
import contextlib
import os
import sys

from course.manual import Example
from course.options import non_blank, non_empty, number
from course.variant import Variant, add_options

HELP = "chat with a model, or answer one --prompt"
ABOUT = """
Loads a model and talks, with course code only: the reference's, or yours with --solution tiny_llm (once Week
1 is done). Without --prompt, every line of standard input is a message; /clear forgets the conversation,
/quit or Ctrl-D ends it. The embedded model `tiny` needs no network.

--ops and --cache choose who computes, so that each optimisation can be compared with the one before it;
--stats reports speed and memory.
"""
EXAMPLES = (
    Example("pdm run main", "a chat with the embedded model", untried="reads messages from the terminal"),
    Example("pdm run main --prompt 'Tell me a story about a fox.' --max-tokens 20", "one answer, and the end"),
    Example(
        "pdm run main --prompt 'Once upon a time' --raw --seed 1 --max-tokens 20 --ops python --cache none --stats",
        "go on with a text, by the plain operations of Week 1; with speed and memory",
    ),
    Example(
        "pdm run main --solution tiny_llm --prompt Hello", "on your own code; it says which task is missing", ends=2
    ),
    Example(
        "pdm run main --model 0.6b",
        "the real Qwen3-0.6B on the same code",
        untried="downloads 1.5 GB at its first start",
    ),
)
EXITS = (
    (0, "done"),
    (2, "a mistake, or a task still to be written; one line on standard error says which"),
    (130, "ended by Ctrl-C"),
)
SEE_ALSO = ("serve", "bench", "week1-06-generation.md")
FALLBACK = {"temperature": 0.7, "top_k": 20, "top_p": 0.95}  # where the checkpoint recommends nothing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--model", default="tiny", help="tiny, tiny-4bit, 0.6b, 1.7b, 4b, 8b, a folder, or a hub id")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16", "stored"], help="format of the weights")
    add_options(parser.add_argument_group("how the model runs"))
    talk = parser.add_argument_group("conversation")
    talk.add_argument("--prompt", type=non_blank, help="answer this and stop")
    talk.add_argument("--system", type=non_blank, help="a system message: how the model should behave")
    talk.add_argument("--raw", action="store_true", help="continue the prompt as plain text, without the chat format")
    talk.add_argument("--think", action=argparse.BooleanOptionalAction, default=False, help="let it think aloud first")
    talk.add_argument("--stats", action="store_true", help="report speed, memory and device after each reply")
    draw = parser.add_argument_group("sampling (defaults: the checkpoint's generation_config.json)")
    draw.add_argument("--temperature", type=number(float, "of at least 0", lambda x: x >= 0, 0.7), help="0 is greedy")
    draw.add_argument("--top-k", type=number(int, "of at least 0", lambda x: x >= 0, 20), help="0 is off")
    draw.add_argument(
        "--top-p", type=number(float, "above 0 and at most 1", lambda x: 0 < x <= 1, 0.95), help="1 is off"
    )
    draw.add_argument("--min-p", type=number(float, "between 0 and 1", lambda x: 0 <= x <= 1, 0.05), help="0 is off")
    draw.add_argument("--repetition-penalty", type=number(float, "above 0", lambda x: x > 0, 1.1), help="1 is off")
    draw.add_argument(
        "--seed", type=number(int, "from 0 to 2**63", lambda x: 0 <= x <= 2**63, 1), help="default: a new one"
    )
    draw.add_argument(
        "--max-tokens", type=number(int, "of at least 1", lambda x: x >= 1, 512), default=512, help="default 512"
    )
    draw.add_argument(
        "--stop", type=non_empty, action="append", default=[], metavar="TEXT", help="end before this text; repeatable"
    )


def run(args: argparse.Namespace) -> int:
    """Load, then answer. Exit status 0, 130 after Ctrl-C, 141 when nobody reads the output any more, 2 for mistakes."""
    from course.worker import leave

    if sys.stdin is None:  # closed by the caller: MLX refuses to open a file that gets the free number 0
        sys.stdin = open(os.devnull)  # noqa: SIM115 - for as long as the program runs
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        _talk(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        leave(130)
    except BrokenPipeError:
        leave(141)
    except OSError as error:  # a full disk, a file that may not be read
        with contextlib.suppress(OSError):  # standard error may be on the same disk
            print(f"error: {error.strerror or error}: {error.filename or 'the output'}", file=sys.stderr, flush=True)
        leave(2)
    return 0


def _talk(args: argparse.Namespace) -> None:
    import faulthandler

    from course.assistant import Assistant
    from course.chat import Chat, converse
    from course.learner import explained
    from course.models import locate
    from course.worker import Worker

    faulthandler.enable()  # a kernel in C++ that crashes would else end the program without a word
    folder = locate(args.model)
    worker = Worker()
    with explained(args.solution):
        assistant = worker.call(lambda: Assistant(folder, Variant.chosen(args), args.dtype))
        chat = Chat(worker, assistant, _settings(args, assistant.sampling_defaults()), args.system, args.stats)
        if args.prompt is not None:
            chat.say(args.prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        else:
            converse(chat)


def _settings(args: argparse.Namespace, recommended: dict[str, float]):
    """Flags win over the checkpoint's recommendation, and that over ours."""
    import secrets

    from course.assistant import SAMPLING, Settings

    chosen = {name: getattr(args, name) for name in SAMPLING if getattr(args, name) is not None}
    sampling = (recommended or FALLBACK) | chosen
    if sampling.get("temperature") == 0.0 and sampling.get("repetition_penalty", 1.0) == 1.0:
        sampling = {"temperature": 0.0}
    seed = secrets.randbits(31) if args.seed is None else args.seed
    return Settings(sampling, seed, args.max_tokens, tuple(args.stop), args.think, args.raw)
