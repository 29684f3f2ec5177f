"""
Inbound session: from a received INVITE to the ACK of its answer (RFC 3261 13.3).

Provisional responses may be reliable, with PRACK and UPDATE before the answer (RFC 3262, 3311).
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from sip.effects import Arm, Disarm, Done, Effect, Respond
from sip.events import Cancelled, Ended, OfferAnswered
from sip.machine import NOTHING, Rules, compile_rules
from sip.message.grammar import parse_number
from sip.message.message import Headers, Request, Response, reply
from sip.message.reason_header import reason_value
from sip.message.reasons import reason_phrase
from sip.message.responses import ACCEPT, ALLOW, supported_fields
from sip.session.dialog import Dialog
from sip.session.invite import CONFIRMED_RULES, WAIT_NO_MORE, InviteSession
from sip.session.model import Event, SessionSettings, State
from sip.session.prack import OPTION_TAG, ReliableResponses, parse_rack

STILL_RINGING_S = 60.0
"""Repetition interval of a provisional response: a proxy cancels after 3 minutes (RFC 3261 13.3.1.1)."""

STILL_RINGING_RELIABLY_S = 150.0
"""Repetition interval of a reliable provisional response (RFC 3262 3)."""

_REPEATED = frozenset(("via", "from", "call-id", "cseq"))
_REPEATED_IN_DIALOG = _REPEATED | {"record-route"}
_SUPPORTED = [("supported", name, value) for name, value in supported_fields()]
_ACKNOWLEDGED = (Disarm(Event.TIMER_PROVISIONAL), Disarm(Event.TIMER_PRACK))
"""Effects of the PRACK of a reliable response."""


class Reply(NamedTuple):
    """
    Response of the owner to the INVITE.

    `reliable` applies to provisional responses: None sends those with a session description reliably where
    the peer supports 100rel. A peer that requires 100rel gets all of them reliably.
    """

    status: int
    reason: str | None = None
    body: bytes = b""
    headers: Sequence[tuple[str, str]] = ()
    reliable: bool | None = None


class InboundInviteSession(InviteSession):
    """
    Session of an INVITE from a peer.

    `_settled`: the offer of the INVITE was answered by a reliable response that has its PRACK, or a PRACK
    answered our offer. `_described`: a reliable response holds our session description. `_held`: the 2xx of
    the owner, waiting for a PRACK. `_rang`: the owner's latest provisional response.

    Raises:
        ParseError: On construction, when the INVITE cannot make a dialog (no usable Contact).
    """

    def __init__(self, request: Request, local_tag: str, contact: str, settings: SessionSettings) -> None:
        super().__init__(request.call_id, local_tag, settings, caller=False)
        self.dialog = Dialog.from_request(request, local_tag, contact)
        self.request = request
        self._transaction: Any = None
        self._reliable: ReliableResponses | None = None
        self._held: Reply | None = None
        self._rang: Reply | None = None
        self._described = False
        self._settled = False

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
        value = self.request.headers.first("expires")
        expires_s = None if value is None else parse_number(value)
        return float(expires_s) if expires_s else None

    # Commands of the owner.

    def want_timer(self, interval_s: int) -> None:
        """
        Request a session timer in our 2xx, refreshed by us, if the caller supports timers but requests none.

        Source: RFC 4028 9.
        """
        if not self.refresh.active and "timer" in self.request.option_tags("Supported"):
            self.refresh.want(interval_s)

    def progress(self, answer: Reply) -> Sequence[Effect]:
        """Send a provisional response, and repeat it until the next response."""
        return self.trigger(Event.PROGRESS, answer)

    def answer(self, answer: Reply) -> Sequence[Effect]:
        """Send the 2xx, after any outstanding PRACK, and repeat it until its ACK comes."""
        if self.state is State.EARLY and self._must_hold():
            self._held = answer
            return NOTHING
        return self.trigger(Event.ANSWER, answer)

    def accept_offer(self, body: bytes) -> Sequence[Effect]:
        """Answer the peer's offer; the offer of the INVITE itself is answered by `answer`."""
        return NOTHING if self.offers.peer is None else super().accept_offer(body)

    def reject(self, answer: Reply) -> Sequence[Effect]:
        """Send a non-2xx final response."""
        return self.trigger(Event.REJECT, answer)

    def receive_cancel(self, transaction: Any, reason: str | None) -> Sequence[Effect]:
        """Handle a CANCEL of the INVITE or of a re-INVITE."""
        if transaction is self._transaction:
            return self.trigger(Event.CANCEL, reason)
        return super().receive_cancel(transaction, reason)

    # Requests in the early dialog.

    def request_dialog(self, *, offering: bool = False) -> Dialog | None:
        """Return the dialog of our requests, None without one; `offering` needs an answered first offer."""
        if self.state is State.EARLY and (self._settled or not offering):
            return self.dialog
        return super().request_dialog(offering=offering)

    def is_settled(self, dialog: Dialog) -> bool:
        """Return True when the first offer has its final answer while it still rings (RFC 3311 5.1)."""
        return self._settled

    # Provisional responses.

    def _respond(self, answer: Reply) -> Response:
        assert self.dialog is not None
        status = answer.status
        repeated = _REPEATED if status >= 300 else _REPEATED_IN_DIALOG
        headers = Headers()
        headers.copy_keys(self.request.headers, repeated)
        response, entries = Response(status, answer.reason or reason_phrase(status), headers), headers.entries
        entries.append(("to", "To", self.dialog.local))
        if status < 300:
            entries.append(("contact", "Contact", self.dialog.local_contact))
            entries.append(("allow", "Allow", ALLOW))
        if 200 <= status < 300:
            entries += _SUPPORTED
            headers.extend(self.refresh.receive_request(self, self.request))
        entries.append(("server", "Server", self.settings.product))
        headers.add_custom(answer.headers)
        if answer.body:
            if headers.first("content-type") is None:
                entries.append(("content-type", "Content-Type", ACCEPT))
            response.body = answer.body
        return response

    def _ring(self, answer: Reply) -> Sequence[Effect]:
        if self._held is not None:
            return NOTHING
        reliable = self._is_reliable(answer)
        # An offer has one answer, and our offer must be sent reliably (RFC 3262 5, RFC 6337 3.1).
        if answer.body and (self._described or not (reliable or self.request.body)):
            answer = answer._replace(body=b"")
        self._rang = answer
        response = self._respond(answer)
        again = Arm(Event.TIMER_STILL_RINGING, STILL_RINGING_RELIABLY_S if reliable else STILL_RINGING_S)
        if not reliable:
            return (Respond(self._transaction, response), again)
        if answer.body:
            self._described = True
            self.offers.local_sdp = answer.body
        if self._reliable is None:
            first = int(self.settings.random_between(1.0, 2.0**31 - 1))
            self._reliable = ReliableResponses(first, self.request.cseq.number, self.settings.timers)
        return (*self._send_reliably(self._reliable.submit(response)), again)

    def _ring_on(self, _: None) -> Sequence[Effect]:
        return NOTHING if self._rang is None else self._ring(self._rang)

    def _is_reliable(self, answer: Reply) -> bool:
        headers = self.request.headers
        if headers.first("require") is not None and OPTION_TAG in self.request.option_tags("Require"):
            return True
        wanted = bool(answer.body) if answer.reliable is None else answer.reliable
        return wanted and OPTION_TAG in self.request.option_tags("Supported")

    def _send_reliably(self, response: Response | None) -> Sequence[Effect]:
        reliable = self._reliable
        if response is None or reliable is None:
            return NOTHING
        again = Arm(Event.TIMER_PROVISIONAL, reliable.repetition.delay_s)
        return (Respond(self._transaction, response), again)

    def _repeat_progress(self, _: None) -> Sequence[Effect]:
        reliable = self._reliable
        if reliable is None or reliable.current is None:
            return NOTHING
        delay_s, last = reliable.repetition.next()
        timer = Arm(Event.TIMER_PRACK if last else Event.TIMER_PROVISIONAL, delay_s)
        return (Respond(self._transaction, reliable.current), timer)

    def _refuse_unacknowledged(self, _: None) -> Sequence[Effect]:
        """Reject the INVITE because no PRACK came: the caller would not get a 2xx either (RFC 3262 3)."""
        response = Respond(self._transaction, self._respond(Reply(504)))
        return (response, *self._drop_unanswered(), Ended("local", "timeout"), Done())

    def _stop_reliable(self) -> Sequence[Effect]:
        if self._reliable is None:
            return NOTHING
        self._reliable.stop()
        return _ACKNOWLEDGED

    # PRACK.

    def _receive_prack(self, request: Request, transaction: Any) -> Sequence[Effect]:
        rack = parse_rack(request)
        if rack is None:
            return (Respond(transaction, reply(request, 400, "Missing or malformed RAck")),)
        acknowledged = None if self._reliable is None else self._reliable.acknowledge(rack)
        if acknowledged is None:
            return (Respond(transaction, reply(request, 481)),)
        return (*_ACKNOWLEDGED, *self._settle(acknowledged, request, transaction), *self._release())

    def _settle(self, response: Response, prack: Request, transaction: Any) -> Sequence[Effect]:
        """Handle the offer or answer in a PRACK (RFC 3262 5)."""
        ok = Respond(transaction, reply(prack, 200, headers=supported_fields()))
        if self.state >= State.BYE_PENDING_ACK:
            return (ok,)
        if response.body and not self.request.body:
            self._settled = bool(prack.body)
            return (ok, OfferAnswered(prack.body)) if prack.body else (ok,)
        self._settled = self._settled or bool(response.body)
        if not prack.body:
            return (ok,)
        if not self._settled:
            return (Respond(transaction, self.offers.busy(self, prack)),)
        assert self.dialog is not None
        return self.offers.ask_owner(self, prack, transaction, self.dialog)

    def _must_hold(self) -> bool:
        return self._reliable is not None and self._reliable.holds_answer

    def _release(self) -> Sequence[Effect]:
        """Send what has waited for a PRACK: the 2xx, or the next provisional response and our offer."""
        if self._reliable is None or self.state is not State.EARLY:
            return NOTHING
        held = self._held
        if held is not None and not self._must_hold():
            self._held = None
            return self.trigger(Event.ANSWER, held)
        return (*self._send_reliably(self._reliable.next()), *self.offers.send_next(self))

    # Actions of the table.

    def _accept(self, answer: Reply) -> Sequence[Effect]:
        if self._settled:
            answer = answer._replace(body=b"")  # A second description would be a new offer to some peers.
        elif answer.body:
            self.offers.local_sdp = answer.body
        response = self._respond(answer)
        wait = self.await_ack(self.request, self._transaction, response)
        return (*self._stop_reliable(), Respond(self._transaction, response), *wait)

    def _reject(self, answer: Reply) -> Sequence[Effect]:
        ended = Ended("local", "rejected")
        return (Respond(self._transaction, self._respond(answer)), *self._drop_unanswered(), ended, Done())

    def _hangup(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        reason, status = about
        return self._reject(Reply(status, headers=(("Reason", reason),) if reason else ()))

    def _ringing_timeout(self, _: None) -> Sequence[Effect]:
        expires_s = self._expires_s
        expired = expires_s is not None and expires_s <= self.settings.max_ringing_s
        response = Respond(self._transaction, self._respond(Reply(487 if expired else 480)))
        return (response, *self._drop_unanswered(), Ended("local", "timeout"), Done())

    def _cancel(self, reason: str | None) -> Sequence[Effect]:
        response = Respond(self._transaction, self._respond(Reply(487)))
        return (response, *self._drop_unanswered(), Cancelled(reason), Done())

    def _early_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        request, transaction = about
        ok = Respond(transaction, reply(request, 200))
        return (ok, *self._cancel(reason_value(request.headers)))

    def _leave_later(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        self._bye_reason = about[0]
        return (
            *self._drop_unanswered(),
            Ended("local", "bye", about[0]),
        )

    def _leave_now(self, _: object) -> Sequence[Effect]:
        return (*WAIT_NO_MORE, self._bye(self._bye_reason))


_S, _E, _I = State, Event, InboundInviteSession

RULES: Rules[State, Event] = {
    **CONFIRMED_RULES,
    (_S.SETUP, _E.PROGRESS): (_S.EARLY, _I._ring),
    (_S.SETUP, _E.ANSWER): (_S.ACCEPTED, _I._accept),
    (_S.SETUP, _E.REJECT): (_S.ENDED, _I._reject),
    (_S.SETUP, _E.HANGUP): (_S.ENDED, _I._hangup),
    (_S.SETUP, _E.CANCEL): (_S.ENDED, _I._cancel),
    (_S.SETUP, _E.BYE): (_S.ENDED, _I._early_bye),
    (_S.SETUP, _E.TIMER_RINGING): (_S.ENDED, _I._ringing_timeout),
    (_S.EARLY, _E.PROGRESS): (_S.EARLY, _I._ring),
    (_S.EARLY, _E.ANSWER): (_S.ACCEPTED, _I._accept),
    (_S.EARLY, _E.REJECT): (_S.ENDED, _I._reject),
    (_S.EARLY, _E.HANGUP): (_S.ENDED, _I._hangup),
    (_S.EARLY, _E.CANCEL): (_S.ENDED, _I._cancel),
    (_S.EARLY, _E.BYE): (_S.ENDED, _I._early_bye),
    (_S.EARLY, _E.TIMER_RINGING): (_S.ENDED, _I._ringing_timeout),
    (_S.EARLY, _E.TIMER_STILL_RINGING): (_S.EARLY, _I._ring_on),
    (_S.EARLY, _E.TIMER_PROVISIONAL): (_S.EARLY, _I._repeat_progress),
    (_S.EARLY, _E.TIMER_PRACK): (_S.ENDED, _I._refuse_unacknowledged),
    (_S.EARLY, _E.TIMER_OFFER): (_S.EARLY, _I._offer_timer),
    (_S.EARLY, _E.TIMER_OWNER): (_S.EARLY, _I._refuse_for_owner),
    (_S.ACCEPTED, _E.ACK): (_S.CONFIRMED, _I._confirm),
    (_S.ACCEPTED, _E.BYE): (_S.ENDED, _I._accept_bye),
    (_S.ACCEPTED, _E.HANGUP): (_S.BYE_PENDING_ACK, _I._leave_later),
    (_S.ACCEPTED, _E.TIMER_REPEAT): (_S.ACCEPTED, _I._repeat_answer),
    (_S.ACCEPTED, _E.TIMER_OWNER): (_S.ACCEPTED, _I._refuse_for_owner),
    (_S.ACCEPTED, _E.TIMER_ACK): (_S.ENDING, _I._leave_unacked),
    (_S.BYE_PENDING_ACK, _E.ACK): (_S.ENDING, _I._leave_now),
    (_S.BYE_PENDING_ACK, _E.BYE): (_S.ENDED, _I._accept_last_bye),
    (_S.BYE_PENDING_ACK, _E.TIMER_REPEAT): (_S.BYE_PENDING_ACK, _I._repeat_answer),
    (_S.BYE_PENDING_ACK, _E.TIMER_ACK): (_S.ENDING, _I._leave_now),
}

_OF_THE_CALLER = (
    *(_E.PROVISIONAL, _E.SUCCESS, _E.LATE_OFFER, _E.FAILURE, _E.CHALLENGE, _E.REDIRECT, _E.INVITE_FAILED),
    *(_E.TIMER_SILENCE, _E.TIMER_CANCEL, _E.TIMER_LATE_ANSWER),
)
_OF_PROVISIONALS = (_E.TIMER_PROVISIONAL, _E.TIMER_PRACK, _E.TIMER_STILL_RINGING)
_AFTER_ANSWER = (_S.ACCEPTED, _S.CONFIRMED, _S.BYE_PENDING_ACK, _S.ENDING)

IGNORED = {
    # Only the calling side sends an INVITE and cancels it.
    *product(State, _OF_THE_CALLER),
    *product((_S.CANCELLING,), Event),
    # Before the answer there is no ACK and no repeated 2xx; in SETUP only the ringing timer runs.
    *product((_S.SETUP, _S.EARLY), (_E.ACK, _E.BYE_DONE, _E.DIALOG_GONE, _E.TIMER_REPEAT, _E.TIMER_ACK)),
    *product((_S.SETUP,), (*_OF_PROVISIONALS, _E.TIMER_OFFER, _E.TIMER_OWNER)),
    # The final response ends the provisional ones.
    *product(_AFTER_ANSWER, _OF_PROVISIONALS),
    *product((_S.BYE_PENDING_ACK, _S.ENDING), (_E.TIMER_OWNER,)),
    # The session timer begins with the ACK.
    *product(set(State) - {_S.CONFIRMED}, (_E.TIMER_REFRESH, _E.TIMER_EXPIRY)),
    # Commands that lost a race with the peer, and a CANCEL that lost it with the answer.
    *product(_AFTER_ANSWER, (_E.PROGRESS, _E.ANSWER, _E.REJECT, _E.CANCEL, _E.TIMER_RINGING)),
    # No request of ours is under way before the ACK.
    *product((_S.ACCEPTED,), (_E.BYE_DONE, _E.DIALOG_GONE, _E.TIMER_OFFER)),
    (_S.CONFIRMED, _E.BYE_DONE),
    # Hung up already.
    *product((_S.BYE_PENDING_ACK,), (_E.HANGUP, _E.BYE_DONE, _E.DIALOG_GONE, _E.TIMER_OFFER)),
    *product((_S.ENDING,), (_E.HANGUP, _E.ACK, _E.DIALOG_GONE)),
    *product((_S.ENDING,), (_E.TIMER_REPEAT, _E.TIMER_ACK, _E.TIMER_OFFER)),
    *product((_S.ENDED,), Event),
}

InboundInviteSession.ROWS = compile_rules(RULES)
