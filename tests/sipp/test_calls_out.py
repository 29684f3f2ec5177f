"""Calls placed over the REST API, answered or refused by SIPp as the trunk."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.sipp_run import Load


def place(exchange: Exchange, **more: Any) -> str:
    """Place a call and return its sid."""
    verbs = [{"verb": "pause", "length": 1}, {"verb": "hangup"}]
    body = {"from": FORWARDED, "to": "+919812345678", "verbs": verbs, **more}
    return str(exchange.api("POST", "/v1/calls", body)["call_sid"])


def test_answered_and_hung_up_by_the_server(clean: Exchange) -> None:
    callee = clean.callee()
    call = clean.wait_for_status(place(clean), "completed")
    clean.finish(callee)
    assert (call["hangup_cause"], call["direction"]) == ("NORMAL_CLEARING", "outbound")
    assert call["answered_at"] and call["ended_at"] and call["duration_sec"] >= 1


def test_hung_up_over_the_api(clean: Exchange) -> None:
    callee = clean.callee()
    call_sid = place(clean, verbs=[{"verb": "pause", "length": 60}])
    clean.wait_for_status(call_sid, "in-progress")
    path = f"/v1/Accounts/{clean.account.account_sid}/Calls/{call_sid}"
    clean.api("DELETE", path)
    call = clean.wait_for_status(call_sid, "completed")
    clean.finish(callee)
    assert call["hangup_source"] == "api"
    assert clean.server.request("DELETE", path, clean.account.api_key).status == 409


def test_cancelled_over_the_api_while_it_rings(clean: Exchange) -> None:
    callee = clean.callee("uas_noanswer.xml")
    call_sid = place(clean)
    clean.wait_for_status(call_sid, "ringing")
    clean.api("DELETE", f"/v1/Accounts/{clean.account.account_sid}/Calls/{call_sid}")
    call = clean.wait_for_status(call_sid, "canceled")
    clean.finish(callee)
    assert call["hangup_cause"] == "ORIGINATOR_CANCEL"


def test_not_answered_within_the_timeout(clean: Exchange) -> None:
    callee = clean.callee("uas_noanswer.xml")
    call = clean.wait_for_status(place(clean, timeout=5), "no-answer")
    clean.finish(callee)
    assert call["answered_at"] is None


def test_busy_is_final(clean: Exchange) -> None:
    """After 486 no other gateway is tried, so the second trunk must see no INVITE."""
    second = clean.callee(port=clean.second_callee_port)
    callee = clean.callee("uas_busy.xml")
    call = clean.wait_for_status(place(clean), "busy")
    clean.finish(callee)
    assert (call["hangup_cause"], call["sip_status"]) == ("USER_BUSY", 486)
    assert second.stop().successful == 0


def test_503_fails_over_and_rests_the_gateway(clean: Exchange) -> None:
    carrier_sid, ports = clean.own_trunk(2)
    second = clean.callee(load=Load(2), port=ports[1])
    first = clean.callee("uas_reject_503.xml", port=ports[0])
    clean.wait_for_status(place(clean, carrier_sid=carrier_sid), "completed")
    # Within its Retry-After the first gateway is left in peace: SIPp has ended there, and would not answer.
    clean.wait_for_status(place(clean, carrier_sid=carrier_sid), "completed")
    clean.finish(first, second)


@pytest.mark.parametrize("count", [20])
def test_many_calls_at_once(clean: Exchange, count: int) -> None:
    callee = clean.callee(load=Load(count))
    sids = [place(clean) for _ in range(count)]
    for sid in sids:
        clean.wait_for_status(sid, "completed")
    clean.finish(callee)
