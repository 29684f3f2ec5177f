"""Calls of voice agents, before the domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from callcontrol.assistant.aio.service import OutboundCall
from callcontrol.assistant.analytics import AnalyticsQuery, AssistantCallFilter, DayCount, query_of
from callcontrol.assistant.calls import PRODUCT, assistant_details
from callcontrol.errors import NotFound
from callcontrol.models import ApiKey, CallRecord, Environment, Page, Principal, TranscriptSegment
from tests.support.api_facts import ACCOUNT, AGENT_ID, CALL_SID, MOMENT
from tests.unit.api.fakes.calls import call

KEY_ID = "aaaaaaaa-9999-4999-8999-999999999999"
SAID = (TranscriptSegment("agent", "Good morning", 0, 900), TranscriptSegment("user", "Hello", 1000))


class FakeAssistant:
    """One call, with a transcript of two segments."""

    def __init__(self) -> None:
        details = assistant_details(AGENT_ID, language="en-IN", context={"name": "Asha"})
        self.held = replace(call(), product=PRODUCT, details=details)
        self.asked: list[Any] = []

    async def start_call(self, account_sid: str, request: OutboundCall, *, sandbox_only: bool) -> CallRecord:
        self.asked.append((account_sid, request, sandbox_only))
        return self.held

    async def get_call(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> CallRecord:
        self.asked.append((account_sid, call_sid, sandbox_only))
        if call_sid != CALL_SID:
            raise NotFound("There is no such call with an agent.")
        return self.held

    async def end_call(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> CallRecord:
        return await self.get_call(account_sid, call_sid, sandbox_only=sandbox_only)

    async def said(self, record: CallRecord) -> Sequence[TranscriptSegment]:
        return SAID

    async def transcript(
        self, account_sid: str, call_sid: str, *, sandbox_only: bool
    ) -> tuple[CallRecord, Sequence[TranscriptSegment]]:
        return await self.get_call(account_sid, call_sid, sandbox_only=sandbox_only), SAID

    async def delete_transcript(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> None:
        await self.get_call(account_sid, call_sid, sandbox_only=sandbox_only)

    async def list_calls(
        self, account_sid: str, query: AssistantCallFilter, page: int, per_page: int
    ) -> Page[CallRecord]:
        self.asked.append((query, page, per_page))
        return Page([self.held], 41, page, per_page)

    async def analytics(
        self,
        account_sid: str,
        start: datetime | None,
        end: datetime | None,
        *,
        agent_id: str | None = None,
        sandbox: bool = False,
    ) -> tuple[AnalyticsQuery, Sequence[DayCount]]:
        query = query_of(start, end, MOMENT, agent_id=agent_id, sandbox=sandbox)
        self.asked.append(query)
        return query, ()


KEY_RECORD = ApiKey(KEY_ID, ACCOUNT, "assistant", ("assistant",), "va_abcde", MOMENT, name="staging")


class FakeAssistantKeys:
    """One key."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def list(self, principal: Principal) -> Sequence[ApiKey]:
        return [KEY_RECORD]

    async def create(
        self,
        principal: Principal,
        name: str,
        environment: Environment | None = None,
        scopes: Sequence[str] | None = None,
    ) -> tuple[ApiKey, str]:
        self.asked.append((name, environment, scopes))
        return KEY_RECORD, "va_secret"

    async def rotate(self, principal: Principal, key_id: str, overlap_s: int) -> tuple[ApiKey, str, ApiKey]:
        self.asked.append((key_id, overlap_s))
        return KEY_RECORD, "va_secret", replace(KEY_RECORD, revoked_at=MOMENT)

    async def revoke(self, principal: Principal, key_id: str) -> None:
        self.asked.append(key_id)
