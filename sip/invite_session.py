"""
The session an INVITE makes, from its first message to the end of its BYE.

This module holds what both sides share once the dialog stands: requests within it, offers, hanging
up. `sip.inbound` and `sip.outbound` add how it comes about. No I/O, no clock: commands, messages and
timer events come in by method call, and effects go out.
"""

from collections.abc import Sequence
from typing import Any

from sip.dialog import Dialog
from sip.effects import (
    Arm,
    CancelInvite,
    CancelStep,
    Disarm,
    Done,
    Effect,
    Failure,
    Notify,
    Purpose,
    Respond,
    SendAck,
    StartRequest,
)
from sip.events import Confirmed, Ended, InfoReceived, OfferAnswered, OfferFailed
from sip.machine import NOTHING, Machine
from sip.message import Request, Response
from sip.offers import OfferTurns, Turn
from sip.referrals import Referrals, ReferTimer
from sip.responses import ALLOW, reply, supported_fields
from sip.session_model import Event, SessionSettings, State, UnackedAnswer
from sip.uri import SipUri

__all__ = ["InviteSession"]


class InviteSession(Machine[State]):
    """
    What the two sides of a session share.

    `call_id`, `local_tag` and the peer's tag identify it; `dialog` is None until one stands.
    """

    __slots__ = (
        "_ack",
        "_referrals",
        "_unacked",
        "allows_refer",
        "call_id",
        "dialog",
        "local_tag",
        "offers",
        "settings",
    )

    def __init__(self, call_id: str, local_tag: str, settings: SessionSettings, *, caller: bool) -> None:
        self.state = State.SETUP
        self.call_id = call_id
        self.local_tag = local_tag
        self.settings = settings
        self.dialog: Dialog | None = None
        self.offers = OfferTurns(owner_of_call_id=caller, pick=settings.pick)
        self._unacked: UnackedAnswer | None = None
        self._ack: tuple[int, SendAck] | None = None
        self._referrals: Referrals | None = None
        self.allows_refer = False

    # Commands of the owner. Those that come too late for the session's state do nothing.

    def hangup(self, reason: str | None = None, status: int = 603) -> Sequence[Effect]:
        """End the session by BYE, CANCEL or a final response, whichever its state asks for."""
        return self.handle(Event.HANGUP, (reason, status))

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

    def info(self, content_type: str, body: bytes) -> Sequence[Effect]:
        """Send an INFO within the session."""
        if self.state is not State.CONFIRMED:
            return NOTHING
        return (self._start("INFO", Purpose.INFO, body=body, content_type=content_type),)

    # Transfers.

    @property
    def referrals(self) -> Referrals:
        """The transfers of this session; few sessions have any."""
        if self._referrals is None:
            self._referrals = Referrals(self)
        return self._referrals

    @property
    def leaving(self) -> bool:
        """Whether the session is over, or about to be."""
        return self.state >= State.LEAVING

    def refer(self, target: str, referred_by: str | None) -> Sequence[Effect]:
        """Have the peer call someone else; ``target`` is the value of the Refer-To."""
        return self.referrals.refer(target, referred_by) if self.state is State.CONFIRMED else NOTHING

    def start_refer(
        self, method: str, purpose: Purpose, headers: Sequence[tuple[str, str]], body: bytes = b""
    ) -> StartRequest:
        """Make a REFER or NOTIFY; for the transfers."""
        return self._start(method, purpose, headers=headers, body=body)

    def take_timer(self, event: int) -> Sequence[Effect]:
        """Take a timer event, of the session itself or of its transfers."""
        return self.referrals.take_timer(event) if event >= ReferTimer.NOTIFIER else self.handle(event)

    # What comes from the network.

    def receive_request(self, request: Request, transaction: Any) -> Sequence[Effect]:
        """Take a request that carries our tag; `transaction` is None for an ACK."""
        dialog, method = self.dialog, request.method
        if dialog is None or not dialog.matches(request):
            return NOTHING if method == "ACK" else (Respond(transaction, reply(request, 481)),)
        if method == "ACK":
            return self._receive_ack(request)
        if not dialog.accept_sequence(request):
            # A peer that lost count may try again at once (RFC 3261 12.2.2).
            return (Respond(transaction, reply(request, 500, headers=(("Retry-After", "0"),))),)
        if method == "BYE":
            return self.handle(Event.BYE, (request, transaction))
        if self.state >= State.LEAVING:
            return (Respond(transaction, reply(request, 481)),)
        if method == "INVITE" or (method == "UPDATE" and request.body):
            return self._receive_offer(request, transaction)
        return self._receive_other(request, transaction)

    def receive_cancel(self, transaction: Any, reason: str | None) -> Sequence[Effect]:
        """Take a CANCEL of the re-INVITE of this transaction; its own 200 has been sent."""
        return self.offers.cancel(transaction)

    def receive_response(self, purpose: Purpose, response: Response) -> Sequence[Effect]:
        """Take a response to a request of this session."""
        if purpose is Purpose.REINVITE:
            return self._receive_answer(response)
        if purpose in _OF_REFERRALS:
            return self.referrals.receive_response(purpose, response)
        if response.status < 200 or purpose is Purpose.FORK_BYE:
            return NOTHING
        if purpose is Purpose.BYE:
            return self.handle(Event.BYE_DONE, response)
        return self.handle(Event.DIALOG_GONE) if response.status in (408, 481) else NOTHING

    def fail_request(self, purpose: Purpose, failure: Failure) -> Sequence[Effect]:
        """Take the news that a request of this session got no final response."""
        if purpose is Purpose.BYE:
            return self.handle(Event.BYE_DONE)
        if purpose is Purpose.FORK_BYE:
            return NOTHING
        if purpose in _OF_REFERRALS:
            return self.referrals.fail(purpose)
        return self.handle(Event.DIALOG_GONE)

    # Requests of ours.

    def _start(
        self,
        method: str,
        purpose: Purpose,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        content_type: str | None = None,
    ) -> StartRequest:
        dialog = self.dialog
        assert dialog is not None
        request = dialog.request(method, headers=headers, body=body, content_type=content_type)
        for name, value in self._credentials(method, request.uri, body):
            request.headers.add(name, value)
        return StartRequest(request, purpose, dialog.next_hop())

    def _credentials(self, method: str, uri: SipUri, body: bytes) -> Sequence[tuple[str, str]]:
        """Header fields that answer the challenges this session met; the called side met none."""
        return ()

    def _bye(self, reason: str | None) -> StartRequest:
        return self._start("BYE", Purpose.BYE, headers=(("Reason", reason),) if reason else ())

    # Answers that wait for their ACK (RFC 3261 13.3.1.4, 14.2).

    def _await_ack(self, request: Request, transaction: Any, response: Response) -> Sequence[Effect]:
        unacked = UnackedAnswer(request, transaction, response, self.settings.timers)
        self._unacked = unacked
        return (Arm(Event.TIMER_REPEAT, unacked.repeat_after_s),)

    def _repeat_answer(self, _: None) -> Sequence[Effect]:
        unacked = self._unacked
        if unacked is None:
            return NOTHING
        delay_s, last = unacked.next_wait()
        again = Respond(unacked.transaction, unacked.response)
        return (again, Arm(Event.TIMER_ACK if last else Event.TIMER_REPEAT, delay_s))

    def _receive_ack(self, request: Request) -> Sequence[Effect]:
        unacked = self._unacked
        if unacked is None or unacked.cseq != request.cseq.number:
            return NOTHING  # Repeated, or of a failure.
        self._unacked = None
        return self.handle(Event.ACK, (request, unacked))

    def _stop_waiting(self) -> Sequence[Effect]:
        return (Disarm(Event.TIMER_REPEAT), Disarm(Event.TIMER_ACK))

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

    # Other requests within the dialog.

    def _receive_other(self, request: Request, transaction: Any) -> Sequence[Effect]:
        if request.method in ("REFER", "NOTIFY"):
            # Before the answer there is nobody to be transferred.
            allowed = self.allows_refer and self.state >= State.ACCEPTED
            return self.referrals.receive(request, transaction, allowed=allowed)
        if request.method == "UPDATE":
            # Without an offer it only refreshes the target.
            assert self.dialog is not None
            self.dialog.refresh_target(request)
            contact = ("Contact", self.dialog.local_contact)
            return (Respond(transaction, reply(request, 200, headers=(contact,))),)
        ok = Respond(transaction, reply(request, 200, headers=(("Allow", ALLOW),)))
        if request.method != "INFO":
            return (ok,)
        return (ok, Notify(InfoReceived(request.content_type or "", request.body)))

    # Actions of the tables.

    def _obey_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        request, transaction = about
        ended = Ended("remote", "bye", request.headers.get("Reason"))
        # An offer of the peer that is still unanswered ends with the dialog.
        refused = self.offers.reject(487)
        return (Respond(transaction, reply(request, 200)), *refused, Notify(ended), Done())

    def _obey_crossing_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        return (Respond(about[1], reply(about[0], 200)),)

    def _obey_last_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        return (Respond(about[1], reply(about[0], 200)), Done())

    def _leave(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        return (*self.offers.reject(487), self._bye(about[0]), Notify(Ended("local", "bye", about[0])))

    def _leave_unacked(self, _: None) -> Sequence[Effect]:
        bye = self._bye('SIP;cause=408;text="ACK missing"')
        return (*self.offers.reject(487), bye, Notify(Ended("local", "ack_timeout")))

    def _leave_gone(self, _: None) -> Sequence[Effect]:
        # The BYE is owed even to a peer that seems gone (RFC 3261 12.2.1.2).
        return (*self.offers.reject(487), self._bye(None), Notify(Ended("remote", "timeout")))

    def _end(self, _: object) -> Sequence[Effect]:
        return (Done(),)


_OF_REFERRALS = (Purpose.REFER, Purpose.NOTIFY)


def _without_body(request: Request) -> Request:
    return Request(request.method, request.uri, request.headers)
