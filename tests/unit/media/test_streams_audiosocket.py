"""The protocol of Asterisk's AudioSocket, byte by byte."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media.audio import tone
from media.streams import AgentDtmf, AgentHangup, CommandError
from media.streams.dialects.audiosocket import frame_length
from tests.support.examples import examples
from tests.support.levels import tone_level_dbfs
from tests.support.stream_setups import CALL, make_dialect, opening


def test_a_stream_begins_with_the_identifier_of_the_call() -> None:
    made = make_dialect("audiosocket")
    assert made.connected() is None
    assert opening(made) == b"\x01\x00\x10" + UUID(CALL).bytes


def test_the_customer_may_name_another_identifier() -> None:
    asked = "40325ec2-5efd-4bd3-805f-53576e581d13"
    made = make_dialect("audiosocket", custom_parameters=(("uuid", asked),))
    assert opening(made)[3:] == UUID(asked).bytes
    other = make_dialect("audiosocket", custom_parameters=(("uuid", "mine"),))
    assert opening(other)[3:] == UUID(CALL).bytes


def test_a_call_whose_identifier_is_no_uuid_has_one_of_its_own() -> None:
    one, same, other = (opening(make_dialect("audiosocket", call_sid=sid)) for sid in ("a", "a", "b"))
    assert one == same != other and len(one) == 19


@pytest.mark.parametrize(("rate", "kind"), [(8000, 0x10), (16_000, 0x12)])
def test_audio_has_the_kind_of_its_rate(rate: int, kind: int) -> None:
    audio = bytes(rate // 25)
    made = make_dialect("audiosocket", sample_rate=rate)
    assert made.media(audio, 20) == bytes((kind,)) + len(audio).to_bytes(2, "big") + audio


def test_what_the_protocol_has_is_written_and_the_rest_is_not() -> None:
    made = make_dialect("audiosocket")
    assert made.dtmf("#", 160) == b"\x03\x00\x01#"
    assert made.stop("callended", "caller_hangup") == b"\x00\x00\x00"
    said = [made.mark("m", cleared=False), made.error("c", "m"), made.buffer(True, 1), made.speech(True)]
    assert said == [None] * 4


def test_what_a_server_sends_is_read() -> None:
    made = make_dialect("audiosocket")
    assert made.decode_binary(b"\x10\x00\x04\1\2\3\4") == b"\1\2\3\4"
    assert made.decode_binary(b"\x10\x00\x00") == b""
    assert made.decode_binary(b"\x00\x00\x00") == AgentHangup(drain=False)
    assert made.decode_binary(b"\xff\x00\x01\x04") == AgentHangup(drain=False, reason="error")
    assert made.decode_binary(b"\x03\x00\x015") == AgentDtmf("5")


@pytest.mark.parametrize(
    ("kind", "rate"),
    [(0x11, 12_000), (0x12, 16_000), (0x13, 24_000), (0x14, 32_000), (0x15, 44_100), (0x16, 48_000)]
    + [(0x17, 96_000), (0x18, 192_000)],
)
def test_audio_of_every_rate_is_converted(kind: int, rate: int) -> None:
    made = make_dialect("audiosocket")
    pcm, heard = tone(1000, 600, sample_rate=rate), b""
    for at in range(0, len(pcm), rate // 25 // 2 * 2):
        piece = pcm[at : at + rate // 25 // 2 * 2]
        audio = made.decode_binary(bytes((kind,)) + len(piece).to_bytes(2, "big") + piece)
        assert isinstance(audio, bytes)
        heard += audio
    assert 8000 <= len(heard) <= 9600
    assert tone_level_dbfs(heard[1600:], 1000) == pytest.approx(-10.0, abs=1.0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x10",
        b"\x10\x00\x04\1\2",
        b"\x10\x00\x03\1\2\3",
        b"\x01\x00\x10" + bytes(16),
        b"\x03\x00\x00",
        b"\x03\x00\x01x",
        b"\x42\x00\x00",
    ],
)
def test_what_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(CommandError):
        make_dialect("audiosocket").decode_binary(data)


def test_there_is_no_text() -> None:
    with pytest.raises(CommandError, match="no text"):
        make_dialect("audiosocket").decode(b"{}")


@settings(max_examples=examples(200))
@given(kind=st.integers(0, 255), payload=st.binary(max_size=64))
def test_any_frame_is_read_or_refused(kind: int, payload: bytes) -> None:
    frame = bytes((kind,)) + len(payload).to_bytes(2, "big") + payload
    assert frame_length(frame[:3]) == len(frame)
    try:
        outcome = make_dialect("audiosocket").decode_binary(frame)
    except CommandError:
        return
    if isinstance(outcome, bytes):
        assert len(outcome) % 2 == 0
