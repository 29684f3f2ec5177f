"""Messages on a handover socket that no server would send, and servers that die during it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.process.handover import HotRestart, _Channel
from sip.aio import HandedOverState, SendFrame
from tests.support.waiting import PATIENCE_S, until

_HELLO, _TAKE, _PASSED = b"\x00\x00\x00\x04\x00blue", b"\x00\x00\x00\x00\x02", b"\x00\x00\x00\x03\x06a\nb"


class PreviousServer:
    """Gives one socket away, and counts."""

    def __init__(self) -> None:
        self.given = socket.socket()
        self.handed = self.back = 0
        self.received: list[bytes] = []

    async def hand_over(self) -> HandedOverState:
        self.handed += 1
        return HandedOverState({"udp:a": self.given}, ["x"], [])

    async def take_back(self) -> None:
        self.back += 1

    def receive(self, frame: bytes, answer: SendFrame) -> None:
        self.received.append(frame)
        raise ValueError("the frame header is not a list")


@pytest.fixture
async def previous(tmp_path: Path) -> AsyncIterator[PreviousServer]:
    source, hot_restart = PreviousServer(), HotRestart(tmp_path, "green")
    await hot_restart.listen(source)
    yield source
    await hot_restart.close()
    source.given.close()


async def say(folder: Path, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(folder / "takeover.sock")
    writer.write(data)
    return reader, writer


async def until_cut(reader: asyncio.StreamReader) -> None:
    try:
        await asyncio.wait_for(reader.read(), PATIENCE_S)
    except ConnectionResetError:
        return


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x04\x00\xff\xfe\xff\xfe",
        b"\xff\xff\xff\xff\x00",
        _HELLO + _HELLO,
    ],
    ids=["http", "no text", "four gigabytes", "twice"],
)
async def test_garbage_at_the_door_is_cut_and_the_next_one_served(
    previous: PreviousServer, tmp_path: Path, said: bytes
) -> None:
    reader, writer = await say(tmp_path, said)
    await until_cut(reader)
    writer.close()
    assert previous.handed == 0
    successor = HotRestart(tmp_path, "blue")
    await successor.connect()
    handed = await successor.take()
    assert handed is not None and not any(sock.get_inheritable() for sock in handed.sockets.values())
    assert not handed.sockets["udp:a"].getblocking()
    handed.sockets["udp:a"].close()
    await successor.close()


@pytest.mark.parametrize("then", [b"", b"\xff\xff\xff\xff\x06"], ids=["dies", "four gigabytes"])
async def test_a_younger_one_that_sends_nonsense_or_dies_gives_the_addresses_back(
    previous: PreviousServer, tmp_path: Path, then: bytes
) -> None:
    reader, writer = await say(tmp_path, _HELLO + _TAKE)
    await reader.readuntil(b"[]]")  # The end of the state.
    writer.write(_PASSED * 3)
    await until(lambda: len(previous.received) == 3)
    assert previous.back == 0, "what cannot be read is lost and no more"
    writer.write(then)
    if then:
        await until_cut(reader)
    writer.close()
    await until(lambda: previous.back == 1)
    assert previous.handed == previous.back == 1


async def test_what_is_no_message_is_never_dropped_for_one_that_does_not_read() -> None:
    one, other = socket.socketpair()
    channel = _Channel(*await asyncio.open_unix_connection(sock=one))
    for _ in range(2000):
        channel.send(6, bytes(65536))
    channel.send(5)
    reader, writer = await asyncio.open_unix_connection(sock=other)
    closing = asyncio.create_task(channel.close())
    assert (await reader.read()).endswith(b"\x00\x00\x00\x00\x05")
    await closing
    writer.close()
