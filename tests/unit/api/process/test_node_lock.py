"""Two servers of one node: the second must not take the calls of the first for lost."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from api.process import node_lock
from api.process.failures import StartFailed
from api.process.node_lock import NodeLock
from tests.support.waiting import holds_for

_HOLD = (
    "import asyncio, sys, time; from pathlib import Path\nfrom api.process.node_lock import NodeLock\n"
    "lock = asyncio.run(NodeLock.take(Path(sys.argv[1]), 'green'))\n"
    "print('held', flush=True); time.sleep(600)"
)


async def test_a_second_server_of_a_node_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_lock, "_PATIENCE_S", 0.1)
    lock = await NodeLock.take(tmp_path, "green")
    with pytest.raises(StartFailed, match="TRUNKLINE_NODE"):
        await NodeLock.take(tmp_path, "green")
    (await NodeLock.take(tmp_path, "blue")).release()
    lock.release()
    (await NodeLock.take(tmp_path, "green")).release()
    assert (tmp_path / "node-green.lock").stat().st_mode & 0o077 == 0


async def test_one_that_is_killed_is_waited_for_and_leaves_nothing_behind(tmp_path: Path) -> None:
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _HOLD, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"held\n"
        taking = asyncio.create_task(NodeLock.take(tmp_path, "green"))
        await holds_for(0.1, lambda: not taking.done())
    finally:
        holder.kill()
        await holder.wait()
    (await taking).release()
