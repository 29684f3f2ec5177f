"""
A voice agent made with pipecat that needs no key of anybody: it repeats what the caller said.

It greets with a chime, waits until the caller has said something and is silent again, and says the same. The
key # ends the call. Put speech-to-text, a model and text-to-speech in the place of `Parrot`, and it is an
assistant. The protocol of the stream is detected as pipecat's own runner does it, so numbers bound with
`stream_protocol` exotel (the default), twilio, plivo or telnyx reach it alike.

    scripts/pipecat-environment .cache/pipecat
    .cache/pipecat/bin/python examples/pipecat_agent.py --port 9000
    "stream_url": "ws://127.0.0.1:9000/ws"
"""

from __future__ import annotations

import argparse
import math
from array import array
from typing import Any

import uvicorn
from fastapi import FastAPI, WebSocket
from pipecat.audio.dtmf.types import KeypadEntry
from pipecat.frames.frames import (
    ClientConnectedFrame,
    EndWorkerFrame,
    Frame,
    InputAudioRawFrame,
    InputDTMFFrame,
    OutputAudioRawFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.runner.utils import parse_telephony_websocket
from pipecat.serializers.base_serializer import FrameSerializer
from pipecat.serializers.exotel import ExotelFrameSerializer
from pipecat.serializers.plivo import PlivoFrameSerializer
from pipecat.serializers.telnyx import TelnyxFrameSerializer
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.workers.runner import WorkerRunner

RATE_HZ = 8000
LOUD = 500
"""Threshold of speech, as the root mean square of 16-bit samples."""
SILENCE_FRAMES = 30
MOST_BYTES = 10 * RATE_HZ * 2

app = FastAPI()


class Parrot(FrameProcessor):
    """Says what it heard, once the caller has been silent for 600 ms."""

    def __init__(self) -> None:
        super().__init__()
        self._said = bytearray()
        self._silent_frames = 0

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Listen to audio and keys; let everything else pass."""
        await super().process_frame(frame, direction)
        match frame:
            case InputAudioRawFrame(audio=audio):
                await self._hear(audio)
            case InputDTMFFrame(button=KeypadEntry.POUND):
                await self.push_frame(EndWorkerFrame(), FrameDirection.UPSTREAM)
            case ClientConnectedFrame():
                await self.push_frame(frame, direction)
                await self._say(chime(880.0, 0.6))
            case _:
                await self.push_frame(frame, direction)

    async def _hear(self, audio: bytes) -> None:
        samples = array("h", audio)
        loud = math.sqrt(sum(sample * sample for sample in samples) / max(1, len(samples))) > LOUD
        if not loud and not self._said:
            return
        self._said += audio
        self._silent_frames = 0 if loud else self._silent_frames + 1
        if self._silent_frames >= SILENCE_FRAMES or len(self._said) >= MOST_BYTES:
            said, self._said, self._silent_frames = bytes(self._said), bytearray(), 0
            await self._say(said)

    async def _say(self, audio: bytes) -> None:
        await self.push_frame(OutputAudioRawFrame(audio, RATE_HZ, 1))


def chime(hz: float, seconds: float) -> bytes:
    """A tone."""
    count = round(seconds * RATE_HZ)
    return array(
        "h", (round(6000 * math.sin(2 * math.pi * hz * at / RATE_HZ)) for at in range(count))
    ).tobytes()


def serializer_of(protocol: str, call: Any) -> FrameSerializer:
    """Return the serializer of a protocol; closing the socket is enough to end a call."""
    match protocol:
        case "exotel":
            return ExotelFrameSerializer(call.stream_id, call.call_id)
        case "twilio":
            quiet = TwilioFrameSerializer.InputParams(auto_hang_up=False)
            return TwilioFrameSerializer(call.stream_id, params=quiet)
        case "plivo":
            return PlivoFrameSerializer(
                call.stream_id, params=PlivoFrameSerializer.InputParams(auto_hang_up=False)
            )
        case "telnyx":
            coding = call.outbound_encoding
            return TelnyxFrameSerializer(
                call.stream_id, coding, coding, params=TelnyxFrameSerializer.InputParams(auto_hang_up=False)
            )
    raise ValueError(f"there is no serializer for {protocol}")


@app.websocket("/ws")
async def serve(websocket: WebSocket) -> None:
    """Be the agent of one call."""
    await websocket.accept()
    protocol, call = await parse_telephony_websocket(websocket)
    print(f"call {call.call_id} by {protocol}", flush=True)
    transport = FastAPIWebsocketTransport(
        websocket,
        FastAPIWebsocketParams(
            audio_in_enabled=True, audio_out_enabled=True, serializer=serializer_of(protocol, call)
        ),
    )
    worker = PipelineWorker(
        Pipeline([transport.input(), Parrot(), transport.output()]),
        params=PipelineParams(audio_in_sample_rate=RATE_HZ, audio_out_sample_rate=RATE_HZ),
        enable_rtvi=False,
    )

    @transport.event_handler("on_client_disconnected")
    async def gone(*_: Any) -> None:
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


@app.get("/health")
async def health() -> dict[str, str]:
    """Say that it listens."""
    return {"status": "ok"}


def main() -> None:
    """Listen for calls until the process is ended."""
    parser = argparse.ArgumentParser(description="A voice agent made with pipecat.")
    parser.add_argument("--port", type=int, default=9000)
    uvicorn.run(app, host="127.0.0.1", port=parser.parse_args().port, log_level="warning")


if __name__ == "__main__":
    main()
