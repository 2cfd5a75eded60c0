"""Answers and journals of the wrong types: refused, or read as nothing that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spade_envs.models.answer import read_answer
from spade_envs.models.journal import ReplyJournal
from spade_envs.models.usage import Usage


def answer(usage: Any = None, **message: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": "x", **message}}], "usage": usage}).encode()


@pytest.mark.parametrize("count", [-5, 1e300, 10**400, None])
def test_counts_that_cannot_be(count: Any) -> None:
    read = read_answer(answer({"prompt_tokens": count, "completion_tokens": count}))
    assert (read.prompt_tokens, read.completion_tokens) == (0, 1)


@pytest.mark.parametrize("cost", [float("nan"), -1, True, 10**400, 1e308, "1"])
def test_costs_that_cannot_be(cost: Any) -> None:
    usage = Usage()
    usage.add(1, 1, cost)
    assert usage.cost == 0


def test_lone_surrogates_are_nowhere() -> None:
    call = {"id": "\ud800", "function": {"name": "\ud800", "arguments": "\ud800"}}
    read = read_answer(answer(content=[{"text": "\ud800"}], tool_calls=[call]))
    assert (read.text + "".join(read.calls[0])).isascii()


@pytest.mark.parametrize(
    "line",
    [
        "5", "[" * 100_000, '{"key": "a", "completion": 5}', '{"key": "a", "completion": {"text": 5}}',
        '{"key": "a", "completion": {"text": "x", "tool_calls": [["a", {}, []]]}}',
        '{"key": "a", "completion": {"text": "x", "prompt_tokens": "y"}}',
        '{"key": "a", "completion": {"text": "x", "error": "e"}}',
        '{"key": "a", "completion": {"text": "x", "finish_reason": "zz"}}',
    ],
)  # fmt: skip
def test_lines_of_other_types_are_left_out(tmp_path: Path, line: str) -> None:
    (tmp_path / "journal").write_text(line + "\n")
    assert len(ReplyJournal(tmp_path / "journal")) == 0
