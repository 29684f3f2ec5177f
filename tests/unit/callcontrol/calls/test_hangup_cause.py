"""The table of causes, row by row as it was decided."""

import pytest

from callcontrol.calls import hangup_cause as hangup
from callcontrol.calls.hangup_cause import HangupCause, outcome_of, rejection_of


@pytest.mark.parametrize(
    ("sip_status", "status", "name", "code"),
    [
        (486, "busy", "USER_BUSY", 17),
        (600, "busy", "USER_BUSY", 17),
        (408, "no-answer", "NO_USER_RESPONSE", 18),
        (487, "no-answer", "NO_ANSWER", 19),
        (480, "no-answer", "NO_ANSWER", 19),
        (603, "busy", "CALL_REJECTED", 21),
        (401, "failed", "CALL_REJECTED", 21),
        (403, "failed", "CALL_REJECTED", 21),
        (407, "failed", "CALL_REJECTED", 21),
        (404, "failed", "UNALLOCATED_NUMBER", 1),
        (485, "failed", "UNALLOCATED_NUMBER", 1),
        (604, "failed", "UNALLOCATED_NUMBER", 1),
        (410, "failed", "NUMBER_CHANGED", 22),
        (484, "failed", "INVALID_NUMBER_FORMAT", 28),
        (488, "failed", "BEARERCAPABILITY_NOTAVAIL", 58),
        (606, "failed", "BEARERCAPABILITY_NOTAVAIL", 58),
        (500, "failed", "NORMAL_TEMPORARY_FAILURE", 41),
        (502, "failed", "DESTINATION_OUT_OF_ORDER", 27),
        (503, "failed", "NORMAL_CIRCUIT_CONGESTION", 34),
        (504, "failed", "RECOVERY_ON_TIMER_EXPIRE", 102),
        (599, "failed", "NORMAL_CIRCUIT_CONGESTION", 34),
        (302, "failed", "INTERWORKING", 127),
        (499, "failed", "INTERWORKING", 127),
    ],
)
def test_the_table(sip_status: int, status: str, name: str, code: int) -> None:
    outcome = outcome_of(sip_status)
    assert (outcome.status.value, outcome.cause.name, outcome.cause.code) == (status, name, code)


def test_causes_of_our_own() -> None:
    assert (hangup.ORIGINATOR_CANCEL.code, hangup.MEDIA_TIMEOUT.code, hangup.ALLOTTED_TIMEOUT.code) == (
        487,
        804,
        802,
    )


def test_every_cause_has_a_number_of_its_own_and_one_for_the_wire() -> None:
    causes = [value for value in vars(hangup).values() if isinstance(value, HangupCause)]
    assert len({cause.code for cause in causes}) == len(causes) == len({cause.name for cause in causes})
    assert all(1 <= cause.q850 <= 127 for cause in causes)
    assert hangup.MEDIA_TIMEOUT.reason_header() == 'Q.850;cause=41;text="MEDIA_TIMEOUT"'


@pytest.mark.parametrize(
    ("cause", "sip_status", "rejection"),
    [
        (hangup.USER_BUSY, 486, 486),
        (hangup.USER_BUSY, 600, 600),
        (hangup.USER_BUSY, None, 486),
        (hangup.CALL_REJECTED, 407, 403),
        (hangup.CALL_REJECTED, 603, 603),
        (hangup.NO_ANSWER, 487, 480),
        (hangup.STREAM_DISCONNECTED, None, 480),
        (hangup.SYSTEM_SHUTDOWN, None, 503),
        (hangup.INTERWORKING, 302, 480),
    ],
)
def test_what_the_caller_is_told(cause: HangupCause, sip_status: int | None, rejection: int) -> None:
    assert rejection_of(cause, sip_status) == rejection
