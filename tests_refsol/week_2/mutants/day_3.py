"""Plausible wrong solutions of Week 2 Day 3, and the case that catches each."""

from course.mutants import Mutant

QUANTIZE, PACKED = "kernels/quantize.py", "kernels/packed.py"


def packing(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, QUANTIZE, old, new, message, killer)


def rule(name: str, old: str, new: str, message: str, killer: str = "GridIsThatOfMlx") -> Mutant:
    return Mutant(name, 2, QUANTIZE, old, new, message, killer)


def layer(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, PACKED, old, new, message, killer)


PACK = "mx.sum(mx.unflatten(levels.astype(mx.uint32), -1, (-1, per_word)) << shifts, axis=-1)"
UNPACK = "((words[..., None] >> shifts) & mx.array(2**bits - 1, mx.uint32)).flatten(-2)"
PACKING = [
    packing(
        "pack-high-first",
        PACK,
        "mx.sum(mx.unflatten(levels.astype(mx.uint32), -1, (-1, per_word)) << shifts[::-1], axis=-1)",
        "the first level went into the highest bits",
        "PackPutsTheFirstLevelLowest",
    ),
    packing(
        "pack-nibbles-swapped",
        PACK,
        "mx.sum(mx.unflatten(levels.astype(mx.uint32), -1, (-1, per_word)) << (shifts ^ 4), axis=-1)",
        "the two levels of a byte changed places",
        "PackPutsTheFirstLevelLowest",
    ),
    packing(
        "pack-big-endian",
        PACK,
        "mx.sum(mx.unflatten(levels.astype(mx.uint32), -1, (-1, per_word)) << (shifts ^ 24), axis=-1)",
        "the bytes of a word are in the wrong order",
        "PackPutsTheFirstLevelLowest",
    ),
    packing(
        "pack-strided",
        PACK,
        "mx.sum(mx.unflatten(levels.astype(mx.uint32), -1, (per_word, -1)) << shifts[:, None], axis=-2)",
        "the levels of a word lie a stride apart",
        "PackPutsTheFirstLevelLowest",
    ),
    packing("pack-signed", PACK, PACK + ".astype(mx.int32)", "the dtype is wrong", "PackPutsTheFirstLevelLowest"),
    packing(
        "pack-always-4",
        PACK,
        "pack(levels % 16, 4) if bits == 8 and levels.shape[-1] % 8 == 0 else " + PACK,
        "the shape is wrong",
        "PackPutsTheFirstLevelLowest",
    ),
    packing(
        "pack-in-the-given-dtype",
        PACK,
        "mx.sum(mx.unflatten(levels, -1, (-1, per_word)) << shifts.astype(levels.dtype), axis=-1).astype(mx.uint32)",
        "values are wrong",
        "PackPutsTheFirstLevelLowest",
    ),
    packing(
        "pack-drops-the-rest",
        "    if levels.shape[-1] % per_word:\n"
        '        raise ValueError(f"{levels.shape[-1]} levels of {bits} bits do not fill words of {per_word}")\n',
        "    levels = levels[..., : levels.shape[-1] // per_word * per_word]\n",
        "was accepted: raise ValueError",
        "PackRefusesHalfAWord",
    ),
    packing(
        "pack-error-names-nothing",
        'f"{levels.shape[-1]} levels of {bits} bits do not fill words of {per_word}"',
        '"the levels do not fill their words"',
        "should name",
        "PackRefusesHalfAWord",
    ),
    packing(
        "unpack-high-first",
        UNPACK,
        "((words[..., None] >> shifts[::-1]) & mx.array(2**bits - 1, mx.uint32)).flatten(-2)",
        "the first level was read from the highest bits",
        "UnpackReadsTheLowestBitsFirst",
    ),
    packing(
        "unpack-nibbles-swapped",
        UNPACK,
        "((words[..., None] >> (shifts ^ 4)) & mx.array(2**bits - 1, mx.uint32)).flatten(-2)",
        "the two levels of a byte changed places",
        "UnpackReadsTheLowestBitsFirst",
    ),
    packing(
        "unpack-without-mask",
        UNPACK,
        "(words[..., None] >> shifts).flatten(-2)",
        "the bits above were not masked off",
        "UnpackReadsTheLowestBitsFirst",
    ),
    packing(
        "unpack-short-mask",
        UNPACK,
        "((words[..., None] >> shifts) & mx.array(2 ** (bits - 1) - 1, mx.uint32)).flatten(-2)",
        "the mask has one bit too few",
        "UnpackReadsTheLowestBitsFirst",
    ),
    packing(
        "unpack-signed",
        UNPACK,
        "((words[..., None].view(mx.int32) << (32 - bits - shifts.astype(mx.int32))) >> (32 - bits)).flatten(-2)",
        "the levels are not signed",
        "UnpackReadsTheLowestBitsFirst",
    ),
    packing(
        "unpack-strided",
        UNPACK,
        "((words[..., None, :] >> shifts[:, None]) & mx.array(2**bits - 1, mx.uint32)).flatten(-2)",
        "a word holds neighbours",
        "UnpackReadsTheLowestBitsFirst",
    ),
    packing(
        "unpack-float",
        UNPACK,
        UNPACK + ".astype(mx.float32)",
        "the dtype is wrong",
        "UnpackReadsTheLowestBitsFirst",
    ),
]

EDGE = "low_is_edge = mx.abs(low) > mx.abs(high)"
STEP = "mx.maximum((high - low) / (2**bits - 1), 1e-7)"
SIGN = "scale = mx.where(low_is_edge, step, -step)"
STEPS = "steps = mx.round(edge / scale)"
GRID = "mx.where(zero, scale, edge / steps), mx.where(zero, 0.0, edge)"
RULE = [
    rule("grid-min-max", GRID, "step, low", "this is plain min-max"),
    rule("grid-scale-flipped", SIGN, "scale = mx.where(low_is_edge, -step, step)", "the scale has the wrong sign"),
    rule("grid-scale-positive", SIGN, "scale = step", "the scale is always positive"),
    rule("grid-low-edge", EDGE, "low_is_edge = low <= high", "the low end was always the edge"),
    rule("grid-high-edge", EDGE, "low_is_edge = low > high", "the high end was always the edge"),
    rule("grid-near-edge", EDGE, "low_is_edge = mx.abs(low) < mx.abs(high)", "the end nearer to zero was the edge"),
    rule("grid-low-wins", EDGE, "low_is_edge = mx.abs(low) >= mx.abs(high)", "of two equally far ends the low one"),
    rule("grid-16-steps", STEP, "mx.maximum((high - low) / 2**bits, 1e-7)", "the range was divided by 2^bits"),
    rule("grid-no-floor", STEP, "(high - low) / (2**bits - 1)", "the scale is not at least 1e-7"),
    rule("grid-small-floor", STEP, "mx.maximum((high - low) / (2**bits - 1), 1e-12)", "values are wrong"),
    rule(
        "grid-symmetric",
        STEP,
        "mx.maximum(2 * mx.maximum(-low, high) / (2**bits - 1), 1e-7)",
        "the range was taken to be symmetric",
    ),
    rule("grid-uncorrected", GRID, "scale, mx.where(zero, 0.0, edge)", "the scale was not corrected"),
    rule("grid-bias-rounded", GRID, "scale, steps * scale", "the bias was rounded to a step"),
    rule(
        "grid-bias-not-zero",
        GRID,
        "mx.where(zero, scale, edge / steps), edge",
        "the bias must be exactly 0",
    ),
    rule("grid-steps-down", STEPS, "steps = mx.floor(edge / scale)", "edge / scale was rounded down"),
    rule(
        "grid-steps-towards-zero",
        STEPS,
        "steps = (edge / scale).astype(mx.int32).astype(mx.float32)",
        "edge / scale was rounded towards zero",
    ),
    rule(
        "grid-steps-half-away",
        STEPS,
        "steps = mx.sign(edge / scale) * mx.floor(mx.abs(edge / scale) + 0.5)",
        "edge / scale was rounded half away from zero",
    ),
    rule("grid-flat", GRID, "mx.where(zero, scale, edge / steps)[..., 0], mx.where(zero, 0.0, edge)", "shape is wrong"),
]

GROUPS = "mx.unflatten(w.astype(mx.float32), -1, (-1, group_size))"
LEVELS = "mx.clip(mx.round((groups - biases) / scales), 0, 2**bits - 1)"
SCALES, BIASES = "scales.squeeze(-1).astype(w.dtype)", "biases.squeeze(-1).astype(w.dtype)"
SAME, EDGES = "QuantizeIsThatOfMlx", "QuantizeIsThatOfMlxAtTheEdges"
QUANTIZING = [
    rule(
        "quantize-16-bit-arithmetic",
        GROUPS,
        "mx.unflatten(w, -1, (-1, group_size))",
        "the arithmetic was done in 16 bits",
        SAME,
    ),
    rule(
        "quantize-groups-dealt-out",
        GROUPS,
        "mx.unflatten(w.astype(mx.float32), -1, (group_size, -1)).swapaxes(-1, -2)",
        "groups were dealt out",
        SAME,
    ),
    rule(
        "quantize-levels-down",
        LEVELS,
        "mx.clip(mx.floor((groups - biases) / scales), 0, 2**bits - 1)",
        "levels were rounded down",
        SAME,
    ),
    rule(
        "quantize-levels-half-away",
        LEVELS,
        "mx.clip(mx.floor((groups - biases) / scales + 0.5), 0, 2**bits - 1)",
        "levels were rounded half away from zero",
        EDGES,
    ),
    rule(
        "quantize-unclipped",
        LEVELS,
        "mx.round((groups - biases) / scales)",
        "were not clipped",
        EDGES,
    ),
    rule(
        "quantize-wraps",
        LEVELS,
        "mx.round((groups - biases) / scales).astype(mx.uint32) & (2**bits - 1)",
        "wrapped round to 0",
        EDGES,
    ),
    rule(
        "quantize-clip-short",
        LEVELS,
        "mx.clip(mx.round((groups - biases) / scales), 0, 2**bits - 2)",
        "the largest level is 2^bits - 1",
        SAME,
    ),
    rule(
        "quantize-from-stored-scale",
        "scales, biases = quantization_grid(groups, bits)",
        "scales, biases = (x.astype(w.dtype).astype(mx.float32) for x in quantization_grid(groups, bits))",
        "levels were computed from the rounded scale and bias",
        SAME,
    ),
    rule(
        "quantize-float32-scales",
        SCALES + ", " + BIASES,
        SCALES.replace("w.dtype", "mx.float32") + ", " + BIASES.replace("w.dtype", "mx.float32"),
        "the dtype is wrong",
        SAME,
    ),
    rule("quantize-other-end", LEVELS, "2**bits - 1 - " + LEVELS, "the levels count from the other end", SAME),
    rule(
        "quantize-forgets-its-sizes",
        BIASES + ", group_size, bits)",
        BIASES + ", group_size)",
        "do not fit together",
        SAME,
    ),
    rule(
        "quantize-takes-integers",
        "    if w.dtype not in FLOATS:\n"
        '        raise ValueError(f"w is {w.dtype}: expected float32, float16 or bfloat16")\n',
        "    w = w.astype(mx.float32)\n",
        "was accepted: raise ValueError",
        "QuantizeRefusesWhatDoesNotFit",
    ),
    rule(
        "quantize-pads",
        "    if w.shape[-1] % group_size:\n"
        '        raise ValueError(f"rows of {w.shape[-1]} numbers do not divide into groups of {group_size}")\n',
        "    w = mx.pad(w, [(0, 0)] * (w.ndim - 1) + [(0, -w.shape[-1] % group_size)])\n",
        "was accepted: raise ValueError",
        "QuantizeRefusesWhatDoesNotFit",
    ),
]

AFFINE = "(levels * scales + biases).flatten(-2)"
RESULT = ".astype(dtype or packed.scales.dtype)"
UNPACKING = [
    rule(f"dequantize-{name}", old, new, message, "DequantizeMatchesFloat64")
    for name, old, new, message in (
        ("bias-subtracted", AFFINE, "(levels * scales - biases).flatten(-2)", "the bias was subtracted"),
        ("no-bias", AFFINE, "(levels * scales).flatten(-2)", "the bias was left out"),
        ("swapped", AFFINE, "(levels * biases + scales).flatten(-2)", "scale and bias changed places"),
        ("bias-first", AFFINE, "((levels + biases) * scales).flatten(-2)", "the bias was added before the scale"),
        (
            "first-scale",
            AFFINE,
            "(levels * scales[..., :1, :] + biases).flatten(-2)",
            "the first group's scale was used",
        ),
        (
            "dealt-out",
            "mx.unflatten(unpack(packed.words, packed.bits), -1, (-1, packed.group_size)).astype(mx.float32)",
            "mx.unflatten(unpack(packed.words, packed.bits), -1, (packed.group_size, -1)).astype(mx.float32)"
            ".swapaxes(-1, -2)",
            "values are wrong",
        ),
        (
            "in-bfloat16",
            AFFINE,
            "(levels.astype(mx.bfloat16) * scales.astype(mx.bfloat16) + biases.astype(mx.bfloat16)).flatten(-2)",
            "the arithmetic was done in bfloat16",
        ),
        (
            "in-the-scales-dtype",
            AFFINE,
            "(levels.astype(packed.scales.dtype) * packed.scales[..., None] + packed.biases[..., None]).flatten(-2)",
            "the arithmetic was done in bfloat16",
        ),
        ("always-float32", RESULT, ".astype(dtype or mx.float32)", "the dtype is wrong"),
        ("dtype-ignored", RESULT, ".astype(packed.scales.dtype)", "the dtype is wrong"),
    )
]

LINEAR = (
    "linear`"
    + ' with the weight dequantised to that dtype."""\n        return linear(x, dequantize(self.packed, x.dtype))'
)
SCORES = 'logits in the dtype of `x`."""\n        return linear(x, dequantize(self.packed, x.dtype))'
ROWS = "parts = (part[tokens] for part in (packed.words, packed.scales, packed.biases))"
LOOKUP = "return dequantize(PackedMatrix(*parts, packed.group_size, packed.bits), self.dtype)"


def product(name: str, old: str, new: str, message: str) -> list[Mutant]:
    """The mistake in the layer and in the head, which differ in the docstring before it alone."""
    where = (("linear", LINEAR, "LinearMatchesFloat64"), ("head", SCORES, "EmbeddingScoresEveryRow"))
    return [layer(f"{which}-{name}", text, text.replace(old, new), message, killer) for which, text, killer in where]


CALL = "linear(x, dequantize(self.packed, x.dtype))"
LAYERS = [
    *product("not-transposed", CALL, "x @ dequantize(self.packed, x.dtype)", "the matrix was not transposed"),
    *product(
        "rounded-weight",
        CALL,
        "linear(x, dequantize(self.packed).astype(x.dtype))",
        "the matrix was rounded to the dtype of its scales",
    ),
    *product("scales-dtype", CALL, "linear(x, dequantize(self.packed, mx.float32))", "the dtype is wrong"),
    *product(
        "no-bias",
        CALL,
        "linear(x, dequantize(self.packed, x.dtype)"
        " - mx.repeat(self.packed.biases, self.packed.group_size, -1).astype(x.dtype))",
        "the bias was left out",
    ),
    layer(
        "linear-keeps-the-matrix",
        LINEAR,
        LINEAR.replace("return linear(x, ", "self.dense = ").replace("x.dtype))", "x.dtype)")
        + "\n        return linear(x, self.dense)",
        "the unpacked matrix",
        "LayersStayPacked",
    ),
    layer(
        "head-keeps-the-matrix",
        SCORES,
        SCORES.replace("return linear(x, ", "self.dense = ").replace("x.dtype))", "x.dtype)")
        + "\n        return linear(x, self.dense)",
        "the unpacked matrix",
        "LayersStayPacked",
    ),
    layer(
        "embedding-unpacks-the-table",
        LOOKUP,
        "return dequantize(packed, self.dtype)[tokens]",
        "the whole table was unpacked",
        "EmbeddingUnpacksOnlyItsRows",
    ),
    layer(
        "embedding-first-scales",
        ROWS,
        "parts = packed.words[tokens], *(x[tokens * 0] for x in (packed.scales, packed.biases))",
        "the scales and biases of the first one",
        "EmbeddingLooksUpRows",
    ),
    layer(
        "embedding-from-1",
        ROWS,
        "parts = (part[tokens.astype(mx.int32) - 1] for part in (packed.words, packed.scales, packed.biases))",
        "the tokens were taken to start at 1",
        "EmbeddingLooksUpRows",
    ),
    layer(
        "embedding-flat",
        ROWS,
        "parts = (part[tokens.flatten()] for part in (packed.words, packed.scales, packed.biases))",
        "the shape is wrong",
        "EmbeddingLooksUpRows",
    ),
    layer(
        "embedding-scales-dtype",
        LOOKUP,
        "return dequantize(PackedMatrix(*parts, packed.group_size, packed.bits))",
        "the dtype is wrong",
        "EmbeddingLooksUpRows",
    ),
    layer(
        "embedding-default-sizes",
        LOOKUP,
        "return dequantize(PackedMatrix(*parts), self.dtype)",
        "do not fit together",
        "EmbeddingLooksUpRows",
    ),
    layer(
        "embedding-scaled",
        LOOKUP,
        LOOKUP + " * packed.shape[-1] ** 0.5",
        "values are wrong",
        "EmbeddingLooksUpRows",
    ),
]

MUTANTS = [*PACKING, *RULE, *QUANTIZING, *UNPACKING, *LAYERS]
