"""The schemas of the streams' frames, held against what the dialects write and read."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media.streams import (
    DIALECTS,
    WEBSOCKET_DIALECTS,
    AgentDtmf,
    AgentHold,
    AgentMute,
    AgentRecord,
    Dialect,
    StreamSetup,
)
from media.streams.model import CommandError, Encoding, Reconnect
from media.streams.schemas import FRAMES, schema_document
from tests.support.examples import examples


@cache
def judge(dialect: str, direction: str) -> Any:
    document = schema_document(dialect)
    return jsonschema_rs.Draft202012Validator(
        {"$schema": document["$schema"], "$ref": f"#/$defs/{direction}", "$defs": document["$defs"]}
    )


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
KEYS = st.sampled_from("0123456789*#ABCD")
COMMANDS = (
    st.builds(AgentDtmf, st.text("0123456789*#wW", min_size=1, max_size=10))
    | st.builds(AgentHold, st.booleans())
    | st.builds(AgentMute, st.booleans())
    | st.builds(AgentRecord, st.sampled_from(["start", "stop", "pause", "resume"]))
)


def setup_of(dialect: str, form: tuple[Encoding, int], **more: Any) -> StreamSetup:
    return StreamSetup(
        url="wss://bot.example.com/ws",
        stream_sid="0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10",
        call_sid="6f1f1a52-6d0b-4b5f-8d39-1f0a5e1f7c11",
        account_sid="a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12",
        from_="+919876543210",
        to="+918047491899",
        dialect=dialect,
        encoding=form[0],
        sample_rate=form[1],
        **more,
    )


def setups(dialect: str) -> st.SearchStrategy[StreamSetup]:
    kind = DIALECTS[dialect]

    def built(
        form: Any, both: bool, again: Reconnect | None, parameters: dict[str, str], outbound: bool
    ) -> StreamSetup:
        return setup_of(
            dialect,
            form,
            direction="outbound" if outbound else "inbound",
            track="both" if both and kind.both_tracks else "inbound",
            custom_parameters=tuple(parameters.items()),
            reconnect=again,
        )

    again = st.none() | st.builds(Reconnect, st.integers(1, 10), st.just("0b6c4d0e"))
    parameters = st.dictionaries(NAMES, TEXTS, max_size=3)
    return st.builds(
        built, st.sampled_from(list(kind.formats)), st.booleans(), again, parameters, st.booleans()
    )


Writing = Callable[[Dialect], bytes | None]

WRITINGS: st.SearchStrategy[Writing] = st.one_of(
    st.builds(lambda name, cleared: lambda d: d.mark(marked(d, name), cleared=cleared), NAMES, st.booleans()),
    st.builds(lambda key, ms: lambda d: d.dtmf(key, ms), KEYS, st.integers(40, 5000)),
    st.builds(lambda command: lambda d: d.accepted(command), COMMANDS),
    st.builds(
        lambda status, sip, cause: lambda d: d.transfer(status, sip, cause),
        st.sampled_from(["ringing", "answered", "failed"]),
        st.none() | st.integers(100, 699),
        st.none() | TEXTS,
    ),
    st.builds(lambda code, text, ref: lambda d: d.error(code, text, ref), NAMES, TEXTS, st.none() | TEXTS),
    st.builds(lambda active: lambda d: d.speech(active), st.booleans()),
    st.builds(lambda full, ms: lambda d: d.buffer(full, ms), st.booleans(), st.integers(0, 120_000)),
    st.builds(lambda active: lambda d: d.held(active), st.booleans()),
    st.builds(lambda _: lambda d: d.cleared(), st.none()),
    st.builds(lambda ms: lambda d: _text_media(d, ms), st.integers(20, 10_000_000)),
)


def marked(dialect: Dialect, name: str) -> str:
    """The name of a mark as the dialect itself has it, once it has read it."""
    read = dialect.decode(json.dumps({"event": "mark", "mark": {"name": name}}).encode())
    return str(getattr(read, "name", None) or getattr(read, "mark", name))


def _text_media(dialect: Dialect, timestamp_ms: int) -> bytes | None:
    frame = dialect.media(bytes(320), timestamp_ms)
    return None if dialect.binary_audio else frame


@pytest.mark.parametrize("dialect", WEBSOCKET_DIALECTS)
@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_all_that_is_written_is_described(dialect: str, data: st.DataObject) -> None:
    writer = DIALECTS[dialect](data.draw(setups(dialect)))
    described = judge(dialect, "ToAgent")
    frames = [writer.connected(), writer.start(1_732_099_200_000)]
    frames += [write(writer) for write in data.draw(st.lists(WRITINGS, max_size=20))]
    frames.append(writer.stop("stopped", "api_hangup"))
    for frame in frames:
        if frame is not None:
            described.validate(json.loads(frame) if frame.startswith(b"{") else frame.decode())


# What agents send, as clients of each kind spell it.
SPOKEN: dict[str, list[Any]] = {
    "exotel": [
        {"event": "media", "stream_sid": "0b6c", "media": {"payload": "AAAAAAAA"}},
        {"event": "mark", "stream_sid": "0b6c", "mark": {"name": "greeting"}},
        {"event": "clear"},
        {"event": "dtmf", "dtmf": {"digits": "12w3#", "duration_ms": 160, "gap_ms": 80}},
        {"event": "sendDTMF", "dtmf": "123#"},
        {"event": "hangup", "hangup": {"drain": True, "reason": "completed"}},
        {"event": "transfer", "transfer": {"to": "+919812345678", "mode": "bridge", "timeout": 30}},
        {"event": "transcript", "transcript": {"role": "agent", "text": "Namaste"}},
    ],
    "twilio": [
        {"event": "media", "streamSid": "0b6c", "media": {"payload": "AAAAAAAA"}},
        {"event": "mark", "streamSid": "0b6c", "mark": {"name": "m1"}},
        {"event": "clear", "streamSid": "0b6c"},
        {"event": "stop"},
    ],
    "vonage": [
        {"action": "clear"},
        {"action": "notify", "payload": {"mark": "m1"}},
        {"event": "transfer", "transfer": {"to": "+919812345678"}},
    ],
    "plivo": [
        {
            "event": "playAudio",
            "media": {"contentType": "audio/x-mulaw", "sampleRate": 8000, "payload": "AAAAAAAA"},
        },
        {"event": "checkpoint", "streamId": "0b6c", "name": "m1"},
        {"event": "clearAudio", "streamId": "0b6c"},
        {"event": "sendDTMF", "dtmf": "1234#"},
    ],
    "jambonz": [
        {
            "type": "playAudio",
            "data": {"audioContentType": "raw", "sampleRate": 8000, "audioContent": "AAAAAAAA", "id": "p1"},
        },
        {"type": "mark", "data": {"name": "m1"}},
        {"type": "killAudio"},
        {"type": "clearMarks"},
        {"type": "disconnect"},
    ],
    "telnyx": [{"event": "media", "media": {"payload": "AAAAAAAA"}}, {"event": "clear"}],
    "asterisk": [
        *("ANSWER", "HANGUP", "GET_STATUS", "FLUSH_MEDIA", "REPORT_QUEUE_DRAINED", "START_MEDIA_BUFFERING"),
        *("STOP_MEDIA_BUFFERING", "STOP_MEDIA_BUFFERING 61ea 9311", "MARK_MEDIA", "MARK_MEDIA m1"),
        *("PAUSE_MEDIA", "CONTINUE_MEDIA"),
        {"command": "STOP_MEDIA_BUFFERING", "correlation_id": "61ea9311"},
        {"command": "SET_MEDIA_DIRECTION", "direction": "both"},
        {"event": "transfer", "transfer": {"to": "+919812345678"}},
    ],
}
SPOKEN["asterisk_json"] = SPOKEN["asterisk"]
SPOKEN["vobiz"] = SPOKEN["plivo"]


@pytest.mark.parametrize("dialect", WEBSOCKET_DIALECTS)
@given(data=st.data())
@settings(max_examples=examples(10), deadline=None)
def test_what_is_described_is_taken(dialect: str, data: st.DataObject) -> None:
    reader = DIALECTS[dialect](data.draw(setups(dialect)))
    for message in SPOKEN[dialect]:
        judge(dialect, "FromAgent").validate(message)
        reader.decode((message if isinstance(message, str) else json.dumps(message)).encode())


@pytest.mark.parametrize("dialect", WEBSOCKET_DIALECTS)
@pytest.mark.parametrize(
    "message",
    [
        {"event": "nonsense"},
        {"event": "mark", "mark": {"name": ""}},
        {"event": "dtmf", "dtmf": {"digits": "x"}},
        {"event": "transfer", "transfer": {"to": "+91 98"}},
        {"event": "hold", "hold": {"active": "yes"}},
    ],
)
def test_what_is_not_taken_is_not_described(dialect: str, message: dict[str, Any]) -> None:
    assert not judge(dialect, "FromAgent").is_valid(message)
    with pytest.raises(CommandError):
        DIALECTS[dialect](setup_of(dialect, DIALECTS[dialect].formats[0])).decode(
            json.dumps(message).encode()
        )


def test_every_dialect_is_described() -> None:
    assert set(WEBSOCKET_DIALECTS) <= FRAMES.keys()


def test_a_frame_with_more_than_is_described_is_refused() -> None:
    described = judge("exotel", "ToAgent")
    described.validate({"event": "connected"})
    assert not described.is_valid({"event": "connected", "streamSid": "x"})
    assert not described.is_valid({"event": "media", "media": {}})
