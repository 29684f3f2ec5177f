"""Recordings after their calls: links to them, their files, and how long they are kept."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from callcontrol.aio.database import Database
from callcontrol.aio.tokens import utc_now
from callcontrol.aio.writer import Writer
from callcontrol.errors import Conflict, Forbidden, NotFound
from callcontrol.models import Account, CallRecord, Principal
from callcontrol.recording_links import Digests, RecordingLinks, may_open
from callcontrol.recording_retention import is_left_over
from callcontrol.recordings import PENDING, recording_file
from callcontrol.store.repositories import recordings
from callcontrol.store.repositories.recordings import Removal

log = logging.getLogger(__name__)

_FILE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.wav")
_LEFT_OVERS_EVERY: Final = timedelta(days=1)
# Small steps with a rest between them: calls are waiting to be written as well.
_STEP: Final = 100
_PAUSE_S: Final = 0.02
_NOBODY: Final = "nobody"


class CallRecords(Protocol):
    """The records of calls; see ``callcontrol.aio.call_store.CallStore``."""

    async def get(self, account_sid: str, call_sid: str) -> CallRecord:
        """One call of the account."""

    async def find(self, call_sid: str) -> CallRecord | None:
        """One call, of whichever account."""

    async def flush(self) -> None:
        """Wait until everything handed over before this is durable."""


class Accounts(Protocol):
    """Accounts in memory; see ``callcontrol.directory.Directory``."""

    def account(self, account_sid: str) -> Account | None:
        """An account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSettings:
    """
    Where recordings are, who writes them there, and how long they are kept.

    The folder may be shared by several servers on one database, each with a ``node`` of its own.
    ``kept_days`` is for accounts that have no time of their own.
    """

    folder: Path
    node: str = "local"
    kept_days: int
    now: Callable[[], datetime] = utc_now


class RecordingService:
    """The recordings of calls once they are complete."""

    def __init__(
        self,
        database: Database,
        writer: Writer,
        calls: CallRecords,
        accounts: Accounts,
        digests: Digests,
        settings: RecordingSettings,
    ) -> None:
        self._database = database
        self._writer = writer
        self._calls = calls
        self._accounts = accounts
        self._links = RecordingLinks(digests)
        self._folder = settings.folder
        self._node = settings.node
        self._kept_days = settings.kept_days
        self._now = settings.now
        self._looked_at: datetime | None = None

    # --- for customers --------------------------------------------------------------------------------------

    async def link(self, account_sid: str, call_sid: str) -> str:
        """
        A link that opens the recording of a call of the account for an hour, without a key.

        Raises:
            NotFound: There is no such call, or no recording of it (yet, or any more).
            Forbidden: It is another account's.
        """
        record = await self._calls.get(account_sid, call_sid)
        await self._checked(record)
        return self._links.link(record.account_sid, record.call_sid, self._now())

    async def link_of_product(self, account_sid: str, call_sid: str, product: str) -> str:
        """
        The same for a call that a product placed; whatever else is there is not shown to be there.

        Raises:
            NotFound: The account has no such call of the product, or no recording of it.
        """
        record = await self._calls.find(call_sid)
        if record is None or record.account_sid != account_sid or record.product != product:
            raise NotFound("There is no such call.")
        await self._checked(record)
        return self._links.link(record.account_sid, record.call_sid, self._now())

    async def admit(self, call_sid: str, query: Mapping[str, str]) -> Principal:
        """
        Who a link speaks for: its account, for this recording alone.

        Raises:
            Forbidden: It was not made by us for this call, was changed, or is over. Which of these it is,
                and whether there is such a call, is not told.
        """
        now = self._now()
        record = await self._calls.find(call_sid) if may_open(query, now) else None
        # The digest of a call that is not there is made and compared as well, so that it takes as long.
        owner = record.account_sid if record is not None else _NOBODY
        opens = self._links.opens(owner, call_sid, query, now)
        account = self._accounts.account(owner)
        if not opens or account is None or not account.is_active:
            raise Forbidden("This link to a recording is not valid, or no longer; ask for a new one.")
        return Principal(owner, f"link {call_sid}", "platform", frozenset({"calls.read"}))

    async def file(self, account_sid: str, call_sid: str) -> Path:
        """
        The file with the recording of a call of the account.

        Raises:
            NotFound: There is no such call, or no recording of it (yet, or any more), or it is on the disk
                of another server.
            Forbidden: It is another account's.
        """
        record = await self._calls.get(account_sid, call_sid)
        path = await self._checked(record)
        if path is None:
            raise NotFound("The recording is on the disk of another server; ask that one.")
        return path

    async def delete(self, account_sid: str, call_sid: str) -> None:
        """
        Delete the recording of a call for ever.

        Nobody gets it from the moment this returns, even if the disk fails to delete the file: that is tried
        again until it is gone.

        Raises:
            NotFound: There is no such call, or no recording of it.
            Forbidden: It is another account's.
            Conflict: The call is up, or its recording is not complete yet.
        """
        record = await self._calls.get(account_sid, call_sid)
        if record.recording_status in PENDING:
            raise Conflict("The call is being recorded; hang it up, and delete its recording then.")
        if record.recording_path is None:
            raise _none()
        if record.ended_at is None:
            raise Conflict("The call is up; delete its recording when it has ended.")
        # What the call wrote last must not be written after this.
        await self._calls.flush()
        if not await self._writer.commit(lambda connection: recordings.discard(connection, record.call_sid)):
            raise _none()
        found = await self._database.read(lambda connection: recordings.removal(connection, record.call_sid))
        # Of another server's files only those are deleted that are seen here; the others it does itself.
        if found is not None and (found.node == self._node or await asyncio.to_thread(self._seen, found)):
            await self._remove([found])
        log.info("the recording of call %s was deleted over the API", record.call_sid)

    async def _checked(self, record: CallRecord) -> Path | None:
        """The file of a recording; None when it is on the disk of another server."""
        if record.recording_path is None or record.recording_url is None:
            raise _none()
        path = await asyncio.to_thread(self._locate, record.call_sid, record.recording_path)
        if path is None and record.node == self._node:
            raise NotFound("The recording is no longer kept.")
        return path

    # --- how long they are kept -----------------------------------------------------------------------------

    async def sweep(self) -> int:
        """
        Delete what has been kept for long enough, and once a day files that no call has; how many files.

        Raises:
            ServiceUnavailable: The database is failing; the rest is deleted the next time.
        """
        now = self._now()
        for account_sid, before in await self._database.read(
            lambda connection: recordings.due(connection, now, self._kept_days)
        ):
            await self._discard_older(account_sid, before)
        count = await self._remove_all()
        if self._looked_at is None or now - self._looked_at >= _LEFT_OVERS_EVERY:
            self._looked_at = now
            count += await self._remove_left_overs(now)
        if count:
            log.info("deleted %d recordings that were old or belonged to no call", count)
        return count

    async def _discard_older(self, account_sid: str, before: datetime) -> None:
        discard = partial(recordings.discard_older, account_sid=account_sid, before=before, limit=_STEP)
        while True:
            if await self._writer.commit(discard) < _STEP:
                return
            await asyncio.sleep(_PAUSE_S)

    async def _remove_all(self) -> int:
        """Delete the files of this server that are to be deleted."""
        count, place = 0, ""
        while True:
            read = partial(recordings.removals, node=self._node, after=place, limit=_STEP)
            listed = await self._database.read(read)
            count += await self._remove(listed)
            if len(listed) < _STEP:
                return count
            place = listed[-1].call_sid
            await asyncio.sleep(_PAUSE_S)

    async def _remove(self, listed: Sequence[Removal]) -> int:
        gone = await asyncio.to_thread(self._unlink, listed)
        if gone:
            await self._writer.commit(lambda connection: recordings.removed(connection, gone))
        return len(gone)

    async def _remove_left_overs(self, now: datetime) -> int:
        count = 0
        names = await asyncio.to_thread(_recorded_files, self._folder)
        remaining = iter(names)
        while step := list(islice(remaining, _STEP)):
            read = partial(recordings.kept, call_sids=[name.removesuffix(".wav") for name in step])
            calls = await self._database.read(read)
            for name in step:
                path = self._folder / name
                written = await asyncio.to_thread(_written_at, path)
                call = calls.get(name.removesuffix(".wav"))
                if written is not None and is_left_over(call, now - written, self._kept_days):
                    count += await asyncio.to_thread(_unlink_file, path)
            await asyncio.sleep(_PAUSE_S)
        return count

    # --- the disk; in threads -------------------------------------------------------------------------------

    def _places(self, call_sid: str, recorded_at: str) -> Iterator[Path]:
        """Where a recording may be: where it was written, or here, when the folder has been moved since."""
        yield Path(recorded_at)
        yield self._folder / recording_file(call_sid)

    def _locate(self, call_sid: str, recorded_at: str) -> Path | None:
        return next((path for path in self._places(call_sid, recorded_at) if path.is_file()), None)

    def _seen(self, removal: Removal) -> bool:
        return self._locate(removal.call_sid, removal.path) is not None

    def _unlink(self, removals: Iterable[Removal]) -> list[str]:
        """Delete files; the calls whose file is gone, be it that it was before."""
        return [
            removal.call_sid
            for removal in removals
            if all([_unlink_file(path) for path in self._places(removal.call_sid, removal.path)])
        ]


def _none() -> NotFound:
    return NotFound("The call has no recording; it was not asked for, is not finished yet, or was deleted.")


def _recorded_files(folder: Path) -> list[str]:
    """The names of the recordings in a folder."""
    with contextlib.suppress(OSError):
        return [path.name for path in folder.iterdir() if _FILE.fullmatch(path.name)]
    return []


def _written_at(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    except OSError:
        return None


def _unlink_file(path: Path) -> bool:
    """Delete a file that may be gone already; False when it cannot be deleted, which is logged."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.error("the recording %s cannot be deleted: %s; it is tried again", path, error.strerror)
        return False
    return True
