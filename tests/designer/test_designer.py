"""The pipeline from a reply to a record, in a real sandbox."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from scripted_designer import FAST, program

from spade_envs.corpus import Document
from spade_envs.designer import Designer, HintWriter, PromptSet
from spade_envs.designer.hints import clean_hint
from spade_envs.memory import Memory
from spade_envs.models import Completion, Conversation, Sampling
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox

SKILL = "Mathematical Reasoning"
SOURCE = program(random.Random(0))
DOCUMENT = Document("doc", "On numbers. " * 100)


@pytest.fixture
def designer(memory: Memory, sandbox: Sandbox) -> Designer:
    return Designer(PromptSet.load("games"), memory, sandbox, validation=FAST, generator="scripted", licence="CC0")


@pytest.mark.parametrize("remembering", [False, True])
def test_a_copy_of_the_prompts_example_is_no_design(remembering: bool, memory: Memory, sandbox: Sandbox) -> None:
    prompts = PromptSet.load("games")
    designer = Designer(prompts, memory if remembering else None, sandbox, validation=FAST, generator="scripted")
    prompt = designer.prompt(DOCUMENT, SKILL, random.Random(0))
    changed = prompts.example.replace("self.purse", "self.money").replace("= 9", "= 8")
    for source in (prompts.example, f"import math\n{changed}"):
        attempt = designer.admit(f"```python\n{source}```", prompt)
        assert (attempt.status, attempt.cause, attempt.record) == ("duplicate", "duplicate", None)
        assert "example of the prompt" in attempt.reason


def test_a_good_reply_becomes_a_record_with_its_history(designer: Designer, memory: Memory) -> None:
    prompt = designer.prompt(DOCUMENT, SKILL, random.Random(1))
    attempt = designer.admit(f"Here:\n```python\n{SOURCE}", prompt)
    assert (attempt.status, attempt.reason) == ("admitted", "")
    record = attempt.record
    assert record is not None
    assert record.source == SOURCE
    assert (record.skill, record.kind, record.generator, record.licence) == (SKILL, "game", "scripted", "CC0")
    assert (record.document_id, record.document) == ("doc", DOCUMENT.text[:500])
    assert record.proven
    assert record.report["admitted"]
    assert record.meta["mends"] == ["missing closing fence"]
    assert record.id not in memory  # storing is the caller's
    memory.add(record)
    prompt = designer.prompt(DOCUMENT, SKILL, random.Random(1))
    assert prompt.parents == (record.id,)
    assert SOURCE.strip() in prompt.messages[-1]["content"]


def test_what_is_wrong_with_a_reply_is_said(designer: Designer, memory: Memory) -> None:
    prompt = designer.prompt(None, SKILL, random.Random(1))
    assert designer.admit("Sorry.", prompt).status == "no_code"
    broken = designer.admit(f"```\n{SOURCE.replace('return', 'retrun')}```", prompt)
    assert (broken.status, broken.record) == ("refused", None)
    assert broken.reason.startswith(f"{broken.cause}: ")
    free = designer.admit(SOURCE.replace("float(good)", "1.0"), prompt)
    assert free.status == "refused"
    forbidden = designer.admit("import os\n" + SOURCE, prompt)
    assert forbidden.status == "refused"
    assert "os" in forbidden.reason
    long_name = "A" * 80
    assert designer.admit(SOURCE.replace(SOURCE.split("Env")[0].split()[-1], long_name), prompt).cause == "name"
    record = designer.admit(SOURCE, prompt).record
    assert record is not None
    memory.add(record)
    again = designer.admit(SOURCE.replace("self.x", "self.first"), prompt)
    assert again.status == "duplicate"
    assert again.report is None
    assert designer.admit(f"```python\n{SOURCE}```", prompt).reason == f"the same program as {record.id[:16]}"
    lines = [attempt.to_dict() for attempt in (broken, again)]
    assert lines[0]["findings"]
    assert lines[1]["reason"].startswith("repeats ")


def test_a_tool_environment_as_its_prompt_describes_it_is_admitted(memory: Memory, sandbox: Sandbox) -> None:
    designer = Designer(PromptSet.load("tool_use"), memory, sandbox, validation=FAST)
    source = (Path(__file__).parents[1] / "data" / "validation_tools" / "sound" / "clinic_proven.py").read_text()
    prompt = designer.prompt(DOCUMENT, "State Modification", random.Random(3))
    assert prompt.drawn["domain"] in prompt.messages[-1]["content"]
    attempt = designer.admit(f"```python\n{source}```", prompt)
    assert (attempt.status, attempt.reason) == ("admitted", "")
    record = attempt.record
    assert record is not None
    assert record.proven
    assert (record.kind, record.meta["variant"]) == ("tool_use", prompt.drawn["variant"])


def test_without_a_memory_nothing_is_shown_and_nothing_repeats(sandbox: Sandbox) -> None:
    designer = Designer(PromptSet.load("games"), None, sandbox, validation=FAST)
    prompt = designer.prompt(DOCUMENT, SKILL, random.Random(1))
    assert prompt.parents == ()
    assert designer.admit(SOURCE, prompt).status == designer.admit(SOURCE, prompt).status == "admitted"


CODE_WORD = """class WordEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.word = "ocelot" if self.rng.random() > 0.5 else "walrus"
        self.shift = self.rng.randrange(1, 26)
        shown = "".join(chr((ord(c) - 97 + self.shift) % 26 + 97) for c in self.word)
        return f"Every letter of a word was moved {self.shift} places on in the alphabet: {shown}. Which word?", {}

    def step(self, action):
        good = self.answer(action) == self.word
        return "", float(good), True, False, {}

    def solution(self):
        return self.word
"""


class Hinter:
    """Gives these hints one after the other."""

    name = "hinter"

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[Conversation] = []

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        self.asked += conversations
        replies = [self.replies.pop(0) for _ in conversations]
        return [Completion(reply, 1, 2) if reply else Completion("", error="HTTP 500") for reply in replies]

    def close(self) -> None:
        pass


def test_a_hint_of_strategy_is_taken_and_one_with_the_answer_is_asked_for_again(sandbox: Sandbox) -> None:
    record = EnvironmentRecord.create(CODE_WORD, "WordEnv")
    writer = HintWriter(PromptSet.load("games"), sandbox, FAST)
    good = "Move every letter back by the number of places, and answer with the six letters in \\boxed{}."
    model = Hinter("Hint: the answer is ocelot.", f'**Hint:** "{good}"')
    (hinted,), tokens = writer.write(model, [record], Sampling())
    assert tokens == 4
    assert hinted.hint in (good, f'"{good}"')
    assert "An earlier hint was refused" in model.asked[1][-1]["content"]
    (without,), _ = writer.write(Hinter("", "The answer is ocelot."), [record], Sampling())
    assert without.hint == ""
    assert without.meta["hint_refused"]
    assert writer.judged(record, good).hint == good
    assert writer.judged(record, "<think>hm").meta["hint_refused"] == "it was empty"
    assert "characters" in writer.judged(record, "long " * 300).meta["hint_refused"]


@pytest.mark.parametrize(
    ("reply", "hint"),
    [
        ("Count first.", "Count first."),
        ("<think>secret</think>\n\nHint: Count\nfirst.\n", "Count first."),
        ("```\nCount first.\n```", "Count first."),
        ('"Count first."', "Count first."),
        ("<think>never ends", ""),
        ("", ""),
    ],
)
def test_cleaning_hints(reply: str, hint: str) -> None:
    assert clean_hint(reply) == hint


def test_a_program_that_contradicts_the_memory_is_admitted_with_a_warning(designer: Designer, memory: Memory) -> None:
    def asked(checker: str) -> str:
        return (
            "```python\nclass PickEnv(TextEnv):\n    def reset(self, seed=None):\n        super().reset(seed)\n"
            "        self.numbers = [self.rng.randint(10, 99) for _ in range(5)]\n"
            f'        self.right = {checker}\n        return f"Give the largest of {{self.numbers}}.", {{}}\n'
            "    def step(self, action):\n"
            '        return "", float(self.answer(action) == str(self.right)), True, False, {}\n'
            "    def solution(self):\n        return str(self.right)\n```"
        )

    prompt = designer.prompt(DOCUMENT, SKILL, random.Random(1))
    first = designer.admit(asked("max(self.numbers)"), prompt)
    assert first.record is not None, first.reason
    memory.add(first.record)
    wrong = "sorted(self.numbers, key=lambda n: (len(str(n)), -n))[0] - 1"  # code of its own: no duplicate
    second = designer.admit(asked(wrong) + "\n", prompt)
    assert second.record is not None, second.reason
    (warning,) = [finding for finding in second.record.report["findings"] if finding["probe"] == "contradiction"]
    assert warning["severity"] == "warn"
    assert warning["evidence"]["other"] == first.record.id
