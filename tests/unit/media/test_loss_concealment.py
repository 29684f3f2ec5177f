"""Loss concealment, measured on speech: nearer to the spectrum of the original than silence would be."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from media import _engine

Spectrum = npt.NDArray[np.float64]

SPEECH = Path(__file__).parents[2] / "vectors/audio"
LOSS = 0.05


def _codes(name: str) -> bytes:
    """The mu-law codes of a WAV file."""
    data = (SPEECH / name).read_bytes()
    at = data.index(b"data")
    return data[at + 8 : at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")]


def _frames(name: str, rate_hz: int) -> list[bytes]:
    decoder = _engine.Decoder("PCMU", 8000)
    codes = _codes(name)
    pcm = b"".join(decoder.decode(codes[at : at + 160]) for at in range(0, len(codes), 160))
    if rate_hz != 8000:
        pcm = _engine.resample(pcm, 8000, rate_hz)
    size = rate_hz // 50 * 2
    return [pcm[at : at + size] for at in range(0, len(pcm) - size + 1, size)]


def _spectrum(pcm: bytes) -> Spectrum:
    """Levels in decibels, over a floor below which nothing is heard."""
    samples = np.frombuffer(pcm, np.int16).astype(np.float64)
    blocks = [samples[at : at + 256] * np.hanning(256) for at in range(0, len(samples) - 256, 64)]
    levels: Spectrum = 20 * np.log10(np.abs(np.fft.rfft(blocks)) + 300)
    return levels


def _heard(name: str, clock_hz: int, packets: list[bytes], lost: list[bool], *, hide: bool) -> bytes:
    decoder = _engine.Decoder(name, clock_hz)
    silence = bytes(decoder.rate_hz // 50 * 2)
    parts = []
    for packet, is_lost in zip(packets, lost, strict=True):
        if is_lost:
            parts.append(decoder.conceal(20) if hide else silence)
        else:
            parts.append(decoder.decode(packet))
    return b"".join(parts)


@pytest.mark.parametrize(
    ("name", "clock_hz", "better"),
    [("PCMU", 8000, 0.85), ("L16", 16000, 0.6), ("G722", 8000, 0.8), ("OPUS", 48000, 0.8)],
)
def test_a_hidden_loss_is_nearer_to_speech_than_silence(name: str, clock_hz: int, better: float) -> None:
    hidden, silent = 0.0, 0.0
    for seed, file in enumerate(("talk_en.wav", "talk_ta.wav", "voicemail_hi.wav")):
        encoder = _engine.Encoder(name, clock_hz)
        packets = [encoder.encode(frame) for frame in _frames(file, encoder.rate_hz)]
        rng = random.Random(seed)
        lost = [rng.random() < LOSS for _ in packets]
        whole = _spectrum(_heard(name, clock_hz, packets, [False] * len(packets), hide=False))
        hidden += float(np.abs(_spectrum(_heard(name, clock_hz, packets, lost, hide=True)) - whole).mean())
        silent += float(np.abs(_spectrum(_heard(name, clock_hz, packets, lost, hide=False)) - whole).mean())
    assert hidden < silent * better
