"""Registrations that carriers require, and views of their state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote

from callcontrol.directory.directory import Directory
from callcontrol.models import Carrier
from callcontrol.trunks.number_format import USER_SAFE
from callcontrol.trunks.outbound_invite import credentials_of, loose_route, proxy_of, stated_port
from sip import (
    Destination,
    InvalidValue,
    NameAddr,
    OutboundRegistration,
    ParseError,
    RegistrationState,
    SipUri,
)

_WORST: Final = (
    RegistrationState.REJECTED,
    RegistrationState.UNREACHABLE,
    RegistrationState.UNREGISTERED,
    RegistrationState.REGISTERING,
    RegistrationState.REGISTERED,
)


@dataclass(frozen=True, slots=True, order=True)
class RegistrationKey:
    """One registrar of one carrier, as ``host:port``."""

    carrier_sid: str
    registrar: str


@dataclass(frozen=True, slots=True)
class RegistrationView:
    """State of a carrier's registration with one registrar."""

    registrar: str
    state: RegistrationState
    reason: str | None = None
    expires_at: datetime | None = None


def contact_user(carrier: Carrier) -> str | None:
    """User by which a carrier knows us: of the registered address (AOR) and of our Contact."""
    name = carrier.register_from_user or (carrier.register_username or "").partition("@")[0]
    return quote(name, safe=USER_SAFE) or None


def registrations_of(carrier: Carrier, routes: Directory) -> dict[RegistrationKey, Destination]:
    """Registrars that a carrier names, else its active outbound gateways, without duplicates."""
    transport = carrier.register_transport
    found: dict[RegistrationKey, Destination] = {}
    for text in carrier.registrars:
        registrar = SipUri.parse(f"sip:{text}")
        destination = Destination(transport or "udp", registrar.host, registrar.port or 0)
        found[RegistrationKey(carrier.carrier_sid, text)] = destination
    if found:
        return found
    for gateway in routes.gateways(carrier.carrier_sid):
        if gateway.is_active and gateway.outbound:
            spoken = gateway.transport
            fits = transport in (None, spoken)
            destination = Destination(transport or spoken, gateway.host, gateway.port if fits else 0)
            text = f"{gateway.host}:{gateway.port}" if gateway.port else gateway.host
            found[RegistrationKey(carrier.carrier_sid, text)] = destination
    return found


def registration_with(
    carrier: Carrier, registrar: Destination, front: str | None = None
) -> OutboundRegistration:
    """
    Parameters of the registration with a registrar, by the carrier's policy.

    The domain is the one that the carrier names, else the registrar itself. With an outbound proxy, requests
    go to the proxy, and a Route names it. If that is the server's ``front``, calls come by it as well: the
    Contact is its address, the same for every server behind it.

    Raises:
        InvalidValue: The carrier has no user, or a user, domain or proxy that does not fit a URI.
    """
    user = contact_user(carrier)
    if user is None:
        raise InvalidValue("register_username is needed to register")
    uri = SipUri("sip", host=registrar.host, port=stated_port(registrar.port, registrar.transport))
    if carrier.register_from_domain:
        uri = _domain(carrier.register_from_domain)
    proxy = proxy_of(carrier)
    routes: tuple[str, ...] = ()
    destination = registrar
    contact: SipUri | None = None
    if proxy is not None:
        routes = (loose_route(proxy),)
        if front is not None and carrier.outbound_proxy == front:
            contact = proxy.with_(user=user)
        destination = Destination(proxy.transport or registrar.transport, proxy.host, proxy.port or 0)
    return OutboundRegistration(
        uri=uri,
        aor=NameAddr(None, uri.with_(user=user)),
        contact_user=user,
        contact=contact,
        destination=destination,
        credentials=credentials_of(carrier),
        expires_s=carrier.register_expires_s,
        routes=routes,
    )


def _domain(text: str) -> SipUri:
    try:
        uri = SipUri.parse(f"sip:{text}")
    except ParseError as error:
        raise InvalidValue(f"register_from_domain is no domain: {error.reason}") from None
    if uri.user is not None or uri.params or uri.headers is not None:
        raise InvalidValue("register_from_domain is no domain")
    return uri


def worst_first(views: Iterable[RegistrationView]) -> list[RegistrationView]:
    """Sort registrations, the one that most needs attention first."""
    return sorted(views, key=lambda view: (_WORST.index(view.state), view.registrar))


def counted(views: Iterable[RegistrationView]) -> Mapping[str, int]:
    """Count registrations by state; every state is present."""
    states: Sequence[RegistrationState] = [view.state for view in views]
    return {state.value: states.count(state) for state in RegistrationState}
