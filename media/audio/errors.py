"""
Errors of stored audio.

AudioError            base of all; itself a sound that cannot be converted
├─ WavError           not a WAV file, or an unsupported one
├─ ToneError          an invalid tone, or an unknown name
├─ UnknownPrompt      no prompt has that name
└─ SpeechError        a text that cannot be spoken
   └─ SpeechUnavailable  no speech synthesizer is available, or it is busy
"""

from __future__ import annotations

__all__ = ["AudioError", "SpeechError", "SpeechUnavailable", "ToneError", "UnknownPrompt", "WavError"]


class AudioError(Exception):
    """Base of the errors of stored audio."""


class WavError(AudioError):
    """A file that cannot be used; the message states what is required."""


class ToneError(AudioError):
    """An invalid tone, or an unknown tone name; the message states what is required."""


class SpeechError(AudioError):
    """A text that cannot be spoken: too long, in an unsupported language, or its synthesis failed."""


class SpeechUnavailable(SpeechError):
    """No speech synthesizer is installed, or it has too many texts at the moment."""


class UnknownPrompt(AudioError):
    """The library has no prompt of that name."""
