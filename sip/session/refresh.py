"""Session refresh: header fields, responses and requests of the session timer (RFC 4028)."""

from collections.abc import Sequence

from sip.effects import Disarm, Effect, Purpose
from sip.machine import NOTHING
from sip.message.message import Request, Response
from sip.message.responses import ALLOW, supported_fields
from sip.session.core import SessionCore
from sip.session.model import Event, SessionSettings, State
from sip.session.session_timer import SessionTimer

__all__ = ["Refreshing"]


class Refreshing(SessionCore):
    """Session with a session timer; `timer` is None until either side requests one."""

    __slots__ = ("timer",)

    def __init__(self, call_id: str, local_tag: str, settings: SessionSettings, *, caller: bool) -> None:
        super().__init__(call_id, local_tag, settings, caller=caller)
        self.timer: SessionTimer | None = None

    def _offer_if_free(self) -> Sequence[Effect]:
        """Send our queued offer, or else a refresh that is due, if no offer is outstanding."""
        raise NotImplementedError

    # Header fields, sent and received.

    def _timer_fields(self) -> Sequence[tuple[str, str]]:
        """Return the timer header fields of our next request that could refresh the session."""
        timer = self.timer
        if timer is None or not (self.dialog is None or self.state is State.CONFIRMED):
            return ()
        return timer.request_fields()

    def _heed_answer(self, response: Response) -> Sequence[Effect]:
        """Apply the session timer fields of a 2xx to our request."""
        if self.timer is None:
            if response.headers.first("session-expires") is None:
                return NOTHING
            self.timer = SessionTimer(None, self.settings.min_se_s)
        return self.timer.take_answer(response)

    def _heed_request(self, request: Request) -> Sequence[tuple[str, str]]:
        """
        Apply the session timer fields of the peer's request; return the header fields for its 2xx.

        An early dialog has no session timer: it starts with the answer to the INVITE.
        """
        if self.state is not State.CONFIRMED and request.method != "INVITE":
            return ()
        if self.timer is None:
            if request.headers.first("session-expires") is None:
                return ()
            self.timer = SessionTimer(None, self.settings.min_se_s)
        return self.timer.take_request(request)

    def _run_timer(self) -> Sequence[Effect]:
        """Return the timer effects of the peer's last request."""
        return NOTHING if self.timer is None or self.state is not State.CONFIRMED else self.timer.run()

    def _learn_minimum(self, response: Response) -> bool:
        """Handle a 422 to our request; True when the request can be sent again with a changed timer."""
        return response.status == 422 and self.timer is not None and self.timer.take_too_small(response)

    # Refreshing.

    def _refresh_due(self, _: None) -> Sequence[Effect]:
        timer = self.timer
        assert timer is not None
        return (*timer.fall_due(), *self._offer_if_free())

    def _refresh_if_due(self) -> Sequence[Effect]:
        """
        Refresh the session, if due, by UPDATE, or by re-INVITE where the peer does not allow UPDATE.

        An offer of ours is sent first, and refreshes the session as well.
        """
        timer, dialog = self.timer, self.dialog
        if timer is None or not timer.due or dialog is None or self.state is not State.CONFIRMED:
            return NOTHING
        timer.due = False
        if dialog.allows("UPDATE") or not self.offers.ours:
            headers = (("Allow", ALLOW), *supported_fields(), *timer.request_fields())
            return (self._start("UPDATE", Purpose.REFRESH, headers=headers),)
        timer.in_offer = True
        self.offers.wanted, self.offers.by_update = self.offers.ours, False
        return self._offer_if_free()

    def _is_refresh(self, purpose: Purpose) -> bool:
        """Return True when the last request of a purpose only refreshes the session."""
        if self.timer is None:
            return False
        return purpose is Purpose.REFRESH or (purpose is Purpose.REINVITE and self.timer.in_offer)

    def _refreshed(self, response: Response) -> Sequence[Effect]:
        """Handle the final response to an UPDATE that only refreshes."""
        timer, dialog, status = self.timer, self.dialog, response.status
        if timer is None or dialog is None or self.state is not State.CONFIRMED:
            return NOTHING
        if status < 300:
            dialog.refresh_target(response)
            return timer.take_answer(response)
        if status in (408, 481):
            return self.handle(Event.DIALOG_GONE)
        if status in (405, 501):
            dialog.disallow()  # Although its Allow lists UPDATE.
        elif not self._learn_minimum(response):
            glare_s = self.offers.glare_delay_s() if status == 491 else None
            return self._refresh_again(response.retry_after_s if glare_s is None else glare_s)
        return self._refresh_challenged()

    def _refresh_challenged(self) -> Sequence[Effect]:
        """Send a refresh again at once, adapted to its refusal."""
        assert self.timer is not None
        self.timer.due = True
        return self._offer_if_free()

    def _refresh_again(self, after_s: float | None) -> Sequence[Effect]:
        """Retry the refresh later, after a failure that does not concern the dialog."""
        assert self.timer is not None
        if self.timer.in_offer:
            self.offers.settle()
        return (Disarm(Event.TIMER_OFFER), *self.timer.retry(after_s), *self._offer_if_free())
