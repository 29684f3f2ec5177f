"""
The native part of reading and writing messages, where it was built.

Without it everything is done in Python, at several times the cost for each message.
"""

from __future__ import annotations

try:
    from sip import _wire as wire
except ImportError:
    wire = None  # type: ignore[assignment]  # A module to mypy, which takes the import for one that succeeds.

__all__ = ["wire"]
