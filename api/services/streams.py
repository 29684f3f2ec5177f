"""What all streams to voice agents of an account share."""

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
        Have agents spoken to in a dialect where nothing else is said.

        Raises:
            ValidationFailed: It is not spoken here.
        """

    async def rotate_secret(self, account_sid: str, overlap_s: int) -> tuple[Account, str]:
        """Give the account a new stream secret, which is shown here and never again."""
