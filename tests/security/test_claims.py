"""docs/security.md claims nothing without a test: every line names some, and all of them exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
_NATIVE = re.compile(r"`(test_\w+\.cpp)`: (\"[^\"]+\"(?:, \"[^\"]+\")*)")
_DEFINED = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)
_TITLE = re.compile(r"TEST_CASE\(\s*\"([^\"]+)\"")


def claims() -> dict[str, tuple[str, str, str]]:
    """Threat, what stops it and what shows that, by the line that says so; of the tables of threats alone."""
    found, within = {}, False
    text = (ROOT / "docs" / "security.md").read_text()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("| threat "):
            within = True
        elif not line.startswith("|"):
            within = False
        elif within and not line.startswith("|---"):
            threat, stopped, shown = (cell.strip() for cell in line.strip("|").split(" | "))
            found[f"line {number}"] = (threat, stopped, shown)
    return found


@cache
def names_in(path: Path) -> frozenset[str]:
    """The names of the tests of a Python file, or the titles of those of a native one."""
    pattern = _TITLE if path.suffix == ".cpp" else _DEFINED
    return frozenset(pattern.findall(path.read_text()))


def test_there_are_claims_about_every_surface() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    for surface in ("SIP", "RTP", "HTTP", "WebSocket", "Webhooks", "Recordings", "secrets", "Model Context"):
        assert re.search(rf"^## .*{surface}", text, re.MULTILINE), surface
    assert len(claims()) > 50


@pytest.mark.parametrize("line", claims())
def test_a_claim_is_shown_by_tests_that_exist(line: str) -> None:
    threat, stopped, shown = claims()[line]
    assert threat and stopped
    named = [(ROOT / "tests" / path, name) for path, name in _TEST.findall(shown)]
    for file, titles in _NATIVE.findall(shown):
        [path] = ROOT.glob(f"*/native/tests/{file}")
        named += [(path, title) for title in re.findall(r'"([^"]+)"', titles)]
    assert named, "names no test"
    assert shown.count("`") == 2 * len(_TEST.findall(shown) + _NATIVE.findall(shown)), "a name is malformed"
    missing = [f"{path.name}: {name}" for path, name in named if name not in names_in(path)]
    assert missing == []
