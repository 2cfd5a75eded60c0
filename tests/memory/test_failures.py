"""Concurrent writers, killed writers, full disks, foreign files, forbidden folders."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memory_programs import variant

from spade_envs.memory import HashedTokenEmbedder, Memory, Salvaged, StoreError, salvage

_HERE = Path(__file__).parent

_ADD = """
import sys; sys.path.insert(0, sys.argv[1])
from memory_programs import variant
from spade_envs.memory import HashedTokenEmbedder, Memory
with Memory.open(sys.argv[2], embedder=HashedTokenEmbedder()) as memory:
    for number in range(int(sys.argv[3]), int(sys.argv[4])):
        memory.add(variant(number), run=sys.argv[3])
        memory.record_plays(variant(0).id, [1.0], hinted=False, run=sys.argv[3])
        if number % 20 == 0:
            memory.search("chain", k=2)
"""

_ROUNDS = """
import sys; sys.path.insert(0, sys.argv[1])
from memory_programs import variant
from spade_envs.memory import Memory
memory = Memory.open(sys.argv[2])
start, state = memory.progress("r")
print(start, flush=True)
for index in range(start, 10**6):
    memory.commit_round("r", index, [variant(index * 7 + k) for k in range(7)], {"last": index})
"""


def _python(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(_HERE), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _integrity(folder: Path) -> str:
    connection = sqlite3.connect(folder / "memory.sqlite")
    try:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        connection.close()


def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as memory:
        memory.add(variant(0))
        workers = [_python(_ADD, tmp_path, start, start + 60) for start in (1, 40, 100)]  # 40..60 twice
        for worker in workers:
            _, errors = worker.communicate()
            assert worker.returncode == 0, errors
        assert {record.id for record in memory.records()} == {variant(number).id for number in range(160)}
        assert memory.get(variant(0).id).statistics.plain_plays == 180
        assert len(memory.search("chain", k=500)) == 160
    assert _integrity(tmp_path) == "ok"


def test_processes_may_make_a_memory_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    workers = [_python(_ADD, folder, start, start + 1) for start in (0, 0, 0, 0)]
    for worker in workers:
        _, errors = worker.communicate()
        assert worker.returncode == 0, errors
    with Memory.open(folder) as memory:
        assert memory.get(variant(0).id).statistics.plain_plays == 4


def test_a_killed_writer_leaves_whole_rounds(tmp_path: Path) -> None:
    for attempt in range(4):
        worker = _python(_ROUNDS, tmp_path)
        assert worker.stdout is not None
        worker.stdout.readline()
        time.sleep(0.05 + 0.07 * attempt)
        os.kill(worker.pid, signal.SIGKILL)
        worker.communicate()
        with Memory.open(tmp_path) as memory:
            index, state = memory.progress("r")
            records = {record.id for record in memory.records(run="r")}
        assert records == {variant(number).id for number in range(index * 7)}
        assert state == ({"last": index - 1} if index else {})
        assert _integrity(tmp_path) == "ok"
    assert index > 0


def test_a_forked_child_goes_on_with_its_parents_memory(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as memory:
        memory.add(variant(0))
        child = os.fork()
        if child == 0:  # the child must not run pytest's own exit
            try:
                memory.add(variant(1))
                os._exit(0 if len(memory.records()) == 2 else 3)
            except BaseException:
                os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        memory.add(variant(2))
        assert len(memory) == 3
    assert _integrity(tmp_path) == "ok"


def _limit_pages(memory: Memory, spare: int) -> None:
    """Make SQLite report a full disk ``spare`` pages from here."""
    with memory._store.database.read() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + spare}")


def test_a_full_disk_stores_whole_writes_or_nothing(tmp_path: Path) -> None:
    big = [variant(number, "x = 0\n" + f"# {'long ' * 4000}") for number in range(10)]
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as memory:
        memory.commit_round("r", 0, [variant(0)], {"round": 0})
        _limit_pages(memory, spare=12)
        with pytest.raises(StoreError, match=r"no space left for .*free space"):
            memory.commit_round("r", 1, big, {"round": 1})
        assert len(memory) == 1
        assert memory.progress("r") == (1, {"round": 0})
        _limit_pages(memory, spare=10_000)
        assert memory.commit_round("r", 1, big, {"round": 1}) == 10
    with Memory.open(tmp_path) as memory:
        assert len(memory) == 11
    assert _integrity(tmp_path) == "ok"


def _fill(memory: Memory) -> tuple[int, str]:
    """Commit rounds until the disk is full; return how many were committed and the message."""
    for index in range(10_000):
        try:
            memory.commit_round("r", index, [variant(index, f"# {'long ' * 2000}")])
        except StoreError as error:
            return index, str(error)
    return 10_000, ""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_really_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this container may not mount a file system")
    try:
        memory = Memory.open(disk / "pool", embedder=HashedTokenEmbedder())
        stored, error = _fill(memory)
        assert f"{disk}/pool/memory.sqlite" in error
        assert stored > 3
        assert len(memory) == stored
        memory.search("chain", k=3)  # the index cache finds no room either, and that is no error
        memory.close()
        with Memory.open(disk / "pool", read_only=True) as again:
            assert len(again.records()) == stored
            assert again.progress("r")[0] == stored
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("contents", [b"garbage" * 1000, os.urandom(4096), b"SQLite format 3\x00" + b"\xff" * 5000])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_memory_is_named_and_not_touched(tmp_path: Path, contents: bytes, read_only: bool) -> None:
    file = tmp_path / "memory.sqlite"
    file.write_bytes(contents)
    for open_it in (lambda: Memory.open(tmp_path, read_only=read_only), lambda: Memory.ids(tmp_path)):
        with pytest.raises(StoreError) as caught:
            open_it()
        assert str(file) in str(caught.value)
        assert "backup" in str(caught.value) or "permissions" in str(caught.value)
    assert file.read_bytes() == contents


def test_damage_inside_the_file_is_reported(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.commit_round("r", 0, [variant(number, f"# {'long ' * 500}") for number in range(50)])
    file = tmp_path / "memory.sqlite"
    data = bytearray(file.read_bytes())
    data[8192:-4096] = b"\xa5" * len(data[8192:-4096])
    file.write_bytes(data)
    with pytest.raises(StoreError, match=r"damaged.*backup"), Memory.open(tmp_path) as memory:
        memory.records()


def test_what_is_readable_of_a_damaged_memory_can_be_saved(tmp_path: Path) -> None:
    damaged, file = tmp_path / "damaged", tmp_path / "damaged" / "memory.sqlite"
    records = [variant(number, f"# {number} {'long ' * 500}") for number in range(100)]
    with Memory.open(damaged) as memory:
        memory.commit_round("r", 0, records, {"loss": 1.5})
        memory.record_plays(records[0].id, [1.0, 0.0], hinted=False)
        expected = {record.id: record for record in memory.records()}
    assert salvage(damaged, tmp_path / "whole") == Salvaged(100, 0, 0)
    with Memory.open(tmp_path / "whole") as memory:
        assert {record.id: record for record in memory.records(run="r")} == expected
        assert memory.progress("r") == (1, {"loss": 1.5})
    with pytest.raises(StoreError, match="holds records already"):
        salvage(damaged, tmp_path / "whole")

    data = bytearray(file.read_bytes())
    pages = len(data) // 4096
    for page in (pages // 2, pages // 2 + 1):
        data[page * 4096 : (page + 1) * 4096] = os.urandom(4096)
    file.write_bytes(data)
    summary = salvage(damaged, tmp_path / "part")
    assert 90 <= summary.records < 100
    with Memory.open(tmp_path / "part") as memory:
        assert len(memory) == summary.records
        assert all(record.source == expected[record.id].source for record in memory.records())
    assert file.read_bytes() == data


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "memory.sqlite"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE notes (text)")
    connection.commit()
    connection.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match="another program's"):
        Memory.open(tmp_path)
    assert file.read_bytes() == before


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.add(variant(0))
    connection = sqlite3.connect(tmp_path / "memory.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for open_it in (
        lambda: Memory.open(tmp_path),
        lambda: Memory.open(tmp_path, read_only=True),
        lambda: Memory.ids(tmp_path),
    ):
        with pytest.raises(StoreError, match=r"newer version .*schema 99; this one reads up to 2.*Upgrade"):
            open_it()


def test_read_only_reads_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no memory at"):
        Memory.open(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()
    with Memory.open(tmp_path) as memory:
        memory.add(variant(0))
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder(), read_only=True) as memory:
        assert memory.records() == [variant(0)]
        assert len(memory.search("chain")) == 1
        with pytest.raises(StoreError, match="read-only"):
            memory.add(variant(1))
        with pytest.raises(StoreError, match="read-only"):
            memory.rebuild_index()
    assert not list(tmp_path.glob("index-*"))


def test_any_folder_name_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "a?b#c%20 é&mode=ro"
    with Memory.open(folder) as memory:
        memory.add(variant(0))
    assert Memory.ids(folder) == [(variant(0).id, "ChainEnv")]
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_relative_folder_survives_a_change_of_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory.open("pool", embedder=HashedTokenEmbedder()) as memory:
        memory.add(variant(0))
        monkeypatch.chdir("/")
        assert len(memory.search("chain")) == 1
    assert list((tmp_path / "pool").glob("index-*"))


def test_a_folder_is_expected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file; name a folder"):
        Memory.open(tmp_path / "file")
    with pytest.raises(StoreError, match="cannot create"):
        Memory.open(tmp_path / "file" / "below")
    assert Memory.ids(tmp_path / "file") == []


_AS_NOBODY = """
import os, sys; sys.path.insert(0, sys.argv[1])
from memory_programs import variant
from spade_envs.memory import HashedTokenEmbedder, Memory, StoreError
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Memory.open(sys.argv[2])
except StoreError as error:
    print(error)
with Memory.open(sys.argv[2], read_only=True, embedder=HashedTokenEmbedder()) as memory:
    print(len(memory.records()), len(memory.search("chain")), len(Memory.ids(sys.argv[2])))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="becoming another user needs root")
def test_a_folder_of_another_user_can_be_read(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    memory = Memory.open(tmp_path)
    memory.add(variant(0))
    for state in ("open", "closed"):  # with the writer's log beside the file, and without
        if state == "closed":
            memory.close()
        before = sorted(path.name for path in tmp_path.iterdir())
        worker = _python(_AS_NOBODY, tmp_path)
        output, errors = worker.communicate()
        assert worker.returncode == 0, errors
        first, second = output.strip().splitlines()
        assert "not writable" in first
        assert "read_only=True" in first
        assert second == "1 1 1"
        assert sorted(path.name for path in tmp_path.iterdir()) == before
