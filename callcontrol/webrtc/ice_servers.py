"""
STUN and TURN servers for browsers, and their credentials.

The server itself needs none, as it has one known address. Browsers in networks that let no UDP out reach it
through a TURN server.
"""

import base64
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

MAX_ICE_SERVERS: Final = 20

_FORMS: Final = "stun:HOST:PORT, turn:HOST:PORT?transport=tcp or turns:USER:PASSWORD@HOST:PORT"
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]{1,253})(?::(?P<port>\d{1,5}))?")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_LOGIN = re.compile(r"[\x21-\x7e]{1,256}")


@dataclass(frozen=True, slots=True)
class IceServer:
    """Address of a server (RFC 7064, RFC 7065), and its long-lived credential if it has one."""

    url: str
    username: str | None = None
    credential: str | None = field(default=None, repr=False)

    @property
    def needs_secret(self) -> bool:
        """True for a TURN server without a credential of its own."""
        return self.url.startswith("turn") and self.credential is None


@dataclass(frozen=True, slots=True)
class OfferedIceServer:
    """Servers with one credential, as an ``RTCPeerConnection`` takes them; STUN servers have an empty one."""

    urls: list[str]
    username: str
    credential: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class IceServers:
    """Servers that pages are told, and the secret that they share with those that need one."""

    servers: Sequence[IceServer] = ()
    secret: str | None = field(default=None, repr=False)

    def offered(self, identity: str, expires_at_s: float) -> list[OfferedIceServer]:
        """
        Return the servers for a telephone; credentials made with the secret expire with its token.

        Source: draft-uberti-behave-turn-rest-00 2.2, as coturn and others read it.
        """
        groups: dict[tuple[str, str], list[str]] = {}
        for server in self.servers:
            login = (server.username or "", server.credential or "")
            if server.needs_secret and self.secret is not None:
                login = _timed(self.secret, identity, expires_at_s)
            groups.setdefault(login, []).append(server.url)
        return [OfferedIceServer(urls, *login) for login, urls in groups.items()]


def _timed(secret: str, identity: str, expires_at_s: float) -> tuple[str, str]:
    username = f"{int(expires_at_s)}:{identity}"
    digest = hmac.new(secret.encode(), username.encode(), hashlib.sha1).digest()
    return username, base64.b64encode(digest).decode()


def parse_ice_servers(text: str) -> tuple[IceServer, ...]:
    """Read comma-separated addresses; errors never repeat one, for it may hold a password."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if len(words) > MAX_ICE_SERVERS:
        raise ValueError(f"names more than {MAX_ICE_SERVERS} servers")
    servers = []
    for place, word in enumerate(words, 1):
        try:
            servers.append(_parse(word))
        except ValueError as error:
            raise ValueError(f"server {place} {error}") from None
    return tuple(servers)


def _parse(word: str) -> IceServer:
    scheme, _, rest = word.partition(":")
    scheme = scheme.lower()
    if scheme not in ("stun", "stuns", "turn", "turns") or rest.startswith("//"):
        raise ValueError(f"is not {_FORMS}")
    login, at, rest = rest.rpartition("@")
    address, question, query = rest.partition("?")
    if question and (not scheme.startswith("turn") or query not in ("transport=udp", "transport=tcp")):
        raise ValueError("has another query than ?transport=udp or ?transport=tcp of a TURN server")
    _check_address(address)
    url = f"{scheme}:{address}{question}{query}"
    if not at:
        return IceServer(url)
    if scheme.startswith("stun"):
        raise ValueError("is a STUN server, which takes no USER:PASSWORD@")
    username, colon, credential = login.partition(":")
    username, credential = unquote(username), unquote(credential)
    if not colon or _LOGIN.fullmatch(username) is None or _LOGIN.fullmatch(credential) is None:
        raise ValueError(
            "has no USER:PASSWORD before its @; each has 1 to 256 printable ASCII characters, with %XX for "
            ", : @ and %"
        )
    return IceServer(url, username, credential)


def _check_address(address: str) -> None:
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"] or 1) < 65_536:
        raise ValueError(f"has no HOST or HOST:PORT; it must be {_FORMS}")
    host = found["host"]
    try:
        if host.startswith("["):
            ipaddress.IPv6Address(host[1:-1])
        elif host.rpartition(".")[2].isdecimal():
            ipaddress.IPv4Address(host)
        elif not all(map(_LABEL.fullmatch, host.removesuffix(".").split("."))):
            raise ValueError
    except ValueError:
        raise ValueError("has a host that is neither a name nor an IP address") from None
