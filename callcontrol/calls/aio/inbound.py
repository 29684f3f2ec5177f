"""Inbound calls, from the identification of the caller to the start of the call."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from ipaddress import IPv4Network, IPv6Network
from math import ceil
from typing import Any, Final

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.context import CallControlSettings, CallServices
from callcontrol.calls.aio.on_net import OnNet, on_net_call
from callcontrol.calls.aio.registry import leg_ref_of
from callcontrol.calls.aio.runner import CallRunner
from callcontrol.calls.hangup_cause import EXCHANGE_ROUTING_ERROR
from callcontrol.calls.inbound import (
    Arrival,
    Invitation,
    origin_for,
    receive,
    receive_from_browser,
    wanted_events,
)
from callcontrol.calls.records.metrics import CallMetrics
from callcontrol.directory.directory import Directory, plain_address
from callcontrol.errors import DomainError
from callcontrol.ids import CallSid
from callcontrol.models import CallRecord
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.on_net import OnNetCall
from callcontrol.trunks.inbound_invite import Received, identify
from sip import Request, Secret, State
from sip.aio import InboundSession, Screened, ScreenVerdict, Source

log = logging.getLogger(__name__)

_RETRY_AFTER_S: Final = 5

Begin = Callable[[Arrival, CallRecord, InboundSession, Received], None]


class Arrivals:
    """
    Handlers of the user agent for callers and inbound calls.

    ``begin`` is called with each admitted call, which then counts in the capacity.
    """

    def __init__(
        self,
        settings: CallControlSettings,
        services: CallServices,
        capacity: Capacity,
        metrics: CallMetrics,
        runners: Mapping[str, CallRunner],
        on_net: OnNet,
        begin: Begin,
    ) -> None:
        self._settings = settings
        self._services = services
        self._capacity = capacity
        self._metrics = metrics
        self._runners = runners
        self._on_net = on_net
        self._begin = begin
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Stop refreshing the directory; reject the callers that wait for it."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def screen(self, source: Source, request: Request) -> Screened:
        """Accept carriers and our own calls only; challenge other sources, or answer 403 or nothing."""
        own = self._on_net.take(source, request)
        if own is not None:
            return Screened(ScreenVerdict.ACCEPT, (own,))
        caller = identify((source.host, source.port), source.names, request, self._services.routes)
        if caller.known:
            return Screened(ScreenVerdict.ACCEPT, caller.carriers)
        self._refresh_soon()
        if caller.asked:
            return Screened(ScreenVerdict.CHALLENGE, secrets_of=self._secrets_of)
        silent = self._settings.silent_to_unknown_sources
        return Screened(ScreenVerdict.DROP if silent else ScreenVerdict.FORBID)

    def _secrets_of(self, username: str) -> list[Secret]:
        return [
            Secret(carrier.inbound_auth_password or "", carrier.carrier_sid)
            for carrier in self._services.routes.carriers_with_user(username)
        ]

    def on_invite(self, session: InboundSession) -> None:
        """Handle a new call: begin it, reject it, or refresh the directory first if its number is unknown."""
        own = on_net_call(session)
        if own is not None and own.rejection is not None:
            self._refuse_loop(session, own, own.rejection)
            return
        if session.replaces is not None:
            take_replacement(session, self._runners, self._services.routes)
            return
        arrival = self._receive(session, own)
        if isinstance(arrival, int) and arrival == 404:
            self._spawn(self._refresh_and_retry(session, own))
        else:
            self._accept(session, arrival, own)

    def _refuse_loop(self, session: InboundSession, own: OnNetCall, status: int) -> None:
        self._metrics.refused["loop"] += 1
        log.warning(
            "on-net call refused with %d: it came by %d numbers held here",
            status,
            len(own.numbers) - 1,
            extra={"call_id": session.call_id},
        )
        session.reject(status, headers=[("Reason", EXCHANGE_ROUTING_ERROR.reason_header())])

    def has_room(self) -> bool:
        """True when one more call may begin now."""
        now = asyncio.get_running_loop().time()
        if not self._capacity.has_room(now):
            self._metrics.refused["no_room"] += 1
            return False
        return self._services.gate.admits()

    def _refresh_soon(self) -> None:
        """Refresh the directory: a gateway may have been added a moment ago."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._spawn(self._refresh())

    async def _refresh(self) -> None:
        await self._services.refresh()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("cannot refresh the directory", exc_info=task.exception())

    async def _refresh_and_retry(self, session: InboundSession, own: OnNetCall | None) -> None:
        try:
            await self._services.refresh()
            # Without a listener, a caller that has cancelled meanwhile would never be reported.
            if session.state < State.ENDED:
                self._accept(session, self._receive(session, own), own)
        except BaseException:
            session.reject(503, headers=[("Retry-After", str(_RETRY_AFTER_S))])
            raise

    def _receive(self, session: InboundSession, own: OnNetCall | None) -> Arrival | int:
        request = session.request
        invitation = Invitation(
            source=session.source,
            request_uri=request.uri,
            to=request.to,
            from_=request.from_,
            headers=request.headers,
            carriers=_proved(session),
            origin=(own.carrier, own.gateway) if own is not None else None,
        )
        if own is not None and own.connect is not None:
            return receive_from_browser(
                invitation, *own.connect, self._services.routes, time_limit_s=self._settings.time_limit_s
            )
        return receive(
            invitation,
            self._services.routes,
            self._services.features.products,
            allowed_countries=self._settings.allowed_countries,
            time_limit_s=self._settings.time_limit_s,
        )

    def _accept(self, session: InboundSession, arrival: Arrival | int, own: OnNetCall | None) -> None:
        if isinstance(arrival, int):
            self._metrics.refused["unknown_number" if arrival == 404 else "not_allowed"] += 1
            session.reject(arrival)
            return
        account, now = arrival.account, asyncio.get_running_loop().time()
        wait_s = self._capacity.wait_for_trunk_s(arrival.carrier, arrival.gateway, now)
        if wait_s > 0.0:
            self._capacity.refused["trunk"] += 1
            log.info("inbound call refused: the trunk %s is at its limit", arrival.carrier.carrier_sid)
            session.reject(503, headers=[("Retry-After", str(ceil(wait_s)))])
            return
        try:
            self._capacity.enter(account, now)
        except DomainError as refusal:
            log.warning("inbound call refused: %s", refusal.message, extra={"call_id": session.call_id})
            session.reject(503, headers=[("Retry-After", str(_RETRY_AFTER_S))])
            return
        call_sid = (own.call_sid if own is not None else None) or new_id()
        created_at = utc_now()
        received = Received.of(session.request.headers)
        binding = arrival.inbound.binding
        record = CallRecord(
            call_sid=call_sid,
            created_at=created_at,
            account_sid=account.account_sid,
            direction="inbound",
            from_=arrival.caller.shown,
            sip=received.shown(arrival.caller) or None,
            to=arrival.to,
            carrier_sid=arrival.carrier.carrier_sid or None,
            gateway_sid=arrival.gateway.gateway_sid or None,
            phone_number_id=None if arrival.number is None else arrival.number.phone_number_id,
            app_sid=arrival.inbound.app_sid,
            status_webhook_url=binding.status_webhook_url if binding is not None else None,
            status_webhook_events=wanted_events(binding),
            product=arrival.product,
            details=arrival.details,
        )
        self._begin(arrival, record, session, received)


def _proved(session: InboundSession) -> tuple[str, ...]:
    """Carriers that a caller has authenticated as."""
    return tuple(str(identity) for identity in session.identities if not isinstance(identity, OnNetCall))


def take_replacement(
    session: InboundSession, runners: Mapping[CallSid, CallRunner], routes: Directory
) -> None:
    """
    Queue a caller for the party whose dialog it replaces, if its trunk may.

    The trunk must be one of the account or of the platform (403), and have the right to transfer (603).
    """
    leg_ref = leg_ref_of(session.replaces)
    runner = runners.get(leg_ref[0]) if leg_ref is not None else None
    if leg_ref is None or runner is None:
        session.reject(481)
        return
    origin = origin_for(_proved(session), session.source, runner.record.account_sid, routes)
    if origin is None or on_net_call(session) is not None:
        session.reject(403)
    elif not origin[0].allows_refer:
        session.reject(603)
    else:
        runner.replace(leg_ref[1], session, origin, Received.of(session.request.headers))


def trust_of(routes: Directory, trusted: Collection[IPv4Network | IPv6Network]) -> Callable[[str], bool]:
    """Return the test for trusted sources: the gateways of every carrier, and the trusted networks."""
    networks = tuple(trusted)
    if not networks:
        return routes.knows_host

    def is_trusted(host: str) -> bool:
        address = plain_address(host)
        return routes.knows_host(host) or (
            address is not None
            and any(address.version == network.version and address in network for network in networks)
        )

    return is_trusted
