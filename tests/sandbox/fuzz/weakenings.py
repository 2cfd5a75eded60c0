"""Holes to plant: each takes away one check, so that the fuzzer can be seen to find what it is there for."""

import builtins
import copy
from collections.abc import Callable
from typing import Any

from spade_envs.sandbox import guards, names, policy_names, policy_patterns, policy_scopes

ORIGINAL_RECONSTRUCT = copy._reconstruct


def _allow(name: str) -> Callable[[], None]:
    def apply() -> None:
        original = names.attribute_refusal

        def refusal(given: str, *, reading: bool) -> str | None:
            return None if given == name else original(given, reading=reading)

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
}


def apply(name: str) -> None:
    """Plant one hole."""
    WEAKENINGS[name]()
