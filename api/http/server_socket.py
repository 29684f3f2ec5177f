"""Listening socket of the HTTP API: bound or inherited, served, and released."""

from __future__ import annotations

import socket

from aiohttp import web

from api.http.connections import GuardedSite
from api.process.values import HostPort

__all__ = ["HttpServerSocket"]

_SHUTDOWN_S = 5.0


class HttpServerSocket:
    """
    One listening address of the API.

    Raises:
        OSError: On construction, when the address cannot be bound.
    """

    def __init__(self, listen: HostPort, inherited: socket.socket | None = None) -> None:
        self.name = f"http:{listen}"
        self._sock = inherited or _bound(listen)
        self._sock.setblocking(False)
        self._runner: web.AppRunner | None = None
        self._site: GuardedSite | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Bound host and port."""
        host, port = self._sock.getsockname()[:2]
        return host, port

    async def serve(self, app: web.Application) -> None:
        """Start to serve requests."""
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_S)
        await self._runner.setup()
        await self.resume()

    async def pause(self) -> socket.socket:
        """Stop accepting connections, and return the socket for another process to accept on."""
        site, self._site = self._site, None
        if site is not None:
            await site.stop()
        return self._sock

    async def resume(self) -> None:
        """Accept connections; does nothing before `serve`."""
        if self._runner is not None and self._site is None:
            # On a copy: stopping the site closes it, and the socket itself may go to another process.
            self._site = GuardedSite(self._runner, self._sock.dup())
            await self._site.start()

    async def close(self) -> None:
        """Wait up to 5 s for requests in progress, then close the socket. Idempotent."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        self._sock.close()


def _bound(listen: HostPort) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock
