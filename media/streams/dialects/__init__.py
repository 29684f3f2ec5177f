"""
Stream protocols by name: `DIALECTS` of customers' agents, `MODEL_DIALECTS` of vendors' speech models.

`WEBSOCKET_DIALECTS` names those of agents that a WebSocket URL can have.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from media.streams.dialects.asterisk import AsteriskDialect, AsteriskJsonDialect
from media.streams.dialects.audiosocket import AudioSocketDialect
from media.streams.dialects.base import Dialect
from media.streams.dialects.deepgram import DeepgramDialect
from media.streams.dialects.elevenlabs import ElevenLabsDialect
from media.streams.dialects.exotel import ExotelDialect
from media.streams.dialects.gemini import GeminiDialect
from media.streams.dialects.jambonz import JambonzDialect
from media.streams.dialects.openai import OpenAIDialect
from media.streams.dialects.plivo import PlivoDialect, VobizDialect
from media.streams.dialects.speech_model import ModelDialect
from media.streams.dialects.telnyx import TelnyxDialect
from media.streams.dialects.twilio import TwilioDialect
from media.streams.dialects.ultravox import UltravoxDialect
from media.streams.dialects.vonage import VonageDialect

__all__ = [
    "DIALECTS",
    "MODEL_DIALECTS",
    "WEBSOCKET_DIALECTS",
    "Dialect",
    "ExotelDialect",
    "ModelDialect",
    "dialect_class",
]

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

_MODELS: tuple[type[ModelDialect], ...] = (
    OpenAIDialect,
    DeepgramDialect,
    GeminiDialect,
    ElevenLabsDialect,
    UltravoxDialect,
)

MODEL_DIALECTS: Mapping[str, type[ModelDialect]] = MappingProxyType(
    {dialect.name: dialect for dialect in _MODELS}
)


def dialect_class(name: str) -> type[Dialect]:
    """Return the protocol with a name, of agents or of speech models."""
    return DIALECTS.get(name) or MODEL_DIALECTS[name]
