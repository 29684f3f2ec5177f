"""
All calls of a process: the entry point for the API above and for SIP below.

``CallControl`` owns the SIP user agent, the media engine and every call's task.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Coroutine, Sequence
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from callcontrol.aio.tokens import utc_now
from callcontrol.calls.aio.context import CallContext, CallControlSettings, CallServices
from callcontrol.calls.aio.crash_recovery import CrashRecovery
from callcontrol.calls.aio.host_limits import REASONS
from callcontrol.calls.aio.inbound import Arrivals, trust_of
from callcontrol.calls.aio.media.conferences import Conferences
from callcontrol.calls.aio.media.leg import MediaSettings
from callcontrol.calls.aio.media.prompts import AudioSource, load_hold_music
from callcontrol.calls.aio.media.shared_conferences import SharedConferences
from callcontrol.calls.aio.on_net import OnNet
from callcontrol.calls.aio.outbound import Originator
from callcontrol.calls.aio.registry import CallRegistry
from callcontrol.calls.aio.runner import CallRunner
from callcontrol.calls.aio.sip_trace import TraceBook, TraceEntry
from callcontrol.calls.call import CallMachine
from callcontrol.calls.events.commands import HangupRequested, TransferCommand
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, SYSTEM_SHUTDOWN
from callcontrol.calls.inbound import Arrival
from callcontrol.calls.live.requests import FIELD_OF, LiveUpdate, commands_of
from callcontrol.calls.plan import Plan
from callcontrol.calls.product import CallAttachment
from callcontrol.calls.recording import RECORDINGS_FOLDER
from callcontrol.calls.records.metrics import CallMetrics
from callcontrol.calls.records.quality import QualityMetrics
from callcontrol.calls.requests import CallMetadata, CreateCall
from callcontrol.clock import WallClock
from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.errors import (
    CallEnded,
    Conflict,
    DomainError,
    NodeUnreachable,
    ServiceUnavailable,
)
from callcontrol.models import Account, CallFilter, CallRecord, Page, Position
from callcontrol.models.parties import Party, RouteAttempt
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.router import Router
from callcontrol.trunks.aio.gateway_monitor import GatewayProber
from callcontrol.trunks.aio.registrations import CarrierRegistrations
from callcontrol.trunks.gateway_health import GatewayTable
from callcontrol.trunks.inbound_invite import Received
from callcontrol.trunks.places import Limits
from callcontrol.trunks.registration import RegistrationView
from media.aio import MediaEngine
from media.audio import PromptLibrary
from sip.aio import (
    Guard,
    HandedOverState,
    HepSender,
    InboundSession,
    TraceFields,
    TraceRecord,
    UserAgent,
)

log = logging.getLogger(__name__)

_SHUTDOWN_LIMIT_S: Final = 5.0
# A BYE or CANCEL that was lost is sent again after 0.5 s, and what answers it may want an ACK.
_FAREWELL_LIMIT_S: Final = 1.0
_ADOPT_AGAIN_S: Final = 1.0


class CallControl:
    """
    Places, accepts, lists and ends calls.

    Attributes:
        user_agent: The SIP user agent of all calls.
        engine: The media engine of all calls.
        on_net: Calls of this server to itself.
        hep: Sends copies of SIP messages to a capture server, when one is configured.
    """

    def __init__(self, settings: CallControlSettings, services: CallServices) -> None:
        self.settings = settings
        self.metrics = CallMetrics()
        self.quality = QualityMetrics()
        self._services = services
        self._runners: dict[str, CallRunner] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = False
        self._succeeded = False
        self._all_ended = asyncio.Event()
        self._all_ended.set()
        self._capacity = Capacity(settings.max_calls, settings.max_cps)
        self.gateways = GatewayTable(settings.ping_every_s)
        self.on_net = OnNet(settings.sip)
        self._router = Router(
            services.routes,
            self._capacity,
            settings.allowed_countries,
            self.gateways,
            lambda: self.on_net.gateway,
            lambda: self.on_net.browsers,
        )
        self.engine = MediaEngine(settings.media)
        answers = settings.protection.answer_unknown_sources and not settings.silent_to_unknown_sources
        self.guard = Guard(
            replace(
                settings.protection,
                answer_unknown_sources=answers,
                fronts=tuple(str(network) for network in settings.fronts),
            ),
            trust_of(services.routes, (*settings.trusted_sources, *settings.fronts)),
        )
        self._arrivals = Arrivals(
            settings,
            services,
            self._capacity,
            self.metrics,
            self._runners,
            self.on_net,
            self._begin_inbound,
        )
        self.user_agent = UserAgent(
            settings.sip_listens,
            settings.sip,
            on_invite=self._arrivals.on_invite,
            screen=self._arrivals.screen,
            guard=self.guard,
            has_room=self._arrivals.has_room,
        )
        self._prober = GatewayProber(self.gateways, self.user_agent, services.routes)
        self._registrations = CarrierRegistrations(
            self.user_agent, services.routes, services.registering, settings.front
        )
        self._recovery = CrashRecovery(
            self.user_agent,
            services.calls,
            services.routes,
            services.features.products,
            settings.data_dir / RECORDINGS_FOLDER,
            services.uploads,
        )
        prompts = PromptLibrary(settings.prompts_dir) if settings.prompts_dir is not None else None
        self._audio = AudioSource(prompts, services.destinations)
        self._originator = Originator(
            settings,
            services,
            self._router,
            self._capacity,
            self.metrics,
            lambda: self.user_agent.draining,
            self._begin_outbound,
        )
        self._context: CallContext
        self._shared: SharedConferences | None = None
        self.hep: HepSender | None = None
        self.traces: TraceBook
        self._clock: WallClock

    # --- start and stop -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """
        End the calls left by a previous process, then accept calls.

        Raises:
            OSError: A SIP address cannot be bound.
            ValueError: The TLS certificate or the hold music is invalid.
        """
        settings = self.settings
        recordings_dir = settings.data_dir / RECORDINGS_FOLDER
        # Recordings are private: no other user of this machine may read them.
        await asyncio.to_thread(recordings_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
        hold_music = await asyncio.to_thread(load_hold_music, settings.hold_music)
        self._clock = WallClock(asyncio.get_running_loop().time(), utc_now())
        self.traces = TraceBook(self._clock)
        if settings.hep is not None:
            self.hep = HepSender(settings.hep, self._clock.at_us, lambda key: self.traces.call_of(key) or key)
        self.user_agent.on_message = self.traces.note if self.hep is None else self._note_and_copy
        owners = self._services.conferences
        if owners is not None:
            self._shared = SharedConferences(owners, self.engine, hold_music, settings.sip)
        self._context = CallContext(
            settings=settings,
            services=self._services,
            user_agent=self.user_agent,
            on_net=self.on_net,
            engine=self.engine,
            router=self._router,
            capacity=self._capacity,
            audio=self._audio,
            traces=self.traces,
            registry=CallRegistry(self.user_agent, self._runners),
            recordings_dir=recordings_dir,
            media=MediaSettings(
                settings.media_timeout_s, settings.hold_timeout_s, hold_music, settings.tone_plan
            ),
            quality=self.quality,
            metrics=self.metrics,
            conferences=Conferences(self.engine, hold_music) if self._shared is None else self._shared.local,
            shared_conferences=self._shared,
            service_route=self._registrations.service_route,
            on_gateway=self._prober.note,
        )
        await self._recovery.settle(await self._cut_off(), self.settings.rates)
        await self.engine.start()
        if self.hep is not None:
            await self.hep.start()
        try:
            await self.user_agent.start()
        except (OSError, ValueError):
            await self.engine.close()
            raise
        await self.on_net.start(self.user_agent.addresses, self.traces.note_on_net)
        self.guard.own = self.on_net.source
        self._recovery.begin()
        self._prober.start()
        if self._shared is not None:
            await self._shared.start(settings.node_sip)
        self._started = True
        self._registrations.start()

    async def recover_node(
        self, node: str, *, before: datetime | None = None, has_recordings: bool = True
    ) -> int:
        """
        End the calls of another node whose process died, and notify their peers; returns their number.

        Calls that began after ``before`` are not touched: the node is back.
        Without ``has_recordings`` they are on another machine, and stay unfinished until the node returns.
        """
        while True:
            try:
                unfinished = await self._cut_off(node, before)
                break
            except ServiceUnavailable as failure:
                log.warning("cannot end the calls of node %s yet: %s", node, failure.message)
                await asyncio.sleep(_ADOPT_AGAIN_S)
        self._recovery.begin()
        await self._recovery.settle(unfinished, self.settings.rates, node, has_recordings=has_recordings)
        return len(unfinished)

    async def drain(self, timeout_s: float, *, succeeded: bool = False) -> None:
        """
        Refuse new calls, let active ones go on for ``timeout_s``, then end them.

        With ``succeeded`` the next process holds the registrations, so they are not removed.
        """
        self.user_agent.draining = True
        self.on_net.retire()
        self._succeeded = succeeded
        await self._leave_registrars()
        try:
            await asyncio.wait_for(self._drained(), timeout_s)
        except TimeoutError:
            log.info("%d calls are active after draining; ending them", len(self._runners))
        await self._end_all()

    async def _drained(self) -> None:
        """Wait until no call is left, here or of another node in a conference here."""
        await self._all_ended.wait()
        if self._shared is not None:
            await self._shared.drained()

    def hand_over(self) -> HandedOverState:
        """
        Stop receiving SIP, and return what another process needs to receive it.

        That process does not know the calls that would be begun on net from here, so they leave by carriers.
        Of those that are up it gets the messages, and must not take their address for an unknown source.
        """
        self.on_net.retire()
        handed = self.user_agent.sharing.hand_over()
        if self.on_net.source is not None:
            handed.hosts.append(self.on_net.source[0])
        return handed

    async def take_back(self) -> None:
        """Receive SIP again: the other process has ended."""
        await self.user_agent.sharing.resume_reading()
        self.on_net.resume()

    async def close(self) -> None:
        """End all calls and free every socket; harmless when repeated or before the start."""
        self.user_agent.draining = True
        await self._leave_registrars()
        await self._end_all()
        await self._arrivals.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._audio.close()
        await self._services.features.close()
        if self._started:
            self._started = False
            await self._recovery.close()
            await self._prober.close()
            if self._shared is not None:
                await self._shared.close()
            await self.on_net.close()
            await self.user_agent.close()
        if self.hep is not None:
            self.hep.close()
        await self.engine.close()

    async def _leave_registrars(self) -> None:
        if not self._succeeded:
            await self._registrations.stop()

    async def _end_all(self) -> None:
        for runner in list(self._runners.values()):
            runner.post(HangupRequested("system", SYSTEM_SHUTDOWN))
        try:
            await asyncio.wait_for(self._all_ended.wait(), _SHUTDOWN_LIMIT_S)
        except TimeoutError:
            log.error("%d calls did not end in time", len(self._runners))
        if self._started and not await self.user_agent.wait_without_sessions(_FAREWELL_LIMIT_S):
            log.info("%d far ends have not answered our BYE or CANCEL", self.user_agent.sessions)
        try:
            await self._services.calls.flush()
        except DomainError as failure:
            # Free the sockets and the engine nevertheless; a restart settles the calls.
            log.error("cannot write the last states of calls: %s", failure.message)

    async def _cut_off(self, node: str | None = None, before: datetime | None = None) -> Sequence[CallRecord]:
        """Load the calls without an end; save their dialogs, so that their legs can be ended at any time."""
        unfinished = await self._services.calls.unfinished(node)
        if before is not None:
            unfinished = [record for record in unfinished if record.created_at < before]
        await self._recovery.collect(unfinished)
        return unfinished

    # --- metrics --------------------------------------------------------------------------------------------

    @property
    def active_calls(self) -> int:
        """Number of calls that are not over, including those that only wait for their recording."""
        return len(self._runners)

    def calls_by_state(self) -> Counter[tuple[str, str]]:
        """Number of calls that are not over, by direction and status."""
        return Counter(
            (runner.record.direction, runner.record.status.value) for runner in self._runners.values()
        )

    def refused_calls(self) -> dict[str, int]:
        """Number of refused new calls, by reason."""
        return {
            **self.metrics.refused,
            **self._capacity.refused,
            **{reason: self._services.gate.refused[reason] for reason in REASONS},
            "overload": self.guard.rejected["overload"],
        }

    def legs_at(self, sid: str) -> int:
        """Number of current legs at a carrier or a gateway."""
        return self._capacity.legs_at(sid)

    def check_capacity(self, account: Account) -> None:
        """Check that a new call of the account is allowed now; raises the errors of ``Capacity.check``."""
        self._capacity.check(account, asyncio.get_running_loop().time())

    def registrations(self, carrier_sid: str | None = None) -> list[RegistrationView]:
        """States of the registrations with a carrier, or of all, the worst first."""
        return self._registrations.views(carrier_sid)

    @property
    def transcoded_streams(self) -> int:
        """Number of streams that hear another codec than their own."""
        return sum(runner.media.transcoded for runner in self._runners.values())

    def call_of(self, call_id: str) -> str | None:
        """The call of a SIP dialog, while its trace is kept; None before the start."""
        return self.traces.call_of(call_id) if self._started else None

    def trace(self, call_sid: str) -> list[TraceEntry]:
        """SIP messages of a call in wire order; empty when the trace is no longer kept."""
        return self.traces.of(call_sid)

    def active(self, call_sid: str) -> CallRunner | None:
        """Return the task of a call that is not over; None for any other."""
        return self._runners.get(call_sid)

    @property
    def all_active(self) -> Collection[CallRunner]:
        """The tasks of all calls that are not over, the oldest first."""
        return self._runners.values()

    @property
    def conferences(self) -> Conferences:
        """Conferences of this node."""
        return self._context.conferences

    # --- calls by the API -----------------------------------------------------------------------------------

    async def create_call(self, account_sid: str, request: CreateCall) -> CallRecord:
        """
        Validate a request, reserve its money, record it and dial.

        Raises:
            ValidationFailed: Values are wrong; all of them are named. Or no carrier serves the party, or that
                of a dial verb.
            Forbidden: A number or a URL is not allowed.
            NumberNotOwned: ``from`` is no registered number of the account.
            NotFound: ``carrier_sid`` is not the account's.
            InsufficientBalance: The wallet cannot cover the reserve.
            RateLimited: The account places calls too fast.
            ServiceUnavailable: There is no capacity; nothing was recorded.
        """
        plan, metadata = await self._services.features.plan_request(account_sid, request)
        # Verbs are counted as in the request, which does not include the digits to send at once.
        first_verb = 0 if request.send_digits is None else 1
        return await self._originator.place(account_sid, plan, metadata, first_verb=first_verb)

    async def place(
        self,
        account_sid: str,
        plan: Plan,
        metadata: CallMetadata,
        *,
        attachment: CallAttachment | None = None,
    ) -> CallRecord:
        """
        Place a call for a product of the platform; raises the errors of ``create_call``.

        ``plan.dial`` is the party to call, with a number of the account as caller-ID; ``attachment`` is
        written in the same transaction as the call.
        """
        return await self._originator.place(account_sid, plan, metadata, attachment=attachment)

    async def check_route(self, account_sid: str, party: Party, field: str) -> None:
        """
        Check that a party may be called and has a route now; nothing is reserved or recorded.

        A product that calls a second party later asks so before the first one rings. ``field`` names the
        party in a refusal.

        Raises:
            ValidationFailed: No carrier serves the party: the reason is ``NO_ROUTE``.
            Forbidden: The party may not be called.
            NumberNotOwned: The caller-ID is no registered number of the account.
            ServiceUnavailable: The gateways to the party are in cooldown or at their limit.
        """
        await self._originator.check_route(account_sid, party, field)

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """
        Return one call of the account, in its newest state.

        Raises:
            NotFound: There is no such call.
            Forbidden: It belongs to another account.
        """
        runner = self._runners.get(call_sid)
        if runner is not None and runner.record.account_sid == account_sid:
            return runner.record
        return await self._services.calls.get(account_sid, call_sid)

    async def list_calls(
        self, account_sid: str, query: CallFilter, page: int, per_page: int, after: Position | None = None
    ) -> Page[CallRecord]:
        """Calls of the account, newest first; with ``after`` those behind that position, for any page."""
        return await self._services.calls.list(account_sid, query, page, per_page, after=after)

    async def hangup_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """
        Request the end of a call; the returned record may still be active.

        Raises:
            NotFound: There is no such call.
            Forbidden: It belongs to another account.
            CallEnded: It has ended already.
            NodeUnreachable: It is active on another node.
        """
        record, runner = await self.up(account_sid, call_sid)
        runner.post(HangupRequested("api", NORMAL_CLEARING))
        return record

    async def update_call(self, account_sid: str, call_sid: str, update: LiveUpdate) -> CallRecord:
        """
        Change an active call: all that is requested, or nothing.

        Raises:
            NotFound: There is no such call.
            Forbidden: It belongs to another account, or the transfer target is not allowed.
            CallEnded: It has ended already.
            NodeUnreachable: It is active on another node.
            ValidationFailed: Values are wrong; all of them are named.
            NumberNotOwned: The caller-ID of a transfer is no registered number of the account.
            Conflict: The state of the call does not allow it.
            ServiceUnavailable: The gateways to the target of a transfer are in cooldown or at their limit.
        """
        record, runner = await self.up(account_sid, call_sid)
        check_url, read = self._services.destinations.check_url, self._services.features.read_verbs
        commands = commands_of(update, record, self.settings.allowed_countries, check_url, read)
        for command in commands:
            if isinstance(command, TransferCommand):
                await self._originator.check_transfer(account_sid, command.to)
        if record.status.ended:
            raise CallEnded("The call has already ended.")
        reasons = {FIELD_OF[type(command)]: runner.reject_reason(command) for command in commands}
        refused = {field: reason for field, reason in reasons.items() if reason is not None}
        if refused:
            described = "; ".join(f"{field}: {reason}" for field, reason in refused.items())
            raise Conflict(f"Nothing was changed. {described}.", details={"conflicts": refused})
        for command in commands:
            runner.post(command)
        return record

    async def up(self, account_sid: str, call_sid: str) -> tuple[CallRecord, CallRunner]:
        """Return a call that is active on this node, and its task; raises the errors of ``hangup_call``."""
        record = await self.get_call(account_sid, call_sid)
        runner = self._runners.get(call_sid)
        if runner is None and not record.status.ended and record.node != self._services.calls.node:
            raise NodeUnreachable(record.node)
        if record.status.ended or runner is None:
            raise CallEnded("The call has already ended.")
        return record, runner

    # --- call tasks -----------------------------------------------------------------------------------------

    def _runner(self, record: CallRecord, plan: Plan, account: Account, reserve_paise: int) -> CallRunner:
        clock = WallClock(asyncio.get_running_loop().time(), record.created_at)
        machine = CallMachine(
            record,
            plan,
            rates=self.settings.rates,
            clock=clock,
            step_makers=self._services.features.steps,
            policy=self._services.features.products.of(record),
            reserved_paise=reserve_paise,
            stream_protocol=account.stream_protocol or self.settings.stream_protocol,
        )
        return CallRunner(self._context, machine, account, self._on_closed)

    def _begin_outbound(
        self,
        record: CallRecord,
        plan: Plan,
        account: Account,
        reserve_paise: int,
        attempts: Sequence[RouteAttempt],
        placed: Limits,
    ) -> None:
        """Run a recorded outbound call."""
        runner = self._runner(record, plan, account, reserve_paise)
        self._spawn(runner, runner.run_outbound(attempts, placed))

    def _begin_inbound(
        self, arrival: Arrival, record: CallRecord, session: InboundSession, received: Received
    ) -> None:
        """Run an inbound call that was admitted."""
        plan = arrival.plan or Plan(())
        reserve_paise = plan.reserve_paise(self.settings.rates)
        runner = self._runner(record, plan, arrival.account, reserve_paise)
        runner.adopt(session, (arrival.carrier, arrival.gateway), received, arrival.caller)
        self._spawn(runner, runner.run_inbound(reserve_paise, arrival.refusal))

    def _spawn(self, runner: CallRunner, work: Coroutine[Any, Any, None]) -> None:
        self._services.gate.begun()
        self._runners[runner.record.call_sid] = runner
        self._all_ended.clear()
        # The call outlives the request that placed it, and its messages are no effects of that request.
        context = copy_context()
        context.run(CLAIM.set, None)
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._done(runner, done))

    def _on_closed(self, record: CallRecord) -> None:
        self._capacity.leave(record.account_sid)
        if record.status.ended:  # a call that could not be recorded is not counted
            self.metrics.note_end(record)

    def _done(self, runner: CallRunner, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._runners.pop(runner.record.call_sid, None)
        if self._services.uploads is not None:
            self._services.uploads.call_over(runner.record.call_sid)
        if not self._runners:
            self._all_ended.set()
        if not task.cancelled() and task.exception() is not None:
            runner.log.error("the task of the call failed", exc_info=task.exception())

    def _note_and_copy(self, *fields: *TraceFields) -> None:
        assert self.hep is not None
        self.traces.note(*fields)
        self.hep.send(TraceRecord(*fields))
