"""Media: session descriptions, audio, RTP streams and agent streams. Knows nothing of SIP or calls."""

from __future__ import annotations

from media.errors import (
    DtmfUnavailable,
    EngineClosed,
    InvalidMedia,
    MediaError,
    PortsExhausted,
    RecordingFailed,
    StreamClosed,
)
from media.types import (
    DtmfReceived,
    DtmfSent,
    EngineSettings,
    EngineStats,
    FirstPacket,
    MarkReached,
    MediaEvent,
    MediaTimeout,
    PlaybackFinished,
    PlaybackPosition,
    PlayoutDrained,
    PlayoutOverflow,
    QualityInterval,
    RecordingFinished,
    RecordingGap,
    RecordingSettings,
    RemoteMedia,
    StreamStats,
)

__all__ = [
    # media.errors
    "DtmfUnavailable",
    "EngineClosed",
    "InvalidMedia",
    "MediaError",
    "PortsExhausted",
    "RecordingFailed",
    "StreamClosed",
    # media.types
    "DtmfReceived",
    "DtmfSent",
    "EngineSettings",
    "EngineStats",
    "FirstPacket",
    "MarkReached",
    "MediaEvent",
    "MediaTimeout",
    "PlaybackFinished",
    "PlaybackPosition",
    "PlayoutDrained",
    "PlayoutOverflow",
    "QualityInterval",
    "RecordingFinished",
    "RecordingGap",
    "RecordingSettings",
    "RemoteMedia",
    "StreamStats",
]
