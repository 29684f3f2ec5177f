"""Number masking, as the routes use it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from callcontrol.masking.logs import MaskedCallFilter, MaskingStats
from callcontrol.masking.request import MaskedCallRequest
from callcontrol.masking.sessions import MaskingSession, SessionFilter, SessionRequest
from callcontrol.masking.settings import MaskingSettings, SettingsChange
from callcontrol.models import CallRecord, Page, PhoneNumber

__all__ = ["Masking", "MaskingLogs", "MaskingNumbers", "MaskingSessions", "MaskingSettingsOfAccounts"]


class MaskingSessions(Protocol):
    """Masking sessions; see ``callcontrol.masking.aio.sessions.MaskingSessionService``."""

    async def create(self, account_sid: str, request: SessionRequest) -> MaskingSession:
        """Create a session."""

    async def get(self, account_sid: str, session_id: str) -> MaskingSession:
        """One session of the account."""

    async def list(
        self, account_sid: str, query: SessionFilter, page: int, per_page: int
    ) -> Page[MaskingSession]:
        """Sessions of the account, newest first."""

    async def update(
        self,
        account_sid: str,
        session_id: str,
        change: Callable[[MaskingSession, datetime], MaskingSession],
    ) -> MaskingSession:
        """Change an active session."""

    async def close(self, account_sid: str, session_id: str) -> MaskingSession:
        """End a session; active calls continue."""


class MaskingNumbers(Protocol):
    """Numbers enrolled for masking; see ``callcontrol.masking.aio.numbers.MaskingNumberService``."""

    async def enrol(
        self, account_sid: str, number: str, *, language: str | None = None, force: bool = False
    ) -> PhoneNumber:
        """Enrol a number of the account."""

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[PhoneNumber]:
        """The enrolled numbers of the account, oldest first."""

    async def withdraw(self, account_sid: str, phone_number_id: str, *, force: bool = False) -> None:
        """Withdraw a number from masking."""


class Masking(Protocol):
    """Masked calls; see ``callcontrol.masking.aio.service.MaskingService``."""

    async def start_call(self, account_sid: str, request: MaskedCallRequest) -> CallRecord:
        """Call one party, and the other when the first has answered."""

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """One masked call of the account, in its newest state."""

    async def end_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """End a masked call; the returned record may still show it as active."""


class MaskingLogs(Protocol):
    """Masked calls, listed and counted; see ``callcontrol.masking.aio.logs.MaskingLogs``."""

    async def list(
        self, account_sid: str, query: MaskedCallFilter, page: int, per_page: int
    ) -> Page[CallRecord]:
        """Masked calls of the account, newest first."""

    async def stats(self, account_sid: str, start: datetime | None, end: datetime | None) -> MaskingStats:
        """Usage of masking in a window, both ends included."""


class MaskingSettingsOfAccounts(Protocol):
    """Masking settings; see ``callcontrol.masking.aio.settings.MaskingSettingsService``."""

    async def of(self, account_sid: str) -> MaskingSettings:
        """The settings of the account."""

    async def update(self, account_sid: str, change: SettingsChange) -> MaskingSettings:
        """Change the given settings."""
