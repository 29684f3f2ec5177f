"""SQLite databases for tests: the schema is made once, and copied for each that wants one."""

from __future__ import annotations

import tempfile
from pathlib import Path

from callcontrol.database.aio.database import Database

__all__ = ["sqlite_url"]

_schema: list[bytes] = []


async def sqlite_url(path: Path) -> str:
    """The URL of a database that has the schema, and of the one that is there already if there is one."""
    if not _schema:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "trunkline.db")
            database = await Database.open(f"sqlite+aiosqlite:///{made}")
            await database.close()
            _schema.append(_content(made))
    _place(path, _schema[0])
    return f"sqlite+aiosqlite:///{path}"


def _content(path: Path) -> bytes:
    return path.read_bytes()


def _place(path: Path, content: bytes) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
