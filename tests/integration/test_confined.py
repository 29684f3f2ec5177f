"""
The server as its container and its systemd unit run it: not root, no capability, only its data to write.

There need not be a container runtime: the same confinement is made of a mount namespace and `setpriv`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sandbox_process import NUMBER, calls, place_call, sandbox_process
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
UID = 10001
PROGRAMS = ("unshare", "setpriv", "mount")

pytestmark = [
    pytest.mark.real_time(reason="a server in a process of its own"),
    pytest.mark.skipif(
        os.geteuid() != 0 or any(shutil.which(program) is None for program in PROGRAMS),
        reason="only root can make a mount namespace, and it takes unshare and setpriv",
    ),
]

# No writable code pages from here on (systemd's MemoryDenyWriteExecute), where the kernel knows of that.
DENY_WRITE_EXECUTE = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)


def locked_away(path: Path) -> Path | None:
    """The first folder on the way to a path that others than its owner cannot go through."""
    ways = [*reversed(path.parents), path]
    return next((way for way in ways if not way.stat().st_mode & stat.S_IXOTH), None)


def opened(paths: list[Path], scratch: Path) -> list[str]:
    """Return the mounts that open paths below folders of root's own, in the namespace alone."""
    locked = {path: lock for path in paths if (lock := locked_away(path)) is not None}
    held = {path: shlex.quote(f"{scratch}{index}") for index, path in enumerate(locked)}
    return [
        *(f"mkdir {held[path]}; mount --bind {shlex.quote(str(path))} {held[path]}" for path in locked),
        *(f"mount -t tmpfs -o mode=755 none {shlex.quote(str(lock))}" for lock in set(locked.values())),
        *(f"mkdir -p {shlex.quote(str(path))}; mount --bind {held[path]} {path}" for path in locked),
        *(f"umount {place}; rmdir {place}" for place in held.values()),
    ]


def confinement(data: Path) -> tuple[str, ...]:
    """The command that runs what follows it confined to a folder."""
    folder = shlex.quote(str(data))
    script = "; ".join(
        [
            "set -e",
            *opened(sorted({Path(sys.prefix), Path(sys.base_prefix), ROOT}), data / "held"),
            f"mount --bind {folder} {folder}",
            "awk '{print $2}' /proc/self/mounts | sort -u | while read where; do case $where in"
            f" {folder}|/proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro $where || [ ! -e $where ];;"
            " esac; done",
            f"exec setpriv --reuid {UID} --regid {UID} --clear-groups --no-new-privs --bounding-set=-all"
            f" --inh-caps=-all {shlex.quote(sys.executable)} -c {shlex.quote(DENY_WRITE_EXECUTE)}"
            ' "$@"',
        ]
    )
    return "unshare", "--mount", "--propagation", "private", "sh", "-c", script, "confined"


@pytest.fixture
def data() -> Iterator[Path]:
    # Not pytest's own folder, which is root's alone.
    folder = Path(tempfile.mkdtemp(prefix="tl-confined-"))
    os.chown(folder, UID, UID)
    yield folder
    shutil.rmtree(folder)


def status_of(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/status").read_text()
    return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.MULTILINE))


def test_everything_works_without_a_privilege_and_with_nothing_to_write_but_the_data(data: Path) -> None:
    """As another user, without capabilities, on a read-only system a call is spoken and recorded."""
    server = sandbox_process(data, prefix=confinement(data))
    server.start()
    try:
        status = status_of(server.pid)
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(UID)}
        assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {0}
        assert status["NoNewPrivs"] == "1"
        mounts = Path(f"/proc/{server.pid}/mountinfo").read_text().splitlines()
        writable = {line.split()[4] for line in mounts if "rw" in line.split()[5].split(",")}
        assert {where for where in writable if not where.startswith(("/proc", "/sys", "/dev"))} == {str(data)}

        account = server.add_account()
        server.add_number(account, NUMBER)
        call = place_call(server, account, {"verb": "say", "text": "Your parcel is here."}, record=True)
        assert (call["status"], call["hangup_cause"]) == ("completed", "NORMAL_CLEARING")
        # The recording is complete a moment after its call.
        assert wait_until(lambda: calls(server, account)[0]["recording_url"] is not None, PATIENCE_S)
        (recording,) = (data / "recordings").rglob("*.wav")
        assert recording.stat().st_uid == UID and recording.stat().st_size > 8000
        assert "not spoken" not in server.log() and "Traceback" not in server.log()
    finally:
        assert server.stop() == 0
