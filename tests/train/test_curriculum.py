"""Plans follow from the cycle, the rank and the memory, and from nothing else."""

from __future__ import annotations

import pytest
from doubles import Documents, record

from spade_envs.record import EnvironmentRecord, PlayStatistics
from spade_train.curriculum import CurriculumConfig, PoolCurriculum, ResumeError, SelfPlayCurriculum


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


def test_pool_is_played_without_repeats() -> None:
    pool = [record(index) for index in range(6)]
    curriculum = PoolCurriculum(pool, 2, seed=1)
    seen = [one.id for cycle in range(3) for one in curriculum.plan(cycle, 0, 1, []).replays]
    assert sorted(seen) == sorted(one.id for one in pool)
    assert not curriculum.plan(0, 0, 1, []).designs
    with pytest.raises(ValueError, match="no environment"):
        PoolCurriculum([], 2, seed=1)


def test_resume_refuses_another_run() -> None:
    state = _curriculum(seed=5).state_dict()
    _curriculum(seed=5).load_state_dict(state)
    with pytest.raises(ResumeError, match="another seed"):
        _curriculum(seed=6).load_state_dict(state)
    with pytest.raises(ResumeError, match="another pool"):
        PoolCurriculum([record(1)], 1, 5).load_state_dict({"seed": 5, "pool": "x"})
