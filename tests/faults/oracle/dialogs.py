"""The two kinds of far ends, callers and callees, over UDP: what each says, hears and counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from tests.faults.oracle.evidence import EndedBy, Leg
from tests.faults.oracle.rtp import Audio
from tests.faults.oracle.sip_text import Message, answer, branch, describe, described_port, request, tag_of

__all__ = ["Callee", "Caller", "Dialog", "Manner", "Wire"]

_T1_S: Final = 0.5
_T2_S: Final = 4.0
_GIVEN_UP_S: Final = 32.0


class Wire(Protocol):
    """Socket of a dialog."""

    address: str
    """HOST:PORT, for Via and Contact."""

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        """Send a datagram."""

    def over(self, dialog: Dialog) -> None:
        """The dialog has ended; repetitions may still come."""


@dataclass(frozen=True, slots=True)
class Manner:
    """
    Behaviour of a far end in a call.

    Attributes:
        ring_s: How long a callee rings before it answers.
        hold_s: After how long it hangs up; never, when None.
        refusal: The status with which a callee refuses.
        cancel_s: After how long a caller gives up, if nobody answers before.
    """

    ring_s: float = 0.0
    hold_s: float | None = None
    refusal: int | None = None
    cancel_s: float | None = None


class Dialog:
    """Common part of callers and callees: requests within the dialog, repetitions, audio, the end."""

    def __init__(self, wire: Wire, leg: Leg, peer: tuple[str, int], manner: Manner) -> None:
        self.leg = leg
        leg.peer = "{}:{}".format(*peer)
        self.manner = manner
        self.audio = Audio(leg)
        self._wire = wire
        self._peer = peer
        self._target = ""
        self._local = self._remote = ""
        self._route: list[str] = []
        self._cseq = 1
        self._repeats: dict[str, asyncio.TimerHandle] = {}
        self._timers: list[asyncio.TimerHandle] = []
        self._answers: dict[tuple[str, str], bytes] = {}

    @property
    def up(self) -> bool:
        """Answered, and not over."""
        return self.leg.confirmed_at is not None and self.leg.ended_at is None

    def hang_up(self) -> None:
        """Send BYE, if the call is up."""
        if not self.up or self.leg.byes_sent:
            return
        self.leg.byes_sent += 1
        self._cseq += 1
        self._ask("BYE", self._within("BYE", self._cseq), self._bye_unanswered)

    def on_request(self, message: Message) -> None:
        """A request within the dialog."""
        key = (message.branch, message.method)
        if key in self._answers:
            self.leg.repeated += 1
            self._send(self._answers[key])
        elif message.method == "BYE":
            self.leg.byes_received += 1
            self.leg.reason = message.first("reason")
            self._reply(message, 200)
            self._end("peer")
        else:
            self._on_other(message)

    def on_answer(self, message: Message) -> None:
        """An answer to one of our requests."""
        if message.method == "BYE" and message.status is not None and message.status >= 200:
            self._stop_repeating("BYE")
            self._end("unknown_there" if message.status == 481 else "us")

    def close(self) -> None:
        """Forget every timer; nothing more is sent."""
        for timer in (*self._timers, *self._repeats.values()):
            timer.cancel()
        if self.leg.ended_at is None:
            self.audio.close()

    def _on_other(self, message: Message) -> None:
        if message.method == "INVITE" and self.leg.answered:
            self.audio.send_to(described_port(message.body))
            self._reply(message, 200, describe(self.audio.port))
        elif message.method != "ACK":
            self._reply(message, 200)

    # What is sent

    def _confirmed(self) -> None:
        if self.leg.confirmed_at is not None:
            return
        self.leg.confirmed_at = time.monotonic()
        if self.manner.hold_s is not None:
            self._later(self.manner.hold_s, self.hang_up)

    def _reply(self, to: Message, status: int, body: str = "") -> None:
        headers = [("Contact", f"<sip:far@{self._wire.address}>")] if status < 300 else []
        data = answer(to, status, self._tag, headers, body)
        self._answers[(to.branch, to.method)] = data
        self._send(data)

    @property
    def _tag(self) -> str:
        return tag_of(self._local)

    def _within(self, method: str, cseq: int, via: str = "") -> bytes:
        headers = [
            ("Via", f"SIP/2.0/UDP {self._wire.address};branch={via or branch()};rport"),
            ("Max-Forwards", "70"),
            ("From", self._local),
            ("To", self._remote),
            ("Call-ID", self.leg.call_id),
            ("CSeq", f"{cseq} {method}"),
        ]
        if not via:  # What belongs to the INVITE's transaction goes its way.
            headers += [("Route", value) for value in self._route]
        return request(f"{method} {self._target} SIP/2.0", headers)

    def _ask(self, what: str, data: bytes, given_up: Callable[[], None]) -> None:
        """Send something again and again until it is stopped, or for 32 seconds."""
        self._send(data)
        self._repeat_in(_T1_S, time.monotonic() + _GIVEN_UP_S, what, data, given_up)

    def _repeat_in(
        self, wait_s: float, until: float, what: str, data: bytes, given_up: Callable[[], None]
    ) -> None:
        def again() -> None:
            if time.monotonic() >= until:
                self._repeats.pop(what, None)
                given_up()
                return
            self.leg.repeated += 1
            self._send(data)
            self._repeat_in(min(2 * wait_s, _T2_S), until, what, data, given_up)

        self._repeats[what] = asyncio.get_running_loop().call_later(wait_s, again)

    def _stop_repeating(self, what: str) -> None:
        timer = self._repeats.pop(what, None)
        if timer is not None:
            timer.cancel()

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(delay_s, call))

    def _send(self, data: bytes) -> None:
        self._wire.send(data, self._peer)

    def _bye_unanswered(self) -> None:
        self._end("us")

    def _end(self, by: EndedBy) -> None:
        if self.leg.ended_at is not None:
            return
        self.leg.ended_at = time.monotonic()
        self.leg.ended_by = by
        self.audio.close()
        for timer in self._timers:
            timer.cancel()
        self._wire.over(self)


class Caller(Dialog):
    """A far end that calls."""

    def __init__(self, wire: Wire, leg: Leg, peer: tuple[str, int], manner: Manner, from_number: str) -> None:
        super().__init__(wire, leg, peer, manner)
        self._target = f"sip:{leg.number}@{peer[0]}:{peer[1]}"
        self._local = f"<sip:{from_number}@{wire.address}>;tag={branch()[7:]}"
        self._remote = f"<{self._target}>"
        self._branch = branch()
        self._provisional = self._cancelling = False

    def call(self) -> None:
        """Send the INVITE."""
        self.leg.began_at = time.monotonic()
        self.leg.invites += 1
        headers = [
            ("Via", f"SIP/2.0/UDP {self._wire.address};branch={self._branch};rport"),
            ("Max-Forwards", "70"),
            ("From", self._local),
            ("To", self._remote),
            ("Call-ID", self.leg.call_id),
            ("CSeq", "1 INVITE"),
            ("Contact", f"<sip:far@{self._wire.address}>"),
            ("Allow", "INVITE, ACK, BYE, CANCEL, OPTIONS"),
            ("Session-ID", f"{self.leg.session_id};remote={'0' * 32}"),
        ]
        data = request(f"INVITE {self._target} SIP/2.0", headers, describe(self.audio.port))
        self._ask("INVITE", data, lambda: self._end("unanswered"))
        if self.manner.cancel_s is not None:
            self._later(self.manner.cancel_s, self._give_up)

    def hang_up(self) -> None:
        """Send BYE, or CANCEL when the call is not answered yet."""
        if self.leg.status is None:
            self._give_up()
        else:
            super().hang_up()

    def on_answer(self, message: Message) -> None:
        """An answer to the INVITE, to the CANCEL or to the BYE."""
        if message.method != "INVITE" or message.status is None:
            super().on_answer(message)
            if message.method == "CANCEL":
                self._stop_repeating("CANCEL")
                if message.status == 481 and self.leg.status is None:
                    self._end("unknown_there")
        elif message.status < 200:
            self._on_provisional(message)
        elif message.status < 300:
            self._on_success(message)
        else:
            self._on_refusal(message)

    def _on_provisional(self, message: Message) -> None:
        self._stop_repeating("INVITE")
        self._provisional = True
        if message.status != 100 and self.leg.rang_at is None:
            self.leg.rang_at = time.monotonic()
        if self._cancelling:
            self._cancel()

    def _on_success(self, message: Message) -> None:
        self._stop_repeating("INVITE")
        if self.leg.status is None:
            self.leg.status = message.status
            self.leg.answered_at = time.monotonic()
            self._remote = message.first("to")
            self._target = message.target or self._target
            self._route = message.all("record-route")[::-1]
            self.audio.send_to(described_port(message.body))
        else:
            self.leg.repeated += 1
        self.leg.acks += 1
        self._send(self._within("ACK", 1))
        self._confirmed()
        if self._cancelling:
            self.hang_up()

    def _on_refusal(self, message: Message) -> None:
        self._stop_repeating("INVITE")
        self._remote = message.first("to")
        self.leg.acks += 1
        self._send(self._within("ACK", 1, self._branch))
        if self.leg.status is None:
            self.leg.status = message.status
            self._end("cancelled" if self._cancelling and message.status == 487 else "refused")

    def _give_up(self) -> None:
        if self.leg.status is None and not self._cancelling:
            self._cancelling = True
            if self._provisional:
                self._cancel()

    def _cancel(self) -> None:
        if self.leg.cancels:
            return
        self.leg.cancels += 1
        self._ask("CANCEL", self._within("CANCEL", 1, self._branch), lambda: None)
        # RFC 3261 9.1: also when the CANCEL is answered, its INVITE may never be.
        self._later(_GIVEN_UP_S, self._stay_without_end)

    def _stay_without_end(self) -> None:
        if self.leg.status is None:
            self._end("unanswered")


class Callee(Dialog):
    """A far end that is called."""

    def __init__(self, wire: Wire, leg: Leg, peer: tuple[str, int], manner: Manner, invite: Message) -> None:
        super().__init__(wire, leg, peer, manner)
        self._invite = invite
        self._local = f"{invite.first('to')};tag={branch()[7:]}"
        self._remote = invite.first("from")
        self._target = invite.target
        self._route = invite.all("record-route")
        self._invite_branch = invite.branch
        self.audio.send_to(described_port(invite.body))

    def ring(self) -> None:
        """Accept the INVITE, and answer or refuse it after a while."""
        self.leg.began_at = self.leg.rang_at = time.monotonic()
        self._reply(self._invite, 180)
        self._later(self.manner.ring_s, self._decide)

    def on_request(self, message: Message) -> None:
        """The INVITE again, its ACK, its CANCEL, or something within the dialog."""
        if message.method == "INVITE" and not self.leg.answered and message.branch != self._invite_branch:
            # The same call by another branch: it has been placed twice.
            self.leg.invites += 1
            self._reply(message, 486)
        elif message.method == "CANCEL" and message.branch == self._invite_branch:
            self._on_cancel(message)
        elif message.method == "ACK":
            self._on_ack()
        else:
            super().on_request(message)

    def hang_up(self) -> None:
        """Send BYE, also when nobody has acknowledged the answer: the test waits for no longer."""
        if self.leg.answered and self.leg.confirmed_at is None:
            self._stop_repeating("answer")
            self._unacknowledged()
        else:
            super().hang_up()

    def _on_cancel(self, message: Message) -> None:
        self.leg.cancels += 1
        self._send(answer(message, 200, self._tag))
        if self.leg.status is None:
            self._refuse(487, "cancelled")

    def _on_ack(self) -> None:
        self.leg.acks += 1
        self._stop_repeating("answer")
        if self.leg.answered:
            self._confirmed()

    def _decide(self) -> None:
        if self.leg.status is not None:
            return
        if self.manner.refusal is not None:
            self._refuse(self.manner.refusal, "refused")
            return
        self.leg.status = 200
        self.leg.answered_at = time.monotonic()
        self._reply(self._invite, 200, describe(self.audio.port))
        self._ask("answer", self._answers[(self._invite_branch, "INVITE")], self._unacknowledged)

    def _refuse(self, status: int, how: EndedBy) -> None:
        self.leg.status = status
        self._reply(self._invite, status)
        self._ask("answer", self._answers[(self._invite_branch, "INVITE")], lambda: None)
        self._end(how)

    def _unacknowledged(self) -> None:
        """Nobody acknowledged the answer: RFC 3261 13.3.1.4 ends the call."""
        self._confirmed()
        super().hang_up()
