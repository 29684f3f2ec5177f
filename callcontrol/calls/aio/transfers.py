"""Performs the transfer effects of a call: REFERs, joined calls, callers that replace a party."""

from collections.abc import Callable
from typing import Any, Final

from callcontrol.calls.aio.context import ActiveCall, EffectPerformer
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects import transfers as do
from callcontrol.calls.events.transfers import (
    JoinRequested,
    LegReferred,
    PartnerDigit,
    PartnerFound,
    PartnerMissing,
    PartnerReady,
    PartnerRefused,
    ReplacementCalled,
)
from callcontrol.ids import LegId
from callcontrol.models import Carrier, Gateway
from callcontrol.trunks.inbound_invite import Received
from sip import InvalidValue
from sip.aio import InboundSession

WaitingCaller = tuple[InboundSession, tuple[Carrier, Gateway], Received]
"""A caller waiting to join the call, with its trunk and the headers of its INVITE."""


class TransferPerformer(EffectPerformer):
    """Performs the transfer effects of one call."""

    def __init__(self, call: ActiveCall) -> None:
        self._registry = call.context.registry
        self._record = call.record
        self._sip = call.sip
        self._media = call.media
        self._post = call.mailbox.post
        self._post_outcome = call.mailbox.post_outcome
        self._waiting: dict[int, WaitingCaller] = {}
        self._tokens = 0

    def wait(self, leg: LegId, waiting: WaitingCaller) -> None:
        """Queue a caller until the call decides whether it may replace a leg."""
        self._tokens += 1
        self._waiting[self._tokens] = waiting
        caller = waiting[0].request.from_.uri.user or ""
        self._post(ReplacementCalled(leg, self._tokens, caller[:64]))

    def take(self, token: int) -> WaitingCaller | None:
        """Remove and return a waiting caller, which joins the call now."""
        return self._waiting.pop(token, None)

    def release(self) -> None:
        """Decline all waiting callers: the call is over."""
        for token in list(self._waiting):
            self._decline(do.RefuseReplacement(token))

    def _accept(self, effect: do.AcceptTransfer) -> None:
        self._sip.accept_refer(effect.leg)

    def _refuse(self, effect: do.RefuseTransfer) -> None:
        self._sip.refuse_refer(effect.leg, effect.status)

    def _tell(self, effect: do.TellTransfer) -> None:
        self._sip.notify_refer(effect.leg, effect.status)

    def _refer(self, effect: do.ReferLeg) -> None:
        try:
            if not self._sip.refer(effect.leg, effect.target):
                self._post_outcome(LegReferred(effect.leg, 603))
        except InvalidValue:
            self._post_outcome(LegReferred(effect.leg, 400))

    def _find(self, effect: do.FindPartner) -> None:
        leg_ref = self._registry.find(effect.replaces, self._record)
        self._post_outcome(PartnerMissing() if leg_ref is None else PartnerFound(*leg_ref))

    def _ask(self, effect: do.AskPartner) -> None:
        own = self._record.call_sid
        if self._registry.join(own, effect.call_sid):
            self._registry.post(effect.call_sid, JoinRequested(own, effect.leg))
        else:
            self._post_outcome(PartnerRefused())

    def _answer_partner(self, effect: do.AnswerPartner) -> None:
        own = self._record.call_sid
        if effect.leg is None:
            self._registry.unjoin(own, effect.call_sid)
            self._registry.post(effect.call_sid, PartnerRefused())
        else:
            self._registry.post(effect.call_sid, PartnerReady(own, effect.leg))

    def _link_partner(self, effect: do.LinkPartner) -> None:
        partner = self._registry.get(effect.call_sid)
        if partner is not None:
            self._media.audio.link_across(effect.leg, partner.media.audio, effect.other)

    def _pass_digit(self, effect: do.PassDigit) -> None:
        digit = PartnerDigit(effect.digit, effect.duration_ms, effect.in_band)
        self._registry.post_to_partner(self._record.call_sid, digit)

    def _decline(self, effect: do.RefuseReplacement) -> None:
        waiting = self._waiting.pop(effect.token, None)
        if waiting is not None:
            waiting[0].reject(603)


TRANSFER_EFFECTS: Final[dict[type[Effect], Callable[[TransferPerformer, Any], None]]] = {
    do.AcceptTransfer: TransferPerformer._accept,
    do.RefuseTransfer: TransferPerformer._refuse,
    do.TellTransfer: TransferPerformer._tell,
    do.ReferLeg: TransferPerformer._refer,
    do.FindPartner: TransferPerformer._find,
    do.AskPartner: TransferPerformer._ask,
    do.AnswerPartner: TransferPerformer._answer_partner,
    do.LinkPartner: TransferPerformer._link_partner,
    do.PassDigit: TransferPerformer._pass_digit,
    do.RefuseReplacement: TransferPerformer._decline,
}
