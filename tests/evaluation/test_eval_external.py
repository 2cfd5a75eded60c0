"""What is read of the official evaluators' files, and how their endpoints are routed."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from endpoint_server import Server

from spade_train.evaluation.external import acebench, environment
from spade_train.evaluation.external.acebench import AceRun, read_lines, read_scores
from spade_train.evaluation.external.command import run_logged
from spade_train.evaluation.external.run import ExternalOptions, run_external
from spade_train.evaluation.external.tau2 import Tau2Run, domains_of, read_simulations
from spade_train.evaluation.protocol import EvaluationError, published_protocol
from spade_train.serving.router import Route, router

QUESTIONS = Path(__file__).parents[3] / "shared" / "data" / "acebench_agent_en"
PROTOCOL = published_protocol("acebench")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The agent part of an ACEBench checkout."""
    if not QUESTIONS.is_dir():
        pytest.skip("../shared/data/acebench_agent_en is not there")
    data = tmp_path / "ACEBench" / "data_all" / "data_en"
    (data / "possible_answer").mkdir(parents=True)
    for name in ("agent_multi_step", "agent_multi_turn"):
        (data / f"data_{name}.json").write_text((QUESTIONS / f"data_{name}.json").read_text())
        answers = (QUESTIONS / f"answers_data_{name}.json").read_text()
        (data / "possible_answer" / f"data_{name}.json").write_text(answers)
    return tmp_path / "ACEBench"


def test_agent_questions_are_read_and_a_limit_cuts_the_copy_alone(checkout: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in checkout.rglob("*.json")}
    run = AceRun(tmp_path / "run", PROTOCOL, checkout, acebench.categories_of("acebench"))
    every = run.questions()
    assert len(every) == sum(len(read_lines(QUESTIONS / f"data_{name}.json")) for name in acebench.CATEGORIES["agent"])
    chosen = run.questions(3)
    assert [question.group for question in chosen] == ["agent_multi_step", "agent_multi_turn", "agent_multi_step"]
    copied = tmp_path / "run" / "acebench" / "data_all" / "data_en"
    for kind in ("", "possible_answer"):
        assert len(read_lines(copied / kind / "data_agent_multi_step.json")) == 2
        assert len(read_lines(copied / kind / "data_agent_multi_turn.json")) == 1
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(("refused", "score"), [([], 1.0), ([0], 0.75), ([0, 1], 0.5)])
def test_scores_are_those_of_the_official_file(
    checkout: Path, tmp_path: Path, refused: list[int], score: float
) -> None:
    run = AceRun(tmp_path / "run", PROTOCOL, checkout, acebench.categories_of("acebench"))
    questions = run.questions(4)
    for category in acebench.CATEGORIES["agent"]:
        ids = [question.id for question in questions if question.group == category]
        results = tmp_path / "run" / "acebench" / "result_all" / "result_en" / "gpt-4o-2024-11-20"
        results.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": key, "result": [], "process": []}) for key in ids]
        (results / f"data_{category}_result.json").write_text("\n".join(lines) + "\n")
        scores = tmp_path / "run" / "acebench" / "score_all" / "score_en" / "gpt-4o-2024-11-20"
        scores.mkdir(parents=True, exist_ok=True)
        rows = [{"end_to_end_accuracy": 0.5, "total_count": 2}]
        if category == "agent_multi_step":
            rows += [
                {"id": place, "valid": False, "error": ["x"], "error_type": "class attributes wrong"}
                for place in refused
            ]  # type: ignore[dict-item]
        (scores / f"data_{category}_score.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = run.answers(questions)
    assert sum(answer.score for answer in answers) / len(answers) == score
    assert not any(answer.error for answer in answers)
    assert [a.detail["refused"] for a in answers if not a.score] == ["class attributes wrong: ['x']"] * len(refused)


def test_refusals_of_other_tasks_carry_their_ids() -> None:
    rows = [{"accuracy": 0.5}, {"id": "normal_atom_bool_3", "valid": False, "error": "no", "error_type": ""}]
    assert read_scores(rows, []) == {"normal_atom_bool_3": "wrong: no"}


def test_categories_and_checkouts_that_are_none(tmp_path: Path) -> None:
    assert acebench.categories_of("acebench:special")[0] == "special_incomplete"
    assert acebench.categories_of("acebench:agent_multi_step") == ("agent_multi_step",)
    with pytest.raises(EvaluationError, match="no category 'other'"):
        acebench.categories_of("acebench:other")
    for name, where in (("acebench", "ACEBench/ACEBench"), ("tau2-bench", "sierra-research/tau2-bench")):
        with pytest.raises(EvaluationError, match=f"git clone https://github.com/{where}"):
            run_external(name, ExternalOptions("nano"), "nano@1", tmp_path, "nano", None, None)
    with pytest.raises(EvaluationError, match="is no checkout"):
        run_external("acebench", ExternalOptions("nano", acebench_dir=tmp_path), "n@1", tmp_path, "n", None, None)


def test_simulations_of_tau2_are_read_in_both_layouts(tmp_path: Path) -> None:
    simulations = [
        {"task_id": "1", "trial": 0, "reward_info": {"reward": 1.0}, "messages": [], "termination_reason": "user_stop"},
        {"task_id": "2", "trial": 0, "reward_info": {"reward": 0.5}, "messages": [], "termination_reason": "user_stop"},
        {"task_id": "3", "trial": 0, "reward_info": None, "termination_reason": "infrastructure_error"},
    ]
    answers = read_simulations({"simulations": simulations}, "retail")
    assert [(answer.id, answer.score, bool(answer.error)) for answer in answers] == [
        ("retail/1", 1.0, False), ("retail/2", 0.0, False), ("retail/3", 0.0, True)]  # fmt: skip
    with pytest.raises(EvaluationError, match="no results of tau2"):
        read_simulations({"simulations": [{}]}, "retail")
    protocol = published_protocol("tau2-bench")
    assert domains_of("tau2-bench", protocol) == ("retail", "airline", "telecom")
    base = tmp_path / "tau2" / "data" / "simulations"
    (base / "spade-retail").mkdir(parents=True)
    (base / "spade-retail" / "results.json").write_text(json.dumps({"simulations": simulations[:1]}))
    (base / "spade-airline.json").write_text(json.dumps({"simulations": simulations[1:2]}))
    questions, collected = Tau2Run(tmp_path, protocol, tmp_path, ("retail", "airline")).collected()
    assert [question.group for question in questions] == ["retail", "airline"]
    assert [answer.score for answer in collected] == [1.0, 0.0]
    with pytest.raises(EvaluationError, match="left no results for telecom"):
        Tau2Run(tmp_path, protocol, tmp_path, ("telecom",)).collected()


def test_requests_go_where_their_model_is_under_its_name_and_key() -> None:
    first, second = Server(), Server()
    routes = {"agent": Route(first.url, "under-test"), "user": Route(second.url, "simulator", "secret")}
    with router(routes) as url:
        for name in ("agent", "user"):
            body = {"model": name, "messages": [{"role": "user", "content": name}]}
            answer = httpx.post(f"{url}/chat/completions", json=body, trust_env=False, timeout=30)
            assert answer.json()["choices"]
        assert httpx.post(f"{url}/chat/completions", json={"model": "x"}, trust_env=False).status_code == 404
    assert [(body["model"], body["messages"][0]["content"]) for _, _, body in first.seen] == [("under-test", "agent")]
    ((_, headers, body),) = second.seen
    assert body["model"] == "simulator"
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer secret"
    first.close()
    second.close()


def test_a_command_that_fails_says_what_it_said(tmp_path: Path) -> None:
    import sys

    ticks: list[int] = []
    run_logged("it", [sys.executable, "-c", "print('fine')"], tmp_path, {}, lambda: ticks.append(1))
    assert ticks
    with pytest.raises(EvaluationError, match=r"(?s)it failed.*out of luck"):
        run_logged("it", [sys.executable, "-c", "raise SystemExit('out of luck')"], tmp_path, {})


def test_an_environment_is_made_once_and_a_broken_one_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "environments_folder", lambda: tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(EvaluationError, match="no-such-package cannot be made"):
        environment.make_environment("no-such-package", ["no-such-package==1"])
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert "secret" not in environment.evaluator_environment(A="b").values()
