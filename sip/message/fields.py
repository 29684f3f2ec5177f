"""
Typed values of header fields: addresses, Via and CSeq.

Source: RFC 3261 20.10, 20.16, 20.42, 25.1.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache
from typing import Literal

from sip.errors import InvalidValue, ParseError
from sip.message.encoding import readable
from sip.message.grammar import (
    WHITE_SPACE,
    Params,
    check_params,
    find_param,
    format_params,
    is_token,
    parse_number,
    parse_params,
    split_verbatim,
    unquote,
    without_controls,
)
from sip.message.native import wire
from sip.message.uri import SipUri, is_host
from sip.values import frozen

MAX_CSEQ = 2**31 - 1
"""RFC 3261 8.1.1.5."""

CACHED_CHARS = 256
"""Longest cached value, which bounds the memory a peer can occupy in the caches."""

_QUOTED_NAME = re.compile(r'("(?:[^"\\]|\\.)*")[ \t]*', re.DOTALL)
_VIA = re.compile(
    r"[Ss][Ii][Pp][ \t]*/[ \t]*2\.0[ \t]*/[ \t]*([A-Za-z0-9\-.!%*_+`'~]+)"  # transport
    r"[ \t]+(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"  # sent-by host
    r"(?:[ \t]*:[ \t]*([0-9]{1,5}))?[ \t]*"  # sent-by port
    r"(;.*)?",
    re.DOTALL,
)
# A token by the grammar; old gateways put '=', ':' and '@' there, and only they interpret it.
_BRANCH = re.compile(r'[^\x00-\x20\x7f;,"<>]+')
_CSEQ = re.compile(r"([0-9]{1,20})[ \t]+([A-Za-z0-9\-.!%*_+`'~]+)")


@frozen
class NameAddr(wire.AddressText):
    """
    An address with its display name and header parameters, as in From, To and Contact.

    ``display_name`` is plain text; writing adds quotes and escapes, reading
    drops control characters and makes bytes that are not UTF-8 `readable`.
    Without angle brackets, parameters belong to the header field.

    Raises:
        InvalidValue: A parameter would not read back as itself.
    """

    display_name: str | None
    uri: SipUri
    params: Params = ()
    tag: str | None = field(init=False, repr=False, compare=False)
    """The tag, None when there is none."""

    def __post_init__(self) -> None:
        tag = None
        if self.params:
            check_params(self.params)
            tag = find_param(self.params, "tag")
        object.__setattr__(self, "tag", tag)

    @classmethod
    def parse(cls, text: str) -> NameAddr:
        """
        Parse one address.

        Raises:
            ParseError: Unbalanced quotes or brackets, a bad URI, more than one
                tag, or a bare URI whose parts could be parameters.
        """
        if len(text) <= CACHED_CHARS:
            return _parse_name_addr_cached(text)
        return _parse_name_addr(text)

    def param(self, name: str) -> str | None:
        """Return the value of a header parameter as sent; "" without a value, None when absent."""
        return find_param(self.params, name.lower())

    def with_tag(self, tag: str) -> NameAddr:
        """Return a copy with this tag."""
        params = [param for param in self.params if param[0] != "tag"] if self.params else ()
        return NameAddr(self.display_name, self.uri, (*params, ("tag", tag)))


wire.set_address_classes(SipUri, NameAddr)


@frozen
class Via:
    """
    One Via header field value.

    ``host`` is in lower case and without brackets. ``rport`` is "" when the
    sender asks for the port, and a number once filled in. ``params`` are the
    parameters without a field of their own.

    Raises:
        InvalidValue: A part would not read back as itself.

    Source: RFC 3261 20.42, RFC 3581.
    """

    transport: str
    host: str
    port: int | None = None
    branch: str | None = None
    received: str | None = None
    rport: Literal[""] | int | None = None
    params: Params = ()

    def __post_init__(self) -> None:
        if not is_token(self.transport) or not is_host(self.host):
            raise InvalidValue("Malformed transport or host")
        if self.port is not None and not 0 < self.port <= 65535:
            raise InvalidValue("Port out of range")
        if self.branch is not None and not _BRANCH.fullmatch(self.branch):
            raise InvalidValue("Malformed branch")
        if self.received is not None and not is_host(self.received):
            raise InvalidValue("Parameter received is no host")
        if self.params:
            check_params(self.params)

    @classmethod
    def parse(cls, text: str) -> Via:
        """
        Parse one Via value.

        Raises:
            ParseError: It is malformed, of another protocol version, or
                repeats branch, received or rport.
        """
        return _parse_via_cached(text) if len(text) <= CACHED_CHARS else _parse_via(text)

    def with_source(self, host: str, port: int) -> Via:
        """
        Return a copy with the source address of the request.

        ``received`` is set when the host differs from ``sent-by`` or rport is
        requested; ``rport`` only when requested. Values of the sender are
        dropped.

        Source: RFC 3261 18.2.1, RFC 3581 4.
        """
        asked = self.rport is not None
        received = host if asked or host != self.host else None
        if received == self.received and not asked:
            return self
        if received is not None and "%" in received:
            received = received.partition("%")[0]  # The zone of a link-local address means nothing elsewhere.
        # The values were checked when this Via was made.
        stamped, put = object.__new__(Via), object.__setattr__
        put(stamped, "transport", self.transport)
        put(stamped, "host", self.host)
        put(stamped, "port", self.port)
        put(stamped, "branch", self.branch)
        put(stamped, "received", received)
        put(stamped, "rport", port if asked else None)
        put(stamped, "params", self.params)
        return stamped

    def param(self, name: str) -> str | None:
        """Return the value of a parameter without a field of its own; "" when bare, None when absent."""
        return find_param(self.params, name.lower())

    def __str__(self) -> str:
        text = f"SIP/2.0/{self.transport} " + (f"[{self.host}]" if ":" in self.host else self.host)
        if self.port is not None:
            text += f":{self.port}"
        if self.branch is not None:
            text += ";branch=" + self.branch
        if self.received is not None:
            text += ";received=" + self.received
        if self.rport is not None:
            text += ";rport" if self.rport == "" else f";rport={self.rport}"
        return text + format_params(self.params) if self.params else text


def stamp_via(text: str, stamped: Via) -> str:
    """
    Return the text of a Via with `received` and `rport` of `stamped`, and all else as written.

    A response repeats each Via: its sender may look for more of its own text than the branch.

    Source: RFC 3261 8.2.6.2, 18.2.1, RFC 3581 4.
    """
    parts: list[str] = []
    for part in split_verbatim(text, ";"):
        written = part.partition("=")[0].rstrip(WHITE_SPACE)
        name = written.lstrip(WHITE_SPACE).lower()
        if name == "rport":
            parts.append(f"{written}={stamped.rport}")
        elif name != "received":
            parts.append(part)
    if stamped.received is not None:
        if not parts[-1].strip(WHITE_SPACE):
            parts.pop()  # A semicolon ended the text.
        parts.append(f"received={stamped.received}")
    return ";".join(parts)


@frozen
class CSeq:
    """Sequence number and method of a request."""

    number: int
    method: str

    @classmethod
    def parse(cls, text: str) -> CSeq:
        """
        Parse a CSeq value.

        Raises:
            ParseError: It is malformed or its number is 2**31 or more.

        Source: RFC 3261 8.1.1.5, 20.16.
        """
        return _parse_cseq_cached(text) if len(text) <= CACHED_CHARS else _parse_cseq(text)

    def __str__(self) -> str:
        return f"{self.number} {self.method}"


def _parse_cseq(text: str) -> CSeq:
    match = _CSEQ.fullmatch(text)
    if match is None:
        raise ParseError("Malformed value")
    number = int(match[1])
    if number > MAX_CSEQ:
        raise ParseError("Number out of range")
    return CSeq(number, match[2])


# Few numbers and methods are in use at any time.
_parse_cseq_cached = lru_cache(maxsize=512)(_parse_cseq)


def _parse_name_addr(text: str) -> NameAddr:
    text = text.strip(WHITE_SPACE)
    start = text.find("<")
    if text.startswith('"'):
        quoted = _QUOTED_NAME.match(text)
        if quoted is None or not text.startswith("<", quoted.end()):
            raise ParseError("Unbalanced quotes or missing angle brackets")
        name = unquote(quoted[1])
        start = quoted.end()
    elif start < 0:
        return _parse_bare_address(text)
    else:
        # Unquoted names should be tokens; carriers put commas, dots and accents there.
        name = text[:start].strip(WHITE_SPACE)
        if '"' in name or ">" in name:
            raise ParseError("Misplaced quotes or angle brackets")
    end = text.find(">", start)
    if end < 0:
        raise ParseError("Unbalanced angle brackets")
    uri = SipUri.parse(text[start + 1 : end].strip(WHITE_SPACE))
    return NameAddr(readable(without_controls(name)) or None, uri, _address_params(text[end + 1 :]))


def _parse_bare_address(text: str) -> NameAddr:
    uri, semicolon, params = text.partition(";")
    # Without brackets, the end of the URI is ambiguous after a question mark or a later at sign.
    if "?" in uri or "@" in params:
        raise ParseError("Missing angle brackets")
    return NameAddr(None, SipUri.parse(uri.strip(WHITE_SPACE)), _address_params(semicolon + params))


def _address_params(text: str) -> Params:
    params = parse_params(text.strip(WHITE_SPACE))
    tags = [value for name, value in params if name == "tag"]
    if len(tags) > 1 or (tags and not tags[0]):
        raise ParseError("Empty or repeated tag")
    return params


_parse_name_addr_cached = lru_cache(maxsize=4096)(_parse_name_addr)


def _parse_via(text: str) -> Via:
    match = _VIA.fullmatch(text.strip(WHITE_SPACE))
    if match is None:
        raise ParseError("Malformed value")
    transport, host, port, rest = match.groups()
    own, others = _split_via_params(parse_params(rest or ""))
    received = own.get("received")
    try:
        return Via(
            transport.upper(),
            host.strip("[]").lower(),
            None if port is None else int(port),
            own.get("branch"),
            None if received is None else received.strip("[]"),
            _rport(own),
            others,
        )
    except InvalidValue as error:
        raise ParseError(str(error)) from None


def _split_via_params(params: Params) -> tuple[dict[str, str], Params]:
    own: dict[str, str] = {}
    others: list[tuple[str, str | None]] = []
    for name, value in params:
        if name not in ("branch", "received", "rport"):
            others.append((name, value))
        elif name in own or (value is None and name != "rport"):
            raise ParseError("Empty or repeated parameter")
        else:
            own[name] = value or ""
    return own, tuple(others)


def _rport(own: dict[str, str]) -> Literal[""] | int | None:
    if "rport" not in own:
        return None
    value = own["rport"]
    if not value:
        return ""
    port = parse_number(value, 5)
    if not port or port > 65535:
        raise ParseError("Parameter rport out of range")
    return port


_parse_via_cached = lru_cache(maxsize=4096)(_parse_via)
_parse_name_addr_cached = lru_cache(maxsize=4096)(_parse_name_addr)
