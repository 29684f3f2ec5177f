"""Who makes a request: the platform key of the Authorization header."""

from __future__ import annotations

import re
from collections.abc import Sequence

from api.services import Keys
from callcontrol.errors import Forbidden, Unauthorized
from callcontrol.models import Principal

__all__ = ["authenticate"]

_PLATFORM_KEY = re.compile(r"vp_[A-Za-z0-9_-]{16,128}")


async def authenticate(headers: Sequence[str], keys: Keys) -> Principal:
    """
    Authenticate a platform request by its Authorization headers.

    Raises:
        Unauthorized: There is no key, more than one, or it is malformed, unknown or revoked.
        Forbidden: The key is of another service.
    """
    if not headers:
        raise Unauthorized("Send the API key: Authorization: Bearer vp_...")
    scheme, _, key = headers[0].strip().partition(" ")
    if len(headers) > 1 or scheme.lower() != "bearer":
        raise Unauthorized("Send exactly one header of the form Authorization: Bearer vp_...")
    key = key.strip()
    if _PLATFORM_KEY.fullmatch(key) is None:
        raise Unauthorized("The API key is malformed; platform keys begin with vp_.")
    principal = await keys.authenticate(key)
    if principal.service != "platform":
        raise Forbidden(f"This key is for the service {principal.service}; use a platform key.")
    return principal
