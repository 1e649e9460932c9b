"""Write the golden logits that Week 1 is tested against, computed by transformers' Qwen3ForCausalLM in float32.

PyTorch is no dependency of the course, so this runs in an environment of its own, from the repository root:

    python3 -m venv torch-env && torch-env/bin/pip install torch==2.13.0 transformers==5.24.0
    PYTHONPATH=src torch-env/bin/python tests/golden/make_transformers_golden.py
"""

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from course.checkpoints import hf_config
from course.golden import GOLDEN_FILE, GOLDEN_SHAPES, fingerprint, golden_weights

BATCH, LENGTH = 2, 24


def logits_of(name: str, tokens: np.ndarray) -> np.ndarray:
    """What transformers computes for the golden model `name`."""
    shape, weights = GOLDEN_SHAPES[name], golden_weights(name)
    config = Qwen3Config.from_dict(hf_config(shape, nested_rope=True))
    config._attn_implementation = "eager"
    model = Qwen3ForCausalLM(config).to(torch.float32).eval()
    state = {key: torch.from_numpy(value) for key, value in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or missing != (["lm_head.weight"] if shape.tied else []):
        raise SystemExit(f"{name}: tensors missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    with torch.no_grad():
        return model(torch.from_numpy(tokens).long()).logits.numpy()


def main() -> None:
    """Compute and save every golden model."""
    arrays = {}
    for seed, (name, shape) in enumerate(GOLDEN_SHAPES.items()):
        tokens = np.random.default_rng(100 + seed).integers(shape.vocab, size=(BATCH, LENGTH), dtype=np.int32)
        logits = logits_of(name, tokens)
        arrays |= {f"{name}/tokens": tokens, f"{name}/logits": logits}
        arrays[f"{name}/fingerprint"] = np.float64(fingerprint(golden_weights(name)))
        print(f"{name}: logits {logits.shape}, standard deviation {logits.std():.3f}")
    GOLDEN_FILE.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(GOLDEN_FILE, **arrays)
    print(f"{GOLDEN_FILE}: {GOLDEN_FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
