"""
API commands to an active call: a part of ``callcontrol.calls.call``.

``objection`` checks a command first, so that a request with several commands is refused or carried out as a
whole. A command that has become impossible before its turn does nothing.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect, MuteLeg, Save, SendDigits
from callcontrol.calls.events import (
    ConsultRequested,
    DigitsRequested,
    DigitsSent,
    Event,
    HangupRequested,
    ListenRequested,
    LiveOrder,
    MuteRequested,
    PartyName,
    RecordingRequested,
    TimeLimitRequested,
    TransferOrdered,
)
from callcontrol.calls.hangup_cause import ORIGINATOR_CANCEL
from callcontrol.calls.steps.agent_stream import AgentStep
from callcontrol.calls.steps.bridge import Bridge
from callcontrol.calls.transfers.replaces import PartnerStep
from callcontrol.ids import LegId
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.models import CallStatus
from callcontrol.otp.calls import PRODUCT as OTP

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine


_LISTENING: Final = {"pause": "paused", "silence": "silenced", "resume": "streaming"}
"""Stream states by listen status."""

_NEVER_FOR_A_PASSWORD: Final = (RecordingRequested, ListenRequested, TransferOrdered, ConsultRequested)
_NEVER_WHEN_MASKED: Final = (TransferOrdered, ConsultRequested)


class LiveControl:
    """API commands to one call."""

    def __init__(self, call: "CallMachine") -> None:
        self._call = call

    def takes(self, event: Event) -> bool:
        """True for a command of the API, or the result of one."""
        return event.by_api if isinstance(event, DigitsSent) else type(event) in _HANDLERS

    def handle(self, event: Event) -> Iterator[Effect]:
        """Carry out a command, if it is still possible."""
        if isinstance(event, LiveOrder) and self.objection(event) is None:
            yield from _HANDLERS[type(event)](self, event)

    def objection(self, order: LiveOrder) -> str | None:
        """Return why a command is impossible in the present state of the call, None when it is possible."""
        if self._call.record.product == OTP and isinstance(order, _NEVER_FOR_A_PASSWORD):
            return "the call speaks a one-time password, which nobody else may hear"
        if self._call.record.product == MASKING and isinstance(order, _NEVER_WHEN_MASKED):
            return "the call is masked: its two parties are the only ones it has"
        judge = _JUDGES.get(type(order))
        return judge(self, order) if judge is not None else None

    # --- checks ---------------------------------------------------------------------------------------------

    def _may_hang_up(self, order: HangupRequested) -> str | None:
        too_late = order.unanswered is CallStatus.NO_ANSWER and self._call.answered
        return "the call was answered; end it with completed" if too_late else None

    def _may_reach(self, order: MuteRequested | DigitsRequested) -> str | None:
        return f"its party {order.party} is not there" if self._leg_of(order.party) is None else None

    def _may_listen(self, _: ListenRequested) -> str | None:
        step = self._call.step
        return None if isinstance(step, AgentStep) and step.live else "no agent hears the call"

    def _may_record(self, order: RecordingRequested) -> str | None:
        if not self._call.a_leg.up:
            return "the call was not answered yet"
        return self._call.recording.objection(order.action)

    def _may_transfer(self, order: TransferOrdered) -> str | None:
        call, step = self._call, self._call.step
        if not call.a_leg.up or step is None:
            return "the call was not answered yet"
        if call.transfers.busy:
            return "its parties are being transferred already"
        if isinstance(step, Bridge):
            return None if step.joined else "its second party is still being called"
        if order.party == "b":
            return "it has no second party"
        if isinstance(step, PartnerStep):
            return "it is joined with another call"
        if isinstance(step, AgentStep) and (step.transferring or not step.live):
            return "its agent is having it transferred, or is not there"
        return None

    def _may_consult(self, _: ConsultRequested) -> str | None:
        return self._call.consultations.objection()

    def _leg_of(self, party: PartyName) -> LegId | None:
        first = self._call.a_leg.id
        leg = first if party == "a" else self._call.other_of(first)
        return leg if leg is not None and self._call.is_up(leg) else None

    # --- execution ------------------------------------------------------------------------------------------

    def _hang_up(self, order: HangupRequested) -> Iterator[Effect]:
        if order.source != "api":
            ending = Ending(CallStatus.FAILED, order.cause, order.source)
        elif self._call.answered or order.unanswered is not CallStatus.CANCELED:
            ending = Ending(order.unanswered, order.cause, "api")
        else:
            ending = Ending(CallStatus.CANCELED, ORIGINATOR_CANCEL, "api")
        yield from self._call.end(ending)

    def _mute(self, order: MuteRequested) -> Iterator[Effect]:
        leg = self._leg_of(order.party)
        if leg is not None:
            yield MuteLeg(leg, order.says, order.hears)

    def _listen(self, order: ListenRequested) -> Iterator[Effect]:
        step = self._call.step
        if isinstance(step, AgentStep):
            yield from step.listen(order.status)
        stream = self._call.record.stream
        if stream is not None:
            stream.state = _LISTENING[order.status]
            yield Save()

    def _record(self, order: RecordingRequested) -> Iterator[Effect]:
        recording = self._call.recording
        if order.action == "start":
            yield from recording.start(self._call.a_leg.id, order.channels)
            yield Save()
        else:
            yield from recording.control(order.action)

    def _send_digits(self, order: DigitsRequested) -> Iterator[Effect]:
        leg = self._leg_of(order.party)
        if leg is not None:
            yield SendDigits(leg, order.digits, by_api=True)

    def _transfer(self, order: TransferOrdered) -> Iterator[Effect]:
        """
        Transfer a party.

        An agent, or the other party, stays until the new one answers, and keeps the call when it does not.
        Any other step of the plan ends at once: the party hears ringing, and a failed transfer ends the call.
        """
        call, step = self._call, self._call.step
        if isinstance(step, Bridge):
            leg = call.other_of(call.a_leg.id) if order.party == "a" else call.a_leg.id
            if leg is not None:
                yield from call.transfers.order(leg, order.to)
        elif isinstance(step, AgentStep):
            yield from step.transfer_to(order.to)
        elif step is not None:
            yield from step.interrupt()
            transferred = {"transfer": {"mode": "bridge", "to": str(order.to.target)}}
            bridge = Bridge(call, order.to, announce=Save("call.transferred", transferred))
            call.replace_step(bridge)
            yield from bridge.begin()

    def _limit_time(self, order: TimeLimitRequested) -> Iterator[Effect]:
        yield from self._call.limit_time(order.limit_s)


_HANDLERS: Final[dict[type[Event], Callable[[LiveControl, Any], Iterator[Effect]]]] = {
    HangupRequested: LiveControl._hang_up,
    MuteRequested: LiveControl._mute,
    ListenRequested: LiveControl._listen,
    RecordingRequested: LiveControl._record,
    DigitsRequested: LiveControl._send_digits,
    TransferOrdered: LiveControl._transfer,
    TimeLimitRequested: LiveControl._limit_time,
}

_JUDGES: Final[dict[type[Event], Callable[[LiveControl, Any], str | None]]] = {
    HangupRequested: LiveControl._may_hang_up,
    MuteRequested: LiveControl._may_reach,
    ListenRequested: LiveControl._may_listen,
    RecordingRequested: LiveControl._may_record,
    DigitsRequested: LiveControl._may_reach,
    TransferOrdered: LiveControl._may_transfer,
    ConsultRequested: LiveControl._may_consult,
}
