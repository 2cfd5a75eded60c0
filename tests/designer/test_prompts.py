"""Prompt sets: what comes with the package and what is wrong with others."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from spade_envs.corpus import Document
from spade_envs.designer import (
    PromptSet,
    PromptSetError,
    available_prompt_sets,
    copy_prompt_set,
    default_prompt_set,
    validation_config,
)
from spade_envs.designer.prompts import MAX_FAULTS, PROMPTS_FOLDER
from spade_envs.episode import PlayConfig
from spade_envs.models.transformers import NANO_FOLDER
from spade_envs.record import EnvironmentRecord, PlayStatistics
from spade_envs.sandbox import Sandbox
from spade_envs.validation import Severity, validate

DOCUMENT = Document("d1", "Prime numbers {{ 7 * 7 }} have two divisors. " * 3, {"topic": "primes"})


def _record(name: str, **statistics: float) -> EnvironmentRecord:
    source = f"class {name}Env(TextEnv):\n    pass\n"
    return EnvironmentRecord.create(source, f"{name}Env", statistics=PlayStatistics(**statistics))  # type: ignore[arg-type]


GOOD = _record("Good", plain_plays=10, plain_wins=4, plain_return=4.0, hinted_plays=10, hinted_return=7.0)
EASY = _record("Easy", plain_plays=10, plain_wins=10, plain_return=10.0)
FRESH = _record("Fresh")


@pytest.mark.parametrize("name", available_prompt_sets())
def test_every_set_renders_with_and_without_everything(name: str) -> None:
    prompts = PromptSet.load(name)
    for skill in prompts.skills:
        drawn = prompts.draw(random.Random(1))
        for document in (DOCUMENT, None):
            for exemplars, negatives in (([GOOD, FRESH], [EASY]), ([], [])):
                messages = prompts.designer_messages(document, skill, exemplars, negatives, drawn)
                assert messages[-1]["role"] == "user"
                assert all(message["content"].strip() for message in messages)
    validation_config(prompts)
    PlayConfig(**prompts.play, system_prompt=prompts.agent_system, hint_template=prompts.hint_template)
    if not prompts.own_hint:
        assert GOOD.source.strip() in prompts.hint_messages(GOOD)[-1]["content"]


def test_games_prompts_say_what_they_must() -> None:
    prompts = PromptSet.load("games")
    system, user = (m["content"] for m in prompts.designer_messages(DOCUMENT, "Optimization", [GOOD], [EASY]))
    assert 'f"\\\\boxed{{move}}"' in system
    assert "{{ 7 * 7 }}" in user  # the document is a value, never a template
    assert "players win 40 % of the time, and a hint adds 0.30 to their return" in user
    assert "players win 100 % of the time, so it asks for nothing" in user
    complaint = prompts.hint_messages(GOOD, "it contains the answer")[-1]["content"]
    assert "An earlier hint was refused: it contains the answer." in complaint


def test_long_documents_and_exemplars_are_cut() -> None:
    prompts = PromptSet.load("games")
    long = EnvironmentRecord.create("class LongEnv:\n" + "    x = 1\n" * 5000, "LongEnv")
    user = prompts.designer_messages(Document("d", "word " * 7000), "Optimization", [long])[-1]["content"]
    assert user.count("word ") == prompts.document_tokens * 4 // 5 - 1  # "word " are 5/4 tokens by the estimate
    assert "[cut]" in user
    assert len(user) < 8000 * 4 + 16000 + 4000

    def five(text: str, tokens: int) -> str:
        return " ".join(text.split()[:5])

    user = prompts.designer_messages(Document("d", "word " * 7000), "Optimization", cut=five)[-1]["content"]
    assert user.count("word") == 5


def test_the_request_carries_what_was_drawn_and_the_commonest_faults() -> None:
    for name in ("games", "tool_use"):
        prompts = PromptSet.load(name)
        drawn = prompts.draw(random.Random(2))
        skill = prompts.skills[0]
        user = prompts.designer_messages(DOCUMENT, skill, drawn=drawn, max_turns=7)[-1]["content"]
        assert f"Difficulty: {drawn['difficulty']}." in user
        assert "at most 7 turns" in user
        assert prompts.example.strip() in user
        assert prompts.example.strip() not in prompts.designer_messages(None, skill, [GOOD], drawn=drawn)[-1]["content"]
        usual = list(prompts.fault_notes.values())[:MAX_FAULTS]
        assert all(f"- {note}\n" in user for note in usual)
        causes = {"duplicate": 2, "resources": 9, "unheard of": 10}
        assert prompts.faults(causes)[:2] == [prompts.fault_notes["resources"], prompts.fault_notes["duplicate"]]
        assert prompts.faults(causes)[2:] == usual[: MAX_FAULTS - 2]
        assert prompts.faults(causes)[0] in prompts.designer_messages(
            None, skill, drawn=drawn, causes=causes
        )[-1]["content"]  # fmt: skip
    drawn = PromptSet.load("games").draw(random.Random(2))
    assert f"Length: {drawn['turns']} turns" in PromptSet.load("games").designer_messages(
        None, "Optimization", drawn=drawn
    )[-1]["content"]  # fmt: skip


def test_task_variants_are_drawn_in_the_shares_of_the_published_system() -> None:
    prompts = PromptSet.load("tool_use")
    drawn = [prompts.draw(random.Random(seed)) for seed in range(3500)]
    counts = Counter(values["variant"] for values in drawn)
    shares = {"happy_path": 3, "read_then_write": 2, "missing_value": 1, "irrelevant_request": 1}
    assert set(counts) == set(shares)
    assert all(abs(counts[name] - 500 * weight) < 120 for name, weight in shares.items())
    assert len({values["domain"] for values in drawn}) == 10
    assert (len(prompts.skills), len(PromptSet.load("games").skills)) == (6, 6)
    requests = {
        prompts.designer_messages(None, prompts.skills[0], drawn={**drawn[0], "variant": name})[-1]["content"]
        for name in shares
    }
    assert len(requests) == 4


def test_examples_of_sets_are_programs_that_validation_admits(sandbox: Sandbox) -> None:
    for name in ("games", "tool_use", "small"):
        prompts = PromptSet.load(name)
        for example in prompts.shown_programs:
            report = validate(example, sandbox=sandbox, config=validation_config(prompts))
            assert report.proven
            warned = {finding.probe for finding in report.findings if finding.severity is not Severity.INFO}
            assert warned <= ({"secrets"} if name == "tool_use" else set())  # ids that tools tell only if asked rightly


def test_demonstrations_are_earlier_exchanges_in_the_words_of_the_set() -> None:
    prompts = PromptSet.load("small")
    messages = prompts.designer_messages(DOCUMENT, "Optimization", causes={"leak": 3})
    assert [message["role"] for message in messages] == ["system", *("user", "assistant") * 3, "user"]
    for number, shown in enumerate(prompts.demonstrations):
        asked, answered = messages[1 + 2 * number], messages[2 + 2 * number]
        assert shown.document in asked["content"]
        assert f"Skill: {shown.skill}" in asked["content"]
        assert "Take care" not in asked["content"]  # what this run's programs were refused for is no part of them
        assert answered["content"] == f"```python\n{shown.program.strip()}\n```"
    assert DOCUMENT.text.strip() in messages[-1]["content"]
    assert prompts.fault_notes["leak"] in messages[-1]["content"]
    assert prompts.shown_programs == tuple(shown.program for shown in prompts.demonstrations)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('skill = "Optimization"\nprogram = "a.txt"', "number 1 needs skill, document and program"),
        ('skill = "Cooking"\ndocument = ""\nprogram = "a.txt"', "'Cooking' is not in"),
        ('skill = "Optimization"\ndocument = ""\nprogram = "a.txt"', "lacks a.txt"),
    ],
)
def test_faulty_demonstrations_are_named(own: Path, entry: str, said: str) -> None:
    with (own / "set.toml").open("a") as settings:
        settings.write(f"\n[[demonstrations]]\n{entry}\n")
    with pytest.raises(PromptSetError, match=said):
        PromptSet.load(own)


def test_a_set_is_copied_to_be_edited(tmp_path: Path) -> None:
    for name in available_prompt_sets():
        folder = copy_prompt_set(name, tmp_path / "mine" / name)
        assert PromptSet.load(folder).skills == PromptSet.load(name).skills
        assert (folder / "README.md").is_file()
        assert (folder / "repair.user.jinja").is_file()
    (tmp_path / "mine" / "games" / "repair.user.jinja").write_text("again: {{ findings | length }}")
    assert PromptSet.load(tmp_path / "mine" / "games").repair_message(findings=[1]) == "again: 1"
    with pytest.raises(PromptSetError, match="not empty"):
        copy_prompt_set("games", tmp_path / "mine")
    with pytest.raises(PromptSetError, match=r"lacks set\.toml"):
        PromptSet.load(tmp_path / "mine")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROMPTS_FOLDER / "games", tmp_path / "own"))


def test_a_folder_of_ones_own(own: Path) -> None:
    settings = (own / "set.toml").read_text()
    (own / "set.toml").write_text(
        settings + "\n[draw.domain]\nbanking = 1\nshipping = 3\n[validation]\nseeds = [3, 4]\n"
    )
    (own / "designer.user.jinja").write_text("{{ domain }}: {{ meta.topic }}\n")
    prompts = PromptSet.load(own)
    assert prompts.name == "own"
    drawn = [prompts.draw(random.Random(seed))["domain"] for seed in range(200)]
    assert 100 < drawn.count("shipping") < 190
    messages = prompts.designer_messages(DOCUMENT, "Optimization", drawn={"domain": "banking"})
    assert messages[-1]["content"] == "banking: primes"
    assert validation_config(prompts).seeds == (3, 4)
    before = prompts.fingerprint
    (own / "designer.system.jinja").write_text("")
    prompts = PromptSet.load(own)
    assert prompts.fingerprint != before
    assert [m["role"] for m in prompts.designer_messages(DOCUMENT, "Optimization", drawn={"domain": "x"})] == ["user"]


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("set.toml", "kind = ", "set.toml: "),
        ("set.toml", "kind = 'game'", r"\[skills\]"),
        ("set.toml", "colour = 1\n[skills]\na = ''", "unknown setting colour"),
        ("set.toml", "[skills]\na = ''\n[sampling]\ndesigner = { heat = 1 }", r"\[sampling\]"),
        ("designer.user.jinja", "{% if %}", "designer.user.jinja, line 1"),
        ("designer.user.jinja", None, "lacks designer.user.jinja"),
        ("hint.user.jinja", None, "lacks hint.user.jinja"),
        ("agent.system.txt", None, "lacks agent.system.txt"),
        ("agent.hint.txt", "no place", "must contain {hint}"),
        ("set.toml", "[skills]\na = ''\n[draw.x]\na = 0", r"\[draw.x\]: expected weights"),
        ("set.toml", "[skills]\na = ''\n[draw]\nx = 1", r"\[draw.x\]: expected weights"),
    ],
)
def test_faulty_sets_are_refused(own: Path, file: str, content: str | None, reason: str) -> None:
    if content is None:
        (own / file).unlink()
    else:
        (own / file).write_text(content)
    with pytest.raises(PromptSetError, match=reason):
        PromptSet.load(own)


def test_faults_that_show_when_rendering(own: Path) -> None:
    (own / "designer.user.jinja").write_text("{{ colour }}")
    with pytest.raises(PromptSetError, match="'colour' is undefined"):
        PromptSet.load(own).designer_messages(None, "Optimization")
    with pytest.raises(PromptSetError, match="no skill 'Cooking'"):
        PromptSet.load(own).designer_messages(None, "Cooking")
    with pytest.raises(PromptSetError, match=r"expected one of .*games"):
        PromptSet.load("nothing")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("colour = 1", "no setting 'colour'"), ('hint_answer = "maybe"', "hint_answer"), ("max_steps = 0", "positive")],
)
def test_validation_overrides_are_checked(own: Path, setting: str, reason: str) -> None:
    with (own / "set.toml").open("a") as file:
        file.write(f"\n[validation]\n{setting}\n")
    with pytest.raises(PromptSetError, match=reason):
        validation_config(PromptSet.load(own))


def test_severities_are_read_by_name(own: Path) -> None:
    with (own / "set.toml").open("a") as file:
        file.write('\n[validation]\nhint_answer = "warn"\n')
    assert validation_config(PromptSet.load(own)).hint_answer is Severity.WARN


def test_the_embedded_model_has_its_own_set_as_an_adapter_or_merged_too(tmp_path: Path) -> None:
    adapter, merged, other = (tmp_path / name for name in ("adapter", "merged", "other"))
    for folder in (adapter, merged, other):
        folder.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(NANO_FOLDER)}))
    shutil.copy(NANO_FOLDER / "config.json", merged)
    (other / "config.json").write_text('{"model_type": "qwen3", "hidden_size": 2048, "vocab_size": 151936}')
    for model in ("nano", f"hf:{adapter}", f"hf:{merged}", str(merged)):
        assert default_prompt_set(model) == default_prompt_set(model, "tool_use") == "nano"
    (merged / "config.json").write_text("{")
    for model in (f"hf:{other}", f"hf:{merged}", "hf:owner/name", "openai:nano", "smollm2"):
        assert default_prompt_set(model) == "games"
        assert default_prompt_set(model, "tool_use") == "tool_use"
