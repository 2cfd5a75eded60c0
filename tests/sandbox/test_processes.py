"""Processes and descriptors: nothing is left behind, nothing of the caller's is seen, levels are reported honestly."""

import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from spade_envs.sandbox import (
    Limits,
    Operation,
    ProgramDied,
    ProgramError,
    ProgramTimeout,
    ProtocolViolation,
    Sandbox,
    SandboxError,
    default_sandbox,
    doctor,
    set_default_sandbox,
)
from spade_envs.sandbox.columns import encode
from spade_envs.sandbox.exchange import Exchange, converse
from spade_envs.sandbox.jail import LAYERS
from spade_envs.sandbox.process import WorkerProcess, ZygoteProcess
from spade_envs.sandbox.wire import DYING, HEADER, OK, RUN, encode_reply

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def _children(pid: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if _parent_of(int(entry)) == pid:
                    found.append(int(entry))
            except (OSError, ValueError, IndexError):
                continue
    return found


def _gone(pid: int, seconds: float = 10.0) -> bool:
    """Return whether the process ended, or became a zombie that its parent will reap, within ``seconds``."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def _pids(sandbox) -> list[int]:
    zygotes = [zygote.pid for zygote in sandbox._processes._zygotes.values()]
    return zygotes + [seat.worker.pid for seat in sandbox._processes.occupied()]


def _python(code: str, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_nothing_is_left_behind(counter_source, step_source):
    gc.collect()
    before = _descriptors()
    for _ in range(2):
        with Sandbox(Limits(soft_seconds=0.1), max_workers=3) as sandbox:
            programs = [sandbox.open(counter_source) for _ in range(5)]
            sandbox.open(counter_source, twin=True)
            for program in programs:
                program.session().reset(1)
            with pytest.raises(ProgramTimeout):
                sandbox.open(step_source("while True:\n    pass")).session().step("x")
            for source in ("x = 1 / 0\n", "import os\n", "class"):
                with pytest.raises(ProgramError):
                    sandbox.open(source)
            crash = "x = iter([1])\nfor _ in range(300000):\n    x = map(abs, x)\nnext(x)"
            with pytest.raises(ProgramDied):
                sandbox.open(step_source(crash)).session().step("x")
            sandbox.run_many([(program, [Operation("make", 1)]) for program in programs])
            pids = _pids(sandbox)
            assert len(pids) == 2 + 3
        del programs, program
        gc.collect()
        assert all(_gone(pid) for pid in pids)
        assert _descriptors() == before


def test_a_program_that_is_dropped_gives_its_worker_back(sandbox, counter_source):
    program = sandbox.open(counter_source)
    pid = program.seat.worker.pid
    before = _descriptors()
    del program
    gc.collect()
    assert _gone(pid)
    assert _descriptors() < before


def test_closing(counter_source):
    sandbox = Sandbox()
    program = sandbox.open(counter_source)
    session = program.session()
    session.reset(1)
    program.close()
    program.close()
    session.close()
    with pytest.raises(SandboxError, match="closed"):
        program.run([Operation("make", 1)])
    sandbox.close()
    sandbox.close()


SCRIPT = """
    import json, os, sys, time
    from spade_envs.sandbox import Sandbox
    sandbox = Sandbox()
    programs = [sandbox.open(sys.argv[1]) for _ in range(2)]
    pids = [zygote.pid for zygote in sandbox._processes._zygotes.values()]
    pids += [seat.worker.pid for seat in sandbox._processes.occupied()]
    print(json.dumps(pids), flush=True)
"""


@pytest.mark.parametrize(
    "ending", ["", "raise SystemExit(3)", "os._exit(1)", "os.kill(os.getpid(), 9)", "del sandbox", "1 / 0"]
)
def test_no_orphans_however_the_caller_ends(counter_source, ending):
    completed = _python(textwrap.dedent(SCRIPT) + ending, counter_source)
    pids = json.loads(completed.stdout.splitlines()[0])
    assert len(pids) == 3
    assert all(_gone(pid) for pid in pids), completed.stderr


def test_workers_die_with_their_zygote_even_while_they_compute(step_source):
    with Sandbox(Limits(soft_seconds=60)) as sandbox:
        program = sandbox.open(step_source("while True:\n    pass"))
        number = program.new_session_number()
        program.run([Operation("make", number)])
        worker = program.seat.worker
        frame = b"\x91\x93\xa4step" + bytes([number]) + b"\xa1x"
        worker.socket.send(HEADER.pack(len(frame)) + frame)
        os.kill(_pids(sandbox)[0], signal.SIGKILL)
        assert _gone(worker.pid)


def test_the_environment_of_the_caller_is_not_there(monkeypatch, counter_source):
    """What the caller has in its environment cannot be read in the zygote, from which workers are forked."""
    monkeypatch.setenv("SECRET_TOKEN", "hunter2-and-more")
    with Sandbox() as sandbox:
        sandbox.open(counter_source)
        zygote, *workers = _pids(sandbox)
        environment = Path(f"/proc/{zygote}/environ").read_bytes()
        assert b"PYTHONHASHSEED=0" in environment
        assert b"hunter2" not in environment
        assert b"SECRET" not in environment
        assert os.readlink(f"/proc/{zygote}/cwd") == "/"
        for pid in workers:
            if os.getuid() != 0:
                with pytest.raises(PermissionError):
                    Path(f"/proc/{pid}/environ").read_bytes()
            else:
                assert b"hunter2" not in Path(f"/proc/{pid}/environ").read_bytes()
                assert len(os.listdir(f"/proc/{pid}/fd")) == 1
            status = dict(
                line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
            )
            assert status["NoNewPrivs"] == "1"
            assert status["Seccomp"] == "2"
            assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
            assert status["Threads"] == "1"


def test_the_zygote_starts_where_the_package_cannot_be_imported_from_the_working_directory(tmp_path, counter_source):
    """A module of the caller's folder must not shadow the standard library in the zygote."""
    (tmp_path / "random.py").write_text("raise RuntimeError('shadowed')\n")
    (tmp_path / "spade_envs.py").write_text("raise RuntimeError('shadowed')\n")
    with Sandbox() as sandbox:
        here = os.getcwd()
        os.chdir(tmp_path)
        sys.path.insert(0, str(tmp_path))
        try:
            assert sandbox.open(counter_source).session().reset(1).info == {"turn": 0}
        finally:
            sys.path.remove(str(tmp_path))
            os.chdir(here)


def test_one_worker_to_a_program_and_one_zygote_to_a_kind(counter_source):
    with Sandbox() as sandbox:
        one, two = sandbox.open(counter_source), sandbox.open(counter_source)
        twin = sandbox.open(counter_source, twin=True)
        assert len({one.seat.worker.pid, two.seat.worker.pid, twin.seat.worker.pid}) == 3
        assert _parent_of(one.seat.worker.pid) == _parent_of(two.seat.worker.pid) != _parent_of(twin.seat.worker.pid)


def test_numpy_is_opt_in(sandbox):
    source = (
        "import numpy as np\n"
        "class ArrayEnv:\n"
        "    def reset(self, seed=None):\n"
        "        self.rng = np.random.default_rng(seed)\n"
        "        drawn = self.rng.choice(9, size=3, replace=False), self.rng.normal(), np.random.randint(5)\n"
        "        solved = np.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))\n"
        "        return str((drawn, solved.tolist())), {'n': np.int64(3)}\n"
        "    def step(self, action):\n        return 'x', np.float64(0.5), np.bool_(True), False, {}\n"
    )
    with pytest.raises(ProgramError):
        sandbox.open(source)
    session = sandbox.open(source, allow=["numpy"]).session()
    start = session.reset(0)
    assert start.observation.endswith("[1.0, 1.0])")
    assert start.info == {"n": 3}
    assert sandbox.open(source, allow=["numpy"], twin=True).session().reset(0) == start
    result = session.step("x")
    assert result == ("x", 0.5, True, False, {})
    assert type(result.reward) is float
    assert type(result.terminated) is bool
    with pytest.raises(ValueError, match="no opt-in module is called 'os'"):
        sandbox.open(source, allow=["os"])


# --- forked callers


def _in_child(function) -> str:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = str(function())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return text


def test_a_forked_child_goes_on_with_processes_of_its_own(counter_source):
    with Sandbox() as sandbox:
        session = sandbox.open(counter_source).session()
        session.reset(7)
        session.step("a")
        pids = _pids(sandbox)

        def child():
            seen = session.step("b")
            mine = _pids(sandbox)
            assert not set(mine) & set(pids)
            sandbox.close()
            return seen

        text = _in_child(child)
        assert str(session.step("b")) == text
        assert _pids(sandbox) == pids


def test_a_child_that_exits_leaves_the_parent_alone(counter_source):
    completed = _python(
        """
        import os, sys
        from spade_envs.sandbox import default_sandbox
        session = default_sandbox().open(sys.argv[1]).session()
        first = session.reset(7)
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        session.step("a")
        pid = os.fork()
        if pid == 0:
            print("child", session.step("b").observation, flush=True)
            sys.exit(0)
        os.waitpid(pid, 0)
        print("parent", session.step("b").observation)
        """,
        counter_source,
    )
    assert completed.returncode == 0, completed.stderr
    child, parent = completed.stdout.splitlines()
    assert child.split(" ", 1)[1] == parent.split(" ", 1)[1]
    assert completed.stderr == ""


def _play_in_process(source: str) -> str:
    return default_sandbox().open(source).session().reset(5).observation


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(counter_source, method):
    expected = _play_in_process(counter_source)
    context = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        assert pool.apply(_play_in_process, (counter_source,)) == expected


def test_threads_share_a_sandbox(counter_source):
    with Sandbox() as sandbox:
        results = {}

        def play(number):
            session = sandbox.open(counter_source).session()
            results[number] = [session.reset(3), *(session.step(str(i)) for i in range(5))]

        threads = [threading.Thread(target=play, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 4
        assert all(result == results[0] for result in results.values())


def test_an_interrupt_of_the_caller_costs_nothing(counter_source, step_source):
    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    body = (
        'if action == "slow":\n    sum([i for i in range(10**6)])\nreturn str(random.random()), 0.0, False, False, {}'
    )
    with Sandbox() as sandbox:
        session = sandbox.open(step_source(body)).session()
        session.reset(1)
        expected = [session.step("a"), session.step("slow"), session.step("b")]
        session.reset(1)
        assert session.step("a") == expected[0]

        def play_on():
            while True:
                session.step("slow")
                session.reset(1)
                session.step("a")

        previous = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.005)
            with pytest.raises(Interrupted):
                play_on()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
        session.reset(1)
        assert [session.step("a"), session.step("slow"), session.step("b")] == expected


def test_the_default_sandbox():
    set_default_sandbox(None)
    assert default_sandbox() is default_sandbox()
    with Sandbox() as mine:
        set_default_sandbox(mine)
        assert default_sandbox() is mine
    set_default_sandbox(None)


# --- isolation levels


def test_isolation_is_read_from_a_worker(sandbox):
    report = sandbox.isolation
    assert report.level == "full"
    assert list(report.layers) == list(LAYERS)
    assert report.missing == {}


DENY = """
    import struct, sys
    from spade_envs.sandbox import Sandbox, SandboxError, doctor, jail, seccomp
    # A filter that refuses the given system calls, as a container might: what is left is reported honestly.
    step = lambda code, k, t=0, f=0: struct.pack("=HBBI", code, t, f, k)
    denied = [int(number) for number in sys.argv[2].split()]
    parts = [step(0x20, 0)]
    for number in denied:
        parts += [step(0x15, number, 0, 1), step(0x06, 0x00050000 | 38)]
    parts.append(step(0x06, 0x7FFF0000))
    jail._prctl(38, 1)
    seccomp.install(b"".join(parts))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system-call numbers of x86-64")
@pytest.mark.parametrize(
    ("numbers", "level", "missing"),
    [
        ("444", "partial", {"landlock"}),
        ("444 126", "partial", {"landlock", "capabilities"}),
        ("160 302", "static", {"rlimits", "memory", "seccomp"}),
    ],
    ids=["no Landlock", "no capset", "no setrlimit"],
)
def test_lower_levels_need_an_explicit_flag(counter_source, numbers, level, missing):
    code = textwrap.dedent(DENY) + textwrap.dedent(
        """
        try:
            Sandbox().open(sys.argv[1])
        except SandboxError as error:
            print(error)
        with Sandbox(minimum_isolation=sys.argv[3]) as sandbox:
            print(sandbox.open(sys.argv[1]).session().reset(1).info, sandbox.isolation.level)
            print(" ".join(sandbox.isolation.missing))
        report = doctor.describe()
        print(report["level"], bool(report["advice"]))
        """
    )
    completed = _python(code, counter_source, numbers, level)
    assert completed.returncode == 0, completed.stderr
    refusal, played, off, described = completed.stdout.splitlines()
    assert f"isolation on this system is {level!r}, but 'full' is required" in refusal
    assert all(f"{layer}: " in refusal for layer in missing)
    assert f"minimum_isolation={level!r}" in refusal
    assert played == f"{{'turn': 0}} {level}"
    assert set(off.split()) == missing
    assert described == f"{level} True"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system-call numbers of x86-64")
def test_full_isolation_without_privileges_under_a_container_like_filter(counter_source):
    """No capabilities, and what a container's default profile refuses: namespaces, mounts, bpf, keys, clone3."""
    code = textwrap.dedent(DENY).replace("jail._prctl(38, 1)", "jail._drop_capabilities(); jail._prctl(38, 1)")
    code += "with Sandbox() as sandbox:\n"
    code += "    print(sandbox.open(sys.argv[1]).session().reset(1).info, sandbox.isolation.level)\n"
    denied = "165 166 155 272 308 321 298 428 429 430 432 248 250 323 425 435"
    completed = _python(code, counter_source, denied)
    assert completed.stdout == "{'turn': 0} full\n", completed.stderr


def test_doctor():
    report = doctor.describe()
    assert report["level"] == "full"
    assert report["advice"] == report["error"] == ""
    assert report["landlock_abi"] >= 1
    assert json.loads(json.dumps(report)) == report


def test_a_python_that_cannot_start_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-such-python"))
    with pytest.raises(SandboxError, match="no-such-python"):
        Sandbox().open("")
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(SandboxError, match="out of order"):
        Sandbox().open("")
    report = doctor.describe()
    assert report["level"] == "none"
    assert "out of order" in report["error"]


# --- a worker that fails by itself says why

FAILING = """
import sys
from spade_envs.sandbox import worker, zygote
def fail(*_, **__):
    raise OSError(13, "the lock is stuck")
{patch}
zygote.main(int(sys.argv[1]), int(sys.argv[2]), [])
"""


def _fail_in_worker(monkeypatch, patch):
    def start(descriptor, log, optional):
        command = [sys.executable, "-c", FAILING.format(patch=patch), str(descriptor), str(os.getpid())]
        return subprocess.Popen(command, pass_fds=[descriptor], stderr=log)

    monkeypatch.setattr(ZygoteProcess, "_start", staticmethod(start))


def test_a_worker_that_cannot_lock_down_says_why(monkeypatch, counter_source):
    _fail_in_worker(monkeypatch, "worker.lock_down = fail")
    with Sandbox() as sandbox:
        with pytest.raises(SandboxError, match=r"could not start: PermissionError: .*the lock is stuck"):
            sandbox.open(counter_source)
        with pytest.raises(SandboxError, match="the lock is stuck"):
            _ = sandbox.isolation


def test_a_worker_that_fails_later_says_why(monkeypatch, counter_source):
    _fail_in_worker(monkeypatch, "worker.Worker._perform = fail; worker.Worker._report = fail")
    with Sandbox() as sandbox, pytest.raises(ProgramDied, match=r"PermissionError: .*the lock is stuck"):
        sandbox.open(counter_source)


# --- a worker that was taken over writes what it likes


@pytest.fixture(scope="module")
def zygote():
    process = ZygoteProcess()
    yield process
    process.close()


HELLO = encode_reply(OK, dict.fromkeys(LAYERS, "on"))
ROW = ["seen", 0.5, False, False, {}]
STEP = encode_reply(OK, ROW)


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (b"", ProgramDied),
        (b"\x01", ProgramDied),
        (HELLO, ProgramDied),
        (HELLO + STEP[:-3], ProgramDied),
        (HEADER.pack(2**32 - 1), ProtocolViolation),
        (HELLO + HEADER.pack(2**31) + b"x" * 100_000, ProtocolViolation),
        (HELLO + HEADER.pack(0), ProtocolViolation),
        (HELLO + HEADER.pack(5) + b"abcde", ProtocolViolation),
        (HELLO + STEP + STEP + STEP, ProtocolViolation),
        (HELLO + STEP + STEP + b"\x00", ProtocolViolation),
        (STEP + STEP, ProtocolViolation),
        (HELLO + STEP + encode_reply(OK, ["x" * 10**6, 0.0, False, False, {}]), ProtocolViolation),
        (HELLO + STEP + encode_reply(99, "x"), ProtocolViolation),
        (HELLO + encode_reply(RUN, encode([ROW] * 3)), ProtocolViolation),
        (HELLO + encode_reply(RUN, encode([ROW] * 2)) + STEP, ProtocolViolation),
        (HELLO + encode_reply(RUN, encode([ROW])) + STEP + b"\x00", ProtocolViolation),
        (HELLO + encode_reply(RUN, [[], [], [], [], []]), ProtocolViolation),
        (HELLO + encode_reply(DYING, "x"), ProgramDied),
        (os.urandom(5_000), (ProtocolViolation, ProgramDied)),
    ],
    ids=range(19),
)
def test_forged_streams(zygote, written, error):
    import socket

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    theirs.setblocking(False)
    theirs.send(written)
    theirs.shutdown(socket.SHUT_WR)
    exchange = Exchange(WorkerProcess(2**22 - 1, ours, None, zygote), b"\x01\x00\x00\x00\x90", ["step", "step"])
    converse([exchange], Limits())
    assert isinstance(exchange.failure, error)
    assert len(exchange.outcomes) <= 2
    theirs.close()


def test_a_worker_that_says_nothing_is_killed(zygote):
    """It neither answers nor computes: no time is granted past the limit."""
    worker = zygote.fork(Limits(), "full")
    exchange = Exchange(worker, b"", ["step"])
    converse([exchange], Limits(soft_seconds=0.1, hard_seconds=0.1, load_seconds=1.0))
    assert type(exchange.failure) is ProgramTimeout
    assert _gone(worker.pid)
