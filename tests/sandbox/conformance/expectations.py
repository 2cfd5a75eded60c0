"""What each level promises: attacks that are contained, gaps that are declared, and the list that has to be covered."""

import re
from typing import NamedTuple

from attacks import ATTACKS

from spade_envs.sandbox import jail

REFUSED = r"ProgramRaised: (PermissionError|BlockingIOError|OSError: \[Errno 24\])"
"""Refusals by resource limits, capabilities and Landlock, where seccomp does not come first with EPERM."""


class Level(NamedTuple):
    """What is reported, and which areas or attacks are not covered (``kernel``: left to the kernel's settings)."""

    reported: str
    missing: tuple[str, ...] = ()
    gaps: frozenset[str] = frozenset()
    kernel: frozenset[str] = frozenset()
    also: str = ""  # a regular expression of further outcomes that count as contained


ABSENT = (
    r"ProgramRaised: (NameError|AttributeError|FileNotFoundError|OSError: \[Errno 58\]|PermissionError: \[Errno 76\])"
)
"""Under WebAssembly there is nothing to call: no module, no function, no file of that name."""

TRUTH = frozenset({"truth"})
"""A program that took over its worker can state any well-formed answer; its worth is the validator's business."""

LEVELS = {
    "full": Level("full", gaps=TRUTH),
    "full, unprivileged": Level("full", gaps=TRUTH),
    "full, in a container": Level("full", gaps=TRUTH),
    "partial, no Landlock": Level("partial", ("landlock",), TRUTH),
    "partial, no seccomp": Level(
        "partial",
        ("seccomp",),
        TRUTH | {"file names", "executable memory", "system v"},
        frozenset({"kernel surface", "own limits", "ptrace", "signals"}),
    ),
    "partial, as on macOS": Level(
        "partial",
        ("capabilities", "death_signal", "landlock", "memory", "no_new_privs", "not_dumpable", "seatbelt", "seccomp"),
        TRUTH
        | {"file names", "make a link", "make a folder", "executable memory", "system v", "execute"}
        | {"memory", "memory in one mapping"},
        frozenset({"kernel surface", "own limits", "ptrace", "signals"}),
    ),
    "wasi": Level("wasi", (), TRUTH | {"import"}, also=ABSENT),
    "wasi, no jail": Level("wasi", tuple(sorted(jail.LAYERS)), TRUTH | {"import"}, also=ABSENT),
}
"""As on macOS: what is left there without its own sandbox, which only a Mac can try. At "wasi", an import reads the
standard library that is part of the interpreter's image.
"""


ITEMS = {
    "file system: read, write, list": ("files",),
    "file system: stat, links, folders": ("file names",),
    "network": ("network",),
    "process creation": ("processes", "clone3"),
    "signals": ("signals",),
    "ptrace": ("ptrace",),
    "shared memory": ("shared memory",),
    "io_uring": ("io uring",),
    "rest of the kernel's surface": ("kernel surface",),
    "executable memory": ("executable memory",),
    "raising limits": ("own limits",),
    "environment of the trainer": ("caller",),
    "inherited descriptors": ("inherited descriptors", "pass one on"),
    "exhausting memory": ("memory", "memory in one mapping", "locked memory"),
    "exhausting CPU": ("loop", "sleep", "signals switched off", "signals blocked"),
    "exhausting processes": ("fork bomb",),
    "exhausting descriptors": ("pipes", "duplicate"),
    "exhausting the disk": ("disk",),
    "writing to the wire": ("garbage on the wire", "an answer of its own", "an answer too many", "a closed wire"),
    "forged and oversized frames": ("wire",),
    "crashing the interpreter": ("crash",),
    "hanging in C code": ("one long call into C", "regular expression"),
    "hanging in __del__": ("loop in a finaliser", "finaliser that never ends, left behind"),
    "hanging in atexit": ("loop at exit", "loop at exit, taken"),
    "hanging in an exception's __str__": ("loop in the text of an exception",),
    "BaseException swallowed": ("every exception swallowed", "generator that will not close"),
    "threads": ("threads",),
    "honest programs": ("still works",),
}
"""What the suite must cover, and the areas or names of the attacks that do."""


def attacks_of(item):
    """Return the names of the attacks that cover one item."""
    wanted = set(ITEMS[item])
    return [name for name, attack in ATTACKS.items() if wanted & {attack.area, name}]


def verdict(level, name, outcome):
    """Return "contained", "gap" (as declared), "kernel", or what is wrong."""
    attack = ATTACKS[name]
    if level.kernel & {attack.area, name}:
        return "kernel"
    accepted = [attack.contained, REFUSED if level.kernel else "", level.also]
    held = re.match("|".join(filter(None, accepted)), outcome) is not None
    if level.gaps & {attack.area, name}:
        return "gap, but nothing got through" if held else "gap"
    return "contained" if held else "NOT CONTAINED"
