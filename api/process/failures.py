"""Failures of the process itself, known to the command without importing the server."""

from __future__ import annotations

__all__ = ["StartFailed"]


class StartFailed(Exception):
    """A part of the server cannot start; the message says which setting to look at."""
