"""
The native part of reading and writing messages and datagrams, where it was built.

Without it everything is done in Python, at several times the cost for each message. One that was built from
older sources, and lacks what these use, counts as none.
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
