"""Performs the effects of a call machine: dispatches each effect to the part that performs it."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Final

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.agent import AGENT_EFFECTS, AGENT_NOTIFICATIONS, AgentLink, AgentPerformer
from callcontrol.calls.aio.context import CallContext
from callcontrol.calls.aio.dtmf import InfoDigits
from callcontrol.calls.aio.mailbox import CallLogger
from callcontrol.calls.aio.mailbox import CallMailbox
from callcontrol.calls.aio.media.conferences import CONFERENCE_EFFECTS, ConferencePerformer
from callcontrol.calls.aio.media.leg import MediaRefusal
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.calls.aio.media.performer import MEDIA_EFFECTS, MediaPerformer
from callcontrol.calls.aio.sip_legs import SipLegs
from callcontrol.calls.aio.transfers import TRANSFER_EFFECTS, TransferPerformer
from callcontrol.calls.effects import Effect, instructions, media, records, signalling, transfers
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import ReserveExtended, ReserveRefused, RouteFound, RouteRefused
from callcontrol.calls.events.legs import LegCancelled, LegFailed, LegRefused, MediaConnected, OfferTaken
from callcontrol.calls.events.media import RecordingEnded
from callcontrol.calls.hangup_cause import (
    CALL_REJECTED,
    NO_ROUTE_DESTINATION,
    NORMAL_CIRCUIT_CONGESTION,
    NORMAL_TEMPORARY_FAILURE,
    HangupCause,
)
from callcontrol.calls.product import ProductPolicy
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
from callcontrol.models import Account, CallRecord, Carrier, Gateway, PublishedEvent, WebhookEvent
from callcontrol.models.trunks import MediaPolicy
from callcontrol.trunks.inbound_invite import Received
from sip import InvalidValue
from sip.aio import InboundSession


class Performer:
    """
    Performs the effects of one call.

    Its parts hold no reference to it, so a call is freed as soon as it is over; see ``mailbox``.
    """

    def __init__(
        self,
        context: CallContext,
        record: CallRecord,
        policy: ProductPolicy,
        account: Account,
        mailbox: CallMailbox,
    ) -> None:
        self._context = context
        self._record = record
        self._policy = policy
        self._mailbox = mailbox
        self._offer = b""
        self._warning: str | None = None
        """Warning header value for the rejection of the caller's offer."""
        self._trunks: dict[LegId, tuple[Carrier, Gateway]] = {}
        self.agent = AgentLink(
            context.destinations,
            account,
            mailbox.post,
            mailbox.spawn,
            context.streams,
            context.metrics.streams,
        )
        self.media = MediaLegs(
            context.engine,
            partial(_report, mailbox),
            context.media,
            on_mark=self.agent.tell_mark,
            on_overflow=self.agent.tell_overflow,
            on_level=self.agent.tell_level,
            on_quality=context.quality.observe,
        )
        self.sip = SipLegs(
            context,
            record,
            mailbox.post,
            partial(_late_answer, mailbox.log, self.media),
            private=not policy.passes_headers,
        )
        self.asker = context.instructions.for_call(
            record,
            account,
            mailbox.log,
            mailbox.post,
            mailbox.spawn,
            context.masked_routes,
        )
        self._agents = AgentPerformer(record, self.media.audio, self.agent)
        self.transfers = TransferPerformer(
            context, record, self.sip, self.media, mailbox.post, mailbox.post_outcome
        )
        self._info_digits = InfoDigits(self.sip.send_digit, mailbox.post, mailbox.spawn)
        self._conferences = ConferencePerformer(context.conferences, record, self.media, mailbox)
        # Bound to the table, not to the performer, which is freed as soon as the call is over.
        self._playback = MediaPerformer(
            context, record, self.media, mailbox, self._info_digits, partial(_takes_info, self._trunks)
        )

    def perform(self, effect: Effect) -> None:
        """Perform one effect; its outcome is posted to the mailbox."""
        part, perform = EFFECTS[type(effect)]
        perform(part(self), effect)

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
        made = call_event(
            self._record, name, details or {}, self._policy, event_id=new_id(), at=utc_now(), shown=shown
        )
        return [made] if made is not None else []

    def _events(self, name: str, details: Any, shown: Any) -> list[PublishedEvent]:
        """Return an event for the customer, and for its subscribers."""
        made: list[PublishedEvent] = [*self.event(name, details, shown)]
        if self._policy.subscriber_event is not None:
            told = self._policy.subscriber_event(self._record, name, details, event_id=new_id(), at=utc_now())
            if told is not None:
                made.append(told)
        return made

    def release(self) -> None:
        """Free all sessions, streams, ports and trunk capacity still in use."""
        self.transfers.release()
        self._conferences.release()
        self._playback.release()
        self.sip.release()
        self._info_digits.stop()
        self.asker.stop_all()
        self.agent.stop("stopped", "stream_hangup")
        self.media.close_all()
        for leg in list(self._trunks):
            self._leave_place(leg)

    # --- signalling -----------------------------------------------------------------------------------------

    def _take_offer(self, effect: signalling.TakeOffer) -> None:
        body, self._offer = self._offer, b""
        try:
            self.media.descriptions.take_offer(effect.leg, body, self._media_policy(effect.leg))
        except MediaRefusal as refusal:
            self._mailbox.log.info("offer refused: %s", refusal)
            self._warning = refusal.warning
            self._mailbox.post_outcome(LegRefused(effect.leg, refusal.problem))
        else:
            self._mailbox.post_outcome(OfferTaken(effect.leg))

    def _dial(self, effect: signalling.DialLeg) -> None:
        attempt = effect.attempt
        carrier, gateway = attempt.carrier, attempt.gateway
        # Other calls may have used up the capacity since the route was looked up.
        if self._context.capacity.wait_for_trunk_s(carrier, gateway, self._mailbox.now()) > 0.0:
            self._mailbox.post_outcome(LegFailed(effect.leg, 503, "Service Unavailable", kind="full"))
            return
        try:
            offer = self.media.descriptions.offer(
                effect.leg, effect.peer_leg, MediaPolicy.of(carrier, gateway)
            )
        except MediaRefusal as refusal:
            self._mailbox.post_outcome(LegRefused(effect.leg, refusal.problem))
            return
        try:
            redirects = self._context.router.redirects(self._record.account_sid, attempt)
            call_id = self.sip.dial(effect.leg, attempt, effect.party, offer, effect.peer_leg, redirects)
        except InvalidValue as error:
            # The configuration of the carrier contains a name or a domain that no URI can hold.
            self._mailbox.log.warning("cannot dial through %s: %s", carrier.carrier_sid, error)
            self._mailbox.post_outcome(LegFailed(effect.leg, 0, kind="resolve"))
            return
        self._hold_place(effect.leg, carrier, gateway)
        if effect.peer_leg is None:
            self.media.first_leg, self._record.sip_call_id = effect.leg, call_id
            self._mailbox.log.call_id = call_id
        self._context.traces.claim(self._record.call_sid, "a" if effect.peer_leg is None else "b", call_id)

    def _take_in(self, effect: transfers.AdoptLeg) -> None:
        waiting = self.transfers.take(effect.token)
        if waiting is not None:
            session, trunk, received = waiting
            self._hold_place(effect.leg, *trunk)
            self.sip.take_in(effect.leg, session, trunk[0], received)
            self._offer = session.request.body

    def _ring(self, effect: signalling.RingLeg) -> None:
        body = self.media.descriptions.tell(effect.leg) if effect.early_media else b""
        self.sip.ring(effect.leg, effect.status, body)

    def _answer(self, effect: signalling.AnswerLeg) -> None:
        if self.sip.answer(effect.leg, self.media.descriptions.tell(effect.leg)):
            self.media.watch(effect.leg)
        else:
            # The event that reports it may be queued behind others, such as the end of the call.
            self._mailbox.post_outcome(LegCancelled(effect.leg))

    def _reject(self, effect: signalling.RejectLeg) -> None:
        self.sip.reject(effect.leg, effect.status, effect.cause, self._warning)

    def _hang_up(self, effect: signalling.HangUpLeg) -> None:
        self.sip.hang_up(effect.leg, effect.cause)

    # --- media ----------------------------------------------------------------------------------------------

    def _connect(self, effect: media.ConnectMedia) -> None:
        try:
            self.media.descriptions.apply_answer(effect.leg, effect.body)
        except MediaRefusal as refusal:
            self._mailbox.log.info("answer refused: %s", refusal)
            if not effect.early:
                self._mailbox.post_outcome(LegRefused(effect.leg, "codec"))
            return
        if not effect.early:
            self.media.watch(effect.leg)
            self._mailbox.post_outcome(MediaConnected(effect.leg))

    def _answer_offer(self, effect: media.AnswerOffer) -> None:
        try:
            answer = self.media.descriptions.answer_offer(effect.leg, effect.body)
        except MediaRefusal as refusal:
            self._mailbox.log.info("new offer refused: %s", refusal)
            self.sip.reject_offer(effect.leg, refusal.status, refusal.warning)
        else:
            self.sip.accept_offer(effect.leg, answer)

    def _close_media(self, effect: media.CloseMedia) -> None:
        self.media.close(effect.leg)
        self._leave_place(effect.leg)

    def _hold_place(self, leg: LegId, carrier: Carrier, gateway: Gateway) -> None:
        self._context.capacity.enter_trunk(carrier, gateway, self._mailbox.now())
        self._trunks[leg] = (carrier, gateway)

    def _leave_place(self, leg: LegId) -> None:
        trunk = self._trunks.pop(leg, None)
        if trunk is not None:
            self._context.capacity.leave_trunk(*trunk)

    def _media_policy(self, leg: LegId) -> MediaPolicy:
        trunk = self._trunks.get(leg)
        return MediaPolicy.of(*trunk) if trunk is not None else MediaPolicy()

    # --- the customer's server ------------------------------------------------------------------------------

    def _ask_webhook(self, effect: instructions.AskWebhook) -> None:
        self.asker.ask(effect)

    def _route_caller(self, effect: instructions.RouteCaller) -> None:
        self.asker.route(effect)

    def _stop_asking(self, effect: instructions.StopAsking) -> None:
        self.asker.stop(effect.number)

    # --- routing, time, money, records ----------------------------------------------------------------------

    def _find_route(self, effect: records.FindRoute) -> None:
        try:
            attempts = self._context.router.attempts(
                self._record.account_sid,
                self._policy.confine(self._record, effect.party),
                self._mailbox.now(),
            )
        except DomainError as refusal:
            self._mailbox.log.info("no route: %s", refusal.message)
            self._mailbox.post_outcome(RouteRefused(_cause_of(refusal), refusal.message))
        else:
            self._mailbox.post_outcome(RouteFound(attempts))

    def _rest_gateway(self, effect: records.RestGateway) -> None:
        self._context.router.gateways.failed(effect.gateway_sid, self._mailbox.now(), effect.rest_s)

    def _arm(self, effect: records.Arm) -> None:
        self._mailbox.arm(effect.timer, effect.delay_s)

    def _disarm(self, effect: records.Disarm) -> None:
        self._mailbox.disarm(effect.timer)

    def _extend(self, effect: records.ExtendReserve) -> None:
        self._mailbox.spawn(self._extend_reserve(effect.total_paise))

    async def _extend_reserve(self, total_paise: int) -> None:
        try:
            await self._context.wallets.extend(self._record.call_sid, total_paise)
        except InsufficientBalance:
            self._context.metrics.wallet_failures["extend"] += 1
            self._mailbox.post(ReserveRefused())
            return
        except DomainError as failure:
            # Active calls outlive a failing database; the settlement charges what the wallet then has.
            self._context.metrics.wallet_failures["unavailable"] += 1
            self._mailbox.log.warning("reserve not extended: %s", failure.message)
        self._mailbox.post(ReserveExtended(total_paise))

    def _save(self, effect: records.Save) -> None:
        events = self._events(effect.event, effect.details, effect.shown) if effect.event is not None else []
        self._context.records.update(self._record, events=events)

    def _transcribe(self, effect: records.Transcribe) -> None:
        if self._context.transcripts is not None:
            self._context.transcripts.add(self._record, effect.segment)
            # The record counts the segments, for a process that recovers the call after a crash.
            self._context.records.update(self._record)

    def _finish(self, effect: records.Finish) -> None:
        record = self._record
        record.price_paise = effect.charge_paise
        record.quality = self.media.quality()
        events = self.event("call.completed")
        self._context.records.finish(record, charge_paise=effect.charge_paise, events=events)
        self.transfers.release()
        self._mailbox.closed()


def _report(mailbox: CallMailbox, event: Event) -> None:
    """Post a media event to the call; log a failed recording for the operator."""
    if isinstance(event, RecordingEnded) and event.problem is not None:
        mailbox.log.warning("the recording failed: %s (%s)", event.problem, event.path)
    mailbox.post(event)


def _takes_info(trunks: Mapping[LegId, tuple[Carrier, Gateway]], leg: LegId) -> bool:
    trunk = trunks.get(leg)
    return trunk is not None and trunk[0].dtmf_type == "info"


def _late_answer(log: CallLogger, media: MediaLegs, leg: LegId, body: bytes) -> None:
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


_OWN_EFFECTS: Final[dict[type[Effect], Callable[[Performer, Any], None]]] = {
    signalling.TakeOffer: Performer._take_offer,
    signalling.DialLeg: Performer._dial,
    transfers.AdoptLeg: Performer._take_in,
    signalling.RingLeg: Performer._ring,
    signalling.AnswerLeg: Performer._answer,
    signalling.RejectLeg: Performer._reject,
    signalling.HangUpLeg: Performer._hang_up,
    media.ConnectMedia: Performer._connect,
    media.AnswerOffer: Performer._answer_offer,
    media.CloseMedia: Performer._close_media,
    instructions.AskWebhook: Performer._ask_webhook,
    instructions.RouteCaller: Performer._route_caller,
    instructions.StopAsking: Performer._stop_asking,
    records.FindRoute: Performer._find_route,
    records.RestGateway: Performer._rest_gateway,
    records.Arm: Performer._arm,
    records.Disarm: Performer._disarm,
    records.ExtendReserve: Performer._extend,
    records.Save: Performer._save,
    records.Transcribe: Performer._transcribe,
    records.Finish: Performer._finish,
}
Perform = Callable[[Any, Any], None]
TABLES: Final[tuple[tuple[Callable[[Performer], Any], Mapping[type[Effect], Perform]], ...]] = (
    (lambda performer: performer, _OWN_EFFECTS),
    (attrgetter("_playback"), MEDIA_EFFECTS),
    (attrgetter("_conferences"), CONFERENCE_EFFECTS),
    (attrgetter("_agents"), AGENT_EFFECTS),
    (attrgetter("agent"), AGENT_NOTIFICATIONS),
    (attrgetter("transfers"), TRANSFER_EFFECTS),
)
EFFECTS: Final = {effect: (part, perform) for part, table in TABLES for effect, perform in table.items()}
"""Part of the performer that performs an effect, and its method."""
