"""Values: data classes that nobody changes, checked where types are checked and not at each assignment."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

try:
    from media._engine import construct_natively
except ImportError:  # Administrative commands work beside a server that is installed elsewhere.

    def construct_natively(cls: type, /) -> None:
        """Leave a class as it is."""


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """
    Make a class as ``dataclass(frozen=True, slots=True)`` does, constructed natively.

    Only the type checker rejects a change. A generated ``__init__`` costs three times as much, and a call of
    one telephone makes hundreds of values.
    """
    made = dataclass(slots=True, unsafe_hash=True)(cls)
    construct_natively(made)
    return made
