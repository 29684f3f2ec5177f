"""Puts TLS around a peer that only speaks TCP, as SIPp of Debian does, or takes it off."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

__all__ = ["TlsRelay"]

Open = Callable[[socket.socket], socket.socket]


class TlsRelay:
    """
    Takes connections on a port of 127.0.0.1 and passes their bytes to another port.

    With `outward` the far side is TLS, which the context belongs to; otherwise the near side is. `source` is
    the loopback address it connects from, `host` the one of the other port.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        target_port: int,
        *,
        outward: bool,
        port: int = 0,
        source: str = "127.0.0.1",
        host: str = "127.0.0.1",
    ) -> None:
        self._context = context
        self._target = (host, target_port)
        self._outward = outward
        self._source = source
        self._listener = socket.create_server(("127.0.0.1", port))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.connections = 0
        self.versions: list[str | None] = []
        """TLS versions of the connections, in their order."""

    @property
    def port(self) -> int:
        """Port on which it listens."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sock in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(5)

    def _run(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._run(self._join, near)

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._target, 10, (self._source, 0))
            far.settimeout(None)
            self._sockets += [near, far]
            if self._outward:
                far = secure = self._context.wrap_socket(far, server_hostname=self._target[0])
            else:
                near = secure = self._context.wrap_socket(near, server_side=True)
        except OSError:
            near.close()
            return
        self.connections += 1
        self.versions.append(secure.version())
        self._sockets += [near, far]
        self._run(_pass_on, far, near)
        _pass_on(near, far)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(65536):
            sink.sendall(data)
    for sock in (source, sink):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
