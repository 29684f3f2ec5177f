"""The parts of `media` that touch sockets, threads and the event loop."""

from __future__ import annotations

from media.aio.conference import ActiveTalker, Conference, ConferenceEvent, MemberLeft
from media.aio.engine import MediaEngine
from media.aio.recording import Recording
from media.aio.speech import EspeakSynthesizer
from media.aio.srtp import make_srtp_keys, retire_srtp_key
from media.aio.stream import RtpStream
from media.aio.tap import AgentTap, FrameListener, Monitor

__all__ = [
    "ActiveTalker",
    "AgentTap",
    "Conference",
    "ConferenceEvent",
    "EspeakSynthesizer",
    "FrameListener",
    "MediaEngine",
    "MemberLeft",
    "Monitor",
    "Recording",
    "RtpStream",
    "make_srtp_keys",
    "retire_srtp_key",
]
