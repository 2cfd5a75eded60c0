"""ACEBench from a user's checkout, by its own ``generate.py`` and ``eval_main.py``.

The checkout stays as it is: a copy of it in the run's folder is what runs, with fewer questions where a limit is set.
ACEBench picks an endpoint by the model's name and has one address for all names of GPTs; so the model under test and
the user go by two such names, which a router takes to where they are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_train.evaluation.external.acebench_driver import FAILURES, SCORES, unit_of
from spade_train.evaluation.external.command import run_logged
from spade_train.evaluation.external.environment import evaluator_environment, make_environment
from spade_train.evaluation.external.files import read_lines, write_lines
from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Answer, Question
from spade_train.evaluation.runner import Notice
from spade_train.evaluation.suite import REFUSED, in_turn, is_refusal
from spade_train.serving.process import Served
from spade_train.serving.router import Route, router

if TYPE_CHECKING:
    from spade_train.evaluation.external.run import ExternalOptions

CATEGORIES = {
    "agent": ("agent_multi_step", "agent_multi_turn"),
    "normal": (
        *(
            "normal_single_turn_single_function",
            "normal_single_turn_parallel_function",
            "normal_multi_turn_user_adjust",
        ),
        *("normal_multi_turn_user_switch", "normal_similar_api", "normal_preference", "normal_atom_bool"),
        *("normal_atom_enum", "normal_atom_number", "normal_atom_list", "normal_atom_object_deep"),
        "normal_atom_object_short",
    ),
    "special": ("special_incomplete", "special_error_param", "special_irrelevant"),
}
_DRIVER = Path(__file__).with_name("acebench_driver.py")
_AGENT, _USER = "gpt-4o-2024-11-20", "gpt-4o"  # names in its list, of which both are asked at its GPTs' addresses
_PACKAGES = (
    *("openai==1.64.0", "openpyxl==3.1.5", "pandas==2.2.3", "python-dotenv==1.0.1", "tqdm==4.67.1", "urllib3==2.3.0"),
    "wcwidth==0.2.13",
)
"""Of its requirements.txt, without those of models that it runs itself."""
_SHIMS = {
    "vllm.py": "class LLM: pass\n\n\nclass SamplingParams: pass\n",
    "google/generativeai.py": "def configure(**options): raise RuntimeError('not installed')\n",
}
"""Imported at the top of its modules, used for models that it runs itself: not installed here."""
_ADDRESSES = ("GPT_AGENT_BASE_URL", "GPT_BASE_URL", "OPENAI_BASE_URL")
_KEYS = ("GPT_AGENT_API_KEY", "GPT_API_KEY", "OPENAI_API_KEY")
"""All that its modules read for GPTs. One left out would be taken from a file ``.env`` of the user's."""


def categories_of(suite: str) -> tuple[str, ...]:
    """Return the categories of ``acebench`` (agent) or ``acebench:agent,normal,special``.

    Raises:
        EvaluationError: if there is no such group or category.
    """
    chosen: list[str] = []
    for name in suite.partition(":")[2].split(",") if ":" in suite else ["agent"]:
        known = CATEGORIES.get(name) or tuple(c for group in CATEGORIES.values() for c in group if c == name)
        if not known:
            raise EvaluationError(f"acebench has no category {name!r}; expected agent, normal or special")
        chosen += known
    return tuple(dict.fromkeys(chosen))


class AceRun:
    """One run in its folder. Its questions are single ones, and dialogues where turns are scored together."""

    def __init__(self, folder: Path, protocol: Protocol, checkout: Path, categories: Sequence[str]) -> None:
        self._folder, self._protocol, self._checkout = folder / "acebench", protocol, checkout
        self._categories = tuple(categories)

    def questions(self, limit: int = 0) -> list[Question]:
        """Make the copy with the questions to be asked, and return them."""
        found = dict.fromkeys(
            (unit_of(row["id"]), category)
            for category in self._categories
            for row in read_lines(self._data(self._checkout, category))
        )
        chosen = in_turn([Question(unit, group=category) for unit, category in found], limit)
        ignored = shutil.ignore_patterns(
            *(".git", ".env*", "fig", "docs", "result_all", "score_all", "result_excel", "data_zh"), "dialogue_history"
        )
        shutil.copytree(self._checkout, self._folder, ignore=ignored, dirs_exist_ok=True)
        units = {question.id for question in chosen}
        for category in self._categories:
            for path in (self._data(self._folder, category), self._data(self._folder, category, "possible_answer")):
                write_lines(path, [row for row in read_lines(path) if unit_of(row["id"]) in units])
        return chosen

    def run(
        self,
        questions: Sequence[Question],
        served: Served,
        user: Served,
        options: ExternalOptions,
        notice: Notice | None,
    ) -> None:
        """Have the questions that are missing asked, and all of them scored.

        Raises:
            EvaluationError: if ACEBench fails; its log is in the folder.
        """
        python = str(make_environment("acebench", _PACKAGES))
        for name, text in _SHIMS.items():
            path = self._folder / "shims" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._drop_failures()
        protocol = self._protocol
        asked = ["--model", _AGENT, "--language", "en", "--temperature", str(protocol.temperature)]
        asked += ["--top-p", str(protocol.top_p), "--max-tokens", str(protocol.max_tokens)]
        asked += ["--max-dialog-turns", str(protocol.max_turns), "--num-threads", str(options.concurrency)]
        asked += ["--user-model", _USER]
        categories = [c for c in self._categories if any(question.group == c for question in questions)]
        settings = self._folder / "settings.json"
        values = {"model": _AGENT, "categories": categories, "options": asked}
        settings.write_text(json.dumps(values), encoding="utf-8")
        (self._folder / "score_all" / "score_en" / _AGENT).mkdir(parents=True, exist_ok=True)

        def command(step: str) -> list[str]:
            return [python, "-P", str(_DRIVER), step, str(settings.resolve())]

        def tick() -> None:
            if notice is not None:
                notice(len(self.done(questions)), len(questions), "")

        routes = {_AGENT: Route(*served, options.key, plain=True), _USER: Route(*user, options.user_key)}
        with router(routes) as url:
            environment = evaluator_environment(
                PYTHONPATH=f"{self._folder.resolve()}:{(self._folder / 'shims').resolve()}",
                PYTHONUTF8="1",
                **dict.fromkeys(_ADDRESSES, url),
                **dict.fromkeys(_KEYS, "none"),
            )
            run_logged("ACEBench's generate.py", command("generate"), self._folder, environment, tick)
        run_logged("ACEBench's eval_main.py", command("score"), self._folder, environment)

    def done(self, questions: Sequence[Question]) -> set[str]:
        """Ids of the questions that were asked to the end."""
        results, failed = self._results(), self._failures()
        lost = {unit_of(key) for key, row in failed.items() if _lost(row)}
        rows: dict[str, set[str]] = {}
        for category in self._categories:
            for row in read_lines(self._data(self._folder, category)):
                rows.setdefault(unit_of(row["id"]), set()).add(row["id"])
        return {q.id for q in questions if q.id not in lost and rows.get(q.id, {""}) <= results.keys()}

    def scored(self, questions: Sequence[Question]) -> bool:
        """Whether the checker has seen all questions."""
        return {question.id for question in questions} <= self._scores().keys()

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Return what the checker says of each question."""
        done, scores = self.done(questions), self._scores()
        failed = {unit_of(key): row for key, row in self._failures().items()}
        texts: dict[str, list[Any]] = {}
        for key, row in self._results().items():
            texts.setdefault(unit_of(key), []).append(row)
        answers = []
        for question in questions:
            failure = str(failed.get(question.id, {}).get("error", ""))
            verdict = scores.get(question.id, {"score": 0.0, "error": ""})
            asked = question.id in done and question.id in scores
            refused = failure if asked and is_refusal(failure) else ""
            why = failure if asked and failure else verdict["error"]
            answers.append(
                Answer(
                    *(question.id, 0, question.group, float(verdict["score"]) if asked and not failure else 0.0),
                    text=json.dumps(texts.get(question.id), ensure_ascii=False),
                    finish=REFUSED if refused else "stop",
                    error="" if asked else failure or "no result",
                    detail={"refused": why} if why else {},
                )
            )
        return answers

    def _results(self) -> dict[str, dict[str, Any]]:
        folder = self._folder / "result_all" / "result_en" / _AGENT
        return {row["id"]: row for path in folder.glob("data_*_result.json") for row in read_lines(path)}

    def _failures(self) -> dict[str, dict[str, Any]]:
        path = self._folder / FAILURES
        return {row["id"]: row for row in read_lines(path)} if path.is_file() else {}

    def _scores(self) -> dict[str, dict[str, Any]]:
        path = self._folder / SCORES
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def _drop_failures(self) -> None:
        """Drop results whose endpoint was gone, so that they are asked again, and half lines."""
        failed = self._failures()
        lost = {key for key, row in failed.items() if _lost(row)}
        for path in (self._folder / "result_all" / "result_en" / _AGENT).glob("data_*_result.json"):
            write_lines(path, [row for row in read_lines(path) if row["id"] not in lost])
        if failed:
            write_lines(self._folder / FAILURES, [row for key, row in failed.items() if key not in lost])
        (self._folder / SCORES).unlink(missing_ok=True)

    @staticmethod
    def _data(root: Path, category: str, kind: str = "") -> Path:
        path = root / "data_all" / "data_en" / kind / f"data_{category}.json"
        if not path.is_file():
            raise EvaluationError(f"{path} does not exist: expected a checkout of github.com/ACEBench/ACEBench")
        return path


def _lost(failure: Mapping[str, Any]) -> bool:
    """Whether the endpoint failed, rather than the model: what it wrote, or that the prompt is too long for it."""
    return not failure.get("answered") and not is_refusal(str(failure.get("error", "")))
