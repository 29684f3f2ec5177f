"""Causes in Reason header fields: read from one leg, told to the other (RFC 3326)."""

import pytest

from callcontrol.calls import hangup_cause as hangup
from callcontrol.calls.events.legs import LegCancelled, LegEnded, LegFailed
from callcontrol.calls.hangup_cause import cause_of, refused_outcome, telling_cause_of
from callcontrol.calls.sip_events import TRANSLATIONS
from sip import Cancelled, Ended, Failed, Headers


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("Q.850;cause=16", "NORMAL_CLEARING"),
        ('q.850 ; cause=17 ; text="User busy"', "USER_BUSY"),
        ("Q.850;cause=18", "NO_USER_RESPONSE"),
        ("Q.850;cause=19", "NO_ANSWER"),
        ("Q.850;cause=21", "CALL_REJECTED"),
        ("Q.850;cause=1", "UNALLOCATED_NUMBER"),
        ("Q.850;cause=34", "NORMAL_CIRCUIT_CONGESTION"),
        ("Q.850;cause=38", "NETWORK_OUT_OF_ORDER"),
        ("Q.850;cause=41", "NORMAL_TEMPORARY_FAILURE"),
        ("Q.850;cause=102", "RECOVERY_ON_TIMER_EXPIRE"),
        ("SIP;cause=486", "USER_BUSY"),
        ("SIP;cause=487", "ORIGINATOR_CANCEL"),
        ('SIP;cause=200;text="Call completed elsewhere"', "LOSE_RACE"),
        ("SIP;cause=200, Q.850;cause=26", "LOSE_RACE"),
        ("SIP;cause=500, Q.850;cause=1", "UNALLOCATED_NUMBER"),
        ("X;cause=1, Q.850;cause=nonsense, Q.850;cause=17", "USER_BUSY"),
    ],
)
def test_what_a_header_says(reason: str, name: str) -> None:
    cause = cause_of(reason)
    assert cause is not None
    assert cause.name == name


@pytest.mark.parametrize(
    "reason", [None, "", "Q.850", "Q.850;cause=126", "Q.850;cause=", "SIP;cause=180", "Preemption;cause=1"]
)
def test_what_says_nothing(reason: str | None) -> None:
    assert cause_of(reason) is None


def test_a_cause_is_written_as_it_is_read() -> None:
    causes = [value for value in vars(hangup).values() if isinstance(value, hangup.HangupCause)]
    for cause in causes:
        read = cause_of(cause.reason_header())
        assert read is not None
        assert read is cause or read.code == cause.q850


@pytest.mark.parametrize(
    ("status", "reason", "outcome"),
    [
        (486, "Q.850;cause=16", ("busy", "USER_BUSY")),
        (480, "Q.850;cause=17", ("busy", "USER_BUSY")),
        (480, "Q.850;cause=20", ("no-answer", "SUBSCRIBER_ABSENT")),
        (500, "Q.850;cause=19", ("no-answer", "NO_ANSWER")),
        (503, "Q.850;cause=38", ("failed", "NETWORK_OUT_OF_ORDER")),
        (503, "Q.850;cause=127", ("failed", "NORMAL_CIRCUIT_CONGESTION")),
        (404, None, ("failed", "UNALLOCATED_NUMBER")),
    ],
)
def test_a_reason_adds_to_the_status(status: int, reason: str | None, outcome: tuple[str, str]) -> None:
    found = refused_outcome(status, telling_cause_of(reason))
    assert (found.status.value, found.cause.name) == outcome


def test_sessions_report_causes_to_their_call() -> None:
    headers = Headers([("Reason", "SIP;cause=480"), ("Reason", "Q.850;cause=20")])
    failed = TRANSLATIONS[Failed](1, Failed(480, "Gone", headers, "response"))
    assert isinstance(failed, LegFailed) and failed.cause is not None
    assert failed.cause.name == "SUBSCRIBER_ABSENT"
    ended = TRANSLATIONS[Ended](1, Ended("remote", "bye", "Q.850;cause=41"))
    assert isinstance(ended, LegEnded) and ended.hangup_cause.name == "NORMAL_TEMPORARY_FAILURE"
    expired = TRANSLATIONS[Ended](1, Ended("local", "session_expired", "Q.850;cause=16"))
    assert isinstance(expired, LegEnded) and expired.hangup_cause.name == "RECOVERY_ON_TIMER_EXPIRE"
    cancelled = TRANSLATIONS[Cancelled](0, Cancelled("SIP;cause=200"))
    assert isinstance(cancelled, LegCancelled) and cancelled.cause is hangup.LOSE_RACE
