# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.otp`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import otp as fields_of
from trunkline_client.generated.results import otp
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_SEND = Operation("POST", "/v1/voice-otp/send", idempotent=True)
_GET = Operation("GET", "/v1/voice-otp/calls/{id}")
_LIST = Operation(
    "GET", "/v1/voice-otp/calls", queries=frozenset({"status", "to", "reference", "start_date", "end_date", "per_page"})
)
_STATS = Operation("GET", "/v1/voice-otp/stats", queries=frozenset({"start_date", "end_date"}))
_VERIFY = Operation("POST", "/v1/voice-otp/{id}/verify", idempotent=True)


class OtpResource(Resource):
    """Operations of `client.otp`."""

    def send(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.SendOtpFields]
    ) -> otp.OtpCall:
        """Call a number and speak a one-time password."""
        return self._transport.item(_SEND, (), fields, otp.OtpCall, idempotency_key)

    def get(self, identifier: str, /) -> otp.OtpCall:
        """Get a voice OTP call."""
        return self._transport.item(_GET, (identifier,), {}, otp.OtpCall)

    def list(self, **fields: Unpack[fields_of.ListOtpsFields]) -> Pages[otp.OtpCall]:
        """List voice OTP calls, newest first."""
        return self._transport.pages(_LIST, (), fields, otp.OtpCall)

    def stats(self, **fields: Unpack[fields_of.OtpStatsFields]) -> otp.OtpStats:
        """Statistics of the voice OTP calls of a period."""
        return self._transport.item(_STATS, (), fields, otp.OtpStats)

    def verify(
        self, identifier: str, /, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.VerifyOtpFields]
    ) -> otp.Verification:
        """Verify the password that the user typed."""
        return self._transport.item(_VERIFY, (identifier,), fields, otp.Verification, idempotency_key)


class AsyncOtpResource(AsyncResource):
    """Operations of `client.otp`."""

    async def send(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.SendOtpFields]
    ) -> otp.OtpCall:
        """Call a number and speak a one-time password."""
        return await self._transport.item(_SEND, (), fields, otp.OtpCall, idempotency_key)

    async def get(self, identifier: str, /) -> otp.OtpCall:
        """Get a voice OTP call."""
        return await self._transport.item(_GET, (identifier,), {}, otp.OtpCall)

    def list(self, **fields: Unpack[fields_of.ListOtpsFields]) -> AsyncPages[otp.OtpCall]:
        """List voice OTP calls, newest first."""
        return self._transport.pages(_LIST, (), fields, otp.OtpCall)

    async def stats(self, **fields: Unpack[fields_of.OtpStatsFields]) -> otp.OtpStats:
        """Statistics of the voice OTP calls of a period."""
        return await self._transport.item(_STATS, (), fields, otp.OtpStats)

    async def verify(
        self, identifier: str, /, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.VerifyOtpFields]
    ) -> otp.Verification:
        """Verify the password that the user typed."""
        return await self._transport.item(_VERIFY, (identifier,), fields, otp.Verification, idempotency_key)
