"""Masked calls, in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from callcontrol.errors import CallEnded, DomainError, NotFound
from callcontrol.masking.calls import PRODUCT, masked_details
from callcontrol.masking.logs import MaskedCallCounts, MaskedCallFilter, MaskingStats, window_of
from callcontrol.masking.request import MaskedCallRequest
from callcontrol.masking.sessions import SessionCounts
from callcontrol.masking.settings import MaskingSettings, SettingsChange, Unchanged
from callcontrol.models import CallRecord, Page
from tests.support.api_facts import ACCOUNT, CALL_SID, ENDED_SID, MOMENT
from tests.unit.api.fakes.calls import call


def masked_call(call_sid: str = CALL_SID) -> CallRecord:
    details = masked_details(
        direction="click_to_call",
        caller_number="+919812345678",
        target_number="+919876543210",
        masked_number="+918047000001",
        max_duration_s=600,
    )
    return call(call_sid, product=PRODUCT, details=details, to="+919812345678")


class FakeMasking:
    def __init__(self) -> None:
        self.asked: list[MaskedCallRequest] = []
        self.failure: DomainError | None = None

    async def start_call(self, account_sid: str, request: MaskedCallRequest) -> CallRecord:
        self.asked.append(request)
        if self.failure is not None:
            raise self.failure
        return masked_call()

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        if call_sid not in (CALL_SID, ENDED_SID):
            raise NotFound("There is no such masked call.")
        return masked_call(call_sid)

    async def end_call(self, account_sid: str, call_sid: str) -> CallRecord:
        if call_sid == ENDED_SID:
            raise CallEnded("The call has already ended.")
        return await self.get_call(account_sid, call_sid)


class FakeMaskingLogs:
    def __init__(self) -> None:
        self.asked: list[tuple[MaskedCallFilter, int, int]] = []
        self.windows: list[tuple[datetime | None, datetime | None]] = []

    async def list(
        self, account_sid: str, query: MaskedCallFilter, page: int, per_page: int
    ) -> Page[CallRecord]:
        self.asked.append((query, page, per_page))
        return Page([masked_call()], 41, page, per_page)

    async def stats(self, account_sid: str, start: datetime | None, end: datetime | None) -> MaskingStats:
        self.windows.append((start, end))
        counts = MaskedCallCounts(
            total=9, answered=5, failed=2, no_answer=1, in_progress=1, bill_duration_sec=350, cost_paise=1234
        )
        return MaskingStats(
            window=window_of(start, end, MOMENT), calls=counts, sessions=SessionCounts(3, 2, 6)
        )


class FakeMaskingSettings:
    def __init__(self) -> None:
        self.held = MaskingSettings(account_sid=ACCOUNT)
        self.changes: list[SettingsChange] = []

    async def of(self, account_sid: str) -> MaskingSettings:
        return self.held

    async def update(self, account_sid: str, change: SettingsChange) -> MaskingSettings:
        self.changes.append(change)
        values = {name: getattr(change, name) for name in change.__slots__}
        given = {name: value for name, value in values.items() if not isinstance(value, Unchanged)}
        self.held = replace(self.held, updated_at=MOMENT, **given)
        return self.held
