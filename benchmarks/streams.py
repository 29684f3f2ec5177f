"""Streams to voice agents in every dialect: their cost, their delay, and how many one core carries."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.machine import AGENT_PREFIX, Usage
from benchmarks.sut import QUIET_S, SystemUnderTest, background, media_calls, run_rtpload
from benchmarks.w2_relay import taker
from benchmarks.w3_agent import GRIDS_US, floor
from media.streams.dialects import DIALECTS, dialect_class
from tests.support.ports import free_port
from tests.support.server_process import wait_until

CLAIM = (
    "CPU per 100 agent streams in each dialect beside one native thread that does nothing else; delay to and "
    "from the agent and from its clear to silence, in ms, with all streams up"
)
COLUMNS = {
    "what": "what",
    "streams": "calls",
    "CPU % per 100": "cpu_pct_per_100",
    "CPU %": "server.cpu_pct",
    "x floor": "times_floor",
    "lost %": "lost_pct",
    "underruns": "underruns",
    "RTT p50": "rtp.rtt_ms.p50",
    "p99": "rtp.rtt_ms.p99",
    "to agent p50": "delay.caller_to_agent.p50",
    "p99 ": "delay.caller_to_agent.p99",
    "to caller p50": "delay.agent_to_caller.p50",
    "p99  ": "delay.agent_to_caller.p99",
    "silence p50": "delay.clear_to_silence.p50",
    "p99   ": "delay.clear_to_silence.p99",
    "switches": "server.context_switches",
}

_PROBES = 20
# Speech models whose frames the echo speaks.
_MODELS = ("openai", "deepgram", "gemini", "elevenlabs", "ultravox")
_MOST_STEP = 50
_MOST = 600


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    wanted = arguments.dialects.split(",") if arguments.dialects else [*DIALECTS, *_MODELS]
    seconds = arguments.seconds or 10.0
    bench = _Bench(sut)
    steps: list[dict[str, Any]] = []
    for calls in map(int, (arguments.calls or "100").split(",")):
        with bench.echo():
            floors = [floor(sut, calls, seconds, grid_us) for grid_us in GRIDS_US]
            least = min(step["cpu_pct_per_100"] for step in floors)
            steps += floors
            for name, encoding, rate_hz in _forms(wanted):
                step = bench.step(name, encoding, rate_hz, calls, seconds)
                step["times_floor"] = round(step["cpu_pct_per_100"] / least, 2) if least else None
                steps.append(step)
            steps.append(bench.delays(calls, seconds))
    if arguments.most:
        with bench.echo():
            steps += bench.most(seconds)
    return steps


def _forms(wanted: list[str]) -> list[tuple[str, str, int]]:
    """Each dialect's own form at 8 kHz, and 16 kHz where it has that."""
    forms: list[tuple[str, str, int]] = []
    for name in wanted:
        own = dialect_class(name).formats
        forms += [
            (name, *next(form for form in own if form[1] == rate)) for rate in sorted({f[1] for f in own})
        ]
    return forms


class _Bench:
    """A server with numbers for the dialects, made as they are needed."""

    def __init__(self, sut: SystemUnderTest) -> None:
        self._sut = sut
        self._numbers: dict[str, str] = {}
        self._calls_port = free_port()
        self._probe_port = free_port()
        self._probe_uac = free_port()

    @contextmanager
    def echo(self) -> Iterator[None]:
        """The agents that say everything back."""
        ports = ["--port", str(self._sut.agent_port), "--calls-port", str(self._calls_port)]
        command = [sys.executable, "-m", "benchmarks.load.agent_echo", *ports]
        with background(command, self._sut.source_root, AGENT_PREFIX):
            wait_until(lambda: False, 2.0)
            yield

    def step(self, name: str, encoding: str, rate_hz: int, calls: int, seconds: float) -> dict[str, Any]:
        """Streams of one form, all saying everything back."""
        query = f"stream_protocol={name}&stream_encoding={encoding}&sample-rate={rate_hz}"
        url = f"ws://127.0.0.1:{self._sut.agent_port}/{name}"
        if name in ("ultravox", "elevenlabs"):
            scheme = "http" if name == "ultravox" else "ws"
            url = f"{scheme}://127.0.0.1:{self._calls_port}/"
        number = self._number(url, name) if name in _MODELS else self._number(f"{url}?{query}")
        load_port = free_port()
        with media_calls(self._sut, number, calls, seconds + QUIET_S, load_port) as ports:
            step = self._measure(ports, seconds, load_port)
        step["what"] = f"{name} {encoding} {rate_hz // 1000} kHz"
        return step

    def delays(self, calls: int, seconds: float) -> dict[str, Any]:
        """Streams that say everything back, and some of them that measure."""
        server, uac_port, load_port = self._sut.server, self._probe_uac, free_port()
        if self._probe_url not in self._numbers:
            server.add_carrier("probe", f"udp:127.0.0.1:{uac_port}", inbound=True)
        number, echoing = self._number(self._probe_url), calls - _PROBES
        listen = free_port()
        command = [sys.executable, "-m", "benchmarks.load.agent_probe", "--port", str(self._probe_port)]
        with background([*command, "--listen", str(listen)], self._sut.source_root, AGENT_PREFIX) as delay:
            wait_until(lambda: False, 1.0)
            longer = seconds + QUIET_S + 15 + calls / 10
            with (
                media_calls(self._sut, number, _PROBES, longer, listen, uac_port),
                media_calls(
                    self._sut, self._sut.stream_number, echoing, seconds + QUIET_S, load_port
                ) as ports,
            ):
                step = self._measure(ports, seconds, load_port)
        step |= {"what": f"of them {_PROBES} measuring", "calls": calls, "delay": delay}
        # Those that measure say and hear other things, so that the CPU of the others cannot be told.
        step["cpu_pct_per_100"] = None
        return step

    def most(self, seconds: float) -> list[dict[str, Any]]:
        """More and more streams, until one of them runs dry."""
        steps: list[dict[str, Any]] = []
        for calls in range(2 * _MOST_STEP, _MOST + 1, _MOST_STEP):
            step = self.step("exotel", "l16", 8000, calls, seconds)
            good = step["ok"] and step["underruns"] == 0
            # Where it ends is a finding, not a fault.
            steps.append(step | {"ok": True, "what": "most" if good else "one step too many"})
            if not good:
                break
        return steps

    @property
    def _probe_url(self) -> str:
        return f"ws://127.0.0.1:{self._probe_port}/"

    def _number(self, url: str, provider: str | None = None) -> str:
        if url not in self._numbers:
            number = f"+9180470010{len(self._numbers):02d}"
            binding: dict[str, Any] = {"target": "media_stream", "stream_url": url}
            if provider is not None:
                model = {"provider": provider, "model": "echo", "api_key": "key", "url": url}
                binding = {"target": "model", "model": model}
            self._sut.server.add_number(self._sut.account, number, binding)
            self._numbers[url] = number
        return self._numbers[url]

    def _measure(self, ports: list[int], seconds: float, load_port: int) -> dict[str, Any]:
        server = self._sut.server
        ends: list[Usage] = []
        dry: list[float] = []
        take = taker(server.pid, ends)

        def measure(begins: bool) -> None:
            take(begins)
            dry.append(server.metric("trunkline_agent_underruns_total"))

        report = run_rtpload(self._sut.directory, ports, seconds, load_port, measure, QUIET_S)
        used = ends[-1].since(ends[0])
        # Marks do not pass a change of the sampling rate; there, what comes back is counted whatever it is.
        marked = report["loss_pct"] < 50
        lost_pct = report["loss_pct"] if marked else 0.0
        return {
            "ok": lost_pct < 1.0 and report["silent_calls" if marked else "foreign"] == 0,
            "calls": len(ports),
            "cpu_pct_per_100": round(100 * used["cpu_pct"] / len(ports), 1),
            "lost_pct": lost_pct if marked else None,
            "underruns": int(dry[-1] - dry[0]),
            "rtp": report if marked else report | {"rtt_ms": {}},
            "server": used,
        }
