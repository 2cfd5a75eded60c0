"""Refused programs go back with the reasons; what comes of it is counted apart."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_designer import FAST, ScriptedModel, program

from spade_envs.corpus import Corpus, Document
from spade_envs.designer import Attempt, Designer, GenerateError, PromptSet, generate
from spade_envs.designer.prompt_files import PromptSetError, copy_prompt_set
from spade_envs.designer.repair import MAX_SOURCE, excerpts, repair_messages, repairable, unwritten
from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.models import Completion, Conversation, Sampling
from spade_envs.sandbox import Sandbox

SKILL = "Mathematical Reasoning"
ASKED_AGAIN = ("cannot be used yet", "held no program", "cut off before")
_RAISES = program(random.Random(0)).replace("self.turn += 1", "self.turn += self.missing")


def _again(conversation: Conversation) -> bool:
    return any(words in conversation[-1]["content"] for words in ASKED_AGAIN)


@pytest.fixture
def designer(memory: Memory, sandbox: Sandbox) -> Designer:
    return Designer(PromptSet.load("games"), memory, sandbox, validation=FAST, generator="scripted", own_hint=True)


def test_the_message_names_the_line_what_was_wrong_and_what_to_do(designer: Designer) -> None:
    prompt = designer.prompt(Document("d", "On numbers."), SKILL, random.Random(1))
    attempt = designer.admit(f"<think>hm</think>Sure:\n```python\n{_RAISES}```\nThere.", prompt)
    assert repairable(attempt)
    *asked, reply, again = repair_messages(designer.prompts, prompt, attempt)
    assert asked == prompt.messages
    assert reply["content"] == f"```python\n{_RAISES.rstrip()}\n```"
    number = _RAISES.split("\n").index("        self.turn += self.missing") + 1
    assert f"(line {number}) `self.turn += self.missing`" in again["content"]
    assert "Assign self.missing" in again["content"]
    assert f"\n{number}:         self.turn += self.missing\n" in again["content"]
    assert "complete corrected program" in again["content"]


def test_replies_without_a_program_are_asked_for_one(designer: Designer) -> None:
    prompt = designer.prompt(None, SKILL, random.Random(1))
    attempt = designer.admit("<think>a</think>No.", prompt)
    reply, again = repair_messages(designer.prompts, prompt, attempt)[-2:]
    assert reply["content"] == "No."
    assert "held no program" in again["content"]
    cut = Attempt(SKILL, "no_code", raw="<think>never", finish="length")
    reply, again = repair_messages(designer.prompts, prompt, cut)[-2:]
    assert reply["content"] == "(no answer)"
    assert "cut off" in again["content"]


def test_a_set_for_models_that_copy_asks_for_another_program_by_the_reasons_alone(
    memory: Memory, sandbox: Sandbox, tmp_path: Path
) -> None:
    designer = Designer(PromptSet.load("small"), memory, sandbox, validation=FAST, generator="s", own_hint=True)
    prompt = designer.prompt(Document("d", "On numbers."), SKILL, random.Random(1))
    attempt = designer.admit(f"```python\n{_RAISES}```", prompt)
    *before, request = repair_messages(designer.prompts, prompt, attempt)
    assert before == prompt.messages[:-1]
    assert request["content"].startswith(prompt.messages[-1]["content"])
    added = request["content"].removeprefix(prompt.messages[-1]["content"])
    assert "Assign self.missing" in added
    assert "class " not in added
    cut = repair_messages(designer.prompts, prompt, Attempt(SKILL, "no_code", raw="<think>never", finish="length"))
    assert cut[-1]["content"].endswith("An earlier reply was cut off: keep the program short.")
    copied = designer.admit(f"```python\n{designer.prompts.demonstrations[0].program}```", prompt)
    assert "take something else" in repair_messages(designer.prompts, prompt, copied)[-1]["content"]
    folder = copy_prompt_set("small", tmp_path / "own")
    (folder / "set.toml").write_text((folder / "set.toml").read_text().replace('repair = "anew"', 'repair = "never"'))
    with pytest.raises(PromptSetError, match="repair must be 'mend' or 'anew', got 'never'"):
        PromptSet.load(folder)


def test_a_copy_of_the_example_is_asked_for_another_idea(designer: Designer) -> None:
    prompt = designer.prompt(None, SKILL, random.Random(1))
    attempt = designer.admit(f"```python\n{designer.prompts.example}```", prompt)
    assert (attempt.status, repairable(attempt)) == ("duplicate", True)
    reply, again = repair_messages(designer.prompts, prompt, attempt)[-2:]
    assert "class TollRoadEnv" in reply["content"]
    assert "repeats the example of the prompt" in again["content"]
    assert "goal of its own" in again["content"]
    assert "corrected" not in again["content"]


class Copying(ScriptedModel):
    """Copies the example first, and writes a program of its own when it is told so."""

    def _reply(self, index: int, conversation: Conversation, sampling: Sampling) -> Completion:
        if not conversation[-1]["content"].startswith("This is no new environment"):
            return Completion(f"```python\n{PromptSet.load('games').example}```", 40, 90)
        return Completion(f"```python\n{program(random.Random(f'{sampling.seed}/{index}'))}```", 40, 90)


def test_an_attempt_is_judged_by_the_replies_that_repeat_nothing(
    designer: Designer, memory: Memory, corpus: Corpus
) -> None:
    summary = generate(Copying(), corpus, designer, memory, count=3, seed=3, run="a", round_size=4, repairs=1)
    assert (summary.admitted, summary.first_admitted, summary.repaired) == (3, 0, 3)
    assert summary.judged == summary.attempts - summary.causes["duplicate"] - summary.causes["surplus"]
    assert summary.first_causes["duplicate"] == summary.attempts - summary.causes["surplus"]
    assert (summary.first_validity, summary.final_validity) == (0.0, 3 / summary.judged)


def test_what_is_sent_back_is_bounded(designer: Designer) -> None:
    prompt = designer.prompt(None, SKILL, random.Random(1))
    source = "class HugeEnv:\n" + "".join(f"    def a{n}(self): eval('{'x' * 300}')\n" for n in range(200))
    attempt = designer.admit(source, prompt)
    assert attempt.cause == "policy"
    reply, again = repair_messages(designer.prompts, prompt, attempt)[-2:]
    assert len(reply["content"]) < MAX_SOURCE + 100
    assert len(again["content"]) < 14_000


def test_warnings_go_along(designer: Designer) -> None:
    replies = Path(__file__).parents[1] / "data" / "llm_written"
    reply = json.loads((replies / "010.json").read_text())["text"]
    prompt = designer.prompt(None, SKILL, random.Random(1))
    again = repair_messages(designer.prompts, prompt, designer.admit(reply, prompt))[-1]["content"]
    head, _, tail = again.partition("Also worth mending:")
    assert "(line 25) `move = self.directions[action]`" in head
    assert "no difference between seeds" in tail


def test_lines_around_what_is_named() -> None:
    source = "\n".join(f"line{number}" for number in range(1, 21))
    assert excerpts(source, [1, 3, 15]) == [
        *(f"{n}: line{n}" for n in range(1, 6)), "...", *(f"{n}: line{n}" for n in range(13, 18)),
    ]  # fmt: skip
    assert excerpts(source, [99]) == excerpts("", [1])[1:] == []
    assert excerpts("```", [1]) == ["1: ` ` `"]


def test_functions_without_a_body_are_named() -> None:
    source = (
        'class AEnv:\n    def reset(self, seed=None):\n        """Later."""\n    def step(self, a):\n        pass\n'
        "    def solution(self):\n        raise NotImplementedError\n    def close(self):\n        pass\n"
        "    def hint(self):\n        return ''\n"
    )
    assert unwritten(source) == ["reset() (line 2)", "step() (line 4)", "solution() (line 6)"]
    assert unwritten("def f(:") == []


class Mending(ScriptedModel):
    """Mends what it is sent back, at the ``mended``-th request; some replies are broken or no program at all."""

    def __init__(self, mended: int = 1) -> None:
        super().__init__()
        self.mended, self.batches, self.asked = mended, list[int](), list[Conversation]()

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        self.batches.append(len(conversations))
        self.asked += conversations
        return super().complete(conversations, sampling)

    def _reply(self, index: int, conversation: Conversation, sampling: Sampling) -> Completion:
        if not _again(conversation):
            return super()._reply(index, conversation, sampling)
        rng = random.Random(f"{sampling.seed}/{index}")
        if rng.random() < 1 / self.mended:
            return Completion(f"```python\n{program(rng)}```", 40, 90)
        return Completion(f"```python\n{program(rng).replace('return', 'retrun')}```", 40, 90)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_first_and_final_validity_are_counted_apart(
    designer: Designer, memory: Memory, corpus: Corpus, tmp_path: Path
) -> None:
    model, log = Mending(), tmp_path / "log.jsonl"
    summary = generate(
        model, corpus, designer, memory, count=12, seed=3, run="a", round_size=8, repairs=2, log=log
    )  # fmt: skip
    lines = _lines(log)
    assert [line["index"] for line in lines] == list(range(summary.attempts))
    assert summary.admitted == len(memory) == 12
    said = {line["index"]: {line["status"], *(turn["status"] for turn in line["earlier"])} for line in lines}
    judged = [line for line in lines if said[line["index"]] & {"admitted", "refused", "no_code"}]
    first = [line for line in judged if line["first_status"] == "admitted"]
    mended = [line for line in judged if line["status"] == "admitted" and line["repairs"]]
    assert mended
    assert (summary.judged, summary.first_admitted, summary.repaired) == (len(judged), len(first), len(mended))
    assert summary.first_admitted + summary.repaired == 12
    facts = summary.to_dict()
    assert facts["first_validity"] == len(first) / len(judged)
    assert facts["final_validity"] == 12 / len(judged) > facts["first_validity"]
    for line in mended:
        assert line["earlier"][0]["reason"]
        assert line["earlier"][0]["raw"] != line["raw"]
        assert line["tokens"] > 90
        assert line["first_cause"] not in ("admitted", "model_error")
    assert summary.repair_turns == sum(line["repairs"] for line in lines)
    assert sum(line["tokens"] for line in lines) == summary.completion_tokens
    by_attempt = {line["index"]: line["repairs"] for line in lines}
    assert all(record.meta["repairs"] == by_attempt[record.meta["attempt"]] for record in memory.records())
    # One batch for the designs of a round, one for its repairs: they are not asked one by one.
    assert len(model.batches) < len(mended) + summary.rounds
    again = generate(
        model, corpus, designer, memory, count=12, seed=3, run="a", round_size=8, repairs=2, resume=True
    )  # fmt: skip
    assert (again.judged, again.first_admitted, again.repaired) == (len(judged), len(first), len(mended))
    with pytest.raises(GenerateError, match="repairs was 2, is 1"):
        generate(model, corpus, designer, memory, count=13, seed=3, run="a", round_size=8, repairs=1, resume=True)


def test_repairs_end_after_their_turns_and_without_need_none_is_asked_for(
    designer: Designer, memory: Memory, corpus: Corpus
) -> None:
    class Hopeless(Mending):
        def _reply(self, index: int, conversation: Conversation, sampling: Sampling) -> Completion:
            return Completion(f"```python\n{_RAISES}```" if _again(conversation) else "No.", 1, 1)

    model = Hopeless()
    with pytest.raises(GenerateError, match="1 rounds in a row"):
        generate(model, corpus, designer, memory, count=2, round_size=2, patience=1, repairs=3, run="a")
    assert model.batches == [2, 2, 2, 2]
    assert max(len(conversation) for conversation in model.asked) == len(model.asked[0]) + 2  # no growing history
    model = Hopeless()
    with pytest.raises(GenerateError):
        generate(model, corpus, designer, memory, count=2, round_size=2, patience=1, repairs=0, run="b")
    assert model.batches == [2]
    with pytest.raises(ValueError, match="repairs must be at least 0"):
        generate(model, corpus, designer, memory, count=2, repairs=-1)


def test_a_repair_that_fails_at_the_endpoint_leaves_the_verdict(
    designer: Designer, memory: Memory, corpus: Corpus, tmp_path: Path
) -> None:
    class Failing(Mending):
        def _reply(self, index: int, conversation: Conversation, sampling: Sampling) -> Completion:
            return Completion("", error="HTTP 500") if _again(conversation) else Completion("No.", 3, 4)

    with pytest.raises(GenerateError):
        generate(
            Failing(), corpus, designer, memory, count=1, round_size=1, patience=1, repairs=1, log=tmp_path / "log"
        )  # fmt: skip
    (line,) = _lines(tmp_path / "log")
    assert (line["status"], line["repairs"], line["tokens"], line["earlier"]) == ("no_code", 0, 4, [])


def test_a_run_with_repairs_that_is_stopped_between_rounds_comes_to_the_same_set(
    sandbox: Sandbox, corpus: Corpus, tmp_path: Path
) -> None:
    def run(folder: str, *counts: int) -> list[str]:
        with Memory.open(tmp_path / folder, embedder=HashedTokenEmbedder()) as memory:
            designer = Designer(PromptSet.load("games"), memory, sandbox, validation=FAST, own_hint=True)
            for call, count in enumerate(counts):
                model = Stopping(None if call == len(counts) - 1 else count)
                try:
                    generate(
                        model, corpus, designer, memory, count=9, seed=5, run="a", round_size=3, repairs=1,
                        resume=call > 0,
                    )  # fmt: skip
                except KeyboardInterrupt:
                    continue
            return [record.id for record in memory.records()]

    class Stopping(Mending):
        """Is interrupted at its so-many-th call."""

        def __init__(self, at: int | None) -> None:
            super().__init__(mended=2)
            self.at = at

        def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
            if self.at is not None and len(self.batches) >= self.at:
                raise KeyboardInterrupt
            return super().complete(conversations, sampling)

    whole = run("whole", 0)
    assert len(whole) == 9
    assert run("stopped", 1, 2, 3, 2, 0) == whole


def test_the_next_round_warns_of_what_went_wrong_most(designer: Designer, memory: Memory, corpus: Corpus) -> None:
    class Refusing(Mending):
        def _reply(self, index: int, conversation: Conversation, sampling: Sampling) -> Completion:
            return Completion("No.")

    model = Refusing()
    with pytest.raises(GenerateError):
        generate(model, corpus, designer, memory, count=2, round_size=2, patience=2, run="a")
    note = designer.prompts.fault_notes["no_code"]
    assert [note in asked[-1]["content"] for asked in model.asked] == [False, False, True, True]
