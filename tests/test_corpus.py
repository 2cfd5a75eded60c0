"""Reading corpora and drawing from them."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.corpus import Corpus, CorpusError, Document, cut_words, permuted


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


@given(size=st.integers(1, 3000), key=st.tuples(st.integers(0, 2**63), st.integers(0, 9)))
def test_the_order_is_a_permutation(size: int, key: tuple[int, int]) -> None:
    assert sorted(permuted(index, size, key) for index in range(size)) == list(range(size))


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


@given(words=st.lists(st.text("abc", min_size=1, max_size=3), max_size=12), limit=st.integers(0, 12))
def test_cutting_by_words(words: list[str], limit: int) -> None:
    text = "  \n ".join(words)
    cut = cut_words(text, limit)
    assert cut.split() == words[:limit]
    assert text.startswith(cut)
