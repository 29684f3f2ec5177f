"""Maintains one registration per registrar of each carrier that requires one."""

import asyncio
import logging
from typing import Final

from callcontrol.aio.tokens import utc_now
from callcontrol.clock import WallClock
from callcontrol.directory.directory import Directory
from callcontrol.models import Carrier, Gateway
from callcontrol.nodes.duties import Duty
from callcontrol.trunks.registration import (
    RegistrationKey,
    RegistrationView,
    registration_with,
    registrations_of,
    worst_first,
)
from sip import InvalidValue, OutboundRegistration, ParseError, RegistrationState
from sip.aio import RegistrationIO, UserAgent

log = logging.getLogger(__name__)

STARTS_PER_S: Final = 50.0
"""Limit on new registrations: carriers treat a thousand at once as an attack."""
_ELSEWHERE: Final = "another server registers the trunks; ask that one"
STOP_LIMIT_S: Final = 2.0
"""Time limit for unregistering when the process ends, in seconds."""


class CarrierRegistrations:
    """
    Registrations of this process, for all that share its database.

    They follow the directory: an added carrier is registered, a changed carrier is registered again after
    its old binding is removed, a deleted or inactive carrier is unregistered. Of several servers the one that
    has the ``duty`` registers. One that loses it sends nothing more: the next one renews the same binding.

    ``front`` is the SIP front by which registrars reach this server; see ``registration_with``.
    """

    def __init__(
        self, user_agent: UserAgent, routes: Directory, duty: Duty | None = None, front: str | None = None
    ) -> None:
        self._user_agent = user_agent
        self._routes = routes
        self._duty = duty or Duty("registrations")
        self._front = front
        self._wanted: dict[RegistrationKey, OutboundRegistration] = {}
        self._refused: dict[RegistrationKey, str] = {}
        self._runs: dict[RegistrationKey, RegistrationIO] = {}
        self._states: dict[RegistrationKey, tuple[RegistrationState, str | None]] = {}
        self._next_start_s = 0.0
        self._clock: WallClock | None = None
        self._stopping = False
        self._none_left = asyncio.Event()

    def start(self) -> None:
        """Register with all carriers, and start to follow the directory."""
        self._clock = WallClock(asyncio.get_running_loop().time(), utc_now())
        self._routes.watch_trunks(self.follow)
        self._duty.follow(self._take_over)
        self.follow()

    async def stop(self) -> None:
        """
        Unregister everywhere, and leave the duty to another server.

        Registrars that do not answer within ``STOP_LIMIT_S`` are abandoned.
        """
        if self._clock is None or self._stopping:
            return
        self._stopping = True
        self._wanted = {}
        for run in list(self._runs.values()):
            run.stop()
        if self._runs:
            try:
                await asyncio.wait_for(self._none_left.wait(), STOP_LIMIT_S)
            except TimeoutError:
                log.warning("%d registrations could not be taken back in time", len(self._runs))
        await self._duty.release()

    def follow(self) -> None:
        """Align the registrations with the directory."""
        if self._stopping:
            return
        self._wanted, self._refused = self._wants()
        if not self._duty.held:
            return
        for key, run in list(self._runs.items()):
            if self._wanted.get(key) != run.registration:
                run.stop()
        for key in self._wanted:
            if key not in self._runs:
                self._begin(key)

    # Views.

    def views(self, carrier_sid: str | None = None) -> list[RegistrationView]:
        """Registrations of a carrier, or all of them, worst first."""
        views = [
            RegistrationView(key.registrar, RegistrationState.REJECTED, reason)
            for key, reason in self._refused.items()
            if carrier_sid in (None, key.carrier_sid)
        ]
        if not self._duty.held and carrier_sid is not None:
            views += [
                RegistrationView(key.registrar, RegistrationState.UNREGISTERED, _ELSEWHERE)
                for key in self._wanted
                if key.carrier_sid == carrier_sid
            ]
        for key, run in self._runs.items():
            if carrier_sid in (None, key.carrier_sid):
                ends_s, clock = run.expires_at_s, self._clock
                expires_at = clock.at(ends_s) if clock is not None and ends_s is not None else None
                views.append(RegistrationView(key.registrar, run.status.state, run.status.reason, expires_at))
        return worst_first(views)

    def service_route(self, carrier: Carrier, gateway: Gateway) -> tuple[str, ...]:
        """Service-Route (RFC 3608) of the gateway's registrar, else of another registrar of the carrier."""
        runs = [(key, run) for key, run in self._runs.items() if key.carrier_sid == carrier.carrier_sid]
        runs.sort(key=lambda item: (item[1].registration.destination.host != gateway.host, item[0]))
        return next((run.service_route for _, run in runs if run.service_route), ())

    # Running registrations.

    def _take_over(self, held: bool) -> None:
        """Begin when the duty is this server's; when it is lost, end without a request."""
        if held:
            log.info("this server registers with the carriers from now on")
            self.follow()
            return
        runs, self._runs = self._runs, {}
        self._states.clear()
        for run in runs.values():
            run.drop()
        self._none_left.set()

    def _wants(self) -> tuple[dict[RegistrationKey, OutboundRegistration], dict[RegistrationKey, str]]:
        wanted: dict[RegistrationKey, OutboundRegistration] = {}
        refused: dict[RegistrationKey, str] = {}
        for carrier in self._routes.carriers():
            if not carrier.registers:
                continue
            try:
                registrars = registrations_of(carrier, self._routes)
                for key, destination in registrars.items():
                    wanted[key] = registration_with(carrier, destination, self._front)
            except (InvalidValue, ParseError) as error:
                # A misconfigured carrier must not stop others from registering.
                refused[RegistrationKey(carrier.carrier_sid, "")] = str(error)
                log.warning("the carrier %s cannot be registered: %s", carrier.carrier_sid, error)
        return wanted, refused

    def _begin(self, key: RegistrationKey) -> None:
        now_s = asyncio.get_running_loop().time()
        at_s = max(now_s, self._next_start_s)
        self._next_start_s = at_s + 1.0 / STARTS_PER_S
        self._none_left.clear()
        self._runs[key] = self._user_agent.register(
            self._wanted[key], lambda run: self._on_change(key, run), at_s - now_s
        )

    def _on_change(self, key: RegistrationKey, run: RegistrationIO) -> None:
        status = run.status
        shown = (status.state, status.reason)
        if self._states.get(key) != shown:
            self._states[key] = shown
            level = logging.INFO if status.reason is None else logging.WARNING
            log.log(
                level,
                "registration %s carrier=%s registrar=%s%s",
                status.state.value,
                key.carrier_sid,
                key.registrar,
                f" reason={status.reason}" if status.reason else "",
            )
        if run.ended:
            self._forget(key, run)

    def _forget(self, key: RegistrationKey, run: RegistrationIO) -> None:
        if self._runs.get(key) is run:
            del self._runs[key]
            self._states.pop(key, None)
        if key in self._wanted:
            self._begin(key)  # The carrier was changed and its old binding is removed.
        if not self._runs:
            self._none_left.set()
