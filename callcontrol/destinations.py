"""
Which addresses this server may connect to on a customer's behalf.

Webhooks and agent streams go to URLs that customers chose. Without a guard such a URL reaches whatever this
host reaches: its own database, its neighbours, the cloud's metadata service. What is judged here is always
an address, never a name: the shell resolves once, has every address judged, and connects to those.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from callcontrol.errors import DestinationForbidden, ValidationFailed

__all__ = ["check_url", "embedded_ipv4", "judge", "literal_address"]

Address = IPv4Address | IPv6Address

MAX_URL_CHARS: Final = 2048

_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_IPV4_COMPATIBLE: Final = IPv6Network("::/96")
_SECURE_SCHEMES: Final = frozenset({"https", "wss"})


def judge(address: Address, *, allow_private: bool) -> str | None:
    """
    Why an address must not be connected to, None when it may be.

    Link-local addresses, where metadata services live, multicast, broadcast and the unspecified address are
    refused always; loopback, private and reserved ones unless ``allow_private``. An IPv6 address that
    carries an IPv4 one (mapped, compatible, NAT64, 6to4, Teredo) is judged as both.
    """
    inner = embedded_ipv4(address) if isinstance(address, IPv6Address) else None
    if inner is not None:
        return judge(inner, allow_private=allow_private)
    if address.is_link_local:
        return "is a link-local address"
    if address.is_unspecified or address.is_multicast or address == IPv4Address("255.255.255.255"):
        return "is no address of a single host"
    if allow_private:
        return None
    if address.is_loopback:
        return "is a loopback address"
    # is_global is false for all that the registries of special-purpose addresses keep from the internet.
    if (
        not address.is_global
        or address.is_reserved
        or (isinstance(address, IPv6Address) and address.is_site_local)
    ):
        return "is a private or reserved address"
    return None


def embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    """
    The IPv4 address that an IPv6 one stands for, None when it stands for itself.

    Source: RFC 4291 2.5.5, RFC 6052, RFC 3056, RFC 4380.
    """
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _NAT64):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    # ::1 and :: are themselves.
    if address in _IPV4_COMPATIBLE and int(address) > 0xFFFF:
        return IPv4Address(int(address))
    return None


def literal_address(host: str) -> Address | None:
    """
    The address that a host is written as, None when it is a name.

    Understands what resolvers of the operating system do: decimal, octal and hexadecimal numbers, and fewer
    than four parts, so that ``0x7f.1`` is 127.0.0.1 here as it is there.
    """
    host = host.strip("[]").rstrip(".").partition("%")[0]
    try:
        return ip_address(host)
    except ValueError:
        return _numeric_ipv4(host)


def _numeric_ipv4(host: str) -> IPv4Address | None:
    parts = host.split(".")
    if not 1 <= len(parts) <= 4:
        return None
    numbers = [_number(part) for part in parts]
    *heads, tail = numbers
    if tail is None or any(number is None or number > 255 for number in heads):
        return None
    room = 4 - len(heads)
    if tail >= 1 << (8 * room):
        return None
    value = tail
    for index, number in enumerate(heads):
        assert number is not None
        value |= number << (8 * (3 - index))
    return IPv4Address(value)


def _number(text: str) -> int | None:
    lowered = text.lower()
    if not lowered.isascii() or not lowered.isalnum() or len(lowered) > 14:
        return None
    base = 16 if lowered.startswith("0x") else 8 if lowered.startswith("0") and len(lowered) > 1 else 10
    try:
        return int(lowered.removeprefix("0x") or "0", base)
    except ValueError:
        return None


def check_url(url: str, *, schemes: Sequence[str], allow_private: bool, field: str = "url") -> SplitResult:
    """
    Refuse a URL that can be seen to be wrong without resolving its host.

    Args:
        url: What the customer gave.
        schemes: The schemes that fit; plain ones of them are taken only with ``allow_private``.
        allow_private: Whether this server may connect to its own network.
        field: The name of the field, for the error.

    Raises:
        ValidationFailed: It is no absolute URL of these schemes, too long, or holds control characters.
        DestinationForbidden: It names an address that must not be connected to.
    """
    if len(url) > MAX_URL_CHARS:
        raise ValidationFailed.of(field, f"must be at most {MAX_URL_CHARS} characters long")
    if not url.isprintable() or " " in url:
        raise ValidationFailed.of(field, "must not hold spaces or control characters")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValidationFailed.of(field, "must be a URL") from None
    wanted = " or ".join(f"{scheme}://" for scheme in schemes)
    if parts.scheme not in schemes or not host:
        raise ValidationFailed.of(field, f"must be a URL that starts with {wanted}")
    if parts.scheme not in _SECURE_SCHEMES and not allow_private and parts.scheme == "http":
        raise ValidationFailed.of(field, "must be a URL that starts with https://")
    address = literal_address(host)
    if address is None and host.rstrip(".").lower().rpartition(".")[2] == "localhost":
        address = IPv4Address("127.0.0.1")
    reason = judge(address, allow_private=allow_private) if address is not None else None
    if reason is not None:
        raise DestinationForbidden(f"{field}: {host} {reason}; give a public address.")
    return parts
