"""Tracks gateway health from call outcomes, and from OPTIONS probes where calls give no evidence."""

import asyncio
import logging
from typing import Final

from callcontrol.aio.tokens import utc_now
from callcontrol.directory.directory import Directory
from callcontrol.models import Carrier, Gateway
from callcontrol.trunks.gateway_health import GatewayTable
from callcontrol.trunks.outbound_invite import destination_of
from sip import Answered, Failed, InvalidValue, Progress, SessionEvent
from sip.aio import UserAgent

log = logging.getLogger(__name__)

PROBE_LIMIT_S: Final = 4.0
TICK_S: Final = 0.5
MAX_PROBES: Final = 64
"""Probes in progress; further due probes wait for the next round."""


_Place = tuple[str, int, str, str | None]


class GatewayProber:
    """
    Updates the gateway table and logs its state changes.

    ``note`` takes the events of a call's session. A probe is routed as a call would be, to every server that
    the name resolves to; one answer is enough.
    """

    def __init__(self, table: GatewayTable, user_agent: UserAgent, routes: Directory) -> None:
        self.table = table
        self._user_agent = user_agent
        self._routes = routes
        self._probes: dict[str, asyncio.Task[None]] = {}
        self._rested: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._places: dict[str, _Place] = {}

    def start(self) -> None:
        """Start probing."""
        self._routes.watch_trunks(self._note_places)
        self._note_places()
        self._task = asyncio.get_running_loop().create_task(self._follow(), name="gateway-prober")

    async def close(self) -> None:
        """Stop probing."""
        tasks = [task for task in (self._task, self._rested, *self._probes.values()) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def note(self, gateway_sid: str, event: SessionEvent) -> None:
        """Record an event of a call through a gateway."""
        now = asyncio.get_running_loop().time()
        if isinstance(event, Progress | Answered):
            self.table.answered(gateway_sid, utc_now(), now)
        elif isinstance(event, Failed):
            self._note_failure(gateway_sid, event, now)

    def _note_places(self) -> None:
        """Drop the health of gateways whose address has changed."""
        places = {
            gateway.gateway_sid: _place(carrier, gateway)
            for carrier, gateway in self._routes.outbound_gateways()
        }
        for sid, place in places.items():
            if self._places.get(sid, place) != place:
                self.table.forget(sid)
                probe = self._probes.pop(sid, None)
                if probe is not None:
                    probe.cancel()
        self._places = places

    def _note_failure(self, gateway_sid: str, event: Failed, now: float) -> None:
        if event.cause == "cancelled" or (event.cause == "timeout" and event.status != 408):
            return  # We gave up while the callee may still have been ringing.
        if event.cause != "response" or event.status == 503:
            tried = ", ".join(map(str, event.tried)) or event.reason
            log.info("gateway %s did not serve a call: %s", gateway_sid, tried)
            self.table.failed(gateway_sid, now, event.retry_after_s)
        else:
            self.table.answered(gateway_sid, utc_now(), now)

    async def _follow(self) -> None:
        while True:
            try:
                self._look()
            except Exception:  # One failed round must not end all probing.
                log.exception("looking after the gateways failed")
            await asyncio.sleep(TICK_S)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        known = {
            gateway.gateway_sid: (carrier, gateway) for carrier, gateway in self._routes.outbound_gateways()
        }
        pinged = {sid for sid, (_, gateway) in known.items() if gateway.send_options_ping}
        room = MAX_PROBES - len(self._probes)
        for sid in self.table.due(known, pinged, loop.time(), room):
            if sid not in self._probes:
                task = self._probes[sid] = loop.create_task(self._probe(*known[sid]), name=sid)
                task.add_done_callback(self._probe_done)
        if self._rested is None or self._rested.done():
            self._rested = loop.create_task(self._user_agent.probes.probe_backed_off(PROBE_LIMIT_S))
        for change in self.table.changes():
            carrier, gateway = known.get(change.gateway_sid, (None, None))
            log.log(
                logging.INFO if self.table.usable(change.gateway_sid) else logging.WARNING,
                "gateway %s (%s of %s) is %s, and was %s",
                change.gateway_sid,
                "?" if gateway is None else f"{gateway.protocol}:{gateway.host}:{gateway.port or 'any'}",
                "?" if carrier is None else carrier.name,
                change.after.name.lower(),
                change.before.name.lower(),
            )

    def _probe_done(self, task: asyncio.Task[None]) -> None:
        if self._probes.get(task.get_name()) is task:
            del self._probes[task.get_name()]
        if not task.cancelled() and task.exception() is not None:
            log.error("probing a gateway failed", exc_info=task.exception())

    async def _probe(self, carrier: Carrier, gateway: Gateway) -> None:
        try:
            took_s = await self._user_agent.probes.probe(destination_of(carrier, gateway), PROBE_LIMIT_S)
        except InvalidValue as error:
            log.warning("gateway %s cannot be probed: %s", gateway.gateway_sid, error)
            return
        now = asyncio.get_running_loop().time()
        if took_s is None:
            self.table.probe_lost(gateway.gateway_sid, now, pinged=gateway.send_options_ping)
        else:
            self.table.probed(gateway.gateway_sid, utc_now(), now, took_s * 1000.0)


def _place(carrier: Carrier, gateway: Gateway) -> _Place:
    """Values that decide where requests to a gateway are sent."""
    return gateway.host, gateway.port, gateway.protocol, carrier.outbound_proxy
