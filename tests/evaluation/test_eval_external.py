"""What is read of the official evaluators' files, and how their endpoints are routed."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from endpoint_server import Server, good

from spade_train.evaluation.external import acebench, environment
from spade_train.evaluation.external.acebench import AceRun
from spade_train.evaluation.external.acebench_driver import unit_of
from spade_train.evaluation.external.command import last_said, run_logged
from spade_train.evaluation.external.files import checkout_hash, read_lines, write_lines
from spade_train.evaluation.external.run import ExternalOptions, run_external
from spade_train.evaluation.external.tau2 import Tau2Run, domains_of, read_simulations
from spade_train.evaluation.protocol import EvaluationError, published_protocol
from spade_train.evaluation.suites.rows import HubData, read_rows
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


def test_scores_are_those_of_the_official_functions(checkout: Path, tmp_path: Path) -> None:
    run = AceRun(tmp_path / "run", PROTOCOL, checkout, acebench.categories_of("acebench"))
    questions = run.questions(6)
    steps, turns = ([q.id for q in questions if q.group == name] for name in acebench.CATEGORIES["agent"])
    folder = tmp_path / "run" / "acebench"
    results = folder / "result_all" / "result_en" / "gpt-4o-2024-11-20"
    results.mkdir(parents=True)
    for name, ids in (("agent_multi_step", steps), ("agent_multi_turn", turns[:2])):
        write_lines(results / f"data_{name}_result.json", [{"id": key, "result": ["a\u2028b"]} for key in ids])
    write_lines(
        folder / "failures.jsonl",
        [
            {"id": steps[1], "error": "Error code: 400 - {'the prompt has 9000 tokens'}", "answered": False},
            {"id": turns[1], "error": "Connection error.", "answered": False},
        ],
    )
    assert run.done(questions) == {*steps, turns[0]}
    assert not run.scored(questions)
    verdicts = {key: {"score": 1.0, "error": ""} for key in (*steps, *turns[:2])}
    verdicts[steps[2]] = {"score": 0.0, "error": "class attributes wrong: ['x']"}
    (folder / "scores.json").write_text(json.dumps(verdicts))
    found = {answer.id: (answer.score, answer.finish, bool(answer.error)) for answer in run.answers(questions)}
    assert found == {
        steps[0]: (1.0, "stop", False), turns[0]: (1.0, "stop", False), steps[1]: (0.0, "refused", False),
        turns[1]: (0.0, "stop", True), steps[2]: (0.0, "stop", False), turns[2]: (0.0, "stop", True)}  # fmt: skip
    run._drop_failures()  # the lost one is asked again, the refused one is not
    assert run.done(questions) == {*steps, turns[0]}
    assert [row["id"] for row in read_lines(results / "data_agent_multi_turn_result.json")] == [turns[0]]


def test_what_a_user_keeps_beside_a_checkout_is_not_copied(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".env").write_text("GPT_AGENT_BASE_URL=https://elsewhere\nGPT_AGENT_API_KEY=secret\n")
    AceRun(tmp_path / "run", PROTOCOL, checkout, acebench.categories_of("acebench")).questions(1)
    assert not list((tmp_path / "run").rglob(".env*"))


def test_turns_of_a_dialogue_are_one_question() -> None:
    assert unit_of("normal_multi_turn_user_switch_12_3") == "normal_multi_turn_user_switch_12"
    assert unit_of("agent_multi_turn_12") == "agent_multi_turn_12"


def test_lines_are_split_where_json_ends_them(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "one\u2028two\x85three"}, {"id": "2", "text": ""}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows) + '{"id": "3", "te')
    assert read_lines(path) == rows
    path.write_text("".join(json.dumps({"problem": r["text"], "answer": 1}, ensure_ascii=False) + "\n" for r in rows))
    assert read_rows("aime-2025", path, HubData("owner/name"), ("problem",))[0]["problem"] == rows[0]["text"]


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
    assert Tau2Run(tmp_path, protocol, tmp_path, ("retail", "telecom")).done() == (1, False)
    results = {"tasks": [{}], "simulations": [{**simulations[0], "trial": trial} for trial in range(protocol.samples)]}
    (base / "spade-retail" / "results.json").write_text(json.dumps(results))
    assert Tau2Run(tmp_path, protocol, tmp_path, ("retail",)).done() == (protocol.samples, True)


@pytest.mark.parametrize(
    ("kind", "trace", "outcome"),
    [
        ("AssertionError", "llm_agent.py", (0.0, "stop", False)),  # it said nothing
        ("JSONDecodeError", "llm_utils.py", (0.0, "stop", False)),  # a call whose arguments are no JSON
        ("JSONDecodeError", "evaluator_nl_assertions.py", (0.0, "stop", True)),  # so did the judge
        ("ContextWindowExceededError", "llm_agent.py", (0.0, "refused", False)),
        ("BadRequestError", "llm_agent.py", (0.0, "refused", False)),
        ("BadRequestError", "evaluator_nl_assertions.py", (0.0, "stop", True)),
        ("APIConnectionError", "llm_agent.py", (0.0, "stop", True)),
    ],
)
def test_a_simulation_that_fails_is_the_models_fault_or_the_endpoints(
    kind: str, trace: str, outcome: tuple[float, str, bool]
) -> None:
    info = {"error": "x", "error_type": kind, "error_traceback": f"File {trace}"}
    failed = {"task_id": "1", "termination_reason": "infrastructure_error", "messages": [], "info": info}
    (answer,) = read_simulations({"simulations": [failed]}, "retail")
    assert (answer.score, answer.finish, bool(answer.error)) == outcome


def test_a_limit_is_shared_by_the_domains_and_no_key_is_told(tmp_path: Path) -> None:
    protocol = published_protocol("tau2-bench")
    run = Tau2Run(tmp_path, protocol, tmp_path, ("retail", "airline", "telecom"), 4)
    assert run._tasks == {"retail": 2, "airline": 1, "telecom": 1}
    assert Tau2Run(tmp_path, protocol, tmp_path, ("retail", "airline"), 1)._tasks == {"retail": 1}
    command = run._command("retail", 2, ExternalOptions("openai:m", base_url="http://x"))
    assert command[command.index("--num-tasks") + 1] == "2"
    assert command[command.index("--num-trials") + 1] == "4"
    assert "api_key" not in " ".join(command)


def test_a_checkout_is_told_from_another_by_what_matters(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    before = checkout_hash(tmp_path, ["src/**/*.py"])
    (tmp_path / "README.md").write_text("other")
    assert checkout_hash(tmp_path, ["src/**/*.py"]) == before
    (tmp_path / "src" / "a.py").write_text("2")
    assert checkout_hash(tmp_path, ["src/**/*.py"]) != before


def test_requests_go_where_their_model_is_under_its_name_and_key() -> None:
    first, second = Server(), Server()
    routes = {"agent": Route(first.url, "under-test"), "user": Route(second.url, "simulator", "secret")}
    with router(routes) as url:
        for name in ("agent", "user"):
            body = {"model": name, "messages": [{"role": "user", "content": name}]}
            answer = httpx.post(f"{url}/chat/completions", json=body, trust_env=False, timeout=30)
            assert answer.json()["choices"]
        assert httpx.post(f"{url}/chat/completions", json={"model": "x"}, trust_env=False).status_code == 404
        routes[""] = Route(first.url, "")
        body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "judge"}]}
        assert httpx.post(f"{url}/chat/completions", json=body, trust_env=False, timeout=30).status_code == 200
    told = [(body["model"], body["messages"][0]["content"]) for _, _, body in first.seen]
    assert told == [("under-test", "agent"), ("gpt-4.1", "judge")]
    ((_, headers, body),) = second.seen
    assert body["model"] == "simulator"
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer secret"
    first.close()
    second.close()


def test_evaluators_that_know_no_thoughts_see_none() -> None:
    server = Server()
    server.answers = [good("<think>[a()] or [b()]?</think>\n[b()]"), good(None), good("<think>for ever")]
    asked = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    with router({"m": Route(server.url, "m", plain=True)}) as url:
        seen = []
        for _ in range(3):
            answer = httpx.post(f"{url}/chat/completions", json=asked, trust_env=False)
            seen.append(answer.json()["choices"][0]["message"]["content"])
    assert (seen[0], seen[2]) == ("[b()]", "")
    assert isinstance(seen[1], str)
    server.close()


def test_a_command_that_fails_says_what_it_said(tmp_path: Path) -> None:
    import sys

    ticks: list[int] = []
    run_logged("it", [sys.executable, "-c", "print('fine')"], tmp_path, {}, lambda: ticks.append(1))
    assert ticks
    with pytest.raises(EvaluationError, match=r"(?s)it failed.*out of luck"):
        run_logged("it", [sys.executable, "-c", "raise SystemExit('out of luck')"], tmp_path, {})


def test_the_end_of_a_log_says_how_far_it_is(tmp_path: Path) -> None:
    import re

    step = re.compile(rb"Step: (\d+)")
    assert last_said(tmp_path, step) == ""
    (tmp_path / "log.txt").write_text("Step: 1\nStep: 2\n" + "-" * 5000)
    assert last_said(tmp_path, step) == ""
    (tmp_path / "log.txt").write_text("-" * 5000 + "Step: 3\nStep: 41\nmore\n")
    assert last_said(tmp_path, step) == "41"


def test_an_environment_is_made_once_and_a_broken_one_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "environments_folder", lambda: tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(EvaluationError, match="no-such-package cannot be made"):
        environment.make_environment("no-such-package", ["no-such-package==1"])
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    assert environment.evaluator_environment()["no_proxy"] == "inside.example,127.0.0.1,localhost"
    assert "secret" not in environment.evaluator_environment(A="b").values()
