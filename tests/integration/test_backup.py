"""A copy that was made while the server ran serves in its place."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import find_binaries, running_postgres
from tests.support.sandbox_process import NUMBER, calls, place_call, sandbox_process
from tests.support.server_process import Account, ServerFailed, ServerProcess

pytestmark = pytest.mark.real_time(reason="servers in processes of their own")


def wallet(server: ServerProcess, account: Account) -> Any:
    return server.request("GET", "/v1/wallet", account.api_key).data


def assert_serves(
    before: Callable[[], ServerProcess], copy: Callable[[], None], after: Callable[[], ServerProcess]
) -> None:
    """Assert that the restored server has all data of the copy, and works."""
    first = before()
    first.start()
    try:
        account = first.add_account()
        first.add_number(account, NUMBER)
        call = place_call(first, account)
        secret = first.command("accounts", "webhook-secret", "--account", account.account_sid)
        money = wallet(first, account)
        copy()
        place_call(first, account)
    finally:
        first.stop()
    second = after()
    second.start()
    try:
        assert calls(second, account) == [call]
        assert wallet(second, account) == money
        assert second.command("accounts", "webhook-secret", "--account", account.account_sid) == secret
        place_call(second, account)
    finally:
        second.stop()


def test_a_copy_of_sqlite_serves(tmp_path: Path) -> None:
    """The output of `trunkline backup` beside a running server is whole, opens with its key, and serves."""
    kept, server = tmp_path / "kept", sandbox_process(tmp_path / "data")

    def copy() -> None:
        told = server.command("backup", "--to", str(kept), "--with-key")
        assert Path(told["database"]).stat().st_size == told["database_bytes"] > 0
        assert {path.name: path.stat().st_mode & 0o777 for path in kept.iterdir()} == {
            "trunkline.db": 0o600,
            "secret.key": 0o600,
        }
        assert server.command("backup", "--to", str(tmp_path / "keyless"))["secret_key"] is None
        assert [path.name for path in (tmp_path / "keyless").iterdir()] == ["trunkline.db"]
        with pytest.raises(ServerFailed, match="ended with 1"):
            server.command("backup", "--to", str(kept))

    def restored() -> ServerProcess:
        shutil.copytree(kept, tmp_path / "restored")
        return sandbox_process(tmp_path / "restored")

    assert_serves(lambda: server, copy, restored)


@pytest.mark.long(reason="dumps and restores a database of PostgreSQL")
def test_a_dump_of_postgresql_serves(tmp_path: Path) -> None:
    """A dump by pg_dump beside a running server serves in another database, with the same key."""
    binaries = find_binaries()
    with running_postgres() as postgres:
        assert binaries is not None

        def program(name: str, *arguments: str) -> None:
            command = [str(binaries / name), "-h", str(postgres.folder), "-U", "trunkline", *arguments]
            subprocess.run(command, check=True, capture_output=True)

        def serving(folder: str, database: str) -> ServerProcess:
            url = f"postgresql+asyncpg://trunkline@/{database}?host={postgres.folder}"
            return sandbox_process(tmp_path / folder, DATABASE_URL=url)

        def restored() -> ServerProcess:
            program("createdb", "after")
            program("pg_restore", "--exit-on-error", "--dbname", "after", str(tmp_path / "kept"))
            (tmp_path / "restored").mkdir()
            shutil.copyfile(tmp_path / "data/secret.key", tmp_path / "restored/secret.key")
            os.chmod(tmp_path / "restored/secret.key", 0o600)
            return serving("restored", "after")

        program("createdb", "before")
        dump = ["--format", "custom", "--file", str(tmp_path / "kept"), "before"]
        assert_serves(lambda: serving("data", "before"), lambda: program("pg_dump", *dump), restored)


def test_an_old_version_leaves_a_newer_database_alone(tmp_path: Path) -> None:
    """A program too old for its database does not start, says so in one line and changes nothing."""
    server = sandbox_process(tmp_path)
    server.start()
    server.stop()
    with sqlite3.connect(tmp_path / "trunkline.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_compatibility SET oldest = '9999'")
    connection.close()
    with pytest.raises(ServerFailed, match="is of a newer version of this program") as refused:
        server.start()
    assert "Traceback" not in str(refused.value)
    with sqlite3.connect(tmp_path / "trunkline.db") as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]
    connection.close()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "there is no database at"),
        ({"TRUNKLINE_DATABASE_URL": "postgresql+asyncpg://db/trunkline"}, "pg_dump"),
    ],
)
def test_what_cannot_be_copied_is_named(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    """`trunkline backup` says what to do where there is no database, or one that is copied otherwise."""
    ran = backup(tmp_path, settings)
    assert ran.returncode == 1 and said in ran.stderr, ran.stderr


def test_a_damaged_database_is_not_copied_as_if_it_were_whole(tmp_path: Path) -> None:
    """`trunkline backup` finds the damage of a database, and leaves nothing that looks like a copy."""
    database = tmp_path / "trunkline.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 200)
    connection.close()
    with database.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 2)
    ran = backup(tmp_path, {})
    assert ran.returncode == 1 and "damaged" in ran.stderr, ran.stderr
    assert not (tmp_path / "kept/trunkline.db").exists()


def backup(data_dir: Path, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TRUNKLINE_DATA_DIR": str(data_dir), **settings}
    command = [sys.executable, "-m", "api", "backup", "--to", str(data_dir / "kept")]
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
