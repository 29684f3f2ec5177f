"""Messages to the peers of calls after the process of these calls was killed."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sipp.exchange import Exchange
from tests.support.needs import needs_sipp
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load, Sipp
from tests.support.waiting import PATIENCE_S

pytestmark = [
    needs_sipp,
    pytest.mark.durable,
]

CALLS = 20
_LIMIT_MS = "60000"
"""Limit of SIPp for a request, after which a call has failed."""


@pytest.fixture
def exchange(tmp_path: Path) -> Iterator[Exchange]:
    with Exchange(tmp_path) as running:
        yield running


def calls_up(exchange: Exchange, count: int) -> None:
    """Set up that many calls, whose callers and callees wait for a BYE."""
    assert wait_until(
        lambda: sum(call["status"] == "in-progress" for call in exchange.calls(per_page=100)[0]) == count,
        PATIENCE_S,
    ), exchange.server.log()


def journal_is_written(exchange: Exchange, kind: str, legs: int) -> None:
    """Wait until what ends that many legs is durable: a tenth of a second at most behind the call."""

    def written() -> bool:
        with contextlib.closing(sqlite3.connect(exchange.server.data_dir / "trunkline.db")) as database:
            rows = database.execute("SELECT dialogs FROM calls WHERE dialogs IS NOT NULL").fetchall()
        return sum(str(row[0]).count(f'"kind":"{kind}"') for row in rows) == legs

    assert wait_until(written, PATIENCE_S), exchange.server.log()


def assert_settled(exchange: Exchange, count: int) -> None:
    """Every call has an end and a cause, and nothing is left that a later process would have to tell."""
    calls = exchange.calls(per_page=100)[0][:count]
    assert len(calls) == count
    assert all(call["ended_at"] is not None and call["hangup_cause"] == "CRASH" for call in calls)
    with contextlib.closing(sqlite3.connect(exchange.server.data_dir / "trunkline.db")) as database:
        assert wait_until(
            lambda: database.execute("SELECT count(*) FROM former_dialogs").fetchone() == (0,), PATIENCE_S
        ), exchange.server.log()
        assert database.execute("SELECT count(*) FROM calls WHERE dialogs IS NOT NULL").fetchone() == (0,)
    exchange.assert_clean()


def start_calls(exchange: Exchange, count: int) -> list[Sipp]:
    load = Load(calls=count, rate=20.0)
    callee = exchange.callee("uas.xml", load)
    caller = exchange.caller("reason_uac_hung_up_on.xml", load=load, extra=f"-recv_timeout {_LIMIT_MS}")
    calls_up(exchange, count)
    journal_is_written(exchange, "up", 2 * count)
    return [callee, caller]


def test_both_peers_of_each_call_get_a_bye(exchange: Exchange) -> None:
    """
    After a kill, both peers of every active call get a BYE with a Reason from the next process, and those
    of ended calls get nothing.
    """
    exchange.finish(exchange.caller("uac.xml"), exchange.callee())
    peers = start_calls(exchange, CALLS)
    exchange.server.kill()
    exchange.server.start()
    exchange.finish(*peers)
    assert f"ending {2 * CALLS} legs of {CALLS} calls of the previous process" in exchange.server.log()
    assert_settled(exchange, CALLS)


@pytest.mark.long(reason="waits out timer F, 32 s")
def test_a_second_kill_loses_no_farewell(exchange: Exchange) -> None:
    """Peers that had no BYE when the next process was killed too get one from the process after it."""
    peers = start_calls(exchange, 3)
    exchange.server.kill()
    for peer in peers:
        peer.pause()
    before = len(exchange.server.log())
    exchange.server.start()
    assert wait_until(lambda: "of the previous process" in exchange.server.log()[before:], PATIENCE_S)
    exchange.server.kill()
    for peer in peers:
        peer.resume()
    exchange.server.start()
    exchange.finish(*peers)
    assert_settled(exchange, 3)


def test_calls_that_ring_are_cancelled_and_refused(exchange: Exchange) -> None:
    """After a kill, a ringing party gets CANCEL and the waiting caller 503 at once."""
    callee = exchange.callee("uas_noanswer.xml", Load(calls=3))
    caller = exchange.caller("uac_refused.xml", load=Load(calls=3))
    assert wait_until(
        lambda: sum(call["status"] == "ringing" for call in exchange.calls()[0]) == 3, PATIENCE_S
    )
    journal_is_written(exchange, "calling", 3)
    journal_is_written(exchange, "called", 3)
    exchange.server.kill()
    exchange.server.start()
    _, refused = exchange.finish(callee, caller)
    assert refused.log == ("refused 503",) * 3
    assert_settled(exchange, 3)
