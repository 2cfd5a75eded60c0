"""The suites that can run here: a scripted perfect answerer scores 100 %, an empty one 0 %."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from endpoint_server import Handler, Server, chat

from evaluation.oracle import reasoning_answer
from evaluation.scripted_models import RuleModel
from spade_envs.memory import Memory
from spade_envs.models.base import Completion, Conversation, Sampling
from spade_envs.record import EnvironmentRecord
from spade_envs.spaces import UnicodeText
from spade_train.evaluation.catalogue import SuiteOptions, check_suite, make_suite
from spade_train.evaluation.compare import compare_results, comparison_dict
from spade_train.evaluation.evaluate import evaluate
from spade_train.evaluation.protocol import EvaluationError
from spade_train.evaluation.runner import RunSettings
from spade_train.evaluation.suite import Suite
from spade_train.evaluation.suites.extraction import boxed, final_answer
from spade_train.evaluation.suites.maths import MathVerifier
from spade_train.evaluation.suites.reasoning import FIRST_SEED, ReasoningSuite, hard_tasks, unknown_tasks
from spade_train.evaluation.tables import ResultTable

AIME = [
    {"id": 1, "problem": "What is 6 times 7?", "answer": 42},
    {"id": 2, "problem": "What is a third of one?", "answer": "\\frac{1}{3}"},
]
GPQA = [
    {
        "Question": f"Which is the {number}th?",
        "Correct Answer": f"right {number}",
        **{f"Incorrect Answer {place}": f"wrong {place}" for place in (1, 2, 3)},
    }
    for number in range(5)
]
PROGRAM = '''
class GuessEnv:
    """Say the number that is shown."""

    def reset(self, seed=None):
        self.number = seed % 97
        return f"Say {self.number}", {}

    def step(self, action):
        return "over", float(action == f"\\\\boxed{{{self.number}}}"), True, False, {}
'''


def _file(tmp_path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _score(suite: Suite, model: Any, tmp_path: Path, name: str, limit: int = 0) -> float:
    settings = RunSettings(batch=64)
    result, _, _ = evaluate(suite, lambda: model, f"{name}@1", tmp_path / "out", limit=limit, settings=settings)
    assert not result.errors
    return result.score


def test_the_hard_split_is_the_published_one() -> None:
    counts = Counter(facts["category"] for facts in hard_tasks().values())
    assert counts == {"Math": 31, "Algorithmic": 36, "Cognition": 24, "Logic": 9}
    assert unknown_tasks() == []


class _Oracle(RuleModel):
    """Answers questions of a suite by their reference."""

    def __init__(self, suite: ReasoningSuite, limit: int) -> None:
        known = {q.text: reasoning_answer(*q.reference) for q in suite.questions(limit)}
        super().__init__(lambda text, _: f"Therefore <answer>{known[text]}</answer>")


def test_reasoning_gym(tmp_path: Path) -> None:
    suite = make_suite("reasoning-gym")
    assert isinstance(suite, ReasoningSuite)
    questions = suite.questions(8)
    assert [question.group for question in questions] == ["Math", "Algorithmic", "Cognition", "Logic"] * 2
    assert questions == make_suite("reasoning-gym").questions(8)
    assert _score(suite, _Oracle(suite, 8), tmp_path, "right", 8) == 1.0
    assert _score(suite, RuleModel(lambda *_: ""), tmp_path, "empty", 8) == 0.0
    suite.close()


def test_where_a_task_finds_no_question_a_later_one_stands_in() -> None:
    suite = make_suite("reasoning-gym")
    assert isinstance(suite, ReasoningSuite)

    class Failing:
        def __getitem__(self, place: int) -> dict[str, Any]:
            if place < 16:
                raise RuntimeError("Failed to generate a capture problem")
            return {"place": place}

    suite._datasets["tsumego"] = Failing()
    assert suite._entry("tsumego", 5) == {"place": 21}


def test_questions_are_drawn_from_seeds_that_no_training_uses() -> None:
    assert FIRST_SEED >= 1 << 31
    assert FIRST_SEED + len(hard_tasks()) * (1 << 16) <= 1 << 32


def test_aime(tmp_path: Path) -> None:
    path = _file(tmp_path, AIME)
    suite = make_suite("aime-2025", SuiteOptions(data={"aime-2025": path}))
    right = {"6 times 7": "\\boxed{42}", "a third": "so \\boxed{\\dfrac{2}{6}}"}
    model = RuleModel(lambda text, _: next(answer for words, answer in right.items() if words in text))
    assert _score(suite, model, tmp_path, "right") == 1.0
    assert len(model.asked) == 64  # the mean of 32
    assert _score(suite, RuleModel(lambda *_: ""), tmp_path, "empty") == 0.0
    suite.close()


def test_mathematics_is_compared_by_value_and_never_hangs() -> None:
    verifier = MathVerifier()
    assert verifier.equal("42", "42.")
    assert verifier.equal("1000", "1,000")
    assert verifier.equal("\\frac{1}{2}", "0.5")
    assert not verifier.equal("42", "43")
    assert not verifier.equal("42", "")
    assert not verifier.equal("42", "{" * 50)
    verifier.close()


def test_gpqa(tmp_path: Path) -> None:
    suite = make_suite("gpqa-diamond", SuiteOptions(data={"gpqa-diamond": _file(tmp_path, GPQA)}, samples=1))
    letters = {question.text: question.reference for question in suite.questions()}
    assert len(set(letters.values())) > 1
    assert all(f"{letter}. right" in text for text, letter in letters.items())
    forms = ("\\boxed{%s}", "\\boxed{\\text{%s}}", "The answer is **%s**", "Answer: (%s)", "\\boxed{%s. right}")
    for number, form in enumerate(forms):
        model = RuleModel(lambda text, _, form=form: form % letters[text])  # type: ignore[misc]
        assert _score(suite, model, tmp_path, f"right{number}") == 1.0
    assert _score(suite, RuleModel(lambda *_: ""), tmp_path, "empty") == 0.0


def test_answers_are_found_where_they_stand() -> None:
    assert final_answer("\\boxed{1} then \\boxed{\\frac{1}{2}}") == "\\frac{1}{2}"
    assert final_answer("<think>\\boxed{1}</think>no") == ""
    assert final_answer("<answer>a {b</answer>") == "a {b"
    assert final_answer("\\boxed{1}<answer>2</answer>") == "2"
    assert final_answer("<answer>2</answer>\\boxed{1}") == "1"
    assert final_answer("<answer>\\boxed{3}</answer>") == "3"
    assert boxed("\\boxed{unbalanced") == ""


def test_a_data_set_that_cannot_be_had_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr("datasets.load_dataset", refuse)
    with pytest.raises(EvaluationError, match=r"gated.*huggingface.co/datasets/Idavidrein/gpqa.*hf auth login.*--data"):
        make_suite("gpqa-diamond").questions()
    with pytest.raises(EvaluationError, match=r"can be reached.*--data aime-2026=FILE"):
        make_suite("aime-2026").questions()
    bad = _file(tmp_path, [{"problem": "x"}])
    with pytest.raises(EvaluationError, match="'answer' is missing"):
        make_suite("aime-2026", SuiteOptions(data={"aime-2026": bad})).questions()
    with pytest.raises(EvaluationError, match="did you mean aime-2026"):
        check_suite("aime-2062")


class _Sayer(RuleModel):
    """Says the number of the first message, in a box."""

    def __init__(self, right: bool) -> None:
        super().__init__(lambda text, _: f"\\boxed{{{text.split()[-1]}}}" if right else "")


def test_a_memory(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "memory") as memory:
        memory.add(EnvironmentRecord.create(PROGRAM, "GuessEnv", skill="saying"))
        memory.add(EnvironmentRecord.create(PROGRAM + "\n# another\n", "GuessEnv", skill="telling"))
    suite = make_suite(f"memory:{tmp_path / 'memory'}")
    assert _score(suite, _Sayer(True), tmp_path, "right") == 1.0
    assert _score(suite, _Sayer(False), tmp_path, "empty") == 0.0
    suite.close()


def test_an_episode_that_never_fits_is_refused_and_says_why(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "memory") as memory:
        memory.add(EnvironmentRecord.create(PROGRAM, "GuessEnv", skill="saying"))
    suite = make_suite(f"memory:{tmp_path / 'memory'}")
    full, _, _ = evaluate(suite, lambda: RuleModel(lambda *_: "?"), "full@1", tmp_path / "out")
    _, _, again = evaluate(suite, lambda: RuleModel(lambda *_: "?"), "full@1", tmp_path / "out")
    right, _, _ = evaluate(suite, lambda: _Sayer(True), "right@1", tmp_path / "out")
    suite.close()
    assert (full.errors, full.refused, again) == (0, full.samples, 0)
    assert full.reason.startswith("the prompt has 9 tokens")
    assert "answers missing, mostly since the prompt has 9" in ResultTable([full]).markdown()
    other = replace(right, protocol={**right.protocol, "options": {"prompts": "nano"}}, protocol_hash="other")
    with pytest.raises(EvaluationError, match=r"prompts 'by kind' and 'nano'"):
        compare_results(right, other)
    words = comparison_dict(full, right, compare_results(full, right))["verdict"]
    assert f"Mind that {full.samples} of the {full.samples} answers of full never came" in words
    assert "answers of right" not in words


class EchoEnv(gymnasium.Env[str, str]):
    """Say the number that is shown, by hand."""

    observation_space = UnicodeText(100)
    action_space = UnicodeText(100)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.number = str(self.np_random.integers(1000))
        return f"Say {self.number}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "over", float(action == self.number), True, False, {}


def test_a_registered_text_environment(tmp_path: Path) -> None:
    gymnasium.register("EvaluationEcho-v0", EchoEnv)
    suite = make_suite("gymnasium:EvaluationEcho-v0")
    assert _score(suite, _Sayer(True), tmp_path, "right") == 1.0
    assert _score(suite, _Sayer(False), tmp_path, "empty") == 0.0
    suite.close()


_KILLED = """
import sys
from pathlib import Path
from spade_envs.models import load_model
from spade_train.evaluation.catalogue import SuiteOptions, make_suite
from spade_train.evaluation.compare import compare_results, comparison_dict
from spade_train.evaluation.evaluate import evaluate
from spade_train.evaluation.runner import RunSettings
url, data, output = sys.argv[1:]
suite = make_suite("aime-2025", SuiteOptions(data={"aime-2025": Path(data)}, samples=12))
model = lambda: load_model("openai:m", base_url=url)
print(evaluate(suite, model, "m@1", Path(output), settings=RunSettings(concurrency=2))[0].score)
"""


def test_after_a_kill_nothing_answered_is_asked_again(tmp_path: Path) -> None:
    """The endpoint kills its client in the middle; the second client asks for the rest alone."""
    server = Server()
    data = _file(tmp_path, [{"id": n, "problem": f"problem {n}", "answer": n} for n in range(2)])
    answered: Counter[tuple[str, int]] = Counter()
    victim: list[int] = []

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        if victim and sum(answered.values()) >= 9:
            os.kill(victim.pop(), signal.SIGKILL)
            return
        text = body["messages"][-1]["content"]
        answered[text, body["seed"]] += 1
        handler.reply(200, chat(f"\\boxed{{{1 if body['seed'] % 2 else 0}}}"))

    server.answers = [answer]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", _KILLED, server.url, str(data)]
    first = subprocess.Popen([*command, str(tmp_path / "cut")], env=environment)
    victim.append(first.pid)
    assert first.wait(120) == -signal.SIGKILL
    done = subprocess.run(
        [*command, str(tmp_path / "cut")], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert len(answered) == 24
    assert sum(answered.values()) <= 24 + 2  # what was under way when the client died may have been sent twice
    whole = subprocess.run(
        [*command, str(tmp_path / "whole")], env=environment, capture_output=True, text=True, timeout=120
    )
    assert whole.stdout == done.stdout
    server.close()


def test_an_endpoint_gets_each_question_for_itself(tmp_path: Path) -> None:
    class Counting(RuleModel):
        sizes: list[int] = []  # noqa: RUF012

        def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
            self.sizes.append(len(conversations))
            return super().complete(conversations, sampling)

    suite = make_suite("gpqa-diamond", SuiteOptions(data={"gpqa-diamond": _file(tmp_path, GPQA)}, samples=2))
    evaluate(suite, lambda: Counting(lambda *_: ""), "m@1", tmp_path / "out", settings=RunSettings(batch=4))
    assert Counting.sizes == [4, 4, 2]
