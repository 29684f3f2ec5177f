"""Errors of the process, importable by the command without the server."""

from __future__ import annotations

__all__ = ["StartFailed"]


class StartFailed(Exception):
    """A part of the server cannot start; the message names the setting to check."""
