"""Offer/answer state after the first offer of a session (RFC 3261 14, RFC 3311, RFC 3264)."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from sip.effects import Arm, Disarm, Effect, Notify, Respond
from sip.events import OfferReceived
from sip.message.message import Request, Response
from sip.message.responses import ALLOW, reply, supported_fields
from sip.session.dialog import Dialog
from sip.session.model import Event

__all__ = ["OfferTurns", "PeerOffer", "SentOffer", "Turn"]

MAX_GLARES = 10
"""Limit of retries after 491 or 500: a peer that refuses more often is not making an offer of its own."""

MAX_RETRY_AFTER_S = 10
"""Longest Retry-After of a peer that is busy with an offer (RFC 3311 5.2)."""

Pick = Callable[[float, float], float]
"""Returns a random number between two bounds."""


class Turn(IntEnum):
    """Side with an outstanding offer."""

    NOBODY = 0
    OURS = 1
    THEIRS = 2


class SentOffer(NamedTuple):
    """Our outstanding offer."""

    dialog: Dialog
    cseq: int
    body: bytes

    def is_met_by(self, response: Response) -> bool:
        """Return True when a response belongs to the request with this offer."""
        return self.cseq == response.cseq.number and self.dialog.remote_tag == response.to.tag


class PeerOffer(NamedTuple):
    """An unanswered offer of the peer."""

    request: Request
    transaction: Any
    dialog: Dialog


class OfferTurns:
    """
    Offers of one session after the first; at most one is outstanding at a time.

    `wanted` is our offer to send, also while it waits (glare, or an unanswered offer of the peer); a later
    one replaces it. `by_update` selects UPDATE instead of re-INVITE. `sent` is our outstanding offer. `ours`
    is our latest agreed description.
    """

    __slots__ = (
        "_glares",
        "by_update",
        "ours",
        "owner_of_call_id",
        "patience_s",
        "peer",
        "pick",
        "sent",
        "turn",
        "wanted",
    )

    def __init__(self, *, owner_of_call_id: bool, pick: Pick, patience_s: float) -> None:
        self.turn = Turn.NOBODY
        self.wanted: bytes | None = None
        self.by_update = False
        self.sent: SentOffer | None = None
        self.ours = b""
        self.owner_of_call_id = owner_of_call_id
        self.pick = pick
        self.patience_s = patience_s
        self.peer: PeerOffer | None = None
        self._glares = 0

    def receive(self, request: Request, transaction: Any, dialog: Dialog) -> Sequence[Effect]:
        """
        Handle a re-INVITE, or an UPDATE or a PRACK with an offer.

        Source: RFC 3261 14.2, RFC 3311 5.2.
        """
        if self.turn is Turn.OURS:
            return (Respond(transaction, reply(request, 491)),)
        if self.turn is Turn.THEIRS:
            return (Respond(transaction, self.busy(request)),)
        self.turn = Turn.THEIRS
        self.peer = PeerOffer(request, transaction, dialog)
        return (Arm(Event.TIMER_OWNER, self.patience_s), Notify(OfferReceived(request.body)))

    def busy(self, request: Request) -> Response:
        """Build the response to an offer that came before the previous one was answered."""
        wait_s = round(self.pick(0.0, float(MAX_RETRY_AFTER_S)))
        return reply(request, 500, headers=(("Retry-After", str(wait_s)),))

    def accept(self, body: bytes) -> tuple[PeerOffer, Response] | None:
        """
        Answer the peer's offer: return the offer and the 2xx, None when there is no offer.

        The caller sends the response, and repeats it until the ACK if the request was an INVITE.
        """
        if self.peer is None:
            return None
        peer = self._take()
        peer.dialog.refresh_target(peer.request)
        peer.dialog.description = peer.request.body
        headers = [("Contact", peer.dialog.local_contact), ("Allow", ALLOW), *supported_fields()]
        if body:
            headers.append(("Content-Type", "application/sdp"))
            self.ours = body
        response = reply(peer.request, 200, headers=headers)
        response.body = body
        return peer, response

    def reject(self, status: int, warning: str | None = None) -> Sequence[Effect]:
        """Refuse the peer's offer; the session is unchanged."""
        if self.peer is None:
            return ()
        peer = self._take()
        headers = () if warning is None else (("Warning", warning),)
        response = reply(peer.request, status, headers=headers)
        return (Disarm(Event.TIMER_OWNER), Respond(peer.transaction, response))

    def cancel(self, transaction: Any) -> Sequence[Effect]:
        """Handle a CANCEL of the peer's re-INVITE."""
        if self.peer is None or self.peer.transaction is not transaction:
            return ()
        return self.reject(487)

    def settle(self) -> None:
        """End our outstanding offer, accepted or not; an offer queued since stays in `wanted`."""
        if self.sent is None or self.wanted is self.sent.body:
            self.wanted = None
        self.take_back()
        self._glares = 0

    def agree(self) -> None:
        """Record that the peer accepted our offer."""
        if self.sent is not None:
            self.ours = self.sent.body
        self.settle()

    def take_back(self) -> None:
        """Withdraw our outstanding offer, to be sent again."""
        self.turn = Turn.NOBODY
        self.sent = None

    def retry_delay_s(self, response: Response) -> float | None:
        """
        Return the delay before our offer is sent again after 491 or 500 with Retry-After; None when refused.

        Source: RFC 3261 14.1, RFC 3311 5.1 and 5.2.
        """
        busy_s = response.retry_after_s if response.status == 500 else None
        if response.status != 491 and (busy_s is None or busy_s > MAX_RETRY_AFTER_S):
            return None
        self._glares += 1
        if self._glares > MAX_GLARES:
            return None
        return float(busy_s) if busy_s is not None else self.glare_delay_s()

    def glare_delay_s(self) -> float:
        """
        Return the delay before a request is sent again after a 491, longer for the owner of the Call-ID.

        Source: RFC 3261 14.1.
        """
        if self.owner_of_call_id:
            return round(self.pick(2.1, 4.0), 2)
        return round(self.pick(0.0, 2.0), 2)

    def _take(self) -> PeerOffer:
        assert self.peer is not None
        peer, self.peer, self.turn = self.peer, None, Turn.NOBODY
        return peer
