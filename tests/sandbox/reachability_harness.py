"""Run as a script: walk everything that generated code can reach by legal attribute names; fail on a way out.

The walk starts at the globals, the built-ins, every importable module and many instances, and follows each attribute
that the policy lets through (private ones on the program's own classes too), items of containers included. A module,
frame, code object, metaclass, namespace with built-ins, or function of the interpreter's inner modules is a way out.
"""

import builtins
import dataclasses
import functools
import sys
import types

from spade_envs.sandbox import guards, loader, modules
from spade_envs.sandbox.allowlist import importable
from spade_envs.sandbox.names import GUARDED_ATTRIBUTES, attribute_refusal, is_private
from spade_envs.sandbox.policy import compile_program

SOURCE = """
import queue, io, csv, difflib, uuid, array, struct, zlib, calendar, pprint, logging, unicodedata, numbers, types
import contextlib, sys, gymnasium, gymnasium.spaces, collections.abc, math_verify
from typing import NamedTuple, TypedDict, Protocol
class P(NamedTuple):
    x: int = 1
@dataclass
class D:
    a: int = 1
    b: list = field(default_factory=list)
class E(enum.Enum):
    A = 1
class F(enum.Flag):
    A = 1
@contextlib.contextmanager
def manager(): yield 1
@functools.lru_cache(None)
def cached(x): return x
def generate(): yield 1
class Methods:
    @property
    def p(self): return 1
    @classmethod
    def c(cls): return 1
    @staticmethod
    def s(): return 1
    @cached_property
    def cp(self): return 1
def caught(function):
    try: function()
    except Exception as error: return error
class SubRandom(random.Random): pass
class SubFraction(Fraction): pass
class SubDecimal(Decimal): pass
class SubCounter(Counter): pass
class SubDeque(deque): pass
class SubQueue(queue.Queue): pass
class SubEncoder(json.JSONEncoder): pass
class SubMatcher(difflib.SequenceMatcher): pass
class SubUserDict(collections.UserDict): pass
class SubChainMap(collections.ChainMap): pass
class SubTool(ToolEnv): pass
class SubDatetime(datetime.datetime): pass
class SubEnv(gymnasium.Env): pass
class SubSuppress(contextlib.suppress): pass
class SubIO(io.StringIO): pass
class SubMapping(collections.abc.Mapping): pass
class SubUUID(uuid.UUID): pass
class SubReader(csv.DictReader): pass
class SubPartial(functools.partial): pass
class SubProtocol(Protocol): pass
class SubGeneric(Generic[TypeVar("T")]): pass
class SubStr(str): pass
class SubException(Exception): pass
class SubAny(Any): pass
class SubDefault(defaultdict): pass
class SubOrdered(OrderedDict): pass
class SubTyped(TypedDict): pass
class SubProperty(property): pass
class SubNumber(numbers.Number): pass
class SubSpace(gymnasium.spaces.Discrete): pass
OWN = [
    SubRandom(1), SubFraction(1, 2), SubDecimal(1), SubCounter(), SubDeque(), SubQueue(), SubEncoder(),
    SubMatcher(), SubUserDict(), SubChainMap(), SubTool(), SubDatetime(2020, 1, 1), SubEnv(), SubSuppress(),
    SubIO(), SubUUID(int=1), SubReader([]), SubPartial(abs), SubStr("a"), SubException(), SubAny(), SubDefault(),
    SubOrdered(), SubProperty(), SubNumber(), SubSpace(3), P(), D(), E.A, F.A, Methods(),
    SubMapping, SubProtocol, SubGeneric, SubTyped
]
FOREIGN = [
    random.Random(0), Counter(), Fraction(1, 2), Decimal(1), re.compile("a"), re.match("a", "a"), re.I,
    datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1), datetime.timedelta(1), datetime.timezone.utc,
    partial(abs), cached, cached.cache_info(), manager, manager(), generate(), (i for i in []), Methods.p,
    Methods.cp, Methods().c, Methods.s, field(), dataclasses.fields(D)[0], queue.Queue(), queue.SimpleQueue(),
    io.StringIO(), csv.reader([]), csv.writer(io.StringIO()), csv.DictReader([]), difflib.SequenceMatcher(),
    uuid.uuid4(), json.JSONEncoder(), caught(lambda: [].x), caught(lambda: json.loads("{")), caught(lambda:
    missing), caught(lambda: next(iter([]))), hashlib.md5(), array.array("i"), logging.getLogger(), List[int],
    Optional[int], Type[int], TypeVar("T"), list[int], int | str, Callable[[int], int], Literal[1],
    decimal.getcontext(), decimal.localcontext(), itertools.count(), map(abs, []), enumerate([]), slice(1),
    "".join, "x".format, [].append, len, print, super, object(), b"", bytearray(), {}.keys(), generate, lambda: 0,
    operator.itemgetter(1), operator.attrgetter("a"), operator.methodcaller("a"), gymnasium.Env(),
    gymnasium.spaces.Discrete(2), collections.UserList(), functools.cmp_to_key(lambda a, b: 0)(1),
    contextlib.suppress(), contextlib.nullcontext(), types.MappingProxyType({}), types.SimpleNamespace(a=1),
    difflib.ndiff([], []), random.getstate(), iter([]), reversed([]), zip(), contextlib.closing(1), time.gmtime(),
    functools.wraps, NamedTuple, TypedDict, random.choice, re.finditer("a", "a"), heapq.merge([]), ClassVar[int],
    typing.NewType("N", int), typing.Annotated[int, 1], statistics.StatisticsError()
]
"""
INNER = frozenset(
    [
        "os",
        "posix",
        "sys",
        "subprocess",
        "importlib",
        "_imp",
        "socket",
        "_frozen_importlib",
        "_frozen_importlib_external",
        "io",
        "_io",
        "ctypes",
        "signal",
        "marshal",
        "pickle",
        "copyreg",
        "codecs",
        "_codecs",
        "inspect",
        "gc",
        "weakref",
        "_thread",
        "tempfile",
        "shutil",
    ]
)
FORBIDDEN = {
    id(value): value
    for value in (
        builtins.eval,
        builtins.exec,
        builtins.open,
        builtins.compile,
        builtins.__import__,
        builtins.globals,
        builtins.locals,
        builtins.vars,
        builtins.dir,
        builtins.input,
        builtins.getattr,
        builtins.setattr,
        builtins.delattr,
        builtins.memoryview,
        builtins.__build_class__,
        functools.wraps,
        functools.update_wrapper,
        functools.singledispatch,
        dataclasses.dataclass,
        dataclasses.make_dataclass,
        types.SimpleNamespace,
    )
}
SIMPLE = (int, float, str, bytes, complex, type(None))
LEAVES = (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType)
seen: dict[tuple[int, bool], int] = {}
kept: list[object] = []


def way_out(value: object) -> str | None:
    if isinstance(value, types.ModuleType | types.FrameType | types.CodeType | types.TracebackType):
        return type(value).__name__
    if id(value) in FORBIDDEN:
        return repr(value)
    if isinstance(value, type) and issubclass(value, type) and not issubclass(type(value), guards._StandInMeta):
        return f"metaclass {value.__name__}"
    if isinstance(value, dict) and "__builtins__" in value:
        return "a namespace with built-ins"
    if callable(value) and not isinstance(value, type) and getattr(value, "__module__", None) in INNER:
        return f"function {value.__module__}.{getattr(value, '__name__', '?')}"
    return None


def walk(value: object, path: str, depth: int, own: bool) -> None:
    found = way_out(value)
    if found:
        print(f"{path}: {found}")
        problems.append(path)
        return
    if isinstance(value, SIMPLE):
        value, path = type(value), f"type({path})"
    if isinstance(value, LEAVES):
        depth = min(depth, 1)
    if depth == 0 or seen.get((id(value), own), -1) >= depth:
        return
    seen[id(value), own] = depth
    kept.append(value)
    for name in {*dir(value), *dir(type(value)), "__self__", "obj"}:
        if attribute_refusal(name, reading=True) or (is_private(name) and not own):
            continue
        try:
            reached = guards.safe_getattr(value, name) if name in GUARDED_ATTRIBUTES else getattr(value, name)
        except Exception:
            continue
        walk(reached, f"{path}.{name}", depth - 1, False)
    if isinstance(value, list | tuple) and len(value) < 300:
        for index, item in enumerate(value):
            walk(item, f"{path}[{index}]", depth - 1, False)
    if isinstance(value, dict | types.MappingProxyType):
        for key, item in list(value.items())[:300]:
            walk(item, f"{path}[{key!r}]"[:200], depth - 1, False)


if __name__ == "__main__":
    problems: list[str] = []
    loader.warm()
    loader.harden()
    namespace = loader.make_namespace()
    exec(compile_program(SOURCE), namespace)
    own, foreign, provided = (namespace.pop(name) for name in ("OWN", "FOREIGN", "__builtins__"))
    for name, value in [*namespace.items(), *provided.items()]:
        if not name.startswith("_"):
            walk(value, name, 3, False)
    for module in importable():
        walk(modules.load_module(module), module, 4, False)
    for value in foreign:
        walk(value, repr(value)[:40], 3, False)
    for value in own:
        walk(value, repr(value)[:40], 3, True)
        if not isinstance(value, type):
            walk(type(value), type(value).__name__, 3, True)
    print(len(seen), "objects")
    sys.exit(bool(problems))
