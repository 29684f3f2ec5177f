"""Calls with G.711 both ways, held: what goes in on one side comes out on the other."""

from __future__ import annotations

import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks import w2_relay
from benchmarks.machine import TOOL_PREFIX
from benchmarks.overload import ENVIRONMENT, offer
from benchmarks.sut import (
    LOAD,
    NUMBER,
    QUIET_S,
    SystemUnderTest,
    background,
    media_calls,
    run_rtpload,
    tool_binary,
    tools_missing,
)
from tests.faults import reports
from tests.faults.lengths import RTP_PORTS, SOAK, count, progress, seconds
from tests.support.ports import free_port
from tests.support.sipp_run import Load, start_sipp

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason="needs SIPp, a C compiler and taskset")

# A frame now and then is the jitter buffer at work.
_STREAM_LOSS_PCT = 0.1 if SOAK else 20.0
_DRIFT_MS = 5.0 if SOAK else 500.0
# What we owe is added by us, and nothing is; a machine that others use adds more, and drops some.
_ADDED_MS = 5.0 if SOAK else 500.0
_LOSS_PCT = 0.0 if SOAK else 5.0
# Parties pause between sentences: there a delay that a late agent has left behind is made up for.
_SPURTS_S = (2.0, 0.4)


@pytest.mark.long(reason="a load for half a minute")
@pytest.mark.timeout(0 if SOAK else 200)
def test_held_calls_relay_every_packet(tmp_path: Path) -> None:
    """Bridged calls that are held with G.711 both ways lose no packet, and their audio arrives evenly."""
    calls = count("HELD_CALLS", short=8, long=300)
    length_s = seconds("HELD_S", short=2.0, long=600.0)
    with SystemUnderTest(tmp_path, rtp_ports=RTP_PORTS) as sut:
        floor, relay = w2_relay.run(sut, Namespace(calls=str(calls), seconds=length_s))
        rtp = relay["rtp"]
        added_ms = rtp["rtt_ms"]["p99"] - floor["rtp"]["rtt_ms"]["p99"]
        progress(
            f"{calls} calls for {length_s:.0f} s: {rtp}; {added_ms:.2f} ms more than a bare relay at p99"
        )
        reports.figure(**rtp, added_p99_ms=round(added_ms, 2))
        assert rtp["silent_calls"] == 0, str(rtp)
        assert rtp["loss_pct"] <= _LOSS_PCT, str(rtp)
        assert added_ms < _ADDED_MS, f"{floor['rtp']} {rtp}"


@pytest.mark.long(reason="a load for half a minute")
@pytest.mark.timeout(0 if SOAK else 200)
def test_audio_is_unharmed_while_more_calls_come_than_can_be_carried(tmp_path: Path) -> None:
    """Audio of active calls arrives whole and evenly under far more new calls than capacity."""
    calls = count("HELD_IN_OVERLOAD", short=8, long=100)
    rate = float(count("HELD_OFFERED", short=200, long=1000))
    length_s = seconds("HELD_OFFERED_S", short=3.0, long=60.0)
    echo_port, load_port = free_port(), free_port()
    with SystemUnderTest(tmp_path, ENVIRONMENT, rtp_ports=RTP_PORTS) as sut, ThreadPoolExecutor() as aside:
        with background([tool_binary(tmp_path, "rtpload"), "echo", "--listen", str(echo_port)], tmp_path):
            callees = start_sipp(
                str(LOAD / "uas_media.xml"),
                tmp_path,
                sut.uas_port,
                Load(1_000_000, 1),
                extra=["-key", "echo_port", str(echo_port)],
                prefix=TOOL_PREFIX,
            )
            try:
                with media_calls(sut, NUMBER, calls, 3 * length_s + 5.0, load_port) as ports:
                    quiet = run_rtpload(tmp_path, ports, length_s, load_port, lambda _: None)
                    offered = aside.submit(offer, sut, rate, length_s)
                    crowded = run_rtpload(tmp_path, ports, length_s, load_port, lambda _: None)
                    came = offered.result()
            finally:
                callees.kill()
    added_ms = crowded["rtt_ms"]["p99"] - quiet["rtt_ms"]["p99"]
    told = {name: came[name] for name in ("offered", "answered", "refused", "told_nothing", "goodput")}
    progress(
        f"{calls} calls, {rate:g}/s offered: {told}; alone {quiet}; crowded {crowded}; {added_ms:.2f} ms"
    )
    reports.figure(**told, loss_pct=crowded["loss_pct"], added_p99_ms=round(added_ms, 2))
    assert came["answered"] > 0
    assert crowded["silent_calls"] == 0, f"{quiet} {crowded}"
    assert crowded["loss_pct"] <= _LOSS_PCT, f"{quiet} {crowded}"
    assert added_ms < _ADDED_MS, f"{quiet} {crowded}"


@pytest.mark.long(reason="a load for half a minute")
@pytest.mark.timeout(0 if SOAK else 200)
def test_media_stays_as_it_was_at_first(tmp_path: Path) -> None:
    """
    Bridged calls and calls to agents, held side by side: no packet is lost, no stream ends, and the round
    trips of the last packets are those of the first. The parties talk and pause in turn.
    """
    bridged = count("LASTING_CALLS", short=4, long=300)
    streamed = count("LASTING_STREAMS", short=4, long=200)
    windows = count("LASTING_WINDOWS", short=3, long=12)
    window_s = seconds("LASTING_WINDOW_S", short=1.0, long=300.0)
    length_s = windows * window_s
    echo_port = free_port()
    with (
        SystemUnderTest(tmp_path, rtp_ports=RTP_PORTS) as sut,
        ExitStack() as held,
        ThreadPoolExecutor() as loads,
    ):
        second_port = free_port()
        sut.server.add_carrier("callers of agents", f"udp:127.0.0.1:{second_port}", inbound=True)
        agent = [sys.executable, "-m", "benchmarks.load.agent_echo", "--port", str(sut.agent_port)]
        held.enter_context(background(agent, sut.source_root))
        echo = [tool_binary(tmp_path, "rtpload"), "echo", "--listen", str(echo_port)]
        held.enter_context(background(echo, tmp_path))
        callees = start_sipp(
            str(LOAD / "uas_media.xml"),
            tmp_path,
            sut.uas_port,
            Load(bridged),
            extra=["-key", "echo_port", str(echo_port)],
            prefix=TOOL_PREFIX,
        )
        held.callback(callees.kill)
        # The others come up meanwhile, and both are measured at the same time.
        hold_s = length_s + 2 * QUIET_S + streamed / 10
        kinds = {"bridged": (NUMBER, bridged, 0), "streamed": (sut.stream_number, streamed, second_port)}
        told: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        running = []
        for kind, (number, calls, uac_port) in kinds.items():
            load_port = free_port()
            ports = held.enter_context(media_calls(sut, number, calls, hold_s, load_port, uac_port))

            def tell(window: dict[str, Any], kind: str = kind) -> None:
                told[kind].append(window)
                reports.sample(f"{kind}: round trip, p99, ms", window["rtt_ms"]["p99"])
                progress(f"{kind}: {window}")

            arguments = (tmp_path, ports, length_s, load_port, lambda _: None, QUIET_S, windows, tell)
            running.append(loads.submit(run_rtpload, *arguments, spurts_s=_SPURTS_S))
        found = dict(zip(kinds, (load.result() for load in running), strict=True))
    for kind, allowed_pct in (("bridged", _LOSS_PCT), ("streamed", _STREAM_LOSS_PCT)):
        first, last = told[kind][0], told[kind][-1]
        drift_ms = last["rtt_ms"]["p99"] - first["rtt_ms"]["p99"]
        reports.figure(
            **{f"{kind} {name}": found[kind][name] for name in ("calls", "sent", "loss_pct", "rtt_ms")},
            **{
                f"{kind} p99 of the first and the last window, ms": (
                    first["rtt_ms"]["p99"],
                    last["rtt_ms"]["p99"],
                )
            },
        )
        assert len(told[kind]) == windows and found[kind]["silent_calls"] == 0, str(found)
        assert found[kind]["loss_pct"] <= allowed_pct, str(told)
        assert drift_ms < _DRIFT_MS, str(told)
