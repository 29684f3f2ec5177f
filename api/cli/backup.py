"""`trunkline backup`: a copy of the database, while the server runs."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy.engine import make_url

from api.process.config import Settings
from api.process.failures import StartFailed
from callcontrol.secrets.aio import KEY_FILE

__all__ = ["run"]

DATABASE_FILE: Final = "trunkline.db"


def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """
    Copy an SQLite database to a new folder, with its key when asked, and print JSON that lists the files.

    Raises:
        StartFailed: The folder is not empty, there is nothing to copy, or the copy is damaged.
        OSError: A file cannot be read or written.
    """
    source, target = _source(settings), Path(chosen.to)
    if target.exists() and any(target.iterdir()):
        raise StartFailed(f"{target} is not empty; name a new folder")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = _copy_database(source, target / DATABASE_FILE)
    key = settings.data_dir / KEY_FILE
    kept_key = None
    if chosen.with_key and key.exists():
        kept_key = target / KEY_FILE
        _private(kept_key)
        shutil.copyfile(key, kept_key)
    print(
        json.dumps(
            {
                "database": str(database),
                "database_bytes": database.stat().st_size,
                "secret_key": str(kept_key) if kept_key is not None else None,
            }
        )
    )
    return 0


def _source(settings: Settings) -> Path:
    url = make_url(settings.database_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        raise StartFailed("this database is not SQLite; copy it with pg_dump, see docs/operations.md")
    source = Path(url.database)
    if not source.exists():
        raise StartFailed(f"there is no database at {source}; name it by TRUNKLINE_DATA_DIR")
    return source


def _copy_database(source: Path, target: Path) -> Path:
    """Copy a consistent snapshot of a database that may be in use; a corrupt one is refused."""
    unfinished = target.with_suffix(".partial")
    _private(unfinished)
    try:
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as here:
            with closing(sqlite3.connect(unfinished)) as there:
                # In one step: a reader of the write-ahead log blocks no writer.
                here.backup(there)
                # Without a write-ahead log, the copy is one file that opens on a read-only file system.
                there.execute("PRAGMA journal_mode = DELETE")
                (found,) = there.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        raise StartFailed(f"the database {source} cannot be copied: {error}") from error
    if found != "ok":
        raise StartFailed(f"the copy is incomplete ({found}); the database {source} is damaged")
    with unfinished.open("rb") as written:
        os.fsync(written.fileno())
    return unfinished.rename(target)


def _private(path: Path) -> None:
    """Make a file that nobody else on the machine may read."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
