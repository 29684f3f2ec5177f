"""
Places calls over the REST API and is their far end: how long from the POST to the INVITE.

Both ends are in this process, on one clock. A request is stamped just before it is written to its
connection; the kernel stamps each datagram when it arrives, so that this program's own delays stand in the
figures once at most: as `late_ms`, how far behind its schedule a request was sent at the latest.

    calls   requests at a fixed rate, whatever the answers do
    status  requests for one call's state over some connections, each as soon as the last is answered

The answer goes to standard output, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import re
import socket
import statistics
import struct
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any

_STAMPS = 35  # SO_TIMESTAMPNS of Linux.
_SPEC = struct.Struct("ll")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_STATUS_CONNECTIONS = 16


class Connection(asyncio.Protocol):
    """One connection to the API; one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[tuple[int, bytes]]
        self._read = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        end = self._read.find(b"\r\n\r\n")
        if end < 0:
            return
        found = _LENGTH.search(self._read, 0, end)
        size = end + 4 + (int(found.group(1)) if found else 0)
        if len(self._read) >= size:
            answer = int(self._read[9:12]), bytes(self._read[end + 4 : size])
            del self._read[:size]
            self._answer.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(error or ConnectionError("closed by the server"))

    def ask(self, request: bytes) -> asyncio.Future[tuple[int, bytes]]:
        """Send a request; its status and body."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer


class Api:
    """Connections to the API, opened as they are needed and used again."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        self._idle: deque[Connection] = deque()

    def request(self, method: str, path: str, body: Any = None, key: str | None = None) -> bytes:
        """The bytes of a request."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self._head}"
        if key is not None:
            head += f"Idempotency-Key: {key}\r\n"
        if content:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        return head.encode() + b"\r\n" + content

    async def connect(self, count: int) -> list[Connection]:
        """Open some connections."""
        loop = asyncio.get_running_loop()
        made = [(await loop.create_connection(Connection, "127.0.0.1", self._port))[1] for _ in range(count)]
        self._idle.extend(made)
        return made

    async def send(self, request: bytes) -> tuple[int, int, bytes]:
        """Send a request on an idle connection; when it was written, and its status and body."""
        if not self._idle:
            await self.connect(1)
        connection = self._idle.pop()
        sent_ns = time.time_ns()
        status, body = await connection.ask(request)
        self._idle.append(connection)
        return sent_ns, status, body


class FarEnd:
    """Answers every call, and notes when its INVITE arrived by the number that was called."""

    def __init__(self, port: int) -> None:
        self.arrived_ns: dict[str, int] = {}
        self.repeated = 0
        self._sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sink.bind(("127.0.0.1", 0))
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        self._socket.bind(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._port = port
        self._answered: set[str] = set()
        asyncio.get_running_loop().add_reader(self._socket, self._receive)

    def _receive(self) -> None:
        while True:
            try:
                data, ancillary, _, source = self._socket.recvmsg(8192, 128)
            except BlockingIOError:
                return
            seconds, nanoseconds = _SPEC.unpack_from(ancillary[0][2])
            self._take(data.decode(), seconds * 1_000_000_000 + nanoseconds, source)

    def _take(self, text: str, at_ns: int, source: tuple[str, int]) -> None:
        method = text[: text.find(" ")]
        if method == "INVITE":
            number = text[text.find("sip:") + 4 : text.find("@")]
            if number in self.arrived_ns:
                self.repeated += 1
            else:
                self.arrived_ns[number] = at_ns
            self._reply(text, "180 Ringing", source)
            self._reply(text, "200 OK", source, self._sdp())
        elif method in ("BYE", "OPTIONS"):
            self._reply(text, "200 OK", source)

    def _reply(self, request: str, status: str, source: tuple[str, int], body: str = "") -> None:
        lines = [f"SIP/2.0 {status}"]
        for line in request.split("\r\n\r\n", 1)[0].split("\r\n")[1:]:
            name = line[: line.find(":")].lower()
            if name == "to" and ";tag=" not in line:
                lines.append(f"{line};tag=far")
            elif name in ("via", "from", "to", "call-id", "cseq", "record-route"):
                lines.append(line)
        lines.append(f"Contact: <sip:far@127.0.0.1:{self._port}>")
        if body:
            lines.append("Content-Type: application/sdp")
        lines += [f"Content-Length: {len(body)}", "", body]
        self._socket.sendto("\r\n".join(lines).encode(), source)

    def _sdp(self) -> str:
        port = self._sink.getsockname()[1]
        return (
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
            f"m=audio {port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
        )


@dataclass
class Run:
    """Results of a run at one rate."""

    sent_ns: dict[str, int] = field(default_factory=dict)
    answers_ms: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    late_ms: float = 0.0


async def calls(api: Api, far: FarEnd, arguments: argparse.Namespace) -> dict[str, Any]:
    """Place calls at a rate."""
    await api.connect(max(4, round(arguments.rate)))
    run, loop = Run(), asyncio.get_running_loop()
    began, tasks = loop.time() + 0.2, []
    for index in range(round(arguments.rate * arguments.seconds)):
        due = began + index / arguments.rate
        await asyncio.sleep(max(0.0, due - loop.time()))
        run.late_ms = max(run.late_ms, 1000 * (loop.time() - due))
        tasks.append(asyncio.create_task(_place(api, run, f"+9198{arguments.first + index:08d}", arguments)))
    await asyncio.gather(*tasks)
    # The last calls' INVITEs, and the ends of all calls.
    await asyncio.sleep(arguments.hold_s + 0.7)
    waits = [
        (far.arrived_ns[number] - sent_ns) / 1e6
        for number, sent_ns in run.sent_ns.items()
        if number in far.arrived_ns
    ]
    return {
        "calls": len(tasks),
        "refused": len(run.refused),
        "reasons": sorted(set(run.refused)),
        "lost": len(run.sent_ns) - len(waits),
        "repeated": far.repeated,
        "invite_ms": spread(waits),
        "answer_ms": spread(run.answers_ms),
        "late_ms": round(run.late_ms, 1),
    }


async def _place(api: Api, run: Run, number: str, arguments: argparse.Namespace) -> None:
    body = {
        "from": arguments.number,
        "to": number,
        "verbs": [{"verb": "pause", "length": arguments.hold_s}, {"verb": "hangup"}],
    }
    key = str(uuid.uuid4()) if arguments.keys else None
    sent_ns, status, answer = await api.send(api.request("POST", "/v1/calls", body, key))
    run.answers_ms.append((time.time_ns() - sent_ns) / 1e6)
    if status == 201:
        run.sent_ns[number] = sent_ns
    else:
        run.refused.append(f"{status} {answer[:200].decode(errors='replace')}")


async def status(api: Api, far: FarEnd, arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask for a call's state as fast as it is answered."""
    body = {
        "from": arguments.number,
        "to": f"+9198{arguments.first:08d}",
        "verbs": [{"verb": "pause", "length": 1 if arguments.ended else 60}, {"verb": "hangup"}],
    }
    _, code, answer = await api.send(api.request("POST", "/v1/calls", body))
    if code != 201:
        raise SystemExit(f"the call was refused: {code} {answer!r}")
    call = json.loads(answer)["data"]
    await asyncio.sleep(2.0)
    path = f"/v1/Accounts/{call['account_sid']}/Calls/{call['call_sid']}"
    request, times, loop = api.request("GET", path), [], asyncio.get_running_loop()
    until = loop.time() + arguments.seconds

    async def ask(connection: Connection) -> None:
        while (began := loop.time()) < until:
            code, answer = await connection.ask(request)
            if code != 200:
                raise SystemExit(f"the state was refused: {code} {answer!r}")
            times.append(1000 * (loop.time() - began))

    began = loop.time()
    await asyncio.gather(*(ask(item) for item in await api.connect(_STATUS_CONNECTIONS)))
    per_second = round(len(times) / (loop.time() - began))
    state = json.loads((await api.send(request))[2])["data"]["status"]
    await api.send(api.request("DELETE", path))
    await asyncio.sleep(0.2)
    return {"per_second": per_second, "requests": len(times), "answer_ms": spread(times), "status": state}


def spread(times_ms: list[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum."""
    if len(times_ms) < 2:
        return {}
    cuts = statistics.quantiles(times_ms, n=100, method="inclusive")
    return {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2), "max": round(max(times_ms), 2)}


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("calls", "status"))
    parser.add_argument("--http-port", type=int, required=True)
    parser.add_argument("--sip-port", type=int, required=True, help="where calls arrive")
    parser.add_argument("--key", required=True)
    parser.add_argument("--number", required=True, help="the caller-ID")
    parser.add_argument("--first", type=int, default=0, help="the first number that is called")
    parser.add_argument("--rate", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--hold-s", type=int, default=1)
    parser.add_argument("--keys", action="store_true", help="send an Idempotency-Key with each call")
    parser.add_argument("--ended", action="store_true", help="ask for a call that is over")
    arguments = parser.parse_args()
    gc.disable()
    far = FarEnd(arguments.sip_port)
    api = Api(arguments.http_port, arguments.key)
    print(json.dumps(await (calls if arguments.what == "calls" else status)(api, far, arguments)))


if __name__ == "__main__":
    asyncio.run(main())
