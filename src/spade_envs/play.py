"""Episodes as conversations: what is said, what it earns, and why it stops.

An :class:`Episode` is a state machine without a model inside: :func:`start_episodes` resets the programs,
:func:`advance_episodes` hands replies to them. Whoever samples the replies (a chat model, a scripted player, the
trainer's own sampler) calls these two; :func:`play_episodes` is that loop for players. All episodes of a call
advance together, in one round trip to the sandbox.

The text of a reply is handed to ``step`` unchanged but for the thoughts of thinking models, which stay in the
conversation alone: programs take ``\\boxed{…}``, ``<answer>`` and ``<tool_call>`` apart themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from spade_envs.batching import describe, run_operations
from spade_envs.episode import (
    HINT_TEMPLATE,
    Episode,
    PlayConfig,
    PlayStep,
    PlayTask,
    StopReason,
)
from spade_envs.models.base import ChatModel, Completion, ModelError, Sampling, ToolModel
from spade_envs.returns import ReturnMode, clip_reward, episode_return
from spade_envs.sandbox.types import (
    Operation,
    Outcome,
    ProgramDied,
    ProgramError,
    ProgramQuarantined,
    ProgramTimeout,
    StepResult,
)
from spade_envs.source_text.thoughts import without_thoughts
from spade_envs.tool_calls import NativeTurn, assistant_message, observation_messages

if TYPE_CHECKING:
    from spade_envs.sandbox import Sandbox

__all__ = [
    "HINT_TEMPLATE",
    "Episode",
    "ModelPlayer",
    "PlayConfig",
    "PlayStep",
    "PlayTask",
    "Player",
    "Reply",
    "ReturnMode",
    "StopReason",
    "advance_episodes",
    "episode_return",
    "play_episodes",
    "start_episodes",
    "stop_episodes",
    "take_turn",
]

TOOLS_TEMPLATE = (
    "You can call these functions; each line is the JSON schema of one:\n<tools>\n{tools}\n</tools>\n"
    "To call a function, write a JSON object with its name and arguments between tags:\n"
    '<tool_call>\n{"name": "function_name", "arguments": {"argument": "value"}}\n</tool_call>'
)
"""Appended to the system prompt where a program offers tools; ``{tools}`` is replaced."""


class Reply(NamedTuple):
    """What a player says. ``error`` set means that there is no reply and the episode stops."""

    text: str
    tokens: int = 0
    prompt_tokens: int = 0
    error: str = ""
    turn: NativeTurn | None = None  # where tools were offered natively; its action is the text


class Player(Protocol):
    """Anything that plays episodes."""

    @property
    def name(self) -> str:
        """A short name for transcripts and logs."""
        ...

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        """Return one reply for each of these running episodes."""
        ...


def start_episodes(sandbox: Sandbox, tasks: Sequence[PlayTask], config: PlayConfig) -> list[Episode]:
    """Make and reset one session for each task; the hint goes into the first observation only.

    A program that fails here gives an episode that has stopped with ``PROGRAM_ERROR``.
    """
    episodes = [Episode(task, _bounded(config, task.max_turns), task.program.new_session_number()) for task in tasks]
    requests = []
    for episode in episodes:
        program, session = episode.task.program, episode.session
        requests.append((program, Operation("make", session, dict(episode.task.arguments))))
        requests.append((program, Operation("reset", session, episode.task.seed)))
        requests.append((program, Operation("tools", session)))
    outcomes = run_operations(sandbox, requests)
    for index, episode in enumerate(episodes):
        _begin(episode, outcomes[3 * index : 3 * index + 3])
    _close(sandbox, [episode for episode in episodes if episode.stop])
    return episodes


@lru_cache(maxsize=64)
def _bounded(config: PlayConfig, max_turns: int) -> PlayConfig:
    """The configuration with a task's own turn limit: one object for equal limits, so that episodes share it."""
    return config if max_turns in (0, config.max_turns) else replace(config, max_turns=max_turns)


def _begin(episode: Episode, outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.error is not None:
            _fail(episode, outcome.error)
            return
    _, reset, tools = outcomes
    episode.observation, episode.info = reset.value
    episode.tools = list(tools.value or [])
    config, hint = episode.config, episode.task.hint
    system = config.system_prompt
    if episode.tools and config.tools == "text":
        listing = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in episode.tools)
        system = f"{system}\n\n{TOOLS_TEMPLATE.replace('{tools}', listing)}".lstrip()
    if system:
        episode.messages.append({"role": "system", "content": system})
    first = episode.observation + (config.hint_template.replace("{hint}", hint) if hint else "")
    episode.messages.append({"role": "user", "content": first})


def advance_episodes(
    sandbox: Sandbox,
    replies: Sequence[tuple[Episode, str, int]],
    turns: Sequence[NativeTurn | None] | None = None,
) -> None:
    """Hand replies to the programs, all in one round trip, and bring the episodes up to date.

    Args:
        sandbox: the one that opened the programs.
        replies: running episodes, each with the text of its reply and the number of tokens of that text.
        turns: for each reply, its calls where tools were offered natively.

    Raises:
        ValueError: if an episode has stopped already.
    """
    for episode, _, _ in replies:
        if episode.stop is not None:
            raise ValueError(f"expected running episodes, got one that stopped by {episode.stop}")
    actions = [_action(text) for _, text, _ in replies]
    requests = [
        (episode.task.program, Operation("step", episode.session, action))
        for (episode, _, _), action in zip(replies, actions, strict=True)
    ]
    outcomes = run_operations(sandbox, requests)
    native = turns or [None] * len(replies)
    for (episode, text, tokens), action, outcome, turn in zip(replies, actions, outcomes, native, strict=True):
        episode.tokens += tokens
        episode.messages.append(assistant_message(text, turn))
        if outcome.error is not None:
            _fail(episode, outcome.error)
        else:
            _take(episode, action, outcome.value, turn)
    _close(sandbox, [episode for episode, _, _ in replies if episode.stop])


def _action(text: str) -> str:
    """Return what the program gets of a reply: all of it, or what comes after the thoughts."""
    answer = without_thoughts(text)
    return text if answer == text else answer.lstrip("\n")


def _take(episode: Episode, action: str, result: StepResult, turn: NativeTurn | None) -> None:
    step = PlayStep(action, *result)._replace(reward=clip_reward(result.reward))
    episode.steps.append(step)
    config = episode.config
    if step.terminated:
        episode.stop = StopReason.TERMINATED
    elif step.truncated:
        episode.stop = StopReason.TRUNCATED
    elif episode.turns >= config.max_turns:
        episode.stop = StopReason.TURN_LIMIT
    elif episode.tokens >= config.episode_tokens:
        episode.stop = StopReason.TOKEN_BUDGET
    else:
        episode.messages.extend(observation_messages(step.observation, turn))


def stop_episodes(sandbox: Sandbox, episodes: Iterable[Episode], reason: StopReason, error: str = "") -> None:
    """Stop running episodes from outside (context full, no reply) and release their sessions."""
    running = [episode for episode in episodes if episode.stop is None]
    for episode in running:
        episode.stop, episode.error = reason, error
    _close(sandbox, running)


def _fail(episode: Episode, error: ProgramError) -> None:
    episode.stop = StopReason.PROGRAM_ERROR
    episode.error = describe(error)
    episode.lost = isinstance(error, (ProgramDied, ProgramTimeout, ProgramQuarantined))


def play_episodes(
    player: ChatModel | Player,
    tasks: Sequence[PlayTask],
    sandbox: Sandbox,
    config: PlayConfig,
    sampling: Sampling | None = None,
) -> list[Episode]:
    """Play all ``tasks`` in lock step: in every turn all running episodes get their replies in one call.

    Args:
        player: a chat model or any other player.
        tasks: the episodes to play.
        sandbox: the one that opened the programs.
        config: budgets, prompts, return mode.
        sampling: for chat models; ``max_tokens`` is bounded by the budgets of ``config``, the seed moves on with
            every turn.

    Returns:
        The stopped episodes, in the order of ``tasks``.

    Raises:
        ModelError: if the model as a whole cannot be used.
    """
    if isinstance(player, ChatModel):
        player = ModelPlayer(player, sampling)
    episodes = start_episodes(sandbox, tasks, config)
    while running := [episode for episode in episodes if episode.stop is None]:
        take_turn(player, running, sandbox, config)
    return episodes


def take_turn(player: Player, running: Sequence[Episode], sandbox: Sandbox, config: PlayConfig) -> None:
    """Ask ``player`` for one reply to each of these running episodes, and hand the replies to the programs."""
    if not running:
        return
    answered = []
    for episode, reply in zip(running, player.replies(running), strict=True):
        if reply.error:
            stop_episodes(sandbox, [episode], StopReason.MODEL_ERROR, reply.error)
        else:
            answered.append((episode, reply))
    replies = [(episode, reply.text, reply.tokens) for episode, reply in answered]
    advance_episodes(sandbox, replies, [reply.turn for _, reply in answered])
    for episode, reply in answered:
        episode.context = reply.prompt_tokens + reply.tokens
    full = [episode for episode, _ in answered if 0 < config.context_tokens <= episode.context]
    stop_episodes(sandbox, full, StopReason.CONTEXT_LIMIT)


class ModelPlayer:
    """A chat model as a player."""

    def __init__(self, model: ChatModel, sampling: Sampling | None = None) -> None:
        self.model, self.sampling = model, sampling or Sampling()

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        """Ask for all replies in one call; episodes near the end of their budget get a call with fewer tokens."""
        by_length: dict[int, list[int]] = {}
        for index, episode in enumerate(episodes):
            length = min(self.sampling.max_tokens, episode.remaining_tokens)
            by_length.setdefault(length, []).append(index)
        replies: dict[int, Reply] = {}
        for length, indices in by_length.items():
            seed = self.sampling.seed + episodes[indices[0]].turns
            sampling = Sampling(length, self.sampling.temperature, self.sampling.top_p, seed)
            replies.update(zip(indices, self._ask([episodes[index] for index in indices], sampling), strict=True))
        return [replies[index] for index in range(len(episodes))]

    def _ask(self, episodes: Sequence[Episode], sampling: Sampling) -> list[Reply]:
        conversations = [episode.messages for episode in episodes]
        native = [episode.config.tools == "native" and bool(episode.tools) for episode in episodes]
        if not any(native):
            return [_reply(completion) for completion in self.model.complete(conversations, sampling)]
        if not isinstance(self.model, ToolModel) or not self.model.native_tools:
            raise ModelError(f"model {self.model.name} cannot be offered tools natively: play with tools='text'")
        offered = [episode.tools if is_native else [] for episode, is_native in zip(episodes, native, strict=True)]
        completions = self.model.complete(conversations, sampling, tools=offered)
        return [
            _native_reply(completion) if is_native else _reply(completion)
            for completion, is_native in zip(completions, native, strict=True)
        ]


def _reply(completion: Completion) -> Reply:
    return Reply(completion.text, completion.completion_tokens, completion.prompt_tokens, completion.error)


def _native_reply(completion: Completion) -> Reply:
    turn = NativeTurn(completion.text, completion.tool_calls)
    return _reply(completion)._replace(text=turn.action, turn=turn)


def _close(sandbox: Sandbox, episodes: Sequence[Episode]) -> None:
    """Close the sessions of stopped episodes, except where the worker is gone and closing would start a new one."""
    requests = [(e.task.program, Operation("close", e.session)) for e in episodes if not e.lost]
    run_operations(sandbox, requests)
