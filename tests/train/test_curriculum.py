"""Plans follow from the cycle, the rank and the memory, and from nothing else."""

from __future__ import annotations

import json
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


def _on_ranks(make: Any, worlds: list[int], cycles: int, each: Any) -> list[str]:
    """Run so many cycles on each number of ranks in turn, resumed from the state before, and return what was taken."""
    taken: list[str] = []
    state: dict[str, Any] | None = None
    for turn, world in enumerate(worlds):
        curriculum = make(world)
        if state is not None:
            curriculum.load_state_dict(state)
        done = turn * cycles
        for cycle in range(done, done + cycles):
            for rank in range(world):
                taken += each(curriculum.plan(cycle, rank, world, []))
        state = json.loads(json.dumps(curriculum.state_dict(done + cycles, world)))
    return taken


def test_a_run_resumed_on_another_number_of_ranks_goes_on_in_the_corpus() -> None:
    """Neither does a document come twice nor is one left out, whatever ranks and documents a rank there are."""

    def make(world: int) -> SelfPlayCurriculum:
        return SelfPlayCurriculum(Documents(), ("a", "b", "c"), CurriculumConfig(4 // world, 6, 2, 20, 5))

    drawn = _on_ranks(make, [1, 2, 4, 1], 3, lambda plan: [design.document.id for design in plan.designs])
    assert drawn == [f"d{index}" for index in range(4 * 12)]
    drawn = _on_ranks(lambda _: _curriculum(), [1, 3, 2], 2, lambda plan: [one.document.id for one in plan.designs])
    assert drawn == [f"d{index}" for index in range(2 * 2 * (1 + 3 + 2))]


def test_a_run_resumed_between_windows_goes_on_in_the_corpus() -> None:
    state = _windows(window=3).state_dict(5, 2)  # the second window of two ranks has begun
    curriculum = _windows(window=3)
    curriculum.load_state_dict(state)
    assert [one.document.id for one in curriculum.plan(6, 0, 1, []).designs] == ["d8", "d9"]


def test_a_run_resumed_on_another_number_of_ranks_goes_on_in_the_pool() -> None:
    pool = [record(index) for index in range(12)]
    played = _on_ranks(
        lambda _: PoolCurriculum(pool, 2, seed=1), [1, 2], 2, lambda plan: [one.id for one in plan.replays[:2]]
    )
    assert len(played) == len(pool)
    assert set(played) == {one.id for one in pool}


def test_a_checkpoint_that_says_no_position_is_one_of_as_many_ranks() -> None:
    state = {name: value for name, value in _curriculum().state_dict(2, 2).items() if name != "position"}
    curriculum = _curriculum()
    curriculum.load_state_dict(state)
    assert curriculum.plan(2, 1, 2, []) == _curriculum().plan(2, 1, 2, [])


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
    seen = [one.id for cycle in range(3) for one in curriculum.plan(cycle, 0, 1, []).replays[:2]]
    assert sorted(seen) == sorted(one.id for one in pool)
    assert not curriculum.plan(0, 0, 1, []).designs
    with pytest.raises(ValueError, match="no environment"):
        PoolCurriculum([], 2, seed=1)


def test_a_cycle_that_reaches_into_the_next_round_of_a_pool_plays_no_environment_twice() -> None:
    """It would be played once, and its second place be lost."""
    curriculum = PoolCurriculum([record(index) for index in range(5)], 3, seed=1)
    for cycle in range(20):
        assert len({one.id for one in curriculum.plan(cycle, 0, 1, []).replays[:3]}) == 3


def test_all_others_of_a_pool_stand_by_for_those_that_cannot_be_opened() -> None:
    curriculum = PoolCurriculum([record(index) for index in range(7)], 2, seed=1)
    for rank in range(2):
        replays = [one.id for one in curriculum.plan(0, rank, 2, []).replays]
        assert len(replays) == len(set(replays)) == 7
        following = [one.id for one in curriculum.plan(1, rank, 2, []).replays[:2]]
        assert replays[2] in following


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
