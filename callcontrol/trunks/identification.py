"""
Which carrier a call comes from: by client certificate, by password, or by address.

A carrier that has a certificate name or a password of its own is known by these alone, from any address;
one that has neither is known by the addresses of its inbound gateways.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from callcontrol.directory.routes import Routes
from callcontrol.models import Carrier, Gateway
from callcontrol.trunks.number_format import number_in, user_of
from callcontrol.trunks.registration import contact_user, registers
from sip import SipUri

__all__ = ["UNKNOWN", "Caller", "Origin", "identify", "origins_of", "proves_itself", "registered_user"]

Origin = tuple[Carrier, Gateway]
"""A carrier and its gateway the call came by, one without ``gateway_sid`` if it is none of its own."""


@dataclass(frozen=True, slots=True)
class Caller:
    """
    What is known of a caller before its call is looked at.

    ``carriers`` are proved by a certificate; otherwise, when it is not ``asked`` for a password, an address
    that is ``known`` is enough.
    """

    known: bool = False
    asked: bool = False
    carriers: tuple[str, ...] = ()


UNKNOWN: Final = Caller()

_MAX_ORIGINS: Final = 32


def proves_itself(carrier: Carrier) -> bool:
    """Whether a carrier is known by what it can prove rather than by where it calls from."""
    return bool(carrier.inbound_auth_username or carrier.certificate_name)


def identify(
    source: tuple[str, int], names: Collection[str], called: Sequence[SipUri], answers: bool, routes: Routes
) -> Caller:
    """
    Say what is known of a caller, and whether it has to give a password.

    ``names`` are those of its verified certificate, ``called`` the URIs its INVITE calls, which settle
    who is meant where several carriers share an address; ``answers`` says that it brings credentials.
    """
    proved = routes.carriers_with_certificate(names) if names else []
    if proved:
        return Caller(known=True, carriers=tuple(carrier.carrier_sid for carrier in proved))
    here = [carrier for carrier, _ in routes.gateways_at(*source)]
    open_here = [carrier for carrier in here if not proves_itself(carrier)]
    closed_here = [carrier for carrier in here if carrier.inbound_auth_username]
    if not open_here:
        return Caller(asked=routes.asks_passwords) if closed_here or routes.asks_passwords else UNKNOWN
    if closed_here and (answers or not _serves(open_here, called, routes)):
        return Caller(asked=True)
    return Caller(known=True)


def _serves(carriers: Sequence[Carrier], called: Sequence[SipUri], routes: Routes) -> bool:
    """Whether one of these carriers may call the number, or the number is nobody's in any case."""
    for uri in called:
        e164 = number_in(user_of(uri))
        found = routes.number(e164) if e164 is not None else None
        if found is not None:
            owner = found[0].account_sid
            return any(carrier.account_sid in (None, owner) for carrier in carriers)
    return True


def origins_of(carriers: Sequence[str], source: tuple[str, int], routes: Routes) -> list[Origin]:
    """
    The carriers a call may come from, best first: those that are proved, else those at its address.

    At an address the platform's own come first: anybody may say of his carrier that it calls from there.
    """
    if not carriers:
        at_address = [origin for origin in routes.gateways_at(*source) if not proves_itself(origin[0])]
        if len(at_address) > 1:
            at_address.sort(key=lambda origin: origin[0].account_sid is not None)
        return at_address[:_MAX_ORIGINS]
    here = {carrier.carrier_sid: gateway for carrier, gateway in routes.gateways_at(*source)}
    known = (routes.carrier(carrier_sid) for carrier_sid in carriers)
    return [
        (carrier, here.get(carrier.carrier_sid) or _elsewhere(carrier, source))
        for carrier in known
        if carrier is not None and carrier.is_active
    ]


def _elsewhere(carrier: Carrier, source: tuple[str, int]) -> Gateway:
    host, port = source
    return Gateway("", carrier.carrier_sid, host, carrier.created_at, carrier.updated_at, port)


def registered_user(carrier: Carrier) -> str | None:
    """The user of the Contact address this server registers with a carrier, None if it does not."""
    return contact_user(carrier) if registers(carrier) else None
