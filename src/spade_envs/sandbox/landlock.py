"""Landlock with no rules: the process and its descendants can reach no file, TCP port, outside signal or socket.

See landlock(7). The kernel's ABI version decides what can be denied: 1 files, 2 re-linking, 3 truncation,
4 TCP, 5 device ioctls, 6 signals and abstract sockets of processes outside.
"""

from __future__ import annotations

import errno
import os
import struct
import sys

from spade_envs.sandbox.libc import last_error, libc

_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the same numbers on every architecture
_VERSION_FLAG = 1


def _file_rights(abi: int) -> int:
    rights = {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)  # how many bits this ABI knows
    return (1 << rights) - 1


def abi() -> int:
    """Return the kernel's Landlock ABI version, 0 if there is none or it is switched off."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _create_ruleset(None, 0, _VERSION_FLAG))


def _create_ruleset(attributes: bytes | None, size: int, flags: int) -> int:
    from ctypes import c_size_t

    return int(libc().syscall(_CREATE_RULESET, attributes, c_size_t(size), flags))


def deny_all() -> int:
    """Restrict the calling thread to nothing at all; ``no_new_privs`` has to be set before. Return the ABI used.

    Raises:
        OSError: the kernel has no Landlock, or a container forbids it.
    """
    version = abi()
    if not version:
        raise OSError(errno.ENOSYS, "the kernel offers no Landlock (it needs Linux 5.13 with landlock in its LSM list)")
    network = 3 if version >= 4 else 0  # bind, connect
    scope = 3 if version >= 6 else 0  # abstract Unix sockets, signals
    attributes = struct.pack("=QQQ", _file_rights(version), network, scope)
    attributes = attributes[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = _create_ruleset(attributes, len(attributes), 0)
    if ruleset < 0:
        raise OSError(last_error(), "landlock_create_ruleset failed")
    try:
        if libc().syscall(_RESTRICT_SELF, ruleset, 0) != 0:
            raise OSError(last_error(), "landlock_restrict_self failed")
    finally:
        os.close(ruleset)
    return version
