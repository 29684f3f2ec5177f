"""A whole server for tests: real SIP, real RTP, and the services beside it in memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from callcontrol.bootstrap.aio.call_features import call_features
from callcontrol.calls.aio.context import CallControlSettings, CallServices
from callcontrol.calls.aio.media.shared_conferences import ConferenceOwners
from callcontrol.calls.aio.models import SpeechModels
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.charges import Rates
from callcontrol.calls.requests import CreateCall, StreamRequest
from callcontrol.models import Binding, CallRecord, TranscriptSegment
from callcontrol.tools.aio.call_messages import CallMessages
from media.aio import MediaEngine
from media.aio.recognizer import Recognizer
from media.audio.speech import Synthesizer
from sip.aio import Listen
from tests.support.domain import (
    ACCOUNT_SID,
    CALLEE,
    OWN_NUMBER,
    MemoryDirectory,
    MemoryNumbers,
    MemoryPlaces,
    MemoryRecords,
    MemoryWallets,
    OpenDestinations,
    make_account,
    make_carrier,
    make_gateway,
    make_number,
)
from tests.support.phone import PATIENCE_S, Phone, engine_settings, eventually
from tests.support.webhook_stage import SECRET, Receiver

WEBHOOK = "https://customer.example/status"


async def _unchanged() -> None:
    """Read no newer directory: only the test changes it."""


class World:
    """The server, one telephone behind its only gateway, and what the two need."""

    def __init__(
        self,
        directory: Path,
        *,
        speech: Synthesizer | None = None,
        recognizer: Recognizer | None = None,
        places: MemoryPlaces | None = None,
        conferences: ConferenceOwners | None = None,
        models: SpeechModels | None = None,
        messages: CallMessages | None = None,
        **settings: Any,
    ) -> None:
        self.directory = MemoryDirectory()
        self.sessions_linger = False
        """True while SIP still waits for late answers of a silent peer (RFC 3261 timers)."""
        self.wallets = MemoryWallets()
        self.places = places
        """Legs at trunks with limits that are counted over all servers; None if each counts for itself."""
        self.records = MemoryRecords(self.wallets, places)
        self.segments: list[TranscriptSegment] = []
        """Transcripts of all calls."""
        self.far_engine = MediaEngine(engine_settings())
        self.phone = Phone(self.far_engine)
        self.phones = [self.phone]
        control_settings = CallControlSettings(
            **{
                "sip_listens": [Listen("udp", "127.0.0.1", 0)],
                "data_dir": directory,
                "media": engine_settings(),
                "rates": Rates(outbound_paise=60, inbound_paise=40),
                **settings,
            }
        )
        destinations = OpenDestinations()
        self.control = CallControl(
            control_settings,
            CallServices(
                calls=self.records,
                wallets=self.wallets,
                numbers=MemoryNumbers(self.directory),
                routes=self.directory,
                destinations=destinations,
                refresh=_unchanged,
                features=call_features(
                    control_settings, self.directory, destinations, _unchanged, messages=messages
                ),
                speech=speech,
                recognizer=recognizer,
                places=places,
                conferences=conferences,
                models=models,
                add_segment=lambda _, segment: self.segments.append(segment),
            ),
        )

    @property
    def port(self) -> int:
        return self.control.user_agent.addresses[0].port

    async def start(self) -> None:
        await self.far_engine.start()
        await self.phone.start()
        self.directory.put(
            numbers=[make_number()],
            carriers=[make_carrier()],
            gateways=[make_gateway(port=self.phone.port)],
        )
        await self.control.start()

    async def add_phone(self, priority: int = 1, **gateway: Any) -> Phone:
        """A telephone behind one more gateway of the carrier."""
        phone = Phone(self.far_engine)
        await phone.start()
        self.phones.append(phone)
        sid = f"gateway-{len(self.phones)}"
        self.directory.put(gateways=[make_gateway(sid, port=phone.port, priority=priority, **gateway)])
        return phone

    def bind(self, **binding: Any) -> None:
        """Bind the account's number."""
        self.directory.put(numbers=[make_number(binding=Binding(status_webhook_url=WEBHOOK, **binding))])

    def forward(self, to: str = CALLEE, **binding: Any) -> None:
        self.bind(target="forward", forward_to=to, **binding)

    def stream(self, url: str, **binding: Any) -> None:
        self.bind(target="media_stream", stream_url=url, **binding)

    async def place(
        self, *verbs: dict[str, Any], stream_url: str | None = None, **request: Any
    ) -> CallRecord:
        """Place a call by the API."""
        stream = StreamRequest(stream_url) if stream_url is not None else None
        return await self.control.create_call(
            ACCOUNT_SID,
            CreateCall(
                **{
                    "from_": OWN_NUMBER,
                    "to": CALLEE,
                    "stream": stream,
                    "verbs": verbs or None,
                    "status_webhook_url": WEBHOOK,
                    **request,
                }
            ),
        )

    async def ended(self, timeout_s: float = PATIENCE_S) -> CallRecord:
        """The record of the only call, once it is over and nothing of it is left."""
        assert await eventually(lambda: bool(self.records.finished), timeout_s), self.records.records
        assert await eventually(lambda: self.control.active_calls == 0, timeout_s)
        return self.records.only()

    def published(self, event: str) -> dict[str, Any]:
        """The body of the only event of a name."""
        (body,) = [json.loads(item.body) for item in self.records.events if item.event == event]
        assert isinstance(body, dict)
        return body

    async def close(self) -> None:
        """Stop everything; nothing may be left behind by any call."""
        assert await eventually(lambda: self.control.active_calls == 0), "calls are left"
        stats = self.control.engine.stats()
        assert (stats.streams, stats.ports_in_use) == (0, 0), "ports are left"
        assert not self.wallets.reserves, "money is still reserved"
        assert self.places is None or not self.places.held, "legs are still counted"
        bodies = [json.loads(item.body) for item in self.records.events]
        # Events in the form of jambonz have no number.
        sequences = [body["sequence"] for body in bodies if "sequence" in body]
        assert len(self.records.records) != 1 or sequences == list(range(1, len(sequences) + 1))
        if not self.sessions_linger:
            assert await eventually(lambda: self.control.user_agent.sessions == 0), "sessions are left"
        await self.control.close()
        for phone in self.phones:
            await phone.close()
        await self.far_engine.close()


@asynccontextmanager
async def running(directory: Path, **settings: Any) -> AsyncIterator[World]:
    """A world, from its start to the proof that nothing of it is left."""
    before = asyncio.all_tasks()
    world = World(directory, **settings)
    await world.start()
    try:
        yield world
        await world.close()
    finally:
        await world.control.close()
        for phone in world.phones:
            await phone.close()
        await world.far_engine.close()
    left = [task for task in asyncio.all_tasks() - before - {asyncio.current_task()} if not task.done()]
    assert not left, f"tasks are left: {left}"


@asynccontextmanager
async def instructed(directory: Path, **settings: Any) -> AsyncIterator[tuple[World, Receiver]]:
    """A world whose account signs its requests with `SECRET`, and a receiver that gives calls their verbs."""
    receiver = Receiver()
    await receiver.start()
    try:
        async with running(directory, **settings) as world:
            world.directory.put(accounts=[make_account(webhook_secret=SECRET)])
            yield world, receiver
    finally:
        await receiver.close()
