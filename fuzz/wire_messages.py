"""The messages a wire run mutates: those of the vectors, requests of its own, and requests within a call."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fuzz.harness import VECTORS, Fuzzer, Target

__all__ = ["Call", "Mill", "request"]

SDP = (
    "v=0\r\no=- 1 {version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
    "m=audio 9 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\n"
)
_TYPED = {
    "INFO": ("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n"),
    "NOTIFY": ("message/sipfrag;version=2.0", "SIP/2.0 180 Ringing\r\n"),
    "MESSAGE": ("text/plain", "hello"),
}
_OFFERS = frozenset(("INVITE", "UPDATE", "PRACK", "ACK"))
_WITHIN = (
    "INVITE",
    "UPDATE",
    "INFO",
    "REFER",
    "NOTIFY",
    "PRACK",
    "MESSAGE",
    "ACK",
    "OPTIONS",
    "CANCEL",
    "BYE",
)
_ALONE = (
    "INVITE",
    "OPTIONS",
    "REGISTER",
    "SUBSCRIBE",
    "PUBLISH",
    "MESSAGE",
    "CANCEL",
    "PRACK",
    "ACK",
    "NOTIFY",
)

# Fields that reach what a plain message does not.
LINES = (
    'Refer-To: <sip:1@127.0.0.1>;x="<"',
    'Refer-To: <sip:1@127.0.0.1>;x="<sip:2@127.0.0.1>"',
    "Refer-To: <sip:1@127.0.0.1?Replaces=a%3Bto-tag%3Db%3Bfrom-tag%3Dc&Require=replaces>",
    "Refer-To: <tel:+44;phone-context=+91>",
    "Referred-By: <sip:a@b>;cid=1",
    "Refer-Sub: maybe",
    "Replaces: a;to-tag=b;from-tag=c;early-only",
    "Replaces: ;;;=",
    "Require: 100rel, timer, replaces, norefersub",
    "Supported: 100rel, timer, replaces",
    "Session-Expires: 1;refresher=uac",
    "Session-Expires: 99999999999999999999;refresher=x",
    "Min-SE: 4294967296",
    "RAck: 1 1 INVITE",
    "RAck: 4294967295 2147483647 INVITE",
    "RSeq: 4294967296",
    'Reason: Q.850;cause=16;text="a\\"b"',
    "Reason: SIP;cause=x,,,;",
    "Event: refer;id=999999999999999999",
    "Event: ;;;",
    "Subscription-State: terminated;reason=x;expires=-1",
    "Content-Type: multipart/mixed;boundary=b",
    'Content-Type: multipart/mixed;boundary="',
    "Content-Encoding: gzip",
    "Content-Length: 99999",
    'Authorization: Digest username="a",realm="trunkline",nonce="b",uri="sip:c",response="d",qop=auth',
    "Proxy-Authorization: Digest",
    "Contact: <sip:a@[::1]>;expires=0",
    "Contact: *",
    "Contact: <tel:+911>",
    "Record-Route: <tel:1;lr>, <sips:a;lr>",
    "Route: <sip:127.0.0.1;lr>",
    "Via: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKtwo;received=1.2.3.4;rport=99999",
    "Privacy: id;header;user;none;critical",
    'P-Asserted-Identity: <tel:+91>, <sip:%00@x>, "',
    "History-Info: <sip:a@b?Reason=SIP%3Bcause%3D302>;index=1.1.1.1",
    'Diversion: <sip:a>;reason=";counter=99999999999',
    "Session-ID: " + "f" * 32 + ";remote=" + "0" * 32,
    "User-to-User: 00;encoding=hex",
    "Identity: a;info=<x>;alg=ES256",
    "Max-Forwards: 0",
    "Expires: -1",
    "Accept: application/sdp;q=2",
    "Retry-After: 9999999999999999999",
    'Warning: 399 x "',
)


@dataclass
class Call:
    """A call of ours that is up at the server, for the requests within it."""

    call_id: str
    from_tag: str
    to: str
    cseq: int = 1
    version: int = 1
    sent: int = field(default=0, compare=False)


def request(
    method: str,
    number: str,
    via: tuple[str, str],
    branch: str,
    *,
    call: Call | None = None,
    extra: Sequence[str] = (),
) -> bytes:
    """A well-formed request: of its own, or the next one of a call. `via` is transport and host:port."""
    transport, local = via
    if call is None:
        call_id, from_tag, to, cseq, version = f"{branch}@wire", branch, f"<sip:{number}@127.0.0.1>", 1, 1
    else:
        if method not in ("ACK", "CANCEL"):
            call.cseq += 1
        call.version += 1
        call_id, from_tag, to, cseq, version = call.call_id, call.from_tag, call.to, call.cseq, call.version
    kind, body = _TYPED.get(method, ("", ""))
    if method in _OFFERS and (call is not None or method == "INVITE"):
        kind, body = "application/sdp", SDP.format(version=version)
    lines = [
        f"{method} sip:{number}@127.0.0.1 SIP/2.0",
        f"Via: SIP/2.0/{transport} {local};branch=z9hG4bK{branch};rport",
        "Max-Forwards: 70",
        f"From: <sip:+918047000099@{local}>;tag={from_tag}",
        f"To: {to}",
        f"Call-ID: {call_id}",
        f"CSeq: {cseq} {method}",
        f"Contact: <sip:a@{local};transport={transport.lower()}>",
        *extra,
    ]
    lines += [f"Content-Type: {kind}"] if kind else []
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()


class Mill:
    """Makes the mutated messages of one run; the same seed makes the same ones."""

    def __init__(self, seed: int, number: str) -> None:
        vectors = [path.read_bytes() for path in sorted((VECTORS / "sip").glob("*.sip"))]
        self.vectors = [vector for vector in vectors if vector]
        self.random = random.Random(seed)
        self._number = number
        self._made = 0
        dictionary = [line.encode() for line in LINES]
        self._fuzzer = Fuzzer(Target("wire", lambda data: "", (), self.vectors, dictionary), seed)

    def branch(self) -> str:
        """A branch nothing else of the run has."""
        self._made += 1
        return f"w{self._made}x"

    def next(self, via: tuple[str, str], call: Call | None) -> bytes:
        """A message that was bent, or for once one that was not."""
        rng = self.random
        choice = rng.random()
        if call is not None and choice < 0.5:
            data = self._within(via, call)
        elif choice < 0.75:
            data = self._renamed(rng.choice(self.vectors))
        else:
            extra = [rng.choice(LINES)] if rng.random() < 0.3 else []
            data = request(rng.choice(_ALONE), self._number, via, self.branch(), extra=extra)
        return data if rng.random() < 0.1 else self.bent(data)

    def bent(self, data: bytes) -> bytes:
        """A message with a field too many, or bytes that were changed, or both."""
        if self.random.random() < 0.4:
            head, end, rest = data.partition(b"\r\n")
            data = head + end + self.random.choice(LINES).encode() + b"\r\n" + rest
            if self.random.random() < 0.5:
                return data
        return self._fuzzer.mutated(data)

    def _within(self, via: tuple[str, str], call: Call) -> bytes:
        rng = self.random
        method = rng.choice(_WITHIN) if rng.random() < 0.98 else "BYE"
        if method == "BYE" and rng.random() < 0.9:
            method = "INFO"
        extra = [rng.choice(LINES)] if rng.random() < 0.3 else []
        if method == "REFER":
            extra.append(f"Refer-To: <sip:{self._number}@127.0.0.1>")
        elif method == "NOTIFY":
            extra += ["Event: refer", "Subscription-State: active;expires=60"]
        elif method == "PRACK":
            extra.append(f"RAck: 1 {call.cseq} INVITE")
        return request(method, self._number, via, self.branch(), call=call, extra=extra)

    def _renamed(self, data: bytes) -> bytes:
        """A vector as a new transaction: repetitions would only be absorbed."""
        name = self.branch().encode()
        data = re.sub(rb"z9hG4bK", b"z9hG4bK" + name, data)
        return re.sub(rb"(?im)^((?:Call-ID|i)[ \t]*:[ \t]*)", rb"\g<1>" + name, data)
