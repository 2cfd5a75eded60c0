from collections.abc import Iterator
from pathlib import Path

import pytest
import view_programs as programs

from sample_programs import BOXED, GUESS, WALK, record
from spade_envs.memory import HashedTokenEmbedder, Memory

pytest.importorskip("starlette", reason="the browser view needs the extra viewer")

from starlette.testclient import TestClient

from spade_envs.view.app import make_app
from spade_envs.view.state import View


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """A memory of a few programs of each kind, played with and without hints."""
    folder = tmp_path / "pool"
    finding = {"severity": "warn", "probe": "leak", "reason": "the answer is near", "evidence": {"seed": 3}}
    with Memory.open(folder, embedder=HashedTokenEmbedder()) as memory:
        boxed = record(BOXED, skill="Arithmetic", generator="m1", proven=True, created_at=1.7e9)
        guess = record(GUESS, skill="Deduction", generator="m1", parents=(boxed.id,), created_at=1.71e9)
        walk = record(WALK, skill="Spatial", generator="m2", kind="tool_use", report={"findings": [finding]})
        shop = record(programs.SHOP, skill="Planning", generator="m2", kind="tool_use", hint="Pay what it costs.")
        memory.add_many([boxed, guess, walk, shop], run="r")
        memory.record_plays(boxed.id, [1.0, 0.0, 1.0, 0.0], hinted=False, run="r", step=1)
        memory.record_plays(boxed.id, [1.0, 1.0, 1.0, 0.0], hinted=True, run="r", step=1)
        memory.record_plays(guess.id, [0.0, 0.0], hinted=False, run="r", step=2)
    return folder


@pytest.fixture
def run(tmp_path: Path, pool: Path) -> Path:
    """A run folder as training leaves it: metrics, an alarm, programs and episodes of two steps."""
    return programs.write_run(tmp_path / "run", boxed=record(BOXED).id)


@pytest.fixture
def view(pool: Path, run: Path) -> Iterator[View]:
    memory = Memory.open(pool, embedder=HashedTokenEmbedder(), read_only=True)
    with View(memory, [run], isolation="static") as opened:
        yield opened


@pytest.fixture
def browser(view: View) -> TestClient:
    """A client of the pages, in this process; addresses begin with the token."""
    return TestClient(make_app(view, programs.TOKEN, ["testserver"]), base_url="http://testserver")
