"""The Python face of an agent's socket in the engine, over a native one that only takes notes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, cast

import pytest

from media import _engine
from media.aio.agent_connection import AgentConnection
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_socket import SocketListener
from media.aio.engine_socket import EngineSocket
from media.aio.stream import RtpStream
from media.aio.tap import AgentTap
from media.streams import DIALECTS, AudioEvent, StreamSetup

SETUP = StreamSetup(url="ws://x/", stream_sid="s", call_sid="c", account_sid="a", from_="+1", to="+2")

CONNECTION = AgentConnection(cast(socket.socket, "socket"))


class Notes:
    """Takes notes of the calls of any method."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.calls.append((name, *arguments))


class Tap(AgentTap):
    def __init__(self, carries: bool) -> None:
        self.carries = carries

    def carry(self, socket: _engine.AgentSocket) -> bool:
        return self.carries


class Face:
    """A socket, its native part, and its stream."""

    def __init__(self) -> None:
        self.native, self.listener = Notes(), Notes()
        self.opened: dict[str, Any] = {}
        self.tell: Callable[[int, int, bytes, int], None]
        self.engine = self
        self.socket = EngineSocket(
            cast(SocketListener, self.listener),
            (CONNECTION, b"read"),
            cast(RtpStream, self),
            SETUP,
            AgentStreamSettings(),
            binary=False,
        )

    def open_agent_socket(self, near: object, connection: object, read: bytes, **options: Any) -> Notes:
        self.tell = options.pop("on_message")
        self.opened = {"connection": connection, "read": read, **options}
        return self.native


@pytest.fixture
async def face() -> Face:
    return Face()


async def test_the_engine_gets_the_socket_and_what_was_read_of_it(face: Face) -> None:
    assert face.opened == {
        "connection": CONNECTION,
        "read": b"read",
        "binary": False,
        "audio_format": ("l16", 8000),
        "max_frames": 10,
        "max_message_bytes": 1 << 20,
    }


async def test_audio_passes_through_only_while_the_engine_does_not_carry_it(face: Face) -> None:
    face.socket.audio(bytes(640), "outbound")
    assert face.native.calls == [("audio", True, bytes(320))] * 2
    face.socket.attach(Tap(carries=True))
    face.socket.audio(bytes(640), "inbound")
    assert len(face.native.calls) == 2
    face.socket.attach(Tap(carries=False))
    face.socket.audio(bytes(320), "inbound")
    assert face.native.calls[2:] == [("audio", False, bytes(320))]


async def test_an_envelope_is_passed_on_when_it_changes_and_before_the_engine_goes_on(face: Face) -> None:
    around = (b"<", b">")
    for envelope in (None, around, around, None):
        face.socket.handled(envelope)
    learned = ("learn", b"<", b">")
    go_on = ("handled", 0)
    assert face.native.calls == [go_on, learned, go_on, go_on, ("unlearn",), go_on]


async def test_a_description_of_audio_is_passed_on_until_it_changes(face: Face) -> None:
    converter = _engine.AudioConverter(("l16", 24_000), ("l16", 8000))
    event = AudioEvent(
        "/b/0/c", {"/a": 'x"'}, {"/n": 7}, alone=("",), in_binary=True, converter=converter, whole=True
    )
    face.socket.handled(event)
    face.socket.handled(event)
    face.socket.handled(None)
    members = [("/b/0/c", 1, "", 0), ("/a", 2, '"x\\""', 0), ("/n", 3, "", 7), ("", 4, "", 0)]
    learned = ("learn_event", members, True, converter, True)
    go_on = ("handled", 0)
    assert face.native.calls == [learned, go_on, go_on, ("unlearn",), go_on]


async def test_audio_that_was_played_is_told_before_the_message_behind_it(face: Face) -> None:
    face.tell(1, 0, b"text", 160)
    face.tell(3, 0, b"", 320)
    assert face.listener.calls == [("on_played", 160), ("on_text", b"text"), ("on_played", 320), ("on_pong",)]


async def test_work_is_counted_once(face: Face) -> None:
    face.socket.pace.spent(0.25)
    face.socket.pace.spent(0.25)
    face.socket.handled(None)
    face.socket.handled(None)
    assert face.native.calls == [("handled", 500_000_000), ("handled", 0)]


async def test_templates_are_those_of_the_dialect(face: Face) -> None:
    dialect = DIALECTS["exotel"](SETUP)
    face.socket.begin(dialect)
    said, heard = dialect.audio_template("inbound")[0], dialect.audio_template("outbound")[0]
    assert face.native.calls == [("set_templates", said, heard, 0), ("convert", None)]


async def test_what_the_agent_hears(face: Face) -> None:
    face.socket.listen("pause")
    face.socket.listen("silence")
    face.socket.listen("resume")
    assert face.native.calls == [("listen", 1), ("listen", 2), ("listen", 0)]


async def test_messages_reach_the_stream_by_their_kind(face: Face) -> None:
    for kind, code, data in [
        (1, 0, b"text"),
        (2, 0, b"binary"),
        (3, 0, b""),
        (4, 4003, b"bye"),
        (5, 1002, b"masked frame"),
        (6, 1008, b"too many frames"),
        (7, 0, b""),
        (8, 0, b""),
    ]:
        face.tell(kind, code, data, 0)
    assert face.listener.calls == [
        ("on_text", b"text"),
        ("on_binary", b"binary"),
        ("on_pong",),
        ("on_close", 4003, "bye"),
        ("on_violation", 1002, "masked frame"),
        ("on_abuse", "too many frames"),
        ("on_abuse", "the agent does not read"),
        ("on_lost", None),
    ]
    assert face.native.calls == [("release",)]
    await face.socket.wait_disconnected(0)
