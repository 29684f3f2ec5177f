"""
Session refresh: refresher, interval and expiry of a session, and the requests that refresh it (RFC 4028).

Only an interval the peer agreed to can expire a session: a refresh without agreement only probes the peer,
and any response but 408 and 481 shows that the peer is alive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sip.effects import Arm, Disarm, Effect, Purpose
from sip.machine import NOTHING
from sip.message.grammar import parse_number
from sip.message.message import Message, Request, Response
from sip.message.responses import ALLOW, supported_fields
from sip.session.model import Event, State
from sip.values import constructed_natively

if TYPE_CHECKING:
    from sip.session.invite import InviteSession

EXPIRED_REASON = 'SIP;cause=408;text="Session timer expired", Q.850;cause=102;text="Session timer expired"'
"""Reason of the BYE that ends an expired session."""

GONE_REASON = 'SIP;cause=408;text="Nobody there", Q.850;cause=102;text="Nobody there"'
"""Reason of the BYE to a peer that does not answer within the dialog, or no longer knows it."""

LONGEST_MARGIN_S = 32.0
"""A session ends this long before its interval is over, or a third of it if shorter (RFC 4028 10)."""

SHORTEST_S = 30
"""A shorter interval of a peer is raised to this, or to a lower Min-SE, to bound the rate of refreshes."""

LONGEST_MIN_SE_S = 86_400
"""Longest accepted Min-SE, one day; a 422 with a longer one disables the timer."""

MAX_RAISES = 3
"""Limit of 422 responses in a row, after which the timer is disabled."""

LONGEST_RETRY_S = 32.0
"""Longest delay before a failed refresh is retried, unless the peer asks for a longer one."""

_NO_REFRESH, _NO_EXPIRY = Disarm(Event.TIMER_REFRESH), Disarm(Event.TIMER_EXPIRY)


class SessionExpires(NamedTuple):
    """Value of a Session-Expires header field; `refresher` is `uac`, `uas` or None."""

    interval_s: int
    refresher: str | None


def read_session_expires(message: Message) -> SessionExpires | None:
    """
    Return the Session-Expires of a message; None when absent or malformed.

    Source: RFC 4028 4.
    """
    value = message.headers.first("session-expires")
    if value is None:
        return None
    interval, *parameters = value.split(";")
    interval_s = parse_number(interval.strip())
    if interval_s is None:
        return None
    for parameter in parameters:
        name, _, who = parameter.partition("=")
        if name.strip().lower() == "refresher" and who.strip().lower() in ("uac", "uas"):
            return SessionExpires(interval_s, who.strip().lower())
    return SessionExpires(interval_s, None)


def read_min_se(message: Message) -> int | None:
    """
    Return the Min-SE of a message in seconds; None when absent or malformed.

    Source: RFC 4028 5.
    """
    value = message.headers.first("min-se")
    return None if value is None else parse_number(value.partition(";")[0].strip())


@constructed_natively
@dataclass(slots=True)
class SessionRefresh:
    """
    Session timer of one session, as last agreed; `active` once either side has requested one.

    `wanted_s` is the interval we request, None when we only follow the peer. `interval_s` is the current one,
    0 without one. `is_refresher` is True when we refresh, `agreed` when the peer knows the interval, `due`
    when a refresh must be sent as soon as possible, `in_offer` when the re-INVITE under way only refreshes.
    """

    min_se_s: int
    active: bool = False
    wanted_s: int | None = None
    interval_s: int = 0
    is_refresher: bool = False
    agreed: bool = False
    due: bool = False
    in_offer: bool = False
    _expiring: bool = False
    _raises: int = 0

    def want(self, interval_s: int) -> None:
        """Request a session timer of this interval."""
        self.active = True
        self.wanted_s = interval_s

    # Header fields of our requests.

    def request_fields(self, session: "InviteSession") -> Sequence[tuple[str, str]]:
        """
        Return the header fields of an INVITE, re-INVITE or UPDATE of ours; an early dialog has none.

        The first INVITE lets the peer choose the refresher; later requests keep the agreed one.

        Source: RFC 4028 7.1, 7.4.
        """
        if not self.active or not (session.dialog is None or session.state is State.CONFIRMED):
            return ()
        interval_s = self.interval_s or self.wanted_s
        if not interval_s:
            return ()
        who = "" if not self.interval_s else ";refresher=uac" if self.is_refresher else ";refresher=uas"
        interval_s = max(interval_s, self.min_se_s)
        return (("Session-Expires", f"{interval_s}{who}"), ("Min-SE", str(self.min_se_s)))

    # As UAC.

    def receive_2xx(self, response: Response) -> Sequence[Effect]:
        """
        Handle a 2xx to a request of ours that could refresh the session, and return the timers to arm.

        Without Session-Expires the peer has no timer; then we refresh at our own interval, if any.

        Source: RFC 4028 7.2.
        """
        if not self.active and response.headers.first("session-expires") is None:
            return NOTHING
        self.active = True
        self._raises = 0
        self._raise_minimum(response)
        stated = read_session_expires(response)
        if stated is not None:
            self._settle(stated.interval_s, ours=stated.refresher != "uas", agreed=True)
        else:
            # A peer that made us the refresher and omits it here may still rely on it.
            self._settle(self._own_interval_s(), ours=True, agreed=False)
        return self._timers()

    def receive_422(self, response: Response) -> bool:
        """
        Handle a failure; True for a 422 after which the request is worth sending again.

        It is sent with a larger interval, or without a timer.

        Source: RFC 4028 7.3.
        """
        wish = self.interval_s or self.wanted_s
        if response.status != 422 or not wish:
            return False
        minimum_s = read_min_se(response)
        self._raises += 1
        larger = minimum_s is not None and max(wish, self.min_se_s) < minimum_s <= LONGEST_MIN_SE_S
        if larger and self._raises <= MAX_RAISES:
            assert minimum_s is not None
            self.min_se_s = minimum_s
        else:
            # The call matters more than its timer.
            self.wanted_s, self.interval_s, self.agreed = None, 0, False
        return True

    # As UAS.

    def receive_request(self, session: "InviteSession", request: Request) -> Sequence[tuple[str, str]]:
        """
        Handle a request that could refresh the session, and return the header fields for its 2xx.

        `start` then arms the timer. We are the refresher unless the peer supports timers and names itself:
        then no missing refresh of the peer can expire the session. An early dialog has no session timer: it
        starts with the answer to the INVITE.

        Source: RFC 4028 9 (table 2).
        """
        if session.state is not State.CONFIRMED and request.method != "INVITE":
            return ()
        if not self.active and request.headers.first("session-expires") is None:
            return ()
        self.active = True
        self._raise_minimum(request)
        supported = "timer" in request.option_tags("Supported")
        stated = read_session_expires(request)
        if stated is not None:
            theirs = supported and stated.refresher == "uac"
            self._settle(stated.interval_s, ours=not theirs, agreed=supported)
            if theirs:
                # The caller must refresh, so it must understand this (RFC 4028 9).
                return (("Session-Expires", f"{self.interval_s};refresher=uac"), ("Require", "timer"))
            return (("Session-Expires", f"{self.interval_s};refresher=uas"),)
        wish_s = self.interval_s or self.wanted_s
        if supported and wish_s:
            self._settle(max(wish_s, self.min_se_s), ours=True, agreed=True)
            return (("Session-Expires", f"{self.interval_s};refresher=uas"),)
        self._settle(self._own_interval_s(), ours=True, agreed=False)
        return ()

    def start(self, session: "InviteSession") -> Sequence[Effect]:
        """Return the timers that `receive_request` decided on."""
        return self._timers() if self.active and session.state is State.CONFIRMED else NOTHING

    # Refreshing.

    def fall_due(self, session: "InviteSession") -> Sequence[Effect]:
        """Mark a refresh as due, and send it if possible; from here on an agreed session may expire."""
        self.due = True
        expiry: Sequence[Effect] = NOTHING
        if self.agreed and not self._expiring:
            self._expiring = True
            expiry = (Arm(Event.TIMER_EXPIRY, self._left_s()),)
        return (*expiry, *session.offers.send_next(session))

    def send_if_due(self, session: "InviteSession") -> Sequence[Effect]:
        """
        Refresh the session by UPDATE, or by re-INVITE where the peer does not allow UPDATE.

        An offer of ours is sent first, and refreshes the session as well.
        """
        dialog, offers = session.dialog, session.offers
        if dialog is None or session.state is not State.CONFIRMED:
            return NOTHING
        self.due = False
        if dialog.allows("UPDATE") or not offers.local_sdp:
            headers = (("Allow", ALLOW), *supported_fields(), *self.request_fields(session))
            return (session.start_request("UPDATE", Purpose.REFRESH, headers=headers),)
        self.in_offer = True
        offers.queued_offer, offers.by_update = offers.local_sdp, False
        return offers.send_next(session)

    def is_refresh(self, purpose: Purpose) -> bool:
        """Return True when the last request of a purpose only refreshes the session."""
        return purpose is Purpose.REFRESH or (purpose is Purpose.REINVITE and self.in_offer)

    def receive_response(self, session: "InviteSession", response: Response) -> Sequence[Effect]:
        """Handle the final response to an UPDATE that only refreshes."""
        dialog, status = session.dialog, response.status
        if dialog is None or session.state is not State.CONFIRMED:
            return NOTHING
        if status < 300:
            dialog.refresh_target(response)
            return self.receive_2xx(response)
        if status in (408, 481):
            return session.trigger(Event.DIALOG_GONE)
        if status in (405, 501):
            dialog.disallow()  # Although its Allow lists UPDATE.
        elif not self.receive_422(response):
            glare_s = session.offers.glare_delay_s(session) if status == 491 else None
            return self.retry(session, response.retry_after_s if glare_s is None else glare_s)
        return self.send_again(session)

    def send_again(self, session: "InviteSession") -> Sequence[Effect]:
        """Send a refresh again at once, adapted to its refusal."""
        self.due = True
        return session.offers.send_next(session)

    def retry(self, session: "InviteSession", after_s: float | None) -> Sequence[Effect]:
        """
        Retry the refresh later, after a failure that does not concern the dialog.

        `after_s` is the delay of the peer's Retry-After or of the glare rules.
        """
        if self.in_offer:
            session.offers.settle()
            self.in_offer = False
        return (Disarm(Event.TIMER_OFFER), *self._next_try(after_s), *session.offers.send_next(session))

    def _next_try(self, after_s: float | None) -> Sequence[Effect]:
        if not self.agreed:
            return (Arm(Event.TIMER_REFRESH, self.interval_s / 2),) if self.interval_s else ()
        left_s = self._left_s()
        wait_s = min(LONGEST_RETRY_S, left_s / 3)
        if after_s is not None:
            # Not so soon that a peer could make us send continuously, nor too late to succeed.
            wait_s = min(max(after_s, min(1.0, wait_s)), left_s / 2)
        return (Arm(Event.TIMER_REFRESH, wait_s),)

    # The agreement.

    def _own_interval_s(self) -> int:
        """Return the interval of refreshes without agreement: the wanted one, or the current one if ours."""
        if self.wanted_s:
            return max(self.wanted_s, self.min_se_s)
        return self.interval_s if self.is_refresher else 0

    def _raise_minimum(self, message: Message) -> None:
        """Raise our Min-SE to that of the peer."""
        minimum_s = read_min_se(message)
        if minimum_s is not None and self.min_se_s < minimum_s <= LONGEST_MIN_SE_S:
            self.min_se_s = minimum_s

    def _settle(self, interval_s: int, *, ours: bool, agreed: bool) -> None:
        shortest_s = min(self.min_se_s, SHORTEST_S)
        self.interval_s = max(interval_s, shortest_s) if interval_s or agreed else 0
        self.is_refresher, self.agreed = ours, agreed
        self.due = self.in_offer = self._expiring = False

    def _timers(self) -> Sequence[Effect]:
        if not self.interval_s:
            return (_NO_REFRESH, _NO_EXPIRY)
        if self.is_refresher:
            return (_NO_EXPIRY, Arm(Event.TIMER_REFRESH, self.interval_s / 2))
        expiry = Arm(Event.TIMER_EXPIRY, self.interval_s - self._margin_s())
        return (_NO_REFRESH, expiry)

    def _margin_s(self) -> float:
        return min(LONGEST_MARGIN_S, self.interval_s / 3)

    def _left_s(self) -> float:
        """Return the time from a due refresh to the end of the session."""
        return self.interval_s / 2 - self._margin_s()
