"""Authentication of requests by the API key of the Authorization header."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence

from callcontrol.accounts.aio.keys import KeyService
from callcontrol.accounts.keys import PREFIXES, opens
from callcontrol.errors import Forbidden, Unauthorized
from callcontrol.models import Principal, Service

__all__ = ["authenticate", "bearer_of", "bearer_of_basic", "check_service", "uuid_of_account"]

# Twilio's own libraries take no other user name.
_TWILIO_ACCOUNT = re.compile(
    r"AC([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})", re.IGNORECASE
)


async def authenticate(
    headers: Sequence[str],
    keys: KeyService,
    service: Service = "platform",
    *,
    plain: Sequence[str] = (),
    basic: bool = False,
) -> Principal:
    """
    Authenticate a request to a service by its Authorization headers.

    A key of the service ``all`` opens every service, and a request to ``all`` takes every key. ``plain`` are
    keys sent in a header of their own, without a scheme. A request may have both headers if they hold the
    same key. Refusals of a ``basic`` endpoint name that scheme too, which ``bearer_of_basic`` converts.

    Raises:
        Unauthorized: There is no key, more than one key, or it is malformed, unknown or revoked.
        Forbidden: The key belongs to another service.
    """
    header = "Authorization: Bearer KEY"
    if service == "messaging":
        header = f"X-API-Key: KEY or {header}"
    if basic:
        header = f"Authorization: Basic and account_sid:KEY in Base64, or {header}"
    form = f"{header}, where KEY begins with {' or '.join(_prefixes_for(service))}."
    if not headers and not plain:
        raise Unauthorized(f"Send the API key: {form}")
    found = {_key_of(line) for line in headers} | {key.strip() for key in plain}
    key = found.pop()
    if found or key is None or len(headers) > 1 or len(plain) > 1:
        raise Unauthorized(f"Send exactly one key, in a header of the form {form}")
    if not key.startswith(tuple(PREFIXES.values())):
        raise Unauthorized(f"This is no API key; send {form}")
    principal = await keys.authenticate(key)
    check_service(principal, service)
    return principal


def check_service(principal: Principal, service: Service) -> None:
    """
    Check that a key opens a service.

    Raises:
        Forbidden: It belongs to another service.
    """
    if not opens(principal.service, service):
        raise Forbidden(f"This key is for the service {principal.service}; use one of the service {service}.")


def bearer_of(header: str) -> str:
    """Return the text of an Authorization header of the scheme Bearer; empty for another scheme."""
    return _key_of(header) or ""


def _key_of(header: str) -> str | None:
    """Key of an Authorization header; None if its scheme is not Bearer."""
    scheme, _, key = header.strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _prefixes_for(service: Service) -> Iterable[str]:
    """Prefixes of the keys that open a service."""
    return [prefix for of, prefix in PREFIXES.items() if opens(of, service)]


def bearer_of_basic(headers: Sequence[str], account_sid: str) -> Sequence[str]:
    """
    Convert Basic credentials of account and key (RFC 7617) to Bearer.

    Headers of another scheme are returned unchanged.

    Raises:
        Unauthorized: They are not ``account_sid:key`` in Base64, or the account is not that of the path.
    """
    return [_bearer(header, account_sid) for header in headers]


def uuid_of_account(name: str) -> str:
    """UUID of an account in Twilio's form, ``AC`` and 32 digits; any other text in lower case."""
    found = _TWILIO_ACCOUNT.fullmatch(name)
    return "-".join(found.groups()).lower() if found else name.lower()


def _bearer(header: str, account_sid: str) -> str:
    scheme, _, credentials = header.strip().partition(" ")
    if scheme.lower() != "basic":
        return header
    try:
        user, _, key = base64.b64decode(credentials.strip(), validate=True).decode("ascii").partition(":")
    except ValueError:
        raise Unauthorized("Send account_sid:key in Base64: Authorization: Basic ...") from None
    if uuid_of_account(user) != uuid_of_account(account_sid):
        raise Unauthorized("The user name must be the account_sid of the path, and the password its API key.")
    return f"Bearer {key}"
