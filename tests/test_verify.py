"""Comparing answers: by value, without evaluating."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.verify import parse, verify, verify_answer


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (12, "12"),
        ("12", "12.0"),
        ("1/2", "0.5"),
        (0.1 + 0.2, "0.3"),
        (r"\frac{3}{4}", ".75"),
        ("-2", "\u22122"),
        ("50%", "0.5"),
        ("1,234", "1234"),
        ("$5.50$", "5.5"),
        ("Yes", "yes."),
        (r"\text{North}", "north"),
        ([1, 2], "1, 2"),
        ("(1, 2)", "[1,2]"),
        ("1e3", "1000"),
        (r"$\boxed{7}$", "7"),
        ({"a": 1}, {"a": 1.0}),
        (True, "true"),
        (None, "None"),
        ("{1, 2}", "(1,2)"),
        ("new  york", "New York"),
        (Fraction(1, 3), "1/3"),
        ("[[1,2],[3]]", [[1, 2], [3]]),
        ("x", ["x"]),
    ],
)
def test_equal_answers(expected, answer):
    assert verify_answer(expected, answer)
    assert verify_answer(answer, expected)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (12, "13"),
        ("12", "twelve"),
        ([1, 2], "2, 1"),
        ([1, 2], "1"),
        ("yes", "no"),
        (1, ""),
        ("", "0"),
        ("1/3", "0.33"),
        (10**20, 10**20 + 1),
        ("a", "a b"),
        (1, "1 2"),
        ("1/0", "0"),
        (1, True),
    ],
)
def test_different_answers(expected, answer):
    assert not verify_answer(expected, answer)


def test_nothing_is_evaluated_and_nothing_explodes():
    for text in (
        "__import__('os')",
        "9**9**9",
        "1e999999999",
        "9" * 100_000,
        "(" * 5_000,
        "\\frac{" * 500,
        "1/0",
        "\x00",
    ):
        assert verify_answer(text, "1") is False
        parse(text)


def test_published_names():
    assert verify(parse("1/2"), parse("0.5"))
    assert parse("3") == 3


@given(st.one_of(st.integers(), st.fractions(max_denominator=10**6), st.lists(st.integers(), min_size=2)))
def test_a_value_equals_its_own_text(value):
    assert verify_answer(value, str(value))


@given(st.text(max_size=50), st.text(max_size=50))
def test_any_two_texts_can_be_compared(left, right):
    assert verify_answer(left, left)
    assert verify_answer(left, right) == verify_answer(right, left)
