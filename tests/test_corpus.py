"""Reading corpora and drawing from them."""

from __future__ import annotations

import gzip
import json
import logging
import os
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_envs.corpus import Corpus, CorpusError, Document, cut_words, permuted
from spade_envs.corpus.hub_rows import HubSpec, parse_spec


def _lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_json_lines_give_text_id_and_the_other_fields(tmp_path: Path) -> None:
    path = _lines(tmp_path / "a.jsonl", {"text": "one", "id": "x", "topic": "t"}, {"orig_doc": "two", "text": " "})
    corpus = Corpus.open(path)
    assert list(corpus) == [Document("x", "one", {"topic": "t"}), Document("a.jsonl:2", "two", {"text": " "})]


def test_a_named_field_is_the_only_one_looked_at(tmp_path: Path) -> None:
    path = _lines(tmp_path / "a.jsonl", {"body": "one", "text": "no"}, {"text": "two"})
    corpus = Corpus.open(path, field="body")
    assert [document.text for document in corpus] == ["one"]
    assert dict(corpus.skipped) == {"without text in body": 1}


def test_bad_lines_are_counted_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"text": "first"}\n\n{"text": \n[1]\n{"text": 3}\n\xff\xfe\n{"text": "\\ud800 last"}'
    )
    with caplog.at_level(logging.WARNING):
        corpus = Corpus.open(path)
    assert [document.text for document in corpus] == ["first", "? last"]
    assert dict(corpus.skipped) == {"not JSON": 2, "not an object": 1, "without text in text or orig_doc": 1}
    assert "line 3 skipped: not JSON" in caplog.text
    assert "skipped 4 of 6 rows" in caplog.text


def test_gzip_reads_like_the_plain_file(tmp_path: Path) -> None:
    rows = [{"text": f"document {number}"} for number in range(50)]
    plain = _lines(tmp_path / "a.jsonl", *rows)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    one, two = Corpus.open(plain), Corpus.open(packed)
    assert [document.text for document in one] == [document.text for document in two]
    assert one.fingerprint == two.fingerprint
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(CorpusError, match="whole gzip"):
        Corpus.open(packed)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"id": [7, 8, 9], "orig_doc": ["one", None, "three"], "tag": ["a", "b", "c"]})
    pyarrow.parquet.write_table(table, path)
    corpus = Corpus.open(path)
    assert list(corpus) == [Document("7", "one", {"tag": "a"}), Document("9", "three", {"tag": "c"})]
    assert Corpus.open(path, field="tag")[1].text == "b"
    with pytest.raises(CorpusError, match="it has id, orig_doc, tag"):
        Corpus.open(path, field="body")
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(CorpusError, match="not a readable Parquet"):
        Corpus.open(path)


def test_a_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.md").write_text("# b")
    (tmp_path / "sub" / "a.TXT").write_bytes(b"caf\xe9")
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "code.py").write_text("x = 1")
    corpus = Corpus.open(tmp_path)
    assert [(document.id, document.text) for document in corpus] == [("b.md", "# b"), ("sub/a.TXT", "caf\ufffd")]
    assert dict(corpus.skipped) == {"empty file": 1}
    (tmp_path / "b.md").unlink()
    with pytest.raises(CorpusError, match="changed while it was read"):
        corpus[0]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.jsonl", "", "a.jsonl holds no usable document"),
        ("a.jsonl", '{"body": "x"}\n', "without text in text or orig_doc"),
        ("a.csv", "text\nx\n", "unknown format '.csv'"),
        ("a", None, "does not exist"),
    ],
)
def test_unusable_corpora_are_errors_that_name_the_file(
    tmp_path: Path, name: str, content: str | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError, match=reason) as caught:
        Corpus.open(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_an_unknown_built_in_corpus_is_an_error() -> None:
    with pytest.raises(CorpusError, match="no built-in corpus 'builtin:none'"):
        Corpus.open("builtin:none")


def test_a_file_that_changes_under_the_reader_is_an_error(tmp_path: Path) -> None:
    path = _lines(tmp_path / "a.jsonl", {"text": "one"}, {"text": "two"})
    corpus = Corpus.open(path)
    path.write_text("{}")
    with pytest.raises(CorpusError, match="changed while it was read"):
        corpus[1]


@settings(deadline=None)
@given(size=st.integers(1, 3000), key=st.tuples(st.integers(0, 2**63), st.integers(0, 9)))
def test_the_order_is_a_permutation(size: int, key: tuple[int, int]) -> None:
    assert sorted(permuted(index, size, key) for index in range(size)) == list(range(size))


@settings(deadline=None)
@given(size=st.integers(1, 10**15), key=st.tuples(st.integers()), data=st.data())
def test_large_orders_stay_in_range_and_do_not_collide(size: int, key: tuple[int], data: st.DataObject) -> None:
    indices = data.draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=20))
    images = {permuted(index, size, key) for index in indices}
    assert len(images) == len(indices)
    assert all(0 <= image < size for image in images)


def test_orders_of_different_seeds_look_random() -> None:
    size, seeds = 10, 4000
    counts = [[0] * size for _ in range(size)]
    for seed in range(seeds):
        for index in range(size):
            counts[index][permuted(index, size, (seed, 0))] += 1
    expected = seeds / size
    chi2 = sum((count - expected) ** 2 / expected for row in counts for count in row)
    assert chi2 < 130  # 81 degrees of freedom: the 99.95th percentile is 129


def test_sampling_repeats_nothing_until_all_came(tmp_path: Path) -> None:
    corpus = Corpus.open(_lines(tmp_path / "a.jsonl", *({"text": str(number)} for number in range(7))))
    turns = [[corpus.sample(5, 7 * turn + index).text for index in range(7)] for turn in range(3)]
    assert all(sorted(turn) == [str(number) for number in range(7)] for turn in turns)
    assert len({tuple(turn) for turn in turns}) > 1
    again = Corpus.open(tmp_path / "a.jsonl")
    assert [again.sample(5, index).text for index in range(21)] == [text for turn in turns for text in turn]
    assert [again.sample(6, index).text for index in range(7)] != turns[0]


@settings(deadline=None)
@given(words=st.lists(st.text("abc", min_size=1, max_size=3), max_size=12), limit=st.integers(0, 12))
def test_cutting_by_words(words: list[str], limit: int) -> None:
    text = "  \n ".join(words)
    cut = cut_words(text, limit)
    assert cut.split() == words[:limit]
    assert text.startswith(cut)


def test_documents_that_repeat_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = ["one two", "three", " one\n\n two ", "One two", "three"]
    path = _lines(tmp_path / "a.jsonl", *({"text": text} for text in texts))
    with caplog.at_level(logging.WARNING):
        corpus = Corpus.open(path)
    assert [document.text for document in corpus] == ["one two", "three", "One two"]
    assert dict(corpus.skipped) == {"repeating another document": 2}
    assert "line 3 skipped: repeats line 1" in caplog.text
    assert [document.text for document in Corpus.open(path, deduplicate=False)] == texts
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    assert [document.id for document in Corpus.open(folder)] == ["0.txt", "1.txt", "3.txt"]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet")
    assert [document.id for document in Corpus.open(tmp_path / "a.parquet")] == [
        f"a.parquet:{row}" for row in (0, 1, 3)
    ]


def _zstd(path: Path, content: bytes) -> Path:
    with pyarrow.output_stream(str(path), compression="zstd") as packed:
        packed.write(content)
    return path


def test_zstd_reads_like_the_plain_file(tmp_path: Path) -> None:
    plain = _lines(tmp_path / "a.jsonl", *({"text": f"document {number}"} for number in range(50)))
    packed = _zstd(tmp_path / "a.jsonl.zst", plain.read_bytes())
    assert list(Corpus.open(packed))[7].text == "document 7"
    assert Corpus.open(packed).fingerprint == Corpus.open(plain).fingerprint
    packed.write_bytes(packed.read_bytes()[:-6])
    with pytest.raises(CorpusError, match="whole zstd"):
        Corpus.open(packed)


def _written_files(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}


@pytest.mark.parametrize("form", ["jsonl", "gz", "zst", "parquet"])
def test_what_the_cache_keeps_gives_the_same_corpus_and_is_made_anew_when_the_file_changes(
    form: str, tmp_path: Path
) -> None:
    def write(rows: list[dict[str, object]]) -> Path:
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        if form == "gz":
            (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content))
            return tmp_path / "a.jsonl.gz"
        if form == "zst":
            return _zstd(tmp_path / "a.jsonl.zst", content)
        if form == "parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=3)
            return tmp_path / "a.parquet"
        (tmp_path / "a.jsonl").write_bytes(content)
        return tmp_path / "a.jsonl"

    cache = tmp_path / "cache"
    rows: list[dict[str, object]] = [{"id": f"d{number}", "text": f"text {number % 8}"} for number in range(10)]
    path = write(rows)
    first = Corpus.open(path, cache=cache)
    kept = set(_written_files(cache))
    assert kept
    again = Corpus.open(path, cache=cache)
    assert set(_written_files(cache)) == kept
    assert list(again) == list(first) == list(Corpus.open(path))
    assert again.fingerprint == first.fingerprint == Corpus.open(path).fingerprint
    assert dict(again.skipped) == dict(first.skipped) == {"repeating another document": 2}
    path = write([*rows, {"id": "new", "text": "another"}])
    assert len(Corpus.open(path, cache=cache)) == len(first) + 1
    assert set(_written_files(cache)) > kept


def test_a_damaged_index_is_made_again(tmp_path: Path) -> None:
    path, cache = _lines(tmp_path / "a.jsonl", {"text": "one"}, {"text": "two"}), tmp_path / "cache"
    Corpus.open(path, cache=cache)
    (index,) = cache.iterdir()
    for damage in (b"", b"PK\x03\x04 nothing", index.read_bytes()[:100]):
        index.write_bytes(damage)
        assert [document.text for document in Corpus.open(path, cache=cache)] == ["one", "two"]
        assert Corpus.open(path, cache=cache).fingerprint


def test_small_files_leave_nothing_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    Corpus.open(_lines(tmp_path / "a.jsonl", {"text": "one"}))
    assert not (tmp_path / "home").exists()


def test_a_dataset_folder_is_streamed_once(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    folder, cache = tmp_path / "data", tmp_path / "cache"
    folder.mkdir()
    _lines(folder / "train.jsonl", *({"text": f"text {number}", "n": number} for number in range(6)))
    corpus = Corpus.open(f"hf:{folder}", cache=cache)
    assert [document.text for document in corpus] == [f"text {number}" for number in range(6)]
    assert corpus[3] == Document(f"{folder}:4", "text 3", {"n": 3})
    kept = _written_files(cache)
    assert list(Corpus.open(f"hf:{folder}::train", cache=cache)) == list(corpus)
    assert len(Corpus.open(f"hf:{folder}::train[:2]", cache=cache)) == 2
    assert list(Corpus.open(f"hf:{folder}", cache=cache)) == list(corpus)
    files = _written_files(cache)
    assert len(files) == 2 * len(kept)  # those of the two rows came to those of all
    assert kept.keys() < files.keys()
    with pytest.raises(CorpusError, match="cannot be read as a dataset"):
        Corpus.open(f"hf:{folder}::test", cache=cache)


def test_a_dataset_saved_to_disk(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    stored = datasets.Dataset.from_list([{"orig_doc": "one"}, {"orig_doc": "two"}])
    stored.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": stored}).save_to_disk(str(tmp_path / "split"))
    for name in ("one", "split"):
        corpus = Corpus.open(f"hf:{tmp_path / name}", cache=tmp_path / "cache")
        assert [document.text for document in corpus] == ["one", "two"]


def test_a_dataset_without_a_network_says_how_to_bring_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "none")
    with pytest.raises(CorpusError, match=r"127\.0\.0\.1:1 does not answer.*hf download a/b .*--local-dir.*hf:FOLDER"):
        Corpus.open("hf:a/b", cache=tmp_path / "cache")
    assert "etry" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf:a/b", HubSpec("a/b", None, "train", None)),
        ("hf:a/b:en", HubSpec("a/b", "en", "train", None)),
        ("hf:a/b:en:validation", HubSpec("a/b", "en", "validation", None)),
        ("hf:a/b::test[:100]", HubSpec("a/b", None, "test", 100)),
        ("hf:a/b[:5]", HubSpec("a/b", None, "train", 5)),
    ],
)
def test_names_of_datasets(text: str, expected: HubSpec) -> None:
    assert parse_spec(text) == expected


@pytest.mark.parametrize("text", ["hf:", "hf:a/b:c:d:e", "hf:a/b[5]"])
def test_names_that_are_no_dataset(text: str) -> None:
    with pytest.raises(CorpusError, match="expected hf:OWNER/NAME"):
        Corpus.open(text)


def test_the_cache_forgets_what_nobody_used_for_a_month(tmp_path: Path) -> None:
    path, cache = _lines(tmp_path / "a.jsonl", {"text": "one"}), tmp_path / "cache"
    cache.mkdir()
    for name, days in (("old.npz", 40), ("used.npz", 20), ("killed.tmp", 2)):
        (cache / name).write_bytes(b"")
        os.utime(cache / name, (time.time() - 86_400 * days, 0))
    Corpus.open(path, cache=cache)
    names = {file.name for file in cache.iterdir()}
    assert names & {"old.npz", "used.npz", "killed.tmp"} == {"used.npz"}
    assert len(names) == 2
