"""Runs inside ACEBench's environment, in a copy of a checkout: asks and scores by its own code, nothing of it changed.

``generate`` runs its ``generate.py``. That ends with the first question that fails; here a question that fails gets an
empty result, and what went wrong is noted.

``score`` calls the functions of its ``eval_main.py`` for one question, or one dialogue, at a time. Of a whole file they
give an accuracy and a list of refusals that do not always agree: a question whose second possible answer is met counts
as right and is listed as well.

Usage: ``python acebench_driver.py generate|score SETTINGS.json``.
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
from typing import Any

FAILURES, SCORES = "failures.jsonl", "scores.json"
_SECONDS = 3600.0  # that a reply may take; the client's own ten minutes are too few for a small machine


def unit_of(row_id: str) -> str:
    """Return what a row of the data is scored in: the dialogue of a turn, itself otherwise."""
    return row_id.rsplit("_", 1)[0] if row_id.startswith("normal_multi_turn") else row_id


def generate(settings: dict[str, Any]) -> None:
    """Have the missing questions of the chosen categories asked."""
    import category
    import openai
    from model_inference.apimodel_inference import APIModelInference

    ask, make = APIModelInference.inference, openai.OpenAI.__init__
    lock = threading.Lock()

    def patient(client: Any, **options: Any) -> None:
        make(client, **{"timeout": _SECONDS, **options})

    def guarded(
        self: Any, question: Any, functions: Any, time: Any, profile: Any, test_case: Any, id: str
    ) -> Any:  # by its own names
        try:
            return ask(self, question, functions, time, profile, test_case, id)
        except Exception as error:
            ours = not isinstance(error, openai.OpenAIError)
            said = f"{type(error).__name__}: {error}" if ours else str(error)
            with lock, open(FAILURES, "a", encoding="utf-8") as file:
                file.write(json.dumps({"id": id, "error": said[:2000], "answered": ours}) + "\n")
            return ([], []) if "agent" in id else ""

    openai.OpenAI.__init__ = patient
    APIModelInference.inference = guarded
    category.ACE_DATA_CATEGORY["chosen"] = settings["categories"]
    sys.argv = ["generate.py", "--category", "chosen", *settings["options"]]
    runpy.run_path("generate.py", run_name="__main__")


def score(settings: dict[str, Any]) -> None:
    """Score whatever has results; writes ``scores.json``: by question or dialogue its score, and why it is refused."""
    import eval_main as official

    model, paths = settings["model"], official.get_paths("en")
    for name, path in paths.items():
        setattr(official, name, path)
    official.language = "en"
    kept: list[dict[str, Any]] = []
    official.save_score_as_json = lambda name, rows, folder=None: kept.extend(rows)
    official.convert_result_to_excel = lambda *_: None  # tables to look at, and it fails on control characters

    def evaluate(category: str, rows: list[tuple[Any, Any, Any]]) -> float:
        results, prompts, answers = (list(column) for column in zip(*rows))
        if "special" in category:
            return float(official.special_eval(results, prompts, answers, category, model, paths))
        if "agent" in category:
            return float(official.agent_eval(results, prompts, answers, category, model)[0])
        if "normal_multi_turn" in category:
            return float(official.normal_multi_turn_eval(results, prompts, answers, category, model, paths))
        return float(official.normal_single_turn_eval(results, prompts, answers, category, model, paths))

    scores: dict[str, dict[str, Any]] = {}
    for category in settings["categories"]:
        prompts = official.load_file(f"{paths['PROMPT_PATH']}data_{category}.json")
        answers = official.load_file(f"{paths['POSSIBLE_ANSWER_PATH']}data_{category}.json")
        found = official.load_file(f"{paths['INPUT_PATH']}{model}/data_{category}_result.json")
        results = {row["id"]: row for row in found}
        units: dict[str, list[tuple[Any, Any, Any]]] = {}
        for prompt, answer in zip(prompts, answers, strict=True):
            units.setdefault(unit_of(prompt["id"]), []).append((results.get(prompt["id"]), prompt, answer))
        for unit, rows in units.items():
            if not all(row[0] for row in rows):
                continue
            kept.clear()
            try:
                value, why = evaluate(category, rows), ""
            except Exception as error:  # the checker trips over what the model wrote
                value, why = 0.0, f"{type(error).__name__}: {error}"
            refused = [row for row in kept if row.get("valid") is False]
            if value < 1 and refused:
                why = f"{refused[0].get('error_type') or 'wrong'}: {refused[0].get('error')}"
            scores[unit] = {"score": value, "error": why[:500]}
    with open(SCORES, "w", encoding="utf-8") as file:
        json.dump(scores, file)


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as settings_file:
        {"generate": generate, "score": score}[sys.argv[1]](json.load(settings_file))
