"""A checkpoint's tokenizer, and the tokens that end an answer. Knows folders, nothing of models."""

from pathlib import Path

from tokenizers import Tokenizer

from course.checkpoint_json import Recommended
from course.errors import CourseError
from course.folder import read_as, read_config

END_TOKENS = ("<|im_end|>", "<|endoftext|>")


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of the checkpoint in `folder`. Raises CourseError where it cannot be the model's."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise CourseError(f"no tokenizer.json in {folder}: copy the one the model was trained with")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise CourseError(f"{file} is not a tokenizer ({error}): download or copy it again") from None
    # MLX looks up a row beyond the end of the embeddings without an error, and the text would be garbage.
    largest, vocabulary = max(tokenizer.get_vocab().values(), default=0), read_config(folder).vocab_size
    if vocabulary is not None and largest >= vocabulary:
        raise CourseError(
            f"{file} has a token {largest}, but the model's vocab_size is {vocabulary}: copy the "
            "tokenizer.json the model was trained with"
        )
    return tokenizer


def stop_tokens(folder: Path, tokenizer: Tokenizer) -> set[int]:
    """Tokens that end an answer: those the checkpoint names, and those of the chat format."""
    own = read_as(Recommended, folder / "generation_config.json").eos_token_id
    listed = read_config(folder).eos_token_id if own is None else own
    ids = set(listed) if isinstance(listed, list) else {listed}
    return {i for i in ids | {tokenizer.token_to_id(t) for t in END_TOKENS} if i is not None}
