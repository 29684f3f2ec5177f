"""
Transfer of a party out of a step of the plan, as the API commands.

An agent's party is transferred by ``callcontrol.calls.steps.agent_transfer``, one of two parties by
``callcontrol.calls.transfers.transfer``.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlayRingback, StopAudio
from callcontrol.calls.effects.records import Save
from callcontrol.calls.events import Event
from callcontrol.calls.plan import TransferParty
from callcontrol.calls.steps.base import CallParts, RunningStep
from callcontrol.calls.steps.bridge import BridgeStep
from callcontrol.calls.transfers.transfer import transfer_failed
from callcontrol.models.parties import Party

_ACCEPTED: Final = 202
_NOT_REACHED: Final = 480
"""Status of a transfer whose target has answered with none."""


class PartyTransferStep(RunningStep):
    """
    The step that dials the target of a transfer; the bridge follows it when the target answers.

    ``kept`` is the step in progress, which goes on until the target answers, and beyond when it does not; a
    party whose step is over meanwhile hears ringing. None for a party that hears ringing from the start,
    whose call ends when the target does not answer.
    """

    def __init__(self, call: CallParts, party: Party, kept: RunningStep | None) -> None:
        super().__init__(call)
        self._kept = kept
        self._bridge = BridgeStep(call, party, quiet=kept is not None)
        self._rings = False
        """True while the party hears ringing after ``kept``."""
        self.keeps_keys = kept is not None and kept.keeps_keys

    def begin(self) -> Iterator[Effect]:
        """Dial the target."""
        yield from self._bridge.begin()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        if self._kept is not None and not self._kept.over:
            yield from self._kept.handle(event)
            if self._kept.over:
                self._rings = True
                yield PlayRingback(self.call.a_leg.id)
        effects = list(self._bridge.handle(event))
        if self._bridge.joined:  # the party leaves its step before it is connected
            yield from self._leave()
            self.call.set_next_steps(())
            self.successor, self.over = self._bridge, True
        yield from effects
        if self._bridge.joined:
            to = str(self._bridge.party.target)
            yield Save("call.transferred", {"transfer": {"mode": "bridge", "to": to}})
        elif self._bridge.over:
            yield from self._failed()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Abandon the target, and end the step in progress because the call ends."""
        yield from self._bridge.stop(ending)
        if self._kept is not None and not self._kept.over:
            yield from self._kept.stop(ending)
        yield from self._silence()

    def _leave(self) -> Iterator[Effect]:
        if self._kept is not None and not self._kept.over:
            yield from self._kept.abort()
        yield from self._silence()

    def _failed(self) -> Iterator[Effect]:
        """Report the failure; the step in progress, and the plan after it, go on."""
        ending = self._bridge.ending
        assert ending is not None
        yield from self._silence()
        self.successor, self.ending, self.over = self._kept, ending, True
        yield transfer_failed(self._bridge.party, ending.sip_status, ending.cause)

    def _silence(self) -> Iterator[Effect]:
        if self._rings:
            self._rings = False
            if not self.call.a_leg.over:
                yield StopAudio(self.call.a_leg.id)


class TransferStep(PartyTransferStep):
    """The step that transfers the first party, and asks the ``action`` URL when the other is not reached."""

    def __init__(self, call: CallParts, step: TransferParty) -> None:
        super().__init__(call, step.party, None)
        self._action = step.action

    def _failed(self) -> Iterator[Effect]:
        yield from super()._failed()
        if self._action is None:
            return
        status = self.ending.sip_status if self.ending is not None else None
        facts = (("refer_status", _ACCEPTED), ("final_referred_call_status", status or _NOT_REACHED))
        self.call.set_next_steps((replace(self._action, facts=(*self._action.facts, *facts)),))
