"""Run as a script: run batches of programs with the real guards, each batch in a jailed child, and report what got out.

    python fuzz_harness.py [--numpy] [WEAKENING]

Reads one JSON list of programs (lists of fragments) per line and writes one JSON list of findings per line. A weakening
takes one guard away first (:mod:`weakenings`); with ``--numpy`` the programs have opted in to numpy. A finding is a
forbidden event (audit hook), a forbidden object within reach of the program afterwards, text of the canary's secret, a
change of something that is not the program's own, or the death of the child.
"""

# ruff: noqa: SIM905 - lists as text
import contextlib
import functools
import json
import os
import signal
import sys
import types
from collections.abc import Iterator

import weakenings
from attack_targets import NUMPY_PRELUDE, PRELUDE

from spade_envs.sandbox import guards, jail, loader, policy
from spade_envs.sandbox.names import METACLASS_PRIVATES, attribute_refusal

ALLOW = frozenset({"numpy"} if "--numpy" in sys.argv else ())
TOKEN = "canary-7f3a91"
SECONDS = 0.5
canary = types.ModuleType("canary")
exec(
    f"""
TOKEN = {TOKEN!r}
class Secret:
    def __repr__(self): return TOKEN
class Keeper:
    public = "public"
    def __init__(self): self._hidden, self.public = Secret(), "public"
    def method(self, *_): return 1
def helper(*_): return 1
keeper = Keeper()
failed = AttributeError("failed", name="x", obj=Secret())
""",
    canary.__dict__,
)
GIVEN = {name: getattr(canary, name) for name in ("keeper", "Keeper", "helper", "failed")}

# -- what must not happen ---------------------------------------------------------------------------
FORBIDDEN_EVENTS = """
open os. socket. subprocess. ctypes. marshal. pickle. code.__new__ function.__new__ sys._getframe sys.set
sys._current gc. shutil. glob. tempfile. import
""".split()
INTROSPECTION = ("object.__getattr__", "object.__setattr__", "object.__delattr__", "exec", "compile")
NEAR = ("<environment>", "guards.py", "wrappers.py", "hardening.py", "copy.py", "string.py")
events: list[str] = []
armed = False


def audit(event: str, arguments: tuple[object, ...]) -> None:
    """Note what a program must not cause; introspection counts when it is the program or a guard that looks."""
    if not armed:
        return
    if event in INTROSPECTION:
        place = real_frame(1)
        if not place.co_filename.endswith(NEAR):
            return  # library code at its own work
        if event.startswith("object.__set") and place.co_filename.endswith("wrappers.py"):
            return  # the name of a wrapped function or class of the program's own
        if event == "compile" and arguments[1] == "<string>":
            return  # typing compiles annotations given as text, and does not run them
        events.append(f"{event} {arguments[-1]!r}"[:80])
    elif event.startswith(tuple(FORBIDDEN_EVENTS)):
        if event in ("sys._getframe", "sys._getframemodulename", "import"):
            if real_frame(1).co_filename == "<environment>":
                events.append(event)
        else:
            events.append(f"{event} {arguments!r}"[:80])


def real_frame(depth: int) -> types.CodeType:
    """The code that runs at ``depth`` (reading a frame is no event while disarmed)."""
    global armed
    armed = False
    try:
        return sys._getframe(depth + 1).f_code
    finally:
        armed = True


# -- what must not be reachable ---------------------------------------------------------------------
import builtins  # noqa: E402
import copy  # noqa: E402
import enum  # noqa: E402
from abc import ABCMeta  # noqa: E402

KINDS = (types.ModuleType, types.FrameType, types.CodeType, canary.Secret)
NAMED = """
eval exec open compile __import__ globals locals vars dir input getattr setattr delattr memoryview breakpoint
__build_class__
""".split()
OBJECTS = {id(getattr(builtins, name)): name for name in NAMED} | {
    id(value): name
    for value, name in (
        (type, "type"),
        (ABCMeta, "ABCMeta"),
        (enum.EnumMeta, "EnumMeta"),
        (types.FunctionType, "FunctionType"),
        (types.MethodType, "MethodType"),
        (types.SimpleNamespace, "SimpleNamespace"),
        (types.GenericAlias, "GenericAlias"),
        (str.format, "str.format"),
        (functools.update_wrapper, "update_wrapper"),
        (guards.own_classes, "the guards' classes"),
        (builtins.__dict__, "the built-ins"),
        (copy.__dict__, "the namespace of copy"),
    )
}
RAW = (classmethod, staticmethod, property, types.DynamicClassAttribute)
LIBRARY_STATE = set(
    "__orig_class__ __notes__ __objclass__ _name_ _value_ __name__ __qualname__ __doc__ __isabstractmethod__".split()
)
"""What library code itself puts on a program's objects, and nothing trusts."""
OWN_FUNCTION = types.FunctionType
LIMIT = 4000


def forbidden(value: object) -> str | None:
    """Why ``value`` must not be in a program's hands, or None."""
    if isinstance(value, KINDS):
        return type(value).__name__
    if id(value) in OBJECTS:
        return OBJECTS[id(value)]
    if isinstance(value, type):
        stand_in = issubclass(type(value), guards._StandInMeta)
        if stand_in and value.__module__ == "environment":
            return "a class derived from a stand-in"
        if issubclass(value, type):
            return "a metaclass"
    if type(value) is types.BuiltinMethodType:
        if value.__name__ in ("format", "format_map") and isinstance(value.__self__, str) and "{" in value.__self__:
            return "str.format, unguarded"
        if value.__name__ in ("__subclasses__", "__new__", "__reduce__", "__reduce_ex__", "mro", "__dir__"):
            return value.__name__
    if isinstance(value, types.SimpleNamespace) or (
        type(value).__module__ == "environment" and not isinstance(value, RAW)
    ):
        held = getattr(value, "__dict__", {})
        if type(held) is dict and any(attribute_refusal(str(name), reading=False) for name in {*held} - LIBRARY_STATE):
            return "an object with a special method of its own"
    if isinstance(value, types.FunctionType):
        wrapped = vars(value).get("__wrapped__", value)
        if wrapped is not value and getattr(wrapped, "__module__", None) != "environment":
            return "a function with the attributes of something else"
    if type(value) is dict and any(value is vars(module) for module in list(sys.modules.values())):
        return "a namespace"
    if type(value) is types.MappingProxyType and "__module__" in value and value["__module__"] != "environment":
        return "the namespace of a class"
    if type(value) is types.MethodType and value.__func__.__name__ in {"_randbelow", *METACLASS_PRIVATES}:
        return "a private method"
    if isinstance(value, types.DynamicClassAttribute):
        return "a raw descriptor"
    if ALLOW:
        return reinterpreted(value)
    if isinstance(value, str) and TOKEN in str.__str__(value):
        return "text of the secret"
    return None


def reinterpreted(value: object) -> str | None:
    """Why a thing of numpy's is a way to raw memory, or None."""
    import numpy as np

    if (
        isinstance(value, np.dtype)
        and value.fields
        and value.hasobject != any(f[0].hasobject for f in value.fields.values())
    ):
        return "numpy: a forged data type"
    if value is np.ndarray or (isinstance(value, type) and issubclass(value, np.dtype)):
        return "numpy: a constructor"
    if isinstance(value, type) and value.__module__ == "environment" and issubclass(value, np.generic | np.ndindex):
        return "numpy: a class derived"
    if type(value).__name__ in ("nditer", "memoryview", "_ctypes", "PyCapsule", "MT19937", "PCG64"):
        return f"numpy: {type(value).__name__}"
    return None


def parts(value: object) -> Iterator[object]:
    """What a program holds when it holds ``value``: items, attributes of its own objects, closures."""
    kind = type(value)
    if issubclass(kind, dict):
        yield from dict.keys(value)
        yield from dict.values(value)
    elif issubclass(kind, list):
        yield from list.__iter__(value)
    elif issubclass(kind, tuple):
        yield from tuple.__iter__(value)
    elif issubclass(kind, set):
        yield from set.__iter__(value)
    if issubclass(kind, type) and value.__module__ == "environment":
        for name, item in type.__getattribute__(value, "__dict__").items():
            readable = not attribute_refusal(name, reading=True) and not isinstance(item, RAW)
            if readable or name in ("__slots__", "__match_args__"):
                yield item
    elif kind is OWN_FUNCTION and value.__globals__.get("__name__") == "environment":
        yield from value.__defaults__ or ()
        yield from (cell.cell_contents for cell in value.__closure__ or () if _filled(cell))
    elif kind.__module__ == "environment" or issubclass(kind, BaseException):
        with contextlib.suppress(AttributeError):
            yield from object.__getattribute__(value, "__dict__").values()
        if issubclass(kind, BaseException):
            yield from tuple.__iter__(value.args)
            yield str.__str__(value.args[0]) if value.args and isinstance(value.args[0], str) else ""
    elif ALLOW and kind.__module__ == "numpy" and getattr(getattr(value, "dtype", None), "kind", "") == "O":
        yield from value.ravel().tolist()
    elif kind is functools.partial:
        yield value.func
        yield from value.args
    elif kind is types.SimpleNamespace or issubclass(kind, types.SimpleNamespace):
        yield from vars(value).values()


def _filled(cell: object) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def reached(namespace: dict[str, object]) -> str | None:
    """The first forbidden object within reach of the program's globals."""
    provided = set(loader_names)
    queue = [value for name, value in namespace.items() if name not in provided or value is not loader_names[name]]
    seen = {id(canary.keeper)}
    for value in queue:
        if id(value) in seen or len(queue) > LIMIT:
            continue
        seen.add(id(value))
        kept.append(value)
        why = forbidden(value)
        if why is not None:
            return why
        queue.extend(parts(value))
    return None


loader_names: dict[str, object] = {}
kept: list[object] = []


# -- what must not change ---------------------------------------------------------------------------
def snapshot(watched: list[object]) -> list[dict[str, int]]:
    """Identities of the attributes of what is not the program's own."""
    return [{name: id(item) for name, item in vars(value).items() if name not in VOLATILE} for value in watched]


VOLATILE = {"__annotations__", "__abstractmethods__", "_abc_impl", "__doc__", "__slotnames__", "__parameters__"}


def changed(watched: list[object], before: list[dict[str, int]]) -> str | None:
    """Name what was written to."""
    for value, old in zip(watched, before):
        new = {name: id(item) for name, item in vars(value).items() if name not in VOLATILE}
        if new != old:
            names = sorted(name for name in {*new, *old} if new.get(name) != old.get(name))
            return f"{getattr(value, '__name__', value)!s}: {', '.join(names)} changed"
    return None


# -- running ------------------------------------------------------------------------------------------
def accepted(fragments: list[str]) -> str:
    """The source of the fragments that the policy lets through."""
    kept_fragments = [text for text in fragments if not policy.check(text, ALLOW)]
    tried = []
    for text in kept_fragments:
        block = "\n".join("    " + line for line in text.split("\n"))
        attempt = f"try:\n{block}\nexcept Exception as failure: OUT.append(str(failure))\n"
        tried.append(attempt if not policy.check(attempt, ALLOW) else text + "\n")
    return PRELUDE + (NUMPY_PRELUDE if ALLOW else "") + "".join(tried)


def run(fragments: list[str], watched: list[object]) -> str | None:
    """Run one program; return what is wrong about it."""
    global armed
    source = accepted(fragments)
    try:
        code = policy.compile_program(source, ALLOW)
    except policy.PolicyViolation as refusal:
        return f"fragments accepted alone are refused together: {refusal}" if "binding" in str(refusal) else None
    namespace = loader.make_namespace(ALLOW) | GIVEN | {"ast_node": loader_node, "sys_stream": loader_stream}
    loader_names.clear()
    loader_names.update(namespace)
    loader_names.pop("OUT", None)
    before = snapshot(watched)
    events.clear()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        armed = True
        exec(code, namespace)
    except BaseException:
        pass
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
    wrong = changed(watched, before) or reached(namespace) or (events[0] if events else None)
    kept.clear()
    return wrong


def stop(*_arguments: object) -> None:
    """End a program that takes too long."""
    raise TimeoutError("too long")


def child(batch: list[list[str]], descriptor: int, parent: int) -> None:
    """Run a batch behind the jail; write a byte string per program, so that a death names its program."""
    layers = jail.lock_down(keep=descriptor, parent=parent, memory_mb=512, cpu_seconds=60)
    if layers.get("rlimits") != "on":
        os._exit(9)
    signal.signal(signal.SIGALRM, stop)
    for program in batch:
        try:
            wrong = run(program, WATCHED)
        except BaseException as error:
            wrong = f"the harness failed: {type(error).__name__}: {error}"[:200]
        os.write(descriptor, json.dumps(wrong).encode() + b"\n")
    os._exit(0)


def serve(batch: list[list[str]]) -> list[str | None]:
    """Return what is wrong with each program of ``batch``."""
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        os.close(reading)
        child(batch, writing, parent)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answers = [json.loads(line) for line in stream.read().splitlines()]
    status = os.waitpid(pid, 0)[1]
    if len(answers) < len(batch):
        answers.append(f"the child died: status {status}")
        answers += [None] * (len(batch) - len(answers))
    return answers


def watch() -> list[object]:
    """Classes and objects that a program can reach and must not change."""
    loader.make_namespace()
    found: list[object] = [canary.keeper, canary.Keeper, canary.helper, builtins]
    for base in guards._BASES:
        if not issubclass(base, BaseException) and isinstance(vars(base), types.MappingProxyType):
            found.append(base)
    return found


if __name__ == "__main__":
    loader.warm(ALLOW)
    loader.harden()
    planted = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    for hole in planted:
        weakenings.apply(hole)
    loader.make_namespace(ALLOW)
    jail.warm()
    WATCHED = watch()
    loader_node = __import__("ast").parse("1 + 1")
    loader_stream = loader.load_module("sys").stdout
    sys.addaudithook(audit)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)
