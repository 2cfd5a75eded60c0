"""Conversations of a policy with environments, as rows: sampled turns and observations are only ever appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.play import Episode, StopReason, advance_episodes, stop_episodes
from spade_train.cycle import Sample
from spade_train.engine import Engine, TurnRequest
from spade_train.rows import Row
from spade_train.tokens import ChatTokens

if TYPE_CHECKING:
    from spade_envs.sandbox import Sandbox


def converse(
    pairs: Sequence[tuple[Episode, Row]], engine: Engine, tokens: ChatTokens, sandbox: Sandbox, context_tokens: int
) -> None:
    """Play all episodes to their end.

    Args:
        pairs: started episodes, each with the row that holds its prompt; both are brought up to date.
        engine: samples the turns.
        tokens: renders observations.
        sandbox: the one that opened the programs.
        context_tokens: most ids of a row. An episode whose next turn may not fit stops with ``CONTEXT_LIMIT``.
    """
    keys = [key for key, (episode, _) in enumerate(pairs) if episode.stop is None]
    running = len(keys) - _submit(pairs, [(key, []) for key in keys], engine, sandbox, context_tokens)
    while engine.busy(running):
        finished = engine.collect()
        answered = _step(pairs, finished, tokens, sandbox)
        running -= len(finished) - len(answered)
        running -= _submit(pairs, answered, engine, sandbox, context_tokens)


def _step(
    pairs: Sequence[tuple[Episode, Row]], finished: Sequence[tuple[int, Sample]], tokens: ChatTokens, sandbox: Sandbox
) -> list[tuple[int, list[int]]]:
    """Hand finished turns to the programs; return the keys of those that go on, with the ids of the observations."""
    replies = []
    for key, sample in finished:
        episode, row = pairs[key]
        row.sampled(sample.ids, sample.logprobs)
        replies.append((episode, tokens.decode(sample.ids), len(sample.ids)))
    advance_episodes(sandbox, replies)
    going = []
    for key, _ in finished:
        episode, row = pairs[key]
        if episode.stop is None:
            closed = bool(row.completion_ids) and row.completion_ids[-1] == tokens.eos
            going.append((key, tokens.observation(episode.messages[-1]["content"], closed=closed)))
    return going


def _submit(
    pairs: Sequence[tuple[Episode, Row]],
    turns: Sequence[tuple[int, list[int]]],
    engine: Engine,
    sandbox: Sandbox,
    context_tokens: int,
) -> int:
    """Append observations and ask for the next turns where they fit; return how many episodes stopped instead."""
    requests, full = [], []
    for key, observation in turns:
        episode, row = pairs[key]
        length = len(row.prompt_ids) + len(row.completion_ids) + len(observation)
        if length + episode.remaining_tokens > context_tokens:
            full.append(episode)
            continue
        row.given(observation)
        requests.append(TurnRequest(key, row.context, episode.remaining_tokens, turn=episode.turns))
    stop_episodes(sandbox, full, StopReason.CONTEXT_LIMIT)
    engine.submit(requests)
    return len(full)
