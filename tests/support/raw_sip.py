"""
A SIP peer whose every text is given by the test: it calls, answers and hangs up as raw datagrams.

It is no user agent: it follows one dialog, and retransmits nothing.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.ports import free_port

__all__ = ["RawSip", "raw_sip"]

_PATIENCE_S = 30.0
_COPIED = ("Via", "From", "To", "Call-ID", "CSeq")


@dataclass
class RawSip:
    """
    The peer, at `port` of 127.0.0.1.

    Attributes:
        server_port: Port of the server for SIP.
        display: Display name of From and Contact, as it is to be read.
        user: User of the From address, escaped.
        call_id: Call-ID.
        extra: Further header fields of each request.
        session: Lines of the session description behind its first ones.
    """

    server_port: int
    socket: socket.socket
    port: int
    display: str
    user: str
    call_id: str
    extra: Mapping[str, str]
    session: str
    _to: str = ""
    _cseq: int = 0
    _target: str = ""

    def call(self, number: str, *, is_answered: bool = True) -> str:
        """Call a number, acknowledge its answer or refusal, and return the status line."""
        self._target = f"sip:{number}@127.0.0.1:{self.server_port}"
        self._to = f"<{self._target}>"
        self._cseq = 1
        self._send("INVITE", self._sdp())
        answer = self._until(lambda text: re.match(r"SIP/2\.0 [2-6]", text) is not None)
        status_line = answer.partition("\r\n")[0]
        assert status_line.startswith("SIP/2.0 200") is is_answered, answer
        self._to = _header(answer, "To")
        if is_answered:
            self._target = re.sub(r"^.*<|>.*$", "", _header(answer, "Contact"))
        # That of a refusal belongs to the transaction of the INVITE.
        self._send("ACK", branch="ACK" if is_answered else "INVITE")
        return status_line

    def hang_up(self, reason: str) -> None:
        """Hang up, with the text of a reason (RFC 3326)."""
        self._cseq += 1
        self._send("BYE", extra={"Reason": f"Q.850;cause=16;text={_quoted(reason)}"})
        self._until(lambda text: text.startswith("SIP/2.0 200"))

    def refuse_next(self, status_line: str, extra: Mapping[str, str]) -> None:
        """Refuse the next INVITE with a status line and further header fields."""
        invite = self._until(lambda text: text.startswith("INVITE "))
        lines = [f"SIP/2.0 {status_line}", *(f"{name}: {_header(invite, name)}" for name in _COPIED)]
        lines = [f"{line};tag=raw" if line.startswith("To:") else line for line in lines]
        lines += [f"{name}: {value}" for name, value in extra.items()]
        self._write("\r\n".join([*lines, "Content-Length: 0", "", ""]))
        self._until(lambda text: text.startswith("ACK "))

    def _send(
        self, method: str, body: str = "", extra: Mapping[str, str] | None = None, branch: str | None = None
    ) -> None:
        here = f"127.0.0.1:{self.port}"
        name = _quoted(self.display)
        fields = {
            "Via": f"SIP/2.0/UDP {here};branch=z9hG4bKraw{self._cseq}{branch or method};rport",
            "From": f"{name} <sip:{self.user}@{here}>;tag=raw",
            "To": self._to,
            "Call-ID": self.call_id,
            "CSeq": f"{self._cseq} {method}",
            "Contact": f"{name} <sip:raw@{here}>",
            "Max-Forwards": "70",
            **self.extra,
            **(extra or {}),
            **({"Content-Type": "application/sdp"} if body else {}),
            "Content-Length": str(len(body.encode())),
        }
        lines = [f"{method} {self._target} SIP/2.0", *(f"{name}: {value}" for name, value in fields.items())]
        self._write("\r\n".join([*lines, "", body]))

    def _sdp(self) -> str:
        lines = [
            *("v=0", "o=raw 1 1 IN IP4 127.0.0.1", self.session, "c=IN IP4 127.0.0.1", "t=0 0"),
            *(f"m=audio {free_port()} RTP/AVP 0", "a=rtpmap:0 PCMU/8000"),
        ]
        return "".join(f"{line}\r\n" for line in lines)

    def _write(self, text: str) -> None:
        self.socket.sendto(text.encode(), ("127.0.0.1", self.server_port))

    def _until(self, wanted: Callable[[str], bool]) -> str:
        """The next message that is wanted; others are passed over."""
        end_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end_s:
            try:
                text = self.socket.recv(65_536).decode()
            except TimeoutError:
                continue
            if wanted(text):
                return text
        raise AssertionError("no such message came")


def _header(message: str, name: str) -> str:
    found = re.search(rf"^{name}: *(.*?)\r$", message, re.MULTILINE | re.IGNORECASE)
    assert found is not None, message
    return found[1]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextmanager
def raw_sip(
    server_port: int,
    *,
    display: str,
    user: str,
    call_id: str,
    extra: Mapping[str, str] | None = None,
    session: str = "s=-",
) -> Iterator[RawSip]:
    """Open a peer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(1.0)
        port = opened.getsockname()[1]
        yield RawSip(server_port, opened, port, display, user, call_id, extra or {}, session)
