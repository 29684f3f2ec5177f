"""The small pure parts around calls: clocks, traces, events, quality, and ends after the fact."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.aio.mailbox import CallLogger
from callcontrol.calls.aio.sip_trace import TraceBook, on_net_key
from callcontrol.calls.charges import Rates
from callcontrol.calls.hangup_cause import CRASH
from callcontrol.calls.plan import Hangup, Plan, Play, SendDtmf, Stream
from callcontrol.calls.records.end import close_record, ending_of, write_end
from callcontrol.clock import WallClock
from callcontrol.ids import stream_sid
from callcontrol.models import CallStatus, Direction, StreamInfo
from media.streams import choose_stream
from sip.aio import Listen, TraceFields
from tests.support.domain import CALL_SID, NOW, make_record


def test_times_are_reckoned_from_the_creation() -> None:
    clock = WallClock(100.0, datetime(2026, 1, 1, 12, tzinfo=UTC))
    assert clock.at(101.2345).isoformat() == "2026-01-01T12:00:01.234000+00:00"


def test_a_call_shows_the_stream_that_it_begins_with() -> None:
    stream = Stream(choose_stream("wss://bot.example.com/ws", {"sample_rate": 16000}))
    assert Plan((stream, Hangup())).first_stream is stream
    assert Plan((SendDtmf("1w2"), stream)).first_stream is stream
    assert Plan((Play("prompt:welcome"), stream)).first_stream is None
    assert Plan((Hangup(),)).first_stream is None
    assert stream.pending("s-1", "exotel") == StreamInfo(
        "s-1", "wss://bot.example.com/ws", "exotel", "l16", 16000, "pending"
    )
    record = make_record(stream=stream.pending("s-1", "exotel"))
    write_end(record, ending_of(Hangup()), NOW, answered_for_s=None)
    assert record.stream is not None and record.stream.state == "stopped"


def test_stream_sids_differ_by_call_and_number() -> None:
    assert len({stream_sid(CALL_SID, 1), stream_sid(CALL_SID, 2), stream_sid(CALL_SID[:-1] + "2", 1)}) == 3
    assert stream_sid(CALL_SID, 1) == stream_sid(CALL_SID, 1)


def test_events_are_numbered_and_chosen() -> None:
    record = make_record(status_webhook_url="https://x.example/", status_webhook_events=("answered",))
    assert PRODUCTS.of(record).webhook_event(record, "call.ringing", {}, event_id="1", at=NOW) is None
    answered = PRODUCTS.of(record).webhook_event(record, "call.answered", {}, event_id="2", at=NOW)
    failed = PRODUCTS.of(record).webhook_event(
        record, "stream.failed", {"reason": "dns"}, event_id="3", at=NOW
    )
    assert answered is not None and failed is not None
    body = json.loads(failed.body)
    assert (body["event"], body["event_id"], body["sequence"], body["timestamp"]) == (
        "stream.failed",
        "3",
        2,
        "2026-01-02T03:04:05.000Z",
    )
    assert (body["data"]["reason"], body["data"]["call_sid"]) == ("dns", CALL_SID)
    assert (answered.url, answered.call_sid, answered.event_id) == ("https://x.example/", CALL_SID, "2")
    assert (
        PRODUCTS.of(make_record()).webhook_event(make_record(), "call.answered", {}, event_id="4", at=NOW)
        is None
    )


@pytest.mark.parametrize("direction", ["inbound", "outbound"])
def test_records_without_an_end_get_one(direction: Direction) -> None:
    answered_at = NOW + timedelta(seconds=9)
    record = make_record(
        direction=direction,
        status=CallStatus.IN_PROGRESS,
        answered_at=answered_at,
        stream=StreamInfo("s", "wss://x", state="streaming"),
    )
    assert close_record(record, CRASH, Rates(60, 40), PRODUCTS.of(record)) == (
        40 if direction == "inbound" else 60
    )
    assert (record.status, record.ended_at, record.hangup_cause) == (
        CallStatus.COMPLETED,
        answered_at,
        "CRASH",
    )
    assert record.stream is not None and record.stream.state == "stopped"
    ringing = make_record(status=CallStatus.RINGING, ringing_at=NOW)
    assert close_record(ringing, CRASH, Rates(), PRODUCTS.of(ringing)) == 0
    assert (ringing.status, ringing.duration_sec) == (CallStatus.FAILED, 0)


@pytest.mark.parametrize(
    ("answered_for_s", "duration_sec"), [(None, 0), (0.0, 0), (0.49, 0), (0.5, 1), (59.51, 60), (60.49, 60)]
)
def test_the_duration_is_that_of_the_nearest_second(answered_for_s: float | None, duration_sec: int) -> None:
    record = make_record()
    write_end(record, ending_of(Hangup()), NOW, answered_for_s=answered_for_s)
    assert record.duration_sec == duration_sec


def message(call_id: str, at: float, text: bytes = b"SIP/2.0 200 OK\r\n") -> TraceFields:
    return at, "in", Listen("udp", "127.0.0.1"), ("127.0.0.1", 5060), text, call_id


class TestTraces:
    def setup_method(self) -> None:
        self.book = TraceBook(WallClock(0.0, NOW), max_calls=2)

    def test_the_messages_of_both_legs_in_order(self) -> None:
        self.book.note(*message("x", 1.0, b"INVITE sip:a SIP/2.0\r\n"))
        self.book.claim("call", "a", "x")
        self.book.claim("call", "b", "y")
        self.book.note(*message("y", 2.0, b"INVITE sip:b SIP/2.0\r\n"))
        self.book.note(*message("x", 3.0))
        entries = self.book.of("call")
        assert [(entry.leg, entry.call_id) for entry in entries] == [("a", "x"), ("b", "y"), ("a", "x")]
        assert entries[0].at == NOW + timedelta(seconds=1)
        assert entries[0].message == "INVITE sip:a SIP/2.0\r\n"

    def test_the_sides_of_an_on_net_call_are_told_apart(self) -> None:
        self.book.note_on_net(*message("x", 1.0, b"INVITE sip:a SIP/2.0\r\n"))
        self.book.claim("calling", "a", on_net_key("x"))
        self.book.note(*message("x", 2.0, b"INVITE sip:a SIP/2.0\r\n"))
        self.book.claim("called", "a", "x")
        self.book.note_on_net(*message("x", 4.0))
        self.book.note(*message("x", 3.0))
        for call_sid, seconds in (("calling", [1, 4]), ("called", [2, 3])):
            entries = self.book.of(call_sid)
            assert [(entry.at - NOW).seconds for entry in entries] == seconds
            assert {entry.call_id for entry in entries} == {"x"}
        assert self.book.call_of("x") == "called"

    def test_only_invites_begin_a_dialog(self) -> None:
        self.book.note(*message("x", 1.0))
        self.book.claim("call", "a", "x")
        assert self.book.of("call") == []

    def test_what_no_call_claims_is_forgotten_first(self) -> None:
        self.book.note(*message("x", 1.0, b"INVITE sip:a SIP/2.0\r\n"))
        self.book.claim("call", "a", "x")
        for number in range(1000):
            self.book.note(*message(f"flood-{number}", 2.0, b"INVITE sip:a SIP/2.0\r\n"))
        assert len(self.book.of("call")) == 1
        self.book.claim("late", "a", "flood-0")
        assert self.book.of("late") == []

    def test_what_a_password_can_be_guessed_from_is_left_out(self) -> None:
        text = (
            b'INVITE sip:a SIP/2.0\r\nproxy-authorization : Digest a,\r\n response="1f"\r\nX-Own: 1\r\n\r\n'
        )
        self.book.note(*message("x", 1.0, text))
        self.book.claim("call", "b", "x")
        (entry,) = self.book.of("call")
        kept = "INVITE sip:a SIP/2.0\r\nproxy-authorization : (withheld)\r\nX-Own: 1\r\n\r\n"
        assert entry.message == kept

    def test_keys_of_encrypted_media_are_left_out(self) -> None:
        line = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:"
        key = "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR"
        text = f"INVITE sip:a SIP/2.0\r\n\r\nv=0\r\n{line}{key}\r\na=ptime:20\r\n"
        self.book.note(*message("x", 1.0, text.encode()))
        self.book.claim("call", "b", "x")
        (entry,) = self.book.of("call")
        assert entry.message == f"INVITE sip:a SIP/2.0\r\n\r\nv=0\r\n{line}(withheld)\r\na=ptime:20\r\n"

    def test_a_call_id_that_is_not_utf_8_is_shown_as_text(self) -> None:
        self.book.note(*message("\udce9\udc80", 1.0, b"INVITE sip:a SIP/2.0\r\nCall-ID: \xe9\x80\r\n"))
        self.book.claim("call", "a", "\udce9\udc80")
        (entry,) = self.book.of("call")
        assert entry.call_id == "é\N{REPLACEMENT CHARACTER}"
        entry.message.encode()
        assert self.book.call_of("\udce9\udc80") == "call"

    def test_a_call_of_very_many_legs_keeps_the_first_and_the_last(self) -> None:
        for number in range(1000):
            self.book.note(*message(f"x{number}", float(number), b"INVITE sip:a SIP/2.0\r\n"))
            self.book.claim("call", "b", f"x{number}")
        entries = self.book.of("call")
        assert [entries[0].call_id, entries[-1].call_id, len(entries)] == ["x0", "x999", 20]

    def test_calls_and_messages_are_bounded(self) -> None:
        for number in range(5):
            self.book.note(*message(f"x{number}", 1.0, b"INVITE sip:a SIP/2.0\r\n"))
            self.book.claim(f"call-{number}", "a", f"x{number}")
        assert self.book.of("call-0") == [] and self.book.of("call-4")
        for _ in range(1000):
            self.book.note(*message("x4", 2.0))
        assert len(self.book.of("call-4")) == 200

    def test_how_a_long_dialog_began_is_kept(self) -> None:
        self.book.note(*message("x", 0.0, b"INVITE sip:a SIP/2.0\r\n"))
        self.book.claim("call", "a", "x")
        for number in range(1, 1001):
            self.book.note(*message("x", float(number)))
        entries = self.book.of("call")
        assert len(entries) == 200
        assert entries[0].message.startswith("INVITE")
        assert entries[-1].at == NOW + timedelta(seconds=1000)

    def test_bytes_are_bounded_by_message_and_altogether(self) -> None:
        book = TraceBook(WallClock(0.0, NOW), max_bytes=100_000)
        for number in range(30):
            book.note(*message(f"x{number}", 1.0, b"INVITE sip:a SIP/2.0\r\n" + b"x" * 60_000))
            book.claim(f"call-{number}", "a", f"x{number}")
            book.note(*message(f"x{number}", 2.0, b"y" * 60_000))
            assert book.size_bytes <= 100_000
        first, second = book.of("call-29")
        assert len(first.message) < 8300 and first.message.endswith("(cut off)")
        assert second.message.startswith("yyy")
        assert book.of("call-0") == []

    def test_a_dialog_is_known_by_its_call(self) -> None:
        assert self.book.call_of("x") is None
        self.book.claim("call", "a", "x")
        assert self.book.call_of("x") == "call"


def test_log_lines_of_a_call_carry_both_identifiers(caplog: pytest.LogCaptureFixture) -> None:
    log = CallLogger("call-1")
    with caplog.at_level("INFO"):
        log.info("begins")
        log.call_id = "x@192.0.2.1"
        log.info("goes on")
    fields = [(record.call_sid, record.call_id) for record in caplog.records]  # type: ignore[attr-defined]
    assert fields == [("call-1", None), ("call-1", "x@192.0.2.1")]
