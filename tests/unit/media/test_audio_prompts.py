"""The prompt library, and the prompts that are committed."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fixtures.prompts import DIRECTORY, make
from media.audio import Clip, PromptLibrary, UnknownPrompt, WavError, tone, write_wav
from tests.support.levels import level_dbfs


@pytest.fixture
def library(tmp_path: Path) -> PromptLibrary:
    (tmp_path / "en").mkdir()
    (tmp_path / "hello.wav").write_bytes(write_wav(Clip(tone(400, 100, sample_rate=16_000), 16_000)))
    (tmp_path / "en" / "1.wav").write_bytes(write_wav(Clip(b"\1\0" * 80)))
    (tmp_path / "en" / "2.wav").write_bytes(write_wav(Clip(b"\2\0" * 80)))
    (tmp_path / "en" / "Bad Name.wav").write_bytes(b"")
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    return PromptLibrary(tmp_path)


def test_prompts_are_brought_to_8_khz_and_kept(library: PromptLibrary, tmp_path: Path) -> None:
    first = library.get("hello")
    assert len(first) == 1600
    (tmp_path / "hello.wav").unlink()
    assert library.get("hello") is first


def test_names(library: PromptLibrary) -> None:
    assert library.names() == ["broken", "en/1", "en/2", "hello"]


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../hello", "en/../hello", "/etc/passwd", "en//1", "EN/1", "a/b/c", "hello\0", "en\\1"],
)
def test_names_cannot_climb_out(library: PromptLibrary, name: str) -> None:
    with pytest.raises(UnknownPrompt, match="lower-case"):
        library.get(name)


def test_what_is_not_there_and_what_is_broken(library: PromptLibrary) -> None:
    with pytest.raises(UnknownPrompt, match="no prompt named en/3"):
        library.get("en/3")
    with pytest.raises(WavError):
        library.get("broken")


MANIFEST = json.loads((DIRECTORY / "manifest.json").read_text(encoding="utf-8"))


def test_committed_prompts_are_those_of_the_manifest() -> None:
    library = PromptLibrary(DIRECTORY)
    assert library.names() == sorted(entry["name"] for entry in MANIFEST["prompts"])
    for entry in MANIFEST["prompts"]:
        data = (DIRECTORY / f"{entry['name']}.wav").read_bytes()
        assert hashlib.sha256(data).hexdigest() == entry["sha256"], entry["name"]
        assert entry["text"] and entry["voice"]
        pcm = library.get(entry["name"])
        assert len(pcm) // 16 == entry["duration_ms"]


@pytest.mark.parametrize("language", sorted({entry["language"] for entry in MANIFEST["prompts"]}))
def test_committed_prompts_can_be_heard_and_do_not_clip(language: str) -> None:
    library = PromptLibrary(DIRECTORY)
    for entry in (entry for entry in MANIFEST["prompts"] if entry["language"] == language):
        samples = np.frombuffer(library.get(entry["name"]), dtype="<i2") / 32768.0
        name = entry["name"]
        sentence = " " in entry["text"]
        assert 150 <= entry["duration_ms"] <= (8000 if sentence else 2500), name
        assert level_dbfs(library.get(name)) == pytest.approx(MANIFEST["level_dbfs"], abs=3.5), name
        assert 0.05 < np.max(np.abs(samples)) <= 0.72, name
        # The edges are quiet, so that prompts can follow one another without a click.
        assert np.max(np.abs(samples[[*range(8), *range(-8, 0)]])) < 0.05, name
        # Speech: most of it lies where voices do, and none of it at rest.
        power = np.abs(np.fft.rfft(samples)) ** 2
        hz = np.fft.rfftfreq(len(samples), 1 / 8000)
        assert power[(hz > 80) & (hz < 3400)].sum() > 0.9 * power.sum(), name


def test_committed_prompts_cover_what_calls_need() -> None:
    names = {entry["name"] for entry in MANIFEST["prompts"]}
    for language in ("en", "hi"):
        assert {f"{language}/{name}" for name in ("welcome", "goodbye", "please-hold", "not-active")} <= names
    for language in ("en", "hi", "bn", "gu", "kn", "ml", "mr", "pa", "ta", "te"):
        assert {f"{language}/{digit}" for digit in range(10)} <= names
        assert f"{language}/code-is" in names
    assert "en/speech-sample" in names
    assert sum((DIRECTORY / f"{name}.wav").stat().st_size for name in names) < 8_000_000


def test_the_manifest_says_what_the_language_files_say() -> None:
    assert {prompt.name: prompt.text for prompt in make.prompts()} == {
        entry["name"]: entry["text"] for entry in MANIFEST["prompts"]
    }
    assert make.main(["--check"]) == 0


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_prompts_are_made_the_same_again() -> None:
    version = subprocess.run(["espeak-ng", "--version"], capture_output=True, text=True, check=True).stdout
    if not version.startswith(MANIFEST["espeak_ng"]):
        pytest.skip("another espeak-ng speaks otherwise")
    some = [prompt for prompt in make.prompts() if prompt.name in ("en/7", "hi/45", "ta/300-joined")]
    assert len(some) == 3
    for prompt in some:
        data = write_wav(make.made(prompt), "mulaw")
        entry = next(entry for entry in MANIFEST["prompts"] if entry["name"] == prompt.name)
        assert hashlib.sha256(data).hexdigest() == entry["sha256"], prompt.name
