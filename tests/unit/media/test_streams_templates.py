"""Frames whose numbers, times and audio are filled in by whoever writes them to the socket."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from media.streams import DIALECTS, WEBSOCKET_DIALECTS, Dialect, Track
from media.streams.dialects.base import AUDIO, CHUNK, NUMBER, TIME
from tests.support.stream_setups import STARTED_UNIX_MS, stream_setup

JSON_DIALECTS = sorted(name for name, dialect in DIALECTS.items() if not dialect.binary_audio)
BINARY_DIALECTS = sorted(name for name in WEBSOCKET_DIALECTS if DIALECTS[name].binary_audio)
# Whatever a customer may put into a frame, places included.
ODD = "".join(map(chr, range(32))) + '%d %(number)d "\\ é \U0001f600'


def make(name: str, *, places: bool, **changes: Any) -> Dialect:
    encoding, rate = DIALECTS[name].formats[0]
    setup = stream_setup(
        name, encoding=encoding, sample_rate=rate, custom_parameters=(("odd", ODD),), **changes
    )
    made = DIALECTS[name](setup)
    if places:
        made.leave_places()
    return made


class Writer:
    """Fills in places as the engine does."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.number = 0
        self.chunks: dict[Track, int] = {"inbound": 0, "outbound": 0}

    def control(self, frame: bytes | None) -> bytes | None:
        return None if frame is None else self._number(frame)

    def media(self, audio: bytes, time_ms: int, track: Track) -> bytes:
        template, origin_ms = self.dialect.audio_template(track)
        self.chunks[track] += 1
        frame = self._number(template).replace(CHUNK.encode(), b"%d" % self.chunks[track])
        frame = frame.replace(TIME.encode(), b"%d" % (origin_ms + time_ms))
        return frame.replace(AUDIO.encode(), base64.b64encode(audio))

    def _number(self, frame: bytes) -> bytes:
        if NUMBER.encode() not in frame:
            return frame
        self.number += 1
        return frame.replace(NUMBER.encode(), b"%d" % self.number)


@pytest.mark.parametrize("track", ["inbound", "both"])
@pytest.mark.parametrize("name", JSON_DIALECTS)
def test_frames_that_are_filled_in_are_those_that_the_dialect_numbers_itself(name: str, track: str) -> None:
    numbering, leaving = make(name, places=False, track=track), make(name, places=True, track=track)
    writer = Writer(leaving)
    assert writer.control(leaving.connected()) == numbering.connected()
    assert writer.control(leaving.start(STARTED_UNIX_MS)) == numbering.start(STARTED_UNIX_MS)
    times = {"inbound": 0, "outbound": 0}
    tracks: tuple[Track, ...] = ("inbound", "outbound", "inbound", "inbound")
    for turn, of in enumerate(tracks * 3):
        times[of] += 20
        audio = bytes([turn]) * 160
        assert writer.media(audio, times[of], of) == numbering.media(audio, times[of], of)
        leaving.tell_time(times[of])
        assert writer.control(leaving.dtmf("5", 160)) == numbering.dtmf("5", 160)
        assert writer.control(leaving.mark("\1\2", cleared=False)) == numbering.mark("\1\2", cleared=False)
        assert writer.control(leaving.error("c", "\3 m", "\4")) == numbering.error("c", "\3 m", "\4")
    assert writer.control(leaving.stop("stopped", "x")) == numbering.stop("stopped", "x")
    assert writer.number > 12


@pytest.mark.parametrize("name", sorted(WEBSOCKET_DIALECTS))
def test_no_place_is_left_by_what_a_customer_says(name: str) -> None:
    made = make(name, places=False)
    frames = [made.start(1), made.mark(ODD, cleared=True), made.error("c", ODD, ODD), made.stop(ODD, ODD)]
    for frame in frames:
        if frame is not None:
            assert not any(place.encode() in frame for place in (NUMBER, CHUNK, TIME, AUDIO))
            if name != "asterisk":
                json.loads(frame)


@pytest.mark.parametrize("name", BINARY_DIALECTS)
def test_binary_audio_has_no_template_and_is_known_at_once(name: str) -> None:
    made = make(name, places=True)
    assert made.audio_template("inbound") == (b"", 0)
    assert made.envelope == (b"", b"")


@pytest.mark.parametrize("name", JSON_DIALECTS)
def test_what_stands_around_audio_is_learned_from_its_first_frame(name: str) -> None:
    made = make(name, places=True)
    event = "playAudio" if name in ("plivo", "vobiz") else "media"
    assert made.envelope is None
    made.decode(b'{"event":"%s","media":{"payload":"AAAAAA=="}, "n": 1}' % event.encode())
    around = made.envelope
    assert around == (b'{"event":"%s","media":{"payload":"' % event.encode(), b'"}, "n": 1}')
    made.decode(b'{"event":"%s","media":{"payload":"AQEBAQ=="}, "n": 1}' % event.encode())
    assert made.envelope is around


def test_audio_that_is_converted_is_not_for_the_engine() -> None:
    made = make("plivo", places=True)
    same = b'{"event":"playAudio","media":{"payload":"/////w=="}}'
    other = (
        b'{"event":"playAudio","media":{"contentType":"audio/x-l16","sampleRate":16000,"payload":"AAAAAA=="}}'
    )
    made.decode(same)
    assert made.envelope is not None
    made.decode(other)
    assert made.envelope is None
