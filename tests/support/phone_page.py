"""A page with the telephone of the example, in a real browser whose microphone plays a tone."""

from __future__ import annotations

import wave
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from playwright.async_api import Page, async_playwright

from examples.browser_phone import application
from media.audio import tone
from tests.support.browser import ARGUMENTS, chromium

__all__ = ["PhonePage", "open_page", "page_server"]

_MICROPHONE_HZ = 48_000
# Finds the loudest frequency of what is received, in the browser.
_LOUDEST = """async () => {
    const context = new AudioContext();
    const analyser = new AnalyserNode(context, { fftSize: 8192, smoothingTimeConstant: 0 });
    context.createMediaStreamSource(call.stream).connect(analyser);
    await new Promise((resolve) => setTimeout(resolve, 400));
    const bins = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(bins);
    const loudest = bins.indexOf(Math.max(...bins));
    const rate = context.sampleRate;
    await context.close();
    return [loudest * rate / analyser.fftSize, bins[loudest]];
}"""


@dataclass
class PhonePage:
    """The page; `call` is in its window once a call was begun."""

    page: Page

    async def call(self, number: str) -> None:
        """Type a number, and call."""
        await self.page.fill("#number", number)
        await self.page.click("#call")

    async def listen(self) -> None:
        """Open the page to calls."""
        await self.page.click("#listen")
        await self.reaches("can be called")

    async def reaches(self, state: str) -> str:
        """Wait until the page shows a state, and return the whole text."""
        shown = self.page.locator("#state", has_text=state)
        await shown.wait_for()
        return await shown.inner_text()

    async def loudest(self) -> tuple[float, float]:
        """Return the loudest frequency that is received, and its level in dB."""
        found: list[float] = await self.page.evaluate(_LOUDEST)
        return found[0], found[1]

    async def run(self, script: str) -> Any:
        """Run a script in the page."""
        return await self.page.evaluate(script)


@asynccontextmanager
async def page_server(
    server: str, key: str, port: int, identity: str = "visitor", may_call: Sequence[str] = ()
) -> AsyncIterator[str]:
    """Serve the page until the block ends; returns its address."""
    runner = web.AppRunner(application(server, key, identity, may_call))
    await runner.setup()
    await web.TCPSite(runner, "localhost", port).start()
    try:
        yield f"http://localhost:{port}/"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_page(url: str, folder: Path, freq_hz: float) -> AsyncIterator[PhonePage]:
    """Open the page in a browser until the block ends; fails where there is none."""
    microphone = folder / f"microphone-{freq_hz:.0f}.wav"
    with wave.open(str(microphone), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_MICROPHONE_HZ)
        file.writeframes(tone(freq_hz, 4000, sample_rate=_MICROPHONE_HZ))
    arguments = [*ARGUMENTS, f"--use-file-for-fake-audio-capture={microphone}"]
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium(), headless=True, args=arguments)
        try:
            page = await browser.new_page()
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            await page.goto(url)
            yield PhonePage(page)
            assert problems == []
        finally:
            await browser.close()
