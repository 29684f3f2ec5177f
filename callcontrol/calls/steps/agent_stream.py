"""
A voice agent on the call: connecting, streaming, draining, as a table of states.

The WebSocket is opened while the party waits or rings; a waiting caller is answered when the agent has
accepted the connection, so that nobody is answered into silence. An agent that closes ends its stream after
its queued audio is played, unless it closes with a code that says "at once". A broken connection is retried
for a few seconds, if the customer has enabled that. An agent may have the caller transferred; then the bridge
replaces the stream, also when the agent leaves before the other party has answered.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import IntEnum, auto
from http import HTTPStatus
from typing import Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.agent import (
    DrainAgent,
    OpenAgent,
    StartAgent,
    StopAgent,
    TellAgentDigit,
    TellAgentDigitsSent,
    TellAgentError,
)
from callcontrol.calls.effects.media import PlayRingback, SendDigits, StopAudio
from callcontrol.calls.effects.records import Arm, Disarm, Save
from callcontrol.calls.events import Event
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
    AgentUsage,
)
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.commands import ListenStatus
from callcontrol.calls.events.media import (
    DigitReceived,
    DigitsSent,
    LegHeld,
    PlayoutDrained,
    SpeechEnded,
    SpeechStarted,
)
from callcontrol.calls.events.transfers import LegReferred
from callcontrol.calls.hangup_cause import (
    ALLOTTED_TIMEOUT,
    BALANCE_EXHAUSTED,
    MEDIA_TIMEOUT,
    NORMAL_CLEARING,
    STREAM_DISCONNECTED,
    SYSTEM_SHUTDOWN,
)
from callcontrol.calls.plan import RequestInstructions, stream_info
from callcontrol.calls.steps.agent_controls import AgentControls
from callcontrol.calls.steps.agent_reconnect import ReconnectSchedule
from callcontrol.calls.steps.agent_transfer import AgentTransfers
from callcontrol.calls.steps.base import CallParts, NestedStep
from callcontrol.models import CallStatus
from callcontrol.models.parties import Party
from media.streams import Reconnect, StreamChoice, under_default
from sip.machine import Rules, compile_rules

DRAIN_LIMIT_S: Final = 10.0
"""Limit for playing the queued audio of a leaving agent, in seconds (streaming 1.6)."""


class StreamState(IntEnum):
    """States of an agent's stream, in order."""

    NEW = 0
    CONNECTING = 1
    OPEN = 2
    """The agent is connected and the party is not answered yet."""
    LIVE = 3
    RECONNECTING = 4
    """The connection broke and is being reopened; the only state that returns to an earlier one, ``LIVE``."""
    TRANSFERRED = 5
    """The agent has left the party to a transfer in progress."""
    DRAINING = 6
    OVER = 7


class StreamInput(IntEnum):
    """Inputs of a stream."""

    BEGIN = auto()
    OPENED = auto()
    REFUSED = auto()
    PARTY_UP = auto()
    LEAVES = auto()
    """The agent closed or asked to hang up: its queued audio is played first."""
    LEAVES_AT_ONCE = auto()
    LEAVES_TO_TRANSFER = auto()
    """The agent closed, or its connection broke, while the party is being transferred."""
    BREAKS = auto()
    """The connection broke, and may be reopened."""
    RETRY = auto()
    """The next reconnect attempt is due."""
    LOST = auto()
    """The agent's connection broke for good."""
    DRAINED = auto()
    DIGIT = auto()
    """The party pressed a key."""
    SEND_DIGITS = auto()
    DIGITS_SENT = auto()
    TRANSFER = auto()
    COMMAND = auto()
    """Another command of the agent, or an event it may subscribe to."""
    TRANSFERRED = auto()
    """The second party answered."""
    TRANSFER_FAILED = auto()
    """The target cannot be reached, and no agent is left to talk to."""
    REFERRED = auto()
    """NOTIFY progress of a REFER we sent."""
    REFER_DONE = auto()
    """The REFER has succeeded."""
    STOP = auto()
    """Command: the call ends."""


class AgentStep(NestedStep[StreamState]):
    """The step that connects the call with a voice agent."""

    needs_answer = False

    def __init__(
        self,
        call: CallParts,
        choice: StreamChoice,
        stream_sid: str,
        fallback: RequestInstructions | None = None,
    ) -> None:
        super().__init__(call, StreamState.NEW)
        self._choice = choice = under_default(choice, call.stream_protocol)
        self._sid = stream_sid
        self._last_sid = stream_sid
        """Identifier of the last connected stream; differs from ``_sid`` during a reconnect."""
        self._fallback = fallback
        self._transfer = AgentTransfers(call)
        self._schedule = ReconnectSchedule(choice.max_retries)
        self._controls = AgentControls(call, choice.events)
        self._detail = "stream_hangup"
        self._close_code: int | None = None
        """Close code of the broken connection; 1006 when it had none."""
        self._usage: Counter[str] = Counter()

    @property
    def live(self) -> bool:
        """True while audio flows between the party and its agent."""
        return self.state is StreamState.LIVE

    @property
    def transferring(self) -> bool:
        """True while a transfer of the party is in progress."""
        return self._transfer.pending

    def begin(self) -> Iterator[Effect]:
        """Connect to the agent."""
        yield from self.trigger(StreamInput.BEGIN)

    def party_up(self) -> Iterator[Effect]:
        """Report that the party was answered: audio flows as soon as the agent is connected."""
        yield from self.trigger(StreamInput.PARTY_UP)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        if isinstance(event, AgentUsage):
            self._count(event)
        what = self._input_of(event)
        if what is not None:
            yield from self.trigger(what, event)
        bridge = self._transfer.bridge
        if bridge is not None and not self.over:
            effects = list(bridge.handle(event))
            if bridge.joined:  # the agent's audio stops before the other's starts
                yield from self.trigger(StreamInput.TRANSFERRED)
            yield from effects
            yield from self._transfer.after_bridge(bridge, event)
            if bridge.over:
                yield from self.trigger(StreamInput.TRANSFER_FAILED)

    def listen(self, status: ListenStatus) -> Iterator[Effect]:
        """Set what the agent hears (the party, silence or nothing), as the API commands."""
        yield from self._controls.listen(status)

    def transfer_to(self, party: Party) -> Iterator[Effect]:
        """Transfer the party, as the API commands."""
        if self.live and not self.transferring:
            yield from self._transfer.start(party)

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """End the stream because the call ends, and send the agent the reason."""
        yield from self._transfer.abandon(ending)
        self._detail = _detail_of(ending)
        yield from self.trigger(StreamInput.STOP)

    def abort(self) -> Iterator[Effect]:
        """End the stream because the call goes on without it."""
        yield from self._transfer.abandon()
        self._detail = "transferred"
        yield from self._controls.end()
        if self.state is StreamState.TRANSFERRED:
            yield StopAudio(self.call.a_leg.id)
        yield from self.trigger(StreamInput.STOP)

    def _input_of(self, event: Event) -> StreamInput | None:
        if isinstance(event, AgentClosed) and self.state is StreamState.LIVE:
            if event.exit is not AgentExit.AT_ONCE and self._transfer.pending:
                return StreamInput.LEAVES_TO_TRANSFER
            if event.exit is AgentExit.LOST and not event.final and self._schedule.may_begin(self.call.now_s):
                return StreamInput.BREAKS
        return _input_of(event)

    # --- connecting ---------------------------------------------------------------------------------------

    def _connect(self, _: Event | None) -> Iterator[Effect]:
        self._show("connecting")
        yield OpenAgent(self._choice, self._sid)

    def _opened(self, _: Event | None) -> Iterator[Effect]:
        """Answer a waiting caller; a party we dial answers by itself, now or later."""
        yield from self.call.answer()
        if self.call.a_leg.up:
            yield from self.trigger(StreamInput.PARTY_UP)

    def _start(self, _: Event | None) -> Iterator[Effect]:
        yield StartAgent(self.call.a_leg.id)
        yield from self._controls.begin()
        self._schedule.live(self.call.now_s)
        yield self._saved("streaming", "stream.started")

    def _refused(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, AgentRefused)
        details = {"reason": event.reason, "http_status": event.http_status, "attempts": event.attempts}
        yield from self._not_opened({**details, **_error_of(event)})

    def _not_opened(self, details: Mapping[str, object]) -> Iterator[Effect]:
        """Report the failure; the customer's fallback decides how the call goes on, if there is one."""
        self.ending = Ending(CallStatus.FAILED, STREAM_DISCONNECTED, "stream")
        self._fall_back("could not be reached", str(details["reason"]), details["http_status"])
        yield self._saved("failed", "stream.failed", details)

    def _fall_back(self, what: str, reason: str, status: object = None) -> None:
        if self._fallback is not None:
            why = f"the voice agent {what}: {reason}" + (f" {status}" if status else "")
            self.call.set_next_steps((self._fallback.after_failure(self._choice.url, reason, why),))

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

    def _command(self, event: Event | None) -> Iterator[Effect]:
        assert event is not None
        yield from self._controls.handle(event)

    # --- reconnecting -------------------------------------------------------------------------------------

    def _connection_lost(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, AgentClosed)
        self._schedule.broken(self.call.now_s)
        self._close_code = event.code
        yield StopAgent("stopped", "stream_hangup")
        yield from self._controls.disconnected()
        yield self._saved("reconnecting", "stream.reconnecting", {"close_code": event.code})
        self._last_sid, self._sid = self._sid, self.call.next_stream_sid()
        yield from self._wait()

    def _wait(self) -> Iterator[Effect]:
        delay_s = self._schedule.delay_s(self.call.now_s)
        if delay_s is None:
            yield from self.trigger(StreamInput.LOST)
        else:
            yield Arm(Timer.RECONNECT, delay_s)

    def _reconnect(self, _: Event | None) -> Iterator[Effect]:
        budget_s = self._schedule.begin(self.call.now_s)
        reconnect = Reconnect(self._schedule.attempt, self._last_sid)
        yield OpenAgent(self._choice, self._sid, reconnect, budget_s)

    def _attempt_failed(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, AgentRefused)
        status = event.http_status
        is_final = event.reason in _FINAL_REASONS or (status is not None and status < 500)
        # A vendor's limit of sessions or requests may let the next attempt pass.
        passes = self._choice.model is not None and status == HTTPStatus.TOO_MANY_REQUESTS
        if is_final and not passes:
            yield from self.trigger(StreamInput.LOST)
        else:
            yield from self._wait()

    def _reconnected(self, _: Event | None) -> Iterator[Effect]:
        self._show("streaming")
        self._schedule.live(self.call.now_s)
        yield from self._controls.reconnected()
        yield StartAgent(self.call.a_leg.id)
        yield from self._controls.restore()
        details = {
            "reconnect": True,
            "attempt": self._schedule.attempt,
            "previous_stream_sid": self._last_sid,
        }
        yield self._saved("streaming", "stream.started", details)

    def _reconnect_failed(self, event: Event | None) -> Iterator[Effect]:
        self._sid = self._last_sid
        yield from self._lost(event)

    # --- leaving ------------------------------------------------------------------------------------------

    def _drain(self, event: Event | None) -> Iterator[Effect]:
        self._heed_end(event)
        yield from self._transfer.abandon()
        yield from self._controls.end()
        yield Arm(Timer.DRAIN, DRAIN_LIMIT_S)
        yield DrainAgent(self.call.a_leg.id)

    def _drained(self, event: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.DRAIN)
        yield from self._leave(event)

    def _leave(self, event: Event | None) -> Iterator[Effect]:
        self._heed_end(event)
        yield from self._transfer.abandon()
        yield from self._controls.end()
        self.ending = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "stream")
        yield StopAgent("stopped", "stream_hangup")
        yield self._saved("stopped", "stream.stopped", {"reason": "stream_hangup"})

    def _heed_end(self, event: Event | None) -> None:
        """Drop the rest of the plan if the agent ends the call, and not its stream alone."""
        if isinstance(event, AgentHangup) and event.ends_call:
            self.call.set_next_steps(())

    def _leave_early(self, _: Event | None) -> Iterator[Effect]:
        """The agent left before the party answered."""
        yield StopAgent("stopped", "stream_hangup")
        yield from self._not_opened({"reason": "dropped", "http_status": None, "attempts": 1})

    def _lost(self, event: Event | None) -> Iterator[Effect]:
        yield from self._transfer.abandon()
        yield from self._controls.end()
        self.ending = Ending(CallStatus.COMPLETED, STREAM_DISCONNECTED, "stream")
        yield StopAgent("stopped", "stream_hangup")
        if isinstance(event, AgentClosed):
            self._close_code = event.code
        error = _error_of(event)
        details = {
            "reason": "rejected" if error else "dropped",
            "http_status": None,
            "attempts": 1 + self._schedule.attempt,
            "close_code": self._close_code,
            **error,
        }
        if self._choice.model is not None:
            # A server of the customer knows that it left; of a vendor's model only this request tells it.
            self._fall_back("was lost", str(details["reason"]))
        yield self._saved("failed", "stream.failed", details)

    def _stop_connecting(self, _: Event | None) -> Iterator[Effect]:
        yield from self._tell_stop()
        self._mark("stopped")

    def _stop(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.DRAIN)
        yield Disarm(Timer.RECONNECT)
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
        yield from self._transfer.ask(event)

    def _transferred(self, _: Event | None) -> Iterator[Effect]:
        self.successor = self._transfer.bridge
        yield from self._controls.end()
        yield from self._transfer.done()
        yield StopAgent("stopped", "transferred")
        yield self._saved("stopped", "stream.stopped", {"reason": "transferred"})
        yield self._transfer.announcement()

    def _referred(self, event: Event | None) -> Iterator[Effect]:
        """Handle NOTIFY progress of a REFER we sent."""
        assert isinstance(event, LegReferred)
        asked = self._transfer.pending
        yield from self._transfer.referred(event)
        if asked and not self._transfer.pending:
            done = event.status < 300
            yield from self.trigger(StreamInput.REFER_DONE if done else StreamInput.TRANSFER_FAILED)

    def _referred_away(self, event: Event | None) -> Iterator[Effect]:
        """End the call: the party talks to someone else without us."""
        self.ending = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "stream")
        yield from self._transferred(event)

    def _leave_to_transfer(self, _: Event | None) -> Iterator[Effect]:
        """
        Continue the transfer without the agent.

        The agent's queued audio is still played, and the party hears ringing after it.
        """
        yield from self._controls.end()
        yield PlayRingback(self.call.a_leg.id)

    def _transfer_completed(self, event: Event | None) -> Iterator[Effect]:
        yield StopAudio(self.call.a_leg.id)
        yield from self._transferred(event)

    def _refer_completed(self, event: Event | None) -> Iterator[Effect]:
        yield StopAudio(self.call.a_leg.id)
        yield from self._referred_away(event)

    def _transfer_failed(self, _: Event | None) -> Iterator[Effect]:
        self.ending = Ending(CallStatus.COMPLETED, self._transfer.cause, "stream")
        yield StopAudio(self.call.a_leg.id)
        yield StopAgent("stopped", "stream_hangup")
        yield self._saved("stopped", "stream.stopped", {"reason": "stream_hangup"})

    # --- the record ---------------------------------------------------------------------------------------

    def _show(self, state: str) -> None:
        self.call.record.stream = stream_info(self._choice, self._sid, state)
        self._count()

    def _count(self, event: AgentUsage | None = None) -> None:
        """Add what the vendor of a speech model counted."""
        self._usage.update(dict(event.counts) if event is not None else {})
        if self._usage and self.call.record.stream is not None:
            self.call.record.stream.usage = dict(self._usage)

    def _mark(self, state: str) -> None:
        if self.call.record.stream is not None:
            self.call.record.stream.state = state

    def _saved(self, state: str, event: str, details: Mapping[str, object] | None = None) -> Save:
        self._mark(state)
        return Save(event, {"stream_sid": self._sid, **(details or {})})


def _error_of(event: Event | None) -> dict[str, object]:
    """The error of a speech model's vendor for ``stream.failed``; empty without one."""
    error = event.error if isinstance(event, AgentClosed | AgentRefused) else None
    return {} if error is None else {"error": {"code": error.code, "message": error.message}}


_FINAL_REASONS: Final = ("rejected", "key")
_DETAILS_OF_CAUSE: Final = {
    ALLOTTED_TIMEOUT: "max_duration",
    BALANCE_EXHAUSTED: "max_duration",
    MEDIA_TIMEOUT: "media_timeout",
    SYSTEM_SHUTDOWN: "server_shutdown",
}


def _detail_of(ending: Ending) -> str:
    """The reason in the agent's ``stop`` event (streaming 1.7)."""
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
    AgentHold: StreamInput.COMMAND,
    AgentMute: StreamInput.COMMAND,
    AgentRecord: StreamInput.COMMAND,
    AgentTranscript: StreamInput.COMMAND,
    SpeechStarted: StreamInput.COMMAND,
    SpeechEnded: StreamInput.COMMAND,
    LegHeld: StreamInput.COMMAND,
}


def _input_of(event: Event) -> StreamInput | None:
    match event:
        case AgentClosed():
            return _EXITS[event.exit]
        case AgentHangup():
            return StreamInput.LEAVES if event.drain else StreamInput.LEAVES_AT_ONCE
        case TimerFired(Timer.DRAIN):
            return StreamInput.DRAINED
        case TimerFired(Timer.RECONNECT):
            return StreamInput.RETRY
    return _SIMPLE_INPUTS.get(type(event))


_S, _I = StreamState, StreamInput
RULES: Final[Rules[StreamState, StreamInput]] = {
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
    (_S.LIVE, _I.BREAKS): (_S.RECONNECTING, AgentStep._connection_lost),
    (_S.LIVE, _I.LEAVES_TO_TRANSFER): (_S.TRANSFERRED, AgentStep._leave_to_transfer),
    (_S.LIVE, _I.DIGIT): (_S.LIVE, AgentStep._digit),
    (_S.LIVE, _I.SEND_DIGITS): (_S.LIVE, AgentStep._send_digits),
    (_S.LIVE, _I.DIGITS_SENT): (_S.LIVE, AgentStep._digits_sent),
    (_S.LIVE, _I.COMMAND): (_S.LIVE, AgentStep._command),
    (_S.LIVE, _I.TRANSFER): (_S.LIVE, AgentStep._begin_transfer),
    (_S.LIVE, _I.TRANSFERRED): (_S.OVER, AgentStep._transferred),
    (_S.LIVE, _I.REFERRED): (_S.LIVE, AgentStep._referred),
    (_S.LIVE, _I.REFER_DONE): (_S.OVER, AgentStep._referred_away),
    (_S.LIVE, _I.STOP): (_S.OVER, AgentStep._stop),
    (_S.RECONNECTING, _I.RETRY): (_S.RECONNECTING, AgentStep._reconnect),
    (_S.RECONNECTING, _I.OPENED): (_S.LIVE, AgentStep._reconnected),
    (_S.RECONNECTING, _I.REFUSED): (_S.RECONNECTING, AgentStep._attempt_failed),
    (_S.RECONNECTING, _I.LOST): (_S.OVER, AgentStep._reconnect_failed),
    (_S.RECONNECTING, _I.STOP): (_S.OVER, AgentStep._stop),
    (_S.TRANSFERRED, _I.TRANSFERRED): (_S.OVER, AgentStep._transfer_completed),
    (_S.TRANSFERRED, _I.REFERRED): (_S.TRANSFERRED, AgentStep._referred),
    (_S.TRANSFERRED, _I.REFER_DONE): (_S.OVER, AgentStep._refer_completed),
    (_S.TRANSFERRED, _I.TRANSFER_FAILED): (_S.OVER, AgentStep._transfer_failed),
    (_S.TRANSFERRED, _I.STOP): (_S.OVER, AgentStep._stop),
    (_S.DRAINING, _I.LEAVES_AT_ONCE): (_S.OVER, AgentStep._drained),
    (_S.DRAINING, _I.DRAINED): (_S.OVER, AgentStep._drained),
    (_S.DRAINING, _I.STOP): (_S.OVER, AgentStep._stop),
}


def _ignored(state: StreamState, *handled: StreamInput) -> set[tuple[StreamState, StreamInput]]:
    return {(state, what) for what in StreamInput if what not in handled}


IGNORED: Final = frozenset(
    _ignored(_S.NEW, _I.BEGIN, _I.STOP)
    # An agent sends nothing before it is connected; a party that answers meanwhile hears silence.
    | _ignored(_S.CONNECTING, _I.OPENED, _I.REFUSED, _I.STOP)
    | _ignored(_S.OPEN, _I.PARTY_UP, _I.LEAVES, _I.LEAVES_AT_ONCE, _I.LOST, _I.STOP)
    | {(_S.LIVE, what) for what in (_I.BEGIN, _I.OPENED, _I.REFUSED, _I.PARTY_UP, _I.DRAINED, _I.RETRY)}
    # A transfer that fails leaves the party with its agent.
    | {(_S.LIVE, _I.TRANSFER_FAILED)}
    # Speech and keys of the party are lost while its agent is disconnected.
    | _ignored(_S.RECONNECTING, _I.RETRY, _I.OPENED, _I.REFUSED, _I.LOST, _I.STOP)
    | _ignored(_S.TRANSFERRED, _I.TRANSFERRED, _I.REFERRED, _I.REFER_DONE, _I.TRANSFER_FAILED, _I.STOP)
    # A leaving agent's commands are ignored, and its socket may close in any way.
    | _ignored(_S.DRAINING, _I.LEAVES_AT_ONCE, _I.DRAINED, _I.STOP)
    | _ignored(_S.OVER)
)

AgentStep.ROWS = compile_rules(RULES)
