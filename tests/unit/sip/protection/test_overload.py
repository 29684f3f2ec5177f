"""Shedding of new calls: when it begins, how it ends, and that a refusal stays one."""

from sip.aio.guard import Refusals
from sip.protection.overload import CallShedder, OverloadSettings
from tests.support.sip_agents import SDP
from tests.support.sip_stage import Stage

QUICK = OverloadSettings(wait_s=0.1, standing_s=0.3, severe_s=1.0)


def look(shedder: CallShedder, waited_s: float, from_s: float, for_s: float) -> float:
    """Look ten times a second; the time after the last look."""
    for count in range(round(for_s * 10)):
        shedder.look(waited_s, from_s + count / 10)
    return from_s + for_s


def taken(shedder: CallShedder, calls: int = 1000) -> int:
    return sum(shedder.accepts() for _ in range(calls))


def test_a_burst_that_passes_refuses_nobody() -> None:
    shedder = CallShedder(QUICK)
    now = 0.0
    for _ in range(100):
        now = look(shedder, 0.8, now, 0.2)
        now = look(shedder, 0.0, now, 0.1)
    assert shedder.share == 1.0
    assert taken(shedder) == 1000


def test_a_wait_that_stands_lowers_the_share_and_its_end_raises_it() -> None:
    shedder = CallShedder(QUICK)
    now = look(shedder, 0.11, 0.0, 1.0)
    share = shedder.share
    assert 0.4 < share < 0.7
    assert shedder.share < 1.0
    assert abs(taken(shedder) - 1000 * share) <= 1
    now = look(shedder, 0.3, now, 10.0)
    assert shedder.share == 0.02
    assert not shedder.severe
    # Between half and the whole of the limit nothing changes.
    now = look(shedder, 0.07, now, 10.0)
    assert shedder.share == 0.02
    now = look(shedder, 0.01, now, 1.0)
    assert 0.2 < shedder.share < 0.4
    look(shedder, 0.01, now, 2.0)
    assert shedder.share == 1.0
    assert shedder.share == 1.0


def test_a_long_wait_lowers_the_share_faster_than_a_short_one() -> None:
    short, long = CallShedder(QUICK), CallShedder(QUICK)
    look(short, 0.11, 0.0, 0.7)
    look(long, 5.0, 0.0, 0.7)
    assert long.share < 0.2 < 0.6 < short.share


def test_what_waited_too_long_itself_is_not_taken_while_a_share_is_refused() -> None:
    shedder = CallShedder(OverloadSettings(stale_s=0.35))
    assert shedder.would_accept(1.2) and shedder.accepts(1.2), "the machine stood still, and that has passed"
    look(shedder, 0.25, 0.0, 0.7)
    assert not shedder.would_accept(0.4) and not shedder.accepts(0.4)
    assert sum(shedder.accepts(0.3) for _ in range(100)) > 50


def test_it_says_beforehand_what_it_will_take() -> None:
    shedder = CallShedder(QUICK)
    look(shedder, 0.12, 0.0, 1.0)
    for _ in range(200):
        assert shedder.would_accept() is shedder.accepts()


def test_some_calls_are_taken_as_soon_as_nothing_waits_any_more() -> None:
    shedder = CallShedder(QUICK)
    now = look(shedder, 5.0, 0.0, 10.0)
    assert not shedder.accepts()
    for count in range(5):
        shedder.look(0.0, now + count / 10)
        assert shedder.accepts()


def test_refusals_are_bounded_in_a_second_and_not_saved_up() -> None:
    shedder = CallShedder(OverloadSettings(refusals_per_s=50))
    shedder.look(0.0, 0.0)
    shedder.look(0.0, 0.1)
    assert sum(shedder.may_refuse() for _ in range(100)) == 5
    shedder.look(0.0, 100.0)
    assert sum(shedder.may_refuse() for _ in range(100)) == 50


def test_a_long_wait_is_severe_until_it_is_over() -> None:
    shedder = CallShedder(QUICK)
    now = look(shedder, 2.0, 0.0, 1.0)
    assert shedder.severe
    now = look(shedder, 0.2, now, 1.0)
    assert shedder.severe
    look(shedder, 0.01, now, 0.1)
    assert not shedder.severe


def test_refusals_are_remembered_for_a_while_and_few() -> None:
    refusals = Refusals(32.0, limit=100)
    refusals.add("a", 0.0)
    assert refusals.holds("a", 31.9)
    assert not refusals.holds("a", 32.0)
    assert not refusals.holds("b", 0.0)
    for count in range(1000):
        refusals.add(count, 1.0)
    assert len(refusals._until) == 100
    refusals.add("later", 50.0)
    assert len(refusals._until) == 1


async def test_a_repetition_of_a_refused_invite_gets_the_same_answer(stage: Stage) -> None:
    """There is room again when it comes, but its caller may have the 503 and be gone."""
    room = False
    stage.bob.ua.admission.has_room = lambda: room
    raw = stage.raw()
    invite = raw.request("INVITE", branch="a", body=SDP)
    raw.send(invite)
    stage.advance()
    room = True
    raw.send(invite)
    stage.advance(1)
    first, second = raw.responses("INVITE")
    assert first.status == second.status == 503
    assert first.headers == second.headers
    assert first.retry_after_s in range(5, 11)
    assert stage.bob.inbound == []
    assert (stage.bob.ua.sessions, stage.bob.ua.transactions) == (0, 0)
    raw.send(raw.request("INVITE", branch="b", body=SDP, Call_ID="another"))
    stage.advance(1)
    assert 200 in [response.status for response in raw.responses("INVITE")]
    assert len(stage.bob.inbound) == 1
    stage.bob.inbound[0].session.hangup()
    stage.finish()


async def test_callers_are_told_different_times_to_come_back(stage: Stage) -> None:
    stage.bob.ua.admission.has_room = lambda: False
    raw = stage.raw()
    for count in range(60):
        raw.send(raw.request("INVITE", branch=f"i{count}", body=SDP, Call_ID=f"call{count}"))
    stage.advance(1)
    assert {response.retry_after_s for response in raw.responses("INVITE")} == set(range(5, 11))
    stage.finish()


async def test_calls_that_are_up_are_served_while_new_ones_are_refused(stage: Stage) -> None:
    side = stage.alice.call(stage.bob.address)
    stage.advance()
    stage.bob.ua.admission.has_room = lambda: False
    refused = stage.alice.call(stage.bob.address)
    side.session.reinvite(SDP)
    stage.advance(1)
    assert "Failed" in refused.names
    assert "OfferReceived" in stage.bob.inbound[0].names
    stage.bob.inbound[0].session.accept_offer(SDP)
    stage.advance(1)
    side.session.hangup()
    stage.advance(1)
    assert "Ended" in stage.bob.inbound[0].names
    stage.finish()
