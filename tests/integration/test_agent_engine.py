"""A stream to an agent joined to the media engine: audio goes from RTP to the agent and back."""

from __future__ import annotations

import asyncio
import base64

import pytest

from media.aio import MediaEngine, RtpStream
from media.aio.agent_stream import AgentStream
from media.audio import tone
from media.streams import StreamSetup
from media.types import MarkReached, MediaEvent, RemoteMedia
from tests.support.agent_bot import Bot, no_leaks, to_loopback
from tests.support.levels import tone_level_dbfs
from tests.support.phone import engine_settings


def towards(stream: RtpStream) -> RemoteMedia:
    address, port = stream.local
    return RemoteMedia(address=address, port=port, codec="PCMU", payload_type=0)


@pytest.mark.parametrize("rate", [8000, 16_000])
async def test_an_agent_that_echoes_is_heard_by_the_caller(rate: int, call_path: str) -> None:
    heard_by_agent = bytearray()
    enough = asyncio.Event()

    async def echo(bot: Bot) -> None:
        for number in range(60):
            audio = base64.b64decode((await bot.until("media"))["media"]["payload"])
            heard_by_agent.extend(audio)
            await bot.send(event="media", media={"payload": base64.b64encode(audio).decode()})
            if number == 49:
                await bot.send(event="mark", mark={"name": "said"})
        while not any(frame["event"] == "mark" for frame in bot.received):
            await bot.next()
        enough.set()
        await bot.until_closed()

    heard_by_caller = bytearray()
    bot = Bot(echo)
    engine = MediaEngine(engine_settings(100, quarantine_s=4.0))
    async with no_leaks(), bot.running():
        await engine.start()
        agents: list[AgentStream] = []

        def on_event(event: MediaEvent) -> None:
            if isinstance(event, MarkReached) and agents:
                agents[0].mark_reached(event.name, event.cleared)

        ours, theirs = engine.open_stream(on_event), engine.open_stream(lambda event: None)
        ours.connect(towards(theirs))
        theirs.connect(towards(ours))
        agent = await AgentStream.connect(
            StreamSetup(
                url=bot.url,
                sample_rate=rate,
                stream_sid="s",
                call_sid="c",
                account_sid="a",
                from_="+919876543210",
                to="+918047491899",
            ),
            resolve=to_loopback,
            on_event=print,
            carrier=ours,
        )
        agents.append(agent)
        theirs.play(tone(1000, 3000))
        theirs.open_tap(sample_rate=8000, encoding="l16", on_frames=heard_by_caller.extend)
        agent.start(ours.open_tap(sample_rate=8000 if rate == 8000 else 16_000, on_frames=agent.send_audio))
        async with asyncio.timeout(40):
            await enough.wait()
        await agent.stop()
        ours.close()
        theirs.close()
        await engine.close()

    last = slice(-rate, None)
    assert tone_level_dbfs(bytes(heard_by_agent[last]), 1000, rate) == pytest.approx(-10.0, abs=1.5)
    # Half a second from the end; what goes before is the silence until the echo began.
    assert tone_level_dbfs(bytes(heard_by_caller[-8000:]), 1000) == pytest.approx(-10.0, abs=3.0)
