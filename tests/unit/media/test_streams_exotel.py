"""The default dialect, held to its golden frames and to what stock clients make of them."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.streams import (
    AgentClear,
    AgentDtmf,
    AgentHangup,
    AgentHold,
    AgentMark,
    AgentMute,
    AgentRecord,
    CommandError,
    ExotelDialect,
    Reconnect,
)
from tests.support.stream_setups import STREAM, stream_setup


def dialect(**changes: Any) -> ExotelDialect:
    return ExotelDialect(stream_setup(**changes))


def at(sequence: int, **changes: Any) -> ExotelDialect:
    """A dialect whose next frame has that number."""
    made = dialect(**changes)
    for _ in range(sequence - 1):
        made.error("x", "y")
    return made


def test_golden_opening() -> None:
    made = dialect()
    assert made.connected() == b'{"event":"connected"}'
    assert made.start() == (
        b'{"event":"start","sequence_number":"1","stream_sid":"0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10","start":'
        b'{"stream_sid":"0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10","call_sid":"6f1f1a52-6d0b-4b5f-8d39-1f0a5e1f7c11",'
        b'"account_sid":"a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12","from":"+919876543210","to":"+918047491899",'
        b'"direction":"inbound","custom_parameters":{"customer":"42"},"media_format":{"encoding":"raw",'
        b'"sample_rate":"8000","bit_rate":"128","bits":16,"channels":1,"endian":"little"}}}'
    )


def test_golden_opening_at_16_khz() -> None:
    start = json.loads(dialect(sample_rate=16_000, direction="outbound").start())["start"]
    assert start["direction"] == "outbound"
    assert start["media_format"]["sample_rate"] == "16000"
    assert start["media_format"]["bit_rate"] == "256"


def test_a_stream_that_continues_another_says_so() -> None:
    start = json.loads(dialect(reconnect=Reconnect(1, "earlier")).start())["start"]
    assert (start["reconnect"], start["attempt"], start["previous_stream_sid"]) == (True, 1, "earlier")


@pytest.mark.parametrize(("rate", "size", "characters"), [(8000, 320, 428), (16_000, 640, 856)])
def test_golden_media(rate: int, size: int, characters: int) -> None:
    made = dialect(sample_rate=rate)
    made.start()
    audio = bytes(index % 251 for index in range(size))
    payload = base64.b64encode(audio)
    assert len(payload) == characters
    assert made.media(audio, 20) == (
        b'{"event":"media","sequence_number":"2","stream_sid":"0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10",'
        b'"media":{"chunk":"1","timestamp":"20","payload":"' + payload + b'"}}'
    )
    assert json.loads(made.media(audio, 60))["media"]["chunk"] == "2"


@pytest.mark.parametrize(
    ("sequence", "write", "expected"),
    [
        (
            60,
            lambda made: made.mark("greeting", cleared=False),
            b'{"event":"mark","sequence_number":"60","stream_sid":"SID","mark":{"name":"greeting","status":"played"}}',
        ),
        (
            140,
            lambda made: made.mark("answer-1", cleared=True),
            b'{"event":"mark","sequence_number":"140","stream_sid":"SID",'
            b'"mark":{"name":"answer-1","status":"cleared"}}',
        ),
        (
            91,
            lambda made: made.dtmf("5", 160),
            b'{"event":"dtmf","sequence_number":"91","stream_sid":"SID","dtmf":{"digit":"5","duration":"160"}}',
        ),
        (
            171,
            lambda made: made.accepted(AgentDtmf("1#")),
            b'{"event":"dtmf_sent","sequence_number":"171","stream_sid":"SID","dtmf":{"digits":"1#"}}',
        ),
        (
            900,
            lambda made: made.stop("callended", "caller_hangup"),
            b'{"event":"stop","sequence_number":"900","stream_sid":"SID","stop":{"call_sid":"6f1f1a52-6d0b-4b5f-8d39-'
            b'1f0a5e1f7c11","account_sid":"a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12","reason":"callended",'
            b'"detail":"caller_hangup"}}',
        ),
        (
            2,
            lambda made: made.transfer("failed", 486, "USER_BUSY"),
            b'{"event":"transfer","sequence_number":"2","stream_sid":"SID",'
            b'"transfer":{"status":"failed","sip_status":486,"hangup_cause":"USER_BUSY"}}',
        ),
        (
            2,
            lambda made: made.error("invalid_command", "no", "transfer"),
            b'{"event":"error","sequence_number":"2","stream_sid":"SID",'
            b'"error":{"code":"invalid_command","message":"no","ref":"transfer"}}',
        ),
        (
            2,
            lambda made: made.accepted(AgentHold(True)),
            b'{"event":"hold","sequence_number":"2","stream_sid":"SID","hold":{"active":true}}',
        ),
        (
            2,
            lambda made: made.accepted(AgentMute(False)),
            b'{"event":"mute","sequence_number":"2","stream_sid":"SID","mute":{"active":false}}',
        ),
        (
            2,
            lambda made: made.accepted(AgentRecord("pause")),
            b'{"event":"record","sequence_number":"2","stream_sid":"SID","record":{"action":"pause"}}',
        ),
    ],
)
def test_golden_events(sequence: int, write: Any, expected: bytes) -> None:
    assert write(at(sequence)) == expected.replace(b"SID", STREAM.encode())


def test_odd_identifiers_cannot_break_a_frame() -> None:
    made = dialect(stream_sid='%d"\\%', custom_parameters=(('"', "\n\ud800"),))
    assert json.loads(made.start())["stream_sid"] == '%d"\\%'
    assert json.loads(made.media(b"\0\0", 20))["stream_sid"] == '%d"\\%'


def test_golden_frames_of_the_agent() -> None:
    made = dialect()
    sid = f'"stream_sid":"{STREAM}"'
    audio = bytes(640)
    payload = base64.b64encode(audio).decode()
    assert made.decode(f'{{"event":"media",{sid},"media":{{"payload":"{payload}"}}}}'.encode()) == audio
    assert made.decode(f'{{"event":"mark",{sid},"mark":{{"name":"greeting"}}}}'.encode()) == AgentMark(
        "greeting"
    )
    assert made.decode(f'{{"event":"clear",{sid}}}'.encode()) == AgentClear()
    assert made.decode(b'{"event":"dtmf","dtmf":{"digits":"1#"}}') == AgentDtmf("1#", 160, 80)
    assert made.decode(b'{"event":"stop"}') == AgentHangup()


@pytest.mark.parametrize("sid", ["", '"stream_sid":"x",', '"streamSid":"x",', '"stream_sid":null,'])
def test_the_stream_may_be_named_in_any_way_or_none(sid: str) -> None:
    assert dialect().decode(f'{{"event":"media",{sid}"media":{{"payload":"AAA="}}}}'.encode()) == b"\0\0"


def media_frame(audio: bytes, **extra: Any) -> bytes:
    payload = base64.b64encode(audio).decode()
    return json.dumps(
        {"event": "media", "stream_sid": STREAM, "media": {"payload": payload}} | extra
    ).encode()


def test_audio_of_any_even_length_is_taken() -> None:
    made = dialect()
    for size in (0, 2, 318, 320, 642, 64_000):
        for _ in range(3):
            audio = bytes(index * 7 % 256 for index in range(size))
            assert made.decode(media_frame(audio)) == audio


@pytest.mark.parametrize("size", [1, 3, 321])
def test_half_a_sample_is_refused_also_on_the_short_cut(size: int) -> None:
    made = dialect()
    for _ in range(2):
        assert made.decode(media_frame(bytes(2))) == bytes(2)
    with pytest.raises(CommandError, match="whole samples"):
        made.decode(media_frame(bytes(size)))


def test_an_agent_that_numbers_its_frames_is_read_all_the_same() -> None:
    made = dialect()
    for number in range(20):
        audio = bytes([number, 0])
        assert made.decode(media_frame(audio, chunk=number)) == audio


def test_the_short_cut_does_not_take_a_name_for_the_payload() -> None:
    made = dialect()
    frame = b'{"event":"media","stream_sid":"AAAA","media":{"payload":"AAAA"}}'
    with pytest.raises(CommandError, match="whole samples"):
        made.decode(frame)
    frame = b'{"event":"media","stream_sid":"AAAAAAAA","media":{"payload":"AAAAAAAA"}}'
    assert made.decode(frame) == bytes(6)
    assert made.decode(frame.replace(b'd":"AAAAAAAA","m', b'd":"BBBBBBBB","m')) == bytes(6)


@pytest.mark.parametrize(
    "payload",
    [b'AAA=","x":"', b"AA A", b"AA\\u0041A", b"AAA=AAA=", b"AAA", b"\xff\xff\xff\xff", b"AAA\n", b"-_-_"],
)
def test_the_short_cut_takes_pure_base64_only(payload: bytes) -> None:
    fresh, taught = dialect(), dialect()
    template = b'{"event":"media","media":{"payload":"%b"}}'
    for _ in range(3):
        assert taught.decode(template % b"AAA=") == b"\0\0"
    outcomes = []
    for made in (fresh, taught):
        try:
            outcomes.append(repr(made.decode(template % payload)))
        except CommandError as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "invalid_json"),
        (b"hello", "invalid_json"),
        (b"[]", "invalid_json"),
        (b'"event"', "invalid_json"),
        (b"\xff\xfe{\0}\0", "invalid_json"),
        (b'{"event":"clear"}'.decode().encode("utf-16"), "invalid_json"),
        (b'{"a":' * 100_000, "invalid_json"),
        (b"[" * 900_000, "invalid_json"),
        (b'{"event":' + b"9" * 10_000 + b"}", "invalid_json"),
        (b"{}", "unknown_event"),
        (b'{"event":7}', "unknown_event"),
        (b'{"event":["clear"]}', "unknown_event"),
        (b'{"event":"Clear"}', "unknown_event"),
        (b'{"label":"rtvi-ai","type":"bot-ready"}', "unknown_event"),
        (b'{"event":"media"}', "invalid_command"),
        (b'{"event":"media","media":[]}', "invalid_command"),
        (b'{"event":"media","media":{}}', "invalid_command"),
        (b'{"event":"media","media":{"payload":7}}', "invalid_command"),
        (b'{"event":"media","media":{"payload":"*"}}', "invalid_command"),
        (b'{"event":"media","media":{"payload":"\xc3\xa9AA="}}', "invalid_command"),
        (b'{"event":"media","media":{"payload":"AA=="}}', "invalid_command"),
    ],
)
def test_nonsense_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(CommandError) as caught:
        dialect().decode(data)
    assert caught.value.code == code
    assert caught.value.counts == (code != "unknown_event")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.sampled_from(
    [
        "media",
        "mark",
        "clear",
        "dtmf",
        "sendDTMF",
        "hangup",
        "stop",
        "transfer",
        "hold",
        "mute",
        "record",
        "x",
    ]
)
BODIES = st.dictionaries(
    st.sampled_from(
        [
            "payload",
            "name",
            "digits",
            "drain",
            "reason",
            "to",
            "mode",
            "caller_id",
            "timeout",
            "headers",
            "active",
        ]
    ),
    JSON,
    max_size=4,
)


@given(EVENTS, JSON | BODIES, st.dictionaries(st.text(max_size=8), JSON, max_size=2))
def test_hostile_objects_are_read_or_refused(event: str, body: object, extra: dict[str, object]) -> None:
    message = extra | {"event": event, event: body, "dtmf": body}
    made = dialect()
    try:
        made.decode(json.dumps(message).encode())
    except CommandError as error:
        made.error(error.code, error.message, error.ref)


@given(st.lists(st.binary(max_size=80), max_size=6))
def test_hostile_bytes_are_read_or_refused(frames: list[bytes]) -> None:
    made = dialect()
    made.decode(media_frame(b"\0\0"))
    for data in frames:
        try:
            made.decode(data)
        except CommandError:
            pass
