"""Train the tokenizer: a byte-level BPE of 2,048 entries with Qwen's split pattern and special tokens.

python -m models.tokenizer --out models/tiny
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from models.config import Shape
from models.corpus import documents

SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
    "<think>", "</think>",
)  # fmt: skip
CONTROL = 3  # the first three mark turns and are skipped in decoded text; the others stay, as in Qwen3
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEMPLATE = Path(__file__).parent / "chat_template.jinja"


def _texts(seed: int, count: int) -> Iterator[str]:
    """The corpus without its special tokens, which BPE must not learn to merge."""
    for pieces in documents(seed, count):
        text = "".join(piece.text for piece in pieces)
        for token in SPECIAL:
            text = text.replace(token, "\n")
        yield text


def train_tokenizer(seed: int = 0, count: int = 40_000, vocab_size: int = Shape.vocab_size) -> Tokenizer:
    """Train on `count` documents of the corpus `seed`; special tokens take the last entries."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"), byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(SPECIAL), initial_alphabet=alphabet, show_progress=False, min_frequency=1
    )
    tokenizer.train_from_iterator(_texts(seed, count), trainer)
    tokenizer.add_tokens([AddedToken(t, special=i < CONTROL, normalized=False) for i, t in enumerate(SPECIAL)])
    return tokenizer


def tokenizer_config(tokenizer: Tokenizer, max_length: int) -> dict[str, object]:
    """The `tokenizer_config.json` that Hugging Face libraries read, chat template included."""
    added = {
        str(tokenizer.token_to_id(token)): {
            "content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
            "special": i < CONTROL,
        }
        for i, token in enumerate(SPECIAL)
    }  # fmt: skip
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": added,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length,
        "chat_template": TEMPLATE.read_text(encoding="utf-8"),
    }


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    text = json.dumps(tokenizer_config(tokenizer, max_length), indent=1, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Train and save the tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tiny")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    save_tokenizer(train_tokenizer(options.seed), options.out, Shape().max_positions)


if __name__ == "__main__":
    main()
