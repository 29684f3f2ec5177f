"""Selection of the gateways to a party, with every rule that may forbid a route."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from callcontrol.directory.directory import Directory
from callcontrol.errors import (
    NO_ROUTE,
    Forbidden,
    NumberNotOwned,
    ServiceUnavailable,
    ValidationFailed,
    no_free_trunk,
)
from callcontrol.models import HOW_TO_REGISTER, TEST_PREFIX, Carrier, Gateway, PhoneNumber
from callcontrol.models.parties import (
    BrowserTarget,
    Party,
    PhoneTarget,
    RouteAttempt,
    SipTarget,
    Target,
)
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.on_net import browser_route, on_net_route
from callcontrol.routing.targets import check_allowed
from callcontrol.trunks.gateway_health import GatewayTable, HealthState
from callcontrol.trunks.number_format import number_in, user_for, user_of
from callcontrol.trunks.outbound_invite import destination_of, request_uri
from sip import InvalidValue, Redirection, Redirects, SipUri

MAX_REDIRECTIONS: Final = 5

_MAX_NAMED: Final = 10
_CARRIERS: Final = "POST /v1/trunk-portal/carriers"


class Router:
    """
    Routes all calls by the directory, the health of gateways and the limits of carriers.

    ``on_net`` returns the address at which this server takes its own calls, ``browsers`` the one at which it
    calls browsers; None while there is none.
    """

    def __init__(
        self,
        routes: Directory,
        capacity: Capacity,
        allowed_countries: Collection[str],
        gateways: GatewayTable | None = None,
        on_net: Callable[[], Gateway | None] = lambda: None,
        browsers: Callable[[], Gateway | None] = lambda: None,
    ) -> None:
        self.gateways = gateways or GatewayTable()
        self._routes = routes
        self._capacity = capacity
        self._allowed_countries = allowed_countries
        self._on_net = on_net
        self._browsers = browsers

    def attempts(self, account_sid: str, party: Party, now: float) -> list[RouteAttempt]:
        """
        Routes to a party for an account, best first; at least one.

        A number that an account here holds is reached on net, unless the party names a carrier. A browser's
        telephone is always reached so; if no page with it is open, the call is refused there.

        Raises:
            Forbidden: The number may not be dialled, or the forced carrier is another account's.
            NumberNotOwned: The caller-ID is not a number of the account that may be shown.
            ValidationFailed: No carrier serves the number, or a ``sip:`` address names a host that is no
                gateway's; the field is ``to``, the reason ``NO_ROUTE``. Or the forced carrier does not exist,
                or has no gateway to call through; the field is ``carrier_sid``.
            ServiceUnavailable: All gateways that serve the number are in cooldown or at their limit, or this
                server calls no browsers.
        """
        check_allowed(party.target, self._allowed_countries)
        trusted = party.trusted
        if not party.passthrough:
            # A number on the account's own carrier is not verified to belong to the account.
            trusted = self._own_number(account_sid, party.caller_id).carrier_sid is None
        if isinstance(party.target, BrowserTarget):
            return [self._to_browser(account_sid, party.target)]
        own = self._held_here(account_sid, party, trusted=trusted)
        if own is not None:
            return [own]
        candidates = self._candidates(account_sid, party)
        if not trusted:
            candidates = self._own_carriers(candidates, party.caller_id)
        unusable = self.gateways.unusable
        ranked = [item for item in candidates if item[1].gateway_sid not in unusable]
        # A gateway that failed is better than none; one that sent Retry-After is never used.
        ranked += [item for item in candidates if unusable.get(item[1].gateway_sid) is HealthState.DOWN]
        attempts = [
            RouteAttempt(carrier, gateway, _user_at(carrier, party.target))
            for carrier, gateway in ranked
            if self._capacity.wait_for_trunk_s(carrier, gateway, now) == 0.0
        ]
        if not attempts:
            raise no_free_trunk()
        return attempts

    def redirects(self, account_sid: str, attempt: RouteAttempt) -> Redirects | None:
        """
        Policy for a carrier's redirections (3xx); None if they are not followed.

        A call stays with the same carrier: a number that may be dialled goes through the redirecting gateway,
        a user at one of the carrier's own gateways goes to that gateway.
        """
        if not attempt.carrier.follows_redirects:
            return None

        def accept(uri: SipUri) -> Redirection | None:
            try:
                found = self._redirected(account_sid, attempt, uri)
                if found is None:
                    return None
                gateway, user = found
                return Redirection(request_uri(gateway, user), destination_of(attempt.carrier, gateway))
            except (Forbidden, InvalidValue):
                return None

        return Redirects(accept, MAX_REDIRECTIONS)

    def _redirected(self, account_sid: str, attempt: RouteAttempt, uri: SipUri) -> tuple[Gateway, str] | None:
        """Return the gateway and the user of a redirection's target; raises if it may not be dialled."""
        carrier = attempt.carrier
        if uri.scheme == "tel":
            number = number_in(user_of(uri))
            if number is None:
                return None
            check_allowed(PhoneTarget(number), self._allowed_countries)
            return attempt.gateway, user_for(carrier, number)
        found = self._routes.gateway_for_host(account_sid, uri.host, uri.port)
        if uri.scheme != "sip" or not uri.user or found is None:
            return None
        check_allowed(SipTarget(uri.user, uri.host, uri.port), self._allowed_countries)
        return (found[1], uri.user) if found[0].carrier_sid == carrier.carrier_sid else None

    def _held_here(self, account_sid: str, party: Party, *, trusted: bool) -> RouteAttempt | None:
        gateway = self._on_net()
        if gateway is None or party.carrier_sid is not None or not isinstance(party.target, PhoneTarget):
            return None
        number = self._routes.number(party.target.number)
        return None if number is None else on_net_route(account_sid, number, gateway, trusted=trusted)

    def _to_browser(self, account_sid: str, target: BrowserTarget) -> RouteAttempt:
        gateway = self._browsers()
        if gateway is None:
            raise ServiceUnavailable("This server calls no browsers: it has no udp: address.")
        return browser_route(account_sid, target.identity, gateway)

    def _candidates(self, account_sid: str, party: Party) -> list[tuple[Carrier, Gateway]]:
        target = party.target
        if party.carrier_sid is not None:
            self._check_carrier(account_sid, party.carrier_sid)
        if isinstance(target, SipTarget):
            route = self._routes.gateway_for_host(account_sid, target.host, target.port)
            if route is None:
                raise ValidationFailed.of(
                    "to",
                    f"{target.host} is not a gateway of your carriers; add it as a gateway first"
                    f" ({_CARRIERS}/{{carrier_sid}}/gateways)",
                    NO_ROUTE,
                )
            return [route]
        assert isinstance(target, PhoneTarget), "the router has a way of its own to browsers"
        from_number = party.number or party.caller_id
        routes = self._routes.outbound_route(account_sid, from_number, party.carrier_sid, target.number)
        if not routes and party.carrier_sid is not None:
            raise ValidationFailed.of(
                "carrier_sid", "the carrier is not active, or has no active outbound gateway", NO_ROUTE
            )
        if not routes:
            raise self._no_route(account_sid, from_number)
        return routes

    def _check_carrier(self, account_sid: str, carrier_sid: str) -> None:
        """Reject a forced carrier that does not exist or is another account's."""
        carrier = self._routes.carrier(carrier_sid)
        if carrier is None:
            raise ValidationFailed.of("carrier_sid", "names no carrier")
        if carrier.account_sid not in (None, account_sid):
            raise Forbidden("carrier_sid names a carrier of another account.")

    def _no_route(self, account_sid: str, from_number: str) -> ValidationFailed:
        """Refusal of a number that no carrier serves: it names what can be called, and how to add a route."""
        is_own = self._routes.own_carrier_of(account_sid, from_number) is not None
        own = self._routes.outbound_carriers(account_sid)
        serving = own if is_own else self._routes.outbound_carriers(None)
        prefixes = {prefix for carrier in serving for prefix in carrier.prefixes}
        reached = f"no carrier takes calls from {from_number}"
        if prefixes:
            reached = f"{from_number} can call numbers that begin with {_listed(map(_prefix, prefixes))}"
            if self._on_net() is not None:
                reached += ", and numbers that accounts hold here"
        if is_own:
            remedy = f"add a carrier for it ({_CARRIERS}), or an outbound gateway to yours"
        else:
            yours = f"; yours: {_listed(carrier.name for carrier in own)}" if own else ""
            remedy = (
                f"call it from a number on a carrier of your own ({_CARRIERS}{yours}), or have the operator"
                " of this server add a carrier (trunkline carriers add)"
            )
        return ValidationFailed.of("to", f"has no route: {reached}; {remedy}", NO_ROUTE)

    def _own_carriers(
        self, candidates: list[tuple[Carrier, Gateway]], caller_id: str
    ) -> list[tuple[Carrier, Gateway]]:
        """Gateways of the account's own carriers, for a caller-ID that the platform does not trust."""
        own = [item for item in candidates if item[0].account_sid is not None]
        if candidates and not own:
            raise NumberNotOwned(
                f"{caller_id} comes from a carrier of your own and is shown to your own carriers only; call"
                " through one of them, or as a number of the platform."
            )
        return own

    def _own_number(self, account_sid: str, caller_id: str) -> PhoneNumber:
        found = self._routes.number(caller_id)
        if found is None or found.account_sid != account_sid or not found.registered:
            raise NumberNotOwned(
                f"{caller_id} is not a registered number of the account; register it before using it as"
                f" caller-ID: {HOW_TO_REGISTER}."
            )
        if found.status != "active":
            raise NumberNotOwned(f"{caller_id} is suspended because its renewal is not paid; top up first.")
        return found


def _prefix(prefix: str) -> str:
    return f"{prefix} (the sandbox)" if prefix == TEST_PREFIX else prefix


def _listed(items: Iterable[str]) -> str:
    """Names in one line; beyond the first ones only their number."""
    names = sorted(items)
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _user_at(carrier: Carrier, target: Target) -> str:
    assert not isinstance(target, BrowserTarget), "the router has a way of its own to browsers"
    return user_for(carrier, target.number) if isinstance(target, PhoneTarget) else target.user
