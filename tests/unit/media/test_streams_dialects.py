"""Every dialect, held to the exchanges that its servers know, in both directions."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from media.streams import (
    DIALECTS,
    AgentClear,
    AgentClearMarks,
    AgentCommand,
    AgentDtmf,
    AgentHangup,
    AgentHold,
    AgentMark,
    AgentPlay,
    AgentTranscript,
    AgentTransfer,
    CommandError,
    Dialect,
    Reconnect,
    frame_bytes,
)
from tests.support.stream_setups import (
    STARTED_UNIX_MS,
    STREAM,
    TEXTS_ARE_JSON,
    dialect_at,
    make_dialect,
    stream_setup,
)

JSON_DIALECTS = ("exotel", "twilio", "plivo", "vobiz", "telnyx")
BINARY_DIALECTS = ("vonage", "jambonz")

OPENINGS = [
    (
        "twilio",
        {},
        b'{"event":"connected","protocol":"Call","version":"1.0.0"}',
        '{"event":"start","sequenceNumber":"1","streamSid":"STREAM","start":{"accountSid":"ACCOUNT",'
        '"streamSid":"STREAM","callSid":"CALL","tracks":["inbound"],"mediaFormat":{"encoding":"audio/x-mulaw",'
        '"sampleRate":8000,"channels":1},"customParameters":{"customer":"42","from_number":"+919876543210",'
        '"to_number":"+918047491899"}}}',
    ),
    (
        "vonage",
        {"sample_rate": 16_000},
        None,
        '{"event":"websocket:connected","content-type":"audio/l16;rate=16000","call_sid":"CALL",'
        '"stream_sid":"STREAM","account_sid":"ACCOUNT","from":"+919876543210","to":"+918047491899","customer":"42"}',
    ),
    (
        "plivo",
        {"encoding": "l16", "sample_rate": 16_000},
        None,
        '{"event":"start","sequenceNumber":1,"start":{"callId":"CALL","streamId":"STREAM","accountId":"ACCOUNT",'
        '"tracks":["inbound"],"mediaFormat":{"encoding":"audio/x-l16","sampleRate":16000}},'
        '"extra_headers":"customer=42"}',
    ),
    (
        "vobiz",
        {},
        None,
        '{"event":"start","sequenceNumber":1,"start":{"callId":"CALL","streamId":"STREAM","accountId":"ACCOUNT",'
        '"tracks":["inbound"],"mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000}},'
        '"extra_headers":"customer=42"}',
    ),
    (
        "jambonz",
        {"sip_call_id": "a@b"},
        None,
        '{"sampleRate":8000,"mixType":"mono","callSid":"CALL","direction":"inbound","from":"+919876543210",'
        '"to":"+918047491899","callId":"a@b","callStatus":"in-progress","sipStatus":200,"accountSid":"ACCOUNT",'
        '"applicationSid":"","customerData":{"customer":"42"}}',
    ),
    (
        "telnyx",
        {},
        b'{"event":"connected","version":"1.0.0"}',
        '{"event":"start","sequence_number":"1","stream_id":"STREAM","start":{"user_id":"ACCOUNT",'
        '"call_control_id":"CALL","call_session_id":"CALL","from":"+919876543210","to":"+918047491899","tags":[],'
        '"client_state":"","custom_parameters":{"customer":"42"},"media_format":{"encoding":"PCMU",'
        '"sample_rate":8000,"channels":1}}}',
    ),
]


def filled(text: str) -> bytes:
    setup = stream_setup()
    for word, value in (("STREAM", STREAM), ("CALL", setup.call_sid), ("ACCOUNT", setup.account_sid)):
        text = text.replace(f'"{word}"', f'"{value}"')
    return text.encode()


@pytest.mark.parametrize(("name", "changes", "connected", "start"), OPENINGS)
def test_golden_openings(name: str, changes: dict[str, Any], connected: bytes | None, start: str) -> None:
    made = make_dialect(name, **changes)
    assert made.connected() == connected
    assert made.start(STARTED_UNIX_MS) == filled(start)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "twilio",
            b'{"event":"media","sequenceNumber":"2","streamSid":"STREAM","media":{"track":"inbound","chunk":"1",'
            b'"timestamp":"20","payload":"',
            b'"}}',
        ),
        (
            "plivo",
            b'{"event":"media","sequenceNumber":2,"streamId":"STREAM","media":{"track":"inbound",'
            b'"timestamp":"1732099200020","chunk":1,"payload":"',
            b'"},"extra_headers":"customer=42"}',
        ),
        (
            "telnyx",
            b'{"event":"media","sequence_number":"2","stream_id":"STREAM","media":{"track":"inbound","chunk":"1",'
            b'"timestamp":"20","payload":"',
            b'"}}',
        ),
    ],
)
def test_golden_media(name: str, before: bytes, after: bytes) -> None:
    made = dialect_at(2, name)
    audio = bytes(index % 251 for index in range(160))
    payload = base64.b64encode(audio)
    assert len(payload) == 216
    assert made.media(audio, 20) == before.replace(b"STREAM", STREAM.encode()) + payload + after
    assert json.loads(made.media(audio, 40))["media"]["chunk"] in ("2", 2)


@pytest.mark.parametrize("name", BINARY_DIALECTS)
def test_audio_of_binary_dialects_is_the_frame(name: str) -> None:
    made = make_dialect(name)
    assert made.binary_audio
    assert made.media(b"\1\2" * 160, 20) == b"\1\2" * 160
    assert made.decode_binary(b"\1\2" * 321) == b"\1\2" * 321
    with pytest.raises(CommandError, match="whole samples"):
        made.decode_binary(b"\1\2\3")


Write = Callable[[Dialect], bytes | None]
WRITES: list[tuple[str, int, Write, str | None]] = [
    (
        "twilio",
        30,
        lambda made: made.mark("m1", cleared=False),
        '{"event":"mark","sequenceNumber":"30","streamSid":"STREAM","mark":{"name":"m1"}}',
    ),
    (
        "twilio",
        31,
        lambda made: made.mark("m1", cleared=True),
        '{"event":"mark","sequenceNumber":"31","streamSid":"STREAM","mark":{"name":"m1","status":"cleared"}}',
    ),
    (
        "twilio",
        44,
        lambda made: made.dtmf("5", 160),
        '{"event":"dtmf","sequenceNumber":"44","streamSid":"STREAM","dtmf":{"track":"inbound_track","digit":"5"}}',
    ),
    (
        "twilio",
        400,
        lambda made: made.stop("callended", "caller_hangup"),
        '{"event":"stop","sequenceNumber":"400","streamSid":"STREAM",'
        '"stop":{"accountSid":"ACCOUNT","callSid":"CALL"}}',
    ),
    (
        "twilio",
        400,
        lambda made: made.stop("stopped", "transferred"),
        '{"event":"stop","sequenceNumber":"400","streamSid":"STREAM",'
        '"stop":{"accountSid":"ACCOUNT","callSid":"CALL","detail":"transferred"}}',
    ),
    ("twilio", 2, lambda made: made.cleared(), None),
    (
        "vonage",
        2,
        lambda made: made.mark('notify:{"mark":"m1"}', cleared=False),
        '{"event":"websocket:notify","payload":{"mark":"m1"}}',
    ),
    (
        "vonage",
        2,
        lambda made: made.mark('notify:{"mark":"m1"}', cleared=True),
        '{"event":"websocket:notify","payload":{"mark":"m1"},"status":"cleared"}',
    ),
    (
        "vonage",
        2,
        lambda made: made.mark("mark:m1", cleared=False),
        '{"event":"mark","mark":{"name":"m1","status":"played"}}',
    ),
    (
        "vonage",
        2,
        lambda made: made.dtmf("5", 160),
        '{"event":"websocket:dtmf","digit":"5","duration":160}',
    ),
    ("vonage", 2, lambda made: made.cleared(), '{"event":"websocket:cleared"}'),
    (
        "vonage",
        2,
        lambda made: made.stop("callended", "caller_hangup"),
        '{"event":"websocket:disconnected","reason":"callended"}',
    ),
    (
        "vonage",
        2,
        lambda made: made.transfer("failed", 486, "USER_BUSY"),
        '{"event":"transfer","transfer":{"status":"failed","sip_status":486,"hangup_cause":"USER_BUSY"}}',
    ),
    (
        "plivo",
        2,
        lambda made: made.mark("m1", cleared=False),
        '{"event":"playedStream","streamId":"STREAM","name":"m1"}',
    ),
    ("plivo", 2, lambda made: made.mark("m1", cleared=True), None),
    ("plivo", 2, lambda made: made.cleared(), '{"event":"clearedAudio","streamId":"STREAM"}'),
    ("vobiz", 2, lambda made: made.mark("m1", cleared=False), '{"event":"playedStream","name":"m1"}'),
    ("vobiz", 2, lambda made: made.mark("m1", cleared=True), None),
    (
        "plivo",
        76,
        lambda made: made.media(bytes(160), 3000) and made.dtmf("5", 160),
        '{"event":"dtmf","sequenceNumber":77,"streamId":"STREAM","dtmf":{"track":"inbound","digit":"5",'
        '"timestamp":"1732099203000"}}',
    ),
    (
        "plivo",
        9,
        lambda made: made.stop("callended", "caller_hangup"),
        '{"event":"stop","sequenceNumber":9,"streamId":"STREAM","stop":{"callId":"CALL","accountId":"ACCOUNT"}}',
    ),
    (
        "jambonz",
        2,
        lambda made: made.mark("play:p1", cleared=False),
        '{"type":"playDone","data":{"id":"p1"}}',
    ),
    (
        "jambonz",
        2,
        lambda made: made.mark("play:p1", cleared=True),
        '{"type":"playDone","data":{"id":"p1","status":"cleared"}}',
    ),
    (
        "jambonz",
        2,
        lambda made: made.mark("mark:m1", cleared=False),
        '{"type":"mark","data":{"name":"m1","event":"playout"}}',
    ),
    (
        "jambonz",
        2,
        lambda made: made.mark("mark:m1", cleared=True),
        '{"type":"mark","data":{"name":"m1","event":"cleared"}}',
    ),
    ("jambonz", 2, lambda made: made.dtmf("5", 160), '{"event":"dtmf","dtmf":"5","duration":1280}'),
    (
        "jambonz",
        2,
        lambda made: made.stop("stopped", "stream_hangup"),
        '{"event":"stop","stop":{"callSid":"CALL","reason":"stopped","detail":"stream_hangup"}}',
    ),
    (
        "telnyx",
        7,
        lambda made: made.mark("m1", cleared=False),
        '{"event":"mark","stream_id":"STREAM","mark":{"name":"m1"}}',
    ),
    (
        "telnyx",
        7,
        lambda made: made.dtmf("5", 160),
        '{"event":"dtmf","stream_id":"STREAM","sequence_number":"7","occurred_at":"2024-11-20T10:40:00.000Z",'
        '"dtmf":{"digit":"5"}}',
    ),
    (
        "telnyx",
        7,
        lambda made: made.error("invalid_command", "no", "transfer"),
        '{"event":"error","stream_id":"STREAM","payload":{"code":"invalid_command","title":"invalid command",'
        '"detail":"no","ref":"transfer"}}',
    ),
    (
        "telnyx",
        7,
        lambda made: made.stop("callended", "caller_hangup"),
        '{"event":"stop","sequence_number":"7","stream_id":"STREAM",'
        '"stop":{"user_id":"ACCOUNT","call_control_id":"CALL"}}',
    ),
    (
        "twilio",
        3,
        lambda made: made.accepted(AgentHold(True)),
        '{"event":"hold","sequenceNumber":"3","streamSid":"STREAM","hold":{"active":true}}',
    ),
    (
        "exotel",
        3,
        lambda made: made.speech(True),
        '{"event":"speech","sequence_number":"3","stream_sid":"STREAM","speech":{"state":"start"}}',
    ),
    (
        "plivo",
        3,
        lambda made: made.buffer(True, 90_000),
        '{"event":"buffer","sequenceNumber":3,"streamId":"STREAM","buffer":{"state":"xoff","level_ms":90000}}',
    ),
    ("jambonz", 3, lambda made: made.held(False), '{"event":"hold","hold":{"active":false}}'),
]


@pytest.mark.parametrize(("name", "sequence", "write", "expected"), WRITES)
def test_golden_events(name: str, sequence: int, write: Write, expected: str | None) -> None:
    assert write(dialect_at(sequence, name)) == (None if expected is None else filled(expected))


def b64(audio: bytes) -> str:
    return base64.b64encode(audio).decode()


MULAW = bytes(range(256)) + bytes(64)
READS: list[tuple[str, str, bytes | AgentCommand]] = [
    ("twilio", f'{{"event":"media","streamSid":"S","media":{{"payload":"{b64(MULAW)}"}}}}', MULAW),
    ("twilio", '{"event":"mark","streamSid":"S","mark":{"name":"m1"}}', AgentMark("m1")),
    ("twilio", '{"event":"clear","streamSid":"S"}', AgentClear()),
    ("telnyx", f'{{"event":"media","media":{{"payload":"{b64(MULAW)}"}}}}', MULAW),
    ("telnyx", '{"event":"mark","mark":{"name":"m1"}}', AgentMark("m1")),
    ("telnyx", '{"event":"clear"}', AgentClear()),
    ("vonage", '{"action":"clear"}', AgentClear()),
    ("vonage", '{"action":"notify","payload":{"mark":"m1"}}', AgentMark('notify:{"mark":"m1"}')),
    ("vonage", '{"event":"clear"}', AgentClear()),
    ("vonage", '{"event":"mark","mark":{"name":"notify:7"}}', AgentMark("mark:notify:7")),
    ("vonage", '{"action":"mark","mark":{"name":"notify:7"}}', AgentMark("mark:notify:7")),
    ("vonage", '{"event":"transfer","transfer":{"to":"+919812345678"}}', AgentTransfer("+919812345678")),
    (
        "plivo",
        f'{{"event":"playAudio","streamId":"S","media":{{"contentType":"audio/x-mulaw","sampleRate":8000,'
        f'"payload":"{b64(MULAW)}"}}}}',
        MULAW,
    ),
    ("plivo", f'{{"event":"playAudio","media":{{"payload":"{b64(MULAW)}"}}}}', MULAW),
    ("plivo", '{"event":"checkpoint","streamId":"S","name":"m1"}', AgentMark("m1")),
    ("plivo", '{"event":"clearAudio"}', AgentClear()),
    ("plivo", '{"event":"sendDTMF","dtmf":"1234#"}', AgentDtmf("1234#")),
    ("vobiz", '{"event":"stop","streamId":"S"}', AgentHangup()),
    ("jambonz", '{"type":"mark","data":{"name":"m1"}}', AgentMark("mark:m1")),
    ("jambonz", '{"event":"mark","mark":{"name":"m1"}}', AgentMark("mark:m1")),
    ("jambonz", '{"type":"killAudio"}', AgentClear()),
    ("jambonz", '{"type":"clearMarks"}', AgentClearMarks("mark:")),
    ("jambonz", '{"type":"disconnect"}', AgentHangup()),
    ("jambonz", '{"type":"hold","data":{"active":true}}', AgentHold(True)),
    (
        "jambonz",
        '{"type":"playAudio","data":{"audioContentType":"raw","sampleRate":8000,"audioContent":"AQIDBA==",'
        '"id":"p1","queuePlay":true}}',
        AgentPlay(b"\1\2\3\4", "play:p1"),
    ),
    (
        "jambonz",
        '{"type":"playAudio","data":{"audioContentType":"raw","sampleRate":"8000","audioContent":"AQIDBA=="}}',
        AgentPlay(b"\1\2\3\4", None, replaces=True),
    ),
    (
        "exotel",
        '{"event":"transcript","transcript":{"role":"user","text":"yes","start_ms":40,"end_ms":900}}',
        AgentTranscript("user", "yes", True, 40, 900),
    ),
    (
        "vonage",
        '{"event":"transcript","transcript":{"role":"agent","text":"hm","final":false}}',
        AgentTranscript("agent", "hm", False),
    ),
]


@pytest.mark.parametrize(("name", "text", "expected"), READS)
def test_golden_frames_of_the_agent(name: str, text: str, expected: bytes | AgentCommand) -> None:
    made = make_dialect(name)
    # Twice, so that the short cut through frames of audio is taken too.
    assert made.decode(text.encode()) == expected
    assert made.decode(text.encode()) == expected


def test_an_empty_binary_frame_is_the_graceful_close_of_jambonz_and_nothing_elsewhere() -> None:
    assert make_dialect("jambonz").decode_binary(b"") == AgentHangup()
    assert make_dialect("vonage").decode_binary(b"") == b""


@pytest.mark.parametrize("name", JSON_DIALECTS)
def test_json_dialects_refuse_binary_frames(name: str) -> None:
    made = make_dialect(name)
    assert not made.binary_audio
    with pytest.raises(CommandError, match="no binary frames") as caught:
        made.decode_binary(bytes(320))
    assert caught.value.code == "binary_frame"


@pytest.mark.parametrize("name", TEXTS_ARE_JSON)
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"\xff", b"{}", b'{"event":"media"', b'{"type":7}', b'{"action":7}']
)
def test_garbage_is_refused_and_can_be_answered(name: str, data: bytes) -> None:
    made = make_dialect(name)
    with pytest.raises(CommandError) as caught:
        made.decode(data)
    answer = json.loads(made.error(caught.value.code, caught.value.message, caught.value.ref) or b"")
    assert answer["event"] in ("error", "ERROR")


def test_a_type_is_not_taken_for_the_command_that_its_data_names() -> None:
    with pytest.raises(CommandError) as caught:
        make_dialect("jambonz").decode(b'{"type":"event","data":"hangup"}')
    assert caught.value.code == "unknown_event"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("vonage", '{"action":"notify"}', "payload must be an object"),
        ("vonage", '{"action":"notify","payload":{"a":NaN}}', "plain JSON"),
        ("vonage", f'{{"action":"notify","payload":{{"a":"{"x" * 1024}"}}}}', "1024"),
        ("plivo", '{"event":"checkpoint"}', "name must be"),
        ("plivo", '{"event":"sendDTMF","dtmf":"x"}', "dtmf digits"),
        ("plivo", '{"event":"playAudio","media":{"contentType":"audio/mpeg","payload":""}}', "contentType"),
        ("plivo", '{"event":"playAudio","media":{"sampleRate":8001,"payload":""}}', "sampleRate"),
        ("plivo", '{"event":"playAudio","media":{"sampleRate":"x","payload":""}}', "sampleRate"),
        ("plivo", '{"event":"playAudio","media":{"contentType":7,"payload":""}}', "contentType"),
        ("plivo", '{"event":"playAudio","media":{"contentType":"audio/x-l16","payload":"AA=="}}', "whole"),
        ("jambonz", '{"type":"playAudio"}', "audioContentType"),
        ("jambonz", '{"type":"playAudio","data":{"audioContentType":"raw"}}', "audioContent"),
        (
            "jambonz",
            '{"type":"playAudio","data":{"audioContentType":"raw","audioContent":"AA=="}}',
            "whole samples",
        ),
        ("jambonz", '{"type":"playAudio","data":{"audioContentType":"wav","audioContent":"AA=="}}', "no WAV"),
        (
            "jambonz",
            '{"type":"playAudio","data":{"audioContentType":"raw","audioContent":"","queuePlay":1}}',
            "queuePlay",
        ),
        ("jambonz", '{"type":"playAudio","data":{"audioContentType":"raw","audioContent":"","id":7}}', "id"),
        ("exotel", '{"event":"transcript","transcript":{"role":"bot","text":"x"}}', "role"),
        ("exotel", '{"event":"transcript","transcript":{"role":"user","text":""}}', "text"),
        ("exotel", '{"event":"transcript","transcript":{"role":"user","text":"\\ud800"}}', "surrogate"),
        (
            "exotel",
            '{"event":"transcript","transcript":{"role":"user","text":"x","start_ms":9,"end_ms":8}}',
            "before",
        ),
    ],
)
def test_wrong_bodies_are_named(name: str, text: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        make_dialect(name).decode(text.encode())


@pytest.mark.parametrize("name", sorted(name for name in DIALECTS if DIALECTS[name].both_tracks))
def test_two_tracks_are_told_apart_and_counted_apart(name: str) -> None:
    made = make_dialect(name, track="both")
    start = json.loads(made.start(0) or b"")["start"]
    assert start["tracks"] == ["inbound", "outbound"]
    audio = bytes(frame_bytes(*DIALECTS[name].formats[0]))
    frames = [
        json.loads(made.media(audio, 20, track))["media"] for track in ("inbound", "outbound", "outbound")
    ]
    assert [frame["track"] for frame in frames] == ["inbound", "outbound", "outbound"]
    assert [int(frame["chunk"]) for frame in frames] == [1, 1, 2]


def test_a_default_stream_of_one_track_does_not_name_it() -> None:
    assert "track" not in json.loads(make_dialect("exotel").media(bytes(320), 20))["media"]


@pytest.mark.parametrize("name", TEXTS_ARE_JSON)
def test_a_stream_that_continues_another_says_so(name: str) -> None:
    frame = json.loads(make_dialect(name, reconnect=Reconnect(2, "earlier")).start(0) or b"")
    said = frame.get("start", frame)
    assert (said["reconnect"], said["attempt"], said["previous_stream_sid"]) == (True, 2, "earlier")


@pytest.mark.parametrize("name", TEXTS_ARE_JSON)
def test_odd_words_of_the_customer_cannot_break_a_frame(name: str) -> None:
    odd = (("event", "start"), ("start", "x"), ('"%d', "\n\ud800;=%"), ("call_sid", "theirs"))
    made = make_dialect(name, stream_sid='%d"\\%', custom_parameters=odd)
    start = json.loads(made.start(0) or b"")
    assert start.get("event") in ("start", "websocket:connected", "MEDIA_START", None)
    assert start.get("call_sid") != "theirs"
    if not made.binary_audio:
        assert json.loads(made.media(b"\0\0", 20))["media"]["payload"] == "AAA="


def test_headers_of_plivo_can_be_taken_apart_and_long_ones_are_not_repeated() -> None:
    made = make_dialect("plivo", custom_parameters=(("a", "1;b=2%"), ("c", "x y")))
    assert json.loads(made.start(0) or b"")["extra_headers"] == "a=1%3Bb%3D2%25;c=x y"
    long = make_dialect("plivo", custom_parameters=(("a", "x" * 1000),))
    assert len(json.loads(long.start(0) or b"")["extra_headers"]) == 1002
    assert json.loads(long.media(bytes(160), 20))["extra_headers"] == ""
