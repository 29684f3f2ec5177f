"""
Send mutated messages to a running server: `python -m fuzz.wire --count 100000 [--seed N]`.

They go over UDP, TCP and TLS, within calls that are up and outside them, from trunks the server knows and
from a stranger; the party that is called bends its responses, too. The server must stay alive and answer
OPTIONS of a trunk throughout, give no 500 and write no traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import select
import socket
import ssl
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.wire_messages import SDP, Call, Mill, request
from tests.support.certificates import Authority
from tests.support.server_process import ServerProcess

__all__ = ["Report", "WireFailed", "run"]

NUMBER = "+918047000001"
TRUSTED = "127.0.0.0/29"
TRUNK, CALLEE, PROBER, STRANGER = "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.9"

BATCH = 1000
"""After so many messages the server must be alive, ready and have written nothing bad."""
PER_CALL = 100
"""Messages for which one call is used; most calls end before that."""
PER_PROBE = 50
PUMP_EVERY = 10
PATIENCE_S = 10.0
_TRANSPORTS = ("udp", "udp", "tcp", "tls", "stranger")
_STATUS = re.compile(rb"SIP/2\.0 ([0-9]{3}) ")


class WireFailed(Exception):
    """The server did what it must not; the text says what, and the last messages it got."""


@dataclass
class Report:
    """Results of a run."""

    seed: int
    sent: dict[str, int] = field(default_factory=dict)
    statuses: dict[int, int] = field(default_factory=dict)
    calls: int = 0
    probes_s: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def figures(self) -> dict[str, Any]:
        """The figures, for printing."""
        ordered = sorted(self.probes_s)
        return {
            "seed": self.seed,
            "sent": self.sent,
            "calls_within_which": self.calls,
            "answers": dict(sorted(self.statuses.items())),
            "options_probes": len(ordered),
            "options_p50_ms": round(ordered[len(ordered) // 2] * 1000, 2),
            "options_p99_ms": round(ordered[len(ordered) * 99 // 100] * 1000, 2),
            "options_max_ms": round(ordered[-1] * 1000, 2),
            "seconds": round(self.seconds, 1),
        }


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="messages in all (default 100000)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        try:
            report = run(Path(directory), options.count, options.seed)
        except WireFailed as failure:
            print(f"seed {options.seed}: {failure}", file=sys.stderr)
            return 1
    print(json.dumps(report.figures(), indent=2))
    return 0


def run(directory: Path, count: int, seed: int) -> Report:
    """
    Start a server, send it `count` mutated messages, and stop it.

    Raises:
        WireFailed: It died, was not ready, did not answer, gave a 500 or wrote a traceback.
    """
    issued = Authority(directory / "tls").issue("wire", addresses=["127.0.0.1"])
    server = ServerProcess(
        directory / "server",
        environment={
            "TRUNKLINE_TRUSTED_SOURCES": TRUSTED,
            "TRUNKLINE_MAX_CPS": "1000",
            "TRUNKLINE_DRAIN_S": "0",  # Calls that nobody hangs up are left over.
        },
        tls=(issued.certificate, issued.key),
    )
    server.start()
    try:
        with contextlib.ExitStack() as stack:
            wire = Wire(server, seed, stack)
            report = wire.play(count)
        if server.stop() != 0:
            raise WireFailed(f"it did not end well:\n{server.log()[-4000:]}")
        wire.check_log()
        return report
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()


class Wire:
    """The peers of one server, all of them played by this thread."""

    def __init__(self, server: ServerProcess, seed: int, stack: contextlib.ExitStack) -> None:
        self.report = Report(seed)
        self._server = server
        self._mill = Mill(seed, NUMBER)
        self._stack = stack
        self._target = ("127.0.0.1", server.sip_port)
        self._udp = {host: self._socket(host) for host in (TRUNK, CALLEE, PROBER, STRANGER)}
        self._streams: dict[str, socket.socket] = {}
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._last: list[bytes] = []
        self._log_read = 0
        self._answers: dict[bytes, bytes] = {}
        port = {host: sock.getsockname()[1] for host, sock in self._udp.items()}
        trunk: dict[str, Any] = {"allows_refer": True, "session_expires_s": 90}
        server.add_carrier("caller", f"udp:{TRUNK}:{port[TRUNK]}", inbound=True, **trunk)
        server.add_carrier(
            "callee", f"udp:{CALLEE}:{port[CALLEE]}", outbound=True, follows_redirects=True, **trunk
        )
        to_callee = {"target": "forward", "forward_to": f"sip:callee@{CALLEE}:{port[CALLEE]}"}
        server.add_number(server.add_account(), NUMBER, to_callee)

    def _socket(self, host: str) -> socket.socket:
        sock = self._stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sock.bind((host, 0))
        sock.setblocking(False)
        return sock

    def _local(self, host: str) -> str:
        return f"{host}:{self._udp[host].getsockname()[1]}"

    def play(self, count: int) -> Report:
        """Send everything, and look after the server meanwhile."""
        began = time.monotonic()
        call: Call | None = None
        for number in range(count):
            if call is None or call.sent >= PER_CALL:
                call = self._call()
            call.sent += 1
            self._send(call)
            if number % PUMP_EVERY == 0:
                self._pump(0.0)
            if number % PER_PROBE == 0:
                self._probe()
            if number % BATCH == BATCH - 1:
                self.check()
        self._probe()
        self.check()
        self.report.seconds = time.monotonic() - began
        for stream in self._streams.values():
            stream.close()
        return self.report

    def check(self) -> None:
        """See that the server lives, is ready and is not complaining."""
        process = self._server.process
        if process is None or process.poll() is not None:
            raise WireFailed(f"the server died:\n{self._server.log()[-4000:]}\n{self._evidence()}")
        if self._server.request("GET", "/ready").status != 200:
            raise WireFailed(f"the server is not ready any more\n{self._evidence()}")
        self.check_log()

    def check_log(self) -> None:
        """See that nothing unexpected was written."""
        log = self._server.log()
        fresh, self._log_read = log[self._log_read :], len(log)
        if "Traceback" in fresh:
            at = fresh.index("Traceback")
            raise WireFailed(
                f"it wrote a traceback:\n{fresh[max(0, at - 500) : at + 6000]}\n{self._evidence()}"
            )

    def _evidence(self) -> str:
        return "the last messages were:\n" + "\n".join(repr(data) for data in self._last[-30:])

    # Sending.

    def _send(self, call: Call) -> None:
        way = self._mill.random.choice(_TRANSPORTS)
        self.report.sent[way] = self.report.sent.get(way, 0) + 1
        host = STRANGER if way == "stranger" else TRUNK
        name = "UDP" if way in ("udp", "stranger") else way.upper()
        data = self._mill.next((name, self._local(host)), call)
        self._last = [*self._last[-200:], data]
        if way in ("tcp", "tls"):
            self._send_stream(way, data)
        elif data:
            with contextlib.suppress(BlockingIOError, OSError):
                self._udp[host].sendto(data, self._target)

    def _send_stream(self, way: str, data: bytes) -> None:
        """Write to the connection; one that the last message broke is replaced."""
        for _ in range(2):
            stream = self._streams.get(way) or self._connect(way)
            try:
                # In two pieces now and then, as networks do.
                cut = self._mill.random.randrange(len(data) + 1) if self._mill.random.random() < 0.2 else 0
                stream.sendall(data[:cut])
                stream.sendall(data[cut:])
                return
            except OSError:
                self._streams.pop(way).close()

    def _connect(self, way: str) -> socket.socket:
        port = self._server.sip_port if way == "tcp" else self._server.tls_port
        stream = socket.create_connection(("127.0.0.1", port), PATIENCE_S, (TRUNK, 0))
        if way == "tls":
            stream = self._tls.wrap_socket(stream)
        self._streams[way] = stream
        return stream

    # Receiving.

    def _pump(self, wait_s: float) -> None:
        """Handle the received messages, and answer requests to the callee."""
        waiting = [*self._udp.values(), *self._streams.values()]
        for sock in select.select(waiting, [], [], wait_s)[0]:
            if sock in self._udp.values():
                self._drain(sock)
            else:
                self._read(sock)

    def _drain(self, sock: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while True:
                data, source = sock.recvfrom(65535)
                self._note(data)
                if not data.startswith(b"SIP/2.0 ") and data.strip():
                    answer = self._answer(data)
                    if answer:
                        sock.sendto(answer, source)

    def _read(self, sock: socket.socket) -> None:
        sock.settimeout(0.0)
        try:
            data = sock.recv(65535)
            sock.settimeout(PATIENCE_S)
        except (BlockingIOError, ssl.SSLWantReadError):
            sock.settimeout(PATIENCE_S)
            return
        except OSError:
            data = b""
        self._note(data)
        if not data:
            for way, stream in list(self._streams.items()):
                if stream is sock:
                    self._streams.pop(way).close()

    def _note(self, data: bytes) -> None:
        for part in data.split(b"\r\n\r\n"):
            found = _STATUS.search(part)
            if found is None:
                if part.startswith((b"INVITE ", b"BYE ")) and b"\nRAck" in part:
                    raise WireFailed(f"a field of one leg shows on another:\n{part!r}")
                continue
            status = int(found[1])
            self.report.statuses[status] = self.report.statuses.get(status, 0) + 1
            # With Retry-After it is what RFC 3261 12.2.2 and 14.2 ask for.
            if status == 500 and b"\nRetry-After:" not in part:
                raise WireFailed(f"it answered:\n{part.decode('latin-1')}\n{self._evidence()}")
            call_id = re.search(rb"(?m)^Call-ID: (.*)\r$", part + b"\r\n")
            if call_id is not None and b" INVITE\r" in part and 200 <= status:
                self._answers[call_id[1]] = part

    def _answer(self, data: bytes) -> bytes:
        """The answer of the party called, or of the trunk that is hung up on; now and then a bent one."""
        method = data.split(b" ", 1)[0]
        if method == b"ACK":
            return b""
        head = data.split(b"\r\n\r\n")[0].split(b"\r\n")
        kept = [line for line in head if line.startswith((b"Via:", b"From:", b"Call-ID:", b"CSeq:"))]
        to = next((line for line in head if line.startswith(b"To:")), b"To: <sip:x@y>")
        kept.append(to if b";tag=" in to else to + b";tag=" + self._mill.branch().encode())
        body = SDP.format(version=2).encode() if method in (b"INVITE", b"UPDATE") else b""
        kept.append(b"Contact: <sip:callee@" + self._local(CALLEE).encode() + b">")
        kept += [b"Content-Type: application/sdp"] if body else []
        status = b"200 OK"
        bent = self._mill.random.random() < 0.2
        if bent:
            status = self._mill.random.choice(_STATUSES)
            kept += [b"RSeq: 7", b"Require: 100rel"] if self._mill.random.random() < 0.3 else []
        kept.append(b"Content-Length: " + str(len(body)).encode())
        answer = b"\r\n".join([b"SIP/2.0 " + status, *kept, b"", body])
        return self._mill.bent(answer) if bent else answer

    # A call to send requests within, and the trunk whose OPTIONS are answered throughout.

    def _call(self) -> Call:
        """Set up a call; without room for one, requests go to a call that is over."""
        via, branch = ("UDP", self._local(TRUNK)), self._mill.branch()
        call = Call(f"{branch}@wire", branch, f"<sip:{NUMBER}@127.0.0.1>", cseq=0)
        self._answers.clear()
        invite = request("INVITE", NUMBER, via, branch, call=call)
        self._udp[TRUNK].sendto(invite, self._target)
        deadline = time.monotonic() + 1.0
        while call.call_id.encode() not in self._answers and time.monotonic() < deadline:
            self._pump(0.02)
        answer = self._answers.get(call.call_id.encode(), b"")
        to = re.search(rb"(?m)^To: (.*)\r$", answer)
        if to is not None:
            call.to = to[1].decode()
            self._udp[TRUNK].sendto(request("ACK", NUMBER, via, self._mill.branch(), call=call), self._target)
        self.report.calls += answer.startswith(b"SIP/2.0 200")
        return call

    def _probe(self) -> None:
        """An OPTIONS of a trunk the server knows; sent again when the flood pushed it out of a socket."""
        sock, branch = self._udp[PROBER], self._mill.branch()
        data = request("OPTIONS", NUMBER, ("UDP", self._local(PROBER)), branch)
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S:
            sock.sendto(data, self._target)
            if select.select([sock], [], [], 0.5)[0] and b"SIP/2.0 200 " in sock.recv(65535):
                self.report.probes_s.append(time.monotonic() - began)
                return
        raise WireFailed(f"OPTIONS of a trunk was not answered:\n{self._evidence()}")


_STATUSES = (
    b"100 Trying",
    b"180 Ringing",
    b"183 Session Progress",
    b"200 OK",
    b"302 Moved",
    b"401 Unauthorized",
    b"407 Proxy Authentication Required",
    b"422 Session Interval Too Small",
    b"486 Busy Here",
    b"491 Request Pending",
    b"503 Service Unavailable",
    b"699 Odd",
)

if __name__ == "__main__":
    sys.exit(main())
