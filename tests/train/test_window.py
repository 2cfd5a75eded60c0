"""Windows of several rollouts: what is played, what waits, what is paid and when."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from doubles import BROKEN, Documents, HashDesigner, ScriptedSampler, record

from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.play import PlayConfig
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox
from spade_train.cycle import Cycle, CycleConfig, Design, Plan, Written
from spade_train.metrics import cycle_metrics
from spade_train.rewards import Pay, Penalties, designer_reward, plateau, win_rate
from spade_train.rollout import Rollout
from spade_train.rows import Row
from spade_train.tokens import ChatTokens
from spade_train.window import Rates, Standing, Window

PLAY = PlayConfig(max_turns=3, turn_tokens=6, episode_tokens=64, system_prompt="Play.")
K = 3


def _rollout(sandbox: Sandbox, tokens: ChatTokens, designer: Any = None, **changes: Any) -> Rollout:
    sizes: dict[str, Any] = {"designs": 3, "plays": 4, "places": 8, "slots": 50, "design_tokens": 8, "window": K}
    config = CycleConfig(**(sizes | {"context_tokens": 1000} | changes))
    return Rollout(tokens, designer or HashDesigner(), sandbox, PLAY, config)


def _plan(cycle: int, cycles: int = 0, **fields: Any) -> Plan:
    phase = cycle % K
    designs = tuple(Design(Documents().sample(0, 9 * cycle + i), f"skill{i}") for i in range(2)) if phase == 0 else ()
    return Plan(cycle, designs, phase=phase, last=cycle + 1 == cycles, **fields)


def _talker(tokens: ChatTokens) -> ScriptedSampler:
    rng = random.Random(0)

    def reply(index: int, ids: list[int]) -> list[int]:
        said = tokens.tokenizer.encode(f"{rng.choice('etaoin')} {rng.randrange(1000)}", add_special_tokens=False)
        return [*said, tokens.eos]

    return ScriptedSampler(reply)


def _run(rollout: Rollout, sampler: ScriptedSampler, cycles: int, plans: int | None = None) -> list[Cycle]:
    return [rollout.run(_plan(cycle, cycles), sampler) for cycle in range(plans or cycles)]


def test_one_set_of_environments_is_played_for_the_whole_window(sandbox: Sandbox, tokens: ChatTokens) -> None:
    cycles = _run(_rollout(sandbox, tokens), _talker(tokens), 9)
    for start in (0, 3, 6):
        ids = [{one.record.id for one in cycle.played} for cycle in cycles[start : start + K]]
        assert ids[0]
        assert ids[0] == ids[1] == ids[2]
        assert len({tuple(one.seeds) for cycle in cycles[start : start + K] for one in cycle.played}) == K * len(ids[0])
        assert [bool(cycle.written) for cycle in cycles[start : start + K]] == [True, False, False]
        for phase, cycle in enumerate(cycles[start : start + K]):
            assert all(one.fresh for one in cycle.played)
            assert all(len(one.hinted) == (0 if phase else 4) and len(one.plain) == 4 for one in cycle.played)
    assert {len(cycle.rows) for cycle in cycles} == {50}


def test_designer_rows_are_trained_k_rollouts_later_by_the_whole_window(sandbox: Sandbox, tokens: ChatTokens) -> None:
    cycles = _run(_rollout(sandbox, tokens, pay=Pay("plateau")), _talker(tokens), 9)
    trained = [[row for row in cycle.rows if row.role == "designer"] for cycle in cycles]
    # windows begin at 0, 3 and 6; the last one has no successor and is trained in the run's last rollout
    assert [len(rows) for rows in trained] == [0, 0, 0, 6, 0, 0, 6, 0, 6]
    assert [{row.age for row in rows} for rows in trained if rows] == [{3}, {3}, {2}]
    assert [row.completion_ids for row in trained[3]] == [one.row.completion_ids for one in cycles[0].written]
    returns: dict[str, list[float]] = {}
    for cycle in cycles[:3]:
        for one in cycle.played:
            returns.setdefault(one.record.id, []).extend(one.returns(hinted=False))
    for one in cycles[3].paid:
        if one.environment:
            values = returns[one.environment]
            assert len(values) == 3 * 4
            assert list(one.outcome.plain) == values
            assert one.row.reward == pytest.approx(plateau(win_rate(values)) / one.outcome.copies)
    assert any(one.environment for one in cycles[3].paid)
    assert all(one.row.reward is None for cycle in cycles[6:7] for one in cycle.written if one not in cycles[8].paid)


def test_metrics_say_what_was_earned_when_it_is_known(sandbox: Sandbox, tokens: ChatTokens) -> None:
    figures = [cycle_metrics(cycle) for cycle in _run(_rollout(sandbox, tokens), _talker(tokens), 6)]
    assert ["design/valid" in one for one in figures] == [True, False, False, True, False, False]
    for name in ("design/reward", "design/reward_std", "design/timeout"):
        assert [name in one for one in figures] == [False, False, False, True, False, True]
    assert ["environment/regret" in one for one in figures] == [True, False, False, True, False, False]


def test_regret_is_of_the_first_rollout_alone(sandbox: Sandbox, tokens: ChatTokens) -> None:
    cycles = _run(_rollout(sandbox, tokens, pay=Pay("regret")), _talker(tokens), 6, plans=4)
    first = {one.record.id: one for one in cycles[0].played}
    for one in cycles[3].paid:
        if one.outcome.status == "admitted":
            played = first[one.environment]
            hinted, plain = played.returns(hinted=True), played.returns(hinted=False)
            assert one.outcome.hinted == hinted
            assert one.outcome.rollouts[0] == plain
            assert len(one.outcome.rollouts) == K
            expected = max(0.0, sum(hinted) / 4 - sum(plain) / 4) / one.outcome.copies
            assert one.row.reward == pytest.approx(expected)


def test_programs_of_a_window_that_the_last_rollout_begins_wait_for_a_resume(
    sandbox: Sandbox, tokens: ChatTokens, caplog: pytest.LogCaptureFixture
) -> None:
    """With k = 3 and four steps; resumed with more, they are paid and trained as in a run that was planned so."""
    expected = _run(_rollout(sandbox, tokens), _talker(tokens), 9)
    stopped, resumed, sampler = _rollout(sandbox, tokens), _rollout(sandbox, tokens), _talker(tokens)
    cycles = _run(stopped, sampler, 4)
    assert [one.row for one in cycles[3].paid] == [row for row in cycles[3].rows if row.role == "designer"]
    assert {row.age for row in cycles[3].rows if row.role == "designer"} == {3}
    assert "6 programs of the run's last rollout wait" in caplog.text
    resumed.window.load_state_dict(json.loads(json.dumps(stopped.window.state_dict())))
    rest = [resumed.run(_plan(cycle, 9), sampler) for cycle in range(4, 9)]
    assert [cycle.rows for cycle in cycles + rest] == [cycle.rows for cycle in expected]
    trained = [row.completion_ids for row in rest[2].rows if row.role == "designer"]
    assert trained == [one.row.completion_ids for one in cycles[3].written]


def test_a_run_that_ends_within_a_window_trains_each_program_once_when_it_is_resumed(
    sandbox: Sandbox, tokens: ChatTokens
) -> None:
    stopped, resumed, sampler = _rollout(sandbox, tokens), _rollout(sandbox, tokens), _talker(tokens)
    cycles = _run(stopped, sampler, 5)
    resumed.window.load_state_dict(json.loads(json.dumps(stopped.window.state_dict())))
    cycles += [resumed.run(_plan(cycle, 9), sampler) for cycle in range(5, 9)]
    trained = [sum(row.role == "designer" for row in cycle.rows) for cycle in cycles]
    assert trained == [0, 0, 0, 6, 6, 0, 0, 0, 6]


def test_a_window_saved_and_loaded_goes_on_the_same(sandbox: Sandbox, tokens: ChatTokens) -> None:
    for at in (1, 2, 3, 5):
        whole, cut, resumed = (_rollout(sandbox, tokens) for _ in range(3))
        sampler = _talker(tokens)
        expected = _run(whole, sampler, 7)
        again = _talker(tokens)
        _run(cut, again, 7, plans=at)
        resumed.window.load_state_dict(json.loads(json.dumps(cut.window.state_dict())))
        rest = [resumed.run(_plan(cycle, 7), again) for cycle in range(at, 7)]
        assert [cycle.rows for cycle in rest] == [cycle.rows for cycle in expected[at:]]
        assert [[one.outcome for one in cycle.paid] for cycle in rest] == [
            [one.outcome for one in cycle.paid] for cycle in expected[at:]
        ]


def test_replays_stay_for_the_window(sandbox: Sandbox, tokens: ChatTokens) -> None:
    replays = tuple(record(index) for index in range(20, 30))
    rollout, sampler = _rollout(sandbox, tokens), _talker(tokens)
    cycles = [rollout.run(_plan(cycle, replays=replays[cycle:], reserved=2), sampler) for cycle in range(K)]
    assert len({tuple(sorted(one.record.id for one in cycle.played)) for cycle in cycles}) == 1
    assert {one.fresh for one in cycles[2].played} == {True, False}


class _Fails(HashDesigner):
    """Admits one program that raises in play."""

    def admit(self, text: str, prompt: DesignPrompt) -> Attempt:
        source = BROKEN.format(name="X", letters="etaoin", turns=2)
        found = EnvironmentRecord.create(source, "LetterXEnv", skill=prompt.skill)
        return Attempt(prompt.skill, "admitted", raw=text, source=source, record=found)


def test_a_program_that_failed_is_not_played_again(sandbox: Sandbox, tokens: ChatTokens) -> None:
    pay = Pay(penalties=Penalties(invalid=-0.25))
    cycles = _run(_rollout(sandbox, tokens, _Fails(), pay=pay), _talker(tokens), 6, plans=4)
    assert [len(cycle.played) for cycle in cycles] == [1, 0, 0, 1]
    assert {one.row.reward for one in cycles[3].paid} == {-0.25}
    assert {one.outcome.status for one in cycles[3].paid} == {"failed"}


def _window(*skills: str, rates: tuple[tuple[float, ...], ...]) -> Window:
    window = Window()
    for index, (skill, returns) in enumerate(zip(skills, rates)):
        found = EnvironmentRecord.create(record(index).source, record(index).name, skill=skill)
        window.environments[found.id] = Standing(found, True, [returns])
        row = Row("designer", skill, [1])
        window.pending.append(Written(row, Attempt(skill, "admitted", record=found), environment=found.id))
    window.rollouts = 1
    return window


def test_learning_potential_compares_with_the_skill() -> None:
    # skill a: win rates 1 and 0, mean 0.5; skill b: 0.5 alone. First window: the averages are the means themselves.
    window = _window("a", "a", "b", rates=((1.0, 1.0), (0.0, 0.0), (1.0, 0.0)))
    paid = window.settle(Pay("learning_potential"), ended=False)
    assert [one.row.reward for one in paid] == pytest.approx([0.5, 0.5, 0.0])
    assert window.slow == {"a": 0.5, "b": 0.5}
    # next window of skill a: win rate 1; slow 0.15 x 0.5 + 0.85 x 1 = 0.925, fast 0.02 x 0.5 + 0.98 x 1 = 0.99
    following = _window("a", rates=((1.0, 1.0),))
    following.slow, following.fast = window.slow, window.fast
    (one,) = following.settle(Pay("learning_potential"), ended=False)
    assert one.row.reward == pytest.approx(0.075)
    assert following.slow == pytest.approx({"a": 0.925, "b": 0.5})
    assert following.fast["a"] == pytest.approx(0.99)
    # gaps: 0.99 - 0.925 = 0.065 and 0; slow rates 0.925 and 0.5
    assert following.figures() == pytest.approx({"skill/fast_minus_slow": 0.0325, "skill/slow_win_rate": 0.7125})


def test_averages_are_those_of_all_ranks() -> None:
    windows = [_window("a", "b", rates=((1.0, 1.0), (0.0, 0.0))), _window("a", rates=((0.0, 0.0),)), Window()]
    found: list[Rates] = []
    for window in windows:  # what each brings
        window.gather = lambda mine: found.append(mine) or [mine]  # type: ignore[func-returns-value]
        window.settle(Pay(), ended=True)
    for window in windows:
        window.gather, window.slow, window.fast = (lambda _: found), {}, {}
        window.settle(Pay(), ended=True)
        assert window.slow == window.fast == {"a": 0.5, "b": 0.0}


def test_timeouts_and_quarantine_are_told_from_errors() -> None:
    for error, timed_out, quarantined in (
        ("timeout: 2 s", True, False),
        ("quarantined: 3 times", True, True),
        ("raised: x", False, False),
    ):
        window = _window("a", rates=((1.0, 0.0),))
        next(iter(window.environments.values())).errors.append(error)
        (one,) = window.settle(Pay(penalties=Penalties(-0.1, 0.0, -0.5, -0.7)), ended=False)
        assert (one.outcome.timed_out, one.outcome.quarantined) == (timed_out, quarantined)
        assert one.row.reward == (-0.7 if quarantined else -0.5 if timed_out else -0.1)
        assert designer_reward(Pay(), one.outcome) == (-0.5 if timed_out else 0.0)
