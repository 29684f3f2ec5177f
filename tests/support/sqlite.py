"""SQLite databases for tests: the schema and rows are made once, and copied for each test that wants them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.engine import Connection

from callcontrol.database.aio.database import Database
from tests.support.secrets import SECRETS

__all__ = ["sqlite_url"]

Fill = Callable[[Connection], None]

_templates: dict[Fill | None, bytes] = {}


async def sqlite_url(path: Path, fill: Fill | None = None) -> str:
    """
    The URL of a database that has the schema, and of the one that is there already if there is one.

    A new one has the rows that ``fill`` inserts.
    """
    if fill not in _templates:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "trunkline.db")
            database = await Database.open(f"sqlite+aiosqlite:///{made}", secrets=SECRETS)
            if fill is not None:
                await database.write(fill)
            await database.close()
            _templates[fill] = _content(made)
    _place(path, _templates[fill])
    return f"sqlite+aiosqlite:///{path}"


def _content(path: Path) -> bytes:
    return path.read_bytes()


def _place(path: Path, content: bytes) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
