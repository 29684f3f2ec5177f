"""The voice agent of one call: opens its stream, posts its commands, and notifies it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final

from callcontrol.aio.tokens import utc_now
from callcontrol.calls.aio.media.audio import Ears, LegAudio
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects import agent as do
from callcontrol.calls.events import Event
from callcontrol.calls.events import agent as events
from callcontrol.calls.events.agent import AgentClosed, AgentExit, AgentOpened, AgentRefused
from callcontrol.calls.events.commands import ListenStatus
from callcontrol.calls.records.metrics import StreamMetrics
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DestinationForbidden
from callcontrol.models import Account, CallRecord
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_stream import AgentStream
from media.aio.tap import AgentTap
from media.streams import AgentClosed as StreamClosed
from media.streams import (
    AgentDtmf,
    AgentEvent,
    AgentHangup,
    AgentHold,
    AgentMute,
    AgentRecord,
    AgentTranscript,
    AgentTransfer,
    StreamChoice,
    StreamConnectError,
    StreamSetup,
)

log = logging.getLogger(__name__)

_SILENCE: Final = {"l16": b"\x00", "mulaw": b"\xff", "alaw": b"\xd5"}
"""The byte for silence in each encoding."""

Post = Callable[[Event], None]
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class AgentLink:
    """
    The stream of a call to its agent; one at a time.

    ``spawn`` runs slow work as a task of the call. Events of a stopped stream are not posted.
    """

    def __init__(
        self,
        destinations: Destinations,
        account: Account,
        post: Post,
        spawn: Spawn,
        settings: AgentStreamSettings | None = None,
        metrics: StreamMetrics | None = None,
    ) -> None:
        self._destinations = destinations
        self._settings = settings or AgentStreamSettings()
        self._metrics = metrics or StreamMetrics()
        self._account = account
        self._post = post
        self._spawn = spawn
        self._stream: AgentStream | None = None
        self._opening: asyncio.Task[None] | None = None
        self._listening: ListenStatus = "resume"
        self.choice: StreamChoice | None = None
        """Stream settings of the agent, while one is connected."""

    def open(self, effect: do.OpenAgent, record: CallRecord) -> None:
        """Connect to the agent; ``AgentOpened`` or ``AgentRefused`` follows."""
        choice = effect.choice
        # The start event of an outbound call's stream is sent when the party has answered.
        secret, former_secret = self._account.stream_secrets(utc_now())
        announce = record.direction == "inbound" or record.answered_at is not None
        setup = StreamSetup(
            url=choice.url,
            stream_sid=effect.stream_sid,
            call_sid=record.call_sid,
            account_sid=record.account_sid,
            from_=record.from_,
            to=record.to,
            direction=record.direction,
            dialect=choice.protocol,
            encoding=choice.encoding,
            sample_rate=choice.sample_rate,
            custom_parameters=choice.custom_parameters,
            auth=choice.auth,
            track=choice.track,
            sip_call_id=record.sip_call_id or "",
            secret=secret,
            previous_secret=former_secret,
            reconnect=effect.reconnect,
        )
        settings = self._settings
        if effect.budget_s is not None:
            dial = replace(settings.dial, budget_s=effect.budget_s, offsets_s=(0.0,))
            settings = replace(settings, dial=dial)
        self._opening = self._spawn(self._open(setup, choice, announce, settings))

    async def _open(
        self, setup: StreamSetup, choice: StreamChoice, announce: bool, settings: AgentStreamSettings
    ) -> None:
        try:
            stream = await AgentStream.connect(
                setup,
                resolve=self._resolve,
                on_event=self._on_event,
                settings=settings,
                announce=announce,
            )
        except StreamConnectError as error:
            log.info("agent not reached: %s", error, extra={"call_sid": setup.call_sid})
            self._metrics.connects[error.reason] += 1
            reason = "connect" if error.reason == "forbidden" else error.reason
            self._post(AgentRefused(reason, error.http_status, error.attempts))
            return
        self._metrics.connects["connected"] += 1
        self._metrics.open += 1
        self._stream, self._opening = stream, None
        self.choice, self._listening = choice, "resume"
        self._post(AgentOpened())

    async def _resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        try:
            return await self._destinations.resolve(host, port, tls)
        except DestinationForbidden as refusal:
            raise StreamConnectError("forbidden", detail=refusal.message) from None

    @property
    def ears(self) -> Ears:
        """Receivers of audio for the agent; with track ``both`` also of what its party hears."""
        stream, choice = self._stream, self.choice
        assert stream is not None and choice is not None
        said: Callable[[bytes], None] = stream.send_audio
        heard: Callable[[bytes], None] = partial(stream.send_audio, track="outbound")
        if self._listening == "pause":
            said, heard = stream.skip_audio, partial(stream.skip_audio, track="outbound")
        elif self._listening == "silence":
            said, heard = _silenced(said, choice), _silenced(heard, choice)
        return Ears(said, heard if choice.track == "both" else None)

    def listen(self, status: ListenStatus) -> None:
        """Set what the agent hears; ``ears`` change with it."""
        self._listening = status

    def start(self, tap: AgentTap) -> None:
        """Start the flow of audio."""
        if self._stream is not None:
            self._stream.start(tap)

    def stop(self, reason: str, detail: str) -> None:
        """Send the reason of the end and close the stream, or cancel the connection attempt."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        stream, self._stream, self.choice = self._stream, None, None
        if stream is not None:
            self._metrics.open -= 1
            self._spawn(self._end(stream, reason, detail))

    async def _end(self, stream: AgentStream, reason: str, detail: str) -> None:
        try:
            await stream.stop(reason, detail)
        finally:
            self._metrics.frames_dropped += stream.frames_dropped

    def tell_digit(self, effect: do.TellAgentDigit) -> None:
        """Notify the agent of a pressed key."""
        if self._stream is not None:
            self._stream.send_dtmf(effect.digit, effect.duration_ms)

    def tell_digits_sent(self, effect: do.TellAgentDigitsSent) -> None:
        """Notify the agent that its digits are sent."""
        if self._stream is not None:
            self._stream.accept(AgentDtmf(effect.digits))

    def tell_done(self, effect: do.TellAgentDone) -> None:
        """Notify the agent that a command was carried out."""
        if self._stream is not None:
            self._stream.accept(effect.command)

    def tell_speech(self, effect: do.TellAgentSpeech) -> None:
        """Notify the agent that the party talks, or is silent again."""
        if self._stream is not None:
            self._stream.notify_speech(effect.active)

    def tell_hold(self, effect: do.TellAgentHold) -> None:
        """Notify the agent that the party has put us on hold, or has resumed."""
        if self._stream is not None:
            self._stream.notify_hold(effect.active)

    def tell_mark(self, name: str, cleared: bool) -> None:
        """Notify the agent that a mark was reached, or cleared."""
        if self._stream is not None:
            self._stream.mark_reached(name, cleared)

    def tell_overflow(self, dropped_ms: int) -> None:
        """Notify the agent that audio was dropped."""
        if self._stream is not None:
            self._stream.playout_overflow(dropped_ms)

    def tell_level(self, full: bool, level_ms: int) -> None:
        """Notify the agent that it should pause sending, or may resume, with the queued length."""
        if self._stream is not None:
            self._stream.notify_buffer(full, level_ms)

    def tell_transfer(self, effect: do.TellAgentTransfer) -> None:
        """Notify the agent of the progress of its transfer."""
        if self._stream is not None:
            self._stream.transfer_status(effect.status, effect.sip_status, effect.cause)

    def tell_error(self, effect: do.TellAgentError) -> None:
        """Notify the agent that its command ``ref`` was not carried out."""
        if self._stream is not None:
            self._stream.refuse(effect.ref, effect.message, effect.code)

    def _on_event(self, event: AgentEvent) -> None:
        made = _event_of(event)
        if made is not None:
            self._post(made)


def _silenced(send: Callable[[bytes], None], choice: StreamChoice) -> Callable[[bytes], None]:
    level = _SILENCE[choice.encoding]
    return lambda frames: send(level * len(frames))


def _event_of(event: AgentEvent) -> Event | None:
    """Translate an agent's event for the call; None for audio, marks and clears, which the stream handles."""
    match event:
        case StreamClosed():
            return AgentClosed(_exit_of(event), event.code)
        case AgentHangup():
            return events.AgentHangup(event.drain)
        case AgentDtmf():
            return events.AgentDigits(event.digits, event.duration_ms, event.gap_ms)
        case AgentTransfer():
            return events.AgentTransfer(
                event.to, event.mode, event.caller_id, float(event.timeout_s), event.headers
            )
        case AgentHold():
            return events.AgentHold(event.active)
        case AgentMute():
            return events.AgentMute(event.active)
        case AgentRecord():
            return events.AgentRecord(event.action)
        case AgentTranscript():
            return events.AgentTranscript(event.role, event.text, event.final, event.start_ms, event.end_ms)
    return None


def _exit_of(event: StreamClosed) -> AgentExit:
    if event.abnormal:
        return AgentExit.LOST
    return AgentExit.NORMAL if event.drain else AgentExit.AT_ONCE


class AgentPerformer:
    """Performs the agent effects of one call."""

    def __init__(self, record: CallRecord, audio: LegAudio, agent: AgentLink) -> None:
        self._record = record
        self._audio = audio
        self._agent = agent

    def _open(self, effect: do.OpenAgent) -> None:
        self._agent.open(effect, self._record)

    def _start(self, effect: do.StartAgent) -> None:
        if self._agent.choice is None:
            return
        tap = self._audio.open_tap(effect.leg, self._agent.choice, self._agent.ears)
        if tap is not None:
            self._agent.start(tap)

    def _move(self, effect: do.MoveAgent) -> None:
        if self._agent.choice is not None:
            self._audio.close_taps()
            self._start(do.StartAgent(effect.leg))

    def _listen(self, effect: do.ListenAgent) -> None:
        self._agent.listen(effect.status)
        if self._agent.choice is not None:
            self._audio.redirect_taps(self._agent.ears)

    def _drain(self, effect: do.DrainAgent) -> None:
        self._audio.drain(effect.leg)

    def _stop(self, effect: do.StopAgent) -> None:
        self._agent.stop(effect.reason, effect.detail)
        self._audio.close_taps()


AGENT_EFFECTS: Final[dict[type[Effect], Callable[[AgentPerformer, Any], None]]] = {
    do.OpenAgent: AgentPerformer._open,
    do.StartAgent: AgentPerformer._start,
    do.MoveAgent: AgentPerformer._move,
    do.ListenAgent: AgentPerformer._listen,
    do.DrainAgent: AgentPerformer._drain,
    do.StopAgent: AgentPerformer._stop,
}
AGENT_NOTIFICATIONS: Final[dict[type[Effect], Callable[[AgentLink, Any], None]]] = {
    do.TellAgentDigit: AgentLink.tell_digit,
    do.TellAgentDigitsSent: AgentLink.tell_digits_sent,
    do.TellAgentDone: AgentLink.tell_done,
    do.TellAgentSpeech: AgentLink.tell_speech,
    do.TellAgentHold: AgentLink.tell_hold,
    do.TellAgentTransfer: AgentLink.tell_transfer,
    do.TellAgentError: AgentLink.tell_error,
}
