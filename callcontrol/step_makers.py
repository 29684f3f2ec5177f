"""Which machine runs a step of a plan."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from callcontrol.announcement import AnnounceStep
from callcontrol.caller_routing import RouteByCallerStep
from callcontrol.conferring import ConferenceStep
from callcontrol.connecting import Connecting
from callcontrol.consult import ConsultStep
from callcontrol.conversation import ConverseStep
from callcontrol.dialling import DialStep
from callcontrol.gathering import GatherStep, SayStep
from callcontrol.message_taking import MessageStep
from callcontrol.plan import (
    Announce,
    Answer,
    Connect,
    Consult,
    Converse,
    Dial,
    Gather,
    JoinConference,
    Pause,
    Play,
    RecordMessage,
    Ring,
    RouteByCaller,
    Say,
    SendDtmf,
    Step,
    Stream,
)
from callcontrol.steps import AnswerStep, CallParts, DigitsStep, PauseStep, PlayStep, RingStep, RunningStep
from callcontrol.streams import AgentStep

_MAKERS: Final[Mapping[type, Callable[[CallParts, Any], RunningStep]]] = {
    Answer: lambda call, _: AnswerStep(call),
    Play: PlayStep,
    Say: SayStep,
    Gather: GatherStep,
    RecordMessage: MessageStep,
    JoinConference: ConferenceStep,
    Announce: AnnounceStep,
    Converse: ConverseStep,
    Pause: PauseStep,
    Ring: RingStep,
    SendDtmf: DigitsStep,
    Dial: DialStep,
    Connect: Connecting,
    Stream: lambda call, step: AgentStep(call, step.choice, call.next_stream_sid(), step.fallback),
    RouteByCaller: RouteByCallerStep,
    Consult: ConsultStep,
}


def make_step(call: CallParts, step: Step) -> RunningStep:
    """A step of a call, ready to begin; ``Hangup`` and ``Reject`` are no steps of this kind."""
    return _MAKERS[type(step)](call, step)
