"""
What a call machine wants done: the effects that ``callcontrol.aio`` performs, in the order given.

An effect that can fail comes back as an event (``LegRefused``, ``RouteRefused``, ``AgentRefused``, ...); none
returns a value.
"""

from callcontrol.effects.agent import (
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
from callcontrol.effects.instructions import AskWebhook, RouteCaller, StopAsking
from callcontrol.effects.media import (
    AnswerOffer,
    CloseMedia,
    ConnectMedia,
    ControlRecording,
    DetectMachine,
    DetectSpeech,
    FillSilence,
    LinkMedia,
    MuteLeg,
    PlayAudio,
    PlayRingback,
    PlaySounds,
    RelayDigit,
    SendDigits,
    Speak,
    StartRecording,
    StopAudio,
    StopDetecting,
    StopSpeech,
)
from callcontrol.effects.records import (
    Arm,
    Disarm,
    ExtendReserve,
    FindRoute,
    Finish,
    RestGateway,
    Save,
    Transcribe,
)
from callcontrol.effects.signalling import AnswerLeg, DialLeg, HangUpLeg, RejectLeg, RingLeg, TakeOffer
from callcontrol.effects.transfers import (
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
    "Effect",
    "ExtendReserve",
    "FillSilence",
    "FindPartner",
    "FindRoute",
    "Finish",
    "HangUpLeg",
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
    "StartRecording",
    "StopAgent",
    "StopAsking",
    "StopAudio",
    "StopDetecting",
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
    | FillSilence
    | PlayRingback
    | StopAudio
    | SendDigits
    | RelayDigit
    | StartRecording
    | ControlRecording
    | DetectMachine
    | StopDetecting
    | DetectSpeech
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
)
