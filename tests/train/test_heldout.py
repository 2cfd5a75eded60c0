"""Success on a fixed set of programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from doubles import program

from spade_envs.models.base import Completion, Conversation, Sampling
from spade_envs.play import PlayConfig
from spade_envs.sandbox import Sandbox
from spade_train.evaluation.heldout import BUILTIN, HeldoutProgram, evaluate, load_programs

PLAY = PlayConfig(max_turns=1, turn_tokens=5, episode_tokens=20)


class Reader:
    """Says the last word of the prompt: the secret if it was hinted, else a fixed letter set."""

    name = "reader"

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        """Answer from the hint."""
        lasts = [conversation[-1]["content"] for conversation in conversations]
        return [Completion(text[-1] if "secret is" in text else "zzz", 3, 1) for text in lasts]

    def close(self) -> None:
        """Nothing to release."""


def test_success_by_tier_with_and_without_hints(sandbox: Sandbox) -> None:
    programs = [HeldoutProgram(f"p{index}", program(index), tier=1 + index % 2) for index in range(5)]
    plain = evaluate(Reader(), programs, sandbox, PLAY, seeds=3)
    hinted = evaluate(Reader(), programs, sandbox, PLAY, seeds=3, hinted=True)
    assert (plain.success, plain.episodes, dict(plain.by_tier)) == (0.0, 15, {1: 0.0, 2: 0.0})
    assert (hinted.success, dict(hinted.by_tier)) == (1.0, {1: 1.0, 2: 1.0})
    assert sum(plain.stops.values()) == hinted.tokens == 15


def test_embedded_set_loads(sandbox: Sandbox) -> None:
    programs = load_programs(BUILTIN)
    assert len({one.id for one in programs}) == len(programs) > 20
    result = evaluate(Reader(), programs[:3], sandbox, PLAY, seeds=1)
    assert "program_error" not in result.stops


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), ("{}\n", "line 1"), ("[1]\n", "line 1"), ('{"id": "a", "source": "x"}\nnot json\n', "line 2")],
)
def test_bad_sets_say_where(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        load_programs(path)


def test_missing_set(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        load_programs(tmp_path / "none.jsonl")
    good = tmp_path / "good.jsonl"
    good.write_text(json.dumps({"id": 1, "source": program(0)}) + "\n\n")
    assert load_programs(good) == [HeldoutProgram("1", program(0))]
