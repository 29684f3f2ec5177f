"""
Outbound session: from a sent INVITE to the ACK of its answer (RFC 3261 13.2).

The INVITE is sent again for a challenge, a Min-SE or another target. Its forks are in `sip.session.forking`.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from sip.auth.digest import Authenticator, credentials_of
from sip.effects import (
    Arm,
    CancelInvite,
    CancelStep,
    Disarm,
    Done,
    Effect,
    Failure,
    Purpose,
    SendAck,
    StartRequest,
)
from sip.events import Answered, Ended, Failed
from sip.machine import NOTHING, Rules, compile_rules
from sip.message.fields import CSeq
from sip.message.message import Headers, Request, Response
from sip.message.responses import ACCEPT, ALLOW, supported_fields
from sip.session.dialog import Dialog
from sip.session.forking import MAX_FORKS, Forks
from sip.session.invite import CONFIRMED_RULES, InviteSession
from sip.session.model import Event, OutboundInvite, SessionSettings, State
from sip.session.prack import OPTION_TAG
from sip.session.redirects import Redirection, Redirector

_CHALLENGEABLE = (Purpose.BYE, Purpose.REINVITE, Purpose.PRACK, Purpose.UPDATE, Purpose.REFRESH)
_PLAIN = (Purpose.INFO, Purpose.REFER, Purpose.NOTIFY)
"""Requests within the dialog that no other part of the session stores."""
MAX_PLAIN = 16
"""Limit of stored plain requests, by CSeq: digits follow each other faster than their responses."""
_FIRST_CSEQ = CSeq(1, "INVITE")
_SUPPORTED = supported_fields()
_SUPPORTED_UNRELIABLY = supported_fields(OPTION_TAG)
_RESPONDED = (Disarm(Event.TIMER_SILENCE),)
"""Effects of the first response."""
_RUNG = (Disarm(Event.TIMER_SILENCE), Disarm(Event.TIMER_RINGING))
"""Effects of the end of ringing."""
_BUILT_AGAIN = frozenset(
    ("via", "max-forwards", "from", "to", "call-id", "cseq", "route", "contact", "content-type")
    + ("authorization", "proxy-authorization", "content-length")
)


class OutboundInviteSession(InviteSession):
    """
    Session of an outbound INVITE.

    `request` is the INVITE as last sent. `_responded` is True once a provisional response came.
    """

    def __init__(self, invite: OutboundInvite, call_id: str, contact: str, settings: SessionSettings) -> None:
        super().__init__(call_id, settings.token(), settings, caller=True)
        self._invite = invite
        if invite.credentials is not None:
            self._authenticator = Authenticator(invite.credentials, settings.token)
        if invite.session_expires_s is not None:
            self.refresh.want(invite.session_expires_s)
        self.request = self._first_invite(contact, self.refresh.request_fields(self))
        self.offers.local_sdp = invite.body
        self._cseq = 1
        self._responded = False
        self._cancelled = False
        self._forks = Forks()
        self._plain: dict[int, Request] = {}
        self._reinvite: Request | None = None
        self._late_answers: dict[str, SendAck] | None = None
        redirects = invite.redirects
        self._redirector = None if redirects is None else Redirector(redirects, invite.uri)

    def start(self) -> Sequence[Effect]:
        """Return the first effects: send the INVITE, arm the timers of the first response and of ringing."""
        send = StartRequest(self.request, Purpose.INVITE, None)
        return (send, *self.await_response(), Arm(Event.TIMER_RINGING, self.settings.max_ringing_s))

    # The INVITE, and requests that are challenged.

    def _first_invite(self, contact: str, timer_fields: Sequence[tuple[str, str]]) -> Request:
        invite = self._invite
        from_ = invite.from_.with_tag(self.local_tag)
        headers = Headers.from_entries(
            [
                ("max-forwards", "Max-Forwards", str(invite.max_forwards)),
                ("from", "From", str(from_)),
                ("to", "To", str(invite.to)),
                ("call-id", "Call-ID", self.call_id),
                ("cseq", "CSeq", "1 INVITE"),
                ("contact", "Contact", contact),
                ("allow", "Allow", ALLOW),
                ("user-agent", "User-Agent", self.settings.product),
            ]
        )
        headers.from_, headers.call_id, headers.cseq = from_, self.call_id, _FIRST_CSEQ
        headers.extend(_SUPPORTED if invite.rel100 != "off" else _SUPPORTED_UNRELIABLY)
        headers.extend(timer_fields)
        if invite.rel100 == "required":
            headers.add("Require", OPTION_TAG)
        if invite.body:
            headers.add("Content-Type", ACCEPT)
        headers.add_custom(invite.headers)
        return Request("INVITE", invite.uri, headers, invite.body)

    def _learn(self, response: Response) -> bool:
        return self._authenticator is not None and self._authenticator.learn(response)

    def _next_target(self, response: Response | None) -> Redirection | None:
        """Return the next target after a final response, or after none at all; None when none is left."""
        redirector = self._redirector
        if redirector is None or self.state > State.EARLY:
            return None
        if response is not None:
            redirector.learn(response)
            if response.status >= 600:
                return None  # A 6xx ends the search for targets (RFC 3261 16.7).
        return redirector.next()

    def _redirect(self, target: Redirection) -> Sequence[Effect]:
        """
        Send the INVITE to the target of a redirection, with the same Call-ID and From tag.

        Source: RFC 3261 8.1.3.4.
        """
        invite = self._invite
        invite.uri, invite.destination = target.uri, target.destination
        return self._invite_again(None)

    def await_response(self) -> Sequence[Effect]:
        """Arm the timer of the first response from the current target."""
        if self.state > State.EARLY:
            return NOTHING
        self._responded = False
        return (Arm(Event.TIMER_SILENCE, self.settings.first_response_timeout_s),)

    def _invite_again(self, _: Response | None) -> Sequence[Effect]:
        old = self.request
        headers = old.headers.copy()
        for name in ("Via", "Authorization", "Proxy-Authorization", "Session-Expires", "Min-SE"):
            headers.remove(name)
        headers.extend(self.refresh.request_fields(self))
        self._cseq += 1
        headers.set("CSeq", f"{self._cseq} INVITE")
        uri = self._invite.uri
        headers.extend(self.credentials("INVITE", uri, old.body))
        self.request = Request("INVITE", uri, headers, old.body)
        send = StartRequest(self.request, Purpose.INVITE, None)
        return (*self._forks.drop_all(self), send, *self.await_response())

    def _answer_challenge(self, purpose: Purpose, response: Response) -> Sequence[Effect]:
        """Send a request within the dialog again, with credentials; no effects when a retry is pointless."""
        plain = self._plain.pop(response.cseq.number, None)
        if plain is None and purpose not in _CHALLENGEABLE:
            return NOTHING
        # A request sent before another one was challenged only lacks the credentials of that challenge.
        auth = self._authenticator
        behind = plain is not None and auth is not None and auth.ready and not credentials_of(plain)
        if not behind and not self._learn(response):
            return NOTHING
        if plain is not None:
            return self._start_again(plain, purpose)
        if purpose is Purpose.BYE:
            return (self._bye(self._bye_reason),)
        if purpose is Purpose.PRACK:
            fork = self._forks.get(response.to.tag)
            return NOTHING if fork is None else (self._forks.prack(self, fork, fork.answer),)
        if purpose is Purpose.REFRESH:
            return self.refresh.send_again(self)
        if not self.offers.is_awaited(response):
            return NOTHING
        self.offers.revert()
        return self.offers.send_next(self)

    def start_request(self, method: str, purpose: Purpose, **parts: Any) -> StartRequest:
        """Build a request; plain requests and the re-INVITE are stored for a retry and for the ACK."""
        effect = super().start_request(method, purpose, **parts)
        if purpose in _PLAIN:
            while len(self._plain) >= MAX_PLAIN:
                del self._plain[next(iter(self._plain))]
            self._plain[effect.request.cseq.number] = effect.request
        elif purpose is Purpose.REINVITE and self._authenticator is not None:
            self._reinvite = effect.request
        return effect

    def _ack_credentials(self, number: int) -> Sequence[tuple[str, str]]:
        request = self._reinvite
        return () if request is None or request.cseq.number != number else credentials_of(request)

    def _start_again(self, request: Request, purpose: Purpose) -> Sequence[Effect]:
        dialog = self.request_dialog() or self.dialog
        if dialog is None:
            return NOTHING  # Sent within an early dialog that has ended.
        fields = [(name, value) for key, name, value in request.headers.entries if key not in _BUILT_AGAIN]
        content_type = request.headers.get("Content-Type")
        body = request.body
        send = self.start_request(
            request.method, purpose, headers=fields, body=body, content_type=content_type, within=dialog
        )
        return (send,)

    # Responses.

    def receive_response(self, purpose: Purpose, response: Response) -> Sequence[Effect]:
        """Handle a response to a request of this session."""
        status = response.status
        if 200 <= status < 300 and self._authenticator is not None:
            self._authenticator.accepted()
        if purpose is not Purpose.INVITE:
            again = self._answer_challenge(purpose, response) if status in (401, 407) else None
            if again:
                return again
            if purpose is Purpose.PRACK:
                self._forks.receive_prack_response(response)
                return NOTHING
            return super().receive_response(purpose, response)
        if status < 200:
            return self.trigger(Event.PROVISIONAL, response)
        if status < 300:
            return self.trigger(Event.LATE_OFFER if self._brings_offer(response) else Event.SUCCESS, response)
        if status in (401, 407) and self.state <= State.EARLY and self._learn(response):
            return self.trigger(Event.CHALLENGE, response)
        if self.state <= State.EARLY and self.refresh.receive_422(response):
            return self.trigger(Event.CHALLENGE, response)
        target = self._next_target(response)
        if target is not None:
            return self.trigger(Event.REDIRECT, target)
        return self.trigger(Event.FAILURE, response)

    def fail_request(self, purpose: Purpose, failure: Failure) -> Sequence[Effect]:
        """Handle the failure of a request of this session: it got no final response."""
        if purpose is Purpose.INVITE:
            target = self._next_target(None)
            if target is not None:
                return self.trigger(Event.REDIRECT, target)
            return self.trigger(Event.INVITE_FAILED, failure)
        if purpose is Purpose.PRACK:
            self._forks.fail_pracks()
        return super().fail_request(purpose, failure)

    # The early dialogs.

    def is_with(self, tag: str | None) -> bool:
        """Return True when a peer's tag belongs to a confirmed or early dialog of this session."""
        return super().is_with(tag) or (tag is not None and self._forks.get(tag) is not None)

    def request_dialog(self, *, offering: bool = False) -> Dialog | None:
        """Return the dialog of our requests: while ringing that of the fork that responded last."""
        latest = self._forks.latest
        if self.state is State.EARLY and latest is not None:
            return latest.dialog if latest.settled or not offering else None
        return super().request_dialog(offering=offering)

    def is_settled(self, dialog: Dialog) -> bool:
        """Return True when the first offer has its final answer while it still rings (RFC 3311 5.1)."""
        fork = self._forks.get(dialog.remote_tag) if self.state is State.EARLY else None
        return fork is not None and fork.settled

    def _dialog_of(self, request: Request) -> Dialog | None:
        if self.dialog is not None:
            return super()._dialog_of(request)
        fork = self._forks.get(request.from_.tag)
        return None if fork is None else fork.dialog

    def reject_offer(self, status: int = 488, warning: str | None = None) -> Sequence[Effect]:
        """Refuse the peer's offer; refusing an offer in a provisional response cancels the call."""
        if self.offers.peer is None and self._forks.owing is not None:
            return (Disarm(Event.TIMER_LATE_ANSWER), *self.trigger(Event.TIMER_LATE_ANSWER))
        return super().reject_offer(status, warning)

    def _progress(self, response: Response) -> Sequence[Effect]:
        first: Sequence[Effect] = NOTHING if self._responded else _RESPONDED
        self._responded = True
        return (*first, *self._forks.receive_provisional(self, response)) if response.status > 100 else first

    def _answer_early_offer(self, body: bytes) -> Sequence[Effect]:
        return self._forks.answer_offer(self, body)

    def _accept_fork_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        return self._forks.receive_bye(self, *about)

    # Responses to the INVITE.

    def _brings_offer(self, response: Response) -> bool:
        """Return True when a 2xx holds the offer that our INVITE lacked."""
        if self.request.body:
            return False
        fork = self._forks.get(response.to.tag)
        return fork is None or not fork.settled

    def _fail(self, response: Response) -> Sequence[Effect]:
        failed = Failed(
            response.status, response.reason, response.headers, "response", response.retry_after_s
        )
        return (*self._drop_unanswered(), failed, Done())

    def _fail_unanswered(self, failure: Failure) -> Sequence[Effect]:
        status, reason = _NO_RESPONSE[failure]
        return (*self._drop_unanswered(), Failed(status, reason, None, failure.value), Done())

    def _answered(self, response: Response) -> Sequence[Effect]:
        body, dropped = self._establish(response)
        ack = self._make_ack(b"")
        self.state = State.CONFIRMED
        answered = Answered(body, response.headers)
        timers = (*_RUNG, *self.refresh.receive_2xx(response))
        return (ack, *timers, *dropped, answered, *self.offers.send_next(self))

    def _offered(self, response: Response) -> Sequence[Effect]:
        body, dropped = self._establish(response)
        wait = (
            Arm(Event.TIMER_LATE_ANSWER, self.settings.owner_patience_s),
            *self.refresh.receive_2xx(response),
        )
        answered = Answered(body, response.headers, needs_answer=True)
        return (*_RUNG, *dropped, *wait, answered)

    def _answer_offer(self, body: bytes) -> Sequence[Effect]:
        ack = self._make_ack(body)
        self.offers.local_sdp = body
        self.state = State.CONFIRMED
        return (Disarm(Event.TIMER_LATE_ANSWER), ack, *self.offers.send_next(self))

    def _establish(self, response: Response) -> tuple[bytes, Sequence[Effect]]:
        """Confirm the dialog of a 2xx; return the description in force, and the effects of dropping forks."""
        fork = self._forks.get(response.to.tag)
        if fork is None:
            self.dialog, body = Dialog.from_response(self.request, response), response.body
        else:
            self.dialog, body = fork.confirm(response)
        return body, self._forks.drop_all(self, self.dialog)

    def _make_ack(self, body: bytes) -> SendAck:
        assert self.dialog is not None
        ack = self._ack_of(self.dialog, body)
        self.sent_ack = (self._cseq, ack)
        return ack

    def _ack_of(self, dialog: Dialog, body: bytes = b"") -> SendAck:
        request = dialog.request(
            "ACK",
            cseq=self._cseq,
            headers=credentials_of(self.request) if self._authenticator is not None else (),
            body=body,
            content_type=ACCEPT,
        )
        return SendAck(request, dialog.next_hop())

    def _answered_again(self, response: Response) -> Sequence[Effect]:
        """Send the ACK of a repeated 2xx again; send ACK and BYE to another fork (RFC 3261 13.2.2.4)."""
        dialog = self.dialog
        tag = response.to.tag
        if dialog is not None and dialog.remote_tag == tag:
            known = self.sent_ack
            return (known[1],) if known is not None and known[0] == response.cseq.number else NOTHING
        if self._late_answers is None:
            self._late_answers = {}
        ack = self._late_answers.get(tag or "")
        if ack is not None:
            return (ack,)
        if len(self._late_answers) >= MAX_FORKS:
            return NOTHING
        fork = Dialog.from_response(self.request, response)
        ack = self._late_answers[tag or ""] = self._ack_of(fork)
        bye = fork.request("BYE", headers=self.credentials("BYE", fork.remote_target, b""))
        return (ack, StartRequest(bye, Purpose.FORK_BYE, fork.next_hop()))

    # Cancelling.

    def _hangup_early(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        return self._cancel_invite(Failed(487, "Request Terminated", None, "cancelled"), about[0])

    def _hangup_silent(self, _: None) -> Sequence[Effect]:
        return self._cancel_invite(Failed(408, "Request Timeout", None, "timeout"))

    def _hangup_ringing(self, _: None) -> Sequence[Effect]:
        return self._cancel_invite(Failed(487, "Request Terminated", None, "timeout"))

    def _hangup_unanswerable(self, _: None) -> Sequence[Effect]:
        """Cancel when the offer of a ringing party is not accepted: send its PRACK first."""
        fork, self._forks.owing = self._forks.owing, None
        prack = () if fork is None else (self._forks.prack(self, fork),)
        return (*prack, *self._cancel_invite(Failed(488, "Not Acceptable Here", None, "cancelled")))

    def _cancel_invite(self, failed: Failed, reason: str | None = None) -> Sequence[Effect]:
        self._bye_reason = reason
        if self._responded:
            return (*self._cancel(), *_RUNG, *self._forks.drop_all(self), failed)
        # Without a provisional response a CANCEL might overtake its INVITE (RFC 3261 9.1).
        return (CancelInvite(CancelStep.ABANDON), *_RUNG, failed)

    def _cancel(self) -> Sequence[Effect]:
        self._cancelled = True
        timeout_s = self.settings.timers.timeout_s
        cancel = CancelInvite(CancelStep.CANCEL, reason=self._bye_reason)
        return (cancel, Arm(Event.TIMER_CANCEL, timeout_s))

    def _cancel_after_provisional(self, _: Response) -> Sequence[Effect]:
        return NOTHING if self._cancelled else self._cancel()

    def _answered_too_late(self, response: Response) -> Sequence[Effect]:
        """The answer crossed our CANCEL: acknowledge it and hang up (RFC 5407 3.1.2)."""
        _, dropped = self._establish(response)
        ack = self._make_ack(b"")
        return (ack, Disarm(Event.TIMER_CANCEL), *dropped, self._bye(self._bye_reason))

    def _give_up(self, _: None) -> Sequence[Effect]:
        return (CancelInvite(CancelStep.GIVE_UP), Done())

    def _leave_for_owner(self, _: None) -> Sequence[Effect]:
        ended = Ended("local", "timeout")
        return (self._make_ack(b""), *self._drop_unanswered(), self._bye(None), ended)

    def _leave_unanswered_offer(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        return (self._make_ack(b""), *self._leave(about))

    def _accept_bye_unacked(self, about: "tuple[Request, object]") -> Sequence[Effect]:
        return (self._make_ack(b""), *self._accept_bye(about))


_NO_RESPONSE = {
    Failure.TIMEOUT: (408, "Request Timeout"),
    Failure.TRANSPORT: (503, "Service Unavailable"),
    Failure.RESOLVE: (404, "Not Found"),
}


_S, _E, _O = State, Event, OutboundInviteSession

RULES: Rules[State, Event] = {
    **CONFIRMED_RULES,
    (_S.SETUP, _E.PROVISIONAL): (_S.EARLY, _O._progress),
    (_S.SETUP, _E.SUCCESS): (_S.CONFIRMED, _O._answered),
    (_S.SETUP, _E.LATE_OFFER): (_S.ACCEPTED, _O._offered),
    (_S.SETUP, _E.FAILURE): (_S.ENDED, _O._fail),
    (_S.SETUP, _E.CHALLENGE): (_S.SETUP, _O._invite_again),
    (_S.SETUP, _E.REDIRECT): (_S.SETUP, _O._redirect),
    (_S.SETUP, _E.INVITE_FAILED): (_S.ENDED, _O._fail_unanswered),
    (_S.SETUP, _E.HANGUP): (_S.CANCELLING, _O._hangup_early),
    (_S.SETUP, _E.TIMER_RINGING): (_S.CANCELLING, _O._hangup_ringing),
    (_S.EARLY, _E.PROVISIONAL): (_S.EARLY, _O._progress),
    (_S.EARLY, _E.SUCCESS): (_S.CONFIRMED, _O._answered),
    (_S.EARLY, _E.LATE_OFFER): (_S.ACCEPTED, _O._offered),
    (_S.EARLY, _E.FAILURE): (_S.ENDED, _O._fail),
    (_S.EARLY, _E.CHALLENGE): (_S.EARLY, _O._invite_again),
    (_S.EARLY, _E.REDIRECT): (_S.EARLY, _O._redirect),
    (_S.EARLY, _E.INVITE_FAILED): (_S.ENDED, _O._fail_unanswered),
    (_S.EARLY, _E.HANGUP): (_S.CANCELLING, _O._hangup_early),
    (_S.EARLY, _E.TIMER_RINGING): (_S.CANCELLING, _O._hangup_ringing),
    (_S.EARLY, _E.ANSWER): (_S.EARLY, _O._answer_early_offer),
    (_S.EARLY, _E.BYE): (_S.EARLY, _O._accept_fork_bye),
    (_S.EARLY, _E.TIMER_OFFER): (_S.EARLY, _O._offer_timer),
    (_S.EARLY, _E.TIMER_OWNER): (_S.EARLY, _O._refuse_for_owner),
    (_S.EARLY, _E.TIMER_LATE_ANSWER): (_S.CANCELLING, _O._hangup_unanswerable),
    (_S.SETUP, _E.TIMER_SILENCE): (_S.CANCELLING, _O._hangup_silent),
    (_S.EARLY, _E.TIMER_SILENCE): (_S.CANCELLING, _O._hangup_silent),
    (_S.CANCELLING, _E.BYE): (_S.CANCELLING, _O._accept_fork_bye),
    (_S.CANCELLING, _E.PROVISIONAL): (_S.CANCELLING, _O._cancel_after_provisional),
    (_S.CANCELLING, _E.SUCCESS): (_S.ENDING, _O._answered_too_late),
    (_S.CANCELLING, _E.LATE_OFFER): (_S.ENDING, _O._answered_too_late),
    (_S.CANCELLING, _E.FAILURE): (_S.ENDED, _O._end),
    (_S.CANCELLING, _E.INVITE_FAILED): (_S.ENDED, _O._end),
    (_S.CANCELLING, _E.TIMER_CANCEL): (_S.ENDED, _O._give_up),
    (_S.ACCEPTED, _E.ANSWER): (_S.CONFIRMED, _O._answer_offer),
    (_S.ACCEPTED, _E.HANGUP): (_S.ENDING, _O._leave_unanswered_offer),
    (_S.ACCEPTED, _E.TIMER_LATE_ANSWER): (_S.ENDING, _O._leave_for_owner),
    (_S.ACCEPTED, _E.TIMER_OWNER): (_S.ACCEPTED, _O._refuse_for_owner),
    (_S.ACCEPTED, _E.BYE): (_S.ENDED, _O._accept_bye_unacked),
    (_S.ACCEPTED, _E.TIMER_REFRESH): (_S.ACCEPTED, _O._refresh_due),
    (_S.ACCEPTED, _E.SUCCESS): (_S.ACCEPTED, _O._answered_again),
    (_S.ACCEPTED, _E.LATE_OFFER): (_S.ACCEPTED, _O._answered_again),
    (_S.CONFIRMED, _E.SUCCESS): (_S.CONFIRMED, _O._answered_again),
    (_S.CONFIRMED, _E.LATE_OFFER): (_S.CONFIRMED, _O._answered_again),
    (_S.ENDING, _E.SUCCESS): (_S.ENDING, _O._answered_again),
    (_S.ENDING, _E.LATE_OFFER): (_S.ENDING, _O._answered_again),
    (_S.ENDED, _E.SUCCESS): (_S.ENDED, _O._answered_again),
    (_S.ENDED, _E.LATE_OFFER): (_S.ENDED, _O._answered_again),
}

_BEFORE_ANSWER = (_S.SETUP, _S.EARLY, _S.CANCELLING)
_AFTER_ANSWER = (_S.ACCEPTED, _S.CONFIRMED, _S.ENDING)

IGNORED = {
    # Only the called side responds to an INVITE, gets a CANCEL, and may hang up before the ACK.
    *product(State, (_E.PROGRESS, _E.REJECT, _E.CANCEL)),
    *product((_S.BYE_PENDING_ACK,), Event),
    # Only the called side repeats provisional responses.
    *product(State, (_E.TIMER_PROVISIONAL, _E.TIMER_PRACK, _E.TIMER_STILL_RINGING)),
    # Before the answer there is no dialog that our requests could end.
    *product(_BEFORE_ANSWER, (_E.ACK, _E.BYE_DONE, _E.DIALOG_GONE, _E.TIMER_REPEAT, _E.TIMER_ACK)),
    # Before ringing and after a CANCEL there are no offers.
    *product((_S.SETUP, _S.CANCELLING), (_E.ANSWER, _E.TIMER_OFFER, _E.TIMER_OWNER, _E.TIMER_LATE_ANSWER)),
    (_S.SETUP, _E.BYE),
    # The session timer begins with the answer, and the owner's time limit is far below its interval.
    *product((*_BEFORE_ANSWER, _S.ENDING), (_E.TIMER_REFRESH, _E.TIMER_EXPIRY)),
    (_S.ACCEPTED, _E.TIMER_EXPIRY),
    *product((_S.CONFIRMED, _S.ENDING), (_E.TIMER_LATE_ANSWER,)),
    (_S.ENDING, _E.TIMER_OWNER),
    *product((_S.SETUP, _S.EARLY), (_E.TIMER_CANCEL,)),
    # Cancelled already.
    *product((_S.CANCELLING,), (_E.HANGUP, _E.CHALLENGE, _E.REDIRECT, _E.TIMER_SILENCE, _E.TIMER_RINGING)),
    # The answer ends ringing; other forks may still respond for a while.
    *product(_AFTER_ANSWER, (_E.PROVISIONAL, _E.FAILURE, _E.CHALLENGE, _E.REDIRECT, _E.INVITE_FAILED)),
    *product(_AFTER_ANSWER, (_E.TIMER_SILENCE, _E.TIMER_RINGING, _E.TIMER_CANCEL)),
    # No request is under way within the dialog before our ACK.
    *product((_S.ACCEPTED,), (_E.ACK, _E.BYE_DONE, _E.DIALOG_GONE)),
    *product((_S.ACCEPTED,), (_E.TIMER_REPEAT, _E.TIMER_ACK, _E.TIMER_OFFER)),
    *product((_S.CONFIRMED,), (_E.ANSWER, _E.BYE_DONE)),
    # Hung up already.
    *product((_S.ENDING,), (_E.ANSWER, _E.HANGUP, _E.ACK, _E.DIALOG_GONE)),
    *product((_S.ENDING,), (_E.TIMER_REPEAT, _E.TIMER_ACK, _E.TIMER_OFFER)),
    *product((_S.ENDED,), set(Event) - {_E.SUCCESS, _E.LATE_OFFER}),
}

OutboundInviteSession.ROWS = compile_rules(RULES)
