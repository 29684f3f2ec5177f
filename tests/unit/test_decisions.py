"""Records of decisions have one form, and their index lists all of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_RECORDS = sorted((_ROOT / "docs" / "adr").glob("[0-9]*.md"))


def test_the_index_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, _ROOT / "scripts" / "adr-index", "--check"])
    assert done.returncode == 0, "run scripts/adr-index"


@pytest.mark.parametrize("path", _RECORDS, ids=lambda path: path.name)
def test_a_record_has_a_number_a_title_and_a_status(path: Path) -> None:
    lines = path.read_text().splitlines()
    title = re.fullmatch(r"# (\d+)\. \S.*[^.]", lines[0])
    assert title is not None and int(title[1]) == int(path.name[:4])
    assert re.fullmatch(r"Status: (accepted|superseded by \d+)", lines[2])
