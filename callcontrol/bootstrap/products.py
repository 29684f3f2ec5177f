"""Registries of what plugs into calls: the products, and the machines that run the steps of a plan."""

from typing import Final

from callcontrol.agents.steps.converse import Converse, ConverseStep
from callcontrol.assistant.product import ASSISTANT
from callcontrol.calls.plan import (
    Annotate,
    Announce,
    Answer,
    ChangeRecording,
    ChangeTranscription,
    Dial,
    Dub,
    Gather,
    JoinConference,
    Pause,
    Play,
    RecordMessage,
    RequestInstructions,
    Ring,
    Say,
    SendDtmf,
    SendMessage,
    Stream,
    TransferParty,
)
from callcontrol.calls.product import Products
from callcontrol.calls.steps.agent_stream import AgentStep
from callcontrol.calls.steps.announce import AnnounceStep
from callcontrol.calls.steps.base import (
    AnnotateStep,
    AnswerStep,
    DigitsStep,
    PauseStep,
    PlayStep,
    RecordingStep,
    RingStep,
    StepMakers,
    TranscriptionStep,
)
from callcontrol.calls.steps.bridge import DialStep
from callcontrol.calls.steps.conference import ConferenceStep
from callcontrol.calls.steps.dub import DubStep
from callcontrol.calls.steps.gather import GatherStep, SayStep
from callcontrol.calls.steps.party_transfer import TransferStep
from callcontrol.calls.steps.record_message import MessageStep
from callcontrol.calls.steps.send_message import SendMessageStep
from callcontrol.calls.steps.webhook import WebhookStep
from callcontrol.masking.product import MASKING
from callcontrol.masking.steps.connect import Connect, MaskedDialStep
from callcontrol.masking.steps.route_by_caller import RouteByCaller, RouteByCallerStep
from callcontrol.otp.product import OTP

PRODUCTS: Final = Products(MASKING, OTP, ASSISTANT)
"""All products of the platform."""

STEPS: Final[StepMakers] = {
    Annotate: AnnotateStep,
    ChangeRecording: RecordingStep,
    ChangeTranscription: TranscriptionStep,
    Dub: DubStep,
    TransferParty: TransferStep,
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
    SendMessage: SendMessageStep,
    Dial: DialStep,
    Connect: MaskedDialStep,
    Stream: lambda call, step: AgentStep(call, step.choice, call.next_stream_sid(), step.fallback),
    RouteByCaller: RouteByCallerStep,
    RequestInstructions: WebhookStep,
}
"""Machines of the steps of a plan; ``Hangup`` and ``Reject`` have none."""
