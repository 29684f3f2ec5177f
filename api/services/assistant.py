"""The voice assistant, as the routes use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from callcontrol.agents.agent import VoiceAgent
from callcontrol.assistant.aio.service import OutboundCall
from callcontrol.assistant.analytics import AnalyticsQuery, AssistantCallFilter, DayCount
from callcontrol.models import ApiKey, CallRecord, Environment, Page, Principal, TranscriptSegment

__all__ = ["Agents", "Assistant", "AssistantKeys"]


class Agents(Protocol):
    """Voice agents; see ``callcontrol.agents.aio.service.AgentService``."""

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


class Assistant(Protocol):
    """Calls of agents; see ``callcontrol.assistant.aio.service.AssistantService``."""

    async def start_call(self, account_sid: str, request: OutboundCall, *, sandbox_only: bool) -> CallRecord:
        """Have an agent call somebody."""

    async def get_call(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> CallRecord:
        """One call of the account's agents, in its newest state."""

    async def end_call(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> CallRecord:
        """Have a call ended; the record may still say that it is up."""

    async def said(self, record: CallRecord) -> Sequence[TranscriptSegment]:
        """What was said on a call so far."""

    async def transcript(
        self, account_sid: str, call_sid: str, *, sandbox_only: bool
    ) -> tuple[CallRecord, Sequence[TranscriptSegment]]:
        """What was said on a call that has ended."""

    async def delete_transcript(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> None:
        """Delete what was said on a call that has ended."""

    async def list_calls(
        self, account_sid: str, query: AssistantCallFilter, page: int, per_page: int
    ) -> Page[CallRecord]:
        """Calls of the account's agents, newest first."""

    async def analytics(
        self,
        account_sid: str,
        start: datetime | None,
        end: datetime | None,
        *,
        agent_id: str | None = None,
        sandbox: bool = False,
    ) -> tuple[AnalyticsQuery, Sequence[DayCount]]:
        """How the calls of a time went, by day."""


class AssistantKeys(Protocol):
    """Keys of the assistant; see ``callcontrol.assistant.aio.keys.AssistantKeys``."""

    async def list(self, principal: Principal) -> Sequence[ApiKey]:
        """The keys of the account that open anything still."""

    async def create(
        self,
        principal: Principal,
        name: str,
        environment: Environment | None = None,
        scopes: Sequence[str] | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key that opens no more than the principal's."""

    async def rotate(self, principal: Principal, key_id: str, overlap_s: int) -> tuple[ApiKey, str, ApiKey]:
        """Make the successor of a key: its record, itself, and what the old key's record now is."""

    async def revoke(self, principal: Principal, key_id: str) -> None:
        """Revoke a key."""
