"""INVITE client transaction (RFC 3261 17.1.1, RFC 6026 7.2)."""

from collections.abc import Sequence
from enum import IntEnum
from itertools import product

from sip.effects import Arm, Deliver, Done, Effect, Fail, Failure, Send
from sip.machine import NOTHING, Machine, Rules, compile_rules
from sip.message.message import Request, Response, serialise
from sip.timers import Timers
from sip.transactions.ack_and_cancel import make_ack


class State(IntEnum):
    """States, passed through in this order only."""

    CALLING = 0
    PROCEEDING = 1
    COMPLETED = 2
    ACCEPTED = 3
    TERMINATED = 4


class Event(IntEnum):
    """Events of the transaction."""

    PROVISIONAL = 0
    SUCCESS = 1
    FAILURE = 2
    TIMER_A = 3
    TIMER_B = 4
    TIMER_D = 5
    TIMER_M = 6
    TRANSPORT_ERROR = 7
    ABANDON = 8
    """The user gave up before any response came: stop repeating the request."""
    GIVE_UP = 9
    """A cancelled INVITE got no final response in time (RFC 3261 9.1)."""


class InviteClientTransaction(Machine[State]):
    """Sends one INVITE until a response comes, acknowledges failures, passes responses to its user."""

    __slots__ = ("_ack", "_repeat_after_s", "reliable", "request", "timers", "wire")

    def __init__(self, request: Request, timers: Timers, *, reliable: bool) -> None:
        self.state = State.CALLING
        self.request = request
        self.timers = timers
        self.reliable = reliable
        self.wire = serialise(request)
        """Wire form of the request."""
        self._repeat_after_s = timers.t1_s
        self._ack: bytes | None = None

    @property
    def wanted(self) -> bool:
        """True while no response has come and the user has not abandoned the request."""
        return self.state is State.CALLING and self._repeat_after_s > 0.0

    def start(self) -> Sequence[Effect]:
        """Return the first effects: send, and wait for timers A and B."""
        give_up = Arm(Event.TIMER_B, self.timers.timeout_s)
        if self.reliable:
            return (give_up, Send(self.wire))
        return (give_up, Arm(Event.TIMER_A, self._repeat_after_s), Send(self.wire))

    def receive(self, response: Response) -> Sequence[Effect]:
        """Handle a response to this transaction."""
        status = response.status
        if status < 200:
            return self.trigger(Event.PROVISIONAL, response)
        return self.trigger(Event.SUCCESS if status < 300 else Event.FAILURE, response)

    def fail_transport(self) -> Sequence[Effect]:
        """Handle a transport error: the request cannot be delivered."""
        return self.trigger(Event.TRANSPORT_ERROR)

    def _deliver(self, response: Response) -> Sequence[Effect]:
        return (Deliver(response),)

    def _accept(self, response: Response) -> Sequence[Effect]:
        return (Arm(Event.TIMER_M, self.timers.timeout_s), Deliver(response))

    def _complete(self, response: Response) -> Sequence[Effect]:
        self._ack = serialise(make_ack(self.request, response))
        linger_s = 0.0 if self.reliable else self.timers.completed_invite_s
        return (Send(self._ack), Arm(Event.TIMER_D, linger_s), Deliver(response))

    def _acknowledge_again(self, _: Response) -> Sequence[Effect]:
        assert self._ack is not None
        return (Send(self._ack),)

    def _repeat(self, _: None) -> Sequence[Effect]:
        if self._repeat_after_s == 0.0:
            return NOTHING  # Abandoned.
        self._repeat_after_s *= 2  # Timer A doubles without a cap.
        return (Send(self.wire), Arm(Event.TIMER_A, self._repeat_after_s))

    def _abandon(self, _: None) -> Sequence[Effect]:
        self._repeat_after_s = 0.0
        return NOTHING

    def _time_out(self, _: None) -> Sequence[Effect]:
        return (Fail(Failure.TIMEOUT), Done())

    def _fail(self, _: None) -> Sequence[Effect]:
        return (Fail(Failure.TRANSPORT), Done())

    def _end(self, _: None) -> Sequence[Effect]:
        return (Done(),)


RULES: Rules[State, Event] = {
    (State.CALLING, Event.PROVISIONAL): (State.PROCEEDING, InviteClientTransaction._deliver),
    (State.CALLING, Event.SUCCESS): (State.ACCEPTED, InviteClientTransaction._accept),
    (State.CALLING, Event.FAILURE): (State.COMPLETED, InviteClientTransaction._complete),
    (State.CALLING, Event.TIMER_A): (State.CALLING, InviteClientTransaction._repeat),
    (State.CALLING, Event.TIMER_B): (State.TERMINATED, InviteClientTransaction._time_out),
    (State.CALLING, Event.TRANSPORT_ERROR): (State.TERMINATED, InviteClientTransaction._fail),
    (State.CALLING, Event.ABANDON): (State.CALLING, InviteClientTransaction._abandon),
    (State.CALLING, Event.GIVE_UP): (State.TERMINATED, InviteClientTransaction._end),
    (State.PROCEEDING, Event.PROVISIONAL): (State.PROCEEDING, InviteClientTransaction._deliver),
    (State.PROCEEDING, Event.SUCCESS): (State.ACCEPTED, InviteClientTransaction._accept),
    (State.PROCEEDING, Event.FAILURE): (State.COMPLETED, InviteClientTransaction._complete),
    (State.PROCEEDING, Event.GIVE_UP): (State.TERMINATED, InviteClientTransaction._end),
    (State.COMPLETED, Event.FAILURE): (State.COMPLETED, InviteClientTransaction._acknowledge_again),
    (State.COMPLETED, Event.TIMER_D): (State.TERMINATED, InviteClientTransaction._end),
    (State.COMPLETED, Event.TRANSPORT_ERROR): (State.TERMINATED, InviteClientTransaction._end),
    (State.ACCEPTED, Event.SUCCESS): (State.ACCEPTED, InviteClientTransaction._deliver),
    (State.ACCEPTED, Event.TIMER_M): (State.TERMINATED, InviteClientTransaction._end),
}

IGNORED = {
    # These timers are armed by a later state only.
    *product((State.CALLING,), (Event.TIMER_D, Event.TIMER_M)),
    # The peer has the request: it is not repeated, and only the user limits the ringing.
    *product((State.PROCEEDING,), (Event.TIMER_A, Event.TIMER_B, Event.TIMER_D, Event.TIMER_M)),
    # The response may still come over another connection (RFC 3261 18.2.2).
    *product((State.PROCEEDING,), (Event.TRANSPORT_ERROR, Event.ABANDON)),
    # A final response is not changed by anything later.
    *product((State.COMPLETED,), (Event.PROVISIONAL, Event.SUCCESS, Event.ABANDON, Event.GIVE_UP)),
    *product((State.COMPLETED,), (Event.TIMER_A, Event.TIMER_B, Event.TIMER_M)),
    # Forks may go on ringing, failing or answering after the first 2xx; only 2xx matter.
    *product((State.ACCEPTED,), set(Event) - {Event.SUCCESS, Event.TIMER_M}),
    *product((State.TERMINATED,), Event),
}

InviteClientTransaction.ROWS = compile_rules(RULES)
