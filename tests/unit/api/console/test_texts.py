"""Texts of the console: English stands in its files of texts, and each text is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from api.console.rendering import refusal_text, texts_of

FOLDER = Path(str(resources.files("api.console")))
# Three words in a row: shorter ones are names.
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]+ [a-z]")
# Lines of the log, what an assertion says, and a command.
NOT_SHOWN = {
    "feed.py": 4,
    "operations.py": 1,
    "waveform.py": 1,
    "wallet.py": 1,
}


def sentences(path: Path) -> Iterator[str]:
    """Texts of a module that are sentences, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            if SENTENCE.search(node.value):
                yield node.value


def test_no_handler_has_english_texts() -> None:
    found = {path.name: list(sentences(path)) for path in sorted(FOLDER.rglob("*.py"))}
    counted = {name: len(listed) for name, listed in found.items() if listed}
    assert counted == NOT_SHOWN, {name: found[name] for name in counted}


def test_every_refusal_has_a_text_and_every_text_a_refusal() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py"))
    assert set(re.findall(r'refusal_text\(\s*"(\w+)"', sources)) == set(texts_of("refusals"))


def test_values_are_filled_in() -> None:
    assert (
        refusal_text("scope", scope="calls.read") == "Your key lacks the scope calls.read, which this needs."
    )
