"""SIPp calls numbers of the server: bridged calls, refusals, hold, cancel, bad input."""

from __future__ import annotations

import pytest

from tests.sipp.conftest import load_calls
from tests.sipp.exchange import FORWARDED, UNKNOWN, Exchange
from tests.support.sipp_run import Load


@pytest.mark.timeout(300)
def test_forwarded_calls_at_twenty_a_second(clean: Exchange) -> None:
    count = load_calls()
    _, before = clean.calls()
    callee = clean.callee(load=Load(count))
    caller = clean.caller("uac.xml", load=Load(count, 20, 1000))
    assert caller.wait(count / 20 + 60).successful == count
    for result in clean.finish(caller, callee):
        assert (result.successful, result.failed) == (count, 0)
    clean.assert_clean()
    calls, total = clean.calls(per_page=100)
    assert total - before == count
    assert {(call["status"], call["direction"], call["hangup_cause"]) for call in calls[:count]} == {
        ("completed", "inbound", "NORMAL_CLEARING")
    }


def test_hold_and_resume(clean: Exchange) -> None:
    callee = clean.callee()
    clean.finish(clean.caller("uac_reinvite.xml", load=Load(pause_ms=300)), callee)


def test_caller_gives_up_while_it_rings(clean: Exchange) -> None:
    callee = clean.callee("uas_noanswer.xml")
    clean.finish(clean.caller("uac_cancel.xml", load=Load(pause_ms=500)), callee)
    [call], _ = clean.calls(per_page=1)
    assert (call["status"], call["hangup_source"]) == ("no-answer", "caller")


def test_callee_does_not_answer_in_time(clean: Exchange) -> None:
    clean.bind(clean.to_callee(timeout=5))
    callee = clean.callee("uas_noanswer.xml")
    caller, _ = clean.finish(clean.caller("uac_refused.xml"), callee)
    clean.bind(clean.to_callee())
    assert caller.log == ("refused 480",)
    [call], _ = clean.calls(per_page=1)
    assert call["status"] == "no-answer"


@pytest.mark.parametrize(
    ("scenario", "refusal", "status"), [("uas_busy.xml", 486, "busy"), ("uas_reject_503.xml", 503, "failed")]
)
def test_callee_refuses(clean: Exchange, scenario: str, refusal: int, status: str) -> None:
    with clean.own_callee() as port:
        caller, _ = clean.finish(clean.caller("uac_refused.xml"), clean.callee(scenario, port=port))
    assert caller.log == (f"refused {refusal}",)
    [call], _ = clean.calls(per_page=1)
    assert (call["status"], call["sip_status"]) == (status, refusal)


def test_nobody_listens_on_the_callees_trunk(clean: Exchange) -> None:
    with clean.own_callee():
        (caller,) = clean.finish(clean.caller("uac_refused.xml"))
    assert caller.log[0] in {"refused 408", "refused 480", "refused 502", "refused 503"}
    [call], _ = clean.calls(per_page=1)
    assert call["status"] in {"failed", "no-answer"}


def test_unknown_number_is_not_found(clean: Exchange) -> None:
    (caller,) = clean.finish(clean.caller("uac_refused.xml", UNKNOWN))
    assert caller.log == ("refused 404",)


def test_unknown_source_is_forbidden(clean: Exchange) -> None:
    """A trunk is known by its address whatever its port, so the stranger needs an address of its own."""
    (caller,) = clean.finish(clean.caller("uac_refused.xml", extra="-i 127.0.0.2"))
    assert caller.log == ("refused 403",)


@pytest.mark.parametrize("scenario", ["uac_options.xml", "uac_unknown_method.xml"])
def test_requests_outside_a_call(clean: Exchange, scenario: str) -> None:
    clean.finish(clean.caller(scenario, load=Load(3)))


def test_bad_input_has_defined_answers(clean: Exchange) -> None:
    clean.finish(clean.caller("uac_bad.xml", FORWARDED, Load(3)))


def test_a_call_over_tcp(clean: Exchange) -> None:
    """The trunk is known by its address; over TCP its source port is any."""
    callee = clean.callee()
    clean.finish(clean.caller("uac.xml", load=Load(pause_ms=300), extra="-t t1"), callee)
