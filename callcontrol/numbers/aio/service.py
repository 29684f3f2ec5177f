"""Numbers of accounts and their configuration; ``callcontrol.numbers.binding`` has the state changes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.cached_rows import CachedRows
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import (
    BindFailed,
    Conflict,
    Forbidden,
    NotFound,
    NumberNotOwned,
)
from callcontrol.models import HOW_TO_REGISTER, Binding, NumberConfiguration, Page, PhoneNumber
from callcontrol.numbers import binding as rules
from callcontrol.numbers.aio.binding_checks import binding_errors, kept_agent_errors
from callcontrol.numbers.orders import OrderEvent
from callcontrol.numbers.store import numbers, orders
from callcontrol.routing.targets import normalise_number
from callcontrol.trunks import store as trunks

Change = Callable[..., PhoneNumber]
"""Change of a number, called with ``configured`` and ``now``."""

DEFAULT_COUNTRIES: Final = ("IN",)

MAX_LISTED: Final = 100_000
"""Most numbers of one account that an operator is shown."""


class NumberService:
    """Numbers of accounts."""

    def __init__(
        self,
        database: Database,
        writer: Writer,
        directory: DirectoryLoader,
        destinations: Destinations,
        allowed_countries: Collection[str] = DEFAULT_COUNTRIES,
    ) -> None:
        self._database = database
        self._rows = CachedRows(database, writer, directory)
        self._directory = directory
        self._destinations = destinations
        self._allowed_countries = allowed_countries

    async def add(
        self, account_sid: str, number: str, friendly_name: str | None = None, *, number_type: str = "local"
    ) -> PhoneNumber:
        """
        Assign a number of the platform to an account, without a binding.

        Raises:
            ValidationFailed: The number is no telephone number.
            NotFound: There is no such account.
            Conflict: The number belongs to an account already.
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
            number_type=number_type,
        )

        def write(connection: Connection) -> None:
            if accounts.get(connection, account_sid) is None:
                raise NotFound("There is no such account.")
            if numbers.by_number(connection, number) is not None:
                raise Conflict("The number belongs to an account already.")
            numbers.insert(connection, added)

        await self._rows.change(write)
        return added

    async def list(
        self,
        account_sid: str,
        page: int = 1,
        per_page: int = 20,
        *,
        status: str | None = None,
        number_type: str | None = None,
        region: str | None = None,
    ) -> Page[PhoneNumber]:
        """
        List numbers of the account, newest first.

        ``region`` selects numbers that begin with it, a country or area code like ``+9180``, or that were
        bought in the region of that name. Released numbers are listed only with ``status`` released.
        """
        filters = {"status": status, "number_type": number_type}
        wanted = {name: value for name, value in filters.items() if value is not None}
        find = partial(numbers.page, account_sid=account_sid, filters=wanted, region=region)
        return await self._database.page(find, page, per_page)

    async def get(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        """
        Get a number of the account.

        Raises:
            NotFound: It does not exist or is not the account's.
        """
        return await self._database.look_up(
            lambda connection: _on_account(numbers.get(connection, phone_number_id), account_sid)
        )

    async def show(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        """
        Get a number of the account.

        Raises:
            NotFound: There is no such number.
            Forbidden: It is another account's.
        """
        return await self._database.look_up(
            lambda connection: _own(numbers.get(connection, phone_number_id), account_sid)
        )

    async def rename(self, account_sid: str, phone_number_id: str, friendly_name: str | None) -> PhoneNumber:
        """
        Change the label of a number; None removes it.

        Raises:
            NotFound: There is no such number.
            Forbidden: It is another account's.
        """
        now = utc_now()

        def write(connection: Connection) -> PhoneNumber:
            number = _own(numbers.get(connection, phone_number_id, lock=True), account_sid)
            changed = replace(number, friendly_name=friendly_name, updated_at=now)
            numbers.update(connection, changed)
            return changed

        return await self._rows.change(write)

    async def release(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        """
        Remove a number from its account and return its last state; prepaid months are not refunded.

        Raises:
            NotFound: There is no such number.
            Forbidden: It is another account's.
            Conflict: It has active calls, or it is on the account's own carrier.
        """
        now = utc_now()
        await self._rows.settle()

        def write(connection: Connection) -> PhoneNumber:
            number = _own(numbers.get(connection, phone_number_id, lock=True), account_sid)
            if number.carrier_sid is not None:
                raise Conflict("The number is on a carrier of your own; remove it in the trunk portal.")
            up = trunks.count_active_calls(connection, phone_number_id=phone_number_id)
            if up:
                raise Conflict(
                    "Calls on this number have not ended; wait until they have.", details={"calls": up}
                )
            forget(connection, number, now)
            return number

        return await self._rows.change(write)

    async def release_by_number(self, account_sid: str, number: str) -> PhoneNumber:
        """
        Release a number, given in any writing; see ``release``.

        Raises:
            ValidationFailed: The number is no telephone number.
            NotFound: The number is not on the account.
        """
        wanted = normalise_number(number, field="number")
        found = await self._database.look_up(lambda connection: numbers.by_number(connection, wanted))
        if found is None or found.account_sid != account_sid:
            raise NotFound("The number is not on the account.")
        return await self.release(account_sid, found.phone_number_id)

    async def every(self, account_sid: str) -> Sequence[PhoneNumber]:
        """List all numbers of an account, newest first, up to ``MAX_LISTED``."""
        found, _ = await self._database.read(
            lambda connection: numbers.page(connection, account_sid, {}, offset=0, limit=MAX_LISTED)
        )
        return found

    async def configuration(self, account_sid: str, phone_number_id: str) -> NumberConfiguration:
        """
        Get the configuration state of a number.

        Raises:
            NotFound: It does not exist or is not the account's.
        """
        return NumberConfiguration.of(await self.get(account_sid, phone_number_id))

    async def register(self, account_sid: str, phone_number_id: str) -> NumberConfiguration:
        """
        Register a number on the carrier; repeating it is safe.

        Raises:
            NotFound: It does not exist or is not the account's.
            NotConfigured: There is no platform carrier.
        """
        return await self._change(account_sid, phone_number_id, rules.register)

    async def deregister(
        self, account_sid: str, phone_number_id: str, *, force: bool = False
    ) -> NumberConfiguration:
        """
        Deregister a number; with ``force`` its inbound binding is removed too.

        Raises:
            NotFound: It does not exist or is not the account's.
            NotConfigured: There is no platform carrier.
            InboundBound: The number is still bound, and ``force`` was not given.
        """
        return await self._change(account_sid, phone_number_id, partial(rules.deregister, force=force))

    async def bind(
        self, account_sid: str, phone_number_id: str, binding: Binding, *, force: bool = False
    ) -> NumberConfiguration:
        """
        Bind inbound calls of a number to a target, registering the number if needed.

        Raises:
            BindFailed: With every wrong field of the target.
            NotFound: The number does not exist or is not the account's.
            NotConfigured: There is no platform carrier.
            InboundConflict: It is bound elsewhere, and ``force`` was not given.
        """
        filled = rules.check_binding(binding)
        unreachable = await binding_errors(
            account_sid,
            filled,
            self._directory,
            self._destinations,
            self._allowed_countries,
            phone_number_id,
        )
        if unreachable:
            raise BindFailed(unreachable)
        change = partial(rules.bind, binding=filled, force=force)
        return await self._change(account_sid, phone_number_id, change)

    async def unbind(self, account_sid: str, phone_number_id: str) -> NumberConfiguration:
        """
        Remove the binding of inbound calls; the number stays registered.

        Raises:
            NotFound: It does not exist or is not the account's.
        """
        return await self._change(
            account_sid, phone_number_id, lambda number, now, **_: rules.unbind(number, now=now)
        )

    async def owned(self, account_sid: str, number: str) -> PhoneNumber:
        """
        Get the account's number if it may be used as caller-ID.

        Raises:
            NumberNotOwned: It is not on the account, not active, or not registered on the carrier.
        """
        known = self._directory.number(number)
        if known is None or known.account_sid != account_sid or not known.registered:
            # Another process may have just assigned or registered it.
            await self._directory.refresh_after_miss()
            known = self._directory.number(number)
        if known is None or known.account_sid != account_sid:
            raise NumberNotOwned("The caller-ID is not a number of the account; use one that is.")
        if known.status != "active":
            raise NumberNotOwned(
                "The caller-ID is suspended because its renewal is not paid; top up the wallet first."
            )
        if not known.registered:
            raise NumberNotOwned(f"The caller-ID is not registered; register it first: {HOW_TO_REGISTER}.")
        return known

    async def _change(self, account_sid: str, phone_number_id: str, change: Change) -> NumberConfiguration:
        now = utc_now()

        def write(connection: Connection) -> PhoneNumber:
            number = _on_account(numbers.get(connection, phone_number_id, lock=True), account_sid)
            changed = change(number, configured=trunks.platform_carrier_exists(connection), now=now)
            if changed is not number:
                errors = kept_agent_errors(connection, account_sid, changed.binding)
                if errors:
                    raise BindFailed(errors)
                numbers.update(connection, changed)
            return changed

        return NumberConfiguration.of(await self._rows.change(write))


def _on_account(number: PhoneNumber | None, account_sid: str) -> PhoneNumber:
    if number is None or number.account_sid != account_sid:
        raise NotFound("The number does not exist or is not on the account.")
    return number


def _own(number: PhoneNumber | None, account_sid: str) -> PhoneNumber:
    if number is None:
        raise NotFound("There is no such number.")
    if number.account_sid != account_sid:
        raise Forbidden("The number belongs to another account.")
    return number


def forget(connection: Connection, number: PhoneNumber, now: datetime) -> None:
    """Remove a number from its account; a purchased one is returned to the supplier later."""
    numbers.delete(connection, number.phone_number_id, now)
    if number.order_id is not None:
        orders.advance(connection, number.order_id, OrderEvent.RELEASED, now)
