"""A folder of `callcontrol` imports only folders on lower floors, at run time or for type checking."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tests.test_layering import imports, sources

FLOORS = [
    {"bootstrap"},
    {"masking", "otp", "assistant", "tools"},
    {"agents", "messaging", "instructions", "applications"},
    {"recordings", "webhooks"},
    {"calls"},
    {"routing"},
    {"trunks"},
    {"numbers"},
    {"directory"},
    {"accounts"},
    {"wallet", "egress", "secrets"},
    {"database"},
    {"models", "aio", "errors", "ids", "clock", "histogram"},
]
_FLOOR = {name: number for number, floor in enumerate(FLOORS) for name in floor}
# Imports that lead upwards or along a floor and are still to be cut. This list only gets shorter.
REMAINING = {
    ("accounts", "directory"),
    ("accounts", "recordings"),
    ("agents", "assistant"),
    ("assistant", "otp"),
    ("calls", "agents"),
    ("calls", "applications"),
    ("calls", "assistant"),
    ("calls", "bootstrap"),
    ("calls", "instructions"),
    ("calls", "masking"),
    ("calls", "otp"),
    ("calls", "recordings"),
    ("calls", "webhooks"),
    ("database", "secrets"),
    ("directory", "agents"),
    ("directory", "applications"),
    ("directory", "numbers"),
    ("directory", "trunks"),
    ("egress", "calls"),
    ("egress", "instructions"),
    ("egress", "webhooks"),
    ("masking", "otp"),
    ("numbers", "agents"),
    ("numbers", "calls"),
    ("numbers", "routing"),
    ("numbers", "trunks"),
    ("tools", "otp"),
    ("trunks", "applications"),
    ("trunks", "calls"),
    ("trunks", "routing"),
    ("webhooks", "masking"),
}


def upward_imports() -> Iterator[tuple[str, str]]:
    """Pairs of folders of which the first imports the second and is not above it."""
    for path in sources("callcontrol"):
        importer = path.with_suffix("").parts[1]
        if importer not in _FLOOR:
            continue
        for _, module in imports(path):
            package, _, rest = module.partition(".")
            imported = rest.partition(".")[0]
            if package != "callcontrol" or imported not in _FLOOR or imported == importer:
                continue
            # What lies on the ground floor may be used there, too.
            if _FLOOR[importer] >= _FLOOR[imported] and _FLOOR[imported] < len(FLOORS) - 1:
                yield importer, imported


def test_every_folder_has_a_floor() -> None:
    folders = {path.with_suffix("").parts[1] for path in sources("callcontrol")} - {"__init__", "py"}
    assert folders <= set(chain.from_iterable(FLOORS))


def test_folders_import_lower_floors_only() -> None:
    assert set(upward_imports()) - REMAINING == set()


def test_no_remaining_exception_is_out_of_date() -> None:
    assert REMAINING - set(upward_imports()) == set()
