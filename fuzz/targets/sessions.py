"""
Targets of the machines: transactions fed events in any order, and a user agent whose peer does anything.

Inputs are scripts: each byte says what happens next. Time is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.harness import Target
from sip.effects import Arm, Deliver, Disarm, Done, Fail, Send
from sip.events import Cancelled, Ended, Failed
from sip.message import Request, Response, make_response
from sip.timers import Timers
from sip.transactions import invite_client, invite_server, non_invite_client, non_invite_server
from sip.transactions.invite_client import InviteClientTransaction
from sip.transactions.invite_server import InviteServerTransaction
from sip.transactions.non_invite_client import NonInviteClientTransaction
from sip.transactions.non_invite_server import NonInviteServerTransaction
from tests.support.sip_agents import OTHER_SDP, SDP, RawPeer, Side
from tests.support.sip_stage import ALICE, RAW, Stage, make_stage
from tests.unit.sip.test_transactions import make_request

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
)
BODIES = (b"", SDP, OTHER_SDP, b"garbage")

MAX_STEPS = 64


def check_transactions(data: bytes) -> str:
    """Whatever a transaction is told, it never goes back, asks for known effects, and is quiet once done."""
    if len(data) < 2:
        return "short"
    name = ("INVITE", "BYE")[data[0] & 1]
    client, reliable = bool(data[0] & 2), bool(data[0] & 4)
    request = make_request(name)
    machine, module = _machine(request, client=client, reliable=reliable)
    timers = [event for event in module.Event if event.name.startswith("T")]
    effects = list(machine.start())
    done = False
    for byte in data[1:MAX_STEPS]:
        before = machine.state
        status = STATUSES[(byte >> 2) % len(STATUSES)]
        kind = byte & 3
        if kind == 0:
            effects = list(machine.handle(timers[(byte >> 2) % len(timers)]))
        elif client:
            effects = list(machine.receive(make_response(request, status, to_tag="2")))
        elif kind == 1:
            effects = list(machine.respond(make_response(request, status, to_tag="2")))
        elif kind == 2:
            effects = list(machine.receive(request if name == "BYE" or byte & 4 else make_request("ACK")))
        else:
            effects = list(machine.fail_transport())
        assert machine.state >= before
        assert all(isinstance(effect, Send | Arm | Disarm | Deliver | Fail | Done) for effect in effects)
        assert not (done and any(isinstance(effect, Deliver | Fail | Done) for effect in effects)), effects
        done = done or any(isinstance(effect, Done) for effect in effects)
    return f"{type(machine).__name__} {int(machine.state)} {done}"


def _machine(request: Request, *, client: bool, reliable: bool) -> tuple[Any, Any]:
    invite = request.method == "INVITE"
    if client:
        kind, module = (
            (InviteClientTransaction, invite_client)
            if invite
            else (NonInviteClientTransaction, non_invite_client)
        )
        return kind(request, Timers(), reliable=reliable), module
    if invite:
        return InviteServerTransaction(request, Timers(), reliable=reliable), invite_server
    return NonInviteServerTransaction(Timers(), reliable=reliable), non_invite_server


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


class _Script:
    """Turns bytes into what a raw peer sends to Alice, whom it calls and by whom it is called."""

    def __init__(self, stage: Stage, data: bytes) -> None:
        self.stage = stage
        self.peer = RawPeer(stage.network, RAW, ALICE)
        self.bytes: Iterator[int] = iter(data[: MAX_STEPS * 4])
        self.count = 0
        stage.alice.answer = lambda session: None
        self.called = stage.alice.call(RAW) if data and data[0] & 1 else None

    @property
    def sides(self) -> list[Side]:
        return [*([self.called] if self.called is not None else []), *self.stage.alice.inbound]

    def run(self) -> None:
        self.stage.advance()
        actions: tuple[Callable[[int], None], ...] = (self._request, self._respond, self._command, self._wait)
        for byte in self.bytes:
            actions[byte & 3](byte >> 2)

    def _next(self) -> int:
        return next(self.bytes, 0)

    def _wait(self, byte: int) -> None:
        self.stage.advance((0.01, 0.3, 0.6, 5.0, 40.0)[byte % 5])

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
        response = make_response(request, STATUSES[byte % len(STATUSES)], to_tag=("peer", "fork")[how >> 7])
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
        for bit in range(3):
            if choice & (1 << bit):
                name, value = FIELDS[(choice >> 3) % len(FIELDS) - bit]
                message.headers.set(name, value)

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
            # Called: rings, answers, is acknowledged, holds, hangs up; calling: rings, answered, BYE.
            bytes((0, 9, 0, 2, 0, 6, 2, 0, 7, 4, 41, 0, 3, 8, 41, 0)),
            bytes((1, 5, 0, 0, 13, 16, 0, 3, 2, 1, 0, 0, 7, 2, 0)),
            bytes(range(96)),
            bytes(range(255, 160, -1)),
        ],
    ),
]
