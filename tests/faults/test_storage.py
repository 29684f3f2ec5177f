"""Calls while the SQLite database under them fails, each time in another way."""

from __future__ import annotations

import contextlib
import errno
import logging
import sqlite3
import wave
from pathlib import Path

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import ServiceUnavailable
from tests.faults.hosts import Fault, Host
from tests.faults.shim import Shim
from tests.support.domain import new_record
from tests.support.secrets import SECRETS
from tests.support.sqlite import sqlite_url
from tests.support.waiting import until

_DATABASE = "trunkline.db"


def _file(host: Host) -> Path:
    return host.server.data_dir / _DATABASE


@pytest.mark.long(reason="waits out the lock of a database")
def test_a_database_that_another_process_has_locked(host: Host) -> None:
    """While another process holds SQLite's lock calls go on, new ones get 503, and nothing is lost."""
    other = sqlite3.connect(_file(host), isolation_level=None)
    fault = Fault(
        "SQLite locked",
        lambda: other.execute("BEGIN IMMEDIATE"),
        lambda: other.execute("ROLLBACK"),
        lacks="database",
        told_once="the database has been failing",
    )
    host.survives(fault)
    other.close()


def test_a_disk_that_is_full(host: Host, shim: Shim) -> None:
    """While the disk of the database is full calls go on, new ones get 503, and nothing is lost."""
    full = Fault(
        "disk full",
        lambda: shim.set(_DATABASE, errno=errno.ENOSPC),
        shim.set,
        lacks="database",
        told_once="the database has been failing",
    )
    host.survives(full)


def test_a_disk_that_is_read_only(host: Host, shim: Shim) -> None:
    """While the database's file system is read-only calls go on, new ones get 503, and nothing is lost."""
    fault = Fault(
        "disk read-only", lambda: shim.set(_DATABASE, errno=errno.EROFS), shim.set, lacks="database"
    )
    host.survives(fault)


def test_a_disk_that_is_slow(host: Host, shim: Shim) -> None:
    """On a disk that takes two seconds for every commit calls go on and are recorded, and nothing is lost."""
    slow = Fault(
        "disk slow", lambda: shim.set(_DATABASE, write_ms=100, sync_ms=2000), shim.set, answers=False
    )
    host.survives(slow)


def test_a_database_whose_file_is_moved_away(host: Host) -> None:
    """While the database's file is gone nothing is written to another file, and nothing is lost."""
    here, away = _file(host), _file(host).with_name("moved-away.db")
    fault = Fault(
        "SQLite file moved",
        lambda: here.rename(away),
        lambda: away.rename(here),
        lacks="database",
    )
    host.survives(fault)


def test_a_disk_that_fills_up_during_recordings(host: Host, shim: Shim) -> None:
    """When the disk of the recordings is full calls go on, and what is left of a recording can be played."""
    stage = host.stage
    folder = host.server.data_dir / "recordings"
    stage.load(20.0, {"outbound": 1}, calls=2, record=True)
    stage.wait(lambda: len(list(folder.glob("*.wav"))) == 2, "nothing is recorded")
    files = list(folder.glob("*.wav"))
    stage.wait(lambda: all(file.stat().st_size > 20_000 for file in files), "recordings do not grow")
    host.survives(Fault("recordings full", lambda: shim.set("/recordings/", errno=errno.ENOSPC), shim.set))
    for file in files:
        shown = stage.api("GET", f"/v1/Accounts/{stage.account.account_sid}/Calls/{file.stem}")
        assert shown["recording_status"] == "failed" and not shown["recording_url"], shown
        link = host.server.request("GET", f"/v1/calls/{file.stem}/recording", stage.account.api_key)
        assert link.status == 404, link
        with wave.open(str(file), "rb") as audio:
            told_bytes = audio.getnframes() * audio.getnchannels() * audio.getsampwidth()
            assert 0 < told_bytes == len(audio.readframes(audio.getnframes()))


async def test_a_page_that_is_corrupt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A corrupt page is logged once and retried slowly; once it is whole, writing goes on by itself."""
    path = tmp_path / _DATABASE
    url = await sqlite_url(path)
    place, whole = _root_page(path, "calls")
    _put(path, place, b"\xff" * len(whole))
    caplog.set_level(logging.ERROR)
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    try:
        account, _ = await storage.accounts.create(name="Test", balance_paise=1000, kyc=True)
        record = new_record(account.account_sid)
        with pytest.raises(ServiceUnavailable):
            await storage.calls.insert(record)
        storage.calls.update(record)
        await until(lambda: storage.writer.failing())
        alarms = [line.getMessage() for line in caplog.records if "has been failing" in line.getMessage()]
        assert len(alarms) == 1 and "malformed" in alarms[0], alarms
        assert storage.writer.stats.failures < 100, "it is tried again without a pause"
        _put(path, place, whole)
        await until(lambda: not storage.writer.failing())
        await storage.calls.insert(record)
        assert await storage.calls.find(record.call_sid) is not None
    finally:
        await storage.close()


def _root_page(path: Path, table: str) -> tuple[int, bytes]:
    """Return the offset of a table's first page in the file, and its content."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    place = size * (number - 1)
    return place, path.read_bytes()[place : place + size]


def _put(path: Path, place: int, page: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(page)
