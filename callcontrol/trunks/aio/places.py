"""Places at trunks with limits, counted over all servers that share a PostgreSQL database."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy.engine import Connection

from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.pending import Pending
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import ServiceUnavailable, no_free_trunk
from callcontrol.trunks import store
from callcontrol.trunks.places import Limits, Place, sids_of

log = logging.getLogger(__name__)

_MICROS: Final = 1_000_000


class _Change(NamedTuple):
    """A leg that was counted without a check, or that has ended."""

    place: Place
    ended: bool


class TrunkPlaces:
    """
    Legs at carriers and gateways with limits; each is a row, which ends with the leg or with its node.

    The place of a call's first leg is taken with the record of the call (``CallStore.insert``), that of
    another leg by ``take``. Places that are left are written behind, with other state.
    """

    def __init__(self, database: Database, writer: Writer, node: str) -> None:
        self._database = database
        self._writer = writer
        self._node = node
        self._pending: Pending[_Change] = Pending(self._write, _lost)
        writer.attach(self._pending)

    async def check(self, choices: Sequence[Limits]) -> None:
        """
        Check that a leg has a place at one of these trunks now; it is not taken.

        Raises:
            ServiceUnavailable: All are at their limit, or the database does not answer.
        """
        if choices:
            book = await self._database.look_up(partial(store.places, choices=choices))
            waits_us = [book.wait_us(limits) for limits in choices]
            if 0 not in waits_us:
                raise no_free_trunk(min(waits_us) / _MICROS)

    async def take(self, place: Place) -> bool:
        """
        Acquire a place for a leg that is about to be dialled; False if the trunk is at its limit.

        While the database takes no writes the leg is counted later, without a check: an active call goes on.
        """
        try:
            if await self._taken(place):
                return True
            if not self.leaving([place.limits]):
                return False
            await self._writer.flush()
            return await self._taken(place)
        except ServiceUnavailable as failure:
            log.warning("a leg is not counted at its trunk yet: %s", failure.message)
            self.note(place)
            return True
        except BaseException:
            # It may be taken nevertheless, by a transaction that has begun.
            self.leave(place)
            raise

    def note(self, place: Place) -> None:
        """Count a leg without a check."""
        self._change(place, ended=False)

    def leave(self, place: Place) -> None:
        """Count a leg no more."""
        self._change(place, ended=True)

    def leaving(self, choices: Iterable[Limits]) -> bool:
        """Return True if a leg at one of these trunks has ended, and its row is not deleted yet."""
        sids = set(sids_of(choices))
        return any(
            change.ended and not sids.isdisjoint(sids_of([change.place.limits]))
            for change in self._pending.values()
        )

    async def sweep(self) -> None:
        """Delete the legs of an earlier process of this node."""
        await self._writer.commit(self.release)

    def release(self, connection: Connection, node: str | None = None) -> None:
        """Delete all legs of this node, or of another that is dead."""
        store.remove_legs_of(connection, node or self._node)

    async def _taken(self, place: Place) -> bool:
        return await self._writer.commit(partial(self._take, place), continues=True)

    def _take(self, place: Place, connection: Connection) -> bool:
        book = store.places(connection, [place.limits])
        if book.wait_us(place.limits) > 0:
            return False
        book.take(place.leg, place.limits)
        store.write_places(connection, self._node, book)
        return True

    def _change(self, place: Place, *, ended: bool) -> None:
        # A leg that only its rate limits has no row.
        if any(limit.max_legs is not None for limit in place.limits):
            self._pending.put(place.leg, _Change(place, ended))
            self._writer.schedule_flush(self._pending)

    def _write(self, changes: Sequence[_Change]) -> Operation[None]:
        return partial(self._write_all, changes)

    def _write_all(self, changes: Sequence[_Change], connection: Connection) -> None:
        store.add_legs(connection, self._node, [place for place, ended in changes if not ended])
        over = [place.leg for place, ended in changes if ended]
        if over:
            store.remove_legs(connection, over)


def _lost(changes: Mapping[str, _Change], error: Exception) -> None:
    """Handle changes that can never be stored; the rows of a node end with it."""
    log.error("the places of legs cannot be written: %s", sorted(changes), exc_info=error)
