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
        """Change an agent; `values` are the changed attributes."""

    async def delete(self, account_sid: str, agent_id: str) -> None:
        """Remove an agent."""


class Assistant(Protocol):
    """Calls of agents; see ``callcontrol.assistant.aio.service.AssistantService``."""

    async def start_call(self, account_sid: str, request: OutboundCall, *, sandbox_only: bool) -> CallRecord:
        """Place a call by an agent."""

    async def get_call(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> CallRecord:
        """One call of the account's agents, in its newest state."""

    async def end_call(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> CallRecord:
        """End a call; the returned record may still show it as active."""

    async def said(self, record: CallRecord) -> Sequence[TranscriptSegment]:
        """Return the transcript of a call so far."""

    async def transcript(
        self, account_sid: str, call_sid: str, *, sandbox_only: bool
    ) -> tuple[CallRecord, Sequence[TranscriptSegment]]:
        """Return the transcript of an ended call."""

    async def delete_transcript(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> None:
        """Delete the transcript of an ended call."""

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
        """Count the calls of a period by day."""


class AssistantKeys(Protocol):
    """Keys of the assistant; see ``callcontrol.assistant.aio.keys.AssistantKeys``."""

    async def list(self, principal: Principal) -> Sequence[ApiKey]:
        """Valid keys of the account."""

    async def create(
        self,
        principal: Principal,
        name: str,
        environment: Environment | None = None,
        scopes: Sequence[str] | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key with no more rights than the principal's."""

    async def rotate(self, principal: Principal, key_id: str, overlap_s: int) -> tuple[ApiKey, str, ApiKey]:
        """Create the successor of a key; return its record, the key itself, and the old key's new record."""

    async def revoke(self, principal: Principal, key_id: str) -> None:
        """Revoke a key."""
