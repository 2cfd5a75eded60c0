"""Win rates and regrets of programs whose difficulty is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean

import pytest
from calibration_programs import BROKEN, COIN, WALK

from spade_envs.calibration import CalibrationConfig, calibrate
from spade_envs.episode import Episode, PlayConfig
from spade_envs.play import Reply
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox


class Guesser:
    """Follows a hint; without one it tosses a coin of its own."""

    name = "guesser"

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        return [Reply(self._say(episode), tokens=3) for episode in episodes]

    def _say(self, episode: Episode) -> str:
        if episode.task.hint:
            return episode.task.hint.removeprefix("It shows ").removesuffix(".")
        return random.Random(f"guess {episode.task.seed}").choice(["heads", "tails"])


class Mute:
    name = "mute"

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        return [Reply("", error="no answer") for _ in episodes]


@pytest.fixture
def coin() -> EnvironmentRecord:
    return EnvironmentRecord.create(COIN, "CoinEnv")


def test_win_rate_and_regret_of_a_coin(sandbox: Sandbox, coin: EnvironmentRecord) -> None:
    config = CalibrationConfig(plays=200, batch=50, precision=0.0)
    (result,) = calibrate(Guesser(), [coin], sandbox, PlayConfig(), config)
    assert len(result.plain.returns) == len(result.hinted.returns) == 200
    assert fmean(result.hinted.wins) == 1.0
    low, high = result.to_dict()["plain"]["win_rate_interval"]
    assert low < 0.5 < high
    assert result.regret == pytest.approx(1 - fmean(result.plain.returns))
    low, high = result.regret_interval
    assert low < 0.5 < high


def test_play_stops_when_it_is_clear_enough(sandbox: Sandbox, coin: EnvironmentRecord) -> None:
    walk = EnvironmentRecord.create(WALK, "WalkEnv")
    config = CalibrationConfig(plays=64, batch=4, precision=0.2)
    on_coin, on_walk = calibrate(Guesser(), [coin, walk], sandbox, PlayConfig(), config)
    assert len(on_walk.plain.returns) == 8  # always won: the interval of 8 of 8 is 0.68 to 1
    assert not on_walk.hinted.returns  # it has no hint
    assert on_walk.regret is None
    assert 16 <= len(on_coin.plain.returns) <= 28  # half-width at one half: 0.2 needs 21
    assert len(on_coin.plain.returns) == len(on_coin.hinted.returns)


def test_the_same_seed_gives_the_same_figures_whatever_is_beside(sandbox: Sandbox, coin: EnvironmentRecord) -> None:
    walk = EnvironmentRecord.create(WALK, "WalkEnv")
    config = CalibrationConfig(plays=8, batch=3, precision=0.0, seed=5)
    (alone,) = calibrate(Guesser(), [coin], sandbox, PlayConfig(), config)
    _, beside = calibrate(Guesser(), [walk, coin], sandbox, PlayConfig(), config)
    assert alone.to_dict() == beside.to_dict()
    (other,) = calibrate(Guesser(), [coin], sandbox, PlayConfig(), CalibrationConfig(plays=8, precision=0.0, seed=6))
    assert other.plain.returns != alone.plain.returns


def test_a_stored_hint_goes_before_the_programs_own(sandbox: Sandbox) -> None:
    record = EnvironmentRecord.create(COIN, "CoinEnv", hint="It shows edge.")
    config = CalibrationConfig(plays=8, precision=0.0)
    (result,) = calibrate(Guesser(), [record], sandbox, PlayConfig(), config)
    assert fmean(result.hinted.wins) == 0.0


def test_hints_can_be_left_out(sandbox: Sandbox, coin: EnvironmentRecord) -> None:
    (result,) = calibrate(Guesser(), [coin], sandbox, PlayConfig(), CalibrationConfig(plays=4, hinted=False))
    assert len(result.plain.returns) == 4
    assert not result.hinted.stops


def test_broken_programs_and_silent_models_are_reported(sandbox: Sandbox, coin: EnvironmentRecord) -> None:
    broken = EnvironmentRecord.create(BROKEN, "BrokenEnv")
    first, second = calibrate(Guesser(), [broken, coin], sandbox, PlayConfig(), CalibrationConfig(plays=4))
    assert first.plain.stops == {"program_error": 4}
    assert fmean(first.plain.returns) == 0.0
    assert len(second.plain.returns) == 4
    refused = EnvironmentRecord.create("import os\nclass FilesEnv:\n    pass\n", "FilesEnv")
    (result,) = calibrate(Guesser(), [refused], sandbox, PlayConfig(), CalibrationConfig(plays=4))
    assert "os" in result.error
    assert not result.plain.returns
    (silent,) = calibrate(Mute(), [coin], sandbox, PlayConfig(), CalibrationConfig(plays=4))
    assert silent.plain.stops == {"model_error": 4}
    assert silent.plain.model_error
    assert not silent.plain.returns
    assert silent.to_dict()["plain"]["win_rate"] is None


def test_negative_returns_widen_the_range_of_regret(sandbox: Sandbox) -> None:
    source = COIN.replace(
        "float(self.answer(action) == self.side)", "1.0 if self.answer(action) == self.side else -1.0"
    )
    record = EnvironmentRecord.create(source, "CoinEnv")
    (result,) = calibrate(Guesser(), [record], sandbox, PlayConfig(), CalibrationConfig(plays=16, precision=0.0))
    assert result.regret == pytest.approx(1 - fmean(result.plain.returns))
    low, high = result.regret_interval
    assert low < result.regret < high <= 2.0


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="precision"):
        CalibrationConfig(precision=0.5)
    with pytest.raises(ValueError, match="plays"):
        CalibrationConfig(plays=0)
