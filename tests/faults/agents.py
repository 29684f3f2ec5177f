"""Agents that stall, swallow, die and come back, for a server that a test has running."""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.background import Background
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

__all__ = ["EchoAgent", "SwallowingRelay", "hostile_agent"]

_ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def hostile_agent(kind: str) -> Iterator[str]:
    """An agent that does one kind of harm to every connection; its URL."""
    command = [sys.executable, "-m", "tests.support.hostile_agent", kind]
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield f"ws://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


class EchoAgent:
    """A good agent that can be killed and started again at the same address."""

    def __init__(self) -> None:
        self._port = free_port()
        self.url = f"ws://127.0.0.1:{self._port}/ws"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = [sys.executable, "examples/echo_agent.py", "--port", str(self._port)]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert wait_until(self._listens, PATIENCE_S), "the agent does not listen"

    def kill(self) -> None:
        """End it at once, with all its connections."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), 1.0).close()
        except OSError:
            return False
        return True


class SwallowingRelay(Background):
    """
    A TCP relay whose paths go dead: from then on it takes nothing, gives nothing and closes nothing.

    Attributes:
        port: Where it listens on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        super().__init__()
        self._target = ("127.0.0.1", port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(0.1)
        self.port: int = self._server.getsockname()[1]
        self._paths: list[tuple[socket.socket, socket.socket]] = []
        self._dead = threading.Event()

    def close(self) -> None:
        """Close all connections."""
        for end in (self._server, *(end for path in self._paths for end in path)):
            end.close()

    @property
    def paths(self) -> int:
        """Number of connections relayed so far."""
        return len(self._paths)

    def go_dead(self) -> None:
        """Swallow everything from now on, as a path does whose far end has lost its power."""
        self._dead.set()

    def work(self) -> None:
        """Pass on what comes, until the paths are dead."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            while not self.over.is_set():
                for key, _ in selector.select(0.05):
                    if self._dead.is_set():
                        break
                    if key.fileobj is self._server:
                        self._accept(selector)
                    else:
                        self._pass(selector, key)
                if self._dead.is_set():
                    self.over.wait()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        near, _ = self._server.accept()
        far = socket.create_connection(self._target)
        self._paths.append((near, far))
        selector.register(near, selectors.EVENT_READ, far)
        selector.register(far, selectors.EVENT_READ, near)

    def _pass(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        source, sink = key.fileobj, key.data
        assert isinstance(source, socket.socket) and isinstance(sink, socket.socket)
        with contextlib.suppress(OSError):
            data = source.recv(65536)
            if data:
                sink.sendall(data)
                return
            sink.shutdown(socket.SHUT_WR)
        selector.unregister(source)
