"""Records of decisions have one form, and their index lists all of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_MOST_WORDS = 300
_RECORDS = sorted((_ROOT / "docs" / "adr").glob("[0-9]*.md"))


def test_the_index_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, _ROOT / "scripts" / "adr-index", "--check"])
    assert done.returncode == 0, "run scripts/adr-index"


@pytest.mark.parametrize("path", _RECORDS, ids=lambda path: path.name)
def test_a_record_has_one_form(path: Path) -> None:
    """A number and a title, after which the file is named; a status; three sections; at most 300 words."""
    text = path.read_text()
    lines = text.splitlines()
    title = re.fullmatch(r"# (\d+)\. (\S.*[^.])", lines[0])
    assert title is not None
    slug = re.sub(r"[^a-z0-9]+", "-", title[2].lower()).strip("-")
    assert path.name == f"{int(title[1]):04d}-{slug}.md"
    assert re.fullmatch(r"Status: (accepted|superseded by \d+)", lines[2])
    assert re.findall(r"^#+ .*", text, re.MULTILINE)[1:] == ["## Context", "## Decision", "## Consequences"]
    assert len(text.split()) <= _MOST_WORDS
