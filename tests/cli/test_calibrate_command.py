"""`spade calibrate` on the embedded model: stored once, resumed exactly."""

from __future__ import annotations

import json
from pathlib import Path

from cli_programs import spade

from spade_envs.memory import Memory

RUN = ["calibrate", "--plays", "4", "--model", "nano"]


def _run(memory: Path, *arguments: str) -> tuple[int, str, str]:
    done = spade(*arguments, "--memory", str(memory), home=memory.parent)
    return done.returncode, done.stdout, done.stderr


def test_plays_are_stored_and_a_run_is_not_repeated_by_accident(memory: Path, tmp_path: Path) -> None:
    log = tmp_path / "episodes.jsonl"
    code, text, _ = _run(memory, *RUN, "--json", "--transcripts", str(log))
    facts = json.loads(text)
    assert code == 0
    (result,) = facts["results"]
    plays = result["plain"]["plays"], result["hinted"]["plays"]
    with Memory.open(memory) as store:
        (record,) = store.records()
        assert record.statistics.plain_plays == 4 + plays[0]  # four were there before
        assert record.statistics.hinted_plays == 2 + plays[1]
    assert len(log.read_text().splitlines()) == sum(plays)
    code, _, error = _run(memory, *RUN)
    assert code != 0
    assert "--resume" in error
    code, _, error = _run(memory, *RUN, "--resume", "--temperature", "1")
    assert "other settings" in error
    code, text, _ = _run(memory, *RUN, "--resume", "--json")
    assert code == 0
    assert json.loads(text)["environments"] == 0
    with Memory.open(memory) as store:
        assert store.records()[0].statistics.plain_plays == 4 + plays[0]


def test_scripted_players_leave_no_trace(memory: Path) -> None:
    code, text, _ = _run(memory, "calibrate", "--agent", "solution", "--plays", "4", "--json")
    assert code == 0
    assert json.loads(text)["mean_win_rate"] == 1.0
    with Memory.open(memory) as store:
        assert store.records()[0].statistics.plain_plays == 4


def test_a_table_for_people(memory: Path) -> None:
    code, text, _ = _run(memory, "calibrate", "--agent", "solution", "--plays", "4")
    assert code == 0
    assert "1.00 (0.51 to 1.00)" in text


def test_nothing_to_play_is_said(memory: Path) -> None:
    code, _, error = _run(memory, "calibrate", "--agent", "solution", "--skill", "Alchemy")
    assert code != 0
    assert "spade list" in error
