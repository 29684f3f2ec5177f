"""Staying registered, on virtual time: refresh, challenges, refusals, silence, and taking it back."""

from typing import Any

import pytest

from sip import (
    Credentials,
    Destination,
    NameAddr,
    OutboundRegistration,
    RegistrationState,
    Request,
    SipUri,
    parse_message,
    reply,
    serialise,
)
from sip.aio import Listen, RegistrationIO
from sip.aio.transport import Flow
from tests.support.sip_agents import RawPeer
from tests.support.sip_network import MemoryTransport, break_connection
from tests.support.sip_stage import RAW, Stage

CHALLENGE = 'Digest realm="registrar", nonce="{}", algorithm=SHA-256, qop="auth"'
REGISTERED, REJECTED = RegistrationState.REGISTERED, RegistrationState.REJECTED
UNREACHABLE, UNREGISTERED = RegistrationState.UNREACHABLE, RegistrationState.UNREGISTERED


class Line:
    """Alice registering with a raw registrar."""

    def __init__(self, stage: Stage, after_s: float = 0.0, **changes: Any) -> None:
        self.stage = stage
        self.registrar: RawPeer = stage.raw(stage.alice)
        self.states: list[RegistrationState] = []
        given: dict[str, Any] = {
            "uri": SipUri.parse("sip:registrar.example.net"),
            "aor": NameAddr.parse("<sip:trunk@registrar.example.net>"),
            "contact_user": "trunk",
            "destination": Destination("udp", *RAW),
            "credentials": Credentials("trunk", "secret"),
            **changes,
        }
        self.run = stage.alice.ua.register(OutboundRegistration(**given), self.note, after_s)
        stage.advance()

    def note(self, run: RegistrationIO) -> None:
        self.states.append(run.status.state)

    @property
    def asked(self) -> list[Request]:
        """The requests so far, each once."""
        found: dict[int, Request] = {item.cseq.number: item for item in self.registrar.requests("REGISTER")}
        return list(found.values())

    def answer(self, status: int, **fields: Any) -> None:
        """Answer the latest request; a 200 repeats its Contact unless told otherwise."""
        request = self.asked[-1]
        if status == 200:
            expires = fields.pop("granted", request.headers.get("Expires") or "")
            fields.setdefault("Contact", f"{request.headers.get('Contact')};expires={expires}")
        self.registrar.respond(request, status, **fields)
        self.stage.advance()

    def advance(self, seconds: float) -> None:
        self.stage.advance(seconds)

    def wait_until_asked(self) -> float:
        """Move on to the next request, and give how long that took."""
        begun_s, asked = self.stage.network.clock.time(), len(self.asked)
        while len(self.asked) == asked:
            self.advance(0.5)
            assert self.stage.network.clock.time() < begun_s + 10_000, "nothing more is asked"
        return self.stage.network.clock.time() - begun_s

    def finish(self) -> None:
        self.run.abandon()
        self.stage.alice.ua.forget_registration(self.run)
        self.stage.finish()


@pytest.fixture
def line(stage: Stage) -> Line:
    return Line(stage)


def test_what_is_asked(line: Line) -> None:
    (request,) = line.asked
    assert str(request.uri) == "sip:registrar.example.net"
    assert str(request.to) == "<sip:trunk@registrar.example.net>"
    assert request.from_.tag and request.from_.uri == request.to.uri
    assert request.headers.get("Contact") == "<sip:trunk@192.0.2.1:5060>"
    assert (request.headers.get("Expires"), request.headers.get("Supported")) == ("3600", "path")
    assert "Authorization" not in request.headers
    assert line.states == [RegistrationState.REGISTERING]
    line.answer(200)
    assert line.states[-1] is REGISTERED and line.run.status.expires_s == 3600
    line.finish()


def test_it_is_refreshed_in_time_with_one_call_id_and_a_rising_cseq(line: Line) -> None:
    for turn in range(5):
        line.answer(200)
        assert len(line.asked) == turn + 1
        assert 3600 * 0.9 * 0.95 - 0.1 <= line.wait_until_asked() <= 3600 * 0.9 + 0.6
    assert [request.cseq.number for request in line.asked] == [1, 2, 3, 4, 5, 6]
    assert len({request.call_id for request in line.asked}) == 1
    assert len({request.from_.tag for request in line.asked}) == 1
    assert len({request.via.branch for request in line.asked}) == 6
    assert line.states == [RegistrationState.REGISTERING, *[REGISTERED] * 5]
    line.finish()


@pytest.mark.parametrize(
    ("granted", "low_s", "high_s"), [("60", 28.0, 30.1), ("120", 85.0, 90.1), ("600", 512.0, 540.1)]
)
def test_what_the_registrar_grants_counts(line: Line, granted: str, low_s: float, high_s: float) -> None:
    line.answer(200, granted=granted)
    line.advance(low_s - 0.1)
    assert len(line.asked) == 1
    line.advance(high_s - low_s + 0.1)
    assert len(line.asked) == 2
    line.finish()


@pytest.mark.parametrize(
    ("fields", "expires_s"),
    [
        ({"Contact": "<sip:other@192.0.2.77>;expires=10, <sip:trunk@192.0.2.1>;expires=300"}, 300),
        ({"Contact": "<sip:trunk@10.0.0.1:4711>;expires=200"}, 200),
        ({"Contact": "<sip:trunk@192.0.2.1:5060>", "Expires": "400"}, 400),
        ({"Contact": "<sip:trunk@192.0.2.1:5060>;expires=9999999"}, 3600),
        ({"Contact": "nonsense<", "Expires": "500"}, 500),
    ],
)
def test_where_the_time_stands(line: Line, fields: dict[str, str], expires_s: int) -> None:
    line.answer(200, **fields)
    assert line.run.status.expires_s == expires_s
    line.finish()


def test_a_registrar_that_grants_no_time_is_not_asked_without_pause(line: Line) -> None:
    line.answer(200, granted="1")
    line.advance(4.9)
    assert len(line.asked) == 1
    line.finish()


def test_a_registrar_that_keeps_no_binding(line: Line) -> None:
    line.answer(200, granted="0")
    assert (line.run.status.state, line.run.status.code) == (REJECTED, 200)
    line.finish()


class TestChallenges:
    @pytest.mark.parametrize(
        ("status", "header", "answer"),
        [(401, "WWW_Authenticate", "Authorization"), (407, "Proxy_Authenticate", "Proxy-Authorization")],
    )
    def test_the_password_is_given_when_asked_for(
        self, line: Line, status: int, header: str, answer: str
    ) -> None:
        line.answer(status, **{header: CHALLENGE.format("n1")})
        first, second = line.asked
        assert second.call_id == first.call_id and second.cseq.number == 2
        assert 'uri="sip:registrar.example.net"' in (second.headers.get(answer) or "")
        line.answer(200)
        assert line.states[-1] is REGISTERED
        line.wait_until_asked()
        # The next time it is given unasked, with the next count of the same nonce.
        assert "nc=00000002" in (line.asked[-1].headers.get(answer) or "")
        line.finish()

    def test_a_new_nonce_each_time_though_nobody_says_that_the_old_is_stale(self, line: Line) -> None:
        line.answer(401, WWW_Authenticate=CHALLENGE.format("n1"))
        line.answer(200)
        line.wait_until_asked()
        line.answer(401, WWW_Authenticate=CHALLENGE.format("n2"))
        assert 'nonce="n2"' in (line.asked[-1].headers.get("Authorization") or "")
        line.answer(200)
        assert REJECTED not in line.states
        line.finish()

    def test_nonces_that_are_always_stale_come_to_an_end(self, line: Line) -> None:
        for turn in range(20):
            line.answer(401, WWW_Authenticate=CHALLENGE.format(f"n{turn}") + ", stale=true")
        assert len(line.asked) <= 12
        assert line.states[-1] is REJECTED
        line.finish()

    def test_a_wrong_password_is_tried_less_and_less_often(self, line: Line) -> None:
        """A registrar bans who hammers it; half an hour is what is waited at most."""
        rounds: list[float] = []
        for _ in range(14):
            rounds.append(line.stage.network.clock.time())
            line.answer(401, WWW_Authenticate=CHALLENGE.format(f"n{len(line.asked)}"))
            line.answer(401, WWW_Authenticate=CHALLENGE.format(f"n{len(line.asked)}"))
            status = line.run.status
            assert (status.state, status.code) == (REJECTED, 401)
            assert status.reason == "the user name or password was refused"
            line.wait_until_asked()
            assert "Authorization" not in line.asked[-1].headers
        waits = [later - sooner for sooner, later in zip(rounds, rounds[1:], strict=False)]
        assert 5.0 <= waits[0] <= 8.0 and all(wait <= 1800 * 1.25 + 2 for wait in waits)
        assert all(later >= sooner for sooner, later in zip(waits[:8], waits[1:8], strict=False))
        assert min(waits[9:]) >= 1800.0
        line.finish()

    def test_the_password_is_told_to_its_realm_only(self, stage: Stage) -> None:
        line = Line(stage, credentials=Credentials("trunk", "secret", realm="another"))
        line.answer(401, WWW_Authenticate=CHALLENGE.format("n1"))
        assert len(line.asked) == 1 and line.states[-1] is REJECTED
        line.finish()

    def test_without_a_password(self, stage: Stage) -> None:
        line = Line(stage, credentials=None)
        line.answer(401, WWW_Authenticate=CHALLENGE.format("n1"))
        assert line.run.status.reason == "a password is asked for, and there is none"
        line.finish()


class TestRefusals:
    def test_a_time_that_is_too_short(self, stage: Stage) -> None:
        line = Line(stage, expires_s=60)
        line.answer(423, Min_Expires="1800")
        assert line.asked[-1].headers.get("Expires") == "1800"
        line.answer(200)
        assert line.run.status.expires_s == 1800
        line.advance(1700)
        assert line.asked[-1].headers.get("Expires") == "1800"
        line.finish()

    @pytest.mark.parametrize("wanted", ["", "30", "3600", "99999999", "soon"])
    def test_a_time_that_makes_no_sense(self, line: Line, wanted: str) -> None:
        line.answer(423, **({"Min_Expires": wanted} if wanted else {}))
        assert len(line.asked) == 1 and line.states[-1] is REJECTED
        line.finish()

    @pytest.mark.parametrize("status", [302, 400, 403, 404, 420, 603])
    def test_refusals_for_good(self, line: Line, status: int) -> None:
        fields = {"Contact": "<sip:elsewhere@192.0.2.66>"} if status == 302 else {}
        line.answer(status, **fields)
        assert (line.run.status.state, line.run.status.code) == (REJECTED, status)
        line.advance(4.9)
        assert len(line.asked) == 1
        line.advance(2.0)
        assert len(line.asked) == 2
        line.finish()

    @pytest.mark.parametrize("status", [408, 480, 500, 503, 504])
    def test_failures_of_the_registrar(self, line: Line, status: int) -> None:
        line.answer(status)
        assert (line.run.status.state, line.run.status.code) == (UNREACHABLE, status)
        line.advance(7.0)
        line.answer(200)
        assert line.states[-1] is REGISTERED and line.run.status.reason is None
        line.finish()

    @pytest.mark.parametrize(
        ("asked_for", "low_s", "high_s"), [("120", 119.9, 132.6), ("9999999", 3599.0, 3961.0)]
    )
    def test_retry_after(self, line: Line, asked_for: str, low_s: float, high_s: float) -> None:
        line.answer(503, Retry_After=asked_for)
        assert low_s <= line.wait_until_asked() <= high_s
        line.finish()


class TestSilence:
    def test_no_answer(self, line: Line) -> None:
        line.advance(31.0)
        assert line.states == [RegistrationState.REGISTERING]
        line.advance(1.1)
        assert (line.run.status.state, line.run.status.reason) == (
            UNREACHABLE,
            "the registrar did not answer",
        )
        line.advance(6.3)
        assert len(line.asked) == 2
        line.finish()

    def test_long_silence_is_asked_into_every_ten_minutes(self, line: Line) -> None:
        line.advance(4 * 3600)
        before = len(line.asked)
        line.advance(3600)
        assert 4 <= len(line.asked) - before <= 6
        line.finish()

    def test_a_refresh_that_fails_leaves_what_was_granted(self, line: Line) -> None:
        line.answer(200, granted="600")
        line.advance(575)
        assert line.run.status.state is REGISTERED and line.run.status.reason is not None
        line.advance(30)
        assert line.run.status.state is UNREACHABLE and line.run.expires_at_s is None
        line.wait_until_asked()
        line.answer(200)
        assert line.run.status.state is REGISTERED
        line.finish()

    def test_a_registrar_whose_name_is_unknown(self, stage: Stage) -> None:
        line = Line(stage, destination=Destination("udp", "nowhere.example.net"))
        assert line.run.status.reason == "the registrar's name cannot be found"
        line.finish()

    def test_a_transport_that_is_not_there(self, stage: Stage) -> None:
        line = Line(stage, destination=Destination("tls", "192.0.2.9", 5061))
        assert line.run.status.reason == "the registrar cannot be reached"
        line.finish()


class TestStopping:
    def test_the_binding_is_taken_back(self, line: Line) -> None:
        line.answer(401, WWW_Authenticate=CHALLENGE.format("n1"))
        line.answer(200)
        line.run.stop()
        line.advance(0.05)
        last = line.asked[-1]
        assert (last.headers.get("Expires"), last.cseq.number) == ("0", 3)
        assert "nc=00000002" in (last.headers.get("Authorization") or "")
        assert not line.run.ended
        line.answer(401, WWW_Authenticate=CHALLENGE.format("n2") + ", stale=true")
        line.answer(200)
        assert line.run.ended and line.states[-1] is UNREGISTERED
        line.stage.finish()

    def test_with_a_request_under_way_its_answer_comes_first(self, line: Line) -> None:
        line.run.stop()
        line.run.stop()
        line.advance(0.05)
        assert len(line.asked) == 1
        line.answer(200)
        assert [request.headers.get("Expires") for request in line.asked] == ["3600", "0"]
        line.answer(200)
        assert line.run.ended
        line.stage.finish()

    def test_nothing_is_taken_back_that_never_was(self, line: Line) -> None:
        line.run.stop()
        line.answer(403)
        assert line.run.ended and len(line.asked) == 1
        line.stage.finish()

    def test_before_its_start(self, stage: Stage) -> None:
        line = Line(stage, after_s=10.0)
        assert line.asked == []
        line.run.stop()
        line.advance(20)
        assert line.run.ended and line.asked == []
        stage.finish()

    def test_a_silent_registrar_does_not_hold_it_up_for_ever(self, line: Line) -> None:
        line.answer(200)
        line.run.stop()
        line.advance(33)
        assert line.run.ended
        line.stage.finish()

    async def test_the_agent_closes(self, line: Line) -> None:
        line.answer(200)
        await line.stage.alice.ua.close()
        line.advance(10_000)
        assert len(line.asked) == 1


class TestService:
    def test_the_service_route_is_kept(self, line: Line) -> None:
        """RFC 3608 6.1."""
        line.answer(200, Service_Route="<sip:edge1.example.net;lr>, <sip:core.example.net;lr>")
        assert list(line.run.service_route) == ["<sip:edge1.example.net;lr>", "<sip:core.example.net;lr>"]
        line.run.stop()
        line.advance(0.05)
        line.answer(200)
        assert list(line.run.service_route) == []
        line.stage.finish()

    @pytest.mark.parametrize(
        "value", ["<sip:edge.example.net>", "nonsense<", "<tel:+911>", ", ".join(["<sip:a;lr>"] * 11)]
    )
    def test_one_that_leads_nowhere_is_left_out(self, line: Line, value: str) -> None:
        line.answer(200, Service_Route=value)
        assert line.run.status.state is REGISTERED and line.run.service_route == ()
        line.finish()

    def test_routes_and_a_late_start(self, stage: Stage) -> None:
        line = Line(stage, routes=("<sip:proxy.example.net;lr>",), after_s=3.0)
        assert line.asked == []
        line.advance(3.0)
        assert line.asked[0].headers.get_all("Route") == ["<sip:proxy.example.net;lr>"]
        line.finish()


async def test_a_connection_that_breaks_is_made_anew_soon(stage: Stage) -> None:
    """The registrar may reach us by that connection alone: nobody can call until there is another."""
    flows: list[Flow] = []

    def answer(data: bytes, flow: Flow) -> None:
        request = parse_message(data)
        assert isinstance(request, Request)
        flows.append(flow)
        response = reply(request, 200, to_tag="registrar")
        response.headers.add("Contact", f"{request.headers.get('Contact')};expires=3600")
        flow.send(serialise(response))

    registrar = MemoryTransport(stage.network, Listen("tcp", *RAW), answer)
    await registrar.open()
    line = Line(stage, destination=Destination("tcp", *RAW))
    assert line.states[-1] is REGISTERED
    break_connection(flows[0])
    stage.advance(6)
    assert len(flows) == 2
    assert flows[1] is not flows[0]
    line.run.stop()
    stage.advance()
    assert line.states[-1] is UNREGISTERED
    break_connection(flows[1])
    stage.advance(6)
    assert len(flows) == 3
    stage.finish()
