"""Finished recordings: links, files and retention."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.calls.recording import PENDING, recording_file
from callcontrol.calls.records.aio import CallStore
from callcontrol.calls.records.store import calls as call_rows
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.database.encryption import Cipher
from callcontrol.directory.directory import Directory
from callcontrol.errors import Conflict, Forbidden, NodeUnreachable, NotFound, ServiceUnavailable
from callcontrol.models import CallRecord, Message, Page, Position, Principal
from callcontrol.recordings.aio.messages import MessageStore
from callcontrol.recordings.aio.uploads import Uploader
from callcontrol.recordings.links import RecordingLinks, may_open
from callcontrol.recordings.objects import ObjectStore, StoredObject, StoreFailed, is_object
from callcontrol.recordings.retention import KeptRecording, is_orphaned
from callcontrol.recordings.store import messages as message_rows
from callcontrol.recordings.store import recordings
from callcontrol.recordings.store.recordings import Removal

log = logging.getLogger(__name__)

_FILE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.wav")
_LEFT_OVERS_EVERY: Final = timedelta(days=1)
# Small steps with pauses in between, so that writes of calls do not wait.
_STEP: Final = 100
_PAUSE_S: Final = 0.02
_NOBODY: Final = "nobody"
_STORE_RETRY_S: Final = 5.0


async def _is_nobody(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSettings:
    """
    Folder of recordings, writing node, retention, and the object store if there is one.

    Several servers on one database may share the folder, each with its own ``node``. ``kept_days`` applies
    to accounts without a retention of their own. ``is_another`` is true for another node that lives. With a
    ``store`` recordings leave the folder by ``uploads``.
    """

    folder: Path
    node: str = "local"
    kept_days: int
    store: ObjectStore | None = None
    uploads: Uploader | None = None
    now: Callable[[], datetime] = utc_now
    is_another: Callable[[str], Awaitable[bool]] = _is_nobody


class RecordingService:
    """
    Finished recordings of calls, and the voicemail messages left on them.

    A file is named after its call or its message; links to both are made and checked in the same way.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        calls: CallStore,
        messages: MessageStore,
        accounts: Directory,
        digests: Cipher,
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
        self._store = settings.store
        self._uploads = settings.uploads
        self._now = settings.now
        self._is_another = settings.is_another
        self._looked_at: datetime | None = None

    # --- for customers --------------------------------------------------------------------------------------

    async def link(self, account_sid: str, call_sid: str) -> str:
        """
        Link that opens the recording of a call of the account for an hour, without a key.

        Raises:
            NotFound: There is no such call, or it has no recording (yet, or any more).
            Forbidden: It is another account's.
            NodeUnreachable: Another node may have made it since.
        """
        record = await self._calls.get(account_sid, call_sid)
        await self._checked(await self._after_upload(_of_call(record)))
        return self._links.link(record.account_sid, record.call_sid, self._now())

    async def recorded_calls(
        self,
        account_sid: str,
        page: int,
        per_page: int,
        *,
        after: Position | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> Page[CallRecord]:
        """
        List the calls of the account whose recording can be had, the last to end first.

        With ``after`` the list continues behind that position, for any ``page``. ``start`` and ``end``, which
        is exclusive, are times of the end of a call.
        """
        await self._writer.flush_pending()

        def read(connection: Connection) -> Page[CallRecord]:
            total = recordings.count(connection, account_sid, start, end)
            found = recordings.page(
                connection,
                account_sid,
                start,
                end,
                offset=(page - 1) * per_page,
                limit=per_page + 1,
                total=total,
                after=after,
            )
            shown = found[:per_page]
            items = call_rows.by_sids(connection, [place.identifier for place in shown])
            return Page(items, total, page, per_page, shown[-1] if len(found) > per_page else None)

        return await self._database.read(read)

    async def messages(self, account_sid: str, call_sid: str) -> list[tuple[Message, str]]:
        """
        List the messages left on a call of the account, oldest first, each with a link to it.

        Raises:
            NotFound: There is no such call.
            Forbidden: It is another account's.
        """
        await self._calls.get(account_sid, call_sid)
        left = await self._messages.of_call(call_sid)
        return [(item, self._links.link(account_sid, item.message_sid, self._now())) for item in left]

    async def delete_message(self, account_sid: str, call_sid: str, message_sid: str) -> None:
        """
        Delete a message permanently; it is unavailable once this returns, as with ``delete``.

        Raises:
            NotFound: There is no such call, or no such message on it.
            Forbidden: The call is another account's.
            NodeUnreachable: It is unavailable, and its file is on the disk of another node.
            ServiceUnavailable: It is unavailable, and the object store has not deleted it yet.
        """
        record = await self._calls.get(account_sid, call_sid)
        message = await self._messages.find(message_sid)
        if message is None or message.call_sid != call_sid:
            await self._check_maker(record.node)
            raise _no_message()
        await self._messages.flush()
        found = await self._writer.commit(lambda connection: message_rows.discard(connection, message_sid))
        if not await self._remove_one(message_sid) and not found:
            raise _no_message()
        log.info("a voicemail message was deleted through the API", extra={"call_sid": call_sid})

    async def admit(self, call_sid: str, query: Mapping[str, str]) -> Principal:
        """
        Principal of a link: its account, limited to this recording.

        Raises:
            Forbidden: The link was not made by us for this call, was changed, or has expired. The error does
                not reveal which of these it is, or if the call exists.
        """
        now = self._now()
        record = await self._find(call_sid) if may_open(query, now) else None
        # For an unknown call a digest is computed and compared as well, so that it takes as long.
        owner = record.account_sid if record is not None else _NOBODY
        opens = self._links.opens(owner, call_sid, query, now)
        account = self._accounts.account(owner)
        if not opens or account is None or not account.is_active:
            raise Forbidden("This link to a recording is not valid, or no longer; ask for a new one.")
        return Principal(owner, f"link {call_sid}", "platform", frozenset({"calls.read"}))

    async def file(self, account_sid: str, call_sid: str) -> Path | StoredObject:
        """
        File or object of a recording of a call of the account, or of a message left on one.

        Raises:
            NotFound: There is no such call, or it has no recording (yet, or any more).
            Forbidden: It is another account's.
            NodeUnreachable: Another node has it on its disk, or may have made it since.
            ServiceUnavailable: The object store does not answer.
        """
        found = await self._find(call_sid)
        if found is None:
            raise NotFound("There is no such call.")
        if found.account_sid != account_sid:
            raise Forbidden("The call belongs to another account.")
        found = await self._after_upload(found)
        if found.path is not None and is_object(found.path):
            return await self._stored(found.path)
        path = await self._checked(found)
        if path is None:
            if found.node and self._database.shared is not None:
                raise NodeUnreachable(found.node, "The recording is on the disk")
            raise NotFound("The recording is on the disk of another server; ask that one.")
        return path

    async def delete(self, account_sid: str, call_sid: str) -> None:
        """
        Delete the recording of a call permanently.

        It is unavailable from then on, even if the disk or the store fails to delete it, or another node has
        the file: the node that has it tries until it is gone.

        Raises:
            NotFound: There is no such call, or no recording of it.
            Forbidden: It is another account's.
            Conflict: The call is active, or its recording is not complete yet.
            NodeUnreachable: Another node makes it, or has its file; that is marked, and it is unavailable.
            ServiceUnavailable: It is unavailable, and the object store has not deleted it yet.
        """
        record = await self._calls.get(account_sid, call_sid)
        if record.recording_status in PENDING or record.recording_path is None:
            await self._check_maker(record.node)
        if record.recording_status in PENDING and record.ended_at is not None:
            raise Conflict("The recording is not complete yet; delete it when it is.")
        if record.recording_status in PENDING:
            raise Conflict("The call is being recorded; hang it up, and delete its recording then.")
        found = 0
        if record.recording_path is not None:
            if record.ended_at is None:
                raise Conflict("The call is up; delete its recording when it has ended.")
            # Pending writes of the call must not be applied after this.
            await self._calls.flush()
            found = await self._writer.commit(lambda connection: recordings.discard(connection, call_sid))
        if not await self._remove_one(call_sid) and not found:
            raise _none()
        log.info("the recording was deleted through the API", extra={"call_sid": record.call_sid})

    async def _remove_one(self, sid: str) -> bool:
        """
        Delete a file or object that is marked for removal; False if none is, as it is gone.

        Raises:
            NodeUnreachable: It is on the disk of another node.
            ServiceUnavailable: The object store does not delete it.
        """
        found = await self._database.read(lambda connection: recordings.removal(connection, sid))
        if found is None:
            return False
        # A file of another server is deleted here only if this server sees it; else its own server does.
        if (
            found.file is None
            or found.node == self._node
            or await asyncio.to_thread(self._locate, found.call_sid, found.file) is not None
        ):
            if not await self._drop_object(found):
                raise ServiceUnavailable(
                    "The recording can no longer be opened; the object store has not deleted it yet.",
                    retry_after_s=_STORE_RETRY_S,
                )
            await self._remove([found])
        elif self._database.shared is not None:
            raise NodeUnreachable(found.node, "The recording can no longer be opened; its file is")
        return True

    async def _find(self, sid: str) -> "_Recorded | None":
        """Find a recorded file by the SID of its call or message."""
        record = await self._calls.find(sid)
        if record is not None:
            return _of_call(record)
        left = await self._messages.find(sid)
        return None if left is None else _Recorded(left.message_sid, left.account_sid, left.node, left.path)

    async def _after_upload(self, found: "_Recorded") -> "_Recorded":
        """Return the recording, read again if its file is not here: it may have been uploaded since."""
        if self._store is None or found.path is None or is_object(found.path):
            return found
        if await asyncio.to_thread(self._locate, found.sid, found.path) is not None:
            return found
        return await self._find(found.sid) or found

    async def _stored(self, url: str) -> StoredObject:
        if self._store is None:
            raise ServiceUnavailable(
                "The recording is in an object store that this server is not set up for."
            )
        try:
            found = await self._store.find(url)
        except StoreFailed as error:
            raise _store_failed(error) from error
        if found is None:
            raise NotFound("The recording is no longer kept.")
        return found

    async def read(self, found: StoredObject, start: int, end: int) -> bytes:
        """
        Read the bytes of an object from ``start`` to before ``end``.

        Raises:
            ServiceUnavailable: The object store does not answer, or the object is another by now.
        """
        assert self._store is not None, "it has found the object"
        try:
            return await self._store.read(found, start, end)
        except StoreFailed as error:
            raise _store_failed(error) from error

    async def _checked(self, recorded: "_Recorded") -> Path | None:
        """Path of a recording's file; None if it is on the disk of another server."""
        if recorded.path is None:
            await self._check_maker(recorded.node)
            raise _none()
        if is_object(recorded.path):
            return None
        path = await asyncio.to_thread(self._locate, recorded.sid, recorded.path)
        if path is None and recorded.node == self._node:
            raise NotFound("The recording is no longer kept.")
        return path

    async def _check_maker(self, node: str | None) -> None:
        """
        Check that what is missing here is not another node's, which may have made it since.

        Raises:
            NodeUnreachable: It is.
        """
        if node and await self._is_another(node):
            raise NodeUnreachable(node, "The call, with any recording of it, is")

    # --- retention ------------------------------------------------------------------------------------------

    async def sweep(self) -> int:
        """
        Delete expired recordings, and once a day files without a call; returns the number of files.

        Raises:
            ServiceUnavailable: The database is failing; the remaining files are deleted next time.
        """
        now = self._now()
        for account_sid, before in await self._database.read(
            lambda connection: recordings.due(connection, now, self._kept_days)
        ):
            await self._discard_older(account_sid, before)
        count = await self._remove_all()
        if self._looked_at is None or now - self._looked_at >= _LEFT_OVERS_EVERY:
            self._looked_at = now
            count += await self._remove_orphans(now)
        if count:
            log.info("deleted %d expired or orphaned recordings", count)
        return count

    async def _discard_older(self, account_sid: str, before: datetime) -> None:
        for discard in (recordings.discard_older, message_rows.discard_older):
            step = partial(discard, account_sid=account_sid, before=before, limit=_STEP)
            while True:
                if await self._writer.commit(step) < _STEP:
                    break
                await asyncio.sleep(_PAUSE_S)

    async def _remove_all(self) -> int:
        """Delete the files of this server that are marked for removal."""
        count, place = 0, ""
        works = True
        while True:
            read = partial(recordings.removals, node=self._node, after=place, limit=_STEP)
            listed = await self._database.read(read)
            gone = []
            for removal in listed:
                # A store that has not answered once would hold up the files for every object.
                if removal.stored is None or (works and (works := await self._drop_object(removal))):
                    gone.append(removal)
            count += await self._remove(gone)
            if len(listed) < _STEP:
                return count
            place = listed[-1].call_sid
            await asyncio.sleep(_PAUSE_S)

    async def _remove(self, listed: Sequence[Removal]) -> int:
        gone = await asyncio.to_thread(self._unlink, listed)
        if gone:
            await self._writer.commit(lambda connection: recordings.removed(connection, gone))
        return len(gone)

    async def _drop_object(self, removal: Removal) -> bool:
        """Delete the object of a removed recording, if there is one; False while the store does not."""
        if removal.stored is None:
            return True
        if self._uploads is not None and not await self._uploads.forget(removal.call_sid):
            return False
        if self._store is None:
            log.warning("%s cannot be deleted: TRUNKLINE_RECORDINGS_STORE is not set", removal.stored)
            return False
        try:
            await self._store.delete(removal.stored)
        except StoreFailed as error:
            log.warning("%s cannot be deleted: %s; trying again later", removal.stored, error)
            return False
        return True

    async def _remove_orphans(self, now: datetime) -> int:
        count = 0
        names = await asyncio.to_thread(_recorded_files, self._folder)
        remaining = iter(names)
        while step := list(islice(remaining, _STEP)):
            calls = await self._database.read(partial(_kept, [name.removesuffix(".wav") for name in step]))
            for name in step:
                path = self._folder / name
                written = await asyncio.to_thread(_written_at, path)
                call = calls.get(name.removesuffix(".wav"))
                if written is not None and is_orphaned(call, now - written, self._kept_days):
                    count += await asyncio.to_thread(_unlink_file, path)
            await asyncio.sleep(_PAUSE_S)
        return count

    # --- the disk; in threads -------------------------------------------------------------------------------

    def _places(self, call_sid: str, recorded_at: str) -> Iterator[Path]:
        """Possible paths of a recording: where it was written, or here if the folder was moved since."""
        yield Path(recorded_at)
        yield self._folder / recording_file(call_sid)

    def _locate(self, call_sid: str, recorded_at: str) -> Path | None:
        return next((path for path in self._places(call_sid, recorded_at) if path.is_file()), None)

    def _unlink(self, removals: Iterable[Removal]) -> list[str]:
        """Delete files; returns the SIDs whose file is gone, including files already missing."""
        return [
            removal.call_sid
            for removal in removals
            if removal.file is None
            or all([_unlink_file(path) for path in self._places(removal.call_sid, removal.file)])
        ]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """Recorded file, named after its call or message."""

    sid: str
    account_sid: str
    node: str | None
    path: str | None


def _of_call(record: CallRecord) -> _Recorded:
    path = record.recording_path if record.recording_url is not None else None
    return _Recorded(record.call_sid, record.account_sid, record.node, path)


def _kept(sids: Sequence[str], connection: Connection) -> Mapping[str, KeptRecording]:
    return {**recordings.kept(connection, sids), **message_rows.kept(connection, sids)}


def _store_failed(error: StoreFailed) -> ServiceUnavailable:
    log.warning("the object store does not answer: %s", error)
    message = "The object store of recordings does not answer; try again shortly."
    return ServiceUnavailable(message, retry_after_s=_STORE_RETRY_S)


def _no_message() -> NotFound:
    return NotFound("The call has no such message, or it was deleted.")


def _none() -> NotFound:
    return NotFound(
        "There is no recording with this identifier: it was not asked for, is unfinished, or was deleted."
    )


def _recorded_files(folder: Path) -> list[str]:
    """Names of the recordings in a folder."""
    with contextlib.suppress(OSError):
        return [path.name for path in folder.iterdir() if _FILE.fullmatch(path.name)]
    return []


def _written_at(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    except OSError:
        return None


def _unlink_file(path: Path) -> bool:
    """Delete a file, which may be missing; False, and a log line, if it cannot be deleted."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.error("the recording %s cannot be deleted: %s; trying again later", path, error.strerror)
        return False
    return True
