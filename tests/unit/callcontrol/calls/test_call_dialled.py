"""Second parties that a verb dials: what came of them is told, and a time limit sends the first one on."""

import pytest

from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.effects.signalling import HangUpLeg
from callcontrol.calls.events.answers import RouteRefused
from callcontrol.calls.events.instructions import InstructionsFailed, InstructionsReceived
from callcontrol.calls.events.legs import (
    LegAnswered,
    LegConfirmed,
    LegEnded,
    LegFailed,
    MediaConnected,
    OfferTaken,
)
from callcontrol.calls.hangup_cause import NO_ROUTE_DESTINATION
from callcontrol.calls.plan import FALLBACK_EVENT, Answer, Dial, Hangup, Pause, RequestInstructions
from tests.support.call_drive import B, Drive, assert_nothing_left, make_party, outcome

ACTION = RequestInstructions("https://customer.example/after", event="call.dialled")
SPARE = RequestInstructions("https://spare.example/", event=FALLBACK_EVENT)


def dialled(*before: Answer, **fields: float) -> Drive:
    drive = Drive(*before, Dial(make_party(), ACTION, **fields), Hangup()).start()
    drive.answer_a()
    return drive


def told(drive: Drive) -> dict[str, str | int | None]:
    (asked,) = drive.done(AskWebhook)
    assert (asked.url, asked.event) == (ACTION.url, "call.dialled")
    return dict(asked.facts)


def test_the_server_is_told_how_long_the_two_have_talked() -> None:
    drive = dialled()
    drive.feed(LegAnswered(B, b"sdp"))
    drive.after(7.0)
    drive.feed(LegEnded(B))
    assert told(drive) == {"dial_call_status": "completed", "dial_call_duration": 7, "dial_sip_status": 200}
    drive.feed(InstructionsReceived(1, ()))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api")
    assert_nothing_left(drive)


@pytest.mark.parametrize(
    ("status", "word"), [(486, "busy"), (480, "no-answer"), (404, "failed"), (603, "busy")]
)
def test_the_server_is_told_why_nobody_was_reached(status: int, word: str) -> None:
    drive = dialled(Answer())
    drive.feed(LegFailed(B, status))
    assert told(drive) == {"dial_call_status": word, "dial_call_duration": 0, "dial_sip_status": status}
    assert drive.record.status == "in-progress"
    drive.feed(InstructionsReceived(1, (Pause(1.0), Hangup())))
    drive.after(1.1)
    assert outcome(drive)[0] == "completed"


def test_a_party_that_rings_too_long_is_no_answer() -> None:
    drive = dialled(Answer())
    drive.after(61.0)
    assert told(drive) == {"dial_call_status": "no-answer", "dial_call_duration": 0, "dial_sip_status": 487}


def test_a_caller_who_hangs_up_is_not_asked_about() -> None:
    drive = dialled()
    drive.feed(LegAnswered(B, b"sdp"), LegEnded(0))
    assert not drive.done(AskWebhook)
    assert_nothing_left(drive)


def test_when_the_time_is_up_the_first_party_goes_on() -> None:
    drive = dialled(time_limit_s=30.0)
    drive.feed(LegAnswered(B, b"sdp"))
    drive.after(29.0)
    assert not drive.done(HangUpLeg)
    drive.after(2.0)
    assert [effect.leg for effect in drive.done(HangUpLeg)] == [B]
    assert told(drive) == {"dial_call_status": "completed", "dial_call_duration": 30, "dial_sip_status": 200}
    assert drive.record.status == "in-progress"


def test_a_limit_that_was_not_reached_limits_nothing_later() -> None:
    drive = dialled(time_limit_s=30.0)
    drive.feed(LegAnswered(B, b"sdp"))
    drive.after(1.0)
    drive.feed(LegEnded(B))
    drive.feed(InstructionsReceived(1, (Pause(100.0),)))
    drive.after(50.0)
    assert drive.record.status == "in-progress"


def failing() -> Drive:
    first = RequestInstructions(
        "https://customer.example/", event="call.incoming", facts=(("digits", "1"),), fallback=SPARE
    )
    drive = Drive(first).start()
    drive.feed(InstructionsFailed(1, "http_status", "answered 500", 500, 2))
    return drive


def test_a_fallback_is_asked_and_told_what_failed() -> None:
    drive = failing()
    first, spare = drive.done(AskWebhook)
    assert first.fallback == SPARE
    assert (spare.number, spare.url, spare.event, spare.fallback) == (
        2,
        SPARE.url,
        FALLBACK_EVENT,
        SPARE_LATER,
    )
    assert dict(spare.facts) == {
        "digits": "1",
        "failed_url": first.url,
        "error_reason": "http_status",
        "error_message": "answered 500",
    }
    assert drive.events().count("webhook.failed") == 1
    drive.feed(InstructionsReceived(2, (Answer(), Pause(1.0))))
    assert drive.record.status == "in-progress"


SPARE_LATER = RequestInstructions(SPARE.url, event=FALLBACK_EVENT)


def test_a_fallback_that_fails_ends_the_call() -> None:
    drive = failing()
    drive.feed(InstructionsFailed(2, "timeout", "no answer", None, 2))
    assert outcome(drive) == ("failed", "NORMAL_TEMPORARY_FAILURE", "system")
    assert_nothing_left(drive)


def test_what_a_fallback_has_to_say_may_be_nothing() -> None:
    drive = failing()
    drive.feed(InstructionsReceived(2, ()))
    assert drive.record.status == "ringing"
    drive.after(61.0)
    assert outcome(drive)[0] == "no-answer"


def test_who_has_asked_too_often_asks_nobody_else() -> None:
    drive = Drive(RequestInstructions("https://customer.example/", fallback=SPARE)).start()
    for number in range(1, 201):
        drive.feed(
            InstructionsReceived(number, (RequestInstructions("https://customer.example/", fallback=SPARE),))
        )
    assert outcome(drive)[0] == "failed"
    assert all(asked.url != SPARE.url for asked in drive.done(AskWebhook))
    assert_nothing_left(drive)


def test_a_party_without_a_way_to_it_is_told_too() -> None:
    drive = Drive(Answer(), Dial(make_party(), ACTION), Hangup(), obliging=False).start()
    drive.feed(
        OfferTaken(0), MediaConnected(0), LegConfirmed(0), RouteRefused(NO_ROUTE_DESTINATION, "no gateway")
    )
    assert told(drive) == {"dial_call_status": "failed", "dial_call_duration": 0, "dial_sip_status": None}
