"""Write the 4-bit weights, in the layout that mlx-lm writes and reads.

    python -m models.quantize --model models/tiny --out models/tiny-4bit

Each matrix becomes `weight` uint32 `[out, in * bits / 32]` with bf16 `scales` and `biases` `[out, in / group_size]`;
norms stay bf16.
"""

import argparse
import json
import shutil
from pathlib import Path

import mlx.core as mx

from course.checkpoint_files import packed

COPIED = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


def main() -> None:
    """Quantize one model folder into another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(__file__).parent / "tiny")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tiny-4bit")
    parser.add_argument("--group-size", type=int, default=64)
    parser.add_argument("--bits", type=int, default=4)
    options = parser.parse_args()
    mx.set_default_device(mx.cpu)
    options.out.mkdir(parents=True, exist_ok=True)
    weights = packed(mx.load(str(options.model / "model.safetensors")), options.group_size, options.bits)
    mx.save_safetensors(str(options.out / "model.safetensors"), weights, metadata={"format": "mlx"})
    config = json.loads((options.model / "config.json").read_text(encoding="utf-8"))
    config["quantization"] = {"group_size": options.group_size, "bits": options.bits, "mode": "affine"}
    config["quantization_config"] = config["quantization"]
    (options.out / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    for name in COPIED:
        shutil.copyfile(options.model / name, options.out / name)


if __name__ == "__main__":
    main()
