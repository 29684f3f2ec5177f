"""Inbound session: from a received INVITE to the ACK of its answer (RFC 3261 13.3)."""

from collections.abc import Sequence
from typing import Any

from sip.effects import Arm, Done, Effect, Notify, Respond
from sip.events import Cancelled, Ended
from sip.machine import Rules, compile_rules
from sip.message.message import Request
from sip.message.reason_header import reason_value
from sip.message.responses import reply
from sip.session.inbound_early import InboundEarlySession, Reply
from sip.session.model import Event, SessionSettings, State

__all__ = ["IGNORED", "RULES", "InboundInviteSession", "Reply"]


class InboundInviteSession(InboundEarlySession):
    """
    Session of an INVITE from a peer.

    Raises:
        ParseError: On construction, when the INVITE cannot make a dialog (no usable Contact).
    """

    __slots__ = ("_leaving_reason",)

    def __init__(self, request: Request, local_tag: str, contact: str, settings: SessionSettings) -> None:
        super().__init__(request, local_tag, contact, settings)
        self._leaving_reason: str | None = None

    def start(self, transaction: Any) -> Sequence[Effect]:
        """Start in this server transaction; the ringing timer limits an INVITE that nobody answers."""
        self._transaction = transaction
        limit_s, expires_s = self.settings.max_ringing_s, self._expires_s
        return (Arm(Event.TIMER_RINGING, limit_s if expires_s is None else min(limit_s, expires_s)),)

    @property
    def _expires_s(self) -> float | None:
        """
        Expires of the INVITE in seconds; None when absent, malformed or 0.

        Source: RFC 3261 13.3.1, 20.19.
        """
        value = self.request.headers.first("expires") or ""
        readable = value.isascii() and value.isdecimal() and len(value) < 10
        return float(value) or None if readable else None

    # Commands of the owner.

    def reject(self, answer: Reply) -> Sequence[Effect]:
        """Send a non-2xx final response."""
        return self.handle(Event.REJECT, answer)

    def receive_cancel(self, transaction: Any, reason: str | None) -> Sequence[Effect]:
        """Handle a CANCEL of the INVITE or of a re-INVITE."""
        if transaction is self._transaction:
            return self.handle(Event.CANCEL, reason)
        return super().receive_cancel(transaction, reason)

    # Actions of the table.

    def _accept(self, answer: Reply) -> Sequence[Effect]:
        if self._settled:
            answer = answer._replace(body=b"")  # A second description would be a new offer to some peers.
        elif answer.body:
            self.offers.ours = answer.body
        response = self._respond(answer)
        wait = self._await_ack(self.request, self._transaction, response)
        return (*self._stop_reliable(), Respond(self._transaction, response), *wait)

    def _reject(self, answer: Reply) -> Sequence[Effect]:
        ended = Notify(Ended("local", "rejected"))
        return (Respond(self._transaction, self._respond(answer)), *self._drop_unanswered(), ended, Done())

    def _hangup(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        reason, status = about
        return self._reject(Reply(status, headers=(("Reason", reason),) if reason else ()))

    def _tire(self, _: None) -> Sequence[Effect]:
        expires_s = self._expires_s
        expired = expires_s is not None and expires_s <= self.settings.max_ringing_s
        response = Respond(self._transaction, self._respond(Reply(487 if expired else 480)))
        return (response, *self._drop_unanswered(), Notify(Ended("local", "timeout")), Done())

    def _cancel(self, reason: str | None) -> Sequence[Effect]:
        response = Respond(self._transaction, self._respond(Reply(487)))
        return (response, *self._drop_unanswered(), Notify(Cancelled(reason)), Done())

    def _early_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        request, transaction = about
        ok = Respond(transaction, reply(request, 200))
        return (ok, *self._cancel(reason_value(request.headers)))

    def _leave_later(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        self._leaving_reason = about[0]
        return (
            *self._drop_unanswered(),
            Notify(Ended("local", "bye", about[0])),
        )

    def _leave_now(self, _: object) -> Sequence[Effect]:
        return (*self._stop_waiting(), self._bye(self._leaving_reason))


_S, _E, _I = State, Event, InboundInviteSession

RULES: Rules[State, Event] = {
    (_S.SETUP, _E.PROGRESS): (_S.EARLY, _I._ring),
    (_S.SETUP, _E.ANSWER): (_S.ACCEPTED, _I._accept),
    (_S.SETUP, _E.REJECT): (_S.ENDED, _I._reject),
    (_S.SETUP, _E.HANGUP): (_S.ENDED, _I._hangup),
    (_S.SETUP, _E.CANCEL): (_S.ENDED, _I._cancel),
    (_S.SETUP, _E.BYE): (_S.ENDED, _I._early_bye),
    (_S.SETUP, _E.TIMER_RINGING): (_S.ENDED, _I._tire),
    (_S.EARLY, _E.PROGRESS): (_S.EARLY, _I._ring),
    (_S.EARLY, _E.ANSWER): (_S.ACCEPTED, _I._accept),
    (_S.EARLY, _E.REJECT): (_S.ENDED, _I._reject),
    (_S.EARLY, _E.HANGUP): (_S.ENDED, _I._hangup),
    (_S.EARLY, _E.CANCEL): (_S.ENDED, _I._cancel),
    (_S.EARLY, _E.BYE): (_S.ENDED, _I._early_bye),
    (_S.EARLY, _E.TIMER_RINGING): (_S.ENDED, _I._tire),
    (_S.EARLY, _E.TIMER_STILL_RINGING): (_S.EARLY, _I._ring_on),
    (_S.EARLY, _E.TIMER_PROVISIONAL): (_S.EARLY, _I._repeat_progress),
    (_S.EARLY, _E.TIMER_PRACK): (_S.ENDED, _I._refuse_unacknowledged),
    (_S.EARLY, _E.TIMER_OFFER): (_S.EARLY, _I._offer_timer),
    (_S.EARLY, _E.TIMER_OWNER): (_S.EARLY, _I._refuse_for_owner),
    (_S.ACCEPTED, _E.ACK): (_S.CONFIRMED, _I._confirm),
    (_S.ACCEPTED, _E.BYE): (_S.ENDED, _I._obey_bye),
    (_S.ACCEPTED, _E.HANGUP): (_S.LEAVING, _I._leave_later),
    (_S.ACCEPTED, _E.TIMER_REPEAT): (_S.ACCEPTED, _I._repeat_answer),
    (_S.ACCEPTED, _E.TIMER_OWNER): (_S.ACCEPTED, _I._refuse_for_owner),
    (_S.ACCEPTED, _E.TIMER_ACK): (_S.ENDING, _I._leave_unacked),
    (_S.CONFIRMED, _E.HANGUP): (_S.ENDING, _I._leave),
    (_S.CONFIRMED, _E.BYE): (_S.ENDED, _I._obey_bye),
    (_S.CONFIRMED, _E.ACK): (_S.CONFIRMED, _I._confirm_again),
    (_S.CONFIRMED, _E.DIALOG_GONE): (_S.ENDING, _I._leave_gone),
    (_S.CONFIRMED, _E.TIMER_REPEAT): (_S.CONFIRMED, _I._repeat_answer),
    (_S.CONFIRMED, _E.TIMER_ACK): (_S.ENDING, _I._leave_unacked),
    (_S.CONFIRMED, _E.TIMER_OFFER): (_S.CONFIRMED, _I._offer_timer),
    (_S.CONFIRMED, _E.TIMER_OWNER): (_S.CONFIRMED, _I._refuse_for_owner),
    (_S.CONFIRMED, _E.TIMER_REFRESH): (_S.CONFIRMED, _I._refresh_due),
    (_S.CONFIRMED, _E.TIMER_EXPIRY): (_S.ENDING, _I._expire),
    (_S.LEAVING, _E.ACK): (_S.ENDING, _I._leave_now),
    (_S.LEAVING, _E.BYE): (_S.ENDED, _I._obey_last_bye),
    (_S.LEAVING, _E.TIMER_REPEAT): (_S.LEAVING, _I._repeat_answer),
    (_S.LEAVING, _E.TIMER_ACK): (_S.ENDING, _I._leave_now),
    (_S.ENDING, _E.BYE): (_S.ENDING, _I._obey_crossing_bye),
    (_S.ENDING, _E.BYE_DONE): (_S.ENDED, _I._end),
}

_NEVER_INBOUND = {
    _E.PROVISIONAL,
    _E.SUCCESS,
    _E.LATE_OFFER,
    _E.FAILURE,
    _E.CHALLENGE,
    _E.REDIRECT,
    _E.INVITE_FAILED,
    _E.TIMER_SILENCE,
    _E.TIMER_CANCEL,
    _E.TIMER_LATE_ANSWER,
}

IGNORED = (
    # Only the calling side sends an INVITE and cancels it.
    {(state, event) for state in State for event in _NEVER_INBOUND}
    | {(_S.CANCELLING, event) for event in Event}
    # Before the answer there is no ACK and no repeated 2xx; in SETUP only the ringing timer runs.
    | {
        (state, event)
        for state in (_S.SETUP, _S.EARLY)
        for event in (_E.ACK, _E.BYE_DONE, _E.DIALOG_GONE, _E.TIMER_REPEAT, _E.TIMER_ACK)
    }
    | {
        (_S.SETUP, event)
        for event in (
            _E.TIMER_OFFER,
            _E.TIMER_PROVISIONAL,
            _E.TIMER_PRACK,
            _E.TIMER_OWNER,
            _E.TIMER_STILL_RINGING,
        )
    }
    # The final response ends the provisional ones.
    | {
        (state, event)
        for state in (_S.ACCEPTED, _S.CONFIRMED, _S.LEAVING, _S.ENDING)
        for event in (_E.TIMER_PROVISIONAL, _E.TIMER_PRACK, _E.TIMER_STILL_RINGING)
    }
    | {(state, _E.TIMER_OWNER) for state in (_S.LEAVING, _S.ENDING)}
    # The session timer begins with the ACK.
    | {
        (state, event)
        for state in (_S.SETUP, _S.EARLY, _S.ACCEPTED, _S.LEAVING, _S.ENDING)
        for event in (_E.TIMER_REFRESH, _E.TIMER_EXPIRY)
    }
    # Commands that lost a race with the peer, and a CANCEL that lost it with the answer.
    | {
        (state, event)
        for state in (_S.ACCEPTED, _S.CONFIRMED, _S.LEAVING, _S.ENDING)
        for event in (_E.PROGRESS, _E.ANSWER, _E.REJECT, _E.CANCEL, _E.TIMER_RINGING)
    }
    # No request of ours is under way before the ACK.
    | {(_S.ACCEPTED, event) for event in (_E.BYE_DONE, _E.DIALOG_GONE, _E.TIMER_OFFER)}
    | {(_S.CONFIRMED, _E.BYE_DONE)}
    # Hung up already.
    | {(_S.LEAVING, event) for event in (_E.HANGUP, _E.BYE_DONE, _E.DIALOG_GONE, _E.TIMER_OFFER)}
    | {
        (_S.ENDING, event)
        for event in (
            _E.HANGUP,
            _E.ACK,
            _E.DIALOG_GONE,
            _E.TIMER_REPEAT,
            _E.TIMER_ACK,
            _E.TIMER_OFFER,
        )
    }
    | {(_S.ENDED, event) for event in Event}
)

InboundInviteSession.ROWS = compile_rules(RULES, State, Event)
