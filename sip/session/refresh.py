"""How a session keeps its session timer: what it says, hears and sends to refresh itself (RFC 4028)."""

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
    """The session timer of a session; `timer` is None as long as neither side asks for one."""

    __slots__ = ("timer",)

    def __init__(self, call_id: str, local_tag: str, settings: SessionSettings, *, caller: bool) -> None:
        super().__init__(call_id, local_tag, settings, caller=caller)
        self.timer: SessionTimer | None = None

    def _offer_if_free(self) -> Sequence[Effect]:
        """Send what waits for its turn: an offer, or else a refresh that is due."""
        raise NotImplementedError

    # What is said of it, and heard.

    def _timer_fields(self) -> Sequence[tuple[str, str]]:
        """Give the header fields of a request of ours that could refresh the session."""
        timer = self.timer
        if timer is None or not (self.dialog is None or self.state is State.CONFIRMED):
            return ()
        return timer.request_fields()

    def _heed_answer(self, response: Response) -> Sequence[Effect]:
        """Take what a 2xx to a request of ours decides about the session timer."""
        if self.timer is None:
            if response.headers.first("session-expires") is None:
                return NOTHING
            self.timer = SessionTimer(None, self.settings.min_se_s)
        return self.timer.take_answer(response)

    def _heed_request(self, request: Request) -> Sequence[tuple[str, str]]:
        """
        Take what the peer's request asks of the session timer; returns the header fields for its 2xx.

        There is none in an early dialog: it begins with the answer to the INVITE.
        """
        if self.state is not State.CONFIRMED and request.method != "INVITE":
            return ()
        if self.timer is None:
            if request.headers.first("session-expires") is None:
                return ()
            self.timer = SessionTimer(None, self.settings.min_se_s)
        return self.timer.take_request(request)

    def _run_timer(self) -> Sequence[Effect]:
        """Run what the last request of the peer decided."""
        return NOTHING if self.timer is None or self.state is not State.CONFIRMED else self.timer.run()

    def _learn_minimum(self, response: Response) -> bool:
        """Take a refusal of ours; True when the interval was too small and another one may do."""
        return response.status == 422 and self.timer is not None and self.timer.take_too_small(response)

    # Refreshing it.

    def _refresh_due(self, _: None) -> Sequence[Effect]:
        timer = self.timer
        assert timer is not None
        return (*timer.fall_due(), *self._offer_if_free())

    def _refresh_if_due(self) -> Sequence[Effect]:
        """Refresh the session in the lightest way the peer knows; offers go first, and refresh it too."""
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
        """Whether the request last sent under a purpose does nothing but refresh."""
        if self.timer is None:
            return False
        return purpose is Purpose.REFRESH or (purpose is Purpose.REINVITE and self.timer.in_offer)

    def _refreshed(self, response: Response) -> Sequence[Effect]:
        """Take the final response to an UPDATE that only refreshes."""
        timer, dialog, status = self.timer, self.dialog, response.status
        if timer is None or dialog is None or self.state is not State.CONFIRMED:
            return NOTHING
        if status < 300:
            dialog.refresh_target(response)
            return timer.take_answer(response)
        if status in (408, 481):
            return self.handle(Event.DIALOG_GONE)
        if status in (405, 501):
            dialog.disallow()  # Whatever its Allow said.
        elif not self._learn_minimum(response):
            glare_s = self.offers.glare_delay_s() if status == 491 else None
            return self._refresh_again(response.retry_after_s if glare_s is None else glare_s)
        return self._refresh_challenged()

    def _refresh_challenged(self) -> Sequence[Effect]:
        """Send a refresh again at once, with what its refusal taught."""
        assert self.timer is not None
        self.timer.due = True
        return self._offer_if_free()

    def _refresh_again(self, after_s: float | None) -> Sequence[Effect]:
        """Refresh later: what went wrong says nothing of the dialog."""
        assert self.timer is not None
        if self.timer.in_offer:
            self.offers.settle()
        return (Disarm(Event.TIMER_OFFER), *self.timer.retry(after_s), *self._offer_if_free())
