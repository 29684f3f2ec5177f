"""Events a session reports to its owner."""

from dataclasses import field
from typing import Literal

from sip.effects import Effect
from sip.location.failover import Tried
from sip.message.message import Headers
from sip.session.refer import Refer
from sip.values import frozen


class SessionEvent(Effect):
    """
    Base of all session events, which are effects: a machine returns what its owner is told.

    Exactly one terminal event is the last of a session: `Failed`, `Cancelled` or `Ended`.
    """

    __slots__ = ()


@frozen
class Progress(SessionEvent):
    """
    A called party sent a provisional response above 100.

    `tag` is the To tag of that party: an INVITE may be forked, and then several parties ring. The early media
    of the latest description is the one to play; `Answered` holds the final description. A `reliable`
    response is acknowledged by the session. With `needs_answer` the response holds the offer that our INVITE
    lacked: `accept_offer` answers it.
    """

    status: int
    reason: str
    body: bytes
    headers: Headers
    tag: str | None = None
    reliable: bool = False
    needs_answer: bool = False


@frozen
class ForkEnded(SessionEvent):
    """One ringing party has ended, others may still answer (199, RFC 6228, or a BYE of that party)."""

    tag: str
    reason_header: str | None


@frozen
class Answered(SessionEvent):
    """
    The called party answered.

    The ACK has been sent, unless `needs_answer`: then the INVITE had no offer, `body` holds the offer, and
    the ACK is sent with the answer passed to `accept_offer`. `body` is the description in force: the last one
    agreed on while ringing, or else that of the 2xx.
    """

    body: bytes
    headers: Headers
    needs_answer: bool = False


@frozen
class Failed(SessionEvent):
    """
    An outbound session was never answered. Terminal.

    With `cause` `response`, `status` is that of the final response. Otherwise the status is our own: 408 with
    `timeout` when no response came at all, 487 with `timeout` when it rang too long, 487 with `cancelled`
    when the owner hung up, 488 with `cancelled` when the owner did not accept the offer of a ringing party,
    503 with `transport` when the destination could not be reached, 404 with `resolve` when its name was not
    found. `tried` lists the targets the INVITE was sent to, in order; where a name has several, status and
    cause are those of the last.
    """

    status: int
    reason: str
    headers: Headers | None
    cause: Literal["response", "timeout", "transport", "cancelled", "resolve"]
    retry_after_s: int | None = None
    tried: tuple[Tried, ...] = ()


@frozen
class Confirmed(SessionEvent):
    """The ACK of our 2xx arrived; `body` is empty unless it holds the answer to our offer."""

    body: bytes


@frozen
class Cancelled(SessionEvent):
    """The caller gave up before we answered; the 487 has been sent. Terminal."""

    reason_header: str | None


@frozen
class OfferReceived(SessionEvent):
    """
    The peer offers to change the session: answer with `accept_offer` or `reject_offer`.

    An empty body asks us for an offer, which is passed to `accept_offer`. An unanswered offer is refused
    after `SessionSettings.owner_patience_s`.
    """

    body: bytes


@frozen
class OfferAnswered(SessionEvent):
    """The peer answered our `reinvite` or `update`, or, by ACK or PRACK, the offer it had asked for."""

    body: bytes


@frozen
class OfferFailed(SessionEvent):
    """The peer did not accept the offer of our `reinvite` or `update`; the session is unchanged."""

    status: int
    reason: str


@frozen
class InfoReceived(SessionEvent):
    """An INFO arrived; it has been answered with 200."""

    content_type: str
    body: bytes


@frozen
class Ended(SessionEvent):
    """
    An answered session, or an inbound one that we refused, has ended. Terminal.

    `bye`: one side hung up. `ack_timeout`: no ACK of our 2xx came. `timeout` by the remote side: it did not
    answer a request within the dialog, or no longer knew the dialog; by the local side: the owner answered
    neither the INVITE nor the offer of its 2xx, or no PRACK came. `rejected`: the owner refused the INVITE.
    `session_expired`: the peer agreed to a session timer, and no refresh succeeded in time. `headers` are
    those of the peer's BYE.
    """

    by: Literal["local", "remote"]
    cause: Literal["bye", "ack_timeout", "timeout", "transport", "rejected", "session_expired"]
    reason_header: str | None = None
    headers: Headers | None = field(default=None, compare=False, repr=False)


@frozen
class ReferReceived(SessionEvent):
    """
    The peer sent a REFER that asks us to call a target: answer with `accept_refer` or `reject_refer`.

    After accepting, report the progress with `notify_refer`, up to a final status.
    """

    refer: Refer


@frozen
class ReferAccepted(SessionEvent):
    """The peer accepted the REFER of our `refer`; it sends NOTIFYs only when `followed`."""

    followed: bool = True


@frozen
class ReferProgress(SessionEvent):
    """Status of the referred call from a NOTIFY; a 2xx reports its success and is the last."""

    status: int
    reason: str


@frozen
class ReferFailed(SessionEvent):
    """
    The REFER was refused (its status), or the referred call failed (the status of that call).

    The status is 491 while an earlier REFER of ours is under way, and 408 when no response or NOTIFY came or
    the subscription ended without an outcome.
    """

    status: int
    reason: str
