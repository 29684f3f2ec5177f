"""docs/rfc-coverage.md names modules, tests and scenarios: each exists, and each claim has a proof."""

from __future__ import annotations

import importlib
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
SCENARIOS = ROOT / "fixtures" / "sipp"
COLUMNS = 5
BY_HAND = {"uac_rtp.xml"}
"""Scenarios that need something at hand, such as audio, and are played as the README says."""

_QUOTED = re.compile(r"`([^`]+)`")
_DEFINED = re.compile(r"^\s*(?:async )?(?:def|class) (\w+)", re.MULTILINE)
_DOTTED = re.compile(r"(?:sip|media|callcontrol|api)(?:\.\w+)+")


class Row(NamedTuple):
    """One line of a table: where it stands, and its five cells."""

    line: int
    clause: str
    what: str
    state: str
    where: str
    gets: str

    @property
    def names(self) -> list[str]:
        """Return the names between backticks in the row, of its code and of its proof."""
        return _QUOTED.findall(self.where)


def rows() -> list[Row]:
    found = []
    for number, line in enumerate((ROOT / "docs" / "rfc-coverage.md").read_text().splitlines(), 1):
        if line.startswith("| ") and not line.startswith("| clause "):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == COLUMNS, f"line {number} has {len(cells)} cells"
            found.append(Row(number, *cells))
    return found


ROWS = rows()


@cache
def test_files() -> dict[Path, frozenset[str]]:
    """All files of tests with the names of the functions and classes in them."""
    return {path: frozenset(_DEFINED.findall(path.read_text())) for path in TESTS.rglob("*.py")}


test_files.__test__ = False  # type: ignore[attr-defined]


def defines(names: frozenset[str], wanted: str) -> bool:
    return all(any(fnmatch(name, part) for name in names) for part in wanted.split("::"))


def is_test(name: str) -> bool:
    """Return True for the name of an existing test, class of tests, file of tests or SIPp scenario."""
    if name.endswith(".cpp"):
        return any((ROOT / part / "native" / "tests" / name).is_file() for part in ("media", "sip"))
    if name.endswith(".xml"):
        return any(fnmatch(path.name, name) for path in SCENARIOS.glob("*.xml"))
    path, _, within = name.partition(".py")
    if within or name.endswith(".py"):
        files = [names for file, names in test_files().items() if str(file).endswith(f"/{path}.py")]
        return len(files) == 1 and (not within or defines(files[0], within.removeprefix("::")))
    if re.match(r"test_|Test[A-Z]", name):
        return any(defines(names, name) for names in test_files().values())
    return False


def is_code(name: str) -> bool:
    """Return True if a dotted name leads to a module or to an object in one."""
    if not _DOTTED.fullmatch(name):
        return False
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_the_tables_are_read() -> None:
    assert len(ROWS) > 200


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line-{row.line}")
def test_what_a_row_names_exists(row: Row) -> None:
    unknown = [name for name in row.names if not (is_test(name) or is_code(name))]
    assert not unknown, f"line {row.line}: {unknown}"
    assert row.clause and row.what, f"line {row.line} does not say what it is about"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line-{row.line}")
def test_what_a_row_claims_is_proved(row: Row) -> None:
    state = re.match(r"tested|partial|not supported", row.state)
    assert state, f"line {row.line}: {row.state!r} is no state"
    if state[0] == "not supported":
        assert row.gets or ":" in row.state, f"line {row.line} does not say what a peer gets"
    else:
        assert any(is_test(name) for name in row.names), f"line {row.line} names no test"


def test_what_does_not_exist_is_noticed() -> None:
    assert (
        is_test("unit/sip/test_calls.py")
        and is_test("test_codecs.cpp")
        and is_test("uac_*.xml")
        and is_code("sip.message.responses.refusal")
    )
    for name in (
        "unit/sip/test_calls.py::test_none",
        "test_nothing_of_the_kind",
        "uac_none.xml",
        "nothing_of_the_kind.py",
        "test_none.cpp",
    ):
        assert not is_test(name), name
    for name in ("sip.nothing", "sip.message.responses.nothing", "sip", "os.path"):
        assert not is_code(name), name


def test_every_scenario_is_described_and_used() -> None:
    described = (SCENARIOS / "README.md").read_text()
    code = "".join(
        path.read_text()
        for folder in ("tests", "benchmarks", "fixtures")
        for path in (ROOT / folder).rglob("*.py")
    )
    for path in SCENARIOS.glob("*.xml"):
        assert f"`{path.name}`" in described, f"{path.name} is not in the README of the scenarios"
        assert path.stem in code or path.name in BY_HAND, f"nothing runs {path.name}"


def test_the_sections_for_operators_say_something() -> None:
    text = (ROOT / "docs" / "sip.md").read_text()
    titles = re.findall(r"^#+ .*$", text, re.MULTILINE)
    assert len(titles) > 5 and len(set(titles)) == len(titles)
    for title, body in zip(titles, re.split(r"^#+ .*$", text, flags=re.MULTILINE)[1:], strict=True):
        followed_by_part = any(title.startswith("## ") and other.startswith("###") for other in titles)
        assert body.strip() or followed_by_part, f"{title!r} of docs/sip.md is empty"
