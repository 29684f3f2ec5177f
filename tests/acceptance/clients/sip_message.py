"""SIP messages and session descriptions, as far as a telephone needs them (RFC 3261, RFC 4566)."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import unquote

__all__ = ["Description", "SipMessage", "described", "description", "digest_answer", "parameter", "user_of"]

_COMPACT: Final = {
    "v": "via",
    "f": "from",
    "t": "to",
    "i": "call-id",
    "m": "contact",
    "c": "content-type",
    "l": "content-length",
    "k": "supported",
}
_PHRASES: Final = {
    100: "Trying",
    180: "Ringing",
    200: "OK",
    404: "Not Found",
    408: "Request Timeout",
    480: "Temporarily Unavailable",
    486: "Busy Here",
    487: "Request Terminated",
    503: "Service Unavailable",
    603: "Decline",
}
_USER: Final = re.compile(r"(?:sips?|tel):([^@>;?]+)")

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class SipMessage:
    """A request or a response; names of header fields are in lower case."""

    start: str
    headers: tuple[tuple[str, str], ...]
    body: str = ""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a datagram."""
        head, _, body = data.decode("utf-8", "replace").partition("\r\n\r\n")
        start, *lines = re.sub(r"\r\n[ \t]+", " ", head).split("\r\n")
        headers = []
        for line in lines:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            headers.append((_COMPACT.get(name, name), value.strip()))
        return cls(start, tuple(headers), body)

    @classmethod
    def request(cls, method: str, uri: str, headers: Headers, body: str = "") -> Self:
        """Make a request."""
        return cls(f"{method} {uri} SIP/2.0", tuple(headers), body)

    def response(self, status: int, headers: Headers = (), body: str = "", to_tag: str = "") -> SipMessage:
        """Make a response to this request."""
        copied = ("via", "from", "to", "call-id", "cseq", "record-route")
        kept = [(name, value) for name, value in self.headers if name in copied]
        if to_tag and not parameter(self.get("to"), "tag"):
            kept = [(name, f"{value};tag={to_tag}" if name == "to" else value) for name, value in kept]
        phrase = _PHRASES.get(status, "Refused")
        return SipMessage(f"SIP/2.0 {status} {phrase}", (*kept, *headers), body)

    def __bytes__(self) -> bytes:
        body = self.body.encode()
        fields = [*self.headers, ("content-length", str(len(body)))]
        if body and not self.get("content-type"):
            fields.append(("content-type", "application/sdp"))
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        return f"{self.start}\r\n{lines}\r\n".encode() + body

    @property
    def method(self) -> str:
        """Method of a request; of a response, the one it answers."""
        return self.get("cseq").split()[-1] if self.status else self.start.split()[0]

    @property
    def uri(self) -> str:
        """Address that a request is for."""
        return self.start.split()[1]

    @property
    def status(self) -> int:
        """Status of a response; 0 for a request."""
        return int(self.start.split()[1]) if self.start.startswith("SIP/2.0 ") else 0

    def get(self, name: str) -> str:
        """First value of a header field, or an empty text."""
        return next((value for found, value in self.headers if found == name), "")

    def all(self, name: str) -> list[str]:
        """All values of a header field."""
        return [value for found, value in self.headers if found == name]


def user_of(address: str) -> str:
    """User part of an address: the number."""
    found = _USER.search(address)
    return unquote(found[1]) if found else ""


def parameter(value: str, name: str) -> str:
    """Parameter of a header field, such as the tag; empty without it."""
    found = re.search(rf"(?i)[;,\s]{name}\s*=\s*(?:\"([^\"]*)\"|([^;,>\s]+))", " " + value)
    return (found[1] or found[2]) if found else ""


@dataclass(frozen=True, slots=True)
class Description:
    """Audio of a session description."""

    host: str
    port: int
    payload_types: tuple[int, ...]
    events: int | None
    direction: str


def described(body: str) -> Description | None:
    """Read a session description; None where there is no audio."""
    audio = re.search(r"(?m)^m=audio (\d+) \S+ ([\d ]+)", body)
    host = re.findall(r"(?m)^c=IN IP4 (\S+)", body)
    if audio is None or not host:
        return None
    events = re.search(r"(?mi)^a=rtpmap:(\d+) telephone-event/8000", body)
    direction = re.search(r"(?m)^a=(sendrecv|sendonly|recvonly|inactive)", body)
    return Description(
        host[-1],
        int(audio[1]),
        tuple(map(int, audio[2].split())),
        int(events[1]) if events else None,
        direction[1] if direction else "sendrecv",
    )


def description(address: tuple[str, int], events: int | None = 101, direction: str = "sendrecv") -> str:
    """Describe a stream of PCMU, with telephone events."""
    host, port = address
    lines = [
        *("v=0", f"o=phone 1 1 IN IP4 {host}", "s=-", f"c=IN IP4 {host}", "t=0 0"),
        f"m=audio {port} RTP/AVP 0" + (f" {events}" if events is not None else ""),
        "a=rtpmap:0 PCMU/8000",
    ]
    if events is not None:
        lines += [f"a=rtpmap:{events} telephone-event/8000", f"a=fmtp:{events} 0-15"]
    return "\r\n".join([*lines, "a=ptime:20", f"a={direction}", ""])


def digest_answer(challenge: str, method: str, uri: str, username: str, password: str) -> str:
    """Answer a challenge by MD5 with qop auth (RFC 2617 3.2.2)."""

    def digest(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()

    realm, nonce, opaque = (parameter(challenge, name) for name in ("realm", "nonce", "opaque"))
    cnonce = secrets.token_hex(8)
    first = digest(f"{username}:{realm}:{password}")
    second = digest(f"{method}:{uri}")
    response = digest(f"{first}:{nonce}:00000001:{cnonce}:auth:{second}")
    answer = (
        f'Digest username="{username}", realm="{realm}", nonce="{nonce}", uri="{uri}", '
        f'response="{response}", algorithm=MD5, cnonce="{cnonce}", qop=auth, nc=00000001'
    )
    return f'{answer}, opaque="{opaque}"' if opaque else answer
