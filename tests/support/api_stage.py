"""The application before its real services, on a database of its own, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from api.mcp.gateway import McpGateway
from api.process.lifecycle import Lifecycle, Phase
from callcontrol.bootstrap.aio.services import (
    Providers,
    Services,
    ServiceSettings,
    Storage,
    StorageSettings,
)
from callcontrol.calls.aio.context import CallControlSettings
from callcontrol.calls.aio.sip_trace import TraceBook
from callcontrol.calls.call import CallMachine
from callcontrol.calls.events import Event
from callcontrol.calls.events.commands import LiveCommand
from callcontrol.calls.leg import LegView
from callcontrol.calls.live import control
from callcontrol.calls.records.quality import LegHistory
from callcontrol.clock import WallClock
from callcontrol.egress.aio.resolver import SocketAddress
from callcontrol.ids import A_LEG, LegId
from callcontrol.models import CallRecord, Environment, Service
from callcontrol.wallet.store import ledger
from fixtures.carrier import PROMPTS_DIRECTORY
from fixtures.inventory import SandboxInventory
from fixtures.messaging_network import SandboxMessagingNetwork
from fixtures.template_review import SandboxReview
from media.audio import Clip, PromptLibrary, Speaker
from media.audio.speech import Synthesizer
from media.types import StreamMeter
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    MOMENT,
    NUMBER,
    PLATFORM_CARRIER_SID,
    PLATFORM_GATEWAY_SID,
    fill,
    insert_key,
)
from tests.support.secrets import SECRETS
from tests.support.sqlite import sqlite_url

T = TypeVar("T")

URL = "http://127.0.0.1:8080"
_SPEAKER = Speaker(PromptLibrary(PROMPTS_DIRECTORY))


class Mumbler(Synthesizer):
    """Synthesizer that speaks every text as 100 ms of silence."""

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        """Speak a text."""
        return Clip(bytes(1600))


@dataclass
class ParkedMedia:
    """Measurements of a call's legs; `stopped` counts how often they ended."""

    of: dict[LegId, StreamMeter] = field(default_factory=dict)
    stopped: int = 0
    first_leg: LegId = A_LEG
    over_time: Sequence[LegHistory] = ()

    def histories(self) -> Sequence[LegHistory]:
        """Return the quality over time."""
        return self.over_time

    def meters(self) -> dict[LegId, StreamMeter]:
        """Return what is measured."""
        return dict(self.of)

    def stop_meters(self) -> None:
        """Count the end."""
        self.stopped += 1


@dataclass
class ParkedCall:
    """A call between two events: it takes commands, and its machine says which ones are possible."""

    record: CallRecord
    machine: CallMachine | None = None
    posted: list[Event] = field(default_factory=list)
    legs: Sequence[LegView] = ()
    media: ParkedMedia = field(default_factory=ParkedMedia)

    def post(self, event: Event) -> None:
        """Keep an event."""
        self.posted.append(event)

    def reject_reason(self, command: LiveCommand) -> str | None:
        """Return why the machine cannot carry out a command."""
        return None if self.machine is None else control.reject_reason(self.machine, command)


@dataclass
class ApiStage:
    """
    The services behind the application.

    Calls are admitted, paid for and recorded, and then not dialled.
    """

    services: Services
    inventory: SandboxInventory
    lifecycle: Lifecycle = field(default_factory=lambda: Lifecycle(Phase.READY))

    def __post_init__(self) -> None:
        storage, calls_up = self.storage, self.services.calls
        self.mcp = McpGateway(self.services.tools.service, storage.keys, self.lifecycle, URL)
        calls_up._originator._begin = lambda *_: None
        calls_up.traces = TraceBook(WallClock(0.0, MOMENT))
        storage.destinations._lookup = _look_up

    @property
    def storage(self) -> Storage:
        """The database and the services on it."""
        return self.services.storage

    async def write(self, operation: Callable[[Connection], T]) -> T:
        """Run an operation in a transaction."""
        return await self.storage.writer.commit(operation)

    async def add_key(
        self,
        key: str,
        service: Service,
        scopes: Collection[str],
        *,
        key_id: str | None = None,
        environment: Environment = "live",
    ) -> None:
        """Add a key of the account."""
        await self.write(
            partial(
                insert_key, key=key, service=service, scopes=scopes, key_id=key_id, environment=environment
            )
        )

    async def add_call(self, record: CallRecord) -> CallRecord:
        """Add a call, with the rows of its product."""
        await self.storage.calls.insert(record)
        return record

    def park(self, machine: CallMachine | None = None, record: CallRecord | None = None) -> ParkedCall:
        """Make a call active, by default the account's first one, in the state of a machine."""
        if record is None:
            assert machine is not None
            record = machine.record
            record.call_sid, record.account_sid = CALL_SID, ACCOUNT
            setattr(record, "to" if record.direction == "inbound" else "from_", NUMBER)
        parked = ParkedCall(record, machine)
        runners: dict[str, Any] = self.services.calls._runners
        runners[record.call_sid] = parked
        return parked

    async def empty_wallet(self) -> None:
        """Charge the account all its money."""
        available = (await self.storage.wallet.wallet(ACCOUNT)).available_paise
        await self.write(
            partial(
                ledger.charge,
                account_sid=ACCOUNT,
                amount_paise=available,
                now=MOMENT,
                kind="number_purchase",
                reference="all",
            )
        )

    async def stop_platform_carrier(self) -> None:
        """Leave the platform without an active carrier."""
        await self.services.trunks.update_carrier(None, PLATFORM_CARRIER_SID, {"is_active": False})

    async def rest_platform_carrier(self) -> None:
        """Put the platform's gateway into a cooldown, so that no call leaves for now."""
        now = asyncio.get_running_loop().time()
        self.services.calls.gateways.failed(PLATFORM_GATEWAY_SID, now, retry_after_s=60.0)

    async def drop_table(self, name: str) -> None:
        """Break the database: a table is gone."""
        await self.write(lambda connection: connection.execute(sa.text(f"DROP TABLE {name}")).close())

    async def stop_writer(self) -> None:
        """Make the database refuse writes."""
        await self.storage.writer.close()


def asked(service: object, method: str) -> list[tuple[Any, ...]]:
    """Return the list of arguments that a method is called with from now on; it runs as before."""
    run: Callable[..., Any] = getattr(service, method)
    seen: list[tuple[Any, ...]] = []

    def noted(*arguments: Any, **named: Any) -> Any:
        seen.append((*arguments, *named.values()))
        return run(*arguments, **named)

    setattr(service, method, noted)
    return seen


def _look_up(host: str, port: int) -> Sequence[SocketAddress]:
    return [("93.184.215.14", port)]


@asynccontextmanager
async def api_stage(folder: Path) -> AsyncIterator[ApiStage]:
    """Run the services on a new database in a folder."""
    # Names of gateways are looked up where nobody listens.
    storage = await Storage.open(
        await sqlite_url(folder / "api.db", fill),
        StorageSettings(name_servers=[("127.0.0.1", 9)]),
        deliver=False,
        secrets=SECRETS,
    )
    inventory = SandboxInventory(lambda number: storage.directory.number(number) is not None)
    services = Services(
        storage,
        ServiceSettings(calls=CallControlSettings(sip_listens=(), data_dir=folder)),
        Providers(
            inventory=inventory,
            network=SandboxMessagingNetwork(),
            review=SandboxReview(),
            speech=None,
            announcer=_SPEAKER,
            announcements=Mumbler(),
            sandbox_carrier=PLATFORM_CARRIER_SID,
        ),
    )
    stage = ApiStage(services, inventory)
    try:
        yield stage
    finally:
        await stage.mcp.close()
        await services.close()
        await storage.close()
