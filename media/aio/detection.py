"""Detection of digits in the audio, speech, machine tones and answering machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal, get_args

from media import _engine
from media.errors import InvalidMedia
from media.types import (
    GreetingEnd,
    GreetingEnded,
    MachineReason,
    MachineSettings,
    MachineVerdict,
    MediaEvent,
    SpeechSettings,
    SpeechStarted,
    SpeechStopped,
    ToneDetected,
    ToneName,
    Verdict,
)

Detector = Literal["dtmf", "speech", "machine", "tones", "level"]

# By the numbers in dsp/machine_detector.hpp and dsp/tone_tracker.hpp.
_VERDICTS: dict[int, Verdict] = {0: "unknown", 1: "human", 2: "machine"}
_REASONS: dict[int, MachineReason] = {
    1: "initial_silence",
    2: "short_greeting",
    3: "long_greeting",
    4: "many_words",
    5: "beep",
    6: "fax",
    7: "announcement",
    8: "timeout",
}
_GREETING_ENDS: dict[int, GreetingEnd] = {1: "beep", 2: "silence", 3: "timeout"}
_TONES: dict[int, ToneName] = {1: "beep", 2: "fax_call", 3: "fax_answer", 4: "announcement"}


class Detection:
    """
    Detectors on a stream's received audio; `RtpStream.detection`.

    Results go to the stream's callback: `DtmfReceived`, `SpeechStarted` and `SpeechStopped`,
    `MachineVerdict` and `GreetingEnded`, `ToneDetected`. Detection also covers a muted far end.
    """

    def __init__(self, native: _engine.Stream) -> None:
        self._native = native

    def start(
        self,
        *,
        dtmf: bool = False,
        speech: SpeechSettings | bool = False,
        machine: MachineSettings | bool = False,
        tones: bool = False,
        level: bool = False,
    ) -> None:
        """
        Start the named detectors; running ones continue, or restart if named again.

        Args:
            dtmf: Digits as tones; always on for a far end connected with `dtmf_tones`. A digit that comes
                both as a telephone event and as a tone is reported once.
            speech: Start and end of speech.
            machine: Answering machine detection; start it when the call is answered.
            tones: Beeps, fax machines and the tones before an announcement.
            level: Level of the audio, for `RtpStream.meter`; of the loudest moment in each second.

        Raises:
            InvalidMedia: A setting is out of range, or the engine was built without a required library.
        """
        try:
            if dtmf:
                self._native.detect_dtmf()
            if speech is not False:
                self._native.detect_speech(_voice(SpeechSettings() if speech is True else speech))
            if machine is not False:
                self._native.detect_machine(_answer(MachineSettings() if machine is True else machine))
            if tones:
                self._native.detect_tones()
            if level:
                self._native.detect_level()
        except (ValueError, TypeError) as error:
            raise InvalidMedia(f"cannot detect: {error}") from error

    def stop(self, *detectors: Detector) -> None:
        """Stop the named detectors, all if none is named; harmless when not started."""
        for detector in detectors or get_args(Detector):
            self._native.stop_detecting(detector)


def decode_detection(kind: int, a: int, b: int, c: int) -> MediaEvent | None:
    """Decode an event record of a detector; None for any other."""
    # By the numbers of `EventKind` in event_queue.hpp.
    match kind:
        case 40:
            return SpeechStarted()
        case 41:
            return SpeechStopped(b)
        case 42:
            return MachineVerdict(_VERDICTS[a & 0xFF], _REASONS[a >> 8], b)
        case 43:
            return GreetingEnded(_GREETING_ENDS[a], b)
        case 44:
            return ToneDetected(_TONES[a], c, b)
    return None


def _voice(settings: SpeechSettings) -> _engine.VoiceSettings:
    return _engine.VoiceSettings(
        settings.min_speech_ms, settings.hangover_ms, settings.margin_db, settings.min_level_db
    )


def _answer(settings: MachineSettings) -> _engine.AnswerSettings:
    limits = asdict(settings)
    voice = limits.pop("speech")
    return _engine.AnswerSettings(_voice(SpeechSettings(**voice)), limits)
