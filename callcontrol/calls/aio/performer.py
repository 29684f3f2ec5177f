"""Performs the effects of a call machine: dispatches each effect to its adapter."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.assistant.calls import PRODUCT as ASSISTANT
from callcontrol.assistant.calls import assistant_event
from callcontrol.assistant.sandbox import confined
from callcontrol.calls import effects as do
from callcontrol.calls.aio.agent import AgentLink
from callcontrol.calls.aio.agent_performer import AgentPerformer
from callcontrol.calls.aio.context import CallContext
from callcontrol.calls.aio.dtmf_info import InfoDigits
from callcontrol.calls.aio.log import CallLog
from callcontrol.calls.aio.media.conference_performer import ConferencePerformer
from callcontrol.calls.aio.media.leg import MediaRefusal
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.calls.aio.media.performer import MediaPerformer
from callcontrol.calls.aio.owner import Owner
from callcontrol.calls.aio.sip_legs import SipLegs
from callcontrol.calls.aio.transfers import TransferPerformer
from callcontrol.calls.effects import Effect
from callcontrol.calls.events import (
    Event,
    LegCancelled,
    LegFailed,
    LegRefused,
    MediaConnected,
    OfferTaken,
    RecordingEnded,
    ReserveExtended,
    ReserveRefused,
    RouteFound,
    RouteRefused,
)
from callcontrol.calls.hangup_cause import (
    CALL_REJECTED,
    NO_ROUTE_DESTINATION,
    NORMAL_CIRCUIT_CONGESTION,
    NORMAL_TEMPORARY_FAILURE,
    HangupCause,
)
from callcontrol.calls.records.dialog_journal import LegJournal
from callcontrol.calls.records.events import call_event
from callcontrol.errors import (
    DomainError,
    Forbidden,
    InsufficientBalance,
    NotFound,
    NumberNotOwned,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.ids import A_LEG, LegId
from callcontrol.instructions.aio import CallAsker
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.models import Account, CallRecord, Carrier, Gateway, PublishedEvent, WebhookEvent
from callcontrol.routing.redirects import redirects_of
from callcontrol.trunks.inbound_headers import Received
from callcontrol.trunks.media_policy import MediaPolicy
from sip import InvalidValue
from sip.aio import InboundSession


class Performer:
    """
    Performs the effects of one call.

    Its adapters hold no reference to it, so a call is freed as soon as it is over; see ``mailbox``.
    """

    def __init__(self, context: CallContext, record: CallRecord, account: Account, owner: Owner) -> None:
        self._context = context
        self._record = record
        self._owner = owner
        self._offer = b""
        self._warning: str | None = None
        """Warning header value for the rejection of the caller's offer."""
        self._trunks: dict[LegId, tuple[Carrier, Gateway]] = {}
        self.agent = AgentLink(
            context.destinations,
            account,
            owner.post,
            owner.spawn,
            context.streams,
            context.figures.streams,
        )
        self.media = MediaLegs(
            context.engine,
            partial(_report, owner),
            context.media,
            on_mark=self.agent.tell_mark,
            on_overflow=self.agent.tell_overflow,
            on_level=self.agent.tell_level,
            on_quality=context.quality.observe,
        )
        self.sip = SipLegs(
            context.user_agent,
            owner.post,
            partial(_late_answer, owner.log, self.media),
            session_id=record.call_sid.replace("-", ""),
            open_headers=context.forwarded_headers,
            call_sid=record.call_sid,
            on_gateway=context.on_gateway,
            service_route=context.service_route,
        )
        self.sip.private = record.product == MASKING
        self.sip.journal = LegJournal(record.dialogs, partial(context.records.update, record))
        self.asker = CallAsker(
            context.instructions,
            record,
            account,
            owner.log,
            owner.post,
            owner.spawn,
            context.masked_routes,
        )
        self._agents = AgentPerformer(record, self.media, self.agent)
        self.transfers = TransferPerformer(context, record, self.sip, self.media, owner.post, owner.follow)
        self._info_digits = InfoDigits(self.sip.send_digit, owner.post, owner.spawn)
        self._conferring = ConferencePerformer(context, record, self.media, owner)
        # Bound to the table, not to the performer, which is freed as soon as the call is over.
        self._sounds = MediaPerformer(
            context, record, self.media, owner, self._info_digits, partial(_takes_info, self._trunks)
        )

    def perform(self, effect: Effect) -> None:
        """Perform one effect; its outcome is posted to the owner."""
        perform = _PERFORMERS.get(type(effect))
        if perform is not None:
            perform(self, effect)
        elif self._sounds.performs(effect):
            self._sounds.perform(effect)
        elif self._conferring.performs(effect):
            self._conferring.perform(effect)
        elif self._agents.performs(effect):
            self._agents.perform(effect)
        else:
            self.transfers.perform(effect)

    def adopt(self, session: InboundSession, trunk: tuple[Carrier, Gateway], received: Received) -> None:
        """Adopt the session of a caller; it counts on its trunk until its leg's media is closed."""
        carrier, gateway = trunk
        self._hold_place(A_LEG, carrier, gateway)
        self.sip.adopt(A_LEG, session, carrier, received)
        self._offer = session.request.body

    def event(self, name: str, details: Any = None, shown: Any = None) -> list[WebhookEvent]:
        """Return an event for the customer; empty when it is not wanted."""
        if self._record.status_webhook_url is None:
            return []
        made = call_event(self._record, name, details or {}, event_id=new_id(), at=utc_now(), shown=shown)
        return [made] if made is not None else []

    def _events(self, name: str, details: Any, shown: Any) -> list[PublishedEvent]:
        """Return an event for the customer, and for its subscribers."""
        made: list[PublishedEvent] = [*self.event(name, details, shown)]
        if self._record.product == ASSISTANT:
            told = assistant_event(self._record, name, details, event_id=new_id(), at=utc_now())
            if told is not None:
                made.append(told)
        return made

    def release(self) -> None:
        """Free all sessions, streams, ports and trunk capacity still in use."""
        self.transfers.release()
        self._conferring.release()
        self._sounds.release()
        self.sip.release()
        self._info_digits.stop()
        self.asker.stop_all()
        self.agent.stop("stopped", "stream_hangup")
        self.media.close_all()
        for leg in list(self._trunks):
            self._leave_place(leg)

    # --- signalling -----------------------------------------------------------------------------------------

    def _take_offer(self, effect: do.TakeOffer) -> None:
        body, self._offer = self._offer, b""
        try:
            self.media.descriptions.take_offer(effect.leg, body, self._media_policy(effect.leg))
        except MediaRefusal as refusal:
            self._owner.log.info("offer refused: %s", refusal)
            self._warning = refusal.warning
            self._owner.follow(LegRefused(effect.leg, refusal.problem))
        else:
            self._owner.follow(OfferTaken(effect.leg))

    def _dial(self, effect: do.DialLeg) -> None:
        attempt = effect.attempt
        carrier, gateway = attempt.carrier, attempt.gateway
        # Other calls may have used up the capacity since the route was looked up.
        if self._context.capacity.wait_for_trunk_s(carrier, gateway, self._owner.now()) > 0.0:
            self._owner.follow(LegFailed(effect.leg, 503, "Service Unavailable", kind="full"))
            return
        try:
            offer = self.media.descriptions.offer(effect.leg, effect.like, MediaPolicy.of(carrier, gateway))
        except MediaRefusal as refusal:
            self._owner.follow(LegRefused(effect.leg, refusal.problem))
            return
        try:
            redirects = redirects_of(self._context.router, self._record.account_sid, attempt)
            call_id = self.sip.dial(effect.leg, attempt, effect.party, offer, effect.like, redirects)
        except InvalidValue as error:
            # The configuration of the carrier contains a name or a domain that no URI can hold.
            self._owner.log.warning("cannot dial through %s: %s", carrier.carrier_sid, error)
            self._owner.follow(LegFailed(effect.leg, 0, kind="resolve"))
            return
        self._hold_place(effect.leg, carrier, gateway)
        if effect.like is None:
            self.media.first_leg, self._record.sip_call_id = effect.leg, call_id
            self._owner.log.call_id = call_id
        self._context.traces.claim(self._record.call_sid, "a" if effect.like is None else "b", call_id)

    def _take_in(self, effect: do.AdoptLeg) -> None:
        newcomer = self.transfers.take(effect.token)
        if newcomer is not None:
            session, trunk, received = newcomer
            self._hold_place(effect.leg, *trunk)
            self.sip.take_in(effect.leg, session, trunk[0], received)
            self._offer = session.request.body

    def _ring(self, effect: do.RingLeg) -> None:
        body = self.media.descriptions.tell(effect.leg) if effect.early_media else b""
        self.sip.ring(effect.leg, effect.status, body)

    def _answer(self, effect: do.AnswerLeg) -> None:
        if self.sip.answer(effect.leg, self.media.descriptions.tell(effect.leg)):
            self.media.watch(effect.leg)
        else:
            # The event that reports it may be queued behind others, such as the end of the call.
            self._owner.follow(LegCancelled(effect.leg))

    def _reject(self, effect: do.RejectLeg) -> None:
        self.sip.reject(effect.leg, effect.status, effect.cause, self._warning)

    def _hang_up(self, effect: do.HangUpLeg) -> None:
        self.sip.hang_up(effect.leg, effect.cause)

    # --- media ----------------------------------------------------------------------------------------------

    def _connect(self, effect: do.ConnectMedia) -> None:
        try:
            self.media.descriptions.apply_answer(effect.leg, effect.body)
        except MediaRefusal as refusal:
            self._owner.log.info("answer refused: %s", refusal)
            if not effect.early:
                self._owner.follow(LegRefused(effect.leg, "codec"))
            return
        if not effect.early:
            self.media.watch(effect.leg)
            self._owner.follow(MediaConnected(effect.leg))

    def _answer_offer(self, effect: do.AnswerOffer) -> None:
        try:
            answer = self.media.descriptions.answer_offer(effect.leg, effect.body)
        except MediaRefusal as refusal:
            self._owner.log.info("new offer refused: %s", refusal)
            self.sip.reject_offer(effect.leg, refusal.status, refusal.warning)
        else:
            self.sip.accept_offer(effect.leg, answer)

    def _close_media(self, effect: do.CloseMedia) -> None:
        self.media.close(effect.leg)
        self._leave_place(effect.leg)

    def _hold_place(self, leg: LegId, carrier: Carrier, gateway: Gateway) -> None:
        self._context.capacity.enter_trunk(carrier, gateway, self._owner.now())
        self._trunks[leg] = (carrier, gateway)

    def _leave_place(self, leg: LegId) -> None:
        trunk = self._trunks.pop(leg, None)
        if trunk is not None:
            self._context.capacity.leave_trunk(*trunk)

    def _media_policy(self, leg: LegId) -> MediaPolicy:
        trunk = self._trunks.get(leg)
        return MediaPolicy.of(*trunk) if trunk is not None else MediaPolicy()

    # --- the customer's server ------------------------------------------------------------------------------

    def _ask_webhook(self, effect: do.AskWebhook) -> None:
        self.asker.ask(effect)

    def _route_caller(self, effect: do.RouteCaller) -> None:
        self.asker.route(effect)

    def _stop_asking(self, effect: do.StopAsking) -> None:
        self.asker.stop(effect.number)

    # --- routing, time, money, records ----------------------------------------------------------------------

    def _find_route(self, effect: do.FindRoute) -> None:
        try:
            attempts = self._context.router.attempts(
                self._record.account_sid, confined(self._record, effect.party), self._owner.now()
            )
        except DomainError as refusal:
            self._owner.log.info("no route: %s", refusal.message)
            self._owner.follow(RouteRefused(_cause_of(refusal), refusal.message))
        else:
            self._owner.follow(RouteFound(attempts))

    def _rest_gateway(self, effect: do.RestGateway) -> None:
        self._context.router.gateways.failed(effect.gateway_sid, self._owner.now(), effect.rest_s)

    def _arm(self, effect: do.Arm) -> None:
        self._owner.arm(effect.timer, effect.delay_s)

    def _disarm(self, effect: do.Disarm) -> None:
        self._owner.disarm(effect.timer)

    def _extend(self, effect: do.ExtendReserve) -> None:
        self._owner.spawn(self._extend_reserve(effect.total_paise))

    async def _extend_reserve(self, total_paise: int) -> None:
        try:
            await self._context.wallets.extend(self._record.call_sid, total_paise)
        except InsufficientBalance:
            self._context.figures.wallet_failures["extend"] += 1
            self._owner.post(ReserveRefused())
            return
        except DomainError as failure:
            # Active calls outlive a failing database; the settlement charges what the wallet then has.
            self._context.figures.wallet_failures["unavailable"] += 1
            self._owner.log.warning("reserve not extended: %s", failure.message)
        self._owner.post(ReserveExtended(total_paise))

    def _save(self, effect: do.Save) -> None:
        events = self._events(effect.event, effect.details, effect.shown) if effect.event is not None else []
        self._context.records.update(self._record, events=events)

    def _transcribe(self, effect: do.Transcribe) -> None:
        if self._context.transcripts is not None:
            self._context.transcripts.add(self._record, effect.segment)
            # The record counts the segments, for a process that recovers the call after a crash.
            self._context.records.update(self._record)

    def _finish(self, effect: do.Finish) -> None:
        record = self._record
        record.price_paise = effect.charge_paise
        record.quality = self.media.quality()
        events = self.event("call.completed")
        self._context.records.finish(record, charge_paise=effect.charge_paise, events=events)
        self.transfers.release()
        self._owner.closed()


def _report(owner: Owner, event: Event) -> None:
    """Post a media event to the call; log a failed recording for the operator."""
    if isinstance(event, RecordingEnded) and event.problem is not None:
        owner.log.warning("the recording failed: %s (%s)", event.problem, event.path)
    owner.post(event)


def _takes_info(trunks: Mapping[LegId, tuple[Carrier, Gateway]], leg: LegId) -> bool:
    trunk = trunks.get(leg)
    return trunk is not None and trunk[0].dtmf_type == "info"


def _late_answer(log: CallLog, media: MediaLegs, leg: LegId, body: bytes) -> None:
    try:
        media.descriptions.apply_answer(leg, body)
    except MediaRefusal as refusal:
        log.info("late answer refused: %s", refusal)


def _cause_of(refusal: DomainError) -> HangupCause:
    if isinstance(refusal, Forbidden | NumberNotOwned):
        return CALL_REJECTED
    if isinstance(refusal, ValidationFailed | NotFound):
        return NO_ROUTE_DESTINATION
    return NORMAL_CIRCUIT_CONGESTION if isinstance(refusal, ServiceUnavailable) else NORMAL_TEMPORARY_FAILURE


_PERFORMERS: Final[dict[type, Callable[[Performer, Any], None]]] = {
    do.TakeOffer: Performer._take_offer,
    do.DialLeg: Performer._dial,
    do.AdoptLeg: Performer._take_in,
    do.RingLeg: Performer._ring,
    do.AnswerLeg: Performer._answer,
    do.RejectLeg: Performer._reject,
    do.HangUpLeg: Performer._hang_up,
    do.ConnectMedia: Performer._connect,
    do.AnswerOffer: Performer._answer_offer,
    do.CloseMedia: Performer._close_media,
    do.AskWebhook: Performer._ask_webhook,
    do.RouteCaller: Performer._route_caller,
    do.StopAsking: Performer._stop_asking,
    do.FindRoute: Performer._find_route,
    do.RestGateway: Performer._rest_gateway,
    do.Arm: Performer._arm,
    do.Disarm: Performer._disarm,
    do.ExtendReserve: Performer._extend,
    do.Save: Performer._save,
    do.Transcribe: Performer._transcribe,
    do.Finish: Performer._finish,
}
