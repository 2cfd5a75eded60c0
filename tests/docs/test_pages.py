"""What the documentation shows is so: Python blocks run, commands and their options exist, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import typer.main
from endpoint_server import Server
from markdown_it import MarkdownIt

from spade_envs.cli import app as application
from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
PRELUDE = """import sys
from spade_envs.contract import *  # pages show programs, which need not import their bases
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
"""
PROGRAMS = ROOT / "tests/data/llm_style"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with what the pages speak of: a program, a folder of programs, memories, documents."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted(PROGRAMS.glob("e0[1-4]*.py"))}
    (tmp_path / "pool").mkdir()
    for file, source in sources.items():
        (tmp_path / "pool" / file).write_text(source, encoding="utf-8")
    (tmp_path / "my_env.py").write_text(sources["e01_mastermind.py"], encoding="utf-8")
    ladder = next(block.text for block in blocks(ROOT / "docs/start.md") if block.language == "python")
    memories = {"mine": [ladder], "m": sources.values(), "runs/quickstart/memory": sources.values()}
    for folder, programs in memories.items():
        with Memory.open(tmp_path / folder) as memory:
            for source in programs:
                memory.add(EnvironmentRecord.create(source, re.findall(r"class (\w*Env)\b", source)[-1]))
    return tmp_path


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = Server()
    yield server.url
    server.close()


class Block(NamedTuple):
    """One fenced block and the line on which it begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            yield Block(token.info.strip(), token.content, (token.map or [0])[0] + 1)


def commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the ``spade`` commands of a page, comments and placeholders removed."""
    for block in blocks(page):
        if block.language not in ("", "bash", "sh"):
            continue
        text = block.text.replace("\\\n", " ")
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if "spade" in words[:4] and "=" not in words[0]:
                yield block.line, words[words.index("spade") + 1 :]


@pytest.mark.parametrize("name", NAMES)
def test_commands_and_options_exist(name: str) -> None:
    if not application.app.registered_commands:
        application._add_commands()
    root = typer.main.get_command(application.app)
    context = click.Context(root)
    for line, words in commands(ROOT / name):
        if not words or words[0].startswith(("-", "…")):
            continue
        command = root.get_command(context, words[0])  # type: ignore[attr-defined]
        assert command is not None, f"{name}:{line}: there is no command spade {words[0]}"
        if hasattr(command, "commands") and len(words) > 1 and words[1] in command.commands:
            command = command.commands[words[1]]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        known |= {"--help"}
        used = {word.split("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert used <= known, f"{name}:{line}: spade {words[0]} has no {sorted(used - known)}"


@pytest.mark.parametrize("name", [name for name in NAMES if any(b.language == "python" for b in blocks(ROOT / name))])
def test_python_blocks_run_in_order(name: str, place: Path, endpoint: str) -> None:
    """Each page's blocks in one process, in a folder that holds what the pages speak of."""
    page = ROOT / name
    parts = []
    for block in blocks(page):
        if block.language == "python":
            padding = "\n" * (block.line - sum(part.count("\n") for part in parts))
            parts.append(padding + block.text)
    script = place / "page.py"
    script.write_text("".join(parts).replace("http://localhost:8000/v1", endpoint), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE, str(script)], cwd=place, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{name}: {done.stderr[-3000:]}"


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{name}: {target} does not exist"


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in set(re.findall(r"\b((?:src|tests|benchmarks|examples)/[\w./-]+\.(?:py|yaml|toml|md|jinja))\b", text)):
        assert (ROOT / path).exists(), f"{name} names {path}, which does not exist"
