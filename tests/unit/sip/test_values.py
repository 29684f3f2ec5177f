"""Values that the type checker keeps from changing, and header fields found in C++."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest

import media.values
import sip.values
from sip import _wire
from sip.message.message import Headers


@pytest.mark.parametrize("module", [sip.values, media.values], ids=["sip", "media"])
def test_a_value_is_compared_hashed_and_kept_as_a_frozen_dataclass(module: ModuleType) -> None:
    class Point:
        x: int
        y: int = 2

    Point.__annotations__ = {"x": int, "y": int}
    made = module.frozen(Point)
    assert made(1) == made(1, 2) and made(1) != made(2)
    assert len({made(1), made(1, 2), made(2)}) == 2
    assert [field.name for field in dataclasses.fields(made)] == ["x", "y"]
    with pytest.raises(AttributeError):
        made(1).z = 3  # It has slots.
    assert "__setattr__" not in vars(made)  # The frozen kind's, for which each field costs a call.


def test_the_first_and_all_values_of_a_key() -> None:
    headers = Headers([("Via", "a"), ("To", "b"), ("v", "c"), ("X-Uber", "d")])
    assert headers.first("via") == "a" and headers.all_of("via") == ["a", "c"]
    # A key that is equal and not the same object.
    assert headers.first("".join(["t", "o"])) == "b"
    assert headers.first("x-uber") == "d"
    assert headers.first("from") is None and headers.all_of("from") == []


@pytest.mark.parametrize("entry", [("to", "To"), ["to", "To", "b"], None])
def test_entries_of_another_form_are_refused(entry: object) -> None:
    for find in (_wire.first, _wire.all_of):
        with pytest.raises(TypeError):
            find([entry], "to")  # type: ignore[list-item]  # What no caller of Headers can make.
