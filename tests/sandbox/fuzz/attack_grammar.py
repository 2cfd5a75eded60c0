"""A grammar of programs that try to get out: what is reached for, by which means, and in which surroundings.

A program is a list of fragments. Each fragment combines a target, a name and a means of access (reading, writing,
defining, copying, deriving), inside statements that change scopes and control flow. The choices come from outside, so
hypothesis can shrink them and a plain generator can make them by the ten thousand.
"""

# ruff: noqa: E501 - one template, one line
import textwrap
from collections.abc import Sequence
from random import Random

PRELUDE = """
import contextlib, types, collections, queue, io, csv, difflib, uuid, array, struct, numbers
OUT = []
def f0(a=1): return a
def g0(): yield 1
class Plain:
    def __init__(self): self.x, self._y = 1, 2
    def m(self, *a): return self
class Reflect:
    def __radd__(self, other):
        OUT.append(other)
        try: OUT.append(other(f0))
        except Exception: pass
        return 1
    __ror__ = __rmul__ = __radd__
    def __eq__(self, other):
        OUT.append(other)
        return True
    __hash__ = None
class Caught:
    def __enter__(self): return self
    def __exit__(self, kind, value, trace):
        self.kind, self.value, self.trace = kind, value, trace
        return True
class Text(str): pass
class Colour(Enum):
    RED = 1
@dataclass
class Pair:
    public: Any = 1
    other: Any = 2
class Memo:
    def __init__(self, *script): self.script, self.seen = script, 0
    def get(self, key, default=None):
        self.seen += 1
        return self.script[self.seen % len(self.script)] or default
    def __setitem__(self, key, value): pass
    def __getitem__(self, key): return []
plain, caught = Plain(), Caught()
with caught: 1 / 0
"""

TARGETS = [
    "keeper",
    "Keeper",
    "helper",
    "failed",
    "keeper.method",
    "plain",
    "Plain",
    "plain.m",
    "f0",
    "g0()",
    "(lambda:0)",
    "caught.trace",
    "caught.value",
    "caught.kind",
    "math",
    "random.Random",
    "random.Random(1)",
    "ToolEnv",
    "ToolEnv()",
    "TextEnv.step",
    "len",
    "print",
    "getattr",
    "str",
    "object",
    "type",
    "(1).real",
    "[].append",
    "''.join",
    "'x'.format",
    "Colour",
    "Colour.RED",
    "Enum",
    "Pair",
    "Pair(1)",
    "Text('a')",
    "queue.Queue()",
    "io.StringIO()",
    "uuid.uuid4()",
    "re.compile('(?P<a>a)')",
    "re.match('a','a')",
    "json.dumps",
    "partial",
    "partial(f0)",
    "typing.Any",
    "List[int]",
    "list[int]",
    "typing.Literal['open']",
    "TypeVar('T')",
    "field()",
    "Decimal(1)",
    "Fraction(1,2)",
    "datetime.datetime(2020,1,1)",
    "itertools.count()",
    "map(f0,[1])",
    "super",
    "property(f0)",
    "staticmethod(f0)",
    "classmethod(f0)",
    "types.SimpleNamespace(a=1)",
    "Counter()",
    "defaultdict(list)",
    "operator.itemgetter(1)",
    "ast_node",
    "abc.ABC",
    "namedtuple('N','a')",
    "functools.lru_cache(f0)",
    "contextlib.suppress()",
    "contextlib.nullcontext(1)",
    "collections.abc.Mapping",
    "sys_stream",
    "Type",
    "Type[int]",
    "typing.Annotated[type,1]",
    "collections.ChainMap()",
    "csv.reader([])",
    "hashlib.md5()",
    "array.array('i')",
    "typing.NewType('N',int)",
    "OUT",
]
KEEPERS = ("keeper", "Keeper", "helper", "failed", "keeper.method")
FORBIDDEN = [
    "__globals__",
    "__class__",
    "__dict__",
    "__code__",
    "__closure__",
    "__subclasses__",
    "__bases__",
    "__base__",
    "__mro__",
    "mro",
    "__builtins__",
    "__self__",
    "__func__",
    "__wrapped__",
    "__traceback__",
    "__context__",
    "__cause__",
    "__loader__",
    "__spec__",
    "__reduce__",
    "__reduce_ex__",
    "__new__",
    "__init_subclass__",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__module__",
    "__annotations__",
    "__defaults__",
    "tb_frame",
    "tb_next",
    "gi_frame",
    "gi_code",
    "gi_yieldfrom",
    "cr_frame",
    "f_globals",
    "f_back",
    "f_builtins",
    "co_consts",
    "func_globals",
    "_hidden",
    "_name",
    "_create_",
    "_convert_",
    "_new_member_",
    "format",
    "format_map",
    "obj",
    "__init__",
    "__objclass__",
    "__get__",
    "__call__",
]
PLAIN = ("public method x other value real args func keywords name gen fget data maps mapping lock").split()  # noqa: SIM905
DUNDERS = [
    "__getattribute__",
    "__getattr__",
    "__class_getitem__",
    "__set_name__",
    "__init_subclass__",
    "__get__",
    "__reduce_ex__",
    "__new__",
    "__instancecheck__",
    "__match_args__",
    "__slots__",
    "__module__",
    "__mro_entries__",
    "__prepare__",
    "__array_interface__",
    "__del__",
    "__setstate__",
    "__getstate__",
    "__eq__",
    "__format__",
    "__call__",
    "__copy__",
    "__deepcopy__",
    "__hash__",
]
VALUES = (
    "1",
    "None",
    "f0",
    "lambda *a, **k: a",
    "lambda *a: (lambda: keeper, (), (None, {'public': 9}))",
    "'__builtins__'",
    "{'__class__': 1}",
    "keeper",
    "Reflect()",
    "('__globals__',)",
    "property(f0)",
    "Text('__globals__')",
    "operator.attrgetter",
)
READS = (
    "OUT.append({t}.{n})",
    "OUT.append(getattr({t}, {s}))",
    "OUT.append(getattr({t}, {s}, None))",
    "OUT.append(operator.attrgetter({s})({t}))",
    "OUT.append(operator.attrgetter('public.' + {s})({t}))",
    "OUT.append(operator.methodcaller({s})({t}))",
    "OUT.append(operator.methodcaller('format', {t})('{{0.' + {s} + '}}'))",
    "OUT.append(list(map(getattr, [{t}], [{s}])))",
    "OUT.append(sorted([{t}], key=operator.attrgetter({s})))",
    "OUT.append(max([{t}], key=partial(getattr, {t})))",
    "OUT.append(reduce(getattr, [{s}, 'public'], {t}))",
    "OUT.append(('{{0.' + {s} + '}}').format({t}))",
    "OUT.append('{{0.{n}}}'.format({t}))",
    "OUT.append('{{a.{n}}}'.format_map({{'a': {t}}}))",
    "OUT.append('{{0:{{1.{n}}}}}'.format('a', {t}))",
    "OUT.append(str.format('{{0.{n}}}', {t}))",
    "OUT.append(list(map(str.format, ['{{0.{n}}}'], [{t}])))",
    "OUT.append(Text('{{0.{n}}}').format({t}))",
    "OUT.append(getattr('{{0.{n}}}', 'for' + 'mat')({t}))",
    "OUT.append(partial('{{0.{n}}}'.format)({t}))",
    "OUT.append(f'{{{t}.{n}!r:>{{9}}}}')",
    "OUT.append('%({n})s' % {{'{n}': {t}}})",
    "match {t}:\n    case object({n}=c): OUT.append(c)",
    "match [{t}]:\n    case [object({n}=c), *_]: OUT.append(c)",
    "match {{'k': {t}}}:\n    case {{'k': Plain({n}=c) | object({n}=c), **rest}}: OUT.append(c)",
    "match '{{0.{n}}}':\n    case str(format=c): OUT.append(c({t}))",
    "@dataclass\nclass D{i}(ABC):\n    {n}: Any\nD{i}.register(type({t}))\nmatch {t}:\n    case D{i}(c): OUT.append(c)",
    "@dataclass\nclass D{i}:\n    {n}: Any = 1\nOUT.append(D{i}.__repr__({t}))",
    "o{i} = {t}\no{i}.{n} += Reflect()",
    "for o{i} in [{t}]: o{i}.{n} |= Reflect()",
    "o{i} = Text('{{0.__globals__}}')\no{i}.{n} += Reflect()",
    "class C{i}:\n    def f(self): return self.{n}\nOUT.append(C{i}.f({t}))",
    "class C{i}:\n    f = lambda self: self.{n}\nOUT.append(C{i}.f({t}))",
    "class C{i}:\n    @classmethod\n    def f(cls, o): return (lambda cls: cls.{n})(o)\nOUT.append(C{i}.f({t}))",
    "class C{i}:\n    def f(self): return [self.{n} for self in [{t}]]\nOUT.append(C{i}().f())",
    "class C{i}:\n    def f(self):\n        def g(): return self.{n}\n        self = {t}\n        return g()\nOUT.append(C{i}().f())",
    "class C{i}:\n    def f(self):\n        match {t}:\n            case self: pass\n        return self.{n}\nOUT.append(C{i}().f())",
    "class C{i}:\n    def {b}(*a): return {t}\n    r = {b}().{n}\nOUT.append(C{i}.r)",
    "class C{i}:\n    @(lambda f: lambda *a: {t})\n    def {b}(): pass\n    OUT.append({b}().{n})",
    "class C{i}:\n    def {b}(*a): return {t}\n    OUT.append((lambda r={b}().{n}: r)())",
    "class C{i}:\n    def f(self): return super(object, self).{n}\nOUT.append(C{i}.f({t}))",
    "class C{i}:\n    def f(self): return super(type({t}), self).{n}\nOUT.append(C{i}.f({t}))",
    "class M{i}:\n    def {n}(self): pass\nclass E{i}(M{i}, Enum):\n    {n} = {t}\nOUT.append(E{i}.{n}.{n})",
    "class W{i}(staticmethod): pass\nw{i} = W{i}({t})\nOUT.append(w{i}.{n})",
    "OUT.append(contextlib.contextmanager({t}).{n})",
    "OUT.append(functools.lru_cache(None)({t}).{n})",
    "OUT.append(functools.wraps({t}, assigned=({s},))(f0).{n})",
    "OUT.append(copy.copy(plain.m).{n})",
    "OUT.append(json.loads('{{\"a\": 1}}', object_hook=lambda d: getattr({t}, {s})))",
    "OUT.append(hasattr({t}, {s}) and getattr({t}, {s}))",
    "try: {t}.nope_{i}\nexcept AttributeError as e: OUT.append(e.{n})",
    "try: {t}.nope_{i}\nexcept AttributeError as e: OUT.append(getattr(e, {s}))",
    "try: {t}.nope_{i}\nexcept AttributeError as e: OUT.append(('{{0.' + {s} + '}}').format(e))",
    "OUT.append((o{i} := {t}).{n})",
    "[OUT.append(o.{n}) for o in [{t}]]",
    "OUT.append({t}[{s}])",
    "OUT.append(type({t}).{n})",
    "OUT.append({t}.__class__.{n})",
    "OUT.append(type({t})({v}))",
    "{t} == Reflect()",
    "OUT.append(string.Template('${{a.{n}}}').substitute(a={t}))",
    "OUT.append(dataclasses.replace({t}, {n}=1))",
    "OUT.append(collections.UserDict({t}))",
    "OUT.append(({t}.\uff4bey, {t}.{u}))",
)
WRITES = (
    "{t}.{n} = {v}",
    "{t}.{n} += 1",
    "del {t}.{n}",
    "setattr({t}, {s}, {v})",
    "delattr({t}, {s})",
    "list(map(setattr, [{t}], [{s}], [{v}]))",
    "object.__setattr__({t}, {s}, {v})",
    "for {t}.{n} in [{v}]: pass",
    "[*{t}.{n}] = [1]",
    "({t}.{n}, o{i}) = (1, 2)",
    "with contextlib.nullcontext({v}) as {t}.{n}: pass",
    "class C{i}:\n    def f(self): self.{n} = {v}\nC{i}.f({t})",
    "class C{i}:\n    def f(self): self.{n} = {v}\npartial(C{i}.f, {t})()",
    "class C{i}:\n    def f(self=({t})): self.{n} = {v}\nC{i}.f()",
    "class C{i}:\n    def f(self):\n        yield 1\n        self.{n} = {v}\nlist(C{i}.f({t}))",
    "class C{i}:\n    def f(self, v): self.{n} = v\n    p = property(None, f)\nC{i}.p.fset({t}, {v})",
    "class C{i}:\n    def f(self):\n        def g(self): self.{n} = {v}\n        g({t})\nC{i}().f()",
    "class C{i}:\n    def f(self):\n        class Y:\n            def g(this): self.{n} = {v}\n        Y().g()\nC{i}.f({t})",
    "class C{i}:\n    def f(self):\n        def g():\n            nonlocal self\n            self = {t}\n        g()\n        self.{n} = {v}\nC{i}().f()",
    "class C{i}:\n    def f(self):\n        for self in [{t}]: self.{n} = {v}\nC{i}().f()",
    "class C{i}:\n    def f(self):\n        g = lambda: (self := {t})\n        self.{n} = {v}\nC{i}.f({t})",
    "@dataclass\nclass D{i}:\n    {n}: Any\nD{i}.__init__({t}, {v})",
    "@dataclass\nclass D{i}:\n    {n}: Any\ngetattr(D{i}, '__init__')({t}, {v})",
    "@dataclass\nclass D{i}:\n    {n}: Any\nclass C{i}:\n    def {b}(*a): return D{i}\n    {b}().__init__({t}, {v})",
    "@dataclass\nclass D{i}:\n    {n}: Any\nclass C{i}:\n    def f(self): super(D{i}, self).__init__({v})\nC{i}.f({t})",
    "class C{i}:\n    def f(self): super(types.SimpleNamespace, self).__init__(**{{ {s}: {v} }})\nC{i}.f(types.SimpleNamespace())",
    "n{i} = types.SimpleNamespace(**{{ {s}: {v} }})\nOUT.append(copy.copy(n{i}))",
    "class W{i}(staticmethod): pass\nw{i} = W{i}({t})\nw{i}.{n} = {v}",
    "functools.wraps(f0)({t})",
    "abstractmethod({t})",
    "functools.total_ordering({t})",
    "dataclass({t})",
    "p{i} = Plain()\nOUT.append(copy.deepcopy(p{i}, Memo(None, {{ {s}: {v} }}, None)))",
    "p{i} = Plain()\ny{i} = copy.deepcopy(p{i}, Memo(None, None, {{ {s}: {v} }}))\nOUT.append(copy.copy(y{i}))",
    "L{i} = ['a']\nclass C{i}:\n    __slots__ = L{i}\nL{i}.append({s})\nc{i} = C{i}()\nc{i}.a = {v}\nOUT.append(copy.copy(c{i}))",
    "e{i} = ValueError({t})\ne{i}.{n} = {v}\nOUT.append(copy.copy(e{i}))",
    "Keeper.public = {v}",
    "type({t}).{n} = {v}",
)
DEFINES = (
    "class C{i}:\n    def {d}(self, *a): return (self, a)\nOUT.append(C{i}())",
    "class C{i}:\n    {d} = {v}\nOUT.append(C{i}().anything)",
    "class C{i}:\n    x = ({d} := {v})\nOUT.append(C{i}().anything)",
    "class C{i}:\n    for {d} in [{v}]: pass\nOUT.append(copy.copy(C{i}()))",
    "class C{i}:\n    with contextlib.nullcontext({v}) as {d}: pass\nOUT.append(C{i}().anything)",
    "class C{i}:\n    match {v}:\n        case {d}: pass\nOUT.append(C{i}().anything)",
    "class C{i}:\n    from operator import add as {d}\nOUT.append(C{i}())",
    "class C{i}:\n    @cached_property\n    def {d}(self): return {v}\nc{i} = C{i}()\nOUT.append(copy.copy(c{i}))",
    "class C{i}({t}): pass\nOUT.append(C{i})",
    "class C{i}(type({t})): pass\nOUT.append(C{i}('X', (), {{ {s}: {v} }}))",
    "class C{i}({t}, metaclass=type(Colour)): pass",
    "class C{i}(metaclass=abc.ABCMeta):\n    {d}: Any = {v}\nOUT.append(C{i}())",
    "OUT.append(type('X', (), {{ {s}: {v} }}))",
    "OUT.append(type({t})('X', (), {{ {s}: {v} }}))",
    "OUT.append(abc.ABCMeta('X', (), {{ {s}: {v} }}))",
    "OUT.append(Enum('X', {{ {s}: {v} }}))",
    "OUT.append(namedtuple({s}, [{s}]))",
    "OUT.append(NamedTuple('X', [({s}, int)]))",
    "X{i} = TypedDict('X', {{ {s}: int }})\nOUT.append(dataclass(eq=False)(X{i}))",
    "class E{i}(Enum):\n    A = {v}\n    _ignore_ = [{s}]\nOUT.append(copy.copy(E{i}.A))",
    "class P{i}(typing.Protocol):\n    {n}: Any\nOUT.append(isinstance({t}, typing.runtime_checkable(P{i})))",
    "class G{i}(Generic[TypeVar('T')]): pass\nOUT.append(copy.copy(G{i}[{t}]))",
    "class T{i}(string.Template):\n    pattern = {s}\nOUT.append(T{i}('x'))",
    "OUT.append(copy.copy({t}))",
    "OUT.append(copy.deepcopy({t}, Memo(None, {v})))",
    "def f{i}(**k): return k\nOUT.append(f{i}({n}={v}))",
    "{d} = {v}",
    "def {d}(): pass",
    "import math as {d}",
    "from {m} import *",
    "import {m} as o{i}\nOUT.append(o{i})",
    "try:\n    import {m}.{n} as o{i}\nexcept ImportError: o{i} = {t}\nOUT.append(o{i})",
    "async def f{i}(): return await {t}\nOUT.append(f{i}())",
    "try: raise ExceptionGroup('x', [ValueError()])\nexcept* ValueError as e: OUT.append(e)",
)
MODULES = [
    "os",
    "sys",
    "builtins",
    "collections",
    "math",
    "json",
    "typing",
    "enum",
    "dataclasses",
    "operator",
    "random",
    "importlib",
    "numpy",
    "inspect",
]
WRAPPERS = (
    "{body}",
    "def w{i}():\n{block}\nw{i}()",
    "def w{i}():\n    global OUT\n{block}\n    yield 1\nlist(w{i}())",
    "class W{i}:\n{block}",
    "class W{i}:\n    def f(self):\n    {block2}\nW{i}().f()",
    "for _ in [1]:\n{block}\nelse: pass",
    "with Caught() as w{i}:\n{block}\nOUT.append(w{i}.value)",
    "try:\n    1 / 0\nexcept Exception as w{i}:\n{block}\nfinally: pass",
    "if (w{i} := [c for c in [1] if c]):\n{block}",
    "def w{i}(o):\n    def inner():\n        nonlocal o\n        o = 1\n    inner()\n{block}\nw{i}(keeper)",
)


class Grammar:
    """Makes fragments with the choices of ``random``."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0

    def pick(self, items: Sequence[str]) -> str:
        """Choose one of ``items``."""
        return items[self.random.randint(0, len(items) - 1)]

    def name(self) -> str:
        """An attribute name, mostly one that must not be reached."""
        kind = self.random.randint(0, 9)
        if kind < 2:
            return "_hidden"
        return self.pick(PLAIN if kind == 2 else DUNDERS if kind == 3 else FORBIDDEN)

    def text(self, name: str) -> str:
        """An expression for ``name`` as a string."""
        half = len(name) // 2
        forms = (
            repr(name),
            f"{name[:half]!r} + {name[half:]!r}",
            f"''.join({list(name)!r})",
            f"{name[::-1]!r}[::-1]",
            f"Text({name!r})",
            f"f'{name[:half]}{{{name[half:]!r}}}'",
            f"{name.upper()!r}.lower()",
            f"chr({ord(name[0])}) + {name[1:]!r}",
            f"'%s' % {name!r}",
            repr(chr(ord(name[-1]) + 0xFEE0) if name.isalpha() else name),
        )
        return self.pick(forms)

    def target(self) -> str:
        """An object to reach into."""
        if self.random.randint(0, 2) == 0:
            return self.pick(KEEPERS)
        found = self.pick(TARGETS)
        wrap = self.random.randint(0, 19)
        if wrap == 0:
            return f"[*{{{1}: {found}}}.values()][0]"
        if wrap == 1:
            return f"(lambda o: o)({found})"
        if wrap == 2:
            return f"partial({found})"
        return found

    def fragment(self) -> str:
        """One attempt, in its surroundings."""
        self.count += 1
        kind = self.random.randint(0, 9)
        template = self.pick(READS if kind < 5 else WRITES if kind < 8 else DEFINES)
        name = self.name()
        if "{v}" in template and self.random.randint(0, 1):
            name = self.pick(("public", "_hidden"))
        body = template.format(
            t=self.target(),
            n=name,
            s=self.text(name),
            u="".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in name),
            v=self.pick(VALUES),
            d=self.pick(DUNDERS),
            b=self.pick(("super", "type", "object", "int")),
            m=self.pick(MODULES),
            i=self.count,
        )
        for _ in range(self.random.randint(0, 2)):
            self.count += 1
            block = textwrap.indent(body, "    ")
            wrapper = self.pick(WRAPPERS)
            inner = textwrap.indent(block, "    ").lstrip(" ")
            body = wrapper.format(body=body, block=block, block2="    " + inner, i=self.count)
        return body

    def program(self, fragments: int = 8) -> list[str]:
        """A list of fragments; those that the policy refuses are left out by whoever runs it."""
        return [self.fragment() for _ in range(fragments)]
