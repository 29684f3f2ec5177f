"""Values: data classes that nobody changes, checked where types are checked and not at each assignment."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

from sip.message.native import wire

T = TypeVar("T")


def constructed_natively(cls: type[T]) -> type[T]:
    """
    Make the constructor of a data class with slots native, which costs a third of its generated ``__init__``.

    A call of one telephone makes hundreds of values. By itself this is for classes that change.
    """
    wire.construct_natively(cls)
    return cls


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """
    Make a class as ``dataclass(frozen=True, slots=True)`` does, constructed natively.

    Only the type checker rejects a change.
    """
    return constructed_natively(dataclass(slots=True, unsafe_hash=True)(cls))
