"""More than can be done: calls beyond the knee, and one call that comes forty times."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import flood
from benchmarks.overload import ENVIRONMENT, gateway, measure, offer
from benchmarks.sut import SystemUnderTest
from tests.faults import reports
from tests.faults.lengths import RTP_PORTS, SOAK, count, progress, seconds
from tests.faults.peers import Peer, answers
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

_COPIES = 40


@pytest.mark.long(reason="a load that the machine cannot carry")
@pytest.mark.timeout(0)
def test_more_calls_than_can_be_carried(tmp_path: Path) -> None:
    """Offered three times what it can carry, and 1,000 calls/s, a server carries what it can and recovers."""
    offered = float(count("OVERLOAD_RATE", short=300, long=1000))
    with SystemUnderTest(tmp_path, ENVIRONMENT, rtp_ports=RTP_PORTS) as sut:
        found = measure(
            sut,
            range(50, 1000, 50) if SOAK else [20.0],
            lambda knee: [3 * knee, offered] if SOAK else [offered],
            seconds=seconds("OVERLOAD_S", short=2.0, long=600.0),
            held=count("OVERLOAD_HELD", short=10, long=100),
        )
    for step in (*found["steps"], *found["beyond"], found["after"]):
        progress(str({name: value for name, value in step.items() if name != "server"}))
    progress(f"knee {found['knee']}, kept {found['kept']}, held {found['held']}")
    reports.figure(knee=found["knee"], kept=found["kept"], held=found["held"])
    for step in found["beyond"]:
        assert step["answered"] > 0
        assert step["broken"] == 0, "what was answered was carried to its end"
    assert found["held"]["still_up"] >= found["held"]["calls"], "calls that were up are up"
    assert found["after"]["answered"] == found["after"]["offered"], "afterwards nobody is refused"
    if SOAK:
        # By processor time: what other programs take of the machine is not the server's.
        at_three_times, at_a_thousand = (kept["goodput_per_cpu_s"] for kept in found["kept"])
        assert at_three_times >= 0.9
        assert at_a_thousand >= 0.75
        assert found["after"]["whole_after_s"] <= seconds("OVERLOAD_S", short=2.0, long=600.0) + 15.0


@pytest.mark.long(reason="a load that the machine cannot carry")
@pytest.mark.timeout(0)
def test_many_sessions_at_the_same_time(tmp_path: Path) -> None:
    """Sessions without audio come up at a rate, stay up together and end: none fails or is refused."""
    rate = float(count("SESSIONS_RATE", short=20, long=100))
    hold_s = seconds("SESSIONS_HOLD_S", short=3.0, long=20.0)
    # At full length nothing runs beside it, and its calls need more ports than a process has to itself.
    more_ports = {"TRUNKLINE_RTP_PORTS": "10000-59999"} if SOAK else {}
    environment = {**ENVIRONMENT, **more_ports}
    with SystemUnderTest(tmp_path, environment, rtp_ports=RTP_PORTS) as sut, gateway(sut):
        offer(sut, 10.0, 1.0)  # The first calls fill caches and pools.
        found = offer(sut, rate, seconds("SESSIONS_S", short=5.0, long=3600.0), hold_ms=round(1000 * hold_s))
        progress(f"{rate * hold_s:.0f} sessions up: {found}")
        reports.figure(
            up=rate * hold_s, **{name: found[name] for name in ("offered", "answered", "set_up_ms")}
        )
        assert found["answered"] == found["offered"]
        assert (found["refused"], found["broken"]) == (0, 0)
        ended = sut.server.metric("trunkline_calls_ended_total")
        assert ended == found["offered"] + 10, "each has one record"
        assert wait_until(lambda: not sut.server.metric("trunkline_rtp_ports_in_use"), PATIENCE_S)
    if SOAK:
        assert found["set_up_ms"]["p99"] < 50.0


@pytest.mark.long(reason="a load that the machine cannot carry")
@pytest.mark.timeout(0)
def test_a_flood_of_bad_requests_costs_good_calls_nothing(tmp_path: Path) -> None:
    """Under 5,000 bad requests a second from a stranger no good call fails, and the stranger is banned."""
    with SystemUnderTest(tmp_path, flood.ENVIRONMENT, rtp_ports=RTP_PORTS) as sut:
        found = flood.measure(
            sut,
            count("FLOOD_RATE", short=500, long=5000),
            rate=float(count("FLOOD_CALLS_RATE", short=5, long=50)),
            seconds=seconds("FLOOD_S", short=3.0, long=600.0),
        )
    progress(str(found))
    reports.figure(**found)
    assert (found["in_peace"]["failed"], found["under_flood"]["failed"]) == (0, 0)
    assert found["banned"] >= 1
    assert found["flood"]["answers"] <= 1 + seconds("FLOOD_S", short=3.0, long=600.0) / 10
    assert found["rejected"] > 0.5 * found["flood"]["sent"]
    if SOAK:
        later_ms = found["under_flood"]["set_up_ms"]["p99"] - found["in_peace"]["set_up_ms"]["p99"]
        assert later_ms <= 50.0


def test_forty_copies_of_an_invite_are_one_call(tmp_path: Path) -> None:
    """Forty copies of an INVITE, before and after its answer, are one call, one record and one charge."""
    calls = count("STORM_CALLS", short=3, long=200)
    with Exchange(tmp_path) as exchange, Peer(answers, exchange.callee_port) as callee:
        for number in range(calls):
            with Peer(answers) as caller:
                port = exchange.server.sip_port
                data = caller.call(port, FORWARDED, call_id=f"storm-{number}")
                for _ in range(_COPIES - 1):
                    caller.send(data, ("127.0.0.1", port))
                assert caller.is_told("INVITE", 200)
                for _ in range(_COPIES):
                    caller.send(data, ("127.0.0.1", port))
                answered = next(message for _, message in caller.heard if message.status == 200)
                caller.within("BYE", answered, ("127.0.0.1", port), 2)
                assert caller.is_told("BYE", 200)
        exchange.assert_clean()
        found, total = exchange.calls(per_page=100)
        assert total == calls
        assert {(call["status"], call["hangup_cause"]) for call in found} == {
            ("completed", "NORMAL_CLEARING")
        }
        came = {message.first("call-id") for _, message in callee.heard if message.method == "INVITE"}
        assert len(came) == calls, "the callee was called once for each"
        charges = exchange.api("GET", "/v1/wallet/ledger?kind=charge&per_page=100")
        assert len({entry["call_sid"] for entry in charges}) == len(charges) == calls
