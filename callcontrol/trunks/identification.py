"""
Identification of the carrier of an inbound call: by client certificate, by password, or by address.

A carrier with a certificate name or a password of its own is identified by these alone, from any address;
a carrier with neither is identified by the addresses of its inbound gateways.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from callcontrol.directory.directory import Directory
from callcontrol.models import Carrier, Gateway
from callcontrol.trunks.number_format import number_in, user_of
from callcontrol.trunks.registration import contact_user, registers
from sip import SipUri

__all__ = ["UNKNOWN", "Caller", "Origin", "identify", "origins_of", "proves_itself", "registered_user"]

Origin = tuple[Carrier, Gateway]
"""Carrier and the gateway the call came by; ``gateway_sid`` is empty if the gateway is not its own."""


@dataclass(frozen=True, slots=True)
class Caller:
    """
    Identification of a caller before its call is processed.

    ``carriers`` are proved by a certificate. Without these, and if the caller is not ``asked`` for a
    password, a ``known`` address is enough.
    """

    known: bool = False
    asked: bool = False
    carriers: tuple[str, ...] = ()


UNKNOWN: Final = Caller()

_MAX_ORIGINS: Final = 32


def proves_itself(carrier: Carrier) -> bool:
    """Return True if a carrier is identified by certificate or password rather than by address."""
    return bool(carrier.inbound_auth_username or carrier.certificate_name)


def identify(
    source: tuple[str, int],
    names: Collection[str],
    called: Sequence[SipUri],
    answers: bool,
    routes: Directory,
) -> Caller:
    """
    Identify a caller, and decide if it has to authenticate.

    ``names`` are those of its verified certificate, ``called`` the URIs that its INVITE calls, which decide
    between carriers that share an address; ``answers`` is True if the request has credentials.
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


def _serves(carriers: Sequence[Carrier], called: Sequence[SipUri], routes: Directory) -> bool:
    """Return True if one of the carriers may call the number, or if the number has no owner."""
    for uri in called:
        e164 = number_in(user_of(uri))
        found = routes.number(e164) if e164 is not None else None
        if found is not None:
            owner = found[0].account_sid
            return any(carrier.account_sid in (None, owner) for carrier in carriers)
    return True


def origins_of(carriers: Sequence[str], source: tuple[str, int], routes: Directory) -> list[Origin]:
    """
    Carriers that a call may come from, best first: the proved ones, else those at its address.

    At an address the platform's own carriers come first: any account may claim the address for its carrier.
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
    """User of the Contact that this server registers with a carrier; None if it does not register."""
    return contact_user(carrier) if registers(carrier) else None
