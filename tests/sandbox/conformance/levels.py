"""The levels at which the suite runs, as conditions that a zygote takes on before it forks its first worker."""

import os
import struct

from spade_envs.sandbox import jail, seccomp

NOBODY = 65534
# what a container's default profile refuses: namespaces, mounts, tracing, keys, bpf, clone3 (x86-64)
CONTAINER = "165 166 155 272 308 321 298 428 429 430 432 248 250 323 425 435"


def _instruction(code, operand, if_true=0, if_false=0):
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def filter_out(numbers, prctl_option=None):
    """Install a filter that refuses these system calls with ENOSYS, and one option of prctl, as a container might."""
    parts = [_instruction(0x20, 0)]
    for number in numbers:
        parts += [_instruction(0x15, number, 0, 1), _instruction(0x06, 0x00050000 | 38)]
    if prctl_option is not None:
        parts += [_instruction(0x15, 157, 0, 3), _instruction(0x20, 16), _instruction(0x15, prctl_option, 0, 1)]
        parts += [_instruction(0x06, 0x00050000 | 38)]
    parts.append(_instruction(0x06, 0x7FFF0000))
    jail._prctl(38, 1)
    seccomp.install(b"".join(parts))


def become_nobody():
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def take_on(level):
    """Give up what this level does without. Everything but "full" is unprivileged, but "wasi"."""
    if level.startswith("wasi"):
        if level == "wasi, no jail":  # as on a system that offers nothing: the machine has to hold alone
            jail.lock_down = lambda **_: dict.fromkeys(jail.LAYERS, "left out")
        return
    if level != "full":
        become_nobody()
    if level == "full, in a container":
        jail._drop_capabilities()
        filter_out([int(number) for number in CONTAINER.split()])
    elif level == "partial, no Landlock":
        filter_out([444])
    elif level == "partial, no seccomp":
        filter_out([317], prctl_option=22)
