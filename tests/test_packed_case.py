"""What the cases about packed matrices say of a wrong product."""

import mlx.core as mx
import numpy as np
import pytest

from course.checkpoint_files import wide
from course.packed_case import close_product, dense64, normal, packed_inputs


@pytest.fixture
def product() -> tuple[mx.array, dict, np.ndarray]:
    """bfloat16 x (2, 64), a packed matrix (6, 64), and their product in float64."""
    rng = np.random.default_rng(1)
    x, matrix = normal(rng, (2, 64), mx.bfloat16), packed_inputs(rng, (6, 64), 32)
    return x, matrix, wide(x) @ dense64(matrix).T


def test_right_values_of_another_dtype_are_told_as_that(product: tuple[mx.array, dict, np.ndarray]):
    x, matrix, want = product
    with pytest.raises(AssertionError, match="the dtype is wrong"):
        close_product(mx.array(want.astype(np.float32)), x, matrix)


def test_a_wrong_row_is_named(product: tuple[mx.array, dict, np.ndarray]):
    x, matrix, want = product
    want[1, 4] += 1
    with pytest.raises(AssertionError, match=r"wrong in row 4 of 0 \.\. 5 of the matrix, in token 1 of 0"):
        close_product(mx.array(want.astype(np.float32)).astype(mx.bfloat16), x, matrix)
