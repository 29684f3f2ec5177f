"""
INVITE session, from its first message to the end of its BYE: the common part of both sides.

Each member covers one topic: `OfferAnswer` the offers after the first, `SessionRefresh` the session timer,
`Referrals` the transfers. `sip.session.inbound` and `sip.session.outbound` add the setup. No I/O, no clock:
commands, messages and timer events are method calls, and effects are returned.

Members get the session as an argument and do not keep it: an ended session leaves no reference cycle.
"""

from collections.abc import Sequence
from typing import Any

from sip.auth.digest import Authenticator
from sip.effects import Arm, Disarm, Done, Effect, Failure, Purpose, Respond, SendAck, StartRequest
from sip.events import Confirmed, Ended, InfoReceived, OfferAnswered
from sip.machine import NOTHING, Machine, Rules
from sip.message.message import Request, Response, reply
from sip.message.reason_header import reason_value
from sip.message.responses import ACCEPT, ALLOW, supported_fields
from sip.message.uri import SipUri
from sip.session.dialog import Dialog
from sip.session.model import Event, SessionSettings, State
from sip.session.offer_answer import OfferAnswer, offer_fields
from sip.session.referrals import Referrals, ReferTimer
from sip.session.session_refresh import EXPIRED_REASON, GONE_REASON, SessionRefresh
from sip.timers import Repetition
from sip.values import frozen

_UNANSWERED_OFFER = 'SIP;cause=488;text="The ACK answers no offer"'
_OFFERING = (Purpose.REINVITE, Purpose.UPDATE, Purpose.REFRESH)
"""Requests whose responses only need an ACK once the session is ending."""
_OF_REFERRALS = (Purpose.REFER, Purpose.NOTIFY)
WAIT_NO_MORE = (Disarm(Event.TIMER_REPEAT), Disarm(Event.TIMER_ACK))
"""Effects of the ACK of our 2xx."""


@frozen
class UnackedAnswer:
    """A sent 2xx, repeated until its ACK comes or 64*T1 have passed."""

    cseq: int
    made_offer: bool
    transaction: Any
    response: Response
    repetition: Repetition


class InviteSession(Machine[State]):
    """
    Common base of inbound and outbound sessions.

    `call_id`, `local_tag` and the peer's tag identify a session; `dialog` is None until it is established.
    """

    def __init__(self, call_id: str, local_tag: str, settings: SessionSettings, *, caller: bool) -> None:
        self.state = State.SETUP
        self.call_id = call_id
        self.local_tag = local_tag
        self.settings = settings
        self.dialog: Dialog | None = None
        self.offers = OfferAnswer(owner_of_call_id=caller)
        self.refresh = SessionRefresh(settings.min_se_s)
        self.unacked: UnackedAnswer | None = None
        """Our 2xx that waits for its ACK."""
        self.sent_ack: tuple[int, SendAck] | None = None
        """CSeq and ACK of the latest 2xx to an INVITE of ours."""
        self.bye_headers: tuple[tuple[str, str], ...] = ()
        """Header fields added to our BYE."""
        self.allows_refer = False
        self._bye_reason: str | None = None
        self._authenticator: Authenticator | None = None
        self._referrals: Referrals | None = None

    # Commands of the owner. Commands that come too late for the session's state are ignored.

    def hangup(self, reason: str | None = None, status: int = 603) -> Sequence[Effect]:
        """End the session by BYE, CANCEL or a final response, depending on its state."""
        return self.trigger(Event.HANGUP, (reason, status))

    def info(self, content_type: str, body: bytes) -> Sequence[Effect]:
        """Send an INFO within the session."""
        dialog = self.request_dialog()
        if dialog is None:
            return NOTHING
        return (
            self.start_request("INFO", Purpose.INFO, body=body, content_type=content_type, within=dialog),
        )

    def reinvite(self, body: bytes) -> Sequence[Effect]:
        """Offer a change by re-INVITE, as soon as the session is confirmed and no offer is outstanding."""
        return self.offers.offer(self, body, by_update=False)

    def update(self, body: bytes = b"") -> Sequence[Effect]:
        """
        Offer a change by UPDATE, which needs no answer from a person and is allowed while ringing.

        A peer that does not allow UPDATE gets a re-INVITE once the session is confirmed. Without a body the
        UPDATE only refreshes the target, and a re-INVITE in its place repeats our description.

        Source: RFC 3311 5.1.
        """
        if body:
            return self.offers.offer(self, body, by_update=True)
        dialog = self.request_dialog()
        if dialog is not None and dialog.allows("UPDATE"):
            headers = (*offer_fields(), *self.refresh.request_fields(self))
            return (self.start_request("UPDATE", Purpose.UPDATE, headers=headers, within=dialog),)
        return self.reinvite(self.offers.local_sdp) if self.offers.local_sdp else NOTHING

    def accept_offer(self, body: bytes) -> Sequence[Effect]:
        """Answer the peer's offer, or send the offer it asked for."""
        if self.offers.peer is None:
            return self.trigger(Event.ANSWER, body)
        return self.offers.accept(self, body)

    def reject_offer(self, status: int = 488, warning: str | None = None) -> Sequence[Effect]:
        """Refuse the peer's offer; `warning` is the value of a Warning header field."""
        return (*self.offers.reject(status, warning), *self.offers.send_next(self))

    @property
    def referrals(self) -> Referrals:
        """The transfers of this session; few sessions have any."""
        if self._referrals is None:
            self._referrals = Referrals()
        return self._referrals

    # State that the members use.

    def is_with(self, tag: str | None) -> bool:
        """Return True when a peer's tag belongs to the dialog of this session."""
        return self.dialog is not None and self.dialog.remote_tag == tag

    @property
    def ending(self) -> bool:
        """True when the session has ended or is ending."""
        return self.state >= State.BYE_PENDING_ACK

    def request_dialog(self, *, offering: bool = False) -> Dialog | None:
        """Return the dialog of our requests, None without one; `offering` needs an answered first offer."""
        return self.dialog if self.state is State.CONFIRMED else None

    def is_settled(self, dialog: Dialog) -> bool:
        """Return True when the first offer has its final answer while it still rings (RFC 3311 5.1)."""
        return False

    def start_request(
        self,
        method: str,
        purpose: Purpose,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        content_type: str | None = None,
        within: Dialog | None = None,
    ) -> StartRequest:
        """Build a request within the session's dialog, or within the early dialog `within`."""
        dialog = within or self.dialog
        assert dialog is not None
        request = dialog.request(method, headers=headers, body=body, content_type=content_type)
        if self._authenticator is not None:
            request.headers.extend(self.credentials(method, request.uri, body))
        return StartRequest(request, purpose, dialog.next_hop())

    def credentials(self, method: str, uri: SipUri, body: bytes) -> Sequence[tuple[str, str]]:
        """Return the header fields that answer challenges received so far; none on the called side."""
        return () if self._authenticator is None else self._authenticator.headers(method, uri, body)

    # Input from the network.

    def take_timer(self, event: int) -> Sequence[Effect]:
        """Handle a timer event of the session itself or of its transfers."""
        return self.referrals.take_timer(self, event) if event >= ReferTimer.NOTIFIER else self.trigger(event)

    def receive_request(self, request: Request, transaction: Any) -> Sequence[Effect]:
        """Handle a request that carries our tag; `transaction` is None for an ACK."""
        dialog, method = self._dialog_of(request), request.method
        if dialog is None:
            return NOTHING if method == "ACK" else (Respond(transaction, reply(request, 481)),)
        if method == "ACK":
            return self._receive_ack(request)
        if not dialog.accept_sequence(request):
            # A peer with a wrong CSeq may retry at once (RFC 3261 12.2.2).
            return (Respond(transaction, reply(request, 500, headers=(("Retry-After", "0"),))),)
        if method == "BYE":
            return self.trigger(Event.BYE, (request, transaction))
        if method == "PRACK":
            return self._receive_prack(request, transaction)
        if self.state >= State.BYE_PENDING_ACK:
            return (Respond(transaction, reply(request, 481)),)
        if method == "INVITE" or (method == "UPDATE" and request.body):
            return self.offers.receive(self, request, transaction, dialog)
        return self._receive_other(request, transaction, dialog)

    def _dialog_of(self, request: Request) -> Dialog | None:
        """Find the dialog of a request that carries our tag."""
        dialog = self.dialog
        return dialog if dialog is not None and dialog.remote_tag == request.from_.tag else None

    def _receive_other(self, request: Request, transaction: Any, dialog: Dialog) -> Sequence[Effect]:
        if request.method in ("REFER", "NOTIFY"):
            # Before the answer there is no party to transfer.
            allowed = self.allows_refer and self.state >= State.ACCEPTED
            return self.referrals.receive(request, transaction, allowed=allowed)
        if request.method == "UPDATE":
            # Without an offer it only refreshes the target.
            dialog.refresh_target(request)
            fields = [("Contact", dialog.local_contact), ("Allow", ALLOW), *supported_fields()]
            fields += self.refresh.receive_request(self, request)
            return (Respond(transaction, reply(request, 200, headers=fields)), *self.refresh.start(self))
        if request.method == "OPTIONS":
            fields = [("Allow", ALLOW), ("Accept", ACCEPT), *supported_fields()]
            return (Respond(transaction, reply(request, 200, headers=fields)),)
        ok = Respond(transaction, reply(request, 200, headers=(("Allow", ALLOW),)))
        return (ok, InfoReceived(request.content_type or "", request.body))

    def _receive_prack(self, request: Request, transaction: Any) -> Sequence[Effect]:
        """Refuse a PRACK, which only the called side expects."""
        return (Respond(transaction, reply(request, 481)),)

    def receive_cancel(self, transaction: Any, reason: str | None) -> Sequence[Effect]:
        """Handle a CANCEL of the re-INVITE of this transaction; the 200 to the CANCEL has been sent."""
        return self.offers.cancel(transaction)

    def receive_response(self, purpose: Purpose, response: Response) -> Sequence[Effect]:
        """Handle a response to a request of this session."""
        if self.state >= State.BYE_PENDING_ACK and purpose in _OFFERING:
            return self._acknowledge_only(response)
        if purpose is Purpose.REINVITE:
            return self.offers.receive_reinvite_response(self, response)
        if purpose in _OF_REFERRALS:
            return self.referrals.receive_response(self, purpose, response)
        if response.status < 200 or purpose in (Purpose.FORK_BYE, Purpose.PRACK):
            return NOTHING
        if purpose is Purpose.UPDATE:
            return self.offers.receive_update_response(self, response)
        if purpose is Purpose.REFRESH:
            return self.refresh.receive_response(self, response)
        if purpose is Purpose.BYE:
            return self.trigger(Event.BYE_DONE, response)
        return self.trigger(Event.DIALOG_GONE) if response.status in (408, 481) else NOTHING

    def fail_request(self, purpose: Purpose, failure: Failure) -> Sequence[Effect]:
        """Handle the failure of a request of this session: it got no final response."""
        if purpose is Purpose.BYE:
            return self.trigger(Event.BYE_DONE)
        if purpose in _OF_REFERRALS:
            return self.referrals.fail(self, purpose)
        if purpose in (Purpose.FORK_BYE, Purpose.PRACK):
            return NOTHING  # A peer that misses a PRACK repeats the response, or ends the call itself.
        if self.state is State.CONFIRMED:
            if failure is not Failure.TIMEOUT and self.refresh.is_refresh(purpose):
                # A broken connection says nothing about the session; there is time to retry.
                return self.refresh.retry(self, None)
            if failure is Failure.TIMEOUT:
                return self.trigger(Event.DIALOG_GONE)
            # A transport error counts as a 503 (RFC 3261 8.1.3.1): the request failed, the call continues.
            offered = purpose in (Purpose.REINVITE, Purpose.UPDATE)
            return self.offers.fail(self, 503, "Service Unavailable") if offered else NOTHING
        early = self.state in (State.EARLY, State.ACCEPTED) and purpose is Purpose.UPDATE
        return self.offers.fail(self, 408, "Request Timeout") if early else NOTHING

    # Our 2xx that waits for its ACK (RFC 3261 13.3.1.4, 14.2).

    def await_ack(self, request: Request, transaction: Any, response: Response) -> Sequence[Effect]:
        """Repeat a 2xx to an INVITE or re-INVITE until its ACK comes."""
        timers, made_offer = self.settings.timers, bool(response.body) and not request.body
        repetition = Repetition(timers, timers.t2_s)
        self.unacked = UnackedAnswer(request.cseq.number, made_offer, transaction, response, repetition)
        return (Arm(Event.TIMER_REPEAT, repetition.delay_s),)

    def _repeat_answer(self, _: None) -> Sequence[Effect]:
        unacked = self.unacked
        if unacked is None:
            return NOTHING
        delay_s, last = unacked.repetition.next()
        again = Respond(unacked.transaction, unacked.response)
        return (again, Arm(Event.TIMER_ACK if last else Event.TIMER_REPEAT, delay_s))

    def _receive_ack(self, request: Request) -> Sequence[Effect]:
        unacked = self.unacked
        if unacked is None or unacked.cseq != request.cseq.number:
            return NOTHING  # Repeated, or of a failure.
        self.unacked = None
        first = self.state is State.ACCEPTED
        effects = self.trigger(Event.ACK, (request, unacked))
        if first and unacked.made_offer and not request.body:
            # No media is possible: the answer is missing, and cannot come later (RFC 3261 13.2.1).
            return (*effects, *self.trigger(Event.HANGUP, (_UNANSWERED_OFFER, 488)))
        return effects

    def _confirm(self, about: tuple[Request, UnackedAnswer]) -> Sequence[Effect]:
        self.state = State.CONFIRMED
        confirmed = Confirmed(about[0].body)
        return (
            *WAIT_NO_MORE,
            *self.refresh.start(self),
            confirmed,
            *self.offers.send_next(self),
        )

    def _confirm_again(self, about: tuple[Request, UnackedAnswer]) -> Sequence[Effect]:
        """Handle the ACK of a re-INVITE; it holds the answer if the 2xx held the offer."""
        ack, unacked = about
        answered = (OfferAnswered(ack.body),) if unacked.made_offer else NOTHING
        return (*WAIT_NO_MORE, *answered, *self.offers.send_next(self))

    # ACKs of ours.

    def ack_of_reinvite(self, number: int) -> SendAck:
        """Build the ACK of a re-INVITE, or return the one that was sent."""
        if self.sent_ack is not None and self.sent_ack[0] == number:
            return self.sent_ack[1]
        assert self.dialog is not None
        ack = self.dialog.request("ACK", cseq=number, headers=self._ack_credentials(number))
        return SendAck(ack, self.dialog.next_hop())

    def _ack_credentials(self, number: int) -> Sequence[tuple[str, str]]:
        """Return the header fields that the ACK of our re-INVITE repeats (RFC 3261 22.1)."""
        return ()

    def _acknowledge_only(self, response: Response) -> Sequence[Effect]:
        """Send the ACK of a 2xx to our re-INVITE that arrives after the session has begun to end."""
        if response.cseq.method != "INVITE" or not 200 <= response.status < 300:
            return NOTHING
        return (self.ack_of_reinvite(response.cseq.number),)

    # Actions of the tables.

    def _offer_timer(self, _: None) -> Sequence[Effect]:
        return self.offers.on_timer(self)

    def _refuse_for_owner(self, _: None) -> Sequence[Effect]:
        """Refuse the peer's offer with 500, because the owner did not answer it in time."""
        return (*self.offers.reject(500), *self.offers.send_next(self))

    def _refresh_due(self, _: None) -> Sequence[Effect]:
        return self.refresh.fall_due(self)

    def _drop_unanswered(self) -> Sequence[Effect]:
        """
        Send the final response to each request of the peer that the owner has not answered.

        Source: RFC 3261 15.1.2.
        """
        refused = NOTHING if self.offers.peer is None else self.offers.reject(487)
        return refused if self._referrals is None else (*refused, *self._referrals.drop(self))

    def _bye(self, reason: str | None) -> StartRequest:
        self._bye_reason = reason
        headers = (("Reason", reason), *self.bye_headers) if reason else self.bye_headers
        return self.start_request("BYE", Purpose.BYE, headers=headers)

    def _accept_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        request, transaction = about
        ended = Ended("remote", "bye", reason_value(request.headers), request.headers)
        return (Respond(transaction, reply(request, 200)), *self._drop_unanswered(), ended, Done())

    def _accept_crossing_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        return (Respond(about[1], reply(about[0], 200)),)

    def _accept_last_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        return (Respond(about[1], reply(about[0], 200)), Done())

    def _leave(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        ended = Ended("local", "bye", about[0])
        return (*self._drop_unanswered(), self._bye(about[0]), ended)

    def _leave_unacked(self, _: None) -> Sequence[Effect]:
        bye = self._bye('SIP;cause=408;text="ACK missing"')
        return (*self._drop_unanswered(), bye, Ended("local", "ack_timeout"))

    def _leave_gone(self, _: None) -> Sequence[Effect]:
        # RFC 3261 12.2.1.2: send a BYE even after 408 or 481.
        return (*self._drop_unanswered(), self._bye(GONE_REASON), Ended("remote", "timeout"))

    def _expire(self, _: None) -> Sequence[Effect]:
        """End a session without a refresh in time: the peer ends it as well (RFC 4028 10)."""
        ended = Ended("local", "session_expired", EXPIRED_REASON)
        return (*self._drop_unanswered(), self._bye(EXPIRED_REASON), ended)

    def _end(self, _: object) -> Sequence[Effect]:
        return (Done(),)


_S, _E, _I = State, Event, InviteSession

CONFIRMED_RULES: Rules[State, Event] = {
    (_S.CONFIRMED, _E.HANGUP): (_S.ENDING, _I._leave),
    (_S.CONFIRMED, _E.BYE): (_S.ENDED, _I._accept_bye),
    (_S.CONFIRMED, _E.ACK): (_S.CONFIRMED, _I._confirm_again),
    (_S.CONFIRMED, _E.DIALOG_GONE): (_S.ENDING, _I._leave_gone),
    (_S.CONFIRMED, _E.TIMER_REPEAT): (_S.CONFIRMED, _I._repeat_answer),
    (_S.CONFIRMED, _E.TIMER_ACK): (_S.ENDING, _I._leave_unacked),
    (_S.CONFIRMED, _E.TIMER_OFFER): (_S.CONFIRMED, _I._offer_timer),
    (_S.CONFIRMED, _E.TIMER_OWNER): (_S.CONFIRMED, _I._refuse_for_owner),
    (_S.CONFIRMED, _E.TIMER_REFRESH): (_S.CONFIRMED, _I._refresh_due),
    (_S.CONFIRMED, _E.TIMER_EXPIRY): (_S.ENDING, _I._expire),
    (_S.ENDING, _E.BYE): (_S.ENDING, _I._accept_crossing_bye),
    (_S.ENDING, _E.BYE_DONE): (_S.ENDED, _I._end),
}
"""Rules of an answered session, the same on both sides."""
