"""Every message of tests/vectors/sip against a live user agent, and the next request served."""

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sip.aio import InboundSession, Listen, UserAgent
from sip.message.framer import StreamFramer
from tests.support.sip_stage import BOB, RAW, make_stage

FOLDER = Path(__file__).parents[1] / "vectors" / "sip"
FATES: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "fates.toml").read_text())

RFC_4475 = {
    *(f"3.1.1.{number}" for number in range(1, 14)),
    *(f"3.1.2.{number}" for number in range(1, 20)),
    "3.2.1",
    *(f"3.3.{number}" for number in range(1, 16)),
    "3.4.1",
}
RFC_5118 = {f"4.{number}" for number in range(1, 11)}

PATIENCE_S = 40.0


def vector(name: str) -> bytes:
    return (FOLDER / f"{name}.sip").read_bytes()


def refuse(session: InboundSession) -> None:
    session.reject(404)


@pytest.mark.parametrize(("rfc", "clauses"), [("RFC 4475", RFC_4475), ("RFC 5118", RFC_5118)])
def test_no_situation_is_left_out(rfc: str, clauses: set[str]) -> None:
    there = {entry["clause"].removeprefix(rfc + " ") for entry in FATES.values() if rfc in entry["clause"]}
    assert there == clauses


@pytest.mark.parametrize("name", list(FATES))
async def test_as_a_datagram(name: str) -> None:
    stage = await make_stage()
    stage.bob.answer = refuse
    stage.network.carry(vector(name), RAW, BOB)
    stage.advance(0.3)
    answers = [data for _, source, _, data in stage.network.wire if source == BOB]
    statuses = {int(data.split(b" ")[1]) for data in answers}
    wanted = FATES[name]["wire"]
    assert statuses == (set() if wanted == "nothing" else {wanted})
    stage.finish()


@pytest.mark.parametrize("name", [name for name, entry in FATES.items() if entry["wire"] != "nothing"])
async def test_over_tcp(name: str) -> None:
    """The answer comes over the connection, and so does that of a good request on the next one."""
    agent = UserAgent([Listen("tcp", "127.0.0.1", 0)], on_invite=refuse)
    await agent.start()
    try:
        port = agent.addresses[0].port
        statuses = await exchange(port, vector(name), end=True)
        expected = FATES[name]
        # What cannot be cut out of a stream, or is cut otherwise, ends the connection or waits for more.
        if not expected.get("stream_error") and expected.get("frames", 1) == 1:
            assert expected["wire"] in statuses
        assert await exchange(port, OPTIONS, end=False) == [200]
    finally:
        await agent.close()


OPTIONS = (
    b"OPTIONS sip:127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1:9;branch=z9hG4bKend\r\nMax-Forwards: 70\r\n"
    b"From: <sip:test@127.0.0.1>;tag=t\r\nTo: <sip:127.0.0.1>\r\nCall-ID: last\r\nCSeq: 1 OPTIONS\r\n"
    b"Content-Length: 0\r\n\r\n"
)


async def exchange(port: int, data: bytes, *, end: bool) -> list[int]:
    """Send bytes and give the statuses of what comes back until the end, or until the first final one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    if end:
        writer.write_eof()
    framer, statuses = StreamFramer(), []
    try:
        async with asyncio.timeout(PATIENCE_S):
            while chunk := await reader.read(65536):
                frames = [frame for frame in framer.feed(chunk) if frame.startswith(b"SIP/2.0 ")]
                statuses += [int(frame.split(b" ")[1]) for frame in frames]
                if not end and statuses:
                    break
    except ConnectionError:
        pass
    writer.close()
    return statuses
