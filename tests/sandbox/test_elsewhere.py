"""Systems that lack what Linux has, simulated: modules and functions are taken away before the sandbox is imported."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from spade_envs.sandbox.polling import POLLIN, POLLOUT, SelectPoll
from spade_envs.sandbox.wasi import runtime

WITHOUT_FORK = """
    import contextlib, os, select, signal, socket, subprocess, sys, multiprocessing, logging, platform
    import http.client, asyncio, platformdirs, tempfile, pathlib, ssl, numpy, gymnasium, msgpack, RestrictedPython
    for name in ("fcntl", "resource", "termios", "pwd", "grp", "tty"):
        sys.modules[name] = None
    for module, names in (
        (os, "fork register_at_fork getuid geteuid getppid pidfd_open"),
        (signal, "setitimer SIGPROF ITIMER_PROF pidfd_send_signal"),
        (socket, "send_fds recv_fds SOCK_SEQPACKET"),
        (select, "poll POLLIN POLLOUT epoll"),
    ):
        for name in names.split():
            with contextlib.suppress(AttributeError):
                delattr(module, name)
    sys.platform = "win32"
    platform.system = lambda: "Windows"
"""


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_FORK) + textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


USE = """
    from spade_envs.sandbox import Limits, ProgramDied, ProgramError, ProgramTimeout, Sandbox, SandboxError
    source, level = sys.argv[1:]
    if level == "static":
        try:
            Sandbox().open(source)
        except SandboxError as error:
            assert "'static', but 'full' is required" in str(error), error
        else:
            raise AssertionError("run below full isolation without the flag")
    with Sandbox(Limits(soft_seconds=0.3, hard_seconds=0.3), minimum_isolation=level, max_workers=2) as sandbox:
        assert sandbox.isolation.level == level
        assert sandbox.isolation.missing["rlimits"].startswith("not offered by ")
        first = sandbox.open(source).session()
        first.reset(1)
        shown = first.step("a")
        assert shown.observation.startswith("1 a "), shown
        loop = sandbox.open(source.replace("self.turn += 1", "while True: pass"))
        stuck = loop.session()
        stuck.reset(1)
        try:
            stuck.step("x")
        except ProgramTimeout as error:
            # killed by the caller, or, where the worker's own interpreter has a timer after all, stopped by that
            assert "killed" in str(error) or "CPU time" in str(error), error
        for _ in range(3):  # more programs than workers: the first is revived
            sandbox.open(source).session().reset(1)
        again = sandbox.open(source).session()
        again.reset(1)
        assert again.step("a") == shown
        assert first.step("b").observation.startswith("2 b ")
        big = first.step("x" * 200_000)
        assert len(big.observation) == 65_536
        try:
            sandbox.open("import os\\n")
        except ProgramError as error:
            assert error.kind == "policy"
    print("done")
"""


def test_windows_gets_static_by_workers_of_their_own(counter_source):
    done = run(USE, counter_source, "static")
    assert done.stdout == "done\n", done.stderr


@pytest.mark.skipif(bool(runtime.missing()), reason=runtime.missing())
def test_windows_gets_wasi_by_workers_of_their_own(counter_source):
    done = run(USE, counter_source, "wasi")
    assert done.stdout == "done\n", done.stderr


def test_everything_imports_and_doctor_says_it():
    done = run(
        """
        import spade_envs, spade_envs.vector, spade_envs.validation, spade_envs.play
        from spade_envs.sandbox.doctor import describe
        found = describe()
        assert found["level"] == "static", found
        assert "WebAssembly" in found["advice"] and "Linux container" in found["advice"], found
        print("done")
        """
    )
    assert done.stdout == "done\n", done.stderr


def test_select_stands_in_for_poll():
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        poll = SelectPoll()
        poll.register(ours, POLLIN)
        assert poll.poll(0) == []
        theirs.send(b"x")
        assert poll.poll(1000) == [(ours.fileno(), POLLIN)]
        poll.modify(ours.fileno(), POLLIN | POLLOUT)
        assert poll.poll(1000) == [(ours.fileno(), POLLIN | POLLOUT)]
        ours.recv(1)
        assert poll.poll(1000) == [(ours.fileno(), POLLOUT)]
        poll.unregister(ours)
        assert poll.poll(0) == []


ORPHAN = """
    import os, sys, time
    from spade_envs.sandbox import Limits, Operation, Sandbox
    limits = Limits(soft_seconds=0.05, hard_seconds=0.05, load_seconds=0.3)
    sandbox = Sandbox(limits, minimum_isolation=sys.argv[2])
    program = sandbox.open(sys.argv[1].replace("self.turn += 1", "while True: pass"))
    program.session().reset(1)
    worker = program.seat.worker
    from spade_envs.sandbox.wire import encode_request
    worker.socket.setblocking(True)
    worker.socket.sendall(encode_request([Operation("step", 1, "x")]))
    time.sleep(0.5)
    print(worker.pid, flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize("level", ["static", "wasi"])
def test_a_worker_that_loops_does_not_outlive_its_caller_for_long(counter_source, level):
    if level == "wasi" and runtime.missing():
        pytest.skip(runtime.missing())
    done = run(ORPHAN, counter_source, level)
    pid = int(done.stdout or 0)
    assert pid, done.stderr
    until = time.monotonic() + 60
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not alive(pid)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    except OSError:
        return False
