"""Values: data classes that nobody changes, checked where types are checked and not at each assignment."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

from sip.message.native import wire

T = TypeVar("T")


def constructed_natively(cls: type[T]) -> type[T]:
    """
    Let instances of a data class with slots be made without a call of its generated ``__init__``.

    That costs a third, and a call of one telephone makes hundreds. For classes that change.
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
