"""WAV files."""

import io
import struct
import wave
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from media.audio import (
    MAX_WAV_BYTES,
    AudioError,
    Clip,
    WavError,
    alaw_to_l16,
    l16_to_alaw,
    l16_to_mulaw,
    mulaw_to_l16,
    read_wav,
    tone,
    write_wav,
)
from tests.support.levels import level_dbfs, tone_level_dbfs

# What follows the plain format: 22 bytes more, 16 valid bits, the left channel, and the GUID of PCM.
GUID_PCM = struct.pack("<HHIH", 22, 16, 4, 1) + bytes.fromhex("000000001000800000aa00389b71")
CODINGS = {"f32": (3, 32), "f64": (3, 64), "alaw": (6, 8), "mulaw": (7, 8)}


def written(samples: NDArray[np.float64], form: str, channels: int, rate: int) -> bytes:
    """A WAV file of samples from -1 to 1 in one of the forms."""
    whole = np.round(samples * 32767).astype("<i2").tobytes()
    if form == "alaw":
        data = l16_to_alaw(whole)
    elif form == "mulaw":
        data = l16_to_mulaw(whole)
    elif form == "u8":
        data = np.round(samples * 127 + 128).astype(np.uint8).tobytes()
    elif form == "s24":
        wide = np.round(samples * (2**23 - 1)).astype("<i4")
        data = wide.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    elif form == "s32":
        data = np.round(samples * (2**31 - 1)).astype("<i4").tobytes()
    elif form in ("f32", "f64"):
        data = samples.astype("<f4" if form == "f32" else "<f8").tobytes()
    else:
        data = whole
    coding, bits = CODINGS.get(form, (1, int(form[1:]) if form[1:].isdecimal() else 8))
    return wav(fmt(coding, channels, rate, bits), data)


def measured(pcm: bytes, freq_hz: float, rate: int) -> tuple[float, float]:
    """Peak level of a tone, and that of everything else, in dB of full scale; the edges are left out."""
    samples = np.frombuffer(pcm, dtype="<i2").astype(np.float64) / 32768.0
    samples = samples[len(samples) // 10 : -len(samples) // 10]
    angle = 2 * np.pi * freq_hz * np.arange(len(samples)) / rate
    basis = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    parts = np.linalg.lstsq(basis, samples, rcond=None)[0]
    rest = samples - basis @ parts
    return 20 * np.log10(np.hypot(*parts)), 20 * np.log10(np.sqrt(np.mean(rest**2)) + 1e-9)


def wav(form: bytes, data: bytes, before: bytes = b"", size: int | None = None) -> bytes:
    chunks = before + b"fmt " + struct.pack("<I", len(form)) + form
    chunks += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def fmt(coding: int = 1, channels: int = 1, rate: int = 8000, bits: int = 16) -> bytes:
    block = channels * bits // 8
    return struct.pack("<HHIIHH", coding, channels, rate, rate * block, block, bits)


@given(st.sampled_from([8000, 16_000]), st.sampled_from([1, 2]), st.binary(max_size=400))
def test_what_is_written_is_read_back(rate: int, channels: int, data: bytes) -> None:
    clip = Clip(data[: len(data) // 4 * 4], rate, channels)
    assert read_wav(write_wav(clip)) == clip


@given(st.sampled_from(["alaw", "mulaw"]), st.sampled_from([1, 2]), st.binary(max_size=400))
def test_g711_is_written_and_read_back(coding: Literal["alaw", "mulaw"], channels: int, codes: bytes) -> None:
    decode = alaw_to_l16 if coding == "alaw" else mulaw_to_l16
    clip = Clip(decode(codes[: len(codes) // channels * channels]), 8000, channels)
    file = write_wav(clip, coding)
    assert read_wav(file) == clip
    assert int.from_bytes(file[4:8], "little") == len(file) - 8
    assert len(file) % 2 == 0


def test_the_standard_library_reads_what_is_written() -> None:
    clip = Clip(tone(440, 100, sample_rate=16_000), 16_000)
    with wave.open(io.BytesIO(write_wav(clip))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        assert file.readframes(10_000) == clip.pcm


@pytest.mark.parametrize(("coding", "decode"), [(6, alaw_to_l16), (7, mulaw_to_l16)])
def test_g711_is_decoded(coding: int, decode: object) -> None:
    assert callable(decode)
    codes = bytes(range(256))
    assert read_wav(wav(fmt(coding, bits=8), codes)).pcm == decode(codes)


def test_extensible_format_and_other_chunks() -> None:
    extensible = fmt(0xFFFE) + GUID_PCM
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    assert read_wav(wav(extensible, b"\1\2", before=odd)).pcm == b"\1\2"


@pytest.mark.parametrize("size", [100, 8])
def test_a_file_that_was_cut_short_is_refused_unless_its_beginning_will_do(size: int) -> None:
    cut = wav(fmt(), b"\1\2\3\4\5", size=size)
    with pytest.raises(WavError, match=f"cut short: 5 of {size} bytes"):
        read_wav(cut)
    assert read_wav(cut, partial=True).pcm == b"\1\2\3\4"


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000])
def test_what_was_written_to_a_pipe_has_no_size_and_is_read_to_its_end(size: int) -> None:
    assert read_wav(wav(fmt(), b"\1\2\3\4\5", size=size)).pcm == b"\1\2\3\4"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a WAV"),
        (b"RIFF\0\0\0\0AVI ", "not a WAV"),
        (b"RIFF\0\0\0\0WAVE", "no samples"),
        (wav(fmt(), b"")[:36], "no samples"),
        (b"RIFF\0\0\0\0WAVEdata\2\0\0\0\0\0", "before their format"),
        (wav(b"\1\0", b""), "cut short"),
        (wav(fmt(coding=0xFFFE) + GUID_PCM[:-1], b""), "extensible one has 40"),
        (wav(fmt(coding=3, bits=16), b""), "not coding 3 of 16 bits"),
        (wav(fmt(bits=12), b""), "not coding 1 of 12 bits"),
        (wav(fmt(coding=2, bits=4), b""), "not coding 2 of 4 bits"),
        (wav(fmt(coding=85, bits=0), b""), "not coding 85"),
        (wav(fmt(channels=0), b""), "mono or stereo"),
        (wav(fmt(channels=6), b""), "mono or stereo, not of 6"),
        (wav(fmt(rate=7999), b""), "8000 to 48000 Hz, not 7999"),
        (wav(fmt(rate=96_000), b""), "8000 to 48000 Hz, not 96000"),
        (wav(fmt(bits=24)[:12] + struct.pack("<HH", 4, 24), b""), "contradicts itself"),
        (b"RIFF\0\0\0\0WAVE" + b"junk\0\0\0\0" * 1001, "more than 1000 chunks"),
    ],
)
def test_other_files_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(WavError, match=reason):
        read_wav(data)


@given(st.binary(max_size=60), st.binary(max_size=20))
def test_hostile_files_are_read_or_refused(form: bytes, data: bytes) -> None:
    for file in (wav(form, data), wav(fmt() + form, data), b"RIFF\0\0\0\0WAVE" + form + data):
        for partial in (False, True):
            try:
                read_wav(file, partial=partial).to_8k_mono()
            except WavError:
                pass


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(WavError, match="larger"):
        read_wav(bytes(MAX_WAV_BYTES + 1))


def test_channels_and_duration() -> None:
    clip = Clip(struct.pack("<6h", 10, -30, 20, -40, 32_767, 32_767), 8000, 2)
    assert clip.channel(0).pcm == struct.pack("<3h", 10, 20, 32_767)
    assert clip.channel(1).pcm == struct.pack("<3h", -30, -40, 32_767)
    assert clip.to_8k_mono().pcm == struct.pack("<3h", -10, -10, 32_767)
    assert Clip(bytes(3200), 8000, 2).duration_ms == 100
    with pytest.raises(ValueError, match="no such channel"):
        clip.channel(2)


@pytest.mark.parametrize("rate", [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000])
@pytest.mark.parametrize("form", ["u8", "s16", "s24", "s32", "f32", "f64", "alaw", "mulaw"])
@pytest.mark.parametrize("channels", [1, 2])
def test_every_rate_and_form_keeps_a_tone(rate: int, form: str, channels: int) -> None:
    sine = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(rate // 2) / rate)
    clip = read_wav(written(np.repeat(sine, channels), form, channels, rate))
    assert (clip.sample_rate, clip.channels) == (rate, channels)
    played = clip.for_engine()
    assert (played.channels, played.sample_rate) == (1, 8000 if rate == 8000 else 16_000)
    assert played.duration_ms == pytest.approx(500, abs=1)
    level_db, noise_db = measured(played.pcm, 1000, played.sample_rate)
    assert level_db == pytest.approx(-6.0, abs=0.2)
    # Of 8 bits the noise is 50 dB down at this level; of G.711, 37 dB below the tone.
    assert noise_db < {"u8": -50.0, "alaw": -40.0, "mulaw": -40.0}.get(form, -70.0)


@pytest.mark.parametrize("rate", [22_050, 32_000, 44_100, 48_000])
def test_what_the_engine_cannot_play_is_filtered_away_not_folded_back(rate: int) -> None:
    clip = Clip(tone(9500, 500, -6.0, rate), rate)
    assert level_dbfs(clip.for_engine().pcm) < -50.0
    assert level_dbfs(clip.to_8k_mono().pcm) < -50.0


def test_16_khz_is_brought_to_8_khz_without_aliases() -> None:
    kept = Clip(tone(1000, 500, -6.0, 16_000), 16_000).to_8k_mono()
    assert kept.sample_rate == 8000
    assert len(kept.pcm) == 8000
    assert tone_level_dbfs(kept.pcm, 1000) == pytest.approx(-6.0, abs=0.2)
    # 5.5 kHz would come back as 2.5 kHz.
    gone = Clip(tone(5500, 500, -6.0, 16_000), 16_000).to_8k_mono()
    assert level_dbfs(gone.pcm) < -50.0


def test_full_scale_does_not_wrap_round() -> None:
    square = struct.pack("<32h", *([32_767] * 16 + [-32_768] * 16)) * 20
    halved = struct.unpack("<320h", Clip(square, 16_000).to_8k_mono().pcm)
    assert max(halved) == 32_767
    assert min(halved) == -32_768
    assert all(a * b > 0 or min(abs(a), abs(b)) < 32_000 for a, b in pairwise(halved))


def test_what_the_engine_plays_is_left_alone() -> None:
    clip = Clip(b"\1\2")
    assert clip.to_8k_mono() is clip
    assert clip.for_engine() is clip
    wide = Clip(b"\1\2", 16_000)
    assert wide.for_engine() is wide


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(AudioError, match="cannot be resampled to 0 Hz"):
        Clip(b"\1\2").to_mono(0)
