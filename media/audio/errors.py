"""
Errors of stored audio.

AudioError            base of all; itself a sound that cannot be converted
├─ WavError           not a WAV file, or one of a kind that is not read
├─ ToneError          not a tone, or none of that name
├─ UnknownPrompt      there is no prompt of that name
└─ SpeechError        a text that cannot be spoken
   └─ SpeechUnavailable  there is nothing here that speaks, or it is busy
"""

from __future__ import annotations

__all__ = ["AudioError", "SpeechError", "SpeechUnavailable", "ToneError", "UnknownPrompt", "WavError"]


class AudioError(Exception):
    """Base of the errors of stored audio."""


class WavError(AudioError):
    """A file that cannot be used; the message says what would be right."""


class ToneError(AudioError):
    """A text that is no tone, or a name that no tone has; the message says what would be right."""


class SpeechError(AudioError):
    """A text that cannot be spoken: too long, in a language that is not served, or its making failed."""


class SpeechUnavailable(SpeechError):
    """Nothing that speaks is installed, or too much is being spoken at the moment."""


class UnknownPrompt(AudioError):
    """There is no prompt of that name in the library."""
