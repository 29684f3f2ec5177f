"""
Target of two user agents that call each other over a bad network while both their owners do anything.

Both sides must come to agree on the same descriptions, be told the end once, and leave nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.harness import Target
from sip.aio import UserAgentSettings
from sip.events import (
    Answered,
    Cancelled,
    Confirmed,
    Ended,
    Failed,
    OfferAnswered,
    OfferReceived,
    ReferReceived,
    SessionEvent,
)
from sip.session.model import State
from tests.support.sip_agents import SDP, Side
from tests.support.sip_stage import BOB, Stage, make_stage

MAX_STEPS = 40
CALM_S = 90.0
"""Longer than any transaction, and than the waits of glare."""


def check_pair(data: bytes) -> str:
    """Whatever the owners want and whatever is lost, both sides agree in the end and end cleanly."""
    return asyncio.run(_play(data))


async def _play(data: bytes) -> str:
    stage = await make_stage(UserAgentSettings(first_response_timeout_s=30.0))
    pair = _Pair(stage, data)
    pair.run()
    pair.calm_down()
    for side in pair.sides:
        side.session.hangup()
    stage.finish()
    for side in pair.sides:
        ends = [event for event in side.events if isinstance(event, Ended | Failed | Cancelled)]
        assert len(ends) == 1, side.names
    return " ".join(sorted({name for side in pair.sides for name in side.names}))


class _Pair:
    """Turns bytes into what two owners want of one call."""

    def __init__(self, stage: Stage, data: bytes) -> None:
        self.stage = stage
        self.bytes: Iterator[int] = iter(data)
        self.steps = min(len(data), MAX_STEPS)
        self.version = 1
        self.heard: dict[int, int] = {}
        self.believed: dict[int, bytes] = {}
        self.broke = False
        how = self._next()
        faults = stage.network.faults
        faults.loss, faults.double, faults.reorder = (
            (how & 3) * 0.08,
            (how >> 2 & 3) * 0.1,
            (how >> 4 & 3) * 0.1,
        )
        stage.network.seed = how
        stage.bob.answer = lambda session: self._prepare(session)
        options: dict[str, Any] = {"rel100": ("supported", "required", "off", "supported")[how >> 6]}
        if self._next() & 1:
            options["session_expires_s"] = 90
        if self._next() & 1:
            options["body"] = b""
        transport = ("udp", "udp", "tcp")[self._next() % 3]
        self.alice = stage.alice.call(BOB, transport, **options)
        self.alice.session.allows_refer = True

    @property
    def sides(self) -> list[Side]:
        return [self.alice, *self.stage.bob.inbound]

    def _prepare(self, session: Any) -> None:
        session.allows_refer = True

    def _next(self) -> int:
        return next(self.bytes, 0)

    def _sdp(self) -> bytes:
        """A description unlike all before it."""
        self.version += 1
        return SDP.replace(b"4000", str(4000 + self.version).encode())

    def run(self) -> None:
        for _ in range(self.steps):
            byte = self._next()
            sides = self.sides
            side = sides[byte % len(sides)]
            self._command(side, byte >> 2)
            self.stage.advance((0.001, 0.003, 0.05, 0.3, 1.0, 5.0)[self._next() % 6])
            if byte & 3:
                self._react()

    def _command(self, side: Side, which: int) -> None:
        session = side.session
        commands: list[Callable[[], object]] = [
            lambda: None,
            lambda: session.reinvite(self._sdp()),
            lambda: session.update(self._sdp()),
            session.update,
            lambda: session.refer("sip:c@192.0.2.77"),
            lambda: session.info("text/plain", b"x"),
            lambda: session.notify_refer(200),
            session.reject_offer,
            lambda: self._break(session.flow),
        ]
        if side is not self.alice:
            commands += [
                lambda: session.progress(180),
                lambda: session.progress(183, self._sdp()),
                lambda: session.progress(183, self._sdp(), reliable=True),
                lambda: session.answer(self._sdp()),
                lambda: session.answer(self._sdp()),
                lambda: session.reject(486) if which & 16 else session.answer(self._sdp()),
            ]
        if which == 63:
            commands = [session.hangup]
        commands[which % len(commands)]()

    def _break(self, flow: Any) -> None:
        """A connection breaks, and what was on its way is lost: the two may see the outcome differently."""
        if flow is not None and flow.reliable:
            self.broke = True
            flow.break_off()

    def _react(self) -> None:
        """Answer what the owners were asked since the last time."""
        for index, side in enumerate(self.sides):
            # An answer that came while an offer waited for its owner tells what held before.
            news = side.events[self.heard.get(index, 0) :]
            for event in sorted(news, key=lambda event: isinstance(event, OfferReceived)):
                self._take(index, side.session, event)
            self.heard[index] = len(side.events)

    def _take(self, index: int, session: Any, event: SessionEvent) -> None:
        """Do what an owner does, and note what it believes of the other side."""
        if isinstance(event, OfferReceived):
            peer = session._machine.offers.peer
            if peer is None or peer.request.body != event.body:
                return  # It was refused, or is over.
            session.accept_offer(self._sdp())
        elif getattr(event, "needs_answer", False):
            session.accept_offer(self._sdp())
        elif isinstance(event, ReferReceived):
            session.accept_refer()
        if isinstance(event, Answered | Confirmed | OfferReceived | OfferAnswered):
            self.believed[index] = event.body or self.believed.get(index, b"")

    def calm_down(self) -> None:
        """With a good network and willing owners, all that is open comes to its end."""
        faults = self.stage.network.faults
        faults.loss = faults.double = faults.reorder = 0.0
        for _ in range(int(CALM_S)):
            self._react()
            self.stage.advance(1.0)
        if len(self.sides) != 2:
            return
        machines = [side.session._machine for side in self.sides]
        if any(machine.state is not State.CONFIRMED for machine in machines):
            return
        for machine in machines:
            assert machine.offers.pending_offer is None
            assert machine.offers.queued_offer is None
            assert machine.offers.peer is None
        if self.broke:
            return
        believed = self.believed.get(0, b""), self.believed.get(1) or self.sides[1].session.request.body
        said = machines[1].offers.local_sdp, machines[0].offers.local_sdp
        assert believed == said, (believed, said)


TARGETS = [
    Target(
        "sip-pair",
        check_pair,
        (),
        [
            bytes((0, 0, 0, 0, 1, 2, 33, 3, 45, 2, 5, 2, 6, 2, 9, 3, 18, 2)),
            bytes((85, 1, 1, 2, 1, 2, 41, 3, 45, 2, 5, 2, 6, 2, 9, 3, 18, 2)),
            bytes(range(96)),
            bytes(range(255, 160, -1)),
        ],
    ),
]
