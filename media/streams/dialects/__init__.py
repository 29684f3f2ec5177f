"""Stream protocols; `DIALECTS` holds them by name, `WEBSOCKET_DIALECTS` names those of WebSocket URLs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from media.streams.dialects.asterisk import AsteriskDialect, AsteriskJsonDialect
from media.streams.dialects.audiosocket import AudioSocketDialect
from media.streams.dialects.base import Dialect
from media.streams.dialects.exotel import ExotelDialect
from media.streams.dialects.jambonz import JambonzDialect
from media.streams.dialects.plivo import PlivoDialect, VobizDialect
from media.streams.dialects.telnyx import TelnyxDialect
from media.streams.dialects.twilio import TwilioDialect
from media.streams.dialects.vonage import VonageDialect

__all__ = ["DIALECTS", "WEBSOCKET_DIALECTS", "Dialect", "ExotelDialect"]

_ALL: tuple[type[Dialect], ...] = (
    ExotelDialect,
    TwilioDialect,
    VonageDialect,
    PlivoDialect,
    VobizDialect,
    JambonzDialect,
    TelnyxDialect,
    AsteriskDialect,
    AsteriskJsonDialect,
    AudioSocketDialect,
)

DIALECTS: Mapping[str, type[Dialect]] = MappingProxyType({dialect.name: dialect for dialect in _ALL})
WEBSOCKET_DIALECTS: tuple[str, ...] = tuple(name for name in DIALECTS if "ws" in DIALECTS[name].schemes)
