"""Admission of new calls, and the 503 for refused ones."""

from collections.abc import Callable

from sip.aio.guard import Guard
from sip.message.message import Request, Response
from sip.message.responses import reply, stateless_tag
from sip.protection.overload import Refusals
from sip.transactions.table import Key

__all__ = ["Admission"]


class Admission:
    """
    Refuses new calls before any state is allocated for them.

    `has_room` is the application's check, `guard` the overload check. A retransmission of a refused INVITE
    is refused again, with the same response.
    """

    def __init__(self, secret: bytes, retry_after_s: int, keep_s: float) -> None:
        self.has_room: Callable[[], bool] | None = None
        self.guard: Guard | None = None
        self._secret = secret
        self._retry_after_s = retry_after_s
        self._refusals = Refusals(keep_s)

    def refuses(self, key: Key, now: float, *, full: bool) -> bool:
        """True if the INVITE of a transaction is refused; `full` means that our own tables are full."""
        if self._refusals.holds(key, now):
            return True
        reason = self._reason(full)
        if reason is None:
            return False
        self._refusals.add(key, now)
        if self.guard is not None:
            self.guard.rejected[reason] += 1
        return True

    def _reason(self, full: bool) -> str | None:
        if full or (self.has_room is not None and not self.has_room()):
            return "capacity"
        if self.guard is not None and not self.guard.takes_call():
            return "overload"
        return None

    def overloaded(self, request: Request) -> Response:
        """
        Build a 503 that is the same for every retransmission; its Retry-After varies between callers.

        Source: RFC 3261 21.5.4.
        """
        spread = int(stateless_tag(self._secret, request)[:8], 16) % (self._retry_after_s + 1)
        return reply(request, 503, headers=(("Retry-After", str(self._retry_after_s + spread)),))
