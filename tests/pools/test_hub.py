"""Pushing to and fetching from a server that stands for the Hub."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import TOKEN, FakeHub, matching, serving
from pool_programs import bring, held, program

from spade_envs.memory import Memory
from spade_envs.pools import ExportFilter, PoolError, export_memory, hub, open_pool

pytest.importorskip("huggingface_hub")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # as another test may have left it
    with serving() as running:
        yield running


def _export(memory: Path, out: Path, filters: ExportFilter) -> Path:
    with Memory.open(memory, read_only=True) as store:
        return export_memory(store, out, filters=filters).path


def test_what_is_pushed_is_fetched(
    server: FakeHub, filled: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    out = _export(filled, tmp_path / "out", ExportFilter(archived=True))
    address = hub.push(out, "me/games", message="4 environments", endpoint=server.address)
    assert address == f"{server.address}/datasets/me/games"
    assert server.private == {"me/games": True}
    assert server.commits == ["4 environments"]
    stored = server.datasets["me/games"]
    assert stored == {file.relative_to(out).as_posix(): file.read_bytes() for file in out.rglob("*") if file.is_file()}
    folder = hub.fetch("hf:me/games", tmp_path / "fetched", endpoint=server.address)
    assert {one.status for one in bring(folder, tmp_path / "m")} == {"admitted"}
    assert held(tmp_path / "m") == held(filled)
    assert any(authorisation == f"Bearer {TOKEN}" for _, _, authorisation in server.requests)
    assert TOKEN not in "".join(capfd.readouterr()) + caplog.text


def test_what_was_fetched_before_serves_without_the_hub(
    server: FakeHub, filled: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.push(_export(filled, tmp_path / "out", ExportFilter()), "me/games", endpoint=server.address)
    folder = hub.fetch("me/games", tmp_path / "fetched", endpoint=server.address)
    assert not caplog.text
    before = {file.name for file in folder.rglob("*.py")}
    assert hub.fetch("me/games", tmp_path / "fetched", endpoint="http://127.0.0.1:9") == folder
    assert {file.name for file in folder.rglob("*.py")} == before
    assert "does not answer: Connection refused): dataset me/games as it was fetched before" in caplog.text


def test_a_second_push_replaces_the_first(server: FakeHub, filled: Path, tmp_path: Path) -> None:
    hub.push(_export(filled, tmp_path / "a", ExportFilter(archived=True)), "me/games", endpoint=server.address)
    hub.push(_export(filled, tmp_path / "b", ExportFilter()), "me/games", private=False, endpoint=server.address)
    assert len(matching(server.datasets["me/games"], "*.py")) == 3
    assert server.private == {"me/games": True}


def test_refusals_are_explained_and_say_no_token(
    server: FakeHub, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = _export(filled, tmp_path / "out", ExportFilter())
    with pytest.raises(PoolError, match="nobody/nothing cannot be fetched: it is not there, or needs a login"):
        hub.fetch("nobody/nothing", tmp_path / "x", endpoint=server.address)
    wrong = "hf_" + "y" * 34
    monkeypatch.setenv("HF_TOKEN", wrong)
    with pytest.raises(PoolError, match=r"cannot be pushed: .*hf auth login") as caught:
        hub.push(out, "me/games", endpoint=server.address)
    assert wrong not in str(caught.value)
    with pytest.raises(PoolError, match=r"cannot be pushed: the Hub cannot be reached.*hf upload me/games"):
        hub.push(out, "me/games", endpoint="http://127.0.0.1:9")
    with pytest.raises(PoolError, match=r"cannot be fetched: the Hub cannot be reached.*hf download me/games"):
        hub.fetch("me/games", tmp_path / "y", endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize("name", ["games", "a/b/c", "", "hf:", "../x"])
def test_names_that_are_no_dataset(name: str, tmp_path: Path) -> None:
    with pytest.raises(PoolError, match="expected OWNER/NAME"):
        hub.fetch(name, tmp_path)


def test_where_a_program_was_fetched_from_is_kept(server: FakeHub, tmp_path: Path) -> None:
    server.datasets["me/raw"], server.private["me/raw"] = {"a.py": program(2).encode()}, False
    server.datasets["me/raw"]["README.md"] = b"---\nlicense: mit\n---\n"
    server.datasets["me/raw"]["notes.bin"] = b"not wanted"
    folder = hub.fetch("me/raw", tmp_path / "raw", endpoint=server.address)
    assert sorted(file.name for file in folder.iterdir() if file.is_file()) == ["README.md", "a.py"]
    bring(dataclasses.replace(open_pool(folder), origin="hf:me/raw"), tmp_path / "m")
    (stored,) = held(tmp_path / "m")
    assert stored.record.meta["pool"] == {"name": "raw", "entry": "a.py", "origin": "hf:me/raw"}
    assert stored.record.licence == "mit"
