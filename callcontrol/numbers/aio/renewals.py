"""
Renewals: charge the next month of every due number, and suspend and release unpaid ones.

Several processes may run on one database: a number is locked while it is charged, and each of its months is
charged under its own reference.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tasks import Worker
from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.errors import DomainError
from callcontrol.models import PhoneNumber
from callcontrol.numbers.aio.service import forget
from callcontrol.numbers.renewal import RenewalTerms, Standing, after_attempt, is_due, standing
from callcontrol.numbers.store import numbers
from callcontrol.wallet.store import ledger

log = logging.getLogger(__name__)

RUN_EVERY_S: Final = 60.0
# They share a transaction, which calls' records wait for, and which has a time limit.
_AT_ONCE: Final = 20


class Renewals:
    """Renews numbers; each run also calls ``also`` with the current time."""

    def __init__(
        self,
        database: Database,
        writer: Writer,
        directory: DirectoryLoader,
        *,
        terms: RenewalTerms | None = None,
        also: Callable[[datetime], Awaitable[object]] | None = None,
    ) -> None:
        self._database = database
        self._writer = writer
        self._directory = directory
        self._terms = terms or RenewalTerms()
        self._also = also
        self._worker = Worker("number-renewals", self._step, retry_s=RUN_EVERY_S, log=log)

    async def start(self) -> None:
        """Start to run: now, then every minute."""
        self._worker.start()

    async def close(self) -> None:
        """Stop running."""
        await self._worker.close()

    async def run(self, now: datetime) -> int:
        """
        Charge all numbers due at ``now``, each until it is paid or refused; returns the number changed.

        Raises:
            ServiceUnavailable: The database is failing; charges already made stay.
        """
        changed = 0
        last: tuple[datetime, str] | None = None
        while due := await self._database.read(partial(numbers.due, now=now, after=last, limit=_AT_ONCE)):
            changed += sum(await asyncio.gather(*(self._renew(number, now) for number in due)))
            assert due[-1].billing is not None
            last = due[-1].billing.next_at, due[-1].phone_number_id
        if changed:
            await self._directory.refresh()
        return changed

    async def _renew(self, number: PhoneNumber, now: datetime) -> bool:
        """Charge the due months of a number; returns True if anything changed."""
        changed = False
        while True:
            renewed = await self._writer.commit(
                lambda connection: _charge_month(connection, number.phone_number_id, now, self._terms)
            )
            if renewed is None:
                return changed
            changed = True
            if renewed.status != "active":
                log.warning(
                    "the number %s is %s: its renewal is not paid",
                    renewed.number,
                    renewed.status,
                    extra={"account_sid": renewed.account_sid},
                )
            if standing(renewed) is not Standing.PAID or not is_due(renewed, now):
                return True

    async def _step(self) -> float:
        now = utc_now()
        await self.run(now)
        if self._also is not None:
            await self._also(now)
        return RUN_EVERY_S


def _charge_month(
    connection: Connection, phone_number_id: str, now: datetime, terms: RenewalTerms
) -> PhoneNumber | None:
    """Charge one month of a number if it is due; None if nothing changed."""
    number = numbers.get(connection, phone_number_id, lock=True)
    if number is None or number.billing is None or not is_due(number, now):
        return None
    month = number.billing.paid_months + 1
    paid = number.monthly_cost_paise == 0 or ledger.charge(
        connection,
        number.account_sid,
        number.monthly_cost_paise,
        now,
        kind="number_renewal",
        reference=f"number_renewal:{phone_number_id}:{month}",
        note=number.number,
    )
    changed = after_attempt(number, charged=not isinstance(paid, DomainError), now=now, terms=terms)
    if changed is number:
        return None
    if changed.status == "released":
        forget(connection, number, now)
    else:
        numbers.update(connection, changed)
    return changed
