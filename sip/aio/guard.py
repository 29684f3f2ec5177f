"""The guard at the door of an endpoint: protection with a clock, a log and answers for strangers."""

import logging
from collections import Counter
from collections.abc import Callable

from sip.aio.transport import Clock, Flow, Handle
from sip.message.message import Request, Response, serialise
from sip.message.responses import reply
from sip.protection.overload import CallShedder, OverloadSettings
from sip.protection.rate_limits import Ban, Protection, ProtectionSettings

__all__ = ["Guard"]

logger = logging.getLogger(__name__)

_LOOK_S = 0.1
_LOOKS_PER_REFRESH = 50
_LINES_PER_REFRESH = 20
"""Bans that get a log line of their own in that time; forged sources may be banned by the thousand."""
_TAG_BYTES = len(";tag=") + 16
_TAG = b"tag="
_CHALLENGES = frozenset((401, 407))


class Guard:
    """
    Decides about every message before it is read, and about what strangers are told.

    `is_known` says of a host whether the application vouches for it. Made for one user agent, whose clock
    it is given by `start`.
    """

    def __init__(
        self,
        settings: ProtectionSettings,
        is_known: Callable[[str], bool],
        overload: OverloadSettings | None = None,
    ) -> None:
        self._protection = Protection(settings, is_known, self._note_ban)
        self.known = self._protection.known
        """Hosts that need no question: looked up by the endpoint for every message."""
        self.arrived_bytes = 0
        """Length of the stranger's message at work; nothing longer is answered."""
        self.pressed = False
        """More comes in than can be done: `passes` has to be asked about every INVITE by UDP."""
        self.starting = False
        """The program is not all there yet: what waits for that says nothing of how much comes in."""
        self._clock: Clock
        self._shedder = CallShedder(overload or OverloadSettings())
        self._alarm: Handle | None = None
        self._look_at = 0.0
        self._looks = 0
        self._waited_s = 0.0
        self._age_s = 0.0
        self._lines = 0

    def start(self, clock: Clock) -> None:
        """Take the clock of the user agent."""
        self._clock = clock
        self._look_at = clock.time() + _LOOK_S
        self._alarm = clock.call_at(self._look_at, self._look)

    def close(self) -> None:
        """Look at the clock no more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    # What the endpoint and its transports ask.

    def admit(self, data: bytes, flow: Flow) -> bool:
        """Whether a message of a host that is not in `known` is to be read."""
        if self._shedder.severe and not flow.reliable and data.startswith(b"INVITE "):
            self.rejected["overload"] += 1
            return False
        self.arrived_bytes = len(data)
        return self._protection.admit(data, flow.remote[0], self._clock.time())

    def admits_connection(self, host: str) -> bool:
        """Whether a connection from a host may come up."""
        return self._protection.admits_connection(host, self._clock.time())

    def knows(self, host: str) -> bool:
        """Whether somebody vouches for a host."""
        return self._protection.knows(host, self._clock.time())

    def is_stranger(self, flow: Flow) -> bool:
        """Whether nobody vouches for the source of the message at work."""
        return flow.remote[0] not in self.known

    def on_malformed(self, flow: Flow) -> None:
        """Count a stranger's message that could not be read."""
        self._protection.on_malformed(flow.remote[0], self._clock.time())

    def vouch(self, host: str) -> None:
        """Take a source for known: it is one we send to, or takes part in a dialog."""
        if host not in self.known:
            self._protection.vouch(host, self._clock.time())

    # What the user agent asks.

    def answer_for(self, response: Response, request: Request, flow: Flow) -> Response | None:
        """
        What a source is told instead of a response: strangers get one 403 in a while, or nothing.

        It is the same whatever they asked, so that nothing can be learned from it, and never longer than
        what they sent, so that a forged source is not worth forging. A challenge passes: without one nobody
        could show credentials.
        """
        host = flow.remote[0]
        if host in self.known or response.status in _CHALLENGES:
            return response
        if not self._protection.may_answer(host, self._clock.time()):
            return None
        refused = reply(request, 403)
        return refused if len(serialise(refused)) + _TAG_BYTES <= self.arrived_bytes else None

    # Overload.

    def note_wait(self, waited_s: float) -> None:
        """Take in how long the messages that are read now had waited in their socket."""
        self._age_s = waited_s
        self._waited_s = max(self._waited_s, waited_s)

    def passes(self, data: bytes) -> bool:
        """
        Whether a datagram is read while more comes in than can be done.

        A new call that is not taken is refused as long as there is time for that; else its INVITE is dropped,
        which is as good as an answer that comes too late, and its caller repeats it.
        """
        if not data.startswith(b"INVITE ") or data.count(_TAG) > 1:
            return True  # Nothing new: with two tags it is within a dialog.
        if self._shedder.would_take(self._age_s) or self._shedder.may_refuse():
            return True
        self._shedder.takes(self._age_s)  # It counts among the calls of which a share is taken.
        self.rejected["unread"] += 1
        return False

    def takes_call(self) -> bool:
        """Whether the new call at work is among those that can be carried."""
        return self._shedder.takes(self._age_s)

    @property
    def share(self) -> float:
        """The part of new calls that is taken; 1.0 unless more comes in than can be done."""
        return self._shedder.share

    def _look(self) -> None:
        """See how late this call comes itself: so long does everything wait that is due."""
        now = self._clock.time()
        waited_s, self._waited_s = max(self._waited_s, now - self._look_at), 0.0
        if self.starting:
            waited_s = 0.0
        was_whole = self._shedder.share >= 1.0
        self._shedder.look(waited_s, now)
        self.pressed = self._shedder.pressed
        if was_whole and self._shedder.share < 1.0:
            logger.warning("overloaded: work waits for %.2f s, a part of new calls is refused", waited_s)
        self._looks += 1
        if self._looks % _LOOKS_PER_REFRESH == 0:
            self._refresh(now)
        self._look_at = now + _LOOK_S
        self._alarm = self._clock.call_at(self._look_at, self._look)

    # Credentials.

    def on_auth_failure(self, host: str) -> None:
        """Count wrong credentials that answered a nonce given to this host; see `Protection`."""
        self._protection.on_auth_failure(host, self._clock.time())

    def on_auth_success(self, host: str) -> None:
        """Take a host for known: its credentials were right."""
        self._protection.on_auth_success(host, self._clock.time())

    # Figures.

    @property
    def rejected(self) -> Counter[str]:
        """Messages that were not served, by reason."""
        return self._protection.rejected

    @property
    def banned(self) -> dict[str, float]:
        """Sources that are banned, and for how many seconds more."""
        return self._protection.banned(self._clock.time())

    def _refresh(self, now: float) -> None:
        """Have the application asked again about its sources."""
        self._protection.refresh_known(now)
        if self._lines > _LINES_PER_REFRESH:
            logger.warning("%d more sources were banned", self._lines - _LINES_PER_REFRESH)
        self._lines = 0

    def _note_ban(self, ban: Ban) -> None:
        self._lines += 1
        if self._lines <= _LINES_PER_REFRESH:
            logger.warning(
                "banned source=%s reason=%s for_s=%.0f count=%d", ban.source, ban.reason, ban.for_s, ban.count
            )
