"""A real Kamailio with the configuration of `deploy/kamailio`, in front of servers under test."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.support.ports import free_port
from tests.support.server_process import wait_until

__all__ = ["Front", "ask", "asked", "needs_kamailio"]

_KAMAILIO = shutil.which("kamailio") or shutil.which("kamailio", path="/usr/sbin")
# `make` installs it; a run without it says at its end what it has skipped.
needs_kamailio = pytest.mark.skipif(_KAMAILIO is None, reason="Kamailio is not installed (Debian: kamailio)")
_SHIPPED = Path(__file__).parents[2] / "deploy" / "kamailio"
_STOP_TIMEOUT_S = 30.0


class Front:
    """
    One Kamailio over UDP and TCP at an address of its own, which no gateway has.

    Attributes:
        host, port: Its address.
        tls_port: Its port for TLS.
        directory: Folder of its list of nodes and its log.

    Args:
        tls: Folder with front.crt, front.key and ca.crt, for one that speaks TLS as well.
        nodes_by_address: Whether its nodes are known by their address alone.
    """

    def __init__(
        self,
        directory: Path,
        host: str = "127.0.0.5",
        *,
        tls: Path | None = None,
        nodes_by_address: bool = False,
    ) -> None:
        self.host = host
        self.port = free_port()
        self.tls_port = free_port()
        self.directory = directory
        self._tls = tls
        self._nodes_by_address = nodes_by_address
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    def start(self, nodes: Sequence[str]) -> None:
        """Start it before the nodes, which are SIP addresses, and wait until one takes calls."""
        assert _KAMAILIO is not None, "Kamailio is not installed (Debian: kamailio)"
        self.directory.mkdir(parents=True, exist_ok=True)
        nodes_file = self.directory / "dispatcher.list"
        nodes_file.write_text("".join(f"1 {node}\n" for node in nodes))
        definitions = [
            f"FRONT_LISTEN=udp:{self.address}",
            f'NODES="{nodes_file}"',
            f"FRONT_TCP=tcp:{self.address}",
            f"FRONT_TCP_SOURCE={self.host}",
        ]
        if self._tls is not None:
            tls_file = self.directory / "tls.cfg"
            shipped = (_SHIPPED / "tls.cfg").read_text()
            tls_file.write_text(shipped.replace("/etc/kamailio/tls", str(self._tls)))
            definitions += [f"FRONT_TLS=tls:{self.host}:{self.tls_port}", f'TLS_CONFIG="{tls_file}"']
        if self._nodes_by_address:
            definitions.append("NODES_BY_ADDRESS=1")
        with (self.directory / "kamailio.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(_KAMAILIO, "-f", str(_SHIPPED / "kamailio.cfg"), "-DD", "-E", "-m", "32", "-M", "4"),
                    *("-w", str(self.directory), "-Y", str(self.directory)),
                    *(part for definition in definitions for part in ("-A", definition)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        assert wait_until(self._is_ready, 30.0), self.log()

    def stop(self) -> None:
        """End it; calls in progress go on without it."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_TIMEOUT_S)

    def log(self) -> str:
        """Output of Kamailio so far."""
        return (self.directory / "kamailio.log").read_text(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _is_ready(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self.log()
        return ask(self.address, "OPTIONS", f"sip:{self.address}", patience_s=0.3) == 200


def ask(
    target: str,
    method: str,
    uri: str,
    *,
    host: str = "127.0.0.1",
    fields: Sequence[str] = (),
    patience_s: float = 15.0,
) -> int | None:
    """Send one request over UDP from a free port of a host; the status of its final response, or None."""
    return asked(target, method, uri, host=host, fields=fields, patience_s=patience_s)[0]


def asked(
    target: str,
    method: str,
    uri: str,
    *,
    host: str = "127.0.0.1",
    fields: Sequence[str] = (),
    patience_s: float = 15.0,
) -> tuple[int | None, str]:
    """Send one request as `ask` does; the status of its final response, or None, and the response."""
    to_host, _, to_port = target.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((host, 0))
        sock.settimeout(patience_s)
        port = sock.getsockname()[1]
        head = [
            f"{method} {uri} SIP/2.0",
            f"Via: SIP/2.0/UDP {host}:{port};branch=z9hG4bK{method}{port};rport",
            f"From: <sip:somebody@{host}>;tag={port}",
            f"To: <{uri}>",
            f"Call-ID: {method}-{port}@{host}",
            f"CSeq: 1 {method}",
            f"Contact: <sip:somebody@{host}:{port}>",
            "Max-Forwards: 70",
            *fields,
            "Content-Length: 0",
        ]
        sock.sendto(("\r\n".join(head) + "\r\n\r\n").encode(), (to_host, int(to_port)))
        try:
            while True:
                response = sock.recv(65_535).decode()
                found = re.match(r"SIP/2\.0 ([2-6][0-9]{2}) ", response)
                if found is not None:
                    return int(found[1]), response
        except TimeoutError:
            return None, ""
