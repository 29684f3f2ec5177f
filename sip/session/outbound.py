"""Outbound session: from a sent INVITE to the ACK of its answer (RFC 3261 13.2)."""

from collections.abc import Sequence

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
    SendAck,
    StartRequest,
)
from sip.events import Answered, Ended, Failed
from sip.machine import NOTHING, Rules, compile_rules
from sip.message.message import Request, Response
from sip.message.responses import ACCEPT
from sip.session.dialog import Dialog
from sip.session.model import Event, SessionSettings, State
from sip.session.outbound_early import MAX_FORKS
from sip.session.outbound_invite import OutboundInvite
from sip.session.outbound_request import OutboundRequestSession, credentials_of

__all__ = ["IGNORED", "RULES", "OutboundInviteSession"]


class OutboundInviteSession(OutboundRequestSession):
    """Session of an outbound INVITE."""

    __slots__ = ("_late_answers", "_taken_back")

    def __init__(self, invite: OutboundInvite, call_id: str, contact: str, settings: SessionSettings) -> None:
        super().__init__(invite, call_id, contact, settings)
        self._taken_back = False
        self._late_answers: dict[str, SendAck] | None = None

    def start(self) -> Sequence[Effect]:
        """Return the first effects: send the INVITE, arm the timers of the first response and of ringing."""
        settings, ringing_s = self.settings, self._invite.no_answer_timeout_s
        return (
            StartRequest(self._request, Purpose.INVITE, None),
            *self.await_response(),
            Arm(Event.TIMER_RINGING, settings.max_ringing_s if ringing_s is None else ringing_s),
        )

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
                return self._receive_pracked(response)
            return super().receive_response(purpose, response)
        if status < 200:
            return self.handle(Event.PROVISIONAL, response)
        if status < 300:
            return self.handle(Event.LATE_OFFER if self._brings_offer(response) else Event.SUCCESS, response)
        if status in (401, 407) and self.state <= State.EARLY and self._learn(response):
            return self.handle(Event.CHALLENGE, response)
        if self.state <= State.EARLY and self._learn_minimum(response):
            return self.handle(Event.CHALLENGE, response)
        target = self._next_target(response)
        if target is not None:
            return self.handle(Event.REDIRECT, target)
        return self.handle(Event.FAILURE, response)

    def fail_request(self, purpose: Purpose, failure: Failure) -> Sequence[Effect]:
        """Handle the failure of a request of this session: it got no final response."""
        if purpose is Purpose.INVITE:
            target = self._next_target(None)
            if target is not None:
                return self.handle(Event.REDIRECT, target)
            return self.handle(Event.INVITE_FAILED, failure)
        if purpose is Purpose.PRACK:
            self._fail_pracks()
        return super().fail_request(purpose, failure)

    # Responses to the INVITE.

    def _brings_offer(self, response: Response) -> bool:
        """Return True when a 2xx holds the offer that our INVITE lacked."""
        if self._request.body:
            return False
        fork = self._forks.get(response.to.tag or "") if self._forks else None
        return fork is None or not fork.settled

    def _fail(self, response: Response) -> Sequence[Effect]:
        failed = Failed(
            response.status, response.reason, response.headers, "response", response.retry_after_s
        )
        return (*self._drop_unanswered(), Notify(failed), Done())

    def _fail_unheard(self, failure: Failure) -> Sequence[Effect]:
        status, reason = _UNHEARD[failure]
        return (*self._drop_unanswered(), Notify(Failed(status, reason, None, failure.value)), Done())

    def _answered(self, response: Response) -> Sequence[Effect]:
        body, dropped = self._establish(response)
        ack = self._make_ack(b"")
        self.state = State.CONFIRMED
        answered = Notify(Answered(body, response.headers))
        timers = (*self._quiet(), *self._heed_answer(response))
        return (ack, *timers, *dropped, answered, *self._offer_if_free())

    def _offered(self, response: Response) -> Sequence[Effect]:
        body, dropped = self._establish(response)
        wait = (Arm(Event.TIMER_LATE_ANSWER, self.settings.owner_patience_s), *self._heed_answer(response))
        answered = Notify(Answered(body, response.headers, needs_answer=True))
        return (*self._quiet(), *dropped, *wait, answered)

    def _answer_offer(self, body: bytes) -> Sequence[Effect]:
        ack = self._make_ack(body)
        self.offers.ours = body
        self.state = State.CONFIRMED
        return (Disarm(Event.TIMER_LATE_ANSWER), ack, *self._offer_if_free())

    def _quiet(self) -> Sequence[Effect]:
        return (Disarm(Event.TIMER_SILENCE), Disarm(Event.TIMER_RINGING))

    def _establish(self, response: Response) -> tuple[bytes, Sequence[Effect]]:
        """Confirm the dialog of a 2xx; return the description in force, and the effects of dropping forks."""
        fork = self._forks.get(response.to.tag or "") if self._forks else None
        if fork is None:
            self.dialog, body = Dialog.from_response(self._request, response), response.body
        else:
            self.dialog, body = fork.confirm(response)
        if self._forks is None:
            return body, NOTHING
        self._forks = self._latest = self._owing = None
        return body, (Disarm(Event.TIMER_LATE_ANSWER), *self._drop_offers(self.dialog))

    def _make_ack(self, body: bytes) -> SendAck:
        assert self.dialog is not None
        ack = self._ack_of(self.dialog, body)
        self._ack = (self._cseq, ack)
        return ack

    def _ack_of(self, dialog: Dialog, body: bytes = b"") -> SendAck:
        request = dialog.request(
            "ACK",
            cseq=self._cseq,
            headers=credentials_of(self._request) if self._authenticator is not None else (),
            body=body,
            content_type=ACCEPT,
        )
        return SendAck(request, dialog.next_hop())

    def _answered_again(self, response: Response) -> Sequence[Effect]:
        """Send the ACK of a repeated 2xx again; send ACK and BYE to another fork (RFC 3261 13.2.2.4)."""
        dialog = self.dialog
        tag = response.to.tag
        if dialog is not None and dialog.remote_tag == tag:
            known = self._ack
            return (known[1],) if known is not None and known[0] == response.cseq.number else NOTHING
        if self._late_answers is None:
            self._late_answers = {}
        ack = self._late_answers.get(tag or "")
        if ack is not None:
            return (ack,)
        if len(self._late_answers) >= MAX_FORKS:
            return NOTHING
        fork = Dialog.from_response(self._request, response)
        ack = self._late_answers[tag or ""] = self._ack_of(fork)
        bye = fork.request("BYE", headers=self._credentials("BYE", fork.remote_target, b""))
        return (ack, StartRequest(bye, Purpose.FORK_BYE, fork.next_hop()))

    # Cancelling.

    def _hangup_early(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        return self._take_back(Failed(487, "Request Terminated", None, "cancelled"), about[0])

    def _hangup_silent(self, _: None) -> Sequence[Effect]:
        return self._take_back(Failed(408, "Request Timeout", None, "timeout"))

    def _hangup_ringing(self, _: None) -> Sequence[Effect]:
        return self._take_back(Failed(487, "Request Terminated", None, "timeout"))

    def _hangup_unanswerable(self, _: None) -> Sequence[Effect]:
        """Cancel when the offer of a ringing party is not accepted: send its PRACK first."""
        fork, self._owing = self._owing, None
        prack = () if fork is None else (self._prack(fork),)
        return (*prack, *self._take_back(Failed(488, "Not Acceptable Here", None, "cancelled")))

    def _take_back(self, failed: Failed, reason: str | None = None) -> Sequence[Effect]:
        self._bye_reason = reason
        if self._heard:
            return (*self._cancel(), *self._quiet(), *self._forget_forks(), Notify(failed))
        # Without a provisional response a CANCEL might overtake its INVITE (RFC 3261 9.1).
        return (CancelInvite(CancelStep.ABANDON), *self._quiet(), Notify(failed))

    def _cancel(self) -> Sequence[Effect]:
        self._taken_back = True
        timeout_s = self.settings.timers.timeout_s
        cancel = CancelInvite(CancelStep.CANCEL, reason=self._bye_reason)
        return (cancel, Arm(Event.TIMER_CANCEL, timeout_s))

    def _cancel_when_heard(self, _: Response) -> Sequence[Effect]:
        return NOTHING if self._taken_back else self._cancel()

    def _answered_too_late(self, response: Response) -> Sequence[Effect]:
        """The answer crossed our CANCEL: acknowledge it and hang up (RFC 5407 3.1.2)."""
        _, dropped = self._establish(response)
        ack = self._make_ack(b"")
        return (ack, Disarm(Event.TIMER_CANCEL), *dropped, self._bye(self._bye_reason))

    def _give_up(self, _: None) -> Sequence[Effect]:
        return (CancelInvite(CancelStep.GIVE_UP), Done())

    def _leave_for_owner(self, _: None) -> Sequence[Effect]:
        ended = Notify(Ended("local", "timeout"))
        return (self._make_ack(b""), *self._drop_unanswered(), self._bye(None), ended)

    def _leave_unanswered_offer(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        return (self._make_ack(b""), *self._leave(about))

    def _obey_bye_unacked(self, about: "tuple[Request, object]") -> Sequence[Effect]:
        return (self._make_ack(b""), *self._obey_bye(about))


_UNHEARD = {
    Failure.TIMEOUT: (408, "Request Timeout"),
    Failure.TRANSPORT: (503, "Service Unavailable"),
    Failure.RESOLVE: (404, "Not Found"),
}


_S, _E, _O = State, Event, OutboundInviteSession

RULES: Rules[State, Event] = {
    (_S.SETUP, _E.PROVISIONAL): (_S.EARLY, _O._progress),
    (_S.SETUP, _E.SUCCESS): (_S.CONFIRMED, _O._answered),
    (_S.SETUP, _E.LATE_OFFER): (_S.ACCEPTED, _O._offered),
    (_S.SETUP, _E.FAILURE): (_S.ENDED, _O._fail),
    (_S.SETUP, _E.CHALLENGE): (_S.SETUP, _O._invite_again),
    (_S.SETUP, _E.REDIRECT): (_S.SETUP, _O._redirect),
    (_S.SETUP, _E.INVITE_FAILED): (_S.ENDED, _O._fail_unheard),
    (_S.SETUP, _E.HANGUP): (_S.CANCELLING, _O._hangup_early),
    (_S.SETUP, _E.TIMER_RINGING): (_S.CANCELLING, _O._hangup_ringing),
    (_S.EARLY, _E.PROVISIONAL): (_S.EARLY, _O._progress),
    (_S.EARLY, _E.SUCCESS): (_S.CONFIRMED, _O._answered),
    (_S.EARLY, _E.LATE_OFFER): (_S.ACCEPTED, _O._offered),
    (_S.EARLY, _E.FAILURE): (_S.ENDED, _O._fail),
    (_S.EARLY, _E.CHALLENGE): (_S.EARLY, _O._invite_again),
    (_S.EARLY, _E.REDIRECT): (_S.EARLY, _O._redirect),
    (_S.EARLY, _E.INVITE_FAILED): (_S.ENDED, _O._fail_unheard),
    (_S.EARLY, _E.HANGUP): (_S.CANCELLING, _O._hangup_early),
    (_S.EARLY, _E.TIMER_RINGING): (_S.CANCELLING, _O._hangup_ringing),
    (_S.EARLY, _E.ANSWER): (_S.EARLY, _O._answer_early_offer),
    (_S.EARLY, _E.BYE): (_S.EARLY, _O._obey_fork_bye),
    (_S.EARLY, _E.TIMER_OFFER): (_S.EARLY, _O._offer_timer),
    (_S.EARLY, _E.TIMER_OWNER): (_S.EARLY, _O._refuse_for_owner),
    (_S.EARLY, _E.TIMER_LATE_ANSWER): (_S.CANCELLING, _O._hangup_unanswerable),
    (_S.SETUP, _E.TIMER_SILENCE): (_S.CANCELLING, _O._hangup_silent),
    (_S.EARLY, _E.TIMER_SILENCE): (_S.CANCELLING, _O._hangup_silent),
    (_S.CANCELLING, _E.BYE): (_S.CANCELLING, _O._obey_fork_bye),
    (_S.CANCELLING, _E.PROVISIONAL): (_S.CANCELLING, _O._cancel_when_heard),
    (_S.CANCELLING, _E.SUCCESS): (_S.ENDING, _O._answered_too_late),
    (_S.CANCELLING, _E.LATE_OFFER): (_S.ENDING, _O._answered_too_late),
    (_S.CANCELLING, _E.FAILURE): (_S.ENDED, _O._end),
    (_S.CANCELLING, _E.INVITE_FAILED): (_S.ENDED, _O._end),
    (_S.CANCELLING, _E.TIMER_CANCEL): (_S.ENDED, _O._give_up),
    (_S.ACCEPTED, _E.ANSWER): (_S.CONFIRMED, _O._answer_offer),
    (_S.ACCEPTED, _E.HANGUP): (_S.ENDING, _O._leave_unanswered_offer),
    (_S.ACCEPTED, _E.TIMER_LATE_ANSWER): (_S.ENDING, _O._leave_for_owner),
    (_S.ACCEPTED, _E.TIMER_OWNER): (_S.ACCEPTED, _O._refuse_for_owner),
    (_S.ACCEPTED, _E.BYE): (_S.ENDED, _O._obey_bye_unacked),
    (_S.CONFIRMED, _E.HANGUP): (_S.ENDING, _O._leave),
    (_S.CONFIRMED, _E.BYE): (_S.ENDED, _O._obey_bye),
    (_S.CONFIRMED, _E.ACK): (_S.CONFIRMED, _O._confirm_again),
    (_S.CONFIRMED, _E.DIALOG_GONE): (_S.ENDING, _O._leave_gone),
    (_S.CONFIRMED, _E.TIMER_REPEAT): (_S.CONFIRMED, _O._repeat_answer),
    (_S.CONFIRMED, _E.TIMER_ACK): (_S.ENDING, _O._leave_unacked),
    (_S.CONFIRMED, _E.TIMER_OFFER): (_S.CONFIRMED, _O._offer_timer),
    (_S.CONFIRMED, _E.TIMER_OWNER): (_S.CONFIRMED, _O._refuse_for_owner),
    (_S.ACCEPTED, _E.TIMER_REFRESH): (_S.ACCEPTED, _O._refresh_due),
    (_S.CONFIRMED, _E.TIMER_REFRESH): (_S.CONFIRMED, _O._refresh_due),
    (_S.CONFIRMED, _E.TIMER_EXPIRY): (_S.ENDING, _O._expire),
    (_S.ENDING, _E.BYE): (_S.ENDING, _O._obey_crossing_bye),
    (_S.ENDING, _E.BYE_DONE): (_S.ENDED, _O._end),
    (_S.ACCEPTED, _E.SUCCESS): (_S.ACCEPTED, _O._answered_again),
    (_S.ACCEPTED, _E.LATE_OFFER): (_S.ACCEPTED, _O._answered_again),
    (_S.CONFIRMED, _E.SUCCESS): (_S.CONFIRMED, _O._answered_again),
    (_S.CONFIRMED, _E.LATE_OFFER): (_S.CONFIRMED, _O._answered_again),
    (_S.ENDING, _E.SUCCESS): (_S.ENDING, _O._answered_again),
    (_S.ENDING, _E.LATE_OFFER): (_S.ENDING, _O._answered_again),
    (_S.ENDED, _E.SUCCESS): (_S.ENDED, _O._answered_again),
    (_S.ENDED, _E.LATE_OFFER): (_S.ENDED, _O._answered_again),
}

_AFTER_ANSWER = (_S.ACCEPTED, _S.CONFIRMED, _S.ENDING)

IGNORED = (
    # Only the called side responds to an INVITE, gets a CANCEL, and may hang up before the ACK.
    {(state, event) for state in State for event in (_E.PROGRESS, _E.REJECT, _E.CANCEL)}
    | {(_S.LEAVING, event) for event in Event}
    # Only the called side repeats provisional responses.
    | {
        (state, event)
        for state in State
        for event in (_E.TIMER_PROVISIONAL, _E.TIMER_PRACK, _E.TIMER_STILL_RINGING)
    }
    # Before the answer there is no dialog that our requests could end.
    | {
        (state, event)
        for state in (_S.SETUP, _S.EARLY, _S.CANCELLING)
        for event in (_E.ACK, _E.BYE_DONE, _E.DIALOG_GONE, _E.TIMER_REPEAT, _E.TIMER_ACK)
    }
    # Before ringing and after a CANCEL there are no offers.
    | {
        (state, event)
        for state in (_S.SETUP, _S.CANCELLING)
        for event in (_E.ANSWER, _E.TIMER_OFFER, _E.TIMER_OWNER, _E.TIMER_LATE_ANSWER)
    }
    | {(_S.SETUP, _E.BYE)}
    # The session timer begins with the answer, and the owner's time limit is far below its interval.
    | {
        (state, event)
        for state in (_S.SETUP, _S.EARLY, _S.CANCELLING, _S.ENDING)
        for event in (_E.TIMER_REFRESH, _E.TIMER_EXPIRY)
    }
    | {(_S.ACCEPTED, _E.TIMER_EXPIRY)}
    | {(state, _E.TIMER_LATE_ANSWER) for state in (_S.CONFIRMED, _S.ENDING)}
    | {(_S.ENDING, _E.TIMER_OWNER)}
    | {(state, _E.TIMER_CANCEL) for state in (_S.SETUP, _S.EARLY)}
    # Cancelled already.
    | {
        (_S.CANCELLING, event)
        for event in (_E.HANGUP, _E.CHALLENGE, _E.REDIRECT, _E.TIMER_SILENCE, _E.TIMER_RINGING)
    }
    # The answer ends ringing; other forks may still respond for a while.
    | {
        (state, event)
        for state in _AFTER_ANSWER
        for event in (
            _E.PROVISIONAL,
            _E.FAILURE,
            _E.CHALLENGE,
            _E.REDIRECT,
            _E.INVITE_FAILED,
            _E.TIMER_SILENCE,
            _E.TIMER_RINGING,
            _E.TIMER_CANCEL,
        )
    }
    # No request is under way within the dialog before our ACK.
    | {
        (_S.ACCEPTED, event)
        for event in (
            _E.ACK,
            _E.BYE_DONE,
            _E.DIALOG_GONE,
            _E.TIMER_REPEAT,
            _E.TIMER_ACK,
            _E.TIMER_OFFER,
        )
    }
    | {(_S.CONFIRMED, event) for event in (_E.ANSWER, _E.BYE_DONE)}
    # Hung up already.
    | {
        (_S.ENDING, event)
        for event in (
            _E.ANSWER,
            _E.HANGUP,
            _E.ACK,
            _E.DIALOG_GONE,
            _E.TIMER_REPEAT,
            _E.TIMER_ACK,
            _E.TIMER_OFFER,
        )
    }
    | {(_S.ENDED, event) for event in Event if event not in (_E.SUCCESS, _E.LATE_OFFER)}
)

OutboundInviteSession.ROWS = compile_rules(RULES, State, Event)
