"""
The wire forms in which one stream can be spoken.

`DIALECTS` holds those that this server speaks; `KNOWN_DIALECTS` adds the names of those that the interface
foresees, so that asking for one of them is told apart from a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from media.streams.dialects.exotel import ExotelDialect
from media.streams.model import (
    AgentCommand,
    AgentDtmf,
    AgentHold,
    AgentMute,
    AgentRecord,
    Encoding,
    StreamSetup,
)

__all__ = ["DIALECTS", "KNOWN_DIALECTS", "Dialect", "ExotelDialect"]


class Dialect(Protocol):
    """Writer and reader of the frames of one stream."""

    name: ClassVar[str]
    formats: ClassVar[frozenset[tuple[Encoding, int]]]

    def __init__(self, setup: StreamSetup) -> None: ...

    def connected(self) -> bytes:
        """Write the frame that opens the socket's life."""

    def start(self) -> bytes:
        """Write the frame that describes the call."""

    def media(self, audio: bytes, timestamp_ms: int) -> bytes:
        """Write a frame of audio."""

    def mark(self, name: str, *, cleared: bool) -> bytes:
        """Write that a mark was reached or cleared."""

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the caller pressed a key."""

    def accepted(self, command: AgentDtmf | AgentHold | AgentMute | AgentRecord) -> bytes:
        """Write that a command was carried out."""

    def transfer(self, status: str, sip_status: int | None, hangup_cause: str | None) -> bytes:
        """Write how a transfer gets on."""

    def error(self, code: str, message: str, ref: str | None = None) -> bytes:
        """Write that something could not be done."""

    def stop(self, reason: str, detail: str) -> bytes:
        """Write that no more will follow."""

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Read a text frame; audio comes as plain bytes."""


DIALECTS: Mapping[str, type[Dialect]] = {"exotel": ExotelDialect}

KNOWN_DIALECTS = frozenset({"exotel", "twilio", "vonage", "plivo", "vobiz", "jambonz", "telnyx"})
