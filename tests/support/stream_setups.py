"""Streams as tests of dialects set them up."""

from __future__ import annotations

from typing import Any

from media.streams import DIALECTS, WEBSOCKET_DIALECTS, Dialect, StreamSetup

__all__ = [
    "ACCOUNT",
    "CALL",
    "STARTED_UNIX_MS",
    "STREAM",
    "TEXTS_ARE_JSON",
    "dialect_at",
    "make_dialect",
    "stream_setup",
]

# Dialects that write nothing but JSON as text.
TEXTS_ARE_JSON = tuple(sorted(name for name in WEBSOCKET_DIALECTS if name != "asterisk"))

STREAM = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
CALL = "6f1f1a52-6d0b-4b5f-8d39-1f0a5e1f7c11"
ACCOUNT = "a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12"
STARTED_UNIX_MS = 1_732_099_200_000


def stream_setup(dialect: str = "exotel", **changes: Any) -> StreamSetup:
    """The stream of the examples; its format is the dialect's first unless told otherwise."""
    encoding, rate_hz = DIALECTS[dialect].formats[0]
    values: dict[str, Any] = {
        "url": "wss://bot.example.com/ws?customer=42",
        "stream_sid": STREAM,
        "call_sid": CALL,
        "account_sid": ACCOUNT,
        "from_": "+919876543210",
        "to": "+918047491899",
        "custom_parameters": (("customer", "42"),),
        "dialect": dialect,
        "encoding": encoding,
        "sample_rate": rate_hz,
    }
    return StreamSetup(**(values | changes))


def make_dialect(name: str, **changes: Any) -> Dialect:
    """A dialect that has written nothing yet."""
    return DIALECTS[name](stream_setup(name, **changes))


def dialect_at(sequence: int, name: str, **changes: Any) -> Dialect:
    """A dialect that has said how it starts, and whose next frame has that number."""
    made = make_dialect(name, **changes)
    made.start(STARTED_UNIX_MS)
    for _ in range(sequence - 2):
        made.event("x", "x", {})
    return made


def opening(dialect: Dialect) -> bytes:
    """The frame that a dialect begins with; it must have one."""
    frame = dialect.start(0)
    assert frame is not None
    return frame
