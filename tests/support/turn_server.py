"""A TURN server (coturn) with a shared secret, on loopback."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.ports import free_port
from tests.support.waiting import until

__all__ = ["SECRET", "TurnServer", "turn_server"]

SECRET = "turn-secret-of-the-test"
_STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class TurnServer:
    """Its address as browsers know it, and its log."""

    url: str
    log_file: Path

    def log(self) -> str:
        """Lines so far."""
        return self.log_file.read_text(errors="replace")


@asynccontextmanager
async def turn_server(folder: Path) -> AsyncIterator[TurnServer]:
    """Run one until the block ends; fails where there is none."""
    program = shutil.which("turnserver")
    assert program is not None, "coturn is not installed (Debian: coturn)"
    port, folder = free_port(), folder / "turn"
    folder.mkdir()
    log_file = folder / "log"
    arguments = [
        *("-n", "--no-cli", "--no-tls", "--no-dtls", "--no-multicast-peers", "--allow-loopback-peers"),
        *("--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1", "--listening-port", str(port)),
        *("--realm", "example.com", "--use-auth-secret", "--static-auth-secret", SECRET, "--verbose"),
        *("--log-file", "stdout", "--pidfile", str(folder / "pid"), "--userdb", str(folder / "users")),
    ]
    with log_file.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, *arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    server = TurnServer(f"turn:127.0.0.1:{port}?transport=udp", log_file)

    def listens() -> bool:
        assert process.returncode is None, server.log()
        return f"127.0.0.1:{port}" in server.log()

    try:
        await until(listens)
        yield server
    finally:
        process.terminate()
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
