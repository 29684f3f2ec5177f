"""A PostgreSQL of the machine's own, started for the tests in a folder of its own, on a socket file."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # the driver comes without types
import pytest
from sqlalchemy import make_url

from callcontrol.database.aio.database import Database
from tests.faults.lengths import SOAK

_START_S = 60.0
_MEMORY = Path("/dev/shm")
_LEAST_FREE_BYTES = 2 << 30
# A test has a database for seconds: nothing is worth cleaning, and hundreds keep the cleaner busy. Tests at
# full length have theirs for hours, on the disk.
_OPTIONS = {"listen_addresses": "", "fsync": "off"}
if not SOAK:
    _OPTIONS |= {"full_page_writes": "off", "autovacuum": "off"}


def find_binaries() -> Path | None:
    """The folder with initdb and postgres, wherever the distribution has put them."""
    found = shutil.which("initdb")
    candidates = [Path(found).resolve().parent] if found else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((path for path in candidates if (path / "initdb").exists()), None)


def _unprivileged() -> dict[str, int]:
    """Arguments for subprocess: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid}
    pytest.skip("PostgreSQL refuses to run as root, and there is no user to run it as")


class PostgresServer:
    """A running server, on which every test has a database of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._template: str | None = None

    async def empty_url(self) -> str:
        """The URL of a new, empty database."""
        return self._url(await self._create("template1"))

    async def url(self) -> str:
        """The URL of a new database with the schema, a copy of one that was migrated once."""
        if self._template is None:
            template = await self._create("template1")
            database = await Database.open(self._url(template))
            await database.close()
            self._template = template
        return self._url(await self._create(self._template))

    async def drop(self, url: str) -> None:
        """Remove a database, whose files may lie in memory, and end its connections."""
        connection = await self._connect()
        try:
            await connection.execute(f"DROP DATABASE {make_url(url).database} WITH (FORCE)")
        finally:
            await connection.close()

    async def _create(self, template: str) -> str:
        name = f"t{uuid.uuid4().hex}"
        connection = await self._connect()
        try:
            # To copy files is less than half the work of a copy by blocks, the default since version 15.
            strategy = "STRATEGY file_copy" if connection.get_server_version().major >= 15 else ""
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} {strategy}")
        finally:
            await connection.close()
        return name

    async def _connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(user="trunkline", database="postgres", host=str(self.folder))

    def _url(self, name: str) -> str:
        return f"postgresql+asyncpg://trunkline@/{name}?host={self.folder}"


def _fast_folder() -> Path | None:
    """
    Folder in memory, where there is room; None for the usual one.

    A database has 300 files. On ext4 files that are created soon after thousands were deleted cost the kernel
    more than the tests take.
    """
    if SOAK or not os.access(_MEMORY, os.W_OK):
        return None
    return _MEMORY if shutil.disk_usage(_MEMORY).free >= _LEAST_FREE_BYTES else None


@contextlib.contextmanager
def running_postgres(**options: str) -> Iterator[PostgresServer]:
    """Start a server, with further settings, and stop it; skips where there is none to start."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL is installed: its initdb and postgres were not found")
    identity = _unprivileged()
    # A socket's path has to be short, so this is not below pytest's own folder.
    folder = Path(tempfile.mkdtemp(prefix="tlpg-", dir=_fast_folder()))
    try:
        if identity:
            os.chown(folder, identity["user"], identity["group"])
        data = folder / "data"
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "trunkline", "-A", "trust", "-E", "UTF8", "--no-sync"],
            check=True,
            capture_output=True,
            cwd=folder,
            timeout=_START_S,
            **identity,  # type: ignore[call-overload]
        )
        options = {**_OPTIONS, "unix_socket_directories": str(folder), **options}
        arguments = [item for name, value in options.items() for item in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", data, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                **identity,  # type: ignore[call-overload]
            )
        try:
            _wait_until_ready(binaries, folder)
            yield PostgresServer(folder)
        finally:
            # A fast shutdown: connections that a failed test left open do not hold it up.
            process.send_signal(signal.SIGINT)
            process.wait(_START_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_ready(binaries: Path, folder: Path) -> None:
    ready = subprocess.run(
        [binaries / "pg_isready", "-h", folder, "-U", "trunkline", "-d", "postgres", "-t", "1"],
        capture_output=True,
    )
    attempts = int(_START_S * 10)
    while ready.returncode != 0 and attempts:
        attempts -= 1
        subprocess.run(["sleep", "0.1"], check=True)
        ready = subprocess.run(
            [binaries / "pg_isready", "-h", folder, "-U", "trunkline", "-d", "postgres", "-t", "1"],
            capture_output=True,
        )
    if ready.returncode != 0:
        raise RuntimeError("PostgreSQL did not start:\n" + (folder / "log").read_text(errors="replace"))
