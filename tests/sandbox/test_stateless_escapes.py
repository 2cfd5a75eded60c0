# ruff: noqa: E501  (one program a line)
"""Ways from one instance to another that once passed for none, each shown to work in a module that instances share."""

from __future__ import annotations

import ast
import contextlib
import sys

import pytest

from spade_envs.sandbox import ProgramRaised, Sandbox
from spade_envs.sandbox.policy import check
from spade_envs.sandbox.stateless import is_stateless


def program(*, above: str = "", body: str = "", step: str = "pass", bases: str = "TextEnv", ret: str = "''") -> str:
    indented = "".join(f"    {line}\n" for line in body.split("\n")) if body else ""
    steps = "".join(f"        {line}\n" for line in step.split("\n"))
    return (
        f"{above}\nclass AEnv({bases}):\n    def reset(self, seed=None):\n        return '', {{}}\n{indented}"
        f"    def step(self, action):\n{steps}        return str({ret}), 0.0, False, False, {{}}\n"
    )


SHARED = {
    "posonly cls": program(body="n = 0\n@classmethod\ndef note(cls, /):\n    cls.n += 1\n    return cls.n", step="r = self.note()", ret="r"),
    "vararg cls": program(body="n = 0\n@classmethod\ndef note(*a):\n    c = a[0]\n    c.n += 1\n    return c.n", step="r = self.note()", ret="r"),
    "getattr class": program(body="n = 0", step="getattr(self, '__class__').n = self.n + 1", ret="self.n"),
    "attrgetter class": program(above="from operator import attrgetter", body="n = 0", step="c = attrgetter('__class__')(self)\nc.n += 1", ret="self.n"),
    "attrgetter table": program(above="from operator import attrgetter", body="T = [1]", step="attrgetter('T')(self).append(1)", ret="len(self.T)"),
    "match kwd": program(body="T = [1]", step="match self:\n    case AEnv(T=t):\n        t.append(1)", ret="len(self.T)"),
    "fields factory": program(above="from dataclasses import dataclass, field, fields\n@dataclass\nclass D:\n    x: list = field(default_factory=lambda: [])", step="f = fields(D())[0].default_factory\nf.n = getattr(f, 'n', 0) + 1", ret="f.n"),
    "fields type": program(above="from dataclasses import dataclass, field, fields\nclass Q:\n    n = 0\n@dataclass\nclass D:\n    x: Q = 0", step="f = fields(D())[0].type\nf.n += 1", ret="f.n"),
    "lambda default": program(above="from dataclasses import dataclass, field\n@dataclass\nclass D:\n    x: list = field(default_factory=lambda s=[]: s)", step="d = D()\nd.x.append(1)", ret="len(d.x)"),
    "namedtuple class": program(above="Pt = namedtuple('Pt', 'x y')", step="Pt.n = (Pt.n if hasattr(Pt, 'n') else 0) + 1", ret="Pt.n"),
    "base call": program(above="class B(namedtuple('B0', 'x', defaults=[[]])):\n    pass", step="b = B()\nb.x.append(1)", ret="len(b.x)"),
    "enum alias": program(above="from enum import Enum as E\nclass C(E):\n    A = 1", step="c = C.A\nc.n = getattr(c, 'n', 0) + 1", ret="c.n"),
    "enum mixin": program(above="from enum import Enum\nclass M:\n    k = 0\n    def note(self):\n        self.k += 1\n        return self.k\nclass C(M, Enum):\n    A = 1", step="r = C.A.note()", ret="r"),
    "enum by class method": program(above="from enum import Enum\nclass C(Enum):\n    A = 1", body="def note(self):\n    self.k = (self.k if hasattr(self, 'k') else 0) + 1\n    return self.k", step="r = AEnv.note(C.A)", ret="r"),
    "enum map": program(above="from enum import Enum\nclass C(Enum):\n    A = 1", step="C._member_names_.append('A')", ret="len(list(C))"),
    "enum members proxy": program(above="from enum import Enum\nclass C(Enum):\n    A = 1\nclass B:\n    def __eq__(self, o):\n        o[len(o)] = 1\n        return True", step="C.__members__ == B()", ret="len(C.__members__)"),
    "setter": program(above="class Box:\n    def __init__(self):\n        self.items = []\nclass D:\n    @staticmethod\n    def setter(f):\n        return Box()", body="@D.setter\ndef box(self):\n    pass", step="self.box.items.append(1)", ret="len(self.box.items)"),
    "walrus decorator": program(above="from dataclasses import dataclass\n@dataclass(frozen=(SEEN := []) is None)\nclass D:\n    x: int = 0", step="SEEN.append(1)", ret="len(SEEN)"),
    "walrus annotation": program(body="x: (SEEN := []) = 1", step="self.SEEN.append(1)", ret="len(self.SEEN)"),
    "walrus base": program(above="class B((SEEN := []) or TextEnv):\n    pass", step="SEEN.append(1)", ret="len(SEEN)"),
    "max two": program(body="T = [1]", step="max(self.T, []).append(1)", ret="len(self.T)"),
    "sum start": program(body="T = [1]", step="sum([], self.T).append(1)", ret="len(self.T)"),
    "ns choice": program(above="from types import SimpleNamespace", body="T = [1]", step="SimpleNamespace(choice=lambda t: t.append(1)).choice(self.T)", ret="len(self.T)"),
    "ns choice star": program(above="from types import SimpleNamespace", body="T = [1]", step="SimpleNamespace(**{'cho'+'ice': lambda t: t.append(1)}).choice(self.T)", ret="len(self.T)"),
    "nt choice": program(above="N = namedtuple('N', 'choice')", body="T = [1]", step="N(lambda t: t.append(1)).choice(self.T)", ret="len(self.T)"),
    "nt choice local": program(body="T = [1]", step="N = namedtuple('N', ['cho' + 'ice'])\nN(lambda t: t.append(1)).choice(self.T)", ret="len(self.T)"),
    "method function": program(body="def f(self):\n    pass", step="g = AEnv.f\ng.n = getattr(g, 'n', 0) + 1", ret="g.n"),
    "static function": program(body="@staticmethod\ndef f():\n    pass", step="self.f.n = (self.f.n if hasattr(self.f, 'n') else 0) + 1", ret="self.f.n"),
    "static by getattr": program(body="@staticmethod\ndef f():\n    pass", step="g = getattr(self, 'f')\ng.n = getattr(g, 'n', 0) + 1", ret="g.n"),
    "property fget": program(body="@property\ndef f(self):\n    pass", step="g = AEnv.f.fget\ng.n = getattr(g, 'n', 0) + 1", ret="g.n"),
    "nested class": program(body="class N:\n    n = 0", step="self.N.n += 1", ret="self.N.n"),
    "nested class var": program(body="class N:\n    n = 0", step="k = self.N\nk.n += 1", ret="self.N.n"),
    "const max": program(above="T = max([1], [2])", step="T.append(1)", ret="len(T)"),
    "const sum": program(above="T = sum([], [1])", step="T.append(1)", ret="len(T)"),
    "const max default": program(above="T = max([], default=[1])", step="T.append(1)", ret="len(T)"),
    "slice inner": program(body="T = [[1]]", step="self.T[:][0].append(1)", ret="len(self.T[0])"),
    "slice object": program(body="T = [[1]]", step="s = slice(0, 1)\nfor v in self.T[s]: v.append(1)", ret="len(self.T[0])"),
    "slice getitem": program(above="T = [[1]]\nclass B:\n    def __getitem__(self, k):\n        for v in T[k]: v.append(1)", step="B()[:]", ret="len(T[0])"),
    "dict copy": program(body="T = {'a': [1]}", step="dict(self.T)['a'].append(1)", ret="len(self.T['a'])"),
    "update copy": program(body="T = {'a': [1]}", step="d = {}\nd.update(self.T)\nd['a'].append(1)", ret="len(self.T['a'])"),
    "counter copy": program(body="T = {'a': [1]}", step="Counter(self.T)['a'].append(1)", ret="len(self.T['a'])"),
    "dict or": program(body="T = {'a': [1]}", step="(self.T | {})['a'].append(1)", ret="len(self.T['a'])"),
    "dict choice": program(body="T = {0: [1]}", step="random.choice(self.T).append(1)", ret="len(self.T[0])"),
    "index eq": program(above="class B:\n    def __eq__(self, o):\n        o.append(1)\n        return True", body="T = [[1]]", step="self.T.index(B())", ret="len(self.T[0])"),
    "in eq": program(above="class B:\n    def __eq__(self, o):\n        o.append(1)\n        return True", body="T = [[1]]", step="B() in self.T", ret="len(self.T[0])"),
    "chain in": program(above="class B:\n    def __contains__(self, o):\n        o.append(1)\n        return True", body="T = [1]", step="1 in self.T in B()", ret="len(self.T)"),
    "truediv": program(above="class B:\n    def __rtruediv__(self, o):\n        o.append(1)\n        return True", body="T = [1]", step="self.T / B()", ret="len(self.T)"),
    "rpow": program(above="class B:\n    def __rshift__(self, o):\n        o.append(1)\n        return True", body="T = [1]", step="B() >> self.T", ret="len(self.T)"),
    "view mapping": program(above="class B:\n    def __eq__(self, o):\n        o[len(o)] = 1\n        return True", body="T = {'a': 1}", step="self.T.keys().mapping == B()", ret="len(self.T)"),
    "nt defaults dict": program(above="from typing import NamedTuple\nclass N(NamedTuple):\n    x: int = 0", step="d = N()._field_defaults\nd['n'] = d.get('n', 0) + 1", ret="d['n']"),
    "nt table": program(above="from typing import NamedTuple\nclass N(NamedTuple):\n    T: tuple = ([1],)", step="N()[0][0].append(1)", ret="len(N()[0][0])"),
    "dc table": program(above="from dataclasses import dataclass\n@dataclass\nclass N:\n    T: tuple = ([1],)", step="match N():\n    case N(t):\n        t[0].append(1)", ret="len(t[0])"),
    "wraps": program(above="from functools import wraps", body="@staticmethod\ndef f():\n    pass", step="w = wraps(self.f)(self.f)\nw.n = (w.n if hasattr(w, 'n') else 0) + 1", ret="w.n"),
    "copy fn": program(body="@staticmethod\ndef f():\n    pass", step="import copy as cp\nw = cp.deepcopy(self.f)\nw.n = (w.n if hasattr(w, 'n') else 0) + 1", ret="w.n"),
    "callable attr via list": program(body="@staticmethod\ndef f():\n    pass", step="w = [self.f][0]\nw.n = (w.n if hasattr(w, 'n') else 0) + 1", ret="w.n"),
    "posonly recv enum": program(above="from enum import Enum\nclass C(Enum):\n    A = 1\n    def note(self, /):\n        self.n = (self.n if hasattr(self, 'n') else 0) + 1\n        return self.n", step="r = C.A.note()", ret="r"),
    "map attrgetter": program(above="import operator", step="c = list(map(operator.attrgetter('__class__'), [self]))[0]\nc.n = (c.n if hasattr(c, 'n') else 0) + 1", ret="c.n"),
    "match mapping": program(body="T = {'a': [1]}", step="match {'k': 1}:\n    case {'k': x}:\n        pass\nmatch self.T:\n    case {'a': t}:\n        t.append(1)", ret="len(self.T['a'])"),
    "view of depth2 keys mapping via match": program(body="T = {'a': [1]}", above="from collections.abc import KeysView", step="match self.T.keys():\n    case KeysView(mapping=m):\n        m['a'].append(1)", ret="len(self.T['a'])"),
    "methodcaller get": program(above="import operator", body="T = {'a': [1]}", step="operator.methodcaller('get', 'a')(self.T).append(1)", ret="len(self.T['a'])"),
    "generator arg": program(body="T = [[1]]", step="g = (r for r in self.T)\nnext(g).append(1)", ret="len(self.T[0])"),
    "slice by name arg": program(body="T = [[1]]", above="from itertools import islice", step="mk = [slice][0]\nfor v in self.T[mk(0, 1)]: v.append(1)", ret="len(self.T[0])"),
    "slice via map": program(body="T = [[1]]", step="for s in map(slice, [1]):\n    for v in self.T[s]: v.append(1)", ret="len(self.T[0])"),
    "fstring getattr2": program(body="n = 0", step="k = '__class__'\nx = getattr(self, f'{k}')\nx.n += 1", ret="x.n"),
    "pct getattr": program(body="n = 0", step="x = getattr(self, '%s' % '__class__')\nx.n += 1", ret="x.n"),
    "pct getattr2": program(body="n = 0", step="x = getattr(self, ' _' [1:] + '_class__')\nx.n += 1", ret="x.n"),
    "mul getattr": program(body="n = 0", step="x = getattr(self, 'x' * 0 + '__class__')\nx.n += 1", ret="x.n"),
    "cond getattr": program(body="n = 0", step="x = getattr(self, *('__class__',))\nx.n += 1", ret="x.n"),
    "getattr default": program(body="n = 0", step="x = getattr(self, 'zz', AEnv)\nx.n += 1", ret="x.n"),
    "pct prefix3": program(body="n = 0", step="x = getattr(self, '%s_class__' % '_')\nx.n += 1", ret="x.n"),
    "local class fn": program(body="def f(self):\n    pass", step="class L(AEnv):\n    pass\ng = L.f\ng.n = (g.n if hasattr(g, 'n') else 0) + 1", ret="g.n"),
    "local alias": program(body="def f(self):\n    pass", step="class L(AEnv):\n    h = 1\nk = L\ng = k.f\ng.n = (g.n if hasattr(g, 'n') else 0) + 1", ret="g.n"),
}  # fmt: skip

OF_THE_PROCESS = {
    "register own": program(above="from abc import ABC\nclass B(ABC):\n    pass", step="n = isinstance(1, B)\nB.register(int)", ret="n"),
    "groupindex own modules": program(above="seen = []\nR = re.compile('(?P<a>x)(y)')\nclass B:\n    def __eq__(self, o):\n        o[len(o)] = 1\n        return True", step="seen.append(1)\nR.groupindex == B()", ret="len(R.groupindex)"),
    "metadata own modules": program(above="import gymnasium\nseen = []", bases="gymnasium.Env", step="seen.append(1)\nself.metadata['n'] = self.metadata.get('n', 0) + 1", ret="self.metadata['n']"),
    "decimal fullwidth": program(above="import decimal\nseen=[]", step="seen.append(1)\ndecimal.getcontex\uff54().prec += 1", ret="decimal.getcontex\uff54().prec"),
    "decimal getattr": program(above="import decimal\nseen=[]", step="seen.append(1)\nc=getattr(decimal, 'getcon'+'text')()\nc.prec += 1", ret="c.prec"),
    "decimal attrgetter": program(above="import decimal\nfrom operator import attrgetter", step="c=attrgetter('getcon'+'text')(decimal)()\nc.prec += 1", ret="c.prec"),
    "decimal escaped": program(above="import decimal\nfrom operator import attrgetter", step="c=attrgetter('getc\\x6fntext')(decimal)()\nc.prec += 1", ret="c.prec"),
    "register num": program(above="import numbers\nseen=[]", step="n = isinstance('a', numbers.Number)\nnumbers.Number.register(str)", ret="n"),
    "metadata empty": program(above="from dataclasses import dataclass, fields\nseen=[]\n@dataclass\nclass D:\n    x: int = 0\nclass B:\n    def __eq__(self, o):\n        o[len(o)] = 1\n        return True", step="seen.append(1)\nm = fields(D())[0].metadata\nm == B()", ret="len(m)"),
}  # fmt: skip
"""What reached objects of the library, which even modules of their own do not keep apart."""

HARMLESS = {
    "methods by a prefix": program(body="def cmd_a(self):\n    return 1", step="k = 'a'\nx = getattr(self, f'cmd_{k}')()", ret="x"),
    "a key of one's own": program(body="@staticmethod\ndef f(x):\n    return x", step="x = sorted([1], key=self.f)", ret="x"),
    "a named tuple": program(above="P = namedtuple('P', 'x y')", step="p = P(1, 2)\nq = p._replace(x=3)", ret="q.x"),
    "a parent's method": program(above="class B(TextEnv):\n    def f(self):\n        return 1", bases="B", step="x = B.f(self)", ret="x"),
    "rows of a map": program(body="MAP = [[1, 2], [3, 4]]", step="i = 1\nx = self.MAP[i][0] + len(self.MAP[0][1:])", ret="x"),
    "a registered class": program(above="from collections.abc import Sized", step="class Own:\n    pass\nSized.register(Own)\nx = isinstance(Own(), Sized)", ret="x"),
    "groups by name": program(above="R = re.compile('(?P<a>x)')", step="x = dict(R.groupindex)", ret="x"),
    "metadata of gymnasium": program(above="import gymnasium", bases="gymnasium.Env", step="self.metadata['a'] = 1", ret="self.metadata"),
}  # fmt: skip


def reached(sandbox: Sandbox, source: str) -> bool:
    """Whether the second session notices what the first one did."""
    opened = sandbox.open(source)
    try:
        first, second = opened.session(), opened.session()
        first.reset(0)
        second.reset(0)
        seen = [first.step("").observation for _ in range(3)]
        return second.step("").observation != seen[0]
    finally:
        opened.close()


@pytest.mark.parametrize("name", SHARED)
def test_no_way_is_overlooked(name: str, sandbox: Sandbox) -> None:
    reasons = check(SHARED[name])
    if name == "walrus annotation" and sys.version_info >= (3, 14):
        assert "syntax error" in reasons[0].message  # there, annotations bind nothing
        return
    assert not reasons
    assert not is_stateless(ast.parse(SHARED[name]))
    assert not reached(sandbox, SHARED[name])


@pytest.mark.parametrize("name", OF_THE_PROCESS)
def test_the_library_carries_nothing(name: str, sandbox: Sandbox) -> None:
    assert not check(OF_THE_PROCESS[name])
    with contextlib.suppress(ProgramRaised):  # refused when it runs
        assert not reached(sandbox, OF_THE_PROCESS[name])


@pytest.mark.parametrize("name", HARMLESS)
def test_the_ordinary_still_works(name: str, sandbox: Sandbox) -> None:
    assert not check(HARMLESS[name])
    assert not reached(sandbox, HARMLESS[name])
