"""
A far end made by hand: every byte it sends is the test's, and every byte that comes is kept.

A `Trunk` is what the server takes for a gateway, by UDP and TCP on one port. Each dialog on it is a `Handset`
with media of its own over plain sockets; what came for it is in `heard`, signalling and media alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import secrets
import struct
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from sip import Request, Response, parse_message, reply, serialise
from tests.support.phone import eventually
from tests.support.ports import free_port
from tests.support.rtcp_peer import RtcpPeer

__all__ = ["Handset", "Script", "Trunk"]

HOST = "127.0.0.1"
PATIENCE_S = 40.0
Fields = Sequence[tuple[str, str]]
Script = Callable[["Handset"], Coroutine[Any, Any, None]]
Send = Callable[[bytes], None]

_LENGTH = re.compile(rb"^(?:content-length|l)\s*:\s*(\d+)", re.IGNORECASE | re.MULTILINE)


class Trunk(asyncio.DatagramProtocol):
    """Address for the server's calls, and source of calls to it."""

    def __init__(self, protocol: str = "udp") -> None:
        self.protocol = protocol
        self.handsets: list[Handset] = []
        self.outside: list[bytes] = []
        """Messages outside of any dialog."""
        self.scripts: dict[str, Script] = {}
        """Behaviour in a call, by the last ten digits that were called."""
        self.dress: Callable[[Handset], None] = lambda _: None
        """Called with every handset before it says anything."""
        self._by_call_id: dict[str, Handset] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.port = free_port()
        self.datagrams, _ = await loop.create_datagram_endpoint(lambda: self, (HOST, self.port))
        self._listener = await asyncio.start_server(self._accepted, HOST, self.port)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for handset in self.handsets:
            handset.close()
        for writer in self._writers:
            writer.close()
        self.datagrams.close()
        self._listener.close()

    async def call(self, server_port: int, caller: str, number: str, headers: Fields = ()) -> Handset:
        """Call a number of the server by UDP or TCP; the INVITE has left when this returns."""
        if self.protocol == "tcp":
            reader, writer = await asyncio.open_connection(HOST, server_port)
            self._run(self._read(reader, writer))
            send: Send = writer.write
        else:

            def send(data: bytes) -> None:
                self.datagrams.sendto(data, (HOST, server_port))

        handset = Handset(self, caller, send)
        self._add(handset)
        handset.invite(f"sip:{number}@{HOST}:{server_port}", f"<sip:{number}@{HOST}>", headers)
        return handset

    async def handset(self, number: str, which: int = 0) -> Handset:
        """The handset that a number was called at, once it was."""

        def found() -> list[Handset]:
            return [item for item in self.handsets if item.number == number and not item.calls]

        assert await eventually(lambda: len(found()) > which, PATIENCE_S), f"{number} was not called"
        return found()[which]

    # What comes.

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        self._take(data, lambda answer: self.datagrams.sendto(answer, addr))

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._read(reader, writer)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length is not None else b""
                self._take(head + body, writer.write)

    def _take(self, data: bytes, send: Send) -> None:
        if not data.strip():
            return
        message = parse_message(data)
        handset = self._by_call_id.get(message.call_id)
        if handset is None and isinstance(message, Request) and message.method == "INVITE":
            handset = Handset(self, message.uri.user or "", send, message)
            self._add(handset)
            self._run(self.scripts.get(handset.number, Handset.answer)(handset))
        if handset is None:
            self.outside.append(data)
            if isinstance(message, Request) and message.method != "ACK":
                send(serialise(reply(message, 200, to_tag="none")))
            return
        handset.heard.append(data)
        handset.take(message, send)

    def _add(self, handset: Handset) -> None:
        self.handsets.append(handset)
        self._by_call_id[handset.call_id] = handset
        self.dress(handset)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Handset:
    """One dialog, and what its user is called: the number of ten digits."""

    def __init__(self, trunk: Trunk, user: str, send: Send, invite: Request | None = None) -> None:
        self.trunk = trunk
        self.number = user[-10:]
        self.calls = invite is None
        """True for the caller's side."""
        self.heard: list[bytes] = []
        self.requests: list[Request] = []
        self.responses: list[Response] = []
        self.headers: list[tuple[str, str]] = []
        """Headers added to all its messages."""
        self.session_lines: list[str] = []
        self.description = b""
        """Items of a source description, added to its RTCP packets."""
        self.call_id = secrets.token_hex(8) if invite is None else invite.call_id
        self.tag = secrets.token_hex(4)
        self.over = asyncio.Event()
        self.media = RtcpPeer(ssrc=secrets.randbits(31))
        self._sequence = itertools.count(1)
        self._send = send
        self._local = self._remote = ""
        self._target = ""
        self._branch = ""
        self._acknowledged = asyncio.Event()
        self._invite = invite
        self._remote_media: tuple[str, int] | None = None
        self._loop = asyncio.get_running_loop()
        for sock in (self.media.rtp, self.media.rtcp):
            self._loop.add_reader(sock, self._hear, sock)
        self._speaking = self._loop.call_later(0.02, self._speak)
        if invite is not None:
            self._remote = invite.headers.get("From") or ""
            self._target = str(invite.contact.uri) if invite.contact is not None else ""
            self._listen_to(invite.body)

    def close(self) -> None:
        """Stop its media."""
        self._speaking.cancel()
        for sock in (self.media.rtp, self.media.rtcp):
            if sock.fileno() >= 0:
                self._loop.remove_reader(sock)
                sock.close()

    # What it says as the one who is called.

    async def progress(self, status: int = 180, *, early: bool = False, headers: Fields = ()) -> None:
        """Answer the INVITE with a provisional response."""
        self._respond(self.offered, status, self._session() if early else b"", headers)

    async def answer(self) -> None:
        """Answer the call."""
        self._respond(self.offered, 200, self._session())

    async def reject(self, status: int, headers: Fields = ()) -> None:
        """Refuse the call."""
        self._respond(self.offered, status, b"", headers)
        self.over.set()

    @property
    def offered(self) -> Request:
        """The INVITE by which it was called."""
        assert self._invite is not None
        return self._invite

    # What it says as either.

    def invite(self, uri: str, to: str, headers: Fields = ()) -> None:
        """Call."""
        self._target, self._remote = uri, to
        self._request("INVITE", self._session(), "application/sdp", headers)

    async def ask(
        self, method: str, body: bytes = b"", content_type: str = "text/plain", headers: Fields = ()
    ) -> int:
        """Ask something within the dialog; the status of the final answer."""
        number = self._request(method, body, content_type, headers)

        def answers() -> list[int]:
            return [
                item.status
                for item in self.responses
                if item.cseq.number == number and item.cseq.method == method and item.status >= 200
            ]

        assert await eventually(lambda: bool(answers()), PATIENCE_S), f"{method} was not answered"
        return answers()[0]

    async def hang_up(self, headers: Fields = ()) -> None:
        """End the call."""
        if await self.ask("BYE", headers=headers) == 200:
            self.over.set()

    async def answered(self) -> None:
        """Wait until its own call is answered, or its answer acknowledged."""
        async with asyncio.timeout(PATIENCE_S):
            await self._acknowledged.wait()

    async def ended(self) -> None:
        """Wait until the call is over."""
        async with asyncio.timeout(PATIENCE_S):
            await self.over.wait()

    def statuses(self, method: str = "INVITE") -> list[int]:
        """The answers to its own requests, in order."""
        return [item.status for item in self.responses if item.cseq.method == method]

    # What it is told.

    def take(self, message: Request | Response, send: Send) -> None:
        """Answer as any telephone does."""
        self._send = send
        if isinstance(message, Response):
            self._take_response(message)
            return
        self.requests.append(message)
        method = message.method
        if method == "ACK":
            self._acknowledged.set()
            self._listen_to(message.body)
        elif method == "INVITE" and message is not self._invite and "tag" in str(message.headers.get("To")):
            self._listen_to(message.body)
            self._respond(message, 200, self._session())
        elif method == "UPDATE":
            self._respond(message, 200, self._session() if message.body else b"")
        elif method in ("BYE", "CANCEL"):
            self._respond(message, 200)
            if method == "CANCEL":
                self._respond(self.offered, 487)
            self.over.set()
        elif method != "INVITE":
            self._respond(message, 200)

    def _take_response(self, response: Response) -> None:
        self.responses.append(response)
        if response.cseq.method != "INVITE":
            return
        self._listen_to(response.body)
        if 100 < response.status < 300:
            self._remote = response.headers.get("To") or ""
            if response.contact is not None:
                self._target = str(response.contact.uri)
        if response.status >= 200:
            self._request("ACK", number=response.cseq.number, fresh=response.status < 300)
            self._acknowledged.set()
            if response.status >= 300 and len(self.requests) == 0 and not self._by_dialog():
                self.over.set()

    def _by_dialog(self) -> bool:
        return any(item.status == 200 and item.cseq.method == "INVITE" for item in self.responses)

    # How it is written.

    @property
    def _contact(self) -> str:
        transport = ";transport=tcp" if self.trunk.protocol == "tcp" else ""
        return f"<sip:{self.tag}@{HOST}:{self.trunk.port}{transport}>"

    def _request(
        self,
        method: str,
        body: bytes = b"",
        content_type: str = "",
        headers: Fields = (),
        *,
        number: int | None = None,
        fresh: bool = True,
    ) -> int:
        number = next(self._sequence) if number is None else number
        if fresh:
            self._branch = f"z9hG4bK{secrets.token_hex(6)}"
        transport = self.trunk.protocol.upper()
        lines = [
            f"{method} {self._target} SIP/2.0",
            f"Via: SIP/2.0/{transport} {HOST}:{self.trunk.port};branch={self._branch};rport",
            "Max-Forwards: 70",
            f"From: {self._from()}",
            f"To: {self._remote}",
            f"Call-ID: {self.call_id}",
            f"CSeq: {number} {method}",
            f"Contact: {self._contact}",
            *(f"{name}: {value}" for name, value in (*headers, *self.headers)),
            f"Content-Length: {len(body)}",
            *([f"Content-Type: {content_type}"] if body else []),
        ]
        self._send("\r\n".join([*lines, "", ""]).encode() + body)
        return number

    def _from(self) -> str:
        if self._invite is not None:
            to = self._invite.headers.get("To") or ""
            return to if ";tag=" in to else f"{to};tag={self.tag}"
        return f'"{self.number}" <sip:+91{self.number}@{HOST}>;tag={self.tag}'

    def _respond(self, request: Request, status: int, body: bytes = b"", headers: Fields = ()) -> None:
        response = reply(request, status, to_tag=self.tag)
        given = {name.lower() for name, _ in headers}
        if status < 300 and "contact" not in given:
            response.headers.add("Contact", self._contact)
        for name, value in (*headers, *self.headers):
            response.headers.add(name, value)
        if body:
            response.headers.add("Content-Type", "application/sdp")
            response.body = body
        self._send(serialise(response))

    def _session(self) -> bytes:
        _, port = self.media.address
        lines = ["v=0", f"o={self.number} 1 {next(self._sequence)} IN IP4 {HOST}", f"s=call of {self.number}"]
        lines += [f"i={self.number}", f"u=http://{self.number}.example/", f"e={self.number}@example.com"]
        lines += [f"p=+91 {self.number}", f"c=IN IP4 {HOST}", "t=0 0"]
        lines += [
            f"m=audio {port} RTP/AVP 0 101",
            "a=rtpmap:0 PCMU/8000",
            "a=rtpmap:101 telephone-event/8000",
        ]
        lines += [*self.session_lines, "a=sendrecv"]
        return "\r\n".join([*lines, ""]).encode()

    # Media.

    def _listen_to(self, body: bytes) -> None:
        port = re.search(rb"^m=audio (\d+)", body, re.MULTILINE)
        address = re.search(rb"^c=IN IP4 (\S+)", body, re.MULTILINE)
        if port is not None and address is not None and int(port[1]):
            self._remote_media = (address[1].decode(), int(port[1]))

    def _speak(self) -> None:
        self._speaking = self._loop.call_later(0.02, self._speak)
        if self._remote_media is None:
            return
        self.media.speak(self._remote_media)
        if self.media.sequence % 5 == 0 and self.description:
            self._describe(self._remote_media)

    def _describe(self, to: tuple[str, int]) -> None:
        """Report, with a description of the source that says whatever the test put there."""
        chunk = struct.pack("!I", self.media.ssrc) + self.description + b"\0"
        chunk += b"\0" * (-len(chunk) % 4)
        report = struct.pack("!BBHI", 0x80, 201, 1, self.media.ssrc)
        packet = report + struct.pack("!BBH", 0x81, 202, len(chunk) // 4) + chunk
        self.media.rtcp.sendto(packet, (to[0], to[1] + 1))
        self.media.rtp.sendto(packet, to)

    def _hear(self, sock: Any) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard.append(sock.recv(4096))
