"""
CPU cost of a frame of audio in each dialect: `python -m benchmarks.dialects [--rounds N] [--frames N]`.

Processor time of writing one frame of 20 ms to an agent and of reading one from it, in microseconds, beside
the least that any of them must do: base64 for the dialects in JSON, nothing for the binary ones. Each figure
is the least of several rounds; the dialects take turns, so that a busy machine is busy for all of them.
"""

from __future__ import annotations

import argparse
import base64
import json
import time
from collections.abc import Callable

from media._engine import from_base64, to_base64
from media.streams import (
    DIALECTS,
    MODEL_DIALECTS,
    Dialect,
    Encoding,
    ModelChoice,
    ModelSession,
    StreamSetup,
    dialect_class,
    frame_bytes,
)
from media.streams.speech_models import PROVIDERS

Work = Callable[[int], object]


def made(name: str, encoding: Encoding, rate_hz: int) -> Dialect:
    """A dialect at the beginning of its stream."""
    provider = next((known for known in PROVIDERS if known == name), None)
    model = None
    if provider is not None:
        model = ModelSession(choice=ModelChoice(provider=provider, model="m"), api_key="key")
    dialect = dialect_class(name)(
        StreamSetup(
            url="wss://bot.example.com/",
            stream_sid="0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10",
            call_sid="6f1f1a52-6d0b-4b5f-8d39-1f0a5e1f7c11",
            account_sid="a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12",
            from_="+919876543210",
            to="+918047491899",
            dialect=name,
            encoding=encoding,
            sample_rate=rate_hz,
            model=model,
        )
    )
    dialect.start(1_732_099_200_000)
    if name == "elevenlabs":
        dialect.decode(_METADATA)
    return dialect


def agents_frame(name: str, audio: bytes) -> bytes:
    """A frame of audio as an agent of the dialect sends it."""
    payload = base64.b64encode(audio).decode()
    if name in _MODEL_FRAMES:
        return json.dumps(_MODEL_FRAMES[name](payload)).encode()
    event = "playAudio" if name in ("plivo", "vobiz") else "media"
    return json.dumps({"event": event, "media": {"payload": payload}}).encode()


_MODEL_FRAMES: dict[str, Callable[[str], object]] = {
    "openai": lambda payload: {
        "type": "response.output_audio.delta",
        "item_id": "item",
        "content_index": 0,
        "delta": payload,
    },
    "gemini": lambda payload: {
        "serverContent": {
            "modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": payload}}]}
        }
    },
    "elevenlabs": lambda payload: {"type": "audio", "audio_event": {"audio_base_64": payload, "event_id": 1}},
}
_METADATA = (
    b'{"type":"conversation_initiation_metadata","conversation_initiation_metadata_event":'
    b'{"agent_output_audio_format":"ulaw_8000","user_input_audio_format":"ulaw_8000"}}'
)


def works(name: str, encoding: Encoding, rate_hz: int) -> tuple[Work, Work]:
    """Work for one frame to the agent, and for one from it."""
    dialect = made(name, encoding, rate_hz)
    audio = bytes(index % 251 for index in range(frame_bytes(encoding, rate_hz)))
    if dialect.binary_audio:
        # AudioSocket has a head before the audio, the same both ways.
        binary = dialect.media(audio, 0)
        return lambda number: dialect.media(audio, number), lambda number: dialect.decode_binary(binary)
    frame = agents_frame(name, audio)
    return lambda number: dialect.media(audio, number), lambda number: dialect.decode(frame)


def floor(audio: bytes) -> tuple[Work, Work]:
    """Base64 with nothing around it, both ways."""
    text = base64.b64encode(audio)
    return lambda number: to_base64(b"", audio, b""), lambda number: from_base64(text, b"", b"")


def cost_us(work: Work, frames: int) -> float:
    """Processor time of one frame in one round."""
    started = time.process_time()
    for number in range(frames):
        work(number)
    return (time.process_time() - started) / frames * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--frames", type=int, default=20_000)
    arguments = parser.parse_args()
    lines: dict[str, tuple[Work, Work]] = {
        f"{name} {encoding} {rate_hz}": works(name, encoding, rate_hz)
        for name, dialect in {**DIALECTS, **MODEL_DIALECTS}.items()
        for encoding, rate_hz in dialect.formats
    }
    for size in (160, 320, 640):
        audio = bytes(size)
        lines[f"base64 alone, {size} bytes"] = floor(audio)
    best = {label: (float("inf"), float("inf")) for label in lines}
    for _ in range(arguments.rounds):
        for label, (write, read) in lines.items():
            costs = cost_us(write, arguments.frames), cost_us(read, arguments.frames)
            best[label] = min(best[label][0], costs[0]), min(best[label][1], costs[1])
    print(f"{'':30} {'write us':>9} {'read us':>9}")
    for label, (write_us, read_us) in best.items():
        print(f"{label:30} {write_us:9.2f} {read_us:9.2f}")


if __name__ == "__main__":
    main()
