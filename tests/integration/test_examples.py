"""Every example, run as its README says, beside a real server and a telephone."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from sip import Answered, Ended
from tests.interop.pipecat_agent import pipecat_python
from tests.support.inbound_stage import NUMBER, InboundStage, inbound_stage
from tests.support.phone import PhoneCall, eventually
from tests.support.ports import free_port
from tests.support.waiting import look_again, until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PATIENCE_S = 40.0

# The first of them may have to install pipecat.
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.long(reason="runs the examples as their readers do"),
    pytest.mark.timeout(300),
    pytest.mark.real_time(reason="examples run in processes of their own"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InboundStage]:
    async with inbound_stage(tmp_path_factory.mktemp("examples")) as running:
        yield running


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def no_calls_left(stage: InboundStage) -> AsyncIterator[None]:
    yield
    await stage.clear()


class Example:
    """A running example, and what it has printed so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.printed = ""

    async def read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.printed += line.decode()

    async def prints(self, text: str) -> None:
        assert await eventually(lambda: text in self.printed, PATIENCE_S), self.printed


@asynccontextmanager
async def running(name: str, *arguments: str, python: str = sys.executable) -> AsyncIterator[Example]:
    process = await asyncio.create_subprocess_exec(
        python,
        EXAMPLES / name,
        *arguments,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    example = Example(process)
    reader = asyncio.create_task(example.read())
    try:
        yield example
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await reader
    assert "Traceback" not in example.printed, example.printed


async def listening(port: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await look_again()
            else:
                writer.close()
                return


async def connected(stage: InboundStage) -> PhoneCall:
    caller = stage.call()
    await caller.wait(Answered)
    return caller


async def test_the_echo_agent(stage: InboundStage) -> None:
    port = free_port()
    async with running("echo_agent.py", "--port", str(port)) as example:
        await example.prints("listening")
        await stage.bind(target="media_stream", stream_url=f"ws://127.0.0.1:{port}/ws")
        caller = await connected(stage)
        caller.speak(440.0)
        await caller.hears(440.0)
        caller.open().send_dtmf("#")
        await caller.wait(Ended)
        await example.prints("it is over: stream_hangup")
    assert (await stage.ended())["hangup_source"] == "stream"


async def test_the_asterisk_bot(stage: InboundStage) -> None:
    port = free_port()
    async with running("asterisk_bot.py", "--port", str(port)) as example:
        await example.prints("listening")
        await stage.bind(target="media_stream", stream_url=f"audiosocket://127.0.0.1:{port}")
        caller = await connected(stage)
        await example.prints("call ")
        caller.speak(440.0)
        await caller.hears(440.0)
        caller.open().send_dtmf("#")
        await caller.wait(Ended)
        await example.prints("it is over")
    assert (await stage.ended())["hangup_source"] == "stream"


async def test_the_pipecat_agent(stage: InboundStage) -> None:
    port = free_port()
    python = await asyncio.to_thread(pipecat_python)
    async with running("pipecat_agent.py", "--port", str(port), python=python) as example:
        await listening(port)
        await stage.bind(target="media_stream", stream_url=f"ws://127.0.0.1:{port}/ws")
        caller = await connected(stage)
        await example.prints("by exotel")
        await caller.hears(880.0)
        caller.speak(440.0)
        spoken = caller.open().stats().packets_out + 40
        await until(lambda: caller.open().stats().packets_out >= spoken)
        caller.open().stop_playback()
        await caller.hears(440.0)
        caller.open().send_dtmf("#")
        await caller.wait(Ended)
    assert (await stage.ended())["hangup_source"] == "stream"


async def test_the_menu(stage: InboundStage) -> None:
    port = free_port()
    async with running("twiml_menu.py", "--port", str(port)) as example:
        await example.prints("listening")
        await stage.bind(target="webhook", webhook_url=f"http://127.0.0.1:{port}/menu")
        caller = await connected(stage)
        caller.open().send_dtmf("7")
        await example.prints("pressed: 7")
        caller.open().send_dtmf("1")
        await example.prints("pressed: 1")
        await caller.wait(Ended)
        assert (await stage.ended())["status"] == "completed"

        caller = await connected(stage)
        caller.open().send_dtmf("2")
        await example.prints("pressed: 2")
        assert await eventually(lambda: stage.phone.calls[-1] is not caller, PATIENCE_S)
        callee = stage.phone.calls[-1]
        callee.speak(440.0)
        await caller.hears(440.0)
        callee.hang_up()
        await caller.wait(Ended)
    await stage.ended()


@pytest.mark.parametrize(("typed", "code", "told"), [("271828", 0, "verified"), ("314159", 1, "wrong")])
async def test_the_password(stage: InboundStage, typed: str, code: int, told: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLES / "otp_flow.py",
        *("--to", "+919812345678", "--password", "271828"),
        env={**os.environ, "KEY": stage.key, "BASE": stage.server.url},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S * 2):
        printed, _ = await process.communicate(f"{typed}\n".encode())
    text = printed.decode()
    assert process.returncode == code and told in text, text
    assert "completed, said 1 times" in text
    assert "271828" not in text, "the password is nobody's business"


async def test_the_agent_with_tools(stage: InboundStage) -> None:
    key = await stage.server.storage.keys.create(stage.account_sid, "tools")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLES / "mcp_agent.py",
        *("--to", "+919812345678"),
        env={**os.environ, "KEY": key, "BASE": stage.server.url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S * 2):
        printed, _ = await process.communicate()
    text = printed.decode()
    assert process.returncode == 0 and text.rstrip().endswith("completed"), text
    assert "place_call: Place a call" in text and "calling +919812345678 from" in text


@pytest.mark.parametrize("provider", ["openai", "deepgram", "gemini", "elevenlabs", "ultravox"])
async def test_the_speech_models(stage: InboundStage, provider: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "examples.model_agent", "--provider", provider),
        *("--to", "+919812345678", "--from", NUMBER, "--seconds", "3"),
        cwd=ROOT,
        env={**os.environ, "KEY": stage.key, "BASE": stage.server.url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_S * 2):
        printed, _ = await process.communicate()
    text = printed.decode()
    assert process.returncode == 0 and f"completed: {provider}" in text, text
    assert "this is the Lotus restaurant" in text
