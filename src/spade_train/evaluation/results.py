"""What a run of a suite comes to, and its files: ``result.json``, ``generations.parquet``, ``journal.jsonl``."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Answer, Question
from spade_train.evaluation.statistics import bootstrap_interval, stratified_interval
from spade_train.evaluation.suite import REFUSED

OVERALL = ""
"""The group of the column that is the mean of the others, where a protocol names one beside them."""
RESULT_FILE, GENERATIONS_FILE, JOURNAL_FILE = "result.json", "generations.parquet", "journal.jsonl"


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a result, in [0, 1], with its 95 % interval."""

    group: str
    title: str
    score: float
    interval: tuple[float, float]
    questions: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a model achieved on a suite."""

    suite: str
    title: str
    model: str
    columns: tuple[Column, ...]
    questions: int
    samples: int
    limit: int  # 0: all questions were asked
    metric: str
    scores: Mapping[str, float]  # mean score of each question
    protocol: Mapping[str, Any] = field(default_factory=dict)
    protocol_hash: str = ""
    as_published: bool = True  # whether the protocol is the data file's, unchanged
    version: str = ""
    key: str = ""
    seed: int = 0
    errors: int = 0  # answers that never came; they count as 0
    refused: int = 0  # questions that the model cannot take, mostly for their length; they count as 0
    reason: str = ""  # why answers are missing or questions refused: the commonest, in its own words
    cut_off: int = 0  # replies that ran into their budget
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0  # of the session that finished it
    cost: float = 0.0

    @property
    def score(self) -> float:
        """The overall column where the suite has one, else the mean of the columns."""
        if whole := [column.score for column in self.columns if column.group == OVERALL]:
            return whole[0]
        return math.fsum(column.score for column in self.columns) / max(1, len(self.columns))

    @property
    def marks(self) -> list[str]:
        """What a reader must know before comparing this with anything."""
        marks = [f"limit {self.limit}: smoke run, not comparable"] if self.limit else []
        marks += [] if self.as_published else ["protocol changed"]
        marks += [f"{self.errors} answers missing"] if self.errors else []
        marks += [f"{self.refused} prompts refused (too long?)"] if self.refused else []
        return marks

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary."""
        return {**dataclasses.asdict(self), "score": self.score, "marks": self.marks}

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read ``result.json`` in a folder, or a file of that form.

        Raises:
            EvaluationError: if there is none.
        """
        path = Path(folder)
        path = path / RESULT_FILE if path.is_dir() else path
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            columns = tuple(Column(**{**column, "interval": tuple(column["interval"])}) for column in values["columns"])
            known = {f.name for f in dataclasses.fields(cls)}
            return cls(**{k: v for k, v in values.items() if k in known} | {"columns": columns})
        except FileNotFoundError as error:
            raise EvaluationError(f"{path} does not exist: expected the folder of a finished evaluation") from error
        except (ValueError, KeyError, TypeError) as error:
            raise EvaluationError(f"{path} is no result of an evaluation: {error!r}") from error


def summarise(protocol: Protocol, suite: str, model: str, answers: Sequence[Answer], **facts: Any) -> Result:
    """Put a result together from all answers."""
    by_question: dict[str, list[Answer]] = {}
    for answer in answers:
        by_question.setdefault(answer.id, []).append(answer)
    scores = {key: math.fsum(one.score for one in given) / len(given) for key, given in by_question.items()}
    groups: dict[str, list[float]] = {}
    for key, given in by_question.items():
        groups.setdefault(given[0].group, []).append(scores[key])
    order = [group for group in protocol.columns if group in groups]
    order += sorted(set(groups) - set(order))
    columns = tuple(
        Column(
            group=group,
            title=protocol.columns.get(group, group or protocol.title),
            score=math.fsum(groups[group]) / len(groups[group]),
            interval=bootstrap_interval(groups[group]),
            questions=len(groups[group]),
        )
        for group in order
    )
    if OVERALL in protocol.columns and OVERALL not in groups:
        whole = math.fsum(column.score for column in columns) / len(columns)
        interval = stratified_interval([groups[group] for group in order])
        columns = (*columns, Column(OVERALL, protocol.columns[OVERALL], whole, interval, len(scores)))
    return Result(
        suite=suite,
        title=protocol.title,
        model=model,
        columns=columns,
        questions=len(scores),
        samples=protocol.samples,
        metric=protocol.metric,
        scores=scores,
        protocol={f.name: _plain(getattr(protocol, f.name)) for f in dataclasses.fields(protocol)
                  if f.name not in ("published", "notes")},
        protocol_hash=protocol.hash,
        errors=sum(bool(answer.error) for answer in answers),
        refused=sum(answer.finish == REFUSED for answer in answers),
        reason=_commonest(answers),
        cut_off=sum(answer.finish == "length" for answer in answers),
        prompt_tokens=sum(answer.prompt_tokens for answer in answers),
        completion_tokens=sum(answer.completion_tokens for answer in answers),
        **facts,
    )  # fmt: skip


def since(reason: str) -> str:
    """Why no answer came, as the end of a sentence; empty if nothing is known."""
    return f", mostly since {' '.join(reason.split())[:300]}" if reason else ""


def _commonest(answers: Sequence[Answer]) -> str:
    """Reasons that differ in their figures alone are one."""
    reasons = [reason for answer in answers if (reason := answer.error or str(answer.detail.get("refused", "")))]
    kinds = Counter(re.sub(r"\d+", "0", reason) for reason in reasons)
    return next((reason for reason in reasons if re.sub(r"\d+", "0", reason) == kinds.most_common(1)[0][0]), "")


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def write_result(folder: Path, result: Result) -> None:
    """Write ``result.json`` so that a reader sees the old file or the new one."""
    temporary = folder / f"{RESULT_FILE}.tmp"
    temporary.write_text(json.dumps(result.to_dict(), indent=1), encoding="utf-8")
    temporary.replace(folder / RESULT_FILE)


def write_generations(folder: Path, questions: Mapping[str, Question], answers: Sequence[Answer]) -> None:
    """Write all raw generations, with the prompts and scores, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            **{name: getattr(answer, name) for name in ("id", "sample", "group", "score", "text", "finish")},
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "error": answer.error,
            "detail": json.dumps(answer.detail, default=str),
            "messages": json.dumps(list(questions[answer.id].messages)) if answer.id in questions else "[]",
        }
        for answer in answers
    ]
    temporary = folder / f"{GENERATIONS_FILE}.tmp"
    pq.write_table(pa.Table.from_pylist(rows), temporary, compression="zstd")
    temporary.replace(folder / GENERATIONS_FILE)
