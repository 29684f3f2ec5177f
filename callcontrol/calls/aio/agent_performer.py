"""Performs the agent effects of a call: opening its stream, linking it with a leg, notifying it."""

from collections.abc import Callable
from typing import Any, Final

from callcontrol.calls import effects as do
from callcontrol.calls.aio.agent import AgentLink
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.models import CallRecord


class AgentPerformer:
    """Performs the agent effects of one call."""

    def __init__(self, record: CallRecord, media: MediaLegs, agent: AgentLink) -> None:
        self._record = record
        self._media = media
        self._agent = agent

    def performs(self, effect: Any) -> bool:
        """True when this performer handles an effect."""
        return type(effect) in PERFORMERS

    def perform(self, effect: Any) -> None:
        """Perform one effect."""
        PERFORMERS[type(effect)](self, effect)

    def _open(self, effect: do.OpenAgent) -> None:
        self._agent.open(effect, self._record)

    def _start(self, effect: do.StartAgent) -> None:
        if self._agent.choice is None:
            return
        tap = self._media.audio.open_tap(effect.leg, self._agent.choice, self._agent.ears)
        if tap is not None:
            self._agent.start(tap)

    def _move(self, effect: do.MoveAgent) -> None:
        if self._agent.choice is not None:
            self._media.audio.close_taps()
            self._start(do.StartAgent(effect.leg))

    def _listen(self, effect: do.ListenAgent) -> None:
        self._agent.listen(effect.status)
        if self._agent.choice is not None:
            self._media.audio.redirect_taps(self._agent.ears)

    def _drain(self, effect: do.DrainAgent) -> None:
        self._media.audio.drain(effect.leg)

    def _stop(self, effect: do.StopAgent) -> None:
        self._agent.stop(effect.reason, effect.detail)
        self._media.audio.close_taps()

    def _tell_digit(self, effect: do.TellAgentDigit) -> None:
        self._agent.tell_digit(effect.digit, effect.duration_ms)

    def _tell_digits_sent(self, effect: do.TellAgentDigitsSent) -> None:
        self._agent.tell_digits_sent(effect.digits)

    def _tell_done(self, effect: do.TellAgentDone) -> None:
        self._agent.tell_done(effect.command)

    def _tell_speech(self, effect: do.TellAgentSpeech) -> None:
        self._agent.tell_speech(effect.active)

    def _tell_hold(self, effect: do.TellAgentHold) -> None:
        self._agent.tell_held(effect.active)

    def _tell_transfer(self, effect: do.TellAgentTransfer) -> None:
        self._agent.tell_transfer(effect.status, effect.sip_status, effect.cause)

    def _tell_error(self, effect: do.TellAgentError) -> None:
        self._agent.tell_error(effect.code, effect.message, effect.ref)


PERFORMERS: Final[dict[type, Callable[[AgentPerformer, Any], None]]] = {
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
