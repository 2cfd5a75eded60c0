"""The static policy: what it lets through, what it refuses, and how it says so."""

import ast
import enum
import re
import typing
from abc import ABCMeta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_envs.sandbox import PolicyViolation
from spade_envs.sandbox.allowlist import importable
from spade_envs.sandbox.loader import load_program, make_namespace
from spade_envs.sandbox.names import METACLASS_PRIVATES, attribute_refusal, is_private
from spade_envs.sandbox.policy import MAX_SOURCE_CHARS, check, compile_program

ACCEPTED = {
    "private state": "class A:\n    def f(self):\n        self._x = 1\n        self._x += 1\n        return self._x",
    "items": "d = {}\nd['a'] = 1\nd['a'] += 1\ndel d['a']",
    "nonlocal": "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    return g",
    "global": "N = 0\ndef f():\n    global N\n    N += 1",
    "super": "class B:\n    pass\nclass A(B):\n    def __init__(self, **kw):\n        super().__init__(**kw)",
    "private through super": "class B:\n    def _f(self): return 1\nclass A(B):\n    def g(self): return super()._f()",
    "match": (
        "def f(x):\n    match x:\n        case ['go', ('a' | 'b') as d, *rest] if d: return rest\n"
        "        case {'k': v, **r}: return v\n        case int(n): return n\n        case _: return None"
    ),
    "walrus": "if (m := 3) > 2:\n    pass",
    "annotations": "x: int = 1\ndef f(a: int, *b: str, **c: float) -> 'Any': y: list = []; return y",
    "ellipsis": "def f(): ...",
    "print": "print('hello', 1)",
    "main guard": "if __name__ == '__main__':\n    print(1)",
    "builtin names as variables": "def f(dir, input=1):\n    open = [1]\n    vars = dir\n    return open, input, vars",
    "method with a builtin's name": "class A:\n    def open(self): return 1\nA().open()",
    "module names as variables": (
        "def f():\n    string = 'a b'\n    return string.split_me if False else string.split()"
    ),
    "f-strings": "x = 1.5\ny = f'{x!r:>{10}} {x:.2f}'",
    "try": (
        "try:\n    pass\nexcept (ValueError, KeyError) as e:\n"
        "    raise RuntimeError('x') from e\nelse:\n    pass\nfinally:\n    pass"
    ),
    "abc": (
        "from abc import ABC, ABCMeta, abstractmethod\n"
        "class A(metaclass=ABCMeta):\n    @abstractmethod\n    def f(self): ..."
    ),
    "star import": "from typing import *\nx: List[int] = []",
    "sys and time": "import sys, time\nt = time.time()\nif False: sys.exit(0)",
    "future": "from __future__ import annotations",
    "object setattr": "class A:\n    def __post_init__(self): object.__setattr__(self, 'x', 1)",
    "dunder alias in a class": (
        "class A:\n    def __add__(self, o): return o\n    __radd__ = __add__\n    __hash__ = None"
    ),
    "slots": "class A:\n    __slots__ = ('a',)",
    "type of": "class A:\n    def __eq__(self, o): return type(self) is type(o) and self.__class__.__name__ == 'A'",
    "submodule": "import collections.abc\nfrom collections import abc\nx = collections.abc.Iterable",
    "import that may fail": "try:\n    import numpy as np\nexcept ImportError:\n    np = None",
    "from import that may fail": "try:\n    from scipy import stats\nexcept (ImportError, OSError):\n    stats = None",
    "output streams": "import sys\nprint('x', file=sys.stderr)\nsys.stdout.flush()",
    "published names without import": "x = random.Random(1)\ny = Counter('a')\nz: Dict[str, Any] = {}\nw = math.pi",
}

REFUSED = {  # source -> (line, what the reason must mention)
    "x = 1\nimport os": (2, "os"),
    "import numpy as np": (1, "opt-in"),
    "import colections": (1, "collections"),
    "from os import path": (1, "files"),
    "from math import sqroot": (1, "sqrt"),
    "import random\n\nx = random.randit(1, 2)": (3, "randint"),
    "x = math.PI": (1, "pi"),
    "from . import x": (1, "relative"),
    "try:\n    import os\nexcept ValueError:\n    pass": (2, "os"),
    "try:\n    pass\nexcept ImportError:\n    import os": (4, "os"),
    "x = eval('1')": (1, "literal_eval"),
    "x = open('f')": (1, "source"),
    "x = input()": (1, "step(action)"),
    "x = globals()": (1, "dict"),
    "x = ().__class__.__bases__": (1, "__bases__"),
    "class A:\n    def f(self):\n        return self.__dict__": (3, "name the attributes"),
    "class A:\n    def __getattr__(self, n): return n": (2, "__getattr__"),
    "class A:\n    def __new__(cls): return 1": (2, "__init__"),
    "class A(metaclass=type):\n    pass": (1, "metaclass"),
    "async def f(): pass": (1, "plain function"),
    "try:\n    pass\nexcept* ValueError:\n    pass": (1, 'use "except"'),
    "math.pi = 3": (1, "read-only"),
    "_sbx_own = 1": (1, "reserved"),
    "class A:\n    pass\nmatch A():\n    case A(x): pass": (4, "A(field=...)"),
    "def f(:": (1, "syntax error"),
    "from __future__ import division": (1, "remove it"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_ordinary_python_is_accepted(name):
    assert check(ACCEPTED[name]) == ()
    exec(compile_program(ACCEPTED[name]), make_namespace())


@pytest.mark.parametrize("source", REFUSED)
def test_refusals_name_the_line_and_a_remedy(source):
    line, mention = REFUSED[source]
    reasons = check(source)
    assert reasons[0].line == line
    assert mention in reasons[0].message
    with pytest.raises(PolicyViolation, match="line"):
        compile_program(source)


def test_every_refusal_is_reported_once_and_in_order():
    reasons = check("import os\nx = eval('1')\ny = x.__globals__\nimport os")
    assert [reason.line for reason in reasons] == [1, 2, 3, 4]


def test_numpy_is_opt_in():
    source = "import numpy as np\nx = np.zeros(3).tofile"
    assert check(source)
    assert check(source, frozenset({"numpy"})) == ()
    assert "lib" in check("import numpy\nx = numpy.lib", frozenset({"numpy"}))[0].message


@pytest.mark.parametrize(
    "source",
    [
        "x" * (MAX_SOURCE_CHARS + 1),
        "x=" + "-" * 30_000 + "1",
        "x=" + "(" * 400 + ")" * 400,
        "x=a" + ".a" * 20_000,
        "x=" + "+".join(["1"] * 50_000),
        "x=" + "lambda:" * 3_000 + "1",
        "if a:pass\n" + "elif a:pass\n" * 4_000,
        "x='\x00'",
        "\ud800",
    ],
)
def test_source_bombs_are_refusals(source):
    reasons = check(source)
    assert reasons
    assert all(reason.message for reason in reasons)


def test_literal_access_stays_native():
    code = compile_program(
        "class A:\n    def f(self, other):\n        return [o.cost for o in other.items] + self._log[0]"
    )
    names = set()
    stack = [code]
    while stack:
        one = stack.pop()
        names.update(one.co_names)
        stack += [constant for constant in one.co_consts if hasattr(constant, "co_names")]
    assert {"cost", "items", "_log"} <= names
    assert "_sbx_getattr" not in names
    assert {name for name in names if name.startswith("_sbx")} == {"_sbx_own", "_sbx_type", "_sbx_classes"}


def test_annotations_are_not_inherited_as_strings():
    namespace = {"__name__": "x"}
    exec(compile_program("class A:\n    x: int = 1"), namespace)
    assert namespace["A"].__annotations__ == {"x": int}


def test_metaclass_privates_are_all_refused():
    metaclasses = [enum.EnumMeta, ABCMeta, type(typing.Protocol), type(typing.TypedDict("T", {})), type(typing.Any)]
    for metaclass in metaclasses:
        for name in set(dir(metaclass)) - set(dir(type)):
            if is_private(name):
                assert name in METACLASS_PRIVATES, f"{metaclass.__name__}.{name}"
                assert attribute_refusal(name, reading=True)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_gives_reasons_or_code(source):
    if not check(source):
        compile_program(source)


@settings(max_examples=200, deadline=None)
@given(
    st.from_regex(r"__[a-z]{1,12}__", fullmatch=True), st.sampled_from(["x.{}", "x.{} = 1", "del x.{}", "f(x).{}()"])
)
def test_dunders_outside_the_list_never_compile(name, form):
    source = form.format(name)
    tree = ast.parse(source)
    reading = any(isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) for node in ast.walk(tree))
    if attribute_refusal(name, reading=reading):
        assert check(source)


def test_documented_modules_and_example():
    page = (Path(__file__).parents[2] / "docs/programs.md").read_text()
    section = page.partition("## Modules")[2].partition("`numpy` is opt-in")[0]
    assert re.findall(r"`([\w.]+)`", section) == importable()
    example = page.partition("```python\n")[2].partition("```")[0]
    environment = load_program(example)()
    environment.reset(seed=3)
    assert environment.step(f"\\boxed{{{environment.solution()}}}")[1] == 1.0
