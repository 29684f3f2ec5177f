"""Filters of the transaction layer: of messages by source and load, and of new calls."""

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from sip.aio.transaction_io import server_key
from sip.aio.transport import Address, Clock, Flow, Handle
from sip.message.message import Request, Response, reply, serialise
from sip.message.responses import stateless_tag
from sip.protection.overload import CallShedder, OverloadSettings
from sip.protection.rate_limits import Ban, Protection, ProtectionSettings

if TYPE_CHECKING:
    from sip.aio.settings import UserAgentSettings

logger = logging.getLogger(__name__)

_LOOK_S = 0.1
_LOOKS_PER_REFRESH = 50
_LINES_PER_REFRESH = 20
"""Bans logged one by one between two refreshes; thousands of forged sources may be banned."""
_TAG_BYTES = len(";tag=") + 16
_TAG = b"tag="
_CHALLENGES = frozenset((401, 407))


class Guard:
    """
    Filters messages before they are parsed, and limits the responses to unknown sources.

    `is_trusted` tells whether the application trusts a host. A guard serves one user agent, whose clock it
    gets by `start`.
    """

    def __init__(
        self,
        settings: ProtectionSettings,
        is_trusted: Callable[[str], bool],
        overload: OverloadSettings | None = None,
    ) -> None:
        self.protection = Protection(settings, is_trusted, self._note_ban)
        """Record of the sources, which takes the time of each report."""
        self.arrived_bytes = 0
        """Length of the current message, set by the transaction layer; no longer response is sent."""
        self.pressed = False
        """True under overload: `passes` must be called for every INVITE over UDP."""
        self.starting = False
        """True while the program starts: messages that wait then are no sign of overload."""
        self._own: Address | None = None
        self.has_fronts = bool(settings.fronts)
        """True if `locate` must be called for every message."""
        self._refused: Counter[str] = Counter()
        self._clock: Clock
        self._shedder = CallShedder(overload or OverloadSettings())
        self._alarm: Handle | None = None
        self._look_at = 0.0
        self._looks = 0
        self._waited_s = 0.0
        self._age_s = 0.0
        self._lines = 0

    def start(self, clock: Clock) -> None:
        """Start with the clock of the user agent."""
        self._clock = clock
        self._look_at = clock.time() + _LOOK_S
        self._alarm = clock.call_at(self._look_at, self._look)

    def close(self) -> None:
        """Stop the periodic check."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    @property
    def own(self) -> Address | None:
        """Address from which this process sends to itself: always admitted, without trust in its host."""
        return self._own

    @own.setter
    def own(self, own: Address | None) -> None:
        self._own = own
        self.protection.sources.set_own(own)

    # Called by the transaction layer and its transports.

    def admit(self, data: bytes, flow: Flow) -> int:
        """Judge a message by its source; see `Protection.admit`."""
        self.locate(data, flow)
        return self.protection.admit(data, flow.source, self._clock.time(), is_datagram=not flow.reliable)

    def locate(self, data: bytes, flow: Flow) -> None:
        """Set the origin of a flow to the sender of this message, which only a front may name."""
        if self.has_fronts:
            origin = self.protection.sources.origin_of(data, *flow.remote)
            flow.origin = None if origin == flow.remote else origin

    def trust(self, flow: Flow) -> None:
        """Trust the source of a flow, unless it is this process, or somebody whom a front does not name."""
        source = flow.origin or flow.remote  # `flow.source`, without a call: each message comes by here.
        if source != self._own and source[0]:
            self.protection.sources.trust(source[0], self._clock.time())

    # Called by the user agent.

    def answer_for(self, response: Response, request: Request, flow: Flow) -> Response | None:
        """
        Filter a response by its source: an unknown source gets an occasional 403, or None.

        The 403 is the same for all requests, so that it reveals nothing. It is never longer than the request,
        so that a forged source gains no amplification. A challenge passes, since credentials answer it.
        """
        host = flow.source[0]
        if self.protection.knows(host) or flow.source == self._own or response.status in _CHALLENGES:
            return response
        if not self.protection.may_answer(host, self._clock.time()):
            return None
        refused = reply(request, 403)
        return refused if len(serialise(refused)) + _TAG_BYTES <= self.arrived_bytes else None

    # Overload.

    def note_wait(self, waited_s: float) -> None:
        """Record how long the messages that are being read had waited in their socket."""
        self._age_s = waited_s
        self._waited_s = max(self._waited_s, waited_s)

    def passes(self, data: bytes) -> bool:
        """
        Return True if a datagram is read during overload.

        A new call that is not taken is refused as long as there is time for that. Otherwise its INVITE is
        dropped: a response would come too late, and the caller retransmits.
        """
        if not data.startswith(b"INVITE ") or data.count(_TAG) > 1:
            return True  # No new call: a request with two tags is within a dialog.
        if self._shedder.would_accept(self._age_s) or self._shedder.may_refuse():
            return True
        self._shedder.accepts(self._age_s)  # It counts among the calls of which a share is accepted.
        self.count("unread")
        return False

    def accepts_call(self) -> bool:
        """True if the current new call is within the accepted share."""
        return not self.pressed or self._shedder.accepts(self._age_s)

    @property
    def share(self) -> float:
        """Accepted share of new calls; 1.0 without overload."""
        return self._shedder.share

    def _look(self) -> None:
        """Measure how late this callback runs: all due work waits as long."""
        now = self._clock.time()
        waited_s, self._waited_s = max(self._waited_s, now - self._look_at), 0.0
        if self.starting:
            waited_s = 0.0
        was_whole = self._shedder.share >= 1.0
        self._shedder.look(waited_s, now)
        self.pressed = self._shedder.share < 1.0
        self.protection.sources.set_severe(self._shedder.severe)
        if was_whole and self._shedder.share < 1.0:
            logger.warning("overload: work waits %.2f s; some new calls are refused", waited_s)
        self._looks += 1
        if self._looks % _LOOKS_PER_REFRESH == 0:
            self._refresh(now)
        self.protection.tell_bans()
        self._lines += self.protection.take_left_out()
        self._look_at = now + _LOOK_S
        self._alarm = self._clock.call_at(self._look_at, self._look)

    # Metrics.

    def count(self, reason: str) -> None:
        """Count a refused message."""
        self._refused[reason] += 1

    @property
    def rejected(self) -> Counter[str]:
        """Count of refused messages, by reason."""
        return self._refused + self.protection.rejected

    @property
    def banned(self) -> dict[str, float]:
        """Banned sources and their remaining seconds."""
        return self.protection.banned(self._clock.time())

    def _refresh(self, now: float) -> None:
        """Ask the application again about its sources, and reset the log limit."""
        self.protection.refresh_trusted(now)
        if self._lines > _LINES_PER_REFRESH:
            logger.warning("%d more sources were banned", self._lines - _LINES_PER_REFRESH)
        self._lines = 0

    def _note_ban(self, ban: Ban) -> None:
        self._lines += 1
        if self._lines <= _LINES_PER_REFRESH:
            logger.warning(
                "banned source=%s reason=%s for_s=%.0f count=%d", ban.source, ban.reason, ban.for_s, ban.count
            )


class Admission:
    """
    Refuses new calls before any state is allocated for them.

    `has_room` is the application's check, `guard` the overload check. A retransmission of a refused INVITE
    is refused again, with the same response.
    """

    def __init__(
        self,
        settings: "UserAgentSettings",
        secret: bytes,
        has_room: Callable[[], bool] | None,
        guard: Guard | None,
    ) -> None:
        self.has_room = has_room
        self.guard = guard
        self._secret = secret
        self._retry_after_s = settings.retry_after_s
        self._refusals = Refusals(settings.timers.completed_invite_s)

    def refuses(self, request: Request, now: float, *, full: bool) -> bool:
        """True if an INVITE is refused; `full` means that our own tables are full."""
        if self._refusals and self._refusals.holds(server_key(request), now):
            return True
        reason = self._reason(full)
        if reason is None:
            return False
        self._refusals.add(server_key(request), now)
        if self.guard is not None:
            self.guard.count(reason)
        return True

    def _reason(self, full: bool) -> str | None:
        if full or (self.has_room is not None and not self.has_room()):
            return "capacity"
        if self.guard is not None and not self.guard.accepts_call():
            return "overload"
        return None

    def overloaded(self, request: Request) -> Response:
        """
        Build a 503 that is the same for every retransmission; its Retry-After varies between callers.

        Source: RFC 3261 21.5.4.
        """
        spread = int(stateless_tag(self._secret, request)[:8], 16) % (self._retry_after_s + 1)
        return reply(request, 503, headers=(("Retry-After", str(self._retry_after_s + spread)),))


class Refusals:
    """
    Requests refused without a transaction, kept so that their repetitions are refused as well.

    An accepted repetition would become a call nobody waits for: its caller has the refusal by then.
    """

    def __init__(self, keep_s: float, limit: int = 4096) -> None:
        self._keep_s = keep_s
        self._limit = limit
        self._until: OrderedDict[Hashable, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def add(self, key: Hashable, now: float) -> None:
        """Store a refused request by its transaction key."""
        while self._until and (len(self._until) >= self._limit or next(iter(self._until.values())) <= now):
            self._until.popitem(last=False)
        self._until[key] = now + self._keep_s

    def holds(self, key: Hashable, now: float) -> bool:
        """True when a request repeats a refused one."""
        return self._until.get(key, now) > now
