"""Performs the effects of a call machine: dispatches each effect to the part that performs it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from callcontrol.aio.tokens import new_id, unix_s, utc_now
from callcontrol.calls.aio.agent import AGENT_EFFECTS, AgentPerformer
from callcontrol.calls.aio.context import ActiveCall, CallContext, EffectPerformer
from callcontrol.calls.aio.mailbox import CallLogger, CallMailbox
from callcontrol.calls.aio.media.conferences import CONFERENCE_EFFECTS, ConferencePerformer
from callcontrol.calls.aio.media.leg import MediaRefusal
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.calls.aio.media.negotiation import Descriptions, media_policy
from callcontrol.calls.aio.media.performer import MEDIA_EFFECTS, MediaPerformer
from callcontrol.calls.aio.media.tracks import TRACK_EFFECTS, TrackPerformer
from callcontrol.calls.aio.on_net import on_net_call
from callcontrol.calls.aio.places import LegPlaces
from callcontrol.calls.aio.sip_legs import SipLegs
from callcontrol.calls.aio.sip_trace import on_net_key
from callcontrol.calls.aio.transcription import TRANSCRIPTION_EFFECTS, TranscriptionPerformer
from callcontrol.calls.aio.transfers import TRANSFER_EFFECTS, TransferPerformer
from callcontrol.calls.effects import Effect, agent, instructions, media, records, signalling, transfers
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import ReserveExtended, ReserveRefused, RouteFound, RouteRefused
from callcontrol.calls.events.commands import HangupRequested
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
from callcontrol.calls.recording import READY
from callcontrol.calls.records.call_info import info_body, transcript_info
from callcontrol.calls.records.journal import EntryKind
from callcontrol.calls.steps.send_message import SendChatMessage
from callcontrol.calls.transcription import SENTENCE_EVENT
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
from callcontrol.trunks.inbound_invite import Caller, Received
from callcontrol.trunks.places import Limits
from media.types import SrtpKey
from sip import InvalidValue
from sip.aio import InboundSession

PartT = TypeVar("PartT", bound=EffectPerformer)


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
        self._srtp_keys: tuple[SrtpKey, ...] = ()
        self._warning: str | None = None
        """Warning header value for the rejection of the caller's offer."""
        self.media = MediaLegs(
            context.engine, partial(_report, mailbox), context.media, context.quality.observe
        )
        self._descriptions = self.media.descriptions
        self.sip = SipLegs(
            context,
            record,
            mailbox.post,
            partial(_late_answer, mailbox.log, self._descriptions),
            private=not policy.passes_headers,
        )
        self._call = ActiveCall(context, record, account, mailbox, self.sip, self.media)
        self._trunks = self._call.trunks
        self.places = LegPlaces(context.services.places, record.call_sid)
        self._parts: dict[type[EffectPerformer], EffectPerformer] = {}

    def perform(self, effects: Iterable[Effect]) -> None:
        """Perform effects in order; outcomes are posted to the mailbox. One that fails ends the call."""
        for effect in effects:
            try:
                EFFECTS.get(type(effect), Performer._perform_above)(self, effect)
            except Exception:
                # Whatever the defect, it ends this call alone. The other effects, of which one may write its
                # record or free its media, are performed nevertheless.
                self._mailbox.log.exception("%s failed; ending the call", type(effect).__name__)
                self._mailbox.post_outcome(HangupRequested("system", NORMAL_TEMPORARY_FAILURE))

    def _perform_above(self, effect: Effect) -> None:
        """Perform an effect that a feature above the calls performs."""
        step = STEPS_OF_EFFECTS.get(type(effect))
        if step is not None:
            self._note("step", *step(effect))
        self._context.services.features.effects[type(effect)](self._call, effect)

    def part(self, kind: type[PartT]) -> PartT:
        """Return the performer of a topic."""
        made = self._parts.get(kind)
        if not isinstance(made, kind):
            made = self._parts[kind] = kind(self._call)
        return made

    def adopt(
        self,
        session: InboundSession,
        trunk: tuple[Carrier, Gateway],
        received: Received,
        caller: Caller | None,
    ) -> None:
        """Adopt the session of a caller; it counts on its trunk until its leg's media is closed."""
        carrier, gateway = trunk
        self._call.caller = caller
        self._hold_place(A_LEG, carrier, gateway)
        self._offer = session.request.body
        own = on_net_call(session)
        self.sip.adopt(A_LEG, session, carrier, received, own)
        self._srtp_keys = () if own is None else own.srtp_keys

    def event(self, name: str, details: Any = None, shown: Any = None) -> list[WebhookEvent]:
        """Return an event for the customer; empty when it is not wanted."""
        # Asked before, so that no identifier is drawn for an event that is not sent.
        if self._record.status_webhook_url is None or self._policy.event_name(self._record, name) is None:
            return []
        made = self._policy.webhook_event(
            self._record, name, details or {}, event_id=new_id(), at=utc_now(), shown=shown
        )
        return [made] if made is not None else []

    def _note(self, kind: EntryKind, name: str, details: Mapping[str, Any]) -> None:
        self._context.services.calls.journal.note(self._record.call_sid, unix_s(), kind, name, details)

    @property
    def _is_told(self) -> bool:
        """True when somebody may be told of the events of the call: most calls have no webhook."""
        return self._record.status_webhook_url is not None or self._policy.subscriber_event is not None

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
        self._mailbox.cancel_helpers()
        for part in self._parts.values():
            part.release()
        self._context.registry.leave(self._record.call_sid)
        self.sip.release()
        self.media.close_all()
        for leg in list(self._trunks):
            self._leave_place(leg)
        self.places.leave_all()

    # --- signalling -----------------------------------------------------------------------------------------

    def _take_offer(self, effect: signalling.TakeOffer) -> None:
        body, self._offer = self._offer, b""
        policy = self._media_policy(effect.leg)
        try:
            self._descriptions.take_offer(effect.leg, body, policy)
        except MediaRefusal as refusal:
            self._mailbox.log.info("offer refused: %s", refusal)
            self._warning = refusal.warning
            self._mailbox.post_outcome(LegRefused(effect.leg, refusal.problem))
        else:
            self._mailbox.post_outcome(OfferTaken(effect.leg))

    def _dial(self, effect: signalling.DialLeg) -> None:
        carrier, gateway = effect.attempt.carrier, effect.attempt.gateway
        needed = self.places.needed(effect.leg, carrier, gateway)
        # Other calls may have used up the capacity since the route was looked up.
        if self._context.capacity.wait_for_trunk_s(carrier, gateway, self._mailbox.now()) > 0.0:
            self._mailbox.post_outcome(_full(effect.leg))
        elif needed:
            self._mailbox.spawn_helper(self._dial_with_place(effect, needed))
        else:
            self._invite(effect, self._mailbox.post_outcome)

    async def _dial_with_place(self, effect: signalling.DialLeg, limits: Limits) -> None:
        taken = await self.places.take(effect.leg, limits)
        if taken:
            self._invite(effect, self._mailbox.post)
        elif taken is not None:
            self._mailbox.post(_full(effect.leg))

    def _invite(self, effect: signalling.DialLeg, post: Callable[[Event], None]) -> None:
        attempt = effect.attempt
        carrier, gateway = attempt.carrier, attempt.gateway
        try:
            offer = self._descriptions.offer(effect.leg, effect.peer_leg, media_policy(carrier, gateway))
        except MediaRefusal as refusal:
            post(LegRefused(effect.leg, refusal.problem))
            return
        try:
            redirects = self._context.router.redirects(self._record.account_sid, attempt)
            call_id = self.sip.dial(effect.leg, attempt, effect.party, offer, effect.peer_leg, redirects)
        except InvalidValue as error:
            # The configuration of the carrier contains a name or a domain that no URI can hold.
            self._mailbox.log.warning("cannot dial through %s: %s", carrier.carrier_sid, error)
            post(LegFailed(effect.leg, 0, kind="resolve"))
            return
        self._hold_place(effect.leg, carrier, gateway)
        if effect.peer_leg is None:
            self.media.first_leg, self._record.sip_call_id = effect.leg, call_id
            self._mailbox.log.call_id = call_id
        key = on_net_key(call_id) if attempt.on_net else call_id
        self._context.traces.claim(self._record.call_sid, "a" if effect.peer_leg is None else "b", key)

    def _take_in(self, effect: transfers.AdoptLeg) -> None:
        waiting = self.part(TransferPerformer).take(effect.token)
        if waiting is not None:
            session, trunk, received = waiting
            self._hold_place(effect.leg, *trunk)
            self.places.note(effect.leg, *trunk)
            self.sip.take_in(effect.leg, session, trunk[0], received)
            self._offer = session.request.body

    def _ring(self, effect: signalling.RingLeg) -> None:
        body = self._descriptions.tell(effect.leg) if effect.early_media else b""
        self.sip.ring(effect.leg, effect.status, body)

    def _answer(self, effect: signalling.AnswerLeg) -> None:
        if self.sip.answer(effect.leg, self._descriptions.tell(effect.leg)):
            self.media.watch(effect.leg)
        else:
            # The event that reports it may be queued behind others, such as the end of the call.
            self._mailbox.post_outcome(LegCancelled(effect.leg))

    def _reject(self, effect: signalling.RejectLeg) -> None:
        self.sip.reject(effect.leg, effect.status, effect.cause, self._warning)

    def _hang_up(self, effect: signalling.HangUpLeg) -> None:
        self.sip.hang_up(effect.leg, effect.cause)

    # --- media ----------------------------------------------------------------------------------------------

    def _link(self, effect: media.LinkMedia) -> None:
        self.media.audio.link(effect.leg, effect.other)

    def _connect(self, effect: media.ConnectMedia) -> None:
        try:
            self._descriptions.apply_answer(effect.leg, effect.body, self.sip.take_key(effect.leg))
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
            answer = self._descriptions.answer_offer(effect.leg, effect.body)
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
        self.places.leave(leg)
        trunk = self._trunks.pop(leg, None)
        if trunk is not None:
            self._context.capacity.leave_trunk(*trunk)

    def _media_policy(self, leg: LegId) -> MediaPolicy:
        trunk = self._trunks.get(leg)
        policy = media_policy(*trunk) if trunk is not None else MediaPolicy()
        if leg == A_LEG and self._srtp_keys:
            policy = replace(policy, srtp_keys=self._srtp_keys)
        return policy

    # --- routing, time, money, records ----------------------------------------------------------------------

    def _find_route(self, effect: records.FindRoute) -> None:
        try:
            confine = self._policy.confine
            party = effect.party if confine is None else confine(self._record, effect.party)
            attempts = self._context.router.attempts(self._record.account_sid, party, self._mailbox.now())
        except DomainError as refusal:
            self._mailbox.log.info("no route: %s", refusal.message)
            self._mailbox.post_outcome(RouteRefused(_cause_of(refusal), refusal.message))
        else:
            self._mailbox.post_outcome(RouteFound(attempts))

    def _rest_gateway(self, effect: records.RestGateway) -> None:
        if effect.gateway_sid:  # An on-net call has no gateway that could rest.
            self._context.router.gateways.failed(effect.gateway_sid, self._mailbox.now(), effect.rest_s)

    def _arm(self, effect: records.Arm) -> None:
        self._mailbox.arm(effect.timer, effect.delay_s)

    def _disarm(self, effect: records.Disarm) -> None:
        self._mailbox.disarm(effect.timer)

    def _extend(self, effect: records.ExtendReserve) -> None:
        self._mailbox.spawn(self._extend_reserve(effect.total_paise))

    async def _extend_reserve(self, total_paise: int) -> None:
        try:
            await self._context.services.wallets.extend(self._record.call_sid, total_paise)
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
        services = self._context.services
        events: list[PublishedEvent] = []
        if effect.event == SENTENCE_EVENT:
            events = self._hook_events(effect)
        elif effect.event is not None:
            self._note("event", effect.event, effect.details)
        if effect.event == READY and services.uploads is not None:
            services.uploads.add(self._record, effect.details)
        elif effect.event is not None and self._is_told:
            events += self._events(effect.event, effect.details, effect.shown)
        services.calls.update(self._record, events=events)

    def _hook_events(self, effect: records.Save) -> list[PublishedEvent]:
        """Return a sentence for the hook of an application for jambonz, if it has one."""
        if effect.hook_url is None:
            return []
        body = info_body(transcript_info(self._record, effect.details["transcript"]))
        return [
            WebhookEvent(
                event_id=new_id(),
                account_sid=self._record.account_sid,
                event=SENTENCE_EVENT,
                url=effect.hook_url,
                body=body,
                created_at=utc_now(),
                call_sid=self._record.call_sid,
            )
        ]

    def _transcribe(self, effect: records.Transcribe) -> None:
        services = self._context.services
        if services.add_segment is not None:
            services.add_segment(self._record, effect.segment)
            # The record counts the segments, for a process that recovers the call after a crash.
            services.calls.update(self._record)

    def _finish(self, effect: records.Finish) -> None:
        record = self._record
        record.price_paise = effect.charge_paise
        record.quality = self.media.quality()
        events = self.event("call.completed")
        self._note("event", "call.completed", {"hangup_cause": record.hangup_cause})
        self._context.services.calls.journal.keep_quality(record.call_sid, self.media.histories())
        self._context.services.calls.finish(record, charge_paise=effect.charge_paise, events=events)
        if TransferPerformer in self._parts:
            self._parts[TransferPerformer].release()
        self._context.registry.leave(record.call_sid)
        self._mailbox.closed()


def _report(mailbox: CallMailbox, event: Event) -> None:
    """Post a media event to the call; log a failed recording for the operator."""
    if isinstance(event, RecordingEnded) and event.problem is not None:
        mailbox.log.warning("the recording failed: %s (%s)", event.problem, event.path)
    mailbox.post(event)


def _late_answer(log: CallLogger, descriptions: Descriptions, leg: LegId, body: bytes) -> None:
    try:
        descriptions.apply_answer(leg, body)
    except MediaRefusal as refusal:
        log.info("late answer refused: %s", refusal)


def _full(leg: LegId) -> LegFailed:
    return LegFailed(leg, 503, "Service Unavailable", kind="full")


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
    media.LinkMedia: Performer._link,
    media.AnswerOffer: Performer._answer_offer,
    media.CloseMedia: Performer._close_media,
    records.FindRoute: Performer._find_route,
    records.RestGateway: Performer._rest_gateway,
    records.Arm: Performer._arm,
    records.Disarm: Performer._disarm,
    records.ExtendReserve: Performer._extend,
    records.Save: Performer._save,
    records.Transcribe: Performer._transcribe,
    records.Finish: Performer._finish,
}
StepOf = Callable[[Any], tuple[str, Mapping[str, Any]]]
STEPS_OF_EFFECTS: Final[Mapping[type[Effect], StepOf]] = {
    media.PlayAudio: lambda effect: ("play", {"leg": effect.leg, "url": effect.url}),
    media.PlaySounds: lambda effect: ("play", {"leg": effect.leg}),
    media.PlayTrack: lambda effect: ("dub", {"leg": effect.leg, "track": effect.track, "url": effect.url}),
    # Neither a text nor digits: they may be a secret of the parties.
    media.Speak: lambda effect: ("say", {"leg": effect.leg, "language": effect.language}),
    media.SendDigits: lambda effect: ("send_digits", {"leg": effect.leg, "count": len(effect.digits)}),
    media.StartRecording: lambda effect: ("record", {"leg": effect.leg, "channels": effect.channels}),
    media.TranscribeLeg: lambda effect: ("transcribe", {"leg": effect.leg, "language": effect.language}),
    media.StartMessage: lambda effect: ("record_message", {"leg": effect.leg}),
    media.LinkMedia: lambda effect: ("bridge", {"leg": effect.leg, "other": effect.other}),
    media.EnterConference: lambda effect: ("conference", {"leg": effect.leg, "name": effect.name}),
    agent.OpenAgent: lambda effect: ("stream", {"url": effect.choice.url, "stream_sid": effect.stream_sid}),
    agent.StopAgent: lambda effect: ("stream_end", {"reason": effect.reason}),
    instructions.AskWebhook: lambda effect: (
        "ask",
        {"url": effect.url, "method": effect.method, "event": effect.event},
    ),
    SendChatMessage: lambda effect: ("message", {"to": effect.to}),
    signalling.DialLeg: lambda effect: ("dial", {"leg": effect.leg}),
    media.MuteLeg: lambda effect: (
        "mute" if effect.says or effect.hears else "unmute",
        {"leg": effect.leg, "says": effect.says, "hears": effect.hears},
    ),
}
"""Name and details of the entry in the journal for the effects that are steps of a call."""

Perform = Callable[[Any, Any], None]
TABLES: Final[tuple[tuple[type[EffectPerformer] | None, Mapping[type[Effect], Perform]], ...]] = (
    (None, _OWN_EFFECTS),
    (MediaPerformer, MEDIA_EFFECTS),
    (ConferencePerformer, CONFERENCE_EFFECTS),
    (AgentPerformer, AGENT_EFFECTS),
    (TransferPerformer, TRANSFER_EFFECTS),
    (TranscriptionPerformer, TRANSCRIPTION_EFFECTS),
    (TrackPerformer, TRACK_EFFECTS),
)


def _noted(step: StepOf, perform: Perform) -> Perform:
    """Note an effect that is a step of a call in the journal before it is performed."""

    def note_and_perform(performer: Performer, effect: Effect) -> None:
        performer._note("step", *step(effect))
        perform(performer, effect)

    return note_and_perform


def _by_part(kind: type[EffectPerformer], perform: Perform) -> Perform:
    """Perform an effect by the performer of its topic."""
    return lambda performer, effect: perform(performer.part(kind), effect)


def _performers() -> Iterator[tuple[type[Effect], Perform]]:
    for kind, table in TABLES:
        for effect, perform in table.items():
            whole = perform if kind is None else _by_part(kind, perform)
            step = STEPS_OF_EFFECTS.get(effect)
            yield effect, whole if step is None else _noted(step, whole)


EFFECTS: Final[dict[type[Effect], Perform]] = dict(_performers())
"""Functions that perform effects, called with the performer and the effect."""
