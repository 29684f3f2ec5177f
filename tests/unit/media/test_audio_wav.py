"""WAV files."""

import io
import struct
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.audio import (
    MAX_WAV_BYTES,
    Clip,
    WavError,
    alaw_to_l16,
    level_dbfs,
    mulaw_to_l16,
    read_wav,
    tone,
    tone_level_dbfs,
    write_wav,
)


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
    extensible = fmt(0xFFFE) + struct.pack("<HHIH", 22, 16, 4, 1) + bytes(14)
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    assert read_wav(wav(extensible, b"\1\2", before=odd)).pcm == b"\1\2"


@pytest.mark.parametrize("size", [0xFFFFFFFF, 100, 8])
def test_a_recording_that_was_cut_off_is_read_as_far_as_it_goes(size: int) -> None:
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
        (wav(fmt(coding=3, bits=32), b""), "16-bit PCM"),
        (wav(fmt(bits=8), b""), "16-bit PCM"),
        (wav(fmt(bits=24), b""), "16-bit PCM"),
        (wav(fmt(channels=0), b""), "mono or stereo"),
        (wav(fmt(channels=6), b""), "mono or stereo"),
        (wav(fmt(rate=44_100), b""), "8000 or 16000"),
    ],
)
def test_other_files_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(WavError, match=reason):
        read_wav(data)


@given(st.binary(max_size=60), st.binary(max_size=20))
def test_hostile_files_are_read_or_refused(form: bytes, data: bytes) -> None:
    for file in (wav(form, data), wav(fmt() + form, data), b"RIFF\0\0\0\0WAVE" + form + data):
        try:
            read_wav(file).to_8k_mono()
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


def test_16_khz_is_brought_to_8_khz_without_aliases() -> None:
    kept = Clip(tone(1000, 500, -6.0, 16_000), 16_000).to_8k_mono()
    assert kept.sample_rate == 8000
    assert len(kept.pcm) == 8000
    assert tone_level_dbfs(kept.pcm, 1000) == pytest.approx(-6.0, abs=0.2)
    # 5.5 kHz would come back as 2.5 kHz.
    gone = Clip(tone(5500, 500, -6.0, 16_000), 16_000).to_8k_mono()
    assert level_dbfs(gone.pcm) < -60.0


def test_full_scale_does_not_wrap_round() -> None:
    square = struct.pack("<32h", *([32_767] * 16 + [-32_768] * 16)) * 20
    halved = struct.unpack("<320h", Clip(square, 16_000).to_8k_mono().pcm)
    assert max(halved) == 32_767
    assert min(halved) == -32_768


def test_8_khz_mono_is_left_alone() -> None:
    clip = Clip(b"\1\2")
    assert clip.to_8k_mono() is clip
