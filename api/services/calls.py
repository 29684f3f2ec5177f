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
        """How many calls are up."""

    async def create_call(self, account_sid: str, request: Any) -> CallRecord:
        """Check, reserve, record and dial."""

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """One call of the account."""

    async def list_calls(
        self, account_sid: str, query: CallFilter, page: int, per_page: int, after: Position | None = None
    ) -> Page[CallRecord]:
        """Calls of the account, newest first; with ``after`` those behind that place."""

    async def update_call(self, account_sid: str, call_sid: str, update: LiveUpdate) -> CallRecord:
        """Change a call that is up: all that is asked for, or nothing."""

    async def hangup_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """Have a call ended; the record may still say that it is up."""

    @property
    def gateways(self) -> GatewayTable:
        """What is known of the health of gateways."""

    def trace(self, call_sid: str) -> Sequence[Any]:
        """The SIP messages of the call's legs that are still remembered."""

    def registrations(self, carrier_sid: str | None = None) -> Sequence[RegistrationView]:
        """How the registrations with a carrier stand, the worst first."""


class CallLogs(Protocol):
    """Calls as those who run trunks see them; see ``callcontrol.calls.aio.call_records.CallLogService``."""

    async def list(self, account_sid: str, query: CallLogFilter, page: int, per_page: int) -> Page[CallLog]:
        """Call logs of the account, newest first."""


class Recordings(Protocol):
    """Recordings of calls; see ``callcontrol.recordings.aio.service.RecordingService``."""

    async def link(self, account_sid: str, call_sid: str) -> str:
        """A link that opens a recording for an hour, without a key."""

    async def link_of_product(self, account_sid: str, call_sid: str, product: str) -> str:
        """The same for a call that a product placed, and for no other."""

    async def admit(self, call_sid: str, query: Mapping[str, str]) -> Principal:
        """Who a link speaks for."""

    async def file(self, account_sid: str, call_sid: str) -> Path:
        """The file with a recording."""

    async def delete(self, account_sid: str, call_sid: str) -> None:
        """Delete a recording for ever."""

    async def messages(self, account_sid: str, call_sid: str) -> Sequence[tuple[Message, str]]:
        """The messages that were left on a call, each with a link to it."""

    async def delete_message(self, account_sid: str, call_sid: str, message_sid: str) -> None:
        """Delete a message for ever."""


class Otp(Protocol):
    """One-time passwords that are spoken; see ``callcontrol.otp.aio.VoiceOtp``."""

    async def send(self, account_sid: str, request: SendOtp) -> OtpCall:
        """Call somebody and speak a password."""

    async def get(self, account_sid: str, otp_id: str) -> OtpCall:
        """One password of the account, with its call."""

    async def list(self, account_sid: str, query: OtpFilter, page: int, per_page: int) -> Page[OtpCall]:
        """Passwords of the account, newest first."""

    async def stats(self, account_sid: str, period: Period) -> OtpStats:
        """How the passwords of some days went."""

    async def verify(self, account_sid: str, otp_id: str, guess: str) -> Verification:
        """Say whether a guess is the password."""
