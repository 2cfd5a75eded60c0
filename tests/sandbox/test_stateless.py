# ruff: noqa: E501  (one program a line)
"""Programs that can have state outside their instances are never taken for ones that cannot."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.sandbox.policy import check
from spade_envs.sandbox.stateless import is_stateless

DATA = Path(__file__).parents[1] / "data"


def program(*, above: str = "", body: str = "", step: str = "pass", below: str = "") -> str:
    indented = "".join(f"    {line}\n" for line in body.strip("\n").split("\n")) if body else ""
    return (
        f"{above}\nclass AEnv(TextEnv):\n{indented}    def step(self, action):\n        {step}\n"
        f"        return '', 0.0, False, False, {{}}\n{below}\n"
    )


STATEFUL = {
    "global": program(above="n = 0", step="global n; n += 1"),
    "module list": program(above="seen = []", step="seen.append(action)"),
    "module dict": program(above="seen = {}", step="seen[action] = 1"),
    "class list": program(body="seen = []", step="self.seen.append(action)"),
    "class list by class": program(body="seen = []", step="AEnv.seen.append(action)"),
    "class counter": program(body="n = 0", step="AEnv.n += 1"),
    "class attribute set": program(step="AEnv.n = 1"),
    "class in a variable": program(step="c = AEnv; c.n = 1"),
    "class returned": program(body="def kind(self):\n    return AEnv", step="self.kind().n = 1"),
    "class by type": program(step="type(self).n = 1"),
    "class by dunder": program(step="self.__class__.n = 1"),
    "class method": program(body="@classmethod\ndef note(cls):\n    cls.n = 1", step="self.note()"),
    "class method keeps it": program(body="@classmethod\ndef note(cls):\n    c = cls\n    c.n = 1", step="self.note()"),
    "class in a table": program(above="class B:\n    pass\nKINDS = {'b': B}", step="KINDS['b'].n = 1"),
    "function attribute": program(above="def f():\n    pass", step="f.n = 1"),
    "function in a variable": program(above="def f():\n    pass", step="g = f; g.n = 1"),
    "function returned": program(above="def f():\n    pass\ndef g():\n    return f", step="g().n = 1"),
    "mutable default": program(body="def f(self, seen=[]):\n    seen.append(1)", step="self.f()"),
    "mutable keyword default": program(body="def f(self, *, seen={}):\n    seen[1] = 1", step="self.f()"),
    "default of a constant's name": program(above="T = [1]\ndef f(seen=T):\n    seen.append(1)", step="f()"),
    "cache": program(above="from functools import lru_cache\n@lru_cache\ndef f(x):\n    return [x]", step="f(1).append(2)"),
    "decorator with a closure": program(
        above="def counted(f):\n    n = [0]\n    def g(self, *a):\n        n[0] += 1\n    return g",
        body="@counted\ndef f(self):\n    pass", step="self.f()"),
    "instance in the module": program(above="class B:\n    pass\nb = B()", step="b.n = 1"),
    "iterator in the module": program(above="ids = iter([1, 2, 3])", step="next(ids)"),
    "count in the module": program(above="import itertools\nids = itertools.count()", step="next(ids)"),
    "closure in the module": program(
        above="def make():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n    return f\ntick = make()",
        step="tick()"),
    "comprehension in the module": program(above="T = [[] for _ in range(3)]", step="T[0].append(1)"),
    "table alias": program(body="T = [1]", step="t = self.T; t.append(1)"),
    "table returned": program(body="T = [1]\ndef f(self):\n    return self.T", step="self.f().append(1)"),
    "table or another": program(body="T = [1]", step="(self.T or [2]).append(1)"),
    "table by walrus": program(body="T = [1]", step="(t := self.T); t.append(1)"),
    "table in a list": program(body="T = [1]", step="[self.T][0].append(1)"),
    "table appended": program(body="T = [1]", step="x = []; x.append(self.T); x[0].append(1)"),
    "table passed": program(body="T = [1]\ndef f(self, t):\n    t.append(1)", step="self.f(self.T)"),
    "table chosen": program(body="T = [1]\nU = [2]", step="(self.T if action else self.U).append(1)"),
    "table by getattr": program(body="T = [1]", step="getattr(self, 'T').append(1)"),
    "table by setattr": program(above="T = [1]", step="setattr(self, 'choice', lambda t: t.append(1)); self.choice(T)"),
    "table assigned to": program(body="T = [1]", step="self.T[0] = 2"),
    "table deleted from": program(body="T = [1]", step="del self.T[0]"),
    "table extended in place": program(body="T = [1]", step="self.T += [2]"),
    "bound method of a table": program(body="T = [1]", step="f = self.T.append; f(1)"),
    "inner table": program(body="T = {'a': [1]}", step="self.T['a'].append(1)"),
    "inner table by get": program(body="T = {'a': [1]}", step="self.T.get('a').append(1)"),
    "inner table by values": program(body="T = {'a': [1]}", step="[v.append(1) for v in self.T.values()]"),
    "inner table by iteration": program(body="T = [[1], [2]]", step="[v.append(1) for v in self.T]"),
    "inner table by list": program(body="T = [[1]]", step="list(self.T)[0].append(1)"),
    "inner table by sum": program(body="T = [[1]]", step="x = self.T + []; x[0].append(1)"),
    "inner table by choice": program(body="T = [[1]]", step="self.rng.choice(self.T).append(1)"),
    "inner table by copy": program(body="T = [[1]]", step="self.T.copy()[0].append(1)"),
    "inner table by star": program(body="T = [[1]]", step="[*self.T][0].append(1)"),
    "table in a tuple": program(body="T = ([1], 2)", step="self.T[0].append(1)"),
    "table by reflected addition": program(
        above="class B:\n    def __radd__(self, other):\n        other.append(1)\n        return 1",
        body="T = [1]", step="self.T + B()"),
    "table by comparison": program(
        above="class B:\n    def __eq__(self, other):\n        other.append(1)", body="T = [1]", step="self.T == B()"),
    "table by containment": program(
        above="class B:\n    def __contains__(self, other):\n        other.append(1)", body="T = [1]", step="self.T in B()"),
    "table by a method called choice": program(
        body="T = [1]\ndef choice(self, t):\n    t.append(1)", step="self.choice(self.T)"),
    "table by an attribute called choice": program(
        body="T = [1]", step="self.choice = lambda t: t.append(1); self.choice(self.T)"),
    "table by a variable called len": program(body="T = [1]", step="len = lambda t: t.append(1); len(self.T)"),
    "table by an argument called len": program(
        body="T = [1]\ndef f(self, len):\n    len(self.T)", step="self.f(lambda t: t.append(1))"),
    "table by a captured len": program(
        body="T = [1]", step="match [lambda t: t.append(1)]:\n            case [len]:\n                len(self.T)"),
    "table by an import called len": program(above="from copy import copy as len", body="T = [[1]]", step="len(self.T)[0].append(1)"),
    "property of the program's own": program(
        above="def property(f):\n    n = []\n    return lambda self: n.append(1)",
        body="@property\ndef x(self):\n    return 1", step="self.x()"),
    "constant maker of the program's own": program(above="def tuple(x=0):\n    return []\nT = tuple(3)", step="T.append(1)"),
    "member of an enumeration": program(
        above="from enum import Enum\nclass C(Enum):\n    A = 1", step="self.c = C.A; self.c.n = 1"),
    "members by iteration": program(
        above="from enum import Enum\nclass C(Enum):\n    A = 1", step="for c in C: c.n = 1"),
    "value of a member": program(
        above="from enum import Enum\nclass C(Enum):\n    A = [1]", step="[c.value.append(1) for c in C]"),
    "member writes itself": program(
        above="from enum import Enum\nclass C(Enum):\n    A = 1\n    def note(self):\n        self.n = 1", step="C.A.note()"),
    "arithmetic context": program(above="import decimal", step="decimal.getcontext().prec = 3"),
    "code in the module body": program(above="if True:\n    T = []", step="T.append(1)"),
    "loop in the class body": program(body="for i in range(3):\n    pass"),
    "metaclass keyword": program(above="class B(metaclass=type):\n    pass"),
}  # fmt: skip

STATELESS = {
    "nothing": program(),
    "constants": program(above="A, B = 1, 'x'\nC = -(2 + 3)\nP = re.compile('a+')", body="D = (1, (2, 'y'))"),
    "docstrings and imports": program(above="'''Doc.'''\nimport math\nfrom random import randint", body="'''Doc.'''"),
    "tables that are read": program(
        above="W = 'ant bee'.split()\nD = dict(a=1)",
        body="T = [1, 2]\nN = {'a': {'b': [1, 2]}}",
        step="x = self.T[0] + len(self.T) + sum(self.T); y = [w for w in W if w in D]; z = self.N['a']['b'][0]; "
             "q = [k for k in self.N]; r = self.rng.choice(self.T); s = D.get('a', 0); u = sorted(self.N)"),
    "state in the instance": program(step="self.n = getattr(self, 'n', 0) + 1; self.box = {'a': []}; self.box['a'].append(1)"),
    "classes and functions": program(
        above="from dataclasses import dataclass, field\n@dataclass\nclass P:\n    x: int = 0\n"
              "    way: list = field(default_factory=list)\nclass Bad(ValueError):\n    pass\ndef key(p):\n    return p.x",
        step="ps = sorted([P(1), P(2)], key=key); ps[0].x = 5; ps[0].way.append(1); ok = isinstance(ps[0], P)"),
    "closures and caches of one call": program(
        step="from functools import lru_cache\n        @lru_cache\n        def f(x):\n            return x\n        f(1)"),
    "an enumeration": program(
        above="from enum import Enum\nclass C(Enum):\n    A = 1\n    B = 2", step="self.c = C.A; x = [c.name for c in C]"),
    "class methods that make": program(body="@classmethod\ndef make(cls):\n    return cls()", step="self.make()"),
    "names of types": program(step="x = type(action).__name__; y = self.__class__.__name__"),
    "main guard": program(below="if __name__ == '__main__':\n    print(AEnv())"),
}  # fmt: skip


@pytest.mark.parametrize("name", STATEFUL)
def test_state_is_never_overlooked(name: str) -> None:
    assert not is_stateless(ast.parse(STATEFUL[name]))


@pytest.mark.parametrize("name", STATELESS)
def test_what_has_no_state_is_known(name: str) -> None:
    assert not check(STATELESS[name])
    assert is_stateless(ast.parse(STATELESS[name]))


def test_most_real_programs_have_no_state() -> None:
    sources = [
        path.read_text() for folder in ("llm_style", "validation/sound") for path in (DATA / folder).glob("*.py")
    ]
    assert sum(is_stateless(ast.parse(source)) for source in sources) > 0.85 * len(sources)


def test_stateful_programs_do_not_share(sandbox: Sandbox) -> None:
    source = """
class CountEnv(TextEnv):
    seen = []

    def step(self, action):
        self.seen.append(action)
        return str(len(self.seen)), 0.0, False, False, {}
"""
    program = sandbox.open(source)
    first, second = program.session(), program.session()
    first.reset(0)
    second.reset(0)
    assert [first.step("").observation for _ in range(3)] == ["1", "2", "3"]
    assert second.step("").observation == "1"
    program.close()
