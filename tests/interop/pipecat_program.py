"""
A voice agent made of pipecat's own parts; a program of its own, for the environment that pipecat has.

Its first line says on which port it listens: calls come in at `/ws` and `/ws/{dialect}`, the test steers the
latest of them by HTTP. Nothing of pipecat is changed: the detection of the stock runner, its serializers, its
WebSocket transport in a pipeline.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import sys
from array import array
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket
from loguru import logger
from pipecat.frames.frames import (
    EndFrame,
    Frame,
    InputAudioRawFrame,
    InputDTMFFrame,
    OutputTransportMessageUrgentFrame,
    TTSAudioRawFrame,
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
from pipecat.serializers.vonage import VonageFrameSerializer
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.workers.runner import WorkerRunner

# What text-to-speech services give; the serializers have to bring it to the rate of the stream.
SPEECH_RATE_HZ = 24000
AMPLITUDE = 8000


class Ear(FrameProcessor):
    """Keeps what the caller says and presses."""

    def __init__(self) -> None:
        super().__init__()
        self.audio = bytearray()
        self.keys = ""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Keep a frame that is of interest, and pass all of them on."""
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            self.audio += frame.audio
            return
        if isinstance(frame, InputDTMFFrame):
            self.keys += frame.button.value
        await self.push_frame(frame, direction)


class Session:
    """One call, as pipecat has it."""

    def __init__(self, dialect: str, call: dict[str, Any], rate_hz: int) -> None:
        self.dialect = dialect
        self.call = call
        self.rate_hz = rate_hz
        self.ear = Ear()
        self.worker: PipelineWorker | None = None
        self.ready = self.disconnected = self.over = False

    async def run(self, websocket: WebSocket, serializer: FrameSerializer) -> None:
        """Be the agent of the call until its pipeline has ended."""
        transport = FastAPIWebsocketTransport(
            websocket,
            FastAPIWebsocketParams(audio_in_enabled=True, audio_out_enabled=True, serializer=serializer),
        )
        self.worker = PipelineWorker(
            Pipeline([transport.input(), self.ear, transport.output()]),
            params=PipelineParams(audio_in_sample_rate=self.rate_hz, audio_out_sample_rate=SPEECH_RATE_HZ),
            enable_rtvi=False,
        )

        @transport.event_handler("on_client_connected")
        async def connected(*_: Any) -> None:
            self.ready = True

        @transport.event_handler("on_client_disconnected")
        async def disconnected(*_: Any) -> None:
            self.disconnected = True
            assert self.worker is not None
            await self.worker.cancel()

        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self.worker)
        await runner.run()
        self.over = True

    async def do(self, what: str, body: dict[str, Any]) -> None:
        """Do what the test asks for."""
        assert self.worker is not None
        match what:
            case "tone":
                await self.worker.queue_frames(speech(body["hz"], body["seconds"]))
            case "interrupt":
                await self.ear.broadcast_interruption()
            case "say":
                await self.worker.queue_frame(OutputTransportMessageUrgentFrame(message=body))
            case "end":
                await self.worker.queue_frame(EndFrame())

    def state(self) -> dict[str, Any]:
        """Return the state that the test may read."""
        return {
            "dialect": self.dialect,
            "call": self.call,
            "rate_hz": self.rate_hz,
            "keys": self.ear.keys,
            "heard_bytes": len(self.ear.audio),
            "ready": self.ready,
            "disconnected": self.disconnected,
            "over": self.over,
        }


def speech(hz: float, seconds: float) -> list[Frame]:
    """A tone, in frames as a text-to-speech service gives them."""
    samples = array(
        "h",
        (
            round(AMPLITUDE * math.sin(2 * math.pi * hz * at / SPEECH_RATE_HZ))
            for at in range(round(seconds * SPEECH_RATE_HZ))
        ),
    )
    pcm, step = samples.tobytes(), SPEECH_RATE_HZ // 5
    return [TTSAudioRawFrame(pcm[at : at + step], SPEECH_RATE_HZ, 1) for at in range(0, len(pcm), step)]


def serializer_of(dialect: str, call: dict[str, Any], query: dict[str, str]) -> FrameSerializer:
    """The stock serializer, made as its documentation says."""
    rate = int(query.get("sample-rate", "8000"))
    stream = call.get("stream_id") or ""
    match dialect:
        case "exotel":
            params = ExotelFrameSerializer.InputParams(exotel_sample_rate=rate)
            return ExotelFrameSerializer(stream, call["call_id"], params=params)
        case "twilio":
            body = call["body"]
            return TwilioFrameSerializer(
                stream,
                call["call_id"],
                account_sid=body["account"],
                auth_token=body["key"],
                base_url=body["base_url"],
            )
        case "vonage":
            return VonageFrameSerializer(VonageFrameSerializer.InputParams(vonage_sample_rate=rate))
        case "plivo":
            silent = PlivoFrameSerializer.InputParams(auto_hang_up=False)
            return PlivoFrameSerializer(stream, call["call_id"], params=silent)
        case "telnyx":
            quiet = TelnyxFrameSerializer.InputParams(auto_hang_up=False)
            coding = call["outbound_encoding"]
            return TelnyxFrameSerializer(
                stream, outbound_encoding=coding, inbound_encoding=coding, params=quiet
            )
    raise ValueError(f"pipecat does not know {dialect}")


app = FastAPI()
sessions: list[Session] = []
complaints: list[str] = []


@app.websocket("/ws")
async def detected(websocket: WebSocket) -> None:
    """Find out what speaks, as the stock runner does."""
    await websocket.accept()
    dialect, found = await parse_telephony_websocket(websocket)
    await serve(websocket, dialect, found.model_dump(by_alias=True))


@app.websocket("/ws/{dialect}")
async def told(websocket: WebSocket, dialect: str) -> None:
    """Speak with what the path names: nothing tells this dialect by its frames."""
    await websocket.accept()
    await serve(websocket, dialect, {})


async def serve(websocket: WebSocket, dialect: str, call: dict[str, Any]) -> None:
    """Run one call."""
    query = dict(websocket.query_params)
    session = Session(dialect, call, int(query.get("sample-rate", "8000")))
    sessions.append(session)
    await session.run(websocket, serializer_of(dialect, call, query))


@app.get("/state")
async def state() -> dict[str, Any]:
    """The calls there were, in their order, and what pipecat complained about."""
    return {"sessions": [session.state() for session in sessions], "complaints": complaints}


@app.get("/heard")
async def heard(seconds: float) -> Response:
    """The latest audio of the caller, L16 at the rate of the pipeline."""
    session = sessions[-1]
    size = round(seconds * session.rate_hz) * 2
    return Response(bytes(session.ear.audio[-size:]), media_type="application/octet-stream")


@app.post("/do/{what}")
async def do(what: str, request: Request) -> dict[str, Any]:
    """Make the agent of the latest call do something."""
    await sessions[-1].do(what, await request.json())
    return {}


async def main() -> None:
    """Serve until the process is told to end."""
    logger.remove()
    logger.add(lambda line: complaints.append(str(line)), level="WARNING", format="{level} {message}")
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[listener])


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
