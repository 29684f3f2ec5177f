"""What becomes of calls while the SQLite database under them fails, each time in another way."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.hosts import Fault, Host
from tests.faults.shim import Shim

_DATABASE = "trunkline.db"


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shim]:
    made = Shim(tmp_path_factory.mktemp("shim"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, shim: Shim) -> Iterator[Host]:
    with Host(tmp_path_factory.mktemp("storage"), shim.environment) as running:
        yield running


def _file(host: Host) -> Path:
    return host.server.data_dir / _DATABASE


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
    """While the database's file is gone nothing is written where nobody finds it, and nothing is lost."""
    here, away = _file(host), _file(host).with_name("moved-away.db")
    fault = Fault(
        "SQLite file moved",
        lambda: here.rename(away),
        lambda: away.rename(here),
        lacks="database",
    )
    host.survives(fault)
