"""Right answers to benchmark questions: the reference where there is one, worked out where a task has none."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from typing import Any

_SIDE = 6  # of Rush Hour's board


def reasoning_answer(task: str, entry: Mapping[str, Any]) -> str:
    """Return an answer that Reasoning Gym's scorer takes for right."""
    if entry["answer"] is not None:
        return str(entry["answer"])
    metadata = entry["metadata"]
    if task == "graph_color":
        return json.dumps(metadata["possible_answer"])
    if task == "propositional_logic":
        return str(metadata["example_answer"])
    if task == "rubiks_cube":
        return " ".join(_undone(move) for move in reversed(str(metadata["scramble_moves"]).split()))
    if task == "rush_hour":
        return _rush_hour(str(metadata["board_config"]))
    raise AssertionError(f"{task} has no reference, and no solver here")


def _undone(move: str) -> str:
    """The inverse of a move, without a layer's number: the scorer drops moves that begin with one."""
    found = re.fullmatch(r"([12]?)([A-Z])(w?)('?)", move)
    assert found is not None, move
    number, face, wide, backwards = found.groups()
    turn, undo = ("", "'") if backwards else ("'", "")
    if number == "2" and not wide:  # the second layer alone: both, and the outer one back
        return f"{face}w{turn} {face}{undo}"
    return f"{face}w{turn}" if wide and number != "1" else f"{face}{turn}"


def _rush_hour(board: str) -> str:
    """Shortest solution by breadth-first search; the red car is A and leaves to the right."""
    places: dict[str, list[int]] = {}
    for cell, label in enumerate(board):
        if label not in "ox":
            places.setdefault(label, []).append(cell)
    walls = {cell for cell, label in enumerate(board) if label == "x"}
    labels = sorted(places)
    strides = {label: places[label][1] - places[label][0] for label in labels}
    sizes = {label: len(places[label]) for label in labels}
    start = tuple(places[label][0] for label in labels)
    before: dict[tuple[int, ...], tuple[tuple[int, ...], str]] = {start: (start, "")}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if state[0] % _SIDE + sizes["A"] == _SIDE:
            moves = []
            while state != start:
                state, move = before[state]
                moves.append(move)
            return " ".join(reversed(moves))
        taken = set(walls)
        for label, cell in zip(labels, state):
            taken.update(cell + strides[label] * step for step in range(sizes[label]))
        for number, label in enumerate(labels):
            for step, cell in _reachable(state[number], sizes[label], strides[label], taken):
                after = (*state[:number], cell, *state[number + 1 :])
                if after not in before:
                    # The scorer names pieces by their rank, whatever letters the board skips.
                    before[after] = (state, f"{chr(ord('A') + number)}{step:+d}")
                    waiting.append(after)
    raise AssertionError(f"no solution to {board}")


def _reachable(cell: int, size: int, stride: int, taken: set[int]) -> list[tuple[int, int]]:
    found = []
    for direction in (1, -1):
        step = 0
        while True:
            step += direction
            end = cell + stride * (step + (size - 1 if direction > 0 else 0))
            inside = 0 <= end < _SIDE * _SIDE and (stride != 1 or end // _SIDE == cell // _SIDE)
            if not inside or end in taken:
                break
            found.append((step, cell + stride * step))
    return found
