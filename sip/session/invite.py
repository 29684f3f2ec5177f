"""
INVITE session, from its first message to the end of its BYE.

This module holds the common part of both sides within the dialog: requests and hanging up.
`sip.session.inbound` and `sip.session.outbound` add the setup. No I/O, no clock: commands, messages and timer
events are method calls, and effects are returned.
"""

from collections.abc import Sequence
from typing import Any

from sip.effects import Done, Effect, Failure, Notify, Purpose, Respond, StartRequest
from sip.events import Ended, InfoReceived
from sip.machine import NOTHING
from sip.message.message import Request, Response
from sip.message.reason_header import reason_value
from sip.message.responses import ACCEPT, ALLOW, reply, supported_fields
from sip.session.dialog import Dialog
from sip.session.model import Event, SessionSettings, State
from sip.session.referrals import Referrals, ReferTimer
from sip.session.renegotiation import Renegotiation
from sip.session.session_timer import EXPIRED_REASON, GONE_REASON

__all__ = ["InviteSession"]


_OFFERING = (Purpose.REINVITE, Purpose.UPDATE, Purpose.REFRESH)
"""Requests whose responses only need an ACK once the session is ending."""


class InviteSession(Renegotiation):
    """Common part of inbound and outbound sessions within the dialog."""

    __slots__ = ("_referrals", "allows_refer")

    def __init__(self, call_id: str, local_tag: str, settings: SessionSettings, *, caller: bool) -> None:
        super().__init__(call_id, local_tag, settings, caller=caller)
        self._referrals: Referrals | None = None
        self.allows_refer = False

    # Commands of the owner. Commands that come too late for the session's state are ignored.

    def hangup(self, reason: str | None = None, status: int = 603) -> Sequence[Effect]:
        """End the session by BYE, CANCEL or a final response, depending on its state."""
        return self.handle(Event.HANGUP, (reason, status))

    def info(self, content_type: str, body: bytes) -> Sequence[Effect]:
        """Send an INFO within the session."""
        dialog = self._talking()
        if dialog is None:
            return NOTHING
        return (self._start("INFO", Purpose.INFO, body=body, content_type=content_type, within=dialog),)

    # Transfers.

    @property
    def referrals(self) -> Referrals:
        """The transfers of this session; few sessions have any."""
        if self._referrals is None:
            self._referrals = Referrals(self)
        return self._referrals

    def is_with(self, tag: str | None) -> bool:
        """Return True when a peer's tag belongs to the dialog of this session."""
        return self.dialog is not None and self.dialog.remote_tag == tag

    @property
    def leaving(self) -> bool:
        """True when the session has ended or is ending."""
        return self.state >= State.LEAVING

    @property
    def local_contact(self) -> str:
        """Our Contact in the dialog; used by the transfers."""
        return "" if self.dialog is None else self.dialog.local_contact

    def refer(self, target: str, referred_by: str | None) -> Sequence[Effect]:
        """Ask the peer by REFER to call a target; ``target`` is the value of the Refer-To."""
        return self.referrals.refer(target, referred_by) if self.state is State.CONFIRMED else NOTHING

    def start_refer(
        self, method: str, purpose: Purpose, headers: Sequence[tuple[str, str]], body: bytes = b""
    ) -> StartRequest:
        """Build a REFER or NOTIFY; used by the transfers."""
        return self._start(method, purpose, headers=headers, body=body)

    def take_timer(self, event: int) -> Sequence[Effect]:
        """Handle a timer event of the session itself or of its transfers."""
        return self.referrals.take_timer(event) if event >= ReferTimer.NOTIFIER else self.handle(event)

    # Input from the network.

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
            return self.handle(Event.BYE, (request, transaction))
        if method == "PRACK":
            return self._receive_prack(request, transaction)
        if self.state >= State.LEAVING:
            return (Respond(transaction, reply(request, 481)),)
        if method == "INVITE" or (method == "UPDATE" and request.body):
            return self._receive_offer(request, transaction, dialog)
        return self._receive_other(request, transaction, dialog)

    def receive_cancel(self, transaction: Any, reason: str | None) -> Sequence[Effect]:
        """Handle a CANCEL of the re-INVITE of this transaction; the 200 to the CANCEL has been sent."""
        return self.offers.cancel(transaction)

    def receive_response(self, purpose: Purpose, response: Response) -> Sequence[Effect]:
        """Handle a response to a request of this session."""
        if self.state >= State.LEAVING and purpose in _OFFERING:
            return self._acknowledge_only(response)
        if purpose is Purpose.REINVITE:
            return self._receive_answer(response)
        if purpose in _OF_REFERRALS:
            return self.referrals.receive_response(purpose, response)
        if response.status < 200 or purpose in (Purpose.FORK_BYE, Purpose.PRACK):
            return NOTHING
        if purpose is Purpose.UPDATE:
            return self._receive_update_answer(response)
        if purpose is Purpose.REFRESH:
            return self._refreshed(response)
        if purpose is Purpose.BYE:
            return self.handle(Event.BYE_DONE, response)
        return self.handle(Event.DIALOG_GONE) if response.status in (408, 481) else NOTHING

    def fail_request(self, purpose: Purpose, failure: Failure) -> Sequence[Effect]:
        """Handle the failure of a request of this session: it got no final response."""
        if purpose is Purpose.BYE:
            return self.handle(Event.BYE_DONE)
        if purpose in _OF_REFERRALS:
            return self.referrals.fail(purpose)
        if purpose in (Purpose.FORK_BYE, Purpose.PRACK):
            return NOTHING  # A peer that misses a PRACK repeats the response, or ends the call itself.
        if self.state is State.CONFIRMED:
            if failure is not Failure.TIMEOUT and self._is_refresh(purpose):
                # A broken connection says nothing about the session; there is time to retry.
                return self._refresh_again(None)
            if failure is Failure.TIMEOUT:
                return self.handle(Event.DIALOG_GONE)
            # A transport error counts as a 503 (RFC 3261 8.1.3.1): the request failed, the call continues.
            offered = purpose in (Purpose.REINVITE, Purpose.UPDATE)
            return self._update_failed(503, "Service Unavailable") if offered else NOTHING
        early = self.state in (State.EARLY, State.ACCEPTED) and purpose is Purpose.UPDATE
        return self._update_failed(408, "Request Timeout") if early else NOTHING

    # Other requests within the dialog.

    def _receive_other(self, request: Request, transaction: Any, dialog: Dialog) -> Sequence[Effect]:
        if request.method in ("REFER", "NOTIFY"):
            # Before the answer there is no party to transfer.
            allowed = self.allows_refer and self.state >= State.ACCEPTED
            return self.referrals.receive(request, transaction, allowed=allowed)
        if request.method == "UPDATE":
            # Without an offer it only refreshes the target.
            dialog.refresh_target(request)
            fields = [("Contact", dialog.local_contact), ("Allow", ALLOW), *supported_fields()]
            fields += self._heed_request(request)
            return (Respond(transaction, reply(request, 200, headers=fields)), *self._run_timer())
        if request.method == "OPTIONS":
            fields = [("Allow", ALLOW), ("Accept", ACCEPT), *supported_fields()]
            return (Respond(transaction, reply(request, 200, headers=fields)),)
        ok = Respond(transaction, reply(request, 200, headers=(("Allow", ALLOW),)))
        return (ok, Notify(InfoReceived(request.content_type or "", request.body)))

    def _receive_prack(self, request: Request, transaction: Any) -> Sequence[Effect]:
        """Refuse a PRACK, which only the called side expects."""
        return (Respond(transaction, reply(request, 481)),)

    def _drop_unanswered(self) -> Sequence[Effect]:
        """
        Send the final response to each request of the peer that the owner has not answered.

        Source: RFC 3261 15.1.2.
        """
        refused = self.offers.reject(487)
        return refused if self._referrals is None else (*refused, *self._referrals.drop())

    # Actions of the tables.

    def _obey_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        request, transaction = about
        ended = Ended("remote", "bye", reason_value(request.headers), request.headers)
        return (Respond(transaction, reply(request, 200)), *self._drop_unanswered(), Notify(ended), Done())

    def _obey_crossing_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        return (Respond(about[1], reply(about[0], 200)),)

    def _obey_last_bye(self, about: tuple[Request, Any]) -> Sequence[Effect]:
        return (Respond(about[1], reply(about[0], 200)), Done())

    def _leave(self, about: tuple[str | None, int]) -> Sequence[Effect]:
        ended = Notify(Ended("local", "bye", about[0]))
        return (*self._drop_unanswered(), self._bye(about[0]), ended)

    def _leave_unacked(self, _: None) -> Sequence[Effect]:
        bye = self._bye('SIP;cause=408;text="ACK missing"')
        return (*self._drop_unanswered(), bye, Notify(Ended("local", "ack_timeout")))

    def _leave_gone(self, _: None) -> Sequence[Effect]:
        # RFC 3261 12.2.1.2: send a BYE even after 408 or 481.
        return (*self._drop_unanswered(), self._bye(GONE_REASON), Notify(Ended("remote", "timeout")))

    def _expire(self, _: None) -> Sequence[Effect]:
        """End a session without a refresh in time: the peer ends it as well (RFC 4028 10)."""
        ended = Notify(Ended("local", "session_expired", EXPIRED_REASON))
        return (*self._drop_unanswered(), self._bye(EXPIRED_REASON), ended)

    def _end(self, _: object) -> Sequence[Effect]:
        return (Done(),)


_OF_REFERRALS = (Purpose.REFER, Purpose.NOTIFY)
