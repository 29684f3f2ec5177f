"""Values that the type checker keeps from changing, how they are made, and header fields found in C++."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import media.values
import sip.values
from sip.message.message import Headers
from sip.values import constructed_natively


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


@dataclasses.dataclass(slots=True)
class Plain:
    """A data class as Python makes it."""

    first: int
    second: int = 2
    third: list[int] = dataclasses.field(default_factory=list)
    total: int = dataclasses.field(init=False)
    last: str = dataclasses.field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("below zero")
        self.total = self.first + self.second


Native: type[Any] = constructed_natively(
    dataclasses.make_dataclass(
        "Plain",
        [(item.name, item.type, item) for item in dataclasses.fields(Plain)],
        namespace={"__post_init__": Plain.__post_init__},
        slots=True,
    )
)


def outcome(make: Callable[..., Any], *args: object, **named: object) -> object:
    """The fields of a new instance, or what is said against it."""
    try:
        return dataclasses.asdict(make(*args, **named))
    except (TypeError, ValueError) as error:
        return type(error), str(error)


def test_a_class_constructed_natively_is_made_and_refused_as_in_python() -> None:
    names = [*(field.name for field in dataclasses.fields(Plain)), "unknown"]
    for count, chosen in itertools.product(range(5), range(1 << len(names))):
        args = [7, 8, [9], "x"][:count]
        # A name that is equal and not the same object.
        named = {"".join(name): 3 for place, name in enumerate(names) if chosen >> place & 1}
        assert outcome(Native, *args, **named) == outcome(Plain, *args, **named)
    assert outcome(Native, -1) == (ValueError, "below zero")
    assert Native(1).third is not Native(1).third
    assert outcome(dataclasses.replace, Native(1), second=4) == outcome(Plain, 1, 4)


def test_native_construction_keeps_no_reference_but_its_own() -> None:
    value: list[int] = []
    before = sys.getrefcount(value)
    made = [Native(1, 2, value), Native(1, third=value)]
    for args in ((1, 2, value, 4), (-1, 2, value), ("", 2, value)):
        assert isinstance(outcome(Native, *args), tuple)
        del args
    assert sys.getrefcount(value) == before + 2
    made[0].first = made[0]  # Found by the collector, as any cycle.
    made.clear()
    gc.collect()
    assert sys.getrefcount(value) == before


def test_a_constructor_that_does_more_is_left_alone() -> None:
    @dataclasses.dataclass(slots=True)
    class Own:
        x: int

        def __init__(self, x: int) -> None:
            self.x = 2 * x

    @dataclasses.dataclass(slots=True)
    class Preset:
        x: int = dataclasses.field(init=False, default=5)

    @dataclasses.dataclass
    class Open:
        x: int

    @constructed_natively
    @dataclasses.dataclass(slots=True)
    class Base:
        x: int

    @dataclasses.dataclass(slots=True, init=False)
    class Inheriting(Plain):
        second: int = 9  # Which the inherited constructor does not know.

    @dataclasses.dataclass(slots=True)
    class Doubling:
        x: int

        def __setattr__(self, name: str, value: int) -> None:
            object.__setattr__(self, name, 2 * value)

    @dataclasses.dataclass(slots=True)
    class Adding:
        x: int
        more: dataclasses.InitVar[int]

        def __post_init__(self, more: int) -> None:
            self.x += more

    class Below(Base):
        __slots__ = ("y",)

        def __init__(self) -> None:
            super().__init__(3)
            self.y = 4

    assert constructed_natively(Own)(2).x == 4 and constructed_natively(Preset)().x == 5
    assert vars(constructed_natively(Open)(6)) == {"x": 6}
    assert constructed_natively(Inheriting)(1).second == 2 and constructed_natively(Doubling)(3).x == 6
    assert constructed_natively(Adding)(3, more=4).x == 7
    assert (Below().x, Below().y) == (3, 4)


def test_the_first_and_all_values_of_a_key() -> None:
    headers = Headers([("Via", "a"), ("To", "b"), ("v", "c"), ("X-Uber", "d")])
    assert headers.first("via") == "a" and headers.all_of("via") == ["a", "c"]
    # A key that is equal and not the same object.
    assert headers.first("".join(["t", "o"])) == "b"
    assert headers.first("x-uber") == "d"
    assert headers.first("from") is None and headers.all_of("from") == []


@pytest.mark.parametrize("entry", [("to", "To"), ["to", "To", "b"], None])
def test_entries_of_another_form_are_refused(entry: Any) -> None:
    headers = Headers()
    headers.entries.append(entry)
    for use in (headers.first, headers.all_of, headers.get, headers.remove, Headers([("To", "b")]).copy_keys):
        arguments = (headers, {"to"}) if use.__name__ == "copy_keys" else ("to",)
        with pytest.raises(TypeError):
            use(*arguments)
    with pytest.raises(TypeError):
        headers.items()
