"""Registry of the machines that run the steps of a plan."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from callcontrol.agents.steps.converse import ConverseStep
from callcontrol.calls.plan import (
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
from callcontrol.calls.steps.agent_stream import AgentStep
from callcontrol.calls.steps.announce import AnnounceStep
from callcontrol.calls.steps.base import (
    AnswerStep,
    CallParts,
    DigitsStep,
    PauseStep,
    PlayStep,
    RingStep,
    RunningStep,
)
from callcontrol.calls.steps.conference import ConferenceStep
from callcontrol.calls.steps.dial import DialStep
from callcontrol.calls.steps.gather import GatherStep, SayStep
from callcontrol.calls.steps.record_message import MessageStep
from callcontrol.calls.steps.webhook import ConsultStep
from callcontrol.masking.steps.connect import Connecting
from callcontrol.masking.steps.route_by_caller import RouteByCallerStep

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
    """Create the machine of a step, ready to begin; ``Hangup`` and ``Reject`` have none."""
    return _MAKERS[type(step)](call, step)
