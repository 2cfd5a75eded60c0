"""Hand-computed rewards and advantages."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_train.rewards import (
    MAX_ROLE_WEIGHT,
    DesignOutcome,
    Penalties,
    SpadeReward,
    advantages,
    blend,
    designer_reward,
    plateau,
    regret,
    role_weights,
    solve_variance,
    win_rate,
)
from spade_train.rows import Row


def _row(role: Any, group: str, reward: float | None) -> Row:
    return Row(role, group, [1], [2], [1], [], reward)


@pytest.mark.parametrize(
    ("rate", "value"),
    [(0.5, 1.0), (0.4, 1.0), (0.6, 1.0), (0.275, 0.5), (0.725, 0.5), (0.15, 0.0), (0.85, 0.0), (0.0, 0.0), (1.0, 0.0)],
)
def test_plateau(rate: float, value: float) -> None:
    assert plateau(rate) == pytest.approx(value)


def test_regret_and_blend_by_hand() -> None:
    plain, hinted = (1.0, 0.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0)
    assert win_rate(plain) == 0.5
    assert regret(hinted, plain) == pytest.approx(0.25)
    assert blend(hinted, plain) == pytest.approx(0.6 * 1.0 + 0.4 * 1.0)
    assert blend((0.0, 0.0, 0.0, 0.0), plain) == pytest.approx(0.6)
    # win rate 0.25 lies 0.15 below the plateau: 1 - 0.15/0.25 = 0.4; regret 0.075 is half the scale
    plain, hinted = (1.0, 0.0, 0.0, 0.0), (1.0, 0.3, 0.0, 0.0)
    assert blend(hinted, plain) == pytest.approx(0.6 * 0.4 + 0.4 * 0.5)


def test_regret_needs_equal_plays() -> None:
    with pytest.raises(ValueError, match="equally many"):
        regret((1.0,), (0.0, 1.0))
    with pytest.raises(ValueError, match="equally many"):
        regret((), ())


def test_solve_variance() -> None:
    assert solve_variance((1.0, 0.0)) == 1.0
    assert solve_variance((1.0, 1.0)) == 0.0
    assert solve_variance((1.0, 0.0, 0.0, 0.0)) == pytest.approx(0.75)


def test_penalties_come_before_pay() -> None:
    penalties = Penalties(invalid=-0.1, duplicate=-0.2, timeout=-0.5)
    played = {"plain": (1.0, 0.0), "hinted": (1.0, 1.0)}
    assert designer_reward("blend", DesignOutcome("refused"), penalties) == -0.1
    assert designer_reward("blend", DesignOutcome("no_code"), penalties) == -0.1
    assert designer_reward("blend", DesignOutcome("duplicate"), penalties) == -0.2
    assert designer_reward("blend", DesignOutcome("admitted", timed_out=True, **played), penalties) == -0.5
    assert designer_reward("blend", DesignOutcome("admitted", **played), penalties) == pytest.approx(1.0)
    assert designer_reward("blend", DesignOutcome("admitted", copies=2, **played), penalties) == pytest.approx(0.5)
    assert designer_reward("regret", DesignOutcome("admitted", **played), penalties) == pytest.approx(0.5)
    worse = DesignOutcome("admitted", plain=(1.0, 1.0), hinted=(0.0, 0.0))
    assert designer_reward("regret", worse, penalties) == 0.0
    assert designer_reward("plateau", DesignOutcome("admitted", plain=(1.0, 0.0)), penalties) == 1.0
    assert designer_reward("solve_variance", DesignOutcome("admitted", plain=(1.0, 0.0)), penalties) == 1.0


def test_advantages_by_hand() -> None:
    rows = [
        _row("designer", "logic", 0.2),
        _row("designer", "logic", 0.8),
        _row("agent", "e1", 1.0),
        _row("agent", "e1", 0.0),
        _row("agent", "e1", None),
        _row("agent", "e2", 1.0),
        _row("agent", "e2", 1.0),
        _row("pad", "pad", None),
    ]
    values = advantages(rows, {"designer": 2.0, "agent": 1.0}, epsilon=0.5)
    assert values == pytest.approx([-0.6, 0.6, 0.5, -0.5, 0.0, 0.0, 0.0, 0.0])


def test_role_weights() -> None:
    assert role_weights(18, 108) == {"designer": 6.0, "agent": 1.0}
    assert role_weights(1, 1000)["designer"] == MAX_ROLE_WEIGHT
    assert role_weights(10, 5) == {"designer": 1.0, "agent": 2.0}
    assert role_weights(4, 8, delay=4)["designer"] == 8.0
    assert role_weights(0, 8) == role_weights(8, 0) == {"designer": 1.0, "agent": 1.0}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["designer", "agent", "pad"]),
            st.sampled_from(["a", "b"]),
            st.one_of(st.none(), st.floats(-1, 1)),
        ),
        max_size=40,
    )
)
def test_every_group_sums_to_zero(specification: list[tuple[str, str, float | None]]) -> None:
    rows = [_row(role, group, reward) for role, group, reward in specification]
    metrics: dict[str, float] = {}
    reward = SpadeReward()
    values = reward([], [], rows, metrics.__setitem__, lambda *_: None)
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for row, value in zip(rows, values):
        sums[row.role, row.group] += value
        if row.role == "pad" or row.reward is None:
            assert value == 0.0
    assert all(abs(total) < 1e-6 for total in sums.values())
    assert all(math.isfinite(value) for value in [*values, *metrics.values()])


def test_fixed_role_weights_override_the_balance() -> None:
    rows = [_row("designer", "s", 0.0), _row("designer", "s", 1.0), _row("agent", "e", 0.0), _row("agent", "e", 1.0)]
    metrics: dict[str, float] = {}
    values = SpadeReward(designer_weight=3.0, agent_weight=0.5, epsilon=0.0)(
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
