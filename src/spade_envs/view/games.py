"""Episodes that a person plays in the browser: one program and one conversation each, in the sandbox."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from spade_envs.batching import own_hints
from spade_envs.episode import Episode, PlayConfig, PlayTask, StopReason
from spade_envs.play import advance_episodes, start_episodes, stop_episodes
from spade_envs.record import EnvironmentRecord

if TYPE_CHECKING:
    from spade_envs.sandbox import Program, Sandbox

MOST_GAMES = 24
"""Episodes kept; the one that was not looked at for longest is closed for a new one."""
LONGEST_REPLY = 100_000
"""Characters of one reply."""


@dataclass(slots=True)
class Game:
    """One episode under way or ended."""

    id: str
    record: EnvironmentRecord
    program: Program
    episode: Episode
    lock: threading.Lock = field(default_factory=threading.Lock)


class UnknownGame(LookupError):
    """No episode of this id is kept; begin a new one."""


class Games:
    """The episodes of one server. Threads may share it."""

    def __init__(self, sandbox: Sandbox, config: PlayConfig | None = None) -> None:
        """Play in ``sandbox``; ``config`` holds the budgets (by default as on the command line)."""
        self.sandbox = sandbox
        self._config = config or PlayConfig(episode_tokens=10**9)  # a person's characters are no tokens
        self._games: OrderedDict[str, Game] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, record: EnvironmentRecord, seed: int, *, hinted: bool) -> Game:
        """Begin an episode.

        Raises:
            ProgramError: the program cannot be loaded. SandboxError: the machinery failed. ValueError: a hint is
                wanted and there is none.
        """
        program = self.sandbox.open(record.source, allow=record.allow)
        try:
            hint = record.hint or own_hints(self.sandbox, [(program, seed)])[0] if hinted else None
            if hinted and not hint:
                raise ValueError(f"{record.env_id} has no hint: none is stored, and its program offers none")
            task = PlayTask(program, seed, hint=hint, key=record.id)
            config = replace(self._config, max_turns=record.max_turns or self._config.max_turns)
            (episode,) = start_episodes(self.sandbox, [task], config)
        except BaseException:
            program.close()
            raise
        game = Game(secrets.token_urlsafe(9), record, program, episode)
        with self._lock:
            self._games[game.id] = game
            surplus = [self._games.popitem(last=False)[1] for _ in range(len(self._games) - MOST_GAMES)]
        for old in surplus:
            self._close(old)
        if episode.stop:
            program.close()
        return game

    def get(self, id: str) -> Game:
        """Return the game called ``id``.

        Raises:
            UnknownGame: it was closed, or never was.
        """
        with self._lock:
            if id not in self._games:
                raise UnknownGame(f"no episode {id!r} is open here; begin a new one")
            self._games.move_to_end(id)
            return self._games[id]

    def reply(self, id: str, text: str) -> Game:
        """Hand a reply to the program; a game that has ended stays as it is.

        Raises:
            UnknownGame: it was closed. ValueError: the reply is too long. SandboxError: the machinery failed.
        """
        if len(text) > LONGEST_REPLY:
            raise ValueError(f"a reply has at most {LONGEST_REPLY:,} characters, got {len(text):,}")
        game = self.get(id)
        with game.lock:
            if game.episode.stop is None and not game.program.closed:
                advance_episodes(self.sandbox, [(game.episode, text, 0)])
                if game.episode.stop is not None:
                    game.program.close()
        return game

    def statement(self, record: EnvironmentRecord, seed: int) -> Episode:
        """Return an episode that was begun for its first observation and stopped at once.

        Raises:
            ProgramError: the program cannot be loaded. SandboxError: the machinery failed.
        """
        program = self.sandbox.open(record.source, allow=record.allow)
        try:
            (episode,) = start_episodes(self.sandbox, [PlayTask(program, seed, key=record.id)], self._config)
            stop_episodes(self.sandbox, [episode], StopReason.TURN_LIMIT)
            return episode
        finally:
            program.close()

    def close(self) -> None:
        """Stop all episodes."""
        with self._lock:
            games, self._games = list(self._games.values()), OrderedDict()
        for game in games:
            self._close(game)

    def _close(self, game: Game) -> None:
        with game.lock:
            if game.episode.stop is None:
                game.episode.stop, game.episode.error = StopReason.MODEL_ERROR, "the episode was closed"
            game.program.close()
