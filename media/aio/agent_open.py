"""Opens the socket of a stream: a WebSocket in an engine thread, or AudioSocket in Python."""

from __future__ import annotations

from media.aio.agent_audiosocket import open_audiosocket
from media.aio.agent_dial import Resolve, dial_tcp, dial_websocket
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_socket import SocketListener
from media.aio.engine_socket import EngineSocket
from media.aio.stream import RtpStream
from media.errors import EngineClosed
from media.streams import Dialect, StreamConnectError, StreamSetup
from media.streams.dialects.audiosocket import AudioSocketDialect

__all__ = ["open_socket"]


async def open_socket(
    stream: SocketListener,
    dialect: Dialect,
    setup: StreamSetup,
    settings: AgentStreamSettings,
    resolve: Resolve,
    carrier: RtpStream | None,
) -> None:
    """
    Open the socket of a stream; ``stream.on_open`` gets it.

    Args:
        stream: Receiver of what happens on the socket.
        dialect: Protocol of the stream.
        setup: Description of the stream.
        settings: Limits and periods.
        resolve: Maps host, port and use of TLS to the addresses that may be dialled.
        carrier: Stream whose engine thread carries a WebSocket; None if the call has none.

    Raises:
        StreamConnectError: It could not be opened.
    """
    if setup.dialect == AudioSocketDialect.name:
        sock = await dial_tcp(setup, resolve, settings.dial)
        await open_audiosocket(stream, sock, dialect, setup, settings)
        return
    if carrier is None:
        raise StreamConnectError("connect", detail="the call has no media")
    connected = await dial_websocket(setup, resolve, settings.dial)
    try:
        opened = EngineSocket(stream, connected, carrier, setup, settings, dialect.binary_audio)
    except EngineClosed:
        raise StreamConnectError("connect", detail="the media engine is closed") from None
    stream.on_open(opened)
