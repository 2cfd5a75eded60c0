"""Hand-computed advantages and weights; sums over groups and ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_train.advantages import (
    MAX_ROLE_WEIGHT,
    Earned,
    SpadeReward,
    advantages,
    balanced,
    earned,
    hint_weight,
    role_weights,
)
from spade_train.rows import Row

SPECIFICATIONS = st.lists(
    st.tuples(
        st.sampled_from(["designer", "hint", "agent", "pad"]),
        st.sampled_from(["a", "b"]),
        st.one_of(st.none(), st.floats(-1, 1)),
    ),
    max_size=40,
)


def _row(role: Any, group: str, reward: float | None) -> Row:
    return Row(role, group, [1], [2], [1], [], reward)


def test_advantages_by_hand() -> None:
    rows = [
        _row("designer", "logic", 0.2),
        _row("designer", "logic", 0.8),
        _row("hint", "e1", 0.5),
        _row("hint", "e1", 0.1),
        _row("agent", "e1", 1.0),
        _row("agent", "e1", 0.0),
        _row("agent", "e1", None),
        _row("agent", "e2", 1.0),
        _row("agent", "e2", 1.0),
        _row("pad", "pad", None),
    ]
    values = advantages(rows, {"designer": 2.0, "hint": 3.0, "agent": 1.0}, epsilon=0.5)
    # designer (0.2 - 0.5) x 2; hint (0.5 - 0.3) x 3; agent (1 - 0.5) / (0.5 + 0.5); no spread in e2
    assert values == pytest.approx([-0.6, 0.6, 0.6, -0.6, 0.5, -0.5, 0.0, 0.0, 0.0, 0.0])


def test_role_weights() -> None:
    assert role_weights(18, 108) == {"designer": 6.0, "agent": 1.0}
    assert role_weights(1, 1000)["designer"] == MAX_ROLE_WEIGHT
    assert role_weights(10, 5) == {"designer": 1.0, "agent": 2.0}
    assert role_weights(4, 8, delay=4)["designer"] == 8.0  # 8 / 4 x 4
    assert role_weights(24, 384, delay=4)["designer"] == MAX_ROLE_WEIGHT  # 16 x 4 = 64
    assert role_weights(0, 8) == role_weights(8, 0) == {"designer": 1.0, "agent": 1.0}
    assert (hint_weight(6, 36), hint_weight(6, 3), hint_weight(1, 99), hint_weight(0, 9)) == (6.0, 1.0, 50.0, 1.0)


@given(SPECIFICATIONS)
def test_every_group_sums_to_zero(specification: list[tuple[str, str, float | None]]) -> None:
    rows = [_row(role, group, reward) for role, group, reward in specification]
    metrics: dict[str, float] = {}
    values = SpadeReward()([], [], rows, metrics.__setitem__, lambda *_: None)
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for row, value in zip(rows, values):
        sums[row.role, row.group] += value
        assert row.advantage == value
        if row.role == "pad" or row.reward is None:
            assert value == 0.0
    assert all(abs(total) < 1e-6 for total in sums.values())
    assert all(math.isfinite(value) for value in [*values, *metrics.values()])


@given(st.lists(SPECIFICATIONS, min_size=2, max_size=4))
def test_ranks_compare_within_one_skill_and_each_sums_to_zero(parts: list[list[tuple[str, str, float | None]]]) -> None:
    ranks = [[_row(role, group, reward) for role, group, reward in part] + [_row("pad", "pad", None)] for part in parts]
    everyone = [earned(rows) for rows in ranks]
    reward = SpadeReward(weights={"designer": 2.0, "hint": 1.0, "agent": 1.0}, gather=lambda _: everyone)
    results = [reward([], [], rows, lambda *_: None, lambda *_: None) for rows in ranks]
    groups: dict[str, list[float]] = defaultdict(list)
    for rows in ranks:
        for row in rows:
            if row.role == "designer" and row.reward is not None:
                groups[row.group].append(row.reward)
    for rows, values in zip(ranks, results):
        assert abs(sum(values)) < 1e-6  # so the mean that the trainer takes off a rank is zero
        for row, value in zip(rows, values):
            if row.role == "designer" and row.reward is not None:
                mean = sum(groups[row.group]) / len(groups[row.group])
                assert value == pytest.approx(2.0 * (row.reward - mean), abs=1e-9)


def test_weights_of_several_ranks_count_all_rows() -> None:
    rows = [_row("designer", "s", 0.0), *(_row("agent", "e", float(index % 2)) for index in range(4))]
    rows.append(_row("pad", "pad", None))
    other = Earned([("designer", "s", 1.0)], {"designer": 1, "hint": 0, "agent": 8})
    metrics: dict[str, float] = {}
    values = SpadeReward(gather=lambda mine: [mine, other])([], [], rows, metrics.__setitem__, lambda *_: None)
    # 12 agent rows over 2 designer rows: 6; (0 - 0.5) x 6, and the unused row takes the opposite
    assert metrics["weight/designer"] == 6.0
    assert (values[0], values[-1]) == pytest.approx((-3.0, 3.0))


def test_a_balance_needs_an_unused_row() -> None:
    rows = [_row("designer", "s", 1.0)]
    assert balanced(rows, [0.0]) == [0.0]
    with pytest.raises(ValueError, match="unused row"):
        balanced(rows, [0.5])


def test_fixed_role_weights_override_the_balance() -> None:
    rows = [_row("designer", "s", 0.0), _row("designer", "s", 1.0), _row("agent", "e", 0.0), _row("agent", "e", 1.0)]
    metrics: dict[str, float] = {}
    values = SpadeReward(weights={"designer": 3.0, "agent": 0.5, "hint": None}, epsilon=0.0)(
        [], [], rows, metrics.__setitem__, lambda *_: None, spade_metrics=[{"design/valid": 0.25}] * 4
    )
    assert values == pytest.approx([-1.5, 1.5, -0.5, 0.5])
    assert metrics["design/valid"] == 0.25
    assert metrics["advantage/agent_zero_share"] == 0.0


def test_row_refuses_unequal_logprobs() -> None:
    row = Row("agent", "e", [1])
    with pytest.raises(ValueError, match="one log-probability"):
        row.sampled([1, 2], [0.0])
    row.sampled([1, 2], [-0.5, -0.1])
    row.given([3])
    assert (row.context, row.mask, row.logprobs, row.tokens) == ([1, 1, 2, 3], [1, 1, 0], [-0.5, -0.1, 0.0], 2)


def test_row_comes_back_from_its_dictionary() -> None:
    row = Row("designer", "s", [1, 2], [3], [1], [-0.1], 0.5, scored=True, age=4, ratio=[1.25])
    assert Row.from_dict(row.to_dict()) == row
