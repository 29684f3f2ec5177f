"""The Python face of the media engine, over a native engine that only takes notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from media import _engine
from media.aio.engine import MediaEngine
from media.aio.stream import RtpStream
from media.aio.tap import AgentTap
from media.audio import Clip
from media.errors import (
    DtmfUnavailable,
    EngineClosed,
    InvalidMedia,
    MediaError,
    StreamClosed,
)
from media.types import (
    DtmfReceived,
    DtmfSent,
    EngineSettings,
    FirstPacket,
    MarkReached,
    MediaEvent,
    MediaTimeout,
    PlaybackFinished,
    PlaybackPosition,
    PlayoutDrained,
    PlayoutLevel,
    PlayoutOverflow,
    RemoteMedia,
)


class NotedTap:
    id = 900
    sent_id = 0

    def __init__(self) -> None:
        self.room_bytes = 1_000_000
        self.waiting_ms = 0
        self.calls: list[tuple[Any, ...]] = []

    def write(self, audio: bytes) -> int:
        kept = min(len(audio), self.room_bytes)
        self.room_bytes -= kept
        return len(audio) - kept

    def mark(self, mark: int) -> None:
        self.calls.append(("mark", mark))

    def clear(self) -> None:
        self.calls.append(("clear",))

    def queued_ms(self) -> int:
        return self.waiting_ms

    def played_ms(self) -> int:
        return 40

    def refused_ms(self) -> int:
        return 0

    def watch_level(self, full_ms: int, low_ms: int) -> None:
        self.calls.append(("watch_level", full_ms, low_ms))

    def close(self) -> None:
        self.calls.append(("close",))


class NotedStream:
    id = 7
    udp_port = 20000

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.linkable = True
        self.tap = NotedTap()

    def link(self, other: object) -> bool:
        return self.linkable

    def open_tap(self, encoding: str, rate_hz: int, both: bool) -> NotedTap:
        self.calls.append(("open_tap", encoding, rate_hz))
        self.tap.sent_id = 901 if both else 0
        return self.tap

    def settings(self) -> _engine.MediaSettings:
        name, settings = self.calls[-1]
        assert name == "connect" and isinstance(settings, _engine.MediaSettings)
        return settings

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.calls.append((name, *arguments))


class NotedEngine:
    advertised = "192.0.2.1"

    def __init__(self) -> None:
        self.last_id = 0
        self.told: list[MediaEvent] = []
        self.forgotten: list[int] = []
        self.watched: dict[int, object] = {}

    def next_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def call_soon(self, callback: object, event: MediaEvent) -> None:
        self.told.append(event)

    def watch_tap(self, tap_id: int, on_frames: object) -> None:
        self.watched[tap_id] = on_frames

    def forget_tap(self, tap_id: int) -> None:
        self.watched.pop(tap_id, None)

    def forget_stream(self, stream_id: int) -> None:
        self.forgotten.append(stream_id)

    def destination(self, address: str) -> str:
        return address


class Face:
    def __init__(self) -> None:
        self.engine = NotedEngine()
        self.native = NotedStream()
        self.stream = RtpStream(
            cast(MediaEngine, self.engine), cast(_engine.Stream, self.native), lambda event: None
        )

    def tap(self) -> AgentTap:
        return self.stream.open_tap(on_frames=lambda frame: None)


@pytest.fixture
def face() -> Face:
    return Face()


REMOTE = RemoteMedia("198.51.100.1", 4000, "PCMA", 8, 20, 96)


def test_the_advertised_address_is_told_with_the_port(face: Face) -> None:
    assert face.stream.local == ("192.0.2.1", 20000)


@pytest.mark.parametrize(
    ("listen", "here"), [("10.0.0.5", "10.0.0.5"), ("0.0.0.0", "127.0.0.1"), ("::", "::1")]
)
def test_what_is_for_the_advertised_address_is_sent_to_ourselves(listen: str, here: str) -> None:
    engine = MediaEngine(EngineSettings(listen=listen, advertise="203.0.113.7"))
    assert engine.destination("203.0.113.7") == here
    assert engine.destination("198.51.100.1") == "198.51.100.1"
    assert MediaEngine(EngineSettings(listen="0.0.0.0")).destination("0.0.0.0") == "0.0.0.0"


@pytest.mark.parametrize(
    ("direction", "sends", "receives"),
    [
        ("sendrecv", True, True),
        ("sendonly", True, False),
        ("recvonly", False, True),
        ("inactive", False, False),
    ],
)
def test_connect_hands_on_what_was_agreed(face: Face, direction: Any, sends: bool, receives: bool) -> None:
    face.stream.connect(RemoteMedia("198.51.100.1", 4000, "PCMA", 8, 30, 96, direction))
    settings = face.native.settings()
    assert (settings.host, settings.udp_port, settings.payload_type) == ("198.51.100.1", 4000, 8)
    assert (settings.ptime_ms, settings.dtmf_types) == (30, (96, 96))
    assert (settings.send, settings.receive) == (sends, receives)


def test_there_may_be_no_telephone_events_and_their_type_may_differ_by_direction(face: Face) -> None:
    face.stream.connect(RemoteMedia("198.51.100.1", 4000, "PCMU", 0))
    assert face.native.settings().dtmf_types == (None, None)
    face.stream.connect(
        RemoteMedia("198.51.100.1", 4000, "PCMU", 0, dtmf_payload_type=101, dtmf_receive_payload_type=96)
    )
    assert face.native.settings().dtmf_types == (101, 96)


def test_streams_of_two_threads_cannot_be_linked(face: Face) -> None:
    face.native.linkable = False
    with pytest.raises(MediaError, match="near one another"):
        face.stream.link(Face().stream)


def test_a_closed_stream_refuses_new_work_and_closes_once(face: Face) -> None:
    face.stream.close()
    face.stream.close()
    assert face.native.calls == [("close",)]
    assert face.engine.forgotten == [7]
    other = Face().stream
    refused: list[Callable[[], object]] = [
        lambda: face.stream.connect(REMOTE),
        lambda: face.stream.link(other),
        lambda: other.link(face.stream),
        lambda: face.stream.play(b""),
        lambda: face.stream.playbacks.queue([Clip(b"12")]),
        lambda: face.stream.send_dtmf("1"),
        lambda: face.stream.start_recording("/x.wav"),
        lambda: face.tap(),
    ]
    for command in refused:
        with pytest.raises(StreamClosed):
            command()
    face.stream.unlink()
    face.stream.stop_playback()
    face.stream.stop_recording()


def test_playback_needs_whole_samples_and_is_bounded(face: Face) -> None:
    with pytest.raises(InvalidMedia):
        face.stream.play(b"123")
    ids = [face.stream.play(b"12") for _ in range(256)]
    assert len(set(ids)) == 256
    with pytest.raises(MediaError, match="already queued"):
        face.stream.play(b"12")
    assert face.stream.decode(60, 0, ids[0]) == PlaybackFinished(ids[0], interrupted=False)
    face.stream.play(b"12")


@pytest.mark.parametrize("digits", ["", "x", "12 3", "1" * 257])
def test_digits_are_checked(face: Face, digits: str) -> None:
    face.stream.connect(REMOTE)
    with pytest.raises(InvalidMedia):
        face.stream.send_dtmf(digits)


@pytest.mark.parametrize("times", [(0, 80), (160, 0), (9000, 80), (160, 9000)])
def test_digit_times_are_checked(face: Face, times: tuple[int, int]) -> None:
    face.stream.connect(REMOTE)
    with pytest.raises(InvalidMedia):
        face.stream.send_dtmf("1", *times)


def test_digits_need_a_far_end(face: Face) -> None:
    with pytest.raises(DtmfUnavailable):
        face.stream.send_dtmf("1")
    face.stream.connect(RemoteMedia("198.51.100.1", 4000, "PCMU", 0))
    face.stream.send_dtmf("1")


def test_sent_digits_are_told_by_what_was_asked(face: Face) -> None:
    face.stream.connect(REMOTE)
    face.stream.send_dtmf("12w#", 100, 50)
    name, token, *rest = face.native.calls[-1]
    assert (name, rest) == ("send_dtmf", ["12w#", 100, 50])
    assert face.stream.decode(3, token, 0) == DtmfSent("12w#")
    assert face.stream.decode(3, token, 0) is None


def test_event_records_become_events(face: Face) -> None:
    assert face.stream.decode(1, 0, 0) == FirstPacket()
    assert face.stream.decode(2, ord("#"), 120) == DtmfReceived("#", 120)
    assert face.stream.decode(60, 1, 33, 500) == PlaybackFinished(33, True, "stopped", None, 500)
    assert face.stream.decode(60, 2 | ord("#") << 8, 34, 7) == PlaybackFinished(34, True, "digit", "#", 7)
    assert face.stream.decode(60, 3, 35, 7) == PlaybackFinished(35, True, "speech", None, 7)
    assert face.stream.decode(60, 0, 36, 7) == PlaybackFinished(36, False, "ended", None, 7)
    assert face.stream.decode(61, 0, 37, 40) == PlaybackPosition(37, 40)
    assert face.stream.decode(6, 0, 0) == PlayoutDrained()
    assert face.stream.decode(7, 0, 60250) == MediaTimeout(60.25)
    assert face.stream.decode(99, 0, 0) is None


def test_marks_are_told_by_name(face: Face) -> None:
    tap = face.tap()
    tap.mark("greeting")
    tap.mark("greeting")
    first, second = (call[1] for call in face.native.tap.calls)
    assert face.stream.decode(5, 0, first) == MarkReached("greeting", cleared=False)
    assert face.stream.decode(5, 1, second) == MarkReached("greeting", cleared=True)
    assert face.stream.decode(5, 1, second) is None


def test_too_many_marks_are_told_as_cleared(face: Face) -> None:
    tap = face.tap()
    for number in range(1001):
        tap.mark(str(number))
    assert len(face.native.tap.calls) == 1000
    assert face.engine.told == [MarkReached("1000", cleared=True)]


def test_overflow_is_told_once_until_there_is_room_again(face: Face) -> None:
    tap = face.tap()
    face.native.tap.room_bytes = 320
    tap.write(bytes(640))
    tap.write(bytes(640))
    assert face.engine.told == [PlayoutOverflow(20)]
    assert tap.dropped_ms == 60
    # Room for one frame is not yet the end of the overflow.
    face.native.tap.room_bytes, face.native.tap.waiting_ms = 320, 119_980
    tap.write(bytes(320))
    tap.write(bytes(320))
    assert len(face.engine.told) == 1
    face.native.tap.room_bytes, face.native.tap.waiting_ms = 320, 5_000
    tap.write(bytes(320))
    tap.write(bytes(320))
    assert len(face.engine.told) == 2


def test_a_closed_tap_takes_everything_without_harm(face: Face) -> None:
    tap = face.tap()
    tap.close()
    tap.close()
    tap.write(bytes(320))
    tap.mark("late")
    tap.clear()
    assert face.native.tap.calls == [("close",)]


def test_both_directions_are_delivered_apart_and_let_go_together(face: Face) -> None:
    received, sent = (lambda frame: None), (lambda frame: None)
    tap = face.stream.open_tap(on_frames=received, on_sent=sent)
    assert face.engine.watched == {900: received, 901: sent}
    tap.close()
    assert face.engine.watched == {}


@pytest.mark.parametrize(("xoff_ms", "xon_ms"), [(100, 100), (100, 200), (0, 0), (120_001, 5), (100, -1)])
def test_levels_of_the_queue_must_leave_room_between_them(face: Face, xoff_ms: int, xon_ms: int) -> None:
    with pytest.raises(ValueError, match="levels"):
        face.tap().watch_level(xoff_ms, xon_ms)


def test_levels_of_the_queue_are_told(face: Face) -> None:
    face.tap().watch_level(60_000, 30_000)
    assert face.native.tap.calls == [("watch_level", 60_000, 30_000)]
    assert face.stream.decode(9, 1, 60_010) == PlayoutLevel("xoff", 60_010)
    assert face.stream.decode(9, 0, 30_000) == PlayoutLevel("xon", 30_000)


def test_opening_a_tap_closes_the_one_before(face: Face) -> None:
    face.tap()
    before = face.native.tap
    face.native.tap = NotedTap()
    face.tap()
    assert before.calls == [("close",)]


def test_an_engine_that_is_not_running_says_so() -> None:
    engine = MediaEngine()
    with pytest.raises(EngineClosed):
        engine.open_stream(lambda event: None)
    assert engine.stats().streams == 0
