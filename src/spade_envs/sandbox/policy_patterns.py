"""The part of the policy about ``match`` statements, whose patterns read attributes natively."""

from __future__ import annotations

import ast

from .names import attribute_refusal, is_private
from .policy_names import NamePolicy

_BUILTIN_PATTERNS = frozenset("int str float bool list dict tuple set bytes frozenset bytearray".split())  # noqa: SIM905


class PatternPolicy(NamePolicy):
    """Patterns: captured names are bound, attribute names are checked, positional sub-patterns become keywords."""

    def visit_Match(self, node: ast.Match) -> ast.AST:  # noqa: N802
        """Visit subject and cases."""
        return self.node_contents_visit(node)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Visit pattern, guard and body."""
        return self.node_contents_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:  # noqa: N802
        """Check a value pattern; a guard call cannot stand there."""
        self._check_pattern_expression(node.value)
        return node

    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> ast.AST:  # noqa: N802
        """Allow None, True and False."""
        return node

    def visit_MatchSequence(self, node: ast.MatchSequence) -> ast.AST:  # noqa: N802
        """Visit the items."""
        return self.node_contents_visit(node)

    def visit_MatchOr(self, node: ast.MatchOr) -> ast.AST:  # noqa: N802
        """Visit the alternatives."""
        return self.node_contents_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.AST:  # noqa: N802
        """Check the captured name."""
        self.bind(node, node.name)
        return node

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:  # noqa: N802
        """Check the captured name and the pattern."""
        self.bind(node, node.name)
        if node.pattern is not None:
            node.pattern = self.visit(node.pattern)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:  # noqa: N802
        """Check keys, values and the name of the rest."""
        self.bind(node, node.rest)
        for key in node.keys:
            self._check_pattern_expression(key)
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:  # noqa: N802
        """Check attribute names; replace positions by the fields of a class of the same source."""
        self._check_pattern_expression(node.cls)
        if node.patterns:
            self._name_positions(node)
        for name in node.kwd_attrs:
            refusal = attribute_refusal(name, reading=False)
            if refusal is None and (is_private(name) or name in self.guarded):
                refusal = f'attribute "{name}" cannot stand in a pattern; compare it with an if'
            if refusal:
                self.refuse(node, refusal)
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        node.kwd_patterns = [self.visit(pattern) for pattern in node.kwd_patterns]
        return node

    def _name_positions(self, node: ast.MatchClass) -> None:
        # __match_args__ would be read natively, from a class that the source may have prepared
        name = node.cls.id if isinstance(node.cls, ast.Name) else ""
        if name in _BUILTIN_PATTERNS and self.is_builtin(name) and len(node.patterns) == 1:
            return
        fields = self.bindings.fields.get(name, [])
        if len(node.patterns) > len(fields):
            self.refuse(node, f"positions in a class pattern need a plain dataclass; write {name or 'X'}(field=...)")
            return
        node.kwd_attrs = [*fields[: len(node.patterns)], *node.kwd_attrs]
        node.kwd_patterns = [*node.patterns, *node.kwd_patterns]
        node.patterns = []

    def _check_pattern_expression(self, node: ast.expr) -> None:
        """Check a dotted name (or literal) in a pattern, where no guard can be inserted."""
        while isinstance(node, ast.Attribute):
            refusal = attribute_refusal(node.attr, reading=True)
            if refusal is None and (
                node.attr in self.guarded or (is_private(node.attr) and not self.is_receiver(node.value, touch=True))
            ):
                refusal = f'attribute "{node.attr}" cannot stand in a pattern; compare it with an if'
            if refusal:
                self.refuse(node, refusal)
            module = self.module_of(node.value)
            if module is not None:
                self._check_module_attribute(node, module, True)
            node = node.value
        self.visit(node)
