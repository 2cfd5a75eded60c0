"""The operating system's layers, attacked by unrestricted Python from inside."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from spade_envs.sandbox import jail, landlock, seccomp

HARNESS = Path(__file__).with_name("jail_harness.py")
NOBODY = 65534
MEMORY_MB = 96

REFUSED = {
    "open for reading": "open('/etc/passwd')",
    "open for writing": "open('/tmp/pwned', 'w')",
    "open /proc/self/environ": "open('/proc/self/environ')",
    "open /proc/self/mem": "open('/proc/self/mem', 'r+b')",
    "listdir": "os.listdir('/')",
    "stat": "os.stat('/etc')",
    "readlink": "os.readlink('/proc/self/exe')",
    "unlink": "os.unlink('/tmp/x')",
    "mkdir": "os.mkdir('/tmp/y')",
    "chdir": "os.chdir('/')",
    "socket": "socket.socket()",
    "unix socket": "socket.socket(socket.AF_UNIX)",
    "socketpair": "socket.socketpair()",
    "pipe": "os.pipe()",
    "dup": "os.dup(3)",
    "fork": "os.fork()",
    "vfork": "syscall('vfork')",
    "clone3": "syscall('clone3', 0, 0)",
    "execve": "os.execv('/bin/true', ['true'])",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "kill the parent": "os.kill(parent, 0)",
    "kill itself": "os.kill(os.getpid(), 9)",
    "tgkill": "syscall('tgkill', parent, parent, 0)",
    "pidfd_open": "syscall('pidfd_open', parent, 0)",
    "ptrace": "syscall('ptrace', 16, parent, 0, 0)",
    "process_vm_readv": "syscall('process_vm_readv', parent, 0, 0, 0, 0, 0)",
    "memfd_create": "os.memfd_create('x')",
    "memfd_secret": "syscall('memfd_secret', 0)",
    "executable mapping": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
    "make memory executable": (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "page = mmap.mmap(-1, 4096)\n"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "if libc.mprotect(ctypes.c_void_p(address), 4096, 7) != 0:\n"
        "    raise OSError(ctypes.get_errno(), 'mprotect')"
    ),
    "pkey_mprotect": "syscall('pkey_mprotect', 0, 4096, 7, -1)",
    "prctl": "syscall('prctl', 38, 0, 0, 0, 0)",
    "another seccomp filter": "syscall('seccomp', 1, 0, 0)",
    "personality": "syscall('personality', 0x0400000)",
    "ioctl": "syscall('ioctl', 3, 0x5401, 0)",
    "io_uring": "syscall('io_uring_setup', 1, 0)",
    "userfaultfd": "syscall('userfaultfd', 0)",
    "bpf": "syscall('bpf', 0, 0, 0)",
    "perf events": "syscall('perf_event_open', 0, 0, 0, 0, 0)",
    "unshare": "syscall('unshare', 0x10000000)",
    "mount": "syscall('mount', 0, 0, 0, 0, 0)",
    "chroot": "syscall('chroot', b'/tmp')",
    "name_to_handle_at": "syscall('name_to_handle_at', 0, 0, 0, 0, 0)",
    "kernel module": "syscall('init_module', 0, 0, 0)",
    "reboot": "syscall('reboot', 0, 0, 0, 0)",
    "setuid": "syscall('setuid', 0)",
    "shared memory": "syscall('shmget', 0, 4096, 0o1777)",
    "keyctl": "syscall('keyctl', 0, 0, 0)",
    "pass a descriptor": "syscall('sendmsg', 3, 0, 0)",
    "poison a page": (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "page = mmap.mmap(-1, 4096)\n"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "if libc.madvise(ctypes.c_void_p(address), 4096, 100) != 0:\n"
        "    raise OSError(ctypes.get_errno(), 'madvise')"
    ),
}
OTHER = {
    "raise a limit": ("resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))", "ValueError: not allowed"),
    "thread": ("thread.start_new_thread(print, ())", "RuntimeError"),
    "memory bomb": ("hoard = []\nwhile True:\n    hoard.append(bytearray(8 << 20))", "MemoryError"),
    "memory bomb with mmap": ("mmap.mmap(-1, 1 << 30)", "OSError: [Errno 12]"),
    "segfault": ("ctypes.string_at(0)", "signal 11"),
    "import": ("import tabnanny", "ModuleNotFoundError"),
    "other descriptors": (
        "count = 0\n"
        "for number in range(64):\n"
        "    try:\n"
        "        os.write(number, b'')\n"
        "        count += 1\n"
        "    except OSError:\n"
        "        pass\n"
        "result = count",
        "done: 1",
    ),
    "arithmetic still works": ("result = sum(range(1000))", "done: 499500"),
    "memory still works": ("result = len(bytearray(32 << 20))", "done: 33554432"),
}


def _run(uid: int) -> dict[str, str]:
    attacks = REFUSED | {name: statements for name, (statements, _) in OTHER.items()}
    completed = subprocess.run(
        [sys.executable, str(HARNESS), str(uid), str(MEMORY_MB)],
        input=json.dumps(attacks),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    answers: dict[str, str] = json.loads(completed.stdout)
    return answers


@pytest.fixture(scope="module", params=["current user", "nobody"])
def answers(request) -> dict[str, str]:
    if landlock.abi() == 0:
        pytest.skip("no Landlock on this kernel: the full jail cannot be tested")
    if request.param == "nobody" and os.getuid() != 0:
        pytest.skip("changing to nobody needs root")
    return _run(os.getuid() if request.param == "current user" else NOBODY)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(answers, name):
    assert answers[name].startswith("PermissionError: [Errno 1]"), answers[name]


@pytest.mark.parametrize("name", OTHER)
def test_contained(answers, name):
    assert answers[name].startswith(OTHER[name][1]), answers[name]


def test_foreign_system_call_tables_are_fatal():
    """The filter's first instructions kill calls of another architecture, and x32 calls on x86-64."""
    for machine, architecture in (("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)):
        program = seccomp.allow_list(machine)
        instructions = [struct.unpack_from("=HBBI", program, offset) for offset in range(0, len(program), 8)]
        assert instructions[0] == (0x20, 0, 0, 4)
        assert instructions[1] == (0x15, 1, 0, architecture)
        assert instructions[2] == (0x06, 0, 0, 0x80000000)
        assert instructions[-1] == (0x06, 0, 0, 0x00050001)
    assert (0x35, 0, 1, 0x40000000) in [
        struct.unpack_from("=HBBI", seccomp.allow_list("x86_64"), offset) for offset in (32, 40)
    ]


def _simulate(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Interpret the five instructions that the filter uses; return its verdict."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", number, architecture, 0, *padded)
    position, word = 0, 0
    while True:
        code, if_true, if_false, operand = struct.unpack_from("=HBBI", program, 8 * position)
        position += 1
        if code == 0x20:
            (word,) = struct.unpack_from("=I", data, operand)
        elif code == 0x06:
            return operand
        else:
            holds = {0x15: word == operand, 0x35: word >= operand, 0x45: bool(word & operand)}[code]
            position += if_true if holds else if_false


@pytest.mark.parametrize(
    ("machine", "architecture", "read", "openat", "mmap", "madvise"),
    [("x86_64", 0xC000003E, 0, 257, 9, 28), ("aarch64", 0xC00000B7, 63, 56, 222, 233)],
)
def test_filter_by_interpretation(machine, architecture, read, openat, mmap, madvise):
    """The table that this machine cannot run is checked by interpreting it."""
    program = seccomp.allow_list(machine)
    allow, refuse, kill = 0x7FFF0000, 0x00050001, 0x80000000
    assert _simulate(program, architecture, read) == allow
    assert _simulate(program, architecture, openat) == refuse
    assert _simulate(program, architecture, mmap, (0, 4096, 3)) == allow
    assert _simulate(program, architecture, mmap, (0, 4096, 5)) == refuse
    assert _simulate(program, architecture, madvise, (0, 4096, 4)) == allow
    assert _simulate(program, architecture, madvise, (0, 4096, 100)) == refuse
    assert _simulate(program, 0x40000003, read) == kill
    allowed = [number for number in range(600) if _simulate(program, architecture, number) == allow]
    assert len(allowed) == len(seccomp._TABLES[machine].numbers)


def test_unknown_machine_is_said():
    with pytest.raises(OSError, match="no system-call table for vax"):
        seccomp.allow_list("vax")


@pytest.mark.parametrize(
    ("off", "level"),
    [((), "full"), (("landlock",), "partial"), (("landlock", "seccomp"), "partial"), (("rlimits",), "static")],
)
def test_level_follows_from_the_layers(off, level):
    layers = {name: "off because" if name in off else "on" for name in jail.LAYERS}
    assert jail.isolation_level(layers) == level


def test_levels_are_ordered():
    assert jail.at_least("full", "static")
    assert jail.at_least("partial", "partial")
    assert not jail.at_least("static", "partial")
