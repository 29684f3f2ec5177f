"""A recogniser of words on this machine, which hears what espeak-ng says."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from media.aio.recognizer import Recognizer
from media.aio.speech import EspeakSynthesizer
from media.audio.recognition import RecognizerServer
from tests.interop.conftest import CACHE

ROOT = Path(__file__).parents[2]
SILENCE = bytes(2 * 8000)

pytestmark = [
    pytest.mark.long(reason="installs the recogniser"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def python() -> Path:
    """Interpreter of the environment that has the recogniser."""
    subprocess.run(
        [ROOT / "scripts" / "library-environment", "pocketsphinx", CACHE / "words"],
        check=True,
        env={**os.environ, "PYTHON": sys.executable},
    )
    return CACHE / "words" / "bin" / "python"


@pytest.fixture
async def url(python: Path) -> AsyncIterator[str]:
    """Address of a recogniser with its usual words."""
    process = await asyncio.create_subprocess_exec(
        python, "-m", "examples.word_recognizer", "--port", "0", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        name, _, address = (await process.stdout.readline()).decode().strip().partition("=")
    assert name == "TRUNKLINE_RECOGNIZER_URL"
    yield address
    process.terminate()
    await process.wait()


def test_words_that_cannot_be_heard_are_refused_at_once(python: Path) -> None:
    asked = [str(python), "-m", "examples.word_recognizer", "--port", "0", "yes", "flurbelgrot"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "dictionary" in done.stderr


async def test_what_is_said_is_recognised(url: str) -> None:
    espeak, heard = EspeakSynthesizer(), asyncio.Queue[str]()
    recognizer = Recognizer(RecognizerServer(url, "words"))
    try:
        listening = recognizer.start(
            "en-IN",
            8000,
            lambda said: heard.put_nowait(said.text) if said.final else None,
            lambda problem: heard.put_nowait(f"failed: it {problem}"),
        )
        for words in ("yes", "no", "yes"):
            spoken = (await espeak.speak(words, "en-IN")).to_8k_mono().pcm
            listening.feed(spoken + SILENCE)
            async with asyncio.timeout(30):
                assert await heard.get() == words
    finally:
        await recognizer.close()
        await espeak.close()
