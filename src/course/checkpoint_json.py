"""The values of a checkpoint's JSON files that course code reads: their names, types and limits.

Every one may be missing, and other keys may be there: which must be there is for a solution's `load_config` to say."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Above0 = Annotated[float, Meta(gt=0)]
Tokens = int | list[int] | None


class Packing(Struct):
    """`quantization` of a config.json."""

    bits: int | None = None
    group_size: int | None = None


class Rope(Struct):
    """`rope_parameters` of a config.json."""

    rope_theta: Above0 | None = None


class Config(Struct):
    """A config.json."""

    vocab_size: Count | None = None
    hidden_size: Count | None = None
    num_hidden_layers: Count | None = None
    intermediate_size: Count | None = None
    num_attention_heads: Count | None = None
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    max_position_embeddings: Count | None = None
    rms_norm_eps: Above0 | None = None
    rope_theta: Above0 | None = None
    rope_parameters: Rope | None = None
    tie_word_embeddings: bool | None = None
    quantization: Packing | None = None
    eos_token_id: Tokens = None


class Recommended(Struct):
    """A generation_config.json, within the limits of `main`'s options."""

    do_sample: bool | None = None
    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_k: Annotated[int, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    repetition_penalty: Above0 | None = None
    eos_token_id: Tokens = None


class Index(Struct):
    """A model.safetensors.index.json: which file holds which tensor."""

    weight_map: dict[str, str] | None = None
