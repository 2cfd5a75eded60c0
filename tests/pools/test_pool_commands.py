"""``spade import``, ``export``, ``push`` and ``pull`` as a user runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hub_server import TOKEN, serving
from pool_programs import FREE, held, program

LLM_STYLE = Path(__file__).parents[1] / "data" / "llm_style"


def spade(*arguments: object, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spade_envs.cli.app", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "SPADE_HOME": str(home), "COLUMNS": "200", "HF_HUB_OFFLINE": "0", **environment},
        check=False,
    )


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    """Replies of a model as they came, one of them of use."""
    folder = tmp_path / "replies"
    folder.mkdir()
    for number, text in enumerate([f"Sure!\n```python\n{program(2)}```", f"```python\n{FREE}```", "No."]):
        reply = {"doc": "units", "skill": "Optimization", "kind": "single-answer", "finish": "stop", "text": text,
                 "usage": {"total_tokens": 9}, "model": "some-1.5B", "temperature": 0.8}  # fmt: skip
        (folder / f"{number:03d}.json").write_text(json.dumps(reply))
    return folder


def test_replies_go_in_and_out_and_in(replies: Path, tmp_path: Path) -> None:
    memory, log = tmp_path / "m", tmp_path / "m" / "import-replies.jsonl"
    done = spade("import", replies, "--memory", memory, "--licence", "Apache-2.0", home=tmp_path)
    assert done.returncode == 1, done.stderr
    assert any(line.split()[:2] == ["no_code", "1"] for line in done.stdout.splitlines())
    assert "1 admitted, 2 refused" in done.stdout
    assert len(log.read_text().splitlines()) == 3
    again = spade("import", replies, "--memory", memory, "--json", home=tmp_path)
    assert again.returncode == 1, again.stderr
    facts = json.loads(again.stdout)
    assert (facts["admitted"], facts["refused"], facts["present"], facts["duplicate"]) == (0, 2, 1, 0)
    out = spade("export", tmp_path / "out", "--memory", memory, "--json", home=tmp_path)
    assert json.loads(out.stdout) == {
        "path": str(tmp_path / "out"), "environments": 1, "plays": 0, "left_out": 0, "licences": {"Apache-2.0": 1},
    }  # fmt: skip
    back = spade("import", tmp_path / "out", "--memory", tmp_path / "m2", home=tmp_path)
    assert back.returncode == 0, back.stderr + back.stdout
    assert held(tmp_path / "m2") == held(memory)
    second = spade("import", tmp_path / "out", "--memory", memory, "--json", home=tmp_path)
    assert json.loads(second.stdout)["duplicates"][0]["id"] == held(memory)[0].record.id


def test_a_corrected_program_is_taken_by_importing_again(tmp_path: Path) -> None:
    pool, memory, log = tmp_path / "pool", tmp_path / "m", tmp_path / "own.jsonl"
    pool.mkdir()
    (pool / "one.py").write_text(FREE)
    assert "1 refused" in spade("import", pool, "--memory", memory, home=tmp_path).stdout
    (pool / "one.py").write_text(program(3))
    done = spade("import", pool, "--memory", memory, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 admitted, 0 refused" in done.stdout
    assert spade("import", pool, "--memory", memory, "--log", log, home=tmp_path).returncode == 0
    named = spade("import", pool, "--memory", memory, "--log", log, home=tmp_path)  # the user's file is not added to
    assert named.returncode == 2
    assert f"{log} is there already: go on with it by --resume, or name another file" in named.stderr


def test_programs_in_the_published_manner_go_in_and_out_and_in(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.mkdir()
    for name in ("e01_mastermind.py", "e03_inventory_tool.py", "e07_minesweeper_np.py"):
        shutil.copy(LLM_STYLE / name, pool)
    arguments = ("--allow", "numpy", "--jobs", "2", "--json")
    first = spade("import", pool, "--memory", tmp_path / "m", *arguments, home=tmp_path)
    assert json.loads(first.stdout)["admitted"] == 3, first.stdout
    spade("export", tmp_path / "all.spade", "--memory", tmp_path / "m", home=tmp_path)
    second = spade("import", tmp_path / "all.spade", "--memory", tmp_path / "m2", *arguments, home=tmp_path)
    assert second.returncode == 0, second.stdout
    assert held(tmp_path / "m2") == held(tmp_path / "m")
    assert sorted(stored.record.kind for stored in held(tmp_path / "m")) == ["game", "game", "tool_use"]


def test_push_and_pull(replies: Path, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    spade("import", replies, "--memory", tmp_path / "m", home=tmp_path)
    with serving() as server:
        login = {"HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path / "hf"), "XDG_CACHE_HOME": str(tmp_path / "cache")}

        def run(command: str, name: str, memory: str) -> subprocess.CompletedProcess[str]:
            place = ("--memory", tmp_path / memory, "--endpoint", server.address)
            return spade(command, name, *place, home=tmp_path, **login)

        pushed, pulled, nobody = (
            run("push", "me/games", "m"),
            run("pull", "me/games", "m2"),
            run("pull", "me/none", "m2"),
        )
        assert pushed.returncode == 0, pushed.stderr
        assert f"1 environments, 0 plays → {server.address}/datasets/me/games" in pushed.stdout
        assert pulled.returncode == 0, pulled.stderr
        assert (tmp_path / "m2" / "import-games.jsonl").is_file()
        assert nobody.returncode == 2
        assert "me/none cannot be fetched: it is not there" in nobody.stderr
        said = "".join(done.stdout + done.stderr for done in (pushed, pulled, nobody))
        assert TOKEN not in said
        assert "Traceback" not in said
    assert held(tmp_path / "m2") == held(tmp_path / "m")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("import", "nothing"), "found nothing at nothing"),
        (("import", "hf:x"), "expected OWNER/NAME"),
        (("import", ".", "--allow", "os"), "--allow takes numpy"),
        (("export", "out", "--memory", "nowhere"), "nowhere"),
        (("push", "x"), "expected OWNER/NAME"),
        (("pull", "x"), "expected OWNER/NAME"),
    ],
)
def test_what_cannot_run_says_why(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = spade(*arguments, home=tmp_path / "home")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["import", "export", "push", "pull"])
def test_help_has_an_example(command: str, tmp_path: Path) -> None:
    done = spade(command, "--help", home=tmp_path)
    assert done.returncode == 0
    assert f"Example: spade {command}" in done.stdout
