"""Codecs and conversions of the engine, as Python sees them."""

from __future__ import annotations

import math
import struct

import pytest

from media import _engine

CODECS = [("PCMU", 8000), ("PCMA", 8000), ("L16", 8000), ("L16", 16000), ("G722", 8000), ("OPUS", 48000)]


def _tone(rate_hz: int, samples: int) -> bytes:
    values = [round(9000 * math.sin(2 * math.pi * 1000 * n / rate_hz)) for n in range(samples)]
    return struct.pack(f"={samples}h", *values)


@pytest.mark.parametrize(("name", "clock_hz"), CODECS)
def test_frames_become_packets_and_frames_again(name: str, clock_hz: int) -> None:
    assert _engine.supports(name, clock_hz)
    encoder, decoder = _engine.Encoder(name, clock_hz), _engine.Decoder(name, clock_hz)
    assert encoder.rate_hz == decoder.rate_hz == (16000 if name in ("G722", "OPUS") else clock_hz)
    frame = _tone(encoder.rate_hz, encoder.rate_hz // 50)
    payload = encoder.encode(frame)
    assert payload
    assert len(decoder.decode(payload)) == len(frame)
    assert len(decoder.conceal(20)) == len(frame)
    assert decoder.decode(b"") == b""


def test_codecs_that_the_engine_does_not_have_are_named() -> None:
    with pytest.raises(ValueError, match="GSM"):
        _engine.supports("GSM", 8000)
    assert not _engine.supports("L16", 44100)
    with pytest.raises(ValueError, match="L16/44100"):
        _engine.Decoder("L16", 44100)
    with pytest.raises(ValueError, match="OPUS/8000"):
        _engine.Encoder("OPUS", 8000)


@pytest.mark.parametrize("samples", [0, 1, 79, 81, 560])
def test_frames_of_other_lengths_are_refused(samples: int) -> None:
    with pytest.raises(ValueError, match="10 to 60 ms"):
        _engine.Encoder("PCMU", 8000).encode(bytes(2 * samples))
    with pytest.raises(ValueError, match="within a sample"):
        _engine.Encoder("PCMU", 8000).encode(bytes(161))
    with pytest.raises(ValueError, match="60 ms"):
        _engine.Decoder("PCMU", 8000).conceal(61)


@pytest.mark.parametrize("from_hz", [8000, 11025, 22050, 44100, 48000])
@pytest.mark.parametrize("to_hz", [8000, 16000])
def test_sounds_keep_their_length(from_hz: int, to_hz: int) -> None:
    converted = _engine.resample(_tone(from_hz, from_hz), from_hz, to_hz)
    assert len(converted) == 2 * to_hz


def test_rates_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="100 to 8000 Hz"):
        _engine.resample(b"", 100, 8000)
    with pytest.raises(ValueError, match="within a sample"):
        _engine.resample(b"abc", 44100, 8000)
    assert _engine.resample(b"", 44100, 8000) == b""


def test_blocks_are_converted_between_the_rates_of_the_engine() -> None:
    doubling, halving = _engine.RateConverter(8000, 16000), _engine.RateConverter(16000, 8000)
    assert len(doubling.process(_tone(8000, 160))) == 2 * 320
    assert len(halving.process(_tone(16000, 320))) == 2 * 160
    for from_hz, to_hz in ((8000, 8000), (16000, 16000), (48000, 16000), (0, 24000), (24000, 0)):
        with pytest.raises(ValueError, match="8000 and 16000"):
            _engine.RateConverter(from_hz, to_hz)
    for samples in (161, 482):
        with pytest.raises(ValueError, match="a block"):
            doubling.process(bytes(2 * samples))
