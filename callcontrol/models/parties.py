"""Targets and parties of calls, and the gateways they are tried at."""

import re
from typing import Final

from callcontrol.models.trunks import Carrier, Gateway
from sip.values import frozen

DEFAULT_RING_TIMEOUT_S: Final = 60.0

IDENTITY: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
"""Name of a telephone in web pages; it begins with a letter, so it is no number."""


@frozen
class PhoneTarget:
    """Telephone number to dial, in E.164 with ``+``."""

    number: str

    def __str__(self) -> str:
        return self.number


@frozen
class SipTarget:
    """User at a host, which must be a gateway's; ``port`` is None if the address has none."""

    user: str
    host: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"sip:{self.user}@{host}" if self.port is None else f"sip:{self.user}@{host}:{self.port}"


@frozen
class BrowserTarget:
    """Telephone in the web pages of an account that are open, by its name (`IDENTITY`)."""

    identity: str

    def __str__(self) -> str:
        return f"browser:{self.identity}"


Target = PhoneTarget | SipTarget | BrowserTarget


@frozen
class RouteAttempt:
    """
    Route to a party: a gateway of a carrier, and the user part of the Request-URI there.

    An ``on_net`` route leads to this server itself.
    """

    carrier: Carrier
    gateway: Gateway
    user: str
    on_net: bool = False


@frozen
class Party:
    """
    A party to dial, and the caller identity to show.

    ``caller_id`` is shown to the party: a number of the account in E.164 or, with ``passthrough``, the
    identity that the caller presented; ``withheld`` then requests privacy for it. ``ring_timeout_s`` covers
    all gateways that are tried. ``headers`` are ``X-`` headers. ``replaces`` is the dialog of the party that
    our call replaces. ``number`` is the account's number that a passed-through call came in to: the call
    leaves by that number's carriers, as if placed by it. A passed-through caller that is not ``trusted``
    is shown only to carriers of the account's own.
    """

    target: Target
    caller_id: str
    passthrough: bool = False
    caller_name: str | None = None
    ring_timeout_s: float = DEFAULT_RING_TIMEOUT_S
    carrier_sid: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    withheld: bool = False
    replaces: str | None = None
    number: str | None = None
    trusted: bool = True
