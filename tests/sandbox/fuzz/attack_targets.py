"""What the grammar reaches for: objects, attribute names, values; and which names belong to which objects."""

# ruff: noqa: SIM905 - lists as text
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
    def __setitem__(self, key, value): OUT.append(value)
    def __getitem__(self, key): return OUT
plain, caught = Plain(), Caught()
with caught: 1 / 0
"""

TARGETS = """
keeper
Keeper
helper
failed
keeper.method
plain
Plain
plain.m
f0
g0()
(lambda:0)
caught.trace
caught.value
caught.kind
math
random.Random
random.Random(1)
ToolEnv
ToolEnv()
TextEnv.step
len
print
getattr
str
object
type
(1).real
[].append
''.join
'x'.format
Colour
Colour.RED
Enum
Pair
Pair(1)
Text('a')
queue.Queue()
io.StringIO()
uuid.uuid4()
re.compile('(?P<a>a)')
re.match('a','a')
json.dumps
partial
partial(f0)
typing.Any
List[int]
list[int]
typing.Literal['open']
TypeVar('T')
field()
Decimal(1)
Fraction(1,2)
datetime.datetime(2020,1,1)
itertools.count()
map(f0,[1])
super
property(f0)
staticmethod(f0)
classmethod(f0)
types.SimpleNamespace(a=1)
Counter()
defaultdict(list)
operator.itemgetter(1)
ast_node
abc.ABC
namedtuple('N','a')
functools.lru_cache(f0)
contextlib.suppress()
contextlib.nullcontext(1)
collections.abc.Mapping
sys_stream
Type
Type[int]
typing.Annotated[type,1]
collections.ChainMap()
csv.reader([])
hashlib.md5()
array.array('i')
typing.NewType('N',int)
OUT
""".strip().split("\n")
KEEPERS = ("keeper", "Keeper", "helper", "failed", "keeper.method")
FORBIDDEN = """
__globals__ __class__ __dict__ __code__ __closure__ __subclasses__ __bases__ __base__ __mro__ mro __builtins__
__self__ __func__ __wrapped__ __traceback__ __context__ __cause__ __loader__ __spec__ __reduce__ __reduce_ex__
__new__ __init_subclass__ __getattribute__ __getattr__ __setattr__ __module__ __annotations__ __defaults__
tb_frame tb_next gi_frame gi_code gi_yieldfrom cr_frame f_globals f_back f_builtins co_consts func_globals
_hidden _name _create_ _convert_ _new_member_ format format_map obj __init__ __objclass__ __get__ __call__
""".split()
PLAIN = """
public method x other value real args func keywords name gen fget data maps mapping lock
""".split()
DUNDERS = """
__getattribute__ __getattr__ __class_getitem__ __set_name__ __init_subclass__ __get__ __reduce_ex__ __new__
__instancecheck__ __match_args__ __slots__ __module__ __mro_entries__ __prepare__ __array_interface__ __del__
__setstate__ __getstate__ __eq__ __format__ __call__ __copy__ __deepcopy__ __hash__
""".split()
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
MODULES = """
os sys builtins collections math json typing enum dataclasses operator random importlib numpy inspect
""".split()

KINDS = (
    (("caught.trace", "(lambda o: o)(caught.trace)"), "tb_frame tb_next tb_lasti tb_lineno"),
    (("caught.value", "failed", "failed"), "obj obj obj __traceback__ __context__ __cause__ args name with_traceback"),
    (("g0()", "(o for o in [1])"), "gi_frame gi_code gi_yieldfrom gi_running send throw"),
    (
        ("f0", "(lambda: 0)", "TextEnv.step", "Plain.m", "helper", "functools.wraps(helper)(f0)"),
        "__globals__ __code__ __closure__ __defaults__ __kwdefaults__ __builtins__ __wrapped__ __module__",
    ),
    (("plain.m", "keeper.method", "[].append", "''.join", "len", "print"), "__self__ __func__ __objclass__"),
    (
        ("Plain", "Keeper", "Colour", "Pair", "ToolEnv", "random.Random", "type(plain)", "type(keeper)"),
        "__mro__ mro __bases__ __base__ __subclasses__ __dict__ __new__ __init__ __class__",
    ),
    (
        ("Colour", "Colour.RED", "type(Colour.RED)"),
        "_create_ _convert_ _new_member_ _member_map_ _value_ _value2member_map_",
    ),
    (("'{0._hidden}'", "Text('{0.__globals__}')", "Text('{0._hidden}')", "str"), "format format_map __format__"),
    (("List[int]", "typing.Literal['open']", "TypeVar('T')", "field()"), "_name __origin__ name __module__ __args__"),
    (
        ("partial(f0)", "functools.lru_cache(f0)", "property(f0)", "map(getattr, [keeper])"),
        "func fget __wrapped__ __reduce__",
    ),
)
"""Objects, and names that mean something on them."""
SECRETS = (
    ("keeper", "keeper", "keeper", "Keeper", "(lambda o: o)(keeper)"),
    "_hidden _hidden _hidden public __class__",
)

COPY_NAMES = "__reduce_ex__ __reduce_ex__ __reduce__ __deepcopy__ __copy__ __setstate__ __class__ __getstate__".split()
COPY_VALUES = (
    "lambda *a: (lambda: keeper, (), (None, {'public': 9}))",
    "lambda *a: (lambda: keeper, (), {'public': 9})",
    "lambda *a: keeper",
    "lambda *a: (getattr, (keeper, '_hidden'))",
    "Keeper",
    "OUT.append",
)
GUARDED_NAMES = "format format_map obj __class__ __init__ _hidden public".split()
ENUM_NAMES = "_create_ _convert_ _new_member_ _find_new_ _get_mixins_ _member_map_ _add_member_".split()
CODE = (
    "'x:{len.__self__.open(chr(47)):s}'",
    "'x, len.__self__.open(chr(47))'",
    "'x): pass\\n  OUT.append(len.__self__)\\n  def f(y'",
)

NUMPY_PRELUDE = """
import numpy as np
objects = np.array([keeper, plain], dtype=object)
class Typed:
    dtype = "V8"
"""
NUMPY_KINDS = (
    (
        ("np.zeros(2)", "objects", "np.arange(4).reshape(2, 2)", "np.array(['a'])"),
        "data base ctypes flags flat dtype T tobytes tolist",
    ),
    (
        ("np.zeros(1).dtype", "objects.dtype", "np.array(['a']).dtype"),
        "type base fields metadata newbyteorder descr subdtype",
    ),
    (("np.float64(1)", "np.float64", "np.str_('a')"), "data base view dtype astype format"),
    (("np.random.RandomState(1)", "np.random.default_rng(1)"), "bit_generator set_state _bit_generator get_state"),
    (("np.zeros(2).flat", "np.ndindex(2)", "np.ndenumerate(np.zeros(2))"), "base iter _it coords"),
)
NUMPY_CALLS = "view astype getfield setfield resize setflags newbyteorder dumps dump tofile byteswap".split()
DTYPES = (
    "'V8'",
    "[('a', 'O')]",
    "'i8,O'",
    "{'names': ['a'], 'formats': ['O'], 'offsets': [0]}",
    "object",
    "(object, 2)",
    "('V8', [('a', 'O')])",
    "Typed()",
    "Typed",
    "np.zeros(1).dtype * 2",
    "'O'",
    "np.zeros(1).dtype.type",
)
