"""Storing, reading, naming, progress and rollback."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_programs import AUCTION, MAZE, PLAIN, played, variant

from spade_envs.memory import HashedTokenEmbedder, Memory, UnknownRecord, default_home
from spade_envs.record import EnvironmentRecord, PlayStatistics

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=6,
)
_TEXT = st.text(st.characters(), max_size=40)  # every code point: NUL, lone surrogates, astral
_COUNT = st.integers(0, 10**6)
_FINITE = st.floats(-1e6, 1e6)
_RECORDS = st.builds(
    EnvironmentRecord.create,
    _TEXT,
    st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True),
    kind=st.sampled_from(["game", "tool_use"]),
    skill=_TEXT,
    hint=_TEXT,
    document_id=_TEXT,
    document=_TEXT,
    parents=st.lists(_TEXT, max_size=2).map(tuple),
    generator=_TEXT,
    max_turns=st.integers(0, 100),
    allow=st.lists(_TEXT, max_size=2).map(tuple),
    licence=_TEXT,
    proven=st.booleans(),
    report=st.dictionaries(_TEXT, _JSON, max_size=3),
    meta=st.dictionaries(_TEXT, _JSON, max_size=3),
    created_at=st.floats(0, 1e10),
    statistics=st.builds(PlayStatistics, _COUNT, _FINITE, _COUNT, _COUNT, _FINITE, _COUNT),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(_RECORDS, min_size=1, max_size=3, unique_by=lambda record: record.id), run=_TEXT)
def test_any_record_comes_back_as_it_was(memory: Memory, records: list[EnvironmentRecord], run: str) -> None:
    for record in records:
        if memory.add(record, run=run):
            assert memory.get(record.id) == record
            assert record in memory.records(skill=record.skill, run=run, kind=record.kind, generator=record.generator)
        assert record.id in memory


def test_the_database_outlives_the_process_that_wrote_it(tmp_path: Path) -> None:
    record = EnvironmentRecord.create(MAZE, "MazeEnv", skill="Spatial Reasoning", meta={"a": [1, None]})
    with Memory.open(tmp_path) as memory:
        assert memory.add(record)
        assert not memory.add(record)
    with Memory.open(tmp_path) as memory:
        assert memory.records() == [record]
        assert len(memory) == 1


def test_records_can_be_filtered_ordered_and_cut(memory: Memory) -> None:
    first = EnvironmentRecord.create(MAZE, "MazeEnv", skill="Space", generator="nano")
    second = EnvironmentRecord.create(AUCTION, "AuctionEnv", skill="Optimization", kind="tool_use")
    third = EnvironmentRecord.create(PLAIN, "ChainEnv", skill="Space")
    memory.add(first, run="a")
    memory.commit_round("b", 0, [second, third])
    assert memory.records() == [first, second, third]
    assert memory.records(newest_first=True, limit=2) == [third, second]
    assert memory.records(skill="Space") == [first, third]
    assert memory.records(kind="tool_use") == [second]
    assert memory.records(generator="nano") == memory.records(run="a") == [first]
    assert memory.records(run="b", skill="Space") == [third]
    assert memory.records(limit=0) == []


def test_get_takes_ids_prefixes_and_environment_ids(memory: Memory) -> None:
    record = EnvironmentRecord.create(MAZE, "MazeEnv")
    memory.add(record)
    memory.add(EnvironmentRecord.create(AUCTION, "AuctionEnv"))
    for key in (
        record.id,
        record.id[:6],
        record.id[:10].upper(),
        record.env_id,
        "spade_envs:" + record.env_id,
    ):
        assert memory.get(key) == record
    with pytest.raises(UnknownRecord, match=f"did you mean {record.env_id}"):
        memory.get("spade/Maze-00000000-v0")
    with pytest.raises(KeyError, match="6 or more of its first digits"):
        memory.get(record.id[:5])
    with pytest.raises(KeyError, match=record.env_id):
        memory.get("maze")
    with pytest.raises(KeyError, match=record.env_id):  # the digits of the one with the name of the other
        memory.get(record.env_id.replace("Maze", "Maize"))


def test_an_ambiguous_prefix_names_the_candidates(memory: Memory) -> None:
    by_prefix: dict[str, EnvironmentRecord] = {}
    for number in range(20_000):  # two of about 5,000 ids share six digits with a probability of one half
        record = EnvironmentRecord.create(str(number), "AnyEnv")
        twin = by_prefix.setdefault(record.id[:6], record)
        if twin is not record:
            break
    memory.commit_round("r", 0, [twin, record])
    with pytest.raises(UnknownRecord) as caught:
        memory.get(record.id[:6])
    assert twin.id[:16] in str(caught.value)
    assert record.id[:16] in str(caught.value)
    assert memory.get(record.id) == record


def test_statistics_are_base_plus_the_sums_of_plays(memory: Memory) -> None:
    record = EnvironmentRecord.create(MAZE, "MazeEnv", statistics=played((1, 4), (2, 4)))
    memory.add(record)
    memory.record_plays(record.id, [1.0, 0.0, -0.5], hinted=False, run="a", step=1)
    memory.record_plays(record.id, [0.99, 0.98], hinted=True, run="b", step=2)
    memory.record_plays(record.id, [], hinted=True)
    expected = PlayStatistics(7, 1.5, 2, 6, pytest.approx(3.97), 3)
    assert memory.get(record.id).statistics == expected
    assert memory.records()[0].statistics == expected
    assert memory.get(record.id).with_statistics(record.statistics) == record


@given(returns=st.lists(st.floats(-1, 1), min_size=1, max_size=40), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sums_do_not_depend_on_the_order_of_plays(memory: Memory, returns: list[float], seed: int) -> None:
    one, other = variant(seed * 2), variant(seed * 2 + 1)
    for record in (one, other):
        memory.add(record)
        before = memory.get(record.id).statistics
        if before.plain_plays:  # an earlier example used this seed
            return
    memory.record_plays(one.id, returns, hinted=False)
    for value in random.Random(seed).sample(returns, len(returns)):
        memory.record_plays(other.id, [value], hinted=False)
    assert memory.get(one.id).statistics == memory.get(other.id).statistics


def test_plays_must_be_finite_and_of_a_known_record(memory: Memory) -> None:
    record = variant(1)
    memory.add(record)
    with pytest.raises(ValueError, match="finite"):
        memory.record_plays(record.id, [0.0, float("nan")], hinted=False)
    with pytest.raises(KeyError, match="add the record"):
        memory.record_plays("0" * 64, [1.0], hinted=False)
    assert memory.get(record.id).statistics == PlayStatistics()


def test_what_is_not_json_is_refused_before_anything_is_stored(memory: Memory) -> None:
    bad = EnvironmentRecord.create(MAZE, "MazeEnv", meta={"when": object()})
    with pytest.raises(ValueError, match="JSON-safe"):
        memory.commit_round("r", 0, [variant(1), bad])
    assert len(memory) == 0
    assert memory.progress("r") == (0, {})


def test_a_round_stores_records_and_progress_together(memory: Memory) -> None:
    assert memory.progress("r") == (0, {})
    assert memory.commit_round("r", 0, [variant(1), variant(2)], {"attempts": 5}) == 2
    assert memory.commit_round("r", 1, [variant(2), variant(3)], {"attempts": 9}) == 1
    assert memory.progress("r") == (2, {"attempts": 9})
    assert memory.progress("other") == (0, {})
    with pytest.raises(ValueError, match="committed already"):
        memory.commit_round("r", 1, [variant(4)])
    assert len(memory) == 3


def test_rollback_undoes_what_one_run_did_after_a_position(memory: Memory) -> None:
    memory.commit_round("train", 0, [variant(1), variant(2)], {"loss": 1})
    memory.record_plays(variant(1).id, [1.0, 0.0], hinted=False, run="train", step=0)
    position = memory.position()
    before = memory.records()

    memory.commit_round("train", 1, [variant(3), variant(4)], {"loss": 2})
    memory.record_plays(variant(1).id, [1.0] * 5, hinted=False, run="train", step=1)
    memory.record_plays(variant(3).id, [1.0] * 5, hinted=True, run="train", step=1)
    assert memory.evict(2, run="train") == [variant(1).id, variant(2).id]
    memory.add(variant(5), run="import")
    memory.record_plays(variant(2).id, [0.5], hinted=True, run="import")
    memory.record_plays(variant(4).id, [0.5], hinted=True, run="import")

    memory.rollback("train", position)
    assert memory.progress("train") == (1, {"loss": 1})
    after = {record.id: record for record in memory.records()}
    assert after[variant(1).id] == before[0]
    assert after[variant(2).id].statistics == PlayStatistics(hinted_plays=1, hinted_return=0.5)  # another run's play
    assert variant(3).id not in memory
    assert variant(4).id in memory  # another run has played it
    assert variant(5).id in memory
    memory.rollback("train", position)
    assert {record.id: record for record in memory.records()} == after
    assert memory.add(variant(3), run="train")
    assert memory.get(variant(3).id).statistics == PlayStatistics()


def test_rollback_needs_a_run(memory: Memory) -> None:
    with pytest.raises(ValueError, match="name of a run"):
        memory.rollback("", 0)


def test_archived_records_are_hidden_but_not_gone(memory: Memory) -> None:
    memory.commit_round("r", 0, [variant(1), variant(2)])
    assert memory.evict(1) == [variant(1).id]
    assert memory.evict(1) == []
    assert [record.id for record in memory.records()] == [variant(2).id]
    assert [record.id for record in memory.records(archived=True)] == [variant(1).id]
    assert len(memory.records(archived=None)) == 2
    assert len(memory) == 1
    assert variant(1).id in memory
    assert memory.get(variant(1).id) == variant(1)
    assert not memory.add(variant(1))
    assert [record.id for record, _ in memory.search("chain of words")] == [variant(2).id]
    assert len(Memory.ids(memory.path)) == 2


def test_ids_lists_without_leaving_a_trace(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    assert Memory.ids(folder) == []
    assert not folder.exists()
    with Memory.open(folder) as memory:
        memory.commit_round("r", 0, [variant(1), variant(2)])
        expected = [(variant(1).id, "ChainEnv"), (variant(2).id, "ChainEnv")]
        assert Memory.ids(folder) == expected  # with a writer's log beside it
    files = sorted(folder.iterdir())
    assert Memory.ids(folder) == expected
    assert sorted(folder.iterdir()) == files
    (folder / "memory.sqlite").write_bytes(b"")
    assert Memory.ids(folder) == []


def test_opening_and_listing_import_nothing_heavy(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.add(variant(1))
    code = (
        "import sys; from spade_envs.memory import Memory; import random\n"
        f"with Memory.open({str(tmp_path)!r}) as memory:\n"
        "    assert len(memory.records()) == 1\n"
        "    memory.exemplars('Logic', random.Random(0)), memory.get(memory.records()[0].id)\n"
        f"assert len(Memory.ids({str(tmp_path)!r})) == 1\n"
        "print({'faiss', 'wordllama', 'torch', 'tokenizers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_default_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPADE_HOME", str(tmp_path / "here"))
    assert default_home() == tmp_path / "here"
    with Memory.open() as memory:
        assert memory.path == tmp_path / "here"
    monkeypatch.delenv("SPADE_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_home().name == "memory"
    assert default_home().parent.name == "spade"


def test_threads_share_one_memory(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as memory:

        def work(worker: int) -> None:
            try:
                for number in range(10):
                    record = variant(worker * 100 + number)
                    memory.add(record)
                    memory.record_plays(record.id, [1.0, 0.0], hinted=bool(number % 2))
                    memory.search("chain", k=3)
                    memory.duplicate_of(record.source)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        records = memory.records()
        assert len(records) == 40
        assert sum(one.statistics.plain_plays + one.statistics.hinted_plays for one in records) == 80
        assert len(memory.search("chain", k=100)) == 40


def test_a_closed_memory_says_so(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path)
    memory.close()
    memory.close()
    with pytest.raises(RuntimeError, match="closed"):
        memory.records()


@pytest.mark.parametrize("capacity", [0, -3])
def test_capacity_must_be_positive(tmp_path: Path, capacity: int) -> None:
    with pytest.raises(ValueError, match="capacity"):
        Memory.open(tmp_path, capacity=capacity)


def test_plays_are_stored_with_the_round_or_not_at_all(memory: Memory) -> None:
    record = variant(1)
    memory.commit_round(
        "r", 0, [record], {"round": 0}, plays=[(record.id, [1.0, 0.0], False), (record.id, [1.0], True)]
    )
    played = memory.get(record.id).statistics
    assert (played.plain_plays, played.plain_wins, played.hinted_plays, played.regret) == (2, 1, 1, 0.5)
    with pytest.raises(KeyError):
        memory.commit_round("r", 1, [], {"round": 1}, plays=[(record.id, [1.0], False), ("0" * 64, [1.0], False)])
    assert memory.progress("r") == (1, {"round": 0})
    assert memory.get(record.id).statistics == played
