"""
Uploads of finished recordings to the object store.

The file of a recording stays on disk until its object is stored and its row names the object; then
``call.recording.ready`` is published. What waits for the store is in a table, so it outlives the process.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from sqlalchemy.engine import Connection

from callcontrol.aio.tasks import ended, woken
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.product import Products
from callcontrol.calls.recording import READY, recording_file
from callcontrol.calls.records.store.transactions import EventOutbox
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.pending import Pending
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import DomainError
from callcontrol.models import CallRecord, PublishedEvent
from callcontrol.recordings.objects import ObjectStore, StoreFailed
from callcontrol.recordings.store import uploads as rows
from callcontrol.recordings.uploads import Upload, UploadSchedule

log = logging.getLogger(__name__)

AT_ONCE: Final = 4
"""Uploads at the same time."""

_END_S: Final = 3.0
_LAST_S: Final = 5.0


class UploadQueue:
    """
    Rows of uploads, written with the state of their calls.

    Attach it before the calls, as each row must be durable when the end of its recording is.
    """

    def __init__(self, database: Database, writer: Writer, *, node: str = "local") -> None:
        self.node = node
        self._database = database
        self._writer = writer
        self._held = Pending[Upload](lambda kept: partial(rows.insert, uploads=kept), _log_lost)
        writer.attach(self._held)

    def add(self, upload: Upload) -> None:
        """Write the row of an upload soon; never waits, and never fails while the database is down."""
        self._held.put(upload.sid, upload)
        self._writer.schedule_flush(self._held, "soon")

    async def waiting(self) -> list[Upload]:
        """Uploads of this node that are not done."""
        return await self._database.read(partial(rows.of_node, node=self.node))

    async def take_over(self, node: str) -> None:
        """Move the uploads of another node, whose files are on this disk, to this one."""
        await self._writer.commit(partial(rows.move, node=node, to=self.node))


class Uploader:
    """
    Uploads the recordings of this node, each when its call is over, until the store has taken it.

    Attributes:
        stored: Number of recordings uploaded.
        failures: Number of attempts that failed.
    """

    def __init__(
        self,
        queue: UploadQueue,
        writer: Writer,
        outbox: EventOutbox,
        products: Products,
        store: ObjectStore,
        folder: Path,
    ) -> None:
        self._queue = queue
        self._writer = writer
        self._outbox = outbox
        self._products = products
        self._store = store
        self._folder = folder
        self._schedule = UploadSchedule()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._one_ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.stored = 0
        self.failures = 0

    @property
    def waiting(self) -> int:
        """Number of recordings that are not uploaded."""
        return len(self._schedule)

    # --- for calls ------------------------------------------------------------------------------------------

    def add(self, record: CallRecord, details: Mapping[str, Any], *, over: bool = False) -> None:
        """
        Upload the recording of a call, or the message that ``details`` name, once the call is over.

        ``call.recording.ready`` follows with ``details``. Never waits, and never fails.
        """
        sid = details.get("message_sid", record.call_sid)
        upload = Upload(sid, record.call_sid, self._queue.node, self._store.folder.url(sid), details)
        self._queue.add(upload)
        self._schedule.hold(upload)
        if over:
            self.call_over(record.call_sid)

    def call_over(self, call_sid: str) -> None:
        """Begin the uploads of a call whose record changes no more."""
        if self._schedule.call_over(call_sid, asyncio.get_running_loop().time()):
            self._wake.set()

    # --- for the process ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin with the uploads that a previous process left."""
        await self._resume()
        self._task = asyncio.create_task(self._run(), name="recording-uploads")

    async def take_over(self, node: str) -> None:
        """Continue the uploads of a process in the same data directory that has ended."""
        await self._queue.take_over(node)
        await self._resume()

    async def close(self) -> None:
        """
        Stop, after some seconds for recordings that have just ended: the machine may not come back.

        Uploads that are not done are repeated by the next process.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                while self._task is not None and self._schedule.untried:
                    self._one_ended.clear()
                    await self._one_ended.wait()
        await ended(self._task)
        self._task = None
        for task in list(self._running.values()):
            await ended(task)

    async def forget(self, sid: str) -> bool:
        """
        End the upload of a recording that was removed; no object of it is written after this.

        Returns False while the store has not answered an upload that runs.
        """
        self._schedule.drop(sid)
        running = self._running.get(sid)
        if running is not None:
            await asyncio.wait([running], timeout=_END_S)
        return running is None or running.done()

    async def _resume(self) -> None:
        # Those known already may be of calls that are up, whose records this process still writes.
        left = [upload for upload in await self._queue.waiting() if upload.sid not in self._schedule]
        for upload in left:
            self._schedule.hold(upload)
        for upload in left:
            self.call_over(upload.call_sid)
        if self._schedule:
            log.info("%d recordings are to be uploaded to %s", len(self._schedule), self._store.folder)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            for upload in self._schedule.take(loop.time(), AT_ONCE - len(self._running)):
                task = asyncio.create_task(self._upload(upload), name=f"upload {upload.sid}")
                self._running[upload.sid] = task
                task.add_done_callback(partial(self._ended, upload.sid))
            next_s = self._schedule.next_s() if len(self._running) < AT_ONCE else None
            await woken(self._wake, None if next_s is None else max(0.0, next_s - loop.time()))

    def _ended(self, sid: str, task: asyncio.Task[None]) -> None:
        del self._running[sid]
        self._wake.set()
        self._one_ended.set()
        if not task.cancelled() and task.exception() is not None:
            # A defect in one upload must not keep the others from being stored; its row remains.
            log.error("the upload of %s failed", sid, exc_info=task.exception())
            self._schedule.failed(sid, asyncio.get_running_loop().time())

    async def _upload(self, upload: Upload) -> None:
        now_s = asyncio.get_running_loop().time
        path = self._folder / recording_file(upload.sid)
        try:
            await self._store.put(upload.object, str(path))
            outcome = await self._settle(upload, path)
        except (StoreFailed, DomainError) as error:
            self.failures += 1
            delay_s = self._schedule.failed(upload.sid, now_s())
            log.warning("cannot upload %s: %s; again in %g s", upload.object, error, delay_s)
            return
        except FileNotFoundError:
            log.error("the recording %s is gone; it cannot be uploaded", path)
            await self._writer.commit(partial(rows.forget, sid=upload.sid))
            self._schedule.drop(upload.sid)
            return
        if outcome == "stored":
            self.stored += 1
            await asyncio.to_thread(path.unlink, missing_ok=True)
        self._schedule.done(upload.sid, now_s())

    async def _settle(self, upload: Upload, path: Path) -> Literal["stored", "removed"]:
        # The last state of the call, and the row of the upload.
        await self._writer.flush()
        publish = partial(self._publish, upload.details)
        outcome: Literal["stored", "removed"] = await self._writer.commit(
            partial(rows.settle, upload=upload, path=str(path), publish=publish)
        )
        self._outbox.committed(())
        return outcome

    def _publish(self, details: Mapping[str, Any], connection: Connection, record: CallRecord) -> None:
        policy, at = self._products.of(record), utc_now()
        made: list[PublishedEvent | None] = [
            policy.webhook_event(record, READY, details, event_id=new_id(), at=at)
        ]
        if policy.subscriber_event is not None:
            made.append(policy.subscriber_event(record, READY, details, event_id=new_id(), at=at))
        events = [event for event in made if event is not None]
        if events:
            self._outbox.publish(connection, events)


def _log_lost(lost: Mapping[str, Upload], error: Exception) -> None:
    log.error("recordings are not uploaded: %s", ", ".join(lost), exc_info=error)
