"""Asterisk's two protocols, held to the exchanges of their documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media.audio import tone
from media.streams import (
    AgentClear,
    AgentCommand,
    AgentDtmf,
    AgentHangup,
    AgentMark,
    AgentPause,
    AgentStatus,
    CommandError,
    Dialect,
    Reconnect,
)
from tests.support.examples import examples
from tests.support.levels import tone_level_dbfs
from tests.support.stream_setups import CALL, STREAM, make_dialect, opening

BOTH = pytest.mark.parametrize("name", ["asterisk", "asterisk_json"])


def command(word: str, **fields: Any) -> bytes:
    return json.dumps({"command": word} | fields).encode()


def test_words_that_open_a_stream() -> None:
    assert make_dialect("asterisk").connected() is None
    assert opening(make_dialect("asterisk")).decode() == (
        f"MEDIA_START connection_id:{STREAM} channel:WebSocket/{CALL} channel_id:{CALL} format:ulaw "
        "optimal_frame_size:160 ptime:20"
    )
    again = make_dialect("asterisk", encoding="l16", sample_rate=16_000, reconnect=Reconnect(2, "earlier"))
    words = opening(again).decode()
    assert words.partition(" format:")[2] == (
        "slin16 optimal_frame_size:640 ptime:20 reconnect:true attempt:2 previous_stream_sid:earlier"
    )


def test_json_that_opens_a_stream() -> None:
    made = make_dialect("asterisk_json", encoding="alaw")
    assert json.loads(opening(made)) == {
        "event": "MEDIA_START",
        "connection_id": STREAM,
        "channel": f"WebSocket/{CALL}",
        "channel_id": CALL,
        "format": "alaw",
        "optimal_frame_size": 160,
        "ptime": 20,
        "channel_variables": {
            "customer": "42",
            "account_sid": "a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12",
            "from": "+919876543210",
            "to": "+918047491899",
            "direction": "inbound",
        },
    }


def written(made: Dialect) -> list[bytes | None]:
    """Every event of Asterisk's that is not about a mark."""
    return [
        made.dtmf("5", 160),
        made.buffer(True, 18_000),
        made.status(1234, True),
        made.buffer(False, 16_000),
        made.error("invalid_command", "no\nsuch", "MARK_MEDIA"),
        made.cleared(),
        made.stop("stopped", "api_hangup"),
    ]


def test_events_in_words() -> None:
    assert written(make_dialect("asterisk")) == [
        f"DTMF_END digit:5 channel_id:{CALL}".encode(),
        b"MEDIA_XOFF",
        (
            f"STATUS channel_id:{CALL} queue_length:61 xon_level:800 xoff_level:900 queue_full:true "
            "bulk_media:false media_paused:true"
        ).encode(),
        b"MEDIA_XON",
        f"ERROR channel_id:{CALL} error_text:MARK_MEDIA: no such (invalid_command)".encode(),
        None,
        None,
    ]


def test_events_in_json() -> None:
    frames = [frame and json.loads(frame) for frame in written(make_dialect("asterisk_json"))]
    assert frames == [
        {"event": "DTMF_END", "channel_id": CALL, "digit": "5"},
        {"event": "MEDIA_XOFF", "channel_id": CALL},
        {
            "event": "STATUS",
            "channel_id": CALL,
            "queue_length": 61,
            "xon_level": 800,
            "xoff_level": 900,
            "queue_full": True,
            "bulk_media": False,
            "media_paused": True,
        },
        {"event": "MEDIA_XON", "channel_id": CALL},
        {"event": "ERROR", "channel_id": CALL, "error_text": "MARK_MEDIA: no such (invalid_command)"},
        None,
        None,
    ]


READS: list[tuple[bytes, bytes | AgentCommand]] = [
    (b"ANSWER", b""),
    (b" HANGUP\r\n", AgentHangup(drain=False)),
    (b"START_MEDIA_BUFFERING", b""),
    (b"FLUSH_MEDIA", AgentClear()),
    (b"PAUSE_MEDIA", AgentPause(True)),
    (b"CONTINUE_MEDIA", AgentPause(False)),
    (b"GET_STATUS", AgentStatus()),
    (command("HANGUP"), AgentHangup(drain=False)),
    (command("PAUSE_MEDIA"), AgentPause(True)),
    (command("SET_MEDIA_DIRECTION", direction="both"), b""),
    (b'{"event":"dtmf","dtmf":{"digits":"1"}}', AgentDtmf("1")),
]


@BOTH
@pytest.mark.parametrize(("data", "expected"), READS)
def test_commands_are_read_in_either_form(name: str, data: bytes, expected: bytes | AgentCommand) -> None:
    assert make_dialect(name).decode(data) == expected


def reached(made: Dialect, data: bytes, *, cleared: bool) -> bytes | None:
    mark = made.decode(data)
    assert isinstance(mark, AgentMark)
    return made.mark(mark.name, cleared=cleared)


@pytest.mark.parametrize("identifier", ["", "m1", "61ea 9311:x", "é"])
def test_marks_and_the_end_of_buffering_are_reported_unless_they_are_flushed(identifier: str) -> None:
    words, objects = make_dialect("asterisk"), make_dialect("asterisk_json")
    for word, event in (
        ("MARK_MEDIA", "MEDIA_MARK_PROCESSED"),
        ("STOP_MEDIA_BUFFERING", "MEDIA_BUFFERING_COMPLETED"),
    ):
        line = f"{word} {identifier}".strip().encode()
        assert reached(words, line, cleared=False) == f"{event} {identifier}".strip().encode()
        sent = reached(objects, command(word, correlation_id=identifier), cleared=False)
        assert json.loads(sent or b"") == {
            "event": event,
            "channel_id": CALL,
            "correlation_id": identifier,
        }
        assert reached(words, line, cleared=True) is None


def test_an_empty_queue_is_reported_also_when_it_was_flushed() -> None:
    for cleared in (False, True):
        assert reached(make_dialect("asterisk"), b"REPORT_QUEUE_DRAINED", cleared=cleared) == b"QUEUE_DRAINED"
        sent = reached(make_dialect("asterisk_json"), b"REPORT_QUEUE_DRAINED", cleared=cleared)
        assert json.loads(sent or b"") == {"event": "QUEUE_DRAINED", "channel_id": CALL}


def test_marks_of_all_dialects_are_answered_in_json() -> None:
    made = make_dialect("asterisk")
    sent = reached(made, b'{"event":"mark","mark":{"name":"drained:x"}}', cleared=True)
    assert json.loads(sent or b"") == {"event": "mark", "mark": {"name": "drained:x", "status": "cleared"}}


@BOTH
@pytest.mark.parametrize(
    ("data", "code", "counts"),
    [
        (b"", "invalid_command", True),
        (b"\xff\x00{[1", "invalid_command", True),
        (b"no word", "invalid_command", True),
        (b"hangup", "invalid_command", True),
        (b"{", "invalid_json", True),
        (b"{}", "unknown_event", False),
        (b"REWIND_MEDIA 3", "unknown_event", False),
        (b"MARK_MEDIA " + b"x" * 257, "invalid_command", True),
        (b"MARK_MEDIA a\x01b", "invalid_command", True),
        (b'{"command":7}', "invalid_command", True),
        (command("MARK_MEDIA", correlation_id=7), "invalid_command", True),
        (command("STOP_MEDIA_BUFFERING", correlation_id="\ud800"), "invalid_command", True),
        (command("SET_MEDIA_DIRECTION", direction="in"), "refused", False),
    ],
)
def test_what_cannot_be_read_is_refused(name: str, data: bytes, code: str, counts: bool) -> None:
    with pytest.raises(CommandError) as caught:
        make_dialect(name).decode(data)
    assert (caught.value.code, caught.value.counts) == (code, counts)


def test_samples_may_be_cut_anywhere_while_audio_is_buffered() -> None:
    made = make_dialect("asterisk", encoding="l16", sample_rate=16_000)
    pcm = tone(1000, 400, sample_rate=16_000)
    assert made.envelope == (b"", b"")
    made.decode(b"START_MEDIA_BUFFERING")
    assert made.envelope is None
    heard = b""
    for at in range(0, len(pcm), 1023):
        audio = made.decode_binary(pcm[at : at + 1023])
        assert isinstance(audio, bytes) and len(audio) % 2 == 0
        heard += audio
    assert heard == pcm and tone_level_dbfs(heard, 1000, 16_000) > -11.0
    assert made.decode_binary(b"\1") == b""
    made.decode(b"STOP_MEDIA_BUFFERING")
    assert made.envelope == (b"", b"")
    # The half of a sample that was left over does not shift what follows.
    assert made.decode_binary(b"\2\3\4\5") == b"\2\3\4\5"


def test_without_buffering_what_is_no_whole_sample_is_dropped() -> None:
    made = make_dialect("asterisk", encoding="l16")
    assert made.decode_binary(b"\1\2\3") == b"\1\2"
    assert made.decode_binary(b"\4\5") == b"\4\5"
    assert make_dialect("asterisk").decode_binary(b"\1\2\3") == b"\1\2\3"


def test_a_flush_ends_the_buffering() -> None:
    made = make_dialect("asterisk", encoding="l16")
    made.decode(b"START_MEDIA_BUFFERING")
    made.decode_binary(b"\1")
    made.decode(b"FLUSH_MEDIA")
    assert made.decode_binary(b"\2\3") == b"\2\3"
    assert b"bulk_media:false" in (made.status(0, False) or b"")


WORDS = st.sampled_from([b"MARK_MEDIA", b"STOP_MEDIA_BUFFERING", b"HANGUP", b"GET_STATUS", b"{", b" ", b"m"])


@BOTH
@settings(max_examples=examples(200))
@given(parts=st.lists(WORDS | st.binary(max_size=8), max_size=6))
def test_hostile_agents_are_read_or_refused_in_one_line(name: str, parts: list[bytes]) -> None:
    made = make_dialect(name)
    try:
        outcome = made.decode(b"".join(parts))
    except CommandError as error:
        sent = made.error(error.code, error.message, error.ref)
        assert sent is not None and sent.decode().isprintable()
    else:
        if isinstance(outcome, AgentMark):
            assert (made.mark(outcome.name, cleared=False) or b"").decode().isprintable()
