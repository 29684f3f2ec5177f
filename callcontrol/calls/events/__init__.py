"""
Input events of the call machine, which handles them one at a time and in order.

They come from SIP sessions, RTP streams, the agent's socket, the API, timers and the wallet, translated by
``callcontrol.calls.aio``. SIP bodies pass through unchanged; the machine never parses them.
"""

from callcontrol.calls.events.agent import (
    AgentClosed,
    AgentDigits,
    AgentExit,
    AgentHangup,
    AgentHold,
    AgentMute,
    AgentOpened,
    AgentRecord,
    AgentRefused,
    AgentTranscript,
    AgentTransfer,
)
from callcontrol.calls.events.answers import ReserveExtended, ReserveRefused, RouteFound, RouteRefused
from callcontrol.calls.events.clock import Timer, TimerFired
from callcontrol.calls.events.conferences import (
    ConferenceBegan,
    ConferenceEntered,
    ConferenceOver,
    ConferenceRefused,
)
from callcontrol.calls.events.instructions import (
    CallerRouted,
    InstructionProblem,
    InstructionsFailed,
    InstructionsReceived,
)
from callcontrol.calls.events.legs import (
    FailureKind,
    LegAnswered,
    LegCancelled,
    LegConfirmed,
    LegEnded,
    LegFailed,
    LegOffered,
    LegProgress,
    LegRefused,
    MediaConnected,
    MediaProblem,
    OfferTaken,
)
from callcontrol.calls.events.media import (
    DigitReceived,
    DigitsSent,
    GreetingOver,
    LegHeld,
    MachineDetected,
    MediaSilent,
    MessageEnded,
    PlaybackEnded,
    PlayoutDrained,
    RecordingEnded,
    SpeechEnded,
    SpeechStarted,
)
from callcontrol.calls.events.orders import (
    ConsultRequested,
    DigitsRequested,
    HangupRequested,
    ListenRequested,
    ListenStatus,
    LiveOrder,
    MuteRequested,
    PartyName,
    RecordingAction,
    RecordingRequested,
    TimeLimitRequested,
    TransferOrdered,
)
from callcontrol.calls.events.transfers import (
    JoinRequested,
    LegReferred,
    PartnerDigit,
    PartnerFound,
    PartnerGone,
    PartnerMissing,
    PartnerReady,
    PartnerRefused,
    ReplacementCalled,
    TransferRequested,
)

__all__ = [
    "AgentClosed",
    "AgentDigits",
    "AgentExit",
    "AgentHangup",
    "AgentHold",
    "AgentMute",
    "AgentOpened",
    "AgentRecord",
    "AgentRefused",
    "AgentTranscript",
    "AgentTransfer",
    "CallerRouted",
    "ConferenceBegan",
    "ConferenceEntered",
    "ConferenceOver",
    "ConferenceRefused",
    "ConsultRequested",
    "DigitReceived",
    "DigitsRequested",
    "DigitsSent",
    "Event",
    "FailureKind",
    "GreetingOver",
    "HangupRequested",
    "InstructionProblem",
    "InstructionsFailed",
    "InstructionsReceived",
    "JoinRequested",
    "LegAnswered",
    "LegCancelled",
    "LegConfirmed",
    "LegEnded",
    "LegFailed",
    "LegHeld",
    "LegOffered",
    "LegProgress",
    "LegReferred",
    "LegRefused",
    "ListenRequested",
    "ListenStatus",
    "LiveOrder",
    "MachineDetected",
    "MediaConnected",
    "MediaProblem",
    "MediaSilent",
    "MessageEnded",
    "MuteRequested",
    "OfferTaken",
    "PartnerDigit",
    "PartnerFound",
    "PartnerGone",
    "PartnerMissing",
    "PartnerReady",
    "PartnerRefused",
    "PartyName",
    "PlaybackEnded",
    "PlayoutDrained",
    "RecordingAction",
    "RecordingEnded",
    "RecordingRequested",
    "ReplacementCalled",
    "ReserveExtended",
    "ReserveRefused",
    "RouteFound",
    "RouteRefused",
    "SpeechEnded",
    "SpeechStarted",
    "TimeLimitRequested",
    "Timer",
    "TimerFired",
    "TransferOrdered",
    "TransferRequested",
]

Event = (
    TimerFired
    | OfferTaken
    | LegProgress
    | LegAnswered
    | LegConfirmed
    | LegFailed
    | LegCancelled
    | LegEnded
    | LegOffered
    | MediaConnected
    | LegRefused
    | DigitReceived
    | PlaybackEnded
    | SpeechStarted
    | SpeechEnded
    | DigitsSent
    | LegHeld
    | PlayoutDrained
    | MediaSilent
    | MessageEnded
    | RecordingEnded
    | AgentOpened
    | AgentRefused
    | AgentClosed
    | AgentHangup
    | AgentDigits
    | AgentTransfer
    | AgentHold
    | AgentMute
    | AgentRecord
    | AgentTranscript
    | TransferRequested
    | LegReferred
    | ReplacementCalled
    | PartnerFound
    | PartnerMissing
    | JoinRequested
    | PartnerReady
    | PartnerRefused
    | PartnerDigit
    | PartnerGone
    | RouteFound
    | RouteRefused
    | MachineDetected
    | GreetingOver
    | InstructionsReceived
    | InstructionsFailed
    | CallerRouted
    | LiveOrder
    | ReserveExtended
    | ReserveRefused
    | ConferenceBegan
    | ConferenceEntered
    | ConferenceOver
    | ConferenceRefused
)
