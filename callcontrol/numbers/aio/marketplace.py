"""
Number marketplace: the supplier's listing, purchases, and return of numbers to the supplier.

A purchase has four steps: its order is written; the supplier assigns the number to the order; one transaction
charges the wallet and gives the number to the account; the customer gets the response. A process that dies
between two steps leaves an open order, and ``sweep`` of any process returns its number.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database import idempotency, revisions
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.errors import (
    Conflict,
    DomainError,
    KycRequired,
    NotFound,
    NumberTaken,
    QuoteStale,
    ServiceUnavailable,
)
from callcontrol.models import Page, PhoneNumber
from callcontrol.numbers.inventory import Inventory, InventoryFailure, Listing, ListingFilter, Taking
from callcontrol.numbers.orders import (
    GIVEN_UP_AFTER,
    Order,
    OrderEvent,
    OrderState,
    Purchase,
    PurchaseRequest,
    check_purchase,
    check_quote,
    stale,
)
from callcontrol.numbers.renewal import opened
from callcontrol.numbers.store import numbers, orders
from callcontrol.wallet.store import ledger

log = logging.getLogger(__name__)

_SUPPLIER_TIMEOUT_S: Final = 10.0


class NumberMarket:
    """Sells numbers of one supplier."""

    def __init__(
        self, database: Database, writer: Writer, directory: DirectoryLoader, inventory: Inventory
    ) -> None:
        self._database = database
        self._writer = writer
        self._directory = directory
        self._inventory = inventory
        self._running: set[asyncio.Task[Purchase]] = set()

    async def close(self) -> None:
        """Wait for purchases in progress; each takes seconds."""
        if self._running:
            await asyncio.wait(self._running)

    async def search(self, wanted: ListingFilter, page: int = 1, per_page: int = 20) -> Page[Listing]:
        """
        List numbers for sale.

        Raises:
            ServiceUnavailable: The supplier does not answer.
        """
        async with _supplier():
            found, total = await self._inventory.search(wanted, offset=(page - 1) * per_page, limit=per_page)
        return Page(list(found), total, page, per_page)

    async def purchase(self, account_sid: str, request: PurchaseRequest) -> Purchase:
        """
        Buy a number with its first months; it has no binding yet.

        Once started, the purchase completes even if the requester disconnects.

        Raises:
            ValidationFailed: The request is invalid.
            KycRequired: The account has not completed KYC.
            NotFound: The number is not listed, or no longer, such as one that was just released.
            NumberTaken: The number has been sold: an account has it, or buys it now.
            QuoteStale: Its price is not the acknowledged one, or has just changed.
            InsufficientBalance: The wallet cannot pay for it.
            ServiceUnavailable: The supplier or the database does not answer; nothing was charged.
        """
        check_purchase(request)
        await self._check_account(account_sid)
        listing = await self._find(account_sid, request.live_ref)
        now = utc_now()
        order = Order(
            order_id=new_id(),
            account_sid=account_sid,
            live_ref=listing.live_ref,
            number=listing.number,
            months=request.months,
            total_paise=check_quote(request, listing),
            created_at=now,
            updated_at=now,
        )
        await self._writer.commit(lambda connection: _open(connection, order))
        task = asyncio.create_task(
            self._carry_out(order, listing, request.friendly_name), name="number-purchase"
        )
        self._running.add(task)
        task.add_done_callback(self._finished)
        return await asyncio.shield(task)

    async def sweep(self, now: datetime) -> int:
        """Return the numbers of abandoned or released orders to the supplier; returns their count."""
        given_back = 0
        for order in await self._database.read(orders.open_orders):
            if order.state is OrderState.PENDING and order.created_at + GIVEN_UP_AFTER > now:
                continue
            try:
                given_back += await self._return(order.order_id)
            except DomainError as error:
                # A number that the supplier does not accept back must not block others.
                log.warning("the number %s is not given back yet: %s", order.number, error)
        return given_back

    def _finished(self, task: asyncio.Task[Purchase]) -> None:
        self._running.discard(task)
        # The requester may be gone; reading the exception avoids the report of an unretrieved one.
        if not task.cancelled():
            task.exception()

    async def _check_account(self, account_sid: str) -> None:
        account = await self._database.look_up(lambda connection: accounts.get(connection, account_sid))
        if account is None:
            raise NotFound("There is no such account.")
        if not account.kyc_complete:
            raise KycRequired("Numbers are sold to accounts with completed KYC only; complete it first.")

    async def _find(self, account_sid: str, live_ref: str) -> Listing:
        async with _supplier():
            listing = await self._inventory.find(live_ref)
        if listing is None:
            raise NotFound("The number is not listed, or not any more; search again and pick another.")
        owner, returning = await self._database.look_up(partial(_holding, listing.number))
        if owner is not None or not (listing.is_available or returning):
            raise _taken(is_own=owner == account_sid)
        if not listing.is_available:
            raise NotFound("The number was released and is not listed now; search again and pick another.")
        return listing

    async def _carry_out(self, order: Order, listing: Listing, friendly_name: str | None) -> Purchase:
        async with _supplier():
            taking = await self._inventory.take(order.order_id, listing)
        if taking is not Taking.TAKEN:
            await self._give_up(order)
            raise await self._refusal(taking, order, listing)
        now = utc_now()
        number = PhoneNumber(
            phone_number_id=new_id(),
            account_sid=order.account_sid,
            number=listing.number,
            created_at=now,
            updated_at=now,
            friendly_name=friendly_name,
            number_type=listing.number_type,
            voice_enabled=listing.voice_enabled,
            sms_enabled=listing.sms_enabled,
            monthly_cost_paise=listing.monthly_cost_paise,
            region=listing.region,
            order_id=order.order_id,
            billing=opened(now, order.months),
        )
        # The writer runs operations in its own task, without the context of this request.
        claim = CLAIM.get()
        try:
            balance_paise = await self._writer.commit(
                lambda connection: _deliver(connection, order, number, claim),
                undo=lambda connection: _revert(connection, order, number),
            )
        except ServiceUnavailable:
            # The transaction may still commit; the sweep resolves it.
            raise
        except DomainError:
            await self._give_up(order)
            raise
        assert number.billing is not None
        log.info("%s is sold", number.number, extra={"account_sid": order.account_sid})
        # The number is sold; if the refresh fails now, the directory catches up by itself.
        with contextlib.suppress(DomainError):
            await self._directory.refresh()
        return Purchase(
            number.phone_number_id, number.number, order.total_paise, balance_paise, number.billing.next_at
        )

    async def _refusal(self, taking: Taking, order: Order, listing: Listing) -> DomainError:
        if taking is Taking.SNATCHED:
            return _taken()
        if taking is Taking.NOT_LISTED:
            return NotFound("The number is no longer listed; search again and pick another.")
        with contextlib.suppress(ServiceUnavailable):
            async with _supplier():
                found = await self._inventory.find(listing.live_ref)
            if found is not None and found.total_paise(order.months) != order.total_paise:
                return stale(found, order.months)
        return QuoteStale("The price changed during the purchase; search again for the new one.")

    async def _give_up(self, order: Order) -> None:
        """Return the number of an order to the supplier; the sweep retries failures."""
        with contextlib.suppress(DomainError):
            await self._return(order.order_id)

    async def _return(self, order_id: str) -> bool:
        now = utc_now()
        # The order is closed to delivery first, then the number is returned.
        if not await self._writer.commit(lambda connection: _give_up(connection, order_id, now)):
            return False
        async with _supplier():
            await self._inventory.give_back(order_id)
        return await self._writer.commit(
            lambda connection: orders.advance(connection, order_id, OrderEvent.RETURNED, now)
        )


@contextlib.asynccontextmanager
async def _supplier() -> AsyncIterator[None]:
    """Turn failures of the supplier into ``ServiceUnavailable``."""
    try:
        async with asyncio.timeout(_SUPPLIER_TIMEOUT_S):
            yield
    except (InventoryFailure, TimeoutError, OSError) as error:
        log.warning("the supplier of numbers failed: %s", error)
        raise ServiceUnavailable(
            "The supplier of numbers does not answer; nothing was charged, try again shortly."
        ) from error


def _taken(*, is_own: bool = False) -> NumberTaken:
    if is_own:
        return NumberTaken("The number is yours already; GET /v1/phone-numbers lists it.")
    return NumberTaken(
        "The number is bought already or being bought, possibly by you: check GET /v1/phone-numbers,"
        " or search again and pick another."
    )


def _holding(number: str, connection: Connection) -> tuple[str | None, bool]:
    """The account that has a number, None for none, and whether it is on its way back to the supplier."""
    # In this order: a purchase that is completed between the two is seen by the second.
    returning = orders.is_returning(connection, number)
    held = numbers.by_number(connection, number)
    return (None if held is None else held.account_sid), returning


def _open(connection: Connection, order: Order) -> DomainError | None:
    """Write an order if its account could pay for it now; the charge comes later."""
    if ledger.available(connection, order.account_sid) < order.total_paise:
        return ledger.short_of(order.total_paise)
    orders.insert(connection, order)
    return None


def _give_up(connection: Connection, order_id: str, now: datetime) -> bool:
    """Abandon an order unless it is delivered; returns True if its number must be returned."""
    orders.advance(connection, order_id, OrderEvent.GIVEN_UP, now)
    order = orders.get(connection, order_id)
    return order is not None and order.state is OrderState.RELEASING


async def bought(database: Database, account_sid: str, phone_number_id: str) -> Purchase | None:
    """Earlier purchase of a number, with the current balance; None if there is none."""

    def read(connection: Connection) -> Purchase | None:
        number = numbers.get(connection, phone_number_id)
        order = orders.get(connection, number.order_id) if number and number.order_id else None
        wallet = ledger.get(connection, account_sid)
        if number is None or number.billing is None or order is None or wallet is None:
            return None
        return Purchase(
            phone_number_id, number.number, order.total_paise, wallet.balance_paise, number.billing.next_at
        )

    return await database.read(read)


def _deliver(
    connection: Connection, order: Order, number: PhoneNumber, claim: tuple[str, str] | None = None
) -> int | DomainError:
    """
    Charge the wallet and give the account its number, atomically; returns the new balance.

    ``claim`` is that of the request's idempotency key, under which the purchase is made once.
    """
    found = orders.get(connection, order.order_id, lock=True)
    if found is not None and found.phone_number_id == number.phone_number_id:
        # The result of the first commit was lost; charging again only returns the balance.
        return _charge(connection, order, number)
    if ledger.available(connection, order.account_sid) < order.total_paise:
        return ledger.short_of(order.total_paise)
    # Taking the revision locks numbers against other writers until the commit, so what is read from here on
    # stays true.
    revision = revisions.next_revision(connection)
    held = numbers.by_number(connection, number.number)
    if held is not None:
        return _taken(is_own=held.account_sid == order.account_sid)
    delivered = orders.advance(
        connection,
        order.order_id,
        OrderEvent.DELIVERED,
        number.created_at,
        phone_number_id=number.phone_number_id,
    )
    if not delivered:
        return Conflict("The purchase took too long and was given up; nothing was charged, buy it again.")
    numbers.insert(connection, number, revision)
    if claim is not None:
        idempotency.note_effect(connection, claim, f"number:{number.phone_number_id}")
    answer = _charge(connection, order, number)
    assert isinstance(answer, int)  # The wallet is locked and can pay.
    return answer


def _charge(connection: Connection, order: Order, number: PhoneNumber) -> int | DomainError:
    return ledger.charge(
        connection,
        order.account_sid,
        order.total_paise,
        number.created_at,
        kind="number_purchase",
        reference=f"number_purchase:{order.order_id}",
        note=f"{number.number}, {order.months} month{'s' if order.months > 1 else ''}",
    )


def _revert(connection: Connection, order: Order, number: PhoneNumber) -> None:
    """Undo a delivery that was reported to the customer as failed."""
    now = utc_now()
    if numbers.get(connection, number.phone_number_id, lock=True) is None:
        return
    numbers.delete(connection, number.phone_number_id, now)
    orders.advance(connection, order.order_id, OrderEvent.RELEASED, now)
    ledger.top_up(
        connection,
        order.account_sid,
        order.total_paise,
        now,
        reference=f"number_refund:{order.order_id}",
        note=number.number,
        kind="number_refund",
    )
