"""Non-INVITE client transaction (RFC 3261 17.1.2)."""

from collections.abc import Sequence
from enum import IntEnum
from itertools import product

from sip.effects import Arm, Deliver, Done, Effect, Fail, Failure, Send
from sip.machine import Machine, Rules, compile_rules
from sip.message.message import Request, Response, serialise
from sip.timers import Timers


class State(IntEnum):
    """States, passed through in this order only."""

    TRYING = 0
    PROCEEDING = 1
    COMPLETED = 2
    TERMINATED = 3


class Event(IntEnum):
    """Events of the transaction."""

    PROVISIONAL = 0
    FINAL = 1
    TIMER_E = 2
    TIMER_F = 3
    TIMER_K = 4
    TRANSPORT_ERROR = 5


class NonInviteClientTransaction(Machine[State]):
    """Sends one request until its final response comes, and passes that to its user once."""

    __slots__ = ("_repeat_after_s", "reliable", "request", "timers", "wire")

    def __init__(self, request: Request, timers: Timers, *, reliable: bool) -> None:
        self.state = State.TRYING
        self.request = request
        self.timers = timers
        self.reliable = reliable
        self.wire = serialise(request)
        """Wire form of the request."""
        self._repeat_after_s = timers.t1_s

    @property
    def wanted(self) -> bool:
        """True while no response has come."""
        return self.state is State.TRYING

    def start(self) -> Sequence[Effect]:
        """Return the first effects: send, and wait for timers E and F."""
        give_up = Arm(Event.TIMER_F, self.timers.timeout_s)
        if self.reliable:
            return (give_up, Send(self.wire))
        return (give_up, Arm(Event.TIMER_E, self._repeat_after_s), Send(self.wire))

    def receive(self, response: Response) -> Sequence[Effect]:
        """Handle a response to this transaction."""
        return self.trigger(Event.PROVISIONAL if response.status < 200 else Event.FINAL, response)

    def fail_transport(self) -> Sequence[Effect]:
        """Handle a transport error: the request cannot be delivered."""
        return self.trigger(Event.TRANSPORT_ERROR)

    def _deliver(self, response: Response) -> Sequence[Effect]:
        return (Deliver(response),)

    def _complete(self, response: Response) -> Sequence[Effect]:
        return (Arm(Event.TIMER_K, 0.0 if self.reliable else self.timers.t4_s), Deliver(response))

    def _repeat(self, _: None) -> Sequence[Effect]:
        self._repeat_after_s = min(2 * self._repeat_after_s, self.timers.t2_s)
        return (Send(self.wire), Arm(Event.TIMER_E, self._repeat_after_s))

    def _repeat_slowly(self, _: None) -> Sequence[Effect]:
        return (Send(self.wire), Arm(Event.TIMER_E, self.timers.t2_s))

    def _time_out(self, _: None) -> Sequence[Effect]:
        return (Fail(Failure.TIMEOUT), Done())

    def _fail(self, _: None) -> Sequence[Effect]:
        return (Fail(Failure.TRANSPORT), Done())

    def _end(self, _: None) -> Sequence[Effect]:
        return (Done(),)


RULES: Rules[State, Event] = {
    (State.TRYING, Event.PROVISIONAL): (State.PROCEEDING, NonInviteClientTransaction._deliver),
    (State.TRYING, Event.FINAL): (State.COMPLETED, NonInviteClientTransaction._complete),
    (State.TRYING, Event.TIMER_E): (State.TRYING, NonInviteClientTransaction._repeat),
    (State.TRYING, Event.TIMER_F): (State.TERMINATED, NonInviteClientTransaction._time_out),
    (State.TRYING, Event.TRANSPORT_ERROR): (State.TERMINATED, NonInviteClientTransaction._fail),
    (State.PROCEEDING, Event.PROVISIONAL): (State.PROCEEDING, NonInviteClientTransaction._deliver),
    (State.PROCEEDING, Event.FINAL): (State.COMPLETED, NonInviteClientTransaction._complete),
    (State.PROCEEDING, Event.TIMER_E): (State.PROCEEDING, NonInviteClientTransaction._repeat_slowly),
    (State.PROCEEDING, Event.TIMER_F): (State.TERMINATED, NonInviteClientTransaction._time_out),
    (State.PROCEEDING, Event.TRANSPORT_ERROR): (State.TERMINATED, NonInviteClientTransaction._fail),
    (State.COMPLETED, Event.TIMER_K): (State.TERMINATED, NonInviteClientTransaction._end),
}

IGNORED = {
    # Timer K is armed by the final response only.
    *product((State.TRYING, State.PROCEEDING), (Event.TIMER_K,)),
    # Completed: repeated responses are absorbed and no timer but K matters.
    *product((State.COMPLETED,), set(Event) - {Event.TIMER_K}),
    *product((State.TERMINATED,), Event),
}

NonInviteClientTransaction.ROWS = compile_rules(RULES)
