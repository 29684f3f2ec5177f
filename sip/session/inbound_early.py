"""Inbound session while ringing: provisional responses, reliable ones and their PRACK (RFC 3262, 3311)."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sip.effects import Arm, Disarm, Done, Effect, Notify, Respond
from sip.events import Ended, OfferAnswered
from sip.machine import NOTHING
from sip.message.headers import Headers
from sip.message.message import Request, Response
from sip.message.reasons import reason_phrase
from sip.message.responses import ACCEPT, ALLOW, add_fields, reply, supported_fields
from sip.session.dialog import Dialog
from sip.session.invite import InviteSession
from sip.session.model import Event, SessionSettings, State
from sip.session.prack import OPTION_TAG, ReliableResponses, parse_rack
from sip.session.session_timer import SessionTimer

__all__ = ["InboundEarlySession", "Reply"]

STILL_RINGING_S = 60.0
"""Repetition interval of a provisional response: a proxy cancels after 3 minutes (RFC 3261 13.3.1.1)."""

STILL_RINGING_RELIABLY_S = 150.0
"""Repetition interval of a reliable provisional response (RFC 3262 3)."""

_REPEATED = frozenset(("via", "from", "call-id", "cseq"))
_REPEATED_IN_DIALOG = _REPEATED | {"record-route"}
_SUPPORTED = [("supported", name, value) for name, value in supported_fields()]


class Reply(NamedTuple):
    """
    Response of the owner to the INVITE.

    `reliable` applies to provisional responses: None sends those with a session description reliably where
    the peer supports 100rel. A peer that requires 100rel gets all of them reliably.
    """

    status: int
    reason: str | None = None
    body: bytes = b""
    headers: Iterable[tuple[str, str]] = ()
    reliable: bool | None = None


class InboundEarlySession(InviteSession):
    """
    Inbound session before its answer.

    `_settled`: the offer of the INVITE was answered by a reliable response that has its PRACK, or a PRACK
    answered our offer. `_described`: a reliable response holds our session description. `_held`: the 2xx of
    the owner, waiting for a PRACK. `_rang`: the owner's latest provisional response.
    """

    __slots__ = ("_described", "_held", "_rang", "_reliable", "_settled", "_transaction", "request")

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

    # Commands of the owner.

    def want_timer(self, interval_s: int) -> None:
        """
        Request a session timer in our 2xx, refreshed by us, if the caller supports timers but requests none.

        Source: RFC 4028 9.
        """
        if self.timer is None and "timer" in self.request.option_tags("Supported"):
            self.timer = SessionTimer(interval_s, self.settings.min_se_s)

    def progress(self, answer: Reply) -> Sequence[Effect]:
        """Send a provisional response, and repeat it until the next response."""
        return self.handle(Event.PROGRESS, answer._replace(headers=tuple(answer.headers)))

    def answer(self, answer: Reply) -> Sequence[Effect]:
        """Send the 2xx, after any outstanding PRACK, and repeat it until its ACK comes."""
        if self.state is State.EARLY and self._must_hold():
            self._held = answer
            return NOTHING
        return self.handle(Event.ANSWER, answer)

    def accept_offer(self, body: bytes) -> Sequence[Effect]:
        """Answer the peer's offer; the offer of the INVITE itself is answered by `answer`."""
        if self.offers.peer is None:
            return NOTHING
        return super().accept_offer(body)

    # Requests in the early dialog.

    def _talking(self, *, offering: bool = False) -> Dialog | None:
        if self.state is State.EARLY and (self._settled or not offering):
            return self.dialog
        return super()._talking(offering=offering)

    def _settled_in(self, dialog: Dialog) -> bool:
        return self._settled

    # Provisional responses.

    def _respond(self, answer: Reply) -> Response:
        assert self.dialog is not None
        status = answer.status
        response = Response(status, answer.reason or reason_phrase(status), Headers())
        headers = response.headers
        headers.copy_keys(self.request.headers, _REPEATED if status >= 300 else _REPEATED_IN_DIALOG)
        entries = headers.entries()
        entries.append(("to", "To", self.dialog.local))
        if status < 300:
            entries.append(("contact", "Contact", self.dialog.local_contact))
            entries.append(("allow", "Allow", ALLOW))
        if 200 <= status < 300:
            entries += _SUPPORTED
            for name, value in self._heed_request(self.request):
                headers.add(name, value)
        entries.append(("server", "Server", self.settings.product))
        add_fields(headers, answer.headers)
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
            self.offers.ours = answer.body
        if self._reliable is None:
            first = int(self.settings.pick(1.0, 2.0**31 - 1))
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
        again = Arm(Event.TIMER_PROVISIONAL, reliable.repeat_after_s)
        return (Respond(self._transaction, response), again)

    def _repeat_progress(self, _: None) -> Sequence[Effect]:
        reliable = self._reliable
        if reliable is None or reliable.current is None:
            return NOTHING
        delay_s, last = reliable.next_wait()
        timer = Arm(Event.TIMER_PRACK if last else Event.TIMER_PROVISIONAL, delay_s)
        return (Respond(self._transaction, reliable.current), timer)

    def _refuse_unacknowledged(self, _: None) -> Sequence[Effect]:
        """Reject the INVITE because no PRACK came: the caller would not get a 2xx either (RFC 3262 3)."""
        response = Respond(self._transaction, self._respond(Reply(504)))
        return (response, *self._drop_unanswered(), Notify(Ended("local", "timeout")), Done())

    def _stop_reliable(self) -> Sequence[Effect]:
        if self._reliable is None:
            return NOTHING
        self._reliable.stop()
        return (Disarm(Event.TIMER_PROVISIONAL), Disarm(Event.TIMER_PRACK))

    # PRACK.

    def _receive_prack(self, request: Request, transaction: Any) -> Sequence[Effect]:
        rack = parse_rack(request)
        if rack is None:
            return (Respond(transaction, reply(request, 400, "Missing or malformed RAck")),)
        acknowledged = None if self._reliable is None else self._reliable.acknowledge(rack)
        if acknowledged is None:
            return (Respond(transaction, reply(request, 481)),)
        quiet = (Disarm(Event.TIMER_PROVISIONAL), Disarm(Event.TIMER_PRACK))
        return (*quiet, *self._settle(acknowledged, request, transaction), *self._release())

    def _settle(self, response: Response, prack: Request, transaction: Any) -> Sequence[Effect]:
        """Handle the offer or answer in a PRACK (RFC 3262 5)."""
        ok = Respond(transaction, reply(prack, 200, headers=supported_fields()))
        if self.state >= State.LEAVING:
            return (ok,)
        if response.body and not self.request.body:
            self._settled = bool(prack.body)
            return (ok, Notify(OfferAnswered(prack.body))) if prack.body else (ok,)
        self._settled = self._settled or bool(response.body)
        if not prack.body:
            return (ok,)
        if not self._settled:
            return (Respond(transaction, self.offers.busy(prack)),)
        assert self.dialog is not None
        return self.offers.receive(prack, transaction, self.dialog)

    def _must_hold(self) -> bool:
        return self._reliable is not None and self._reliable.holds_answer

    def _release(self) -> Sequence[Effect]:
        """Send what has waited for a PRACK: the 2xx, or the next provisional response and our offer."""
        if self._reliable is None or self.state is not State.EARLY:
            return NOTHING
        held = self._held
        if held is not None and not self._must_hold():
            self._held = None
            return self.handle(Event.ANSWER, held)
        return (*self._send_reliably(self._reliable.next()), *self._offer_if_free())
