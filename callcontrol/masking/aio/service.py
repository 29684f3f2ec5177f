"""Number masking: calls between two parties who see a number of the account instead of each other's."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.requests import CallMetadata
from callcontrol.database.aio.database import Database
from callcontrol.errors import (
    FieldError,
    Forbidden,
    InvalidNumbers,
    NotFound,
    ValidationFailed,
)
from callcontrol.masking.aio.settings import MaskingSettingsService
from callcontrol.masking.calls import PRODUCT, masked_details
from callcontrol.masking.parties import masked_errors, mobile_of, number_errors
from callcontrol.masking.steps.connect import masked_party, masked_plan
from callcontrol.masking.store import numbers as masking_numbers
from callcontrol.models import CallRecord
from callcontrol.models.parties import PhoneTarget
from callcontrol.numbers.binding import no_registered_number
from callcontrol.routing.targets import check_allowed

_NO_SUCH_CALL: Final = "There is no such masked call."


class MaskingService:
    """Places, shows and ends masked calls; calls of other products are treated as missing."""

    def __init__(
        self,
        database: Database,
        calls: CallControl,
        settings: MaskingSettingsService,
        allowed_countries: Collection[str],
    ) -> None:
        self._database = database
        self._calls = calls
        self._settings = settings
        self._allowed_countries = allowed_countries

    async def start_call(
        self, account_sid: str, party_a: str, party_b: str, max_duration_s: int | None = None
    ) -> CallRecord:
        """
        Call one party, and the other when the first has answered; returns before either is called.

        Parties are Indian mobile numbers in any writing. ``max_duration_s`` counts from the answer of the
        second.

        Raises:
            InvalidNumbers: A party is not an Indian mobile number or is a masked one, or both are the same.
            NumberNotOwned: The account has no registered number to show.
            ValidationFailed: Names every party that no carrier serves.
            DomainError: Any error of ``CallControl.place``; no call was recorded.
        """
        errors = number_errors(party_a, party_b)
        caller, target = mobile_of(party_a), mobile_of(party_b)
        if errors or caller is None or target is None:
            raise InvalidNumbers(errors)
        for number in (caller, target):
            check_allowed(PhoneTarget(number), self._allowed_countries)
        masked_number, enrolled = await self._masked_numbers(account_sid)
        errors = masked_errors(caller, target, {masked_number, *enrolled})
        if errors:
            raise InvalidNumbers(errors)
        await self._check_routes(account_sid, masked_number, {"party_a": caller, "party_b": target})
        settings = await self._settings.of(account_sid)
        plan = masked_plan(
            caller, target, masked_number, max_duration_s=max_duration_s, record=settings.record_calls
        )
        details = masked_details(
            direction="click_to_call",
            caller_number=caller,
            target_number=target,
            masked_number=masked_number,
            max_duration_s=max_duration_s,
        )
        details["subscription_id"] = settings.subscription_id
        metadata = CallMetadata(product=PRODUCT, details=details, status_webhook_url=settings.events_to)
        return await self._calls.place(account_sid, plan, metadata)

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """
        One masked call of the account, in its newest state.

        Raises:
            NotFound: The call is unknown, another account's, or not masked.
        """
        try:
            record = await self._calls.get_call(account_sid, call_sid)
        except (Forbidden, NotFound):
            # One text for both, so that it does not tell if another account has the call.
            raise NotFound(_NO_SUCH_CALL) from None
        if record.product != PRODUCT:
            raise NotFound(_NO_SUCH_CALL)
        return record

    async def end_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """
        End a masked call; the record returned may still show it as active.

        Raises:
            NotFound: The masked call does not exist on the account.
            CallEnded: It has ended already.
        """
        await self.get_call(account_sid, call_sid)
        return await self._calls.hangup_call(account_sid, call_sid)

    async def _check_routes(self, account_sid: str, masked_number: str, parties: Mapping[str, str]) -> None:
        """
        Check that both parties have a route before the first one rings; ``parties`` are numbers by field.

        Raises:
            ValidationFailed: Names every party that no carrier serves.
            DomainError: Any other error of ``CallControl.check_route``.
        """
        errors: list[FieldError] = []
        for field, number in parties.items():
            try:
                await self._calls.check_route(account_sid, masked_party(number, masked_number), field)
            except ValidationFailed as refusal:
                errors += refusal.errors
        if errors:
            raise ValidationFailed(errors)

    async def _masked_numbers(self, account_sid: str) -> tuple[str, Collection[str]]:
        """The number that is shown, and the enrolled numbers."""
        found, enrolled = await self._database.look_up(partial(_masked_numbers, account_sid))
        if found is None:
            raise no_registered_number("to show")
        return found, enrolled


def _masked_numbers(account_sid: str, connection: Connection) -> tuple[str | None, Collection[str]]:
    enrolled = masking_numbers.pool(connection, account_sid)
    return masking_numbers.caller_id(connection, account_sid, enrolled), enrolled
