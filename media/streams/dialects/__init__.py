"""The wire forms in which one stream can be spoken; `DIALECTS` holds them by name."""

from __future__ import annotations

from collections.abc import Mapping

from media.streams.dialects.base import Dialect
from media.streams.dialects.exotel import ExotelDialect

__all__ = ["DIALECTS", "KNOWN_DIALECTS", "Dialect", "ExotelDialect"]

DIALECTS: Mapping[str, type[Dialect]] = {"exotel": ExotelDialect}

KNOWN_DIALECTS = frozenset({"exotel", "twilio", "vonage", "plivo", "vobiz", "jambonz", "telnyx"})
