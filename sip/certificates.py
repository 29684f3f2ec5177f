"""
SIP domains and hosts that a certificate identifies; no cryptography, no I/O.

Source: RFC 5922 7.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from sip.errors import ParseError
from sip.message.uri import SipUri


def names_of(certificate: Mapping[str, Any]) -> frozenset[str]:
    """
    Return the identities of a verified certificate in the form of `ssl`: hosts and addresses in lower case.

    The subject's common name counts only when no alternative name gives an identity. A SIP URI with a user
    part identifies the user and not the domain.

    Source: RFC 5922 7.1.
    """
    names: set[str] = set()
    for kind, value in certificate.get("subjectAltName", ()):
        name = _alternative(str(kind), str(value))
        if name:
            names.add(name)
    return frozenset(names or _common_names(certificate))


def _alternative(kind: str, value: str) -> str | None:
    if kind == "DNS":
        return value.lower().rstrip(".")
    if kind == "IP Address":
        return _address(value)
    if kind == "URI":
        try:
            uri = SipUri.parse(value)
        except ParseError:
            return None
        return uri.host if uri.scheme in ("sip", "sips") and uri.user is None else None
    return None


def _common_names(certificate: Mapping[str, Any]) -> Iterable[str]:
    for part in certificate.get("subject", ()):
        for field, value in part:
            if field == "commonName":
                text = str(value).lower().rstrip(".")
                yield _address(text) or text


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        return None


def proves(names: Iterable[str], host: str, *, wildcards: bool = False) -> bool:
    """
    Return True when a certificate with these names identifies a host.

    RFC 5922 7.2 forbids wildcards. With `wildcards`, which the certificates of some carriers need, the star
    matches exactly the left-most label.
    """
    wanted = _address(host) or host.lower().rstrip(".")
    if wanted in names:
        return True
    _, dot, parent = wanted.partition(".")
    if not wildcards or not dot or "." not in parent or _address(wanted) is not None:
        return False
    return f"*.{parent}" in names
