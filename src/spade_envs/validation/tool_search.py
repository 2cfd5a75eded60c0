"""Bounded search over tool calls: which success conditions can be made true with what a player sees.

Best first by how many conditions hold, then by length; states are told apart by the worker's digest. A state is reached
by playing its calls again from the reset, since a copy's conditions would look at the original.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_envs.sandbox.inspection import ToolInspection
from spade_envs.sandbox.types import Operation, Outcome
from spade_envs.validation.rollout import Runner
from spade_envs.validation.tool_values import Values

_CHUNK = 12  # calls tried in one state before others are looked at
_MAX_DEPTH = 10
_MAX_PENDING = 200
_MAX_STATES = 12  # that are remembered
_HELD = 3  # how many calls one condition that holds is worth
_READS = ("list", "get", "search", "find", "lookup", "look", "show", "view", "read", "check", "query", "fetch")
_FAILED = ("error", "not found", "unknown", "invalid", "no such", "failed", "must ", "missing")


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """The action that calls one tool."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': dict(arguments)})}</tool_call>"


@dataclass(slots=True)
class _Node:
    actions: tuple[str, ...]
    inspection: ToolInspection
    chunks: int = 0
    version: int = -1  # of the values from which its pending calls were made
    pending: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)
    cut: bool = False  # more calls were planned than are pending

    @property
    def held(self) -> int:
        return sum(criterion.holds is True for criterion in self.inspection.criteria)


@dataclass(slots=True)
class Search:
    """What a search over one seed found."""

    seed: int
    values: Values
    won: tuple[str, ...] | None = None  # actions after which all conditions hold together
    reached: dict[int, tuple[str, ...]] = field(default_factory=dict)  # condition -> actions that make it true
    judged: set[int] = field(default_factory=set)  # conditions that gave True or False at least once
    errors: dict[int, str] = field(default_factory=dict)
    changing: dict[str, str] = field(default_factory=dict)  # tool -> an action that changed the state
    worked: set[str] = field(default_factory=set)  # tools that answered without an error
    calls: int = 0
    exhausted: bool = False  # everything that the harvested values allow was tried
    states: list[tuple[str, ...]] = field(default_factory=list)  # actions that led to different states


def search(
    runner: Runner,
    seed: int,
    schemas: Sequence[Mapping[str, Any]],
    first: str,
    operations: int,
    *,
    more: Iterable[Any] = (),
    starts: Sequence[Sequence[str]] = ((),),
    known: Values | None = None,
) -> Search:
    """Search one seed.

    Args:
        runner: of the program.
        seed: the episode.
        schemas: OpenAI function schemas.
        first: the first observation.
        operations: how many the sandbox may carry out.
        more: further values to try as arguments, that no player sees.
        starts: actions after which to begin.
        known: values harvested already.

    Raises:
        CollectionStopped: if the program times out, dies or is too slow.
        SandboxError: if the machinery fails.
    """
    tools = _tools(schemas)
    values = known or Values()
    if known is None:
        values.instruction(first)
        for _, _, description in tools:
            values.read(description)
    for value in more:
        values.add(value)
    found = Search(seed, values)
    session = runner.new_session()
    begin = [Operation("make", session, {}), Operation("reset", session, seed)]
    roots = []
    for start in starts:
        steps = [Operation("step", session, action) for action in start]
        roots.append(runner.run([*begin, *steps, Operation("inspect", session, "brief")])[-1])
    if not tools:
        return found
    nodes: list[_Node] = []
    digests: set[str] = set()
    used = 3
    for start, outcome in zip(starts, roots, strict=True):
        if isinstance(outcome.value, ToolInspection) and outcome.value.digest not in digests:
            nodes.append(_Node(tuple(start), outcome.value))
            digests.add(outcome.value.digest)
            _note(found, nodes[-1])
        used += len(start) + 3
    while found.won is None:
        node = _next(nodes, tools, values)
        if node is None:
            found.exhausted = True
            break
        cost = len(node.actions) + 4
        room = (operations - used) // cost
        chunk, node.pending = node.pending[: min(_CHUNK, room)], node.pending[min(_CHUNK, room) :]
        if not chunk:
            break
        node.chunks += 1
        node.tried.update(call_text(*call) for call in chunk)
        used += cost * len(chunk)
        again = [Operation("step", session, action) for action in node.actions]
        batch = [
            operation
            for call in chunk
            for operation in (
                *begin,
                *again,
                Operation("step", session, call_text(*call)),
                Operation("inspect", session, "brief"),
            )
        ]
        outcomes = runner.run(batch)
        for index, call in enumerate(chunk):
            stepped, inspected = outcomes[(index + 1) * cost - 2 : (index + 1) * cost]
            new = _try(found, node, call, stepped, inspected)
            if new is not None and new.inspection.digest not in digests:
                digests.add(new.inspection.digest)
                if len(new.actions) < _MAX_DEPTH:
                    nodes.append(new)
        found.calls += len(chunk)
    runner.run([Operation("close", session)])
    return found


def _try(
    found: Search, node: _Node, call: tuple[str, dict[str, Any]], stepped: Outcome, inspected: Outcome
) -> _Node | None:
    """Take in what one call did; return the state it led to if the episode goes on there."""
    if stepped.error is not None:
        return None
    text = stepped.value.observation
    failed = any(mark in text[:80].lower() for mark in _FAILED)
    if not failed:
        found.worked.add(call[0])
    instruction = text.rpartition("User: ")[2] if "User: " in text else ""
    found.values.read(text)
    found.values.instruction(instruction)
    if not isinstance(inspected.value, ToolInspection):
        return None
    new = _Node((*node.actions, call_text(*call)), inspected.value)
    if new.inspection.digest != node.inspection.digest:
        found.changing.setdefault(call[0], call_text(*call))
    _note(found, new, changed=new.inspection.digest != node.inspection.digest)
    return None if stepped.value.terminated or stepped.value.truncated else new


def _note(found: Search, node: _Node, *, changed: bool = False) -> None:
    actions = node.actions
    for index, criterion in enumerate(node.inspection.criteria):
        if criterion.holds is None:
            found.errors.setdefault(index, criterion.error)
        else:
            found.judged.add(index)
        if criterion.holds:
            found.reached.setdefault(index, actions)
    if changed and len(found.states) < _MAX_STATES:
        found.states.append(actions)
    if node.inspection.criteria and node.held == len(node.inspection.criteria) and actions:
        found.won = found.won or actions


def _next(nodes: Sequence[_Node], tools: Sequence[tuple[str, Mapping[str, Any], str]], values: Values) -> _Node | None:
    for node in sorted(nodes, key=lambda node: len(node.actions) + node.chunks - _HELD * node.held):
        if node.version != values.version or (node.cut and not node.pending):
            node.version = values.version
            _plan(node, tools, values)
        if node.pending:
            return node
    return None


def _plan(node: _Node, tools: Sequence[tuple[str, Mapping[str, Any], str]], values: Values) -> None:
    """The calls worth trying in a state, tools in turns, those that read first."""
    by_tool = []
    for name, parameters, _ in sorted(tools, key=lambda tool: not tool[0].startswith(_READS)):
        by_tool.append([(name, arguments) for arguments in values.calls(name, parameters)])
    node.pending = []
    for place in range(max(map(len, by_tool), default=0)):
        for calls in by_tool:
            if place < len(calls):
                text = call_text(*calls[place])
                if text not in node.tried:
                    node.pending.append(calls[place])
    node.cut = len(node.pending) > _MAX_PENDING
    del node.pending[_MAX_PENDING:]


def _tools(schemas: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any], str]]:
    found = []
    for schema in schemas:
        function = schema.get("function", schema)
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            description = function.get("description")
            found.append(
                (
                    function["name"],
                    parameters if isinstance(parameters, Mapping) else {},
                    description if isinstance(description, str) else "",
                )
            )
    return found
