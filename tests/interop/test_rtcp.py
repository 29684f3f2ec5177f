"""Reports of real endpoints are understood, and theirs of ours."""

from __future__ import annotations

import threading

import pytest

from tests.interop.conftest import MakeBaresip, MakePjsua, connect, hang_up, number, reach
from tests.interop.peers import HAVE_BARESIP
from tests.sipp.exchange import Exchange
from tests.support.needs import needs_pjsua

pytestmark = pytest.mark.timeout(180)

# A report of ours, at most 7.5 s after the first, and one of theirs that answers it.
LONG_ENOUGH_S = 16.0


def check_quality(exchange: Exchange) -> None:
    """Both legs were measured in both directions, and nothing was lost on the loopback interface."""
    [call], _ = exchange.calls(per_page=1)
    legs = call["quality"]["legs"]
    assert len(legs) == 2
    for leg in legs:
        assert leg["rtt_ms"] is not None, legs
        assert leg["rtt_ms"] < 5000, legs
        for direction in ("received", "sent"):
            assert leg[direction]["packet_loss_pct"] < 5, legs
            assert leg[direction]["mos"] > 3.0, legs


@pytest.mark.long(reason="waits for reports, which are seconds apart")
@needs_pjsua
def test_pjsip_reports(clean: Exchange, pjsua: MakePjsua) -> None:
    caller, callee = pjsua("alice"), pjsua("callee")
    reach(clean, callee.port)
    connect(clean, caller, callee)
    threading.Event().wait(LONG_ENOUGH_S)
    hang_up(caller, "c", callee, "in1")
    check_quality(clean)


@pytest.mark.long(reason="waits for reports, which are seconds apart")
@pytest.mark.skipif(not HAVE_BARESIP, reason="baresip is not installed (Debian: baresip-core)")
def test_baresip_reports(clean: Exchange, baresip: MakeBaresip) -> None:
    caller, callee = baresip("alice"), baresip("callee")
    reach(clean, callee.port)
    caller.do("dial", number(clean))
    callee.wait("CALL_INCOMING")
    callee.do("accept")
    callee.wait("CALL_ESTABLISHED")
    caller.wait("CALL_ESTABLISHED")
    threading.Event().wait(LONG_ENOUGH_S)
    caller.do("hangup")
    callee.wait("CALL_CLOSED")
    check_quality(clean)
