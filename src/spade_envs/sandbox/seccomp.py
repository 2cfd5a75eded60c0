"""Seccomp-BPF allow-list for a worker: the system calls that computing, and answering on one socket, need.

Not allowed, among all others: ``open``, ``socket``, ``fork``, ``clone``, ``execve``, ``kill``, ``ptrace``,
``ioctl``, ``prctl``, ``io_uring_setup`` and mappings with ``PROT_EXEC``. A refused call fails with ``EPERM``; a
call through a foreign system-call table (i386 or x32 on x86-64) kills the process.

Classic BPF, see seccomp(2) and ``linux/filter.h``; numbers from the kernel's ``syscall.tbl``.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from functools import lru_cache
from typing import NamedTuple

from spade_envs.sandbox.libc import last_error, libc

_LOAD_WORD, _IF_EQUAL, _IF_GREATER_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32_BIT = 0x40000000
_PROT_EXEC = 4
_FIRST_PRIVILEGED_ADVICE = 100  # MADV_HWPOISON and MADV_SOFT_OFFLINE damage the machine when called by root
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2


class _Table(NamedTuple):
    architecture: int  # AUDIT_ARCH_*
    numbers: dict[str, int]


# The most frequent calls come first: a classic filter is a linear chain of comparisons.
_TABLES = {
    "x86_64": _Table(
        0xC000003E,
        {
            "read": 0,
            "write": 1,
            "setitimer": 38,
            "clock_gettime": 228,
            "mmap": 9,
            "munmap": 11,
            "brk": 12,
            "mprotect": 10,
            "mremap": 25,
            "madvise": 28,
            "futex": 202,
            "getrandom": 318,
            "rt_sigaction": 13,
            "rt_sigprocmask": 14,
            "rt_sigreturn": 15,
            "sigaltstack": 131,
            "restart_syscall": 219,
            "sched_yield": 24,
            "nanosleep": 35,
            "clock_nanosleep": 230,
            "clock_getres": 229,
            "gettimeofday": 96,
            "time": 201,
            "close": 3,
            "exit": 60,
            "exit_group": 231,
        },
    ),
    "aarch64": _Table(
        0xC00000B7,
        {
            "read": 63,
            "write": 64,
            "setitimer": 103,
            "clock_gettime": 113,
            "mmap": 222,
            "munmap": 215,
            "brk": 214,
            "mprotect": 226,
            "mremap": 216,
            "madvise": 233,
            "futex": 98,
            "getrandom": 278,
            "rt_sigaction": 134,
            "rt_sigprocmask": 135,
            "rt_sigreturn": 139,
            "sigaltstack": 132,
            "restart_syscall": 128,
            "sched_yield": 124,
            "nanosleep": 101,
            "clock_nanosleep": 115,
            "clock_getres": 114,
            "gettimeofday": 169,
            "close": 57,
            "exit": 93,
            "exit_group": 94,
        },
    ),
}


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _low_word(argument: int) -> bytes:
    """Load the low half of a system call's argument (both tables are little-endian)."""
    return _instruction(_LOAD_WORD, _ARGUMENTS + 8 * argument)


@lru_cache(maxsize=1)
def allow_list(machine: str) -> bytes:
    """Return the BPF program for ``machine`` (as ``platform.machine()`` names it).

    Raises:
        OSError: there is no table of system calls for this machine.
    """
    if machine not in _TABLES:
        raise OSError(errno.ENOSYS, f"no system-call table for {machine} (there are {', '.join(_TABLES)})")
    table = _TABLES[machine]
    parts = [
        _instruction(_LOAD_WORD, _ARCHITECTURE),
        _instruction(_IF_EQUAL, table.architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD_WORD, _NUMBER),
    ]
    if machine == "x86_64":
        parts += [_instruction(_IF_GREATER_EQUAL, _X32_BIT, 0, 1), _instruction(_RETURN, _KILL)]
    conditions = {
        "mmap": [_low_word(2), _instruction(_IF_ANY_BIT, _PROT_EXEC, 0, 1)],
        "mprotect": [_low_word(2), _instruction(_IF_ANY_BIT, _PROT_EXEC, 0, 1)],
        "madvise": [_low_word(2), _instruction(_IF_GREATER_EQUAL, _FIRST_PRIVILEGED_ADVICE, 0, 1)],
    }
    for name, number in table.numbers.items():
        body = [*conditions[name], _instruction(_RETURN, _REFUSE)] if name in conditions else []
        body.append(_instruction(_RETURN, _ALLOW))
        parts += [_instruction(_IF_EQUAL, number, 0, len(body)), *body]
    parts.append(_instruction(_RETURN, _REFUSE))
    return b"".join(parts)


def install(program: bytes | None = None) -> None:
    """Put the calling thread under the filter, for good; ``no_new_privs`` has to be set before.

    Raises:
        OSError: the kernel has no seccomp filters, or a container forbids them.
    """
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, f"seccomp is Linux's; this is {platform.system()}")
    if program is None:
        if struct.calcsize("P") != 8:
            raise OSError(errno.ENOSYS, "seccomp filter needs a 64-bit Python")
        program = allow_list(platform.machine())
    import ctypes

    buffer = ctypes.create_string_buffer(program, len(program))
    descriptor = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))  # struct sock_fprog
    if libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, descriptor, 0, 0) != 0:
        code = last_error()
        raise OSError(code, f"seccomp: {errno.errorcode.get(code, code)}")
