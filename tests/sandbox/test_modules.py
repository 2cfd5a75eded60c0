"""Frozen modules, and randomness and time that belong to the instance."""

import copy
import random
import subprocess
import sys
import types
from pathlib import Path

import pytest

from spade_envs.sandbox import generator, modules
from spade_envs.sandbox.allowlist import ALL, MODULES, OPTIONAL, PREBOUND, importable, public_names
from spade_envs.sandbox.loader import load_program, make_namespace, use_generator
from spade_envs.sandbox.policy import compile_program

NUMPY = frozenset({"numpy"})


def run(source: str, allow: frozenset[str] = frozenset()) -> dict:
    namespace = make_namespace(allow)
    exec(compile_program(source, allow), namespace)
    return namespace


@pytest.mark.parametrize("module", importable(NUMPY))
def test_proxies_hold_no_modules_and_cannot_be_changed(module):
    proxy = modules.load_module(module, NUMPY)
    for name in public_names(module, NUMPY):
        if hasattr(proxy, name):
            assert not isinstance(getattr(proxy, name), types.ModuleType)
            with pytest.raises(TypeError, match="read-only"):
                setattr(proxy, name, 1)
    assert copy.deepcopy(proxy) is proxy


def test_listed_names_exist():
    missing = [
        f"{module}.{name}"
        for module, names in {**MODULES, **OPTIONAL["numpy"]}.items()
        if names != ALL
        for name in names.split()
        if not hasattr(modules.load_module(module, NUMPY), name)
    ]
    assert missing == []
    assert all(set(names.split()) <= public_names(module) for module, names in PREBOUND.items())


@pytest.mark.parametrize(
    "name",
    [
        "functools.wraps",
        "functools.update_wrapper",
        "operator.attrgetter",
        "sys.exit",
        "operator.methodcaller",
        "dataclasses.dataclass",
        "random.Random",
        "abc.ABCMeta",
        "types.SimpleNamespace",
        "ast.literal_eval",
        "logging.getLogger",
        "warnings.warn",
        "time.time",
        "datetime.datetime",
        "random.random",
    ],
)
def test_dangerous_originals_are_not_handed_out(name):
    module, _, attribute = name.partition(".")
    original = getattr(__import__(module), attribute)
    assert getattr(modules.load_module(module), attribute, None) is not original


def test_reachable_objects_include_no_way_out():
    script = Path(__file__).with_name("reachability_harness.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert int(done.stdout.split()[-2]) > 10_000


def test_random_follows_the_current_generator():
    space = run(
        "import random as rnd\ndef draw(): return [rnd.random(), random.randint(1, 9), rnd.Random().random(), uuid()]\n"
        "from uuid import uuid4 as uuid\ndef reseed(s): random.seed(s)\n"
    )
    use_generator(random.Random(5))
    first = space["draw"]()
    use_generator(random.Random(6))
    assert space["draw"]() != first
    use_generator(random.Random(5))
    assert space["draw"]() == first
    space["reseed"](3)
    assert space["draw"]()[0] == random.Random(3).random()


def test_seeded_generators_are_pythons_own():
    for seed in (0, 7, "text", b"bytes", 2.5, None):
        if seed is not None:
            assert generator.Random(seed).random() == random.Random(seed).random()
    ours = generator.Random(4)
    ours.gauss(0, 1)
    twin = copy.deepcopy(ours)
    assert [twin.random() for _ in range(3)] == [ours.random() for _ in range(3)]


def test_copying_a_generator_draws_nothing():
    use_generator(random.Random(1))
    ours = generator.Random(4)
    before = generator.current_generator().getstate()
    copy.deepcopy(ours), copy.copy(ours)
    assert generator.current_generator().getstate() == before


def test_numpy_randomness_is_the_instances_own():
    space = run(
        "import numpy as np\n"
        "def draw(): return np.random.randint(0, 1000, 5).tolist(), np.random.default_rng().random()\n"
        "def fixed(): return np.random.default_rng(3).random()",
        NUMPY,
    )
    import numpy as np

    use_generator(random.Random(5))
    first = space["draw"]()
    space["draw"]()
    use_generator(random.Random(5))
    assert space["draw"]() == first
    assert space["fixed"]() == np.random.default_rng(3).random()


def test_time_stands_still():
    space = run(
        "import datetime, time, sys\nfrom datetime import datetime as dt, timedelta\n"
        "a = time.time(), dt.now(), datetime.date.today(), time.sleep(100), time.strftime('%Y')\n"
        "b = dt.strptime('2024-02-03', '%Y-%m-%d') + timedelta(days=1)\n"
        "c = repr(b), str(b), b.strftime('%d/%m'), b > dt(2024, 1, 1), isinstance(b, dt), f'{b:%Y}'\n"
        "d = dt.now(datetime.timezone.utc).isoformat(), copy.deepcopy(b) == b, dt.fromisoformat('2024-01-01').year\n"
    )
    assert space["a"][0] == generator.NOW
    assert str(space["a"][1]) == "2025-01-01 00:00:00"
    assert space["a"][4] == "2025"
    assert space["c"] == ("datetime.datetime(2024, 2, 4, 0, 0)", "2024-02-04 00:00:00", "04/02", True, True, "2024")
    assert space["d"] == ("2025-01-01T00:00:00+00:00", True, 2024)


def test_late_imports_of_library_code_still_work():
    space = run("r = re.sub(r'(a)', r'<\\1>', 'banana'), f'{datetime.date(2024, 1, 1):%A}', 'x'.encode('cp1252')")
    assert space["r"] == ("b<a>n<a>n<a>", "Monday", b"x")


def test_wrappers_behave_like_the_originals():
    space = run(
        "from operator import attrgetter, methodcaller\n"
        "from functools import wraps, total_ordering\n"
        "from collections import namedtuple\n"
        "import types, logging, ast, decimal, calendar\n"
        "P = namedtuple('P', 'x, y', defaults=[2])\n"
        "def deco(f):\n    @wraps(f)\n    def g(*a): return f(*a)\n    return g\n"
        "@deco\ndef named():\n    'doc'\n"
        "@total_ordering\nclass T:\n    def __init__(self, v): self.v = v\n"
        "    def __eq__(self, o): return self.v == o.v\n"
        "    def __lt__(self, o): return self.v < o.v\n"
        "logging.getLogger(__name__).info('x')\n"
        "decimal.getcontext().prec = 6\n"
        "r = (attrgetter('x', 'y')(P(1)), methodcaller('upper')('a'), named.__name__, named.__doc__, T(2) >= T(1),\n"
        "     repr(types.SimpleNamespace(a=1)), ast.literal_eval('[1, (2,)]'), str(decimal.Decimal(1) / 3),\n"
        "     sorted([P(2), P(1)], key=attrgetter('x')), calendar.month_name[1], P(1)._replace(y=5)._asdict())\n"
    )
    decimal_context = sys.modules["decimal"].getcontext()
    decimal_context.prec = 28
    assert space["r"][:8] == ((1, 2), "A", "named", "doc", True, "namespace(a=1)", [1, (2,)], "0.333333")
    assert space["r"][8:] == ([(1, 2), (2, 2)], "January", {"x": 1, "y": 5})


def test_string_annotations_of_dataclasses():
    space = run(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass, field, fields\nfrom typing import ClassVar\n"
        "@dataclass\nclass Node:\n    value: int\n    next: Optional[Node] = None\n"
        "    kids: list[Node] = field(default_factory=list)\n"
        "    KIND: ClassVar[str] = 'n'\n"
        "r = [f.name for f in fields(Node)], Node(1, Node(2)).next.value, Node.KIND\n"
    )
    assert space["r"] == (["value", "next", "kids"], 2, "n")


def test_the_last_class_named_env_is_taken():
    body = "\n    def reset(self, seed=None): return '', {}\n    def step(self, a): return '', 0.0, True, False, {}\n"
    assert load_program(f"class AEnv:{body}class BEnv:{body}class Helper: pass").__name__ == "BEnv"
    assert load_program(f"class AEnv:{body}OtherEnv = AEnv").__name__ == "AEnv"
    assert load_program(f"class AEnv:{body}class AEnv(AEnv): x = 1\n").x == 1
    from spade_envs.sandbox import ProtocolViolation

    with pytest.raises(ProtocolViolation, match="MazeEnv"):
        load_program("class A: pass")
    with pytest.raises(ProtocolViolation, match="MazeEnv"):
        load_program("from spade_envs import ToolEnv\nMyEnv = ToolEnv")
    with pytest.raises(ProtocolViolation, match="step"):
        load_program("class AEnv:\n    def reset(self, seed=None): return '', {}")


CALCULATOR = """
import ast, operator
OPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.USub: operator.neg}
def value(node):
    if isinstance(node, ast.Expression):
        return value(node.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp):
        return OPS[type(node.op)](value(node.left), value(node.right))
    if isinstance(node, ast.UnaryOp):
        return OPS[type(node.op)](value(node.operand))
    raise ValueError(f"unsupported: {type(node).__name__}")
class Numbers(ast.NodeVisitor):
    def __init__(self):
        self.seen = []
    def visit_Constant(self, node):
        self.seen.append(node.value)
numbers = Numbers()
"""


def test_expressions_can_be_walked():
    """Calculators that parse instead of evaluating are the way that people are told to write."""
    names = run(
        CALCULATOR + "result = value(ast.parse('2 * (3 - -4)', mode='eval'))\n"
        "numbers.visit(ast.parse('f(1) + [2, 3][0]'))\n"
        "count = sum(isinstance(node, ast.Constant) for node in ast.walk(ast.parse('1 + 2')))\n"
        "match ast.parse('a', mode='eval').body:\n    case ast.Name(id=found):\n        pass\n"
    )
    assert (names["result"], names["numbers"].seen, names["count"], names["found"]) == (14, [1, 2, 3, 0], 2, "a")
    with pytest.raises(ValueError, match="unsupported: Call"):
        run(CALCULATOR + "value(ast.parse('print(1)', mode='eval'))\n")


@pytest.mark.parametrize(
    "statements",
    [
        "import ast\nclass Fake(ast.AST):\n    _fields = ('__globals__',)\n",
        "import ast\nast.Name(_fields=('x',))\n",
        "import ast\nast.parse('x').body = []\n",
        "import ast\nclass Own:\n    _fields = ('x',)\nast.walk(Own())\n",
        "import ast\nclass Own:\n    pass\nast.NodeVisitor().visit(Own())\n",
        "import ast\nast.parse('x').__class__()\n",
        "import ast\nast.literal_eval(ast.parse('1', mode='eval'))\n",
        "import ast\nast.parse('x' * 10_001)\n",
        "import ast\nast.parse('x', mode='func_type')\n",
    ],
)
def test_syntax_nodes_cannot_be_made_or_changed(statements):
    with pytest.raises((TypeError, ValueError)):
        run(statements)


def test_numpy_seeded_by_the_program_gives_numpys_numbers():
    np = pytest.importorskip("numpy")
    source = "import numpy as np\nnp.random.seed(5)\nfound = [np.random.randint(100), float(np.random.rand())]\n"
    instance = random.Random(3)
    use_generator(instance)
    before = instance.getstate()
    real = np.random.RandomState(5)
    assert run(source, NUMPY)["found"] == [real.randint(100), real.rand()]
    assert instance.getstate() == before

    twin = generator.copy_generator(instance)
    draw = "import numpy as np\nfound = float(np.random.rand())\n"
    expected = real.rand()
    assert run(draw, NUMPY)["found"] == expected
    use_generator(twin)
    assert run(draw, NUMPY)["found"] == expected
    generator.begin_episode(twin, 3)
    fresh = random.Random(3)
    first = run(draw, NUMPY)["found"]
    use_generator(fresh)
    assert run(draw, NUMPY)["found"] == first
    use_generator(random.Random(0))


def test_numpy_reads_text_not_files():
    names = run("import numpy as np\nfound = np.loadtxt(['1 2', '3 4'], dtype=int).tolist()\n", NUMPY)
    assert names["found"] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="no files"):
        run("import numpy as np\nnp.loadtxt('/etc/passwd', dtype=str)\n", NUMPY)


def test_unseeded_generators_leave_the_instances_stream_alone():
    source = (
        "random.seed(4)\nfirst, second = random.Random(), random.Random()\nu = uuid.uuid4()\n"
        "found = [random.random(), first.random(), second.random(), str(u)]\n"
    )
    seen = []
    for seed in (1, 1, 2):
        use_generator(random.Random(seed))
        seen.append(run("import uuid\n" + source)["found"])
    use_generator(random.Random(0))
    assert seen[0] == seen[1]
    assert seen[0][0] == seen[2][0] == random.Random(4).random()
    assert seen[0][1:] != seen[2][1:]
    assert seen[0][1] != seen[0][2]
