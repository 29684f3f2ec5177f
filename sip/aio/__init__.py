"""The asyncio shell of the SIP user agent: sockets, clocks and randomness around the core."""

from sip.aio.endpoint import TraceRecord
from sip.aio.guard import Guard
from sip.aio.session import InboundSession, OutboundSession, Session
from sip.aio.settings import Screen, ScreenVerdict, UserAgentSettings
from sip.aio.stream import StreamLimits
from sip.aio.transport import Listen
from sip.aio.user_agent import UserAgent
from sip.invite import Destination, OutboundInvite

__all__ = [
    "Destination",
    "Guard",
    "InboundSession",
    "Listen",
    "OutboundInvite",
    "OutboundSession",
    "Screen",
    "ScreenVerdict",
    "Session",
    "StreamLimits",
    "TraceRecord",
    "UserAgent",
    "UserAgentSettings",
]
