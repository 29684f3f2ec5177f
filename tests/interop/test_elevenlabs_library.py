"""ElevenLabs' own library knows our messages, and understands our stand-in of its server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fixtures.model_elevenlabs import ElevenLabsServer
from fixtures.model_server import ModelSession
from tests.interop.conftest import CACHE
from tests.support.model_setups import LOOK_UP, TURNS, everything, make_dialect

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "scripts"
PATIENCE_S = 90.0
SETUPS: tuple[dict[str, Any], ...] = (
    {},
    {"instructions": "Be brief.", "voice": "v1", "greeting": "Namaste.", "language": "en-IN"},
    {"tools": (LOOK_UP,), "turns": TURNS},
)

pytestmark = [
    pytest.mark.long(reason="installs the library"),
    pytest.mark.timeout(300),
    pytest.mark.real_time(reason="the library runs in a process of its own"),
]


async def script(session: ModelSession) -> None:
    assert await session.hears(320)
    await session.hear("Where is my order?")
    await session.say(bytes(8000), "It is on its way.")
    await session.interrupt()
    use = await session.use_tool("look_up", order="7")
    assert await session.until(lambda session: session.results.get(use) == "shipped")
    await session.end()


async def test_the_library_knows_our_messages_and_understands_the_stand_in() -> None:
    environment = {**os.environ, "PYTHON": sys.executable}
    prepared = await asyncio.create_subprocess_exec(
        SCRIPTS / "library-environment", "elevenlabs", CACHE / "elevenlabs", env=environment
    )
    assert await prepared.wait() == 0
    ours = [
        message
        for setup in SETUPS
        for message in everything(make_dialect("elevenlabs", **setup), "elevenlabs")
    ]
    assert {message.get("type") for message in ours} >= {
        "user_message",
        "contextual_update",
        "client_tool_result",
    }
    server = ElevenLabsServer(script)
    async with server.running(), asyncio.timeout(PATIENCE_S):
        process = await asyncio.create_subprocess_exec(
            CACHE / "elevenlabs" / "bin" / "python",
            HERE / "elevenlabs_program.py",
            f"http://{urlsplit(server.url).netloc}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, faults = await process.communicate(json.dumps(ours).encode())
    assert process.returncode == 0, faults.decode()
    (session,) = server.sessions
    assert session.problems == []
    assert server.greetings(session) == ["Hi."]
    assert json.loads(printed) == {
        "said": [["user", "Where is my order?"], ["agent", "It is on its way."]],
        "used": ["7"],
        "heard": 4000,
        "interruptions": 1,
    }
