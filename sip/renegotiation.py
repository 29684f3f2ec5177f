"""Offers that change a session: whose they are, and what comes of them (RFC 3261 14, 3311, 3264)."""

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
from sip.message import Request, Response
from sip.offers import Turn
from sip.responses import ALLOW, reply, supported_fields
from sip.session_core import SessionCore
from sip.session_model import Event, State, UnackedAnswer

__all__ = ["Renegotiation"]


class Renegotiation(SessionCore):
    """The offers of both sides after the first."""

    __slots__ = ()

    # Commands of the owner.

    def reinvite(self, body: bytes) -> Sequence[Effect]:
        """Offer a change of the session, at once or as soon as it is up and our turn."""
        if self.state >= State.LEAVING or self.state is State.CANCELLING:
            return NOTHING
        self.offers.wanted = body
        return self._offer_if_free()

    def accept_offer(self, body: bytes) -> Sequence[Effect]:
        """Answer the peer's offer, or make the offer it asked for."""
        if self.state is not State.CONFIRMED:
            return self.handle(Event.ANSWER, body)
        assert self.dialog is not None
        accepted = self.offers.accept(body, self.dialog)
        if accepted is None:
            return NOTHING
        request, transaction, response = accepted
        effects: list[Effect] = [Respond(transaction, response)]
        if request.method == "INVITE":
            effects += self._await_ack(request, transaction, response)
        effects += self._offer_if_free()
        return effects

    def reject_offer(self, status: int = 488, warning: str | None = None) -> Sequence[Effect]:
        """Refuse the peer's offer; `warning` is the value of a Warning header field."""
        return (*self.offers.reject(status, warning), *self._offer_if_free())

    # Answers acknowledged.

    def _confirm(self, about: "tuple[Request, UnackedAnswer]") -> Sequence[Effect]:
        self.state = State.CONFIRMED
        return (*self._stop_waiting(), Notify(Confirmed(about[0].body)), *self._offer_if_free())

    def _confirm_again(self, about: "tuple[Request, UnackedAnswer]") -> Sequence[Effect]:
        """The ACK of a re-INVITE; it brings the answer when the 2xx brought the offer."""
        ack, unacked = about
        if unacked.made_offer:
            return (*self._stop_waiting(), Notify(OfferAnswered(ack.body)), *self._offer_if_free())
        return (*self._stop_waiting(), *self._offer_if_free())

    # Offers after the first.

    def _receive_offer(self, request: Request, transaction: Any) -> Sequence[Effect]:
        effects: Sequence[Effect] = NOTHING
        unacked = self._unacked
        if unacked is not None and request.method == "INVITE" and not unacked.made_offer:
            # A caller that sends a re-INVITE has our 2xx: only its ACK was lost (RFC 5407 3.1.4).
            self._unacked = None
            effects = self.handle(Event.ACK, (_without_body(request), unacked))
        if self.state is not State.CONFIRMED:
            early = self.state is not State.ACCEPTED
            response = self.offers.busy(request) if early else reply(request, 491)
            return (Respond(transaction, response),)
        if self._unacked is not None and self._unacked.made_offer:
            return (Respond(transaction, reply(request, 491)),)
        return (*effects, *self.offers.receive(request, transaction))

    def _offer_if_free(self) -> Sequence[Effect]:
        offers = self.offers
        free = offers.turn is Turn.NOBODY and self._unacked is None and self.state is State.CONFIRMED
        if offers.wanted is None or not free:
            return NOTHING
        offers.turn = Turn.OURS
        return (
            Disarm(Event.TIMER_OFFER),
            self._start(
                "INVITE",
                Purpose.REINVITE,
                headers=(("Allow", ALLOW), *supported_fields()),
                body=offers.wanted,
                content_type="application/sdp",
            ),
        )

    def _receive_answer(self, response: Response) -> Sequence[Effect]:
        """Take a response to our re-INVITE (RFC 3261 14.1)."""
        status = response.status
        if status < 200:
            # It must not ring for ever: other offers are refused meanwhile.
            return (Arm(Event.TIMER_OFFER, self.settings.timers.timeout_s),)
        if status < 300:
            return self._receive_accepted(response)
        if self.offers.turn is not Turn.OURS:
            return NOTHING
        self.offers.turn = Turn.NOBODY
        delay_s = self.offers.glare_delay_s() if status == 491 else None
        if delay_s is not None:
            return (Arm(Event.TIMER_OFFER, delay_s),)
        self.offers.settle()
        failed = Notify(OfferFailed(status, response.reason))
        if status in (408, 481):
            return self.handle(Event.DIALOG_GONE)
        return (Disarm(Event.TIMER_OFFER), failed)

    def _receive_accepted(self, response: Response) -> Sequence[Effect]:
        number = response.cseq.number
        if self._ack is not None and self._ack[0] == number:
            return (self._ack[1],)  # Our ACK was lost.
        dialog = self.dialog
        assert dialog is not None
        dialog.refresh_target(response)
        ack = SendAck(dialog.request("ACK", cseq=number), dialog.next_hop())
        self._ack = (number, ack)
        if self.offers.turn is Turn.OURS:
            self.offers.settle()
        # Even if we had given the offer up: the peer uses the new session from here on.
        return (ack, Disarm(Event.TIMER_OFFER), Notify(OfferAnswered(response.body)))

    def _offer_timer(self, _: None) -> Sequence[Effect]:
        if self.offers.turn is not Turn.OURS:
            return self._offer_if_free()
        self.offers.settle()
        give_up = CancelInvite(CancelStep.CANCEL, Purpose.REINVITE)
        return (give_up, Notify(OfferFailed(408, "Request Timeout")))


def _without_body(request: Request) -> Request:
    return Request(request.method, request.uri, request.headers)
