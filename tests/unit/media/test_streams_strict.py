"""
Our frames as strict clients read them, in ten thousand random sessions.

Stock frameworks guess the dialect from the first two messages, and end the session on the first frame that
misses a key. Here stand replicas of how they guess and of what they look up.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media.streams import (
    DIALECTS,
    FRAME_MS,
    AgentDtmf,
    AgentHold,
    AgentMark,
    AgentMute,
    AgentRecord,
    CommandError,
    Dialect,
    Reconnect,
    frame_bytes,
)
from tests.support.examples import examples
from tests.support.stream_setups import CALL, STARTED_UNIX_MS, STREAM, TEXTS_ARE_JSON, make_dialect

SESSIONS = 10_000 // len(DIALECTS) + 1

Frame = str | bytes


def detected(message: Any) -> str:
    """Guess the dialect from one message, in the order in which stock frameworks do."""
    start = message.get("start", {})
    if message.get("event") == "start" and "streamSid" in start and "callSid" in start:
        return "twilio"
    if "stream_id" in message and "call_control_id" in start:
        return "telnyx"
    if "streamId" in start and "callId" in start:
        return "plivo"
    keys = ("stream_sid", "call_sid", "account_sid")
    if message.get("event") == "start" and all(key in start for key in keys):
        return "exotel"
    return "unknown"


# What is guessed of the frame that opens each dialect's stream; two are told apart by their URL alone.
GUESSED = {"vobiz": "plivo", "vonage": "unknown", "jambonz": "unknown", "asterisk_json": "unknown"}


def read_json_audio(frame: Frame, size: int) -> None:
    """Read a frame as the serializers of the dialects in JSON do."""
    assert isinstance(frame, str)
    message = json.loads(frame)
    if message["event"] == "media":
        assert len(base64.b64decode(message["media"]["payload"], validate=True)) == size
    elif message["event"] == "dtmf":
        assert message["dtmf"]["digit"] in "0123456789*#ABCD"


def read_vonage(frame: Frame, size: int) -> None:
    """Read a frame as a serializer of Vonage's does."""
    if isinstance(frame, bytes):
        assert len(frame) == size > 0
        return
    message = json.loads(frame)
    if message["event"] == "websocket:dtmf":
        assert message["digit"] in "0123456789*#ABCD"


def read_jambonz(frame: Frame, size: int) -> None:
    """Read a frame as a server of jambonz's does: binary, or text with a type or an event."""
    if isinstance(frame, bytes):
        assert len(frame) == size > 0
        return
    message = json.loads(frame)
    assert ("type" in message) != ("event" in message)
    if message.get("event") == "dtmf":
        assert message["dtmf"] in "0123456789*#ABCD"


def read_asterisk(frame: Frame, size: int) -> None:
    """Read a frame as a server of chan_websocket's does that was told `f(json)`."""
    if isinstance(frame, bytes):
        assert len(frame) == size > 0
        return
    message = json.loads(frame)
    if message["event"] == "DTMF_END":
        assert message["digit"] in "0123456789*#ABCD"
    elif message["event"].isupper():
        assert message["channel_id"] == CALL


READERS: dict[str, Callable[[Frame, int], None]] = {
    "vonage": read_vonage,
    "jambonz": read_jambonz,
    "asterisk_json": read_asterisk,
}

# The name of the number of a frame, and how it is written.
NUMBERS: dict[str, tuple[str, type]] = {
    "exotel": ("sequence_number", str),
    "twilio": ("sequenceNumber", str),
    "telnyx": ("sequence_number", str),
    "plivo": ("sequenceNumber", int),
    "vobiz": ("sequenceNumber", int),
}
STREAM_NAMES = {"exotel": "stream_sid", "twilio": "streamSid", "telnyx": "stream_id", "plivo": "streamId"}

# What customers and agents write into names, with all that JSON and a template could trip over.
ALPHABET = 'az09 _-.;=%&"\\/{}[]\n\t\x00\x7fé\u2028\u20ac\U0001f4de'


class Session:
    """One session, at random; the same number gives the same one."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(number)

    def word(self, shortest: int = 0) -> str:
        return "".join(self.random.choices(ALPHABET, k=self.random.randint(shortest, 20)))

    def words(self) -> tuple[tuple[str, str], ...]:
        return tuple({self.word(): self.word() for _ in range(self.random.randint(0, 3))}.items())

    def flag(self) -> bool:
        return self.random.random() < 0.5

    def write(self, made: Dialect, audio: bytes, now_ms: int) -> bytes | None:
        """Write any frame that the dialect can."""
        writes: list[Callable[[], bytes | None]] = [
            lambda: made.media(audio, now_ms),
            lambda: self.marked(made),
            made.cleared,
            lambda: made.dtmf(self.random.choice("0123456789*#ABCD"), self.random.randint(40, 5000)),
            lambda: made.accepted(self.random.choice(ACCEPTED)),
            lambda: made.transfer(
                "failed", self.random.choice([None, 486]), self.random.choice([None, "BUSY"])
            ),
            lambda: made.error(self.word(), self.word(), self.random.choice([None, self.word()])),
            lambda: made.speech(self.flag()),
            lambda: made.buffer(self.flag(), self.random.randint(0, 120_000)),
            lambda: made.held(self.flag()),
        ]
        return self.random.choice(writes)()

    def marked(self, made: Dialect) -> bytes | None:
        """Set a mark as an agent does, and write that it was reached."""
        command = made.decode(json.dumps({"event": "mark", "mark": {"name": self.word(1)}}).encode())
        assert isinstance(command, AgentMark)
        return made.mark(command.name, cleared=self.flag())


ACCEPTED = (AgentDtmf("1"), AgentHold(True), AgentMute(False), AgentRecord("start"))


@pytest.mark.parametrize("name", TEXTS_ARE_JSON)
def test_strict_clients_read_whatever_we_send(name: str) -> None:
    for number in range(SESSIONS):
        try:
            run_session(name, Session(number))
        # Of any kind, a failed assertion too: it goes on, and says which session to run again.
        except Exception as error:
            error.add_note(f"in session {number} of {name}")
            raise


def run_session(name: str, session: Session) -> None:
    encoding, rate_hz = session.random.choice(DIALECTS[name].formats)
    made = make_dialect(
        name,
        encoding=encoding,
        sample_rate=rate_hz,
        custom_parameters=session.words(),
        direction=session.random.choice(["inbound", "outbound"]),
        reconnect=session.random.choice([None, Reconnect(1, "earlier")]),
    )
    size = frame_bytes(encoding, rate_hz)
    audio = bytes(size)
    frames = opened(made, name)
    for number in range(session.random.randint(0, 12)):
        written = session.write(made, audio, number * FRAME_MS)
        if written is not None:
            frames.append(written if made.binary_audio and written is audio else written.decode())
    last = made.stop(session.random.choice(["stopped", "callended"]), "api_hangup")
    assert (last is None) == (name == "asterisk_json")
    if last is not None:
        frames.append(last.decode())
    for frame in frames:
        READERS.get(name, read_json_audio)(frame, size)
        if isinstance(frame, str):
            assert detected(json.loads(frame)) == "unknown"
    check_numbers(name, [json.loads(frame) for frame in frames if isinstance(frame, str)])


def opened(made: Dialect, name: str) -> list[Frame]:
    """Write what opens the stream; the client must guess the dialect from `start`, and from nothing else."""
    first = made.connected()
    start = json.loads(made.start(STARTED_UNIX_MS) or b"")
    assert detected(start) == GUESSED.get(name, name)
    if name == "jambonz":
        assert "type" not in start and "event" not in start
    return [] if first is None else [first.decode()]


def check_numbers(name: str, frames: list[dict[str, Any]]) -> None:
    """Frames that bear a number count up from that of `start`, and name their stream."""
    if name not in NUMBERS:
        return
    key, kind = NUMBERS[name]
    numbers = [frame[key] for frame in frames if key in frame]
    assert numbers == [kind(number) for number in range(2, len(numbers) + 2)]
    stream = STREAM_NAMES["plivo" if name == "vobiz" else name]
    assert all(frame[stream] == STREAM for frame in frames if key in frame)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        *("event", "type", "action", "media", "data", "name", "payload", "dtmf", "mark", "transcript"),
        *("contentType", "sampleRate", "audioContentType", "audioContent", "id", "queuePlay", "role", "text"),
    ]
)
VALUES = st.sampled_from(
    [
        *("media", "mark", "clear", "playAudio", "killAudio", "clearMarks", "disconnect", "checkpoint"),
        *(
            "clearAudio",
            "notify",
            "transcript",
            "raw",
            "wav",
            "audio/x-l16",
            "AAAA",
            "user",
            "x",
            8000,
            24_000,
        ),
    ]
)


@pytest.mark.parametrize("name", TEXTS_ARE_JSON)
@settings(max_examples=examples(150))
@given(
    message=st.dictionaries(
        KEYS, VALUES | JSON | st.dictionaries(KEYS, VALUES | JSON, max_size=5), max_size=5
    ),
    binary=st.binary(max_size=9),
)
def test_hostile_agents_are_read_or_refused(name: str, message: dict[str, Any], binary: bytes) -> None:
    made = make_dialect(name)
    for decode, frame in ((made.decode, json.dumps(message).encode()), (made.decode_binary, binary)):
        try:
            outcome = decode(frame)
        except CommandError as error:
            assert json.loads(made.error(error.code, error.message, error.ref) or b"")["event"] in (
                "error",
                "ERROR",
            )
        else:
            if isinstance(outcome, AgentMark):
                json.loads(made.mark(outcome.name, cleared=False) or b"{}")


@pytest.mark.parametrize("name", sorted(name for name in DIALECTS if not DIALECTS[name].binary_audio))
@settings(max_examples=examples(100))
@given(first=st.binary(max_size=60), second=st.binary(max_size=60), third=st.binary(max_size=60))
def test_a_taught_reader_agrees_with_a_fresh_one(
    name: str, first: bytes, second: bytes, third: bytes
) -> None:
    """Whatever replaces the payload, the short cut reads what JSON would have read."""
    event = "playAudio" if name in ("plivo", "vobiz") else "media"
    template = b'{"event": "%b", "media": {"payload": "%b"}}'
    taught = make_dialect(name)
    taught.decode(template % (event.encode(), base64.b64encode(b"\1\2" + first[: len(first) // 2 * 2])))
    for payload in (base64.b64encode(second), second, base64.b64encode(third)):
        outcomes = []
        for made in (taught, make_dialect(name)):
            try:
                outcomes.append(repr(made.decode(template % (event.encode(), payload))))
            except CommandError as error:
                outcomes.append(error.message)
        assert outcomes[0] == outcomes[1]
