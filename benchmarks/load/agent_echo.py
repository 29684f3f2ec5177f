"""
A WebSocket agent that sends every frame of audio back, as cheaply as Python can.

The path of its URL names the dialect; with `--calls-port`, requests by HTTP there create or sign the sessions
of the models that want that. It finds the payload in the text of the event instead of decoding JSON,
so that the tools' core is left to the load. With `--tls-port` it speaks TLS there, by the tests' certificate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import uvloop
from picows import WSFrame, WSListener, WSMsgType, WSTransport, WSUpgradeRequest, ws_create_server

from tests.support.tls_server import server_context

_FRAMES = {"echoed": 0, "streams": 0}
_COLON = ord(":")


class Echo(WSListener):
    """One stream: `before` and `after` are around a payload of its frames, `key` before one of the others."""

    def __init__(
        self, before: bytes, after: bytes = b'"}}', key: bytes = b'"payload"', first: bytes = b""
    ) -> None:
        super().__init__()
        self._before = before
        self._after = after
        self._key = key
        self._first = first

    def on_ws_connected(self, transport: WSTransport) -> None:
        _FRAMES["streams"] += 1
        if self._first:
            transport.send(WSMsgType.TEXT, self._first)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type == WSMsgType.PING:
            transport.send_pong(frame.get_payload_as_bytes())
        elif frame.msg_type == WSMsgType.CLOSE:
            transport.send_close(frame.get_close_code(), frame.get_close_message())
            transport.disconnect()
        elif frame.msg_type == WSMsgType.TEXT:
            payload = _payload(frame.get_payload_as_bytes(), self._key)
            if payload is not None:
                _FRAMES["echoed"] += 1
                transport.send(WSMsgType.TEXT, self._before + payload + self._after)
        elif frame.msg_type == WSMsgType.BINARY:
            _FRAMES["echoed"] += 1
            transport.send(WSMsgType.BINARY, frame.get_payload_as_bytes())


def _payload(event: bytes, key: bytes) -> bytes | None:
    at = event.find(key)
    if at < 0 or event[at + len(key)] != _COLON:
        return None
    begin = event.index(b'"', at + len(key)) + 1
    return event[begin : event.index(b'"', begin)]


def _accept(request: WSUpgradeRequest) -> Any:
    path = request.path.decode()
    if path.startswith("/openai"):
        return Echo(
            b'{"type":"response.output_audio.delta","item_id":"item","content_index":0,"delta":"',
            b'"}',
            b'"audio"',
            b'{"type":"session.updated"}',
        )
    if path.startswith("/deepgram"):
        return Echo(b"", first=b'{"type":"SettingsApplied"}')
    if path.startswith("/ultravox"):
        return Echo(b"", first=b'{"type":"call_started"}')
    if path.startswith("/gemini"):
        return Echo(
            b'{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=16000","data":"',
            b'"}}]}}}',
            b'"data"',
            b'{"setupComplete":{}}',
        )
    if path.startswith("/elevenlabs"):
        return Echo(
            b'{"type":"audio","audio_event":{"event_id":1,"audio_base_64":"',
            b'"}}',
            b'"user_audio_chunk"',
            b'{"type":"conversation_initiation_metadata","conversation_initiation_metadata_event":'
            b'{"agent_output_audio_format":"ulaw_8000","user_input_audio_format":"ulaw_8000"}}',
        )
    if not path.startswith("/plivo"):
        return Echo(b'{"event":"media","media":{"payload":"')
    form, rate = ("x-l16", 16000) if "16000" in path else ("x-mulaw", 8000)
    media = f'"contentType":"audio/{form}","sampleRate":{rate}'
    return Echo(b'{"event":"playAudio","media":{%s,"payload":"' % media.encode())


async def _create(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Answer one request with the URL of a session."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    for length in lengths:
        await reader.readexactly(int(length.partition(b":")[2]))
    if head.startswith(b"GET "):
        status, body = b"200 OK", b'{"signed_url":"ws://127.0.0.1:%d/elevenlabs"}' % port
    else:
        status, body = b"201 Created", b'{"joinUrl":"ws://127.0.0.1:%d/ultravox"}' % port
    rest = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
    writer.write(b"HTTP/1.1 %s\r\n%s" % (status, rest))
    await writer.drain()
    writer.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--calls-port", type=int)
    parser.add_argument("--tls-port", type=int)
    arguments = parser.parse_args()
    server = await ws_create_server(_accept, "127.0.0.1", arguments.port)
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with AsyncExitStack() as running:
        await running.enter_async_context(server)
        if arguments.tls_port is not None:
            secure = await ws_create_server(_accept, "127.0.0.1", arguments.tls_port, ssl=server_context())
            await running.enter_async_context(secure)
        if arguments.calls_port is not None:
            created = partial(_create, port=arguments.port)
            calls = await asyncio.start_server(created, "127.0.0.1", arguments.calls_port)
            await running.enter_async_context(calls)
        await over.wait()
    print(json.dumps(_FRAMES))


if __name__ == "__main__":
    uvloop.run(main())
