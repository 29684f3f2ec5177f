"""Stored audio: WAV files, tones and spoken prompts."""

from media.audio.clip import (
    AudioError,
    Clip,
    Pause,
    Sound,
    SpeechError,
    SpeechUnavailable,
    ToneError,
    UnknownPrompt,
    WavError,
)
from media.audio.g711 import alaw_to_l16, l16_to_alaw, l16_to_mulaw, mulaw_to_l16
from media.audio.prompts import PromptLibrary, Speaker
from media.audio.tone_plans import TONE_PLANS, dtmf, parse_tone, ringing_tone
from media.audio.tones import hold_music, tone
from media.audio.wav import MAX_WAV_BYTES, read_wav, write_wav

__all__ = [
    "MAX_WAV_BYTES",
    "TONE_PLANS",
    "AudioError",
    "Clip",
    "Pause",
    "PromptLibrary",
    "Sound",
    "Speaker",
    "SpeechError",
    "SpeechUnavailable",
    "ToneError",
    "UnknownPrompt",
    "WavError",
    "alaw_to_l16",
    "dtmf",
    "hold_music",
    "l16_to_alaw",
    "l16_to_mulaw",
    "mulaw_to_l16",
    "parse_tone",
    "read_wav",
    "ringing_tone",
    "tone",
    "write_wav",
]
