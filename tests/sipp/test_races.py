"""
The races of RFC 5407 against SIPp, the server being called and calling: responses, records, no leftovers.

The server's own re-INVITEs are refreshes of a session timer of seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sipp.exchange import Exchange
from tests.support.sipp_run import Load

OVER = ("completed", "busy", "failed", "no-answer")


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    with Exchange(tmp_path_factory.mktemp("races"), {"TRUNKLINE_SIP_MIN_SE": "2"}) as running:
        yield running


def the_only_call(exchange: Exchange, before: int) -> dict[str, Any]:
    """The call the test made, over; it must be one, however often its INVITE came."""
    calls, total = exchange.calls(per_page=1)
    assert total == before + 1
    return exchange.wait_for_status(calls[0]["call_sid"], *OVER)


def play(exchange: Exchange, caller: str, callee: str, *, hold_ms: int = 300) -> tuple[str, str, str]:
    """Run scenarios of a caller and a callee; returns the outcome of their call, which may leave nothing."""
    _, before = exchange.calls(per_page=1)
    trunk = exchange.callee(callee, load=Load(pause_ms=hold_ms))
    exchange.finish(exchange.caller(caller, load=Load(pause_ms=hold_ms)), trunk)
    exchange.assert_clean()
    call = the_only_call(exchange, before)
    return call["status"], call["hangup_cause"], call["hangup_source"]


HUNG_UP_BY_CALLER = ("completed", "NORMAL_CLEARING", "caller")
HUNG_UP_BY_CALLEE = ("completed", "NORMAL_CLEARING", "callee")
GIVEN_UP = ("no-answer", "ORIGINATOR_CANCEL", "caller")


class TestTheServerIsCalled:
    @pytest.mark.parametrize(
        "scenario",
        [
            "race_uac_invite_again.xml",
            "race_uac_cancel_late.xml",
            "race_uac_bye_unacked.xml",
            "race_uac_reinvite_unacked.xml",
            "race_uac_late_offer_unacked.xml",
            "race_uac_bye_before_ack.xml",
            "race_uac_update_unacked.xml",
            "race_uac_ack_lost.xml",
            "race_uac_cancel_reinvite.xml",
            "race_uac_answers_after_bye.xml",
            "race_uac_reinvite_glare.xml",
            "race_uac_update_glare.xml",
        ],
    )
    def test_and_the_caller_hangs_up(self, exchange: Exchange, scenario: str) -> None:
        assert play(exchange, scenario, "uas.xml") == HUNG_UP_BY_CALLER

    @pytest.mark.parametrize(
        "scenario",
        [
            "race_uac_bye_crossing.xml",
            "race_uac_reinvite_crossing_bye.xml",
            "race_uac_update_crossing_bye.xml",
            "race_uac_refer_crossing_bye.xml",
        ],
    )
    def test_and_the_callee_hangs_up(self, exchange: Exchange, scenario: str) -> None:
        assert play(exchange, scenario, "uas_hangs_up.xml") == HUNG_UP_BY_CALLEE

    def test_and_the_callee_hangs_up_before_the_ack(self, exchange: Exchange) -> None:
        outcome = play(exchange, "race_uac_ack_after_hangup.xml", "uas_hangs_up.xml", hold_ms=0)
        assert outcome == HUNG_UP_BY_CALLEE

    def test_and_the_caller_gives_up_by_bye(self, exchange: Exchange) -> None:
        assert play(exchange, "race_uac_bye_early.xml", "uas_noanswer.xml") == GIVEN_UP


class TestTheServerCalls:
    @pytest.mark.parametrize("scenario", ["race_uas_answers_cancelled.xml", "race_uas_refuses_cancelled.xml"])
    def test_and_the_caller_gives_up(self, exchange: Exchange, scenario: str) -> None:
        assert play(exchange, "uac_cancel.xml", scenario, hold_ms=500) == GIVEN_UP

    @pytest.mark.parametrize(
        ("scenario", "hold_ms"),
        [
            ("race_uas_bye_crossing.xml", 300),
            ("race_uas_reinvite_crossing_bye.xml", 300),
            ("race_uas_update_crossing_bye.xml", 300),
            ("race_uas_refer_crossing_bye.xml", 300),
            ("race_uas_reinvite_glare.xml", 4000),
            ("race_uas_update_glare.xml", 4000),
        ],
    )
    def test_and_the_caller_hangs_up(self, exchange: Exchange, scenario: str, hold_ms: int) -> None:
        assert play(exchange, "uac.xml", scenario, hold_ms=hold_ms) == HUNG_UP_BY_CALLER

    def test_and_the_trunk_hangs_up(self, exchange: Exchange) -> None:
        assert play(exchange, "uac_hung_up_on.xml", "race_uas_answers_after_bye.xml") == HUNG_UP_BY_CALLEE
