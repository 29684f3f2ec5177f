"""A real HAProxy with the configuration of `deploy/haproxy`, in front of servers under test."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.ports import free_port
from tests.support.server_process import wait_until

__all__ = ["CONFIGURATION", "HAPROXY", "HttpFront", "Passed"]

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CONFIGURATION = Path(__file__).parents[2] / "deploy" / "haproxy" / "haproxy.cfg"
_STOP_TIMEOUT_S = 30.0
# As the configuration writes it; a request without a node has <NOSRV>.
_LINE = re.compile(r"(?m)^\S+ nodes/(\S+) \S+ (-?\d+) \d+ (\S+) \+?\d+ (\S+) (\S+)$")
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Passed:
    """One request in the log: the name of its node, its status, how it ended, method and path."""

    node: str
    status: int
    end: str
    method: str
    path: str


class HttpFront:
    """
    One HAProxy on a port of 127.0.0.1.

    Attributes:
        port: Its port.
        directory: Folder of its list of nodes and its log.
    """

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Root URL of the API behind it."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, nodes: Mapping[str, str]) -> None:
        """Start it before nodes, given by name and address, and wait until one answers through it."""
        assert HAPROXY is not None, "HAProxy is not installed (Debian: haproxy)"
        self.directory.mkdir(parents=True, exist_ok=True)
        nodes_file = self.directory / "nodes.cfg"
        servers = "".join(f"    server {name} {address}\n" for name, address in nodes.items())
        nodes_file.write_text(f"backend nodes from cluster\n{servers}")
        with (self.directory / "haproxy.log").open("ab") as log:
            self._process = subprocess.Popen(
                [HAPROXY, "-db", "-f", str(CONFIGURATION), "-f", str(nodes_file)],
                env={"API_LISTEN": f"127.0.0.1:{self.port}", "API_MAXCONN": "1000"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        assert wait_until(self._is_ready, 30.0), self.log()

    def stop(self) -> None:
        """End it, with all that passes through it."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_TIMEOUT_S)

    def log(self) -> str:
        """Output of HAProxy so far."""
        return (self.directory / "haproxy.log").read_text(errors="replace")

    def passed(self) -> list[Passed]:
        """The requests that have ended, in the order of their ends."""
        return [
            Passed(node, int(status), end, method, path)
            for node, status, end, method, path in _LINE.findall(self.log())
        ]

    def node_of(self, **headers: str) -> str:
        """Name of the node that a request with these headers goes to; underscores are hyphens."""
        path = f"/nowhere/{next(_numbers)}"
        lines = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            urllib.request.urlopen(urllib.request.Request(self.url + path, headers=lines), timeout=30).close()
        except urllib.error.HTTPError as error:
            error.close()
        found: list[str] = []

        def has_ended() -> bool:
            found.extend(one.node for one in self.passed() if one.path == path)
            return bool(found)

        assert wait_until(has_ended, 30.0), self.log()
        return found[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _is_ready(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self.log()
        try:
            with urllib.request.urlopen(f"{self.url}/ready", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False
