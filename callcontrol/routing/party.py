"""Parties of a call: whom to dial, and as what."""

from dataclasses import dataclass
from typing import Final

from callcontrol.routing.targets import Target

__all__ = ["DEFAULT_RING_TIMEOUT_S", "Party"]

DEFAULT_RING_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Party:
    """
    Someone to dial, and as what.

    ``caller_id`` is what the party sees: a number of the account in E.164 or, when it is passed through,
    what the caller came with; ``withheld`` then says that it wants its number shown to nobody.
    ``ring_timeout_s`` covers all gateways that are tried. ``headers`` are ``X-`` headers. ``replaces`` is
    the dialog of the party that our call is to take the place of. ``number`` is the account's number that a
    passed through call came in to: it leaves by that number's carriers, as if placed as it. A caller that is
    passed through and not ``vouched`` for is shown to carriers of the account's own only.
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
