"""
On-net calls: to numbers that accounts here hold and to browsers, by SIP from this server to itself.

They arrive as inbound calls. The carrier of both sides is ``ON_NET``, which no database has; records of such
calls name no carrier.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from callcontrol.models import Carrier, Gateway, PhoneNumber
from callcontrol.models.parties import Party, RouteAttempt
from callcontrol.trunks.number_format import user_for
from media.types import SrtpKey

MAX_NUMBERS: Final = 10
"""Numbers that one call may come to on net, one after the other."""

_LOOP_DETECTED: Final = 482
_TOO_MANY_HOPS: Final = 483
_SINCE: Final = datetime(1970, 1, 1, tzinfo=UTC)

# A timer would only show that this server lives.
ON_NET: Final = Carrier("", None, "On net", _SINCE, _SINCE, session_expires_s=None)
"""Carrier of on-net calls; its caller identities are believed, since they are ours."""


BROWSERS: Final = replace(ON_NET, name="Browser", codecs=("OPUS", "PCMU", "PCMA"), srtp="require")
"""Carrier of legs to browsers, whose audio is always encrypted."""


@dataclass(frozen=True, slots=True)
class BrowserLine:
    """Telephone in web pages that a leg of the call ``call_sid`` is for."""

    account_sid: str
    identity: str
    call_sid: str


@dataclass(frozen=True, slots=True)
class OnNetCall:
    """
    An on-net call on its way.

    ``carrier`` is that of its arrival, ``gateway`` the address that it leaves from. ``numbers`` are those
    that the call and the calls it continues have come to on net, the called one last.

    That of a browser has its ``call_sid`` already, and ``srtp_keys`` that our side must send with: they come
    from the browser's handshake. If it is for no number held here, ``connect`` are the account and the party
    to connect it with.
    """

    carrier: Carrier
    gateway: Gateway
    numbers: tuple[str, ...]
    call_sid: str | None = None
    srtp_keys: tuple[SrtpKey, ...] = ()
    connect: tuple[str, Party] | None = None

    @property
    def rejection(self) -> int | None:
        """Status that ends a loop of numbers, or a chain of too many; None for any other call."""
        if self.numbers[-1] in self.numbers[:-1]:
            return _LOOP_DETECTED
        return _TOO_MANY_HOPS if len(self.numbers) > MAX_NUMBERS else None


def gateway_at(host: str, port: int) -> Gateway:
    """Return an address of this server as a gateway of ``ON_NET``."""
    return Gateway("", ON_NET.carrier_sid, host, _SINCE, _SINCE, port)


def on_net_route(
    account_sid: str, number: PhoneNumber, gateway: Gateway, *, trusted: bool
) -> RouteAttempt | None:
    """
    Route from an account to a number that an account here holds; None when the call must leave by a carrier.

    A number on a customer's own carrier is the customer's claim, and so is a caller-ID that is not
    ``trusted``: with either, the call stays within its account.
    """
    within = number.account_sid == account_sid
    if not within and not (trusted and number.carrier_sid is None):
        return None
    carrier = ON_NET if trusted else replace(ON_NET, account_sid=account_sid)
    return RouteAttempt(carrier, gateway, user_for(carrier, number.number), on_net=True)


def browser_route(account_sid: str, identity: str, gateway: Gateway) -> RouteAttempt:
    """Route to the pages of an account with this telephone; ``gateway`` is where browsers are called."""
    return RouteAttempt(replace(BROWSERS, account_sid=account_sid), gateway, identity, on_net=True)
