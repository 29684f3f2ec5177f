"""States, events and settings of a session, and the parameters of an outbound one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from sip.auth.digest import Credentials
from sip.location.rfc3263 import Destination
from sip.message.fields import NameAddr
from sip.message.responses import MIN_SESSION_EXPIRES_S
from sip.message.uri import SipUri
from sip.session.redirects import Redirects
from sip.timers import Timers
from sip.values import constructed_natively


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
    """Ringing limit of an INVITE, in seconds."""
    min_se_s: int = MIN_SESSION_EXPIRES_S
    """Shortest session interval a peer may request (RFC 4028 5)."""
    first_response_timeout_s: float = 4.0
    """Time limit, in seconds, of the first response to an outbound INVITE."""
    owner_patience_s: float = 10.0
    """Time limit, in seconds, of the owner's answer to an offer: the peer's transaction ends after 64*T1."""


@constructed_natively
@dataclass(slots=True)
class OutboundInvite:
    """
    Parameters of an outbound INVITE.

    `from_` has no tag. Without a `body` the answer holds the offer. A `call_id` is generated when None.
    `max_forwards` is one less than that of the call this one continues, so that a number that leads back to
    us ends the loop. The called party may (`rel100` `supported`), must
    (`required`) or must not (`off`) send provisional responses reliably (RFC 3262). `session_expires_s`
    requests a session timer of that interval (RFC 4028); None requests none, and accepts the peer's.
    `redirects` defines the redirections to follow, None follows none. After a redirection `destination` and
    `uri` are those of the current target.
    """

    uri: SipUri
    from_: NameAddr
    to: NameAddr
    destination: Destination
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    credentials: Credentials | None = None
    call_id: str | None = None
    max_forwards: int = 70
    rel100: str = "supported"
    session_expires_s: int | None = None
    redirects: Redirects | None = None
