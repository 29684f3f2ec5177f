"""States, events and settings of a session, used by its machines on both sides."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from sip.message.message import Response
from sip.message.responses import MIN_SESSION_EXPIRES_S
from sip.timers import Repetition, Timers


class State(IntEnum):
    """States, passed through in this order only."""

    SETUP = 0
    EARLY = 1
    """A provisional response was sent or received."""
    CANCELLING = 2
    """Outbound, cancelled by us; the final response is outstanding."""
    ACCEPTED = 3
    """Answered; the ACK is outstanding."""
    CONFIRMED = 4
    BYE_PENDING_ACK = 5
    """Hung up by us before the ACK came: the BYE waits for it (RFC 3261 15)."""
    ENDING = 6
    """Our BYE is under way."""
    ENDED = 7


class Event(IntEnum):
    """Events of a session."""

    # Commands of the owner.
    PROGRESS = 0
    ANSWER = 1
    REJECT = 2
    HANGUP = 3
    # Messages of the peer.
    PROVISIONAL = 4
    SUCCESS = 5
    LATE_OFFER = 6
    """A 2xx with the offer, to an INVITE without one."""
    FAILURE = 7
    CHALLENGE = 8
    """A failure that allows a retry: a 401 or 407 for which there are credentials, or a 422."""
    CANCEL = 9
    ACK = 10
    BYE = 11
    # Ends of our requests.
    INVITE_FAILED = 12
    BYE_DONE = 13
    DIALOG_GONE = 14
    """The peer did not answer a request within the dialog, or no longer knows the dialog."""
    # Timers.
    TIMER_SILENCE = 15
    """No response at all came to our INVITE."""
    TIMER_RINGING = 16
    TIMER_CANCEL = 17
    TIMER_REPEAT = 18
    """The 2xx is sent again."""
    TIMER_ACK = 19
    """No ACK came in 64*T1."""
    TIMER_OFFER = 20
    """Our offer is to be repeated, or was never answered."""
    TIMER_PROVISIONAL = 21
    """A reliable provisional response is sent again."""
    TIMER_PRACK = 22
    """No PRACK came in 64*T1."""
    TIMER_OWNER = 23
    """The owner never answered an offer the peer made in a request."""
    TIMER_LATE_ANSWER = 24
    """The owner never answered an offer that came in a response to our INVITE."""
    TIMER_REFRESH = 25
    """A refresh is due, at half the session interval if we are the refresher (RFC 4028 10)."""
    TIMER_EXPIRY = 26
    """No refresh succeeded before the session interval expired."""
    REDIRECT = 27
    """The INVITE failed, but a 3xx named another target."""
    TIMER_STILL_RINGING = 28
    """The provisional response is repeated, so that proxies do not give up."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of all sessions and registrations of a user agent."""

    random_between: Callable[[float, float], float]
    """Returns a random number between two bounds."""
    token: Callable[[], str]
    """Returns an unguessable text, unique per call."""
    product: str = "Trunkline"
    timers: Timers = field(default_factory=Timers)
    max_ringing_s: float = 300.0
    """Ringing limit, in seconds, of an inbound INVITE and of an outbound one without its own limit."""
    min_se_s: int = MIN_SESSION_EXPIRES_S
    """Shortest session interval a peer may request (RFC 4028 5)."""
    first_response_timeout_s: float = 4.0
    """Time limit, in seconds, of the first response to an outbound INVITE."""
    owner_patience_s: float = 10.0
    """Time limit, in seconds, of the owner's answer to an offer: the peer's transaction ends after 64*T1."""


class UnackedAnswer(NamedTuple):
    """A sent 2xx, repeated until its ACK comes or 64*T1 have passed."""

    cseq: int
    made_offer: bool
    transaction: Any
    response: Response
    repetition: Repetition
