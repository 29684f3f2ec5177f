"""The asyncio shell of the SIP user agent: sockets, clocks and randomness around the core."""

from sip.aio.dns_client import NameServer
from sip.aio.guard import Guard
from sip.aio.handover import HandedOverState, SendFrame, SocketSharing
from sip.aio.hep_sender import HepSender, HepSettings
from sip.aio.registrations import RegistrationIO
from sip.aio.resolver import Resolver
from sip.aio.session import InboundSession, OutboundSession, Session
from sip.aio.settings import Screened, ScreenVerdict, Source, UserAgentSettings
from sip.aio.tcp import StreamLimits
from sip.aio.tls import ClientCertificates, TlsSettings
from sip.aio.trace import OnMessage, TraceFields, TraceRecord
from sip.aio.transport import Listen
from sip.aio.user_agent import UserAgent

__all__ = [
    "ClientCertificates",
    "Guard",
    "HandedOverState",
    "HepSender",
    "HepSettings",
    "InboundSession",
    "Listen",
    "NameServer",
    "OnMessage",
    "OutboundSession",
    "Resolver",
    "RegistrationIO",
    "ScreenVerdict",
    "Screened",
    "SendFrame",
    "Session",
    "SocketSharing",
    "Source",
    "StreamLimits",
    "TlsSettings",
    "TraceFields",
    "TraceRecord",
    "UserAgent",
    "UserAgentSettings",
]
