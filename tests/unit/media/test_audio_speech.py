"""Speech for text: what is refused, bounded and kept; and espeak-ng itself where there is one."""

import asyncio
import logging
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.aio.speech import ClipCache, EspeakSynthesizer, SpeechStore
from media.audio import Clip, SpeechError, SpeechUnavailable, tone, write_wav
from media.audio.speech import ESPEAK_VOICES, espeak_arguments, speech_text
from tests.support.levels import level_dbfs
from tests.support.waiting import PATIENCE_S

SECRET = "your code is four seven one"
needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")


def program(folder: Path, body: str) -> str:
    """A program that stands for espeak-ng: Python with `text`, `log` and `out` at hand."""
    path = folder / "speaker"
    sound = folder / "sound.wav"
    sound.write_bytes(write_wav(Clip(tone(500, 300, sample_rate=22_050), 22_050)))
    path.write_text(
        f"#!{sys.executable}\n"
        "import sys, time\n"
        f"log = open({str(folder / 'log')!r}, 'a')\n"
        f"sound = open({str(sound)!r}, 'rb').read()\n"
        "out = sys.stdout.buffer\n"
        "text = sys.stdin.buffer.read().decode()\n"
        "print(len(text), *sys.argv[1:], file=log, flush=True)\n"
        f"{body}\n"
    )
    path.chmod(0o700)
    return str(path)


def runs(folder: Path) -> list[str]:
    """Return the program's runs, a line each."""
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


async def test_a_text_is_spoken_once_and_kept(tmp_path: Path) -> None:
    speaker = EspeakSynthesizer(tmp_path / "kept", program=program(tmp_path, "out.write(sound)"))
    first, second = await asyncio.gather(speaker.speak(SECRET, "en-IN"), speaker.speak(SECRET, "en"))
    assert first is second
    assert (first.sample_rate, first.channels, first.duration_ms) == (16_000, 1, 300)
    assert await speaker.speak(SECRET, "en") is first
    assert runs(tmp_path) == [f"{len(SECRET)} -v en-gb -s 150 -b 1 --stdin --stdout"]
    # Another run of the server finds it on disk; another language is another speech.
    again = EspeakSynthesizer(tmp_path / "kept", program="/nowhere/espeak-ng")
    assert await again.speak(SECRET, "en") == first
    with pytest.raises(SpeechUnavailable):
        await again.speak(SECRET, "hi")
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.stat().st_mode & 0o077 == 0


async def test_a_secret_leaves_nothing_behind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    speaker = EspeakSynthesizer(tmp_path / "kept", program=program(tmp_path, "out.write(sound)"))
    await speaker.speak(SECRET, "en", keep=False)
    await speaker.speak(SECRET, "en", keep=False)
    assert len(runs(tmp_path)) == 2
    assert not (tmp_path / "kept").exists()
    assert SECRET not in caplog.text
    assert SECRET not in repr(speech_text(SECRET, "en"))
    assert not any(SECRET in argument for argument in espeak_arguments(speech_text(SECRET, "en")))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit(3)", "ended with status 3"),
        ("out.write(b'nothing')", "returned no audio"),
        ("time.sleep(60)", "did not speak within 0 s"),
        ("[out.write(bytes(1 << 20)) for _ in range(64)]", "too long"),
    ],
)
async def test_a_program_that_fails_is_told_and_ended(tmp_path: Path, body: str, reason: str) -> None:
    slow = "sleep" in body
    speaker = EspeakSynthesizer(program=program(tmp_path, body), timeout_s=0.4 if slow else 20.0)
    with pytest.raises(SpeechError, match=reason):
        await speaker.speak(SECRET, "en")


async def test_too_many_texts_are_refused_and_giving_up_harms_nobody(tmp_path: Path) -> None:
    speaker = EspeakSynthesizer(
        program=program(tmp_path, "time.sleep(0.3); out.write(sound)"), at_once=1, max_waiting=1
    )
    gives_up, *others = (asyncio.create_task(speaker.speak(text, "en")) for text in ("one", "one", "two"))
    try:
        await asyncio.sleep(0)
        with pytest.raises(SpeechUnavailable, match="2 texts are already being spoken"):
            await speaker.speak("three", "en")
        gives_up.cancel()
        done, pending = await asyncio.wait(others, timeout=PATIENCE_S, return_when=asyncio.FIRST_EXCEPTION)
        assert not pending, (pending, [task.exception() for task in done])
        assert [(await other).duration_ms for other in others] == [300, 300]
        assert len(runs(tmp_path)) == 2
    finally:
        # Tasks that nobody cancels would keep the loop from ending.
        await speaker.close()


async def test_without_the_program_it_says_so() -> None:
    with pytest.raises(SpeechUnavailable, match="cannot be run: No such file"):
        await EspeakSynthesizer(program="/nowhere/espeak-ng").speak("hello", "en")


@pytest.mark.parametrize(
    ("text", "language", "reason"),
    [
        ("", "en", "no letters"),
        (" \n\t", "en", "no letters"),
        ("?!", "en", "no letters"),
        ("a\0b", "en", "control or unassigned characters"),
        ("a\x1bb", "en", "control or unassigned characters"),
        ("a\ud800", "en", "control or unassigned characters"),
        ("x" * 2001, "en", "2001 characters is too long"),
        ("bonjour", "fr", "unsupported language; supported are: as, bn, en"),
        ("hello", "../en", "unsupported language"),
        ("hello", "-v", "unsupported language"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text: str, language: str, reason: str) -> None:
    with pytest.raises(SpeechError, match=reason):
        speech_text(text, language)


def test_a_text_is_only_text() -> None:
    assert speech_text("  say\n[[h@l'oU]] ", "en").text == "say [ [h@l'oU] ]"
    assert speech_text("-f /etc/passwd", "hi-IN").voice == "hi"


@given(st.text(max_size=80), st.sampled_from(sorted(ESPEAK_VOICES)))
def test_any_text_is_taken_or_refused(text: str, language: str) -> None:
    try:
        spoken = speech_text(text, language)
    except SpeechError:
        return
    spoken.text.encode()
    assert "[[" not in spoken.text and "\n" not in spoken.text


def test_the_store_is_bounded_and_heals(tmp_path: Path) -> None:
    store = SpeechStore(tmp_path, 5000)
    for number in range(10):
        store.put(str(number), Clip(bytes(1000)))
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert 3 <= len(kept) <= 4
    assert "9.wav" in kept
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5000
    (tmp_path / "9.wav").write_bytes(b"RIFF")
    assert store.get("9") is None
    assert not (tmp_path / "9.wav").exists()
    blocked = SpeechStore(tmp_path / "8.wav" / "below", 5000)
    blocked.put("1", Clip(bytes(2)))
    assert blocked.get("1") is None


@needs_espeak
@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Your call is important to us.", "en-IN"),
        ("आपका स्वागत है", "hi-IN"),
        ("வணக்கம்", "ta"),
        ("నమస్కారం", "te"),
    ],
)
async def test_espeak_speaks(text: str, language: str) -> None:
    clip = await EspeakSynthesizer(timeout_s=60.0).speak(text, language)
    assert 400 < clip.duration_ms < 6000
    assert -40 < level_dbfs(clip.pcm) < -5
    samples = np.frombuffer(clip.pcm, dtype="<i2")
    assert np.max(np.abs(samples.astype(np.int32))) < 32_767


def test_the_cache_is_bounded_and_forgets_what_was_not_asked_for_longest() -> None:
    cache = ClipCache(1000)
    clips = {name: Clip(bytes(200)) for name in "abcde"}
    for name, clip in clips.items():
        cache.put(name, clip)
    assert cache.get("a") is clips["a"]
    cache.put("f", Clip(bytes(200)))
    assert cache.get("b") is None
    assert cache.get("a") is clips["a"]
    cache.put("large", Clip(bytes(252)))
    assert cache.get("large") is None
    cache.put("a", Clip(bytes(100)))
    assert cache.size_bytes == 900
