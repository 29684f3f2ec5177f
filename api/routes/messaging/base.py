"""Common parts of the messaging endpoints."""

from __future__ import annotations

from api.http.endpoint import Identifiers, Routes
from api.http.errors import ErrorStyle

__all__ = ["messaging_routes"]


def messaging_routes(
    tag: str,
    reads: str,
    writes: str | None = None,
    identifiers: Identifiers = Identifiers.INTEGER,
    *,
    sessions: bool = False,
) -> Routes:
    """Make the routes of a tag."""
    return Routes(
        reads,
        writes,
        tag=tag,
        service="messaging",
        style=ErrorStyle.MESSAGING,
        identifiers=identifiers,
        sessions=sessions,
    )
