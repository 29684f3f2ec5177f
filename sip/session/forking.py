"""
Forks of an outbound INVITE: early dialogs, reliable provisional responses and their PRACKs.

Source: RFC 3261 12.1.2, 13.2.2.1, RFC 3262, RFC 6228.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sip.effects import Arm, Disarm, Effect, Purpose, Respond, StartRequest
from sip.events import ForkEnded, Progress
from sip.machine import NOTHING
from sip.message.message import Message, Request, Response, reply
from sip.message.responses import ACCEPT
from sip.session.dialog import Dialog
from sip.session.model import Event
from sip.session.prack import reliable_number
from sip.values import constructed_natively

if TYPE_CHECKING:
    from sip.session.outbound import OutboundInviteSession

MAX_FORKS = 16
"""Limit of forks; further ones that ring or answer are ignored and time out on their side."""
MAX_PRACKS = 64
"""Limit per INVITE, against a flood of reliable responses: every PRACK is repeated until answered."""


@constructed_natively
@dataclass(slots=True, eq=False)
class EarlyDialog:
    """
    One ringing fork of our INVITE.

    `settled` is True once the offer of the INVITE, or that of the fork, has its final answer; until then a
    session description is only a preview of the answer. `description` is the fork's latest one. The dialog is
    built on first use: most forks only ring and answer.
    """

    _request: Request
    _response: Response
    tag: str
    _dialog: Dialog | None = None
    settled: bool = False
    description: bytes = b""
    rseq: int | None = None
    rack: str = ""
    """The RAck of the latest PRACK, or of the one to send next."""
    answer: bytes = b""
    """The body of the latest PRACK."""
    pracking: bool = False
    """True while a PRACK is under way."""
    acknowledged: bool = False
    """True when the latest PRACK was accepted."""

    @property
    def dialog(self) -> Dialog:
        """The early dialog."""
        if self._dialog is None:
            self._dialog = Dialog.from_response(self._request, self._response)
        return self._dialog

    def update(self, response: Response) -> None:
        """Update the dialog from a further provisional response."""
        if self._dialog is None:
            self._response = response
        else:
            self._dialog.refresh_target(response)

    def confirm(self, response: Response) -> tuple[Dialog, bytes]:
        """
        Confirm the dialog; returns it with the description in force.

        After a final answer the description of the 2xx is ignored (RFC 3261 13.2.1).
        """
        dialog = self._dialog
        if dialog is None:
            dialog = Dialog.from_response(self._request, response)
        else:
            dialog.confirm(response)
        if self.settled:
            return dialog, dialog.description or self.description
        return dialog, response.body or self.description


@constructed_natively
@dataclass(slots=True)
class Forks:
    """
    Forks of one outbound INVITE before its answer.

    `latest` is the fork that responded last, `owing` the one whose offer the owner has not answered yet: its
    PRACK waits for that answer.
    """

    _by_tag: dict[str, EarlyDialog] | None = None
    latest: EarlyDialog | None = None
    owing: EarlyDialog | None = None
    _pracks: int = 0

    def get(self, tag: str | None) -> EarlyDialog | None:
        """Return the fork of a peer's tag, None if it has not responded."""
        return None if self._by_tag is None else self._by_tag.get(tag or "")

    def _fork_of(self, invite: Request, response: Response) -> EarlyDialog | None:
        """Find or make the early dialog of a provisional response; None when it makes none."""
        tag = response.to.tag
        if tag is None:
            return None
        if self._by_tag is None:
            self._by_tag = {}
        fork = self._by_tag.get(tag)
        if fork is not None:
            fork.update(response)
        elif len(self._by_tag) < MAX_FORKS:
            fork = self._by_tag[tag] = EarlyDialog(invite, response, tag)
        return fork

    def drop_all(self, session: "OutboundInviteSession", kept: Dialog | None = None) -> Sequence[Effect]:
        """
        Drop all forks and their offers, as the INVITE is answered, cancelled or sent again.

        `kept` is the dialog of the answer, in which our offer is sent again.
        """
        if kept is not None and self._by_tag is None:
            return NOTHING
        owing = self.owing
        self._by_tag = self.latest = self.owing = None
        offers = session.offers
        if offers.pending_offer is not None and offers.pending_offer.dialog is not kept:
            offers.revert()
        refused = NOTHING
        if offers.peer is not None and offers.peer.dialog is not kept:
            refused = offers.reject(481)
        return refused if owing is None else (Disarm(Event.TIMER_LATE_ANSWER), *refused)

    # Provisional responses.

    def receive_provisional(self, session: "OutboundInviteSession", response: Response) -> Sequence[Effect]:
        """Handle a provisional response other than 100."""
        fork = self._fork_of(session.request, response)
        rseq = reliable_number(response)
        if fork is None:
            return (_progress(response, None, response.body),) if response.to.tag is None else NOTHING
        if rseq is None:
            return self._receive_unreliable(session, fork, response)
        if self._must_wait(session, fork, response):
            return NOTHING
        return self._receive_reliable(session, fork, rseq, response)

    def _must_wait(self, session: "OutboundInviteSession", fork: EarlyDialog, response: Response) -> bool:
        """Return True when no PRACK may be sent: the owner owes an answer, or the limit is reached."""
        if self._pracks >= MAX_PRACKS:
            return True
        if self.owing is None or fork is self.owing:
            return fork is self.owing
        return bool(response.body) and not session.request.body and not fork.settled

    def _receive_unreliable(
        self, session: "OutboundInviteSession", fork: EarlyDialog, response: Response
    ) -> Sequence[Effect]:
        if response.status == 199:
            return self._lose(session, fork, response)
        self.latest = fork
        if fork.settled:
            return (_progress(response, fork, b""),)
        fork.description = response.body or fork.description
        return (_progress(response, fork, response.body),)

    def _receive_reliable(
        self, session: "OutboundInviteSession", fork: EarlyDialog, rseq: int, response: Response
    ) -> Sequence[Effect]:
        if fork.rseq is not None and rseq > fork.rseq + 1:
            return NOTHING  # A response before this one is missing (RFC 3262 4).
        if fork.rseq is not None and rseq <= fork.rseq:
            # The transaction of the previous PRACK repeats it; a new one is sent only after it has failed.
            again = not (fork.pracking or fork.acknowledged)
            return (self.prack(session, fork, fork.answer),) if again else NOTHING
        fork.rseq, fork.acknowledged = rseq, False
        fork.rack = f"{rseq} {response.cseq.number} INVITE"
        if response.status == 199:
            return (self.prack(session, fork), *self._lose(session, fork, response))
        self.latest = fork
        body, offers = response.body, False
        if fork.settled:
            body = b""  # An offer has one answer; further descriptions are ignored (RFC 3261 13.2.1).
        elif body:
            fork.description = body
            fork.settled = bool(session.request.body)
            offers = not fork.settled
        if offers:
            self.owing = fork
            wait = Arm(Event.TIMER_LATE_ANSWER, session.settings.owner_patience_s)
            return (wait, _progress(response, fork, body, reliable=True, needs_answer=True))
        return (
            self.prack(session, fork),
            _progress(response, fork, body, reliable=True),
            *session.offers.send_next(session),
        )

    # Ends of forks.

    def _lose(
        self, session: "OutboundInviteSession", fork: EarlyDialog, message: Message
    ) -> Sequence[Effect]:
        """Handle the 199 or BYE of a fork: it has ended, and others may still answer (RFC 6228)."""
        gone = ForkEnded(fork.tag, message.headers.get("Reason"))
        if self._by_tag is not None:
            self._by_tag.pop(fork.tag, None)
        if self.latest is fork:
            self.latest = None
        offers = session.offers
        if offers.pending_offer is not None and offers.pending_offer.dialog.remote_tag == fork.tag:
            offers.revert()
        dropped: Sequence[Effect] = NOTHING
        if offers.peer is not None and offers.peer.dialog.remote_tag == fork.tag:
            dropped = offers.reject(481)
        if self.owing is not fork:
            return (*dropped, gone)
        self.owing = None
        return (Disarm(Event.TIMER_LATE_ANSWER), *dropped, gone)

    def receive_bye(
        self, session: "OutboundInviteSession", request: Request, transaction: object
    ) -> Sequence[Effect]:
        """End the fork that sent a BYE, although no callee may send one before its answer (RFC 3261 15)."""
        ok = Respond(transaction, reply(request, 200))
        fork = self.get(request.from_.tag)
        return (ok,) if fork is None else (ok, *self._lose(session, fork, request))

    # PRACK.

    def prack(self, session: "OutboundInviteSession", fork: EarlyDialog, body: bytes = b"") -> StartRequest:
        """Build the PRACK of the latest reliable response of a fork; `body` answers its offer."""
        fork.answer = body
        fork.pracking = True
        self._pracks += 1
        headers = (("RAck", fork.rack),)
        return session.start_request(
            "PRACK", Purpose.PRACK, headers=headers, body=body, content_type=ACCEPT, within=fork.dialog
        )

    def receive_prack_response(self, response: Response) -> None:
        """Record the final response to a PRACK."""
        fork = self.get(response.to.tag)
        if fork is not None and response.status >= 200:
            fork.pracking = False
            fork.acknowledged = response.status < 300

    def fail_pracks(self) -> None:
        """Allow a new PRACK for every fork, since the fork of the failed one is unknown."""
        for fork in (self._by_tag or {}).values():
            fork.pracking = False

    def answer_offer(self, session: "OutboundInviteSession", body: bytes) -> Sequence[Effect]:
        """Send the owner's answer to the offer of a fork in its PRACK."""
        fork, self.owing = self.owing, None
        if fork is None:
            return NOTHING
        fork.settled = True
        session.offers.local_sdp = body
        prack = self.prack(session, fork, body)
        return (Disarm(Event.TIMER_LATE_ANSWER), prack, *session.offers.send_next(session))


def _progress(
    response: Response,
    fork: EarlyDialog | None,
    body: bytes,
    *,
    reliable: bool = False,
    needs_answer: bool = False,
) -> Effect:
    tag = None if fork is None else fork.tag
    status, reason, headers = response.status, response.reason, response.headers
    return Progress(status, reason, body, headers, tag, reliable, needs_answer)
