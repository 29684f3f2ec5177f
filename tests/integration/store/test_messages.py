"""Messages that parties left, as they are kept, found, served and deleted."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.recording import recording_file
from callcontrol.errors import Forbidden, NodeUnreachable, NotFound
from callcontrol.models import Account, CallStatus, Message
from callcontrol.recordings.aio.service import RecordingService, RecordingSettings
from tests.support.domain import new_record
from tests.support.secrets import SECRETS

DAY = timedelta(days=1)
AUDIO = b"RIFF" + bytes(96)


class Box:
    """The messages of one account, and the server that serves them."""

    def __init__(self, storage: Storage, account: Account, folder: Path, *, node: str = "local") -> None:
        folder.mkdir()
        self.storage, self.account, self.folder = storage, account, folder
        self.now: datetime = utc_now()
        self.call_sid = new_id()
        settings = RecordingSettings(folder=folder, node=node, kept_days=30, now=lambda: self.now)
        self.service = RecordingService(
            storage.database,
            storage.writer,
            storage.calls,
            storage.messages,
            storage.directory,
            SECRETS,
            settings,
        )

    async def fill(self) -> None:
        """The call on which messages are left."""
        sid = self.account.account_sid
        record = new_record(sid, "inbound", call_sid=self.call_sid, created_at=self.now)
        await self.storage.calls.insert(record)
        record.status, record.ended_at = CallStatus.COMPLETED, self.now
        self.storage.calls.update(record)
        await self.storage.calls.flush()

    def leave(self) -> str:
        """Leave a message."""
        message_sid = new_id()
        path = self.folder / recording_file(message_sid)
        path.write_bytes(AUDIO)
        self.storage.messages.add(
            Message(
                message_sid=message_sid,
                account_sid=self.account.account_sid,
                call_sid=self.call_sid,
                path=str(path),
                duration_ms=1200,
            )
        )
        return message_sid

    def there(self, message_sid: str) -> bool:
        return (self.folder / recording_file(message_sid)).exists()

    async def listed(self) -> Mapping[str, str]:
        """The links of the messages, in their order."""
        left = await self.service.messages(self.account.account_sid, self.call_sid)
        return {message.message_sid: link for message, link in left}


@pytest.fixture
async def box(storage: Storage, account: Account, tmp_path: Path) -> Box:
    made = Box(storage, account, tmp_path / "recordings")
    await made.fill()
    return made


async def test_a_message_is_found_at_once_and_after_it_was_written(box: Box) -> None:
    message_sid = box.leave()
    at_once = await box.storage.messages.find(message_sid)
    await box.storage.messages.flush()
    afterwards = await box.storage.messages.find(message_sid)
    assert at_once is not None and afterwards is not None
    # Stored moments are exact to the microsecond, as those of the clock are.
    assert at_once == afterwards
    assert (afterwards.call_sid, afterwards.duration_ms, afterwards.node) == (box.call_sid, 1200, "local")
    assert await box.storage.messages.find(new_id()) is None


async def test_they_are_listed_in_their_order_and_each_link_opens_its_own(box: Box) -> None:
    sids = [box.leave() for _ in range(3)]
    links = await box.listed()
    assert list(links) == sids
    for message_sid, link in links.items():
        query = dict(parse_qsl(urlsplit(link).query))
        principal = await box.service.admit(message_sid, query)
        path = await box.service.file(principal.account_sid, message_sid)
        assert isinstance(path, Path) and await asyncio.to_thread(path.read_bytes) == AUDIO
        with pytest.raises(Forbidden):
            await box.service.admit(next(sid for sid in sids if sid != message_sid), query)
    with pytest.raises(Forbidden):
        await box.service.file("another", sids[0])


async def test_a_deleted_message_is_gone_and_no_other(box: Box) -> None:
    first, second = box.leave(), box.leave()
    await box.service.delete_message(box.account.account_sid, box.call_sid, first)
    assert (box.there(first), box.there(second)) == (False, True)
    assert list(await box.listed()) == [second]
    with pytest.raises(NotFound):
        await box.service.file(box.account.account_sid, first)
    with pytest.raises(NotFound):
        await box.service.delete_message(box.account.account_sid, box.call_sid, first)


async def test_a_message_on_another_disk_is_gone_at_once_and_deleted_there(box: Box, tmp_path: Path) -> None:
    message_sid = box.leave()
    await box.storage.messages.flush()
    box.folder.rename(tmp_path / "elsewhere")
    other = Box(box.storage, box.account, tmp_path / "own disk", node="other")
    for _ in range(2):
        deletion = other.service.delete_message(box.account.account_sid, box.call_sid, message_sid)
        if box.storage.database.shared is None:
            await deletion
            continue
        with pytest.raises(NodeUnreachable, match="its file is on the node local"):
            await deletion
    assert await box.listed() == {}
    (tmp_path / "elsewhere").rename(box.folder)
    assert box.there(message_sid)
    await box.service.delete_message(box.account.account_sid, box.call_sid, message_sid)
    assert not box.there(message_sid)


async def test_they_are_kept_as_long_as_recordings_and_are_no_left_overs(box: Box) -> None:
    message_sid = box.leave()
    await box.storage.messages.flush()
    box.now += 29 * DAY
    assert await box.service.sweep() == 0
    assert box.there(message_sid)
    box.now += 2 * DAY
    assert await box.service.sweep() == 1
    assert not box.there(message_sid)
    assert await box.listed() == {}


async def test_a_file_without_a_message_goes_after_a_week(box: Box) -> None:
    lost = box.folder / recording_file(new_id())
    await asyncio.to_thread(lost.write_bytes, AUDIO)
    box.now += 8 * DAY
    assert await box.service.sweep() == 1
    assert not await asyncio.to_thread(lost.exists)
