"""An endpoint that fails in every way while ``spade generate`` runs, and runs that are killed: nothing twice."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_programs import SUM
from endpoint_server import Handler, Server, chat, half, raw, status

KINDS = ("429", "garbage", "half a block", "late", "503", "broken off")


class Flaky:
    """Answers with a program of its own for every question; every third request meets a fault first."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._requests = 0
        self._guard = threading.Lock()
        self.pause = 0.0

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        with self._guard:
            self._requests += 1
            fault = KINDS[self._requests // 3 % len(KINDS)] if self._requests % 3 == 0 else ""
            self.faults[fault] += 1
        if fault == "late":
            time.sleep(1.5)  # the client waits for one second
        if fault == "429":
            status(429, Retry_After="0.1")(handler, body)
        elif fault == "503":
            status(503)(handler, body)
        elif fault == "garbage":
            raw(b"<html>bad gateway</html>")(handler, body)
        elif fault == "broken off":
            half(handler, body)
        else:
            self._answer(handler, body, cut=fault == "half a block", counted=fault != "late")

    def _answer(self, handler: Handler, body: dict[str, Any], *, cut: bool, counted: bool) -> None:
        key = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        text = f"```python\n{_program(int(key[:8], 16))}```"
        time.sleep(self.pause)
        if counted:
            with self._guard:
                self.answered[key] += 1
        handler.reply(200, chat(text[: len(text) // 2] if cut else text))


STATEMENTS = (
    "x = x * 3 % 101", "x += len(str(x))", "x ^= self.a", "x -= self.b // 2", "x = int(str(x)[::-1])",
    "x = sum(int(digit) for digit in str(x)) + self.a", "x = max(x, self.a, self.b)", "x = x // 2 if x % 2 else x + 7",
    "x = abs(x - 50)", "x = min(x, 90) + (x > 40)", "x = len(range(0, x + 1, 3))", "x = pow(x, 2, 97)",
)  # fmt: skip


def _program(number: int) -> str:
    """Another program for every number: sums that are worked over in other ways."""
    rng = random.Random(number)
    lines = [f"        {rng.choice(STATEMENTS)}\n" for _ in range(30)]
    work = f"\n    def total(self):\n        x = self.a + self.b\n{''.join(lines)}        return x\n"
    source = SUM.replace("self.a + self.b", "self.total()").replace("SumEnv", f"S{number}Env")
    return source + work


@pytest.fixture
def server() -> Iterator[tuple[Server, Flaky]]:
    server, flaky = Server(), Flaky()
    server.answers = [flaky]
    yield server, flaky
    server.close()


def _start(server: Server, folder: Path, count: int, *more: str) -> subprocess.Popen[str]:
    notes = folder / "notes"
    notes.mkdir(exist_ok=True)
    for number in range(4):
        (notes / f"{number}.md").write_text(f"On sums, part {number}.")
    command = [
        sys.executable, "-m", "spade_envs.cli.app", "generate", "--corpus", str(notes), "--model", "openai:m",
        "--base-url", server.url, "-n", str(count), "--memory", str(folder / "m"), "--round-size", "6", "--json",
        "--request-seconds", "1", "--repairs", "0", "--concurrency", "3", *more,
    ]  # fmt: skip
    environment = {**os.environ, "SPADE_HOME": str(folder / "home"), "OPENAI_API_KEY": "key"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def _finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out)  # type: ignore[no-any-return]


def test_the_count_is_right_and_nothing_is_asked_twice(server: tuple[Server, Flaky], tmp_path: Path) -> None:
    endpoint, flaky = server
    facts = _finish(_start(endpoint, tmp_path, 10))
    assert facts["admitted"] == len(set(facts["env_ids"])) == 10
    assert all(flaky.faults[kind] for kind in KINDS), flaky.faults
    assert set(flaky.answered.values()) == {1}
    lines = [json.loads(line) for line in (tmp_path / "m" / "attempts.jsonl").read_text().splitlines()]
    assert [line["index"] for line in lines] == list(range(len(lines)))
    assert {line["status"] for line in lines} <= {"admitted", "refused", "no_code", "surplus", "duplicate"}
    events = [json.loads(line)["event"] for line in (tmp_path / "m" / "events.jsonl").read_text().splitlines()]
    assert events[0] == "start"
    assert events[-1] == "end"
    assert events.count("round") == facts["rounds"]
    assert not list((tmp_path / "m").glob("replies-*"))


def test_a_server_that_is_away_for_a_while_is_waited_for(server: tuple[Server, Flaky], tmp_path: Path) -> None:
    endpoint, flaky = server
    process = _start(endpoint, tmp_path, 8)
    while not flaky.answered:
        time.sleep(0.05)
    port = int(endpoint.url.rsplit(":", 1)[1].removesuffix("/v1"))
    endpoint.close()
    time.sleep(4)
    again = Server(port)
    again.answers = [flaky]
    facts = _finish(process)
    again.close()
    assert facts["admitted"] == 8


def test_a_killed_run_does_not_ask_again_for_what_it_has(server: tuple[Server, Flaky], tmp_path: Path) -> None:
    endpoint, flaky = server
    flaky.pause = 0.2
    process = _start(endpoint, tmp_path, 10)
    while sum(flaky.answered.values()) < 4:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(0.5)  # what the server was still writing
    before = dict(flaky.answered)
    facts = _finish(_start(endpoint, tmp_path, 10, "--resume"))
    assert facts["admitted"] == 10
    # At most the requests that were under way when it was killed are repeated.
    assert sum(flaky.answered[key] > 1 for key in before) <= 3
    assert max(flaky.answered.values()) <= 2
