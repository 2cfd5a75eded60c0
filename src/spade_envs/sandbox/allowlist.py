"""What generated code may import, as data: module -> public names.

Only these names are handed out, through frozen proxies (:mod:`.modules`). Names that take attribute names as strings,
evaluate text, touch files or hold global state are absent or replaced by wrappers of our own.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module

ALL = "*"
"""Every public name of a module (used for modules of plain C functions only)."""

MODULES: dict[str, str] = {
    "abc": "ABC ABCMeta abstractmethod abstractproperty abstractclassmethod abstractstaticmethod",
    "array": "array",
    "ast": "literal_eval parse walk iter_child_nodes NodeVisitor AST Module Expression Expr expr operator unaryop "
    "boolop cmpop BinOp UnaryOp BoolOp Compare IfExp Constant Num Str Name Load Call Tuple List Dict Set Subscript "
    "Slice Add Sub Mult Div FloorDiv Mod Pow BitAnd BitOr BitXor LShift RShift USub UAdd Not Invert And Or Eq NotEq "
    "Lt LtE Gt GtE Is IsNot In NotIn",
    "base64": "b64encode b64decode b32encode b32decode b16encode b16decode urlsafe_b64encode urlsafe_b64decode",
    "binascii": "hexlify unhexlify crc32",
    "bisect": ALL,
    "calendar": "isleap leapdays monthrange monthcalendar weekday timegm month_name month_abbr day_name day_abbr",
    "cmath": ALL,
    "collections": "deque defaultdict Counter OrderedDict ChainMap namedtuple UserDict UserList abc",
    "collections.abc": "Iterable Iterator Reversible Sequence MutableSequence Mapping MutableMapping Set "
    "MutableSet Callable Hashable Sized Container Collection Generator KeysView ValuesView ItemsView",
    "contextlib": "suppress contextmanager nullcontext closing",
    "copy": "copy deepcopy",
    "csv": "reader writer DictReader DictWriter QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC",
    "dataclasses": "dataclass field fields asdict astuple replace is_dataclass FrozenInstanceError InitVar KW_ONLY",
    "datetime": "datetime date time timedelta timezone UTC MINYEAR MAXYEAR",
    "decimal": "Decimal getcontext localcontext Context ROUND_HALF_UP ROUND_HALF_EVEN ROUND_HALF_DOWN "
    "ROUND_DOWN ROUND_UP ROUND_FLOOR ROUND_CEILING InvalidOperation DivisionByZero DecimalException "
    "Inexact Overflow",
    "difflib": "SequenceMatcher get_close_matches ndiff unified_diff",
    "enum": "Enum IntEnum StrEnum Flag IntFlag auto unique",
    "fractions": "Fraction",
    "functools": "reduce partial lru_cache cache cached_property cmp_to_key total_ordering wraps",
    "gymnasium": "Env spaces",
    "gymnasium.spaces": "Space Discrete Text Box Dict Tuple MultiDiscrete MultiBinary",
    "hashlib": "md5 sha1 sha224 sha256 sha384 sha512 blake2b blake2s",
    "heapq": ALL,
    "io": "StringIO",
    "itertools": ALL,
    "json": "loads dumps JSONDecodeError JSONEncoder",
    "logging": "getLogger basicConfig debug info warning error critical exception DEBUG INFO WARNING ERROR "
    "CRITICAL NullHandler",
    "math": ALL,
    "math_verify": "parse verify verify_answer",
    "numbers": "Number Complex Real Rational Integral",
    "operator": "add sub mul truediv floordiv mod neg pos abs and_ or_ xor not_ lt le eq ne gt ge itemgetter "
    "attrgetter methodcaller contains concat countOf indexOf pow lshift rshift invert inv index truth is_ "
    "is_not getitem setitem delitem iadd isub imul iand ior ixor matmul length_hint",
    "pprint": "pformat",
    "queue": "Queue PriorityQueue LifoQueue SimpleQueue Empty Full",
    "random": "Random seed random randint randrange randbytes choice choices sample shuffle uniform gauss "
    "normalvariate triangular betavariate expovariate gammavariate lognormvariate paretovariate "
    "vonmisesvariate weibullvariate getrandbits getstate setstate",
    "re": "compile match search fullmatch findall finditer sub subn split escape purge IGNORECASE I MULTILINE "
    "M DOTALL S VERBOSE X ASCII A UNICODE U NOFLAG Pattern Match error",
    "spade_envs": "TextEnv ToolEnv ToolUseBaseEnv TerminalBaseEnv verify_answer",
    "spade_envs.contract": "TextEnv ToolEnv ToolUseBaseEnv TerminalBaseEnv verify_answer parse verify",
    "statistics": "mean fmean median median_low median_high median_grouped mode multimode stdev pstdev "
    "variance pvariance quantiles geometric_mean harmonic_mean correlation covariance linear_regression "
    "StatisticsError",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits punctuation printable "
    "whitespace capwords Template",
    "struct": "pack unpack calcsize error",
    "sys": "exit maxsize maxunicode float_info version_info setrecursionlimit getrecursionlimit getsizeof "
    "stdout stderr argv platform version",
    "textwrap": "dedent wrap fill indent shorten",
    "time": "time time_ns perf_counter perf_counter_ns monotonic process_time sleep strftime gmtime localtime",
    "types": "SimpleNamespace MappingProxyType",
    "typing": "AbstractSet Annotated Any AnyStr BinaryIO Callable ClassVar Collection Container Counter "
    "DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable Iterable Iterator List Literal "
    "Mapping MutableMapping MutableSequence MutableSet NamedTuple NewType NoReturn Optional OrderedDict "
    "Pattern Match Protocol Reversible Self Sequence Set Sized SupportsFloat SupportsInt Text Tuple Type "
    "TypeAlias TypeVar TypedDict Union TYPE_CHECKING cast final overload runtime_checkable",
    "unicodedata": "name lookup category normalize decimal digit numeric bidirectional combining east_asian_width",
    "uuid": "UUID uuid4",
    "warnings": "warn filterwarnings simplefilter",
    "zlib": "crc32 adler32",
}
"""Importable modules and their names, in every program."""

NUMPY = (
    "array asarray zeros ones full empty zeros_like ones_like full_like empty_like arange linspace logspace "
    "eye identity diag diagonal stack concatenate vstack hstack column_stack dstack split array_split append "
    "insert delete sum mean std var min max amin amax argmin argmax argsort sort argpartition partition "
    "cumsum cumprod prod dot vdot inner matmul where any all abs absolute sqrt cbrt square exp expm1 exp2 log "
    "log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh hypot degrees radians floor "
    "ceil round around trunc rint clip unique array_equal allclose isclose isnan isinf isfinite isin inf nan "
    "pi e newaxis int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128 bool_ str_ integer floating number ndarray rot90 flip fliplr flipud transpose swapaxes moveaxis "
    "tile repeat meshgrid maximum minimum fmax fmin sign mod remainder fmod power float_power divide multiply "
    "add subtract negative floor_divide count_nonzero nonzero flatnonzero argwhere outer cross kron diff "
    "ediff1d gradient median percentile quantile average roll trace triu tril tri gcd lcm bincount histogram "
    "digitize searchsorted interp polyfit polyval roots convolve corrcoef cov copy reshape ravel squeeze "
    "expand_dims broadcast_to array2string array_repr array_str set_printoptions logical_and logical_or "
    "logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not left_shift right_shift indices "
    "loadtxt unravel_index ravel_multi_index ndindex ndenumerate intersect1d union1d setdiff1d setxor1d take "
    "take_along_axis put choose compress pad nan_to_num nansum nanmean nanmax nanmin isscalar ndim shape size "
    "real imag conj iscomplex isreal fromiter heaviside"
)
NUMPY_RANDOM = (
    "default_rng RandomState Generator seed random rand randn randint random_sample choice shuffle "
    "permutation uniform normal poisson binomial exponential beta gamma standard_normal"
)
NUMPY_LINALG = (
    "norm det inv pinv solve eig eigh eigvals eigvalsh svd qr cholesky matrix_rank matrix_power lstsq LinAlgError"
)

OPTIONAL: dict[str, dict[str, str]] = {
    "numpy": {"numpy": f"{NUMPY} random linalg", "numpy.random": NUMPY_RANDOM, "numpy.linalg": NUMPY_LINALG},
}
"""Modules a caller may opt in to: memory-unsafe, so only the process jail contains them."""

PREBOUND_MODULES: str = (
    "random re math json string itertools collections functools heapq bisect copy time datetime statistics operator "
    "textwrap hashlib fractions decimal enum dataclasses typing abc"
)
"""Modules whose names are bound before the program runs; published programs use them without importing."""

PREBOUND: dict[str, str] = {
    "collections": "Counter defaultdict deque OrderedDict namedtuple ChainMap",
    "copy": "deepcopy",
    "dataclasses": "dataclass field asdict",
    "decimal": "Decimal",
    "enum": "Enum IntEnum auto",
    "fractions": "Fraction",
    "functools": "reduce partial lru_cache wraps cached_property",
    "itertools": "product permutations combinations accumulate chain",
    "abc": "ABC abstractmethod",
    "typing": "Any Callable ClassVar DefaultDict Deque Dict FrozenSet Generator Generic Iterable Iterator "
    "List Literal Mapping NamedTuple Optional Sequence Set Tuple Type TypeVar TypedDict Union",
    "spade_envs.contract": "TextEnv ToolEnv ToolUseBaseEnv TerminalBaseEnv verify_answer parse verify",
}
"""Names bound before the program runs."""

SUGGESTIONS = {
    "os": "remove it: there are no files, processes or environment variables",
    "pathlib": "remove it: there are no files; keep data in the source",
    "subprocess": "remove it: no other program can be run",
    "threading": "write it in one thread; for queues use collections.deque",
    "multiprocessing": "write it in one process",
    "asyncio": "write it without async",
    "importlib": "import the module by name",
    "inspect": "keep a dict of name -> function",
    "pickle": "use copy.deepcopy, or json.dumps and json.loads",
    "secrets": "use random",
    "sympy": "compute with fractions.Fraction and math",
    "scipy": "write the formula in plain Python",
    "pandas": "use lists of dicts",
    "networkx": "use a dict of node -> neighbours",
    "torch": "write it in plain Python",
    "requests": "there is no network; keep the data in the source",
    "traceback": "use str(error)",
    "tempfile": "there are no files; use io.StringIO",
    "gym": 'use "gymnasium"',
    "builtins": "call the built-in by its name",
    "numpy": 'it is opt-in: write it in plain Python, or allow it: --allow numpy, in Python allow=["numpy"]',
}
"""What to do instead of importing a module that is not available."""


_NO_MODULE = (
    "remove the import and write in plain Python what the program needs of it (random, math, re, string, itertools, "
    "collections and the like can be imported)"
)


@lru_cache(maxsize=256)
def public_names(module: str, allow: frozenset[str] = frozenset()) -> frozenset[str] | None:
    """Return the names that ``module`` offers to generated code, or None when it may not be imported."""
    listed = MODULES.get(module)
    for optional in allow:
        listed = OPTIONAL.get(optional, {}).get(module, listed)
    if listed is None:
        return None
    if listed == ALL:
        return frozenset(name for name in dir(import_module(module)) if not name.startswith("_"))
    return frozenset(listed.split())


def import_refusal(module: str, allow: frozenset[str] = frozenset()) -> str:
    """Return why ``module`` cannot be imported and what to do instead."""
    top = module.partition(".")[0]
    advice = SUGGESTIONS.get(module) or SUGGESTIONS.get(top)
    if advice is None:
        near = get_close_matches(module, importable(allow), n=3, cutoff=0.6)
        # No list of all that there is: models import the whole of it.
        advice = f"nearest available: {', '.join(near)}" if near else _NO_MODULE
    return f'module "{module}" is not available; {advice}'


def missing_name(module: str, name: str, allow: frozenset[str] = frozenset()) -> str:
    """Return why ``module.name`` is refused, with the nearest names that the module does offer."""
    names = sorted(public_names(module, allow) or ())
    folded = {candidate.lower(): candidate for candidate in names}
    near = [folded[match] for match in get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    offer = f"nearest: {', '.join(near)}" if near else f"it offers: {', '.join(names[:30])}"
    return f'"{module}.{name}" is not available; {offer}'


def importable(allow: frozenset[str] = frozenset()) -> list[str]:
    """Return the sorted names of the modules that a program with ``allow`` may import."""
    return sorted({*MODULES, *(name for optional in allow for name in OPTIONAL.get(optional, {}))})
