"""The awkward flows of RFC 3261 itself: routes, targets, odd responses, refusals, CANCEL at odd moments."""

from __future__ import annotations

import pytest

from tests.sipp.exchange import Exchange
from tests.support.sipp_run import Load

COMPLETED = ("completed", "NORMAL_CLEARING")
RINGS = Load(pause_ms=400)


def last_call(exchange: Exchange) -> tuple[str, str]:
    [call], _ = exchange.calls(per_page=1)
    return call["status"], call["hangup_cause"]


@pytest.mark.parametrize("caller", ["uac_merged.xml", "uac_in_dialog.xml", "uac_refusals.xml"])
def test_a_caller(clean: Exchange, caller: str) -> None:
    _, before = clean.calls()
    trunk = clean.callee(load=RINGS)
    clean.finish(clean.caller(caller, load=Load(pause_ms=100)), trunk)
    assert last_call(clean) == COMPLETED
    assert clean.calls()[1] == before + 1, "one call, whatever came beside it"


@pytest.mark.parametrize("caller", ["uac_routed.xml", "uac_routed_strictly.xml", "uac_moves.xml"])
def test_a_caller_that_is_hung_up_on_where_it_is(clean: Exchange, caller: str) -> None:
    trunk = clean.callee("uas_hangs_up.xml", RINGS)
    clean.finish(clean.caller(caller), trunk)
    assert last_call(clean) == COMPLETED


def test_two_calls_of_one_call_id(clean: Exchange) -> None:
    _, before = clean.calls()
    trunk = clean.callee(load=Load(2))
    clean.finish(clean.caller("uac_two_dialogs.xml", load=Load(pause_ms=100)), trunk)
    calls, total = clean.calls(per_page=2)
    assert total == before + 2
    assert {call["status"] for call in calls} == {"completed"}


@pytest.mark.parametrize(
    "trunk",
    [
        "uas_routed.xml",
        "uas_routed_strictly.xml",
        "uas_bare.xml",
        "uas_wrong_branch.xml",
        "uas_moves.xml",
    ],
)
def test_a_trunk(clean: Exchange, trunk: str) -> None:
    callee = clean.callee(trunk, RINGS)
    clean.finish(clean.caller("uac.xml", load=Load(pause_ms=1000)), callee)
    assert last_call(clean) == COMPLETED


def test_a_trunk_that_misses_the_ack_gets_another(clean: Exchange) -> None:
    callee = clean.callee("uas_ack_lost.xml", RINGS)
    clean.finish(clean.caller("uac.xml", load=Load(pause_ms=1000)), callee)
    [call], _ = clean.calls(per_page=1)
    messages = clean.api("GET", f"/v1/calls/{call['call_sid']}/trace")["messages"]
    starts = [message["message"].split(" ", 1)[0] for message in messages if message["direction"] == "out"]
    # SIPp takes an ACK it knows for a sign that its 200 was lost, and sends that once more.
    assert starts.count("ACK") >= 3
    assert last_call(clean) == COMPLETED


def test_early_media_is_announced_to_the_caller(clean: Exchange) -> None:
    callee = clean.callee("uas_early_media.xml", RINGS)
    clean.finish(clean.caller("uac_early_media.xml", load=Load(pause_ms=100)), callee)
    assert last_call(clean) == COMPLETED


def test_a_cancel_right_behind_its_invite(clean: Exchange) -> None:
    """The callee may never hear of the call, so nobody stands there."""
    with clean.own_callee():
        clean.finish(clean.caller("uac_cancel_at_once.xml"))
    [call], _ = clean.calls(per_page=1)
    assert (call["status"], call["hangup_source"]) == ("no-answer", "caller")


def test_a_cancel_waits_for_a_trunk_that_is_slow(clean: Exchange) -> None:
    callee = clean.callee("uas_slow_to_ring.xml", Load(pause_ms=1500))
    clean.finish(clean.caller("uac_gives_up.xml", load=Load(pause_ms=300)), callee)
    [call], _ = clean.calls(per_page=1)
    assert (call["status"], call["hangup_source"]) == ("no-answer", "caller")


@pytest.mark.parametrize("trunk", ["uas_challenge.xml", "uas_proxy_challenge.xml"])
def test_a_trunk_that_asks_for_a_password(clean: Exchange, trunk: str) -> None:
    policy = {"register_username": "trunk-user", "register_password": "trunk-password-1"}
    with clean.own_callee(**policy) as port:
        callee = clean.callee(trunk, RINGS, port=port)
        clean.finish(clean.caller("uac.xml", load=Load(pause_ms=300)), callee)
    assert last_call(clean) == COMPLETED


def test_a_caller_that_waits_for_a_second_only(clean: Exchange) -> None:
    callee = clean.callee("uas_noanswer.xml")
    clean.finish(clean.caller("uac_expires.xml"), callee)
    [call], _ = clean.calls(per_page=1)
    assert call["status"] == "no-answer"
