"""The voice agent of one call: opens its stream, posts its commands, and notifies it."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from callcontrol.aio.tokens import unix_s, utc_now
from callcontrol.calls.aio.context import ActiveCall, EffectPerformer
from callcontrol.calls.aio.model_calls import created
from callcontrol.calls.aio.models import ModelAgent
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects import agent as do
from callcontrol.calls.events import Event
from callcontrol.calls.events import agent as events
from callcontrol.calls.events.agent import AgentClosed, AgentExit, AgentOpened, AgentRefused, VendorError
from callcontrol.calls.model_tools import NAME_OF_REF
from callcontrol.errors import DestinationForbidden
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_stream import AgentStream
from media.streams import (
    AgentClear,
    AgentDtmf,
    AgentEvent,
    AgentFailed,
    AgentHangup,
    AgentHold,
    AgentMark,
    AgentMarkReached,
    AgentMute,
    AgentRecord,
    AgentToolCall,
    AgentTranscript,
    AgentTransfer,
    AgentUsage,
    StreamChoice,
    StreamConnectError,
    StreamSetup,
)
from media.streams import AgentClosed as StreamClosed
from media.types import MarkReached, PlayoutLevel, PlayoutOverflow

log = logging.getLogger(__name__)

_MAX_MARK_CHARS: Final = 64
"""Characters of the name of a mark in the journal; agents may give it more."""


class AgentPerformer(EffectPerformer):
    """
    Performs the agent effects of one call: keeps the stream to its agent, one at a time.

    Events of a stopped stream are not posted.
    """

    def __init__(self, call: ActiveCall) -> None:
        context = call.context
        self._destinations = context.services.destinations
        self._settings = context.settings.streams
        self._metrics = context.metrics.streams
        self._record = call.record
        self._journal = context.services.calls.journal
        self._account = call.account
        self._audio = call.media.audio
        self._post = call.mailbox.post
        self._spawn = call.mailbox.spawn
        self._stream: AgentStream | None = None
        self._opening: asyncio.Task[None] | None = None
        self._choice: StreamChoice | None = None
        """Stream settings of the agent, while one is connected."""
        self._model = ModelAgent(
            context.services.models, call.record, partial(_post_event, self._post), call.mailbox.spawn
        )
        call.media.tell_agent = self._tell_queue

    def release(self) -> None:
        """Close the stream: the call is over."""
        self._close("stopped", "stream_hangup")

    def _open(self, effect: do.OpenAgent) -> None:
        """Connect to the agent; ``AgentOpened`` or ``AgentRefused`` follows."""
        choice, record = effect.choice, self._record
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
            limit_s = min(settings.model_timeout_s, effect.budget_s)
            settings = replace(settings, dial=dial, model_timeout_s=limit_s)
        self._opening = self._spawn(self._connect(setup, choice, announce, settings))

    async def _connect(
        self, setup: StreamSetup, choice: StreamChoice, announce: bool, settings: AgentStreamSettings
    ) -> None:
        try:
            if choice.model is not None:
                continues = setup.reconnect is not None
                session = await self._model.session(choice.model, continues=continues)
                setup = replace(setup, model=session)
                setup, settings = await created(setup, session, self._destinations, settings)
            stream = await AgentStream.connect(
                setup,
                resolve=self._resolve,
                on_event=self._on_event,
                settings=settings,
                announce=announce,
                carrier=self._audio.carrier,
            )
        except StreamConnectError as error:
            log.info("agent not reached: %s", error, extra={"call_sid": setup.call_sid})
            self._metrics.connects[error.reason] += 1
            reason = "connect" if error.reason == "forbidden" else error.reason
            self._post(AgentRefused(reason, error.http_status, error.attempts, _vendor_error(error.error)))
            return
        self._metrics.connects["connected"] += 1
        self._metrics.open += 1
        self._stream, self._opening = stream, None
        self._choice = choice
        self._post(AgentOpened())

    async def _resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        try:
            return await self._destinations.resolve(host, port, tls)
        except DestinationForbidden as refusal:
            raise StreamConnectError("forbidden", detail=refusal.message) from None

    def _start(self, effect: do.StartAgent) -> None:
        """Start the flow of audio."""
        stream, choice = self._stream, self._choice
        if choice is None or stream is None:
            return
        heard = partial(stream.send_audio, track="outbound") if choice.track == "both" else None
        tap = self._audio.open_tap(effect.leg, choice, stream.send_audio, heard)
        if tap is not None:
            stream.start(tap)

    def _move(self, effect: do.MoveAgent) -> None:
        if self._choice is not None:
            self._audio.close_taps()
            self._start(do.StartAgent(effect.leg))

    def _listen(self, effect: do.ListenAgent) -> None:
        if self._stream is not None:
            self._stream.listen(effect.status)

    def _drain(self, effect: do.DrainAgent) -> None:
        self._audio.drain(effect.leg)

    def _stop(self, effect: do.StopAgent) -> None:
        self._close(effect.reason, effect.detail)
        self._audio.close_taps()

    def _close(self, reason: str, detail: str) -> None:
        """Send the reason of the end and close the stream, or cancel the connection attempt."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        stream, self._stream, self._choice = self._stream, None, None
        if stream is not None:
            self._metrics.open -= 1
            self._model.left(stream)
            self._spawn(self._end(stream, reason, detail))

    async def _end(self, stream: AgentStream, reason: str, detail: str) -> None:
        try:
            await stream.stop(reason, detail)
        finally:
            self._metrics.frames_dropped += stream.frames_dropped

    def _tell_digit(self, effect: do.TellAgentDigit) -> None:
        """Notify the agent of a pressed key."""
        if self._stream is not None:
            self._stream.send_dtmf(effect.digit, effect.duration_ms)

    def _tell_digits_sent(self, effect: do.TellAgentDigitsSent) -> None:
        """Notify the agent that its digits are sent."""
        if self._stream is not None:
            self._stream.accept(AgentDtmf(effect.digits))
            self._model.done("send_digits", {"sent": effect.digits})

    def _tell_done(self, effect: do.TellAgentDone) -> None:
        """Notify the agent that a command was carried out."""
        if self._stream is not None:
            self._stream.accept(effect.command)
            if isinstance(effect.command, AgentHold):
                self._model.done("hold", {"on_hold": effect.command.active})

    def _tell_speech(self, effect: do.TellAgentSpeech) -> None:
        """Notify the agent that the party talks, or is silent again."""
        if self._stream is not None:
            self._stream.notify_speech(effect.active)

    def _tell_hold(self, effect: do.TellAgentHold) -> None:
        """Notify the agent that the party has put us on hold, or has resumed."""
        if self._stream is not None:
            self._stream.notify_hold(effect.active)

    def _tell_queue(self, event: MarkReached | PlayoutOverflow | PlayoutLevel) -> None:
        """Notify the agent that a mark was reached, audio was dropped, or it should pause or may resume."""
        stream = self._stream
        if stream is None:
            return
        match event:
            case MarkReached():
                stream.mark_reached(event.name, event.cleared)
            case PlayoutOverflow():
                stream.playout_overflow(event.dropped_ms)
            case PlayoutLevel():
                stream.notify_buffer(event.state == "xoff", event.level_ms)

    def _tell_transfer(self, effect: do.TellAgentTransfer) -> None:
        """Notify the agent of the progress of its transfer."""
        if self._stream is not None:
            self._stream.transfer_status(effect.status, effect.sip_status, effect.cause)
            if effect.status == "failed":
                told = {
                    "error": "the transfer failed",
                    "sip_status": effect.sip_status,
                    "cause": effect.cause,
                }
                self._model.done("transfer", told, is_error=True)

    def _tell_error(self, effect: do.TellAgentError) -> None:
        """Notify the agent that its command ``ref`` was not carried out."""
        if self._stream is not None:
            self._stream.refuse(effect.ref, effect.message, effect.code)
            self._model.done(NAME_OF_REF.get(effect.ref, ""), {"error": effect.message}, is_error=True)

    def _on_event(self, event: AgentEvent) -> None:
        match event:
            case AgentToolCall():
                if self._stream is not None:
                    self._model.use(self._stream, event)
            case AgentMark(name=name):
                self._note("agent.mark", name)
            case AgentMarkReached(name=name, cleared=cleared):
                self._note("mark.cleared" if cleared else "mark.played", name)
            case AgentClear():
                self._note("agent.clear")
            case _:
                _post_event(self._post, event)

    def _note(self, name: str, mark: str | None = None) -> None:
        """Note a mark, or that the agent took its audio back, in the journal of the call."""
        details = {} if mark is None else {"name": mark[:_MAX_MARK_CHARS]}
        self._journal.note(self._record.call_sid, unix_s(), "mark", name, details)


def _post_event(post: Callable[[Event], None], event: AgentEvent) -> None:
    made = _event_of(event)
    if made is not None:
        post(made)


def _event_of(event: AgentEvent) -> Event | None:
    """Translate an agent's event for the call; None for audio, marks and clears, which the stream handles."""
    match event:
        case StreamClosed():
            final = event.error is not None and not event.error.may_continue
            return AgentClosed(_exit_of(event), event.code, _vendor_error(event.error), final)
        case AgentUsage():
            return events.AgentUsage(event.counts)
        case AgentHangup():
            return events.AgentHangup(event.drain, event.ends_call)
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


def _vendor_error(error: AgentFailed | None) -> VendorError | None:
    return None if error is None else VendorError(error.code, error.message)


def _exit_of(event: StreamClosed) -> AgentExit:
    if event.abnormal:
        return AgentExit.LOST
    return AgentExit.NORMAL if event.drain else AgentExit.AT_ONCE


AGENT_EFFECTS: Final[dict[type[Effect], Callable[[AgentPerformer, Any], None]]] = {
    do.OpenAgent: AgentPerformer._open,
    do.StartAgent: AgentPerformer._start,
    do.MoveAgent: AgentPerformer._move,
    do.ListenAgent: AgentPerformer._listen,
    do.DrainAgent: AgentPerformer._drain,
    do.StopAgent: AgentPerformer._stop,
    do.TellAgentDigit: AgentPerformer._tell_digit,
    do.TellAgentDigitsSent: AgentPerformer._tell_digits_sent,
    do.TellAgentDone: AgentPerformer._tell_done,
    do.TellAgentSpeech: AgentPerformer._tell_speech,
    do.TellAgentHold: AgentPerformer._tell_hold,
    do.TellAgentTransfer: AgentPerformer._tell_transfer,
    do.TellAgentError: AgentPerformer._tell_error,
}
