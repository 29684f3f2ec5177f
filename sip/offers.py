"""Whose turn it is to offer, after the first offer of a session (RFC 3261 14, RFC 3311, RFC 3264)."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from sip.dialog import Dialog
from sip.effects import Effect, Notify, Respond
from sip.events import OfferReceived
from sip.message import Request, Response
from sip.responses import ALLOW, reply, supported_fields

__all__ = ["OfferTurns", "Turn"]

MAX_GLARES = 10
"""A peer that answers 491 more often than that is not making an offer of its own."""

Pick = Callable[[float, float], float]
"""Gives a random number between two bounds."""


class Turn(IntEnum):
    """Who has an offer outstanding."""

    NOBODY = 0
    OURS = 1
    THEIRS = 2


class OfferTurns:
    """
    The offers of one confirmed session after the first: at most one is outstanding at a time.

    An offer of ours that has to wait (glare, or the peer's offer is still unanswered) is kept in
    `wanted`; a later one replaces it.
    """

    __slots__ = ("_glares", "_peer", "owner_of_call_id", "pick", "turn", "wanted")

    def __init__(self, *, owner_of_call_id: bool, pick: Pick) -> None:
        self.turn = Turn.NOBODY
        self.wanted: bytes | None = None
        self.owner_of_call_id = owner_of_call_id
        self.pick = pick
        self._peer: tuple[Request, Any] | None = None
        self._glares = 0

    def receive(self, request: Request, transaction: Any) -> Sequence[Effect]:
        """
        Take a re-INVITE, or an UPDATE with an offer.

        Source: RFC 3261 14.2, RFC 3311 5.2.
        """
        if self.turn is Turn.OURS:
            return (Respond(transaction, reply(request, 491)),)
        if self.turn is Turn.THEIRS:
            return (Respond(transaction, self.busy(request)),)
        self.turn = Turn.THEIRS
        self._peer = (request, transaction)
        return (Notify(OfferReceived(request.body)),)

    def busy(self, request: Request) -> Response:
        """The response to a request that came before the one ahead of it was answered."""
        return reply(request, 500, headers=(("Retry-After", str(round(self.pick(0.0, 10.0)))),))

    def accept(self, body: bytes, dialog: Dialog) -> tuple[Request, Any, Response] | None:
        """
        Answer the peer's offer: its request, its transaction and the 2xx; None when there is none.

        The caller sends the response, and repeats it until the ACK if the request was an INVITE.
        """
        if self._peer is None:
            return None
        request, transaction = self._take()
        dialog.refresh_target(request)
        headers = [("Contact", dialog.local_contact), ("Allow", ALLOW), *supported_fields()]
        if body:
            headers.append(("Content-Type", "application/sdp"))
        response = reply(request, 200, headers=headers)
        response.body = body
        return request, transaction, response

    def reject(self, status: int, warning: str | None = None) -> Sequence[Effect]:
        """Refuse the peer's offer; the session stays as it was."""
        if self._peer is None:
            return ()
        request, transaction = self._take()
        headers = () if warning is None else (("Warning", warning),)
        return (Respond(transaction, reply(request, status, headers=headers)),)

    def cancel(self, transaction: Any) -> Sequence[Effect]:
        """Take a CANCEL of the peer's re-INVITE."""
        if self._peer is None or self._peer[1] is not transaction:
            return ()
        return self.reject(487)

    def settle(self) -> None:
        """Note that our offer came to an end, one way or another."""
        self.turn = Turn.NOBODY
        self.wanted = None
        self._glares = 0

    def glare_delay_s(self) -> float | None:
        """
        How long to wait before an offer that met a 491 is made again, None when it met too many.

        Source: RFC 3261 14.1.
        """
        self._glares += 1
        if self._glares > MAX_GLARES:
            return None
        if self.owner_of_call_id:
            return round(self.pick(2.1, 4.0), 2)
        return round(self.pick(0.0, 2.0), 2)

    def _take(self) -> tuple[Request, Any]:
        assert self._peer is not None
        peer, self._peer, self.turn = self._peer, None, Turn.NOBODY
        return peer
