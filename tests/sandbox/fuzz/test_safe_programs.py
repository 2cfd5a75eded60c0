"""Programs that attack nothing do under the guards what they do under plain Python: same value, or same exception."""

from random import Random

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from spade_envs.sandbox.loader import make_namespace
from spade_envs.sandbox.policy import compile_program

HEADER = """
from dataclasses import dataclass, field
from enum import Enum
from functools import partial, reduce
import copy, operator, itertools
@dataclass(order=True)
class Point:
    x: int = 1
    _y: int = 2
class Shade(Enum):
    RED = 1
    BLUE = 2
class Box(list):
    size = property(len)
    def __init__(self, *items):
        super().__init__(items)
        self._n, self.text = 3, "a{0}b{1!r:>4}"
    def grow(self, by=1):
        self._n += by
        def inner(): return self._n
        return inner() + len(self)
    @classmethod
    def of(cls, n): return cls(*range(n))
    def __getitem__(self, key): return super().__getitem__(key) if self else None
p, b, d = Point(3, 4), Box(1, 2, 3), {"k": 1, "x": [2, 3]}
"""
ATOMS = [
    "p.x",
    "p._y",
    "b",
    "b._n",
    "b.size",
    "len(b)",
    "d",
    "'text'",
    "3",
    "-1",
    "2.5",
    "None",
    "True",
    "(1,2)",
    "[3,1,2]",
    "Shade.RED",
    "Shade.RED.value",
    "b.text",
]
CALLS = (
    "getattr({a}, 'x', {b})",
    "{a} + {b}",
    "{a} * {b}",
    "({a}, {b})[0]",
    "[{a}, {b}][-1]",
    "{{1: {a}}}.get({b}, {a})",
    "{a} if {b} else {a}",
    "str({a}).format({b}, {a})",
    "b.text.format({a}, {b})",
    "'{{0[0]}} {{1}}'.format({a}, {b})",
    "f'{{p.x!r:>{{b.size}}}}'",
    "'%s %r' % ({a}, {b})",
    "sorted([{a}, {b}], key=str)",
    "max({a}, {b}, key=repr)",
    "list(map(lambda o: (o, {a}), [{b}]))",
    "[q for q in [{a}, {b}] if q is not None]",
    "reduce(operator.add, [{a}, {b}])",
    "copy.deepcopy([{a}, {b}])",
    "copy.copy({a})",
    "b.grow({a})",
    "Box.of({a})",
    "partial(lambda s, t: (t, s), {a})({b})",
    "isinstance({a}, type({b}))",
    "type({a}).__name__",
    "(q := {a}, q)",
    "hasattr({a}, 'x')",
    "operator.attrgetter('x')({a})",
    "Shade({a})",
    "{a} == {b}",
    "{a} < {b}",
    "b[{a}]",
    "d[{a}]",
)
STATEMENTS = (
    "p.x = {a}",
    "p._y += {a}",
    "b.grow({a})",
    "setattr(p, 'x', {a})",
    "d[{a}] = {b}",
    "for q, *rest in [({a}, {b})]: p.x = q",
    "match {a}:\n    case Point(x=q): p.x = q\n    case [q, *_] | {{'k': q}}: p._y = q\n    case int(q): d[q] = {b}",
    "try: {a}[{b}]\nexcept (TypeError, KeyError, IndexError) as e: d['e'] = type(e).__name__\nfinally: d['f'] = 1",
    "def g(o=({a})):\n    yield from [o]\nd['g'] = list(g())",
    "class C(Point):\n    def f(self): return super().__repr__(), self._y\nd['c'] = C({a}).f()",
    "assert {a}, {b}",
)


def expression(random: Random, depth: int = 3) -> str:
    if depth == 0 or random.randint(0, 3) == 0:
        return random.choice(ATOMS)
    template = random.choice(CALLS)
    return "(" + template.format(a=expression(random, depth - 1), b=expression(random, depth - 1)) + ")"


def program(random: Random) -> str:
    lines = [
        random.choice(STATEMENTS).format(a=expression(random), b=expression(random))
        for _ in range(random.randint(0, 4))
    ]
    return HEADER + "\n".join([*lines, f"r = repr((p, b, d, {expression(random)}))"])


def outcome(code, namespace) -> str:
    try:
        exec(code, namespace)
    except Exception as error:
        return type(error).__name__
    return namespace["r"]


@settings(max_examples=250, derandomize=True, deadline=None, database=None)
@given(st.randoms(use_true_random=False))
def test_the_guarded_program_does_what_the_plain_one_does(random):
    source = program(random)
    try:
        native = compile(source, "plain", "exec", dont_inherit=True)
    except SyntaxError:  # a walrus where none may stand
        reject()
    guarded = outcome(compile_program(source), make_namespace())  # makes the module that dataclasses look up, too
    plain = outcome(native, {"__name__": "environment"})
    assert guarded == plain
