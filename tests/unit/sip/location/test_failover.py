"""One request to a name: its targets one after another (RFC 3263 4.3), and what becomes of those given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sip import (
    Answered,
    Credentials,
    Destination,
    Ended,
    Failed,
    NameAddr,
    OutboundInvite,
    OutboundRegistration,
    Progress,
    RegistrationState,
    Request,
    SipUri,
    Timers,
)
from sip.aio import UserAgentSettings
from sip.aio.resolver import Found, Resolver
from sip.location.failover import ATTEMPT_LIMIT_S, MAX_TRIED, Failover, ServerBackoff
from sip.location.rfc3263 import Target
from tests.support.sip_agents import SDP, Agent, RawPeer, Side, make_network
from tests.support.sip_network import Network

OURS = ("10.0.0.1", 5060)
PEERS = [(f"10.0.1.{number}", 5060) for number in range(1, 7)]
NAME = "trunk.test"


class Names(Resolver):
    """Knows what a test tells it, after a time on the virtual clock."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.targets: list[Target] = []
        self.delay_s = 0.0
        self.asked: list[Destination] = []

    def locate(self, wanted: Destination, found: Found) -> None:
        self.asked.append(wanted)
        if self.delay_s:
            self.network.clock.call_later(self.delay_s, found, self.targets)
        else:
            found(list(self.targets))


class Stage:
    """A user agent that calls a name, and raw peers that the name leads to."""

    def __init__(self, count: int = 3, transports: Sequence[str] = ("udp",)) -> None:
        self.network = make_network()
        self.names = Names(self.network)
        self.agent = Agent(self.network, OURS, UserAgentSettings(timers=Timers()), transports=("udp", "tcp"))
        self.agent.ua._resolver = self.names
        self.peers = [RawPeer(self.network, address, OURS) for address in PEERS[:count]]
        self.names.targets = [Target("udp", *peer.address, NAME) for peer in self.peers]

    def call(self, **options: Any) -> Side:
        side = Side()
        options.setdefault("body", SDP)
        invite = OutboundInvite(
            uri=SipUri.parse(f"sip:bob@{NAME}"),
            from_=NameAddr.parse("<sip:alice@example.net>"),
            to=NameAddr.parse("<sip:bob@example.net>"),
            destination=Destination(None, NAME, 0),
            **options,
        )
        side.session = self.agent.ua.invite(invite, side.take)
        return side

    def wait(self, seconds: float = 0.05) -> None:
        self.network.clock.advance(seconds)

    def invites(self) -> list[int]:
        """Return the number of different INVITEs that each peer got; repetitions of one count once."""
        return [len({item.via.branch for item in peer.requests("INVITE")}) for peer in self.peers]

    def invite(self, index: int) -> Request:
        return self.peers[index].requests("INVITE")[0]

    def assert_clean(self) -> None:
        self.wait(200)
        self.agent.assert_clean()


@pytest.fixture
async def stage() -> Stage:
    stage = Stage()
    await stage.agent.start()
    return stage


async def test_a_silent_target_is_followed_by_the_next_after_four_seconds(stage: Stage) -> None:
    side = stage.call()
    stage.wait(3.9)
    assert stage.invites() == [1, 0, 0]
    stage.wait(0.2)
    assert stage.invites() == [1, 1, 0]
    first, second = stage.invite(0), stage.invite(1)
    assert first.via.branch != second.via.branch
    for name in ("Call-ID", "From", "CSeq", "To", "Contact"):
        assert first.headers.get(name) == second.headers.get(name)
    sent = len(stage.peers[0].requests("INVITE"))
    stage.peers[1].respond(second, 200, body=SDP)
    stage.wait()
    assert side.names == ["Answered"]
    assert [str(item) for item in side.session.failover.tried] == ["udp:10.0.1.1:5060 timeout"]
    stage.wait(40)
    assert len(stage.peers[0].requests("INVITE")) == sent, "a target given up is not repeated to"
    side.session.hangup()
    stage.wait()
    bye = stage.peers[1].requests("BYE")[0]
    stage.peers[1].respond(bye, 200)
    stage.wait()
    stage.assert_clean()


async def test_503_leads_to_the_next_at_once_and_rests_the_target(stage: Stage) -> None:
    side = stage.call()
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 100)
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 503, Retry_After="120")
    stage.wait()
    assert stage.invites() == [1, 1, 0]
    assert stage.peers[0].requests("ACK")
    stage.peers[1].respond(stage.invite(1), 486)
    stage.wait()
    failed = side.last(Failed)
    assert (failed.status, side.names) == (486, ["Failed"])
    assert [(item.host, item.outcome, item.retry_after_s) for item in failed.tried] == [
        ("10.0.1.1", "unavailable", 120),
        ("10.0.1.2", "response", None),
    ]
    # The next call begins with the target that answers, until the time asked for has passed.
    stage.call()
    stage.wait()
    assert stage.invites() == [1, 2, 0]
    stage.wait(125)
    stage.call()
    stage.wait()
    assert stage.invites() == [3, 2, 1], "the second call had tried the others, too, when nobody answered"


@pytest.mark.parametrize("status", [404, 408, 486, 500, 600, 603])
async def test_any_other_answer_is_the_end(status: int, stage: Stage) -> None:
    side = stage.call()
    stage.wait()
    stage.peers[0].respond(stage.invite(0), status)
    stage.wait()
    assert side.last(Failed).status == status
    stage.assert_clean()
    assert stage.invites() == [1, 0, 0]


async def test_once_a_phone_rings_no_other_target_is_tried(stage: Stage) -> None:
    side = stage.call()
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 180)
    stage.wait(10)
    stage.peers[0].respond(stage.invite(0), 503)
    stage.wait(10)
    assert side.names == ["Progress", "Failed"]
    stage.assert_clean()
    assert stage.invites() == [1, 0, 0]


async def test_all_silent_the_call_fails_in_time_and_each_had_one_invite(stage: Stage) -> None:
    side = stage.call()
    stage.wait(ATTEMPT_LIMIT_S + 0.5)
    failed = side.last(Failed)
    assert (failed.status, failed.cause) == (408, "timeout")
    assert [item.outcome for item in failed.tried] == ["timeout"] * 3
    stage.assert_clean()
    assert stage.invites() == [1, 1, 1]


async def test_the_number_of_targets_and_the_time_are_bounded() -> None:
    stage = Stage(6)
    await stage.agent.start()
    stage.call()
    for _ in range(6):
        stage.wait()
        for peer in stage.peers:
            for invite in peer.requests("INVITE"):
                peer.respond(invite, 503)
    stage.assert_clean()
    assert stage.invites() == [1] * MAX_TRIED + [0] * 2
    slow = Failover([Target("udp", f"10.0.0.{number}", 5060, "") for number in range(4)], 100.0)
    assert slow.next(100.0) is not None
    assert slow.next(100.0 + ATTEMPT_LIMIT_S) is None


async def test_a_late_answer_of_a_target_given_up_is_acknowledged_and_ended(stage: Stage) -> None:
    side = stage.call()
    stage.wait(4.1)
    stage.peers[1].respond(stage.invite(1), 180)
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 200, tag="late", body=SDP)
    stage.peers[0].respond(stage.invite(0), 200, tag="late", body=SDP)
    stage.wait()
    assert side.names == ["Progress"], "the caller hears of the target that counts"
    assert len(stage.peers[0].requests("ACK")) == 2
    (bye,) = {item.via.branch: item for item in stage.peers[0].requests("BYE")}.values()
    assert bye.to.tag == "late"
    stage.peers[0].respond(bye, 200)
    stage.peers[1].respond(stage.invite(1), 200, body=SDP)
    stage.wait()
    assert side.names == ["Progress", "Answered"]
    assert not stage.peers[1].requests("BYE")
    side.session.hangup()
    stage.wait()
    stage.peers[1].respond(stage.peers[1].requests("BYE")[0], 200)
    stage.wait()
    assert isinstance(side.events[-1], Ended)
    stage.assert_clean()


async def test_a_late_answer_after_the_call_is_over_is_ended_too(stage: Stage) -> None:
    side = stage.call()
    stage.wait(4.1)
    stage.peers[1].respond(stage.invite(1), 603)
    stage.wait()
    assert side.names == ["Failed"]
    stage.peers[0].respond(stage.invite(0), 200, tag="late", body=SDP)
    stage.wait()
    assert len(stage.peers[0].requests("ACK")) == 1
    stage.peers[0].respond(stage.peers[0].requests("BYE")[0], 200)
    stage.assert_clean()


async def test_a_target_given_up_that_rings_late_is_cancelled(stage: Stage) -> None:
    side = stage.call()
    stage.wait(4.1)
    stage.peers[0].respond(stage.invite(0), 180, tag="late")
    stage.wait()
    (cancel,) = {item.via.branch: item for item in stage.peers[0].requests("CANCEL")}.values()
    assert cancel.via.branch == stage.invite(0).via.branch
    stage.peers[0].respond(cancel, 200)
    stage.peers[0].respond(stage.invite(0), 487, tag="late")
    stage.wait()
    assert stage.peers[0].requests("ACK")
    assert side.names == []
    side.session.hangup()
    stage.assert_clean()


async def test_hanging_up_takes_back_the_target_at_work_only(stage: Stage) -> None:
    side = stage.call()
    stage.wait(4.1)
    stage.peers[1].respond(stage.invite(1), 180)
    stage.wait()
    side.session.hangup()
    stage.wait()
    assert not stage.peers[0].requests("CANCEL")
    (cancel,) = {item.via.branch: item for item in stage.peers[1].requests("CANCEL")}.values()
    stage.peers[1].respond(cancel, 200)
    stage.peers[1].respond(stage.invite(1), 487)
    stage.wait()
    assert side.last(Failed).cause == "cancelled"
    stage.assert_clean()
    assert stage.invites() == [1, 1, 0]


async def test_no_further_target_once_the_owner_hung_up(stage: Stage) -> None:
    side = stage.call()
    stage.wait(1)
    side.session.hangup()
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 503)
    stage.assert_clean()
    assert stage.invites() == [1, 0, 0]
    assert side.names == ["Failed"]


async def test_after_100_alone_hanging_up_does_not_cancel_what_the_next_has_not_answered(
    stage: Stage,
) -> None:
    side = stage.call()
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 100)
    stage.peers[0].respond(stage.invite(0), 503)
    stage.wait(1)
    side.session.hangup()
    stage.wait(1)
    assert not stage.peers[1].requests("CANCEL"), "RFC 3261 9.1: not before a provisional response"
    stage.peers[1].respond(stage.invite(1), 100)
    stage.wait()
    assert stage.peers[1].requests("CANCEL")
    stage.peers[1].respond(stage.invite(1), 487)
    stage.assert_clean()


async def test_after_100_and_503_silence_of_the_last_target_ends_the_call(stage: Stage) -> None:
    stage.names.targets = stage.names.targets[:2]
    side = stage.call()
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 100)
    stage.peers[0].respond(stage.invite(0), 503)
    stage.wait(4.2)
    assert side.last(Failed).cause == "timeout"
    stage.peers[1].respond(stage.invite(1), 200, body=SDP)
    stage.wait()
    assert stage.peers[1].requests("ACK")
    stage.peers[1].respond(stage.peers[1].requests("BYE")[0], 200)
    stage.assert_clean()


async def test_a_connection_that_cannot_be_made_leads_to_the_next_target(stage: Stage) -> None:
    stage.names.targets.insert(0, Target("tcp", "10.0.9.9", 5060, NAME))
    side = stage.call()
    stage.wait()
    assert stage.invites() == [1, 0, 0]
    assert "transport=" not in (stage.invite(0).headers.get("Contact") or "")
    stage.peers[0].respond(stage.invite(0), 200, body=SDP)
    stage.wait()
    assert side.names == ["Answered"]


async def test_credentials_go_to_the_target_that_asked_and_failure_then_to_the_next(stage: Stage) -> None:
    from sip import Credentials

    side = stage.call(credentials=Credentials("u", "p"))
    stage.wait()
    challenge = 'Digest realm="x", nonce="abc", algorithm=MD5, qop="auth"'
    stage.peers[0].respond(stage.invite(0), 401, WWW_Authenticate=challenge)
    stage.wait()
    again = stage.peers[0].requests("INVITE")[-1]
    assert again.cseq.number == 2 and again.headers.get("Authorization")
    stage.peers[0].respond(again, 503)
    stage.wait()
    assert stage.invite(1).headers.get("Authorization")
    assert stage.invites() == [2, 1, 0]
    stage.peers[1].respond(stage.invite(1), 200, body=SDP)
    stage.wait()
    assert side.names == ["Answered"]
    assert side.session.state.name == "CONFIRMED"


async def test_a_name_that_is_not_found_fails_the_call(stage: Stage) -> None:
    stage.names.targets = []
    side = stage.call()
    stage.wait()
    failed = side.last(Failed)
    assert (failed.status, failed.cause, failed.tried) == (404, "resolve", ())
    stage.assert_clean()


async def test_hanging_up_while_the_name_is_looked_up_sends_nothing(stage: Stage) -> None:
    stage.names.delay_s = 2.0
    side = stage.call()
    stage.wait(1)
    side.session.hangup()
    stage.wait(5)
    assert side.last(Failed).cause == "cancelled"
    stage.assert_clean()
    assert stage.invites() == [0, 0, 0]


async def test_a_slow_look_up_takes_nothing_of_the_time_a_target_has(stage: Stage) -> None:
    stage.names.delay_s = 3.5
    side = stage.call()
    stage.wait(7)
    assert stage.invites() == [1, 0, 0]
    stage.peers[0].respond(stage.invite(0), 200, body=SDP)
    stage.wait()
    assert isinstance(side.events[-1], Answered)


async def answered(stage: Stage, contact: str) -> Side:
    side = stage.call()
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 200, body=SDP, Contact=contact)
    stage.wait()
    assert side.names == ["Answered"]
    return side


async def test_a_bye_finds_another_way_when_the_target_of_the_dialog_died(stage: Stage) -> None:
    side = await answered(stage, f"<sip:bob@{NAME}>")
    stage.names.targets.reverse()
    side.session.hangup()
    stage.wait(4.2)
    first = stage.peers[0].requests("BYE")[0], stage.peers[2].requests("BYE")[0]
    assert first[0].cseq == first[1].cseq and first[0].via.branch != first[1].via.branch
    assert not stage.peers[1].requests("BYE")
    stage.peers[2].respond(first[1], 200)
    stage.wait()
    assert side.names == ["Answered", "Ended"]
    stage.assert_clean()
    assert not stage.peers[1].requests("BYE")


async def test_a_bye_answered_late_by_the_first_target_is_done(stage: Stage) -> None:
    side = await answered(stage, f"<sip:bob@{NAME}>")
    side.session.hangup()
    stage.wait(4.2)
    stage.peers[0].respond(stage.peers[0].requests("BYE")[0], 200)
    stage.wait()
    assert side.names == ["Answered", "Ended"]
    stage.peers[1].respond(stage.peers[1].requests("BYE")[0], 481)
    stage.assert_clean()


async def test_a_contact_that_means_nothing_here_is_answered_where_it_came_from(stage: Stage) -> None:
    stage.names.targets = stage.names.targets[:1]
    side = stage.call()
    stage.wait()
    stage.names.targets = []
    stage.peers[0].respond(stage.invite(0), 200, body=SDP, Contact="<sip:bob@pbx.internal>")
    stage.wait()
    assert stage.peers[0].requests("ACK")
    side.session.hangup()
    stage.wait()
    stage.peers[0].respond(stage.peers[0].requests("BYE")[0], 200)
    stage.assert_clean()


async def test_a_number_costs_no_look_up_and_no_attempt(stage: Stage) -> None:
    side = stage.agent.call(PEERS[0])
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 180)
    stage.wait()
    assert isinstance(side.events[-1], Progress)
    assert stage.names.asked == []
    assert side.session.failover is None
    stage.peers[0].respond(stage.invite(0), 503, Retry_After="7")
    stage.wait()
    (tried,) = side.last(Failed).tried
    assert (tried.host, tried.outcome, tried.retry_after_s) == ("10.0.1.1", "unavailable", 7)


def test_a_target_rests_longer_each_time_and_one_answer_ends_it() -> None:
    backoff, target, other = ServerBackoff(), Target("udp", "a", 1, ""), Target("udp", "b", 1, "")
    backoff.failed(target, 100.0)
    assert backoff.order([target, other], 120.0) == [other, target]
    assert backoff.order([target, other], 131.0) == [target, other]
    backoff.failed(target, 131.0)
    assert backoff.is_backed_off(target, 190.0) and not backoff.is_backed_off(target, 192.0)
    for _ in range(8):
        backoff.failed(target, 10_000.0)
    assert not backoff.is_backed_off(target, 10_301.0), "never longer than five minutes"
    backoff.failed(target, 20_000.0, retry_after_s=86_400)
    assert not backoff.is_backed_off(target, 20_301.0)
    backoff.answered(target)
    assert backoff._backoffs == {}


async def test_a_way_that_breaks_after_a_challenge_leads_to_the_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = stage.call(credentials=Credentials("user", "secret"))
    stage.wait()
    stage.peers[0].respond(stage.invite(0), 407, Proxy_Authenticate='Digest realm="x", nonce="1"')
    transport = stage.agent.ua.layer.transports[0]
    put = transport.put  # type: ignore[attr-defined]

    def broken(data: bytes, remote: tuple[str, int]) -> bool:
        if remote == PEERS[0] and data.startswith(b"INVITE"):
            return False
        return bool(put(data, remote))

    monkeypatch.setattr(transport, "put", broken)
    stage.wait(0.5)
    assert stage.invites() == [1, 1, 0]
    side.session.hangup()
    stage.assert_clean()


@pytest.mark.parametrize("silent", [True, False])
async def test_a_registrar_that_fails_is_followed_by_the_next_of_its_name(stage: Stage, silent: bool) -> None:
    uri = SipUri.parse(f"sip:{NAME}")
    aor = NameAddr.parse(f"<sip:trunk@{NAME}>")
    line = stage.agent.ua.register(
        OutboundRegistration(uri, aor, "trunk", Destination(None, NAME, 0)), lambda run: None
    )
    stage.wait()
    if not silent:
        stage.peers[0].respond(stage.peers[0].requests("REGISTER")[0], 503)
    stage.wait(40 if silent else 10)
    request = stage.peers[1].requests("REGISTER")[-1]
    stage.peers[1].respond(request, 200)
    stage.wait()
    assert line.status.state is RegistrationState.REGISTERED
    line.stop()
    stage.wait()
    stage.peers[1].respond(stage.peers[1].requests("REGISTER")[-1], 200)
    stage.assert_clean()
