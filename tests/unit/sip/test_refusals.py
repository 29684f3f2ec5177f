"""Refusals, their form, and that nothing is remembered of them (RFC 3261 8.2, decisions on SIP policies)."""

import pytest

from sip import Request, Response, Timers
from sip.aio import ScreenVerdict, Source, UserAgentSettings
from sip.message.responses import ALLOW, SUPPORTED
from tests.support.sip_agents import SDP, RawPeer
from tests.support.sip_stage import RAW, Stage, make_stage


def only_response(stage: Stage, raw: RawPeer) -> Response:
    stage.advance()
    assert len(raw.received) == 1
    response = raw.received[0]
    assert isinstance(response, Response)
    return response


def nothing_kept(stage: Stage) -> None:
    assert stage.bob.inbound == []
    stage.bob.assert_clean()


@pytest.mark.parametrize(
    ("method", "changes", "status", "header"),
    [
        ("REGISTER", {}, 405, ("Allow", ALLOW)),
        ("PUBLISH", {}, 405, ("Allow", ALLOW)),
        ("FROBNICATE", {}, 501, ("Allow", ALLOW)),
        ("INVITE", {"Max_Forwards": "0"}, 483, None),
        ("OPTIONS", {"Max_Forwards": "0"}, 200, None),
        ("INVITE", {"Require": "100rel, teleportation"}, 420, ("Unsupported", "teleportation")),
        ("INVITE", {"Session_Expires": "60;refresher=uac", "Supported": "timer"}, 422, ("Min-SE", "90")),
        ("INVITE", {"Session_Expires": "soon"}, 400, None),
        ("INVITE", {"body": b"<xml/>", "Content_Type": "text/xml"}, 415, ("Accept", "application/sdp")),
        (
            "INVITE",
            {"body": b"\x1f\x8b", "Content_Type": "application/sdp", "Content_Encoding": "gzip"},
            415,
            ("Accept-Encoding", "identity"),
        ),
        ("INVITE", {"Contact": ""}, 400, None),
        ("INVITE", {"Contact": "<mailto:x@example.net>"}, 400, None),
        ("REFER", {"Refer_To": "<sip:+8821000000@example.net>"}, 603, None),
        ("BYE", {"To": "<sip:ua@example.net>;tag=gone"}, 481, None),
        ("INVITE", {"To": "<sip:ua@example.net>;tag=gone"}, 481, None),
        ("UPDATE", {}, 481, None),
        ("CANCEL", {}, 481, None),
        ("OPTIONS", {}, 200, ("Accept", "application/sdp")),
    ],
)
async def test_answered_without_a_trace(
    stage: Stage, method: str, changes: dict[str, str], status: int, header: tuple[str, str] | None
) -> None:
    raw = stage.raw()
    request = raw.request(method, branch="a", **changes)
    raw.send(request)
    response = only_response(stage, raw)
    assert response.status == status
    if header is not None:
        assert response.headers.get(header[0]) == header[1]
    assert response.to.tag
    nothing_kept(stage)
    raw.received.clear()
    raw.send(request)
    assert only_response(stage, raw).to.tag == response.to.tag, "the same answer to a repetition"
    if method == "INVITE":
        raw.received.clear()
        raw.send(raw.request("ACK", branch="a"))
        stage.advance()
        assert raw.received == []
    nothing_kept(stage)


async def test_a_sips_uri_is_refused_while_there_is_no_tls(stage: Stage) -> None:
    raw = stage.raw()
    request = raw.request("INVITE", branch="a", body=SDP)
    request.uri = request.uri.with_(scheme="sips")
    raw.send(request)
    assert only_response(stage, raw).status == 416
    nothing_kept(stage)


async def test_a_short_session_timer_for_a_caller_that_knows_none_is_borne(stage: Stage) -> None:
    """RFC 4028 9: a proxy put it in, and the caller could not make sense of a 422."""
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", Session_Expires="60", body=SDP))
    stage.advance()
    assert raw.responses("INVITE", 200)


async def test_a_response_meant_for_another_hop_is_dropped(stage: Stage) -> None:
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    invite = raw.requests("INVITE")[0]
    invite.headers.add("Via", "SIP/2.0/UDP 192.0.2.66;branch=z9hG4bKother")
    raw.respond(invite, 486)
    stage.advance()
    assert alice.names == []


async def test_session_timers_of_90_seconds_are_accepted(stage: Stage) -> None:
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", Session_Expires="90;refresher=uac", body=SDP))
    stage.advance()
    assert raw.responses("INVITE", 200)


async def test_noise_is_not_answered(stage: Stage) -> None:
    raw = stage.raw()
    for noise in (b"", b"\r\n\r\n", b"\0" * 40, b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 1000):
        raw.send(noise)
    stage.advance()
    assert raw.received == []
    nothing_kept(stage)


async def test_a_malformed_request_is_told_why(stage: Stage) -> None:
    raw = stage.raw()
    raw.send(
        b"INVITE sip:ua@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.1:999;branch=z9hG4bKx;rport\r\n"
        b"From: <sip:a@example.net>;tag=1\r\nTo: <sip:b@example.net>\r\nCall-ID: c\r\nCSeq: nonsense\r\n\r\n"
    )
    stage.advance()
    at, _, target, answer = stage.network.wire[-1]
    assert answer.startswith(b"SIP/2.0 400 ")
    assert target == RAW
    assert b";rport=5060;received=192.0.2.9\r\n" in answer
    assert b"CSeq: nonsense" in answer, "the peer knows its own text again"
    nothing_kept(stage)


async def test_responses_nobody_asked_for_are_ignored(stage: Stage) -> None:
    raw = stage.raw()
    request = raw.request("INVITE", branch="forged")
    for status in (180, 200, 486):
        raw.respond(request, status, body=SDP)
    stage.advance()
    assert raw.received == []
    nothing_kept(stage)


async def test_responses_go_where_the_request_came_from(stage: Stage) -> None:
    """RFC 3581 with rport; RFC 3261 18.2.2 without: the source address, the port of sent-by."""
    raw = stage.raw()
    raw.send(raw.request("OPTIONS", branch="a", Via="SIP/2.0/UDP 10.1.1.1:7777;branch=z9hG4bKa;rport"))
    response = only_response(stage, raw)
    assert (response.via.received, response.via.rport) == RAW
    other = RawPeer(stage.network, (RAW[0], 7777), stage.bob.address)
    raw.send(raw.request("OPTIONS", branch="b", Via="SIP/2.0/UDP 10.1.1.1:7777;branch=z9hG4bKb"))
    assert only_response(stage, other).via.received == RAW[0]


class TestScreen:
    async def make(self, verdict: ScreenVerdict) -> Stage:
        asked: list[Source] = []

        def screen(source: Source, _: Request) -> ScreenVerdict:
            asked.append(source)
            return verdict

        stage = await make_stage(screen=screen)
        stage.bob.__dict__["asked"] = asked
        return stage

    async def test_an_unknown_source_gets_the_same_403_each_time(self) -> None:
        stage = await self.make(ScreenVerdict.FORBID)
        raw = stage.raw()
        for _ in range(3):
            raw.send(raw.request("INVITE", branch="a", body=SDP))
        stage.advance()
        assert {(r.status, r.to.tag) for r in raw.responses("INVITE")} == {
            (403, raw.responses("INVITE")[0].to.tag)
        }
        raw.send(raw.request("ACK", branch="a"))
        stage.advance()
        nothing_kept(stage)
        assert stage.bob.__dict__["asked"][0] == Source(*RAW, "udp")

    async def test_a_stranger_learns_nothing_from_other_refusals(self) -> None:
        stage = await self.make(ScreenVerdict.FORBID)
        raw = stage.raw()
        raw.send(raw.request("INVITE", branch="a", Require="100rel", Max_Forwards="0"))
        assert only_response(stage, raw).status == 403
        nothing_kept(stage)

    async def test_a_screen_that_fails_lets_nobody_in(self) -> None:
        def screen(*_: object) -> ScreenVerdict:
            raise RuntimeError("directory")

        stage = await make_stage(screen=screen)
        raw = stage.raw()
        raw.send(raw.request("INVITE", branch="a", body=SDP))
        stage.advance()
        assert raw.received == []
        nothing_kept(stage)

    async def test_silence_by_verdict(self) -> None:
        stage = await self.make(ScreenVerdict.DROP)
        raw = stage.raw()
        raw.send(raw.request("INVITE", branch="a", body=SDP))
        stage.advance()
        assert raw.received == []
        nothing_kept(stage)


class TestOverload:
    async def test_draining_refuses_new_calls_only(self, stage: Stage) -> None:
        alice = stage.alice.call(stage.bob.address)
        stage.advance()
        stage.bob.ua.draining = True
        raw = stage.raw()
        raw.send(raw.request("INVITE", branch="a", body=SDP))
        response = only_response(stage, raw)
        assert response.status == 503
        assert response.retry_after_s in range(5, 11)
        alice.session.hangup()
        stage.advance()
        assert stage.bob.inbound[0].names[-1] == "Ended"
        stage.finish()

    @pytest.mark.parametrize(
        "settings", [UserAgentSettings(max_sessions=1), UserAgentSettings(max_transactions=1)]
    )
    async def test_beyond_the_limit(self, settings: UserAgentSettings) -> None:
        stage = await make_stage(settings)
        stage.bob.answer = lambda session: session.progress(180)
        raw = stage.raw()
        raw.send(raw.request("INVITE", branch="a", body=SDP))
        raw.send(raw.request("INVITE", branch="b", body=SDP, Call_ID="other"))
        stage.advance()
        assert [response.status for response in raw.responses("INVITE")] == [180, 503]
        assert stage.bob.ua.sessions == 1

    async def test_calls_that_are_up_can_end_in_an_overload(self) -> None:
        stage = await make_stage(UserAgentSettings(max_transactions=1))
        alice = stage.alice.call(stage.bob.address)
        stage.advance()
        alice.session.hangup()
        stage.advance()
        assert stage.bob.inbound[0].names[-1] == "Ended"
        stage.finish()


async def test_a_merged_request_is_refused(stage: Stage) -> None:
    """RFC 3261 8.2.2.2: the same request over two paths has two branches."""
    raw = stage.raw()
    stage.bob.answer = lambda session: session.progress(180)
    raw.send(raw.request("INVITE", branch="a", body=SDP))
    raw.send(raw.request("INVITE", branch="b", body=SDP))
    stage.advance()
    assert [response.status for response in raw.responses("INVITE")] == [180, 482]
    assert len(stage.bob.inbound) == 1
    stage.bob.inbound[0].session.reject(486)
    stage.advance()
    raw.send(raw.request("ACK", branch="a"))
    stage.finish()
    raw.send(raw.request("INVITE", branch="c", body=SDP))
    stage.advance()
    assert len(stage.bob.inbound) == 2, "nothing is remembered for ever"


class TestWithinADialog:
    async def make(self, stage: Stage) -> tuple[RawPeer, str]:
        raw = stage.raw()
        raw.send(raw.request("INVITE", branch="a", body=SDP, CSeq="10 INVITE"))
        stage.advance()
        to = raw.responses("INVITE", 200)[0].headers.get("To") or ""
        raw.send(raw.request("ACK", branch="ack", To=to, CSeq="10 ACK"))
        stage.advance()
        raw.received.clear()
        return raw, to

    async def test_a_sequence_number_that_runs_backwards(self, stage: Stage) -> None:
        raw, to = await self.make(stage)
        raw.send(raw.request("INFO", branch="b", To=to, CSeq="9 INFO"))
        response = only_response(stage, raw)
        assert response.status == 500
        assert response.retry_after_s is not None
        assert stage.bob.inbound[0].names == ["Confirmed"]

    async def test_another_from_tag_is_another_dialog(self, stage: Stage) -> None:
        raw, to = await self.make(stage)
        raw.send(raw.request("BYE", branch="b", To=to, CSeq="11 BYE", From="<sip:raw@example.net>;tag=evil"))
        assert only_response(stage, raw).status == 481
        assert stage.bob.inbound[0].names == ["Confirmed"]

    @pytest.mark.parametrize(
        ("method", "status"),
        [("OPTIONS", 200), ("REFER", 603), ("NOTIFY", 489), ("X-OWN", 501), ("PRACK", 400)],
    )
    async def test_other_methods(self, stage: Stage, method: str, status: int) -> None:
        raw, to = await self.make(stage)
        raw.send(raw.request(method, branch="b", To=to, CSeq=f"11 {method}"))
        assert only_response(stage, raw).status == status
        assert stage.bob.inbound[0].names == ["Confirmed"]

    async def test_options_tells_what_an_invite_would_be_told(self, stage: Stage) -> None:
        """RFC 3261 11.2; and no hops are needed to reach us (RFC 4475 3.3.11)."""
        raw, to = await self.make(stage)
        raw.send(raw.request("OPTIONS", branch="b", To=to, CSeq="11 OPTIONS", Max_Forwards="0"))
        headers = only_response(stage, raw).headers
        told = (headers.get("Allow"), headers.get("Accept"), ", ".join(headers.get_all("Supported")))
        assert told == (ALLOW, "application/sdp", ", ".join(SUPPORTED))

    async def test_after_the_bye_the_dialog_is_gone(self, stage: Stage) -> None:
        raw, to = await self.make(stage)
        raw.send(raw.request("BYE", branch="b", To=to, CSeq="11 BYE"))
        assert only_response(stage, raw).status == 200
        raw.received.clear()
        raw.send(raw.request("INVITE", branch="c", To=to, CSeq="12 INVITE", body=SDP))
        assert only_response(stage, raw).status == 481
        stage.finish()


async def test_options_asks_and_is_answered(stage: Stage) -> None:
    """Over the network; an answer of any kind means the peer is alive."""
    import asyncio

    from sip import Destination, SipUri

    host, port = stage.bob.address
    future = asyncio.ensure_future(  # noqa: TID251 - an awaitable of our own, kept in a name.
        stage.alice.ua.probes.options(Destination("udp", host, port), SipUri.parse(f"sip:{host}"))
    )
    stage.advance()
    response = await future
    assert response is not None
    assert response.status == 200
    dead = stage.alice.ua.probes.options(
        Destination("udp", "192.0.2.99", 5060), SipUri.parse("sip:192.0.2.99")
    )
    stage.advance(40)
    assert await dead is None
    left = asyncio.ensure_future(  # noqa: TID251
        stage.alice.ua.probes.options(Destination("udp", "192.0.2.99", 5060), SipUri.parse("sip:192.0.2.99"))
    )
    assert stage.alice.ua.transactions == 1
    left.cancel()
    await asyncio.sleep(0)
    assert stage.alice.ua.transactions == 0, "nobody waits for it, so it is repeated no more"
    stage.finish()


def test_timers_have_the_values_of_the_standard() -> None:
    timers = Timers()
    assert (timers.t1_s, timers.t2_s, timers.t4_s, timers.timeout_s) == (0.5, 4.0, 5.0, 32.0)


@pytest.mark.parametrize("method", ["INFO", "UPDATE", "PRACK", "BYE"])
async def test_one_peer_does_not_fill_the_tables_within_its_call(method: str) -> None:
    stage = await make_stage(UserAgentSettings(max_requests_within=20))
    stage.bob.answer = lambda session: session.answer(SDP)
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="a", body=SDP))
    stage.advance()
    answer = next(
        message for message in raw.received if isinstance(message, Response) and message.status == 200
    )
    to = answer.headers.get("To") or ""
    raw.send(raw.request("ACK", branch="b", To=to))
    # We hang up, and the peer lets our BYE wait.
    stage.bob.inbound[0].session.hangup() if method == "BYE" else None
    stage.advance()
    raw.received.clear()
    for number in range(200):
        raw.send(raw.request(method, branch=f"w{number}", To=to, CSeq=f"{number + 2} {method}"))
    stage.advance()
    statuses = [message.status for message in raw.received if isinstance(message, Response)]
    assert statuses.count(503) == 180
    assert stage.bob.ua.transactions <= 25
    stage.advance(40)
    raw.received.clear()
    raw.send(raw.request("OPTIONS", branch="last", To=to, CSeq="900 OPTIONS"))
    stage.advance()
    statuses = [message.status for message in raw.received if isinstance(message, Response)]
    assert statuses == [481 if method == "BYE" else 200]
