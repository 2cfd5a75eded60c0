"""The zygote's entry point, with one change: sources run as unrestricted Python.

Everything else is the product's own: fork, jail, worker loop, wire. What an attack does here is what remains possible
to a program that has broken the policy, the guards and the interpreter.
"""

import _thread
import atexit
import ctypes
import errno
import gc
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import sys
import types
from pathlib import Path

import msgpack

LIBC = ctypes.CDLL(None, use_errno=True)
SYSCALLS = {
    "x86_64": {
        "ptrace": 101,
        "process_vm_readv": 310,
        "io_uring_setup": 425,
        "userfaultfd": 323,
        "bpf": 321,
        "perf_event_open": 298,
        "unshare": 272,
        "shmget": 29,
        "keyctl": 250,
        "prctl": 157,
        "seccomp": 317,
        "ioctl": 16,
        "pkey_mprotect": 329,
        "clone3": 435,
        "vfork": 58,
        "tgkill": 234,
        "pidfd_open": 434,
        "name_to_handle_at": 303,
        "mount": 165,
        "chroot": 161,
        "init_module": 175,
        "reboot": 169,
        "setuid": 105,
        "memfd_secret": 447,
        "personality": 135,
        "sendmsg": 46,
        "mq_open": 240,
    },
    "aarch64": {
        "ptrace": 117,
        "process_vm_readv": 270,
        "io_uring_setup": 425,
        "userfaultfd": 282,
        "bpf": 280,
        "perf_event_open": 241,
        "unshare": 97,
        "shmget": 194,
        "keyctl": 219,
        "prctl": 167,
        "seccomp": 277,
        "ioctl": 29,
        "pkey_mprotect": 288,
        "clone3": 435,
        "tgkill": 131,
        "pidfd_open": 434,
        "name_to_handle_at": 264,
        "mount": 40,
        "chroot": 51,
        "init_module": 105,
        "reboot": 142,
        "setuid": 146,
        "memfd_secret": 447,
        "personality": 92,
        "sendmsg": 211,
        "mq_open": 180,
    },
}


def syscall(name, *arguments):
    """Call the kernel directly; raise what it answers."""
    result = LIBC.syscall(SYSCALLS[platform.machine()][name], *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def writable_descriptors():
    """Return the numbers of the descriptors that can be written to."""
    found = []
    for number in range(256):
        try:
            os.write(number, b"")
            found.append(number)
        except OSError:
            pass
    return found


class Unrestricted:
    """A program that runs with everything that Python has."""

    stateless = False
    code = compile("", "<nothing to see>", "exec")

    def __init__(self, source, allow=frozenset()):
        self.source = source

    def execute(self):
        return loader.Module(run(self.source), set())


def run(source):
    names = {
        "__name__": "attack",
        "syscall": syscall,
        "writable_descriptors": writable_descriptors,
        "_thread": _thread,
        "atexit": atexit,
        "ctypes": ctypes,
        "errno": errno,
        "gc": gc,
        "mmap": mmap,
        "os": os,
        "resource": resource,
        "signal": signal,
        "socket": socket,
        "struct": struct,
        "sys": sys,
        "msgpack": msgpack,
    }
    exec(source, names)
    return names["AttackEnv"]


def pretend_macos():
    """Take away what Linux adds, before the product is imported."""
    sys.platform = "darwin"
    del os.pidfd_open


def serve_wasi(descriptor, parent, options):
    """The same for the interpreter under WebAssembly: its guest gets one module more, which opens it up."""
    import marshal

    from spade_envs.sandbox.wasi import runtime, server

    def opened_bundle():
        modules = marshal.loads(bundle())
        modules["spade_envs.sandbox.wasi.closed"] = modules["spade_envs.sandbox.wasi.guest"]
        modules["spade_envs.sandbox.wasi.guest"] = (False, Path(__file__).with_name("open_guest.py").read_text())
        return marshal.dumps(modules)

    bundle, runtime.bundle = runtime.bundle, opened_bundle
    server.main(descriptor, parent, options.split())


def _main():
    level, descriptor, parent, here, options = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:6]
    here = Path(here)
    sys.path += [str(Path(__file__).parent), *sys.argv[6:]]
    for name, folder in (("spade_envs", here.parent), ("spade_envs.sandbox", here)):
        sys.modules[name] = package = types.ModuleType(name)
        package.__path__ = [str(folder)]
    if level.endswith("macOS"):
        pretend_macos()
    import levels

    if level.startswith("wasi"):
        levels.take_on(level)
        serve_wasi(descriptor, parent, options)
    global loader
    from spade_envs.sandbox import loader, zygote

    def open_up():  # when all is imported: an unprivileged user may not be able to read the interpreter's files
        levels.take_on(level)
        loader.compile_source = Unrestricted

    loader.harden = open_up
    zygote.main(descriptor, parent, ())


if __name__ == "__main__":
    _main()
