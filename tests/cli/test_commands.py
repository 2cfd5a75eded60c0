"""What each command prints and which exit code it leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_programs import PAYS_FOR_NOTHING, SUM, spade

COMMANDS = (
    "doctor",
    "generate",
    "validate",
    "calibrate",
    "list",
    "show",
    "search",
    "stats",
    "play",
    "train",
    "quickstart",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str, tmp_path: Path) -> None:
    done = spade(command, "--help", home=tmp_path)
    assert done.returncode == 0
    assert f"Example: spade {command}" in done.stdout.replace("\n", " ")


def test_validate_prints_a_line_each_and_fails_on_a_refusal(program: Path, tmp_path: Path) -> None:
    (tmp_path / "free_env.py").write_text(PAYS_FOR_NOTHING)
    done = spade("validate", str(tmp_path), home=tmp_path / "home")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert any("sum_env.py" in line and "admitted" in line and "proven" in line for line in lines)
    assert any("free_env.py" in line and "REFUSED" in line and "know_nothing" in line for line in lines)
    assert lines[-1].startswith("1 admitted, 1 refused")
    assert spade("validate", str(program), home=tmp_path / "home").returncode == 0


def test_validate_json_holds_the_whole_report(program: Path, tmp_path: Path) -> None:
    done = spade("validate", str(program), "--json", home=tmp_path)
    (report,) = json.loads(done.stdout)
    assert report["admitted"]
    assert report["proven"]
    assert report["name"] == "SumEnv"


def test_play_solution_wins_and_random_does_not(program: Path, tmp_path: Path) -> None:
    won = spade("play", str(program), "--agent", "solution", "--json", home=tmp_path)
    transcript = json.loads(won.stdout)
    assert won.returncode == 0
    assert transcript["return"] == 1.0
    assert transcript["stop"] == "terminated"
    assert transcript["messages"][-1]["role"] == "assistant"
    lost = spade("play", str(program), "--agent", "random", "--json", "--seed", "3", home=tmp_path)
    assert json.loads(lost.stdout)["return"] == 0.0


def test_play_with_hint_shows_it_in_the_first_observation(program: Path, tmp_path: Path) -> None:
    done = spade("play", str(program), "--agent", "solution", "--hint", "--json", home=tmp_path)
    first = next(message for message in json.loads(done.stdout)["messages"] if message["role"] == "user")
    assert "Add the units first" in first["content"]


def test_a_person_plays_and_the_end_of_input_ends_the_episode(program: Path, tmp_path: Path) -> None:
    done = spade("play", str(program), home=tmp_path)  # standard input is empty
    assert done.returncode == 1
    assert "Say the sum of" in done.stdout
    assert "model_error · the input ended" in done.stdout


def test_browse(memory: Path, tmp_path: Path) -> None:
    listed = json.loads(spade("list", "--memory", str(memory), "--json", home=tmp_path).stdout)
    assert [row["win_rate"] for row in listed] == [0.5]
    env_id = listed[0]["env_id"]
    shown = spade("show", env_id, "--memory", str(memory), home=tmp_path).stdout
    assert "class SumEnv(TextEnv):" in shown
    assert "regret 0.50" in shown
    assert "Arithmetic [bold]" in shown
    found = json.loads(spade("search", "add two numbers", "--memory", str(memory), "--json", home=tmp_path).stdout)
    assert found[0]["env_id"] == env_id
    stats = json.loads(spade("stats", "--memory", str(memory), "--json", home=tmp_path).stdout)
    assert stats["learnable_share"] == 1.0
    assert stats["regret_histogram"][7] == 1
    assert stats["vendi"] == 1.0  # one environment
    group = stats["by_skill"]["Arithmetic [bold]"]
    assert (group["environments"], group["mean_regret"], stats["by_kind"]["game"]["played"]) == (1, 0.5, 1)
    assert "Arithmetic [bold]" in spade("stats", "--memory", str(memory), home=tmp_path).stdout
    table = spade("list", "--memory", str(memory), home=tmp_path).stdout
    assert env_id in table
    assert "Arithmetic [bold]" in table


def test_tables_are_never_cut(memory: Path, tmp_path: Path) -> None:
    for command in (("list",), ("search", "add two numbers")):
        done = spade(*command, "--memory", str(memory), home=tmp_path, COLUMNS="30")
        assert "…" not in done.stdout
        row = next(line for line in done.stdout.splitlines() if "spade/Sum-" in line)
        assert row.split()[-3:] == ["6", "0.50", "0.50"]


def test_an_unknown_agent_is_named_with_all_there_are(program: Path, tmp_path: Path) -> None:
    done = spade("play", str(program), "--agent", "nobody", home=tmp_path)
    assert done.returncode == 2
    assert "'nobody'" in done.stderr
    assert "solution" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("generate", "--copy-prompts", "/proc/here"), "/proc/here: No such file or directory"),
        (("play", "FILE", "--agent", "a/b"), "did you mean hf:a/b?"),
        (("show", "nothing", "--memory", "MEMORY"), "no record 'nothing' in MEMORY"),
        (("train", "--config", "FILE", "--set", "corpus=["), "--set corpus: '[' is no YAML"),
        (("eval", "--model", "nano", "--suite", "nothing"), "no suite 'nothing'. Expected one of"),
    ],
)
def test_an_error_is_one_plain_line(
    arguments: tuple[str, ...], said: str, program: Path, memory: Path, tmp_path: Path
) -> None:
    places = {"FILE": str(program), "MEMORY": str(memory)}
    done = spade(*(places.get(word, word) for word in arguments), home=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert said.replace("MEMORY", str(memory)) in line
    assert not re.search(r"\w+(Error|Exception|Record)\b|Errno", line)


def test_placeholders_survive_in_help(tmp_path: Path) -> None:
    words = spade("generate", "--help", home=tmp_path).stdout
    assert "openai:MODEL" in words
    assert "generate-SEED" in words


def test_a_dry_run_shows_its_result_and_makes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert spade("generate", "--dry-run", home=home).stdout
    assert not home.exists()
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("model: nano\nmax_steps: 3\nuse_cpu: true\nbf16: false\n")
    run = ("train", "--config", str(recipe), "--output", str(tmp_path / "run"), "--dry-run")
    done = spade(*run, home=home)
    assert done.returncode == 0, done.stderr
    assert "max_steps: 3" in done.stdout
    done = spade(*run, "--json", home=home)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["max_steps"] == 3
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments", [("play",), ("train", "--config")])
def test_a_file_that_is_not_text_is_named(arguments: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"class SumEnv:\n    note = '\xe9'\n\x81\x00")
    done = spade(*arguments, str(path), home=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "latin.py" in done.stderr


def test_an_unknown_id_is_named(memory: Path, tmp_path: Path) -> None:
    done = spade("show", "spade/Sun-00000000-v0", "--memory", str(memory), home=tmp_path)
    assert done.returncode == 2
    assert "spade/Sun-00000000-v0" in done.stderr
    assert "spade/Sum-" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "spade/Nothing-00000000-v0"), "no memory at"),
        (("validate", "no/such/folder"), "no/such/folder"),
        (("list",), "--memory"),
        (("play", "missing.py"), "no program missing.py"),
        (("generate", "--model", "openai:gpt"), "corpus"),
        (("generate", "--corpus", "nowhere.jsonl", "--prompts", "games", "--dry-run"), "nowhere.jsonl"),
        (("train", "--config", "nowhere.yaml"), "nowhere.yaml"),
        (("validate", ".", "--isolation", "none"), "isolation"),
    ],
)
def test_bad_input_is_one_line_that_names_it(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = spade(*arguments, home=tmp_path / "home")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert words in done.stderr


def test_doctor_tells_isolation(tmp_path: Path) -> None:
    done = spade("doctor", "--json", home=tmp_path)
    facts = json.loads(done.stdout)
    assert facts["sandbox"]["level"] in ("full", "partial", "static")
    assert done.returncode == (0 if facts["sandbox"]["level"] == "full" else 1)
    assert facts["packages"]["gymnasium"]
    assert facts["memory"]["environments"] == 0


HOSTILE = "\x1b[2J[red]x[/nope]\x9b\u202e"


def test_hostile_text_in_a_memory_reaches_neither_markup_nor_terminal(tmp_path: Path) -> None:
    from spade_envs.memory import Memory
    from spade_envs.record import EnvironmentRecord

    finding = {"severity": HOSTILE, "probe": HOSTILE, "reason": HOSTILE}
    record = EnvironmentRecord.create(
        SUM, "SumEnv", kind=HOSTILE, skill=HOSTILE, generator=HOSTILE, hint=HOSTILE, document=HOSTILE,
        report={"findings": [finding]},
    )  # fmt: skip
    with Memory.open(tmp_path / "m") as store:
        store.add(record)
    for arguments in (("list",), ("show", record.env_id), ("search", HOSTILE), ("stats",), ("show", HOSTILE)):
        done = spade(*arguments, "--memory", str(tmp_path / "m"), home=tmp_path)
        assert "Traceback" not in done.stderr
        assert not set(done.stdout + done.stderr) & set("\x1b\x9b\u202e"), arguments
        plain = spade(*arguments, "--memory", str(tmp_path / "m"), "--json", home=tmp_path)
        assert plain.returncode or json.loads(plain.stdout) is not None


def test_errors_show_no_control_characters(tmp_path: Path) -> None:
    done = spade("validate", f"nothing{HOSTILE}.py", home=tmp_path)
    assert done.returncode == 2
    assert "[red]x[/nope]" in done.stderr
    assert not set(done.stderr) & set("\x1b\x9b\u202e")


@pytest.mark.parametrize(("name", "encoding"), [("b\udcff.py", "utf-8:surrogateescape"), ("ü.py", "ascii")])
def test_json_is_json_whatever_the_file_name_and_the_encoding(name: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(SUM)
    for command in (("validate", str(path)), ("play", str(path), "--agent", "solution")):
        done = spade(*command, "--json", home=tmp_path, PYTHONIOENCODING=encoding)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)


def test_an_ascii_terminal_shows_what_it_can(memory: Path, program: Path, tmp_path: Path) -> None:
    for command in (("stats", "--memory", str(memory)), ("play", str(program), "--agent", "solution")):
        done = spade(*command, home=tmp_path, PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_a_limit_beyond_what_a_database_counts(memory: Path, tmp_path: Path) -> None:
    done = spade("list", "--memory", str(memory), "--limit", str(10**30), "--json", home=tmp_path)
    assert len(json.loads(done.stdout)) == 1
    done = spade("search", "sum", "--memory", str(memory), "--limit", str(10**30), "--json", home=tmp_path)
    assert len(json.loads(done.stdout)) == 1


def test_names_between_colons_stay_names() -> None:
    from spade_envs.cli import console

    with console.out.capture() as said:
        console.out.print("memory:m: 3 of 4 :smile:")
    assert said.get() == "memory:m: 3 of 4 :smile:\n"
