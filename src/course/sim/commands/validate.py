"""`pdm run sim validate`: predict measured runs, of vLLM or of the course's engine, and print the errors."""

import argparse
from pathlib import Path

HELP = "predict measured runs, and print the errors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    from course.options import number
    from course.solutions import add_solution

    count = number(int, "of at least 1", lambda x: x >= 1, 16)
    positive = number(float, "above 0", lambda x: x > 0, 1.5)
    time = number(float, "of at least 0", lambda x: x >= 0, 1.5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="the same as JSON")
    add_solution(parser, "whose simulator runs")
    vllm = parser.add_argument_group("a run of vLLM, in the layout of LLMServingSim's data")
    vllm.add_argument("--vllm", type=Path, metavar="DIR", help="folder with the run and kernel times")
    vllm.add_argument("--workload", type=Path, metavar="FILE", help="another workload.jsonl")
    vllm.add_argument("--model-shape", metavar="L,HIDDEN,KV_HEADS,HEAD_DIM", help="such as 32,4096,8,128")
    vllm.add_argument("--kv-blocks", type=count, metavar="N", help="KV blocks of the engine")
    vllm.add_argument("--tp", type=count, default=1, metavar="K", help="GPUs; kernel times are of one (default 1)")
    vllm.add_argument("--link-gbps", type=positive, default=64.0, metavar="G", help="GB/s between GPUs (default 64)")
    vllm.add_argument("--link-us", type=time, default=0.0, metavar="U", help="latency between GPUs in us (default 0)")
    vllm.add_argument(
        "--step-overhead-us",
        type=time,
        metavar="C",
        help="us of a step beyond its kernels (default: fitted)",
    )
    vllm.add_argument("--block-size", type=count, metavar="N", help="tokens of a KV block (meta.json, else 16)")
    vllm.add_argument("--max-num-seqs", type=count, metavar="N", help="requests in a batch (meta.json)")
    vllm.add_argument("--max-num-batched-tokens", type=count, metavar="N", help="tokens in a batch (meta.json)")
    own = parser.add_argument_group("the course's engine, on this machine")
    own.add_argument("--fit", type=Path, metavar="FILE", help="what `sim calibrate` wrote")
    own.add_argument("--loads", default="0.3,0.6,0.8", metavar="LIST", help="parts of its capacity (0.3,0.6,0.8)")
    own.add_argument("--requests", type=count, default=80, metavar="N", help="of each load (default 80)")
    own.add_argument("--seed", type=count, default=1000, metavar="N", help="of the loads (default 1000)")
    own.add_argument("--model", default="tiny", help="the model that was calibrated (default tiny)")
    parser.epilog = (
        "Without --step-overhead-us that one constant is fitted on the TPOT of the first half of the requests; the "
        "second half is predicted with it, and reported apart."
    )


def run(args: argparse.Namespace) -> int:
    """Predict, print, write."""
    from course.errors import CourseError
    from course.sim.outputs import check_places, show, write_json

    if (args.vllm is None) == (args.fit is None):
        raise CourseError("validate needs one measured engine: --vllm DIR, or --fit FILE of `sim calibrate`")
    check_places(args.json)
    if args.vllm is not None:
        from course.sim.validate_vllm import validate
    else:
        from course.sim.validate_engine import validate
    table, numbers = validate(args)
    show(table)
    if args.json:
        write_json(args.json, numbers)
    return 0
