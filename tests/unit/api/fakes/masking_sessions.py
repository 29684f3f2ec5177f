"""Masking sessions and numbers in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from callcontrol.errors import Conflict, NotFound
from callcontrol.masking.sessions import MaskingSession, SessionFilter, SessionRequest
from callcontrol.models import Binding, Page, PhoneNumber
from tests.support.api_facts import ACCOUNT, MOMENT, NUMBER_ID

MASKED_NUMBER = "+918047551001"
SESSION_ID = "0c6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"


class FakeMaskingSessions:
    """One session at most; it keeps what was asked of it."""

    def __init__(self) -> None:
        self.session: MaskingSession | None = None
        self.requests: list[SessionRequest] = []
        self.filters: list[SessionFilter] = []

    async def create(self, account_sid: str, request: SessionRequest) -> MaskingSession:
        self.requests.append(request)
        self.session = MaskingSession(
            session_id=SESSION_ID,
            account_sid=account_sid,
            party_a=request.party_a,
            party_b=request.party_b,
            masked_number=request.masked_number or MASKED_NUMBER,
            expires_at=MOMENT + timedelta(days=36_500),
            created_at=MOMENT,
            updated_at=MOMENT,
            call_time_limit_s=request.call_time_limit_s,
            record=request.record,
            geo_match=request.geo_match,
        )
        return self.session

    async def get(self, account_sid: str, session_id: str) -> MaskingSession:
        if self.session is None or (self.session.account_sid, self.session.session_id) != (
            account_sid,
            session_id,
        ):
            raise NotFound("There is no such masking session on the account.")
        return self.session

    async def list(
        self, account_sid: str, query: SessionFilter, page: int, per_page: int
    ) -> Page[MaskingSession]:
        self.filters.append(query)
        found = [self.session] if self.session is not None else []
        return Page(found, len(found), page, per_page)

    async def update(
        self,
        account_sid: str,
        session_id: str,
        change: Callable[[MaskingSession, datetime], MaskingSession],
    ) -> MaskingSession:
        self.session = change(await self.get(account_sid, session_id), MOMENT)
        return self.session

    async def close(self, account_sid: str, session_id: str) -> MaskingSession:
        return await self.get(account_sid, session_id)


class FakeMaskingNumbers:
    """One number, which sessions are active on."""

    async def enrol(
        self, account_sid: str, number: str, *, language: str | None = None, force: bool = False
    ) -> PhoneNumber:
        return _number(number, language)

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[PhoneNumber]:
        return Page([_number(MASKED_NUMBER, None)], 1, page, per_page)

    async def withdraw(self, account_sid: str, phone_number_id: str, *, force: bool = False) -> None:
        if phone_number_id != NUMBER_ID:
            raise NotFound("The number is not on the account.")
        if not force:
            raise Conflict("Sessions are active on this number.")


def _number(number: str, language: str | None) -> PhoneNumber:
    return PhoneNumber(
        phone_number_id=NUMBER_ID,
        account_sid=ACCOUNT,
        number=number,
        created_at=MOMENT,
        updated_at=MOMENT,
        registered=True,
        binding=Binding("masking", language=language or "en"),
    )
