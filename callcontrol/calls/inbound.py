"""Decision about an inbound call: its account, and the plan of its number's binding."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.hangup_cause import (
    CALL_REJECTED,
    NO_ANSWER,
    NORMAL_TEMPORARY_FAILURE,
)
from callcontrol.calls.plan import (
    USUAL_LANGUAGE,
    Dial,
    Plan,
    forward_plan,
    missed_call_plan,
    stream_plan,
    webhook_format_of,
    webhook_plan,
)
from callcontrol.calls.product import BoundCall, InboundPlan, Products
from callcontrol.calls.records.call_form import STATUS_FORMAT
from callcontrol.calls.requests import DEFAULT_STATUS_EVENTS
from callcontrol.directory.directory import Directory
from callcontrol.errors import DomainError
from callcontrol.models import Account, Binding, CallStatus, Carrier, Gateway, InboundBinding, PhoneNumber
from callcontrol.models.parties import BrowserTarget, Party
from callcontrol.routing.targets import parse_target
from callcontrol.trunks.inbound_invite import Caller, InboundTrunk, caller_of, delivers, origins_of
from callcontrol.trunks.number_format import number_in, numbers_in, user_of
from callcontrol.trunks.registration import contact_user
from media.streams import StreamSetupError
from sip import Headers, NameAddr, SipUri
from sip.values import frozen

NO_TARGET: Final = Ending(CallStatus.NO_ANSWER, NO_ANSWER, "system", 480, "Temporarily Unavailable")
"""The number belongs to an account, but has no target."""

NOT_AVAILABLE: Final = Ending(
    CallStatus.FAILED, NORMAL_TEMPORARY_FAILURE, "system", 480, "Temporarily Unavailable"
)
"""The number's target cannot be run."""

NOT_ALLOWED: Final = Ending(CallStatus.FAILED, CALL_REJECTED, "system", 480, "Temporarily Unavailable")
"""The number's target may not be dialled."""


_MAX_ORIGINS: Final = 32


@frozen
class Invitation:
    """
    The parts of an INVITE that decide its routing.

    ``carriers`` are those that the caller authenticated as, by certificate or password; without any the
    source address identifies the carrier. An ``origin`` is the trunk of our own call, and counts alone.
    """

    source: tuple[str, int]
    request_uri: SipUri
    to: NameAddr
    from_: NameAddr
    headers: Headers = field(default_factory=Headers)
    carriers: Sequence[str] = ()
    origin: InboundTrunk | None = None


@frozen
class Arrival:
    """
    An inbound call for an account; without a ``plan`` it is recorded and rejected with ``refusal``.

    ``number`` is the called one, None for a browser's call to somebody else, whom ``to`` names. ``inbound``
    is the binding of the number's calls, and its origin; ``product`` and ``details`` are those of
    the call's record.

    The ``gateway`` has no ``gateway_sid`` when the carrier authenticated from an address that is no gateway
    of its own.
    """

    account: Account
    number: PhoneNumber | None
    to: str
    carrier: Carrier
    gateway: Gateway
    caller: Caller
    plan: Plan | None
    refusal: Ending | None = None
    inbound: InboundBinding = field(default_factory=lambda: InboundBinding(None))
    product: str | None = None
    details: Mapping[str, Any] | None = None


def receive(
    invitation: Invitation,
    routes: Directory,
    products: Products,
    *,
    allowed_countries: Collection[str],
    time_limit_s: float,
) -> Arrival | int:
    """
    Decide about an INVITE; an ``int`` is the status of a rejection without a record.

    403 for an unknown source; 404 for a number of no account, or for one that the carrier may not deliver.
    """
    if invitation.origin is not None:
        origins = [invitation.origin]
    else:
        origins = origins_of(invitation.carriers, invitation.source, routes)
    if not origins:
        return 403
    number = _number(invitation, origins, routes)
    if number is None:
        return 404
    account = routes.account(number.account_sid)
    origin = None
    for candidate in origins:
        if _may_come(invitation, candidate[0], number):
            origin = candidate
            break
    if account is None or not account.is_active or number.status != "active" or origin is None:
        return 404
    carrier, gateway = origin
    caller = caller_of(invitation.from_, invitation.headers, carrier)
    inbound = routes.inbound_binding(number)
    found_plan = InboundPlan(None, NO_TARGET)
    if inbound.binding is not None:
        call = BoundCall(number, inbound.binding, caller, routes, time_limit_s)
        planner = products.planners.get(inbound.binding.target)
        found_plan = planner(call) if planner is not None else _plan(call, allowed_countries)
    plan = found_plan.plan
    if plan is not None and inbound.binding is not None and inbound.binding.transcribe:
        plan = replace(plan, transcribe=inbound.binding.transcription_language or USUAL_LANGUAGE)
    return Arrival(
        account,
        number,
        number.number,
        carrier,
        gateway,
        caller,
        plan,
        found_plan.refusal,
        inbound,
        found_plan.product,
        found_plan.details,
    )


def receive_from_browser(
    invitation: Invitation, account_sid: str, party: Party, routes: Directory, *, time_limit_s: float
) -> Arrival | int:
    """Accept a browser's call to no number held here: it is connected with the party."""
    account = routes.account(account_sid)
    if account is None or not account.is_active or invitation.origin is None:
        return 404
    carrier, gateway = invitation.origin
    caller = caller_of(invitation.from_, invitation.headers, carrier)
    plan = Plan((Dial(party),), time_limit_s=time_limit_s)
    return Arrival(account, None, str(party.target), carrier, gateway, caller, plan)


def origin_for(
    carriers: Sequence[str], source: tuple[str, int], account_sid: str, routes: Directory
) -> InboundTrunk | None:
    """Find the caller's carrier, authenticated or by address, that may call this account."""
    if not carriers:
        return routes.gateway_for_source(*source, account_sid)
    origins = origins_of(carriers, source, routes)
    return next((item for item in origins if item[0].account_sid in (None, account_sid)), None)


def _may_come(invitation: Invitation, carrier: Carrier, number: PhoneNumber) -> bool:
    """True if the call may come to the number; who reaches it on net was decided when the call was routed."""
    return invitation.origin is not None or delivers(carrier, number)


def _number(invitation: Invitation, origins: Sequence[InboundTrunk], routes: Directory) -> PhoneNumber | None:
    """
    Find the called number by the request URI, or by To when a proxy has rewritten the URI.

    A carrier we register with calls our Contact address; the called number is in To then, even if the user we
    registered looks like a number itself.

    At an address the platform's own carriers come first: any account may claim the address for its carrier.
    """
    if not invitation.carriers and len(origins) > 1:
        ranked = sorted(origins, key=lambda origin: origin[0].account_sid is not None)
        origins = ranked[:_MAX_ORIGINS]
    uris = [invitation.request_uri, invitation.to.uri]
    user = invitation.request_uri.user
    if user is not None and user in [contact_user(carrier) for carrier, _ in origins if carrier.registers]:
        uris.reverse()
    for uri in uris:
        for carrier, _ in origins:
            for e164 in numbers_in(user_of(uri), carrier):
                found = routes.number(e164)
                # The number format of one account's carrier must not affect calls of other accounts.
                if found is not None and _may_come(invitation, carrier, found):
                    return found
    return None


def _plan(call: BoundCall, allowed_countries: Collection[str]) -> InboundPlan:
    """Plan a call to a number whose binding names a target of no product."""
    binding, time_limit_s = call.binding, call.time_limit_s
    if binding.target in ("media_stream", "model"):
        try:
            return InboundPlan(stream_plan(binding, time_limit_s))
        except StreamSetupError:
            return InboundPlan(None, NOT_AVAILABLE)
    if binding.target == "webhook":
        form = webhook_format_of(binding)
        details = {STATUS_FORMAT: form} if form == "jambonz" else None
        return InboundPlan(webhook_plan(binding, time_limit_s), details=details)
    if binding.target == "missed_call":
        return InboundPlan(missed_call_plan(binding))
    if binding.target == "forward":
        try:
            target = parse_target(binding.forward_to or "", allowed_countries, field="forward_to")
        except DomainError:
            return InboundPlan(None, NOT_ALLOWED)
        return InboundPlan(forward_plan(binding, target, _shown(call), call.number.number, time_limit_s))
    if binding.target == "browser":
        browser = BrowserTarget(binding.identity or "")
        return InboundPlan(forward_plan(binding, browser, call.caller, call.number.number, time_limit_s))
    return InboundPlan(None, NOT_AVAILABLE)


def _shown(call: BoundCall) -> Caller:
    """
    Return the caller to show to the party that a call is forwarded to.

    No carrier takes the name that a customer's browser or switch states for its caller: the called number
    stands for it, which is the customer's.
    """
    caller, called = call.caller, call.number
    if caller.trusted or called.carrier_sid is not None or number_in(caller.number) is not None:
        return caller
    return replace(caller, number=called.number, trusted=True)


def wanted_events(binding: Binding | None) -> tuple[str, ...]:
    """Return the status events that a binding selects, or the default ones."""
    chosen = binding.status_webhook_events if binding is not None else None
    return DEFAULT_STATUS_EVENTS if chosen is None else chosen
