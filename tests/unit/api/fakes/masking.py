"""Masked calls, in memory."""

from __future__ import annotations

from callcontrol.errors import CallEnded, DomainError, NotFound
from callcontrol.masked_calls import PRODUCT, masked_details
from callcontrol.masking import MaskedCallRequest
from callcontrol.models import CallRecord
from tests.unit.api.fakes.calls import call
from tests.unit.api.fakes.facts import CALL_SID, ENDED_SID


class FakeMasking:
    def __init__(self) -> None:
        self.asked: list[MaskedCallRequest] = []
        self.failure: DomainError | None = None

    def _call(self, call_sid: str = CALL_SID) -> CallRecord:
        details = masked_details(
            direction="click_to_call",
            caller_number="+919812345678",
            target_number="+919876543210",
            masked_number="+918047000001",
            max_duration_s=600,
        )
        return call(call_sid, product=PRODUCT, details=details, to="+919812345678")

    async def start_call(self, account_sid: str, request: MaskedCallRequest) -> CallRecord:
        self.asked.append(request)
        if self.failure is not None:
            raise self.failure
        return self._call()

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        if call_sid not in (CALL_SID, ENDED_SID):
            raise NotFound("There is no such masked call.")
        return self._call(call_sid)

    async def end_call(self, account_sid: str, call_sid: str) -> CallRecord:
        if call_sid == ENDED_SID:
            raise CallEnded("The call has already ended.")
        return await self.get_call(account_sid, call_sid)
