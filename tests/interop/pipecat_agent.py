"""Pipecat beside the test: its environment, a voice agent as a process in it, and its remote control."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".cache" / "pipecat"
PATIENCE_S = 40.0

__all__ = ["ENVIRONMENT", "PipecatAgent", "pipecat_agent", "pipecat_python"]


def pipecat_python() -> str:
    """
    The interpreter that has pipecat; its environment is made when it is missing.

    Raises:
        subprocess.CalledProcessError: It cannot be made; the output says why.
    """
    script = ROOT / "scripts" / "pipecat-environment"
    subprocess.run([script, ENVIRONMENT], check=True, env={**os.environ, "PYTHON": sys.executable})
    return str(ENVIRONMENT / "bin" / "python")


class PipecatAgent:
    """The remote control of the agent's latest call."""

    def __init__(self, port: int, http: aiohttp.ClientSession) -> None:
        self.port = port
        self._http = http
        self._before = 0

    def url(self, dialect: str = "", query: str = "") -> str:
        """Return the URL of a stream: with the stock detection, or with the dialect named."""
        path = f"/ws/{dialect}" if dialect else "/ws"
        return f"ws://127.0.0.1:{self.port}{path}" + (f"?{query}" if query else "")

    async def state(self) -> dict[str, Any]:
        """The latest call that began since `expect_call`; empty before there is one."""
        told = await self._told()
        return dict(told["sessions"][-1]) if len(told["sessions"]) > self._before else {}

    async def expect_call(self) -> None:
        """Forget about the calls there were."""
        self._before = len((await self._told())["sessions"])

    async def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The state of the call, once it is as it should be."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    if (found := await self.state()) and holds(found):
                        return found
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"waited in vain: {await self._told()}") from None

    async def heard(self, seconds: float) -> bytes:
        """Return the caller's latest audio, once that much has arrived."""
        before = (await self.state())["heard_bytes"]
        await self.until(lambda state: state["heard_bytes"] - before >= seconds * state["rate_hz"] * 2)
        async with self._http.get(self._address("/heard"), params={"seconds": str(seconds)}) as response:
            return await response.read()

    async def do(self, what: str, **body: Any) -> None:
        """Make the agent do something."""
        async with self._http.post(self._address(f"/do/{what}"), json=body) as response:
            assert response.status == 200, await response.text()

    async def complaints(self) -> list[str]:
        """Return pipecat's log lines of warning level or higher."""
        return list((await self._told())["complaints"])

    async def _told(self) -> dict[str, Any]:
        async with self._http.get(self._address("/state")) as response:
            told: dict[str, Any] = await response.json()
            return told

    def _address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@asynccontextmanager
async def pipecat_agent() -> AsyncIterator[PipecatAgent]:
    """Run the agent."""
    python = await asyncio.to_thread(pipecat_python)
    program = Path(__file__).with_name("pipecat_program.py")
    process = await asyncio.create_subprocess_exec(python, program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            line = await process.stdout.readline()
        async with aiohttp.ClientSession() as http:
            yield PipecatAgent(json.loads(line)["port"], http)
    finally:
        process.terminate()
        await process.wait()
