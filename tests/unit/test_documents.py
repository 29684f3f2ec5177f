"""Documents that are written from the code, or name files of it, agree with it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_floors import FLOORS

_ROOT = Path(__file__).resolve().parents[2]
_PAGES = sorted(
    page.relative_to(_ROOT)
    for folder in (
        "*.md",
        "docs/**/*.md",
        "examples/*.md",
        "benchmarks/*.md",
        "fixtures/*/*.md",
        "clients/*/*.md",
    )
    for page in _ROOT.glob(folder)
)
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_the_page_of_settings_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, _ROOT / "scripts" / "settings", "--check"])
    assert done.returncode == 0, "run .venv/bin/python scripts/settings"


def anchors(page: Path) -> set[str]:
    """Anchors of a page: its headings as hosts of repositories spell them."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", (_ROOT / page).read_text())
    for link in _LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (_ROOT / page).parent / name if name else _ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_paths_of_the_architecture_exist() -> None:
    text = (_ROOT / "docs" / "architecture.md").read_text()
    paths = [word for word in re.findall(r"`([^`\n]+)`", text) if re.fullmatch(r"[\w-]+(/[\w.-]+)+", word)]
    assert len(paths) > 20
    assert [path for path in paths if not (_ROOT / path).exists()] == []


def test_the_picture_shows_every_floor() -> None:
    picture = (_ROOT / "docs" / "architecture.svg").read_text()
    drawn = set(re.findall(r"\w+", " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))))
    assert set().union(*FLOORS) <= drawn
