"""Files of other projects that are shipped, and those of the tests, are the ones that were pinned."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
# What each script looks at.
_FILES = {
    "console-assets": (
        *("api/console/static/uplot.js", "api/console/static/uplot.css"),
        *("api/console/static/uplot-license.txt", "tests/browser/axe/axe.min.js"),
        "tests/browser/axe/LICENSE.txt",
    ),
    "api-reference": ("api/static/reference/scalar.js.gz", "api/static/reference/scalar.json"),
}
_EACH = [(script, file) for script, files in _FILES.items() for file in files]


def checked(script: Path) -> subprocess.CompletedProcess[str]:
    """Run a script that compares its files with their digests."""
    return subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)


@pytest.mark.parametrize("script", _FILES)
def test_the_files_are_those_of_their_projects(script: str) -> None:
    done = checked(_ROOT / "scripts" / script)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("script", "changed"), _EACH)
def test_another_file_is_found_and_named(tmp_path: Path, script: str, changed: str) -> None:
    for file in (f"scripts/{script}", *_FILES[script]):
        copied = tmp_path / file
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_ROOT / file, copied)
    found = tmp_path / changed
    if changed.endswith(".json"):
        found.write_text(found.read_text().replace('"sha256": "', '"sha256": "0'))
    else:
        # As somebody does who mends a line of it.
        found.write_bytes(found.read_bytes()[:-1] + b"\n\n")
    done = checked(tmp_path / "scripts" / script)
    assert done.returncode == 1
    assert Path(changed).name.partition(".")[0] in done.stdout + done.stderr


def test_whatever_is_shipped_of_other_projects_has_its_licence() -> None:
    for package, licence in (
        ("api/console/static/uplot.js", "api/console/static/uplot-license.txt"),
        ("api/static/reference/scalar.js.gz", "api/static/reference/scalar.LICENSE"),
    ):
        assert (_ROOT / package).exists() and "MIT" in (_ROOT / licence).read_text()
