"""Two thousand records and an index that changes its kind on the way: exact, then cells."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spade_envs.memory import HashedTokenEmbedder, Memory, ann
from spade_envs.memory.index import VectorIndex
from spade_envs.record import EnvironmentRecord

COUNT, EXACT = 2000, 300
_SYLLABLES = [f"{a}{b}" for a in "bdfgklmnprst" for b in "aeiou"]
_HERE = Path(__file__).parent


def _words(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.sample(_SYLLABLES, 3)) for _ in range(count)]


def made(number: int) -> EnvironmentRecord:
    """A record about one of 40 subjects, with words of its own."""
    rng = random.Random(number % 40)
    subject = _words(rng, 12)
    rng = random.Random(number)
    names = [*rng.sample(subject, 6), *_words(rng, 3)]
    lines = [f"    def {name}(self): return {rng.choice('abc')} {rng.choice('+-*/%')} {number}" for name in names]
    return EnvironmentRecord.create("class AEnv:\n" + "\n".join(lines), "AEnv", skill=f"s{number % 3}")


def _open(folder: Path, **options: object) -> Memory:
    return Memory.open(folder, embedder=HashedTokenEmbedder(64), exact_up_to=EXACT, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory filled in pieces with searches between, so that the index grows with it."""
    folder = tmp_path_factory.mktemp("filled")
    kinds = []
    with _open(folder) as memory:
        for start in range(0, COUNT, 200):
            assert memory.add_many((made(number) for number in range(start, start + 200)), batch=70) == 200
            memory.search("bada", k=1)
            kinds.append(memory.index_kind())
    assert kinds == ["flat"] + ["ivf"] * 9
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    shutil.copytree(filled, tmp_path / "pool")
    return tmp_path / "pool"


def _queries() -> list[str]:
    return [" ".join(_words(random.Random(number % 40), 12)[:4]) for number in range(0, 400, 10)]


def test_few_neighbours_are_missed(folder: Path) -> None:
    with _open(folder) as memory:
        found = [[score for _, score in memory.search(query, 10)] for query in _queries()]
        everything = [one.id for one, _ in memory.search("bada", COUNT + 5)]
        kind = memory.index_kind()
    with Memory.open(folder, embedder=HashedTokenEmbedder(64)) as memory:
        memory.rebuild_index()
        assert memory.index_kind() == "flat"
        exact = [[score for _, score in memory.search(query, 10)] for query in _queries()]
    assert kind == "ivf"
    # Many are equally near, so what counts is how many are as near as the tenth.
    shares = [np.mean(np.array(one) >= other[-1] - 1e-3) for one, other in zip(found, exact, strict=True)]
    assert np.mean(shares) >= 0.95
    assert len(everything) == len(set(everything)) == COUNT


def test_duplicates_and_filters_at_size(folder: Path) -> None:
    with _open(folder) as memory:
        for number in (0, 777, 1999):
            record = made(number)
            copy = memory.duplicate_of(f"# a copy\n{record.source}", literals=True)
            assert copy is not None
            assert (copy.id, copy.overlap) == (record.id, 1.0)
        hits = memory.search(_queries()[0], 20, skill="s1")
        assert len(hits) == 20
        assert {one.skill for one, _ in hits} == {"s1"}
        assert len(memory.evict(COUNT - 50)) == 50
        assert len(memory.search("bada", COUNT)) == COUNT - 50


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "tail cut", "tail flipped", "tail of another"])
def test_a_damaged_index_is_made_again(folder: Path, damage: str) -> None:
    with _open(folder) as memory:
        memory.add_many(made(number) for number in range(COUNT, COUNT + 80))
    with _open(folder) as memory:
        expected = [one.id for one, _ in memory.search(_queries()[3], 200)]
    file, tail = next(folder.glob("index-*.faiss")), next(folder.glob("index-*.tail"))
    target = tail if damage.startswith("tail") else file
    data = bytearray(target.read_bytes())
    if damage == "missing":
        target.unlink()
    elif damage.endswith("cut"):
        target.write_bytes(data[:-10])
    elif damage == "tail of another":
        target.write_bytes(b'{"format": 0}\n' + data)
    else:
        data[len(data) // 2] ^= 1
        target.write_bytes(data)
    for _ in range(2):
        with _open(folder) as memory:
            found = [one.id for one, _ in memory.search(_queries()[3], 200)]
            assert len(memory.search("bada", COUNT + 80)) == COUNT + 80
        assert len(set(found) & set(expected)) >= 190  # other cells, nearly the same neighbours
    assert not tail.exists() or damage == "missing"  # what was damaged is not appended to


def test_saving_a_few_vectors_does_not_write_them_all(folder: Path) -> None:
    file = next(folder.glob("index-*.faiss"))
    before = file.stat().st_mtime_ns
    for round_index in range(3):
        with _open(folder) as memory:
            memory.add(made(COUNT + round_index))
            memory.search("bada", 1)
    assert file.stat().st_mtime_ns == before
    assert 3 * 64 * 4 < file.with_suffix(".tail").stat().st_size < 2000
    index = VectorIndex(HashedTokenEmbedder(64), folder, EXACT)
    assert len(index) == COUNT + 3
    with _open(folder) as memory:  # an eighth is new: now the whole file is written, and the tail ends
        memory.add_many(made(number) for number in range(COUNT + 3, COUNT + 300))
        memory.search("bada", 1)
    assert file.stat().st_mtime_ns != before
    assert not file.with_suffix(".tail").exists()


def test_a_stale_index_and_a_rollback_at_size(folder: Path) -> None:
    with _open(folder) as one, _open(folder) as other:
        assert len(one.search("bada", 3000)) == COUNT
        position = other.position()
        other.commit_round("r", 0, [made(number) for number in range(COUNT, COUNT + 300)])
        assert len(one.search("bada", 3000)) == COUNT + 300
        other.rollback("r", position)
        assert len(one.search("bada", 3000)) == len(other.search("bada", 3000)) == COUNT
        assert one.index_kind() == "ivf"
    with _open(folder) as memory:
        assert len(memory.search("bada", 3000)) == COUNT


_WRITE = """
import sys; sys.path.insert(0, sys.argv[1])
from test_size import _open, made
from pathlib import Path
start = int(sys.argv[3])
with _open(Path(sys.argv[2])) as memory:
    for number in range(start, start + 150):
        memory.add(made(number))
        if number % 10 == 0:
            memory.search("bada", k=5)
"""


def test_processes_that_write_at_once_share_the_index(folder: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", _WRITE, str(_HERE), str(folder), str(start)])
        for start in (COUNT, COUNT + 100)
    ]
    assert [worker.wait() for worker in workers] == [0, 0]
    for _ in range(2):
        with _open(folder) as memory:
            assert len(memory) == COUNT + 250
            assert len(memory.search("bada", 3000)) == COUNT + 250
    assert not [file for file in os.listdir(folder) if file.endswith(".tmp")]


def test_cells_grow_with_the_number_of_vectors() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(1200, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index, cells = ann.empty(16), []
    for start in range(0, 1200, 100):
        index = ann.extended(index, vectors[start : start + 100], exact_up_to=250)
        cells.append(index.nlist if ann.is_inverted(index) else 0)
        assert index.ntotal == start + 100
    assert cells[:2] == [0, 0]
    assert cells == sorted(cells)
    assert set(cells[2:]) == {28, 42}  # learnt at 300, and when the number had doubled
    assert np.allclose(ann.all_vectors(index), vectors, atol=1e-3)
    again = [ann.trained(vectors) for _ in range(2)]
    results = [sorted(ann.nearest(one, vectors[:1], 10)) for one in again]
    assert results[0] == results[1]
