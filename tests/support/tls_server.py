"""TLS of servers on this machine, for what only speaks TCP too; light enough for a process of its own."""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextlib import suppress
from pathlib import Path

__all__ = ["CERTIFICATE", "in_front_of", "server_context"]

_TLS = Path(__file__).parent.parent / "vectors" / "tls"
CERTIFICATE = str(_TLS / "cert.pem")


def server_context() -> ssl.SSLContext:
    """TLS of a server that is `bot.test`, and 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, _TLS / "key.pem")
    return context


def in_front_of(port: int) -> int:
    """Speak TLS in front of a port, from a thread that ends with the process; returns its port."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    server = asyncio.run_coroutine_threadsafe(_listen(port), loop).result()
    found: int = server.sockets[0].getsockname()[1]
    return found


async def _listen(port: int) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.TaskGroup() as pumps:
            pumps.create_task(_pump(reader, behind[1]))
            pumps.create_task(_pump(behind[0], writer))

    return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_context())


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
