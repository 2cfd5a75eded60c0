"""Plans follow from the cycle, the rank and the memory, and from nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from doubles import Documents, record

from spade_envs.record import EnvironmentRecord, PlayStatistics
from spade_train.curriculum import CurriculumConfig, PoolCurriculum, ResumeError, SelfPlayCurriculum, mixed


def _played(index: int, wins: int, plays: int) -> EnvironmentRecord:
    return record(index).with_statistics(PlayStatistics(plays, float(wins), wins))


def _curriculum(seed: int = 5, reserved: int = 2) -> SelfPlayCurriculum:
    return SelfPlayCurriculum(Documents(), ("a", "b", "c"), CurriculumConfig(2, 6, reserved, 20, seed))


def test_ranks_work_on_different_documents_and_skills_rotate() -> None:
    plans = [_curriculum().plan(cycle, rank, 2, []) for cycle in range(2) for rank in range(2)]
    documents = [design.document.id for plan in plans for design in plan.designs]
    assert documents == [f"d{index}" for index in range(8)]
    assert [design.skill for plan in plans for design in plan.designs] == ["a", "b", "c", "a", "b", "c", "a", "b"]
    assert len({plan.seed for plan in plans}) == 4


def test_replays_come_from_the_learnable_part() -> None:
    memory = [_played(0, 0, 10), _played(1, 5, 10), _played(2, 10, 10), _played(3, 4, 8), _played(4, 12, 24), record(5)]
    plan = _curriculum().plan(0, 0, 1, memory)
    assert {one.id for one in plan.replays} == {memory[1].id, memory[3].id}
    assert plan == _curriculum().plan(0, 0, 1, memory)
    shares = [_curriculum().plan(0, rank, 2, memory).replays for rank in range(2)]
    assert {one.id for share in shares for one in share} == {memory[1].id, memory[3].id}
    assert not _curriculum(reserved=0).plan(0, 0, 1, memory).replays


def _windows(**sizes: Any) -> SelfPlayCurriculum:
    return SelfPlayCurriculum(Documents(), ("a", "b", "c", "d", "e"), CurriculumConfig(2, 6, 2, 20, 5, **sizes))


def test_documents_are_drawn_in_the_first_rollout_of_a_window() -> None:
    plans = [_windows(window=3, cycles=7).plan(cycle, 0, 1, []) for cycle in range(7)]
    drawn = [[design.document.id for design in plan.designs] for plan in plans]
    assert drawn == [["d0", "d1"], [], [], ["d2", "d3"], [], [], ["d4", "d5"]]
    assert [plan.phase for plan in plans] == [0, 1, 2, 0, 1, 2, 0]
    assert [plan.last for plan in plans] == [False] * 6 + [True]
    assert len({plan.seed for plan in plans}) == 7


def test_active_skills_go_round_robin_and_all_ranks_work_on_them() -> None:
    curriculum = _windows(window=2, active_skills=3)
    seen = [
        [design.skill for rank in range(3) for design in curriculum.plan(2 * window, rank, 3, []).designs]
        for window in range(3)
    ]
    # six documents of three ranks, two for each of the three active skills; five skills in turn
    assert seen == [["a", "b", "c"] * 2, ["d", "e", "a"] * 2, ["b", "c", "d"] * 2]


def test_retired_environments_are_not_replayed() -> None:
    memory = [_played(1, 5, 10), _played(3, 4, 8)]
    plan = _curriculum().plan(0, 0, 1, memory, {memory[0].id: "stagnant"})
    assert [one.id for one in plan.replays] == [memory[1].id]


def test_a_share_of_the_replays_is_easy() -> None:
    memory = [_played(index, 5, 10) for index in range(6)] + [_played(index, 10, 10) for index in range(6, 12)]
    easy = {one.id for one in memory[6:]}
    retired = {one.id: "mastered" for one in memory[6:]}
    replays = _windows(easy_share=0.5).plan(0, 0, 1, memory, retired).replays
    assert [one.id in easy for one in replays] == [False, True] * 3
    assert not {one.id for one in _windows().plan(0, 0, 1, memory, retired).replays} & easy
    # without anything learnable, no more than their share of the places
    assert len(_windows(easy_share=0.5).plan(0, 0, 1, memory[6:], retired).replays) == 3


def test_mixed_keeps_the_share_from_the_beginning() -> None:
    hard, easy = [record(index) for index in range(9)], [record(index) for index in range(10, 13)]
    assert [one in easy for one in mixed(hard, easy, 0.25)] == [False, False, False, True] * 3
    assert mixed(hard, [], 0.5) == hard


def test_pool_is_played_without_repeats() -> None:
    pool = [record(index) for index in range(6)]
    curriculum = PoolCurriculum(pool, 2, seed=1)
    seen = [one.id for cycle in range(3) for one in curriculum.plan(cycle, 0, 1, []).replays]
    assert sorted(seen) == sorted(one.id for one in pool)
    assert not curriculum.plan(0, 0, 1, []).designs
    with pytest.raises(ValueError, match="no environment"):
        PoolCurriculum([], 2, seed=1)


def test_a_cycle_that_reaches_into_the_next_round_of_a_pool_plays_no_environment_twice() -> None:
    """It would be played once, and its second place be lost."""
    curriculum = PoolCurriculum([record(index) for index in range(5)], 3, seed=1)
    for cycle in range(20):
        assert len({one.id for one in curriculum.plan(cycle, 0, 1, []).replays}) == 3


def test_a_pool_smaller_than_a_cycle_is_played_whole_and_said(caplog: pytest.LogCaptureFixture) -> None:
    pool = [record(index) for index in range(3)]
    curriculum = PoolCurriculum([*pool, pool[0]], 8, seed=1)
    assert "holds 3 environments, fewer than the 8" in caplog.text
    for cycle in range(4):
        replays = curriculum.plan(cycle, 0, 1, []).replays
        assert sorted(one.id for one in replays) == sorted(one.id for one in pool)


def test_resume_refuses_another_run() -> None:
    state = _curriculum(seed=5).state_dict()
    _curriculum(seed=5).load_state_dict(state)
    with pytest.raises(ResumeError, match="another seed"):
        _curriculum(seed=6).load_state_dict(state)
    old = {name: value for name, value in state.items() if name not in ("window", "active_skills")}
    _curriculum(seed=5).load_state_dict(old)  # of a checkpoint before there were windows
    with pytest.raises(ResumeError, match="another window"):
        _windows(window=4).load_state_dict(_windows().state_dict())
    with pytest.raises(ResumeError, match="another pool"):
        PoolCurriculum([record(1)], 1, 5).load_state_dict({"seed": 5, "pool": "x"})
