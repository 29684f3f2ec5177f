"""Audio fetched from customers' servers: what is played, and what is refused."""

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from callcontrol.calls.aio.media.prompts import AudioSource, AudioUnavailable
from callcontrol.egress.aio.resolver import DestinationGuard
from media.audio import Clip, tone, write_wav
from tests.support.levels import tone_level_dbfs

WAV = write_wav(Clip(tone(440.0, 100)))


async def good(_: web.Request) -> web.Response:
    return web.Response(body=WAV)


async def wide(_: web.Request) -> web.Response:
    return web.Response(body=write_wav(Clip(tone(5000.0, 500, sample_rate=44_100), 44_100)))


async def elsewhere(_: web.Request) -> web.Response:
    raise web.HTTPFound("/good")


async def no_wav(_: web.Request) -> web.Response:
    return web.Response(body=b"RIFF nonsense")


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        for _ in range(20):
            await response.write(b"\0" * (1 << 20))
    except ConnectionError:
        pass
    return response


async def bomb(_: web.Request) -> web.Response:
    """Fifteen megabytes, a few kilobytes while they are compressed."""
    whole = WAV[:40] + (15 << 20).to_bytes(4, "little") + bytes(15 << 20)
    return web.Response(body=gzip.compress(whole), headers={"Content-Encoding": "gzip"})


async def visited(request: web.Request) -> web.Response:
    response = web.Response(body=WAV if not request.cookies else b"seen before")
    response.set_cookie("customer", "one")
    return response


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    app = web.Application()
    for handler in (good, wide, elsewhere, no_wav, endless, bomb, visited):
        app.router.add_get(f"/{handler.__name__}", handler)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_file_is_brought_to_the_engines_form() -> None:
    source = AudioSource(None, DestinationGuard(True))
    async with serving() as base:
        assert await source.fetch(f"{base}/good") == Clip(tone(440.0, 100))
        # What a wideband codec can carry is kept for it.
        clip = await source.fetch(f"{base}/wide")
    await source.close()
    assert (clip.sample_rate, clip.duration_ms) == (16_000, 500)
    assert tone_level_dbfs(clip.pcm, 5000.0, 16_000) > -11.0


@pytest.mark.parametrize("path", ["elsewhere", "no_wav", "endless", "missing", "bomb"])
async def test_what_is_refused(path: str) -> None:
    source = AudioSource(None, DestinationGuard(True))
    async with serving() as base:
        with pytest.raises(AudioUnavailable):
            await source.fetch(f"{base}/{path}")
    await source.close()


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9/a.wav", "http://169.254.169.254/latest", "ftp://x/a.wav", "http://[::1]/a.wav"],
)
async def test_where_this_server_must_not_connect(url: str) -> None:
    source = AudioSource(None, DestinationGuard(False))
    with pytest.raises(AudioUnavailable):
        await source.fetch(url)
    await source.close()


def test_a_server_without_prompts() -> None:
    source = AudioSource(None, DestinationGuard(True))
    with pytest.raises(AudioUnavailable):
        source.prompt("en/hello")


async def test_nothing_of_one_customers_fetch_is_sent_with_anothers() -> None:
    source = AudioSource(None, DestinationGuard(True))
    async with serving() as base:
        base = base.replace("127.0.0.1", "localhost")  # an address would not be given a cookie back anyway
        for _ in range(2):
            assert (await source.fetch(f"{base}/visited")).duration_ms == 100
    await source.close()
