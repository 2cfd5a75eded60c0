"""Prompt sets: what comes with the package and what is wrong with others."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from spade_envs.corpus import Document
from spade_envs.designer import PromptSet, PromptSetError, available_prompt_sets, validation_config
from spade_envs.designer.prompts import PROMPTS_FOLDER
from spade_envs.episode import PlayConfig
from spade_envs.record import EnvironmentRecord, PlayStatistics
from spade_envs.validation import Severity

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
    assert user.count("word") == 6000
    assert "[cut]" in user
    assert len(user) < 6000 * 5 + 16000 + 3000


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
