"""Recordings after their calls: who gets a link, how long files are kept, and deletions that are cut off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.recording import recording_file, recording_url
from callcontrol.calls.records.store import calls as call_rows
from callcontrol.database.tables.recordings import recording_removals
from callcontrol.errors import Conflict, Forbidden, NodeUnreachable, NotFound
from callcontrol.models import Account, CallRecord, CallStatus, RecordingStatus
from callcontrol.recordings.aio.service import RecordingService, RecordingSettings
from callcontrol.recordings.store import recordings
from callcontrol.secrets.aio import SecretBox
from tests.support.domain import new_record
from tests.support.query_plans import plans
from tests.support.secrets import SECRETS

NOW = datetime(2026, 8, 1, 12, 30, tzinfo=UTC)
DAY = timedelta(days=1)
AUDIO = b"RIFF" + bytes(96)


class Shelf:
    """The recordings of one server on a database, and calls that have some."""

    def __init__(
        self, storage: Storage, folder: Path, *, node: str = "local", kept_days: int = 180, **more: Any
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.storage, self.folder, self.node = storage, folder, node
        self.kept_days, self.now, self.more = kept_days, NOW, more
        self.service = self.started()

    def started(self, secrets: SecretBox = SECRETS) -> RecordingService:
        """The service of a server that has just been started."""
        storage = self.storage
        settings = RecordingSettings(
            folder=self.folder,
            node=self.node,
            kept_days=self.kept_days,
            now=lambda: self.now,
            **self.more,
        )
        return RecordingService(
            storage.database,
            storage.writer,
            storage.calls,
            storage.messages,
            storage.directory,
            secrets,
            settings,
        )

    def file(self, call_sid: str) -> Path:
        return self.folder / recording_file(call_sid)

    def put(self, call_sid: str, age: timedelta = timedelta()) -> Path:
        """A file of that age."""
        path = self.file(call_sid)
        path.write_bytes(AUDIO)
        written = (self.now - age).timestamp()
        os.utime(path, (written, written))
        return path

    async def call(
        self,
        account: Account,
        age: timedelta = timedelta(),
        *,
        status: RecordingStatus | None = "completed",
        up: bool = False,
        product: str | None = None,
    ) -> CallRecord:
        """A call that ended so long ago, with its recording."""
        record = new_record(account.account_sid, created_at=NOW - age, product=product)
        calls = self.storage.calls
        await calls.insert(record)
        record.node = self.node
        if not up:
            record.status, record.ended_at = CallStatus.COMPLETED, NOW - age
        record.recording_status = status
        if status == "completed":
            record.recording_path = str(self.put(record.call_sid))
            record.recording_url = recording_url(record.call_sid)
        calls.update(record)
        await calls.flush()
        return record

    async def stored(self, call: CallRecord) -> CallRecord:
        return await self.storage.calls.get(call.account_sid, call.call_sid)

    async def kept(self, calls: Sequence[CallRecord]) -> list[bool]:
        """Of which calls the recording is there; file and record must agree."""
        found = []
        for call in calls:
            stored = await self.stored(call)
            there = self.file(call.call_sid).exists()
            assert (stored.recording_path is not None) is there
            assert (stored.recording_url is not None) is there
            assert (stored.recording_status == "deleted") is not there
            found.append(there)
        return found

    async def removals(self) -> int:
        def count(connection: Any) -> int:
            return connection.scalar(sa.select(sa.func.count()).select_from(recording_removals)) or 0

        return await self.storage.database.read(count)


@pytest.fixture
def shelf(storage: Storage, tmp_path: Path) -> Shelf:
    return Shelf(storage, tmp_path / "recordings")


def query_of(link: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(link).query))


async def test_a_link_speaks_for_its_account_until_it_is_over(shelf: Shelf, account: Account) -> None:
    call = await shelf.call(account)
    link = await shelf.service.link(account.account_sid, call.call_sid)
    principal = await shelf.service.admit(call.call_sid, query_of(link))
    assert (principal.account_sid, principal.scopes) == (account.account_sid, frozenset({"calls.read"}))
    path = await shelf.service.file(principal.account_sid, call.call_sid)
    assert isinstance(path, Path) and await asyncio.to_thread(path.read_bytes) == AUDIO
    shelf.now = NOW + timedelta(hours=1)
    with pytest.raises(Forbidden):
        await shelf.service.admit(call.call_sid, query_of(link))


async def test_nothing_tells_why_a_link_does_not_open(shelf: Shelf, account: Account) -> None:
    call, bare = await shelf.call(account), await shelf.call(account, status=None)
    link = query_of(await shelf.service.link(account.account_sid, call.call_sid))
    forged = {**link, "signature": "0" * 64}
    refused = [
        (call.call_sid, forged),
        (call.call_sid, {**link, "expires": str(int(link["expires"]) + 1)}),
        (call.call_sid, {**link, "expires": "1"}),
        (call.call_sid, {}),
        (bare.call_sid, link),
        (new_id(), link),
        (new_id(), forged),
    ]
    answers = set()
    for call_sid, query in refused:
        with pytest.raises(Forbidden) as refusal:
            await shelf.service.admit(call_sid, query)
        answers.add((refusal.value.message, str(refusal.value.details)))
    assert len(answers) == 1, answers


async def test_a_link_opens_on_every_server_with_the_key_and_on_no_other(
    shelf: Shelf, account: Account
) -> None:
    call = await shelf.call(account)
    query = query_of(await shelf.service.link(account.account_sid, call.call_sid))
    other = Shelf(shelf.storage, shelf.folder, node="other")
    assert (await other.service.admit(call.call_sid, query)).account_sid == account.account_sid
    assert await other.service.file(account.account_sid, call.call_sid) == shelf.file(call.call_sid)
    with pytest.raises(Forbidden):
        await other.started(SecretBox([b"x" * 32])).admit(call.call_sid, query)


async def test_a_link_of_an_account_that_was_closed_opens_nothing(shelf: Shelf, account: Account) -> None:
    call = await shelf.call(account)
    query = query_of(await shelf.service.link(account.account_sid, call.call_sid))
    await shelf.storage.accounts.update(account.account_sid, {"is_active": False})
    with pytest.raises(Forbidden):
        await shelf.service.admit(call.call_sid, query)


async def test_only_the_account_gets_links(shelf: Shelf, storage: Storage, account: Account) -> None:
    other, _ = await storage.accounts.create("Other")
    call = await shelf.call(account)
    with pytest.raises(Forbidden):
        await shelf.service.link(other.account_sid, call.call_sid)
    with pytest.raises(NotFound):
        await shelf.service.link(account.account_sid, new_id())


@pytest.mark.parametrize("status", [None, "in-progress", "paused", "failed", "deleted"])
async def test_there_is_no_link_to_what_is_not_there(
    shelf: Shelf, account: Account, status: RecordingStatus | None
) -> None:
    call = await shelf.call(account, status=status, product="masking")
    for wanted in (
        shelf.service.link(account.account_sid, call.call_sid),
        shelf.service.file(account.account_sid, call.call_sid),
    ):
        with pytest.raises(NotFound):
            await wanted


async def test_a_recording_is_found_where_its_folder_was_moved_to(
    shelf: Shelf, account: Account, tmp_path: Path
) -> None:
    call = await shelf.call(account)
    shelf.folder.rename(tmp_path / "moved")
    moved = Shelf(shelf.storage, tmp_path / "moved")
    found = await moved.service.file(account.account_sid, call.call_sid)
    assert found == moved.file(call.call_sid)
    await moved.service.delete(account.account_sid, call.call_sid)
    assert not found.exists()


async def test_what_is_on_the_disk_of_another_server_is_not_found_here(
    shelf: Shelf, account: Account, tmp_path: Path
) -> None:
    call = await shelf.call(account)
    shelf.folder.rename(tmp_path / "elsewhere")
    other = Shelf(shelf.storage, tmp_path / "own disk", node="other")
    assert await other.service.link(account.account_sid, call.call_sid), "it opens on the server that has it"
    is_shared = shelf.storage.database.shared is not None
    with pytest.raises(NodeUnreachable if is_shared else NotFound, match="is on the disk"):
        await other.service.file(account.account_sid, call.call_sid)
    with pytest.raises(NotFound, match="no longer kept"):
        await shelf.service.link(account.account_sid, call.call_sid)


# --- how long -----------------------------------------------------------------------------------------------


async def test_recordings_go_when_they_have_been_kept_for_long_enough(shelf: Shelf, account: Account) -> None:
    calls = [await shelf.call(account, age) for age in (DAY, 179 * DAY, 180 * DAY, 181 * DAY, 999 * DAY)]
    assert await shelf.service.sweep() == 2
    assert await shelf.kept(calls) == [True, True, True, False, False]
    assert await shelf.service.sweep() == 0
    assert await shelf.removals() == 0
    stored = await shelf.stored(calls[4])
    assert (stored.status, stored.to) == (CallStatus.COMPLETED, calls[4].to), "the call itself is kept"


async def test_an_account_may_have_a_time_of_its_own(
    shelf: Shelf, storage: Storage, account: Account
) -> None:
    lasting, _ = await storage.accounts.create("For ever")
    brief, _ = await storage.accounts.create("Brief")
    await storage.accounts.update(lasting.account_sid, {"recording_retention_days": 0})
    await storage.accounts.update(brief.account_sid, {"recording_retention_days": 1})
    calls = [await shelf.call(owner, 200 * DAY) for owner in (lasting, brief, account)]
    calls.append(await shelf.call(brief, 2 * DAY))
    assert await shelf.service.sweep() == 3
    assert await shelf.kept(calls) == [True, False, False, False]
    assert (await storage.accounts.get(brief.account_sid)).recording_retention_days == 1


async def test_a_server_may_keep_everything_but_what_an_account_wants_gone(
    storage: Storage, account: Account, tmp_path: Path
) -> None:
    shelf = Shelf(storage, tmp_path / "recordings", kept_days=0)
    brief, _ = await storage.accounts.create("Brief")
    await storage.accounts.update(brief.account_sid, {"recording_retention_days": 30})
    calls = [await shelf.call(owner, 3000 * DAY) for owner in (account, brief)]
    orphan = shelf.put(new_id(), 3000 * DAY)
    assert await shelf.service.sweep() == 1
    assert await shelf.kept(calls) == [True, False]
    assert orphan.exists()


async def test_calls_that_are_up_or_whose_recording_is_not_complete_are_left_alone(
    shelf: Shelf, account: Account
) -> None:
    calls = [
        await shelf.call(account, 400 * DAY, up=True),
        await shelf.call(account, 400 * DAY, status="in-progress"),
        await shelf.call(account, 400 * DAY, up=True, status="in-progress"),
    ]
    for call in calls:
        shelf.put(call.call_sid, 400 * DAY)
    assert await shelf.service.sweep() == 0
    assert all(shelf.file(call.call_sid).exists() for call in calls)


async def test_more_than_one_step_holds_goes_in_one_sweep(
    shelf: Shelf, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callcontrol.recordings.aio.service._STEP", 3)
    calls = [await shelf.call(account, 200 * DAY) for _ in range(10)]
    assert await shelf.service.sweep() == 10
    assert not any(await shelf.kept(calls))


# --- what can be cut off ------------------------------------------------------------------------------------


async def test_a_file_whose_deletion_was_cut_off_goes_after_the_restart(
    shelf: Shelf, account: Account
) -> None:
    call = await shelf.call(account, DAY)
    # Killed between the transaction that takes the recording from its call and the deletion of its file.
    await shelf.storage.writer.commit(lambda connection: recordings.discard(connection, call.call_sid))
    assert (await shelf.stored(call)).recording_status == "deleted"
    assert shelf.file(call.call_sid).exists()
    assert await shelf.started().sweep() == 1
    assert await shelf.kept([call]) == [False]
    assert await shelf.removals() == 0


async def test_a_file_that_is_gone_already_is_no_error(shelf: Shelf, account: Account) -> None:
    call = await shelf.call(account, 200 * DAY)
    shelf.file(call.call_sid).unlink()
    assert await shelf.service.sweep() == 1
    assert await shelf.kept([call]) == [False]


async def test_a_file_that_cannot_be_deleted_is_tried_again_and_holds_up_no_other(
    shelf: Shelf, account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    calls = sorted([await shelf.call(account, 200 * DAY) for _ in range(3)], key=lambda call: call.call_sid)
    stuck = shelf.file(calls[0].call_sid)
    stuck.unlink()
    stuck.mkdir()
    assert await shelf.service.sweep() == 2
    assert any("cannot be deleted" in message and calls[0].call_sid in message for message in caplog.messages)
    assert (await shelf.stored(calls[0])).recording_url is None, "nobody gets it"
    assert await shelf.removals() == 1
    stuck.rmdir()
    stuck.write_bytes(AUDIO)
    assert await shelf.service.sweep() == 1
    assert not any(await shelf.kept(calls))


async def test_each_server_deletes_what_is_on_its_own_disk(
    shelf: Shelf, account: Account, tmp_path: Path
) -> None:
    other = Shelf(shelf.storage, tmp_path / "other disk", node="other")
    call = await shelf.call(account, 200 * DAY)
    assert await other.service.sweep() == 0, "the other one takes the recording from the call"
    assert (await shelf.stored(call)).recording_status == "deleted"
    assert await shelf.service.sweep() == 1, "and this one deletes the file"
    assert await shelf.kept([call]) == [False]


async def test_two_servers_may_sweep_at_the_same_time(shelf: Shelf, account: Account, tmp_path: Path) -> None:
    other = Shelf(shelf.storage, shelf.folder, node="other")
    calls = [await shelf.call(account, 200 * DAY) for _ in range(20)]
    await asyncio.gather(*(one.service.sweep() for one in (shelf, other, shelf, other)))
    await shelf.service.sweep()
    assert not any(await shelf.kept(calls))
    assert await shelf.removals() == 0


async def test_files_of_no_call_go_after_a_week(shelf: Shelf, account: Account) -> None:
    kept = await shelf.call(account)
    failed = await shelf.call(account, 30 * DAY, status="failed")
    old, fresh = shelf.put(new_id(), 8 * DAY), shelf.put(new_id(), 6 * DAY)
    broken, other = shelf.put(failed.call_sid, 30 * DAY), shelf.folder / "hold-music.wav"
    other.write_bytes(AUDIO)
    link = shelf.file(new_id())
    link.symlink_to(other)
    os.utime(link, (1, 1), follow_symlinks=False)
    assert await shelf.service.sweep() == 3
    assert [path.exists() for path in (shelf.file(kept.call_sid), fresh, other)] == [True, True, True]
    assert not (old.exists() or broken.exists() or link.is_symlink())


async def test_files_of_no_call_are_looked_for_once_a_day(shelf: Shelf) -> None:
    assert await shelf.service.sweep() == 0
    orphan = shelf.put(new_id(), 8 * DAY)
    shelf.now = NOW + timedelta(hours=23)
    assert await shelf.service.sweep() == 0
    shelf.now = NOW + DAY
    assert await shelf.service.sweep() == 1
    assert not orphan.exists()


async def test_a_folder_that_is_not_there_is_no_error(shelf: Shelf) -> None:
    shelf.folder.rmdir()
    assert await shelf.service.sweep() == 0


# --- deleted by the customer --------------------------------------------------------------------------------


async def test_a_customer_deletes_a_recording(shelf: Shelf, account: Account) -> None:
    call, other = await shelf.call(account), await shelf.call(account)
    query = query_of(await shelf.service.link(account.account_sid, call.call_sid))
    await shelf.service.delete(account.account_sid, call.call_sid)
    assert await shelf.kept([call, other]) == [False, True]
    assert await shelf.removals() == 0
    principal = await shelf.service.admit(call.call_sid, query)
    with pytest.raises(NotFound):
        await shelf.service.file(principal.account_sid, call.call_sid)
    with pytest.raises(NotFound):
        await shelf.service.delete(account.account_sid, call.call_sid)


async def test_what_is_in_use_is_not_deleted(shelf: Shelf, storage: Storage, account: Account) -> None:
    stranger, _ = await storage.accounts.create("Stranger")
    call = await shelf.call(account)
    with pytest.raises(Forbidden):
        await shelf.service.delete(stranger.account_sid, call.call_sid)
    in_use: list[dict[str, Any]] = [
        {"status": "in-progress", "up": True},
        {"status": "paused", "up": True},
        {"status": "completed", "up": True},
        {"status": "in-progress"},
    ]
    for state in in_use:
        busy = await shelf.call(account, **state)
        with pytest.raises(Conflict):
            await shelf.service.delete(account.account_sid, busy.call_sid)
        assert (await shelf.stored(busy)).recording_status == state["status"]
    assert await shelf.kept([call]) == [True]


async def test_what_the_call_still_had_to_write_does_not_bring_its_recording_back(
    shelf: Shelf, account: Account
) -> None:
    call = await shelf.call(account)
    shelf.storage.calls.update(call)
    await shelf.service.delete(account.account_sid, call.call_sid)
    await shelf.storage.calls.flush()
    assert await shelf.kept([call]) == [False]


async def test_a_missing_recording_is_asked_of_the_node_of_the_call(shelf: Shelf, account: Account) -> None:
    """Its row may be older than the file; of a dead node the row says all there is."""
    living = {"local"}

    async def is_another(node: str) -> bool:
        return node in living

    other = Shelf(shelf.storage, shelf.folder, node="other", is_another=is_another)
    call = await shelf.call(account, status="in-progress")
    for wanted in (other.service.link, other.service.file, other.service.delete):
        with pytest.raises(NodeUnreachable, match="any recording of it, is on the node local"):
            await wanted(account.account_sid, call.call_sid)
    living.clear()
    for wanted in (other.service.link, other.service.file):
        with pytest.raises(NotFound, match="is unfinished"):
            await wanted(account.account_sid, call.call_sid)
    with pytest.raises(Conflict, match="not complete yet"):
        await other.service.delete(account.account_sid, call.call_sid)


async def delete_elsewhere(other: Shelf, call: CallRecord) -> None:
    """Delete a recording through a server that does not see it; one that shares a database says so."""
    deletion = other.service.delete(call.account_sid, call.call_sid)
    if other.storage.database.shared is None:
        await deletion
        return
    with pytest.raises(NodeUnreachable, match="no longer be opened; its file is on the node local"):
        await deletion


@pytest.mark.parametrize("by", ["sweep", "request"])
async def test_a_recording_on_another_disk_is_out_of_reach_at_once_and_deleted_there(
    shelf: Shelf, account: Account, tmp_path: Path, by: str
) -> None:
    call = await shelf.call(account)
    shelf.folder.rename(tmp_path / "elsewhere")
    other = Shelf(shelf.storage, tmp_path / "own disk", node="other")
    for _ in range(2):
        await delete_elsewhere(other, call)
        assert (await shelf.stored(call)).recording_url is None
        assert await shelf.removals() == 1
    (tmp_path / "elsewhere").rename(shelf.folder)
    assert shelf.file(call.call_sid).exists()
    for server in (shelf, other):
        with pytest.raises(NotFound, match="no recording with this identifier"):
            await server.service.file(account.account_sid, call.call_sid)
    if by == "sweep":
        assert await shelf.service.sweep() == 1
    else:
        await shelf.service.delete(account.account_sid, call.call_sid)
    assert await shelf.kept([call]) == [False]
    assert await shelf.removals() == 0
    with pytest.raises(NotFound, match="no recording with this identifier"):
        await other.service.delete(account.account_sid, call.call_sid)


# --- what a killed process leaves behind --------------------------------------------------------------------


async def test_recordings_that_a_killed_process_left_incomplete_are_found(
    shelf: Shelf, account: Account
) -> None:
    cut = [await shelf.call(account, status=status) for status in ("in-progress", "paused")]
    others: list[dict[str, Any]] = [{"status": "failed"}, {"status": None}, {"up": True}, {}]
    for state in others:
        await shelf.call(account, **state)
    await shelf.call(account, up=True, status="in-progress")
    found = await shelf.storage.calls.cut_recordings()
    assert {call.call_sid for call in found} == {call.call_sid for call in cut}
    assert sorted(found, key=lambda call: call.call_sid) == sorted(cut, key=lambda call: call.call_sid)


@pytest.mark.parametrize(
    ("index", "ask"),
    [
        ("ix_calls_recorded", lambda connection: recordings.due(connection, NOW, 180)),
        ("ix_calls_recorded", lambda connection: recordings.discard_older(connection, "a", NOW, 10)),
        ("ix_calls_recording", lambda connection: call_rows.with_pending_recording(connection, "local")),
    ],
)
async def test_nothing_is_searched_through_for_what_is_due(
    tmp_path: Path, index: str, ask: Callable[[Connection], object]
) -> None:
    storage = await Storage.open(f"sqlite:///{tmp_path / 'plans.db'}", deliver=False)
    found = await storage.database.read(plans(ask))
    assert any(index in step for step in found), found
    assert not any("SCAN calls" in step for step in found), found
    await storage.close()
