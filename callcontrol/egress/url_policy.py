"""
SSRF policy: addresses that this server may connect to on a customer's behalf.

Webhooks and agent streams go to URLs chosen by customers. Without a check, a URL could reach everything this
host can reach: its own database, its neighbours, the cloud's metadata service. The policy checks addresses,
not names: the I/O layer resolves once, checks every address, and connects to those.

The networks are listed here and not taken from ``ipaddress``, whose answers change between Python releases.
"""

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, urlsplit

from callcontrol.errors import DestinationForbidden, FieldError, ValidationFailed

Address = IPv4Address | IPv6Address

MAX_URL_CHARS: Final = 2048
WEB_SCHEMES: Final = ("http", "https")
"""Schemes of webhooks; plain ``http`` needs a server that may connect to its own network."""
STREAM_SCHEMES: Final = ("ws", "wss", "audiosocket")
"""Schemes of agents' streams."""
SOCKET_SCHEMES: Final = ("ws", "wss")
"""Schemes of WebSockets."""
HOOK_SCHEMES: Final = WEB_SCHEMES + SOCKET_SCHEMES
"""Schemes of applications for jambonz and of speech models, which may be reached over a WebSocket."""

_MAX_HOST_CHARS: Final = 253

_LINK_LOCAL: Final = (IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10"))

# Not addresses of a single host. All of 0.0.0.0/8 is here because Linux connects 0.0.0.0 to itself.
_NOBODY: Final = (
    IPv4Network("0.0.0.0/8"),
    IPv4Network("224.0.0.0/4"),
    IPv4Network("255.255.255.255/32"),
    IPv6Network("::/128"),
    IPv6Network("ff00::/8"),
)

# Metadata services outside the link-local networks: of Amazon, Google, Alibaba, Oracle and Azure.
_METADATA: Final = frozenset(
    {
        IPv6Address("fd00:ec2::254"),
        IPv6Address("fd20:ce::254"),
        IPv4Address("100.100.100.200"),
        IPv4Address("192.0.0.192"),
        IPv4Address("168.63.129.16"),
    }
)

# RFC 8215: the operator chooses the position of the IPv4 address, so it cannot be extracted.
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")

_LOOPBACK: Final = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))

# Source: IANA IPv4 Special-Purpose Address Registry (RFC 6890), RFC 7526 for 192.88.99.0/24.
_PRIVATE_IPV4: Final = tuple(
    IPv4Network(text)
    for text in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
    )
)

# Global unicast (RFC 4291 2.4), and its exceptions in the IANA IPv6 Special-Purpose Address Registry:
# protocol assignments with Teredo and ORCHID, documentation, 6to4, documentation again (RFC 9637).
_GLOBAL_IPV6: Final = IPv6Network("2000::/3")
_PRIVATE_IPV6: Final = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)

_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_TRANSLATED: Final = IPv6Network("::ffff:0:0:0/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_TEREDO: Final = IPv6Network("2001::/32")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})

_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_USERINFO: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:%-]*")

BAD_PORT: Final = "must name a port from 1 to 65535"
"""Error of a URL with another port."""

NO_HOST: Final = "must name a host"
"""Error of a URL without a host, or with what can be none."""

PRIVATE_SETTING: Final = "TRUNKLINE_ALLOW_PRIVATE_DESTINATIONS=1"
"""The setting with which a server connects to its own network."""

_LOOPBACK_REASON: Final = "is a loopback address"
_PRIVATE_REASON: Final = "is a private or reserved address"
_SELF_REASON: Final = "is this server itself"
_NEIGHBOUR_REASON: Final = "is a name of a private network"
# Reasons that do not apply with that setting.
_SETTLED: Final = frozenset({_LOOPBACK_REASON, _PRIVATE_REASON, _SELF_REASON, _NEIGHBOUR_REASON})

# Names that always mean this host or its neighbours (RFC 6761, 6762, 8375, 9476).
_LOCALHOST: Final = frozenset({"localhost", "ip6-localhost", "ip6-loopback", "loopback"})
_LOCAL_ZONES: Final = ("localdomain", "local", "internal", "home.arpa")


def forbidden_reason(address: Address, *, allow_private: bool) -> str | None:
    """
    Reason why connecting to an address is forbidden; None if it is permitted.

    Link-local addresses, metadata services of clouds, multicast, broadcast and the unspecified address are
    always forbidden; loopback, private and reserved ones unless ``allow_private``. An IPv6 address that
    embeds an IPv4 address is checked as both; an IPv4-mapped address and one of the well-known NAT64 prefix,
    by which an IPv6-only host reaches the IPv4 internet, as the IPv4 address alone.
    """
    if isinstance(address, IPv6Address):
        for inner in embedded_ipv4(address):
            reason = forbidden_reason(inner, allow_private=allow_private)
            if reason is not None:
                return reason
        if address in _MAPPED or address in _NAT64:
            return None
    reason = _never(address)
    if reason is not None or allow_private:
        return reason
    if _within(address, _LOOPBACK):
        return _LOOPBACK_REASON
    if _is_private(address):
        return _PRIVATE_REASON
    return None


def refused(host: str, reason: str) -> DestinationForbidden:
    """Return the refusal of a host; it names the setting that permits the host, if one does."""
    allowed = f" A server for development allows it with {PRIVATE_SETTING}." if reason in _SETTLED else ""
    return DestinationForbidden(f"{host} {reason}; give a public address.{allowed}")


def url_errors(check_url: "CheckUrl", field: str, url: str, *, schemes: tuple[str, ...]) -> list[FieldError]:
    """Errors of a URL in a field of a request; ``check_url`` is ``Destinations.check_url``."""
    try:
        check_url(url, schemes=schemes)
    except ValidationFailed as refusal:
        return [FieldError(field, error.message) for error in refusal.errors]
    except DestinationForbidden as refusal:
        return [FieldError(field, refusal.message)]
    return []


def syntax_errors(field: str, url: str, *, schemes: Sequence[str]) -> list[FieldError]:
    """Errors of a URL as such; whether this server may connect to its host is checked elsewhere."""
    try:
        check_url(url, schemes=schemes, allow_private=True, field=field)
    except ValidationFailed as refusal:
        return list(refusal.errors)
    except DestinationForbidden:
        pass
    return []


def wrong_scheme(schemes: Sequence[str]) -> str:
    """
    Error of a text that is no URL of these schemes.

    It is the same on all servers: the checks of a request's form do not know if this one takes plain http.
    """
    told = [f"{scheme}://" for scheme in sorted(schemes, key="https".__ne__) if scheme != "http"]
    listed = " or ".join(filter(None, (", ".join(told[:-1]), told[-1])))
    plain = f"; a server for development takes http:// with {PRIVATE_SETTING}" if "https" in schemes else ""
    return f"must be a URL that starts with {listed}{plain}"


def _never(address: Address) -> str | None:
    if _within(address, _LINK_LOCAL):
        return "is a link-local address"
    if address in _METADATA:
        return "is a metadata service"
    if _within(address, _NOBODY) or address in _LOCAL_NAT64:
        return "is no address of a single host"
    return None


def _within(address: Address, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)


def _is_private(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return _within(address, _PRIVATE_IPV4)
    return address not in _GLOBAL_IPV6 or _within(address, _PRIVATE_IPV6)


def embedded_ipv4(address: IPv6Address) -> list[IPv4Address]:
    """
    IPv4 addresses embedded in an IPv6 address, where packets to it may end; often none.

    Source: RFC 4291 2.5.5, RFC 6052, RFC 7915, RFC 3056, RFC 4380, RFC 5214.
    """
    return [IPv4Address(value & 0xFFFFFFFF) for value in _embedded(address)]


def _embedded(address: IPv6Address) -> Iterator[int]:
    value = int(address)
    if address in _MAPPED or address in _NAT64 or address in _TRANSLATED:
        yield value
    # ::1 and :: embed nothing.
    elif address in _COMPATIBLE and value > 1:
        yield value
    elif address in _SIX_TO_FOUR:
        yield value >> 80
    elif address in _TEREDO:
        yield value >> 64
        yield ~value
    if (value >> 32) & 0xFFFFFFFF in _ISATAP:
        yield value


def literal_address(host: str) -> Address | None:
    """
    Parse a host written as an address; None for a name.

    Accepts the spellings of system resolvers: decimal, octal and hexadecimal numbers, and fewer than four
    parts, e.g. ``0x7f.1`` for 127.0.0.1. A zone (``%eth0``) is ignored.
    """
    host = host.partition("%")[0].strip("[]").rstrip(".")
    try:
        return ip_address(host)
    except ValueError:
        return _numeric_ipv4(host)


def _numeric_ipv4(host: str) -> IPv4Address | None:
    parts = host.split(".")
    if not 1 <= len(parts) <= 4:
        return None
    numbers = [number for number in map(_number, parts) if number is not None]
    if len(numbers) < len(parts) or any(number > 255 for number in numbers[:-1]):
        return None
    room = 5 - len(parts)
    if numbers[-1] >= 1 << (8 * room):
        return None
    value = numbers[-1]
    for index, number in enumerate(numbers[:-1]):
        value |= number << (8 * (3 - index))
    return IPv4Address(value)


def _number(text: str) -> int | None:
    lowered = text.lower()
    if not lowered.isascii() or not lowered.isalnum():
        return None
    base = 16 if lowered.startswith("0x") else 8 if lowered.startswith("0") else 10
    digits = lowered.removeprefix("0x").lstrip("0") or "0"
    if len(digits) > 11:  # 32 bits in octal.
        return None
    try:
        return int(digits, base)
    except ValueError:
        return None


def check_url(url: str, *, schemes: Sequence[str], allow_private: bool, field: str = "url") -> SplitResult:
    """
    Reject a URL that is invalid or forbidden without resolving its host.

    The check is strict where URL parsers differ (backslashes, percent signs and non-ASCII characters in the
    authority), so that the client cannot parse another host than the one checked here. Plain ``http`` is
    accepted only with ``allow_private``.

    Args:
        url: URL given by the customer.
        schemes: Permitted schemes.
        allow_private: True if this server may connect to its own network.
        field: Name of the field, for the error.

    Raises:
        ValidationFailed: The URL is not an absolute URL of these schemes, too long, or malformed.
        DestinationForbidden: The URL names a forbidden address.
    """
    if len(url) > MAX_URL_CHARS:
        raise ValidationFailed.of(field, f"must be at most {MAX_URL_CHARS} characters long")
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValidationFailed.of(field, "must not hold spaces, backslashes or control characters")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValidationFailed.of(field, NO_HOST) from None
    host = parts.hostname
    if parts.scheme not in schemes or (parts.scheme == "http" and not allow_private):
        raise ValidationFailed.of(field, wrong_scheme(schemes))
    if not host:
        raise ValidationFailed.of(field, NO_HOST)
    if not has_valid_port(parts):
        raise ValidationFailed.of(field, BAD_PORT)
    if not parts.netloc.isascii():
        raise ValidationFailed.of(field, "must give the host in ASCII; write international names as xn--")
    if not _USERINFO.fullmatch(parts.netloc.rpartition("@")[0]):
        raise ValidationFailed.of(field, "must percent-encode special characters in the user and password")
    reason = _refuse_host(host, bracketed="[" in parts.netloc, allow_private=allow_private, field=field)
    if reason is not None:
        raise refused(host, reason)
    return parts


def has_valid_port(parts: SplitResult) -> bool:
    """Return True if a URL has no port, or one that can be connected to."""
    try:
        return parts.port != 0
    except ValueError:
        return False


def _refuse_host(host: str, *, bracketed: bool, allow_private: bool, field: str) -> str | None:
    """Reason why a host is forbidden, or None; raises if it is neither an address nor a valid name."""
    address = literal_address(host)
    reason = forbidden_reason(address, allow_private=allow_private) if address is not None else None
    if reason is not None or (address is not None and "%" not in host):
        return reason
    name = host.removesuffix(".")
    labels = name.split(".")
    if (
        bracketed
        or len(name) > _MAX_HOST_CHARS
        or not all(_LABEL.fullmatch(label) for label in labels)
        # Resolvers and URL parsers read this name as an address or reject it; none resolves it.
        or _NUMERIC.fullmatch(labels[-1])
    ):
        raise ValidationFailed.of(field, NO_HOST)
    if allow_private:
        return None
    if labels[-1] in _LOCALHOST:
        return _SELF_REASON
    if any(f".{name}".endswith(f".{zone}") for zone in _LOCAL_ZONES):
        return _NEIGHBOUR_REASON
    return None


class CheckUrl(Protocol):
    """Refuses URLs that must not be connected to; see ``Destinations.check_url``."""

    def __call__(self, url: str, *, schemes: tuple[str, ...]) -> object:
        """Raise ValidationFailed or DestinationForbidden."""


class Destinations(Protocol):
    """Rules for outgoing connections; see ``callcontrol.egress.aio.resolver``."""

    @property
    def allow_private(self) -> bool:
        """True if this server may connect to its own network, and by plain ``http``."""

    def check_url(self, url: str, *, schemes: tuple[str, ...]) -> object:
        """
        Check a URL without resolving its host.

        Raises:
            ValidationFailed: It is no URL of these schemes.
            DestinationForbidden: It names an address this server must not connect to.
        """

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        """
        Resolve a host once and return the socket addresses that may be connected to.

        Raises:
            DestinationForbidden: The host resolves, even in part, to a forbidden address.
            OSError: The host does not resolve.
        """
