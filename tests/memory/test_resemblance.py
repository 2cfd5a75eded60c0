"""Tokens, embedders, the vector index, search and near-duplicates."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_programs import AUCTION, MAZE, PLAIN, renamed, variant

from spade_envs.memory import (
    Embedder,
    HashedTokenEmbedder,
    Memory,
    WordLlamaEmbedder,
    default_embedder,
    lexical,
)
from spade_envs.record import EnvironmentRecord

WORDLLAMA = importlib.util.find_spec("wordllama") is not None

PIECES = [*"abAB01 ._\n\t\\'\"#()[]=:{}é漢", '"""', "'''", "f'", 'rb"', "def ", "\ud800"]
CODE = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@given(CODE)
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_compared(source: str) -> None:
    assert lexical.overlap(lexical.shingles(source), lexical.shingles(source)) == 1.0
    assert lexical.fingerprint(source) == lexical.fingerprint(source)
    words = lexical.words(source).split()
    assert len(words) == len(set(words))
    assert "#" not in lexical.tokens(source)


def test_tokens_agree_with_python_on_real_code() -> None:
    for source in (MAZE, AUCTION, PLAIN):
        kinds = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}
        expected = [token.type for token in tokenize.generate_tokens(StringIO(source).readline) if token.type in kinds]
        if sys.version_info < (3, 12):  # later versions split f-strings
            assert len(lexical.tokens(source)) == len(expected)


def test_own_names_numbers_and_texts_are_erased_and_library_names_kept() -> None:
    source = "class A:\n  def step(self, x):  # why\n    self.append = sorted(x.items())[3:] + random.sample('ab', 2)\n"
    assert " ".join(lexical.tokens(source)) == (
        "class v : def step ( self , v ) : self . v = sorted ( v . items ( ) ) [ 0 : ] + random . sample ( s , 0 )"
    )
    assert " ".join(lexical.tokens("x = 'two words' + 31", literals=True)) == "v = two words s + 31"


@pytest.mark.parametrize("hostile", ['"""' * 60_000, "'" * 190_000, "\\" * 190_000, "A" * 190_000 + "a", "_" * 10**6])
def test_hostile_sources_are_scanned_in_linear_time(hostile: str) -> None:
    # A quadratic pattern would run for minutes here and trip the suite's limit.
    lexical.shingles(hostile)
    lexical.words(hostile)


def _embedders() -> list[Callable[[], Embedder]]:
    return [HashedTokenEmbedder, WordLlamaEmbedder] if WORDLLAMA else [HashedTokenEmbedder]


@pytest.mark.parametrize("make", _embedders())
def test_embedders_normalise_and_repeat_themselves(make: Callable[[], Embedder]) -> None:
    texts = ["find the way out of a maze", "bid for paintings", "", "\ud800 broken", "word " * 50_000, "漢字 é"]
    one, two = make(), make()
    assert isinstance(one, Embedder)
    vectors = one.embed(texts)
    assert vectors.shape == (6, one.dimension)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert lengths[[0, 1, 3, 4, 5]] == pytest.approx(1.0, abs=1e-5)
    assert lengths[2] == 0.0
    assert np.array_equal(vectors, two.embed(texts))
    for text, vector in zip(texts, vectors, strict=True):  # alone as in a batch
        assert np.array_equal(one.embed([text])[0], vector)
    assert one.embed([]).shape == (0, one.dimension)


@pytest.mark.parametrize("make", _embedders())
def test_search_ranks_by_subject(tmp_path: Path, make: Callable[[], Embedder]) -> None:
    maze = EnvironmentRecord.create(MAZE, "MazeEnv", skill="Space")
    auction = EnvironmentRecord.create(AUCTION, "AuctionEnv", skill="Optimization")
    chain = EnvironmentRecord.create(PLAIN, "ChainEnv", skill="Space")
    with Memory.open(tmp_path, embedder=make()) as memory:
        assert memory.search("anything") == []
        memory.commit_round("r", 0, [maze, auction, chain])
        assert memory.search("find the way out of a maze", k=1)[0][0] == maze
        assert memory.search("bid for a painting at an auction", k=1)[0][0] == auction
        found = memory.search("bid for a painting at an auction", k=5, skill="Space")
        assert {record.id for record, _ in found} == {maze.id, chain.id}
        scores = [score for _, score in memory.search("walk north", k=3)]
        assert scores == sorted(scores, reverse=True)
        assert memory.similar(maze.source, k=2)[0][0] == maze
        assert memory.search("maze", k=0) == []


@pytest.mark.skipif(not WORDLLAMA, reason="wordllama is not installed: it has no wheel for this Python")
def test_wordllama_never_downloads_and_leaves_logging_alone(tmp_path: Path) -> None:
    code = (
        "import socket, logging\n"
        "def refuse(*args, **kwargs): raise AssertionError('network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from spade_envs.memory import default_embedder\n"
        "embedder = default_embedder()\n"
        "root = logging.getLogger()\n"
        "print(embedder.name, embedder.embed(['a maze']).shape, root.level, root.handlers)"
    )
    environment = {**os.environ, "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith("wordllama-")
    assert done.stdout.strip().endswith(f"(1, 256) {logging.WARNING} []")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not WORDLLAMA, reason="wordllama is not installed: it has no wheel for this Python")
def test_hashed_words_stand_in_where_wordllama_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_embedder().name.startswith("wordllama")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert default_embedder().name == "hashed-512"


# ---- near-duplicates


@pytest.mark.parametrize("make", _embedders())
def test_renaming_does_not_make_a_program_new(tmp_path: Path, make: Callable[[], Embedder]) -> None:
    with Memory.open(tmp_path, embedder=make()) as memory:
        assert memory.duplicate_of(MAZE) is None
        maze = EnvironmentRecord.create(MAZE, "MazeEnv")
        memory.commit_round("r", 0, [EnvironmentRecord.create(AUCTION, "AuctionEnv"), maze])

        same = memory.duplicate_of("\n" + MAZE.replace("\n", "\r\n"))
        assert same is not None
        assert (same.id, same.similarity, same.overlap) == (maze.id, 1.0, 1.0)

        twin = memory.duplicate_of(renamed(MAZE))
        assert twin is not None
        assert twin.id == maze.id
        assert twin.overlap > 0.95
        assert twin.similarity > 0.5

        edited = MAZE.replace("won = target", "self.steps = self.turn\n        won = target")
        near = memory.duplicate_of(edited)
        assert near is not None
        assert 0.85 <= near.overlap < 1.0
        assert memory.duplicate_of(edited, min_overlap=0.999) is None


def test_similar_programs_are_not_duplicates(memory: Memory) -> None:
    memory.add(EnvironmentRecord.create(MAZE, "MazeEnv"))
    # The same subject and words, another game: the goal is to visit every room, walls are gone.
    walk = MAZE.replace("if target in self.walls or min(target) < 0", "if min(target) < 0").replace(
        "        self.position = target\n        won = target == (self.size - 1, self.size - 1)\n",
        "        self.position = target\n        self.seen = getattr(self, 'seen', set()) | {target}\n"
        "        rooms = [(x, y) for x in range(self.size) for y in range(self.size)]\n"
        "        missing = [room for room in rooms if room not in self.seen]\n"
        "        won = not missing and self.turn < 3 * len(rooms)\n",
    )
    assert memory.duplicate_of(walk) is None
    assert memory.similar(walk, k=1)[0][1] > 0.8
    assert memory.duplicate_of(AUCTION) is None
    assert memory.duplicate_of("") is None


def test_literals_can_count(memory: Memory) -> None:
    record = EnvironmentRecord.create(PLAIN, "ChainEnv")
    memory.add(record)
    other = PLAIN.replace('"owl", "lamp", "pear", "rabbit"', '"stone", "elm", "mole", "ewe"').replace("% 4", "% 3")
    found = memory.duplicate_of(other)
    assert found is not None
    assert found.overlap == 1.0
    assert memory.duplicate_of(other, literals=True) is None
    assert memory.duplicate_of(PLAIN + "# a comment", literals=True, min_overlap=1.0) is not None


def test_among_many_twins_the_one_with_equal_literals_is_found(memory: Memory) -> None:
    sources = [PLAIN.replace("% 4", f"% {number}") for number in range(2, 60)]
    memory.commit_round("r", 0, [EnvironmentRecord.create(source, "ChainEnv") for source in sources])
    for source in (sources[0], sources[30], sources[-1]):
        found = memory.duplicate_of(f"# again\n{source}", literals=True, min_overlap=1.0)
        assert found is not None
        assert memory.get(found.id).source == source.strip("\n") + "\n"


def test_archived_records_still_count_as_duplicates(memory: Memory) -> None:
    memory.add(EnvironmentRecord.create(MAZE, "MazeEnv"))
    memory.evict(0)
    assert memory.duplicate_of(renamed(MAZE)) is not None


# ---- the index file is only a cache


def _results(folder: Path, embedder: Embedder | None = None) -> list[tuple[str, float]]:
    with Memory.open(folder, embedder=embedder or HashedTokenEmbedder()) as memory:
        return [(record.id, score) for record, score in memory.search("chain of words with a maze", k=50)]


def _filled(folder: Path) -> Path:
    with Memory.open(folder, embedder=HashedTokenEmbedder()) as memory:
        memory.add(EnvironmentRecord.create(MAZE, "MazeEnv"))
        memory.commit_round("r", 0, [variant(number, f"{PLAIN}\nword_{number} = 0") for number in range(12)])
        memory.rebuild_index()
    return next(folder.glob("index-*.faiss"))


@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "cut", "flipped", "text", "folder"])
def test_a_lost_or_damaged_index_is_made_again(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    file = _filled(tmp_path)
    good, expected = file.read_bytes(), _results(tmp_path)
    assert len(expected) == 13
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    contents = {
        "empty": b"",
        "garbage": os.urandom(5000),
        "cut": good[:-100],
        "flipped": bytes(flipped),
        "text": b"[]\n",
    }
    file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage != "missing":
        file.write_bytes(contents[damage])
    with caplog.at_level(logging.WARNING):
        assert _results(tmp_path) == expected
    assert bool(caplog.records) == (damage != "missing")
    if damage != "folder":
        assert file.read_bytes() == good
    assert not list(tmp_path.glob("*.tmp"))


def test_a_stale_index_catches_up(tmp_path: Path) -> None:
    file = _filled(tmp_path)
    old = file.read_bytes()
    with (
        Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as one,
        Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as other,
    ):
        assert len(one.search("chain", k=50)) == 13
        position = other.position()
        other.add(EnvironmentRecord.create(AUCTION, "AuctionEnv"), run="r2")
        assert one.search("bid for paintings", k=1)[0][0].name == "AuctionEnv"
        other.rollback("r2", position)  # and a record may go again
        assert len(one.search("bid for paintings", k=50)) == 13
        assert all(record.name != "AuctionEnv" for record, _ in one.search("bid for paintings", k=50))
        other.add(EnvironmentRecord.create(AUCTION, "AuctionEnv"), run="r2")
        assert one.search("bid for paintings", k=1)[0][0].name == "AuctionEnv"
    expected = _results(tmp_path)
    file.write_bytes(old)  # the cache of an earlier time
    assert _results(tmp_path) == expected


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "round", "rollback", "evict", "reopen"]), st.booleans(), st.integers(0, 14)),
    max_size=14,
)


@given(STEPS)
@settings(max_examples=40, deadline=None)
def test_two_handles_always_find_exactly_what_is_live(steps: list[tuple[str, bool, int]]) -> None:
    """Whatever two users of one folder do, a search over everything returns the live records, for both."""
    with tempfile.TemporaryDirectory() as folder:
        handles = [Memory.open(folder, embedder=HashedTokenEmbedder()) for _ in range(2)]
        for action, second, number in steps:
            memory = handles[second]
            if action == "add":
                memory.add(variant(number), run="a")
            elif action == "round":
                memory.commit_round("b", memory.progress("b")[0], [variant(number + k) for k in range(3)])
            elif action == "rollback":
                memory.rollback("ab"[number % 2], number)
            elif action == "evict":
                memory.evict(number)
            else:
                memory.close()
                handles[second] = memory = Memory.open(folder, embedder=HashedTokenEmbedder())
            if number % 3:  # not after every step: changes pile up between two searches
                live = {record.id for record in memory.records()}
                assert {record.id for record, _ in memory.search("chain", k=99)} == live
                assert len(memory) == len(live)
        for memory in handles:
            live = {record.id for record in memory.records()}
            assert {record.id for record, _ in memory.search("chain", k=99)} == live
            memory.close()


def test_a_killed_writers_temporary_file_is_cleared_away(tmp_path: Path) -> None:
    file = _filled(tmp_path)
    old, new = (file.with_name(f"{file.name}.{number}-1.tmp") for number in (1, 2))
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (0, 0))
    file.unlink()
    _results(tmp_path)
    assert not old.exists()
    assert new.exists()  # perhaps somebody is writing it


def test_an_index_of_another_database_is_not_believed(tmp_path: Path) -> None:
    file = _filled(tmp_path / "one")
    with Memory.open(tmp_path / "two", embedder=HashedTokenEmbedder()) as memory:
        memory.add(EnvironmentRecord.create(AUCTION, "AuctionEnv"))
    (tmp_path / "two" / file.name).write_bytes(file.read_bytes())
    assert len(_results(tmp_path / "two")) == 1


class _Upper:
    """An embedder under its own name, to see that indexes do not mix."""

    name = "first/letter"
    dimension = 26

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), 26), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            row[(ord(text[0]) - 97) % 26 if text else 0] = 1.0
        return vectors


def test_each_embedder_has_its_own_file(tmp_path: Path) -> None:
    _filled(tmp_path)
    expected = _results(tmp_path)
    assert _results(tmp_path, _Upper()) != expected
    assert _results(tmp_path) == expected
    assert {file.name for file in tmp_path.glob("index-*")} == {"index-hashed-512.faiss", "index-first_letter.faiss"}


def test_a_wrong_shape_is_reported(tmp_path: Path) -> None:
    class Wrong(_Upper):
        dimension = 7

    with Memory.open(tmp_path, embedder=Wrong()) as memory:
        memory.add(variant(1))
        with pytest.raises(ValueError, match=r"shape \(1, 7\), got \(1, 26\)"):
            memory.search("chain")
