"""Transfers of a call: the part of ``callcontrol.calls.call`` in which parties change places."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.agent import MoveAgent, TellAgentError
from callcontrol.calls.effects.media import LinkMedia, StopAudio
from callcontrol.calls.effects.transfers import AnswerPartner, LinkPartner, RefuseTransfer
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import AgentTransfer
from callcontrol.calls.events.legs import LegEnded
from callcontrol.calls.events.transfers import (
    JoinRequested,
    PartnerReady,
    ReplacementCalled,
    TransferRequested,
)
from callcontrol.calls.leg import Leg, LegInput
from callcontrol.calls.steps.agent_stream import AgentStep
from callcontrol.calls.steps.bridge import BridgeStep
from callcontrol.calls.transfers.replaces import PartnerStep, Replacement, refuse_replacement
from callcontrol.calls.transfers.transfer import Transfer, party_of, peer_of, refusal_of
from callcontrol.errors import DomainError
from callcontrol.ids import LegId
from callcontrol.models.parties import Party

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine


MAX_DIALLED: Final = 5
DIALLED_WITHIN_S: Final = 10.0
"""At most ``MAX_DIALLED`` targets are dialled in this time, in seconds, for one call. Without the limit a
party whose targets refuse at once would make us dial as fast as it sends REFERs, past all limits of new
calls."""


class CallTransfers:
    """
    The transfers of one call, one at a time.

    A request during another transfer gets 491, one that cannot be carried out now 603, one that comes too
    soon after many others 503.
    """

    def __init__(self, call: "CallMachine") -> None:
        self._call = call
        self._transfer: Transfer | None = None
        self._replacement: Replacement | None = None
        self._dialled_at: deque[float] = deque(maxlen=MAX_DIALLED)

    # --- called by the call -------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """True while a transfer or a replacement is in progress."""
        pending = self._transfer is not None and self._transfer.pending
        return pending or self._replacement is not None

    def agent_requested(self, event: AgentTransfer) -> Iterator[Effect]:
        """Handle an agent's request to transfer its party; refused while the party itself transfers."""
        if self.busy:
            yield TellAgentError("invalid_command", "the party is being transferred", "transfer")
        else:
            yield from self._call.forward(event)

    def claims(self, event: LegEnded) -> bool:
        """True when this leg's BYE does not end the call: its party has transferred the other one."""
        transfer = self._transfer
        return transfer is not None and transfer.leg == event.leg

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        if self._replacement is not None:
            yield from self._replacement.handle(event)
            if self._replacement.over:
                self._replacement = None
        transfer = self._transfer
        if transfer is not None:
            yield from transfer.handle(event)
            if transfer.over:
                self._note(transfer)
                self._transfer = None
                if transfer.ending is not None:
                    yield from self._call.end(transfer.ending)

    def stop(self) -> Iterator[Effect]:
        """Stop all transfers, because the call ends."""
        if self._replacement is not None:
            yield from self._replacement.stop()
        if self._transfer is not None:
            yield from self._transfer.stop()
        self._replacement = self._transfer = None

    # --- requests -----------------------------------------------------------------------------------------

    def transfer_requested(self, event: TransferRequested) -> Iterator[Effect]:
        """Handle a party's REFER."""
        status = self._objection(event.leg) or (503 if self._too_soon else None)
        if status is not None:
            yield RefuseTransfer(event.leg, status)
            return
        try:
            party = party_of(event, self._call.record)
        except DomainError as refusal:
            yield RefuseTransfer(event.leg, refusal_of(refusal))
            return
        if self._transfer is not None:
            yield from self._transfer.stop()  # it succeeded; only the hangup of the old leg is pending
            self._note(self._transfer)
        self._transfer = Transfer(self._call, event.leg, party, replaces=event.replaces)
        yield from self._transfer.begin()

    def start(self, leg: LegId, party: Party) -> Iterator[Effect]:
        """Begin an API transfer, in which ``party`` replaces a leg; only allowed while not ``busy``."""
        if self._transfer is not None:
            yield from self._transfer.stop()  # it succeeded; only the hangup of the old leg is pending
        self._transfer = Transfer(self._call, leg, party, by_api=True)
        yield from self._transfer.begin()

    def replacement_called(self, event: ReplacementCalled) -> Iterator[Effect]:
        """Handle a caller that asks to replace a leg (INVITE with Replaces)."""
        if self._objection(event.leg) is not None:
            yield from refuse_replacement(event)
            return
        leg = self._call.make_inbound_leg()
        self._replacement = Replacement(self._call, event, leg)
        yield from self._replacement.begin()

    def join_requested(self, event: JoinRequested) -> Iterator[Effect]:
        """Handle another call that wants to join its party with the peer of a leg of this call."""
        other = peer_of(self._call, event.leg)
        if self._objection(event.leg) is not None or other is None:
            yield AnswerPartner(event.call_sid, None)
            return
        yield AnswerPartner(event.call_sid, other)
        self._keep_only(event.leg, other)
        yield from self.drop_leg(event.leg)

    def _objection(self, leg: LegId) -> int | None:
        """Return the status that refuses to replace a leg now; None when it can be replaced."""
        if self.busy or (isinstance(self._call.step, AgentStep) and self._call.step.transferring):
            return 491
        return None if self._can_change(leg) else 603

    def _note(self, transfer: Transfer) -> None:
        if transfer.dialled:
            self._dialled_at.append(self._call.now_s)

    @property
    def _too_soon(self) -> bool:
        dialled_at = self._dialled_at
        full = len(dialled_at) == MAX_DIALLED
        return full and self._call.now_s - dialled_at[0] < DIALLED_WITHIN_S

    def _can_change(self, leg: LegId) -> bool:
        step, first = self._call.step, self._call.a_leg
        if not first.up or not self._call.policy.may_transfer:
            return False
        if isinstance(step, BridgeStep) and step.joined:
            return leg in (first.id, step.b_leg)
        return isinstance(step, AgentStep) and step.live and leg == first.id

    # --- changing places ----------------------------------------------------------------------------------

    def replace_leg(self, old: LegId, new: Leg) -> Iterator[Effect]:
        """Replace a leg with another answered one; the old leg is no longer charged."""
        call, other = self._call, peer_of(self._call, old)
        if old == call.a_leg.id:
            call.replace_a_leg(new.id)
        elif isinstance(call.step, BridgeStep):
            call.step.change_second(new)
        call.charge(new, instead_of=old)
        if other is not None:
            yield LinkMedia(other, new.id)
        else:
            yield MoveAgent(new.id)

    def join(self, old: LegId, event: PartnerReady) -> Iterator[Effect]:
        """Connect the other leg with a party of another call."""
        other = peer_of(self._call, old)
        assert other is not None
        yield StopAudio(other)
        yield LinkPartner(other, event.call_sid, event.leg)
        self._keep_only(old, other)

    def _keep_only(self, old: LegId, other: LegId) -> None:
        call = self._call
        if old == call.a_leg.id:
            call.replace_a_leg(other, joins_call=False)
        call.charge(None, instead_of=old)
        call.set_next_steps(())
        call.replace_step(PartnerStep(call))

    def drop_leg(self, leg: LegId) -> Iterator[Effect]:
        """Hang up a leg that no longer takes part in the call."""
        found = self._call.legs.get(leg)
        if found is not None:
            yield from found.handle(LegInput.HANG_UP)
