"""Numbers of accounts on their own carriers."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.cached_rows import CachedRows
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed
from callcontrol.models import Page, PhoneNumber
from callcontrol.numbers.store import numbers
from callcontrol.routing.targets import normalise_number, type_of
from callcontrol.trunks import store as trunks
from callcontrol.trunks.aio.service import check_application

_CHANGEABLE: Final = ("friendly_name", "carrier_sid", "app_sid")
_MAX_NUMBERS: Final = 10_000
"""Every process keeps all numbers in memory, and these cost the account nothing."""


class TrunkNumberService:
    """
    Numbers on carriers that accounts own.

    Registering a number states that its carrier lets the account use it: from then on it may be a caller-ID,
    and inbound calls from the carrier are matched to it. A number of another account is refused with
    ``Forbidden``, an unknown number or one of the platform with ``NotFound``.
    """

    def __init__(self, database: Database, writer: Writer, directory: DirectoryLoader) -> None:
        self._database = database
        self._rows = CachedRows(database, writer, directory)

    async def register(
        self,
        account_sid: str,
        number: str,
        carrier_sid: str,
        *,
        app_sid: str | None = None,
        friendly_name: str | None = None,
    ) -> PhoneNumber:
        """
        Register a number on a carrier of the account.

        Raises:
            ValidationFailed: The number is no telephone number, or the carrier or application does not exist.
            Forbidden: The carrier or the application is another account's.
            Conflict: The number is registered already, by any account, or the account is at its limit.
        """
        number = normalise_number(number, field="number")
        now = utc_now()
        added = PhoneNumber(
            phone_number_id=new_id(),
            account_sid=account_sid,
            number=number,
            created_at=now,
            updated_at=now,
            friendly_name=friendly_name,
            number_type=type_of(number),
            carrier_sid=carrier_sid,
            app_sid=app_sid,
            registered=True,
        )

        def write(connection: Connection) -> None:
            _check(connection, added)
            if numbers.by_number(connection, number) is not None:
                raise Conflict("The number is registered already; remove it where it is first.")
            if numbers.on_carriers(connection, account_sid, {}, offset=0, limit=1)[1] >= _MAX_NUMBERS:
                raise Conflict(f"The account has {_MAX_NUMBERS} numbers on its carriers; remove one first.")
            numbers.insert(connection, added)

        await self._rows.change(write)
        return added

    async def list(
        self, account_sid: str, filters: Mapping[str, str], page: int = 1, per_page: int = 20
    ) -> Page[PhoneNumber]:
        """List numbers of the account on its own carriers, newest first; filters are column values."""
        find = partial(numbers.on_carriers, account_sid=account_sid, filters=filters)
        return await self._database.page(find, page, per_page)

    async def update(self, account_sid: str, number_sid: str, values: Mapping[str, Any]) -> PhoneNumber:
        """
        Change the given fields: friendly name, carrier, application.

        Raises:
            NotFound: There is no such number.
            Forbidden: The number, the carrier or the application is another account's.
            ValidationFailed: Fields are unknown or wrong.
        """
        unknown = [FieldError(name, "is not a field") for name in values if name not in _CHANGEABLE]
        if unknown:
            raise ValidationFailed(unknown)

        def write(connection: Connection) -> PhoneNumber:
            changed = replace(_own(connection, account_sid, number_sid), **values, updated_at=utc_now())
            _check(connection, changed)
            numbers.update(connection, changed)
            return changed

        return await self._rows.change(write)

    async def remove(self, account_sid: str, number_sid: str) -> None:
        """
        Remove a number; another account may register it afterwards.

        Raises:
            NotFound: There is no such number.
            Forbidden: It is another account's.
            Conflict: The number has active calls.
        """
        now = utc_now()
        await self._rows.settle()

        def write(connection: Connection) -> None:
            _own(connection, account_sid, number_sid)
            up = trunks.count_active_calls(connection, phone_number_id=number_sid)
            if up:
                raise Conflict(
                    "Calls on this number have not ended; wait until they have.", details={"calls": up}
                )
            numbers.delete(connection, number_sid, now)

        await self._rows.change(write)


def _own(connection: Connection, account_sid: str, number_sid: str) -> PhoneNumber:
    number = numbers.get(connection, number_sid, lock=True)
    if number is not None and number.account_sid != account_sid:
        raise Forbidden("The number belongs to another account.")
    if number is None or number.carrier_sid is None:
        raise NotFound("There is no such number on a carrier of the account.")
    return number


def _check(connection: Connection, number: PhoneNumber) -> None:
    """Reject a number whose carrier or application is not valid; locks both against deletion."""
    errors: list[FieldError] = []
    try:
        trunks.CARRIERS.owned(connection, number.account_sid, number.carrier_sid or "", lock=True)
    except NotFound:
        errors.append(FieldError("carrier_sid", "there is no such carrier"))
    try:
        check_application(connection, number.account_sid, number.app_sid)
    except ValidationFailed as refusal:
        errors += refusal.errors
    if errors:
        raise ValidationFailed(errors)
