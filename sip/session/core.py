"""
Core of every session: its dialog, its requests, and the answers that wait for their ACK.

`sip.session.renegotiation` adds the offers that change a session, `sip.session.invite` the requests within
the dialog and hanging up, `sip.session.inbound` and `sip.session.outbound` the setup. No I/O, no clock.
"""

from collections.abc import Sequence
from typing import Any

from sip.effects import Arm, Disarm, Effect, Purpose, Respond, SendAck, StartRequest
from sip.machine import NOTHING, Machine
from sip.message.message import Request, Response
from sip.message.uri import SipUri
from sip.session.dialog import Dialog
from sip.session.model import Event, SessionSettings, State, UnackedAnswer
from sip.session.offer_answer import OfferTurns

__all__ = ["SessionCore"]


_UNANSWERED_OFFER = 'SIP;cause=488;text="The ACK answers no offer"'


class SessionCore(Machine[State]):
    """
    Common base of inbound and outbound sessions.

    `call_id`, `local_tag` and the peer's tag identify a session; `dialog` is None until it is established.
    """

    __slots__ = (
        "_ack",
        "_unacked",
        "call_id",
        "dialog",
        "farewell",
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
        self.offers = OfferTurns(
            owner_of_call_id=caller, pick=settings.pick, patience_s=settings.owner_patience_s
        )
        self.farewell: tuple[tuple[str, str], ...] = ()
        """Header fields added to our BYE."""
        self._unacked: UnackedAnswer | None = None
        self._ack: tuple[int, SendAck] | None = None

    # Our requests.

    def _start(
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
        for name, value in self._credentials(method, request.uri, body):
            request.headers.add(name, value)
        return StartRequest(request, purpose, dialog.next_hop())

    def _credentials(self, method: str, uri: SipUri, body: bytes) -> Sequence[tuple[str, str]]:
        """Return the header fields that answer challenges received so far; none on the called side."""
        return ()

    def _ack_credentials(self, number: int) -> Sequence[tuple[str, str]]:
        """Return the header fields that the ACK of our re-INVITE repeats (RFC 3261 22.1)."""
        return ()

    def _bye(self, reason: str | None) -> StartRequest:
        headers = (("Reason", reason), *self.farewell) if reason else self.farewell
        return self._start("BYE", Purpose.BYE, headers=headers)

    def _dialog_of(self, request: Request) -> Dialog | None:
        """Find the dialog of a request that carries our tag."""
        dialog = self.dialog
        return dialog if dialog is not None and dialog.matches(request) else None

    def _talking(self, *, offering: bool = False) -> Dialog | None:
        """Return the dialog of our requests, None without one; `offering` needs an answered first offer."""
        return self.dialog if self.state is State.CONFIRMED else None

    def _settled_in(self, dialog: Dialog) -> bool:
        """Return True when the first offer has its final answer while it still rings (RFC 3311 5.1)."""
        return False

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
        first = self.state is State.ACCEPTED
        effects = self.handle(Event.ACK, (request, unacked))
        if first and unacked.made_offer and not request.body:
            # No media is possible: the answer is missing, and cannot come later (RFC 3261 13.2.1).
            return (*effects, *self.handle(Event.HANGUP, (_UNANSWERED_OFFER, 488)))
        return effects

    def _stop_waiting(self) -> Sequence[Effect]:
        return (Disarm(Event.TIMER_REPEAT), Disarm(Event.TIMER_ACK))
