"""The states and events of a session, and what its machines on both sides work with."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sip.message.message import Request, Response
from sip.timers import Timers

__all__ = ["Event", "SessionSettings", "State", "UnackedAnswer"]


class State(IntEnum):
    """States in the only order they may be passed through."""

    SETUP = 0
    EARLY = 1
    """A provisional response went one way or the other."""
    CANCELLING = 2
    """Outbound, given up by us; the final response is still to come."""
    ACCEPTED = 3
    """Answered, but the ACK is outstanding."""
    CONFIRMED = 4
    LEAVING = 5
    """Hung up by us before the ACK came: the BYE waits for it (RFC 3261 15)."""
    ENDING = 6
    """Our BYE is on its way."""
    ENDED = 7


class Event(IntEnum):
    """All that can happen to a session's state."""

    # What its owner asks for.
    PROGRESS = 0
    ANSWER = 1
    REJECT = 2
    HANGUP = 3
    # What the peer sends.
    PROVISIONAL = 4
    SUCCESS = 5
    LATE_OFFER = 6
    """A 2xx to an INVITE without an offer: it brings one."""
    FAILURE = 7
    CHALLENGE = 8
    """A refusal that says how to ask again: a 401 or 407 for which there are credentials, a 422."""
    CANCEL = 9
    ACK = 10
    BYE = 11
    # How requests of ours end.
    INVITE_FAILED = 12
    BYE_DONE = 13
    DIALOG_GONE = 14
    """The peer did not answer a request within the dialog, or knows the dialog no more."""
    # Timers.
    TIMER_SILENCE = 15
    """Nothing at all came back to our INVITE."""
    TIMER_RINGING = 16
    TIMER_CANCEL = 17
    TIMER_REPEAT = 18
    """The 2xx is sent again."""
    TIMER_ACK = 19
    """No ACK came in 64*T1."""
    TIMER_OFFER = 20
    """An offer of ours is to be made again, or was never answered."""
    TIMER_PROVISIONAL = 21
    """A reliable provisional response is sent again."""
    TIMER_PRACK = 22
    """No PRACK came in 64*T1."""
    TIMER_OWNER = 23
    """The owner never answered an offer the peer made in a request."""
    TIMER_LATE_ANSWER = 24
    """The owner never answered an offer that came in a response to our INVITE."""
    TIMER_REFRESH = 25
    """Half the session's interval has passed: it is ours to refresh it (RFC 4028 10)."""
    TIMER_EXPIRY = 26
    """No refresh came, or none succeeded, before the session's interval was over."""
    REDIRECT = 27
    """The INVITE failed, but there is another target to try: a 3xx named it."""
    TIMER_STILL_RINGING = 28
    """Proxies are to be told that it still rings, or they give up."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What all sessions of a user agent have in common."""

    timers: Timers
    product: str
    pick: Callable[[float, float], float]
    """Gives a random number between two bounds."""
    token: Callable[[], str]
    """Gives an unguessable text, unlike all given before."""
    max_ringing_s: float = 300.0
    """How long an inbound INVITE may wait for the application, and an outbound one for an answer."""
    min_se_s: int = 90
    """The shortest session interval a peer may ask for (RFC 4028 5)."""
    first_response_timeout_s: float = 4.0
    """How long nothing at all may come back to an outbound INVITE."""
    owner_patience_s: float = 10.0
    """How long an offer may wait for the owner's answer: the peer's transaction gives up after 64*T1."""


class UnackedAnswer:
    """A 2xx of ours that is repeated until its ACK comes or 64*T1 have passed."""

    __slots__ = ("_left_s", "_timers", "cseq", "made_offer", "repeat_after_s", "response", "transaction")

    def __init__(self, request: Request, transaction: Any, response: Response, timers: Timers) -> None:
        self.cseq = request.cseq.number
        self.made_offer = bool(response.body) and not request.body
        self.transaction = transaction
        self.response = response
        self.repeat_after_s = timers.t1_s
        self._left_s = timers.timeout_s - timers.t1_s
        self._timers = timers

    def next_wait(self) -> tuple[float, bool]:
        """How long to wait after this repetition, and whether that was the last one."""
        self.repeat_after_s = min(2 * self.repeat_after_s, self._timers.t2_s)
        if self.repeat_after_s >= self._left_s:
            return self._left_s, True
        self._left_s -= self.repeat_after_s
        return self.repeat_after_s, False
