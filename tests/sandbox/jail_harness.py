"""Run as a script: read attacks as JSON from stdin, carry each out in a jailed child, print what happened.

    python jail_harness.py UID MEMORY_MB < {"name": "python statements", ...}

Attacks are unrestricted Python: this tests the operating system's layers alone, as if the policy, the guards and
the interpreter had all been broken already.
"""

import _thread
import ctypes
import errno
import json
import mmap
import os
import platform
import resource
import signal
import socket
import sys

from spade_envs.sandbox import jail

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
    },
}


def syscall(name, *arguments):
    """Call the kernel directly; raise what it answers."""
    result = LIBC.syscall(SYSCALLS[platform.machine()][name], *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def attempt(statements, memory_mb):
    """Return what ``statements`` did in a jailed child: "done: value", "Exception: text" or "signal N"."""
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        names = {
            "os": os,
            "socket": socket,
            "mmap": mmap,
            "ctypes": ctypes,
            "resource": resource,
            "signal": signal,
            "thread": _thread,
            "errno": errno,
            "syscall": syscall,
            "parent": parent,
        }
        layers = jail.lock_down(keep=writer, parent=parent, memory_mb=memory_mb, cpu_seconds=20)
        try:
            if any(state != "on" for state in layers.values()):
                text = f"no jail: {layers}"
            else:
                exec(statements, names)
                text = f"done: {names.get('result')}"
        except BaseException as error:
            names.clear()
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text[:500].encode("utf-8", "replace"))
        os._exit(0)
    os.close(writer)
    answer = os.read(reader, 4096).decode()
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return answer or f"signal {-status}"


def main():
    uid, memory_mb = int(sys.argv[1]), int(sys.argv[2])
    attacks = json.load(sys.stdin)
    if uid != os.getuid():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    print(json.dumps({name: attempt(statements, memory_mb) for name, statements in attacks.items()}))


if __name__ == "__main__":
    main()
