"""Stream protocols; `DIALECTS` holds them by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from media.streams.dialects.base import Dialect
from media.streams.dialects.exotel import ExotelDialect
from media.streams.dialects.jambonz import JambonzDialect
from media.streams.dialects.plivo import PlivoDialect, VobizDialect
from media.streams.dialects.telnyx import TelnyxDialect
from media.streams.dialects.twilio import TwilioDialect
from media.streams.dialects.vonage import VonageDialect

__all__ = ["DIALECTS", "Dialect", "ExotelDialect"]

_ALL: tuple[type[Dialect], ...] = (
    ExotelDialect,
    TwilioDialect,
    VonageDialect,
    PlivoDialect,
    VobizDialect,
    JambonzDialect,
    TelnyxDialect,
)

DIALECTS: Mapping[str, type[Dialect]] = MappingProxyType({dialect.name: dialect for dialect in _ALL})
