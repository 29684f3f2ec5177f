"""Types and parsers of setting values; a parser raises `ValueError` that names the accepted form."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from callcontrol.secrets.aio import parse_key
from media.audio import ToneError, ringing_tone
from sip.auth.digest import ALGORITHMS

__all__ = [
    "CONTROLS_AND_BREAKS",
    "Choice",
    "HostPort",
    "IpNetwork",
    "ListenAddress",
    "Number",
    "PortRange",
    "WholeNumber",
    "is_loopback",
    "parse_accounts",
    "parse_advertise",
    "parse_advertises",
    "parse_bool",
    "parse_countries",
    "parse_database_url",
    "parse_digest_algorithms",
    "parse_gateway",
    "parse_hold_music",
    "parse_host_port",
    "parse_ip",
    "parse_listen",
    "parse_listens",
    "parse_name_servers",
    "parse_networks",
    "parse_node",
    "parse_origins",
    "parse_path",
    "parse_ports",
    "parse_realm",
    "parse_sip_proxy",
    "parse_tone_plan",
    "parse_url",
]

CONTROLS_AND_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters and breaks of lines, which no name has."""

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

TRANSPORTS = ("udp", "tcp", "tls")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
DRIVERS = ("sqlite+aiosqlite", "postgresql+asyncpg")
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*\.?")


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host (IP literal without brackets, or name) and a port; port 0 asks for any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_any(self) -> bool:
        """True for the any-address, 0.0.0.0 or ::."""
        return self.host in ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ListenAddress(HostPort):
    """Listening address of a SIP transport."""

    transport: str = "udp"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}:{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PortRange:
    """Ports from `first` to `last`, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def overlaps(self, other: PortRange) -> bool:
        """Return true if a port is in both ranges."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """Parser of whole numbers from `least` to `most`."""

    least: int
    most: int

    def __call__(self, text: str) -> int:
        """Read a whole number."""
        if re.fullmatch(r"[0-9]{1,12}", text.strip()) is None or not self.least <= int(text) <= self.most:
            raise ValueError(f"{text!r} is not a whole number from {self.least} to {self.most}")
        return int(text)


@dataclass(frozen=True, slots=True)
class Number:
    """Parser of decimal numbers from `least` to `most`."""

    least: float
    most: float

    def __call__(self, text: str) -> float:
        """Read a decimal number."""
        number = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text.strip())
        if number is None or not self.least <= float(text) <= self.most:
            raise ValueError(f"{text!r} is not a number from {self.least:g} to {self.most:g}")
        return float(text)


class Choice:
    """Parser of one word out of `words`."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def __call__(self, text: str) -> str:
        """Read a word."""
        word = text.strip().lower()
        if word not in self.words:
            raise ValueError(f"{text!r} is not one of {', '.join(self.words)}")
        return word


def parse_host_port(text: str) -> HostPort:
    """Read ``host:port`` or ``[v6]:port``."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed:
        host = host[1:-1]
    if not colon or not host or (":" in host and not bracketed):
        raise ValueError(f"{text!r} is not HOST:PORT, for example 127.0.0.1:8080 or [::1]:8080")
    _check_host(host)
    return HostPort(host, _port(port))


def parse_listen(text: str) -> ListenAddress:
    """Read ``transport:host:port``."""
    transport, colon, rest = text.strip().partition(":")
    if not colon or transport.lower() not in TRANSPORTS:
        raise ValueError(f"{text.strip()!r} is not TRANSPORT:HOST:PORT, for example udp:127.0.0.1:5060")
    address = parse_host_port(rest)
    return ListenAddress(address.host, address.port, transport.lower())


def parse_gateway(text: str) -> ListenAddress:
    """
    Read ``transport:host[:port]`` of a peer, whose transport may be ``tls/srtp`` or ``auto`` as well.

    Without a port, an IP address gets the default of its transport and a name gets 0, a DNS lookup.
    """
    transport, colon, rest = text.strip().partition(":")
    transport = transport.lower()
    if not colon or transport not in (*TRANSPORTS, "tls/srtp", "auto"):
        example = "udp:192.0.2.1:5060, tls:sip.example.com or auto:example.com"
        raise ValueError(f"{text.strip()!r} is not TRANSPORT:HOST[:PORT], for example {example}")
    bare = rest.endswith("]") if rest.startswith("[") else ":" not in rest
    address = parse_host_port(f"{rest}:0" if bare else rest)
    if not bare and address.port == 0:
        raise ValueError(f"{text.strip()!r}: leave the port out to have it looked up")
    if bare and _is_address(address.host):
        address = HostPort(address.host, 5061 if transport.startswith("tls") else 5060)
    return ListenAddress(address.host, address.port, transport)


def is_loopback(host: str) -> bool:
    """Return True for a loopback address, and for the name localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def parse_listens(text: str) -> tuple[ListenAddress, ...]:
    """Read a comma-separated list of listening addresses without duplicates."""
    listens = tuple(parse_listen(part) for part in text.split(",") if part.strip())
    if not listens:
        raise ValueError("names no address, for example udp:127.0.0.1:5060")
    fixed = [listen for listen in listens if listen.port]
    if len(set(fixed)) != len(fixed):
        raise ValueError("names the same address twice")
    return listens


def parse_hep_target(text: str) -> HostPort:
    """Read ``udp:host:port``, the only transport for copies of SIP messages."""
    transport, _, rest = text.strip().partition(":")
    if transport.lower() != "udp":
        raise ValueError(f"{text.strip()!r} is not udp:HOST:PORT, for example udp:192.0.2.10:9060")
    return parse_host_port(rest)


def parse_ip(text: str) -> str:
    """Read an IP address without port."""
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        raise ValueError(f"{text!r} is not an IP address") from None


def parse_advertise(text: str) -> str:
    """Read the advertised address: an IP address that is not the any-address."""
    address = parse_ip(text)
    if ipaddress.ip_address(address).is_unspecified:
        raise ValueError(f"{text!r} reaches nobody; name the public address")
    return address


def parse_advertises(text: str) -> tuple[str, ...]:
    """Read the advertised addresses: an IPv4 address, an IPv6 address, or one of each."""
    addresses = tuple(parse_advertise(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise ValueError("names no address, for example 203.0.113.5")
    if len({":" in address for address in addresses}) != len(addresses):
        raise ValueError(f"{text!r} names more than one address of a kind")
    return addresses


def parse_ports(text: str) -> PortRange:
    """Read ``first-last``; RTP uses an even port and the odd one above it."""
    match = re.fullmatch(r"([0-9]{1,5})\s*-\s*([0-9]{1,5})", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not FIRST-LAST, for example 20000-29999")
    first, last = int(match[1]), int(match[2])
    if not 1024 <= first <= last <= 65535:
        raise ValueError(f"{text!r} must lie within 1024-65535 and go upwards")
    if last - first < 3:
        raise ValueError(f"{text!r} is too small; one bridged call takes four ports")
    return PortRange(first, last)


def parse_name_servers(text: str) -> tuple[HostPort, ...]:
    """Read a comma-separated list of IP addresses, each with optional port (53); empty for empty text."""
    servers = []
    for part in text.split(","):
        item = part.strip()
        if item:
            plain = item.count(":") != 1 and "]:" not in item
            address = HostPort(item.strip("[]"), 53) if plain else parse_host_port(item)
            servers.append(HostPort(parse_ip(address.host), address.port or 53))
    return tuple(servers)


def parse_bool(text: str) -> bool:
    """Read a boolean: ``1``, ``0`` or a word for it."""
    word = text.strip().lower()
    if word not in (*_TRUE, *_FALSE):
        raise ValueError(f"{text!r} is neither 1 nor 0")
    return word in _TRUE


def parse_digest_algorithms(text: str) -> tuple[str, ...]:
    """Read comma-separated names of digest algorithms, each once."""
    names = [name.strip().upper() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names) or not set(names) <= set(ALGORITHMS):
        raise ValueError(f"{text!r} is not some of {', '.join(ALGORITHMS)}")
    return tuple(names)


def parse_word(text: str) -> str:
    """Read visible ASCII without spaces, as a header field takes it; errors do not repeat it."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be visible ASCII characters without spaces")
    return text


def parse_realm(text: str) -> str:
    """Read the realm of digest authentication."""
    realm = text.strip()
    if (
        not realm
        or len(realm) > 64
        or not realm.isascii()
        or not realm.isprintable()
        or set(realm) & set('"\\')
    ):
        raise ValueError(f"{text!r} is not 1 to 64 printable ASCII characters without quotes or backslashes")
    return realm


def parse_node(text: str) -> str:
    """Read the node: the name of a server among those that share a database."""
    node = text.strip()
    if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", node) is None:
        raise ValueError(f"{text!r} is not 1 to 64 letters, digits, dots, dashes and underscores")
    return node


def parse_node_sip(text: str) -> HostPort:
    """Read the address at which other nodes reach this one: an IP address that is not any, and a port."""
    address = parse_host_port(text.strip())
    if not _is_address(address.host) or address.is_any:
        raise ValueError(f"{text!r} is not an IP address of this machine and a port, such as 10.0.0.11:0")
    return address


def parse_networks(text: str) -> tuple[IpNetwork, ...]:
    """Read comma-separated CIDRs; a bare address is a network of one."""
    networks: list[IpNetwork] = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        try:
            networks.append(ipaddress.ip_network(part))
        except ValueError as error:
            raise ValueError(f"{part!r} is not a CIDR such as 127.0.0.0/8: {error}") from None
    return tuple(networks)


def parse_sip_proxy(text: str) -> str:
    """Read a SIP proxy: host, host:port or a sip: address."""
    # Commands that set no proxy start without what trunks need.
    from callcontrol.trunks.outbound_invite import read_proxy
    from sip import InvalidValue

    try:
        read_proxy(text.strip())
    except InvalidValue:
        raise ValueError(f"{text!r} is not a host, host:port, or a sip: address") from None
    return text.strip()


def parse_countries(text: str) -> frozenset[str]:
    """Read comma-separated ISO 3166 two-letter codes."""
    codes = [part.strip().upper() for part in text.split(",") if part.strip()]
    for code in codes:
        if re.fullmatch(r"[A-Z]{2}", code) is None:
            raise ValueError(f"{code!r} is not a two-letter country code such as IN")
    return frozenset(codes)


def parse_accounts(text: str) -> frozenset[str]:
    """Read account_sids, which are UUIDs, separated by commas."""
    found = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    for sid in found:
        try:
            UUID(sid)
        except ValueError:
            raise ValueError(f"{sid!r} is no account_sid") from None
    return found


def parse_path(text: str) -> Path:
    """Read a path; ``~`` is the home directory."""
    if "\0" in text:
        raise ValueError("is not a path")
    return Path(text).expanduser()


def parse_hold_music(text: str) -> str:
    """Read ``tones``, ``none`` or the path of an existing file."""
    word = text.strip().lower()
    if word in ("tones", "none"):
        return word
    path = parse_path(text)
    if not path.is_file():
        raise ValueError(f"{text!r} is neither tones nor none nor a file")
    return str(path)


def parse_tone_plan(text: str) -> str:
    """Read the name of a tone plan, or the definition of a ringing tone."""
    try:
        ringing_tone(text)
    except ToneError as error:
        raise ValueError(f"is neither a tone plan nor a tone: {error}") from None
    return text.strip().lower()


def parse_url(text: str) -> str:
    """Read an http or https address without query, and drop a slash at its end."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is not an address such as https://voice.example.com")
    return text.rstrip("/")


def parse_stream_url(text: str) -> str:
    """Read a ws or wss address, with a query or without."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("ws", "wss") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.fragment or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f"{text!r} is not an address such as wss://voice.example.com/v1/listen")
    return text


def parse_origins(text: str) -> tuple[str, ...]:
    """Read comma-separated origins of web pages as browsers send them, or ``*``."""
    origins = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    for origin in origins:
        if origin != "*" and (parse_url(origin) != origin or origin.count("/") != 2 or "@" in origin):
            raise ValueError(f"{origin!r} is neither an origin such as https://console.example.com nor *")
    return origins


def parse_database_url(text: str) -> str:
    """Read a SQLAlchemy URL of a supported driver; errors never repeat it, for it may hold a password."""
    driver, colon, rest = text.partition("://")
    if not colon or driver not in DRIVERS or not rest:
        raise ValueError("is not sqlite+aiosqlite:///PATH or postgresql+asyncpg://USER@HOST/NAME")
    return text


def parse_secret_keys(text: str) -> tuple[bytes, ...]:
    """Read comma-separated encryption keys, the one in use first; errors never repeat a key."""
    keys = []
    for place, word in enumerate(text.split(","), 1):
        try:
            keys.append(parse_key(word))
        except ValueError as error:
            raise ValueError(f"key {place} {error}") from None
    return tuple(keys)


def _check_host(host: str) -> None:
    if not _is_address(host) and (_HOST_NAME.fullmatch(host) is None or len(host) > 253):
        raise ValueError(f"{host!r} is neither an IP address nor a host name")


def _port(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,5}", text) is None or int(text) > 65535:
        raise ValueError(f"{text!r} is not a port from 0 to 65535")
    return int(text)
