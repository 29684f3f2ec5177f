"""Numbers of accounts that are enrolled for masking."""

from functools import partial

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.cached_rows import CachedRows
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.errors import BindFailed, Conflict, DomainError, NotFound, ValidationFailed
from callcontrol.masking.store import numbers as masking_numbers
from callcontrol.masking.store import sessions as sessions
from callcontrol.models import Binding, Page, PhoneNumber
from callcontrol.numbers import binding as rules
from callcontrol.numbers.aio.service import NumberService
from callcontrol.numbers.store import numbers


class MaskingNumberService:
    """
    Enrols numbers for masking.

    A number is enrolled by its inbound binding: its calls go to the target of the caller's session.
    """

    def __init__(
        self, database: Database, writer: Writer, directory: DirectoryLoader, wiring: NumberService
    ) -> None:
        self._database = database
        self._rows = CachedRows(database, writer, directory)
        self._wiring = wiring

    async def enrol(
        self, account_sid: str, number: str, *, language: str | None = None, force: bool = False
    ) -> PhoneNumber:
        """
        Enrol a number of the account, given in E.164; repeating it changes nothing.

        Raises:
            ValidationFailed: The language is not spoken.
            NotFound: The number is not on the account.
            NotConfigured: There is no platform carrier to register it on.
            InboundConflict: Its calls are bound elsewhere, and ``force`` was not given.
        """
        found = await self._database.look_up(lambda connection: numbers.by_number(connection, number))
        if found is None or found.account_sid != account_sid:
            raise NotFound("The number is not on the account.")
        try:
            await self._wiring.bind(
                account_sid, found.phone_number_id, Binding("masking", language=language), force=force
            )
        except BindFailed as refusal:
            raise ValidationFailed(refusal.errors) from None
        return await self._wiring.get(account_sid, found.phone_number_id)

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[PhoneNumber]:
        """The enrolled numbers of the account, oldest first: the order in which sessions use them."""
        return await self._database.page(
            partial(masking_numbers.page, account_sid=account_sid), page, per_page
        )

    async def withdraw(self, account_sid: str, phone_number_id: str, *, force: bool = False) -> None:
        """
        Withdraw a number from masking; it stays registered for outbound calls. ``force`` closes its sessions.

        Raises:
            NotFound: The number is not on the account, or not enrolled.
            Conflict: Sessions are active on it, and ``force`` was not given.
        """
        now = utc_now()

        def write(connection: Connection) -> PhoneNumber | DomainError:
            number = numbers.get(connection, phone_number_id, lock=True)
            if number is None or number.account_sid != account_sid or number.inbound_target_type != "masking":
                return NotFound("The number is not on the account, or not enrolled for masking.")
            active = sessions.active_on(connection, account_sid, number.number, now)
            if active and not force:
                return Conflict(
                    "Sessions are active on this number; close them first or pass force=true.",
                    details={"sessions": len(active)},
                )
            for session in active:
                sessions.end(connection, session, "closed", now)
            withdrawn = rules.unbind(number, now=now)
            numbers.update(connection, withdrawn)
            return withdrawn

        await self._rows.change(write)
