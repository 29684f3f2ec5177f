"""
Errors of stored audio.

AudioError            base of both
├─ WavError           not a WAV file, or one of a kind that is not read
└─ UnknownPrompt      there is no prompt of that name
"""

from __future__ import annotations

__all__ = ["AudioError", "UnknownPrompt", "WavError"]


class AudioError(Exception):
    """Base of the errors of stored audio."""


class WavError(AudioError):
    """A file that cannot be used; the message says what would be right."""


class UnknownPrompt(AudioError):
    """There is no prompt of that name in the library."""
