"""A caller whose header fields are not UTF-8: it gets its own bytes back, everybody else gets text."""

import asyncio
import json
from pathlib import Path
from typing import cast

from callcontrol.calls.records.call_json import call_object
from tests.support.domain import OWN_NUMBER
from tests.support.phone import eventually
from tests.support.world import running

OFFER = b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
VIA = b"SIP/2.0/UDP 127.0.0.1;Odd=\xe9;branch=z9hG4bK1"
FROM = b'"Jos\xe9" <sip:+919811111111@127.0.0.1>;X = \xff;tag=odd'
TO = b"<sip:" + OWN_NUMBER.encode() + b"@127.0.0.1;x=\xe9>"
CALL_ID = b"\xe9\x80@caller"


class OldCaller(asyncio.DatagramProtocol):
    """A caller that writes Latin-1, and keeps what it is answered."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.answers.append(data)

    def send(self, method: bytes, to: bytes, port: int, body: bytes = b"") -> None:
        lines = (
            method + b" sip:" + OWN_NUMBER.encode() + b"@127.0.0.1 SIP/2.0",
            b"Via: " + VIA + b";rport",
            b"From: " + FROM,
            b"To: " + to,
            b"Call-ID: " + CALL_ID,
            b"CSeq: 1 " + method,
            b"Max-Forwards: 70",
            b"Contact: <sip:odd@127.0.0.1;x=\xe9>",
            b"X-Ticket: \xe9",
            b"Content-Type: application/sdp",
        )
        self.transport.sendto(b"\r\n".join(lines) + b"\r\n\r\n" + body, ("127.0.0.1", port))


def field(answer: bytes, name: bytes) -> bytes:
    lines = [line.partition(b": ") for line in answer.split(b"\r\n")]
    return next(value for found, _, value in lines if found == name)


async def test_the_caller_gets_its_bytes_and_records_events_and_the_callee_get_text(tmp_path: Path) -> None:
    async with running(tmp_path, forwarded_headers=frozenset({"x-ticket"})) as world:
        world.phone.on_call = lambda call: call.reject(486)
        world.forward()
        loop = asyncio.get_running_loop()
        transport, caller = await loop.create_datagram_endpoint(OldCaller, ("127.0.0.1", 0))
        caller.send(b"INVITE", TO, world.port, OFFER)
        assert await eventually(lambda: any(answer.startswith(b"SIP/2.0 486 ") for answer in caller.answers))
        caller.send(b"ACK", field(caller.answers[-1], b"To"), world.port)
        for answer in caller.answers:
            assert field(answer, b"Via").startswith(VIA + b";rport=")
            assert (field(answer, b"From"), field(answer, b"Call-ID")) == (FROM, CALL_ID)
            assert field(answer, b"To").startswith(TO)
        record = await world.ended()
        transport.close()
        assert record.sip_call_id == "é\N{REPLACEMENT CHARACTER}@caller"
        assert record.sip == {"headers": {"X-Ticket": "é"}, "display_name": "José"}
        json.dumps(call_object(record), ensure_ascii=False).encode()
        assert world.published("call.completed")["data"]["sip_call_id"] == record.sip_call_id
        trace = world.control.trace(record.call_sid)
        assert {entry.leg for entry in trace} == {"a", "b"}
        for entry in trace:
            (entry.call_id + entry.message).encode()
        [callee] = world.phone.calls
        assert callee.request.headers.get("X-Ticket") == "é"
