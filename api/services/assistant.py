"""The voice assistant, as the routes use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from callcontrol.agents import VoiceAgent
from callcontrol.models import Account, Page

__all__ = ["Agents", "StreamSettings"]


class Agents(Protocol):
    """Voice agents; see ``callcontrol.aio.agents.AgentService``."""

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> VoiceAgent:
        """Add an agent; `values` are its attributes and those of its stream."""

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[VoiceAgent]:
        """Agents of the account, newest first."""

    async def get(self, account_sid: str, agent_id: str) -> VoiceAgent:
        """One agent."""

    async def update(self, account_sid: str, agent_id: str, values: Mapping[str, Any]) -> VoiceAgent:
        """Change an agent; `values` are what is to change."""

    async def delete(self, account_sid: str, agent_id: str) -> None:
        """Remove an agent."""


class StreamSettings(Protocol):
    """What accounts set for their streams; see ``callcontrol.aio.stream_settings.StreamSettingsService``."""

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
