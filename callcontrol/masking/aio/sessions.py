"""Masking sessions over the database: created, listed, changed and ended."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.pages import ListQuery, Pager
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import Conflict, DomainError, InvalidNumbers, NotFound, NumberNotOwned
from callcontrol.masking.parties import masked_errors
from callcontrol.masking.sessions import MaskingSession, SessionFilter, SessionRequest, choose
from callcontrol.masking.store import numbers as masking_numbers
from callcontrol.masking.store import sessions as rows
from callcontrol.models import Page

_SWEPT_AT_ONCE: Final = 200
# A session is written within seconds of its creation time, and stays.
_SETTLED_AFTER: Final = timedelta(minutes=5)

Change = Callable[[MaskingSession, datetime], MaskingSession]


class MaskingSessionService:
    """
    The masking sessions of accounts.

    Nothing is kept in memory: every call reads the last written state of its session, written by any process.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._pager = Pager(rows.LISTING)

    async def create(self, account_sid: str, request: SessionRequest) -> MaskingSession:
        """
        Create a session, on the requested number or on one that is free for both parties.

        Raises:
            InvalidNumbers: A party is a masked number of the account.
            NumberNotOwned: The masked number is not enrolled for masking on the account.
            Conflict: A party has an active session on the requested number; or each enrolled number has one
                with either party, or no number is enrolled.
        """
        session_id, now = new_id(), utc_now()

        def write(connection: Connection) -> MaskingSession | DomainError:
            found = _allocate(connection, account_sid, request, now)
            if isinstance(found, DomainError):
                return found
            session = MaskingSession(
                session_id=session_id,
                account_sid=account_sid,
                party_a=request.party_a,
                party_b=request.party_b,
                masked_number=found,
                expires_at=now + timedelta(seconds=request.expires_in_s),
                created_at=now,
                updated_at=now,
                call_time_limit_s=request.call_time_limit_s,
                record=request.record,
                geo_match=request.geo_match,
            )
            rows.insert(connection, session)
            return session

        return await self._writer.commit(write)

    async def get(self, account_sid: str, session_id: str) -> MaskingSession:
        """
        One session of the account.

        Raises:
            NotFound: The session does not exist on the account.
        """
        found = await self._database.look_up(lambda connection: rows.get(connection, account_sid, session_id))
        if found is None:
            raise NotFound("There is no such masking session on the account.")
        return found

    async def list(
        self, account_sid: str, query: SessionFilter, page: int, per_page: int
    ) -> Page[MaskingSession]:
        """Sessions of the account, newest first."""
        now = utc_now()
        wanted = rows.conditions(account_sid, query, now)

        def read(connection: Connection) -> Page[MaskingSession]:
            if query.status is None:
                asked = ListQuery((account_sid, query), wanted, None, None, _SETTLED_AFTER)
                return self._pager.page(connection, asked, rows.by_ids, page=page, per_page=per_page)
            # Sessions change their status as time passes, so their count is not cached.
            total = rows.count(connection, account_sid, query, now)
            places = rows.LISTING.page(
                connection, wanted, offset=(page - 1) * per_page, limit=per_page, total=total
            )
            found = rows.by_ids(connection, [place.identifier for place in places])
            return Page(found, total, page, per_page)

        return await self._database.read(read)

    async def update(self, account_sid: str, session_id: str, change: Change) -> MaskingSession:
        """
        Change an active session; the change applies to calls that begin from now on.

        Raises:
            NotFound: The session does not exist on the account.
            Conflict: The session is over.
        """
        now = utc_now()

        def write(connection: Connection) -> MaskingSession | DomainError:
            session = rows.get(connection, account_sid, session_id, lock=True)
            if session is None:
                return NotFound("There is no such masking session on the account.")
            status = session.status_at(now)
            if status != "active":
                return Conflict(f"The session is {status}; create another one.", details={"status": status})
            changed = replace(change(session, now), updated_at=now)
            rows.update(connection, changed)
            return changed

        return await self._writer.commit(write)

    async def close(self, account_sid: str, session_id: str) -> MaskingSession:
        """
        End a session; active calls go on. A session that is over already stays as it is.

        Raises:
            NotFound: The session does not exist on the account.
        """
        now = utc_now()

        def write(connection: Connection) -> MaskingSession | DomainError:
            session = rows.get(connection, account_sid, session_id, lock=True)
            if session is None:
                return NotFound("There is no such masking session on the account.")
            if session.status_at(now) != "active":
                return session
            return rows.end(connection, session, "closed", now)

        return await self._writer.commit(write)

    async def find(self, account_sid: str, caller_number: str, masked_number: str) -> MaskingSession | None:
        """The session that routes a caller of a masked number, None when there is none."""
        now = utc_now()
        return await self._database.look_up(
            lambda connection: rows.find(connection, account_sid, caller_number, masked_number, now)
        )

    async def sweep(self) -> int:
        """Mark sessions past their expiry as expired; return their number."""
        total, now = 0, utc_now()
        while True:
            ended = await self._writer.commit(partial(rows.expire_due, now=now, limit=_SWEPT_AT_ONCE))
            total += ended
            if ended < _SWEPT_AT_ONCE:
                return total


def _allocate(
    connection: Connection, account_sid: str, request: SessionRequest, now: datetime
) -> str | DomainError:
    """
    Choose the masked number of a new session.

    Writes are serialised, so that no other process takes the number in between; the index of the mappings
    ensures that in any case.
    """
    pool = masking_numbers.pool(connection, account_sid)
    if request.masked_number is not None and request.masked_number not in pool:
        return NumberNotOwned(
            "The masked number is not enrolled for masking on the account;"
            " enrol it at POST /v1/masking/numbers."
        )
    errors = masked_errors(request.party_a, request.party_b, pool)
    if errors:
        return InvalidNumbers(errors)
    parties = (request.party_a, request.party_b)
    taken = rows.taken(connection, account_sid, parties, now)
    wanted = pool if request.masked_number is None else [request.masked_number]
    found = choose(wanted, taken, request.party_a, geo_match=request.geo_match)
    if found is not None:
        return found
    if request.masked_number is not None:
        return Conflict("A party reaches somebody by this masked number already; name another or none.")
    if not pool:
        return Conflict(
            "No number of the account is enrolled for masking; enrol one at POST /v1/masking/numbers."
        )
    each = f"Each of the {len(pool)} masked numbers" if len(pool) > 1 else "The only masked number"
    return Conflict(
        f"{each} has an active session with one of the parties; enrol another number, or close a session.",
        details={"masked_numbers": len(pool)},
    )
