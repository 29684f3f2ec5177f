"""Stored audio: WAV files, tones and spoken prompts."""

from media.audio.errors import AudioError, UnknownPrompt, WavError
from media.audio.g711 import alaw_to_l16, l16_to_alaw, l16_to_mulaw, mulaw_to_l16
from media.audio.hold import hold_music
from media.audio.prompts import PromptLibrary
from media.audio.tones import RINGBACK_INDIA, level_dbfs, silence, tone, tone_level_dbfs, tones
from media.audio.wav import MAX_WAV_BYTES, Clip, read_wav, write_wav

__all__ = [
    "MAX_WAV_BYTES",
    "RINGBACK_INDIA",
    "AudioError",
    "Clip",
    "PromptLibrary",
    "UnknownPrompt",
    "WavError",
    "alaw_to_l16",
    "hold_music",
    "l16_to_alaw",
    "l16_to_mulaw",
    "level_dbfs",
    "mulaw_to_l16",
    "read_wav",
    "silence",
    "tone",
    "tone_level_dbfs",
    "tones",
    "write_wav",
]
