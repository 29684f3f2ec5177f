"""Validation of carriers and gateways."""

import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from callcontrol.directory.directory import plain_address
from callcontrol.e164 import read_number
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.models import Carrier, Gateway, Protocol
from callcontrol.trunks.outbound_invite import proxy_of
from media.capabilities import CODECS
from sip import InvalidValue

PROTOCOLS: Final = get_args(Protocol)
REGISTER_TRANSPORTS: Final = ("udp", "tcp", "tls")
MIN_SESSION_EXPIRES_S: Final = 90
MAX_REGISTRARS: Final = 8
MAX_FORWARDED_HEADERS: Final = 32
TLS_PORT: Final = 5061
AUTO_NEEDS_NO_PORT: Final = "auto needs the port null: both are looked up together"

_MAX_TEXT_CHARACTERS: Final = 255
_HOST_NAME: Final = re.compile(
    r"(?=.{1,253}\Z)(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?", re.ASCII
)
_TYPE_NAMES: Final = {str: "text", int: "a whole number", bool: "true or false", tuple: "a list of texts"}
_X_HEADER: Final = re.compile(r"[Xx]-[A-Za-z0-9-]{1,64}", re.ASCII)
_REGISTRAR: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?", re.ASCII)
_PREFIX: Final = re.compile(r"\+[1-9][0-9]{0,14}", re.ASCII)
_NOT_BUILT: Final = "the media engine of this server was built without it"
_CHOICES: Final = {
    name: get_args(hint) for name, hint in get_type_hints(Carrier).items() if get_origin(hint) is Literal
}


def typed(kind: type[Carrier] | type[Gateway], values: Mapping[str, Any]) -> dict[str, Any]:
    """
    Convert values to the types of a carrier's or gateway's fields: lists to tuples, integers to text.

    Raises:
        ValidationFailed: With every field whose value has the wrong type.
    """
    made: dict[str, Any] = {}
    errors: list[FieldError] = []
    for name, value in values.items():
        expected = _TYPES[kind.__name__][name]
        if isinstance(value, list) and tuple in expected:
            value = tuple(value)
        elif type(value) is int and int not in expected and str in expected:
            value = str(value)
        if type(value) not in expected or (
            isinstance(value, tuple) and not all(isinstance(item, str) for item in value)
        ):
            errors.append(FieldError(name, f"must be {_TYPE_NAMES[expected[0]]}"))
        made[name] = value
    if errors:
        raise ValidationFailed(errors)
    return made


def _plain_types(hint: Any) -> tuple[type, ...]:
    origin = get_origin(hint)
    if origin is Literal:
        return (str,)
    if origin in (Union, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _plain_types(part))
    return (origin or hint,)


# Types that each field may have; error messages name the first.
_TYPES: Final[Mapping[str, Mapping[str, tuple[type, ...]]]] = {
    kind.__name__: {name: _plain_types(hint) for name, hint in get_type_hints(kind).items()}
    for kind in (Carrier, Gateway)
}


def check_media(carrier: Carrier, codecs: Collection[str], *, srtp: bool) -> None:
    """
    Reject a carrier that needs features missing from this build of the media engine.

    ``codecs`` are those of the engine; ``srtp`` is True if it supports SRTP.

    Raises:
        ValidationFailed: With every unsupported field.
    """
    errors: list[FieldError] = []
    missing = [codec for codec in carrier.codecs if codec not in codecs]
    if missing:
        errors.append(FieldError("codecs", f"{', '.join(missing)}: {_NOT_BUILT}"))
    if carrier.srtp != "off" and not srtp:
        errors.append(FieldError("srtp", _NOT_BUILT))
    if errors:
        raise ValidationFailed(errors)


def check_carrier(carrier: Carrier, changed: Collection[str] | None = None) -> None:
    """
    Reject a carrier with invalid fields.

    ``changed`` are the fields that a change gives: half of a credential that was there before stays.

    Raises:
        ValidationFailed: With every wrong field.
    """
    errors = _value_errors(carrier)
    errors += _trunk_type_errors(carrier) or _credential_errors(carrier, changed)
    if errors:
        raise ValidationFailed(errors)


def carrier_errors(values: Mapping[str, Any]) -> list[FieldError]:
    """Errors of the given fields of a carrier, each by itself."""
    now = datetime.min
    try:
        given = typed(Carrier, {"name": "-", **values})
    except ValidationFailed as refusal:
        return list(refusal.errors)
    carrier = Carrier(carrier_sid="", account_sid="", created_at=now, updated_at=now, **given)
    return [error for error in _value_errors(carrier) if error.field in values]


def _value_errors(carrier: Carrier) -> list[FieldError]:
    errors = _text_errors(carrier) + _list_errors(carrier) + _limit_errors(carrier) + _way_out_errors(carrier)
    if not carrier.name.strip():
        errors.append(FieldError("name", "must not be empty"))
    for name, choices in _CHOICES.items():
        if getattr(carrier, name) not in choices:
            errors.append(FieldError(name, f"must be one of {', '.join(choices)}"))
    if carrier.register_transport not in (None, *REGISTER_TRANSPORTS):
        errors.append(FieldError("register_transport", f"must be one of {', '.join(REGISTER_TRANSPORTS)}"))
    return errors


def _trunk_type_errors(carrier: Carrier) -> list[FieldError]:
    """Require the passwords of the type: ours to register; ours for its challenges, or its own for ours."""
    ours = carrier.register_username and carrier.register_password
    theirs = carrier.inbound_auth_username and carrier.inbound_auth_password
    if carrier.trunk_type == "reg" and not ours:
        return [FieldError("register_username", "is needed with register_password when trunk_type is reg")]
    if carrier.trunk_type == "auth" and not (ours or theirs):
        message = "is needed with register_password when trunk_type is auth, unless the carrier has"
        return [FieldError("register_username", f"{message} inbound_auth_username and inbound_auth_password")]
    return []


def _credential_errors(carrier: Carrier, changed: Collection[str] | None) -> list[FieldError]:
    """Require user names and passwords together: a challenge could never be answered with half of them."""
    pairs = (("register_username", "register_password"), ("inbound_auth_username", "inbound_auth_password"))
    return [
        FieldError(missing, f"is needed with {given}; change both at once")
        for pair in pairs
        if changed is None or not set(pair).isdisjoint(changed)
        for given, missing in (pair, pair[::-1])
        if getattr(carrier, given) and not getattr(carrier, missing)
    ]


def _way_out_errors(carrier: Carrier) -> list[FieldError]:
    errors: list[FieldError] = []
    try:
        proxy_of(carrier)
    except InvalidValue:
        message = "must be a host, host:port, or a sip: address such as sip:proxy.example;transport=tcp"
        errors.append(FieldError("outbound_proxy", message))
    try:
        if carrier.diversion:
            read_number(carrier.diversion)
    except ValueError as error:
        errors.append(FieldError("diversion", str(error)))
    domain = carrier.register_from_domain
    if domain and plain_address(domain) is None and not is_host_name(domain):
        errors.append(FieldError("register_from_domain", "must be a domain or an IP address"))
    return errors


def _limit_errors(carrier: Carrier) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("max_concurrent_calls", "max_cps"):
        if not _is_none_or_within(getattr(carrier, name), 1, 100_000):
            errors.append(FieldError(name, "must be 1 to 100000"))
    if not _is_none_or_within(carrier.session_expires_s, MIN_SESSION_EXPIRES_S, 86_400):
        errors.append(
            FieldError("session_expires_s", f"must be {MIN_SESSION_EXPIRES_S} to 86400, or null for none")
        )
    if not 60 <= carrier.register_expires_s <= 86_400:
        errors.append(FieldError("register_expires_s", "must be 60 to 86400"))
    return errors


def _list_errors(carrier: Carrier) -> list[FieldError]:
    errors: list[FieldError] = []
    codecs = carrier.codecs
    if not codecs or not set(codecs) <= set(CODECS) or len(set(codecs)) < len(codecs):
        errors.append(FieldError("codecs", f"must be some of {', '.join(CODECS)}, each once"))
    if len(carrier.registrars) > MAX_REGISTRARS or not all(map(_is_registrar, carrier.registrars)):
        message = f"must be at most {MAX_REGISTRARS} hosts, each with :port if need be"
        errors.append(FieldError("registrars", message))
    headers = carrier.forwarded_headers
    if len(headers) > MAX_FORWARDED_HEADERS or not all(_X_HEADER.fullmatch(name) for name in headers):
        message = f"must be at most {MAX_FORWARDED_HEADERS} names of X- header fields"
        errors.append(FieldError("forwarded_headers", message))
    if any(not _PREFIX.fullmatch(prefix) for prefix in carrier.prefixes):
        errors.append(FieldError("prefixes", "must be beginnings of numbers in E.164, such as +9180"))
    return errors


def _text_errors(carrier: Carrier) -> list[FieldError]:
    errors: list[FieldError] = []
    for item in fields(Carrier):
        value: Any = getattr(carrier, item.name)
        if not isinstance(value, str):
            continue
        if len(value) > _MAX_TEXT_CHARACTERS:
            errors.append(FieldError(item.name, f"must have at most {_MAX_TEXT_CHARACTERS} characters"))
        elif any(character < " " or character == "\x7f" for character in value):
            # These values go into SIP headers, where a line break would start another header field.
            errors.append(FieldError(item.name, "must not contain control characters"))
    return errors


def check_gateway(gateway: Gateway) -> None:
    """
    Reject a gateway with invalid fields.

    Raises:
        ValidationFailed: With every wrong field.
    """
    address = plain_address(gateway.host)
    errors = host_errors(gateway.host)
    errors += _way_errors(gateway, numbered=address is not None)
    errors += _netmask_errors(gateway, address)
    if not 0 <= gateway.priority <= 65535:
        errors.append(FieldError("priority", "must be 0 to 65535"))
    if not 0 <= gateway.weight <= 65535:
        errors.append(FieldError("weight", "must be 0 to 65535"))
    if errors:
        raise ValidationFailed(errors)


def host_errors(host: str) -> list[FieldError]:
    """The error of a gateway's host that is none, or that no carrier has."""
    address = plain_address(host)
    if address is None:
        return [] if is_host_name(host) else [FieldError("host", "must be an IP address or a host name")]
    if address.is_multicast or address.is_unspecified:
        return [FieldError("host", "must be the address of one host")]
    if address.is_link_local:
        # Instance metadata services use link-local addresses; carriers do not.
        return [FieldError("host", "must not be a link-local address")]
    return []


def address_of(gateway: Gateway) -> tuple[str, int, str]:
    """Host in one notation, port and protocol of a gateway: no two of a carrier may have the same."""
    address = plain_address(gateway.host)
    host = gateway.host.rstrip(".").lower() if address is None else str(address)
    return host, gateway.port, gateway.protocol


def _way_errors(gateway: Gateway, *, numbered: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not 0 <= gateway.port <= 65535:
        errors.append(FieldError("port", "must be 1 to 65535, or null to look it up"))
    elif gateway.port == 0 and numbered:
        errors.append(FieldError("port", "can be looked up for a host name only"))
    if gateway.protocol not in PROTOCOLS:
        errors.append(FieldError("protocol", f"must be one of {', '.join(PROTOCOLS)}"))
    elif gateway.protocol == "auto" and gateway.port != 0:
        errors.append(FieldError("protocol", AUTO_NEEDS_NO_PORT))
    for name in ("max_concurrent_calls", "max_cps"):
        if not _is_none_or_within(getattr(gateway, name), 1, 100_000):
            errors.append(FieldError(name, "must be 1 to 100000"))
    return errors


def _netmask_errors(gateway: Gateway, address: IPv4Address | IPv6Address | None) -> list[FieldError]:
    longest = 32 if address is None else address.max_prefixlen
    if not 8 <= gateway.netmask <= longest:
        return [FieldError("netmask", f"must be 8 to {longest}")]
    if gateway.netmask in (32, longest):
        return []
    if address is None:
        return [FieldError("netmask", "must be 32 unless host is an IP address")]
    if gateway.outbound:
        message = f"must be {longest} for an outbound gateway: calls are sent to one host"
        return [FieldError("netmask", message)]
    return []


def _is_registrar(text: str) -> bool:
    match = _REGISTRAR.fullmatch(text)
    if match is None or not 0 < int(match[2] or 5060) <= 65535:
        return False
    return plain_address(match[1]) is not None or is_host_name(match[1])


def is_host_name(text: str) -> bool:
    """Return True for a host name; a last label of digits or 0x is a malformed address, not a name."""
    if _HOST_NAME.fullmatch(text) is None:
        return False
    last = text.rstrip(".").rpartition(".")[2]
    return not last.isdigit() and not last.lower().startswith("0x")


def _is_none_or_within(value: int | None, low: int, high: int) -> bool:
    return value is None or low <= value <= high
