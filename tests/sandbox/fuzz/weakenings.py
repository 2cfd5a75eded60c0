"""Holes to plant: each takes away one check, so that the fuzzer can be seen to find what it is there for."""

import abc
import builtins
import contextlib
import copy
import dataclasses
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

from spade_envs.sandbox import guards, modules, names, policy_names, policy_patterns, policy_scopes, wrappers


def _allow(*allowed: str) -> Callable[[], None]:
    def apply() -> None:
        original = names.attribute_refusal

        def refusal(given: str, *, reading: bool) -> str | None:
            return None if given in allowed else original(given, reading=reading)

        for module in (names, guards, policy_names, policy_patterns):
            module.attribute_refusal = refusal

    return apply


def _everything_is_own() -> None:
    guards.own = lambda value: value


def _plain_getattr() -> None:
    guards.safe_getattr = builtins.getattr


def _plain_format() -> None:
    guards._safe_formatting = lambda found, name: found


def _plain_setattr() -> None:
    guards.object_setattr = object.__setattr__


def _no_receiver_check() -> None:
    policy_scopes.ScopePolicy._receiver_check = lambda self, name, at: policy_scopes.ast.copy_location(
        policy_scopes.ast.Pass(), at
    )


def _real_types() -> None:
    guards.type_of = type


def _any_base() -> None:
    guards.build_class = builtins.__build_class__


def _changes_in_place() -> None:
    policy_scopes.ScopePolicy.visit_AugAssign = lambda self, node: self.node_contents_visit(node)


def _methods_hide_nothing() -> None:
    policy_names.NamePolicy.is_builtin = lambda self, name: self.bindings.is_builtin(name)


def _free_patterns() -> None:
    policy_patterns.PatternPolicy.visit_MatchClass = lambda self, node: self.node_contents_visit(node)


def _plain_copying() -> None:
    copy._reconstruct = _reconstruct


def _reconstruct(x: Any, memo: Any, function: Any, args: Any, state: Any = None, *rest: Any, **named: Any) -> Any:
    made = function(*args)
    if state is not None:
        state = copy.deepcopy(state, memo) if memo is not None else state
        for part in state if type(state) is tuple else (state,):
            for name, value in (part or {}).items():
                setattr(made, name, value)
    return made


def _hand_out(module: str, name: str, value: Any) -> Callable[[], None]:
    def apply() -> None:
        object.__setattr__(modules.load_module(module), name, value)

    return apply


def _any_super() -> None:
    original = policy_names.NamePolicy._is_super
    policy_names.NamePolicy._is_super = lambda self, node, arguments=0: original(self, node) or original(self, node, 2)


def _private_fields() -> None:
    wrappers._keep_to_own = lambda made, written: None


def _any_receiver_of_init() -> None:
    guards._own_constructor = lambda value, found: found


def _obj_may_be_read() -> None:
    policy_names.GUARDED_ATTRIBUTES = names.GUARDED_ATTRIBUTES - {"obj"}


def _receivers_bound_again() -> None:
    policy_scopes.BINDERS = ()


def _positions_stay() -> None:
    policy_patterns.PatternPolicy._name_positions = lambda self, node: None


def _numpy_attributes() -> None:
    guards._check_numpy = lambda value, name: None


def _numpy_bases() -> None:
    import numpy as np

    guards._BASES.update((np.float64, np.ndindex))


UNGUARDED_RECONSTRUCT = copy._reconstruct


def _unguarded_copying() -> None:
    copy._reconstruct = UNGUARDED_RECONSTRUCT


def _any_field() -> None:
    wrappers.GUARDED_ATTRIBUTES = frozenset()


WEAKENINGS: dict[str, Callable[[], None]] = {
    "__globals__ may be read": _allow("__globals__"),
    "tb_frame may be read": _allow("tb_frame"),
    "everything is the program's own": _everything_is_own,
    "getattr is not guarded": _plain_getattr,
    "format is not guarded": _plain_format,
    "object.__setattr__ is not guarded": _plain_setattr,
    "receivers are not checked": _no_receiver_check,
    "type gives metaclasses": _real_types,
    "any base": _any_base,
    "guarded attributes changed in place": _changes_in_place,
    "methods hide no built-ins": _methods_hide_nothing,
    "patterns are not checked": _free_patterns,
    "copies take any state": _plain_copying,
    "contextmanager takes any class": _hand_out("contextlib", "contextmanager", contextlib.contextmanager),
    "abstractmethod marks anything": _hand_out("abc", "abstractmethod", abc.abstractmethod),
    "dataclass takes any class": _hand_out("dataclasses", "dataclass", dataclasses.dataclass),
    "wraps copies everything": _hand_out("functools", "wraps", functools.wraps),
    "attrgetter is not guarded": _hand_out("operator", "attrgetter", operator.attrgetter),
    "SimpleNamespace takes any name": _hand_out("types", "SimpleNamespace", types.SimpleNamespace),
    "super with two arguments is not checked": _any_super,
    "private methods of enumerations": _allow(*names.METACLASS_PRIVATES),
    "dataclasses read private fields of anything": _private_fields,
    "__init__ takes any receiver": _any_receiver_of_init,
    "obj of exceptions may be read": _obj_may_be_read,
    "receivers may be bound again": _receivers_bound_again,
    "positions in patterns stay": _positions_stay,
    "copies are not guarded": _unguarded_copying,
    "dataclass fields hide guarded attributes": _any_field,
    "numpy: attributes are not guarded": _numpy_attributes,
    "numpy: classes are bases": _numpy_bases,
}


def apply(name: str) -> None:
    """Plant one hole."""
    WEAKENINGS[name]()
