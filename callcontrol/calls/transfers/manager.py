"""What transfers do to a call: the part of ``callcontrol.calls.call`` that lets parties change places."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from callcontrol.calls.effects import (
    AnswerPartner,
    Effect,
    LinkMedia,
    LinkPartner,
    MoveAgent,
    RefuseTransfer,
    StopAudio,
)
from callcontrol.calls.events import (
    Event,
    JoinRequested,
    LegEnded,
    PartnerReady,
    ReplacementCalled,
    TransferRequested,
)
from callcontrol.calls.leg import Leg, LegInput
from callcontrol.calls.steps.agent_stream import AgentStep
from callcontrol.calls.steps.bridge import Bridge
from callcontrol.calls.transfers.replaces import PartnerStep, Replacement, refuse_replacement
from callcontrol.calls.transfers.transfer import Transfer, party_of, refusal_of
from callcontrol.errors import DomainError
from callcontrol.ids import LegId
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.routing.party import Party

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine


MAX_DIALLED: Final = 5
DIALLED_WITHIN_S: Final = 10.0
"""So many targets may be called in so much time for one call: a party that gets each refused at once would
otherwise have us call as fast as it can send REFERs, beside all limits of new calls."""


class CallTransfers:
    """
    The transfers of one call, one at a time.

    Another one that is asked for meanwhile gets 491, one that nobody can carry out now 603, one that comes
    too soon after many others 503.
    """

    def __init__(self, call: "CallMachine") -> None:
        self._call = call
        self._transfer: Transfer | None = None
        self._replacement: Replacement | None = None
        self._dialled_at: deque[float] = deque(maxlen=MAX_DIALLED)

    # --- what the call asks -------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the parties of the call are changing places."""
        pending = self._transfer is not None and self._transfer.pending
        return pending or self._replacement is not None

    def claims(self, event: LegEnded) -> bool:
        """Whether the end of this leg is no end of the call: its party has transferred the other one."""
        transfer = self._transfer
        return transfer is not None and transfer.leg == event.leg

    def handle(self, event: Event) -> Iterator[Effect]:
        """Take one event of the call."""
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
        """The call ends."""
        if self._replacement is not None:
            yield from self._replacement.stop()
        if self._transfer is not None:
            yield from self._transfer.stop()
        self._replacement = self._transfer = None

    # --- what is asked of the call ------------------------------------------------------------------------

    def transfer_requested(self, event: TransferRequested) -> Iterator[Effect]:
        """A party sent a REFER."""
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
            yield from self._transfer.stop()  # it is done, but for the other's hanging up
            self._note(self._transfer)
        self._transfer = Transfer(self._call, event.leg, party, replaces=event.replaces)
        yield from self._transfer.begin()

    def order(self, leg: LegId, party: Party) -> Iterator[Effect]:
        """Our own side wants a party to take the place of a leg; ``busy`` says that it cannot be now."""
        if self._transfer is not None:
            yield from self._transfer.stop()  # it is done, but for the other's hanging up
        self._transfer = Transfer(self._call, leg, party, ordered=True)
        yield from self._transfer.begin()

    def replacement_called(self, event: ReplacementCalled) -> Iterator[Effect]:
        """A caller wants to take the place of a leg."""
        if self._objection(event.leg) is not None:
            yield from refuse_replacement(event)
            return
        leg = self._call.make_inbound_leg()
        self._replacement = Replacement(self._call, event, leg)
        yield from self._replacement.begin()

    def join_requested(self, event: JoinRequested) -> Iterator[Effect]:
        """Another call wants to join its party with the one that hears a leg of this one."""
        other = self.other_of(event.leg)
        if self._objection(event.leg) is not None or other is None:
            yield AnswerPartner(event.call_sid, None)
            return
        yield AnswerPartner(event.call_sid, other)
        yield from self._keep_only(event.leg, other)
        yield from self.dismiss(event.leg)

    def _objection(self, leg: LegId) -> int | None:
        """Why a leg cannot be given up for another now: the status that says so."""
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
        if not first.up or self._call.record.product == MASKING:
            return False  # whom a masked call reaches is not for its parties to choose
        if isinstance(step, Bridge) and step.joined:
            return leg in (first.id, step.b_leg)
        return isinstance(step, AgentStep) and step.live and leg == first.id

    # --- changing places ----------------------------------------------------------------------------------

    def other_of(self, leg: LegId) -> LegId | None:
        """The leg that hears the given one, None when that is an agent or nobody."""
        step, first = self._call.step, self._call.a_leg
        if not isinstance(step, Bridge) or not step.joined:
            return None
        return step.b_leg if leg == first.id else first.id

    def take_place(self, old: LegId, new: Leg) -> Iterator[Effect]:
        """Put a leg that is up in the place of another one, which is charged no more."""
        call, other = self._call, self.other_of(old)
        if old == call.a_leg.id:
            call.change_first(new.id)
        elif isinstance(call.step, Bridge):
            call.step.change_second(new)
        yield from call.charge(new, instead_of=old)
        if other is not None:
            yield LinkMedia(other, new.id)
        else:
            yield MoveAgent(new.id)

    def join(self, old: LegId, event: PartnerReady) -> Iterator[Effect]:
        """Join the other leg with a party of another call."""
        other = self.other_of(old)
        assert other is not None
        yield StopAudio(other)
        yield LinkPartner(other, event.call_sid, event.leg)
        yield from self._keep_only(old, other)

    def _keep_only(self, old: LegId, other: LegId) -> Iterator[Effect]:
        call = self._call
        if old == call.a_leg.id:
            call.change_first(other, newcomer=False)
        yield from call.charge(None, instead_of=old)
        call.replace_step(PartnerStep(call))

    def dismiss(self, leg: LegId) -> Iterator[Effect]:
        """Hang up a leg that has no part in the call any more."""
        found = self._call.legs.get(leg)
        if found is not None:
            yield from found.handle(LegInput.HANG_UP)
