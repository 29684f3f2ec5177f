"""Keys of an account that one of its keys manages, within its own rights."""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from callcontrol.accounts.aio.keys import KeyService
from callcontrol.accounts.keys import check_managed, parse_service, scopes_of, tools_of
from callcontrol.errors import ValidationFailed
from callcontrol.models import ApiKey, Environment, Page, Principal

log = logging.getLogger(__name__)

MAX_KEYS: Final = 100
"""Most valid keys of one service that an account can create through the API."""


class ManagedKeys:
    """
    The keys of all services of an account.

    A key manages no key with more rights than its own: neither of a service nor with a scope that it lacks.
    Each change is logged with the key that made it. ``tool_names`` returns the names of an account's tools.
    """

    def __init__(self, keys: KeyService, tool_names: Callable[[str], Awaitable[Collection[str]]]) -> None:
        self._keys = keys
        self._tool_names = tool_names

    async def page(self, principal: Principal, page: int, per_page: int) -> Page[ApiKey]:
        """Page of the account's valid keys, newest first."""
        return await self._keys.page(principal.account_sid, page, per_page)

    async def own(self, principal: Principal) -> ApiKey:
        """The principal's key itself."""
        return await self._keys.get(principal.account_sid, principal.key_id)

    async def create(
        self,
        principal: Principal,
        service: str,
        name: str,
        scopes: Sequence[str] | None = None,
        environment: Environment | None = None,
    ) -> tuple[ApiKey, str]:
        """
        Create a key; return its record and the key itself, which cannot be shown again.

        Without scopes it has the default ones of its service, and without an environment it belongs to that
        of the principal.

        Raises:
            ValidationFailed: There is no such service, a scope or the environment does not belong to it, or a
                scope names no tool of the account.
            Forbidden: It would have more rights than the principal's key.
            Conflict: The account has the maximum number of keys of the service.
        """
        of = parse_service(service)
        environment = environment or ("sandbox" if principal.sandbox else "live")
        # A request without scopes gets the default ones, so those are checked as well.
        chosen = scopes_of(of, scopes)
        check_managed(principal, of, environment, chosen)
        named = tools_of(chosen)
        if named and (unknown := named.difference(await self._tool_names(principal.account_sid))):
            scopes_named = ", ".join(f"tool:{name}" for name in sorted(unknown))
            raise ValidationFailed.of("scopes", f"{scopes_named}: the account has no such tool")
        made, key = await self._keys.issue(
            principal.account_sid, of, chosen, name=name, environment=environment, at_most=MAX_KEYS
        )
        _tell("created", principal, made)
        return made, key

    async def rotate(self, principal: Principal, key_id: str, overlap_s: int) -> tuple[ApiKey, str, ApiKey]:
        """
        Create the successor of a key; the old key stays valid for ``overlap_s``. See ``KeyService.rotate``.

        Raises:
            NotFound: The key does not exist.
            Forbidden: It has more rights than the principal's key.
            Conflict: It is revoked, or was rotated already.
        """
        await self._check(principal, key_id)
        made, key, former = await self._keys.rotate(
            principal.account_sid, key_id, overlap_s, at_most=MAX_KEYS
        )
        _tell(f"created in place of {key_id}, which ends after {overlap_s} s,", principal, made)
        return made, key, former

    async def revoke(self, principal: Principal, key_id: str) -> None:
        """
        Revoke a key, which may be the principal's own or the account's last; repeating it changes nothing.

        Raises:
            NotFound: The key does not exist.
            Forbidden: It has more rights than the principal's key.
        """
        await self._check(principal, key_id)
        _tell("revoked", principal, await self._keys.revoke(principal.account_sid, key_id))

    async def _check(self, principal: Principal, key_id: str) -> None:
        found = await self._keys.get(principal.account_sid, key_id)
        check_managed(principal, found.service, found.environment, found.scopes)


def _tell(change: str, principal: Principal, key: ApiKey) -> None:
    """Log a change; identifiers only, never a key."""
    log.info(
        "the key %s of the service %s was %s by the key %s",
        key.key_id,
        key.service,
        change,
        principal.key_id,
        extra={"account_sid": principal.account_sid},
    )
