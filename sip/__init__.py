"""
Sans-I/O core of a SIP user agent.

State machines receive messages, commands and timer events, and return effects; `sip.aio` performs them.
"""

from sip.auth.digest import Credentials
from sip.auth.server import DigestSettings, Secret
from sip.errors import InvalidValue, ParseError
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
from sip.location.rfc3263 import Destination
from sip.message.encoding import readable
from sip.message.fields import NameAddr
from sip.message.message import Headers, Request, Response, reply, serialise
from sip.message.parser import parse_message
from sip.message.reason_header import read_reasons, reason_value
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri
from sip.registration import OutboundRegistration, RegistrationState
from sip.session.model import OutboundInvite, State
from sip.session.redirects import Redirection, Redirects
from sip.session.refer import Refer
from sip.session.replaces import Replaces
from sip.timers import Timers

__all__ = [
    "Answered",
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
    "RegistrationState",
    "Request",
    "Response",
    "Secret",
    "SessionEvent",
    "SipUri",
    "State",
    "Timers",
    "reply",
    "parse_message",
    "read_reasons",
    "readable",
    "reason_phrase",
    "reason_value",
    "serialise",
]
