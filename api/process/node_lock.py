"""Lock of one server per node of a data directory: a second would treat the calls of the first as lost."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path
from typing import Final

from api.process.failures import StartFailed

__all__ = ["NodeLock"]

_PATIENCE_S: Final = 3.0
"""Time for the system to release the lock of a process that was killed."""
_LOOK_EVERY_S: Final = 0.05


class NodeLock:
    """File lock of a node, held from before the database is opened until the process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    async def take(cls, folder: Path, node: str) -> NodeLock:
        """
        Acquire the lock; wait up to 3 s for a process that is just ending.

        Raises:
            StartFailed: A server with this node runs already, or the file cannot be made.
        """
        path = folder / f"node-{node}.lock"
        try:
            descriptor = await asyncio.to_thread(os.open, path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartFailed(f"cannot write {path}: {error.strerror or error}") from error
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return cls(path, descriptor)
            except BlockingIOError:
                if loop.time() > until:
                    os.close(descriptor)
                    raise StartFailed(
                        f"a server with the node {node} runs in {folder} already, and would lose its calls: "
                        "stop it first, or set TRUNKLINE_NODE or TRUNKLINE_DATA_DIR to another"
                    ) from None
            await asyncio.sleep(_LOOK_EVERY_S)

    def release(self) -> None:
        """Release the node to another server; the file stays, as another process may wait on it."""
        os.close(self._descriptor)
