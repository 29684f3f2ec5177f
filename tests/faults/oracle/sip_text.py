"""As much of SIP's text as far ends need: parts of a message, requests, answers, descriptions of G.711."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Message", "answer", "branch", "described_port", "describe", "request"]

_COMPACT = {"v": "via", "f": "from", "t": "to", "i": "call-id", "m": "contact", "l": "content-length"}
_REASONS = {
    100: "Trying",
    180: "Ringing",
    200: "OK",
    481: "Call/Transaction Does Not Exist",
    486: "Busy Here",
    487: "Request Terminated",
}
_KEPT = ("via", "record-route", "from", "to", "call-id", "cseq")
_URI = re.compile(r"<([^>]+)>|^\s*([^;\s]+)")
_AUDIO = re.compile(r"^m=audio (\d+) ", re.MULTILINE)


@dataclass(slots=True)
class Message:
    """A message that came in; `status` is None for a request, header names are lower-case."""

    method: str
    status: int | None
    uri: str
    headers: list[tuple[str, str]]
    body: str

    @classmethod
    def read(cls, data: bytes) -> Message | None:
        """Parse a datagram; None if it is no SIP message."""
        head, _, body = data.decode("utf-8", "replace").partition("\r\n\r\n")
        start, *lines = head.split("\r\n")
        words = start.split(" ", 2)
        if len(words) < 3:
            return None
        headers = []
        for line in lines:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            headers.append((_COMPACT.get(name, name), value.strip()))
        if words[0] != "SIP/2.0":
            return cls(words[0], None, words[1], headers, body)
        found = cls("", int(words[1]), "", headers, body)
        found.method = found.first("cseq").rpartition(" ")[2]
        return found

    def first(self, name: str) -> str:
        """The first value of a header, or an empty text."""
        return next((value for key, value in self.headers if key == name), "")

    def all(self, name: str) -> list[str]:
        """All values of a header, in their order."""
        return [value for key, value in self.headers if key == name]

    @property
    def branch(self) -> str:
        """Branch, which identifies the transaction."""
        found = re.search(r"branch=([^;,\s]+)", self.first("via"))
        return found[1] if found is not None else ""

    @property
    def target(self) -> str:
        """The URI of its Contact."""
        found = _URI.search(self.first("contact"))
        return (found[1] or found[2]) if found is not None else ""

    @property
    def user(self) -> str:
        """User of the request's URI."""
        return self.uri.partition(":")[2].partition("@")[0]


def branch() -> str:
    """A new branch."""
    return f"z9hG4bK{secrets.token_hex(8)}"


def tag_of(value: str) -> str:
    """The tag of a From or To value, or an empty text."""
    return value.partition(";tag=")[2].partition(";")[0]


def request(start: str, headers: Sequence[tuple[str, str]], body: str = "") -> bytes:
    """A request, or any message, with the length and type of its body."""
    lines = [start, *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines.append("Content-Type: application/sdp")
    lines.append(f"Content-Length: {len(body.encode())}")
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def answer(
    to: Message, status: int, tag: str, headers: Sequence[tuple[str, str]] = (), body: str = ""
) -> bytes:
    """An answer to a request."""
    kept = []
    for name, value in to.headers:
        if name in _KEPT:
            if name == "to" and ";tag=" not in value and status > 100:
                value = f"{value};tag={tag}"
            kept.append((name.title(), value))
    return request(f"SIP/2.0 {status} {_REASONS.get(status, 'So It Is')}", [*kept, *headers], body)


def describe(port: int) -> str:
    """The description of G.711 at a port of 127.0.0.1."""
    return (
        "v=0\r\no=far 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
        f"m=audio {port} RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\n"
        "a=fmtp:101 0-15\r\na=ptime:20\r\na=sendrecv\r\n"
    )


def described_port(body: str) -> int | None:
    """Return the other side's port for audio on 127.0.0.1; None without one."""
    found = _AUDIO.search(body)
    return int(found[1]) or None if found is not None else None
