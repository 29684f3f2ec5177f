"""
The server as a separate process, for tests and benchmarks.

It runs `python -m api serve` on free ports in a directory of the caller's, runs administrative commands
beside it, and calls its REST API. Everything here blocks: it is for test threads, not for an event loop.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.fork_server import ForkedProcess, fork_server
from tests.support.ports import free_port, port_range

__all__ = ["Account", "Reply", "ServerFailed", "ServerProcess", "wait_until"]

_ROOT = Path(__file__).resolve().parents[2]
_START_TIMEOUT_S = 180.0
_KEY = re.compile(r"vk_[\w-]{43}")
_POLL_S = 0.05
_SANDBOX_PORTS = 200
_pause = threading.Event()


class ServerFailed(Exception):
    """The server or a command failed; the text holds its output."""


@dataclass(frozen=True, slots=True)
class Account:
    """Account created for a test."""

    account_sid: str
    api_key: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and decoded JSON body of a response; the text itself when it is not JSON."""

    status: int
    body: Any

    @property
    def data(self) -> Any:
        """`data` of the envelope."""
        return self.body["data"]


class ServerProcess:
    """
    One running server.

    Attributes:
        http_port, sip_port: Its ports on 127.0.0.1; SIP by both UDP and TCP.
        tls_port: Its port for SIP over TLS on 127.0.0.1, when it has a certificate and key.
        process: The process, whose `pid` benchmarks measure.
        checkout: Another checkout of the product, which runs by its own `.venv`; None for this one.
        forked: True to fork servers from a process that has imported everything, which starts them in a
            fraction of the time. Tests set it; benchmarks execute the server.
    """

    forked = False
    checkout: Path | None = None

    def __init__(
        self,
        data_dir: Path,
        *,
        environment: Mapping[str, str] | None = None,
        sip_port: int | None = None,
        tls: tuple[Path, Path] | None = None,
        rtp_ports: int = 400,
        prefix: Sequence[str] = (),
    ) -> None:
        self.data_dir = data_dir
        self.http_port = free_port()
        self.sip_port = sip_port or free_port()
        self.tls_port = free_port() if tls is not None else None
        listens = f"udp:127.0.0.1:{self.sip_port},tcp:127.0.0.1:{self.sip_port}"
        secure: dict[str, str] = {}
        if tls is not None:
            listens += f",tls:127.0.0.1:{self.tls_port}"
            secure = {"TRUNKLINE_SIP_TLS_CERT": str(tls[0]), "TRUNKLINE_SIP_TLS_KEY": str(tls[1])}
        sandbox: dict[str, str] = {}
        if (environment or {}).get("TRUNKLINE_SANDBOX_CARRIER") == "1":
            # Its default ports may be among those that another server of the tests was given.
            sandbox = {"TRUNKLINE_SANDBOX_RTP_PORTS": "{}-{}".format(*port_range(_SANDBOX_PORTS))}
        self._prefix = list(prefix)
        self._log = data_dir / "server.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")},
            "PYTHONPATH": str(_ROOT),
            "TRUNKLINE_HTTP_LISTEN": f"127.0.0.1:{self.http_port}",
            "TRUNKLINE_SIP_LISTEN": listens,
            **secure,
            **sandbox,
            "TRUNKLINE_RTP_PORTS": "{}-{}".format(*port_range(rtp_ports)),
            "TRUNKLINE_DATA_DIR": str(data_dir),
            "TRUNKLINE_SANDBOX_CARRIER": "0",
            "TRUNKLINE_TRUSTED_SOURCES": "127.0.0.0/8",
            "TRUNKLINE_ALLOW_PRIVATE_DESTINATIONS": "1",
            **(environment or {}),
        }
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None

    def successor(self, node: str) -> ServerProcess:
        """Make a server for a hot restart of this one: the same addresses and data with another node."""
        found = copy.copy(self)
        found._environment = {**self._environment, "TRUNKLINE_NODE": node}
        found.process = None
        return found

    def also_listen(self, *listens: str) -> None:
        """Add SIP addresses (`udp:[::1]:5060`); call before `start`."""
        self._environment["TRUNKLINE_SIP_LISTEN"] += "".join(f",{listen}" for listen in listens)

    def set(self, **environment: str) -> None:
        """Change settings; call before `start`."""
        self._environment.update(environment)

    @property
    def url(self) -> str:
        """Root URL of the REST API."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self.process is not None, "the server has not been started"
        return self.process.pid

    def start(self) -> None:
        """
        Start the server and wait until it is ready.

        Raises:
            ServerFailed: It ended, or was not ready in time.
        """
        process = self.launch()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._is_ready():
            if process.poll() is not None:
                raise ServerFailed(f"the server ended with {process.returncode}:\n{self.log()}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"the server was not ready in time:\n{self.log()}")
            _pause.wait(_POLL_S)

    def launch(self) -> subprocess.Popen[bytes] | ForkedProcess:
        """Start the server, and do not wait until it is ready."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self.process = process = self._launch(log.fileno())
        return process

    def _launch(self, log: int) -> subprocess.Popen[bytes] | ForkedProcess:
        # A fork cannot run under a prefix command or load the libraries of LD_PRELOAD.
        if self.forked and not self._prefix and "LD_PRELOAD" not in self._environment:
            return fork_server().start(
                ["serve"], environment=self._environment, directory=self.data_dir, out=log
            )
        return subprocess.Popen(
            [*self._prefix, *self._program(), "serve"],
            env=self._environment,
            cwd=self.data_dir,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    def _program(self) -> list[str]:
        """Command of the program; sets the path of its modules."""
        if self.checkout is None:
            return [sys.executable, "-m", "api"]
        self._environment["PYTHONPATH"] = str(self.checkout)
        return [str(self.checkout / ".venv/bin/python"), "-m", "api"]

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Start the server for a block that sets it up; kill it if the block fails."""
        self.start()
        try:
            yield
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout_s: float = 90.0) -> int:
        """Drain the server and return its exit status; kill it when it does not end in time."""
        assert self.process is not None, "the server has not been started"
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(f"the server did not end on SIGTERM:\n{self.log()}") from None

    def kill(self) -> None:
        """Kill the server (SIGKILL), to simulate a crash."""
        assert self.process is not None, "the server has not been started"
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        """Output of the server so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def first_key(self) -> str:
        """Wait for the key of the account that a first start makes: the greeting follows readiness."""
        assert wait_until(lambda: _KEY.search(self.log()) is not None, _START_TIMEOUT_S), self.log()
        found = _KEY.search(self.log())
        assert found is not None
        return found[0]

    def command(self, *arguments: str) -> dict[str, Any]:
        """
        Run `trunkline ARGUMENTS` beside the server and return the JSON it prints.

        Raises:
            ServerFailed: The command failed or printed no JSON object.
        """
        status, out, error = self._run(arguments)
        try:
            printed = json.loads(out)
        except ValueError:
            printed = None
        if status != 0 or not isinstance(printed, dict):
            raise ServerFailed(f"trunkline {' '.join(arguments)} ended with {status}:\n{out}{error}")
        return printed

    def _run(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        """Status, output and errors of `trunkline ARGUMENTS`."""
        if self.checkout is not None:
            ran = subprocess.run(
                [*self._program(), *arguments],
                env=self._environment,
                cwd=self.data_dir,
                capture_output=True,
                text=True,
                check=False,
            )
            return ran.returncode, ran.stdout, ran.stderr
        forked = fork_server().run(arguments, environment=self._environment, directory=self.data_dir)
        return forked.status, forked.out, forked.error

    def request(self, method: str, path: str, api_key: str | None = None, body: Any = None) -> Reply:
        """Send one request to the REST API; error statuses are returned like any other."""
        headers = {"Content-Type": "application/json"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_START_TIMEOUT_S) as response:
                return Reply(response.status, _decoded(response.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, _decoded(error.read()))

    # Common setup of tests and benchmarks

    def add_account(self, name: str = "Load", balance_inr: int = 100_000) -> Account:
        """Create an account with all rights and high limits."""
        printed = self.command(
            "accounts",
            "create",
            *("--name", name, "--balance", str(balance_inr), "--kyc"),
            *("--max-cps", "1000", "--max-calls", "5000"),
        )
        return Account(printed["account_sid"], printed["api_key"])

    def add_carrier(
        self, name: str, *gateways: str, inbound: bool = False, outbound: bool = False, **policy: Any
    ) -> str:
        """
        Add a platform carrier and return its carrier_sid; gateways are `udp:HOST:PORT`, by preference.

        `policy` has further fields of the carrier; those of its gateways begin with `gateway_`.
        """
        options = [part for gateway in gateways for part in ("--gateway", gateway)]
        options += ["--inbound"] * inbound + ["--outbound"] * outbound
        for field, value in policy.items():
            field = f"gateway.{field.removeprefix('gateway_')}" if field.startswith("gateway_") else field
            options += ["--set", f"{field}={json.dumps(value)}"]
        before = self._revision()
        made = self.command("carriers", "add", "--name", name, *options)
        # The server polls for changes of other processes; wait until calls can use this one.
        if before is not None and not wait_until(lambda: (self._revision() or 0.0) > before):
            raise ServerFailed(f"the server does not see the carrier {name}:\n{self.log()}")
        return str(made["carrier_sid"])

    def _revision(self) -> float | None:
        """Directory revision that the running server has loaded; None when none runs."""
        if self.process is None or self.process.poll() is not None:
            return None
        return self.metric("trunkline_directory_revision")

    def add_number(self, account: Account, number: str, binding: Mapping[str, Any] | None = None) -> str:
        """Add a number to the account, registered for outbound calls and bound if given; return its id."""
        added = self.command("numbers", "add", "--account", account.account_sid, "--number", number)
        number_id = str(added["phone_number_id"])
        path = f"/v1/phone-numbers/{number_id}"
        replies = [self.request("POST", f"{path}/carrier", account.api_key)]
        if binding is not None:
            replies.append(self.request("PUT", f"{path}/inbound", account.api_key, dict(binding)))
        for reply in replies:
            if reply.status != 200:
                raise ServerFailed(f"{number} could not be wired: {reply.status} {reply.body}")
        return number_id

    def metric(self, name: str) -> float:
        """
        Return the sum of a metric's samples over all its labels.

        Raises:
            KeyError: The server has no such metric.
        """
        text = str(self.request("GET", "/metrics").body)
        values = [
            float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if line.startswith((f"{name} ", f"{name}{{"))
        ]
        if not values:
            raise KeyError(name)
        return sum(values)

    def _is_ready(self) -> bool:
        try:
            return self.request("GET", "/ready").status == 200
        except OSError:
            return False


def wait_until(condition: Any, timeout_s: float = 10.0) -> bool:
    """Poll until `condition()` is true or the time has run out; return true if it came true."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return bool(condition())
        _pause.wait(_POLL_S)
    return True


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
