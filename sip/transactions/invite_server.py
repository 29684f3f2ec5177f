"""INVITE server transaction (RFC 3261 17.2.1, RFC 6026 7.1)."""

from collections.abc import Sequence
from enum import IntEnum
from itertools import product

from sip.effects import Arm, Deliver, Done, Effect, Send
from sip.machine import NOTHING, Machine, Rules, compile_rules
from sip.message.message import Request, Response, reply, serialise
from sip.timers import Timers


class State(IntEnum):
    """States, passed through in this order only."""

    PROCEEDING = 0
    COMPLETED = 1
    CONFIRMED = 2
    ACCEPTED = 3
    TERMINATED = 4


class Event(IntEnum):
    """Events of the transaction."""

    REQUEST = 0
    ACK = 1
    SEND_PROVISIONAL = 2
    SEND_SUCCESS = 3
    SEND_FAILURE = 4
    TIMER_TRYING = 5
    TIMER_G = 6
    TIMER_H = 7
    TIMER_I = 8
    TIMER_L = 9
    TRANSPORT_ERROR = 10


class InviteServerTransaction(Machine[State]):
    """Absorbs repetitions of one INVITE, and repeats a failure response until its ACK comes."""

    __slots__ = ("_last", "_repeat_after_s", "reliable", "request", "timers")

    def __init__(self, request: Request, timers: Timers, *, reliable: bool) -> None:
        self.state = State.PROCEEDING
        self.request: Request | None = request
        self.timers = timers
        self.reliable = reliable
        self._last: bytes | None = None
        self._repeat_after_s = timers.t1_s

    def start(self) -> Sequence[Effect]:
        """Return the first effect: arm the timer of the 100, sent unless the user responds earlier."""
        return (Arm(Event.TIMER_TRYING, self.timers.trying_s),)

    def receive(self, request: Request) -> Sequence[Effect]:
        """Handle a repetition of the INVITE, or the ACK that matches it."""
        return self.trigger(Event.ACK if request.method == "ACK" else Event.REQUEST, request)

    def respond(self, response: Response) -> Sequence[Effect]:
        """Send a response of the user; a repeated 2xx is sent again."""
        status = response.status
        if status < 200:
            return self.trigger(Event.SEND_PROVISIONAL, response)
        return self.trigger(Event.SEND_SUCCESS if status < 300 else Event.SEND_FAILURE, response)

    def fail_transport(self) -> Sequence[Effect]:
        """Handle a transport error: a response cannot be delivered."""
        return self.trigger(Event.TRANSPORT_ERROR)

    def _trying(self, _: object) -> Sequence[Effect]:
        if self._last is not None:
            return NOTHING
        assert self.request is not None
        self._last = serialise(reply(self.request, 100))
        return (Send(self._last),)

    def _repeat(self, _: Request) -> Sequence[Effect]:
        if self._last is None:
            return self._trying(None)
        return (Send(self._last),)

    def _send(self, response: Response) -> Sequence[Effect]:
        self._last = serialise(response)
        return (Send(self._last),)

    def _accept(self, response: Response) -> Sequence[Effect]:
        # The user repeats the 2xx; a repeated INVITE is absorbed, so neither message is kept.
        self._last = self.request = None
        return (Send(serialise(response)), Arm(Event.TIMER_L, self.timers.timeout_s))

    def _accept_again(self, response: Response) -> Sequence[Effect]:
        return (Send(serialise(response)),)

    def _deliver(self, ack: Request) -> Sequence[Effect]:
        # Only an ACK that wrongly carries the branch of the INVITE arrives here; it is accepted.
        return (Deliver(ack),)

    def _reject(self, response: Response) -> Sequence[Effect]:
        self._last = serialise(response)
        self.request = None
        send, give_up = Send(self._last), Arm(Event.TIMER_H, self.timers.timeout_s)
        if self.reliable:
            return (send, give_up)
        return (send, give_up, Arm(Event.TIMER_G, self._repeat_after_s))

    def _repeat_failure(self, _: None) -> Sequence[Effect]:
        assert self._last is not None
        self._repeat_after_s = min(2 * self._repeat_after_s, self.timers.t2_s)
        return (Send(self._last), Arm(Event.TIMER_G, self._repeat_after_s))

    def _confirm(self, _: Request) -> Sequence[Effect]:
        return (Arm(Event.TIMER_I, 0.0 if self.reliable else self.timers.t4_s),)

    def _end(self, _: None) -> Sequence[Effect]:
        return (Done(),)


RULES: Rules[State, Event] = {
    (State.PROCEEDING, Event.REQUEST): (State.PROCEEDING, InviteServerTransaction._repeat),
    (State.PROCEEDING, Event.SEND_PROVISIONAL): (State.PROCEEDING, InviteServerTransaction._send),
    (State.PROCEEDING, Event.SEND_SUCCESS): (State.ACCEPTED, InviteServerTransaction._accept),
    (State.PROCEEDING, Event.SEND_FAILURE): (State.COMPLETED, InviteServerTransaction._reject),
    (State.PROCEEDING, Event.TIMER_TRYING): (State.PROCEEDING, InviteServerTransaction._trying),
    (State.COMPLETED, Event.REQUEST): (State.COMPLETED, InviteServerTransaction._repeat),
    (State.COMPLETED, Event.ACK): (State.CONFIRMED, InviteServerTransaction._confirm),
    (State.COMPLETED, Event.TIMER_G): (State.COMPLETED, InviteServerTransaction._repeat_failure),
    (State.COMPLETED, Event.TIMER_H): (State.TERMINATED, InviteServerTransaction._end),
    (State.CONFIRMED, Event.TIMER_I): (State.TERMINATED, InviteServerTransaction._end),
    (State.ACCEPTED, Event.ACK): (State.ACCEPTED, InviteServerTransaction._deliver),
    (State.ACCEPTED, Event.SEND_SUCCESS): (State.ACCEPTED, InviteServerTransaction._accept_again),
    (State.ACCEPTED, Event.TIMER_L): (State.TERMINATED, InviteServerTransaction._end),
}

IGNORED = {
    # There is nothing to acknowledge yet, and the other timers belong to later states.
    (State.PROCEEDING, Event.ACK),
    *product((State.PROCEEDING,), (Event.TIMER_G, Event.TIMER_H, Event.TIMER_I, Event.TIMER_L)),
    # The caller repeats the INVITE, perhaps over a new connection, or its own timers end the call.
    *product((State.PROCEEDING, State.COMPLETED), (Event.TRANSPORT_ERROR,)),
    # The final response is not changed by later responses of the user.
    *product((State.COMPLETED,), (Event.SEND_PROVISIONAL, Event.SEND_SUCCESS, Event.SEND_FAILURE)),
    *product((State.COMPLETED,), (Event.TIMER_TRYING, Event.TIMER_I, Event.TIMER_L)),
    # The user repeats a 2xx at its own pace, so a repeated INVITE is not answered (RFC 6026 7.1).
    *product((State.ACCEPTED,), set(Event) - {Event.ACK, Event.SEND_SUCCESS, Event.TIMER_L}),
    # Confirmed: only late repetitions are absorbed until timer I.
    *product((State.CONFIRMED,), set(Event) - {Event.TIMER_I}),
    *product((State.TERMINATED,), Event),
}

InviteServerTransaction.ROWS = compile_rules(RULES)
