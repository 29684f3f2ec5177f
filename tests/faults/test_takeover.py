"""A second server takes over the addresses of the first while calls come in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.server_process import ServerFailed, wait_until
from fixtures.sipp_run import SIPP, Load
from tests.faults.lengths import count
from tests.sipp.exchange import Exchange
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(SIPP is None, reason="SIPp is not installed (Debian: sip-tester)")

CALLS = count("TAKEOVER_CALLS", short=120, long=3000)
RATE = 10.0


@pytest.fixture
def exchange(tmp_path: Path) -> Iterator[Exchange]:
    settings = {"TRUNKLINE_TAKEOVER": "1", "TRUNKLINE_DRAIN_S": "120", "TRUNKLINE_NODE": "green"}
    with Exchange(tmp_path, settings) as running:
        yield running


def _passed(exchange: Exchange) -> list[int]:
    """How many messages each server that took over passed on to the one before it."""
    return [int(found) for found in re.findall(r"gone; (\d+) SIP messages", exchange.server.log())]


def take_over(exchange: Exchange, node: str) -> int:
    """Have the next server take over; how many messages it passed on until the one before had gone."""
    elder, before = exchange.server, len(_passed(exchange))
    exchange.server = elder.successor(node)
    exchange.server.start()
    assert elder.process is not None
    assert elder.process.wait(PATIENCE_S * 3) == 0, elder.log()
    assert wait_until(lambda: len(_passed(exchange)) > before, PATIENCE_S), elder.log()
    return _passed(exchange)[-1]


def test_no_call_fails_while_another_process_takes_over(exchange: Exchange) -> None:
    """Calls that begin, are up or end while another process takes over all succeed, twice in a row."""
    load = Load(calls=CALLS, rate=RATE, pause_ms=1500)
    callee = exchange.callee("uas.xml", load)
    caller = exchange.caller("uac.xml", load=load)
    for node in ("blue", "green"):
        assert wait_until(lambda: exchange.server.metric("trunkline_calls_active") >= 5, PATIENCE_S)
        assert take_over(exchange, node) >= 5, "calls of the one before are to end while the next one hears"
    exchange.finish(caller, callee)
    calls, total = exchange.calls(per_page=100)
    assert total == CALLS
    assert {call["status"] for call in calls} == {"completed"}
    assert {call["hangup_cause"] for call in calls} == {"NORMAL_CLEARING"}
    exchange.assert_clean()


def test_a_process_of_the_same_node_is_refused(exchange: Exchange) -> None:
    """A second process with the same node does not start, says why, and the first one notices nothing."""
    with pytest.raises(ServerFailed, match="TRUNKLINE_NODE"):
        twin = exchange.server.successor("green")
        twin.start()
        assert twin.process is not None
        raise ServerFailed(f"ended with {twin.process.wait(PATIENCE_S)}: {twin.log()}")
    exchange.finish(exchange.caller("uac.xml"), exchange.callee())
    exchange.assert_clean()


def test_a_successor_that_dies_gives_the_addresses_back(exchange: Exchange) -> None:
    """When the process that took over is killed, the one that drains hears its calls to their end."""
    callee = exchange.callee()
    caller = exchange.caller("uac.xml", load=Load(pause_ms=8000))
    assert wait_until(lambda: exchange.server.metric("trunkline_calls_active") == 1, PATIENCE_S)
    elder, younger = exchange.server, exchange.server.successor("blue")
    younger.start()
    assert wait_until(lambda: "draining: 1 calls are up" in elder.log(), PATIENCE_S), elder.log()
    younger.kill()
    exchange.finish(caller, callee)
    assert elder.process is not None
    assert elder.process.wait(PATIENCE_S) == 0
    elder.start()
    exchange.assert_clean()


def test_the_calls_of_a_killed_predecessor_are_ended(exchange: Exchange) -> None:
    """When the process that drains is killed, its successor ends its records and tells the peers by BYE."""
    load = Load(calls=3)
    callee = exchange.callee("uas.xml", load)
    caller = exchange.caller("reason_uac_hung_up_on.xml", load=load)
    assert wait_until(
        lambda: sum(call["status"] == "in-progress" for call in exchange.calls()[0]) == 3, PATIENCE_S
    )
    elder = exchange.server
    exchange.server = elder.successor("blue")
    exchange.server.start()
    assert wait_until(lambda: "draining: 3 calls are up" in elder.log(), PATIENCE_S), elder.log()
    elder.kill()
    exchange.finish(caller, callee)
    assert wait_until(lambda: all(call["ended_at"] for call in exchange.calls()[0]), PATIENCE_S)
    assert {call["hangup_cause"] for call in exchange.calls()[0]} == {"CRASH"}
    exchange.assert_clean()
