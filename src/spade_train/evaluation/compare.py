"""Two results of one suite, question by question, with the verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from spade_train.evaluation.protocol import EvaluationError
from spade_train.evaluation.results import Result, since
from spade_train.evaluation.statistics import Paired, compare_paired


def compare_results(first: Result, second: Result, seed: int = 0) -> Paired:
    """Compare the questions that both answered.

    Raises:
        EvaluationError: if the two did not answer the same questions by the same protocol.
    """
    for what in ("suite", "version", "protocol_hash"):
        one, two = getattr(first, what), getattr(second, what)
        if one != two:
            raise EvaluationError(
                f"only results of the same suite, version and protocol can be compared: {what} is {one!r} for "
                f"{first.model} and {two!r} for {second.model}{_settings(first, second)}"
            )
    return compare_paired(first.scores, second.scores, seed)


def verdict(first: str, second: str, paired: Paired) -> str:
    """Say in words what the comparison shows."""
    points, (low, high) = 100 * paired.difference, (100 * end for end in paired.interval)
    facts = (
        f"{second} {100 * paired.second:.1f} % against {first} {100 * paired.first:.1f} %: {points:+.1f} points "
        f"(95 % interval {low:+.1f} to {high:+.1f}) on {paired.questions} questions; {second} did better on "
        f"{paired.second_only} of them, {first} on {paired.first_only}; {paired.test}, p = {paired.p:.3g}."
    )
    if not paired.clear:
        told = "No difference can be told from chance"
        return (
            f"{told}, {paired.questions} questions being few: {facts}" if paired.questions < 30 else f"{told}: {facts}"
        )
    better, worse = (second, first) if paired.difference > 0 else (first, second)
    return f"{better} is better than {worse}: {facts}"


def comparison_dict(first: Result, second: Result, paired: Paired) -> dict[str, Any]:
    """Return the comparison, JSON-safe."""
    names = _names(first, second)
    words = " ".join([verdict(*names, paired), *_missing(dict(zip(names, (first, second), strict=True)))])
    return {"suite": first.suite, "first": first.model, "second": second.model, **asdict(paired), "verdict": words}


def _settings(first: Result, second: Result) -> str:
    """What of the two protocols differs, in words; empty if neither tells."""
    one, two = (_flat(result.protocol) for result in (first, second))
    differing = [key for key in dict.fromkeys((*one, *two)) if one.get(key) != two.get(key)]
    told = ", ".join(f"{key} {one.get(key)!r} and {two.get(key)!r}" for key in differing)
    return f" ({told[:600]})" if told else ""


def _flat(protocol: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in protocol.items() if key not in ("options", "title", "columns", "metric")}
    return {**rest, **protocol.get("options", {})}


def _missing(results: Mapping[str, Result]) -> list[str]:
    """What was never answered counts as wrong, so that a difference may be no more than that."""
    return [
        f"Mind that {result.errors + result.refused} of the {result.questions * result.samples} answers of {name} "
        f"never came and count as wrong{since(result.reason)}."
        for name, result in results.items()
        if result.errors + result.refused
    ]


def _names(first: Result, second: Result) -> tuple[str, str]:
    if first.model != second.model:
        return first.model, second.model
    return f"{first.model} (A)", f"{second.model} (B)"
