"""Performs the transcription of a call: listens to its parties, and keeps each at a recogniser."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from callcontrol.calls.aio.context import ActiveCall, EffectPerformer
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects import media as do
from callcontrol.calls.events.media import SentenceHeard, TranscriptionEnded
from media.aio import FrameListener, RtpStream
from media.aio.recognizer import LEFT_ALONE, Recognition, Recognizer
from media.audio.recognition import Heard

NO_RECOGNIZER: Final = "this server has no recogniser, or the party is not there"

_FIRST_RETRY_S: Final = 1.0
_MAX_RETRY_S: Final = 60.0


class PartyTranscription:
    """
    The transcription of one party. What it says while a recogniser is lost is not transcribed.

    A recogniser that fails is asked again after 1 s, doubled by each failure without words between, up to
    60 s. While it is left alone for the failures of others, the time stays as it is. ``on_sentence`` gets
    each sentence and the milliseconds since its first words.
    """

    def __init__(
        self,
        recognizer: Recognizer,
        stream: RtpStream,
        language: str,
        *,
        wide: bool,
        on_sentence: Callable[[Heard, int], None],
    ) -> None:
        self._recognizer = recognizer
        self._language = language
        self._on_sentence = on_sentence
        self._loop = asyncio.get_running_loop()
        self._recognition: Recognition | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._retry_s = _FIRST_RETRY_S
        self._began_s: float | None = None
        self._listener: FrameListener = stream.listen(self._feed, sample_rate=16000 if wide else 8000)
        self._connect()

    def finish(self, on_ended: Callable[[], None]) -> None:
        """Listen no more, and call ``on_ended`` behind the last sentence."""
        recognition = self._release()
        if recognition is None:
            on_ended()
        else:
            recognition.finish(on_ended)

    def stop(self) -> None:
        """Listen no more; nothing is reported any more."""
        recognition = self._release()
        if recognition is not None:
            recognition.stop()

    def _release(self) -> Recognition | None:
        """Detach from the party, and return the recognition, which holds this object until it is done."""
        self._listener.close()
        if self._retry is not None:
            self._retry.cancel()
        recognition, self._recognition = self._recognition, None
        return recognition

    def _connect(self) -> None:
        self._retry = None
        rate = self._listener.sample_rate
        self._recognition = self._recognizer.start(self._language, rate, self._heard, self._failed)

    def _feed(self, pcm: bytes) -> None:
        if self._recognition is not None:
            self._recognition.feed(pcm)

    def _heard(self, heard: Heard) -> None:
        now = self._loop.time()
        if self._began_s is None:
            self._began_s = now
        if heard.final:
            duration_ms = round((now - self._began_s) * 1000)
            self._began_s, self._retry_s = None, _FIRST_RETRY_S
            self._on_sentence(heard, duration_ms)

    def _failed(self, problem: str) -> None:
        self._recognition = self._began_s = None
        self._retry = self._loop.call_later(self._retry_s, self._connect)
        if problem != LEFT_ALONE:
            self._retry_s = min(2 * self._retry_s, _MAX_RETRY_S)


class TranscriptionPerformer(EffectPerformer):
    """Performs the transcription effects of one call."""

    def __init__(self, call: ActiveCall) -> None:
        self._media = call.media
        self._mailbox = call.mailbox
        self._recognizer = call.context.services.recognizer
        self._runs: dict[int, PartyTranscription] = {}

    def release(self) -> None:
        """Listen to nobody: the call is over."""
        for run in self._runs.values():
            run.stop()
        self._runs.clear()

    def _begin(self, effect: do.TranscribeLeg) -> None:
        stream = self._media.stream_of(effect.leg)
        if self._recognizer is None or stream is None:
            self._mailbox.log.warning("the call is not transcribed: %s", NO_RECOGNIZER)
            self._ended(effect.number)
            return
        self._runs[effect.number] = PartyTranscription(
            self._recognizer,
            stream,
            effect.language,
            wide=self._media.is_wide(effect.leg),
            on_sentence=partial(self._sentence, effect.number),
        )

    def _sentence(self, number: int, heard: Heard, duration_ms: int) -> None:
        self._mailbox.post(SentenceHeard(number, heard.text, heard.confidence, duration_ms))

    def _end(self, effect: do.EndTranscription) -> None:
        run = self._runs.get(effect.number)
        if run is None:
            self._ended(effect.number)
        else:
            run.finish(lambda: self._ended(effect.number))

    def _ended(self, number: int) -> None:
        self._runs.pop(number, None)
        self._mailbox.post(TranscriptionEnded(number))


TRANSCRIPTION_EFFECTS: Final[dict[type[Effect], Callable[[TranscriptionPerformer, Any], None]]] = {
    do.TranscribeLeg: TranscriptionPerformer._begin,
    do.EndTranscription: TranscriptionPerformer._end,
}
