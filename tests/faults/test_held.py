"""Calls with G.711 both ways, held: what goes in on one side comes out on the other."""

from __future__ import annotations

from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks import w2_relay
from benchmarks.machine import TOOL_PREFIX
from benchmarks.overload import ENVIRONMENT, offer
from benchmarks.sut import (
    LOAD,
    NUMBER,
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

# What we owe is added by us, and nothing is; a machine that others use adds more, and drops some.
_ADDED_MS = 5.0 if SOAK else 500.0
_LOSS_PCT = 0.0 if SOAK else 5.0


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
