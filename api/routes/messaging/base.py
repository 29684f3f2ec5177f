"""What all endpoints of the messaging service have in common."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Identifiers
from api.http.errors import ErrorStyle

__all__ = ["messaging"]


def messaging(tag: str, scope: str, identifiers: Identifiers = Identifiers.INTEGER) -> dict[str, Any]:
    """The part of a declaration that is the same throughout a chapter."""
    return {
        "tag": tag,
        "scope": scope,
        "service": "messaging",
        "style": ErrorStyle.MESSAGING,
        "identifiers": identifiers,
    }
