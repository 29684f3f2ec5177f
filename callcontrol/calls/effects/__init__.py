"""
Effects of the call machine, performed by ``callcontrol.calls.aio`` in the order given.

An effect that fails results in an event (``LegRefused``, ``RouteRefused``, ``AgentRefused``, ...); none
returns a value.
"""

from callcontrol.calls.effects.agent import (
    DrainAgent,
    ListenAgent,
    MoveAgent,
    OpenAgent,
    StartAgent,
    StopAgent,
    TellAgentDigit,
    TellAgentDigitsSent,
    TellAgentDone,
    TellAgentError,
    TellAgentHold,
    TellAgentSpeech,
    TellAgentTransfer,
)
from callcontrol.calls.effects.conferences import EnterConference, LeaveConference
from callcontrol.calls.effects.instructions import AskWebhook, RouteCaller, StopAsking
from callcontrol.calls.effects.media import (
    AnswerOffer,
    CloseMedia,
    ConnectMedia,
    ControlRecording,
    DetectMachine,
    DetectSpeech,
    DropMessage,
    FillSilence,
    LinkMedia,
    MuteLeg,
    PlayAudio,
    PlayRingback,
    PlaySounds,
    RelayDigit,
    SendDigits,
    Speak,
    StartMessage,
    StartRecording,
    StopAudio,
    StopDetecting,
    StopMessage,
    StopSpeech,
)
from callcontrol.calls.effects.records import (
    Arm,
    Disarm,
    ExtendReserve,
    FindRoute,
    Finish,
    KeepMessage,
    RestGateway,
    Save,
    Transcribe,
)
from callcontrol.calls.effects.signalling import AnswerLeg, DialLeg, HangUpLeg, RejectLeg, RingLeg, TakeOffer
from callcontrol.calls.effects.transfers import (
    AcceptTransfer,
    AdoptLeg,
    AnswerPartner,
    AskPartner,
    FindPartner,
    LinkPartner,
    PassDigit,
    ReferLeg,
    RefuseReplacement,
    RefuseTransfer,
    TellTransfer,
)

__all__ = [
    "AcceptTransfer",
    "AdoptLeg",
    "AnswerLeg",
    "AnswerOffer",
    "AnswerPartner",
    "Arm",
    "AskPartner",
    "AskWebhook",
    "CloseMedia",
    "ConnectMedia",
    "ControlRecording",
    "DetectMachine",
    "DetectSpeech",
    "DialLeg",
    "Disarm",
    "DrainAgent",
    "DropMessage",
    "Effect",
    "EnterConference",
    "ExtendReserve",
    "FillSilence",
    "FindPartner",
    "FindRoute",
    "Finish",
    "HangUpLeg",
    "KeepMessage",
    "LeaveConference",
    "LinkMedia",
    "LinkPartner",
    "ListenAgent",
    "MoveAgent",
    "MuteLeg",
    "OpenAgent",
    "PassDigit",
    "PlayAudio",
    "PlayRingback",
    "PlaySounds",
    "ReferLeg",
    "RefuseReplacement",
    "RefuseTransfer",
    "RejectLeg",
    "RelayDigit",
    "RestGateway",
    "RingLeg",
    "RouteCaller",
    "Save",
    "SendDigits",
    "Speak",
    "StartAgent",
    "StartMessage",
    "StartRecording",
    "StopAgent",
    "StopAsking",
    "StopAudio",
    "StopDetecting",
    "StopMessage",
    "StopSpeech",
    "TakeOffer",
    "TellAgentDigit",
    "TellAgentDigitsSent",
    "TellAgentDone",
    "TellAgentError",
    "TellAgentHold",
    "TellAgentSpeech",
    "TellAgentTransfer",
    "TellTransfer",
    "Transcribe",
]

Effect = (
    TakeOffer
    | DialLeg
    | RingLeg
    | AnswerLeg
    | RejectLeg
    | HangUpLeg
    | ConnectMedia
    | AnswerOffer
    | CloseMedia
    | LinkMedia
    | MuteLeg
    | PlayAudio
    | PlaySounds
    | Speak
    | StartMessage
    | FillSilence
    | PlayRingback
    | StopAudio
    | SendDigits
    | RelayDigit
    | StartRecording
    | ControlRecording
    | DetectMachine
    | StopDetecting
    | StopMessage
    | DetectSpeech
    | DropMessage
    | StopSpeech
    | OpenAgent
    | StartAgent
    | ListenAgent
    | DrainAgent
    | StopAgent
    | TellAgentDigit
    | TellAgentDigitsSent
    | TellAgentDone
    | TellAgentSpeech
    | TellAgentHold
    | TellAgentTransfer
    | TellAgentError
    | AcceptTransfer
    | RefuseTransfer
    | TellTransfer
    | ReferLeg
    | MoveAgent
    | FindPartner
    | AskPartner
    | AnswerPartner
    | LinkPartner
    | PassDigit
    | AdoptLeg
    | RefuseReplacement
    | AskWebhook
    | RouteCaller
    | StopAsking
    | FindRoute
    | RestGateway
    | Arm
    | Disarm
    | ExtendReserve
    | Save
    | Transcribe
    | Finish
    | KeepMessage
    | EnterConference
    | LeaveConference
)
