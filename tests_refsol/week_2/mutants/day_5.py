"""Plausible wrong solutions of Week 2 Day 5, and the case that catches each."""

from course.mutants import Mutant

ADD, NORM = "extensions/metal/add.metal", "extensions/metal/rms_norm.metal"
ROPE, SWIGLU = "extensions/metal/rope.metal", "extensions/metal/swiglu.metal"
OUT_OF_BOUNDS = "out of bounds"
NEVER_WRITTEN = "never written"
RACE = "data race"


def add(name: str, old: str, new: str, message: str, killer: str = "AddMatchesFloat64") -> Mutant:
    return Mutant(name, 1, ADD, old, new, message, killer)


def norm(name: str, old: str, new: str, message: str, killer: str = "RmsNormMatchesFloat64") -> Mutant:
    return Mutant(name, 2, NORM, old, new, message, killer)


def rope(name: str, old: str, new: str, message: str, killer: str = "RopeMatchesFloat64") -> Mutant:
    return Mutant(name, 3, ROPE, old, new, message, killer)


def swiglu(name: str, old: str, new: str, message: str, killer: str = "SwigluMatchesFloat64") -> Mutant:
    return Mutant(name, 4, SWIGLU, old, new, message, killer)


SUM = "T(float(a.v[j]) + float(b.v[j]))"
GROUP = "if (i + 4 <= n) {"
TAIL = "for (uint j = i; j < n; j++) {"
FOUR = "const uint i = 4 * thread_position_in_grid.x;"

_ADD = [
    add("add-minus", SUM, SUM.replace(" + ", " - "), "y was subtracted"),
    add("add-times", SUM, SUM.replace(" + ", " * "), "the product was taken, not the sum"),
    add("add-x-twice", SUM, "T(float(a.v[j]) + float(a.v[j]))", "x was added twice"),
    add("add-no-tail", TAIL, "for (uint j = i; j < 0; j++) {", NEVER_WRITTEN),
    add("add-no-guard", GROUP, "if (true) {", OUT_OF_BOUNDS),
    add("add-guard-one-off", GROUP, "if (i + 4 <= n + 1) {", OUT_OF_BOUNDS),
    add("add-tail-one-more", TAIL, "for (uint j = i; j <= n; j++) {", OUT_OF_BOUNDS),
    add("add-one-element-a-thread", FOUR, "const uint i = thread_position_in_grid.x;", RACE),
    add("add-threadgroup-index", FOUR, "const uint i = 4 * thread_position_in_threadgroup.x;", RACE),
    add(
        "add-writes-input",
        "(device unaligned_vec<T, 4>*)(out + i) = sum",
        "(device unaligned_vec<T, 4>*)(x + i) = sum",
        "x",
    ),
    Mutant(
        "add-beside-the-kernel",
        1,
        "kernels/metal.py",
        "return _element_wise(_ADD, x, y, threads)",
        "_element_wise(_ADD, x, y, threads)\n    return x + y",
        "does not depend on what the kernel add returns",
        "AddIsComputedByTheKernel",
    ),
    Mutant(
        "add-decoy-of-no-weight",
        1,
        "kernels/metal.py",
        "return _element_wise(_ADD, x, y, threads)",
        "return x + y + 1e-6 * (_element_wise(_ADD, x, y, threads) - x - y)",
        "does not depend on what the kernel add returns",
        "AddIsComputedByTheKernel",
    ),
    Mutant(
        "add-no-kernel",
        1,
        "kernels/metal.py",
        "return _element_wise(_ADD, x, y, threads)",
        "return x + y",
        "the kernel add was never called",
        "AddIsComputedByTheKernel",
    ),
]

SQUARE = "sum += value * value;"
SCALE = "const float scale = rsqrt(total / float(n) + eps);"
TOTAL = "const float total = simd_sum(lane < simdgroups_per_threadgroup ? partial[lane] : 0.0f);"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
STORE = "out[row + i] = T(float(x[row + i]) * scale * float(weight[i]));"

_NORM = [
    norm("norm-no-barrier", BARRIER, "\n", RACE),
    norm("norm-simdgroup-barrier", BARRIER, BARRIER.replace("threadgroup_b", "simdgroup_b", 1), RACE),
    norm("norm-wrong-flag", BARRIER, "threadgroup_barrier(mem_flags::mem_device);\n", RACE),
    norm("norm-every-lane-writes", "if (lane == 0) {", "if (lane < 32) {", RACE),
    norm("norm-barrier-in-branch", BARRIER, "if (lane == 0) {\n  " + BARRIER + "}\n", "barrier"),
    norm("norm-unwritten-partials", TOTAL, "const float total = simd_sum(partial[lane]);", "which nobody has written"),
    norm("norm-first-simdgroup", TOTAL, "const float total = partial[0];", "only the first simdgroup's sum was used"),
    norm("norm-no-simd-sum", "sum = simd_sum(sum);", "sum = sum;", "only every 32nd number was summed"),
    norm("norm-sum", SCALE, SCALE.replace("total / float(n)", "total"), "the sum of squares was taken, not their mean"),
    norm("norm-no-eps", SCALE, SCALE.replace(" + eps", ""), "eps was left out"),
    norm(
        "norm-eps-outside", SCALE, "const float scale = 1.0f / (sqrt(total / float(n)) + eps);", "eps was added outside"
    ),
    norm("norm-no-root", SCALE, SCALE.replace("rsqrt(", "1.0f / ("), "the root was forgotten"),
    norm("norm-times-root", SCALE, SCALE.replace("rsqrt(", "sqrt("), "x was multiplied by the root instead of divided"),
    norm("norm-no-weight", STORE, STORE.replace(" * float(weight[i])", ""), "the weight was not applied"),
    norm(
        "norm-squares-in-t",
        "const float value = float(x[row + i]);",
        "const T value = x[row + i];",
        "sum the squares in float",
        "RmsNormSumsInFloat32",
    ),
    norm(
        "norm-rounds-before-weight",
        STORE,
        STORE.replace("float(x[row + i]) * scale", "float(T(float(x[row + i]) * scale))"),
        "the row was rounded to T before the weight",
        "RmsNormRoundsOnce",
    ),
    norm(
        "norm-root-in-t",
        SCALE,
        SCALE.replace("rsqrt(total / float(n) + eps)", "float(T(rsqrt(total / float(n) + eps)))"),
        "one over the root was rounded to T",
        "RmsNormRoundsOnce",
    ),
    norm(
        "norm-weight-in-t",
        STORE,
        STORE.replace("float(weight[i])", "float(T(float(weight[i])))"),
        "the weight was rounded to T",
        "RmsNormRoundsOnce",
    ),
    norm("norm-first-row", "float(x[row + i]) * scale", "float(x[i]) * scale", "expected"),
    norm(
        "norm-neighbours-by-thread",
        "for (uint i = t; i < n; i += threads) {\n  const float",
        "for (uint i = t * ((n + threads - 1) / threads); i < min(n, (t + 1) * ((n + threads - 1) / threads)); i++) {\n"
        "  const float",
        "device read lines",
        "RmsNormReadsNeighboursTogether",
    ),
]

TURN = "T(x_one * c - x_other * s)"

_ROPE = [
    rope("rope-backwards", TURN, "T(x_one * c + x_other * s)", "expected"),
    rope(
        "rope-sign",
        "const float s = sines[angle];",
        "const float s = -sines[angle];",
        "the rotation goes the wrong way",
    ),
    rope("rope-no-offset", "size_t(offsets[b] + l)", "size_t(l)", "the offset was ignored"),
    rope("rope-first-offset", "size_t(offsets[b] + l)", "size_t(offsets[0] + l)", "at the first row's offset"),
    rope("rope-first-token", "size_t(offsets[b] + l)", "size_t(offsets[b])", "as if it were the first"),
    rope("rope-other-layout", "const uint one = TRADITIONAL", "const uint one = !TRADITIONAL", "expected"),
    rope("rope-all-heads", "h < min(first + HEADS, H)", "h < first + HEADS", OUT_OF_BOUNDS),
    rope("rope-one-head", "h < min(first + HEADS, H)", "h < first + 1", NEVER_WRITTEN),
    rope(
        "rope-contiguous",
        "const size_t token = b * x_strides[0] + l * x_strides[2];\nconst size_t next_head = x_strides[1];",
        "const size_t token = (size_t(b) * H * L + l) * (2 * half_dims);\nconst size_t next_head = L * 2 * half_dims;",
        "the strides of x were ignored",
        "RopeReadsViewsByTheirStrides",
    ),
    rope(
        "rope-features-side-by-side",
        "const size_t step = x_strides[3];",
        "const size_t step = 1;",
        "expected",
        "RopeReadsViewsByTheirStrides",
    ),
    rope(
        "rope-angles-of-its-own",
        "const float c = cosines[angle];\nconst float s = sines[angle];",
        "const float turn = float(offsets[b] + l) * pow(10000.0f, -float(i) / float(half_dims));\n"
        "const float c = cos(turn);\nconst float s = sin(turn) + 0.0f * sines[angle];",
        "expected",
    ),
    rope(
        "rope-angles-in-t",
        "const float c = cosines[angle];\nconst float s = sines[angle];",
        "const float c = float(T(cosines[angle]));\nconst float s = float(T(sines[angle]));",
        "the angles were rounded to T",
        "RopeRoundsOnce",
    ),
    rope(
        "rope-products-in-t",
        TURN,
        "T(float(T(x_one * c)) - float(T(x_other * s)))",
        "not the nearest number of their type",
        "RopeRoundsOnce",
    ),
    rope("rope-heads-and-tokens", "((size_t(b) * H + h) * L + l)", "((size_t(b) * L + l) * H + h)", "expected"),
    rope("rope-heads-race", "thread_position_in_grid.z % blocks * HEADS", "thread_position_in_grid.z % blocks", RACE),
]

GATED = "gated.v[j] = T(wide / (1.0f + exp(-wide)) * float(u.v[j]));"

_SWIGLU = [
    swiglu("swiglu-sign", GATED, GATED.replace("exp(-wide)", "exp(wide)"), "the sign in the exponential is wrong"),
    swiglu("swiglu-sigmoid", GATED, GATED.replace("T(wide /", "T(1.0f /"), "gate itself is missing"),
    swiglu("swiglu-no-up", GATED, GATED.replace(" * float(u.v[j])", ""), "up was left out"),
    swiglu("swiglu-plus-up", GATED, GATED.replace(" * float(u", " + float(u"), "up was added, not multiplied"),
    swiglu("swiglu-no-gate", GATED, "gated.v[j] = T(wide * float(u.v[j]));", "gate was not activated"),
    swiglu("swiglu-exchanged", "const float wide = float(g.v[j]);", "const float wide = float(u.v[j]);", "expected"),
    swiglu(
        "swiglu-rounds-twice",
        GATED,
        "gated.v[j] = T(float(T(wide / (1.0f + exp(-wide)))) * float(u.v[j]));",
        "was rounded to T",
        "SwigluRoundsOnce",
    ),
    swiglu(
        "swiglu-overflow",
        GATED,
        "gated.v[j] = T(wide * exp(wide) / (1.0f + exp(wide)) * float(u.v[j]));",
        "exp() overflowed",
        "SwigluSurvivesLargeGates",
    ),
    swiglu("swiglu-no-guard", GROUP, "if (true) {", OUT_OF_BOUNDS),
    swiglu("swiglu-no-tail", TAIL, "for (uint j = i; j < 0; j++) {", NEVER_WRITTEN),
]

MUTANTS = [*_ADD, *_NORM, *_ROPE, *_SWIGLU]
