"""What a generated program must offer, and the base classes it may use without importing them.

A program defines one class whose name ends in ``Env`` (the last one, if several)::

    reset(seed=None) -> (observation: str, info: dict)
    step(action: str) -> (observation: str, reward: float, terminated: bool, truncated: bool, info: dict)

and optionally ``__init__(max_turns=..., **kwargs)``, ``hint() -> str``, ``solution() -> str | list[str]``,
``get_tools()`` and ``close()``. It may derive from :class:`TextEnv` or :class:`ToolEnv`, or from nothing.
The return of an episode is the reward of its terminating step, so programs pay on that step.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from .tool_schema import listed_schema, method_schema, underlying_code
from .verify import parse, verify, verify_answer

__all__ = ["TerminalBaseEnv", "TextEnv", "ToolEnv", "ToolUseBaseEnv", "parse", "verify", "verify_answer"]

Step = tuple[str, float, bool, bool, dict[str, Any]]

MAX_CALLS = 16
"""Tool calls that one action may make."""

_BRACES = re.compile(r"\\boxed\s*\{|[{}]")
_CALL, _CALL_END = "<tool_call>", "</tool_call>"
_ANSWER, _ANSWER_END = "<answer>", "</answer>"
_NO_CALL = (
    'Error: no tool call found. Write <tool_call>{"name": "...", "arguments": {...}}</tool_call>, '
    "or finish with <answer>...</answer>."
)

new_rng: Callable[[int], random.Random] = random.Random
"""Makes the generators of :class:`TextEnv`; in the sandbox that of the programs' own, which gives the same numbers."""


class TextEnv:
    """Base of a game in text: counts turns, holds a seeded generator.

    Subclasses call ``super().__init__(max_turns)`` and ``super().reset(seed)``, draw from ``self.rng`` and read the
    move with ``self.answer(action)``.
    """

    def __init__(self, max_turns: int = 10, **kwargs: Any) -> None:
        self.max_turns = max_turns
        self.turn = 0
        self.rng = new_rng(0)

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        """Begin an episode. Without a seed the generator goes on from where it was, so a run stays repeatable."""
        self.rng = new_rng(self.rng.getrandbits(64) if seed is None else seed)
        self.turn = 0
        return "", {}

    def step(self, action: str) -> Step:
        """Play one action; subclasses implement it."""
        raise NotImplementedError(f"{type(self).__name__} must define step(self, action)")

    @staticmethod
    def answer(action: str) -> str:
        """Return the text inside the last balanced ``\\boxed{...}`` of ``action``, else all of it, stripped."""
        if "\\boxed" not in action:
            return action.strip()
        found, opened = (-1, 0), []
        for brace in _BRACES.finditer(action):
            if brace[0] != "}":
                opened.append(brace)
            elif opened:
                opener = opened.pop()
                if len(opener[0]) > 1 and opener.end() > found[0]:
                    found = (opener.end(), brace.start())
        return (action[found[0] : found[1]] if found[0] >= 0 else action).strip()

    def close(self) -> None:
        """Release nothing; programs may call it."""


class ToolEnv(TextEnv):
    """Base of a tool-use environment, in the conventions of the published pools.

    A subclass sets in ``reset``: ``_state`` (the hidden backend), ``_tools`` (OpenAI function schemas, by name or as a
    list), ``_user_messages`` (instructions, revealed one at a time), ``_message_criteria`` (one predicate on the
    state for each message) and, if wanted, ``_expected_answer``. Tools are methods ``tool_<name>(**arguments)``; an
    exception they raise becomes an observation. An action calls tools with
    ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` and ends the episode with ``<answer>...</answer>``:
    the reward is 1 when every criterion holds and the answer equals the expected one, else 0. An environment with
    neither criteria nor an expected answer pays nothing.
    """

    def __init__(self, max_turns: int = 15, **kwargs: Any) -> None:
        super().__init__(max_turns, **kwargs)
        self._tools: Any = {}
        self._state: Any = {}
        self._user_messages: list[str] = []
        self._message_criteria: list[Any] = []
        self._current_msg = 0
        self._expected_answer: Any = None
        self._call_history: list[dict[str, Any]] = []

    @property
    def turn_count(self) -> int:
        """The turn, under its published name."""
        return self.turn

    @turn_count.setter
    def turn_count(self, value: int) -> None:
        self.turn = value

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        """Begin an episode; the observation is the first user message, if messages are set already."""
        super().reset(seed)
        self._current_msg = 0
        self._call_history = []
        return (str(self._user_messages[0]) if self._user_messages else ""), {}

    def step(self, action: str) -> Step:
        """Run the tool calls of ``action``, then its answer if it has one."""
        self.turn += 1
        answer = _last_between(action, _ANSWER, _ANSWER_END)
        calls = parse_tool_calls(action)
        parts = [self._call(call) for call in calls[:MAX_CALLS]]
        if len(calls) > MAX_CALLS:
            parts.append(f"Error: {len(calls)} tool calls in one action; only the first {MAX_CALLS} were run.")
        if calls:
            parts.append(self._advance_if_done() or "")
        if answer is not None:
            reward, errors = self._judge(answer)
            parts.append("The task is done." if reward == 1.0 else "The task is not done as asked.")
            info: dict[str, Any] = {"criteria_errors": "; ".join(errors)} if errors else {}
            return "\n".join(filter(None, parts)), reward, True, False, info
        if not calls:
            parts.append(_NO_CALL)
        return "\n".join(filter(None, parts)), 0.0, False, self.turn >= self.max_turns, {}

    def get_tools(self) -> list[dict[str, Any]]:
        """Return OpenAI function schemas, from ``_tools`` or else from the signatures of ``tool_*`` methods."""
        tools = self._tools
        if isinstance(tools, dict) and tools:
            return [listed_schema(str(name), spec) for name, spec in tools.items()]
        if isinstance(tools, list | tuple) and tools:
            return [listed_schema("", spec) for spec in tools]
        names = sorted(name for name in dir(type(self)) if name.startswith("tool_"))
        return [method_schema(name.removeprefix("tool_"), getattr(type(self), name)) for name in names]

    def _advance_if_done(self) -> str:
        """Reveal the next user message when the current criterion holds; return its text, else ``""``."""
        if self._current_msg >= len(self._user_messages):
            return ""
        criteria = self._message_criteria
        if self._current_msg < len(criteria) and not self._holds(criteria[self._current_msg])[0]:
            return ""
        self._current_msg += 1
        if self._current_msg < len(self._user_messages):
            return f"User: {self._user_messages[self._current_msg]}"
        return "User: That is all. Finish with <answer>...</answer>."

    def _judge(self, answer: str) -> tuple[float, list[str]]:
        """Return the reward of a final answer, and the errors that criteria raised."""
        criteria, expected = list(self._message_criteria or ()), self._expected_answer
        results = [self._holds(criterion) for criterion in criteria]
        errors = [error for _, error in results if error]
        if not criteria and expected is None:
            return 0.0, ["nothing to check: no _message_criteria and no _expected_answer"]
        good = all(held for held, _ in results) and (expected is None or verify_answer(expected, answer))
        return float(good), errors

    def _holds(self, criterion: Any) -> tuple[bool, str]:
        """Evaluate one criterion: a predicate on the state (or on nothing). One that raises does not hold."""
        if not callable(criterion):
            return bool(criterion), ""
        try:
            return bool(criterion() if _required(criterion) == 0 else criterion(self._state)), ""
        except Exception as error:
            return False, f"{type(error).__name__}: {error}"[:200]

    def _call(self, call: Any) -> str:
        """Run one decoded tool call and return what the player sees."""
        if isinstance(call, str):
            return f"Error: {call}"
        name, arguments = name_and_arguments(call)
        method = getattr(self, f"tool_{name}", None) if name.isidentifier() else None
        if not callable(method):
            names = sorted(attribute[5:] for attribute in dir(type(self)) if attribute.startswith("tool_"))
            return f"Error: unknown tool {name[:80]!r}. Tools: {', '.join(names)}."
        if not isinstance(arguments, dict):
            return f"Error: the arguments of {name} must be a JSON object."
        try:
            result = method(**arguments)
            text = result if isinstance(result, str) else json.dumps(result, default=str)
        except Exception as error:
            text = f"Error: {type(error).__name__}: {error}"
        self._call_history.append({"name": name, "arguments": arguments, "result": text})
        return text or "(no output)"


ToolUseBaseEnv = ToolEnv
TerminalBaseEnv = ToolEnv


def _last_between(text: str, start: str, end: str) -> str | None:
    stop = text.rfind(end)
    begin = text.rfind(start, 0, stop) if stop >= 0 else -1
    return text[begin + len(start) : stop].strip() if begin >= 0 else None


def parse_tool_calls(action: str) -> list[Any]:
    """Return decoded calls; a call that is not JSON becomes a string that says so."""
    calls: list[Any] = []
    position = action.find(_CALL)
    if position < 0:
        return _bare_call(action)
    while position >= 0 and len(calls) <= MAX_CALLS:
        begin = position + len(_CALL)
        end = action.find(_CALL_END, begin)
        body = action[begin : end if end >= 0 else len(action)].strip()
        try:
            decoded = json.loads(body)
            calls.extend(decoded if isinstance(decoded, list) else [decoded])
        except (ValueError, RecursionError) as error:
            calls.append(f"the tool call is not valid JSON ({str(error)[:120]}).")
        position = action.find(_CALL, end) if end >= 0 else -1
    return calls


def _bare_call(action: str) -> list[Any]:
    """Accept one JSON object with a ``name`` that stands in the action without tags."""
    start = action.find("{")
    if start < 0:
        return []
    try:
        decoded = json.JSONDecoder().raw_decode(action, start)[0]
    except (ValueError, RecursionError):
        return []
    return [decoded] if isinstance(decoded, dict) and "name" in decoded else []


def name_and_arguments(call: Any) -> tuple[str, Any]:
    """Return the name and the arguments of a decoded call, None for arguments that are not JSON."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict):
        return "", {}
    arguments = call.get("arguments", call.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return str(call.get("name", "")), None
    return str(call.get("name", "")), {} if arguments is None else arguments


def _required(function: Any) -> int:
    """Count the positional parameters without a default, the receiver of a bound method left out."""
    code = underlying_code(function)
    if code is None:
        return 1
    bound = 1 if getattr(function, "__self__", None) is not None else 0
    return int(code.co_argcount) - len(getattr(function, "__defaults__", None) or ()) - bound
