"""
A voice agent on the call: connecting, streaming, draining, as a table of states.

The socket is opened while the party waits or rings; a caller who waits is answered when the agent has taken
the connection, so that nobody is answered into silence. An agent that closes ends its stream after what it
has queued is played, unless it is lost, or closes with a code that says "at once". An agent may have the
caller transferred; then the bridge takes the stream's place.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum, auto
from typing import Final

from callcontrol.bridge import Bridge
from callcontrol.effects import (
    Arm,
    Disarm,
    DrainAgent,
    Effect,
    OpenAgent,
    ReferLeg,
    Save,
    SendDigits,
    StartAgent,
    StopAgent,
    TellAgentDigit,
    TellAgentDigitsSent,
    TellAgentError,
    TellAgentTransfer,
)
from callcontrol.errors import DomainError
from callcontrol.events import (
    AgentClosed,
    AgentDigits,
    AgentExit,
    AgentHangup,
    AgentOpened,
    AgentRefused,
    AgentTransfer,
    DigitReceived,
    DigitsSent,
    Event,
    LegProgress,
    LegReferred,
    PlayoutDrained,
    Timer,
    TimerFired,
)
from callcontrol.hangup import (
    ALLOTTED_TIMEOUT,
    BALANCE_EXHAUSTED,
    MEDIA_TIMEOUT,
    NORMAL_CLEARING,
    STREAM_DISCONNECTED,
    SYSTEM_SHUTDOWN,
    outcome_of,
)
from callcontrol.hunt import Ending
from callcontrol.models import CallStatus, StreamInfo
from callcontrol.plan import Party
from callcontrol.routing import PhoneTarget, normalise_number, parse_sip_target
from callcontrol.steps import CallParts, RunningStep
from callcontrol.transfer import transfer_failed
from media.streams import StreamChoice

_DROPPED: Final = {"reason": "dropped", "http_status": None, "attempts": 1}

DRAIN_LIMIT_S: Final = 10.0
"""How long the audio that a leaving agent has queued may go on (streaming 1.6)."""


class StreamState(IntEnum):
    """The life of an agent's stream, in order."""

    NEW = 0
    CONNECTING = 1
    OPEN = 2
    """The agent is there and the party is not answered yet."""
    LIVE = 3
    DRAINING = 4
    OVER = 5


class StreamInput(IntEnum):
    """What a stream is told."""

    BEGIN = auto()
    OPENED = auto()
    REFUSED = auto()
    PARTY_UP = auto()
    LEAVES = auto()
    """The agent closed or asked to hang up: its queued audio is played first."""
    LEAVES_AT_ONCE = auto()
    LOST = auto()
    """The agent's connection broke."""
    DRAINED = auto()
    DIGIT = auto()
    """The party pressed a key."""
    SEND_DIGITS = auto()
    DIGITS_SENT = auto()
    TRANSFER = auto()
    TRANSFERRED = auto()
    """The second party answered."""
    REFERRED = auto()
    """The party tells how it fares with whom it was asked to call."""
    REFER_DONE = auto()
    """It has reached them."""
    STOP = auto()
    """Command: the call ends."""


Action = Callable[["AgentStep", Event | None], Iterator[Effect]]


class AgentStep(RunningStep):
    """The step that connects the call with a voice agent."""

    needs_answer = False

    def __init__(self, call: CallParts, choice: StreamChoice, stream_sid: str) -> None:
        super().__init__(call)
        self.state = StreamState.NEW
        self._choice = choice
        self._sid = stream_sid
        self._transfer: Bridge | None = None
        self._detail = "stream_hangup"
        self._referring = False
        self._referred_to = ""
        self._ordered = False
        """Whether our own side has the party transferred: the agent did not ask and is not told."""

    @property
    def live(self) -> bool:
        """Whether audio flows between the party and its agent."""
        return self.state is StreamState.LIVE

    @property
    def transferring(self) -> bool:
        """Whether the agent is having the party transferred."""
        return self._transfer is not None or self._referring

    def begin(self) -> Iterator[Effect]:
        """Connect to the agent."""
        yield from self._take(StreamInput.BEGIN)

    def party_up(self) -> Iterator[Effect]:
        """The party was answered: audio flows as soon as the agent is there."""
        yield from self._take(StreamInput.PARTY_UP)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Take one event of the call."""
        what = _input_of(event)
        if what is not None:
            yield from self._take(what, event)
        if self._transfer is not None and not self.over:
            yield from self._transferring(self._transfer, event)

    def transfer_to(self, party: Party) -> Iterator[Effect]:
        """Put the party through to another one, because our own side says so."""
        if not self.live or self.transferring:
            return
        self._ordered = True
        self._transfer = Bridge(self.call, party, quiet=True)
        yield from self._transfer.begin()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """End the stream because the call ends, and tell the agent why."""
        if self._transfer is not None:
            yield from self._transfer.stop(ending)
        self._detail = _detail_of(ending)
        yield from self._take(StreamInput.STOP)

    def interrupt(self) -> Iterator[Effect]:
        """End the stream because the call goes on without it."""
        yield from self._abandon_transfer()
        self._detail = "transferred"
        yield from self._take(StreamInput.STOP)

    def _take(self, what: StreamInput, event: Event | None = None) -> list[Effect]:
        rule = RULES.get((self.state, what))
        if rule is None:  # listed in IGNORED
            return []
        target, action = rule
        assert target >= self.state
        self.state = target
        self.over = target is StreamState.OVER
        return list(action(self, event))

    # --- connecting ---------------------------------------------------------------------------------------

    def _connect(self, _: Event | None) -> Iterator[Effect]:
        choice = self._choice
        self.call.record.stream = StreamInfo(
            self._sid, choice.url, choice.protocol, choice.encoding, choice.sample_rate, "connecting"
        )
        yield OpenAgent(choice, self._sid)

    def _opened(self, _: Event | None) -> Iterator[Effect]:
        """Answer a caller who waits; a party we dial answers by itself, now or later."""
        yield from self.call.answer()
        if self.call.a_leg.up:
            yield from self._take(StreamInput.PARTY_UP)

    def _start(self, _: Event | None) -> Iterator[Effect]:
        yield StartAgent(self.call.a_leg.id)
        yield self._saved("streaming", "stream.started")

    def _refused(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, AgentRefused)
        self.ending = Ending(CallStatus.FAILED, STREAM_DISCONNECTED, "stream")
        details = {"reason": event.reason, "http_status": event.http_status, "attempts": event.attempts}
        yield self._saved("failed", "stream.failed", details)

    # --- streaming ----------------------------------------------------------------------------------------

    def _digit(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, DigitReceived)
        if event.leg == self.call.a_leg.id:
            yield TellAgentDigit(event.digit, event.duration_ms)

    def _send_digits(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, AgentDigits)
        yield SendDigits(self.call.a_leg.id, event.digits, event.duration_ms, event.gap_ms)

    def _digits_sent(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, DigitsSent)
        if event.problem is None:
            yield TellAgentDigitsSent(event.digits)
        else:
            yield TellAgentError("dtmf_unavailable", event.problem, "dtmf")

    # --- leaving ------------------------------------------------------------------------------------------

    def _drain(self, _: Event | None) -> Iterator[Effect]:
        yield from self._abandon_transfer()
        yield Arm(Timer.DRAIN, DRAIN_LIMIT_S)
        yield DrainAgent(self.call.a_leg.id)

    def _drained(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.DRAIN)
        yield from self._leave(None)

    def _leave(self, _: Event | None) -> Iterator[Effect]:
        yield from self._abandon_transfer()
        self.ending = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "stream")
        yield StopAgent("stopped", "stream_hangup")
        yield self._saved("stopped", "stream.stopped", {"reason": "stream_hangup"})

    def _leave_early(self, _: Event | None) -> Iterator[Effect]:
        """The agent left before the party answered."""
        self.ending = Ending(CallStatus.FAILED, STREAM_DISCONNECTED, "stream")
        yield StopAgent("stopped", "stream_hangup")
        yield self._saved(
            "failed", "stream.failed", {"reason": "dropped", "http_status": None, "attempts": 1}
        )

    def _lost(self, _: Event | None) -> Iterator[Effect]:
        yield from self._abandon_transfer()
        self.ending = Ending(CallStatus.COMPLETED, STREAM_DISCONNECTED, "stream")
        yield StopAgent("stopped", "stream_hangup")
        yield self._saved(
            "failed", "stream.failed", {"reason": "dropped", "http_status": None, "attempts": 1}
        )

    def _stop_connecting(self, _: Event | None) -> Iterator[Effect]:
        yield from self._tell_stop()
        self._mark("stopped")

    def _stop(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.DRAIN)
        yield from self._tell_stop()
        yield self._saved("stopped", "stream.stopped", {"reason": self._detail})

    def _tell_stop(self) -> Iterator[Effect]:
        parted = self._detail in ("caller_hangup", "callee_hangup")
        yield StopAgent("callended" if parted else "stopped", self._detail)

    def _quiet(self, _: Event | None) -> Iterator[Effect]:
        yield from ()

    # --- transfer -----------------------------------------------------------------------------------------

    def _begin_transfer(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, AgentTransfer)
        if self._transfer is not None or self._referring:
            yield TellAgentError("invalid_command", "a transfer is already under way", "transfer")
        elif event.mode == "refer":
            self._referring, self._ordered = True, False
            self._referred_to = event.to
            yield ReferLeg(self.call.a_leg.id, _refer_target(event.to))
        elif event.mode != "bridge":
            yield TellAgentError("invalid_command", "the transfer mode must be bridge or refer", "transfer")
        else:
            try:
                party = self._party_of(event)
            except DomainError as refusal:
                yield TellAgentError("invalid_command", refusal.message, "transfer")
                return
            self._ordered = False
            self._transfer = Bridge(self.call, party, quiet=True)
            yield from self._transfer.begin()

    def _party_of(self, event: AgentTransfer) -> Party:
        """Whom to dial; the caller-ID is the number of the call that belongs to the account, if not given."""
        record = self.call.record
        own = record.to if record.direction == "inbound" else record.from_
        is_sip = event.to[:4].lower() == "sip:"
        target = parse_sip_target(event.to) if is_sip else PhoneTarget(normalise_number(event.to))
        caller_id = normalise_number(event.caller_id, field="caller_id") if event.caller_id else own
        return Party(target, caller_id, ring_timeout_s=event.timeout_s, headers=event.headers)

    def _transferring(self, bridge: Bridge, event: Event) -> Iterator[Effect]:
        """Let the bridge take the event, and tell the agent what became of it."""
        effects = list(bridge.handle(event))
        if bridge.joined:
            yield from self._take(
                StreamInput.TRANSFERRED
            )  # the agent's audio stops before the other's starts
        yield from effects
        if bridge.over:
            self._transfer = None
            ending = bridge.ending
            sip_status, cause = (ending.sip_status, ending.cause) if ending else (None, None)
            if self._ordered:
                yield transfer_failed(bridge.party, sip_status, cause)
            else:
                yield TellAgentTransfer("failed", sip_status, cause.name if cause else None)
        elif self._ordered:
            return
        elif not bridge.joined and isinstance(event, LegProgress) and event.leg == bridge.b_leg:
            yield TellAgentTransfer("ringing", event.status)

    def _transferred(self, _: Event | None) -> Iterator[Effect]:
        self.successor = self._transfer
        if not self._ordered:
            yield TellAgentTransfer("answered", 200)
        yield StopAgent("stopped", "transferred")
        yield self._saved("stopped", "stream.stopped", {"reason": "transferred"})
        mode = "refer" if self._transfer is None else "bridge"
        to = self._referred_to if self._transfer is None else str(self._transfer.party.target)
        yield Save("call.transferred", {"transfer": {"mode": mode, "to": to}})

    def _referred(self, event: Event | None) -> Iterator[Effect]:
        """The party that was asked to call someone else by itself tells how that goes."""
        assert isinstance(event, LegReferred)
        if not self._referring or event.status == 100:
            return
        if event.status < 200:
            yield TellAgentTransfer("ringing", event.status)
            return
        self._referring = False
        if event.status >= 300:
            yield TellAgentTransfer("failed", event.status, outcome_of(event.status).cause.name)
        else:
            yield from self._take(StreamInput.REFER_DONE)

    def _gone_elsewhere(self, event: Event | None) -> Iterator[Effect]:
        """The party talks to someone else without us: the call ends."""
        self.ending = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "stream")
        yield from self._transferred(event)

    def _abandon_transfer(self) -> Iterator[Effect]:
        if self._transfer is not None:
            transfer, self._transfer = self._transfer, None
            yield from transfer.stop(Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "stream"))

    # --- the record ---------------------------------------------------------------------------------------

    def _mark(self, state: str) -> None:
        if self.call.record.stream is not None:
            self.call.record.stream.state = state

    def _saved(self, state: str, event: str, details: Mapping[str, object] | None = None) -> Save:
        self._mark(state)
        return Save(event, {"stream_sid": self._sid, **(details or {})})


def _refer_target(to: str) -> str:
    """What the agent wrote, sent as it is (sip:, sips:, tel:); a bare number becomes a tel: address."""
    return to if ":" in to else f"tel:{to}"


_DETAILS_OF_CAUSE: Final = {
    ALLOTTED_TIMEOUT: "max_duration",
    BALANCE_EXHAUSTED: "max_duration",
    MEDIA_TIMEOUT: "media_timeout",
    SYSTEM_SHUTDOWN: "server_shutdown",
}


def _detail_of(ending: Ending) -> str:
    """The word for the end in the agent's ``stop`` (streaming 1.7)."""
    by_cause = _DETAILS_OF_CAUSE.get(ending.cause)
    if by_cause is not None:
        return by_cause
    if ending.source in ("api", "caller", "stream"):
        return f"{ending.source}_hangup"
    return "callee_hangup"


_EXITS: Final = {
    AgentExit.NORMAL: StreamInput.LEAVES,
    AgentExit.AT_ONCE: StreamInput.LEAVES_AT_ONCE,
    AgentExit.LOST: StreamInput.LOST,
}
_SIMPLE_INPUTS: Final[dict[type, StreamInput]] = {
    AgentOpened: StreamInput.OPENED,
    AgentRefused: StreamInput.REFUSED,
    AgentDigits: StreamInput.SEND_DIGITS,
    AgentTransfer: StreamInput.TRANSFER,
    LegReferred: StreamInput.REFERRED,
    PlayoutDrained: StreamInput.DRAINED,
    DigitReceived: StreamInput.DIGIT,
    DigitsSent: StreamInput.DIGITS_SENT,
}


def _input_of(event: Event) -> StreamInput | None:
    match event:
        case AgentClosed():
            return _EXITS[event.exit]
        case AgentHangup():
            return StreamInput.LEAVES if event.drain else StreamInput.LEAVES_AT_ONCE
        case TimerFired(Timer.DRAIN):
            return StreamInput.DRAINED
    return _SIMPLE_INPUTS.get(type(event))


_S, _I = StreamState, StreamInput
RULES: Final[dict[tuple[StreamState, StreamInput], tuple[StreamState, Action]]] = {
    (_S.NEW, _I.BEGIN): (_S.CONNECTING, AgentStep._connect),
    (_S.NEW, _I.STOP): (_S.OVER, AgentStep._quiet),
    (_S.CONNECTING, _I.OPENED): (_S.OPEN, AgentStep._opened),
    (_S.CONNECTING, _I.REFUSED): (_S.OVER, AgentStep._refused),
    (_S.CONNECTING, _I.STOP): (_S.OVER, AgentStep._stop_connecting),
    (_S.OPEN, _I.PARTY_UP): (_S.LIVE, AgentStep._start),
    (_S.OPEN, _I.LEAVES): (_S.OVER, AgentStep._leave_early),
    (_S.OPEN, _I.LEAVES_AT_ONCE): (_S.OVER, AgentStep._leave_early),
    (_S.OPEN, _I.LOST): (_S.OVER, AgentStep._leave_early),
    (_S.OPEN, _I.STOP): (_S.OVER, AgentStep._stop_connecting),
    (_S.LIVE, _I.LEAVES): (_S.DRAINING, AgentStep._drain),
    (_S.LIVE, _I.LEAVES_AT_ONCE): (_S.OVER, AgentStep._leave),
    (_S.LIVE, _I.LOST): (_S.OVER, AgentStep._lost),
    (_S.LIVE, _I.DIGIT): (_S.LIVE, AgentStep._digit),
    (_S.LIVE, _I.SEND_DIGITS): (_S.LIVE, AgentStep._send_digits),
    (_S.LIVE, _I.DIGITS_SENT): (_S.LIVE, AgentStep._digits_sent),
    (_S.LIVE, _I.TRANSFER): (_S.LIVE, AgentStep._begin_transfer),
    (_S.LIVE, _I.TRANSFERRED): (_S.OVER, AgentStep._transferred),
    (_S.LIVE, _I.REFERRED): (_S.LIVE, AgentStep._referred),
    (_S.LIVE, _I.REFER_DONE): (_S.OVER, AgentStep._gone_elsewhere),
    (_S.LIVE, _I.STOP): (_S.OVER, AgentStep._stop),
    (_S.DRAINING, _I.LEAVES_AT_ONCE): (_S.OVER, AgentStep._drained),
    (_S.DRAINING, _I.DRAINED): (_S.OVER, AgentStep._drained),
    (_S.DRAINING, _I.STOP): (_S.OVER, AgentStep._stop),
}


def _ignored(state: StreamState, *heeded: StreamInput) -> set[tuple[StreamState, StreamInput]]:
    return {(state, what) for what in StreamInput if what not in heeded}


IGNORED: Final = frozenset(
    _ignored(_S.NEW, _I.BEGIN, _I.STOP)
    # Nothing is heard of an agent before it is connected; a party that answers meanwhile hears silence.
    | _ignored(_S.CONNECTING, _I.OPENED, _I.REFUSED, _I.STOP)
    | _ignored(_S.OPEN, _I.PARTY_UP, _I.LEAVES, _I.LEAVES_AT_ONCE, _I.LOST, _I.STOP)
    | {(_S.LIVE, what) for what in (_I.BEGIN, _I.OPENED, _I.REFUSED, _I.PARTY_UP, _I.DRAINED)}
    # Once it is leaving, an agent has no more say, and its socket may close as it likes.
    | _ignored(_S.DRAINING, _I.LEAVES_AT_ONCE, _I.DRAINED, _I.STOP)
    | _ignored(_S.OVER)
)
