"""``spade view`` and ``spade report`` as processes."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from view_programs import write_run

from sample_programs import BOXED, record

SPADE = (sys.executable, "-m", "spade_envs.cli.app")


def spade(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([*SPADE, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def server(pool, run):
    command = [*SPADE, "view", "--memory", pool, "--run", run, "--no-browser"]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/", address), (address, process.stderr)
        yield address, process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_the_server_answers_at_its_address_alone_and_ends_by_ctrl_c(server):
    address, process = server
    with urllib.request.urlopen(address, timeout=60) as answer:
        assert b"spade/Boxed-" in answer.read()
        assert "server" not in {name.lower() for name in answer.headers}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address[: address.index("/", 8)] + "/pool", timeout=60)
    request = urllib.request.Request(address, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(request, timeout=60)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in (0, 130)
    assert "Traceback" not in process.stderr.read()


def test_the_port_is_on_the_loopback_only(server):
    port = int(re.search(r":(\d+)/", server[0])[1])
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    places = {line[1] for line in listening if line[3] == "0A" and line[1].endswith(f":{port:04X}")}
    assert places == {f"0100007F:{port:04X}"}


def test_a_taken_port_is_said(server, run):
    port = re.search(r":(\d+)/", server[0])[1]
    done = spade("view", "--run", run, "--port", port, "--no-browser")
    assert done.returncode == 2
    assert f"cannot listen on port {port}" in done.stderr


def test_what_is_no_run_or_memory_is_said(tmp_path, run):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("x")
    for arguments, words in (
        (("view", "--memory", tmp_path / "none", "--no-browser"), "none"),
        (("view", "--run", tmp_path / "none", "--no-browser"), "no folder"),
        (("view", "--run", tmp_path / "docs", "--no-browser"), "is not a run"),
        (("view", "--run", run, "--episodes", tmp_path / "none.jsonl", "--no-browser"), "no file"),
        (("report", "--run", tmp_path / "docs"), "is not a run"),
    ):
        done = spade(*arguments)
        assert done.returncode == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_report(tmp_path):
    run = write_run(tmp_path / "run", boxed=record(BOXED).id)
    done = spade("report", "--run", run)
    assert done.returncode == 0, done.stderr
    assert (run / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    done = spade("report", "--run", run, "-o", tmp_path / "r.html", "--compare", run)
    assert (tmp_path / "r.html").is_file()


def test_the_secret_stands_on_no_command_line(pool, tmp_path):
    """The browser is given a file; the file leads to the address and is gone afterwards."""
    note = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {note}.args\ncp "$(echo "$1" | sed s,file://,,)" {note}.html\n')
    browser.chmod(0o755)
    command = [*SPADE, "view", "--memory", str(pool)]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        end = time.monotonic() + 60
        while not Path(f"{note}.html").is_file() and time.monotonic() < end:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    arguments = Path(f"{note}.args").read_text().strip()
    assert address not in arguments
    assert f"url={address}" in Path(f"{note}.html").read_text()
    assert not Path(arguments.removeprefix("file://")).exists()


def test_without_the_extra_it_says_how_to_get_it(pool):
    program = "import sys; sys.modules['starlette'] = None; from spade_envs.cli.app import run; run()"
    command = [sys.executable, "-c", program, "view", "--memory", str(pool), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "pip install 'spade-envs[viewer]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_has_only_begun_is_a_run(tmp_path):
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "spade_start.json").write_text("{}")
    done = spade("report", "--run", tmp_path / "begun")
    assert done.returncode == 2
    assert "nothing to report" in done.stderr
