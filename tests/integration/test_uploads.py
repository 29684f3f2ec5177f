"""Uploads of recordings: after the call, again while the store is away, over restarts, against deletions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.recording import recording_file, recording_url
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.recordings import recording_removals, recording_uploads
from callcontrol.errors import NotFound, ServiceUnavailable
from callcontrol.models import Account, CallRecord, CallStatus, Message
from callcontrol.recordings.aio.service import RecordingService, RecordingSettings
from callcontrol.recordings.aio.uploads import AT_ONCE, Uploader
from callcontrol.recordings.objects import StoredObject
from callcontrol.recordings.store import uploads as rows
from callcontrol.recordings.uploads import Upload
from callcontrol.webhooks.store import deliveries
from tests.support.domain import new_record
from tests.support.object_store import FakeStore
from tests.support.secrets import SECRETS
from tests.support.sqlite import sqlite_url
from tests.support.waiting import time_passes, until

AUDIO = b"RIFF" + bytes(range(256))
DETAILS = {"recording_duration_ms": 1200}
READY = "call.recording.ready"


@dataclass
class Bench:
    """A node with an object store, and calls that leave recordings."""

    storage: Storage
    account: Account
    folder: Path
    store: FakeStore = field(default_factory=FakeStore)
    age: timedelta = timedelta()

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.uploader = self.made()
        self.service = self.server()

    def made(self) -> Uploader:
        storage = self.storage
        return Uploader(storage.uploads, storage.writer, storage.outbox, PRODUCTS, self.store, self.folder)

    def server(self, *, node: str = "local", has_store: bool = True, folder: str = "") -> RecordingService:
        storage = self.storage
        settings = RecordingSettings(
            folder=self.folder / folder,
            node=node,
            kept_days=180,
            store=self.store if has_store else None,
            uploads=self.uploader if has_store and node == "local" else None,
            now=lambda: utc_now() + self.age,
        )
        return RecordingService(
            storage.database,
            storage.writer,
            storage.calls,
            storage.messages,
            storage.directory,
            SECRETS,
            settings,
        )

    async def restart(self) -> None:
        await self.uploader.close()
        self.uploader = self.made()
        self.service = self.server()
        await self.uploader.start()

    def file(self, sid: str) -> Path:
        return self.folder / recording_file(sid)

    def object(self, sid: str) -> str:
        return self.store.folder.url(sid)

    async def recorded(self, *, over: bool = True) -> CallRecord:
        """A call whose recording has just ended."""
        record = new_record(
            self.account.account_sid, created_at=utc_now(), status_webhook_url="https://shop.example/calls"
        )
        await self.storage.calls.insert(record)
        record.recording_status, record.recording_path = "completed", str(self.file(record.call_sid))
        record.recording_url = recording_url(record.call_sid)
        self.file(record.call_sid).write_bytes(AUDIO)
        self.uploader.add(record, DETAILS)
        self.storage.calls.update(record)
        if over:
            await self.end(record)
        return record

    async def end(self, record: CallRecord) -> None:
        record.status, record.ended_at = CallStatus.COMPLETED, utc_now()
        self.storage.calls.finish(record)
        self.uploader.call_over(record.call_sid)

    async def stored(self, record: CallRecord) -> CallRecord:
        return await self.storage.calls.get(record.account_sid, record.call_sid)

    async def is_stored(self, record: CallRecord) -> bool:
        """True once the row names the object and the file is gone."""
        row = await self.stored(record)
        return row.recording_path == self.object(record.call_sid) and not self.file(record.call_sid).exists()

    async def ready(self, record: CallRecord) -> list[dict[str, Any]]:
        """Events that the recording is ready."""
        told = await self.storage.database.read(partial(deliveries.of_call, call_sid=record.call_sid))
        return [json.loads(item.event.body) for item in told if item.event.event == READY]

    async def rows(self, table: sa.Table) -> int:
        counted = sa.select(sa.func.count()).select_from(table)
        return await self.storage.database.read(lambda connection: connection.scalar(counted) or 0)

    async def delete(self, record: CallRecord) -> None:
        await self.service.delete(record.account_sid, record.call_sid)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    url = await sqlite_url(tmp_path / "data" / "trunkline.db")
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    account, _ = await storage.accounts.create("Acme", balance_paise=100_000)
    made = Bench(storage, account, tmp_path / "recordings")
    await made.uploader.start()
    yield made
    await made.uploader.close()
    await storage.close()


async def test_a_recording_is_uploaded_and_then_ready(bench: Bench) -> None:
    bench.store.gate = asyncio.Event()
    record = await bench.recorded()
    await until(lambda: bench.store.running)
    await bench.storage.calls.flush()
    assert await bench.ready(record) == [] and bench.uploader.waiting == 1
    found = await bench.service.file(record.account_sid, record.call_sid)
    assert found == bench.file(record.call_sid), "it can be had meanwhile"
    bench.store.gate.set()
    await until(partial(bench.is_stored, record))
    assert bench.store.objects == {bench.object(record.call_sid): AUDIO}
    (event,) = await bench.ready(record)
    data, row = event["data"], await bench.stored(record)
    assert (data["recording_duration_ms"], data["recording_url"]) == (1200, recording_url(record.call_sid))
    assert (event["sequence"], row.sequence) == (1, 1)
    assert await bench.rows(recording_uploads) == 0
    assert (bench.uploader.waiting, bench.uploader.stored, bench.uploader.failures) == (0, 1, 0)
    stored = await bench.service.file(record.account_sid, record.call_sid)
    assert isinstance(stored, StoredObject) and stored.name == recording_file(record.call_sid)
    assert await bench.service.read(stored, 2, 6) == AUDIO[2:6]


async def test_a_recording_waits_for_the_end_of_its_call(bench: Bench) -> None:
    record = await bench.recorded(over=False)
    await time_passes(30.0)
    assert bench.store.attempts == [] and bench.uploader.waiting == 1
    await bench.end(record)
    await until(partial(bench.is_stored, record))


async def test_uploads_are_repeated_until_the_store_is_back(bench: Bench) -> None:
    bench.store.away = True
    record = await bench.recorded()
    await time_passes(200.0)
    times = bench.store.attempts
    pauses = [round(later - earlier) for earlier, later in zip(times, times[1:], strict=False)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert bench.uploader.failures == len(times) and await bench.ready(record) == []
    bench.store.away = False
    await time_passes(60.0)
    await until(partial(bench.is_stored, record))
    assert len(await bench.ready(record)) == 1


async def test_one_success_is_a_reason_to_repeat_all_others(bench: Bench) -> None:
    bench.store.away = True
    records = [await bench.recorded() for _ in range(2 * AT_ONCE)]
    await time_passes(130.0)
    bench.store.away = False
    records.append(await bench.recorded())
    began_s = asyncio.get_running_loop().time()
    for record in records:
        await until(partial(bench.is_stored, record))
    assert asyncio.get_running_loop().time() - began_s < 5.0, "of the minute that each would have waited"


async def test_some_are_uploaded_at_the_same_time(bench: Bench) -> None:
    bench.store.gate = asyncio.Event()
    records = [await bench.recorded() for _ in range(2 * AT_ONCE)]
    await until(lambda: bench.store.running == AT_ONCE)
    bench.store.gate.set()
    for record in records:
        await until(partial(bench.is_stored, record))
    assert bench.store.most_running == AT_ONCE


async def test_a_message_goes_the_same_way(bench: Bench) -> None:
    record = await bench.recorded(over=False)
    message_sid = new_id()
    path = bench.file(message_sid)
    path.write_bytes(AUDIO)
    kept = Message(
        message_sid=message_sid,
        account_sid=record.account_sid,
        call_sid=record.call_sid,
        path=str(path),
        duration_ms=900,
    )
    bench.storage.messages.add(kept)
    bench.uploader.add(record, {"message_sid": kept.message_sid, "recording_duration_ms": 900})
    await bench.end(record)
    await until(partial(bench.is_stored, record))
    await until(lambda: not path.exists())
    found = await bench.service.file(record.account_sid, kept.message_sid)
    assert isinstance(found, StoredObject) and found.url == bench.object(kept.message_sid)
    events = await bench.ready(record)
    assert sorted(event["data"].get("message_sid", "") for event in events) == ["", kept.message_sid]
    assert sorted(event["sequence"] for event in events) == [1, 2]
    await bench.service.delete_message(record.account_sid, record.call_sid, kept.message_sid)
    assert bench.store.objects.keys() == {bench.object(record.call_sid)}


async def test_a_stop_lets_the_last_uploads_end(bench: Bench) -> None:
    bench.store.gate = asyncio.Event()
    records = [await bench.recorded() for _ in range(AT_ONCE + 1)]
    stop = asyncio.create_task(bench.uploader.close())
    await until(lambda: bench.store.running == AT_ONCE)
    bench.store.gate.set()
    await stop
    for record in records:
        assert await bench.is_stored(record)


@pytest.mark.parametrize("away", [True, False])
async def test_a_stop_does_not_wait_for_a_store_without_an_answer(bench: Bench, away: bool) -> None:
    bench.store.away, bench.store.gate = away, None if away else asyncio.Event()
    record = await bench.recorded()
    await until(lambda: bench.store.attempts)
    began_s = asyncio.get_running_loop().time()
    await bench.uploader.close()
    assert asyncio.get_running_loop().time() - began_s < 6.0
    assert bench.store.objects == {} and bench.file(record.call_sid).exists()
    await bench.storage.calls.flush()
    assert await bench.rows(recording_uploads) == 1


# --- over restarts ------------------------------------------------------------------------------------------


async def test_what_waits_is_found_by_the_next_process(bench: Bench) -> None:
    bench.store.away = True
    record = await bench.recorded()
    await until(lambda: bench.store.attempts)
    await bench.storage.calls.flush()
    await bench.restart()
    assert bench.uploader.waiting == 1
    bench.store.away = False
    await until(partial(bench.is_stored, record))
    assert len(await bench.ready(record)) == 1


async def test_a_process_killed_after_an_upload_repeats_it(bench: Bench) -> None:
    await bench.uploader.close()
    record = await bench.recorded()
    await bench.storage.calls.flush()
    bench.store.objects[bench.object(record.call_sid)] = AUDIO[:10]
    await bench.restart()
    await until(partial(bench.is_stored, record))
    assert bench.store.objects == {bench.object(record.call_sid): AUDIO}
    assert len(await bench.ready(record)) == 1


async def test_the_file_that_a_killed_process_left_beside_its_object_goes(bench: Bench) -> None:
    record = await bench.recorded()
    await until(partial(bench.is_stored, record))
    bench.file(record.call_sid).write_bytes(AUDIO)
    await bench.service.sweep()
    assert not bench.file(record.call_sid).exists()
    assert bench.store.objects.keys() == {bench.object(record.call_sid)}


async def test_another_process_in_the_folder_continues(bench: Bench) -> None:
    await bench.uploader.close()
    record = await bench.recorded()
    await bench.storage.calls.flush()
    move = partial(rows.move, node="local", to="former")
    await bench.storage.writer.commit(move)
    await bench.restart()
    assert bench.uploader.waiting == 0
    await bench.uploader.take_over("former")
    await until(partial(bench.is_stored, record))


async def test_the_uploads_of_calls_that_are_up_wait_when_others_are_taken_over(bench: Bench) -> None:
    record = await bench.recorded(over=False)
    await bench.storage.calls.flush()
    await bench.uploader.take_over("former")
    await time_passes(30.0)
    assert bench.store.attempts == []
    await bench.end(record)
    await until(partial(bench.is_stored, record))


async def test_a_file_that_is_gone_is_not_waited_for(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    await bench.uploader.close()
    record = await bench.recorded()
    await bench.storage.calls.flush()
    bench.file(record.call_sid).unlink()
    await bench.restart()
    await until(lambda: bench.uploader.waiting == 0)
    assert await bench.rows(recording_uploads) == 0 and await bench.ready(record) == []
    assert any("is gone; it cannot be uploaded" in message for message in caplog.messages)


async def test_a_defect_in_one_upload_keeps_no_other_from_being_stored(bench: Bench) -> None:
    bench.store.defect = RuntimeError("unforeseen")
    first = await bench.recorded()
    await until(lambda: bench.store.attempts)
    bench.store.defect = None
    second = await bench.recorded()
    for record in (second, first):
        await until(partial(bench.is_stored, record))


# --- deletions ----------------------------------------------------------------------------------------------


async def test_a_deleted_recording_leaves_no_object(bench: Bench) -> None:
    record, other = await bench.recorded(), await bench.recorded()
    for each in (record, other):
        await until(partial(bench.is_stored, each))
    await bench.delete(record)
    assert bench.store.objects.keys() == {bench.object(other.call_sid)}
    assert await bench.rows(recording_removals) == 0
    with pytest.raises(NotFound):
        await bench.service.file(record.account_sid, record.call_sid)


async def test_every_node_deletes_objects(bench: Bench) -> None:
    record = await bench.recorded()
    await until(partial(bench.is_stored, record))
    other = bench.server(node="other", folder="own disk")
    assert isinstance(await other.file(record.account_sid, record.call_sid), StoredObject)
    await other.delete(record.account_sid, record.call_sid)
    assert bench.store.objects == {} and await bench.rows(recording_removals) == 0


async def test_while_the_store_is_away_nothing_is_opened_and_it_is_deleted_later(bench: Bench) -> None:
    record = await bench.recorded()
    await until(partial(bench.is_stored, record))
    bench.store.away = True
    with pytest.raises(ServiceUnavailable, match="does not answer") as refusal:
        await bench.service.file(record.account_sid, record.call_sid)
    assert refusal.value.retry_after_s == 5.0
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match="can no longer be opened") as refusal:
            await bench.delete(record)
        assert refusal.value.retry_after_s == 5.0
        with pytest.raises(NotFound):
            await bench.service.file(record.account_sid, record.call_sid)
    assert await bench.service.sweep() == 0
    bench.store.away = False
    assert await bench.service.sweep() == 1
    assert bench.store.objects == {} and await bench.rows(recording_removals) == 0
    with pytest.raises(NotFound):
        await bench.delete(record)


async def test_a_recording_deleted_before_its_upload_is_never_uploaded(bench: Bench) -> None:
    bench.store.away = True
    record = await bench.recorded()
    await until(lambda: bench.store.attempts)
    with pytest.raises(ServiceUnavailable):
        await bench.delete(record)
    assert bench.uploader.waiting == 0 and await bench.rows(recording_uploads) == 0
    bench.store.away = False
    await bench.delete(record)
    assert not bench.file(record.call_sid).exists()
    await time_passes(300.0)
    assert bench.store.objects == {} and await bench.ready(record) == []


async def test_a_recording_deleted_during_its_upload_leaves_no_object(bench: Bench) -> None:
    bench.store.gate = asyncio.Event()
    record = await bench.recorded()
    await until(lambda: bench.store.running)
    deletion = asyncio.create_task(bench.delete(record))
    await until(partial(bench.rows, recording_removals))
    bench.store.gate.set()
    await deletion
    assert bench.store.objects == {} and not bench.file(record.call_sid).exists()
    assert await bench.rows(recording_removals) == 0 and await bench.ready(record) == []


async def test_an_upload_that_hangs_delays_a_deletion_by_seconds_only(bench: Bench) -> None:
    bench.store.gate = asyncio.Event()
    record = await bench.recorded()
    await until(lambda: bench.store.running)
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(ServiceUnavailable, match="can no longer be opened"):
        await bench.delete(record)
    assert asyncio.get_running_loop().time() - began_s < 10.0
    bench.store.gate.set()
    await until(lambda: bench.store.objects)
    await until(lambda: bench.store.running == 0)
    await bench.delete(record)
    assert bench.store.objects == {} and not bench.file(record.call_sid).exists()


async def test_expired_objects_are_deleted_and_do_not_hold_up_files(bench: Bench) -> None:
    record = await bench.recorded()
    await until(partial(bench.is_stored, record))
    bench.store.away = True
    waiting = await bench.recorded()
    await bench.storage.calls.flush()
    without_upload = sa.delete(recording_uploads).where(recording_uploads.c.sid == waiting.call_sid)
    await bench.storage.writer.commit(lambda connection: connection.execute(without_upload).close())
    bench.age = timedelta(days=181)
    assert await bench.service.sweep() == 1, "the file; the object when the store is back"
    assert (await bench.stored(record)).recording_status == "deleted"
    assert not bench.file(waiting.call_sid).exists()
    bench.store.away = False
    assert await bench.service.sweep() == 1
    assert bench.store.objects == {}


async def test_a_server_without_a_store_says_what_it_lacks(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    record = await bench.recorded()
    await until(partial(bench.is_stored, record))
    bare = bench.server(has_store=False)
    with pytest.raises(ServiceUnavailable, match="not set up for"):
        await bare.file(record.account_sid, record.call_sid)
    with pytest.raises(ServiceUnavailable, match="can no longer be opened"):
        await bare.delete(record.account_sid, record.call_sid)
    assert any("TRUNKLINE_RECORDINGS_STORE is not set" in message for message in caplog.messages)
    assert len(bench.store.objects) == 1
    await bench.delete(record)
    assert bench.store.objects == {}


async def test_an_object_that_somebody_else_deleted_is_not_found(bench: Bench) -> None:
    record = await bench.recorded()
    await until(partial(bench.is_stored, record))
    bench.store.objects.clear()
    with pytest.raises(NotFound, match="no longer kept"):
        await bench.service.file(record.account_sid, record.call_sid)
    await bench.delete(record)


async def test_a_repeated_end_of_an_upload_changes_nothing(bench: Bench) -> None:
    """The answer to its first commit may have been lost; and a recording may be gone before the end."""
    await bench.uploader.close()
    record = await bench.recorded()
    await bench.storage.calls.flush()
    upload = Upload(record.call_sid, record.call_sid, "local", bench.object(record.call_sid), DETAILS)
    told: list[str] = []
    settle = partial(
        rows.settle,
        upload=upload,
        path=str(bench.file(record.call_sid)),
        publish=lambda _, found: told.append(found.call_sid),
    )
    commit = bench.storage.writer.commit
    assert [await commit(settle), await commit(settle)] == ["stored", "stored"]
    assert told == [record.call_sid] and await bench.rows(recording_removals) == 0
    removed = sa.update(calls).where(calls.c.call_sid == record.call_sid).values(recording_path=None)
    await commit(lambda connection: connection.execute(removed).close())
    assert [await commit(settle), await commit(settle)] == ["removed", "removed"]
    assert told == [record.call_sid] and await bench.rows(recording_removals) == 1
