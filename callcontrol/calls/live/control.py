"""
API commands to an active call: a part of ``callcontrol.calls.call``.

``reject_reason`` checks a command first, so that a request with several commands is refused or carried out
as a whole. A command that has become impossible before its turn does nothing.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import SendDigits
from callcontrol.calls.effects.records import Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.commands import (
    DigitsRequested,
    DubRequested,
    HangupRequested,
    ListenRequested,
    LiveCommand,
    MuteRequested,
    PartyName,
    RecordingRequested,
    RedirectRequested,
    StepsRequested,
    TimeLimitRequested,
    TranscriptionRequested,
    TransferCommand,
)
from callcontrol.calls.hangup_cause import ORIGINATOR_CANCEL
from callcontrol.calls.leg import LegView
from callcontrol.calls.steps.agent_stream import AgentStep
from callcontrol.calls.steps.bridge import BridgeStep
from callcontrol.calls.steps.dub import change_track, dub_problem
from callcontrol.calls.steps.party_transfer import PartyTransferStep
from callcontrol.calls.transfers.replaces import PartnerStep
from callcontrol.calls.transfers.transfer import peer_of
from callcontrol.ids import LegId
from callcontrol.models import CallStatus

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine


_LISTENING: Final = {"pause": "paused", "silence": "silenced", "resume": "streaming"}
"""Stream states by listen status."""


def handle(call: "CallMachine", command: LiveCommand) -> Iterator[Effect]:
    """Carry out a command, if it is still possible."""
    if reject_reason(call, command) is None:
        yield from COMMANDS[type(command)](call, command)


def reject_reason(call: "CallMachine", command: LiveCommand) -> str | None:
    """Return why a command is impossible in the present state of the call, None when it is possible."""
    if isinstance(command, call.policy.refused_commands):
        return call.policy.refused_because
    check = _CHECKS.get(type(command))
    return check(call, command) if check is not None else None


def leg_views(call: "CallMachine") -> list[LegView]:
    """Return the legs of a call that are not over, as people see them."""
    parties: tuple[PartyName, ...] = ("a", "b")
    names = {_leg_of(call, party): party for party in parties} if call.legs else {}
    return [leg.view(names.get(leg.id)) for leg in call.legs.values() if not leg.over]


# --- checks -------------------------------------------------------------------------------------------------


def _may_hang_up(call: "CallMachine", command: HangupRequested) -> str | None:
    too_late = command.unanswered is CallStatus.NO_ANSWER and call.answered
    return "the call was answered; end it with completed" if too_late else None


def _may_reach(call: "CallMachine", command: MuteRequested | DigitsRequested) -> str | None:
    return f"its party {command.party} is not there" if _leg_of(call, command.party) is None else None


def _may_dub(call: "CallMachine", command: DubRequested) -> str | None:
    leg = _leg_of(call, command.party)
    if leg is None:
        return f"its party {command.party} is not there"
    return dub_problem(call.legs[leg], command.dub)


def _may_listen(call: "CallMachine", _: ListenRequested) -> str | None:
    step = call.step
    return None if isinstance(step, AgentStep) and step.live else "no agent hears the call"


def _may_record(call: "CallMachine", command: RecordingRequested) -> str | None:
    if not call.a_leg.up:
        return "the call was not answered yet"
    return call.recording.reject_reason(command.action)


def _may_transcribe(call: "CallMachine", command: TranscriptionRequested) -> str | None:
    if not call.a_leg.up:
        return "the call was not answered yet"
    return None if command.language or call.transcription.active else "the call is not being transcribed"


def _may_transfer(call: "CallMachine", command: TransferCommand) -> str | None:
    step = call.step
    if not call.a_leg.up or step is None:
        return "the call was not answered yet"
    if call.transfers.busy or isinstance(step, PartyTransferStep):
        return "its parties are being transferred already"
    if isinstance(step, BridgeStep):
        return None if step.joined else "its second party is still being called"
    if command.party == "b":
        return "it has no second party"
    if isinstance(step, PartnerStep):
        return "it is joined with another call"
    if isinstance(step, AgentStep) and (step.transferring or not step.live):
        return "its agent is having it transferred, or is not there"
    return None


def _may_redirect(call: "CallMachine", _: RedirectRequested | StepsRequested) -> str | None:
    return call.webhooks.reject_reason()


def _leg_of(call: "CallMachine", party: PartyName) -> LegId | None:
    first = call.a_leg.id
    leg = first if party == "a" else peer_of(call, first)
    return leg if leg is not None and call.is_up(leg) else None


# --- execution ----------------------------------------------------------------------------------------------


def _hang_up(call: "CallMachine", command: HangupRequested) -> Iterator[Effect]:
    if command.source != "api":
        ending = Ending(CallStatus.FAILED, command.cause, command.source)
    elif call.answered or command.unanswered is not CallStatus.CANCELED:
        ending = Ending(command.unanswered, command.cause, "api")
    else:
        ending = Ending(CallStatus.CANCELED, ORIGINATOR_CANCEL, "api")
    yield from call.end(ending)


def _mute(call: "CallMachine", command: MuteRequested) -> Iterator[Effect]:
    leg = _leg_of(call, command.party)
    if leg is not None:
        yield from call.legs[leg].mute(command.says, command.hears)


def _listen(call: "CallMachine", command: ListenRequested) -> Iterator[Effect]:
    step = call.step
    if isinstance(step, AgentStep):
        yield from step.listen(command.status)
    stream = call.record.stream
    if stream is not None:
        stream.state = _LISTENING[command.status]
        yield Save()


def _record(call: "CallMachine", command: RecordingRequested) -> Iterator[Effect]:
    recording = call.recording
    if command.action == "start":
        yield from recording.start(call.a_leg.id, command.channels)
        yield Save()
    else:
        yield from recording.control(command.action)


def _transcribe(call: "CallMachine", command: TranscriptionRequested) -> Iterator[Effect]:
    if command.language is None:
        call.transcription.stop()
    else:
        call.transcription.start(command.language)
    yield from ()


def _send_digits(call: "CallMachine", command: DigitsRequested) -> Iterator[Effect]:
    leg = _leg_of(call, command.party)
    if leg is not None:
        yield SendDigits(leg, command.digits, by_api=True)


def _dub(call: "CallMachine", command: DubRequested) -> Iterator[Effect]:
    leg = _leg_of(call, command.party)
    if leg is not None:
        yield from change_track(call.legs[leg], command.dub)


def _transfer(call: "CallMachine", command: TransferCommand) -> Iterator[Effect]:
    """
    Transfer a party.

    An agent, the other party, or a step that keeps its party, stays until the new party answers, and keeps
    the call when it does not. Any other step ends at once: the party hears ringing, and a failed transfer
    ends the call.
    """
    step = call.step
    if isinstance(step, BridgeStep):
        leg = peer_of(call, call.a_leg.id) if command.party == "a" else call.a_leg.id
        if leg is not None:
            yield from call.transfers.start(leg, command.to)
    elif isinstance(step, AgentStep):
        yield from step.transfer_to(command.to)
    elif step is not None and step.keeps_party:
        transfer = PartyTransferStep(call, command.to, step)
        call.replace_step(transfer)
        yield from transfer.begin()
    elif step is not None:
        yield from step.abort()
        transfer = PartyTransferStep(call, command.to, None)
        call.set_next_steps(())
        call.replace_step(transfer)
        yield from transfer.begin()


def _limit_time(call: "CallMachine", command: TimeLimitRequested) -> Iterator[Effect]:
    yield from call.limit_time(command.limit_s)


def _instruct(call: "CallMachine", command: StepsRequested) -> Iterator[Effect]:
    yield from call.webhooks.stop()
    yield from call.abort_step(command.steps)


COMMANDS: Final[dict[type[Event], Callable[["CallMachine", Any], Iterator[Effect]]]] = {
    HangupRequested: _hang_up,
    MuteRequested: _mute,
    ListenRequested: _listen,
    RecordingRequested: _record,
    TranscriptionRequested: _transcribe,
    DubRequested: _dub,
    DigitsRequested: _send_digits,
    TransferCommand: _transfer,
    TimeLimitRequested: _limit_time,
    StepsRequested: _instruct,
}
"""Handlers by command."""

_CHECKS: Final[dict[type[Event], Callable[["CallMachine", Any], str | None]]] = {
    HangupRequested: _may_hang_up,
    MuteRequested: _may_reach,
    ListenRequested: _may_listen,
    RecordingRequested: _may_record,
    TranscriptionRequested: _may_transcribe,
    DubRequested: _may_dub,
    DigitsRequested: _may_reach,
    TransferCommand: _may_transfer,
    RedirectRequested: _may_redirect,
    StepsRequested: _may_redirect,
}
