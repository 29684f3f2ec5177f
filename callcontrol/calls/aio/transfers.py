"""Performs the transfer effects of a call: REFERs, joined calls, callers that replace a party."""

from collections.abc import Callable
from typing import Any, Final

from callcontrol.calls import effects as do
from callcontrol.calls.aio.context import CallContext
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.calls.aio.sip_legs import SipLegs
from callcontrol.calls.events import (
    Event,
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
from callcontrol.models import CallRecord, Carrier, Gateway
from callcontrol.trunks.inbound_headers import Received
from sip import InvalidValue
from sip.aio import InboundSession

Newcomer = tuple[InboundSession, tuple[Carrier, Gateway], Received]
"""A caller waiting to join the call, with its trunk and the headers of its INVITE."""


class TransferPerformer:
    """Performs the transfer effects of one call."""

    def __init__(
        self,
        context: CallContext,
        record: CallRecord,
        sip: SipLegs,
        media: MediaLegs,
        post: Callable[[Event], None],
        follow: Callable[[Event], None],
    ) -> None:
        self._switchboard = context.switchboard
        self._record = record
        self._sip = sip
        self._media = media
        self._post = post
        self._follow = follow
        self._waiting: dict[int, Newcomer] = {}
        self._tokens = 0

    def perform(self, effect: Any) -> None:
        """Perform one effect."""
        PERFORMERS[type(effect)](self, effect)

    def wait(self, leg: LegId, newcomer: Newcomer) -> None:
        """Queue a caller until the call decides whether it may replace a leg."""
        self._tokens += 1
        self._waiting[self._tokens] = newcomer
        caller = newcomer[0].request.from_.uri.user or ""
        self._post(ReplacementCalled(leg, self._tokens, caller[:64]))

    def take(self, token: int) -> Newcomer | None:
        """Remove and return a waiting caller, which joins the call now."""
        return self._waiting.pop(token, None)

    def release(self) -> None:
        """Decline all waiting callers, and leave the joined call."""
        for token in list(self._waiting):
            self._decline(do.RefuseReplacement(token))
        self._switchboard.leave(self._record.call_sid)

    def _accept(self, effect: do.AcceptTransfer) -> None:
        self._sip.accept_refer(effect.leg)

    def _refuse(self, effect: do.RefuseTransfer) -> None:
        self._sip.refuse_refer(effect.leg, effect.status)

    def _tell(self, effect: do.TellTransfer) -> None:
        self._sip.tell_refer(effect.leg, effect.status)

    def _refer(self, effect: do.ReferLeg) -> None:
        try:
            if not self._sip.refer(effect.leg, effect.target):
                self._follow(LegReferred(effect.leg, 603))
        except InvalidValue:
            self._follow(LegReferred(effect.leg, 400))

    def _find(self, effect: do.FindPartner) -> None:
        place = self._switchboard.find(effect.replaces, self._record)
        self._follow(PartnerMissing() if place is None else PartnerFound(*place))

    def _ask(self, effect: do.AskPartner) -> None:
        own = self._record.call_sid
        if self._switchboard.pair(own, effect.call_sid):
            self._switchboard.post(effect.call_sid, JoinRequested(own, effect.leg))
        else:
            self._follow(PartnerRefused())

    def _answer_partner(self, effect: do.AnswerPartner) -> None:
        own = self._record.call_sid
        if effect.leg is None:
            self._switchboard.part(own, effect.call_sid)
            self._switchboard.post(effect.call_sid, PartnerRefused())
        else:
            self._switchboard.post(effect.call_sid, PartnerReady(own, effect.leg))

    def _link_partner(self, effect: do.LinkPartner) -> None:
        partner = self._switchboard.member(effect.call_sid)
        if partner is not None:
            self._media.audio.link_across(effect.leg, partner.media.audio, effect.other)

    def _pass_digit(self, effect: do.PassDigit) -> None:
        digit = PartnerDigit(effect.digit, effect.duration_ms, effect.in_band)
        self._switchboard.tell_partner(self._record.call_sid, digit)

    def _decline(self, effect: do.RefuseReplacement) -> None:
        newcomer = self._waiting.pop(effect.token, None)
        if newcomer is not None:
            newcomer[0].reject(603)


PERFORMERS: Final[dict[type, Callable[[TransferPerformer, Any], None]]] = {
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
