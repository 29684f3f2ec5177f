"""
SIP, SIPS and tel URIs.

Source: RFC 3261 19.1, RFC 3966.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from functools import lru_cache
from typing import Any

from sip.errors import InvalidValue, ParseError
from sip.message.encoding import to_bytes
from sip.message.grammar import Params, check_params, find_param, parse_params
from sip.message.native import wire
from sip.values import frozen

CACHED_URI_CHARS = 256
"""Longest cached URI, which bounds the memory a peer can occupy in the cache."""

_SIP = re.compile(
    r"(?:([^@:]+)(?::([^@]*))?@)?"  # user, password
    r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"  # host
    r"(?::([0-9]{1,5}))?"  # port
    r"(;[^?@]*)?"  # parameters; with an at sign in them the host would be ambiguous
    r"(?:\?([^@]*))?"  # header fields
)
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")
_TEL = re.compile(r"([0-9A-Fa-f*#+().-]+)(;.*)?")
_USER = re.compile(r"(?:[A-Za-z0-9_.!~*'()&=+$,;?/-]|%[0-9A-F]{2})+")
_PASSWORD = re.compile(r"(?:[A-Za-z0-9_.!~*'()&=+$,-]|%[0-9A-Fa-f]{2})*")
_PARAM_VALUE = re.compile(r'[^\x00-\x20\x7f;,"<>?@]*')
_HEADERS = re.compile(r"(?:[A-Za-z0-9_.!~*'()\[\]/?:+$=&-]|%[0-9A-Fa-f]{2})*")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
# Characters that phone systems leave unescaped in a user part, above all '#'.
_UNESCAPED = re.compile(r"[#\\\[\]^`{|}]|[^\x00-\x7f]")
_SEPARATORS = str.maketrans("", "", "-.()")


def is_host(text: str) -> bool:
    """
    Return True for a host name, or an IP address without brackets.

    Underscores are allowed: they are common in the names of private exchanges.
    """
    if ":" not in text:
        return _HOST_NAME.fullmatch(text) is not None
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text  # A zone has no meaning on another machine.


@frozen
class SipUri(wire.UriText):
    """
    A ``sip``, ``sips`` or ``tel`` URI.

    ``user`` is in canonical escaped form: unneeded escapes are undone (``%2B``
    is ``+``), needed ones stay, in capitals. Equal users therefore compare
    equal, and no control character can hide in one. ``host`` is in lower case
    and has no brackets around an IPv6 address. A ``tel`` URI has its number in
    ``user`` and the host "". Parameter names are in lower case. ``headers`` is
    the text after the question mark.

    Raises:
        InvalidValue: A part would not parse back as that part.
    """

    scheme: str
    user: str | None = None
    password: str | None = dataclasses.field(default=None, repr=False)
    host: str = ""
    port: int | None = None
    params: Params = ()
    headers: str | None = None

    def __post_init__(self) -> None:
        if self.scheme in ("sip", "sips"):
            if not is_host(self.host) or (self.user is not None and not _USER.fullmatch(self.user)):
                raise InvalidValue("Malformed user or host of a URI")
        elif self.scheme != "tel":
            raise InvalidValue("Unsupported URI scheme")
        elif self.user is None or not _TEL.fullmatch(self.user) or self.host:
            raise InvalidValue("A tel URI needs a number and no host")
        self._check_rest()

    def _check_rest(self) -> None:
        if self.port is not None and not 0 < self.port <= 65535:
            raise InvalidValue("Port of a URI out of range")
        if self.password is not None and not _PASSWORD.fullmatch(self.password):
            raise InvalidValue("Malformed password of a URI")
        if self.headers is not None and not _HEADERS.fullmatch(self.headers):
            raise InvalidValue("Malformed header fields of a URI")
        if self.params:
            check_params(self.params)
            if not all(value is None or _PARAM_VALUE.fullmatch(value) for _, value in self.params):
                raise InvalidValue("Malformed parameter of a URI")

    @classmethod
    def parse(cls, text: str) -> SipUri:
        """
        Parse a URI without angle brackets.

        Raises:
            ParseError: It is malformed, or has another scheme (status 416).
        """
        if len(text) <= CACHED_URI_CHARS:
            return _parse_cached(text)
        return _parse(text)

    def param(self, name: str) -> str | None:
        """Return the value of a parameter; "" without a value, None when absent."""
        return find_param(self.params, name.lower()) if self.params else None

    def with_(self, **changes: Any) -> SipUri:
        """Return a copy with changed fields."""
        return dataclasses.replace(self, **changes)

    @property
    def transport(self) -> str | None:
        """The ``transport`` parameter in lower case, None when absent."""
        transport = self.param("transport")
        return transport.lower() if transport else None

    @property
    def number(self) -> str | None:
        """
        The user part as a telephone number, without parameters and visual separators.

        A user that is no number is returned without its parameters; None without a user.

        Source: RFC 3966 3, RFC 3261 19.1.6.
        """
        if self.user is None:
            return None
        number = self.user.partition(";")[0]
        bare = number.translate(_SEPARATORS)
        return bare if bare.lstrip("+").isdecimal() else number


def _parse(text: str) -> SipUri:
    scheme, _, rest = text.partition(":")
    scheme = scheme.lower()
    try:
        if scheme == "tel":
            return _parse_tel(rest)
        if scheme in ("sip", "sips"):
            return _parse_sip(scheme, rest)
    except InvalidValue as error:
        raise ParseError(str(error), len(scheme) + 1) from None
    raise ParseError("Unsupported URI scheme", 0, status=416)


def _parse_sip(scheme: str, text: str) -> SipUri:
    match = _SIP.fullmatch(text)
    if match is None:
        raise ParseError("Malformed URI", len(scheme) + 1)
    user, password, host, port, params, headers = match.groups()
    return SipUri(
        scheme,
        None if user is None else _canonical_user(user),
        password,
        host.strip("[]").lower(),
        None if port is None else int(port),
        parse_params(params or ""),
        headers,
    )


def _parse_tel(text: str) -> SipUri:
    match = _TEL.fullmatch(text)
    if match is None:
        raise ParseError("Malformed telephone number", 4)
    return SipUri("tel", user=match[1], params=parse_params(match[2] or ""))


_parse_cached = lru_cache(maxsize=4096)(_parse)


def _canonical_user(user: str) -> str:
    if "%" not in user and _USER.fullmatch(user):
        return user
    if _BAD_ESCAPE.search(user):
        # Left in place, "%4" before an undone "%41" would become the escape "%4A".
        raise InvalidValue("Malformed escape in a URI")
    user = _ESCAPE.sub(_undo_escape, user)
    try:
        return _UNESCAPED.sub(_escape, user)
    except UnicodeEncodeError:
        raise InvalidValue("Malformed character in a URI") from None


def _undo_escape(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if _USER.fullmatch(char) else match[0].upper()


def _escape(match: re.Match[str]) -> str:
    return "".join([f"%{byte:02X}" for byte in to_bytes(match[0])])
