"""Far ends for a run that looks for secrets: a carrier that asks for passwords, a web server, a HEP one."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.background import Background

__all__ = ["CaptureServer", "PasswordCarrier", "RefusingServer"]

_RESPONSE = re.compile(rb'\bresponse="([0-9a-f]+)"')
_MEDIA_KEY = re.compile(rb"\binline:([A-Za-z0-9+/=]+)")
_CHALLENGE = 'Digest realm="carrier.example", nonce="b7c9036dbf3054aea94", algorithm=MD5, qop="auth"'


class _Datagrams(Background):
    """A UDP socket of 127.0.0.1 whose datagrams a thread takes."""

    def __init__(self) -> None:
        super().__init__()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.settimeout(0.1)
        self.port: int = self.sock.getsockname()[1]

    def close(self) -> None:
        """Leave the port."""
        self.sock.close()

    def take(self, data: bytes, source: tuple[str, int]) -> None:
        """Handle a datagram."""
        raise NotImplementedError

    def work(self) -> None:
        """Serve connections."""
        while not self.over.is_set():
            try:
                data, source = self.sock.recvfrom(65535)
            except TimeoutError:
                continue
            self.take(data, source)


class CaptureServer(_Datagrams):
    """Keeps the SIP messages of the HEP packets that come, without the password that stands beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[bytes] = []

    def take(self, data: bytes, source: tuple[str, int]) -> None:
        """Keep a message; a chunk is a vendor, a type, a length with these six bytes, and a value."""
        offset = 6
        while offset < len(data):
            _, kind, length = struct.unpack_from("!HHH", data, offset)
            if kind == 0x0F:
                self.messages.append(data[offset + 6 : offset + length])
            offset += length


class PasswordCarrier(_Datagrams):
    """
    Asks for the password, then takes registrations and is too busy for calls.

    Attributes:
        secrets: The answers to its challenges and the keys of media that it was sent.
        asked: The methods of requests that came with an answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()
        self.asked: list[str] = []

    def take(self, data: bytes, source: tuple[str, int]) -> None:
        """Answer a request."""
        method = data.split(b" ", 1)[0].decode("ascii", "replace")
        self.secrets |= {found.decode() for found in _MEDIA_KEY.findall(data) if len(found) > 16}
        if method in ("ACK", "SIP/2.0"):
            return
        answer = _RESPONSE.search(data)
        if answer is None and method in ("INVITE", "REGISTER"):
            self._answer(data, source, "401 Unauthorized", f"WWW-Authenticate: {_CHALLENGE}\r\n")
            return
        if answer is not None:
            self.secrets.add(answer[1].decode())
            self.asked.append(method)
        self._answer(data, source, "486 Busy Here" if method == "INVITE" else "200 OK")

    def _answer(self, request: bytes, source: tuple[str, int], status: str, more: str = "") -> None:
        lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
        copied = [
            line + (";tag=far-end" if line.lower().startswith("to:") and ";tag=" not in line else "")
            for line in lines[1:]
            if line.partition(":")[0].strip().lower() in ("via", "from", "to", "call-id", "cseq")
        ]
        contact = [line for line in lines if line.lower().startswith("contact:") and status[0] == "2"]
        text = "\r\n".join([f"SIP/2.0 {status}", *copied, *contact, f"{more}Content-Length: 0", "", ""])
        self.sock.sendto(text.encode(), source)


class RefusingServer(Background):
    """
    A web server that has nothing but failures to give: webhooks, tools, instructions and streams all get one.

    Attributes:
        asked: The paths that were asked for, without their queries.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.asked.append))
        self._server.timeout = 0.05

    def work(self) -> None:
        """Serve requests, each in a thread of its own."""
        while not self.over.is_set():
            self._server.handle_request()

    def close(self) -> None:
        """Leave the port, once every answer has been given."""
        self._server.server_close()

    def url(self, path: str, scheme: str = "http", user: str = "") -> str:
        """An address of it."""
        return f"{scheme}://{user}127.0.0.1:{self._server.server_port}{path}"


def _handler(note: Callable[[str], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            note(self.path.partition("?")[0])
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b'{"error": "no"}'
            self.send_response(500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _refuse

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
