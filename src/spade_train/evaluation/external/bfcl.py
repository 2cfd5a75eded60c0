"""BFCL v4 multi-turn by the package ``bfcl-eval``, unmodified, in an environment of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spade_train.evaluation.external.command import last_said, run_logged
from spade_train.evaluation.external.environment import evaluator_environment, make_environment
from spade_train.evaluation.external.files import read_lines, write_lines
from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Answer, Question
from spade_train.evaluation.runner import Notice
from spade_train.evaluation.suite import REFUSED, in_turn, is_refusal
from spade_train.serving.process import Served

CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
_DRIVER = Path(__file__).with_name("bfcl_driver.py")
_MODEL = "spade-model"
_FAILED = "Error during inference:"
_STEP = re.compile(rb"ID: (\S+, Turn: \d+, Step: \d+)")  # which it prints before each request


def categories_of(suite: str) -> tuple[str, ...]:
    """Return what ``bfcl-v4`` or ``bfcl-v4:CATEGORY[,CATEGORY…]`` asks.

    Raises:
        EvaluationError: if there is no such category.
    """
    chosen = tuple(name for name in suite.partition(":")[2].split(",") if name) or CATEGORIES
    for name in chosen:
        if name not in CATEGORIES:
            raise EvaluationError(f"bfcl-v4 has no category {name!r}; expected {', '.join(CATEGORIES)}")
    return chosen


class BfclRun:
    """One run in its folder: which dialogues, what they came to. Both steps are the package's own.

    Args:
        folder: of the run; the package's results and scores stand in its ``bfcl``.
        protocol: with the package's version and the temperature.
        categories: to ask.
    """

    def __init__(self, folder: Path, protocol: Protocol, categories: Sequence[str]) -> None:
        self._folder, self._protocol, self._categories = folder / "bfcl", protocol, tuple(categories)
        package = str(protocol.options["package"])
        # soundfile is imported by a handler of another vendor and missing from the package's own requirements.
        self._python = make_environment(package, [package, "soundfile"])

    def questions(self, limit: int = 0) -> list[Question]:
        """Return one question for each dialogue, in turn from each category."""
        data = next(iter(self._python.parent.parent.glob("[Ll]ib/**/bfcl_eval/data")), None)
        if data is None:
            raise EvaluationError(f"the environment of bfcl-eval has no dialogues; remove {self._python.parent.parent}")
        found = {category: read_lines(data / f"BFCL_v4_{category}.json") for category in self._categories}
        every = [Question(str(row["id"]), group=category) for category, rows in found.items() for row in rows]
        return in_turn(every, limit)

    def run(
        self, questions: Sequence[Question], served: Served, threads: int, key: str, subset: bool, notice: Notice | None
    ) -> None:
        """Have the dialogues that are missing held and all of them scored.

        Args:
            questions: the dialogues.
            served: the endpoint.
            threads: dialogues at once.
            key: of the endpoint.
            subset: whether these are not all dialogues of their categories.
            notice: called with the progress.

        Raises:
            EvaluationError: if the package fails; its log is in the folder.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._drop_failures()
        wanted = {category: [q.id for q in questions if q.group == category] for category in self._categories}
        wanted = {category: ids for category, ids in wanted.items() if ids}
        (self._folder / "test_case_ids_to_generate.json").write_text(json.dumps(wanted), encoding="utf-8")
        settings = {
            "model": served.model,
            "categories": list(wanted),
            "temperature": self._protocol.temperature,
            "threads": threads,
            "subset": subset,
        }
        (self._folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        command = [str(self._python), "-P", str(_DRIVER), str(self._folder / "settings.json")]

        def tick() -> None:
            if notice is not None:
                notice(len(self._results()), len(questions), last_said(self._folder, _STEP))

        run_logged("bfcl-eval", command, self._folder, self._environment(served.base_url, key), tick)

    def done(self) -> set[str]:
        """Ids of the dialogues that were held."""
        return {key for key, entry in self._results().items() if not _failed(entry)}

    def scored(self) -> bool:
        """Whether the checker has run on what is there."""
        return bool(self._files("score", "score"))

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Return what the checker says of each dialogue."""
        results, wrong = self._results(), self._wrong()
        answers = []
        for question in questions:
            entry = results.get(question.id)
            failed = entry is None or _failed(entry)
            refused = not failed and is_refusal(str((entry or {}).get("result")))
            verdict = wrong.get(question.id)
            answers.append(
                Answer(
                    *(question.id, 0, question.group, float(not (failed or refused) and verdict is None)),
                    text=json.dumps(entry.get("result") if entry else None),
                    finish=REFUSED if refused else "stop",
                    prompt_tokens=_total(entry, "input_token_count"),
                    completion_tokens=_total(entry, "output_token_count"),
                    error=str((entry or {}).get("result", "no dialogue"))[:500] if failed else "",
                    detail={} if verdict is None else {"error": verdict},
                )
            )
        return answers

    def _environment(self, base_url: str, key: str = "") -> dict[str, str]:
        return evaluator_environment(
            BFCL_PROJECT_ROOT=str(self._folder.resolve()), OPENAI_BASE_URL=base_url, OPENAI_API_KEY=key or "none"
        )

    def _files(self, folder: str, kind: str) -> list[Path]:
        return sorted((self._folder / folder / _MODEL).rglob(f"BFCL_v4_*_{kind}.json"))

    def _results(self) -> dict[str, dict[str, Any]]:
        files = self._files("result", "result")
        return {entry["id"]: entry for path in files for entry in read_lines(path) if "id" in entry}

    def _wrong(self) -> dict[str, Any]:
        """Ids that the checker refused; the first line of a score file is its summary."""
        files = self._files("score", "score")
        return {entry["id"]: entry.get("error") for path in files for entry in read_lines(path) if "id" in entry}

    def _drop_failures(self) -> None:
        """Take dialogues that broke off (the endpoint was gone) out of the results, so that they are held again."""
        for path in self._files("result", "result"):
            entries = read_lines(path)
            kept = [entry for entry in entries if not _failed(entry)]
            if len(kept) < path.read_bytes().rstrip().count(b"\n") + 1:  # half lines too
                write_lines(path, kept)


def _failed(entry: Mapping[str, Any]) -> bool:
    result = str(entry.get("result", ""))
    return result.startswith(_FAILED) and not is_refusal(result)


def _total(entry: Mapping[str, Any] | None, name: str) -> int:
    def add(value: Any) -> int:
        return sum(map(add, value)) if isinstance(value, list) else int(value or 0)

    return add((entry or {}).get(name))
