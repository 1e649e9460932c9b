"""The comparison says what a learner needs, and never names a mistake that is none."""

import mlx.core as mx
import numpy as np
import pytest

from course.compare import close, parting, same, short


def message(got: object, want: object, **options: object) -> str:
    with pytest.raises(AssertionError) as caught:
        close(got, want, **options)
    return str(caught.value)


def test_equal_values_pass():
    x = mx.array([[1.0, 2.0], [3.0, 4.0]])
    close(x, np.array([[1, 2], [3, 4]], np.float64), dtype=mx.float32)
    close(x.astype(mx.bfloat16), x)


def test_message_names_first_wrong_index_values_share_and_difference():
    want = np.arange(12, dtype=np.float64).reshape(3, 4)
    got = want.copy()
    got[1, 2], got[2, 0] = 7.5, -8.0
    text = message(mx.array(got, dtype=mx.float32), want, dtype=mx.float32, what="softmax(x)")
    assert "softmax(x): 2 of 12 values are wrong (16.7 %)" in text
    assert "first wrong at [1, 2]: expected 6, got 7.5" in text
    assert "expected  float32 (3, 4)" in text
    assert "got       float32 (3, 4)" in text
    assert "largest difference 16, allowed 0.00011" in text


def test_wrong_dtype_and_wrong_shape_are_both_told():
    text = message(mx.zeros((2, 3), mx.float16), np.zeros((3, 2)), dtype=mx.float32)
    assert "dtype is wrong" in text
    assert "expected  float32 (3, 2)" in text
    assert "shape is wrong" in text


def test_right_values_in_the_wrong_dtype_fail():
    assert "dtype is wrong" in message(mx.ones(2, mx.float16), np.ones(2), dtype=mx.float32)


@pytest.mark.parametrize("got", [None, [1.0, 2.0], 1.0, "text", np.array(["a", "b"])])
def test_what_is_no_array_is_told_by_type(got: object):
    assert "expected an array of shape (2,), got" in message(got, np.ones(2))


@pytest.mark.parametrize(
    ("dtype", "allowed"), [(mx.float32, 1e-5), (mx.float16, 2e-3), (mx.bfloat16, 1.6e-2), (mx.float64, 1e-9)]
)
def test_tolerance_follows_the_dtype_and_the_scale(dtype: mx.Dtype, allowed: float):
    with mx.stream(mx.cpu):
        got = mx.array([0.0, 1024.0], dtype=dtype)
        close(got, np.array([0.9 * allowed * 1024, 1024.0]))
        message(got, np.array([1.2 * allowed * 1024, 1024.0]))


def test_tolerance_can_be_given():
    close(mx.array([1.0, 1.4]), np.array([1.0, 1.0]), tol=0.5)
    message(mx.array([1.0, 1.4]), np.array([1.0, 1.0]), tol=0.3)


def test_all_zeros_have_the_scale_one():
    close(mx.array([1e-6, 0.0]), np.zeros(2))
    message(mx.array([1e-4, 0.0]), np.zeros(2))


def test_special_values_must_stand_in_the_same_places():
    want = np.array([np.nan, np.inf, -np.inf, 1.0])
    close(mx.array(want, dtype=mx.float32), want)
    text = message(mx.array([1.0, np.nan, np.inf, np.nan]), want)
    assert "4 of 4 values are wrong" in text
    assert "difference" not in text
    assert "NaN: expected 1, got 2" in text
    assert "inf: expected 2, got 1" in text


def test_infinities_do_not_widen_the_tolerance():
    message(mx.array([-np.inf, 1.1]), np.array([-np.inf, 1.0]))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_zero_size_arrays_pass(shape: tuple[int, ...]):
    close(mx.zeros(shape), np.zeros(shape))
    close(mx.zeros(shape, mx.int32), np.zeros(shape, np.int64))


def test_zero_size_does_not_equal_something():
    assert "shape is wrong" in message(mx.zeros((0, 3)), np.zeros((1, 3)))


def test_scalars():
    close(mx.array(2.0), 2.0)
    close(mx.array(2.0), np.float64(2.0))
    close(2.0, np.float64(2.0))
    assert "first wrong at []" in message(mx.array(2.0), 3.0)


def test_integers_are_exact():
    close(mx.array([1, 2**31], dtype=mx.int64), np.array([1, 2**31]))
    big = 2**62
    assert "1 of 1" in message(mx.array([big + 1], dtype=mx.int64), np.array([big]))
    text = message(mx.array([3, 4]), np.array([3, 5]))
    assert "first wrong at [1]: expected 5, got 4" in text
    close(mx.array(np.array([2**63], np.uint64)), np.array([2**63], np.uint64))


def test_integers_take_a_tolerance():
    close(mx.array([100, 51]), np.array([100, 50]), tol=0.01)


def test_booleans_are_exact():
    close(mx.array([True, False]), np.array([True, False]))
    assert "1 of 2" in message(mx.array([True, True]), np.array([True, False]))


def test_float_for_integers_is_judged_by_value():
    close(mx.array([1.0, 2.0]), np.array([1, 2]))


def test_complex_values():
    close(mx.array([1 + 2j]), np.array([1 + 2j]))
    assert "1 of 1" in message(mx.array([1 + 2j]), np.array([1 - 2j]))


def test_matching_suspect_is_named():
    want = np.array([1.0, 2.0])
    suspects = {"halved": want / 2, "doubled": lambda: want * 2}
    assert "likely mistake: doubled" in message(mx.array([2.0, 4.0]), want, suspects=suspects)
    assert "likely mistake" not in message(mx.array([2.0, 5.0]), want, suspects=suspects)


def test_suspect_that_equals_the_right_answer_is_never_named():
    want = np.zeros(3)
    got = mx.array([0.0, 0.0, 1.0])
    assert "likely" not in message(got, want, suspects={"no difference here": want.copy()})
    # Within the tolerance of both: the bound is crossed by the value, not by the suspect.
    want, near = np.array([1.0]), np.array([1.0 + 0.9e-5])
    assert "likely" not in message(mx.array([1.0 + 1.5e-5]), want, suspects={"nearly right": near})


def test_nearest_suspect_is_named():
    want = np.array([1.0, 1.0])
    suspects = {"near": np.array([1.1, 1.0]), "nearest": np.array([1.101, 1.0])}
    assert "likely mistake: nearest" in message(mx.array([1.101, 1.0]), want, tol=0.01, suspects=suspects)


def test_suspect_of_another_shape_explains_a_wrong_shape():
    want = np.arange(6.0).reshape(2, 3)
    suspects = {"short": np.zeros(1), "transposed": want.T}
    assert "likely mistake: transposed" in message(mx.array(want.T), want, suspects=suspects)


def test_suspect_with_special_values():
    want = np.array([1.0, 2.0])
    suspects = {"divided by zero": np.array([np.nan, np.inf])}
    assert "likely mistake: divided by zero" in message(mx.array([np.nan, np.inf]), want, suspects=suspects)


def test_suspect_that_cannot_be_computed_is_passed_over():
    suspects = {"broken": lambda: 1 / 0, "halved": np.array([1.0])}
    text = message(mx.array([1.0]), np.array([2.0]), suspects=suspects)
    assert "first wrong at [0]: expected 2, got 1" in text
    assert "likely mistake: halved" in text
    assert "broken" not in text


def test_suspects_that_give_one_result_are_all_named():
    want, wrong = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    suspects = {"swapped": wrong, "reversed": wrong * (1 + 1e-12), "tripled": want * 3}
    text = message(mx.array(wrong, dtype=mx.float32), want, suspects=suspects)
    assert text.endswith("  likely mistake: swapped\n               or: reversed")


@pytest.mark.filterwarnings("error")
def test_suspects_warn_of_nothing():
    suspects = {"divided by zero": lambda: np.array([1.0]) / 0.0}
    assert "likely mistake: divided by zero" in message(mx.array([np.inf]), np.array([1.0]), suspects=suspects)


def test_largest_difference_is_that_of_the_wrong_values():
    want = np.array([1.0, 2.0, 3.0])
    assert "largest finite difference 5, allowed" in message(mx.array([np.nan, 2.0, 8.0]), want)
    assert "difference" not in message(mx.array([np.nan, 2.0, 3.0]), want)


def test_suspects_are_not_computed_for_right_values():
    close(mx.array([1.0]), np.array([1.0]), suspects={"broken": lambda: 1 / 0})


def test_messages_are_short_for_large_arrays():
    assert len(message(mx.zeros((500, 500)), np.ones((500, 500)))) < 500


def test_same_passes_for_equal_plain_values():
    value = {"tokens": [1, 2], "text": "é", "pair": (None, float("nan")), "x": mx.array([1, 2])}
    same(value, {**value, "x": np.array([1, 2])})


@pytest.mark.parametrize(
    ("got", "want", "text"),
    [
        ([1, 2, 4], [1, 2, 3], "tokens[2]: expected 3, got 4"),
        ([1, 2], [1, 2, 3], "tokens: expected 3 items, got 2 (the first 2 agree)"),
        ({"a": [1]}, {"a": [2]}, "tokens['a'][0]: expected 2, got 1"),
        ({"a": 1}, {"b": 1}, "tokens: expected {'b': 1}, got {'a': 1}"),
        ((1,), [1], "tokens: expected [1], got (1,)"),
        (True, 1, "tokens: expected 1, got True"),
        ("ab", "abc", "tokens: expected 'abc', got 'ab'"),
        (None, [1], "tokens: expected [1], got None"),
        (None, mx.array([1]), "tokens: expected an array"),
        ([mx.array([1, 2])], [mx.array([1, 3])], "tokens[0]: 1 of 2 values are wrong"),
        (mx.array([1.0]), [1.0], "tokens: expected [1.0], got float32 (1,)"),
    ],
)
def test_same_names_the_first_difference(got: object, want: object, text: str):
    with pytest.raises(AssertionError) as caught:
        same(got, want, what="tokens")
    assert text in str(caught.value)


def test_short_cuts_long_values():
    assert short(list(range(1000))).endswith("(4890 characters)")
    assert short(mx.zeros((3, 4))) == "float32 (3, 4)"


def test_long_texts_are_told_where_they_part():
    want = "x" * 300 + "one two three" + "y" * 300
    with pytest.raises(AssertionError) as caught:
        same(want.replace("two", "2"), want)
    around = [repr("x" * 11 + "one " + text + "y" * count) for text, count in (("two three", 6), ("2 three", 8))]
    line = f"the first 304 characters agree; around there: expected {around[0]}, got {around[1]}"
    assert line in str(caught.value)
    assert parting("ab", "ac") == ""
    assert "the first 50 characters agree" in parting("a" * 50, "a" * 60)
