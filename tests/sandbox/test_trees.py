"""The fast walks see what the standard library's do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from spade_envs.sandbox import loader, trees

FOLDERS = (Path(__file__).parent, Path(loader.__file__).parent)
LEAVES = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_node_is_seen_once(folder: Path) -> None:
    for file in sorted(folder.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        inner = [node for node in ast.walk(tree) if not isinstance(node, LEAVES)]
        assert [id(node) for node in trees.walk(tree)] == [id(node) for node in inner]
        assert len(trees.children(inner)) == sum(len(list(ast.iter_child_nodes(node))) for node in inner)


def test_a_prepared_namespace_is_a_program_s_own() -> None:
    compiled = loader.compile_source(
        "class AEnv(TextEnv):\n    def step(self, action):\n        return '', 0.0, True, False, {}\n"
    )
    loader._prepared.clear()
    plain = compiled.execute().names
    loader.prepare()
    first, second = compiled.execute().names, compiled.execute().names
    assert plain.keys() == first.keys() == second.keys()
    first["random"] = first["__builtins__"]["len"] = None
    assert second["random"] is not None
    assert second["__builtins__"]["len"] is len
    assert compiled.execute().names["random"] is not None
