"""Audio of agents that is not in the form of its stream."""

from __future__ import annotations

import base64
import json
import math
import random
from array import array

import pytest

from media._engine import resample
from media.audio import Clip, write_wav
from media.audio.g711 import mulaw_to_l16
from media.streams import AgentClear, AgentMark, AgentPlay
from media.streams.conversion import RATES_HZ, AudioConverter
from tests.support.stream_setups import make_dialect

PAIRS = [(source, target) for source in RATES_HZ for target in (8000, 16_000) if source != target]


def tone(rate_hz: int, duration_ms: int = 400) -> bytes:
    samples = range(rate_hz * duration_ms // 1000)
    return array("h", (round(12_000 * math.sin(2 * math.pi * 1000 * n / rate_hz)) for n in samples)).tobytes()


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_pieces_of_any_size_sound_like_the_whole(source: int, target: int) -> None:
    """No joint can be heard, for there is none: every sample is that of the whole sound."""
    pcm = tone(source)
    expected = resample(pcm, source, target)
    converter = AudioConverter(("l16", source), ("l16", target))
    pieces, at, random_source = [], 0, random.Random(source + target)
    while at < len(pcm):
        size = 2 * random_source.randint(1, source // 25)
        pieces.append(converter.convert(pcm[at : at + size]))
        at += size
    heard = b"".join(pieces)
    # What is held back is at most the neighbourhood of the last sample.
    assert len(expected) - len(heard) <= 2 * target * 50 // 1000
    assert heard == expected[: len(heard)]
    whole = heard + converter.flush()
    assert abs(len(whole) - len(expected)) <= 2 * target // 1000
    assert converter.flush() == b""


def test_a_pause_in_the_middle_loses_and_adds_no_sample() -> None:
    pcm = tone(24_000)
    converter = AudioConverter(("l16", 24_000), ("l16", 8000))
    heard = converter.whole(pcm[:9600]) + converter.whole(pcm[9600:])
    expected = array("h", resample(pcm, 24_000, 8000))
    assert len(heard) == 2 * len(expected)
    # At the seam the filter had to guess what follows; it must guess well enough not to click.
    assert max(abs(one - two) for one, two in zip(array("h", heard), expected, strict=True)) < 3000


def test_an_agent_that_sends_sample_by_sample_is_converted_in_bigger_pieces() -> None:
    pcm = tone(48_000, 100)
    converter = AudioConverter(("l16", 48_000), ("l16", 8000))
    pieces = [converter.convert(pcm[at : at + 2]) for at in range(0, len(pcm), 2)]
    heard = b"".join(pieces)
    assert heard == resample(pcm, 48_000, 8000)[: len(heard)]
    assert sum(map(bool, pieces)) <= 20


@pytest.mark.parametrize("content_type", ["audio/x-l16", "audio/x-L16;rate=16000"])
def test_plivo_converts_what_is_coded_otherwise(content_type: str) -> None:
    made = make_dialect("plivo")
    pcm = tone(16_000)
    heard = b""
    for at in range(0, len(pcm), 1280):
        media = {
            "contentType": content_type,
            "sampleRate": 16_000,
            "payload": base64.b64encode(pcm[at : at + 1280]).decode(),
        }
        piece = made.decode(json.dumps({"event": "playAudio", "media": media}).encode())
        assert isinstance(piece, bytes)
        heard += piece
    rest = made.decode(b'{"event":"checkpoint","name":"end"}')
    assert isinstance(rest, AgentPlay) and rest.mark == "end" and not rest.replaces
    heard += rest.audio
    assert len(heard) == len(pcm) // 4
    coded = AudioConverter(("l16", 8000), ("mulaw", 8000))
    assert heard[:3000] == coded.convert(resample(pcm, 16_000, 8000))[:3000]
    assert made.decode(b'{"event":"checkpoint","name":"again"}') == AgentMark("again")


def test_plivo_tells_forms_apart_that_take_turns() -> None:
    made = make_dialect("plivo", encoding="l16")
    mulaw = bytes(range(256))
    frame = '{"event":"playAudio","media":{"contentType":"%s","sampleRate":8000,"payload":"%s"}}'
    for _ in range(3):
        assert made.decode((frame % ("audio/x-mulaw", base64.b64encode(mulaw).decode())).encode()) == (
            mulaw_to_l16(mulaw)
        )
        assert made.decode((frame % ("audio/x-l16", "AQIDBA==")).encode()) == b"\1\2\3\4"


def test_a_clear_takes_back_what_is_held_too() -> None:
    made = make_dialect("plivo", encoding="l16")
    loud = base64.b64encode(tone(16_000, 20)).decode()
    frame = f'{{"event":"playAudio","media":{{"sampleRate":16000,"payload":"{loud}"}}}}'.encode()
    made.decode(frame)
    assert made.decode(b'{"event":"clearAudio"}') == AgentClear()
    assert made.decode(b'{"event":"checkpoint","name":"x"}') == AgentMark("x")


@pytest.mark.parametrize("kind", ["wav", "wave"])
@pytest.mark.parametrize(("rate_hz", "channels"), [(8000, 1), (16_000, 1), (44_100, 2)])
def test_jambonz_takes_files(kind: str, rate_hz: int, channels: int) -> None:
    made = make_dialect("jambonz", sample_rate=16_000)
    mono = tone(rate_hz, 200)
    pcm = b"".join(mono[at : at + 2] * channels for at in range(0, len(mono), 2))
    content = base64.b64encode(write_wav(Clip(pcm, rate_hz, channels))).decode()
    data = {"audioContentType": kind, "audioContent": content, "id": "p1", "queuePlay": True}
    played = made.decode(json.dumps({"type": "playAudio", "data": data}).encode())
    assert isinstance(played, AgentPlay) and played.mark == "play:p1"
    samples = array("h", played.audio)
    assert abs(len(samples) - 3200) <= 16
    assert 10_000 < max(samples) < 14_000


def test_jambonz_converts_what_comes_at_another_rate() -> None:
    made = make_dialect("jambonz")
    pcm = tone(24_000)
    heard = b""
    for at in range(0, len(pcm), 4800):
        data = {
            "audioContentType": "raw",
            "sampleRate": 24_000,
            "audioContent": base64.b64encode(pcm[at : at + 4800]).decode(),
            "queuePlay": True,
        }
        piece = made.decode(json.dumps({"type": "playAudio", "data": data}).encode())
        assert isinstance(piece, AgentPlay)
        heard += piece.audio
    assert len(heard) == len(pcm) // 3
