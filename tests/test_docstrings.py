"""Docstrings begin with a verb or a noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.test_layering import PACKAGES, ROOT, sources

_INSTRUMENTS = ("tests", "benchmarks", "fuzz", "examples", "clients")
_BEGINS_BADLY = re.compile(r"(What|Whether|How|Which|Who|Whom|Where|Why|Take|Have|Let|Give)\b")


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes, functions and attributes, with their lines."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if (
                isinstance(statement, ast.Expr)
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                yield statement.lineno, value.value.strip()


@pytest.mark.parametrize("package", (*PACKAGES, *_INSTRUMENTS))
def test_docstrings_begin_with_a_verb_or_a_noun(package: str) -> None:
    found = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path in sources(package)
        for line, text in docstrings(ast.parse((ROOT / path).read_text()))
        if _BEGINS_BADLY.match(text)
    ]
    assert found == []


def test_docstrings_of_attributes_count() -> None:
    tree = ast.parse('"""What it is."""\nLIMIT = 3\n"""How many."""')
    assert [line for line, text in docstrings(tree) if _BEGINS_BADLY.match(text)] == [1, 3]
