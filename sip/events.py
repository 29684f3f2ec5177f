"""What a session tells its owner."""

from dataclasses import dataclass, field
from typing import Literal

from sip.location.failover import Tried
from sip.message.headers import Headers
from sip.session.refer import Refer

__all__ = [
    "Answered",
    "Cancelled",
    "Confirmed",
    "Ended",
    "Failed",
    "ForkEnded",
    "InfoReceived",
    "OfferAnswered",
    "OfferFailed",
    "OfferReceived",
    "Progress",
    "ReferAccepted",
    "ReferFailed",
    "ReferProgress",
    "ReferReceived",
    "SessionEvent",
]


class SessionEvent:
    """
    Base of everything a session reports.

    Exactly one terminal event ends the reports of a session: `Failed`, `Cancelled` or `Ended`.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Progress(SessionEvent):
    """
    A called party sent a provisional response above 100.

    `tag` is that party's: an INVITE may be forked, and then several ring. Of their early media the one that
    was described last is to be heard; `Answered` names the description that holds in the end. A response that
    is `reliable` is acknowledged by the session. One that `needs_answer` holds the offer that our INVITE
    lacked: `accept_offer` answers it.
    """

    status: int
    reason: str
    body: bytes
    headers: Headers
    tag: str | None = None
    reliable: bool = False
    needs_answer: bool = False


@dataclass(frozen=True, slots=True)
class ForkEnded(SessionEvent):
    """One of the parties that ring is out, the others may still answer (199, RFC 6228)."""

    tag: str
    reason_header: str | None


@dataclass(frozen=True, slots=True)
class Answered(SessionEvent):
    """
    The called party answered.

    The ACK has been sent, unless `needs_answer`: then the INVITE was without an offer, `body` holds
    the offer, and the ACK leaves with the answer given to `accept_offer`. `body` is the description that
    holds: the last one that was agreed on while it rang, or else that of the 2xx.
    """

    body: bytes
    headers: Headers
    needs_answer: bool = False


@dataclass(frozen=True, slots=True)
class Failed(SessionEvent):
    """
    An outbound session was never answered. Terminal.

    `cause` is `response` when `status` is that of the final response. Otherwise the status is our own:
    408 with `timeout` when nothing at all came back, 487 with `timeout` when it rang too long, 487 with
    `cancelled` when the owner hung up, 503 with `transport` and 404 with `resolve` when the destination
    could not be reached or not be found. `tried` are the targets the INVITE was sent to, in order; where a
    name led to several, the status and cause are those of the last.
    """

    status: int
    reason: str
    headers: Headers | None
    cause: Literal["response", "timeout", "transport", "cancelled", "resolve"]
    retry_after_s: int | None = None
    tried: tuple[Tried, ...] = ()

    @property
    def timed_out(self) -> bool:
        """True when the peer kept silent or rang too long."""
        return self.cause == "timeout"


@dataclass(frozen=True, slots=True)
class Confirmed(SessionEvent):
    """The ACK of our answer arrived; `body` is empty unless it brings the answer to our offer."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Cancelled(SessionEvent):
    """The caller gave up before we answered; the 487 has been sent. Terminal."""

    reason_header: str | None


@dataclass(frozen=True, slots=True)
class OfferReceived(SessionEvent):
    """
    The peer wants to change the session: answer with `accept_offer` or `reject_offer`.

    An empty body asks us for an offer, which `accept_offer` then carries. An offer that is answered neither
    way is refused after some seconds.
    """

    body: bytes


@dataclass(frozen=True, slots=True)
class OfferAnswered(SessionEvent):
    """The peer answered our `reinvite` or `update`, or its ACK or PRACK the offer it had asked for."""

    body: bytes


@dataclass(frozen=True, slots=True)
class OfferFailed(SessionEvent):
    """The offer of our `reinvite` or `update` was not accepted; the session goes on as it was."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class InfoReceived(SessionEvent):
    """An INFO arrived; it has been answered with 200."""

    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Ended(SessionEvent):
    """
    A session that was answered, or one that we refused, is over. Terminal.

    `bye`: one side hung up. `ack_timeout`: our answer was never acknowledged. `timeout` by the remote
    side: it did not answer a request within the dialog, or knew the dialog no more; by the local side: the
    owner never answered the INVITE. `rejected`: the owner refused the INVITE. `session_expired`: the peer
    agreed to a session timer, and no refresh came through in its time. `headers` are those of the peer's BYE.
    """

    by: Literal["local", "remote"]
    cause: Literal["bye", "ack_timeout", "timeout", "transport", "rejected", "session_expired"]
    reason_header: str | None = None
    headers: Headers | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ReferReceived(SessionEvent):
    """
    The peer wants us to call someone else: answer with `accept_refer` or `reject_refer`.

    After accepting, `tell_refer` says how it goes, until a final status.
    """

    refer: Refer


@dataclass(frozen=True, slots=True)
class ReferAccepted(SessionEvent):
    """The peer took the REFER of our `refer`; unless it is `followed`, nothing more will be heard of it."""

    followed: bool = True


@dataclass(frozen=True, slots=True)
class ReferProgress(SessionEvent):
    """The peer tells how the call it was referred to goes; a 2xx is its success, and the last news."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class ReferFailed(SessionEvent):
    """
    The REFER was refused (its status), or the call the peer made for it failed (the status of that call).

    The status is 491 when an earlier REFER of ours is still under way, and 408 when nothing came back or
    the news ended without an outcome.
    """

    status: int
    reason: str
