"""Reading observations without understanding them, and telling leaks from data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.validation import collect_sources, find_source, options
from spade_envs.validation.occurrence import bare, occurrence
from spade_envs.validation.policies import tool_call


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Say \\boxed{take} or \\boxed{skip}", ["take", "skip"]),
        ("Answer \\boxed{N/S/E/W}", ["N", "S", "E", "W"]),
        ("Reply with one of red, green, blue.", ["red", "green", "blue"]),
        ("A) 4\nB) 5\nC) 6", ["A", "B", "C"]),
        ("Is it so (yes/no)?", ["yes", "no"]),
        ("Exits: east, north.", ["east", "north"]),
        ("Begin by typing 'start' or \"go on\" at John's.", ["start", "go on"]),
        ("Nothing here", []),
    ],
)
def test_options(text: str, expected: list[str]) -> None:
    assert list(options.options(text))[: len(expected)] == expected


def test_words_have_no_quotes_around_them() -> None:
    assert options.words("Don't type 'start' at dogs' houses") == ["Don't", "type", "start", "at", "dogs", "houses"]


def test_examples_leave_placeholders_out() -> None:
    assert options.examples("Use \\boxed{...}, like \\boxed{12} or <answer>ten</answer>") == ["12", "ten"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wrong, the correct answer is 42. Try again.", "42"),
        ("answer: 'cat'", "cat"),
        ("The secret word was lantern!", "lantern"),
        ("Answer with a number.", None),
    ],
)
def test_told(text: str, expected: str | None) -> None:
    assert options.told(text) == expected


@pytest.mark.parametrize(
    ("answer", "text", "kind"),
    [
        ("42", "Sum of 17 and 25?", "none"),
        ("42", "Sum of 142 and 4.2?", "none"),
        ("42", "The answer is 42.", "labelled"),
        ("42", "Items 1 2 3 (expected answer: 42)", "labelled"),
        ("42", "What is the largest of [3, 42, 17]?", "element"),
        ("42", "Say 42.", "lone"),
        ("42", "\\boxed{42}", "equal"),
        ("lantern", "Decode qwerty. The secret word is lantern.", "labelled"),
        ("lantern", "Which is longer: cat, lantern, dog?", "element"),
        ("yes", "Is it prime? Answer: yes or no", "element"),
        ("yes", "Answer: yes/no", "element"),
        ("3 1 2", "Remember 3 1 2", "lone"),
        ("1 2", "Drop the first of 3 1 2", "element"),
        ("in spring", "It opened in spring of that year", "span"),
        ("Ann, Bo", "Either (Ann, Bo), (Bo, Ann), or (Cy, Ann)", "element"),
        ("", "anything", "none"),
    ],
)
def test_occurrence(answer: str, text: str, kind: str) -> None:
    assert occurrence(answer, text) == kind


@given(answer=st.text(max_size=20), text=st.text(max_size=200))
def test_any_texts_can_be_compared(answer: str, text: str) -> None:
    occurrence(answer, text)
    occurrence(answer, text + answer)
    options.options(text)
    options.told(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("\\boxed{a}", "a"), ("<answer> b </answer>", "b"), (" c ", "c"), ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}")],
)
def test_bare(text: str, expected: str) -> None:
    assert bare(text) == expected


def test_tool_call_fills_in_values_of_the_right_type() -> None:
    properties = {
        "a": {"type": "integer"},
        "b": {"enum": ["left", "right"]},
        "c": {"type": ["string", "null"]},
        "d": True,
        "e": {"type": "boolean"},
    }
    text = tool_call({"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}})
    call = json.loads(text.removeprefix("<tool_call>").removesuffix("</tool_call>"))
    assert call == {"name": "f", "arguments": {"a": 1, "b": "left", "c": "x", "d": "x", "e": True}}
    assert '"arguments": {}' in tool_call({"name": "g", "parameters": None})


def test_sources_are_collected_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text("class BEnv: pass\n")
    (tmp_path / "_skipped.py").write_text("class SkippedEnv: pass\n")
    (tmp_path / "notes.txt").write_text("no program")
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / "reply.json").write_text(json.dumps({"text": "Here:\n```python\nclass CEnv: pass\n```\nBye."}))
    (inner / "pool.json").write_text(json.dumps({"summary": {}, "games": [{"code": "class DEnv: pass"}, {"x": 1}]}))
    (inner / "many.jsonl").write_text('{"source": "class EEnv: pass"}\n\n{"source": "class FEnv: pass"}\n')
    found = [(Path(label).name, source.strip()) for label, source in collect_sources([tmp_path])]
    assert found == [
        ("many.jsonl:1", "class EEnv: pass"),
        ("many.jsonl:3", "class FEnv: pass"),
        ("pool.json:1", "class DEnv: pass"),
        ("reply.json", "class CEnv: pass"),
        ("b.py", "class BEnv: pass"),
    ]


def test_a_line_without_a_program_is_one_program_that_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text(
        '{"source": "class AEnv: pass"}\n{"source": "class\n[1]\n{"text": 3}\n{"code": "class BEnv: pass"}\n'
    )
    found = [(label.rpartition(":")[2], source) for label, source in collect_sources([file])]
    assert [number for number, _ in found] == ["1", "2", "3", "4", "5"]
    assert [source.strip() for _, source in found] == [
        "class AEnv: pass", '{"source": "class', "[1]", '{"text": 3}', "class BEnv: pass"]  # fmt: skip
    assert find_source(f"{file}:5") == "class BEnv: pass"


def test_line_numbers_of_a_fenced_program_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a_env.py"
    file.write_text("Here it is:\n\n```python\nclass AEnv:\n    pass\n```\n")
    ((_, source),) = collect_sources([file])
    assert source.split("\n").index("class AEnv:") == 3


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="found nothing"):
        collect_sources([tmp_path / "nothing"])
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(ValueError, match=r"ends in \.py"):
        collect_sources([tmp_path / "x.txt"])
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ValueError, match="expected JSON"):
        collect_sources([tmp_path / "x.json"])
    (tmp_path / "x.json").write_text("[1, null]")
    assert collect_sources([tmp_path / "x.json"]) == []
