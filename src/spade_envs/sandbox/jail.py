"""Lock the calling process down, for good, before it sees a byte of generated code.

None of the layers needs a privilege, and all of them install under Docker's default seccomp profile. Order
matters: what needs a descriptor or a system call comes before the layer that takes it away.

Not covered: what a process can compute and say on the one socket it keeps. The other end checks every reply.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable, Mapping

from spade_envs.sandbox import landlock, seccomp
from spade_envs.sandbox.libc import last_error, libc
from spade_envs.sandbox.types import IsolationLevel

LINUX = sys.platform.startswith("linux")
MACOS = sys.platform == "darwin"
LAYERS = (
    "descriptors",
    "rlimits",
    "memory",
    "death_signal",
    "capabilities",
    "no_new_privs",
    "not_dumpable",
    "landlock",
    "seccomp",
)
"""Every layer of full isolation, in the order of installation."""
SEATBELT = "seatbelt"
"""The layer that macOS adds."""
VIRTUAL_MACHINE = "webassembly"
"""The layer that an interpreter under WebAssembly adds to what there is of the others."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CAPSET = {"x86_64": 126, "aarch64": 91}
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
_PURE_COMPUTATION, _SANDBOX_NAMED = b"pure-computation", 1
_RANK: dict[IsolationLevel, int] = {"static": 0, "partial": 1, "wasi": 2, "full": 3}


def isolation_level(layers: Mapping[str, str]) -> IsolationLevel:
    """Return "wasi" if the interpreter is a virtual machine; "full" if every layer is on; "partial" if at least the
    resource limits are, else "static".
    """
    if layers.get(VIRTUAL_MACHINE) == "on":
        return "wasi"
    on = {name for name, state in layers.items() if state == "on"}
    if on.issuperset(LAYERS):
        return "full"
    return "partial" if on.issuperset({"descriptors", "rlimits"}) else "static"


def at_least(level: IsolationLevel, minimum: IsolationLevel) -> bool:
    """Return whether ``level`` is as strong as ``minimum``."""
    return _RANK[level] >= _RANK[minimum]


def _prctl(option: int, value: int) -> None:
    if libc().prctl(option, value, 0, 0, 0) != 0:
        code = last_error()
        raise OSError(code, f"prctl({option}): {errno.errorcode.get(code, code)}")


def _close_descriptors(keep: int) -> None:
    os.closerange(0, keep)
    os.closerange(keep + 1, 65_536)


def _address_space() -> int:
    """Return the size of this process's address space in bytes."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _limit_resources(cpu_seconds: int) -> None:
    import resource  # not on Windows

    wanted = {
        "CPU": cpu_seconds,
        "FSIZE": 0,
        "CORE": 0,
        "NPROC": 0,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
    }
    refused = []
    for name, value in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            if name != "MSGQUEUE":  # POSIX message queues exist on Linux only
                refused.append(f"{name} unknown")
            continue
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError) as error:
            refused.append(f"{name}: {error}")
    if refused:
        raise OSError(errno.EPERM, "; ".join(refused))


def _limit_memory(size: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _no_more_descriptors() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def _die_with_parent(parent: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request was in force
        os._exit(0)


def _drop_capabilities() -> None:
    number = _CAPSET.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"no capset number for {platform.machine()}")
    header = struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    if libc().syscall(number, header, bytes(24)) != 0:
        code = last_error()
        raise OSError(code, f"capset: {errno.errorcode.get(code, code)}")


def _seccomp() -> None:
    _no_more_descriptors()
    seccomp.install()
    try:
        descriptor = os.open("/", os.O_RDONLY)
    except OSError as error:
        if error.errno == errno.EPERM:
            return
        raise OSError(errno.EIO, f"installed, but open() gives {error} instead of EPERM") from error
    os.close(descriptor)
    raise OSError(errno.EIO, "installed, but open() still works")


def _seatbelt() -> None:
    """Install macOS's ready-made profile without files, network and processes, see sandbox_init(3)."""
    import ctypes

    message = ctypes.c_char_p()
    if libc().sandbox_init(_PURE_COMPUTATION, _SANDBOX_NAMED, ctypes.byref(message)) != 0:
        raise OSError(errno.EPERM, (message.value or b"refused").decode("utf-8", "replace"))


def warm() -> None:
    """Load what :func:`lock_down` needs, so that a fork does not have to."""
    with contextlib.suppress(ImportError):
        import resource  # noqa: F401
    if LINUX or MACOS:
        libc()
    if LINUX:
        with contextlib.suppress(OSError):
            seccomp.allow_list(platform.machine())


def lock_down(*, keep: int, parent: int, memory_mb: int, cpu_seconds: int) -> dict[str, str]:
    """Install every layer that this system offers and return its state: "on", or why it is off.

    Args:
        keep: the one descriptor that stays open.
        parent: process id of the parent; if it is gone already, this process exits.
        memory_mb: address space that may be used above what is mapped now.
        cpu_seconds: CPU time after which the kernel ends this process.
    """
    base = _address_space() if LINUX else 0

    def linux_only(install: Callable[[], object]) -> Callable[[], object]:
        def refuse() -> None:
            raise OSError(errno.ENOSYS, f"not offered by {platform.system()}")

        return install if LINUX else refuse

    installers: dict[str, Callable[[], object]] = {
        "descriptors": lambda: _close_descriptors(keep),
        "rlimits": lambda: _limit_resources(cpu_seconds),
        "memory": linux_only(lambda: _limit_memory(base + (memory_mb << 20))),
        "death_signal": linux_only(lambda: _die_with_parent(parent)),
        "capabilities": linux_only(_drop_capabilities),
        "no_new_privs": linux_only(lambda: _prctl(_PR_SET_NO_NEW_PRIVS, 1)),
        "not_dumpable": linux_only(lambda: _prctl(_PR_SET_DUMPABLE, 0)),
        "landlock": linux_only(landlock.deny_all),
        "seccomp": linux_only(_seccomp),
    }
    if MACOS:
        installers[SEATBELT] = _seatbelt
    layers: dict[str, str] = {}
    for name, install in installers.items():
        try:
            install()
        except (OSError, ValueError, ImportError, AttributeError) as error:
            layers[name] = str(error) or type(error).__name__
        else:
            layers[name] = "on"
    if not LINUX:  # elsewhere no layer needs a descriptor after this: no file can be opened any more
        with contextlib.suppress(OSError, ValueError, ImportError):
            _no_more_descriptors()
    return layers
