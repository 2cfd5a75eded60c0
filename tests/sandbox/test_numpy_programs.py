"""Programs with numpy do under the guards what they do without: arrays of objects, fields, copies, scalars."""

import copy
import enum

import pytest

from spade_envs.sandbox.guards import Refused
from spade_envs.sandbox.hardening import harden
from spade_envs.sandbox.loader import make_namespace
from spade_envs.sandbox.policy import compile_program

np = pytest.importorskip("numpy")
HEADER = """
import copy
from dataclasses import dataclass
from typing import Any
import numpy as np
"""
PROGRAMS = {
    "grid of objects": """
grid = np.full((3, 4), None, dtype=object)
grid[1, 2] = {"item": "key"}
grid[0] = ["a", 1, None, 2.5]
r = grid.tolist(), (grid == None).sum(), [str(x) for x in grid.flat], grid.astype(str).tolist(), grid.T.shape
""",
    "ragged rows": """
rows = np.empty(2, dtype=object)
rows[:] = [[1, 2, 3], [4]]
r = [len(x) for x in rows], np.concatenate(rows).tolist(), rows.copy()[1]
""",
    "fields": """
units = np.zeros(3, dtype=[("hp", "i4"), ("x", "f8"), ("name", "U8")])
units["hp"] = [3, 1, 2]
units[0] = (9, 1.5, "scout")
r = np.sort(units, order="hp")["hp"].tolist(), units.dtype.names, units[units["hp"] > 2].tolist(), units[0]["name"]
""",
    "types of scalars": """
x, y = np.float64(1.5), np.arange(3)[1]
r = type(x) is np.float64, isinstance(y, np.integer), type(y)(7) + 1, isinstance(np.zeros(1), np.ndarray), \
    y.dtype.type(3), np.zeros(2, np.int8).dtype.name, type(x).__name__
""",
    "copies": """
rng = np.random.default_rng(3)
twin = copy.deepcopy(rng)
state = copy.deepcopy({"board": np.arange(4).reshape(2, 2), "o": np.array([[1], None], object)})
old = np.random.RandomState(4)
third = copy.deepcopy(old)
state["board"][0, 0] = 9
r = rng.integers(100) == twin.integers(100), rng.random() == twin.random(), old.rand() == third.rand(), \
    state["board"].tolist(), copy.copy(np.float32(2)), copy.deepcopy(np.zeros(2).dtype) == np.zeros(2).dtype
""",
    "a copy with a memo": """
class Board:
    def __init__(self): self.rng, self.cells, self.kind = np.random.default_rng(1), np.eye(2), np.zeros(1, "i4").dtype
    def __deepcopy__(self, memo):
        new = Board()
        memo[id(self)] = new
        new.rng, new.cells = copy.deepcopy(self.rng, memo), copy.deepcopy(self.cells, memo)
        new.kind = copy.deepcopy(self.kind, memo)
        return new
a = Board()
b = copy.deepcopy(a)
r = b.rng is not a.rng, b.rng.random() == a.rng.random(), b.cells.tolist(), b.kind == a.kind
""",
    "a dataclass of arrays": """
@dataclass
class Cell:
    data: Any
    view: int = 1
    obj: Any = None
    _seen: bool = False
c, d = Cell([1], 2), Cell([1], 2)
r = repr(c), c == d, c != Cell([2])
""",
    "the usual": """
a = np.array([[3, 1, 2], [9, 7, 8]])
r = a.sort(axis=1), a.tolist(), np.unique(a % 3, return_counts=True)[1].tolist(), a.astype(float).mean(), \
    a.astype("U3").tolist(), np.where(a > 5, a, 0).sum(), a.tobytes() == a.copy().tobytes(), a.flags["C_CONTIGUOUS"], \
    [int(i) for i in np.argwhere(a == 9)[0]], np.add.reduce(a, axis=0).tolist(), np.add.at(a, ([0], [0]), 5), a[0, 0], \
    list(np.ndindex(2, 2)), [(i, int(v)) for i, v in np.ndenumerate(a)][:2], np.linalg.norm(np.ones(4))
""",
}


@pytest.fixture(scope="module", autouse=True)
def hardened():
    originals = copy._reconstruct, enum.EnumMeta.__call__, enum.property.__get__
    harden()
    yield
    copy._reconstruct, enum.EnumMeta.__call__, enum.property.__get__ = originals


@pytest.mark.parametrize("name", PROGRAMS)
def test_guarded_programs_do_what_plain_ones_do(name):
    source = HEADER + PROGRAMS[name]
    guarded = make_namespace(frozenset({"numpy"}))
    exec(compile_program(source, frozenset({"numpy"})), guarded)
    plain = {"__name__": "environment"}
    exec(compile(source, "plain", "exec", dont_inherit=True), plain)
    assert repr(guarded["r"]) == repr(plain["r"])


@pytest.mark.parametrize(
    "kind", ["np.float64", "np.int64", "np.ndindex", "np.ndarray", "np.str_", "type(np.zeros(1).dtype)"]
)
def test_numpys_classes_are_no_bases(kind):
    source = f"import numpy as np\nclass F({kind}): pass\n"
    with pytest.raises(Refused):
        exec(compile_program(source, frozenset({"numpy"})), make_namespace(frozenset({"numpy"})))
