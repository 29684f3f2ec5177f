"""Offers that change a session: re-INVITE and UPDATE of both sides (RFC 3261 14, 3311, 3264)."""

from collections.abc import Sequence
from typing import Any

from sip.effects import (
    Arm,
    CancelInvite,
    CancelStep,
    Disarm,
    Effect,
    Notify,
    Purpose,
    Respond,
    SendAck,
)
from sip.events import Confirmed, OfferAnswered, OfferFailed
from sip.machine import NOTHING
from sip.message.message import Request, Response
from sip.message.responses import ACCEPT, ALLOW, reply, supported_fields
from sip.session.dialog import Dialog
from sip.session.model import Event, State, UnackedAnswer
from sip.session.offer_answer import SentOffer, Turn
from sip.session.prack import OPTION_TAG
from sip.session.refresh import Refreshing

__all__ = ["Renegotiation"]


class Renegotiation(Refreshing):
    """Session with offers of both sides after the first."""

    __slots__ = ()

    # Commands of the owner.

    def reinvite(self, body: bytes) -> Sequence[Effect]:
        """Offer a change by re-INVITE, as soon as the session is confirmed and no offer is outstanding."""
        return self._want(body, by_update=False)

    def update(self, body: bytes = b"") -> Sequence[Effect]:
        """
        Offer a change by UPDATE, which needs no answer from a person and is allowed while ringing.

        A peer that does not allow UPDATE gets a re-INVITE once the session is confirmed. Without a body the
        UPDATE only refreshes the target, and a re-INVITE in its place repeats our description.

        Source: RFC 3311 5.1.
        """
        if body:
            return self._want(body, by_update=True)
        dialog = self._talking()
        if dialog is not None and dialog.allows("UPDATE"):
            headers = (*_offer_fields(), *self._timer_fields())
            return (self._start("UPDATE", Purpose.UPDATE, headers=headers, within=dialog),)
        return self._want(self.offers.ours, by_update=False) if self.offers.ours else NOTHING

    def accept_offer(self, body: bytes) -> Sequence[Effect]:
        """Answer the peer's offer, or send the offer it asked for."""
        accepted = self.offers.accept(body)
        if accepted is None:
            return self.handle(Event.ANSWER, body)
        peer, response = accepted
        for name, value in self._heed_request(peer.request):
            response.headers.add(name, value)
        effects: list[Effect] = [Disarm(Event.TIMER_OWNER), Respond(peer.transaction, response)]
        effects += self._run_timer()
        if peer.request.method == "INVITE":
            effects += self._await_ack(peer.request, peer.transaction, response)
        effects += self._offer_if_free()
        return effects

    def reject_offer(self, status: int = 488, warning: str | None = None) -> Sequence[Effect]:
        """Refuse the peer's offer; `warning` is the value of a Warning header field."""
        return (*self.offers.reject(status, warning), *self._offer_if_free())

    def _want(self, body: bytes, *, by_update: bool) -> Sequence[Effect]:
        if self.state >= State.LEAVING or self.state is State.CANCELLING:
            return NOTHING
        self.offers.wanted, self.offers.by_update = body, by_update
        return self._offer_if_free()

    def _refuse_for_owner(self, _: None) -> Sequence[Effect]:
        """Refuse the peer's offer with 500, because the owner did not answer it in time."""
        return (*self.offers.reject(500), *self._offer_if_free())

    # ACKs of our answers.

    def _confirm(self, about: "tuple[Request, UnackedAnswer]") -> Sequence[Effect]:
        self.state = State.CONFIRMED
        confirmed = Notify(Confirmed(about[0].body))
        return (*self._stop_waiting(), *self._run_timer(), confirmed, *self._offer_if_free())

    def _confirm_again(self, about: "tuple[Request, UnackedAnswer]") -> Sequence[Effect]:
        """Handle the ACK of a re-INVITE; it holds the answer if the 2xx held the offer."""
        ack, unacked = about
        if unacked.made_offer:
            return (*self._stop_waiting(), Notify(OfferAnswered(ack.body)), *self._offer_if_free())
        return (*self._stop_waiting(), *self._offer_if_free())

    # Offers after the first.

    def _receive_offer(self, request: Request, transaction: Any, dialog: Dialog) -> Sequence[Effect]:
        effects: Sequence[Effect] = NOTHING
        unacked = self._unacked
        if unacked is not None and request.method == "INVITE" and not unacked.made_offer:
            # A caller that sends a re-INVITE has our 2xx: only its ACK was lost (RFC 5407 3.1.4).
            self._unacked = None
            effects = self.handle(Event.ACK, (_without_body(request), unacked))
        if self.state is not State.CONFIRMED:
            if request.method == "UPDATE" and self._settled_in(dialog):
                return self.offers.receive(request, transaction, dialog)
            # The side of the open offer decides between 491 and 500 (RFC 3261 14.2, RFC 3311 5.2).
            ours = self.state is State.ACCEPTED or self.offers.owner_of_call_id
            return (Respond(transaction, reply(request, 491) if ours else self.offers.busy(request)),)
        if self._unacked is not None and self._unacked.made_offer:
            return (Respond(transaction, reply(request, 491)),)
        return (*effects, *self.offers.receive(request, transaction, dialog))

    def _offer_if_free(self) -> Sequence[Effect]:
        offers = self.offers
        if offers.turn is not Turn.NOBODY or self._unacked is not None:
            return NOTHING
        if offers.wanted is None:
            return self._refresh_if_due()
        dialog = self._talking(offering=True)
        if dialog is None:
            return NOTHING
        by_update = offers.by_update and dialog.allows("UPDATE")
        if not by_update and self.state is not State.CONFIRMED:
            return NOTHING
        offers.turn = Turn.OURS
        send = self._start(
            "UPDATE" if by_update else "INVITE",
            Purpose.UPDATE if by_update else Purpose.REINVITE,
            headers=(*_offer_fields(), *self._timer_fields()),
            body=offers.wanted,
            content_type=ACCEPT,
            within=dialog,
        )
        offers.sent = SentOffer(dialog, dialog.local_seq, offers.wanted)
        return (Disarm(Event.TIMER_OFFER), send)

    def _receive_answer(self, response: Response) -> Sequence[Effect]:
        """Handle a response to our re-INVITE (RFC 3261 14.1)."""
        status = response.status
        if 200 <= status < 300:
            return self._receive_accepted(response)
        if not self._is_awaited(response):
            return NOTHING
        if status < 200:
            # Limits a pending re-INVITE: the peer's offers are refused until it ends.
            return (Arm(Event.TIMER_OFFER, self.settings.timers.timeout_s),)
        return self._receive_refused(response)

    def _is_awaited(self, response: Response) -> bool:
        """Return True for a response to our outstanding offer, False for one to an earlier offer."""
        sent = self.offers.sent
        return sent is not None and sent.is_met_by(response)

    def _receive_update_answer(self, response: Response) -> Sequence[Effect]:
        """Handle the final response to our UPDATE (RFC 3311 5.1)."""
        status = response.status
        sent = self.offers.sent
        if sent is None or not sent.is_met_by(response):
            # The UPDATE had no offer, or was sent to a fork that has ended.
            if status < 300 and response.headers.first("session-expires") is not None:
                return self._heed_answer(response)
            return self.handle(Event.DIALOG_GONE) if status in (408, 481) else NOTHING
        dialog = sent.dialog
        if status < 300:
            dialog.refresh_target(response)
            dialog.description = response.body
            self.offers.agree()
            timers = self._heed_answer(response)
            return (*timers, Notify(OfferAnswered(response.body)), *self._offer_if_free())
        if status in (405, 501):
            dialog.disallow()
            self.offers.take_back()
            return self._offer_if_free()
        return self._receive_refused(response)

    def _receive_refused(self, response: Response) -> Sequence[Effect]:
        if self._learn_minimum(response):
            self.offers.take_back()
            return self._offer_if_free()
        delay_s = self.offers.retry_delay_s(response)
        if self._is_refresh(Purpose.REINVITE) and response.status not in (408, 481):
            return self._refresh_again(response.retry_after_s if delay_s is None else delay_s)
        if delay_s is not None:
            self.offers.take_back()
            return (Arm(Event.TIMER_OFFER, delay_s),)
        if response.status in (408, 481) and self.state is State.CONFIRMED:
            self.offers.settle()
            return self.handle(Event.DIALOG_GONE)
        return self._update_failed(response.status, response.reason)

    def _update_failed(self, status: int, reason: str) -> Sequence[Effect]:
        if self.offers.turn is not Turn.OURS:
            return NOTHING
        self.offers.settle()
        failed = Notify(OfferFailed(status, reason))
        return (Disarm(Event.TIMER_OFFER), failed, *self._offer_if_free())

    def _receive_accepted(self, response: Response) -> Sequence[Effect]:
        dialog, known, number = self.dialog, self._ack, response.cseq.number
        assert dialog is not None
        ack = self._ack_for(number)
        if known is not None and number <= known[0]:
            return (ack,)  # Our ACK was lost, or the offer is an earlier one, settled since.
        self._ack = (number, ack)
        if self._is_awaited(response):
            self.offers.agree()
        elif self.offers.turn is Turn.OURS:
            return (ack,)  # The peer answered an abandoned offer, and a newer one is outstanding.
        dialog.refresh_target(response)
        dialog.description = response.body
        # Applies even to an abandoned offer: the peer uses the new description from here on.
        answered = Notify(OfferAnswered(response.body))
        timers = (Disarm(Event.TIMER_OFFER), *self._heed_answer(response))
        return (ack, *timers, answered, *self._offer_if_free())

    def _ack_for(self, number: int) -> SendAck:
        """Build the ACK of a re-INVITE, or return the one that was sent."""
        if self._ack is not None and self._ack[0] == number:
            return self._ack[1]
        assert self.dialog is not None
        ack = self.dialog.request("ACK", cseq=number, headers=self._ack_credentials(number))
        return SendAck(ack, self.dialog.next_hop())

    def _acknowledge_only(self, response: Response) -> Sequence[Effect]:
        """Send the ACK of a 2xx to our re-INVITE that arrives after the session has begun to end."""
        if response.cseq.method != "INVITE" or not 200 <= response.status < 300:
            return NOTHING
        return (self._ack_for(response.cseq.number),)

    def _offer_timer(self, _: None) -> Sequence[Effect]:
        if self.offers.turn is not Turn.OURS:
            return self._offer_if_free()
        self.offers.settle()
        give_up = CancelInvite(CancelStep.CANCEL, Purpose.REINVITE)
        if self._is_refresh(Purpose.REINVITE):
            return (give_up, *self._refresh_again(None))
        return (give_up, Notify(OfferFailed(408, "Request Timeout")), *self._offer_if_free())


def _offer_fields() -> tuple[tuple[str, str], ...]:
    # No person has to answer these requests, so no reliable 1xx is wanted.
    return (("Allow", ALLOW), *supported_fields(OPTION_TAG))


def _without_body(request: Request) -> Request:
    return Request(request.method, request.uri, request.headers)
