"""Inside the guest: the product's own, with one change: sources run as unrestricted Python (see open_bootstrap)."""

import _thread  # noqa: F401 - these are for the attacks
import atexit  # noqa: F401
import errno  # noqa: F401
import gc  # noqa: F401
import os
import signal  # noqa: F401
import socket  # noqa: F401
import struct  # noqa: F401
import sys  # noqa: F401

import msgpack  # noqa: F401

from spade_envs.sandbox import loader
from spade_envs.sandbox.wasi import closed


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
    """A program that runs with everything that the guest's Python has."""

    stateless = False
    code = compile("", "<nothing to see>", "exec")

    def __init__(self, source, allow=frozenset()):
        self.source = source

    def execute(self):
        names = {name: value for name, value in globals().items() if not name.startswith("__")} | {"__name__": "attack"}
        exec(self.source, names)
        return loader.Module(names["AttackEnv"], set())


def open_up():
    loader.compile_source = Unrestricted


def main():
    loader.harden = open_up
    closed.main()
