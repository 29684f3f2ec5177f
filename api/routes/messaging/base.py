"""Common fields of the messaging endpoints."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Identifiers
from api.http.errors import ErrorStyle

__all__ = ["messaging"]


def messaging(tag: str, scope: str, identifiers: Identifiers = Identifiers.INTEGER) -> dict[str, Any]:
    """Fields of a declaration that are the same for all endpoints of a tag."""
    return {
        "tag": tag,
        "scope": scope,
        "service": "messaging",
        "style": ErrorStyle.MESSAGING,
        "identifiers": identifiers,
    }
