"""ACEBench: its driver on a small stand-in with the same names, and its own code where a checkout is at hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from endpoint_server import Handler, Server

from evaluation.acebench_replay import Replay
from spade_train.evaluation.external import acebench, acebench_driver
from spade_train.evaluation.external.environment import find_environment
from spade_train.evaluation.external.files import read_lines, write_lines
from spade_train.evaluation.external.run import ExternalOptions, run_external
from spade_train.evaluation.identity import model_identity

CHECKOUT = Path(__file__).parents[3] / "shared" / "checkouts" / "ACEBench"
needs_checkout = pytest.mark.skipif(
    not CHECKOUT.is_dir() or find_environment("acebench") is None,
    reason="no checkout in ../shared/checkouts/ACEBench, or no environment for it: run spade eval -s acebench once",
)
_STAND_IN = {
    "openai.py": """
class OpenAIError(Exception): pass
class OpenAI:
    def __init__(self, timeout=600.0): self.timeout = timeout
""",
    "category.py": "ACE_DATA_CATEGORY = {}\n",
    "model_inference/__init__.py": "",
    "model_inference/apimodel_inference.py": """
import openai
class APIModelInference:
    def inference(self, question, functions, time, profile, test_case, id):
        if question == "gone": raise openai.OpenAIError("Connection error.")
        if question == "long": raise openai.OpenAIError("Error code: 400 - the prompt has 9000 tokens")
        if question == "odd": raise IndexError("string index out of range")
        return f"{question} {openai.OpenAI().timeout}"
""",
    "generate.py": """
import json, sys
from category import ACE_DATA_CATEGORY
from model_inference.apimodel_inference import APIModelInference
if __name__ == "__main__":
    (name,) = ACE_DATA_CATEGORY["chosen"]
    rows = [json.loads(line) for line in open(f"data_{name}.json")]
    with open(f"results/m/data_{name}_result.json", "w") as file:
        for row in rows:
            result = APIModelInference().inference(row["question"], [], "", "", row, row["id"])
            file.write(json.dumps({"id": row["id"], "result": result}) + "\\n")
""",
    "eval_main.py": """
import json
def load_file(path): return [json.loads(line) for line in open(path)]
def get_paths(language):
    return {"INPUT_PATH": "results/", "PROMPT_PATH": "", "POSSIBLE_ANSWER_PATH": "answers/", "OUTPUT_PATH": "scores/"}
def normal_multi_turn_eval(results, prompts, answers, category, model, paths):
    wrong = [r["id"] for r, a in zip(results, answers) if not r["result"].startswith(a["ground_truth"])]
    rows = [{"id": key, "valid": False, "error": ["no"], "error_type": "value"} for key in wrong]
    save_score_as_json("data", [{"accuracy": 0}, *rows], OUTPUT_PATH)
    convert_result_to_excel(model, category, paths)
    return float(not wrong)
""",
}


def test_the_driver_asks_and_scores_dialogue_by_dialogue(tmp_path: Path) -> None:
    for name, text in _STAND_IN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "answers").mkdir()
    (tmp_path / "results" / "m").mkdir(parents=True)
    name = "normal_multi_turn_user_adjust"
    questions = {f"{name}_0_0": "a", f"{name}_0_1": "b", f"{name}_1_0": "gone", f"{name}_2_0": "long",
                 f"{name}_3_0": "a", f"{name}_3_1": "c", f"{name}_4_0": "odd"}  # fmt: skip
    truth = {**questions, f"{name}_3_1": "d"}
    write_lines(tmp_path / f"data_{name}.json", [{"id": k, "question": q} for k, q in questions.items()])
    write_lines(tmp_path / "answers" / f"data_{name}.json", [{"id": k, "ground_truth": t} for k, t in truth.items()])
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"model": "m", "categories": [name], "options": ["--model", "m"]}))
    for step in ("generate", "score"):
        command = [sys.executable, "-P", acebench_driver.__file__, step, str(settings)]
        done = subprocess.run(
            command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    results = {row["id"]: row["result"] for row in read_lines(tmp_path / "results" / "m" / f"data_{name}_result.json")}
    assert results[f"{name}_0_0"] == "a 3600.0"  # its client waits for a slow machine
    failures = {row["id"]: row["answered"] for row in read_lines(tmp_path / acebench_driver.FAILURES)}
    assert failures == {f"{name}_1_0": False, f"{name}_2_0": False, f"{name}_4_0": True}
    scores = json.loads((tmp_path / acebench_driver.SCORES).read_text())
    assert {key.removeprefix(f"{name}_"): facts["score"] for key, facts in scores.items()} == {
        "0": 1.0, "1": 0.0, "2": 0.0, "3": 0.0, "4": 0.0}  # fmt: skip
    assert scores[f"{name}_3"]["error"] == "value: ['no']"


@needs_checkout
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("suite", ["acebench", "acebench:normal,special"])
def test_ground_truth_scores_all_and_silence_nothing(
    suite: str, right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = Server()
    replay = Replay(CHECKOUT, right=right)
    server.answers = [replay]
    limit = 4 if suite == "acebench" else 15
    options = ExternalOptions(
        *("openai:replay", None, server.url),
        limit=limit,
        concurrency=4,
        acebench_dir=CHECKOUT,
        user_model="self",
    )
    identity = model_identity(options.model, None, server.url)
    result, folder, new = run_external(suite, options, identity, tmp_path, "replay", None, None)
    assert (result.score, result.questions, new, result.errors) == (float(right), limit, limit, 0)
    assert not result.as_published  # another user than the protocol's
    asked = replay.asked
    (folder / "result.json").unlink()
    again, _, new = run_external(suite, options, identity, tmp_path, "replay", None, None)
    assert (again.scores, new, replay.asked) == (result.scores, 0, asked)
    server.close()


@needs_checkout
def test_a_prompt_that_is_too_long_is_refused_and_a_lost_endpoint_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = Server()
    options = ExternalOptions(*("openai:m", None, server.url), limit=1, acebench_dir=CHECKOUT, user_model="self")
    outcomes = []
    for status in (400, 500):

        def fail(handler: Handler, body: object, status: int = status) -> None:
            handler.reply(status, b'{"error": {"message": "the prompt has 9000 tokens"}}')

        server.answers = [fail]
        name = f"acebench:{acebench.CATEGORIES['special'][0]}"
        result, _, _ = run_external(name, options, f"m@{status}", tmp_path, "m", None, None)
        outcomes.append((result.score, result.refused, result.errors))
    assert outcomes == [(0.0, 1, 0), (0.0, 0, 1)]
    server.close()
