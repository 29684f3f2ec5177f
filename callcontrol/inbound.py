"""What becomes of a call that comes in: whose it is, and the plan that its number's binding makes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from callcontrol.errors import DomainError
from callcontrol.hangup import (
    CALL_REJECTED,
    NO_ANSWER,
    NORMAL_TEMPORARY_FAILURE,
)
from callcontrol.hunt import Ending
from callcontrol.identification import Origin, origins_of, registered_users
from callcontrol.interfaces import Routes
from callcontrol.models import Account, Binding, CallStatus, Carrier, Gateway, PhoneNumber
from callcontrol.plan import Plan, forward_plan, stream_plan
from callcontrol.routing import number_in, parse_target
from media.streams import StreamSetupError

_MAX_CALLER_CHARS: Final = 64

NO_TARGET: Final = Ending(CallStatus.NO_ANSWER, NO_ANSWER, "system", 480, "Temporarily Unavailable")
"""The number is somebody's, but its calls go nowhere."""

NOT_AVAILABLE: Final = Ending(
    CallStatus.FAILED, NORMAL_TEMPORARY_FAILURE, "system", 480, "Temporarily Unavailable"
)
"""The number's target cannot be run."""

NOT_ALLOWED: Final = Ending(CallStatus.FAILED, CALL_REJECTED, "system", 480, "Temporarily Unavailable")
"""The number's target may not be dialled."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """
    The facts of an INVITE that decide about it; users are the user parts of its addresses.

    ``carriers`` are those the caller has proved to be, by certificate or password; without any its address
    says who it is.
    """

    source: tuple[str, int]
    request_user: str
    to_user: str
    from_user: str
    headers: Sequence[tuple[str, str]] = field(default=())
    carriers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Arrival:
    """
    A call for one of our accounts; without a ``plan`` it is recorded and refused with ``refusal``.

    ``gateway`` is None for a carrier that proved itself from an address that is none of its gateways'.
    """

    account: Account
    number: PhoneNumber
    carrier: Carrier
    gateway: Gateway | None
    caller: str
    plan: Plan | None
    refusal: Ending | None = None


def receive(
    invitation: Invitation,
    routes: Routes,
    *,
    allowed_countries: Collection[str],
    forwarded_headers: Collection[str] = (),
    time_limit_s: float,
) -> Arrival | int:
    """
    Decide about an INVITE; a number instead of an arrival is the status to refuse it with, unrecorded.

    403 for an unknown source, 404 for a number that is nobody's, or that another account's carrier has no
    business to call. Headers named in ``forwarded_headers`` (lower case) are passed on to a second party.
    """
    origins = origins_of(invitation.carriers, invitation.source, routes)
    if not origins:
        return 403
    found = _number(invitation, origins, routes)
    if found is None:
        return 404
    number, binding = found
    account = routes.account(number.account_sid)
    origin = _origin(invitation, origins, number.account_sid, routes)
    if account is None or not account.is_active or number.status != "active" or origin is None:
        return 404
    carrier, gateway = origin
    caller = number_in(invitation.from_user) or _clean(invitation.from_user)
    plan, refusal = _plan(binding, caller, allowed_countries, time_limit_s)
    if plan is not None and forwarded_headers:
        kept = tuple(item for item in invitation.headers if item[0].lower() in forwarded_headers)
        plan = plan.with_headers(kept)
    return Arrival(account, number, carrier, gateway, caller, plan, refusal)


def _origin(
    invitation: Invitation, origins: Sequence[Origin], account_sid: str, routes: Routes
) -> Origin | None:
    """The carrier that may call this account's numbers."""
    if not invitation.carriers:
        return routes.gateway_for_source(*invitation.source, account_sid)
    return next((item for item in origins if item[0].account_sid in (None, account_sid)), None)


def _number(
    invitation: Invitation, origins: Sequence[Origin], routes: Routes
) -> tuple[PhoneNumber, Binding | None] | None:
    """
    The called number by the request URI, or by To when a proxy has rewritten the URI.

    A carrier we register with calls our Contact address; which number was called stands in To then, even
    if the user we registered looks like a number itself.
    """
    users = [invitation.request_user, invitation.to_user]
    if any(invitation.request_user in registered_users(carrier) for carrier, _ in origins):
        users.reverse()
    for user in users:
        e164 = number_in(user)
        found = routes.number(e164) if e164 is not None else None
        if found is not None:
            return found
    return None


def _clean(user: str) -> str:
    """A caller that is no number (anonymous, a name): shown as it is, bounded and printable."""
    shown = "".join(character for character in user if character.isprintable())
    return shown[:_MAX_CALLER_CHARS] or "anonymous"


def _plan(
    binding: Binding | None, caller: str, allowed_countries: Collection[str], time_limit_s: float
) -> tuple[Plan | None, Ending | None]:
    if binding is None:
        return None, NO_TARGET
    if binding.target == "media_stream":
        try:
            return stream_plan(binding, time_limit_s), None
        except StreamSetupError:
            return None, NOT_AVAILABLE
    if binding.target == "forward":
        try:
            target = parse_target(binding.forward_to or "", allowed_countries, field="forward_to")
        except DomainError:
            return None, NOT_ALLOWED
        return forward_plan(binding, target, caller, time_limit_s), None
    return None, NOT_AVAILABLE
