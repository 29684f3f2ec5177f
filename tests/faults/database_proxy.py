"""Stands between a server and its PostgreSQL: cuts, refuses, delays, and swallows the answer to a COMMIT."""

from __future__ import annotations

import math
import selectors
import socket
import threading
import time
from collections import deque
from pathlib import Path
from typing import Final

__all__ = ["DatabaseProxy"]

_LISTEN_AGAIN_S: Final = 0.05
_COMMIT: Final = b"COMMIT"
_FUNCTION: Final = b"\0function_"
"""In the message that executes a prepared function, which is a whole transaction."""
_LISTEN: Final = b"LISTEN"
_TURN: Final = b"pg_advisory_xact_lock"


class _Pair:
    """One connection of the server's, and ours to the database for it."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near, self.far = near, far
        self.late: deque[tuple[float, socket.socket, bytes]] = deque()
        self.committing = False
        self.listening = False
        self.writing = False

    def close(self) -> None:
        for side in (self.near, self.far):
            side.close()


class DatabaseProxy:
    """
    A Unix socket in `folder` that leads to the one in `behind`; it works on a thread of its own.

    Attributes:
        delay_s: How late everything arrives, in both directions: half the round trip to a machine elsewhere.
        commit_s: How late the answer to a COMMIT arrives, beside that.
        writes_alone: Whether that is so of those only that write calls, and not of renewals of leases.
        cut_commits: How many of the next COMMITs are answered by the end of the connection instead; the
            database has made them.
        cut: How many those were.
        deaf: Whether connections are cut on which the server listens for notifications.
    """

    def __init__(self, behind: Path, folder: Path) -> None:
        self.delay_s = 0.0
        self.commit_s = 0.0
        self.writes_alone = False
        self.cut_commits = 0
        self.cut = 0
        self.deaf = False
        self._behind = behind / ".s.PGSQL.5432"
        self._path = folder / ".s.PGSQL.5432"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen(64)
        self._listener.settimeout(_LISTEN_AGAIN_S)
        self._away = False
        self._pairs: list[_Pair] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="database-proxy", daemon=True)
        self._thread.start()

    def vanish(self) -> None:
        """Cut every connection, and refuse new ones until `come_back`."""
        self._away = True

    def come_back(self) -> None:
        """Accept connections to the database again."""
        self._away = False

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        # The others round a pause up to whole milliseconds.
        with selectors.SelectSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ, None)
            while not self._closing.is_set():
                for key, _ in ready.select(self._pause_s()):
                    if key.data is None:
                        self._accept(ready)
                    else:
                        self._carry(ready, key.data, key.fileobj)
                for pair in list(self._pairs):
                    self._send_late(ready, pair)
                    if self._away or (self.deaf and pair.listening):
                        self._drop(ready, pair)
            for pair in list(self._pairs):
                self._drop(ready, pair)

    def _pause_s(self) -> float:
        due = min((pair.late[0][0] for pair in self._pairs if pair.late), default=math.inf)
        return min(max(due - time.monotonic(), 0.0), _LISTEN_AGAIN_S)

    def _accept(self, ready: selectors.BaseSelector) -> None:
        near, _ = self._listener.accept()
        if self._away:
            near.close()
            return
        far = socket.socket(socket.AF_UNIX)
        far.connect(str(self._behind))
        pair = _Pair(near, far)
        self._pairs.append(pair)
        for side in (near, far):
            ready.register(side, selectors.EVENT_READ, pair)

    def _carry(self, ready: selectors.BaseSelector, pair: _Pair, side: object) -> None:
        if pair not in self._pairs:
            return
        source = pair.near if side is pair.near else pair.far
        try:
            data = source.recv(65_536)
        except OSError:
            data = b""
        if not data:
            self._drop(ready, pair)
        elif source is pair.near:
            pair.committing = _COMMIT in data or _FUNCTION in data
            pair.listening = pair.listening or _LISTEN in data
            pair.writing = pair.writing or _TURN in data
            pair.late.append((time.monotonic() + self.delay_s, pair.far, data))
        elif pair.committing and self.cut_commits > 0:
            self.cut_commits -= 1
            self.cut += 1
            self._drop(ready, pair)
        else:
            late = pair.committing and (pair.writing or not self.writes_alone)
            delay_s = self.delay_s + (self.commit_s if late else 0.0)
            pair.late.append((time.monotonic() + delay_s, pair.near, data))

    def _send_late(self, ready: selectors.BaseSelector, pair: _Pair) -> None:
        while pair.late and pair.late[0][0] <= time.monotonic():
            _, to, data = pair.late.popleft()
            try:
                to.sendall(data)
            except OSError:
                self._drop(ready, pair)
                return

    def _drop(self, ready: selectors.BaseSelector, pair: _Pair) -> None:
        if pair in self._pairs:
            self._pairs.remove(pair)
            for side in (pair.near, pair.far):
                ready.unregister(side)
            pair.close()
