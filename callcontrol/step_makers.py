"""Which machine runs a step of a plan."""

from callcontrol.announcement import AnnounceStep
from callcontrol.bridge import Bridge
from callcontrol.connecting import Connecting
from callcontrol.consult import ConsultStep
from callcontrol.plan import (
    Announce,
    Answer,
    Connect,
    Consult,
    Dial,
    Pause,
    Play,
    Ring,
    SendDtmf,
    Step,
    Stream,
)
from callcontrol.steps import AnswerStep, CallParts, DigitsStep, PauseStep, PlayStep, RingStep, RunningStep
from callcontrol.streams import AgentStep


def make_step(call: CallParts, step: Step) -> RunningStep:
    """A step of a call, ready to begin; ``Hangup`` and ``Reject`` are no steps of this kind."""
    match step:
        case Play():
            return PlayStep(call, step)
        case Announce():
            return AnnounceStep(call, step)
        case Pause():
            return PauseStep(call, step)
        case Ring():
            return RingStep(call, step)
        case SendDtmf():
            return DigitsStep(call, step)
        case Dial():
            return Bridge(call, step.party)
        case Connect():
            return Connecting(call, step)
        case Stream():
            return AgentStep(call, step.choice, call.next_stream_sid())
        case Consult():
            return ConsultStep(call, step)
        case _:
            assert isinstance(step, Answer)
            return AnswerStep(call)
