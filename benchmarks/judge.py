"""Precision and recall of a model as judge of statement against checker, over the truth set of the tests.

    python benchmarks/judge.py --model openai:NAME --base-url http://localhost:8000/v1 [--limit N] [-v]

Positive are the programs whose planted fault is that statement and checker disagree (``# kind:`` in their first
lines), negative the sound ones. First lines are not shown to the model, nor class docstrings, which name the fault. A
reply without a verdict counts as agreement, since it would let the program pass, and is counted apart.
"""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import dataclass
from pathlib import Path

from spade_envs.models import load_model
from spade_envs.sandbox import Sandbox
from spade_envs.validation.judge import Judge, Judgement

DATA = Path(__file__).parent.parent / "tests" / "data"
FOLDERS = (DATA / "validation", DATA / "judge")
KIND = "statement and checker disagree"
_NOT_SHOWN = re.compile(r"\A(?:#[^\n]*\n)+")
_DOCSTRING = re.compile(r'^(class \w+[^\n]*:\n)\s+"""[^"]*"""\n', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """One program as the model sees it, and whether its statement and checker disagree."""

    name: str
    source: str
    disagrees: bool


def bare(text: str) -> str:
    """Return a program without what would tell the model the answer."""
    return _DOCSTRING.sub(r"\1", _NOT_SHOWN.sub("", text))


def cases() -> list[Case]:
    """The truth set: faults of this kind, and all sound programs."""
    found = []
    for folder in FOLDERS:
        for path in sorted((folder / "faulty").glob("*.py")):
            text = path.read_text(encoding="utf-8")
            if KIND in text[:300]:
                found.append(Case(path.stem, bare(text), True))
        for path in sorted((folder / "sound").glob("*.py")):
            found.append(Case(path.stem, bare(path.read_text(encoding="utf-8")), False))
    return found


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of judgements against the truth."""

    hits: int
    misses: int
    false_alarms: int
    passed: int
    silent: int

    @property
    def precision(self) -> float | None:
        """Share of real faults among those reported; None if nothing was reported."""
        told = self.hits + self.false_alarms
        return self.hits / told if told else None

    @property
    def recall(self) -> float | None:
        """Share of faults that were reported; None if there are none."""
        real = self.hits + self.misses
        return self.hits / real if real else None


def score(truth: list[Case], judged: list[Judgement]) -> Score:
    """Count; no verdict lets a program pass."""
    pairs = [(case.disagrees, judgement.agree is False) for case, judgement in zip(truth, judged, strict=True)]
    return Score(
        hits=pairs.count((True, True)),
        misses=pairs.count((True, False)),
        false_alarms=pairs.count((False, True)),
        passed=pairs.count((False, False)),
        silent=sum(judgement.agree is None for judgement in judged),
    )


def main(arguments: list[str] | None = None) -> Score:
    """Ask about every program and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="hf:<directory or hub id>, vllm:<…>, openai:<model>")
    parser.add_argument("--base-url")
    parser.add_argument("--limit", type=int, help="at most so many programs of either kind")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("-v", "--verbose", action="store_true", help="print every judgement")
    options = parser.parse_args(arguments)
    truth = cases()
    if options.limit:
        kinds = [[case for case in truth if case.disagrees is kind][: options.limit] for kind in (True, False)]
        truth = [case for kind in kinds for case in kind]
    judge = Judge(load_model(options.model, base_url=options.base_url), batch=options.batch)
    judged: list[Judgement] = []
    began = time.perf_counter()
    with Sandbox() as sandbox:
        for start in range(0, len(truth), options.batch):
            chunk = truth[start : start + options.batch]
            judged += judge.judge([case.source for case in chunk], sandbox=sandbox)
    seconds = time.perf_counter() - began
    judge.model.close()
    if options.verbose:
        for case, judgement in zip(truth, judged, strict=True):
            said = "no verdict" if judgement.agree is None else "agree" if judgement.agree else "disagree"
            right = "" if case.disagrees is (judgement.agree is False) else "  WRONG"
            print(f"{case.name:32} {said:10} line {judgement.line:3}{right}  {judgement.reason or judgement.error}")
        print()
    result = score(truth, judged)
    print(judge.summary())
    print(f"{len(truth)} programs, {sum(case.disagrees for case in truth)} with the fault; {seconds:.1f} s")
    print(f"{'':22}reported  passed")
    print(f"{'disagree in truth':22}{result.hits:8}{result.misses:8}")
    print(f"{'sound':22}{result.false_alarms:8}{result.passed:8}")
    print(f"precision {_share(result.precision)}  recall {_share(result.recall)}  without a verdict {result.silent}")
    return result


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
