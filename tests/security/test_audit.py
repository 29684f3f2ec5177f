"""`make audit` tells what is vulnerable, what is not, and that nothing was learnt, from each other."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def audit(directory: Path, dependencies: Any, complaint: str = "") -> tuple[int, str]:
    """Return the script's output and exit status for a result of pip-audit."""
    stand_in = directory / "pip-audit"
    answer = directory / "answer.json"
    answer.write_text("" if dependencies is None else json.dumps({"dependencies": dependencies, "fixes": []}))
    stand_in.write_text(
        '#!/bin/bash\nwhile [ $# -gt 0 ]; do [ "$1" = --output ] && out=$2; shift; done\n'
        f'cat {answer} > "$out"; echo "{complaint}" >&2; exit 1\n'
    )
    stand_in.chmod(0o755)
    command = [str(ROOT / "scripts/audit"), str(directory), str(stand_in)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_nothing_is_known_against_any_library(tmp_path: Path) -> None:
    status, said = audit(tmp_path, [{"name": "aiohttp", "version": "3.14.0", "vulns": []}])
    assert (status, said) == (
        0,
        "audit: 1 libraries were asked about, 0 of them are known to be vulnerable\n",
    )


def test_a_vulnerable_library_is_named_with_the_version_that_mends_it(tmp_path: Path) -> None:
    found = {"id": "PYSEC-1", "fix_versions": ["2.0"], "aliases": [], "description": "x"}
    status, said = audit(tmp_path, [{"name": "old", "version": "1.0", "vulns": [found]}])
    assert status == 1 and "old 1.0: PYSEC-1, mended in 2.0" in said


def test_a_service_that_cannot_be_asked_is_no_clean_bill(tmp_path: Path) -> None:
    status, said = audit(tmp_path, None, "ConnectionError: name or service not known")
    assert status == 2 and "nothing is known of ours" in said and "ConnectionError" in said


def test_libraries_that_the_service_does_not_know_are_named(tmp_path: Path) -> None:
    status, said = audit(tmp_path, [{"name": "own", "skip_reason": "not on the index"}])
    assert status == 2 and "own is not known to the service: not on the index" in said
