"""``spade generate`` with endpoints: repairs, hints of another model, what is counted and shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cli_programs import SUM, spade

GOOD_HINT = "Add the units first and carry, then the tens; answer with the number alone."


class _Endpoint(BaseHTTPRequestHandler):
    """Two models: ``coder`` writes a broken program and mends it when asked, ``coach`` gives hints, a bad one first."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        last = body["messages"][-1]["content"]
        with self.server.guard:  # type: ignore[attr-defined]
            seen: list[dict[str, Any]] = self.server.seen  # type: ignore[attr-defined]
            seen.append(body)
            designs = sum("Now write the environment" in other["messages"][-1]["content"] for other in seen)
        if "Write a hint" in last:
            text = GOOD_HINT if "was refused" in last else f"Hint: {GOOD_HINT} One. Two. Three."
        elif "cannot be used yet" in last:
            broken = body["messages"][-2]["content"]
            text = f"<think>I forgot it.</think>\n{broken.replace('self.first = ', 'self.a = ')}"
        else:
            text = f"Here:\n```python\n{_program(designs).replace('self.a = ', 'self.first = ')}```"
        reply = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        content = json.dumps({"choices": [reply], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _program(number: int) -> str:
    """Another program for every number: sums of other lists of terms."""
    terms = " + ".join(f"self.b // {k + 2}" for k in range(3 * number)) or "0"
    return SUM.replace("str(self.a + self.b)", f"str(self.a + self.b + {terms})").replace("SumEnv", f"Sum{number}Env")


@pytest.fixture
def endpoint() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint)
    server.seen, server.guard = [], threading.Lock()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_refused_programs_are_mended_and_hints_come_from_another_model(
    endpoint: ThreadingHTTPServer, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("On sums.")
    url = f"http://127.0.0.1:{endpoint.server_address[1]}/v1"
    done = spade(
        "generate", "--corpus", str(notes), "--model", "openai:coder", "--base-url", url, "-n", "2",
        "--hint-model", "openai:coach", "--concurrency", "1", "--memory", str(tmp_path / "m"), "--json",
        home=tmp_path, OPENAI_API_KEY="key",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["admitted"], facts["first_admitted"], facts["repaired"]) == (2, 0, 2)
    assert (facts["first_validity"], facts["final_validity"]) == (0.0, 1.0)
    asked = endpoint.seen  # type: ignore[attr-defined]
    assert {body["model"] for body in asked if "Write a hint" in body["messages"][-1]["content"]} == {"coach"}
    repairs = [body["messages"] for body in asked if "cannot be used yet" in body["messages"][-1]["content"]]
    assert len(repairs) == 2
    assert [message["role"] for message in repairs[0]] == ["system", "user", "assistant", "user"]
    assert "Assign self.a in" in repairs[0][-1]["content"]
    lines = [json.loads(line) for line in (tmp_path / "m" / "attempts.jsonl").read_text().splitlines()]
    assert [(line["status"], line["first_status"], line["repairs"], line["tokens"]) for line in lines] == [
        ("admitted", "refused", 1, 10)
    ] * 2
    assert [line["hint"] for line in lines] == [GOOD_HINT] * 2
    complaints = [body["messages"][-1]["content"] for body in asked if body["model"] == "coach"]
    assert sum("it had 4 sentences" in text for text in complaints) == 2
    stats = json.loads(spade("stats", "--memory", str(tmp_path / "m"), "--json", home=tmp_path).stdout)
    assert stats["generation"]["first_validity"] == 0.0
    assert stats["generation"]["final_validity"] == 1.0
    assert "0.00 at the first reply, 1.00 in the end" in spade("stats", "-m", str(tmp_path / "m"), home=tmp_path).stdout


@pytest.mark.parametrize("name", ["nano", "games", "tool_use"])
def test_the_first_prompt_of_each_set_and_of_a_copy_is_shown(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("On the weights of moths.")
    arguments = ("generate", "--corpus", str(tmp_path / "notes"), "--dry-run")
    shown = spade(*arguments, "--prompts", name, home=tmp_path / "home")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("system\n")
    assert ("On the weights of moths." in shown.stdout) is (name != "nano")
    mine = str(tmp_path / "mine")
    assert "prompts copied" in spade("generate", "--prompts", name, "--copy-prompts", mine, home=tmp_path).stdout
    assert spade(*arguments, "--prompts", mine, home=tmp_path / "home").stdout == shown.stdout
    (tmp_path / "mine" / "agent.system.txt").unlink()
    broken = spade(*arguments, "--prompts", mine, home=tmp_path / "home")
    assert broken.returncode == 2
    assert "lacks agent.system.txt" in broken.stderr
