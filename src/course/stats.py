"""What `main --stats` reports about a reply: speed, memory, what it had to read, and what it ran on."""

from course import blas
from course.assistant import Assistant, Meter, Settings


def describe(assistant: Assistant, settings: Settings, meter: Meter) -> str:
    """Speed and memory, model and way to run it, bytes per token, sampling, BLAS route: a line each.

    Prompt speed is measured up to the first token, over the tokens that had to run.
    """
    import mlx.core as mx

    first = (meter.first or meter.started) - meter.started
    ran = meter.prompt_tokens - meter.reused
    reused = f" ({meter.reused} of them in the cache)" if meter.reused else ""
    speed = [
        f"prompt {meter.prompt_tokens} tokens{reused}, {_rate(ran, first)}",
        f"generated {meter.generated} tokens, {_rate(meter.generated - 1, meter.decode_seconds)}",
        f"first token after {first:.3f} s",
        f"peak memory {mx.get_peak_memory() / 2**20:.0f} MiB",
    ]
    variant = assistant.variant
    sampling = ", ".join(f"{name} {value:g}" for name, value in settings.sampling.items())
    device = str(mx.default_device().type).rpartition(".")[2]
    route = blas.status()
    return "\n".join(
        [
            " | ".join(speed),
            f"{assistant.folder.name} in {assistant.format}, {variant.solution} on {device}, "
            f"--ops {variant.ops} --cache {variant.cache}",
            _reading(assistant, meter),
            f"{sampling}, seed {settings.seed}",
            f"OpenBLAS route {'active' if route.active else 'not active'}: {route.reason}",
        ]
    )


def _reading(assistant: Assistant, meter: Meter) -> str:
    """The least that a new token has to read, and how fast that was, for comparison with the memory's bandwidth."""
    traffic = assistant.traffic(meter.prompt_tokens + meter.generated)
    line = f"a token reads at least {traffic.bytes / 1e6:.2f} MB: weights {traffic.weights / 1e6:.2f} MB"
    line += f", keys and values {traffic.cache / 1e6:.2f} MB" if traffic.cache else ", no keys and values are kept"
    if meter.generated > 1 and meter.decode_seconds > 0:
        line += f"; {traffic.bytes * (meter.generated - 1) / meter.decode_seconds / 1e9:.2f} GB/s"
    return line


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:.1f} tokens/s" if count > 0 and seconds > 0 else "too few for a speed"
