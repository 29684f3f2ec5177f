"""Values: data classes that nobody changes, checked where types are checked and not at each assignment."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """
    Make a class as ``dataclass(frozen=True, slots=True)`` does, whose constructor costs a quarter.

    Only the type checker rejects a change. A frozen dataclass sets each field by a call of
    ``object.__setattr__``, and a call of one telephone makes hundreds.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
