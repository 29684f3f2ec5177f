"""Non-INVITE server transaction (RFC 3261 17.2.2)."""

from collections.abc import Sequence
from enum import IntEnum
from itertools import product

from sip.effects import Arm, Done, Effect, Send
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

    REQUEST = 0
    SEND_PROVISIONAL = 1
    SEND_FINAL = 2
    TIMER_J = 3
    TRANSPORT_ERROR = 4


class NonInviteServerTransaction(Machine[State]):
    """Answers every repetition of one request with the latest response to it."""

    __slots__ = ("_last", "reliable", "timers")

    def __init__(self, timers: Timers, *, reliable: bool) -> None:
        self.state = State.TRYING
        self.timers = timers
        self.reliable = reliable
        self._last = b""

    def start(self) -> Sequence[Effect]:
        """Return the first effects: none."""
        return ()

    def receive(self, request: Request) -> Sequence[Effect]:
        """Handle a repetition of the request."""
        return self.trigger(Event.REQUEST, request)

    def respond(self, response: Response) -> Sequence[Effect]:
        """Send a response of the user."""
        event = Event.SEND_PROVISIONAL if response.status < 200 else Event.SEND_FINAL
        return self.trigger(event, response)

    def fail_transport(self) -> Sequence[Effect]:
        """Handle a transport error: a response cannot be delivered."""
        return self.trigger(Event.TRANSPORT_ERROR)

    def _send(self, response: Response) -> Sequence[Effect]:
        self._last = serialise(response)
        return (Send(self._last),)

    def _complete(self, response: Response) -> Sequence[Effect]:
        self._last = serialise(response)
        return (Send(self._last), Arm(Event.TIMER_J, 0.0 if self.reliable else self.timers.timeout_s))

    def _repeat(self, _: Request) -> Sequence[Effect]:
        return (Send(self._last),)

    def _end(self, _: None) -> Sequence[Effect]:
        return (Done(),)


RULES: Rules[State, Event] = {
    (State.TRYING, Event.SEND_PROVISIONAL): (State.PROCEEDING, NonInviteServerTransaction._send),
    (State.TRYING, Event.SEND_FINAL): (State.COMPLETED, NonInviteServerTransaction._complete),
    (State.PROCEEDING, Event.REQUEST): (State.PROCEEDING, NonInviteServerTransaction._repeat),
    (State.PROCEEDING, Event.SEND_PROVISIONAL): (State.PROCEEDING, NonInviteServerTransaction._send),
    (State.PROCEEDING, Event.SEND_FINAL): (State.COMPLETED, NonInviteServerTransaction._complete),
    (State.COMPLETED, Event.REQUEST): (State.COMPLETED, NonInviteServerTransaction._repeat),
    (State.COMPLETED, Event.TIMER_J): (State.TERMINATED, NonInviteServerTransaction._end),
}

IGNORED = {
    # There is nothing to repeat yet.
    (State.TRYING, Event.REQUEST),
    # Timer J is armed by the final response only.
    *product((State.TRYING, State.PROCEEDING), (Event.TIMER_J,)),
    # The final response is not changed by later ones.
    *product((State.COMPLETED,), (Event.SEND_PROVISIONAL, Event.SEND_FINAL)),
    # The client repeats its request or gives up by its own timer.
    *product((State.TRYING, State.PROCEEDING, State.COMPLETED), (Event.TRANSPORT_ERROR,)),
    *product((State.TERMINATED,), Event),
}

NonInviteServerTransaction.ROWS = compile_rules(RULES)
