"""
The smallest voice agent: it sends back what it hears, and hangs up on the key #.

It speaks the default stream protocol, in which every message is JSON. Run it, then give a call its address:

    .venv/bin/python examples/echo_agent.py --port 9000
    "stream_url": "ws://127.0.0.1:9000/ws"
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from aiohttp import WSMsgType, web


async def answer(socket: web.WebSocketResponse, message: dict[str, Any]) -> None:
    """React to one message of the server."""
    match message["event"]:
        case "start":
            call = message["start"]
            print(f"{call['from']} is on the line, at {call['media_format']['sample_rate']} Hz", flush=True)
        case "media":
            # 20 ms of what the caller says, L16 in base64. What is sent is queued and played in order.
            payload = message["media"]["payload"]
            await socket.send_json({"event": "media", "media": {"payload": payload}})
        case "dtmf" if message["dtmf"]["digit"] == "#":
            # What is still queued is played first; without `drain` the call would end at once.
            await socket.send_json({"event": "hangup", "hangup": {"drain": True}})
        case "stop":
            print(f"it is over: {message['stop']['detail']}", flush=True)


async def serve(request: web.Request) -> web.WebSocketResponse:
    """Be the agent of one call."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for frame in socket:
        if frame.type is WSMsgType.TEXT:
            await answer(socket, json.loads(frame.data))
    return socket


def main() -> None:
    """Listen for calls until the process is ended."""
    parser = argparse.ArgumentParser(description="A voice agent that echoes.")
    parser.add_argument("--port", type=int, default=9000)
    arguments = parser.parse_args()
    app = web.Application()
    app.router.add_get("/ws", serve)
    url = f"ws://127.0.0.1:{arguments.port}/ws"
    web.run_app(
        app, host="127.0.0.1", port=arguments.port, print=lambda _: print(f"listening on {url}", flush=True)
    )


if __name__ == "__main__":
    main()
