"""The asyncio shell of the SIP user agent: sockets, clocks and randomness around the core."""

from sip.aio.endpoint import TraceRecord
from sip.aio.session import InboundSession, OutboundSession, Session
from sip.aio.stream import StreamLimits
from sip.aio.transport import Listen
from sip.aio.user_agent import Screen, ScreenVerdict, UserAgent, UserAgentSettings
from sip.outbound import Destination, OutboundInvite

__all__ = [
    "Destination",
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
