"""Performs the media effects of a call: links, playback, speech, digits and files."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import cached_property, partial
from typing import Any, Final

from callcontrol.aio.tokens import new_id
from callcontrol.calls.aio.context import ActiveCall, EffectPerformer
from callcontrol.calls.aio.dtmf import InfoDigits
from callcontrol.calls.aio.media.audio import LegListener
from callcontrol.calls.aio.media.prompts import PROMPT_SCHEME, AudioUnavailable
from callcontrol.calls.aio.transcription import NO_RECOGNIZER
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects import media as do
from callcontrol.calls.effects.records import KeepMessage
from callcontrol.calls.events.media import PlaybackEnded, WordsHeard
from callcontrol.calls.recording import recording_file
from callcontrol.ids import LegId
from media.aio.recognizer import Recognition
from media.audio import AudioError, Clip

NO_SPEECH: Final = "this server speaks no texts"


class MediaPerformer(EffectPerformer):
    """Performs the media effects of one call."""

    def __init__(self, call: ActiveCall) -> None:
        self._call = call
        self._audio_source = call.context.audio
        self._media = call.media
        self._mailbox = call.mailbox
        self._loading: dict[LegId, asyncio.Task[None]] = {}
        """Tasks that load audio for a leg, by leg."""
        self._recognised: dict[LegId, tuple[LegListener, Recognition]] = {}
        """Listeners to the parties whose speech is being recognised, by leg."""

    def release(self) -> None:
        """Recognise no more: the call is over."""
        for leg in list(self._recognised):
            self._stop_recognising(do.StopRecognising(leg))

    @cached_property
    def _info_digits(self) -> InfoDigits:
        mailbox = self._mailbox
        return InfoDigits(self._call.sip.send_digit, mailbox.post, mailbox.spawn_helper)

    def _mute(self, effect: do.MuteLeg) -> None:
        self._media.audio.mute(effect.leg, says=effect.says, hears=effect.hears)

    # --- playback and speech --------------------------------------------------------------------------------

    def _play(self, effect: do.PlayAudio) -> None:
        if not effect.url.startswith(PROMPT_SCHEME):
            fetch = partial(self._audio_source.fetch, effect.url)
            self._load(effect.leg, fetch, effect.loops, effect.turn)
            return
        try:
            clip = self._audio_source.prompt(effect.url.removeprefix(PROMPT_SCHEME))
        except AudioUnavailable as error:
            self._mailbox.log.warning("not played: %s", error)
            self._mailbox.post_outcome(PlaybackEnded(effect.leg, str(error), effect.turn))
        else:
            self._media.audio.play(effect.leg, clip, effect.loops, effect.turn)

    def _speak(self, effect: do.Speak) -> None:
        speech = self._call.context.services.speech
        if speech is None:
            self._mailbox.log.warning("not spoken: %s", NO_SPEECH)
            self._mailbox.post_outcome(PlaybackEnded(effect.leg, NO_SPEECH, effect.turn))
            return
        pieces = speech.pieces(effect.text, effect.language, voice=effect.voice)
        self._start(effect.leg, self._play_pieces(effect.leg, pieces, effect.turn))

    async def _play_pieces(self, leg: LegId, pieces: AsyncIterator[Clip], turn: int) -> None:
        feed = self._media.audio.feed(leg, turn)
        try:
            async for piece in pieces:
                feed.add(piece)
        except AudioError as error:
            self._mailbox.log.warning("not played: %s", error)
            feed.end(str(error))
        else:
            feed.end()

    def _load(self, leg: LegId, source: Callable[[], Awaitable[Clip]], loops: int, turn: int) -> None:
        """Play audio after loading it, unless another playback is requested before."""
        self._start(leg, self._play_loaded(leg, source, loops, turn))

    def _start(self, leg: LegId, loading: Coroutine[Any, Any, None]) -> None:
        former = self._loading.pop(leg, None)
        if former is not None:
            former.cancel()
        task = self._mailbox.spawn_helper(loading)
        self._loading[leg] = task
        task.add_done_callback(lambda done: self._loaded(leg, done))

    async def _play_loaded(
        self, leg: LegId, source: Callable[[], Awaitable[Clip]], loops: int, turn: int
    ) -> None:
        try:
            clip = await source()
        except (AudioUnavailable, AudioError) as error:
            self._mailbox.log.warning("not played: %s", error)
            self._mailbox.post(PlaybackEnded(leg, str(error), turn))
        else:
            self._media.audio.play(leg, clip, loops, turn)

    def _loaded(self, leg: LegId, task: asyncio.Task[None]) -> None:
        if self._loading.get(leg) is task:
            del self._loading[leg]

    def _play_sounds(self, effect: do.PlaySounds) -> None:
        self._media.audio.play_sounds(effect.leg, effect.sounds, effect.turn)

    def _fill_silence(self, effect: do.FillSilence) -> None:
        self._media.audio.fill_silence(effect.leg, effect.sound)

    def _play_ringback(self, effect: do.PlayRingback) -> None:
        self._media.audio.ringback(effect.leg)

    def _stop_audio(self, effect: do.StopAudio) -> None:
        loading = self._loading.pop(effect.leg, None)
        if loading is not None:
            # Audio that arrives now would interrupt another playback.
            loading.cancel()
        self._media.audio.stop(effect.leg)

    # --- digits, files, detection ---------------------------------------------------------------------------

    def _send_digits(self, effect: do.SendDigits) -> None:
        digits = self._info_digits if self._call.takes_info(effect.leg) else self._media.digits
        digits.send(effect.leg, effect.digits, effect.duration_ms, effect.gap_ms, by_api=effect.by_api)

    def _relay_digit(self, effect: do.RelayDigit) -> None:
        if self._call.takes_info(effect.leg):
            self._info_digits.send(effect.leg, effect.digit, effect.duration_ms, 0)
        else:
            self._media.digits.relay(effect.leg, effect.digit, effect.duration_ms)

    def _record_leg(self, effect: do.StartRecording) -> None:
        path = self._call.context.recordings_dir / recording_file(self._call.record.call_sid)
        self._media.audio.record(effect.leg, str(path), effect.channels)

    def _start_message(self, effect: do.StartMessage) -> None:
        message_sid = new_id()
        path = self._call.context.recordings_dir / recording_file(message_sid)
        self._media.messages.start(effect.leg, effect.number, message_sid, str(path), effect.max_length_s)

    def _stop_message(self, effect: do.StopMessage) -> None:
        self._media.messages.stop(effect.number)

    def _keep_message(self, effect: KeepMessage) -> None:
        add_message = self._call.context.services.add_message
        if add_message is not None:
            add_message(effect.message)

    def _drop_message(self, effect: do.DropMessage) -> None:
        self._mailbox.spawn(asyncio.to_thread(_unlink, effect.path))

    def _control_recording(self, effect: do.ControlRecording) -> None:
        self._media.audio.control_recording(effect.action)

    def _detect_machine(self, effect: do.DetectMachine) -> None:
        self._media.detect_machine(effect.leg, wanted=True)

    def _stop_detecting(self, effect: do.StopDetecting) -> None:
        self._media.detect_machine(effect.leg, wanted=False)

    def _detect_speech(self, effect: do.DetectSpeech) -> None:
        self._media.detect_speech(effect.leg, wanted=True)

    def _stop_speech(self, effect: do.StopSpeech) -> None:
        self._media.detect_speech(effect.leg, wanted=False)

    def _recognise(self, effect: do.Recognise) -> None:
        recognizer, leg = self._call.context.services.recognizer, effect.leg
        listener = None if recognizer is None else self._media.audio.listen(leg)
        if recognizer is None or listener is None:
            self._mailbox.log.warning("speech is not recognised: %s", NO_RECOGNIZER)
            return
        self._stop_recognising(do.StopRecognising(leg))
        recognition = recognizer.start(
            effect.language,
            listener.sample_rate,
            lambda heard: self._mailbox.post(WordsHeard(leg, heard.text, heard.final, heard.confidence)),
            lambda problem: self._stop_recognising(do.StopRecognising(leg)),
        )
        self._recognised[leg] = listener, recognition
        listener.begin(recognition.feed)

    def _stop_recognising(self, effect: do.StopRecognising) -> None:
        listener, recognition = self._recognised.pop(effect.leg, (None, None))
        if listener is not None and recognition is not None:
            listener.end()
            recognition.stop()


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


MEDIA_EFFECTS: Final[dict[type[Effect], Callable[[MediaPerformer, Any], None]]] = {
    do.MuteLeg: MediaPerformer._mute,
    do.PlayAudio: MediaPerformer._play,
    do.PlaySounds: MediaPerformer._play_sounds,
    do.Speak: MediaPerformer._speak,
    do.FillSilence: MediaPerformer._fill_silence,
    do.PlayRingback: MediaPerformer._play_ringback,
    do.StopAudio: MediaPerformer._stop_audio,
    do.SendDigits: MediaPerformer._send_digits,
    do.RelayDigit: MediaPerformer._relay_digit,
    do.StartRecording: MediaPerformer._record_leg,
    do.StartMessage: MediaPerformer._start_message,
    do.StopMessage: MediaPerformer._stop_message,
    KeepMessage: MediaPerformer._keep_message,
    do.DropMessage: MediaPerformer._drop_message,
    do.ControlRecording: MediaPerformer._control_recording,
    do.DetectMachine: MediaPerformer._detect_machine,
    do.StopDetecting: MediaPerformer._stop_detecting,
    do.DetectSpeech: MediaPerformer._detect_speech,
    do.StopSpeech: MediaPerformer._stop_speech,
    do.Recognise: MediaPerformer._recognise,
    do.StopRecognising: MediaPerformer._stop_recognising,
}
