"""The server under test and the load tools beside it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.machine import SUT_PREFIX, TOOL_PREFIX
from tests.support.ports import free_port, port_range
from tests.support.server_process import Account, ServerFailed, ServerProcess, wait_until
from tests.support.sipp_run import SIPP, Load, Sipp, start_sipp

__all__ = [
    "LOAD",
    "NUMBER",
    "QUIET_S",
    "RTP_PORTS",
    "SHARED_RTP_PORTS",
    "SystemUnderTest",
    "bare_relay",
    "media_calls",
    "run_rtpload",
    "tool_binary",
    "tools_missing",
]

LOAD = Path(__file__).parent / "load"
NUMBER = "+918047000001"
_STREAM_NUMBER = "+918047000002"
QUIET_S = 8.0
"""Silence of callers before an agent is measured: two windows of its prebuffer, after a gap before."""
RTP_PORTS = 9_000
"""RTP ports of the server: enough for the largest step."""
SHARED_RTP_PORTS = 6_000
"""RTP ports of each of two servers: enough for 280 calls a second, since ports rest 4 s."""


class SystemUnderTest:
    """
    A server with a caller's and a callee's trunk, one number forwarded and one bound to an agent.

    Attributes:
        directory: Where the data and the tools' files go.
        uac_port, uas_port: SIP ports the server knows as gateways: of the caller and of the trunk.
        agent_port: Where the agent of the second number listens.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        rtp_ports: int = RTP_PORTS,
        checkout: Path | None = None,
    ) -> None:
        self.directory = directory
        self.uac_port, self.uas_port = free_port(), free_port()
        self.agent_port = free_port()
        first, last = port_range(rtp_ports)
        self.server = ServerProcess(
            directory / "server",
            prefix=SUT_PREFIX,
            environment={
                "TRUNKLINE_RTP_PORTS": f"{first}-{last}",
                "TRUNKLINE_MAX_CPS": "1000",
                **(environment or {}),
            },
        )
        self.server.checkout = checkout
        self.account = Account("", "")
        self.source_root = Path(__file__).resolve().parent.parent

    def __enter__(self) -> Self:
        with self.server.starting():
            self.server.add_carrier("caller", f"udp:127.0.0.1:{self.uac_port}", inbound=True)
            self.server.add_carrier("callee", f"udp:127.0.0.1:{self.uas_port}", outbound=True)
            self.account = self.server.add_account()
            forward = {"target": "forward", "forward_to": f"sip:callee@127.0.0.1:{self.uas_port}"}
            self.server.add_number(self.account, NUMBER, forward)
            stream = {"target": "media_stream", "stream_url": f"ws://127.0.0.1:{self.agent_port}/"}
            self.server.add_number(self.account, _STREAM_NUMBER, stream)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.stop()

    @property
    def target(self) -> str:
        """The server's SIP address, as SIPp wants it."""
        return f"127.0.0.1:{self.server.sip_port}"

    @property
    def stream_number(self) -> str:
        """The number whose calls go to the agent."""
        return _STREAM_NUMBER


def tools_missing() -> list[str]:
    """Return the tools that must be installed before a benchmark can run."""
    tools = {
        "SIPp (sip-tester)": SIPP,
        "a C compiler": shutil.which("cc"),
        "taskset": shutil.which("taskset"),
    }
    return [name for name, path in tools.items() if path is None]


@contextmanager
def background(
    command: list[str], directory: Path, prefix: list[str] = TOOL_PREFIX
) -> Iterator[dict[str, Any]]:
    """Run a tool; what it printed on SIGTERM is in the dictionary afterwards."""
    report: dict[str, Any] = {}
    process = subprocess.Popen([*prefix, *command], cwd=directory, stdout=subprocess.PIPE, text=True)
    try:
        yield report
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            printed, _ = process.communicate(timeout=10)
            report.update(json.loads(printed) if printed.strip() else {})
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def rtpload_binary(directory: Path) -> str:
    """Build the load tool and return its path."""
    return tool_binary(directory, "rtpload")


def tool_binary(directory: Path, name: str) -> str:
    """Build a tool of the `load` folder that is one C file, and return its path."""
    binary = directory / name
    if not binary.exists():
        subprocess.run(["cc", "-O2", "-o", str(binary), str(LOAD / f"{name}.c")], check=True)
    return str(binary)


@contextmanager
def bare_relay(directory: Path, calls: int, sink: int | None = None) -> Iterator[tuple[int, list[int]]]:
    """
    Run the relay that does nothing else; gives its process and its near ports.

    Its far end listens at `sink`; without that it is one that sends everything back.
    """
    sink_port = sink or free_port()
    # One allocation: the two sides are never given the same ports.
    near, _ = port_range(4 * calls)
    far = near + 2 * calls
    binary = rtpload_binary(directory)
    relay = [binary, "relay", "--near", str(near), "--far", str(far), "--sink", str(sink_port)]
    echo = background([binary, "echo", "--listen", str(sink_port)], directory)
    with nullcontext() if sink else echo:
        process = subprocess.Popen([*SUT_PREFIX, *relay, "--calls", str(calls)], stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: process.poll() is not None, 0.5)
            yield process.pid, [near + 2 * index for index in range(calls)]
        finally:
            process.terminate()
            process.wait()


def run_rtpload(
    directory: Path,
    ports: list[int],
    seconds: float,
    listen: int,
    measure: Callable[[bool], None],
    quiet_s: float = 0.0,
    windows: int = 1,
    told: Callable[[dict[str, Any]], None] = lambda _: None,
    spurts_s: tuple[float, float] = (0.0, 0.0),
) -> dict[str, Any]:
    """
    Send to the ports for a while, silence first; `measure` is called at both ends of the time that counts.

    That is divided into windows; `told` gets each one's packets and round trips, two seconds after its end.
    `spurts_s`: how long each call talks and then pauses, in turn; silence is not counted. It never pauses if
    the first is 0.
    """
    command = [rtpload_binary(directory), "send", "--listen", str(listen), "--seconds", str(seconds)]
    command += ["--targets", ",".join(str(port) for port in ports), "--quiet", str(quiet_s)]
    command += ["--windows", str(windows), "--talk", str(spurts_s[0]), "--pause", str(spurts_s[1])]
    process = subprocess.Popen(
        [*TOOL_PREFIX, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    line = ""
    for line in process.stderr:
        if line.startswith(("steady-begin\n", "steady-end")):
            measure(line.startswith("steady-begin"))
        elif line.startswith("window "):
            told(json.loads(line.removeprefix("window ")))
    printed = process.stdout.read()
    if process.wait() != 0:
        raise ServerFailed(f"rtpload ended with {process.returncode}: {line.strip()}")
    report: dict[str, Any] = json.loads(printed)
    return report


@contextmanager
def media_calls(
    sut: SystemUnderTest, number: str, calls: int, seconds: float, load_port: int, uac_port: int = 0
) -> Iterator[list[int]]:
    """
    Bring calls up through the server and hold them; the server's RTP ports of the callers' side.

    They come from the caller's trunk, or from `uac_port`, which must be another trunk's.
    """
    uac_port = uac_port or sut.uac_port
    rate = min(25.0, max(10.0, calls / 6))
    hold_ms = round(1000 * (calls / rate + seconds + 8))
    uac = start_sipp(
        str(LOAD / "uac_media.xml"),
        sut.directory,
        uac_port,
        Load(calls, rate, hold_ms),
        target=sut.target,
        number=number,
        extra=["-key", "load_port", str(load_port)],
        prefix=TOOL_PREFIX,
    )
    log = sut.directory / f"uac_media-{uac_port}.log"
    try:
        wait_until(lambda: not uac.running or len(_ports(log)) >= calls, calls / rate + 20)
        ports = _ports(log)
        if len(ports) < calls:
            raise ServerFailed(f"{len(ports)} of {calls} calls came up:\n{_last_words(uac)}")
        yield ports
    finally:
        result = uac.wait(hold_ms / 1000 + 20)
    if result.exit_status != 0:
        raise ServerFailed(f"{result.failed} of {calls} calls failed:\n{result.errors}")


def _ports(log: Path) -> list[int]:
    if not log.exists():
        return []
    # The last line may be half written.
    *lines, _ = log.read_text().split("\n")
    return [int(line.split()[1]) for line in lines if line.startswith("port ")]


def _last_words(sipp: Sipp) -> str:
    return sipp.stop().errors
