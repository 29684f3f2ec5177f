"""Redirections of our INVITEs (RFC 3261 8.1.3.4)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sip import Destination, Failed, Redirection, Redirects, Request, Response, SipUri
from sip.session.redirects import Redirector
from tests.support.sip_agents import SDP, RawPeer, Side
from tests.support.sip_stage import RAW, Stage


def judge(uri: SipUri) -> Redirection | None:
    """Lead to the raw peer whatever names it, and nowhere else."""
    return Redirection(uri, Destination("udp", *RAW)) if uri.host == RAW[0] else None


def to(*users: str) -> str:
    return ", ".join(f"<sip:{user}@{RAW[0]}>" for user in users)


class Redirected:
    """A call of Alice to a raw peer that sends her elsewhere."""

    def __init__(self, stage: Stage, **options: Any) -> None:
        self.stage = stage
        self.raw: RawPeer = stage.raw(stage.alice)
        options.setdefault("redirects", Redirects(judge))
        self.alice: Side = stage.alice.call(RAW, **options)
        stage.advance()

    @property
    def invites(self) -> list[Request]:
        return list({invite.cseq.number: invite for invite in self.raw.requests("INVITE")}.values())

    @property
    def users(self) -> list[str | None]:
        return [invite.uri.user for invite in self.invites]

    def answer(self, status: int, contact: str = "") -> None:
        fields = {"Contact": contact} if contact else {}
        self.raw.respond(self.invites[-1], status, body=SDP if status == 200 else b"", **fields)
        self.stage.advance()

    def finish(self) -> None:
        if "Answered" in self.alice.names:
            self.alice.session.hangup()
            self.stage.advance()
            for bye in self.raw.requests("BYE"):
                self.raw.respond(bye, 200)
        self.stage.finish()


async def test_a_redirection_is_followed_in_the_same_call(stage: Stage) -> None:
    call = Redirected(stage)
    call.answer(302, to("carol"))
    first, second = call.invites
    assert second.uri == SipUri.parse(f"sip:carol@{RAW[0]}")
    assert (second.call_id, second.from_, second.to) == (first.call_id, first.from_, first.to)
    assert second.cseq.number == first.cseq.number + 1
    assert second.body == first.body and second.via.branch != first.via.branch
    assert len(call.raw.requests("ACK")) == 1, "the 302 is acknowledged"
    call.answer(200)
    assert call.alice.names == ["Answered"]
    call.finish()


async def test_the_best_contact_is_tried_first_and_the_others_when_it_fails(stage: Stage) -> None:
    call = Redirected(stage)
    contacts = (
        f"<sip:c@{RAW[0]}>;q=0.3, <sip:a@{RAW[0]}>;q=0.9, <mailto:x@y>, <sip:b@{RAW[0]}?Subject=x>;q=0.5"
    )
    call.answer(300, contacts)
    call.answer(486)
    call.answer(404)
    call.answer(480)
    assert call.users == ["bob", "a", "b", "c"]
    assert call.alice.last(Failed).status == 480
    call.finish()


async def test_a_global_failure_ends_it(stage: Stage) -> None:
    call = Redirected(stage)
    call.answer(302, to("a", "b"))
    call.answer(603)
    assert call.users == ["bob", "a"]
    assert call.alice.last(Failed).status == 603
    call.finish()


async def test_what_goes_round_in_circles_ends(stage: Stage) -> None:
    call = Redirected(stage)
    call.answer(302, to("a"))
    call.answer(302, to("b"))
    call.answer(302, to("a", "bob"))
    assert call.users == ["bob", "a", "b"]
    assert call.alice.last(Failed).status == 302
    call.finish()


async def test_only_so_many_are_followed(stage: Stage) -> None:
    call = Redirected(stage)
    for number in range(6):
        call.answer(302, to(f"next{number}"))
    assert len(call.invites) == 6
    assert call.alice.last(Failed).status == 302
    call.finish()


async def test_strange_hosts_and_other_services_are_not_followed(stage: Stage) -> None:
    for status, contact in (
        (302, "<sip:carol@198.51.100.1>"),
        (302, "<tel:+8821000000>"),
        (302, "<nonsense"),
        (305, to("proxy")),
        (380, to("service")),
    ):
        call = Redirected(stage)
        call.answer(status, contact)
        assert call.users == ["bob"]
        assert call.alice.last(Failed).status == status
    call.finish()


async def test_nothing_is_followed_without_leave(stage: Stage) -> None:
    call = Redirected(stage, redirects=None)
    call.answer(302, to("carol"))
    assert call.users == ["bob"]
    assert call.alice.last(Failed).status == 302
    call.finish()


async def test_hanging_up_while_it_is_redirected(stage: Stage) -> None:
    call = Redirected(stage)
    call.raw.respond(call.invites[-1], 180)
    stage.advance()
    call.alice.session.hangup()
    call.answer(302, to("carol"))
    assert call.users == ["bob"]
    assert call.alice.names == ["Progress", "Failed"]
    call.finish()


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=40), max_size=20),
    st.lists(st.text(max_size=60), max_size=5),
)
def test_targets_come_once_each_and_not_without_end(responses: list[list[int]], nonsense: list[str]) -> None:
    redirector = Redirector(Redirects(judge, most=5), SipUri.parse(f"sip:0@{RAW[0]}"))
    called = []
    for users in responses:
        response = Response(302)
        for user in users:
            response.headers.add("Contact", f"<sip:{user}@{RAW[0]}>")
        for text in nonsense:
            response.headers.add("Contact", text.replace("\r", "").replace("\n", ""))
        redirector.learn(response)
        target = redirector.next()
        if target is not None:
            called.append(str(target.uri))
    assert len(called) == len(set(called)) <= 5
    assert f"sip:0@{RAW[0]}" not in called
