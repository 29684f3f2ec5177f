"""No test waits by sleeping: it waits for a condition, or lets virtual time pass (`support.waiting`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SLEEPS = {"asyncio.sleep", "time.sleep", "sleep"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def sleeps(tree: ast.AST) -> Iterator[int]:
    """
    Lines on which a test sleeps.

    What far ends do in functions of their own is no waiting, nor is `sleep(0)`, which lets others run.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function) and not node.name.startswith("test_"):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _SLEEPS:
            duration = node.args[0]
            if not (isinstance(duration, ast.Constant) and duration.value == 0):
                yield node.lineno
        yield from sleeps(node)


def test_no_test_waits_by_sleeping() -> None:
    found = []
    for path in sorted(_HERE.rglob("test_*.py")):
        found += [f"{path.relative_to(_HERE)}:{line}" for line in sleeps(ast.parse(path.read_text()))]
    assert found == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("async def test_it():\n    await asyncio.sleep(1)", [2]),
        ("class TestIt:\n    def test_it(self):\n        if late:\n            time.sleep(duration)", [4]),
        ("async def test_it():\n    await asyncio.sleep(0)", []),
        ("async def answers_late():\n    await asyncio.sleep(1)", []),
    ],
)
def test_what_is_found(source: str, lines: list[int]) -> None:
    assert list(sleeps(ast.parse(source))) == lines
