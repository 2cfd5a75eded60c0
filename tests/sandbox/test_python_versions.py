"""What differs between versions of Python reaches nothing in any of them, and programs do the same in all.

Each program runs in a real worker; what a version lacks ends in an ``AttributeError`` or a ``NameError`` there.
"""

import sys

import pytest

from spade_envs.sandbox import PolicyViolation
from spade_envs.sandbox.policy import check

NEWER = """
from typing import NamedTuple, TypedDict, TypeVar
KEPT = []
def keep(value):
    KEPT.append(value)
    return int
class ProbeEnv:
    def reset(self, seed=None): return "ready", {{}}
    def step(self, action):
        try:
            found = self.reach()
        except BaseException as error:
            return "stopped: " + type(error).__name__, 0.0, True, False, {{}}
        return "reached: " + str(found), 0.0, True, False, {{}}
    def reach(self):
{body}
"""
REACHES = {
    "a bound's text, by name": "return TypeVar('T', bound='open').evaluate_bound(1).evaluate()",
    "a bound's text, as code": """
ref = TypeVar('T', bound="__import__('os').getpid()").evaluate_bound(1)
return ref.evaluate(globals={})""",
    "globals that evaluation fills": """
names = {}
TypeVar('T', bound='1 + 1').evaluate_bound(1).evaluate(globals=names)
return names['__builtins__']""",
    "a default's text": "return TypeVar('T', default='open').evaluate_default(1).evaluate()",
    "a constraint's text": """
refs = TypeVar('T', 'open', 'eval').evaluate_constraints(1)
return refs[0].evaluate()""",
    "by a computed name": """
ref = getattr(TypeVar('T', bound='open'), 'evaluate' + '_bound')(1)
return getattr(ref, 'evalu' + 'ate')()""",
    "a field's type": """
@dataclass
class Box:
    content: undefined
return dataclasses.fields(Box)[0].type.evaluate(globals={'undefined': 1})""",
    "what an annotation of a named tuple got": """
class Pair(NamedTuple):
    first: keep(undefined)
return KEPT[0].evaluate(globals={'undefined': 1})""",
    "what an annotation of a typed dictionary got": """
class Card(TypedDict):
    first: keep(undefined.more)
return KEPT[0].evaluate(globals={'undefined': 1})""",
    "code in a field's name": """
Card = TypedDict('Card', {"x): pass\\\\n  KEPT.append(__import__('os'))\\\\n  def f(y": int})
return dataclass(repr=False, eq=False)(Card)""",
}


@pytest.mark.parametrize("name", REACHES)
def test_nothing_evaluates_text(sandbox, name):
    body = "".join(f"        {line}\n" for line in REACHES[name].strip("\n").split("\n"))
    source = NEWER.format(body=body)
    assert not check(source)
    program = sandbox.open(source)
    session = program.session()
    session.reset(1)
    assert session.step("go").observation.startswith("stopped: ")
    program.close()


@pytest.mark.parametrize(
    "source",
    [
        "class Box[T]: pass",
        "def first[T](values: list[T]) -> T: return values[0]",
        "type Pair = tuple[int, int]",
        "try: pass\nexcept* ValueError: pass",
        'name = "x"\nt"{name}"',
        "class C:\n    __annotate__ = None",
        "class C:\n    x: int\nC.__annotate__",
        "class C: pass\nC.__static_attributes__",
        "class C: pass\nC.__firstlineno__",
        "class C: pass\nC().__replace__(x=1)",
        "def f(): pass\nf.__type_params__",
    ],
)
def test_newer_syntax_and_names_are_refused(source):
    assert check(source)


def test_annotations_mean_the_same_in_all_versions(sandbox):
    source = """
from typing import NamedTuple
@dataclass
class Box:
    width: int
    names: list = field(default_factory=list)
    shared: ClassVar[int] = 7
    _hidden: "int" = 3
class Pair(NamedTuple):
    first: int
    second: str = "b"
class BoxEnv:
    def reset(self, seed=None): return "ready", {}
    def step(self, action):
        fields = [(f.name, f.type if type(f.type) is str else f.type.__name__) for f in dataclasses.fields(Box)]
        return f"{Box(1)} {Pair(1)} {fields}", 0.0, True, False, {}
"""
    program = sandbox.open(source)
    session = program.session()
    session.reset(1)
    assert session.step("go").observation == (
        "Box(width=1, names=[], _hidden=3) Pair(first=1, second='b') "
        "[('width', 'int'), ('names', 'list'), ('_hidden', 'int')]"
    )
    program.close()


def test_a_calculator_reads_numbers_as_in_older_versions(sandbox):
    source = """
import ast
class CalculatorEnv:
    def reset(self, seed=None): return "ready", {}
    def step(self, action):
        return str(self.value(ast.parse(action, mode="eval").body)), 0.0, True, False, {}
    def value(self, node):
        if isinstance(node, ast.Num):
            return node.n
        if isinstance(node, ast.Str):
            return len(node.s)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.value(node.left) + self.value(node.right)
        return -1
"""
    program = sandbox.open(source)
    session = program.session()
    session.reset(1)
    assert session.step("2 + 3.5 + 'abc' + True").observation == "7.5"
    program.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="quotes of the same kind nest in f-strings from Python 3.12")
def test_nested_quotes_are_checked_like_others(sandbox):
    with pytest.raises(PolicyViolation):
        sandbox.open('x = {}\nf"{x["a"].__class__.__mro__}"')


def test_what_python_loads_late_is_there(sandbox):
    source = """
import ast
class LateEnv:
    def reset(self, seed=None): return "ready", {}
    def step(self, action):
        large = (10 ** 30_000 + 7) // 3 ** 12_000
        random.seed("a text")
        drawn = random.Random("another").random() + random.random()
        when = datetime.datetime.strptime("2024-02-29", "%Y-%m-%d")
        matched = re.sub(r"(a)(b)", r"\\2\\1", string.Template("$x").substitute(x="ab"))
        total = statistics.stdev([1, 2, 4])
        shown = f"{Decimal('1.5'):.3f} {Fraction(1, 3)} {textwrap.shorten('a b c', 5)} {json.dumps([1.5])}"
        return f"{large % 97} {drawn > 0} {when.year} {matched} {total > 1} {shown}", 0.0, True, False, {}
"""
    program = sandbox.open(source)
    session = program.session()
    session.reset(1)
    large = (10**30_000 + 7) // 3**12_000
    assert session.step("go").observation == f"{large % 97} True 2024 ba True 1.500 1/3 a b c [1.5]"
    program.close()


def test_schemas_of_tools_are_read(sandbox):
    source = """
class ShopEnv(ToolEnv):
    def tool_buy(self, name: str, count: int = 1, colours: list[str] = None, kind: Optional[int] = None) -> str:
        return name
"""
    program = sandbox.open(source)
    properties = program.session().tools()[0]["function"]["parameters"]["properties"]
    assert properties["colours"] == {"type": "array", "items": {"type": "string"}}
    assert properties["count"]["type"] == "integer"
    program.close()
