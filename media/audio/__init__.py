"""Stored audio: WAV files, tones and spoken prompts."""

from media.audio.clip import Clip, Pause, Sound
from media.audio.errors import (
    AudioError,
    SpeechError,
    SpeechUnavailable,
    ToneError,
    UnknownPrompt,
    WavError,
)
from media.audio.g711 import alaw_to_l16, l16_to_alaw, l16_to_mulaw, mulaw_to_l16
from media.audio.hold import hold_music
from media.audio.numbers import MAX_NUMBER, Speaker, fallbacks
from media.audio.prompts import PromptLibrary
from media.audio.tone_plans import TONE_PLANS, Tone, TonePart, TonePlan, dtmf, parse_tone, ringing_tone
from media.audio.tones import silence, tone
from media.audio.wav import MAX_WAV_BYTES, read_wav, write_wav

__all__ = [
    "MAX_NUMBER",
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
    "Tone",
    "ToneError",
    "TonePart",
    "TonePlan",
    "UnknownPrompt",
    "WavError",
    "alaw_to_l16",
    "dtmf",
    "fallbacks",
    "hold_music",
    "l16_to_alaw",
    "l16_to_mulaw",
    "mulaw_to_l16",
    "parse_tone",
    "read_wav",
    "ringing_tone",
    "silence",
    "tone",
    "write_wav",
]
