"""Designer rewards against a table worked out by hand from the paper's formulas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_train.rewards import (
    DESIGNER_REWARDS,
    DesignOutcome,
    Pay,
    Penalties,
    designer_reward,
    learning_potential,
    micro_lp,
    moving_average,
    plateau,
    regret,
    solve_variance,
    win_rate,
)


@pytest.mark.parametrize(
    ("rate", "value"),
    [
        *((0.4, 1.0), (0.5, 1.0), (0.6, 1.0)),
        (0.275, 0.5),  # 0.125 below the band, half of the ramp of 0.25
        (0.725, 0.5),
        (0.34, 0.76),  # 0.06 below: 1 - 0.06 / 0.25
        *((0.15, 0.0), (0.85, 0.0), (0.0, 0.0), (1.0, 0.0)),
    ],
)
def test_plateau(rate: float, value: float) -> None:
    assert plateau(rate) == pytest.approx(value)


def test_plateau_with_another_band() -> None:
    # band [0.2, 0.5], ramp 0.1: 0.55 lies 0.05 above, half of the ramp
    assert plateau(0.55, (0.2, 0.5), 0.1) == pytest.approx(0.5)
    assert plateau(0.2, (0.2, 0.5), 0.1) == 1.0


def test_regret() -> None:
    # hinted (1 + 1 + 0 + 1) / 4 = 0.75, plain (1 + 0 + 0 + 1) / 4 = 0.5
    assert regret((1.0, 1.0, 0.0, 1.0), (1.0, 0.0, 0.0, 1.0)) == pytest.approx(0.25)
    assert regret((0.0, -1.0), (1.0, 0.0)) == pytest.approx(-1.0)
    for hinted, plain in (((1.0,), (0.0, 1.0)), ((), ())):
        with pytest.raises(ValueError, match="equally many"):
            regret(hinted, plain)


def test_win_rate_counts_wins_not_returns() -> None:
    assert win_rate((1.0, 0.99, 0.5, -1.0)) == 0.5


@pytest.mark.parametrize(
    ("rate", "gain", "value"),
    [
        (0.5, 0.25, 1.0),  # 0.6 x 1 + 0.4 x min(1, 0.25 / 0.15)
        (0.5, -0.5, 0.6),  # a hint that harms earns nothing and costs nothing
        (0.25, 0.075, 0.44),  # plateau 1 - 0.15 / 0.25 = 0.4; 0.6 x 0.4 + 0.4 x 0.075 / 0.15
        (0.0, 0.15, 0.4),
        (1.0, 0.0, 0.0),
        (0.7, 0.03, 0.44),  # plateau 1 - 0.1 / 0.25 = 0.6; 0.36 + 0.4 x 0.2
    ],
)
def test_blend(rate: float, gain: float, value: float) -> None:
    assert Pay().blend(rate, gain) == pytest.approx(value)


def test_blend_with_other_shares() -> None:
    # 0.2 x 1 + 0.8 x 0.1 / 0.4
    assert Pay(plateau_share=0.2, regret_share=0.8, regret_scale=0.4).blend(0.5, 0.1) == pytest.approx(0.4)


def test_solve_variance() -> None:
    assert [solve_variance(rate) for rate in (0.0, 0.25, 0.5, 1.0)] == [0.0, 0.75, 1.0, 0.0]


def test_moving_average_weighs_the_newest_value() -> None:
    assert moving_average(None, 0.4, 0.85) == 0.4
    # 0.15 x 0.4 + 0.85 x 0.8 = 0.06 + 0.68
    assert moving_average(0.4, 0.8, 0.85) == pytest.approx(0.74)
    # the fast one is nearer to the newest value: 0.02 x 0.4 + 0.98 x 0.8 = 0.008 + 0.784
    assert moving_average(0.4, 0.8, 0.98) == pytest.approx(0.792)


def test_learning_potential() -> None:
    assert learning_potential(0.25, 0.74) == pytest.approx(0.49)
    assert learning_potential(1.0, 0.74) == pytest.approx(0.26)


@pytest.mark.parametrize(
    ("rates", "slope"),
    [
        ((0.0, 0.5), 0.5),
        ((0.2, 0.4, 0.6, 0.8), 0.2),
        # times -1, 0, 1 around 0.5 with offsets 0.0, -0.5, 0.5: (0 + 0 + 0.5) / 2
        ((0.5, 0.0, 1.0), 0.25),
        # times -1.5, -0.5, 0.5, 1.5; mean 0.5; (-1.5 x 0.5 - 0.5 x 0 + 0.5 x 0 + 1.5 x -0.5) / 5
        ((1.0, 0.5, 0.5, 0.0), -0.3),
        ((0.7,), 0.0),
        ((), 0.0),
    ],
)
def test_micro_lp_is_the_least_squares_slope(rates: tuple[float, ...], slope: float) -> None:
    assert micro_lp(rates) == pytest.approx(slope)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_micro_lp_agrees_with_numpy(rates: list[float]) -> None:
    import numpy as np

    assert micro_lp(rates) == pytest.approx(float(np.polyfit(range(len(rates)), rates, 1)[0]), abs=1e-9)


WINDOW = ((1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0))
"""Two rollouts: win rates 0.25 and 0.5, over the window 3 / 8 = 0.375."""
HINTED = (1.0, 1.0, 0.0, 0.0)
"""Against the first rollout: regret 0.5 - 0.25."""


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("blend", 0.94),  # plateau of 0.375: 1 - 0.025 / 0.25 = 0.9; 0.6 x 0.9 + 0.4 x min(1, 0.25 / 0.15)
        ("regret", 0.25),  # of the first rollout alone
        ("plateau", 0.9),
        ("solve_rate", 0.9),
        ("solve_variance", 0.9375),  # 4 x 0.375 x 0.625
        ("learning_potential", 0.225),  # |0.375 - 0.6|
        ("micro_lp", 0.25),
    ],
)
def test_rewards_of_a_window(kind: Any, value: float) -> None:
    outcome = DesignOutcome("admitted", WINDOW, HINTED, slow=0.6)
    assert designer_reward(Pay(kind), outcome) == pytest.approx(value)
    twins = DesignOutcome("admitted", WINDOW, HINTED, slow=0.6, copies=2)
    assert designer_reward(Pay(kind), twins) == pytest.approx(value / 2)


def test_copies_do_not_share_what_is_lost() -> None:
    """A falling win rate costs 0.25 a rollout; divided by the copies it would cost less the more there are."""
    falling = WINDOW[::-1]
    costs = [designer_reward(Pay("micro_lp"), DesignOutcome("admitted", falling, HINTED, copies=n)) for n in (1, 2, 5)]
    assert costs == pytest.approx([-0.25, -0.25, -0.25])


def test_every_reward_is_in_the_table() -> None:
    ((_, cases),) = [mark.args for mark in test_rewards_of_a_window.pytestmark]  # type: ignore[attr-defined]
    assert {kind for kind, _ in cases} == set(DESIGNER_REWARDS)


def test_regret_is_floored() -> None:
    outcome = DesignOutcome("admitted", ((1.0, 1.0),), (0.0, 0.0))
    assert designer_reward(Pay("regret"), outcome) == 0.0


def test_penalties_come_before_pay() -> None:
    pay = Pay(penalties=Penalties(invalid=-0.1, duplicate=-0.2, timeout=-0.5, quarantined=-0.7))
    played: dict[str, Any] = {"rollouts": ((1.0, 0.0),), "hinted": (1.0, 1.0)}
    table = {
        DesignOutcome("refused"): -0.1,
        DesignOutcome("no_code"): -0.1,
        DesignOutcome("failed", **played): -0.1,
        DesignOutcome("admitted"): -0.1,
        DesignOutcome("duplicate"): -0.2,
        DesignOutcome("refused", timed_out=True): -0.5,
        DesignOutcome("failed", timed_out=True, **played): -0.5,
        DesignOutcome("failed", timed_out=True, quarantined=True, **played): -0.7,
        DesignOutcome("admitted", **played): 1.0,
    }
    for outcome, value in table.items():
        assert designer_reward(pay, outcome) == pytest.approx(value), outcome
    assert Penalties() == Penalties(invalid=0.0, duplicate=0.0, timeout=-0.5, quarantined=-0.5)
