"""Transfers by REFER, in and out, on virtual time (RFC 3515, RFC 4488, RFC 3892)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip import (
    Credentials,
    InvalidValue,
    NameAddr,
    ParseError,
    Refer,
    ReferAccepted,
    ReferFailed,
    ReferProgress,
    ReferReceived,
    Replaces,
    Request,
    SipUri,
)
from sip.message.message import Headers
from sip.session.refer import parse_refer, parse_sipfrag, refer_to, sipfrag
from sip.session.replaces import uri_headers
from tests.support.sip_agents import SDP, RawPeer, Side
from tests.support.sip_stage import BOB, RAW, Stage

TARGET = "<sip:+919812345678@192.0.2.77;user=phone>"


def refer_request(*values: str, **fields: str) -> Request:
    request = Request("REFER", SipUri.parse("sip:ua@example.net"))
    for value in values:
        request.headers.add("Refer-To", value)
    for name, value in fields.items():
        request.headers.add(name.replace("_", "-"), value)
    return request


class TestReadingWhatAReferAsksFor:
    @pytest.mark.parametrize(
        "text",
        [
            "sip:+919812345678@gateway.example.net",
            "sip:+919812345678@gateway.example.net;user=phone;transport=tcp",
            "sips:carol@example.net",
            "tel:+919812345678",
            "tel:+91-98123-45678;phone-context=+91",
            "sip:carol@example.net?X-Foo=bar&Subject=a%20b%3B%3C",
            "sip:%2B9198@example.net;x=%41?X-A=%2525",
        ],
    )
    def test_the_target_is_kept_as_it_was_written(self, text: str) -> None:
        for value in (f"<{text}>", f'"Carol, <at home>" <{text}>', f"Carol <{text}>;x=y"):
            assert parse_refer(refer_request(value)).text == text

    def test_a_bare_uri_is_a_target_too(self) -> None:
        assert parse_refer(refer_request("sip:carol@example.net")).text == "sip:carol@example.net"

    def test_a_dialog_to_replace_is_read_from_the_uri(self) -> None:
        uri = "sip:x@h?Replaces=c%40h%3Bto-tag%3Dt1%3Bfrom-tag%3Df1%3Bearly-only&X-Foo=bar"
        refer = parse_refer(refer_request(f"<{uri}>"))
        assert refer.replaces == Replaces("c@h", "t1", "f1", early_only=True)
        assert refer.text == uri
        assert uri_headers(refer.target.headers)[1] == ("X-Foo", "bar")

    def test_who_refers_and_whether_news_is_wanted(self) -> None:
        refer = parse_refer(refer_request(TARGET, Referred_By="<sip:a@b>;cid=x", Refer_Sub="false"))
        assert (refer.referred_by, refer.wants_news) == ("<sip:a@b>;cid=x", False)
        assert parse_refer(refer_request(TARGET, Refer_Sub="true")).wants_news

    @pytest.mark.parametrize(
        ("values", "fields", "status"),
        [
            ((), {}, 400),
            ((TARGET, TARGET), {}, 400),
            (("<sip:a@b>, <sip:c@d>",), {}, 400),
            (("sip:a@b?X=y",), {}, 400),
            (("<>",), {}, 416),
            (("<sip:a@b",), {}, 400),
            (("<sip:" + "9" * 3000 + "@b>",), {}, 400),
            (("<http://example.net/>",), {}, 416),
            (("<mailto:a@b>",), {}, 416),
            (("<sip:a@b;method=BYE>",), {}, 603),
            (("<sip:a@b;method=SUBSCRIBE?Event=refer>",), {}, 603),
            (("<sip:a@b?Replaces=nonsense>",), {}, 400),
            (("<sip:a@b?Replaces=c%3Bto-tag%3Dt>",), {}, 400),
            (("<sip:a@b?Replaces=c%3Bto-tag%3Dt%3Bto-tag%3Du%3Bfrom-tag%3Df>",), {}, 400),
            (("<sip:a@b?Replaces=c%3Bto-tag%3Dt%3Bfrom-tag%3Df&Replaces=c>",), {}, 400),
            (("<sip:a@b?X-A=1%0D%0AVia:%20x>",), {}, 400),
            (("<sip:a@b?" + "&".join(["X-A=1"] * 40) + ">",), {}, 400),
            ((TARGET,), {"Refer_Sub": "perhaps"}, 400),
            ((TARGET,), {"Referred_By": "<sip:a"}, 400),
        ],
    )
    def test_what_cannot_be_called(
        self, values: tuple[str, ...], fields: dict[str, str], status: int
    ) -> None:
        with pytest.raises(ParseError) as refused:
            parse_refer(refer_request(*values, **fields))
        assert refused.value.status == status

    @given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=300))
    def test_any_refer_to_is_read_or_refused(self, value: str) -> None:
        try:
            refer = parse_refer(refer_request(value))
        except ParseError as error:
            assert error.status in (400, 416, 603)
        else:
            assert refer.text in value

    @given(st.binary(max_size=300))
    def test_any_body_of_a_notify_is_read_or_passed_over(self, body: bytes) -> None:
        for data in (body, b"SIP/2.0 " + body):
            news = parse_sipfrag(data)
            assert news is None or (100 <= news[0] <= 699 and news[1].isprintable())

    def test_a_status_line_reads_back(self) -> None:
        assert sipfrag(100) == b"SIP/2.0 100 Trying\r\n"
        assert parse_sipfrag(sipfrag(486, "Busy")) == (486, "Busy")
        assert parse_sipfrag(b"SIP/2.0 180") == (180, "")


class TestWritingATarget:
    def test_targets_are_sent_as_given(self) -> None:
        for text in ("tel:+919812345678", "sip:a@b;x=y?X-Foo=bar%20b"):
            assert refer_to(text) == f"<{text}>"

    def test_the_dialog_to_replace_is_escaped_and_reads_back(self) -> None:
        replaces = Replaces("a;b=?&%@h".replace(";", ""), "t", "f")
        for uri in ("sip:carol@h", "sip:carol@h?X-Foo=bar"):
            refer = parse_refer(refer_request(refer_to(uri, replaces)))
            assert refer.replaces == replaces

    @pytest.mark.parametrize("text", ["", "carol", "http://x/", "sip:a@b>,<sip:c", "sip:a@b\r\nX: y"])
    def test_what_is_no_target_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidValue):
            refer_to(text)

    def test_a_number_cannot_carry_a_dialog(self) -> None:
        with pytest.raises(InvalidValue):
            refer_to("tel:+9198", Replaces("c", "t", "f"))
        with pytest.raises(InvalidValue):
            refer_to("sip:a@b?Replaces=x", Replaces("c", "t", "f"))


class Inbound:
    """A call of a raw peer to Bob, and the REFERs in it."""

    def __init__(self, stage: Stage, *, allowed: bool = True) -> None:
        self.stage = stage
        self.raw: RawPeer = stage.raw()
        self.raw.send(self.raw.request("INVITE", branch="i", body=SDP))
        stage.advance()
        self.to = self.raw.responses("INVITE", 200)[0].headers.get("To") or ""
        self.raw.send(self.raw.request("ACK", branch="a", To=self.to))
        stage.advance()
        self.bob: Side = stage.bob.inbound[0]
        self.bob.session.allows_refer = allowed

    def send(self, method: str, cseq: int, **fields: str) -> int:
        """Send a request; the status of its response, 0 when there is none yet."""
        if method == "REFER":
            fields.setdefault("Refer_To", TARGET)
        self.raw.send(
            self.raw.request(method, branch=f"{method}{cseq}", To=self.to, CSeq=f"{cseq} {method}", **fields)
        )
        self.stage.advance()
        answers = [item for item in self.raw.responses(method) if item.cseq.number == cseq]
        return answers[-1].status if answers else 0

    def news(self) -> list[tuple[str, str, str]]:
        """The NOTIFYs so far, each answered: Event, Subscription-State, the status line."""
        return [
            (
                notify.headers.get("Event") or "",
                notify.headers.get("Subscription-State") or "",
                notify.body.decode().strip(),
            )
            for notify in self.unique()
        ]

    def unique(self) -> list[Request]:
        """The NOTIFYs without their repetitions."""
        return list({notify.cseq.number: notify for notify in self.raw.requests("NOTIFY")}.values())

    def answer(self, status: int = 200) -> None:
        """Answer all NOTIFYs."""
        for notify in self.raw.requests("NOTIFY"):
            self.raw.respond(notify, status)
        self.stage.advance()

    def finish(self) -> None:
        self.answer()
        self.bob.session.hangup()
        self.stage.advance()
        for bye in self.raw.requests("BYE"):
            self.raw.respond(bye, 200)
        self.stage.finish()


class TestReferred:
    async def test_the_news_of_a_transfer(self, stage: Stage) -> None:
        call = Inbound(stage)
        assert call.send("REFER", 2) == 0
        refer = call.bob.last(ReferReceived).refer
        assert isinstance(refer, Refer) and refer.text == TARGET.strip("<>")
        call.bob.session.accept_refer()
        stage.advance()
        assert call.raw.responses("REFER", 202)
        call.answer()
        for status in (180, 180, 183, 200):
            call.bob.session.notify_refer(status)
            stage.advance()
            call.answer()
        assert call.news() == [
            ("refer", "active;expires=180", "SIP/2.0 100 Trying"),
            ("refer", "active;expires=180", "SIP/2.0 180 Ringing"),
            ("refer", "active;expires=180", "SIP/2.0 183 Session Progress"),
            ("refer", "terminated;reason=noresource", "SIP/2.0 200 OK"),
        ]
        assert {item.headers.get("Content-Type") for item in call.unique()} == {"message/sipfrag;version=2.0"}
        call.finish()

    async def test_the_second_refer_is_told_from_the_first(self, stage: Stage) -> None:
        call = Inbound(stage)
        for cseq in (2, 3):
            call.send("REFER", cseq)
            call.bob.session.accept_refer()
            call.bob.session.notify_refer(486)
            stage.advance()
            call.answer()
        assert [news[0] for news in call.news()] == ["refer", "refer", "refer;id=3", "refer;id=3"]
        call.finish()

    async def test_one_at_a_time(self, stage: Stage) -> None:
        call = Inbound(stage)
        call.send("REFER", 2)
        assert call.send("REFER", 3) == 491
        call.bob.session.accept_refer()
        stage.advance()
        assert call.send("REFER", 4) == 491
        call.finish()

    async def test_without_the_right_it_is_declined(self, stage: Stage) -> None:
        call = Inbound(stage, allowed=False)
        assert call.send("REFER", 2) == 603
        assert "ReferReceived" not in call.bob.names
        call.finish()

    @pytest.mark.parametrize(
        ("value", "status"),
        [("", 400), ("<sip:a@b>,<sip:c@d>", 400), ("<fax:+91>", 416), ("<sip:a@b;method=BYE>", 603)],
    )
    async def test_what_cannot_be_called(self, stage: Stage, value: str, status: int) -> None:
        call = Inbound(stage)
        assert call.send("REFER", 2, Refer_To=value) == status
        call.finish()

    async def test_no_news_is_sent_to_one_who_wants_none(self, stage: Stage) -> None:
        call = Inbound(stage)
        call.send("REFER", 2, Refer_Sub="false")
        call.bob.session.accept_refer()
        call.bob.session.notify_refer(180)
        call.bob.session.notify_refer(200)
        stage.advance()
        assert call.raw.responses("REFER", 202)[0].headers.get("Refer-Sub") == "false"
        assert call.news() == []
        call.finish()

    @pytest.mark.parametrize("status", [481, 603])
    async def test_a_notify_that_is_refused_ends_the_news_and_not_the_call(
        self, stage: Stage, status: int
    ) -> None:
        call = Inbound(stage)
        call.send("REFER", 2)
        call.bob.session.accept_refer()
        stage.advance()
        call.answer(status)
        call.bob.session.notify_refer(180)
        call.bob.session.notify_refer(200)
        stage.advance()
        assert len(call.news()) == 1
        assert "Ended" not in call.bob.names
        call.finish()

    async def test_an_owner_that_never_decides(self, stage: Stage) -> None:
        call = Inbound(stage)
        call.send("REFER", 2)
        stage.advance(11)
        assert call.raw.responses("REFER", 603)
        call.bob.session.accept_refer()
        assert call.send("REFER", 3) == 0
        call.bob.session.reject_refer(404)
        stage.advance()
        assert call.raw.responses("REFER", 404)
        call.finish()

    async def test_a_transfer_that_takes_too_long(self, stage: Stage) -> None:
        call = Inbound(stage)
        call.send("REFER", 2)
        call.bob.session.accept_refer()
        stage.advance()
        call.answer()
        stage.advance(181)
        assert call.news()[-1] == ("refer", "terminated;reason=timeout", "SIP/2.0 100 Trying")
        call.bob.session.notify_refer(200)
        stage.advance()
        assert len(call.news()) == 2
        call.finish()

    async def test_the_peer_hangs_up_and_still_hears_the_outcome(self, stage: Stage) -> None:
        call = Inbound(stage)
        call.send("REFER", 2)
        call.bob.session.accept_refer()
        stage.advance()
        assert call.send("BYE", 3) == 200
        call.bob.session.notify_refer(200)
        stage.advance()
        assert call.news()[-1][2] == "SIP/2.0 200 OK"
        call.answer()
        stage.finish()

    async def test_a_bye_that_overtakes_the_decision(self, stage: Stage) -> None:
        call = Inbound(stage)
        call.send("REFER", 2)
        assert call.send("BYE", 3) == 200
        call.bob.session.accept_refer()
        stage.advance()
        assert call.raw.responses("REFER", 487)
        assert call.news() == []
        stage.finish()

    async def test_a_notify_without_subscription(self, stage: Stage) -> None:
        call = Inbound(stage)
        state = {"Subscription_State": "active"}
        assert call.send("NOTIFY", 2, Event="refer", **state) == 481
        assert call.send("NOTIFY", 3, Event="dialog", **state) == 489
        assert call.send("NOTIFY", 4, Event=";;=", **state) in (400, 489)
        assert call.send("SUBSCRIBE", 5, Event="refer", Expires="0") == 405
        call.finish()


class Outbound:
    """A call of Alice to a raw peer, which Alice then transfers."""

    def __init__(self, stage: Stage, **options: Any) -> None:
        self.stage = stage
        self.raw = stage.raw(stage.alice)
        self.alice = stage.alice.call(RAW, **options)
        stage.advance()
        self.raw.respond(self.raw.requests("INVITE")[0], 200, body=SDP)
        stage.advance()

    def refer(self, target: str = "tel:+919812345678", **options: object) -> Request:
        self.alice.session.refer(target, **options)
        self.stage.advance()
        return self.raw.requests("REFER")[-1]

    def notify(
        self, refer: Request, cseq: int, body: bytes, state: str = "active;expires=60", event: str = "refer"
    ) -> int:
        to, from_ = refer.headers.get("From") or "", refer.headers.get("To") or ""
        request = self.raw.request("NOTIFY", branch=f"n{cseq}", CSeq=f"{cseq} NOTIFY", To=to, From=from_)
        request.headers.set("Call-ID", refer.call_id)
        request.headers.add("Event", event)
        request.headers.add("Subscription-State", state)
        request.body = body
        self.raw.send(request)
        self.stage.advance()
        return next(item.status for item in self.raw.responses("NOTIFY") if item.cseq.number == cseq)

    def finish(self) -> None:
        self.alice.session.hangup()
        self.stage.advance()
        for bye in self.raw.requests("BYE"):
            self.raw.respond(bye, 200)
        self.stage.finish()


class TestReferring:
    async def test_a_transfer_that_succeeds(self, stage: Stage) -> None:
        call = Outbound(stage)
        refer = call.refer(referred_by=NameAddr.parse("<sip:alice@example.net>"))
        assert refer.headers.get("Refer-To") == "<tel:+919812345678>"
        assert refer.headers.get("Referred-By") == "<sip:alice@example.net>"
        assert refer.headers.get("Contact")
        call.raw.respond(refer, 202)
        stage.advance()
        assert call.notify(refer, 2, b"SIP/2.0 100 Trying\r\n") == 200
        assert call.notify(refer, 3, b"SIP/2.0 180 Ringing\r\n") == 200
        assert call.notify(refer, 4, b"SIP/2.0 200 OK\r\n", "terminated;reason=noresource") == 200
        assert call.alice.events[1:] == [
            ReferAccepted(),
            ReferProgress(100, "Trying"),
            ReferProgress(180, "Ringing"),
            ReferProgress(200, "OK"),
        ]
        call.finish()

    async def test_news_that_overtakes_the_answer(self, stage: Stage) -> None:
        call = Outbound(stage)
        refer = call.refer()
        assert call.notify(refer, 2, sipfrag(180), event=f"refer;id={refer.cseq.number}") == 200
        call.raw.respond(refer, 202)
        stage.advance()
        assert call.alice.names[1:] == ["ReferAccepted", "ReferProgress"]
        assert call.notify(refer, 3, sipfrag(486, "Busy"), "terminated;reason=noresource") == 200
        assert call.alice.last(ReferFailed) == ReferFailed(486, "Busy")
        call.finish()

    async def test_a_refer_that_is_refused(self, stage: Stage) -> None:
        call = Outbound(stage)
        call.raw.respond(call.refer(), 603)
        stage.advance()
        assert call.alice.events[1:] == [ReferFailed(603, "Decline")]
        call.finish()

    async def test_a_refer_that_is_challenged(self, stage: Stage) -> None:
        call = Outbound(stage, credentials=Credentials("alice", "secret"))
        first = call.refer()
        call.raw.respond(first, 401, WWW_Authenticate='Digest realm="x", nonce="n", algorithm=MD5')
        stage.advance()
        second = call.raw.requests("REFER")[-1]
        assert second.headers.get("Refer-To") == first.headers.get("Refer-To")
        assert second.cseq.number == first.cseq.number + 1 and "Authorization" in second.headers
        call.raw.respond(second, 202)
        stage.advance()
        assert call.notify(second, 2, sipfrag(200), event=f"refer;id={second.cseq.number}") == 200
        assert call.alice.names[1:] == ["ReferAccepted", "ReferProgress"]
        call.finish()

    async def test_a_refer_that_is_never_answered(self, stage: Stage) -> None:
        call = Outbound(stage)
        call.refer()
        stage.advance(40)
        assert call.alice.events[1:] == [ReferFailed(408, "Request Timeout")]
        assert "Ended" not in call.alice.names
        call.finish()

    async def test_news_that_stays_out(self, stage: Stage) -> None:
        call = Outbound(stage)
        call.raw.respond(call.refer(), 202)
        stage.advance(250)
        assert call.alice.events[1:] == [ReferAccepted(), ReferFailed(408, "Request Timeout")]
        call.finish()

    async def test_news_that_ends_without_an_outcome(self, stage: Stage) -> None:
        call = Outbound(stage)
        refer = call.refer()
        call.raw.respond(refer, 202)
        stage.advance()
        assert call.notify(refer, 2, b"what?", "terminated;reason=giveup") == 200
        assert call.alice.last(ReferFailed).status == 408
        call.finish()

    async def test_a_peer_that_sends_no_news(self, stage: Stage) -> None:
        call = Outbound(stage)
        call.raw.respond(call.refer(), 202, Refer_Sub="false")
        stage.advance(300)
        assert call.alice.events[1:] == [ReferAccepted(followed=False)]
        call.finish()

    async def test_one_at_a_time_and_news_of_no_other(self, stage: Stage) -> None:
        call = Outbound(stage)
        refer = call.refer()
        call.raw.respond(refer, 202)
        stage.advance()
        call.alice.session.refer("tel:+911")
        stage.advance()
        assert call.alice.last(ReferFailed).status == 491
        assert call.notify(refer, 2, sipfrag(180), event="refer;id=99999") == 481
        call.finish()

    async def test_nothing_is_sent_before_the_answer(self, stage: Stage) -> None:
        stage.bob.answer = lambda session: session.progress(180)
        alice = stage.alice.call(BOB)
        stage.advance()
        alice.session.refer("tel:+919812345678")
        stage.advance()
        assert not any(data.startswith(b"REFER") for *_, data in stage.network.wire)
        alice.session.hangup()
        stage.finish()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('<sip:bob@b.example>;x="<"', "sip:bob@b.example"),
        ('<sip:bob@b.example>;x="<sip:eve@e.example>"', "sip:bob@b.example"),
        ('"<sip:eve@e.example>" <sip:bob@b.example>', "sip:bob@b.example"),
        ('"a\\"<" <sip:bob@b.example?X-A=1>;x=">"', "sip:bob@b.example?X-A=1"),
        ("Bob <sip:bob@b.example>", "sip:bob@b.example"),
        ("sip:bob@b.example;x=1", "sip:bob@b.example"),
    ],
)
def test_the_text_of_a_target_is_that_of_its_uri_and_of_nothing_beside_it(value: str, text: str) -> None:
    request = Request("REFER", SipUri.parse("sip:a@b.example"), Headers())
    request.headers.add("Refer-To", value)
    refer = parse_refer(request)
    assert refer.text == text and refer.target == SipUri.parse(text)
