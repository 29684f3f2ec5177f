"""App keys: keys of the service ``tools``, managed by an account's admin, each for all tools or for some."""

from collections.abc import Sequence
from typing import Final

from callcontrol.accounts.aio.keys import KeyService
from callcontrol.accounts.keys import SCOPES, tool_scopes
from callcontrol.aio.tokens import utc_now
from callcontrol.errors import Conflict, FieldError, NotFound, ValidationFailed
from callcontrol.models import ApiKey
from callcontrol.tools.aio.registry import ToolRegistry

MAX_APP_KEYS: Final = 100


class AppKeys:
    """The app keys of accounts."""

    def __init__(self, keys: KeyService, registry: ToolRegistry) -> None:
        self._keys = keys
        self._registry = registry

    async def list(self, account_sid: str) -> list[ApiKey]:
        """The account's app keys that are not revoked, oldest first."""
        now = utc_now()
        return [
            key
            for key in await self._keys.list(account_sid)
            if key.service == "tools" and not key.is_revoked(now)
        ]

    async def create(
        self, account_sid: str, name: str, tools: Sequence[str] | None = None
    ) -> tuple[ApiKey, str]:
        """
        Create a key; return its record and the key itself, which cannot be shown again.

        Without ``tools`` it allows all tools, including those registered later.

        Raises:
            ValidationFailed: Names every tool that does not exist.
            Conflict: The account has the maximum number of keys.
        """
        if tools is not None:
            known = {registered.tool.name for registered in await self._registry.list(account_sid)}
            errors = [
                FieldError(f"tools[{index}]", "is no tool of the account")
                for index, tool in enumerate(tools)
                if tool not in known
            ]
            if errors:
                raise ValidationFailed(errors)
        if len(await self.list(account_sid)) >= MAX_APP_KEYS:
            raise Conflict(f"The account has {MAX_APP_KEYS} app keys; revoke one first.")
        scopes = SCOPES["tools"] if tools is None else tool_scopes(tools)
        return await self._keys.issue(account_sid, "tools", scopes, name=name)

    async def revoke(self, account_sid: str, key_id: str) -> ApiKey:
        """
        Revoke a key at once; repeating it changes nothing.

        Raises:
            NotFound: The app key does not exist on the account.
        """
        if not any(
            key.key_id == key_id for key in await self._keys.list(account_sid) if key.service == "tools"
        ):
            raise NotFound("There is no such app key on the account.")
        return await self._keys.revoke(account_sid, key_id)
