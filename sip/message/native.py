"""
The native module of the package, which `make setup` builds.

A module built from older sources, which lacks what is in use, is as good as none.
"""

from __future__ import annotations

try:
    from sip import _wire as wire
except ImportError as error:
    raise ImportError("sip._wire was not built; run `make setup`") from error

__all__ = ["wire"]

_USED = (
    *("DatagramReader", "Engine", "HeaderFields", "Reader", "SourceGuard", "TimerQueue"),
    *("construct_natively", "send_datagram", "write"),
)

if not all(hasattr(wire, name) for name in _USED):
    raise ImportError("sip._wire was built from older sources; run `make setup`")
