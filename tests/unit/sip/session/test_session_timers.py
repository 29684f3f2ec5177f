"""Session timers between agents and scripted peers, on virtual time (RFC 4028)."""

import pytest

from sip import Ended, Request
from sip.aio import InboundSession
from tests.support.sip_agents import SDP, Side
from tests.support.sip_stage import BOB, RAW, Stage
from tests.support.timer_peer import TimerPeer

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
UPDATES = "INVITE, ACK, BYE, CANCEL, UPDATE"
NO_UPDATES = "INVITE, ACK, BYE, CANCEL"


def refreshes(peer: TimerPeer, method: str) -> list[Request]:
    """The requests that refreshed the session: not the INVITE that began it."""
    return [request for request in peer.requests(method) if request.to.tag is not None]


def called(stage: Stage, peer: TimerPeer, expires_s: int | None = 1800) -> Side:
    """Alice calls the peer and is answered."""
    alice = stage.alice.call(RAW, session_expires_s=expires_s)
    stage.advance(1)
    assert alice.names == ["Answered"]
    return alice


def calling(stage: Stage, peer: TimerPeer, **fields: str) -> Side:
    """The peer calls Bob and is answered."""
    peer.call(**fields)
    stage.advance(1)
    [bob] = stage.bob.inbound
    assert bob.names == ["Confirmed"]
    return bob


def lives_for_a_day(stage: Stage, side: Side) -> None:
    names = len(side.names)
    stage.advance(DAY_S)
    assert "Ended" not in side.names[names:]
    side.session.hangup()
    stage.advance(1)
    assert side.last(Ended).cause == "bye"
    stage.advance(HOUR_S)
    stage.finish()


def ended_at(stage: Stage, side: Side, limit_s: float) -> float:
    """Return the time at which a session ends from here."""
    for second in range(int(limit_s)):
        if "Ended" in side.names:
            return second
        stage.advance(1)
    raise AssertionError(f"still up after {limit_s} s: {side.names}")


class TestTheFirstInvite:
    async def test_asks_for_the_interval_and_names_the_shortest(self, stage: Stage) -> None:
        peer = TimerPeer(stage)
        alice = called(stage, peer, 600)
        [invite] = peer.requests("INVITE")
        assert "timer" in invite.option_tags("Supported")
        assert invite.headers.get("Session-Expires") == "600"
        assert invite.headers.get("Min-SE") == "90"
        alice.session.hangup()
        stage.finish()

    async def test_asks_for_nothing_when_told_so(self, stage: Stage) -> None:
        peer = TimerPeer(stage)
        alice = called(stage, peer, None)
        assert peer.requests("INVITE")[0].headers.get("Session-Expires") is None
        lives_for_a_day(stage, alice)
        assert len(peer.requests("INVITE")) == 1

    async def test_is_sent_again_with_the_larger_interval_after_a_422(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Session_Expires="3600;refresher=uac")
        peer.refusals["INVITE"] = [(422, {"Min-SE": "2400"}), (422, {"Min-SE": "3600"})]
        alice = called(stage, peer)
        first, second, third = peer.requests("INVITE")
        assert [i.headers.get("Session-Expires") for i in (first, second, third)] == ["1800", "2400", "3600"]
        assert third.headers.get("Min-SE") == "3600"
        assert [i.cseq.number for i in (first, second, third)] == [1, 2, 3]
        assert first.call_id == third.call_id and first.from_.tag == third.from_.tag
        assert first.via.branch != second.via.branch
        alice.session.hangup()
        stage.finish()

    @pytest.mark.parametrize("minimum", ["60", "nonsense", "99999999", ""])
    async def test_goes_without_a_timer_when_the_422_makes_no_sense(self, stage: Stage, minimum: str) -> None:
        peer = TimerPeer(stage)
        peer.refusals["INVITE"] = [(422, {"Min-SE": minimum} if minimum else {})]
        alice = called(stage, peer)
        assert peer.requests("INVITE")[-1].headers.get("Session-Expires") is None
        lives_for_a_day(stage, alice)

    async def test_is_not_sent_without_end(self, stage: Stage) -> None:
        peer = TimerPeer(stage)
        peer.refusals["INVITE"] = [(422, {"Min-SE": str(2000 + n)}) for n in range(50)]
        alice = stage.alice.call(RAW, session_expires_s=1800)
        stage.advance(5)
        assert alice.names == ["Failed"]
        assert len(peer.requests("INVITE")) == 5
        stage.finish()


class TestCallsThatLiveForADay:
    """Calls must not die after 15 or 30 minutes, whatever the peer makes of session timers."""

    @pytest.mark.parametrize("allow", [UPDATES, NO_UPDATES, ""])
    async def test_we_ask_and_the_peer_knows_no_timers(self, stage: Stage, allow: str) -> None:
        peer = TimerPeer(stage, **({"Allow": allow} if allow else {}))
        alice = called(stage, peer)
        lives_for_a_day(stage, alice)
        method = "UPDATE" if allow == UPDATES else "INVITE"
        assert len(refreshes(peer, method)) == 96

    async def test_neither_side_has_timers(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes")
        bob = calling(stage, peer)
        assert stage.bob.ua.timers == 0 or bob.session._machine.refresh.active is False
        lives_for_a_day(stage, bob)

    @pytest.mark.parametrize("status", [400, 403, 488, 500, 503, 603])
    @pytest.mark.parametrize("method", ["UPDATE", "INVITE"])
    async def test_the_peer_knows_no_timers_and_refuses_every_refresh(
        self, stage: Stage, method: str, status: int
    ) -> None:
        peer = TimerPeer(stage, Allow=UPDATES if method == "UPDATE" else NO_UPDATES)
        alice = called(stage, peer)
        peer.refusals[method] = [(status, {"Retry-After": "0"})] * 1000
        lives_for_a_day(stage, alice)
        assert 90 < len(refreshes(peer, method)) < 110

    async def test_the_peer_refreshes_by_update(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Allow=UPDATES, Session_Expires="1800;refresher=uas", Require="timer")
        alice = called(stage, peer)
        peer.every(900, "UPDATE", Supported="timer", Session_Expires="1800;refresher=uac")
        lives_for_a_day(stage, alice)
        answers = peer.responses("UPDATE", 200)
        assert len(answers) >= 95
        assert {a.headers.get("Session-Expires") for a in answers} == {"1800;refresher=uac"}
        assert {a.headers.get("Require") for a in answers} == {"timer"}
        assert refreshes(peer, "INVITE") == refreshes(peer, "UPDATE") == []

    async def test_the_peer_refreshes_by_reinvite(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes")
        bob = calling(stage, peer, Supported="timer", Session_Expires="1800;refresher=uac")
        bob.session.on_event = lambda event: (
            bob.session.accept_offer(SDP) if type(event).__name__ == "OfferReceived" else bob.take(event)
        )
        peer.every(900, "INVITE", body=SDP, Supported="timer", Session_Expires="1800;refresher=uac")
        lives_for_a_day(stage, bob)
        answers = peer.responses("INVITE", 200)
        assert len(answers) >= 95
        assert {a.headers.get("Session-Expires") for a in answers} == {"1800;refresher=uac"}

    @pytest.mark.parametrize(("allow", "method"), [(UPDATES, "UPDATE"), (NO_UPDATES, "INVITE")])
    async def test_we_refresh_as_the_caller(self, stage: Stage, allow: str, method: str) -> None:
        peer = TimerPeer(stage, Allow=allow, Session_Expires="1800;refresher=uac", Require="timer")
        alice = called(stage, peer)
        lives_for_a_day(stage, alice)
        sent = refreshes(peer, method)
        assert len(sent) == 96
        assert {r.headers.get("Session-Expires") for r in sent} == {"1800;refresher=uac"}
        assert {r.body for r in sent} == ({b""} if method == "UPDATE" else {SDP})

    @pytest.mark.parametrize(("allow", "method"), [(UPDATES, "UPDATE"), (NO_UPDATES, "INVITE")])
    async def test_we_refresh_as_the_called(self, stage: Stage, allow: str, method: str) -> None:
        peer = TimerPeer(stage, caller="yes", Session_Expires="1800;refresher=uac")
        bob = calling(stage, peer, Supported="timer", Session_Expires="1800", Allow=allow)
        [ok] = peer.responses("INVITE", 200)
        assert ok.headers.get("Session-Expires") == "1800;refresher=uas"
        lives_for_a_day(stage, bob)
        assert len(refreshes(peer, method)) == 96

    async def test_a_proxy_asks_for_a_caller_without_timers(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes", Allow=NO_UPDATES)
        bob = calling(stage, peer, Session_Expires="1800;refresher=uac", Min_SE="120")
        [ok] = peer.responses("INVITE", 200)
        assert ok.headers.get("Session-Expires") == "1800;refresher=uas"
        assert ok.headers.get("Require") is None
        lives_for_a_day(stage, bob)
        sent = refreshes(peer, "INVITE")
        assert len(sent) == 96
        assert sent[0].headers.get("Min-SE") == "120"

    async def test_a_proxy_asks_for_too_little_on_behalf_of_a_caller_without_timers(
        self, stage: Stage
    ) -> None:
        peer = TimerPeer(stage, caller="yes")
        bob = calling(stage, peer, Session_Expires="10")
        assert peer.responses("INVITE", 200)[0].headers.get("Session-Expires") == "30;refresher=uas"
        lives_for_a_day(stage, bob)

    async def test_a_proxy_answers_for_a_peer_without_timers(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Session_Expires="1800;refresher=uac")
        peer.fields = lambda r: {"Session_Expires": "1800;refresher=uac"} if r.to.tag is None else {}
        alice = called(stage, peer)
        lives_for_a_day(stage, alice)
        assert len(refreshes(peer, "INVITE")) == 96

    async def test_a_peer_names_no_refresher_in_its_answer(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Session_Expires="1800")
        alice = called(stage, peer)
        lives_for_a_day(stage, alice)
        assert len(refreshes(peer, "INVITE")) == 96

    async def test_the_roles_switch_at_each_refresh(self, stage: Stage) -> None:
        peer = TimerPeer(stage)

        def hand_back() -> None:
            if "Ended" not in alice.names:
                peer.within("UPDATE", Supported="timer", Session_Expires="1800;refresher=uas")

        def take_over(_: Request) -> dict[str, str]:
            peer.clock.call_later(900, hand_back)
            return {"Allow": UPDATES, "Session-Expires": "1800;refresher=uas"}

        peer.fields = take_over
        alice = called(stage, peer)
        lives_for_a_day(stage, alice)
        assert len(refreshes(peer, "UPDATE")) == len(peer.responses("UPDATE", 200)) == 48

    async def test_two_of_us_over_a_bad_network(self, stage: Stage) -> None:
        stage.network.faults.loss = 0.3
        stage.network.faults.double = 0.1
        stage.network.faults.reorder = 0.1
        alice = stage.alice.call(BOB, session_expires_s=1800)
        stage.advance(30)
        assert "Answered" in alice.names
        for _ in range(24):
            stage.advance(HOUR_S)
            assert "Ended" not in alice.names + stage.bob.inbound[0].names
        stage.network.faults.loss = 0.0
        alice.session.hangup()
        stage.finish()

    async def test_two_of_us(self, stage: Stage) -> None:
        alice = stage.alice.call(BOB, session_expires_s=90)
        lives_for_a_day(stage, alice)


class TestExpiry:
    async def test_the_peer_agreed_to_refresh_and_does_not(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Session_Expires="1800;refresher=uas")
        alice = called(stage, peer)
        assert ended_at(stage, alice, 1900) == pytest.approx(1800 - 32, abs=2)
        assert alice.last(Ended).cause == "session_expired"
        [bye] = peer.requests("BYE")
        assert bye.headers.get_all("Reason") == [
            'SIP;cause=408;text="Session timer expired"',
            'Q.850;cause=102;text="Session timer expired"',
        ]
        stage.finish()

    async def test_a_short_session_ends_a_third_before_its_time(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes")
        bob = calling(stage, peer, Supported="timer", Session_Expires="90;refresher=uac")
        assert ended_at(stage, bob, 100) == pytest.approx(60, abs=2)
        assert bob.last(Ended).cause == "session_expired"
        stage.finish()

    async def test_a_peer_that_stops_refreshing_is_hung_up(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Session_Expires="1800;refresher=uas")
        alice = called(stage, peer)
        for _ in range(5):
            stage.advance(900)
            peer.within("UPDATE", Supported="timer", Session_Expires="1800;refresher=uac")
        assert ended_at(stage, alice, 1900) == pytest.approx(1800 - 32, abs=2)
        stage.finish()

    @pytest.mark.parametrize("status", [408, 481])
    @pytest.mark.parametrize("allow", [UPDATES, NO_UPDATES])
    async def test_a_refresh_that_finds_no_dialog_ends_the_call(
        self, stage: Stage, allow: str, status: int
    ) -> None:
        peer = TimerPeer(stage, Allow=allow)
        alice = called(stage, peer)
        peer.refusals["UPDATE"] = peer.refusals["INVITE"] = [(status, {})]
        stage.advance(901)
        assert alice.last(Ended) == Ended("remote", "timeout")
        [bye] = peer.requests("BYE")
        assert "Q.850;cause=102" in ", ".join(bye.headers.get_all("Reason"))
        stage.finish()

    @pytest.mark.parametrize("allow", [UPDATES, NO_UPDATES])
    async def test_a_refresh_that_nobody_answers_ends_the_call(self, stage: Stage, allow: str) -> None:
        peer = TimerPeer(stage, Allow=allow)
        alice = called(stage, peer)
        peer.silent = {"UPDATE", "INVITE"}
        stage.advance(930)
        assert "Ended" not in alice.names
        stage.advance(5)
        assert alice.last(Ended) == Ended("remote", "timeout")
        stage.finish()

    async def test_refreshes_are_tried_until_the_agreed_time_is_over(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Allow=UPDATES, Session_Expires="1800;refresher=uac")
        alice = called(stage, peer)
        peer.refusals["UPDATE"] = [(500, {"Retry-After": "0"})] * 5000
        assert ended_at(stage, alice, 1900) == pytest.approx(1800 - 32, abs=2)
        assert alice.last(Ended).cause == "session_expired"
        assert 10 < len(refreshes(peer, "UPDATE")) < 1000
        stage.finish()

    async def test_a_refresh_that_succeeds_in_the_end_saves_the_call(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Allow=NO_UPDATES, Session_Expires="1800;refresher=uac")
        alice = called(stage, peer)
        peer.refusals["INVITE"] = [(500, {})] * 20
        lives_for_a_day(stage, alice)


class TestRefusedRefreshes:
    async def test_an_update_the_peer_does_not_know_after_all(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Allow=UPDATES, Session_Expires="1800;refresher=uac")
        alice = called(stage, peer)
        peer.fields = lambda request: {"Session-Expires": "1800;refresher=uac"}
        peer.refusals["UPDATE"] = [(501, {})]
        stage.advance(901)
        assert [len(refreshes(peer, method)) for method in ("UPDATE", "INVITE")] == [1, 1]
        lives_for_a_day(stage, alice)
        assert len(refreshes(peer, "UPDATE")) == 1

    @pytest.mark.parametrize("allow", [UPDATES, NO_UPDATES])
    async def test_a_422_to_a_refresh_is_obeyed(self, stage: Stage, allow: str) -> None:
        peer = TimerPeer(stage, Allow=allow, Session_Expires="1800;refresher=uac")
        alice = called(stage, peer)
        method = "UPDATE" if allow == UPDATES else "INVITE"
        peer.refusals[method] = [(422, {"Min-SE": "2000"})]
        stage.advance(901)
        one, two = refreshes(peer, method)
        assert two.headers.get("Session-Expires") == "2000;refresher=uac"
        assert two.headers.get("Min-SE") == "2000"
        alice.session.hangup()
        stage.finish()

    @pytest.mark.parametrize("allow", [UPDATES, NO_UPDATES])
    async def test_a_491_is_tried_again(self, stage: Stage, allow: str) -> None:
        peer = TimerPeer(stage, Allow=allow, Session_Expires="1800;refresher=uac")
        alice = called(stage, peer)
        method = "UPDATE" if allow == UPDATES else "INVITE"
        peer.refusals[method] = [(491, {})] * 3
        stage.advance(920)
        assert len(refreshes(peer, method)) == 4
        assert alice.names == ["Answered"] + ["OfferAnswered"] * (method == "INVITE")
        lives_for_a_day(stage, alice)

    async def test_a_refresh_waits_for_the_answer_to_the_peers_offer(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Allow=UPDATES, Session_Expires="1800;refresher=uac")
        alice = called(stage, peer)
        stage.advance(895)
        peer.within("INVITE", body=SDP)
        stage.advance(8)
        assert alice.names[-1] == "OfferReceived" and refreshes(peer, "UPDATE") == []
        alice.session.reject_offer()
        stage.advance(1)
        assert len(refreshes(peer, "UPDATE")) == 1
        alice.session.hangup()
        stage.finish()

    async def test_a_change_of_ours_refreshes_as_well(self, stage: Stage) -> None:
        peer = TimerPeer(stage, Allow=NO_UPDATES, Session_Expires="1800;refresher=uac")
        alice = called(stage, peer)
        stage.advance(800)
        alice.session.reinvite(SDP.replace(b"4000", b"4002"))
        stage.advance(800)
        [change] = refreshes(peer, "INVITE")
        assert change.headers.get("Session-Expires") == "1800;refresher=uac"
        stage.advance(200)
        assert [request.body for request in refreshes(peer, "INVITE")] == [change.body] * 2
        lives_for_a_day(stage, alice)


class TestTheCalledSide:
    async def test_too_small_is_refused_if_the_caller_knows_timers(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes")
        peer.call(Supported="timer", Session_Expires="89")
        stage.advance(1)
        [refusal] = peer.responses("INVITE", 422)
        assert refusal.headers.get("Min-SE") == "90"
        assert stage.bob.inbound == []
        stage.finish()

    async def test_no_timer_is_made_for_callers_without(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes")
        bob = calling(stage, peer, Supported="timer")
        assert peer.responses("INVITE", 200)[0].headers.get("Session-Expires") is None
        assert bob.session._machine.refresh.active is False
        bob.session.hangup()
        stage.finish()

    async def test_we_may_ask_a_caller_that_knows_timers(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes", Session_Expires="1800;refresher=uac")

        def answer(session: InboundSession) -> None:
            session.want_timer(1800)
            session.answer(SDP)

        stage.bob.answer = answer
        bob = calling(stage, peer, Supported="timer", Allow=UPDATES)
        assert peer.responses("INVITE", 200)[0].headers.get("Session-Expires") == "1800;refresher=uas"
        lives_for_a_day(stage, bob)
        assert len(refreshes(peer, "UPDATE")) == 96

    async def test_we_ask_no_caller_that_knows_none(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes")

        def answer(session: InboundSession) -> None:
            session.want_timer(1800)
            session.answer(SDP)

        stage.bob.answer = answer
        bob = calling(stage, peer)
        assert peer.responses("INVITE", 200)[0].headers.get("Session-Expires") is None
        lives_for_a_day(stage, bob)
        assert refreshes(peer, "INVITE") == []

    async def test_a_timer_may_begin_with_an_update(self, stage: Stage) -> None:
        peer = TimerPeer(stage, caller="yes")
        bob = calling(stage, peer)
        peer.within("UPDATE", Supported="timer", Session_Expires="120;refresher=uac")
        stage.advance(1)
        assert peer.responses("UPDATE", 200)[0].headers.get("Session-Expires") == "120;refresher=uac"
        assert ended_at(stage, bob, 130) == pytest.approx(88, abs=3)
        stage.finish()

    async def test_a_refresh_without_session_expires_ends_the_peers_timer(self, stage: Stage) -> None:
        """RFC 4028 9: what is not asked for again is no longer there."""
        peer = TimerPeer(stage, caller="yes")
        bob = calling(stage, peer, Supported="timer", Session_Expires="120;refresher=uac")
        peer.within("UPDATE")
        lives_for_a_day(stage, bob)


@pytest.mark.parametrize(
    "value", ["", "x", "-1", "1e3", "99999999999999", "90;refresher", "90;refresher=both", ";;;", "90 90"]
)
async def test_what_cannot_be_read_in_an_answer_ends_nothing(stage: Stage, value: str) -> None:
    peer = TimerPeer(stage)
    peer.fields = lambda request: {"Session-Expires": value, "Min-SE": value} if value else {}
    alice = called(stage, peer)
    lives_for_a_day(stage, alice)
