"""
INVITE of an outbound leg, built by the carrier's policy.

It is built from the party, the gateway and the carrier only. Of the caller's INVITE it carries only the
fields that both trunks' policies allow, with our addresses: nothing else of one leg shows on another. A
carrier with ``trusts_identity`` gets the caller's number even if the caller withholds it, others only what
the caller allows.
"""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from callcontrol.e164 import read_number
from callcontrol.models import Carrier, Gateway
from callcontrol.models.parties import Party, RouteAttempt
from callcontrol.trunks.inbound_invite import ANONYMOUS, Caller, Received, custom_headers
from callcontrol.trunks.number_format import USER_SAFE, caller_user_for, number_in, user_of
from sip import Credentials, Destination, InvalidValue, NameAddr, OutboundInvite, ParseError, SipUri
from sip.values import frozen

_DEFAULT_PORT: Final = {"tls": 5061}
_DIVERSION_PARAMS: Final = frozenset({"reason", "counter", "limit", "privacy", "screen"})
_HISTORY_PARAMS: Final = frozenset({"index", "mp", "rc", "np"})
_ANYBODY: Final = SipUri("sip", user="anonymous", host="anonymous.invalid")
_OWN_DIVERSION: Final = (("reason", "unconditional"), ("counter", "1"))
_NOBODY: Final = NameAddr("Anonymous", SipUri("sip", user=ANONYMOUS, host="anonymous.invalid"))
_ESCAPED_SAFE: Final = USER_SAFE + "%"


@frozen
class Origin:
    """
    Origin of an outbound leg: the caller's trunk, and the header fields of its INVITE.

    ``open_headers`` (lower case) are the X- header fields that pass between all trunks.
    """

    carrier: Carrier
    received: Received
    open_headers: Collection[str] = frozenset()


def invite_for(
    attempt: RouteAttempt,
    party: Party,
    offer: bytes,
    destination: Destination,
    *,
    local_host: str,
    origin: Origin | None = None,
) -> OutboundInvite:
    """
    Build the INVITE of a leg; the caller of this function adds Max-Forwards and Session-ID.

    Raises:
        InvalidValue: A name or domain of the carrier does not fit a URI.
    """
    carrier, gateway = attempt.carrier, attempt.gateway
    uri = request_uri(gateway, attempt.user)
    caller = Caller(party.caller_id, party.caller_name, withheld=party.withheld)
    address = caller_address(carrier, caller, local_host)
    to = NameAddr(None, uri.with_(params=()) if uri.params else uri)
    headers = identity_headers(carrier, caller, address)
    if carrier.outbound_proxy:
        headers[:0] = _route(carrier, gateway)
    custom = [*party.headers]
    if origin is not None and origin.received.custom:
        custom += _passed_custom(carrier, origin)
    if custom:
        headers += custom_headers(custom)
    headers += _history(carrier, party, origin, local_host)
    if party.replaces is not None:
        headers += [("Replaces", party.replaces), ("Require", "replaces")]
    return OutboundInvite(
        uri=uri,
        from_=from_address(carrier, caller, address, local_host),
        to=to,
        destination=destination,
        headers=headers,
        body=offer,
        credentials=credentials_of(carrier),
        rel100=carrier.rel100,
        session_expires_s=carrier.session_expires_s,
    )


def route_by(invite: OutboundInvite, service_route: Sequence[str]) -> None:
    """
    Route an INVITE by the registrar's Service-Route, unless the carrier has an outbound proxy.

    Source: RFC 3608 6.1.
    """
    if not service_route or any(name == "Route" for name, _ in invite.headers):
        return
    first = NameAddr.parse(service_route[0]).uri
    invite.headers[:0] = [("Route", route) for route in service_route]
    transport = first.transport or invite.destination.transport
    invite.destination = Destination(transport, first.host, first.port or 0)


# --- routing ------------------------------------------------------------------------------------------------


def request_uri(gateway: Gateway, user: str) -> SipUri:
    """Request-URI of a user at a gateway; it names the gateway even behind an outbound proxy."""
    transport = gateway.transport if gateway.transport in ("tcp", "tls") else None
    port = stated_port(gateway.port, transport)
    return SipUri(
        "sip",
        user=user,
        host=gateway.host,
        port=port,
        params=(("transport", transport),) if transport else (),
    )


def stated_port(port: int, transport: str | None) -> int | None:
    """Port to state in a URI; None for 0 and for the default port of the transport."""
    return None if port in (0, _DEFAULT_PORT.get(transport or "", 5060)) else port


def destination_of(carrier: Carrier, gateway: Gateway) -> Destination:
    """Next hop of the INVITE: the carrier's outbound proxy if it has one, else the gateway."""
    proxy = proxy_of(carrier)
    if proxy is None:
        return Destination(gateway.transport, gateway.host, gateway.port)
    return Destination(proxy.transport or gateway.transport, proxy.host, proxy.port or 0)


def proxy_of(carrier: Carrier) -> SipUri | None:
    """
    Outbound proxy of a carrier, or None.

    Raises:
        InvalidValue: Its text is no proxy; see ``read_proxy``.
    """
    return read_proxy(carrier.outbound_proxy) if carrier.outbound_proxy else None


def read_proxy(text: str) -> SipUri:
    """
    Read an outbound proxy: ``host``, ``host:port`` or a ``sip:`` address with its transport.

    Raises:
        InvalidValue: The text is none of these.
    """
    try:
        return SipUri.parse(text if text[:4].lower() == "sip:" else f"sip:{_bracketed(text)}")
    except ParseError as error:
        raise InvalidValue(f"The outbound proxy is no SIP address: {error.reason}") from None


def _bracketed(host: str) -> str:
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host


def _route(carrier: Carrier, gateway: Gateway) -> Iterator[tuple[str, str]]:
    """Route header field with the outbound proxy as a loose router (RFC 3261 8.1.2)."""
    proxy = proxy_of(carrier)
    if proxy is None:
        return
    if proxy.transport is None and gateway.transport in ("tcp", "tls"):
        proxy = proxy.with_(params=(*proxy.params, ("transport", gateway.transport)))
    yield "Route", loose_route(proxy)


def loose_route(proxy: SipUri) -> str:
    """Route value of a proxy as a loose router (RFC 3261 16.12)."""
    params = [param for param in proxy.params if param[0] != "lr"]
    return f"<{proxy.with_(params=(*params, ('lr', None)), headers=None)}>"


def credentials_of(carrier: Carrier) -> Credentials | None:
    """Credentials for the carrier's digest challenges; None if it has none."""
    if not carrier.register_username or carrier.register_password is None:
        return None
    return Credentials(carrier.register_username, carrier.register_password, carrier.register_sip_realm)


# --- forwarding ---------------------------------------------------------------------------------------------


def may_pass(name: str, one: Carrier, other: Carrier, open_headers: Collection[str] = ()) -> bool:
    """Return True if both trunks list an X- header field, or the server lists it for all trunks."""
    key = name.lower()
    if key in open_headers:
        return True
    return all(key in (listed.lower() for listed in carrier.forwarded_headers) for carrier in (one, other))


def _passed_custom(carrier: Carrier, origin: Origin) -> Iterator[tuple[str, str]]:
    for name, value in origin.received.custom:
        if may_pass(name, origin.carrier, carrier, origin.open_headers):
            yield name, value


def _history(
    carrier: Carrier, party: Party, origin: Origin | None, local_host: str
) -> Iterator[tuple[str, str]]:
    """
    Header fields of a forwarded call that describe its origin.

    User-to-User (RFC 7433) is meant for the callee. The signed identity (RFC 8224) covers the caller's
    number, so it is sent only where that number is shown. Our own Diversion explains why we show a number
    that is not ours.
    """
    host = carrier.register_from_domain or local_host
    if party.passthrough and carrier.diversion:
        yield "Diversion", _own_diversion(carrier, host)
    if origin is None:
        return
    received = origin.received
    for value in received.user_to_user:
        yield "User-to-User", value
    if party.passthrough and not party.withheld:
        for value in received.identity:
            yield "Identity", value
    if carrier.forwards_history and "history" not in received.privacy:
        for address in received.diversions:
            yield "Diversion", str(_rehosted(address, carrier, origin.carrier, host, _DIVERSION_PARAMS))
        for address in received.history:
            yield "History-Info", str(_rehosted(address, carrier, origin.carrier, host, _HISTORY_PARAMS))


def _own_diversion(carrier: Carrier, host: str) -> str:
    user = carrier.diversion or ""
    with contextlib.suppress(ValueError):
        user = caller_user_for(carrier, read_number(user))
    return str(NameAddr(None, SipUri("sip", user=user, host=host), _OWN_DIVERSION))


def _rehosted(
    address: NameAddr, carrier: Carrier, source: Carrier, host: str, kept: Collection[str]
) -> NameAddr:
    """Diversion or History-Info entry for the carrier: the number in its format, at our host."""
    params = tuple(param for param in address.params if param[0] in kept)
    if "privacy=" in (address.uri.headers or "").lower():
        return NameAddr(None, _ANYBODY, params)
    number = number_in(user_of(address.uri), source)
    user = caller_user_for(carrier, number) if number is not None else address.uri.user
    uri = replace(_ANYBODY, host=host, user=user, headers=_reason(address.uri.headers))
    return NameAddr(address.display_name, uri, params)


def _reason(headers: str | None) -> str | None:
    """Reason among the header fields escaped into a History-Info entry (RFC 7044 5.2); others are dropped."""
    for part in (headers or "").split("&"):
        if part.lower().startswith("reason=") and len(part) <= 128:
            return part
    return None


# --- identity and privacy -----------------------------------------------------------------------------------


def from_address(carrier: Carrier, caller: Caller, address: NameAddr | None, local_host: str) -> NameAddr:
    """
    From of a call to the carrier, without a tag; ``address`` is the caller's.

    For a carrier with ``register_from_user`` the From has that user, and only the identity header has the
    caller.

    Source: RFC 3261 8.1.1.3, RFC 3323 4.1.
    """
    hidden = caller.withheld or caller.number == ANONYMOUS
    if carrier.register_from_user:
        host = carrier.register_from_domain or local_host
        name = "Anonymous" if hidden else caller.name
        return NameAddr(name, SipUri("sip", user=quote(carrier.register_from_user, USER_SAFE), host=host))
    if hidden:
        return _NOBODY
    return address or _NOBODY


def identity_headers(carrier: Carrier, caller: Caller, address: NameAddr | None) -> list[tuple[str, str]]:
    """
    Identity and privacy header fields of a call to the carrier; ``address`` is the caller's.

    Source: RFC 3325 6, 9; RFC 3323 4.2; draft-ietf-sip-privacy-04 for Remote-Party-ID.
    """
    privacy = [("Privacy", "id")] if caller.withheld else []
    told = carrier.trusts_identity or not caller.withheld
    if carrier.identity_header == "none" or not told or caller.number == ANONYMOUS or address is None:
        return privacy
    match carrier.identity_header:
        case "ppi":
            return [("P-Preferred-Identity", str(address)), *privacy]
        case "rpid":
            shown = "full" if caller.withheld else "off"
            return [("Remote-Party-ID", f"{address};party=calling;screen=yes;privacy={shown}"), *privacy]
    return [("P-Asserted-Identity", str(address)), *privacy]


def caller_address(carrier: Carrier, caller: Caller, local_host: str) -> NameAddr | None:
    """Caller's address at our host, as shown to the carrier; None if its identity does not fit a URI."""
    number, host = caller.number, carrier.register_from_domain or local_host
    try:
        user = caller_user_for(carrier, number) if number.startswith("+") else quote(number, _ESCAPED_SAFE)
        return NameAddr(caller.name, SipUri("sip", user=user, host=host))
    except InvalidValue:
        return None
