"""The public names of the packages, and where the packages come from."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("package", ["sip", "media", "callcontrol", "api", "fixtures"])
def test_the_packages_load_from_this_tree(package: str) -> None:
    # The names are generic and `fixtures` is also a published distribution: a stray one must not shadow ours.
    module = importlib.import_module(package)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().is_relative_to(ROOT)


@pytest.mark.parametrize(
    "package", ["sip", "sip.aio", "media.aio", "media.audio", "media.sdp", "media.streams"]
)
def test_every_exported_name_exists_and_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    names = module.__all__
    assert list(names) == sorted(set(names), key=list(names).index), "a name is exported twice"
    for name in names:
        exported = getattr(module, name)
        if inspect.isclass(exported) or inspect.isroutine(exported):
            assert exported.__doc__, f"{package}.{name} has no docstring"
