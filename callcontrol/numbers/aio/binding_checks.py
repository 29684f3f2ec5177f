"""Advance checks that inbound calls can reach the target of a binding."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from sqlalchemy.engine import Connection

from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.egress.url_policy import HOOK_SCHEMES, Destinations, url_errors
from callcontrol.errors import FieldError
from callcontrol.models import Binding
from callcontrol.numbers.binding import BINDING_URLS, choice_of, forward_to_errors, schemes_of
from callcontrol.numbers.store import numbers


async def binding_errors(
    account_sid: str,
    binding: Binding,
    directory: DirectoryLoader,
    destinations: Destinations,
    allowed_countries: Collection[str],
    phone_number_id: str | None = None,
) -> list[FieldError]:
    """
    Errors of a binding whose target calls could not reach: bad addresses, forbidden or foreign numbers.

    Every inbound call checks again; this check reports errors early. ``phone_number_id`` is the number being
    bound: binding registers it.
    """
    errors: list[FieldError] = []
    for field in BINDING_URLS:
        url = getattr(binding, field)
        if url is not None:
            schemes = schemes_of(field, binding.webhook_format, url)
            errors += url_errors(destinations.check_url, field, url, schemes=schemes)
    if binding.target == "model":
        url = choice_of(binding).url
        errors += url_errors(destinations.check_url, "model.url", url, schemes=HOOK_SCHEMES)
    if binding.target in ("forward", "browser"):
        errors += await _after_miss(
            lambda: _forward_errors(account_sid, binding, directory, allowed_countries, phone_number_id),
            directory,
        )
    if binding.target == "voice_agent":
        errors += await _after_miss(
            lambda: agent_errors(account_sid, binding, _owner_of_agent(binding, directory)), directory
        )
    return errors


def kept_agent_errors(connection: Connection, account_sid: str, binding: Binding | None) -> list[FieldError]:
    """
    Errors of a binding to an agent, checked in the transaction; none for other bindings.

    The agent may have been deleted since ``binding_errors``; from here on it is locked until the transaction
    ends, and afterwards the binding protects it.
    """
    if binding is None or binding.target != "voice_agent":
        return []
    return agent_errors(account_sid, binding, numbers.lock_agent(connection, binding.agent_id or ""))


def agent_errors(
    account_sid: str, binding: Binding, owner: tuple[str, str | None] | None
) -> list[FieldError]:
    """Errors in a binding to an agent, by the account and the workspace of that agent."""
    if owner is None or owner[0] != account_sid:
        return [FieldError("agent_id", "names no agent of the account")]
    if owner[1] not in (None, binding.workspace_id):
        return [FieldError("workspace_id", "is not that of the agent")]
    return []


def _owner_of_agent(binding: Binding, directory: DirectoryLoader) -> tuple[str, str | None] | None:
    agent = directory.agent(binding.agent_id or "")
    return None if agent is None else (agent.account_sid, agent.workspace_id)


async def _after_miss(
    find_errors: Callable[[], Sequence[FieldError]], directory: DirectoryLoader
) -> Sequence[FieldError]:
    """Check again before failing: another process may just have added the missing object."""
    errors = find_errors()
    if errors:
        await directory.refresh_after_miss()
        errors = find_errors()
    return errors


def _forward_errors(
    account_sid: str,
    binding: Binding,
    directory: DirectoryLoader,
    allowed_countries: Collection[str],
    phone_number_id: str | None,
) -> Sequence[FieldError]:
    errors: list[FieldError] = []
    caller_id = binding.caller_id
    if caller_id not in (None, "passthrough") and not _may_show(
        account_sid, caller_id, directory, phone_number_id
    ):
        errors.append(FieldError("caller_id", "must be passthrough or a registered number of the account"))
    if binding.target == "browser":
        return errors
    has_gateway = partial(directory.has_gateway, account_sid)
    return errors + forward_to_errors(binding.forward_to or "", allowed_countries, has_gateway)


def _may_show(
    account_sid: str, caller_id: str, directory: DirectoryLoader, phone_number_id: str | None
) -> bool:
    known = directory.number(caller_id)
    if known is None or known.account_sid != account_sid or known.status != "active":
        return False
    return known.registered or known.phone_number_id == phone_number_id
