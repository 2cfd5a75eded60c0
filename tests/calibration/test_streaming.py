"""A bounded number of episodes at a time, places refilled at once, nothing left behind."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from calibration_programs import WALK

from spade_envs.episode import Episode, PlayConfig, PlayTask
from spade_envs.play import Reply, play_episodes
from spade_envs.sandbox import Sandbox
from spade_envs.streaming import stream_episodes


class Walker:
    name = "walker"

    def __init__(self, *, fail_at: int = 0) -> None:
        self.asked: list[int] = []
        self._fail_at = fail_at

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        self.asked.append(len(episodes))
        if self._fail_at == len(self.asked):
            raise RuntimeError("the player is gone")
        return [Reply("go", tokens=1) for _ in episodes]


def test_every_task_is_played_as_if_alone(sandbox: Sandbox) -> None:
    program = sandbox.open(WALK)
    tasks = [PlayTask(program, seed) for seed in range(12)]
    alone = [episode.to_dict() for episode in play_episodes(Walker(), tasks, sandbox, PlayConfig())]
    walker = Walker()
    streamed = dict(stream_episodes(walker, iter(tasks), sandbox, PlayConfig(), width=3))
    assert [streamed[index].to_dict() for index in range(12)] == alone
    steps = sum(episode["turns"] for episode in alone)
    assert sum(walker.asked) == steps
    # A place is never empty while tasks wait: all requests but the last few are full.
    assert max(walker.asked) == 3
    assert walker.asked.count(3) >= (steps - 2 * 5) // 3
    program.close()


def test_a_tasks_own_turn_limit_bounds_it(sandbox: Sandbox) -> None:
    program = sandbox.open(WALK)
    tasks = [PlayTask(program, seed, max_turns=2) for seed in range(8)]
    episodes = [episode for _, episode in stream_episodes(Walker(), tasks, sandbox, PlayConfig(), width=8)]
    assert max(episode.turns for episode in episodes) == 2
    assert {str(episode.stop) for episode in episodes} == {"terminated", "turn_limit"}
    program.close()


def test_a_failing_player_leaves_no_session(sandbox: Sandbox) -> None:
    program = sandbox.open(WALK)
    tasks = [PlayTask(program, seed) for seed in range(4)]
    with pytest.raises(RuntimeError, match="gone"):
        list(stream_episodes(Walker(fail_at=2), tasks, sandbox, PlayConfig(), width=4))
    program.close()


def test_width_must_leave_room(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="width"):
        next(stream_episodes(Walker(), [], sandbox, PlayConfig(), width=0))
