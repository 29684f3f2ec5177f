"""
The sentences that the tests of this folder prove, as docs/reliability-tests.md lists them.

`python -m tests.faults.sentences` writes that page anew; a test compares it.
"""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["PAGE", "page", "tests_of"]

_FOLDER = Path(__file__).parent
PAGE = _FOLDER.parents[1] / "docs" / "reliability-tests.md"
_HEAD = """# Guarantees under faults

Each test of `tests/faults` proves one sentence, its docstring. `python -m tests.faults.sentences` writes this
page; [reliability.md](reliability.md) explains the terms and how to run the tests.

"""


def tests_of(path: Path) -> list[tuple[str, str]]:
    """The tests of a module with what each says that it proves, an empty text when it says nothing."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            found.append((node.name, " ".join((ast.get_docstring(node) or "").split())))
    return found


def page() -> str:
    """The page as it has to be."""
    lines = []
    for path in sorted(_FOLDER.glob("test_*.py")):
        lines += [f"## {path.stem.removeprefix('test_').replace('_', ' ')}", "", "| guarantee | test |"]
        lines.append("|---|---|")
        for name, sentence in tests_of(path):
            lines.append(f"| {sentence.replace('|', '/')} | `{path.name}::{name}` |")
        lines.append("")
    return _HEAD + "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
