# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.masking`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import masking as fields_of
from trunkline_client.generated.results import masking, shared
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_START_MASKED_CALL = Operation("POST", "/v1/masking/calls", idempotent=True)
_GET_MASKED_CALL = Operation("GET", "/v1/masking/calls/{call_sid}")
_END_MASKED_CALL = Operation("DELETE", "/v1/masking/calls/{call_sid}")
_CREATE_SESSION = Operation("POST", "/v1/masking/sessions", idempotent=True)
_LIST_SESSIONS = Operation(
    "GET", "/v1/masking/sessions", queries=frozenset({"status", "party", "masked_number", "per_page"})
)
_GET_SESSION = Operation("GET", "/v1/masking/sessions/{session_id}")
_CHANGE_SESSION = Operation("PATCH", "/v1/masking/sessions/{session_id}")
_CLOSE_SESSION = Operation("DELETE", "/v1/masking/sessions/{session_id}")
_LIST_MASKED_NUMBERS = Operation("GET", "/v1/masking/numbers", queries=frozenset({"per_page"}))
_ENROL_MASKED_NUMBER = Operation("POST", "/v1/masking/numbers")
_WITHDRAW_MASKED_NUMBER = Operation(
    "DELETE", "/v1/masking/numbers/{phone_number_id}", queries=frozenset({"force"})
)
_LIST_MASKED_CALLS = Operation(
    "GET", "/v1/masking/call-logs", queries=frozenset({"status", "direction", "party", "session_id", "start_date", "end_date", "per_page"})
)
_STATS = Operation("GET", "/v1/masking/stats", queries=frozenset({"start_date", "end_date"}))
_BILLING = Operation("GET", "/v1/masking/billing")
_GET_SETTINGS = Operation("GET", "/v1/masking/settings")
_UPDATE_SETTINGS = Operation("PATCH", "/v1/masking/settings")
_TEST_WEBHOOK = Operation("POST", "/v1/masking/settings/webhook/test")
_LIST_DELIVERIES = Operation("GET", "/v1/masking/settings/webhook/deliveries", queries=frozenset({"limit"}))
_REPLAY_DELIVERY = Operation("POST", "/v1/masking/settings/webhook/deliveries/{delivery_id}/replay")
_REPLAY_FAILED_DELIVERIES = Operation("POST", "/v1/masking/settings/webhook/deliveries/replay")


class MaskingResource(Resource):
    """Operations of `client.masking`."""

    def start_masked_call(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.StartMaskedCallFields]
    ) -> masking.StartedMaskedCall:
        """Connect two parties who see a masked number."""
        return self._transport.item(
            _START_MASKED_CALL, (), fields, masking.StartedMaskedCall, idempotency_key
        )

    def get_masked_call(self, call_sid: str, /) -> masking.MaskedCall:
        """Get a masked call."""
        return self._transport.item(_GET_MASKED_CALL, (call_sid,), {}, masking.MaskedCall)

    def end_masked_call(self, call_sid: str, /) -> masking.MaskedCall:
        """End a masked call."""
        return self._transport.item(_END_MASKED_CALL, (call_sid,), {}, masking.MaskedCall)

    def create_session(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.CreateMaskingSessionFields]
    ) -> masking.Session:
        """Create a masking session."""
        return self._transport.item(_CREATE_SESSION, (), fields, masking.Session, idempotency_key)

    def list_sessions(self, **fields: Unpack[fields_of.ListMaskingSessionsFields]) -> Pages[masking.Session]:
        """List masking sessions, newest first."""
        return self._transport.pages(_LIST_SESSIONS, (), fields, masking.Session)

    def get_session(self, session_id: str, /) -> masking.Session:
        """Get a masking session."""
        return self._transport.item(_GET_SESSION, (session_id,), {}, masking.Session)

    def change_session(
        self, session_id: str, /, **fields: Unpack[fields_of.ChangeMaskingSessionFields]
    ) -> masking.Session:
        """Change the expiry and call limit of a masking session."""
        return self._transport.item(_CHANGE_SESSION, (session_id,), fields, masking.Session)

    def close_session(self, session_id: str, /) -> masking.Session:
        """Close a masking session."""
        return self._transport.item(_CLOSE_SESSION, (session_id,), {}, masking.Session)

    def list_masked_numbers(
        self, **fields: Unpack[fields_of.ListMaskedNumbersFields]
    ) -> Pages[masking.MaskedNumber]:
        """List the numbers enrolled for masking, oldest first."""
        return self._transport.pages(_LIST_MASKED_NUMBERS, (), fields, masking.MaskedNumber)

    def enrol_masked_number(
        self, **fields: Unpack[fields_of.EnrolMaskedNumberFields]
    ) -> masking.MaskedNumber:
        """Enrol a number for masking."""
        return self._transport.item(_ENROL_MASKED_NUMBER, (), fields, masking.MaskedNumber)

    def withdraw_masked_number(
        self, phone_number_id: str, /, **fields: Unpack[fields_of.WithdrawMaskedNumberFields]
    ) -> None:
        """Withdraw a number from masking."""
        return self._transport.nothing(_WITHDRAW_MASKED_NUMBER, (phone_number_id,), fields)

    def list_masked_calls(
        self, **fields: Unpack[fields_of.ListMaskedCallsFields]
    ) -> Pages[masking.MaskedCall]:
        """List masked calls, newest first."""
        return self._transport.pages(_LIST_MASKED_CALLS, (), fields, masking.MaskedCall)

    def stats(self, **fields: Unpack[fields_of.MaskingStatsFields]) -> masking.MaskingStats:
        """Usage of masking in a window."""
        return self._transport.item(_STATS, (), fields, masking.MaskingStats)

    def billing(self) -> masking.MaskingBilling:
        """Get the balance of the wallet."""
        return self._transport.item(_BILLING, (), {}, masking.MaskingBilling)

    def get_settings(self) -> masking.MaskingSettings:
        """Get the settings of masked calls."""
        return self._transport.item(_GET_SETTINGS, (), {}, masking.MaskingSettings)

    def update_settings(
        self, **fields: Unpack[fields_of.UpdateMaskingSettingsFields]
    ) -> masking.MaskingSettings:
        """Change the settings of masked calls."""
        return self._transport.item(_UPDATE_SETTINGS, (), fields, masking.MaskingSettings)

    def test_webhook(self) -> shared.TestOutcome:
        """Send a test event to the masking webhook now."""
        return self._transport.item(_TEST_WEBHOOK, (), {}, shared.TestOutcome)

    def list_deliveries(
        self, **fields: Unpack[fields_of.ListMaskingDeliveriesFields]
    ) -> Sequence[shared.Delivery]:
        """The delivery log of the masking webhook, newest first."""
        return self._transport.items(_LIST_DELIVERIES, (), fields, shared.Delivery)

    def replay_delivery(self, delivery_id: str, /) -> shared.ReplayedOne:
        """Resend one of the events of masked calls."""
        return self._transport.item(_REPLAY_DELIVERY, (delivery_id,), {}, shared.ReplayedOne)

    def replay_failed_deliveries(
        self, **fields: Unpack[fields_of.ReplayFailedMaskingDeliveriesFields]
    ) -> shared.ReplayedAll:
        """Resend those of the events of masked calls that failed."""
        return self._transport.item(_REPLAY_FAILED_DELIVERIES, (), fields, shared.ReplayedAll)


class AsyncMaskingResource(AsyncResource):
    """Operations of `client.masking`."""

    async def start_masked_call(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.StartMaskedCallFields]
    ) -> masking.StartedMaskedCall:
        """Connect two parties who see a masked number."""
        return await self._transport.item(
            _START_MASKED_CALL, (), fields, masking.StartedMaskedCall, idempotency_key
        )

    async def get_masked_call(self, call_sid: str, /) -> masking.MaskedCall:
        """Get a masked call."""
        return await self._transport.item(_GET_MASKED_CALL, (call_sid,), {}, masking.MaskedCall)

    async def end_masked_call(self, call_sid: str, /) -> masking.MaskedCall:
        """End a masked call."""
        return await self._transport.item(_END_MASKED_CALL, (call_sid,), {}, masking.MaskedCall)

    async def create_session(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.CreateMaskingSessionFields]
    ) -> masking.Session:
        """Create a masking session."""
        return await self._transport.item(_CREATE_SESSION, (), fields, masking.Session, idempotency_key)

    def list_sessions(
        self, **fields: Unpack[fields_of.ListMaskingSessionsFields]
    ) -> AsyncPages[masking.Session]:
        """List masking sessions, newest first."""
        return self._transport.pages(_LIST_SESSIONS, (), fields, masking.Session)

    async def get_session(self, session_id: str, /) -> masking.Session:
        """Get a masking session."""
        return await self._transport.item(_GET_SESSION, (session_id,), {}, masking.Session)

    async def change_session(
        self, session_id: str, /, **fields: Unpack[fields_of.ChangeMaskingSessionFields]
    ) -> masking.Session:
        """Change the expiry and call limit of a masking session."""
        return await self._transport.item(_CHANGE_SESSION, (session_id,), fields, masking.Session)

    async def close_session(self, session_id: str, /) -> masking.Session:
        """Close a masking session."""
        return await self._transport.item(_CLOSE_SESSION, (session_id,), {}, masking.Session)

    def list_masked_numbers(
        self, **fields: Unpack[fields_of.ListMaskedNumbersFields]
    ) -> AsyncPages[masking.MaskedNumber]:
        """List the numbers enrolled for masking, oldest first."""
        return self._transport.pages(_LIST_MASKED_NUMBERS, (), fields, masking.MaskedNumber)

    async def enrol_masked_number(
        self, **fields: Unpack[fields_of.EnrolMaskedNumberFields]
    ) -> masking.MaskedNumber:
        """Enrol a number for masking."""
        return await self._transport.item(_ENROL_MASKED_NUMBER, (), fields, masking.MaskedNumber)

    async def withdraw_masked_number(
        self, phone_number_id: str, /, **fields: Unpack[fields_of.WithdrawMaskedNumberFields]
    ) -> None:
        """Withdraw a number from masking."""
        return await self._transport.nothing(_WITHDRAW_MASKED_NUMBER, (phone_number_id,), fields)

    def list_masked_calls(
        self, **fields: Unpack[fields_of.ListMaskedCallsFields]
    ) -> AsyncPages[masking.MaskedCall]:
        """List masked calls, newest first."""
        return self._transport.pages(_LIST_MASKED_CALLS, (), fields, masking.MaskedCall)

    async def stats(self, **fields: Unpack[fields_of.MaskingStatsFields]) -> masking.MaskingStats:
        """Usage of masking in a window."""
        return await self._transport.item(_STATS, (), fields, masking.MaskingStats)

    async def billing(self) -> masking.MaskingBilling:
        """Get the balance of the wallet."""
        return await self._transport.item(_BILLING, (), {}, masking.MaskingBilling)

    async def get_settings(self) -> masking.MaskingSettings:
        """Get the settings of masked calls."""
        return await self._transport.item(_GET_SETTINGS, (), {}, masking.MaskingSettings)

    async def update_settings(
        self, **fields: Unpack[fields_of.UpdateMaskingSettingsFields]
    ) -> masking.MaskingSettings:
        """Change the settings of masked calls."""
        return await self._transport.item(_UPDATE_SETTINGS, (), fields, masking.MaskingSettings)

    async def test_webhook(self) -> shared.TestOutcome:
        """Send a test event to the masking webhook now."""
        return await self._transport.item(_TEST_WEBHOOK, (), {}, shared.TestOutcome)

    async def list_deliveries(
        self, **fields: Unpack[fields_of.ListMaskingDeliveriesFields]
    ) -> Sequence[shared.Delivery]:
        """The delivery log of the masking webhook, newest first."""
        return await self._transport.items(_LIST_DELIVERIES, (), fields, shared.Delivery)

    async def replay_delivery(self, delivery_id: str, /) -> shared.ReplayedOne:
        """Resend one of the events of masked calls."""
        return await self._transport.item(_REPLAY_DELIVERY, (delivery_id,), {}, shared.ReplayedOne)

    async def replay_failed_deliveries(
        self, **fields: Unpack[fields_of.ReplayFailedMaskingDeliveriesFields]
    ) -> shared.ReplayedAll:
        """Resend those of the events of masked calls that failed."""
        return await self._transport.item(_REPLAY_FAILED_DELIVERIES, (), fields, shared.ReplayedAll)
