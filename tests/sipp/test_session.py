"""Reliable provisional responses, forks, UPDATE and offers of every kind, against SIPp on either side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sipp.exchange import Exchange
from tests.support.sipp_run import Load, Sipp

RINGS = Load(pause_ms=700)
"""Ringing time of a trunk, and the caller's pause between its steps."""


@pytest.fixture(scope="module", autouse=True)
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Exchange, Sipp, Sipp]]:
    """A call without PRACK, which ends after half a minute; the other tests go on meanwhile."""
    with Exchange(tmp_path_factory.mktemp("patient")) as exchange:
        trunk = exchange.callee("uas_noanswer.xml")
        yield exchange, exchange.caller("uac_never_pracks.xml"), trunk


def last_call(exchange: Exchange) -> tuple[str, str]:
    [call], _ = exchange.calls(per_page=1)
    return call["status"], call["hangup_cause"]


COMPLETED = ("completed", "NORMAL_CLEARING")


@pytest.mark.parametrize(
    ("caller", "callee"),
    [
        ("uac_100rel_required.xml", "uas.xml"),
        ("uac_100rel_update.xml", "uas_100rel.xml"),
        ("uac_prack_wrong.xml", "uas.xml"),
        ("uac_late_offer.xml", "uas.xml"),
        ("uac_late_offer.xml", "uas_100rel.xml"),
        ("uac_late_offer_100rel.xml", "uas_100rel.xml"),
        ("uac_late_reinvite.xml", "uas.xml"),
        ("uac_reinvite_refused.xml", "uas.xml"),
        ("uac_hold_zero.xml", "uas.xml"),
        ("uac_update_hold.xml", "uas.xml"),
        ("uac_update_refused.xml", "uas.xml"),
        ("uac_update_too_early.xml", "uas.xml"),
        ("uac_glare.xml", "uas.xml"),
        ("uac_strict_order.xml", "uas.xml"),
    ],
)
def test_a_caller(clean: Exchange, caller: str, callee: str) -> None:
    trunk = clean.callee(callee, RINGS)
    clean.finish(clean.caller(caller, load=Load(pause_ms=200)), trunk)
    assert last_call(clean) == COMPLETED


@pytest.mark.parametrize(
    "callee",
    [
        "uas_100rel.xml",
        "uas_100rel_order.xml",
        "uas_100rel_lost.xml",
        "uas_forks.xml",
        "uas_two_answers.xml",
        "uas_199.xml",
        "uas_update_early.xml",
        "uas_reinvite_hold.xml",
    ],
)
def test_a_trunk(clean: Exchange, callee: str) -> None:
    trunk = clean.callee(callee, RINGS)
    clean.finish(clean.caller("uac.xml", load=Load(pause_ms=800)), trunk)
    assert last_call(clean) == COMPLETED


def test_a_refresh_without_a_change_repeats_our_description(clean: Exchange) -> None:
    trunk = clean.callee()
    caller, _ = clean.finish(clean.caller("uac_refresh.xml", load=Load(pause_ms=100)), trunk)
    assert len(caller.log) == 3
    assert len(set(caller.log)) == 1, caller.log


def test_an_offer_that_cannot_be_answered_says_why(clean: Exchange) -> None:
    (caller,) = clean.finish(clean.caller("uac_no_codec.xml"))
    assert caller.log == ("refused",)
    assert last_call(clean)[0] == "failed"


def test_a_carrier_whose_trunk_must_send_reliably(clean: Exchange) -> None:
    with clean.own_callee(rel100="required") as port:
        trunk = clean.callee("uas_100rel_required.xml", port=port)
        clean.finish(clean.caller("uac.xml", load=Load(pause_ms=300)), trunk)
    assert last_call(clean) == COMPLETED


@pytest.mark.long(reason="waits out the retransmissions of a reliable response, 32 s")
def test_a_caller_that_never_acknowledges_the_ringing(patient: tuple[Exchange, Sipp, Sipp]) -> None:
    exchange, caller, trunk = patient
    result, _ = exchange.finish(caller, trunk)
    assert result.log == ("refused",)
    assert last_call(exchange)[0] in {"failed", "no-answer"}
    exchange.assert_clean()
