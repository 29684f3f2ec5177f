"""
ICE of a side that only answers: a lite agent with one host candidate (RFC 8445 2.5).

It sends no checks. The browser, which is always the controlling side, checks the path, selects it, and goes
on checking as long as it consents to receive (RFC 7675).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from media.webrtc.stun import Address, BindingRequest, respond

HOST_PRIORITY: Final = 2130706431
"""Priority of our only candidate (RFC 8445 5.1.2)."""

_MAX_ADDRESSES: Final = 16


@dataclass(frozen=True, slots=True)
class IceCredentials:
    """User name fragment and password of one side."""

    ufrag: str
    password: str = field(repr=False)


class IceLite:
    """
    The lite agent of one leg.

    Attributes:
        local: Our credentials.
        selected: Address that the browser selected, which everything is sent to.
        addresses: Addresses from which signed checks have come.
    """

    def __init__(self, local: IceCredentials, remote_ufrag: str) -> None:
        self.local = local
        self.selected: Address | None = None
        self.addresses: dict[Address, int] = {}
        self._username = f"{local.ufrag}:{remote_ufrag}"
        self._priority = 0

    def succeed(self, former: IceLite) -> None:
        """Go on with the path of the agent before a restart, until the browser selects another."""
        self.selected, self.addresses = former.selected, former.addresses

    def receive(self, request: BindingRequest, source: Address) -> bytes | None:
        """Return the response to a check of the browser; None for a request of anybody else."""
        if request.username != self._username or not request.is_signed_with(self.local.password):
            return None
        if source not in self.addresses and len(self.addresses) >= _MAX_ADDRESSES:
            return None
        self.addresses[source] = request.priority
        if request.nominates and (self.selected is None or request.priority >= self._priority):
            self.selected, self._priority = source, request.priority
        return respond(request, source, self.local.password)

    def forget_selection(self) -> None:
        """Accept the next selection, whatever its priority: nothing comes from the present address."""
        self._priority = 0
