"""Calls, their recordings and voice OTP, as the routes use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.calls.records.logs import CallLog, CallLogFilter
from callcontrol.models import CallFilter, CallRecord, Message, Page, Position, Principal
from callcontrol.otp.otp import OtpCall, OtpFilter, OtpStats, Period, SendOtp, Verification
from callcontrol.trunks.gateway_health import GatewayTable
from callcontrol.trunks.registration import RegistrationView

__all__ = ["CallLogs", "Calls", "Otp", "Recordings"]


class Calls(Protocol):
    """Calls; see ``callcontrol.calls.aio.service.CallControl``."""

    @property
    def active_calls(self) -> int:
        """Number of active calls."""

    async def create_call(self, account_sid: str, request: Any) -> CallRecord:
        """Check the request, reserve money, store the call and dial."""

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """One call of the account."""

    async def list_calls(
        self, account_sid: str, query: CallFilter, page: int, per_page: int, after: Position | None = None
    ) -> Page[CallRecord]:
        """Calls of the account, newest first; with ``after``, those behind that position."""

    async def update_call(self, account_sid: str, call_sid: str, update: LiveUpdate) -> CallRecord:
        """Change an active call: all requested changes, or none."""

    async def hangup_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """End a call; the returned record may still show it as active."""

    @property
    def gateways(self) -> GatewayTable:
        """Return the health table of gateways."""

    def trace(self, call_sid: str) -> Sequence[Any]:
        """SIP messages of the call's legs that are still in the trace."""

    def registrations(self, carrier_sid: str | None = None) -> Sequence[RegistrationView]:
        """States of the registrations with a carrier, or with all, the worst first."""


class CallLogs(Protocol):
    """Call logs of trunk operators; see ``callcontrol.calls.aio.call_records.CallLogService``."""

    async def list(self, account_sid: str, query: CallLogFilter, page: int, per_page: int) -> Page[CallLog]:
        """Call logs of the account, newest first."""


class Recordings(Protocol):
    """Recordings of calls; see ``callcontrol.recordings.aio.service.RecordingService``."""

    async def link(self, account_sid: str, call_sid: str) -> str:
        """Make a link to a recording that is valid for an hour without a key."""

    async def link_of_product(self, account_sid: str, call_sid: str, product: str) -> str:
        """Make a link to a recording of a call that the product placed; other calls are refused."""

    async def admit(self, call_sid: str, query: Mapping[str, str]) -> Principal:
        """Return the principal of a signed link."""

    async def file(self, account_sid: str, call_sid: str) -> Path:
        """Return the path of a recording's file."""

    async def delete(self, account_sid: str, call_sid: str) -> None:
        """Delete a recording permanently."""

    async def messages(self, account_sid: str, call_sid: str) -> Sequence[tuple[Message, str]]:
        """Return the voicemails of a call, each with a link to its file."""

    async def delete_message(self, account_sid: str, call_sid: str, message_sid: str) -> None:
        """Delete a voicemail permanently."""


class Otp(Protocol):
    """Voice OTP; see ``callcontrol.otp.aio.VoiceOtp``."""

    async def send(self, account_sid: str, request: SendOtp) -> OtpCall:
        """Call a number and speak a password."""

    async def get(self, account_sid: str, otp_id: str) -> OtpCall:
        """One password of the account, with its call."""

    async def list(self, account_sid: str, query: OtpFilter, page: int, per_page: int) -> Page[OtpCall]:
        """Passwords of the account, newest first."""

    async def stats(self, account_sid: str, period: Period) -> OtpStats:
        """Count the passwords of a period by outcome."""

    async def verify(self, account_sid: str, otp_id: str, guess: str) -> Verification:
        """Verify a password."""
