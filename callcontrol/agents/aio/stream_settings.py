"""Settings of accounts for their streams to voice agents; a running server applies them within a second."""

import base64
from dataclasses import replace

from callcontrol.accounts import store
from callcontrol.accounts.aio.accounts import AccountService
from callcontrol.agents.stream_settings import check_protocol, rotated
from callcontrol.aio.tokens import new_secret_bytes
from callcontrol.models import Account


class StreamSettingsService:
    """The default dialect and the stream secret of accounts."""

    def __init__(self, accounts: AccountService) -> None:
        self._accounts = accounts

    async def of(self, account_sid: str) -> Account:
        """
        The account, with its settings.

        Raises:
            NotFound: The account does not exist.
        """
        return await self._accounts.get(account_sid)

    async def set_protocol(self, account_sid: str, protocol: str | None) -> Account:
        """
        Set the stream protocol used when a call names none; None for the server's default.

        Raises:
            ValidationFailed: The protocol is not supported.
            NotFound: The account does not exist.
        """
        check_protocol(protocol)
        return await self._accounts.change(
            account_sid,
            lambda account, now: replace(account, stream_protocol=protocol, updated_at=now),
            store.set_streams,
        )

    async def rotate_secret(self, account_sid: str, overlap_s: int) -> tuple[Account, str]:
        """
        Rotate the account's stream secret; the new one cannot be shown again.

        Raises:
            ValidationFailed: The overlap is too long.
            NotFound: The account does not exist.
        """
        secret = "strsec_" + base64.b64encode(new_secret_bytes()).decode()
        account = await self._accounts.change(
            account_sid, lambda account, now: rotated(account, secret, overlap_s, now), store.set_streams
        )
        return account, secret
