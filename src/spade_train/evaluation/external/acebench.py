"""ACEBench from a user's checkout, by its own ``generate.py`` and ``eval_main.py``.

The checkout stays as it is: a copy of it in the run's folder is what runs, with fewer questions where a limit is set.
ACEBench picks an endpoint by the model's name and has one address for all names of GPTs; so the model under test and
the user go by two such names, which a router takes to where they are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_train.evaluation.external.command import run_logged
from spade_train.evaluation.external.environment import evaluator_environment, make_environment
from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Answer, Question
from spade_train.evaluation.runner import Notice
from spade_train.evaluation.suite import in_turn
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
_AGENT, _USER = "gpt-4o-2024-11-20", "gpt-4o"  # names in its list, of which both are asked at GPT_BASE_URL
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


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a data, result or score file; lines that a kill cut in half are left out."""
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def read_scores(rows: Sequence[dict[str, Any]], questions: Sequence[str]) -> dict[str, str]:
    """Return what is wrong with each refused answer, by question.

    The first row of a score file is its summary; the others are refusals, of agent tasks by their place in the file.

    Args:
        rows: of the score file.
        questions: ids of the category's questions in the order of their file.
    """
    refused = {}
    for row in rows:
        if "id" not in row:
            continue
        key = questions[row["id"]] if isinstance(row["id"], int) else str(row["id"])
        refused[key] = f"{row.get('error_type') or 'wrong'}: {row.get('error')}"[:500]
    return refused


class AceRun:
    """One run in its folder."""

    def __init__(self, folder: Path, protocol: Protocol, checkout: Path, categories: Sequence[str]) -> None:
        self._folder, self._protocol, self._checkout = folder / "acebench", protocol, checkout
        self._categories = tuple(categories)

    def questions(self, limit: int = 0) -> list[Question]:
        """Make the copy with the questions to be asked, and return them."""
        found = [
            Question(row["id"], group=category)
            for category in self._categories
            for row in read_lines(self._data(self._checkout, category))
        ]
        chosen = in_turn(found, limit)
        ignored = shutil.ignore_patterns(".git", "fig", "docs", "result_all", "score_all", "data_zh")
        shutil.copytree(self._checkout, self._folder, ignore=ignored, dirs_exist_ok=True)
        ids = {question.id for question in chosen}
        for category in self._categories:
            for path in (self._data(self._folder, category), self._data(self._folder, category, "possible_answer")):
                rows = [row for row in read_lines(path) if row["id"] in ids]
                path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return chosen

    def run(
        self,
        questions: Sequence[Question],
        served: Served,
        user: Served,
        options: ExternalOptions,
        notice: Notice | None,
    ) -> None:
        """Have the tasks that are missing done, and all of them scored.

        Raises:
            EvaluationError: if ACEBench fails; its log is in the folder.
        """
        python = str(make_environment("acebench", _PACKAGES))
        for name, text in _SHIMS.items():
            path = self._folder / "shims" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._mend()
        categories = [c for c in self._categories if any(question.group == c for question in questions)]
        generate = [python, "generate.py", "--model", _AGENT, "--category", *self._groups(categories)]
        protocol = self._protocol
        generate += ["--language", "en", "--temperature", str(protocol.temperature), "--top-p", str(protocol.top_p)]
        generate += ["--max-tokens", str(protocol.max_tokens), "--max-dialog-turns", str(protocol.max_turns)]
        generate += ["--num-threads", str(options.concurrency), "--user-model", _USER]
        (self._folder / "score_all" / "score_en" / _AGENT).mkdir(parents=True, exist_ok=True)
        evaluate = [python, "eval_main.py", "--language", "en", "--model", _AGENT, "--category", *categories]

        def tick() -> None:
            if notice is not None:
                notice(len(self._results()), len(questions), "")

        routes = {_AGENT: Route(*served, options.key), _USER: Route(*user, options.user_key)}
        with router(routes) as url:
            environment = evaluator_environment(
                PYTHONPATH=str(self._folder / "shims"),
                PYTHONUTF8="1",
                **dict.fromkeys(("GPT_AGENT_API_KEY", "GPT_API_KEY", "OPENAI_API_KEY"), "none"),
                **dict.fromkeys(("GPT_BASE_URL", "OPENAI_BASE_URL"), url),
            )
            run_logged("ACEBench's generate.py", generate, self._folder, environment, tick)
        run_logged("ACEBench's eval_main.py", evaluate, self._folder, environment)

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Return what the checker says of each task."""
        results = self._results()
        refused: dict[str, str] = {}
        for category in self._categories:
            path = self._folder / "score_all" / "score_en" / _AGENT / f"data_{category}_score.json"
            if path.is_file():
                order = [row["id"] for row in read_lines(self._data(self._folder, category))]
                refused |= read_scores(read_lines(path), order)
        return [
            Answer(
                *(question.id, 0, question.group, float(question.id in results and question.id not in refused)),
                text=json.dumps(results.get(question.id), ensure_ascii=False),
                error="" if question.id in results else "no result",
                detail={"refused": refused[question.id]} if question.id in refused else {},
            )
            for question in questions
        ]

    def _results(self) -> dict[str, Any]:
        folder = self._folder / "result_all" / "result_en" / _AGENT
        return {row["id"]: row for path in folder.glob("data_*_result.json") for row in read_lines(path)}

    def _mend(self) -> None:
        """Drop half lines of results, on which its own reading would fail."""
        for path in (self._folder / "result_all" / "result_en" / _AGENT).glob("data_*_result.json"):
            rows = read_lines(path)
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")

    @staticmethod
    def _groups(categories: Sequence[str]) -> list[str]:
        """Names that its ``category.py`` knows; it has no names for single categories."""
        return [group for group, names in CATEGORIES.items() if any(name in names for name in categories)]

    @staticmethod
    def _data(root: Path, category: str, kind: str = "") -> Path:
        path = root / "data_all" / "data_en" / kind / f"data_{category}.json"
        if not path.is_file():
            raise EvaluationError(f"{path} does not exist: expected a checkout of github.com/ACEBench/ACEBench")
        return path
