"""Many episodes, a bounded number at a time: a finished episode's place is taken at once by the next task."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spade_envs.episode import Episode, PlayConfig, PlayTask, StopReason
from spade_envs.play import Player, start_episodes, stop_episodes, take_turn

if TYPE_CHECKING:
    from spade_envs.sandbox import Sandbox


def stream_episodes(
    player: Player, tasks: Iterable[PlayTask], sandbox: Sandbox, config: PlayConfig, *, width: int
) -> Iterator[tuple[int, Episode]]:
    """Play ``tasks`` and yield (index of the task, stopped episode) as episodes stop.

    Tasks are taken when there is room for them. Where the player's replies are a function of the episodes asked
    about, so is the whole stream.

    Args:
        player: gives the replies.
        tasks: what to play.
        sandbox: the one that opened the programs.
        config: budgets, prompts, return mode.
        width: most episodes that run at once.

    Raises:
        ValueError: if ``width`` is less than 1. ModelError: if the player's model cannot be used as a whole.
    """
    if width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    waiting = enumerate(tasks)
    running: list[tuple[int, Episode]] = []
    try:
        while True:
            new = list(itertools.islice(waiting, width - len(running)))
            episodes = start_episodes(sandbox, [task for _, task in new], config)
            running += zip((index for index, _ in new), episodes, strict=True)
            if not running:
                return
            take_turn(player, [episode for _, episode in running if episode.stop is None], sandbox, config)
            stopped = [pair for pair in running if pair[1].stop is not None]
            running = [pair for pair in running if pair[1].stop is None]
            yield from stopped
    finally:  # the reader went away, or the player failed: sessions are not left behind
        stop_episodes(sandbox, [episode for _, episode in running], StopReason.MODEL_ERROR, "interrupted")
