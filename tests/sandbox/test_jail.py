"""The filter and the levels, as programs and data; ``conformance`` attacks what they make."""

import struct

import pytest

from spade_envs.sandbox import jail, seccomp


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
