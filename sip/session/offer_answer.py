"""
Offers and answers after the first offer of a session: re-INVITE and UPDATE of both sides.

Source: RFC 3261 14, RFC 3311, RFC 3264, RFC 6337.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sip.effects import Arm, CancelInvite, CancelStep, Disarm, Effect, Purpose, Respond
from sip.events import OfferAnswered, OfferFailed, OfferReceived
from sip.machine import NOTHING
from sip.message.message import Request, Response, reply
from sip.message.responses import ACCEPT, ALLOW, supported_fields
from sip.session.dialog import Dialog
from sip.session.model import Event, State
from sip.session.prack import OPTION_TAG
from sip.values import constructed_natively

if TYPE_CHECKING:
    from sip.session.invite import InviteSession

MAX_GLARES = 10
"""Limit of retries after 491 or 500: a peer that refuses more often is not making an offer of its own."""

MAX_RETRY_AFTER_S = 10
"""Longest Retry-After of a peer that is busy with an offer (RFC 3311 5.2)."""


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


@constructed_natively
@dataclass(slots=True)
class OfferAnswer:
    """
    Offers of one session after the first; at most one is outstanding at a time.

    `queued_offer` is our offer to send, also while it waits (glare, or an unanswered offer of the peer); a
    later one replaces it. `by_update` selects UPDATE instead of re-INVITE. `pending_offer` is our outstanding
    offer. `local_sdp` is our latest agreed description. `peer` is the unanswered offer of the peer.
    """

    owner_of_call_id: bool
    queued_offer: bytes | None = None
    by_update: bool = False
    pending_offer: SentOffer | None = None
    local_sdp: bytes = b""
    peer: PeerOffer | None = None
    _glares: int = 0

    # Offers of the peer.

    def receive(
        self, session: "InviteSession", request: Request, transaction: Any, dialog: Dialog
    ) -> Sequence[Effect]:
        """
        Handle a re-INVITE, or an UPDATE with an offer.

        Source: RFC 3261 14.2, RFC 3311 5.2.
        """
        effects: Sequence[Effect] = NOTHING
        unacked = session.unacked
        if unacked is not None and request.method == "INVITE" and not unacked.made_offer:
            # A caller that sends a re-INVITE has our 2xx: only its ACK was lost (RFC 5407 3.1.4).
            session.unacked = None
            ack = Request(request.method, request.uri, request.headers)
            effects = session.trigger(Event.ACK, (ack, unacked))
        if session.state is not State.CONFIRMED:
            if request.method == "UPDATE" and session.is_settled(dialog):
                return self.ask_owner(session, request, transaction, dialog)
            # The side of the open offer decides between 491 and 500 (RFC 3261 14.2, RFC 3311 5.2).
            ours = session.state is State.ACCEPTED or self.owner_of_call_id
            return (Respond(transaction, reply(request, 491) if ours else self.busy(session, request)),)
        if session.unacked is not None and session.unacked.made_offer:
            return (Respond(transaction, reply(request, 491)),)
        return (*effects, *self.ask_owner(session, request, transaction, dialog))

    def ask_owner(
        self, session: "InviteSession", request: Request, transaction: Any, dialog: Dialog
    ) -> Sequence[Effect]:
        """Report an offer in a request to the owner; refuse it while another one is outstanding."""
        if self.pending_offer is not None:
            return (Respond(transaction, reply(request, 491)),)
        if self.peer is not None:
            return (Respond(transaction, self.busy(session, request)),)
        self.peer = PeerOffer(request, transaction, dialog)
        wait = Arm(Event.TIMER_OWNER, session.settings.owner_patience_s)
        return (wait, OfferReceived(request.body))

    def busy(self, session: "InviteSession", request: Request) -> Response:
        """Build the response to an offer that came before the previous one was answered."""
        wait_s = round(session.settings.random_between(0.0, float(MAX_RETRY_AFTER_S)))
        return reply(request, 500, headers=(("Retry-After", str(wait_s)),))

    def accept(self, session: "InviteSession", body: bytes) -> Sequence[Effect]:
        """Answer the peer's offer, or send the offer that its re-INVITE asked for."""
        peer = self._take()
        request, dialog = peer.request, peer.dialog
        dialog.refresh_target(request)
        dialog.description = request.body
        headers = [("Contact", dialog.local_contact), ("Allow", ALLOW), *supported_fields()]
        if body:
            headers.append(("Content-Type", "application/sdp"))
            self.local_sdp = body
        headers += session.refresh.receive_request(session, request)
        response = reply(request, 200, headers=headers)
        response.body = body
        effects: list[Effect] = [Disarm(Event.TIMER_OWNER), Respond(peer.transaction, response)]
        effects += session.refresh.start(session)
        if request.method == "INVITE":
            effects += session.await_ack(request, peer.transaction, response)
        effects += self.send_next(session)
        return effects

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

    def _take(self) -> PeerOffer:
        assert self.peer is not None
        peer, self.peer = self.peer, None
        return peer

    # Our offers.

    def offer(self, session: "InviteSession", body: bytes, *, by_update: bool) -> Sequence[Effect]:
        """Send an offer, as soon as none is outstanding and the state of the session allows it."""
        if session.state >= State.BYE_PENDING_ACK or session.state is State.CANCELLING:
            return NOTHING
        self.queued_offer, self.by_update = body, by_update
        return self.send_next(session)

    def send_next(self, session: "InviteSession") -> Sequence[Effect]:
        """Send our queued offer, or else a refresh that is due, if no offer is outstanding."""
        if self.pending_offer is not None or self.peer is not None or session.unacked is not None:
            return NOTHING
        if self.queued_offer is None:
            return session.refresh.send_if_due(session) if session.refresh.due else NOTHING
        dialog = session.request_dialog(offering=True)
        if dialog is None:
            return NOTHING
        by_update = self.by_update and dialog.allows("UPDATE")
        if not by_update and session.state is not State.CONFIRMED:
            return NOTHING
        send = session.start_request(
            "UPDATE" if by_update else "INVITE",
            Purpose.UPDATE if by_update else Purpose.REINVITE,
            headers=(*offer_fields(), *session.refresh.request_fields(session)),
            body=self.queued_offer,
            content_type=ACCEPT,
            within=dialog,
        )
        self.pending_offer = SentOffer(dialog, dialog.local_seq, self.queued_offer)
        return (Disarm(Event.TIMER_OFFER), send)

    def revert(self) -> None:
        """Withdraw our outstanding offer, to be sent again."""
        self.pending_offer = None

    def settle(self) -> None:
        """End our outstanding offer, accepted or not; an offer queued since stays in `queued_offer`."""
        if self.pending_offer is None or self.queued_offer is self.pending_offer.body:
            self.queued_offer = None
        self.revert()
        self._glares = 0

    def _agree(self) -> None:
        """Record that the peer accepted our offer."""
        if self.pending_offer is not None:
            self.local_sdp = self.pending_offer.body
        self.settle()

    def is_awaited(self, response: Response) -> bool:
        """Return True for a response to our outstanding offer, False for one to an earlier offer."""
        return self.pending_offer is not None and self.pending_offer.is_met_by(response)

    # Responses to our offers.

    def receive_reinvite_response(self, session: "InviteSession", response: Response) -> Sequence[Effect]:
        """Handle a response to our re-INVITE (RFC 3261 14.1)."""
        status = response.status
        if 200 <= status < 300:
            return self._receive_reinvite_2xx(session, response)
        if not self.is_awaited(response):
            return NOTHING
        if status < 200:
            # Limits a pending re-INVITE: the peer's offers are refused until it ends.
            return (Arm(Event.TIMER_OFFER, session.settings.timers.timeout_s),)
        return self._receive_refusal(session, response)

    def _receive_reinvite_2xx(self, session: "InviteSession", response: Response) -> Sequence[Effect]:
        dialog, known, number = session.dialog, session.sent_ack, response.cseq.number
        assert dialog is not None
        ack = session.ack_of_reinvite(number)
        if known is not None and number <= known[0]:
            return (ack,)  # Our ACK was lost, or the offer is an earlier one, settled since.
        session.sent_ack = (number, ack)
        if self.is_awaited(response):
            self._agree()
        elif self.pending_offer is not None:
            return (ack,)  # The peer answered an abandoned offer, and a newer one is outstanding.
        dialog.refresh_target(response)
        dialog.description = response.body
        # Applies even to an abandoned offer: the peer uses the new description from here on.
        answered = OfferAnswered(response.body)
        timers = (Disarm(Event.TIMER_OFFER), *session.refresh.receive_2xx(response))
        return (ack, *timers, answered, *self.send_next(session))

    def receive_update_response(self, session: "InviteSession", response: Response) -> Sequence[Effect]:
        """Handle the final response to our UPDATE (RFC 3311 5.1)."""
        status, sent = response.status, self.pending_offer
        if sent is None or not sent.is_met_by(response):
            # The UPDATE had no offer, or was sent to a fork that has ended.
            if status < 300 and response.headers.first("session-expires") is not None:
                return session.refresh.receive_2xx(response)
            return session.trigger(Event.DIALOG_GONE) if status in (408, 481) else NOTHING
        dialog = sent.dialog
        if status < 300:
            dialog.refresh_target(response)
            dialog.description = response.body
            self._agree()
            timers = session.refresh.receive_2xx(response)
            return (*timers, OfferAnswered(response.body), *self.send_next(session))
        if status in (405, 501):
            dialog.disallow()
            self.revert()
            return self.send_next(session)
        return self._receive_refusal(session, response)

    def _receive_refusal(self, session: "InviteSession", response: Response) -> Sequence[Effect]:
        refresh, status = session.refresh, response.status
        if refresh.receive_422(response):
            self.revert()
            return self.send_next(session)
        delay_s = self._retry_delay_s(session, response)
        if refresh.is_refresh(Purpose.REINVITE) and status not in (408, 481):
            return refresh.retry(session, response.retry_after_s if delay_s is None else delay_s)
        if delay_s is not None:
            self.revert()
            return (Arm(Event.TIMER_OFFER, delay_s),)
        if status in (408, 481) and session.state is State.CONFIRMED:
            self.settle()
            return session.trigger(Event.DIALOG_GONE)
        return self.fail(session, status, response.reason)

    def fail(self, session: "InviteSession", status: int, reason: str) -> Sequence[Effect]:
        """End our outstanding offer, if any, as refused."""
        if self.pending_offer is None:
            return NOTHING
        self.settle()
        return (Disarm(Event.TIMER_OFFER), OfferFailed(status, reason), *self.send_next(session))

    def on_timer(self, session: "InviteSession") -> Sequence[Effect]:
        """Send our offer again after glare, or give up the outstanding one."""
        if self.pending_offer is None:
            return self.send_next(session)
        self.settle()
        give_up = CancelInvite(CancelStep.CANCEL, Purpose.REINVITE)
        if session.refresh.is_refresh(Purpose.REINVITE):
            return (give_up, *session.refresh.retry(session, None))
        return (give_up, OfferFailed(408, "Request Timeout"), *self.send_next(session))

    def _retry_delay_s(self, session: "InviteSession", response: Response) -> float | None:
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
        return float(busy_s) if busy_s is not None else self.glare_delay_s(session)

    def glare_delay_s(self, session: "InviteSession") -> float:
        """
        Return the delay before a request is sent again after a 491, longer for the owner of the Call-ID.

        Source: RFC 3261 14.1.
        """
        low, high = (2.1, 4.0) if self.owner_of_call_id else (0.0, 2.0)
        return round(session.settings.random_between(low, high), 2)


def offer_fields() -> tuple[tuple[str, str], ...]:
    """Return the Allow and Supported of an offer: nobody has to answer it, so no reliable 1xx is wanted."""
    return (("Allow", ALLOW), *supported_fields(OPTION_TAG))
