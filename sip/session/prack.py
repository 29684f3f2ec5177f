"""Reliable provisional responses: numbered, repeated, acknowledged by PRACK (RFC 3262); no I/O, no clock."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from sip.message.grammar import parse_number
from sip.message.message import Request, Response
from sip.timers import Repetition, Timers

OPTION_TAG = "100rel"

MAX_WAITING = 8
"""Limit of queued provisional responses; further ones are dropped while the current one has no PRACK."""

_MAX_NUMBER = 2**32 - 1


class RAck(NamedTuple):
    """Identifies the response that a PRACK acknowledges."""

    rseq: int
    cseq: int
    method: str


def parse_rack(request: Request) -> RAck | None:
    """
    Parse the RAck of a PRACK; None when it is missing or malformed.

    Source: RFC 3262 7.2.
    """
    parts = (request.headers.first("rack") or "").split()
    if len(parts) != 3:
        return None
    rseq, cseq = _number(parts[0]), _number(parts[1])
    return None if rseq is None or cseq is None else RAck(rseq, cseq, parts[2])


def reliable_number(response: Response) -> int | None:
    """
    Return the RSeq of a reliable provisional response, None for an unreliable one.

    Source: RFC 3262 4.
    """
    text = response.headers.first("rseq")
    if text is None or OPTION_TAG not in response.option_tags("Require"):
        return None
    return _number(text.strip())


def _number(text: str) -> int | None:
    number = parse_number(text, 10)
    return None if number is None or number > _MAX_NUMBER else number


@dataclass(slots=True)
class ReliableResponses:
    """
    Reliable provisional responses to one INVITE: one is outstanding, the others are queued.

    A response is repeated after T1, doubling, until its PRACK comes or 64*T1 have passed (RFC 3262 3).
    """

    _next_rseq: int
    _cseq: int
    _timers: Timers
    _waiting: deque[Response] = field(default_factory=deque)
    _stopped: bool = False
    current: Response | None = None
    repetition: Repetition = field(init=False)

    @property
    def holds_answer(self) -> bool:
        """True while a 2xx must wait, because a session description is not acknowledged yet."""
        if self._stopped:
            return False
        current = self.current
        return (current is not None and bool(current.body)) or any(entry.body for entry in self._waiting)

    def submit(self, response: Response) -> Response | None:
        """Queue a response to send reliably; return it when it can be sent at once."""
        if self.current is None:
            return self._launch(response)
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(response)
        return None

    def acknowledge(self, rack: RAck) -> Response | None:
        """Return the response that the RAck of a PRACK acknowledges; None when it matches none."""
        current = self.current
        if current is None or rack != (self._next_rseq - 1, self._cseq, "INVITE"):
            return None
        self.current = None
        return current

    def next(self) -> Response | None:
        """Return the next response to send, None while the previous one is not acknowledged."""
        if self.current is not None or self._stopped or not self._waiting:
            return None
        return self._launch(self._waiting.popleft())

    def stop(self) -> None:
        """Drop the queue, as the final response was sent; only the PRACK of the latest response may come."""
        self._stopped = True
        self._waiting.clear()

    def _launch(self, response: Response) -> Response:
        response.headers.add("Require", OPTION_TAG)
        response.headers.add("RSeq", str(self._next_rseq))
        self._next_rseq += 1
        self.current, self.repetition = response, Repetition(self._timers)
        return response
