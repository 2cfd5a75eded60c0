"""Programs of the soak: a family of healthy ones, and one hostile program for each way of misbehaving."""

from __future__ import annotations

_HEALTHY = '''
import random

class Sum{variant}Env:
    """Add numbers until the total reaches a target: variant {variant}."""

    def __init__(self, max_turns={turns}, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.turn, self.total = 0, 0
        self.target = random.randint(10, 60)
        self.history = []
        return f"Reach {{self.target}}.", {{"target": self.target}}

    def step(self, action):
        self.turn += 1
        self.total += int(action) if action.isdigit() else 0
        self.history.append((self.turn, self.total))
        done = self.total >= self.target or self.turn >= self.max_turns
        note = ", ".join(f"{{turn}}: {{total}}" for turn, total in self.history)
        return note, float(self.total == self.target), done, False, {{"turn": self.turn}}
'''


def healthy(variant: int) -> str:
    """Return the source of one variant; each has a text of its own."""
    return _HEALTHY.format(variant=variant, turns=4 + variant % 5)


def _hostile(step: str = 'return "", 0.0, True, False, {}', reset: str = 'return "go", {}', header: str = "") -> str:
    def indented(body: str) -> str:
        return "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))

    return (
        f"import random\n{header}\nclass HostileEnv:\n    kept = []\n    def __init__(self, max_turns=10, **kwargs):\n"
        f"        self.turn = 0\n    def reset(self, seed=None):\n{indented(reset)}    def step(self, action):\n"
        f"{indented(step)}"
    )


_END = 'return "", 0.0, True, False, {}'

HOSTILE = {
    "endless loop": _hostile("while True:\n    pass"),
    "endless loop in reset": _hostile(reset="while True:\n    pass"),
    "endless loop in the module": "while True:\n    pass\n" + _hostile(),
    "one long call into C": _hostile("sum(range(10**12))\n" + _END),
    "memory": _hostile(f"hoard = []\nwhile True:\n    hoard.append(bytearray(1 << 20))\n{_END}"),
    "memory kept by the class": _hostile(f"self.kept.append(bytearray(16 << 20))\n{_END}"),
    "huge number": _hostile(f"x = 10 ** (10 ** 8)\n{_END}"),
    "regular expression": _hostile(f'import re\nre.match("(a+)+$", "a" * 40 + "b")\n{_END}'),
    "crash of the interpreter": _hostile(
        f"x = iter([1])\nfor _ in range(90000):\n    x = map(abs, x)\nnext(x)\n{_END}"
    ),
    "recursion": _hostile(f"self.step(action)\n{_END}"),
    "storm of exceptions": _hostile(
        "for n in range(5000):\n    try:\n        raise ValueError(n)\n    except ValueError:\n        pass\n1 / 0"
    ),
    "chain of exceptions": _hostile(
        "error = None\nfor n in range(2000):\n    try:\n        raise ValueError(n) from error\n"
        "    except ValueError as caught:\n        error = caught\nraise error"
    ),
    "every exception swallowed": _hostile(
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
    ),
    "endless text of an exception": _hostile(
        "raise Odd()",
        header="class Odd(Exception):\n    def __str__(self):\n        while True:\n            pass\n",
    ),
    "exit": _hostile("raise SystemExit(0)"),
    "keyboard interrupt": _hostile("raise KeyboardInterrupt"),
    "huge observation": _hostile('return "x" * (8 << 20), 0.0, False, False, {}'),
    "huge info": _hostile('return "", 0.0, False, False, {str(n): "x" * 500 for n in range(5000)}'),
    "not a number": _hostile('return "", float("nan"), False, False, {}'),
    "infinite reward": _hostile('return "", float("inf"), False, False, {}'),
    "wrong types": _hostile('return b"", "1", 1, None, []'),
    "surrogates": _hostile('return "\\ud800" * 100, 0.0, True, False, {"\\udfff": "\\ud800"}'),
    "cycle of objects": _hostile(
        f"for _ in range(2000):\n    ring = []\n    ring.append(ring)\n    self.kept.append(ring)\n{_END}"
    ),
    "refused": "import os\n" + _hostile(),
    "not Python": "class class class\n" * 20,
    "source that takes long": "x = "
    + "(" * 150
    + "1"
    + ")" * 150
    + "\n"
    + "y = ["
    + "1, " * 20_000
    + "]\n"
    + _hostile(),
}
"""Name to source; the policy refuses two of them."""

_UNRESTRICTED = """
class AttackEnv:
    def __init__(self, **_): pass
    def reset(self, seed=None): return "ready", {{}}
    def step(self, action):
        wire = writable_descriptors()[0]
        {statement}
        os._exit(0)
"""
_FRAME = "msgpack.packb([0, ['forged', 1.0, True, False, {}]])"

WIRE_JUNK = [
    _UNRESTRICTED.format(statement=statement)
    for statement in (
        r"os.write(wire, b'\xff' * 64)",
        "os.write(wire, struct.pack('<I', 2**31))",
        f"os.write(wire, struct.pack('<I', 99) + {_FRAME})",
        f"frame = {_FRAME}; os.write(wire, (struct.pack('<I', len(frame)) + frame) * 3)",
        "os.close(wire)\n        while True: pass",
        "while True: os.write(wire, bytes(1 << 16))",
    )
]
"""Sources for a worker without policy and guards."""
