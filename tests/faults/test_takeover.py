"""A second server takes over the addresses of the first while calls come in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.lengths import count
from tests.faults.oracle import assert_nothing_lost
from tests.faults.oracle.stage import OracleStage
from tests.sipp.exchange import Exchange
from tests.support.needs import needs_sipp
from tests.support.server_process import ServerFailed, wait_until
from tests.support.sipp_run import Load
from tests.support.waiting import PATIENCE_S

pytestmark = needs_sipp

TAKEOVERS = count("TAKEOVERS", short=2, long=50)
RATE = 10.0
SECOND = "+918047000002"
SETTINGS = {"TRUNKLINE_HOT_RESTART": "1", "TRUNKLINE_DRAIN_S": "120", "TRUNKLINE_NODE": "green"}


@pytest.fixture
def exchange(tmp_path: Path) -> Iterator[Exchange]:
    with Exchange(tmp_path, SETTINGS) as running:
        yield running


def _passed(exchange: Exchange) -> list[int]:
    """Return the number of messages that each new server forwarded to its predecessor."""
    return [int(found) for found in re.findall(r"ended; (\d+) SIP messages", exchange.server.log())]


def take_over(exchange: Exchange, node: str) -> int:
    """Start the next server; returns the number of messages it forwarded until its predecessor had gone."""
    elder, before = exchange.server, len(_passed(exchange))
    exchange.server = elder.successor(node)
    exchange.server.start()
    assert elder.process is not None
    assert elder.process.wait(PATIENCE_S * 3) == 0, elder.log()
    assert wait_until(lambda: len(_passed(exchange)) > before, PATIENCE_S), elder.log()
    return _passed(exchange)[-1]


@pytest.mark.long(reason="a load while two processes change places")
def test_no_call_fails_while_another_process_takes_over(exchange: Exchange) -> None:
    """
    Calls that begin, are active or end during a hot restart all succeed, repeatedly; a process with the
    node of a running one does not start, says why, and harms no call.
    """
    twin = exchange.server.successor("green")
    with pytest.raises(ServerFailed):
        twin.start()
        assert twin.process is not None
        raise ServerFailed(f"it answered before it ended with {twin.process.wait(PATIENCE_S)}")
    assert "set TRUNKLINE_NODE to another name" in exchange.server.log()
    load = Load(calls=100_000, rate=RATE, pause_ms=2000)
    callee = exchange.callee("uas.xml", load)
    caller = exchange.caller("uac.xml", load=load)
    for number in range(TAKEOVERS):
        node = ("blue", "green")[number % 2]
        assert wait_until(lambda: exchange.server.metric("trunkline_calls_active") >= 5, PATIENCE_S)
        assert take_over(exchange, node) >= 5, "calls of the one before end while the next one hears"
    caller.place_no_more()
    placed = caller.wait(PATIENCE_S)
    answered = callee.stop()
    assert placed.failed == answered.failed == 0 < placed.successful, placed.errors
    calls, total = exchange.calls(per_page=100)
    assert total == placed.successful == answered.successful
    assert {call["status"] for call in calls} == {"completed"}
    assert {call["hangup_cause"] for call in calls} == {"NORMAL_CLEARING"}
    exchange.assert_clean()


@pytest.mark.long(reason="calls that are up while two processes change places")
def test_on_net_calls_go_on_while_another_process_takes_over(exchange: Exchange) -> None:
    """Both sides of calls between numbers held here go on through a hot restart, and new ones succeed."""
    exchange.server.add_number(exchange.account, SECOND, exchange.to_callee())
    exchange.bind({"target": "forward", "forward_to": SECOND})
    load = Load(calls=3, pause_ms=20_000)
    callee, caller = exchange.callee(load=load), exchange.caller("uac.xml", load=load)
    assert wait_until(lambda: exchange.server.metric("trunkline_calls_active") == 6, PATIENCE_S)
    assert take_over(exchange, "blue") >= 3, "both sides were over before the next process heard"
    exchange.finish(caller, callee)
    callee, caller = exchange.callee(), exchange.caller("uac.xml", load=Load(pause_ms=200))
    exchange.finish(caller, callee)
    calls, total = exchange.calls(per_page=100)
    assert total == 2 * 3 + 2
    assert {call["status"] for call in calls} == {"completed"}
    assert {call["hangup_cause"] for call in calls} == {"NORMAL_CLEARING"}
    exchange.assert_clean()


@pytest.mark.long(reason="starts three servers, one after another")
def test_a_successor_that_dies_gives_the_addresses_back(tmp_path: Path) -> None:
    """When the new process is killed, the draining one receives SIP for its calls to their end."""
    with OracleStage(tmp_path, SETTINGS) as stage:
        stage.load(10.0, calls=3)
        stage.wait(lambda: stage.far.up() == 3, "calls do not come up")
        elder, younger = stage.server, stage.server.successor("blue")
        younger.start()
        stage.wait(lambda: "draining: 3 active calls" in elder.log(), "the first server does not drain")
        younger.kill()
        stage.wait(lambda: not stage.far.ask("hang_up")["open"], "calls are left at the far ends")
        assert elder.process is not None
        assert elder.process.wait(PATIENCE_S) == 0, elder.log()
        elder.start()
        stage.end_calls()
        evidence = stage.evidence()
        assert len(evidence.records) == 3
        assert_nothing_lost(evidence)


def test_the_calls_of_a_killed_predecessor_are_ended(exchange: Exchange) -> None:
    """When the draining process is killed, the new one ends its records and sends BYE to the peers."""
    load = Load(calls=3)
    callee = exchange.callee("uas.xml", load)
    caller = exchange.caller("reason_uac_hung_up_on.xml", load=load)
    assert wait_until(
        lambda: sum(call["status"] == "in-progress" for call in exchange.calls()[0]) == 3, PATIENCE_S
    )
    elder = exchange.server
    exchange.server = elder.successor("blue")
    exchange.server.start()
    assert wait_until(lambda: "draining: 3 active calls" in elder.log(), PATIENCE_S), elder.log()
    elder.kill()
    exchange.finish(caller, callee)
    assert wait_until(lambda: all(call["ended_at"] for call in exchange.calls()[0]), PATIENCE_S)
    assert {call["hangup_cause"] for call in exchange.calls()[0]} == {"CRASH"}
    exchange.assert_clean()
