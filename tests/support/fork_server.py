"""
Fast start of server processes: forked from one that has imported everything.

Importing takes most of the start time of a server or a command. `ForkServer` starts one process, which
imports the product, and forks it for each request. The child runs the same program with the given
environment, directory and output, and ends like any Python process. It differs from an executed one by its
command line in the process table, and by the memory that it shares with the other children.

    python -m tests.support.fork_server FD    # what ForkServer itself runs; FD is a socket to it
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["ForkServer", "ForkedProcess", "fork_server"]

_ROOT: Final = Path(__file__).resolve().parents[2]
_MAX_REQUEST_BYTES: Final = 1 << 18
# Modules that a running server has imported, including those imported on demand.
_IMPORTED: Final = (
    "api.cli",
    "api.cli.serve",
    "api.process.server",
    "alembic.command",
    "alembic.ddl.postgresql",
    "alembic.ddl.sqlite",
    "asyncpg",
    "mcp.server.lowlevel",
    "phonenumbers",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.sqlite.aiosqlite",
    "uvloop",
)


class ForkedProcess:
    """A forked process, with the part of the `subprocess.Popen` interface that tests use."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """Return its exit status, or minus the signal that ended it; None while it runs."""
        return self._read(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """
        Wait until it has ended.

        Raises:
            subprocess.TimeoutExpired: It is still running.
        """
        returncode = self._read(timeout)
        if returncode is None:
            raise subprocess.TimeoutExpired(f"forked process {self.pid}", timeout or 0.0)
        return returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it (SIGKILL)."""
        self.send_signal(signal.SIGKILL)

    def _read(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout_s)[0]:
            # Nothing was written if the fork server itself was killed.
            self.returncode = int(os.read(self._status, 64) or -signal.SIGKILL)
            os.close(self._status)
        return self.returncode


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a command: its exit status and its output."""

    status: int
    out: str
    error: str


class ForkServer:
    """Parent of the forked processes; starts with the first request, ends with this process."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())],
                cwd=_ROOT,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def start(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        out: int,
        error: int | None = None,
    ) -> ForkedProcess:
        """Run `trunkline ARGUMENTS` in a forked process; `out` and `error` are descriptors."""
        theirs, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"arguments": [*arguments], "environment": {**environment}, "directory": str(directory)}
        with theirs:
            descriptors = [out, out if error is None else error, theirs.fileno()]
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
        ended = status.detach()
        pid = int(os.read(ended, 64) or 0)
        if pid == 0:
            os.close(ended)
            raise OSError("the fork server has ended; what it said of that stands above")
        return ForkedProcess(pid, ended)

    def run(self, arguments: Sequence[str], *, environment: Mapping[str, str], directory: Path) -> Ran:
        """Run a command until it ends."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
            process = self.start(
                arguments,
                environment=environment,
                directory=directory,
                out=out.fileno(),
                error=error.fileno(),
            )
            status = process.wait()
            out.seek(0)
            error.seek(0)
            return Ran(status, out.read(), error.read())


@functools.cache
def fork_server() -> ForkServer:
    """Return the fork server of this process."""
    return ForkServer()


# In the fork server itself.


def _serve(requests: socket.socket) -> Sequence[str] | None:
    """Fork until the socket closes; return the command's arguments in each child, None in the parent."""
    running: dict[int, socket.socket] = {}
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Ctrl-C interrupts the whole process group; only the close of the socket ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                woken.recv(4096)
            _tell_of_ends(running)
        if requests not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, _MAX_REQUEST_BYTES, 3)
        if not data:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
            return None
        out, error, status = descriptors
        if (pid := os.fork()) == 0:
            for other in (requests, woken, wakes, *running.values()):
                other.close()
            os.close(status)
            return _become(json.loads(data), out, error)
        os.close(out)
        os.close(error)
        running[pid] = socket.socket(fileno=status)
        running[pid].send(str(pid).encode())


def _tell_of_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as asker, contextlib.suppress(BrokenPipeError):
            asker.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: Any, out: int, error: int) -> Sequence[str]:
    """Apply environment, directory, output and arguments of the request to this child."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for source, target in ((out, 1), (error, 2)):
        os.dup2(source, target)
    for source in {out, error}:
        os.close(source)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    random.seed()
    arguments: Sequence[str] = request["arguments"]
    sys.argv = ["trunkline", *arguments]
    return arguments


def _warm_up() -> bytes:
    """Do the work common to all servers once; return the content of a new database."""
    for name in _IMPORTED:
        importlib.import_module(name)
    sqlalchemy, schema = (
        importlib.import_module("sqlalchemy"),
        importlib.import_module("callcontrol.database.schema"),
    )
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        engine = sqlalchemy.create_engine(f"sqlite:///{file.name}")
        with engine.begin() as connection:
            schema.upgrade(connection)
        engine.dispose()
        return Path(file.name).read_bytes()


def _place_database(directory: Path, content: bytes) -> None:
    """Create a migrated database where a server has none, so that it runs no migrations."""
    with contextlib.suppress(FileExistsError):
        file = os.open(directory / "trunkline.db", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(file, "wb") as new:
            new.write(content)


def _main() -> None:
    database = _warm_up()
    # Existing objects are never garbage; scanning them would copy their pages in each process.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        arguments = _serve(requests)
    if arguments is None:
        return
    folder = os.environ.get("TRUNKLINE_DATA_DIR", "")
    if arguments[:1] == ["serve"] and "TRUNKLINE_DATABASE_URL" not in os.environ and os.path.isdir(folder):
        _place_database(Path(folder), database)
    try:
        status = importlib.import_module("api.cli").main(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    # Tearing down a thousand modules takes a second, and none of them holds anything to close.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _main()
