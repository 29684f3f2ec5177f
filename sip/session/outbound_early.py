"""Outbound session while ringing: forks, reliable responses, PRACK and UPDATE (RFC 3262, 3311)."""

from collections.abc import Sequence

from sip.effects import Arm, Disarm, Effect, Notify, Purpose, Respond, StartRequest
from sip.events import ForkEnded, Progress
from sip.machine import NOTHING
from sip.message.message import Request, Response
from sip.message.responses import ACCEPT, reply
from sip.session.dialog import Dialog
from sip.session.forking import EarlyDialog, Heard
from sip.session.invite import InviteSession
from sip.session.model import Event, SessionSettings, State
from sip.session.prack import reliable_number

__all__ = ["MAX_FORKS", "MAX_PRACKS", "OutboundEarlySession"]

MAX_FORKS = 16
"""Limit of forks; further ones that ring or answer are ignored and time out on their side."""
MAX_PRACKS = 64
"""Limit per INVITE, against a flood of reliable responses: every PRACK is repeated until answered."""


class OutboundEarlySession(InviteSession):
    """
    Outbound session before its answer.

    `_forks` holds the forks that responded, by tag; `_latest` is the one that responded last. `_owing` is the
    fork whose offer the owner has not answered yet: its PRACK waits for that answer.
    """

    __slots__ = ("_forks", "_heard", "_latest", "_owing", "_pracks", "_request")

    _request: Request

    def __init__(self, call_id: str, local_tag: str, settings: SessionSettings) -> None:
        super().__init__(call_id, local_tag, settings, caller=True)
        self._heard = False
        self._forks: dict[str, EarlyDialog] | None = None
        self._latest: EarlyDialog | None = None
        self._owing: EarlyDialog | None = None
        self._pracks = 0

    # Dialogs.

    def _dialog_of(self, request: Request) -> Dialog | None:
        if self.dialog is not None or self._forks is None:
            return super()._dialog_of(request)
        fork = self._forks.get(request.from_.tag or "")
        return None if fork is None else fork.dialog

    def _talking(self, *, offering: bool = False) -> Dialog | None:
        latest = self._latest
        if self.state is State.EARLY and latest is not None:
            return latest.dialog if latest.settled or not offering else None
        return super()._talking(offering=offering)

    def _settled_in(self, dialog: Dialog) -> bool:
        fork = self._forks.get(dialog.remote_tag or "") if self._forks and self.state is State.EARLY else None
        return fork is not None and fork.settled

    def _fork_of(self, response: Response) -> EarlyDialog | None:
        """Find or make the early dialog of a provisional response; None when it makes none."""
        tag = response.to.tag
        if tag is None:
            return None
        if self._forks is None:
            self._forks = {}
        fork = self._forks.get(tag)
        if fork is not None:
            fork.hear(response)
        elif len(self._forks) < MAX_FORKS:
            fork = self._forks[tag] = EarlyDialog(self._request, response, tag)
        return fork

    def is_with(self, tag: str | None) -> bool:
        """Return True when a peer's tag belongs to a confirmed or early dialog of this session."""
        return super().is_with(tag) or (self._forks is not None and tag in self._forks)

    def _forget_forks(self) -> Sequence[Effect]:
        """Drop all forks and their offers, as the INVITE is sent again or cancelled."""
        self._forks = self._latest = self._owing = None
        return (Disarm(Event.TIMER_LATE_ANSWER), *self._drop_offers(None))

    def _drop_offers(self, kept: Dialog | None) -> Sequence[Effect]:
        """Drop the offers of and to ended forks; our offer is sent again in the dialog `kept`."""
        offers = self.offers
        if offers.sent is not None and offers.sent.dialog is not kept:
            offers.take_back()
        if offers.peer is not None and offers.peer.dialog is not kept:
            return offers.reject(481)
        return NOTHING

    # Provisional responses.

    def _progress(self, response: Response) -> Sequence[Effect]:
        self._heard = True
        if response.status == 100:
            return (Disarm(Event.TIMER_SILENCE),)
        fork = self._fork_of(response)
        rseq = reliable_number(response)
        if fork is None:
            told: Sequence[Effect] = self._tell(response, None) if response.to.tag is None else NOTHING
        elif rseq is None:
            told = self._progress_of(fork, response)
        elif self._must_wait(fork, response):
            told = NOTHING
        else:
            told = self._progress_reliably(fork, rseq, response)
        return (Disarm(Event.TIMER_SILENCE), *told)

    def _must_wait(self, fork: EarlyDialog, response: Response) -> bool:
        """Return True when no PRACK may be sent: the owner owes an answer, or the limit is reached."""
        if self._pracks >= MAX_PRACKS:
            return True
        if self._owing is None or fork is self._owing:
            return fork is self._owing
        return bool(response.body) and not self._request.body and not fork.settled

    def _progress_of(self, fork: EarlyDialog, response: Response) -> Sequence[Effect]:
        if response.status == 199:
            return self._lose(fork, response)
        self._latest = fork
        if fork.settled:
            return self._tell(response, fork, b"")
        fork.description = response.body or fork.description
        return self._tell(response, fork)

    def _progress_reliably(self, fork: EarlyDialog, rseq: int, response: Response) -> Sequence[Effect]:
        heard = fork.receive(rseq)
        if heard is Heard.OUT_OF_ORDER:
            return NOTHING
        if heard is Heard.REPEATED:
            return self._prack_again(fork)
        fork.rack = f"{rseq} {response.cseq.number} INVITE"
        if response.status == 199:
            return (self._prack(fork), *self._lose(fork, response))
        self._latest = fork
        body, offers = response.body, False
        if fork.settled:
            body = b""  # An offer has one answer; further descriptions are ignored (RFC 3261 13.2.1).
        elif body:
            fork.description = body
            fork.settled = bool(self._request.body)
            offers = not fork.settled
        if offers:
            self._owing = fork
            wait = Arm(Event.TIMER_LATE_ANSWER, self.settings.owner_patience_s)
            return (wait, *self._tell(response, fork, reliable=True, needs_answer=True))
        return (
            self._prack(fork),
            *self._tell(response, fork, body, reliable=True),
            *self._offer_if_free(),
        )

    def _tell(
        self,
        response: Response,
        fork: EarlyDialog | None,
        body: bytes | None = None,
        *,
        reliable: bool = False,
        needs_answer: bool = False,
    ) -> Sequence[Effect]:
        tag = None if fork is None else fork.tag
        told = response.body if body is None else body
        status, reason, headers = response.status, response.reason, response.headers
        return (Notify(Progress(status, reason, told, headers, tag, reliable, needs_answer)),)

    def _lose(self, fork: EarlyDialog, response: Response) -> Sequence[Effect]:
        """Handle a 199: a fork has ended, long before the final response of the others (RFC 6228)."""
        gone = ForkEnded(fork.tag, response.headers.get("Reason"))
        return (*self._forget(fork), Notify(gone))

    def _forget(self, fork: EarlyDialog) -> Sequence[Effect]:
        if self._forks is not None:
            self._forks.pop(fork.tag, None)
        if self._latest is fork:
            self._latest = None
        dropped = self._drop_offers_of(fork)
        if self._owing is not fork:
            return dropped
        self._owing = None
        return (Disarm(Event.TIMER_LATE_ANSWER), *dropped)

    def _drop_offers_of(self, fork: EarlyDialog) -> Sequence[Effect]:
        offers = self.offers
        if offers.sent is not None and offers.sent.dialog.remote_tag == fork.tag:
            offers.take_back()
        if offers.peer is not None and offers.peer.dialog.remote_tag == fork.tag:
            return offers.reject(481)
        return NOTHING

    def _obey_fork_bye(self, about: "tuple[Request, object]") -> Sequence[Effect]:
        """End the fork that sent a BYE, although no callee may send one before its answer (RFC 3261 15)."""
        request, transaction = about
        ok = Respond(transaction, reply(request, 200))
        fork = self._forks.get(request.from_.tag or "") if self._forks else None
        if fork is None:
            return (ok,)
        gone = ForkEnded(fork.tag, request.headers.get("Reason"))
        return (ok, *self._forget(fork), Notify(gone))

    # PRACK.

    def _prack(self, fork: EarlyDialog, body: bytes = b"") -> StartRequest:
        fork.answer = body
        fork.pracking = True
        self._pracks += 1
        headers = (("RAck", fork.rack),)
        return self._start(
            "PRACK", Purpose.PRACK, headers=headers, body=body, content_type=ACCEPT, within=fork.dialog
        )

    def _prack_again(self, fork: EarlyDialog) -> Sequence[Effect]:
        """Send a new PRACK only if the previous one has failed: its own transaction repeats it until then."""
        return NOTHING if fork.pracking or fork.acknowledged else (self._prack(fork, fork.answer),)

    def _receive_pracked(self, response: Response) -> Sequence[Effect]:
        fork = self._forks.get(response.to.tag or "") if self._forks else None
        if fork is not None and response.status >= 200:
            fork.pracking = False
            fork.acknowledged = response.status < 300
        return NOTHING

    def _fail_pracks(self) -> None:
        """Allow a new PRACK for every fork, since the fork of the failed one is unknown."""
        for fork in (self._forks or {}).values():
            fork.pracking = False

    def _prack_challenged(self, response: Response) -> Sequence[Effect]:
        fork = self._forks.get(response.to.tag or "") if self._forks else None
        return NOTHING if fork is None else (self._prack(fork, fork.answer),)

    def _answer_early_offer(self, body: bytes) -> Sequence[Effect]:
        fork, self._owing = self._owing, None
        if fork is None:
            return NOTHING
        fork.settled = True
        self.offers.ours = body
        return (Disarm(Event.TIMER_LATE_ANSWER), self._prack(fork, body), *self._offer_if_free())

    def reject_offer(self, status: int = 488, warning: str | None = None) -> Sequence[Effect]:
        """Refuse the peer's offer; refusing an offer in a provisional response cancels the call."""
        if self.offers.peer is None and self._owing is not None:
            return (Disarm(Event.TIMER_LATE_ANSWER), *self.handle(Event.TIMER_LATE_ANSWER))
        return super().reject_offer(status, warning)
