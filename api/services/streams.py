"""Stream settings of accounts, as the routes use them."""

from __future__ import annotations

from typing import Protocol

from callcontrol.models import Account

__all__ = ["StreamSettings"]


class StreamSettings(Protocol):
    """Stream settings of accounts; see ``callcontrol.agents.aio.stream_settings.StreamSettingsService``."""

    async def of(self, account_sid: str) -> Account:
        """The account, with its settings."""

    async def set_protocol(self, account_sid: str, protocol: str | None) -> Account:
        """
        Set the default dialect of the account's streams; None is the server's default.

        Raises:
            ValidationFailed: The server does not support it.
        """

    async def rotate_secret(self, account_sid: str, overlap_s: int) -> tuple[Account, str]:
        """Create a new stream secret of the account, which is returned only here."""
