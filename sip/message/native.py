"""
The native module for parsing and writing messages and datagrams, None where it was not built.

Without it everything runs in Python, at several times the cost per message. A module built from older sources
that lacks a function in use counts as not built.
"""

from __future__ import annotations

try:
    from sip import _wire as wire
except ImportError:
    wire = None  # type: ignore[assignment]  # A module to mypy, which takes the import for one that succeeds.

__all__ = ["wire"]

_USED = ("Reader", "receive_datagrams", "send_datagram", "write")

if not all(hasattr(wire, name) for name in _USED):
    wire = None  # type: ignore[assignment]  # As above.
