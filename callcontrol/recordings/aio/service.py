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

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.calls.recording import PENDING, recording_file
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import Conflict, Forbidden, NotFound
from callcontrol.models import Account, CallRecord, Message, Principal
from callcontrol.recordings.links import Digests, RecordingLinks, may_open
from callcontrol.recordings.retention import KeptRecording, is_left_over
from callcontrol.recordings.store import messages as message_rows
from callcontrol.recordings.store import recordings
from callcontrol.recordings.store.recordings import Removal

log = logging.getLogger(__name__)

_FILE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.wav")
_LEFT_OVERS_EVERY: Final = timedelta(days=1)
# Small steps with a rest between them: calls are waiting to be written as well.
_STEP: Final = 100
_PAUSE_S: Final = 0.02
_NOBODY: Final = "nobody"


class CallRecords(Protocol):
    """The records of calls; see ``callcontrol.calls.records.aio.CallStore``."""

    async def get(self, account_sid: str, call_sid: str) -> CallRecord:
        """One call of the account."""

    async def find(self, call_sid: str) -> CallRecord | None:
        """One call, of whichever account."""

    async def flush(self) -> None:
        """Wait until everything handed over before this is durable."""


class Messages(Protocol):
    """Messages that parties left; see ``callcontrol.recordings.aio.messages.MessageStore``."""

    async def find(self, message_sid: str) -> Message | None:
        """One message, of whichever account."""

    async def of_call(self, call_sid: str) -> Sequence[Message]:
        """The messages of a call that can be had."""

    async def flush(self) -> None:
        """Wait until everything that was added before this is durable."""


class Accounts(Protocol):
    """Accounts in memory; see ``callcontrol.directory.directory.Directory``."""

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
    """
    The recordings of calls once they are complete, and the messages that were left on them.

    A file is named after its call or its message, and its link is made and judged in the same way.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        calls: CallRecords,
        messages: Messages,
        accounts: Accounts,
        digests: Digests,
        settings: RecordingSettings,
    ) -> None:
        self._database = database
        self._writer = writer
        self._calls = calls
        self._messages = messages
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
        await self._checked(_of_call(record))
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
        await self._checked(_of_call(record))
        return self._links.link(record.account_sid, record.call_sid, self._now())

    async def messages(self, account_sid: str, call_sid: str) -> list[tuple[Message, str]]:
        """
        The messages that were left on a call of the account, the oldest first, each with a link to it.

        Raises:
            NotFound: There is no such call.
            Forbidden: It is another account's.
        """
        await self._calls.get(account_sid, call_sid)
        left = await self._messages.of_call(call_sid)
        return [(item, self._links.link(account_sid, item.message_sid, self._now())) for item in left]

    async def delete_message(self, account_sid: str, call_sid: str, message_sid: str) -> None:
        """
        Delete a message for ever; nobody gets it from the moment this returns, as with ``delete``.

        Raises:
            NotFound: There is no such call, or no such message on it.
            Forbidden: The call is another account's.
        """
        await self._calls.get(account_sid, call_sid)
        message = await self._messages.find(message_sid)
        if message is None or message.call_sid != call_sid:
            raise _no_message()
        await self._messages.flush()
        if not await self._writer.commit(lambda connection: message_rows.discard(connection, message_sid)):
            raise _no_message()
        await self._remove_one(message_sid)
        log.info("a message was deleted over the API", extra={"call_sid": call_sid})

    async def admit(self, call_sid: str, query: Mapping[str, str]) -> Principal:
        """
        Who a link speaks for: its account, for this recording alone.

        Raises:
            Forbidden: It was not made by us for this call, was changed, or is over. Which of these it is,
                and whether there is such a call, is not told.
        """
        now = self._now()
        record = await self._find(call_sid) if may_open(query, now) else None
        # The digest of a call that is not there is made and compared as well, so that it takes as long.
        owner = record.account_sid if record is not None else _NOBODY
        opens = self._links.opens(owner, call_sid, query, now)
        account = self._accounts.account(owner)
        if not opens or account is None or not account.is_active:
            raise Forbidden("This link to a recording is not valid, or no longer; ask for a new one.")
        return Principal(owner, f"link {call_sid}", "platform", frozenset({"calls.read"}))

    async def file(self, account_sid: str, call_sid: str) -> Path:
        """
        The file with the recording of a call of the account, or with a message that was left on one.

        Raises:
            NotFound: There is no such call, or no recording of it (yet, or any more), or it is on the disk
                of another server.
            Forbidden: It is another account's.
        """
        found = await self._find(call_sid)
        if found is None:
            raise NotFound("There is no such call.")
        if found.account_sid != account_sid:
            raise Forbidden("The call belongs to another account.")
        path = await self._checked(found)
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
        await self._remove_one(record.call_sid)
        log.info("the recording was deleted over the API", extra={"call_sid": record.call_sid})

    async def _remove_one(self, sid: str) -> None:
        found = await self._database.read(lambda connection: recordings.removal(connection, sid))
        # Of another server's files only those are deleted that are seen here; the others it does itself.
        if found is not None and (found.node == self._node or await asyncio.to_thread(self._seen, found)):
            await self._remove([found])

    async def _find(self, sid: str) -> "_Recorded | None":
        """What is known of a file by the name of its call or its message."""
        record = await self._calls.find(sid)
        if record is not None:
            return _of_call(record)
        message = await self._messages.find(sid)
        return _of_message(message) if message is not None else None

    async def _checked(self, recorded: "_Recorded") -> Path | None:
        """The file of a recording; None when it is on the disk of another server."""
        if recorded.path is None:
            raise _none()
        path = await asyncio.to_thread(self._locate, recorded.sid, recorded.path)
        if path is None and recorded.node == self._node:
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
        for discard in (recordings.discard_older, message_rows.discard_older):
            step = partial(discard, account_sid=account_sid, before=before, limit=_STEP)
            while True:
                if await self._writer.commit(step) < _STEP:
                    break
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
            calls = await self._database.read(partial(_kept, [name.removesuffix(".wav") for name in step]))
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


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A file with what was recorded, which bears the name of its call or its message."""

    sid: str
    account_sid: str
    node: str | None
    path: str | None


def _of_call(record: CallRecord) -> _Recorded:
    path = record.recording_path if record.recording_url is not None else None
    return _Recorded(record.call_sid, record.account_sid, record.node, path)


def _of_message(message: Message) -> _Recorded:
    return _Recorded(message.message_sid, message.account_sid, message.node, message.path)


def _kept(sids: Sequence[str], connection: Connection) -> Mapping[str, KeptRecording]:
    return {**recordings.kept(connection, sids), **message_rows.kept(connection, sids)}


def _no_message() -> NotFound:
    return NotFound("The call has no such message, or it was deleted.")


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
