"""Runs: exact counts, exact resumes, logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import scripted_designer
from scripted_designer import FAST, ScriptedModel, run

from spade_envs.corpus import Corpus
from spade_envs.designer import Attempt, Designer, GenerateError, PromptSet, generate, preview
from spade_envs.designer.attempt_log import AttemptLog
from spade_envs.memory import Memory
from spade_envs.models import Completion, Conversation, ModelError, Sampling
from spade_envs.sandbox import Sandbox


@pytest.fixture
def designer(memory: Memory, sandbox: Sandbox) -> Designer:
    return Designer(PromptSet.load("games"), memory, sandbox, validation=FAST, generator="scripted", own_hint=True)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_adds_exactly_the_count_and_logs_every_attempt(
    designer: Designer, memory: Memory, corpus: Corpus, tmp_path: Path
) -> None:
    seen: list[Attempt] = []
    options: dict[str, Any] = {"seed": 3, "run": "a", "round_size": 6, "log": tmp_path / "log" / "a.jsonl"}
    summary = generate(ScriptedModel(), corpus, designer, memory, count=7, on_attempt=seen.append, **options)
    records = memory.records(run="a")
    assert summary.admitted == len(records) == len(memory) == 7
    assert summary.ids == [record.id for record in records]
    lines = _lines(tmp_path / "log" / "a.jsonl")
    assert len(lines) == summary.attempts == len(seen) == summary.causes.total()
    assert [line["index"] for line in lines] == list(range(len(lines)))
    assert [line["id"] for line in lines if line["status"] == "admitted"] == summary.ids
    assert all(line["reason"] for line in lines if line["status"] != "admitted")
    assert len({line["document_id"] for line in lines[:11]}) == len(lines[:11])
    assert [record.meta["attempt"] for record in records] == [
        line["index"] for line in lines if line["status"] == "admitted"
    ]
    assert summary.to_dict()["completion_tokens"] > 0
    # Enough already: nothing more is asked for.
    model = ScriptedModel()
    again = generate(model, corpus, designer, memory, count=7, resume=True, **options)
    assert (again.admitted, again.ids, model.calls) == (7, [], 0)
    assert again.causes == summary.causes
    # More of the same run.
    more = generate(model, corpus, designer, memory, count=9, resume=True, **options)
    assert (more.admitted, len(more.ids), len(memory)) == (9, 2, 9)
    assert [line["index"] for line in _lines(tmp_path / "log" / "a.jsonl")] == list(range(more.attempts))


def test_the_count_is_exact_even_if_another_run_stores_the_same_program_meanwhile(
    designer: Designer, memory: Memory, corpus: Corpus
) -> None:
    stolen: list[str] = []

    def steal(attempt: Attempt) -> None:
        if attempt.record is not None and len(stolen) < 2:
            memory.add(attempt.record, run="thief")
            stolen.append(attempt.record.id)

    options: dict[str, Any] = {"seed": 3, "run": "a", "round_size": 6}
    summary = generate(ScriptedModel(), corpus, designer, memory, count=4, on_attempt=steal, **options)
    assert [record.id for record in memory.records(run="a")] == summary.ids
    assert (summary.admitted, len(summary.ids), len(memory)) == (4, 4, 6)
    assert not set(stolen) & set(summary.ids)
    again = generate(ScriptedModel(), corpus, designer, memory, count=4, resume=True, **options)
    assert (again.admitted, again.ids) == (4, [])


def test_the_first_prompt_can_be_seen_without_a_model(designer: Designer, corpus: Corpus) -> None:
    prompt = preview(corpus, designer, seed=3)
    assert prompt.skill == designer.prompts.skills[0]
    assert prompt.document is not None
    assert prompt.document.text in prompt.messages[-1]["content"]
    assert preview(corpus, designer, seed=3) == prompt
    assert preview(None, designer).document is None


def test_a_run_is_not_resumed_by_accident_or_with_other_settings(
    designer: Designer, memory: Memory, corpus: Corpus
) -> None:
    generate(ScriptedModel(), corpus, designer, memory, count=1, run="a")
    with pytest.raises(GenerateError, match="holds a run 'a' already"):
        generate(ScriptedModel(), corpus, designer, memory, count=2, run="a")
    with pytest.raises(GenerateError, match=r"seed was 0, is 1"):
        generate(ScriptedModel(), corpus, designer, memory, count=2, run="a", seed=1, resume=True)
    with pytest.raises(GenerateError, match="corpus was"):
        generate(ScriptedModel(), None, designer, memory, count=2, run="a", resume=True)


class Refusing:
    """Answers with the same text, or raises."""

    name = "refusing"

    def __init__(self, answer: Completion | Exception) -> None:
        self.answer = answer

    def complete(self, conversations: list[Conversation], sampling: Sampling) -> list[Completion]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer] * len(conversations)

    def close(self) -> None:
        pass


def test_a_run_that_comes_to_nothing_stops_with_the_reasons(designer: Designer, memory: Memory) -> None:
    with pytest.raises(GenerateError, match=r"3 rounds in a row added nothing; 0 of 4 .* 12 attempts \(no_code 12\)"):
        generate(Refusing(Completion("No.")), None, designer, memory, count=4, run="a", round_size=4, patience=3)
    failed = Completion("", error="HTTP 400: too long", finish_reason="error")
    with pytest.raises(GenerateError, match=r"bound of 6 .*; 0 of 4 .*model_error 6.* last error: HTTP 400: too long"):
        generate(Refusing(failed), None, designer, memory, count=4, run="b", round_size=4, max_attempts=6)
    with pytest.raises(ModelError, match="gone"):
        generate(Refusing(ModelError("gone")), None, designer, memory, count=4, run="c")
    assert len(memory) == 0


def test_copies_within_a_round_are_found(designer: Designer, memory: Memory) -> None:
    import random

    text = scripted_designer.program(random.Random(1))
    with pytest.raises(GenerateError, match="duplicate"):
        generate(Refusing(Completion(text)), None, designer, memory, count=3, round_size=3, patience=1, run="a")
    assert len(memory) == 1


def test_hints_of_a_round_are_written_by_the_model(
    memory: Memory, sandbox: Sandbox, corpus: Corpus, tmp_path: Path
) -> None:
    class WithHints(ScriptedModel):
        def _reply(self, index: int, conversation: Conversation, sampling: Sampling) -> Completion:
            if "Write a hint" in conversation[-1]["content"]:
                assert sampling.temperature == 0.3
                return Completion("Apply the operations in their order.", 5, 7)
            return super()._reply(index, conversation, sampling)

    designer = Designer(PromptSet.load("games"), memory, sandbox, validation=FAST, generator="scripted")
    summary = generate(WithHints(), corpus, designer, memory, count=3, round_size=4, log=tmp_path / "log.jsonl")
    assert {record.hint for record in memory.records()} == {"Apply the operations in their order."}
    assert (summary.hint_tokens, summary.without_hint) == (21, 0)
    assert [line["hint"] != "" for line in _lines(tmp_path / "log.jsonl")] == [
        line["status"] == "admitted" for line in _lines(tmp_path / "log.jsonl")
    ]


def test_a_run_killed_anywhere_comes_to_the_same_set(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "corpus.jsonl").write_bytes((tmp_path / "corpus.jsonl").read_bytes())
    count = 8
    whole = run(tmp_path / "whole", count, resume=False)
    script = str(Path(scripted_designer.__file__))
    log = tmp_path / "log.jsonl"
    for lines in (1, 4, 6, 7, 10, 10**9):  # killed when the log has this many lines; the last one runs to its end
        process = subprocess.Popen([sys.executable, script, str(tmp_path), str(count), "resume"])
        try:
            while process.poll() is None:
                if log.exists() and log.read_bytes().count(b"\n") >= lines:
                    os.kill(process.pid, signal.SIGKILL)
                    break
                time.sleep(0.002)
        finally:
            if lines < 10**9:
                process.kill()
            process.wait(timeout=120)
    assert process.returncode == 0
    with Memory.open(tmp_path / "memory", read_only=True) as memory:
        assert [record.id for record in memory.records()] == whole.ids

    def shown(path: Path) -> list[tuple[Any, ...]]:
        return [tuple(line[key] for key in ("round", "index", "status", "id", "document_id")) for line in _lines(path)]

    assert shown(log) == shown(tmp_path / "whole" / "log.jsonl")


def test_a_log_drops_torn_and_stale_lines_and_keeps_other_runs(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"run": "a", "round": 0}, {"run": "b", "round": 5}, {"run": "a", "round": 1}, {"run": "a", "round": 2}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"run": "a", "rou')
    with AttemptLog(path, "a", 1) as log:
        log.write(Attempt("s", "no_code", raw="caf\u00e9 \u2028 line", round=1))
    assert [(line["run"], line["round"]) for line in map(json.loads, path.read_text().split("\n")[:-1])] == [
        ("a", 0), ("b", 5), ("a", 1)
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == [path]
