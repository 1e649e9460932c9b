"""What `main --stats` reports about a reply: speed, memory, and what it ran on."""

from course import blas
from course.assistant import Assistant, Meter, Settings


def describe(assistant: Assistant, settings: Settings, meter: Meter) -> str:
    """Speed and memory, model, sampling, BLAS route: a line each. Prompt speed is measured up to the first token."""
    import mlx.core as mx

    first = (meter.first or meter.started) - meter.started
    decode = (meter.last or meter.started) - (meter.first or meter.started)
    speed = [
        f"prompt {meter.prompt_tokens} tokens, {_rate(meter.prompt_tokens, first)}",
        f"generated {meter.generated} tokens, {_rate(meter.generated - 1, decode)}",
        f"first token after {first:.3f} s",
        f"peak memory {mx.get_peak_memory() / 2**20:.0f} MiB",
    ]
    sampling = ", ".join(f"{name} {value:g}" for name, value in settings.sampling.items())
    device = str(mx.default_device().type).rpartition(".")[2]
    route = blas.status()
    return "\n".join(
        [
            " | ".join(speed),
            f"{assistant.folder.name} in {assistant.dtype}, {assistant.solution} on {device}",
            f"{sampling}, seed {settings.seed}",
            f"OpenBLAS route {'active' if route.active else 'not active'}: {route.reason}",
        ]
    )


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:.1f} tokens/s" if count > 0 and seconds > 0 else "too few for a speed"
