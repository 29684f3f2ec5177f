"""Floors of `callcontrol`: imports between folders, for type checking too, and the size of folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from tests.test_layering import PACKAGES, imports, sources

MOST_MODULES = 25
"""Modules directly in a folder, `__init__` included."""

FLOORS = [
    {"bootstrap"},
    {"tools"},
    {"masking", "otp", "assistant"},
    {"agents", "messaging", "instructions", "applications"},
    {"recordings", "webhooks", "webrtc"},
    {"calls"},
    {"numbers"},
    {"routing"},
    {"trunks"},
    {"directory"},
    {"accounts"},
    {"wallet", "egress", "secrets", "nodes", "model_keys"},
    {"database"},
    {"models", "aio", "errors", "ids", "clock", "e164", "histogram"},
]
_FLOOR = {name: number for number, floor in enumerate(FLOORS) for name in floor}


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
    assert set(upward_imports()) == set()


def test_no_folder_is_too_large() -> None:
    sizes = Counter(path.parent for package in PACKAGES for path in sources(package))
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_MODULES} == {}
