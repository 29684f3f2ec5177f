"""G.711 for stored audio."""

import struct

import pytest

from media.audio import alaw_to_l16, l16_to_alaw, l16_to_mulaw, mulaw_to_l16

EVERY_SAMPLE = struct.pack("<65536h", *range(-32_768, 32_768))


def samples(pcm: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(pcm) // 2}h", pcm))


def test_known_codes() -> None:
    # G.711 tables 1a to 2b, scaled to 16 bits: the extremes, and the values nearest to zero.
    assert samples(mulaw_to_l16(b"\x00\x80\x7f\xff")) == [-32_124, 32_124, 0, 0]
    assert samples(alaw_to_l16(b"\x2a\xaa\x55\xd5")) == [-32_256, 32_256, -8, 8]
    assert l16_to_mulaw(struct.pack("<3h", 0, 32_767, -32_768)) == b"\xff\x80\x00"
    assert l16_to_alaw(struct.pack("<4h", 0, -1, 32_767, -32_768)) == b"\xd5\x55\xaa\x2a"


def test_every_code_survives_decoding_and_encoding() -> None:
    codes = bytes(range(256))
    assert l16_to_alaw(alaw_to_l16(codes)) == codes
    # 0x7f is negative zero, which no encoder makes.
    assert l16_to_mulaw(mulaw_to_l16(codes)) == codes.replace(b"\x7f", b"\xff")


@pytest.mark.parametrize(("encode", "decode"), [(l16_to_mulaw, mulaw_to_l16), (l16_to_alaw, alaw_to_l16)])
def test_the_error_stays_within_half_a_step(encode: object, decode: object) -> None:
    assert callable(encode) and callable(decode)
    decoded = samples(decode(encode(EVERY_SAMPLE)))
    for original, value in zip(range(-32_768, 32_768), decoded, strict=True):
        assert abs(original - value) <= max(16, abs(original) // 16 + 1, abs(original) - 32_100)
    assert decoded == sorted(decoded)


def test_nothing_stays_nothing() -> None:
    assert mulaw_to_l16(b"") == alaw_to_l16(b"") == l16_to_mulaw(b"") == l16_to_alaw(b"") == b""
