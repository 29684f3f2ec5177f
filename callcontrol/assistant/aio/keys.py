"""Keys of the voice assistant that their holders manage, within the permissions of their own key."""

from collections.abc import Sequence

from callcontrol.accounts.aio.keys import KeyService
from callcontrol.accounts.keys import check_managed, scopes_of
from callcontrol.aio.tokens import utc_now
from callcontrol.errors import Conflict, NotFound
from callcontrol.models import ApiKey, Environment, Principal

_MAX_KEYS = 100


class AssistantKeys:
    """
    The keys of the service ``assistant`` of an account.

    A key of these manages the others: it cannot create, rotate or revoke a key with more permissions than its
    own. A key of the sandbox sees only keys of the sandbox.
    """

    def __init__(self, keys: KeyService) -> None:
        self._keys = keys

    async def list(self, principal: Principal) -> list[ApiKey]:
        """The account's keys that are not revoked, oldest first."""
        now = utc_now()
        return [
            key
            for key in await self._keys.list(principal.account_sid)
            if _seen(principal, key) and not key.is_revoked(now)
        ]

    async def create(
        self,
        principal: Principal,
        name: str,
        environment: Environment | None = None,
        scopes: Sequence[str] | None = None,
    ) -> tuple[ApiKey, str]:
        """
        Create a key; return its record and the key itself, which cannot be shown again.

        Without an environment it belongs to that of the principal.

        Raises:
            Forbidden: It would have more permissions than the principal's key.
            ValidationFailed: There is no such scope.
            Conflict: The account has the maximum number of keys.
        """
        environment = environment or ("sandbox" if principal.sandbox else "live")
        # A request without scopes gets the default ones, so those are checked as well.
        check_managed(principal, "assistant", environment, scopes_of("assistant", scopes))
        if len(await self.list(principal)) >= _MAX_KEYS:
            raise Conflict(f"The account has {_MAX_KEYS} keys of the assistant; revoke one first.")
        return await self._keys.issue(
            principal.account_sid, "assistant", scopes, name=name, environment=environment
        )

    async def rotate(self, principal: Principal, key_id: str, overlap_s: int) -> tuple[ApiKey, str, ApiKey]:
        """
        Create the successor of a key; the old key stays valid for ``overlap_s``. See ``KeyService.rotate``.

        Raises:
            NotFound: The key does not exist.
            Forbidden: It has more permissions than the principal's key.
            Conflict: It is revoked, or was rotated already.
        """
        await self._manageable(principal, key_id)
        return await self._keys.rotate(principal.account_sid, key_id, overlap_s)

    async def revoke(self, principal: Principal, key_id: str) -> None:
        """
        Revoke a key at once; repeating it changes nothing.

        Raises:
            NotFound: The key does not exist.
            Forbidden: It has more permissions than the principal's key.
        """
        await self._manageable(principal, key_id)
        await self._keys.revoke(principal.account_sid, key_id)

    async def _manageable(self, principal: Principal, key_id: str) -> None:
        for key in await self._keys.list(principal.account_sid):
            if key.key_id == key_id and _seen(principal, key):
                check_managed(principal, "assistant", key.environment, key.scopes)
                return
        raise NotFound("There is no such key of the assistant on the account.")


def _seen(principal: Principal, key: ApiKey) -> bool:
    return key.service == "assistant" and (not principal.sandbox or key.environment == "sandbox")
