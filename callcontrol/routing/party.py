"""Parties of a call: whom to dial, and as what."""

from dataclasses import dataclass
from typing import Final

from callcontrol.routing.targets import Target

__all__ = ["DEFAULT_RING_TIMEOUT_S", "Party"]

DEFAULT_RING_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Party:
    """
    A party to dial, and the caller identity to show.

    ``caller_id`` is shown to the party: a number of the account in E.164 or, with ``passthrough``, the
    identity that the caller presented; ``withheld`` then requests privacy for it. ``ring_timeout_s`` covers
    all gateways that are tried. ``headers`` are ``X-`` headers. ``replaces`` is the dialog of the party that
    our call replaces. ``number`` is the account's number that a passed-through call came in to: the call
    leaves by that number's carriers, as if placed by it. A passed-through caller that is not ``vouched`` for
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
    vouched: bool = True
