"""The two paths of an agent's socket: through the media engine, and through Python, which TLS takes."""

from __future__ import annotations

from media.aio import RtpStream

__all__ = ["PATHS", "Carrier"]

PATHS = ("engine", "python")


class Carrier:
    """Stream whose engine thread carries the sockets of the running test; None where Python does."""

    stream: RtpStream | None = None
