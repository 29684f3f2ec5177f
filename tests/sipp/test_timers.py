"""Session timers (RFC 4028) and Reason header fields (RFC 3326) against SIPp, with intervals of seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    """A server that takes intervals of two seconds, so that a refresh is due after one."""
    with Exchange(tmp_path_factory.mktemp("timers"), {"TRUNKLINE_SIP_MIN_SE": "2"}) as running:
        yield running


def last_call(exchange: Exchange) -> dict[str, Any]:
    """The newest call, once it is over."""
    calls, _ = exchange.calls(per_page=1)
    return exchange.wait_for_status(calls[0]["call_sid"], "completed", "busy", "failed", "no-answer")


def outcome(exchange: Exchange) -> tuple[str, str, str]:
    call = last_call(exchange)
    return call["status"], call["hangup_cause"], call["hangup_source"]


@pytest.mark.parametrize(
    "scenario",
    [
        "timer_uac_we_refresh_update.xml",
        "timer_uac_we_refresh_reinvite.xml",
        "timer_uac_refreshes_update.xml",
        "timer_uac_refreshes_reinvite.xml",
        "timer_uac_too_small.xml",
        "timer_uac_proxy_asks.xml",
    ],
)
def test_a_caller_with_session_timers(clean: Exchange, scenario: str) -> None:
    callee = clean.callee()
    clean.finish(clean.caller(scenario), callee)
    assert outcome(clean) == ("completed", "NORMAL_CLEARING", "caller")


def test_a_caller_without_session_timers_is_left_in_peace(clean: Exchange) -> None:
    callee = clean.callee()
    clean.finish(clean.caller("timer_uac_none.xml", load=Load(pause_ms=4000)), callee)
    assert outcome(clean) == ("completed", "NORMAL_CLEARING", "caller")


def test_a_caller_that_stops_refreshing_is_hung_up_with_its_callee(clean: Exchange) -> None:
    callee = clean.callee()
    clean.finish(clean.caller("timer_uac_stops_refreshing.xml"), callee)
    call = last_call(clean)
    assert (call["status"], call["hangup_cause"]) == ("completed", "RECOVERY_ON_TIMER_EXPIRE")
    assert call["hangup_cause_code"] == 102


@pytest.mark.parametrize(
    ("scenario", "hold_ms"),
    [
        ("timer_uas_too_small.xml", 300),
        ("timer_uas_we_refresh_update.xml", 4000),
        ("timer_uas_we_refresh_reinvite.xml", 4000),
        ("timer_uas_refreshes.xml", 4000),
        ("timer_uas_refuses_refreshes.xml", 8700),
    ],
)
def test_a_trunk_with_session_timers(clean: Exchange, scenario: str, hold_ms: int) -> None:
    callee = clean.callee(scenario)
    clean.finish(clean.caller("uac.xml", load=Load(pause_ms=hold_ms)), callee)
    assert outcome(clean) == ("completed", "NORMAL_CLEARING", "caller")


@pytest.mark.parametrize("scenario", ["timer_uas_stops_refreshing.xml", "timer_uas_gone.xml"])
def test_a_trunk_whose_session_is_gone_ends_the_call(clean: Exchange, scenario: str) -> None:
    callee = clean.callee(scenario)
    body = {
        "from": FORWARDED,
        "to": "+919812345678",
        "verbs": [{"verb": "pause", "length": 60}],
    }
    call_sid = str(clean.api("POST", "/v1/calls", body)["call_sid"])
    call = clean.wait_for_status(call_sid, "completed")
    clean.finish(callee)
    assert (call["hangup_cause"], call["hangup_source"]) == ("RECOVERY_ON_TIMER_EXPIRE", "carrier")


class TestReasons:
    def test_of_a_refusal_reaches_the_caller_and_the_record(self, clean: Exchange) -> None:
        callee = clean.callee("reason_uas_busy.xml")
        clean.finish(clean.caller("reason_uac_refused.xml"), callee)
        assert outcome(clean) == ("busy", "USER_BUSY", "callee")
        assert last_call(clean)["sip_status"] == 480

    def test_of_a_bye_reaches_the_other_party_and_the_record(self, clean: Exchange) -> None:
        callee = clean.callee("reason_uas_hangs_up.xml")
        clean.finish(clean.caller("reason_uac_hung_up_on.xml"), callee)
        assert outcome(clean) == ("completed", "NORMAL_TEMPORARY_FAILURE", "callee")

    def test_of_a_cancel_reaches_the_callee_and_the_record(self, clean: Exchange) -> None:
        callee = clean.callee("reason_uas_cancelled.xml")
        clean.finish(clean.caller("reason_uac_cancels.xml"), callee)
        assert wait_until(lambda: outcome(clean) == ("no-answer", "LOSE_RACE", "caller"))
