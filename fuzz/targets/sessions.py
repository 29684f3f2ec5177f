"""
Targets of the machines: transactions fed events in any order, and a user agent whose peer does anything.

Inputs are scripts: each byte says what happens next. Time is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.harness import Target
from sip import Credentials, Destination, Redirection, Redirects, Replaces
from sip.aio import InboundSession, Session
from sip.aio.resolver import Found
from sip.events import Cancelled, Ended, Failed
from sip.location.rfc3263 import Target as Server
from sip.message.message import Request, Response, reply
from tests.support.sip_agents import OTHER_SDP, SDP, NoNames, RawPeer, Side
from tests.support.sip_stage import ALICE, RAW, Stage, make_stage
from tests.unit.sip.transactions.test_transactions import Driver, make_request

STATUSES = (100, 180, 183, 200, 202, 302, 401, 407, 408, 422, 481, 486, 487, 491, 500, 503, 603)
METHODS = (
    *("INVITE", "ACK", "BYE", "CANCEL", "UPDATE", "PRACK", "INFO", "OPTIONS", "REFER", "NOTIFY"),
    *("SUBSCRIBE", "MESSAGE", "REGISTER", "PUBLISH", "NONSENSE"),
)
FIELDS = (
    ("Require", "100rel"),
    ("Supported", "100rel, timer, replaces"),
    ("Require", "timer"),
    ("RSeq", "7"),
    ("RSeq", "8"),
    ("RAck", "7 1 INVITE"),
    ("RAck", "1 1 INVITE"),
    ("Session-Expires", "90;refresher=uac"),
    ("Session-Expires", "1800;refresher=uas"),
    ("Min-SE", "3600"),
    ("Refer-To", "<sip:c@192.0.2.77>"),
    ("Refer-To", "<sip:c@192.0.2.77?Replaces=x%3Bto-tag%3Da%3Bfrom-tag%3Db>"),
    ("Replaces", "raw-call;to-tag=a;from-tag=raw"),
    ("Event", "refer"),
    ("Subscription-State", "terminated;reason=noresource"),
    ("Reason", 'Q.850;cause=16;text="x"'),
    ("Retry-After", "3"),
    ("Allow", "INVITE, ACK, BYE, UPDATE, PRACK"),
    ("Contact", "<sip:other@192.0.2.9>"),
    ("Contact", "<sip:next@192.0.2.9>;q=0.5, <sip:last@192.0.2.9>"),
    ("WWW-Authenticate", 'Digest realm="x", nonce="1", qop="auth"'),
    ("Proxy-Authenticate", 'Digest realm="y", nonce="2", stale=true'),
    ("Record-Route", "<sip:192.0.2.9;lr>, <sip:192.0.2.9>"),
    ("Refer-Sub", "false"),
    ("Event", "refer;id=2"),
    ("Subscription-State", "active;expires=60"),
    ("Expires", "20"),
)
SECOND = ("192.0.2.10", 5060)
BODIES = (b"", SDP, OTHER_SDP, b"garbage")

MAX_STEPS = 64


def check_transactions(data: bytes) -> str:
    """Whatever a transaction is told, it never goes back, and is quiet once done."""
    if len(data) < 2:
        return "short"
    name = ("INVITE", "BYE")[data[0] & 1]
    client, reliable = bool(data[0] & 2), bool(data[0] & 4)
    request = make_request(name)
    driver = Driver(request, client=client, reliable=reliable)
    for byte in data[1:MAX_STEPS]:
        before = driver.engine.state_of(driver.number)
        status = STATUSES[(byte >> 2) % len(STATUSES)]
        kind = byte & 3
        if kind == 0:
            driver.advance((byte >> 2) / 4)
        elif client:
            driver.receive(reply(request, status, to_tag="2"))
        elif kind == 1:
            driver.respond(reply(request, status, to_tag="2"))
        elif kind == 2:
            driver.receive(request if name == "BYE" or byte & 4 else make_request("ACK"))
        else:
            driver.fail_transport()
        if driver.done_at is not None:
            break  # What comes now is not the transaction's: a repetition opens another.
        after = driver.engine.state_of(driver.number)
        assert before is not None and after is not None and after >= before
    assert len(driver.failed) <= 1
    return f"{client} {name} {driver.engine.state_of(driver.number)} {driver.done_at is not None}"


def check_session(data: bytes) -> str:
    """A peer that says anything in any order leaves nothing behind, and each call is told its end once."""
    return asyncio.run(_play(data))


async def _play(data: bytes) -> str:
    stage = await make_stage()
    script = _Script(stage, data)
    script.run()
    stage.advance(30)
    for side in script.sides:
        side.session.hangup()
    stage.finish()
    for side in script.sides:
        ends = [event for event in side.events if isinstance(event, Ended | Failed | Cancelled)]
        assert len(ends) == 1, side.names
    return " ".join(sorted({name for side in script.sides for name in side.names}))


class _TwoServers(NoNames):
    """A resolver for which every name has two servers."""

    def locate(self, wanted: Destination, found: Found) -> None:
        found([Server("udp", *place, wanted.host) for place in (RAW, SECOND)])


class _Script:
    """Turns bytes into what a raw peer sends to Alice, whom it calls and by whom it is called."""

    def __init__(self, stage: Stage, data: bytes) -> None:
        self.stage = stage
        self.peer = RawPeer(stage.network, RAW, ALICE)
        self.bytes: Iterator[int] = iter(data[: MAX_STEPS * 4])
        self.count = 0
        # Two servers of one name, heard and answered by the same peer.
        second = RawPeer(stage.network, SECOND, ALICE)
        second.received = self.peer.received
        stage.alice.ua.router.resolver = _TwoServers()
        stage.alice.answer = self._take
        self.called = self._call(data[0] >> 1) if data and data[0] & 1 else None

    def _take(self, session: InboundSession) -> None:
        session.allows_refer = True
        session.want_timer(90)

    def _call(self, how: int) -> Side:
        """Call the peer, in one of the ways a trunk may ask for."""
        options: dict[str, Any] = {"rel100": ("supported", "required")[how & 1]}
        if how & 2:
            options["session_expires_s"] = 100
        if how & 4:
            options["credentials"] = Credentials("user", "secret")
        if how & 8:
            options["redirects"] = Redirects(lambda uri: Redirection(uri, Destination("udp", *RAW)), most=3)
        if how & 16:
            options["body"] = b""
        called = self.stage.alice.call(("servers.test", 0) if how & 32 else RAW, **options)
        called.session.allows_refer = True
        return called

    @property
    def sides(self) -> list[Side]:
        return [*([self.called] if self.called is not None else []), *self.stage.alice.inbound]

    def run(self) -> None:
        self.stage.advance()
        actions: tuple[Callable[[int], None], ...] = (self._request, self._respond, self._command, self._wait)
        for byte in self.bytes:
            if byte >= 0xA0:
                self._properly(byte & 31)
            else:
                actions[byte & 3](byte >> 2)

    def _next(self) -> int:
        return next(self.bytes, 0)

    def _wait(self, byte: int) -> None:
        self.stage.advance((0.01, 0.3, 0.6, 5.0, 40.0)[byte % 5])

    def _properly(self, byte: int) -> None:
        """Do what a peer in good order would do, so that scripts come far."""
        called = self.called is not None and self._next() & 1
        if byte < 10:
            self._answer_properly(byte)
        elif byte < 14:
            self._acknowledge()
        elif byte < 31 and called:
            self._ask_properly(("UPDATE", "INVITE", "REFER", "NOTIFY", "BYE", "INFO")[byte % 6], called=True)
        elif byte < 31:
            self._ask_properly(
                ("UPDATE", "INVITE", "REFER", "NOTIFY", "BYE", "CANCEL")[byte % 6], called=False
            )
        else:
            self.peer.send(self.peer.request("INVITE", branch="proper", body=SDP, Supported="100rel, timer"))
        self.stage.advance(0.01)

    def _answer_properly(self, byte: int) -> None:
        """Answer the latest request that is no ACK: an INVITE by one of these, any other by 200."""
        requests = [m for m in self.peer.received if isinstance(m, Request) and m.method != "ACK"]
        if not requests:
            return
        request = requests[-1 - self._next() % min(len(requests), 3)]
        fields = {"Allow": "INVITE, ACK, BYE, UPDATE, PRACK, REFER, NOTIFY"}
        if request.method == "INVITE" and byte < 6:
            status = (183, 183, 180, 200, 200, 407)[byte]
            self.count += 1
            if byte < 2:
                fields |= {"RSeq": str(self.count), "Require": "100rel"}
            elif status == 407:
                fields["Proxy-Authenticate"] = f'Digest realm="y", nonce="{self.count}"'
            self.peer.respond(request, status, ("peer", "fork")[self.count & 1], SDP, **fields)
        else:
            self.peer.respond(request, 200, "peer", SDP if request.method == "UPDATE" else b"", **fields)

    def _acknowledge(self) -> None:
        """Send the PRACK or ACK of the latest response to an INVITE."""
        answers = self.peer.responses("INVITE")
        if not answers:
            return
        answer = answers[-1]
        self.count += 1
        method = "ACK" if answer.status >= 200 else "PRACK"
        number = answer.cseq.number if method == "ACK" else self.count + 100
        request = self.peer.request(method, branch=f"ok{self.count}", CSeq=f"{number} {method}")
        for name in ("To", "From", "Call-ID"):
            request.headers.set(name, answer.headers.get(name) or "")
        rseq = answer.headers.get("RSeq")
        if method == "PRACK" and rseq is not None:
            request.headers.set("RAck", f"{rseq} {answer.cseq}")
        self.peer.send(request)

    def _ask_properly(self, method: str, *, called: bool) -> None:
        """Send a request in the dialog of the call to the peer, or of its own call."""
        self.count += 1
        body = (b"", SDP)[self._next() & 1] if method in ("UPDATE", "INVITE") else b""
        branch = "proper" if method == "CANCEL" else f"ask{self.count}"
        number = 1 if method == "CANCEL" else self.count + 100
        request = self.peer.request(method, branch=branch, CSeq=f"{number} {method}", body=body)
        if method == "REFER":
            request.headers.set("Refer-To", "<sip:c@192.0.2.77>")
        elif method == "NOTIFY":
            request.headers.set("Event", "refer")
            request.body = b"SIP/2.0 180 Ringing\r\n" if self._next() & 1 else b"SIP/2.0 200 OK\r\n"
        if called:
            self._as_callee(request)
        elif method != "CANCEL":
            tag = self._tag(2)
            if tag is not None:
                request.headers.set("To", f"<sip:ua@example.net>;tag={tag}")
        self.peer.send(request)

    def _request(self, byte: int) -> None:
        method, how = METHODS[byte % len(METHODS)], self._next()
        self.count += 1
        changes = {"CSeq": f"{self.count if how & 1 else how % 4} {method}", "body": BODIES[(how >> 1) & 3]}
        request = self.peer.request(method, branch=f"{self.count if how & 8 else how % 3}", **changes)
        tag = self._tag(how >> 4)
        if tag is not None:
            request.headers.set("To", f"<sip:ua@example.net>;tag={tag}")
        if self.called is not None and how & 128:
            self._as_callee(request)
        self._decorate(request)
        self.peer.send(request)
        self.stage.advance(0.01)

    def _tag(self, which: int) -> str | None:
        """The tag that Alice gave in an answer to the peer's calls, or none, or a made-up one."""
        if which & 3 == 0:
            return None
        if which & 3 == 1:
            return "invented"
        answers = [m for m in self.peer.received if isinstance(m, Response) and m.to.tag]
        return answers[-1].to.tag if answers else None

    def _as_callee(self, request: Request) -> None:
        invites = self.peer.requests("INVITE")
        if invites:
            request.headers.set("Call-ID", invites[0].call_id)
            request.headers.set("From", f"{invites[0].headers.get('To')};tag=peer")
            request.headers.set("To", invites[0].headers.get("From") or "")

    def _respond(self, byte: int) -> None:
        requests = [m for m in self.peer.received if isinstance(m, Request) and m.method != "ACK"]
        if not requests:
            return
        how = self._next()
        request = requests[-1 - how % min(len(requests), 4)]
        response = reply(request, STATUSES[byte % len(STATUSES)], to_tag=("peer", "fork")[how >> 7])
        response.headers.add("Contact", "<sip:raw@192.0.2.9>")
        body = BODIES[(how >> 4) & 3]
        if body:
            response.headers.add("Content-Type", "application/sdp")
            response.body = body
        self._decorate(response)
        self.peer.send(response)
        self.stage.advance(0.01)

    def _decorate(self, message: Request | Response) -> None:
        """Add header fields; a mangled byte now and then makes it malformed."""
        choice = self._next()
        if choice >= 0xF0 and self.sides:
            self._name_session(message, self.sides[choice % len(self.sides)].session)
        for bit in range(3):
            if choice & (1 << bit):
                name, value = FIELDS[(choice >> 3) % len(FIELDS) - bit]
                message.headers.set(name, value)

    def _name_session(self, message: Request | Response, session: Session) -> None:
        """Ask to take the place of a session, from a new call."""
        call_id, tag = session.key
        replaces = Replaces(call_id, tag, session.remote.tag or "peer", early_only=bool(self._next() & 1))
        message.headers.set("Replaces", str(replaces))
        message.headers.set("Call-ID", f"new-{self.count}")

    def _command(self, byte: int) -> None:
        sides = self.sides
        if not sides:
            return
        session = sides[byte % len(sides)].session
        commands: list[Callable[[], object]] = [
            session.hangup,
            lambda: session.reinvite(OTHER_SDP),
            lambda: session.accept_offer(SDP),
            session.reject_offer,
            lambda: session.info("text/plain", b"x"),
            lambda: session.update(OTHER_SDP),
            session.update,
            lambda: session.refer("sip:c@192.0.2.77"),
            session.accept_refer,
            session.reject_refer,
            lambda: session.notify_refer(180),
            lambda: session.notify_refer(200),
        ]
        if hasattr(session, "answer"):
            commands += [session.progress, lambda: session.answer(SDP), lambda: session.reject(486)]
            commands += [
                lambda: session.progress(183, SDP),
                lambda: session.progress(183, SDP, reliable=True),
            ]
        commands[self._next() % len(commands)]()
        self.stage.advance(0.01)


TARGETS = [
    Target(
        "sip-transactions",
        check_transactions,
        (),
        [bytes((kind, 5, 9, 13, 17, 0, 4, 8, 12, 2, 6, 3)) for kind in range(8)],
    ),
    Target(
        "sip-session",
        check_session,
        (),
        [
            # The same in good order: called with reliable ringing, an UPDATE and a REFER; calling likewise.
            bytes((0, 191, 2, 18, 170, 170, 172, 2, 9, 172, 0, 178, 2, 10, 186, 0)),
            bytes((5, 160, 0, 169, 0, 163, 0, 172, 0, 172, 1, 1, 2, 8, 174, 1)),
            # Called: rings, answers, is acknowledged, holds, hangs up; calling: rings, answered, BYE.
            bytes((0, 9, 0, 2, 0, 6, 2, 0, 7, 4, 41, 0, 3, 8, 41, 0)),
            bytes((1, 5, 0, 0, 13, 16, 0, 3, 2, 1, 0, 0, 7, 2, 0)),
            bytes(range(96)),
            bytes(range(255, 160, -1)),
        ],
    ),
]
