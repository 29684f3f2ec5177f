"""Settings of SQLite's driver, before it binds values."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib import import_module


def test_the_driver_adapts_none_without_a_search() -> None:
    import_module("callcontrol.database.aio.sqlite")  # Which tells the driver.
    adapt = sqlite3.adapters[type(None), sqlite3.PrepareProtocol]
    assert adapt(None) is None
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute("SELECT ?, ?", (None, 1)).fetchall() == [(None, 1)]
