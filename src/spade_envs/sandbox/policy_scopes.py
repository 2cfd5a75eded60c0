"""The part of the policy about functions, classes and native statement forms.

A method's first parameter is *proven* to be the program's own object by one check at the start of the method, if the
method writes to it or reads its private attributes, and never binds that name again. Accesses through it are then
native. Nested functions that do not take the name as a parameter share the proof.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .bindings import BINDERS, bound_names, is_pseudo_field
from .names import DEFINABLE_DUNDERS, is_dunder
from .policy_names import NamePolicy
from .trees import walk

_ANNOTATION_TEXT = 1_000  # characters
_KEPT_ANNOTATIONS = frozenset({"int", "str", "float", "bool", "list", "dict"})


@dataclass(slots=True)
class _Scope:
    """A function (with its proven receiver, if any) or a class body."""

    is_class: bool
    receiver: str | None = None
    owner: _Scope | None = None  # the method whose start holds the check
    needs_check: bool = False


class ScopePolicy(NamePolicy):
    """Functions, classes, assignments and loops."""

    def in_class_body(self) -> bool:
        """Whether the current scope is a class body."""
        return bool(self._scopes) and self._scopes[-1].is_class

    def is_receiver(self, node: ast.expr, *, touch: bool = False) -> bool:
        """Whether ``node`` names the proven receiver of the current method."""
        scope = self._scopes[-1] if self._scopes else None
        if scope is None or not (isinstance(node, ast.Name) and node.id == scope.receiver):
            return False
        if touch:
            (scope.owner or scope).needs_check = True
        return True

    def visit_Module(self, node: ast.Module) -> ast.AST:  # noqa: N802
        """Visit the module without RestrictedPython's print collector."""
        self._scopes: list[_Scope] = []
        return self.node_contents_visit(node)

    # -- native forms -----------------------------------------------------------------------------
    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:  # noqa: N802
        """Leave subscripts native."""
        return self.node_contents_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:  # noqa: N802
        """Leave assignments native (their targets are visited)."""
        return self.node_contents_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:  # noqa: N802
        """Leave augmented assignments native, but for what they would read without a guard."""
        if isinstance(node.target, ast.Attribute) and node.target.attr in self.guarded:
            name = node.target.attr
            self.refuse(node, f'attribute "{name}" cannot be changed in place; write x.{name} = ...')
        return self.node_contents_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:  # noqa: N802
        """Leave loops native."""
        return self.node_contents_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Leave comprehensions native, without ``async``."""
        if node.is_async:
            self.refuse(node.target, '"async for" is not available; use "for"')
        return self.node_contents_visit(node)

    def visit_With(self, node: ast.With) -> ast.AST:  # noqa: N802
        """Leave ``with`` native."""
        return self.node_contents_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:  # noqa: N802
        """Check the name of the exception."""
        self.bind(node, node.name)
        return self.node_contents_visit(node)

    def visit_Try(self, node: ast.Try) -> ast.AST:  # noqa: N802
        """Let an import fail when it runs, if the statement around it expects that."""
        before = self.import_may_fail
        self.import_may_fail = before or any(map(_catches_import_error, node.handlers))
        node.body = self._visit_block(node.body)
        self.import_may_fail = before
        node.handlers = [self.visit(handler) for handler in node.handlers]
        node.orelse = self._visit_block(node.orelse)
        node.finalbody = self._visit_block(node.finalbody)
        return node

    def visit_TemplateStr(self, node: ast.AST) -> None:  # noqa: N802
        """Refuse template strings: their parts can be read natively."""
        self.not_allowed(node)

    visit_Interpolation = visit_TemplateStr  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:  # noqa: N802
        """Keep annotations in class bodies (dataclasses need them); drop all others."""
        if not self.in_class_body():
            if node.value is None:
                self.visit(node.target)
                return ast.copy_location(ast.Pass(), node)
            plain = ast.copy_location(ast.Assign([node.target], node.value), node)
            return self.visit_Assign(ast.fix_missing_locations(plain))
        if self.bindings.postponed and not is_pseudo_field(node.annotation):
            text = ast.Constant(ast.unparse(node.annotation))
            node.annotation = ast.copy_location(text, node.annotation)
        elif self.bindings.postponed and isinstance(node.annotation, ast.Subscript):
            node.annotation = node.annotation.value  # ClassVar[X] becomes ClassVar: X may not exist yet
        node.annotation = self.visit(node.annotation)
        node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    # -- functions --------------------------------------------------------------------------------
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: N802
        """Check a function; insert the receiver's check where it is needed."""
        self._check_signature(node)
        if not is_dunder(node.name):
            self.bind(node, node.name)
        elif node.name not in DEFINABLE_DUNDERS or not self.in_class_body():
            self.refuse(node, f'defining "{node.name}" is not available; use __init__ and plain methods')
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = self._kept(argument.annotation) if node.name.startswith("tool_") else None
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        self._visit_defaults(node.args)
        scope = _Scope(False, *self._receiver(node))
        self._scopes.append(scope)
        node.body = self._visit_block(node.body)
        self._scopes.pop()
        if scope.needs_check and scope.receiver:
            docstring = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
            node.body.insert(1 if docstring else 0, self._receiver_check(scope.receiver, node.body[0]))
        return node

    def _kept(self, annotation: ast.expr | None) -> ast.expr | None:
        """What stays of a tool's annotation, for its schema: a builtin class, else its text, which does nothing."""
        if annotation is None:
            return None
        if isinstance(annotation, ast.Name) and annotation.id in _KEPT_ANNOTATIONS:
            return annotation if self.bindings.is_builtin(annotation.id) else None
        written = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
        text = annotation.value if written else ast.unparse(annotation)  # type: ignore[attr-defined]
        return ast.copy_location(ast.Constant(text[:_ANNOTATION_TEXT]), annotation)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:  # noqa: N802
        """Check a lambda; it has no place for a check of its own, so its parameters prove nothing."""
        self._check_signature(node)
        self._visit_defaults(node.args)
        self._scopes.append(_Scope(False, *self._inherited(node)))
        node.body = self.visit(node.body)
        self._scopes.pop()
        return node

    def _check_signature(self, node: ast.FunctionDef | ast.Lambda) -> None:
        if getattr(node, "type_params", None):
            self.refuse(node, "type parameters are not available; use typing.TypeVar or leave the types out")
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                if is_dunder(argument.arg):
                    self.refuse(argument, f'"{argument.arg}" cannot be a parameter; use a plain name')
                self.bind(argument, argument.arg)

    def _visit_defaults(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visit(value) for value in arguments.defaults]
        arguments.kw_defaults = [None if value is None else self.visit(value) for value in arguments.kw_defaults]

    def _visit_block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        visited = (self.visit(statement) for statement in body)
        return [statement for statement in visited if statement is not None]

    def _receiver(self, node: ast.FunctionDef) -> tuple[str | None, _Scope | None]:
        if not self.in_class_body():
            return self._inherited(node)
        decorated_static = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list)
        parameters = [*node.args.posonlyargs, *node.args.args]
        if decorated_static or not parameters:
            return None, None
        name = parameters[0].arg
        inner = (item for item in walk(*node.body, *parameters[1:]) if isinstance(item, BINDERS))
        if any(name in bound_names(item) for item in inner if not _is_nested_parameter(item)):
            return None, None
        return name, None

    def _inherited(self, node: ast.FunctionDef | ast.Lambda) -> tuple[str | None, _Scope | None]:
        """A nested function shares the proof of the method around it, unless it takes the name as a parameter."""
        outer = self._scopes[-1] if self._scopes else None
        if outer is None or outer.is_class or outer.receiver is None:
            return None, None
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        return (None, None) if outer.receiver in own else (outer.receiver, outer.owner or outer)

    def _receiver_check(self, name: str, at: ast.stmt) -> ast.stmt:
        # inline for speed: "if _sbx_type(self) not in _sbx_classes: _sbx_own(self)"
        known = ast.Compare(
            self.guard_call("_sbx_type", at, ast.Name(name, ast.Load())),
            [ast.NotIn()],
            [ast.Name("_sbx_classes", ast.Load())],
        )
        check = ast.If(known, [ast.Expr(self.guard_call("_sbx_own", at, ast.Name(name, ast.Load())))], [])
        return ast.fix_missing_locations(ast.copy_location(check, at))

    # -- classes ----------------------------------------------------------------------------------
    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:  # noqa: N802
        """Check a class statement; its only keywords are ``metaclass=ABCMeta`` and ``total=``."""
        if getattr(node, "type_params", None):
            self.refuse(node, "type parameters are not available; use typing.Generic or leave the types out")
        self.bind(node, node.name)
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        node.bases = [self.visit(base) for base in node.bases]
        node.keywords = [keyword for keyword in map(self._class_keyword, node.keywords) if keyword is not None]
        self._scopes.append(_Scope(True))
        node.body = self._visit_block(node.body)
        self._scopes.pop()
        return node

    def _class_keyword(self, keyword: ast.keyword) -> ast.keyword | None:
        value = keyword.value
        if keyword.arg == "metaclass":
            name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
            if name == "ABCMeta":
                keyword.value = ast.copy_location(ast.Name("_sbx_ABCMeta", ast.Load()), value)
                return keyword
        elif keyword.arg == "total" and isinstance(value, ast.Constant):
            return keyword
        self.refuse(keyword.value, f'class keyword "{keyword.arg or "**"}" is not available; remove it')
        return None


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in names) for kind in kinds)


def _is_nested_parameter(node: ast.AST) -> bool:
    return isinstance(node, ast.arg)
