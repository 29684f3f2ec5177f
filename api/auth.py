"""Who makes a request: the API key of the Authorization header."""

from __future__ import annotations

import re
from collections.abc import Sequence

from api.services import Keys
from callcontrol.accounts import PREFIXES
from callcontrol.errors import Forbidden, Unauthorized
from callcontrol.models import Principal, Service

__all__ = ["authenticate"]

_KEY = re.compile(r"[A-Za-z0-9_-]{16,128}")


async def authenticate(headers: Sequence[str], keys: Keys, service: Service = "platform") -> Principal:
    """
    Authenticate a request to a service by its Authorization headers.

    Raises:
        Unauthorized: There is no key, more than one, or it is malformed, unknown or revoked.
        Forbidden: The key is of another service.
    """
    prefix = PREFIXES[service]
    if not headers:
        raise Unauthorized(f"Send the API key: Authorization: Bearer {prefix}...")
    scheme, _, key = headers[0].strip().partition(" ")
    if len(headers) > 1 or scheme.lower() != "bearer":
        raise Unauthorized(f"Send exactly one header of the form Authorization: Bearer {prefix}...")
    key = key.strip()
    if not key.startswith(tuple(PREFIXES.values())) or _KEY.fullmatch(key) is None:
        raise Unauthorized(f"The API key is malformed; {service} keys begin with {prefix}.")
    principal = await keys.authenticate(key)
    if principal.service != service:
        raise Forbidden(f"This key is for the service {principal.service}; use one of the service {service}.")
    return principal
