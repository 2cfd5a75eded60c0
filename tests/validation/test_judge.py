"""A model as judge: what it is shown, what is made of its replies, and that its failures never stop a validation."""

from __future__ import annotations

import json
import runpy
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.cli import app as cli
from spade_envs.models import load_model
from spade_envs.sandbox import Sandbox
from spade_envs.validation import Severity, find_source, iter_sources
from spade_envs.validation.judge import Judge, episodes, prompt, read_judgement
from spade_envs.validation.pool import validate_pool
from spade_envs.validation.report_log import ReportLog

ROOT = Path(__file__).parents[2]
FAULTY, SOUND = (ROOT / "tests" / "data" / "judge" / kind for kind in ("faulty", "sound"))
QUEUE = (FAULTY / "judge_queue.py").read_text()
AGREE = '{"agree": true, "line": 0, "reason": "as asked"}'


class Server:
    """An endpoint that answers by a function of the prompt; None is an error 400."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.reply: Any = lambda text: AGREE
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text = body["messages"][-1]["content"]
                outer.prompts.append(text)
                said = outer.reply(text)
                message = {"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}
                content = json.dumps(message if said is not None else {"error": {"message": "broken"}}).encode()
                self.send_response(200 if said is not None else 400)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    made = Server()
    yield made
    made.close()


def _oracle(text: str) -> str:
    """Knows what is wrong with the queue and nothing else."""
    if "self.right = str(first + count)" not in text:
        return AGREE
    line = next(line for line in text.splitlines() if "str(first + count)" in line).split()[0]
    verdict = f'{{"agree": false, "line": {line}, "reason": "one too many"}}'
    return f'<think>{{}} hm {{"agree": true}}</think>```json\n{verdict}\n```'


def test_the_prompt_shows_numbered_source_and_played_episodes(sandbox: Sandbox) -> None:
    plays = episodes(QUEUE, (0, 1), sandbox)
    assert [play.seed for play in plays] == [0, 1]
    assert plays[0].observation.startswith("Tickets are numbered")
    assert plays[0].turns[-1]["reward"] == "1"
    (message,) = prompt(QUEUE, plays)
    assert "   1  # kind:" in message["content"]
    assert plays[1].observation in message["content"]
    assert "got reward 1 at the end" in message["content"]
    assert len(prompt("x = 1\n" * 50_000, [])[0]["content"]) < 40_000


def test_programs_that_cannot_be_played_are_asked_about_by_source_alone(sandbox: Sandbox) -> None:
    assert episodes("import os", (0,), sandbox) == []
    raises = "class REnv:\n def reset(self, seed=None): raise ValueError\n def step(self, action): return 1"
    assert episodes(raises, (0,), sandbox) == []
    unsolved = QUEUE.replace("def solution", "def unused")
    (play,) = episodes(unsolved, (0,), sandbox)
    assert play.turns == ()
    assert "There is no solution() to play." in prompt(unsolved, [play])[0]["content"]


@pytest.mark.parametrize(
    ("reply", "agree", "line", "reason"),
    [
        ('{"agree": false, "line": 2, "reason": "a"}', False, 2, "a"),
        ('I think.\n```json\n{"agree": "no", "line": "line 3", "reason": "b\\nc"}\n```', False, 3, "b c"),
        ('{"agree": true, "line": 3, "reason": "fine"}', True, 0, "fine"),
        ('{"agree": false, "line": 99, "reason": "x"}', False, 0, "x"),
        ('{"agree": false, "line": [1, 2], "reason": null}', False, 1, ""),
        ('{"agree": false, "line": null}', False, 0, ""),
        ('{"agree": true} no, wait: {"agree": false, "line": 1, "reason": "y"}', False, 1, "y"),
        ('{"agree": false, "line": 2, "reason": "it says "largest""}', False, 2, 'it says "largest'),
        ("agree: no\nline: 2\nreason: it pays for less", False, 2, "it pays for less"),
        ("", None, 0, ""),
        ("They agree.", None, 0, ""),
        ('{"agree": "perhaps"}', None, 0, ""),
        ('{"agree": 1}', None, 0, ""),
    ],
)
def test_replies_are_read(reply: str, agree: bool | None, line: int, reason: str) -> None:
    found = read_judgement(reply, "a\nb\nc")
    assert (found.agree, found.line, found.reason) == (agree, line, reason)
    assert bool(found.error) is (agree is None)


@given(st.text(max_size=200) | st.text('{}[]":,agreelinetrufs 01\n', max_size=120), st.text(max_size=20))
def test_any_reply_is_read(reply: str, source: str) -> None:
    found = read_judgement(reply, source)
    assert 0 <= found.line <= source.count("\n") + 1
    assert (found.agree is None) is bool(found.error)


def test_a_disagreement_is_a_finding_that_names_the_line(server: Server, sandbox: Sandbox) -> None:
    server.reply = _oracle
    judge = Judge(load_model("openai:oracle", base_url=server.url))
    judgements = judge.judge([QUEUE, (SOUND / "judge_queue.py").read_text()], sandbox=sandbox)
    assert [judgement.agree for judgement in judgements] == [False, True]
    finding = judge.finding(judgements[0], QUEUE)
    assert finding is not None
    assert finding.severity is Severity.WARN
    assert QUEUE.split("\n")[finding.evidence["line"] - 1].strip() == "self.right = str(first + count)"
    assert "self.right = str(first + count)" in finding.reason
    assert "one too many" in finding.reason
    assert judge.finding(judgements[1], QUEUE) is None
    assert judge.summary() == "judge oracle: 2 asked, 1 disagree"
    judge.model.close()


def test_failures_are_counted(server: Server, sandbox: Sandbox) -> None:
    server.reply = lambda text: "no idea" if "QueueEnv" in text else AGREE
    judge = Judge(load_model("openai:m", base_url=server.url))
    judge.judge([QUEUE, (FAULTY / "judge_fence.py").read_text()], sandbox=sandbox)
    server.reply = lambda text: None
    broken = judge.judge([QUEUE], sandbox=sandbox)
    assert broken[0].agree is None
    assert broken[0].error
    assert (judge.asked, judge.disagreed, judge.failed) == (3, 0, 2)
    assert "2 without a verdict" in judge.summary()
    judge.model.close()


def test_a_pool_is_judged_in_order_and_judgements_are_kept(server: Server, tmp_path: Path) -> None:
    server.reply = _oracle
    files = [SOUND / "judge_queue.py", FAULTY / "judge_queue.py", FAULTY / "judge_fence.py"]
    judge = Judge(load_model("openai:oracle", base_url=server.url), severity=Severity.REFUSE, batch=2)
    for resumed in (False, True):
        with ReportLog(tmp_path / "log.jsonl", judge.key, resume=resumed) as log:
            verdicts = list(validate_pool(iter_sources(files), find=find_source, log=log, judge=judge))
        assert [Path(verdict.label) for verdict in verdicts] == files
        assert [verdict.report.admitted for verdict in verdicts] == [True, False, True]
        assert verdicts[1].report.refusals[0].probe == "judge"
        assert [verdict.resumed for verdict in verdicts] == [resumed] * 3
    assert len(server.prompts) == 3
    judge.model.close()


def test_keys_change_with_what_matters() -> None:
    class Named:
        name = "m"

    keys = {
        Judge(Named(), severity=severity, seeds=seeds).key
        for severity in (Severity.WARN, Severity.REFUSE)
        for seeds in ((0,), (1,))
    }  # type: ignore[arg-type]
    assert len(keys) == 4


def test_the_command_judges(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.reply = _oracle
    paths = [str(FAULTY / "judge_queue.py"), str(SOUND / "judge_queue.py")]
    for more, code in (([], 0), (["--judge-refuses"], 1)):
        assert (
            _run(monkeypatch, "validate", *paths, "--judge", "openai:oracle", "--base-url", server.url, "-v", *more)
            == code
        )
        shown = capsys.readouterr()
        assert "statement and checker disagree" in " ".join(shown.out.split())
        assert "2 asked, 1 disagree" in shown.err
    assert _run(monkeypatch, "validate", *paths, "--judge-refuses") == 2


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["spade", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.run()
    return int(left.value.code or 0)


def test_the_benchmark_prints_precision_and_recall(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.reply = lambda text: _oracle(text) if "TicketEnv" not in text else "?"
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "judge.py"))
    truth = benchmark["cases"]()
    assert sum(case.disagrees for case in truth) >= 15
    assert all("disagree" not in case.source and "# kind" not in case.source for case in truth)
    benchmark["cases"].__globals__["FOLDERS"] = (ROOT / "tests" / "data" / "judge",)
    result = benchmark["main"](["--model", "openai:oracle", "--base-url", server.url, "-v"])
    assert (result.hits, result.misses, result.false_alarms, result.silent) == (1, 11, 0, 0)
    assert "precision 1.00  recall 0.08" in capsys.readouterr().out
