"""Conversations of a policy with environments, as rows: sampled turns and observations are only ever appended."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from spade_envs.play import Episode, StopReason, advance_episodes, stop_episodes
from spade_train.cycle import Sample
from spade_train.engine import Engine, TurnRequest
from spade_train.rows import Row
from spade_train.tokens import ChatTokens

if TYPE_CHECKING:
    from spade_envs.sandbox import Sandbox

_Finished = Sequence[tuple[int, Sample]]
_Answered = list[tuple[int, list[int]]]  # key and ids of the observation


def converse(
    pairs: Sequence[tuple[Episode, Row]], engine: Engine, tokens: ChatTokens, sandbox: Sandbox, context_tokens: int
) -> None:
    """Play all episodes to their end.

    Finished turns are answered while the engine goes on with the others; with ``engine.lag`` set, the answers are
    taken up that many model steps later, however long the environments took, so that the same run gives the same
    batches.

    Args:
        pairs: started episodes, each with the row that holds its prompt; both are brought up to date.
        engine: samples the turns.
        tokens: renders observations.
        sandbox: the one that opened the programs.
        context_tokens: most ids of a row. An episode whose next turn may not fit stops with ``CONTEXT_LIMIT``.
    """
    talk = _Conversations(pairs, engine, tokens, sandbox, context_tokens)
    if engine.lag:
        with ThreadPoolExecutor(1, "environments") as thread:
            _overlapped(talk, engine, thread)
    else:
        while engine.busy(talk.running):
            finished = engine.collect()
            talk.go_on(finished, talk.answer(finished))


def _overlapped(talk: _Conversations, engine: Engine, thread: ThreadPoolExecutor) -> None:
    waiting: deque[tuple[int, _Finished, Future[_Answered]]] = deque()  # when it is due, for what, the answer
    while engine.busy(talk.running):
        if not waiting or waiting[0][0] > engine.steps:
            finished: _Finished = engine.collect(waiting[0][0] - engine.steps if waiting else 0)
            if finished:
                waiting.append((engine.steps + engine.lag, finished, thread.submit(talk.answer, finished)))
                continue
            if not waiting:
                raise RuntimeError(f"the engine runs no turn, and {talk.running} conversations wait for one")
        _, finished, answer = waiting.popleft()
        talk.go_on(finished, answer.result())


class _Conversations:
    """Episodes and their rows, by key: the index in ``pairs``."""

    def __init__(
        self,
        pairs: Sequence[tuple[Episode, Row]],
        engine: Engine,
        tokens: ChatTokens,
        sandbox: Sandbox,
        context_tokens: int,
    ) -> None:
        self._pairs, self._engine, self._tokens = pairs, engine, tokens
        self._sandbox, self._context_tokens = sandbox, context_tokens
        keys = [key for key, (episode, _) in enumerate(pairs) if episode.stop is None]
        self.running = len(keys)
        self._submit([(key, []) for key in keys])

    def answer(self, finished: _Finished) -> _Answered:
        """Hand finished turns to the programs; return the keys of those that go on, with their observations."""
        replies = []
        for key, sample in finished:
            episode, row = self._pairs[key]
            row.sampled(sample.ids, sample.logprobs)
            replies.append((episode, self._tokens.decode(sample.ids), len(sample.ids)))
        advance_episodes(self._sandbox, replies)
        going = []
        for key, _ in finished:
            episode, row = self._pairs[key]
            if episode.stop is None:
                closed = bool(row.completion_ids) and row.completion_ids[-1] == self._tokens.eos
                going.append((key, self._tokens.observation(episode.messages[-1]["content"], closed=closed)))
        return going

    def go_on(self, finished: _Finished, answered: _Answered) -> None:
        """Let the engine forget what has ended, and ask for the next turns."""
        going = {key for key, _ in answered}
        ended = [key for key, _ in finished if key not in going]
        self.running -= len(ended)
        self._engine.release(ended)
        self._submit(answered)

    def _submit(self, turns: _Answered) -> None:
        """Append observations and ask for the next turns where they fit; the other episodes stop."""
        requests, full = [], []
        for key, observation in turns:
            episode, row = self._pairs[key]
            length = len(row.prompt_ids) + len(row.completion_ids) + len(observation)
            if length + episode.remaining_tokens > self._context_tokens:
                full.append(key)
                continue
            row.given(observation)
            requests.append(TurnRequest(key, row.context, episode.remaining_tokens, turn=episode.turns))
        stop_episodes(self._sandbox, [self._pairs[key][0] for key in full], StopReason.CONTEXT_LIMIT)
        self.running -= len(full)
        self._engine.release(full)
        self._engine.submit(requests)
