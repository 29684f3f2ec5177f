"""
Transfers within a session: REFERs of the peer and of ours, and their NOTIFYs, as state tables.

A session has at most one REFER of each side under way; a second one gets 491. The subscription of a REFER
outlives the session by its last NOTIFY only.

Source: RFC 3515, RFC 4488, RFC 6665, RFC 7647.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from sip.effects import Arm, Disarm, Effect, Purpose, Respond, StartRequest
from sip.errors import ParseError
from sip.events import ReferAccepted, ReferFailed, ReferProgress, ReferReceived
from sip.machine import NOTHING, Machine, Rules, compile_rules
from sip.message.message import Request, Response, reply
from sip.message.reasons import reason_phrase
from sip.message.responses import ALLOW
from sip.session.model import State
from sip.session.refer import (
    SIPFRAG,
    Refer,
    event_id,
    is_terminated,
    parse_refer,
    parse_sipfrag,
    sipfrag,
    subscribes,
)

if TYPE_CHECKING:
    from sip.session.invite import InviteSession

SUBSCRIPTION_S = 180
"""Expires of the subscription, in seconds; a call rings at most a minute at each of a few gateways."""

DECISION_S = 10.0
"""Time limit of the owner's answer to a REFER, in seconds; its transaction lasts 32 s."""

SILENCE_S = 240.0
"""Longest time without a NOTIFY for our REFER, in seconds."""


class ReferTimer(IntEnum):
    """Timers of transfers; their numbers do not overlap those of the session."""

    NOTIFIER = 100
    REFERRER = 101


# --- a REFER of the peer ------------------------------------------------------------------------------------


class NotifierState(IntEnum):
    """States of a transfer requested by the peer, in order."""

    ASKED = 0
    ACTIVE = 1
    OVER = 2


class NotifierInput(IntEnum):
    """Inputs of a transfer requested by the peer."""

    ACCEPT = 0
    ACCEPT_QUIETLY = 1
    """Accept a REFER whose sender wants no NOTIFYs."""
    REFUSE = 2
    PROGRESS = 3
    FINISH = 4
    EXPIRE = 5
    UNWANTED = 6
    """A NOTIFY was refused or not answered: the subscription is gone."""


_News = tuple[int, str]
"""Status and reason phrase of a transfer."""


class Notifier(Machine[NotifierState]):
    """
    Transfer requested by the peer: the response to its REFER, and the NOTIFYs after it.

    Each event carries the session and the news or status, if any.
    """

    __slots__ = ("_event", "_last", "_request", "_transaction", "refer")

    def __init__(self, request: Request, transaction: Any, refer: Refer, event: str) -> None:
        self.state = NotifierState.ASKED
        self.refer = refer
        self._request = request
        self._transaction = transaction
        self._event = event
        self._last = (100, "Trying")

    def _accept(self, about: "tuple[InviteSession, None]") -> Sequence[Effect]:
        session = about[0]
        return (
            Respond(self._transaction, reply(self._request, 202, headers=_fields_of_2xx(session))),
            self._notify(session, f"active;expires={SUBSCRIPTION_S}"),
            Arm(ReferTimer.NOTIFIER, SUBSCRIPTION_S),
        )

    def _accept_quietly(self, about: "tuple[InviteSession, None]") -> Sequence[Effect]:
        fields = (("Refer-Sub", "false"), *_fields_of_2xx(about[0]))
        return (
            Disarm(ReferTimer.NOTIFIER),
            Respond(self._transaction, reply(self._request, 202, headers=fields)),
        )

    def _refuse(self, about: "tuple[InviteSession, int | None]") -> Sequence[Effect]:
        response = reply(self._request, about[1] or 603)
        return (Disarm(ReferTimer.NOTIFIER), Respond(self._transaction, response))

    def _progress(self, about: "tuple[InviteSession, _News]") -> Sequence[Effect]:
        session, news = about
        if news == self._last:
            return NOTHING
        self._last = news
        notify = self._notify(session, f"active;expires={SUBSCRIPTION_S}")
        return (notify, Arm(ReferTimer.NOTIFIER, SUBSCRIPTION_S))

    def _finish(self, about: "tuple[InviteSession, _News]") -> Sequence[Effect]:
        session, self._last = about
        return (Disarm(ReferTimer.NOTIFIER), self._notify(session, "terminated;reason=noresource"))

    def _expire(self, about: "tuple[InviteSession, None]") -> Sequence[Effect]:
        return (self._notify(about[0], "terminated;reason=timeout"),)

    def _forget(self, _: object) -> Sequence[Effect]:
        return (Disarm(ReferTimer.NOTIFIER),)

    def _notify(self, session: "InviteSession", state: str) -> StartRequest:
        headers = (("Event", self._event), ("Subscription-State", state), ("Content-Type", SIPFRAG))
        return session.start_request("NOTIFY", Purpose.NOTIFY, headers=headers, body=sipfrag(*self._last))


def _fields_of_2xx(session: "InviteSession") -> Sequence[tuple[str, str]]:
    # A Contact belongs into a 2xx to REFER (RFC 3515 2.2).
    return (("Contact", "" if session.dialog is None else session.dialog.local_contact), ("Allow", ALLOW))


_N, _I = NotifierState, NotifierInput

NOTIFIER_RULES: Rules[NotifierState, NotifierInput] = {
    (_N.ASKED, _I.ACCEPT): (_N.ACTIVE, Notifier._accept),
    (_N.ASKED, _I.ACCEPT_QUIETLY): (_N.OVER, Notifier._accept_quietly),
    (_N.ASKED, _I.REFUSE): (_N.OVER, Notifier._refuse),
    (_N.ASKED, _I.EXPIRE): (_N.OVER, Notifier._refuse),
    (_N.ACTIVE, _I.PROGRESS): (_N.ACTIVE, Notifier._progress),
    (_N.ACTIVE, _I.FINISH): (_N.OVER, Notifier._finish),
    (_N.ACTIVE, _I.EXPIRE): (_N.OVER, Notifier._expire),
    (_N.ACTIVE, _I.UNWANTED): (_N.OVER, Notifier._forget),
}

NOTIFIER_IGNORED = frozenset(
    # No NOTIFY is sent before the response to the REFER.
    {(_N.ASKED, what) for what in (_I.PROGRESS, _I.FINISH, _I.UNWANTED)}
    | {(_N.ACTIVE, what) for what in (_I.ACCEPT, _I.ACCEPT_QUIETLY, _I.REFUSE)}
    | {(_N.OVER, what) for what in NotifierInput}
)

Notifier.ROWS = compile_rules(NOTIFIER_RULES)


# --- a REFER of ours ----------------------------------------------------------------------------------------


class ReferrerState(IntEnum):
    """States of a transfer requested by us, in order."""

    SENT = 0
    ACCEPTED = 1
    OVER = 2


class ReferrerInput(IntEnum):
    """Inputs of a transfer requested by us."""

    ACCEPTED = 0
    ACCEPTED_QUIETLY = 1
    """Accepted by a peer that will send no NOTIFYs."""
    REFUSED = 2
    NEWS = 3
    LAST_NEWS = 4
    EXPIRE = 5


class Referrer(Machine[ReferrerState]):
    """Transfer requested by us; the first NOTIFY may overtake the response to the REFER."""

    __slots__ = ("id",)

    def __init__(self, cseq: int) -> None:
        self.state = ReferrerState.SENT
        self.id = str(cseq)

    def _accepted(self, _: object) -> Sequence[Effect]:
        return (Arm(ReferTimer.REFERRER, SILENCE_S), ReferAccepted())

    def _accepted_quietly(self, _: object) -> Sequence[Effect]:
        return (ReferAccepted(followed=False),)

    def _refused(self, news: _News) -> Sequence[Effect]:
        return (ReferFailed(*news),)

    def _news(self, news: _News | None) -> Sequence[Effect]:
        wait = Arm(ReferTimer.REFERRER, SILENCE_S)
        return (wait,) if news is None else (wait, ReferProgress(*news))

    def _last_news(self, news: _News | None) -> Sequence[Effect]:
        status, reason = news or (0, "")
        outcome = ReferProgress if 200 <= status < 300 else ReferFailed
        if status < 200:
            # The peer ends the subscription without an outcome.
            status, reason = 408, "No Outcome"
        return (Disarm(ReferTimer.REFERRER), outcome(status, reason))

    def _expire(self, _: object) -> Sequence[Effect]:
        return (ReferFailed(408, reason_phrase(408)),)


_R, _J = ReferrerState, ReferrerInput

REFERRER_RULES: Rules[ReferrerState, ReferrerInput] = {
    (_R.SENT, _J.ACCEPTED): (_R.ACCEPTED, Referrer._accepted),
    (_R.SENT, _J.ACCEPTED_QUIETLY): (_R.OVER, Referrer._accepted_quietly),
    (_R.SENT, _J.REFUSED): (_R.OVER, Referrer._refused),
    (_R.ACCEPTED, _J.NEWS): (_R.ACCEPTED, Referrer._news),
    (_R.ACCEPTED, _J.LAST_NEWS): (_R.OVER, Referrer._last_news),
    (_R.ACCEPTED, _J.EXPIRE): (_R.OVER, Referrer._expire),
}

REFERRER_IGNORED = frozenset(
    # The transaction of the REFER has a timer of its own, and a NOTIFY accepts the REFER first.
    {(_R.SENT, what) for what in (_J.EXPIRE, _J.NEWS, _J.LAST_NEWS)}
    # The response to the REFER came after its first NOTIFY.
    | {(_R.ACCEPTED, what) for what in (_J.ACCEPTED, _J.ACCEPTED_QUIETLY, _J.REFUSED)}
    | {(_R.OVER, what) for what in ReferrerInput}
)

Referrer.ROWS = compile_rules(REFERRER_RULES)


# --- both, of one session -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Referrals:
    """Transfers of one session, requested by either side."""

    _notifier: Notifier | None = None
    _referrer: Referrer | None = None
    _referred: bool = False

    # Commands of the owner.

    def refer(self, session: "InviteSession", target: str, referred_by: str | None) -> Sequence[Effect]:
        """Ask the peer by REFER to call a target; ``target`` is the value of the Refer-To."""
        if session.state is not State.CONFIRMED:
            return NOTHING
        if self._referrer is not None and self._referrer.state is not ReferrerState.OVER:
            return (ReferFailed(491, reason_phrase(491)),)
        headers = [("Refer-To", target), ("Supported", "norefersub")]
        if referred_by is not None:
            headers.append(("Referred-By", referred_by))
        start = session.start_request("REFER", Purpose.REFER, headers=headers)
        self._referrer = Referrer(start.request.cseq.number)
        return (start,)

    def accept(self, session: "InviteSession") -> Sequence[Effect]:
        """Answer the peer's REFER with 202 and start the NOTIFYs."""
        notifier = self._notifier
        if notifier is None:
            return NOTHING
        if session.ending:
            return notifier.trigger(NotifierInput.REFUSE, (session, 481))
        what = NotifierInput.ACCEPT if notifier.refer.wants_news else NotifierInput.ACCEPT_QUIETLY
        return notifier.trigger(what, (session, None))

    def reject(self, session: "InviteSession", status: int) -> Sequence[Effect]:
        """Refuse the peer's REFER."""
        return self._notify(session, NotifierInput.REFUSE, status)

    def report(self, session: "InviteSession", status: int, reason: str) -> Sequence[Effect]:
        """Report the status of the transfer to the peer by NOTIFY; a final status ends the subscription."""
        what = NotifierInput.FINISH if status >= 200 else NotifierInput.PROGRESS
        return self._notify(session, what, (status, reason or reason_phrase(status)))

    def drop(self, session: "InviteSession") -> Sequence[Effect]:
        """Refuse a REFER that the owner has not answered, because the session ends."""
        return self._notify(session, NotifierInput.REFUSE, 487)

    def _notify(self, session: "InviteSession", what: NotifierInput, data: Any = None) -> Sequence[Effect]:
        return NOTHING if self._notifier is None else self._notifier.trigger(what, (session, data))

    # Input from the network.

    def receive(self, request: Request, transaction: Any, *, allowed: bool) -> Sequence[Effect]:
        """Handle a REFER, which is declined unless ``allowed``, or a NOTIFY."""
        try:
            if request.method == "NOTIFY":
                return self._receive_notify(request, transaction)
            if not allowed:
                return (Respond(transaction, reply(request, 603)),)
            return self._receive_refer(request, transaction)
        except ParseError as error:
            reason = error.reason if error.status == 400 else ""
            return (Respond(transaction, reply(request, error.status, reason)),)

    def _receive_refer(self, request: Request, transaction: Any) -> Sequence[Effect]:
        refer = parse_refer(request)
        if self._notifier is not None and self._notifier.state is not NotifierState.OVER:
            return (Respond(transaction, reply(request, 491)),)
        # Only the first subscription of a dialog goes without an identifier (RFC 3515 2.4.6).
        event = f"refer;id={request.cseq.number}" if self._referred else "refer"
        self._referred = True
        self._notifier = Notifier(request, transaction, refer, event)
        return (Arm(ReferTimer.NOTIFIER, DECISION_S), ReferReceived(refer))

    def _receive_notify(self, request: Request, transaction: Any) -> Sequence[Effect]:
        package, identifier = event_id(request)
        referrer = self._referrer
        if package != "refer":
            return (Respond(transaction, reply(request, 489, headers=(("Allow-Events", "refer"),))),)
        if referrer is None or identifier not in (None, referrer.id):
            return (Respond(transaction, reply(request, 481)),)
        news = parse_sipfrag(request.body)
        last = is_terminated(request) or (news is not None and news[0] >= 200)
        # A NOTIFY may overtake the response to the REFER, and then shows that it was accepted.
        accepted = referrer.trigger(ReferrerInput.ACCEPTED)
        effects = referrer.trigger(ReferrerInput.LAST_NEWS if last else ReferrerInput.NEWS, news)
        return (Respond(transaction, reply(request, 200)), *accepted, *effects)

    def receive_response(
        self, session: "InviteSession", purpose: Purpose, response: Response
    ) -> Sequence[Effect]:
        """Handle a response to our REFER or NOTIFY."""
        status = response.status
        if status < 200:
            return NOTHING
        if purpose is Purpose.NOTIFY:
            return self.fail(session, purpose) if status >= 300 else NOTHING
        if self._referrer is None or session.ending:
            return NOTHING  # No NOTIFY could follow.
        if status >= 300:
            return self._referrer.trigger(ReferrerInput.REFUSED, (status, response.reason))
        # The REFER may have been sent twice, the second time with credentials.
        self._referrer.id = str(response.cseq.number)
        try:
            followed = subscribes(response)
        except ParseError:
            followed = True
        what = ReferrerInput.ACCEPTED if followed else ReferrerInput.ACCEPTED_QUIETLY
        return self._referrer.trigger(what)

    def fail(self, session: "InviteSession", purpose: Purpose) -> Sequence[Effect]:
        """Handle a REFER without a final response, or a NOTIFY that was refused or not answered."""
        if purpose is Purpose.NOTIFY:
            return self._notify(session, NotifierInput.UNWANTED)
        if self._referrer is None:
            return NOTHING
        return self._referrer.trigger(ReferrerInput.REFUSED, (408, reason_phrase(408)))

    def take_timer(self, session: "InviteSession", timer: int) -> Sequence[Effect]:
        """Handle a timer event."""
        if timer == ReferTimer.NOTIFIER:
            return self._notify(session, NotifierInput.EXPIRE)
        return NOTHING if self._referrer is None else self._referrer.trigger(ReferrerInput.EXPIRE)
