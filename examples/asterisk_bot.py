"""
A bot made for Asterisk's AudioSocket: it sends back what it hears, and hangs up on the key #.

The same program serves Asterisk's application AudioSocket() and a call here:

    .venv/bin/python examples/asterisk_bot.py --port 9092
    "stream_url": "audiosocket://127.0.0.1:9092"
"""

from __future__ import annotations

import argparse
import asyncio
from uuid import UUID

HANGUP, IDENTIFIER, DTMF, AUDIO = 0x00, 0x01, 0x03, 0x10


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Be the bot of one call: each frame is one byte of kind, two of length, and the payload."""
    try:
        while True:
            head = await reader.readexactly(3)
            payload = await reader.readexactly(int.from_bytes(head[1:], "big"))
            match head[0]:
                case kind if kind == IDENTIFIER:
                    print(f"call {UUID(bytes=payload)}", flush=True)
                case kind if kind == AUDIO:
                    # 20 ms of what the caller says, L16 at 8 kHz.
                    writer.write(head + payload)
                case kind if kind == DTMF and payload == b"#":
                    writer.write(bytes((HANGUP, 0, 0)))
                case kind if kind == HANGUP:
                    return
    except asyncio.IncompleteReadError:
        # The connection may also just end.
        return
    finally:
        print("it is over", flush=True)
        writer.close()


async def listen(port: int) -> None:
    """Listen for calls until the process is ended."""
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    print(f"listening on audiosocket://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Run the bot."""
    parser = argparse.ArgumentParser(description="An AudioSocket bot that echoes.")
    parser.add_argument("--port", type=int, default=9092)
    asyncio.run(listen(parser.parse_args().port))


if __name__ == "__main__":
    main()
