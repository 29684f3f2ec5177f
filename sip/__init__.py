"""
A SIP user agent: the core without I/O.

Machines take messages, commands and timer events, and return effects; `sip.aio` performs them.
"""

from sip.digest import Credentials
from sip.digest_server import DigestSettings, Secret
from sip.errors import InvalidValue, ParseError, SipError
from sip.events import (
    Answered,
    Cancelled,
    Confirmed,
    Ended,
    Failed,
    InfoReceived,
    OfferAnswered,
    OfferFailed,
    OfferReceived,
    Progress,
    ReferAccepted,
    ReferFailed,
    ReferProgress,
    ReferReceived,
    SessionEvent,
)
from sip.fields import CSeq, NameAddr, Via
from sip.framer import StreamFramer
from sip.headers import Headers
from sip.invite import Destination, OutboundInvite
from sip.message import Message, Request, Response, make_response, serialise
from sip.parser import Limits, parse_message
from sip.reason_header import Reason, read_reasons, reason_value
from sip.reasons import reason_phrase
from sip.redirects import Redirection, Redirects
from sip.refer import Refer
from sip.registration import OutboundRegistration, RegistrationState, RegistrationStatus
from sip.replaces import Replaces
from sip.session_model import State
from sip.timers import Timers
from sip.uri import SipUri

__all__ = [
    "Answered",
    "CSeq",
    "Cancelled",
    "Confirmed",
    "Credentials",
    "Destination",
    "DigestSettings",
    "Ended",
    "Failed",
    "Headers",
    "InfoReceived",
    "InvalidValue",
    "Limits",
    "Message",
    "NameAddr",
    "OfferAnswered",
    "OfferFailed",
    "OfferReceived",
    "OutboundInvite",
    "OutboundRegistration",
    "ParseError",
    "Progress",
    "Redirection",
    "Redirects",
    "Refer",
    "ReferAccepted",
    "ReferFailed",
    "ReferProgress",
    "ReferReceived",
    "Replaces",
    "Reason",
    "RegistrationState",
    "RegistrationStatus",
    "Request",
    "Response",
    "Secret",
    "SessionEvent",
    "SipError",
    "SipUri",
    "State",
    "StreamFramer",
    "Timers",
    "Via",
    "make_response",
    "parse_message",
    "read_reasons",
    "reason_phrase",
    "reason_value",
    "serialise",
]
