"""The parts of `media` that touch sockets, threads and the event loop."""

from __future__ import annotations

from media.aio.conference import ActiveTalker, Conference, ConferenceEvent, MemberLeft
from media.aio.engine import MediaEngine
from media.aio.recording import Recording
from media.aio.srtp import make_srtp_keys
from media.aio.stream import RtpStream
from media.aio.tap import AgentTap
from media.types import EngineSettings, EngineStats, StreamStats

__all__ = [
    "ActiveTalker",
    "AgentTap",
    "Conference",
    "ConferenceEvent",
    "EngineSettings",
    "EngineStats",
    "MediaEngine",
    "MemberLeft",
    "Recording",
    "RtpStream",
    "StreamStats",
    "make_srtp_keys",
]
