"""`spade calibrate` on the embedded model: stored once, resumed exactly."""

from __future__ import annotations

import json
from pathlib import Path

from cli_programs import SUM, spade

from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord

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
    code, text, error = _run(memory, *RUN, "--resume")
    assert (code, error) == (0, "")
    assert text == "nothing is left to play: 1 environments were done before; `spade stats` has the figures\n"
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


def test_what_was_done_before_stands_before_the_figures(memory: Path) -> None:
    assert _run(memory, *RUN)[0] == 0
    with Memory.open(memory) as store:
        store.add(EnvironmentRecord.create(SUM.replace("SumEnv", "OtherEnv").replace("sum of", "sum:"), "OtherEnv"))
    code, text, _ = _run(memory, *RUN, "--resume")
    assert code == 0
    assert "now: 1 environments · " in text


def test_an_unknown_player_is_told_with_all_there_are(memory: Path) -> None:
    for name in ("nobody", "human"):
        code, _, error = _run(memory, "calibrate", "--agent", name)
        assert code == 2
        assert f"unknown model {name!r}; expected random, know-nothing, solution, nano, smollm2, hf:" in error


def test_a_model_that_cannot_answer_says_why(memory: Path) -> None:
    code, text, _ = _run(memory, *RUN, "--prompts", "games")
    assert code == 1
    assert "the model's last error: the prompt has" in text
    assert "--prompts nano" in text


def test_nothing_to_play_is_said(memory: Path) -> None:
    code, _, error = _run(memory, "calibrate", "--agent", "solution", "--skill", "Alchemy")
    assert code != 0
    assert "spade list" in error
