"""
Server process: builds every part, and starts and stops them in order.

Started: storage, sandbox carrier, demo account, call control with its SIP and RTP sockets, numbers for sale,
messaging, tools, templates, replies of interrupted requests, HTTP. Stopped: no new calls, active calls end
or are ended, then the parts in reverse order, also when a later part cannot start.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, TypeVar

from api.http.app import create_app
from api.http.server_socket import HttpFront
from api.mcp.gateway import McpGateway
from api.process.collectors import watch, watch_messages
from api.process.config import Settings
from api.process.failures import StartFailed
from api.process.first_run import DemoAccount, greeting, prepare_demo, prepare_sandbox
from api.process.handover import Succession
from api.process.idempotency_recovery import answer_interrupted
from api.process.log_filters import naming_calls
from api.process.log_writer import say
from api.process.loop_lag import LoopLag
from api.process.messaging import Messaging
from api.process.metrics import Metrics
from api.process.node_lock import NodeLock
from api.process.process_collectors import watch_process, watch_storage, watch_tools
from api.process.secret_keys import secret_box
from api.process.sip_settings import name_servers, sip_listens, user_agent_settings
from api.process.speech import make_speech
from api.process.values import HostPort
from api.services import Lifecycle, Phase, Services
from callcontrol.assistant.aio.service import AssistantService
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.aio.admission import CallGate
from callcontrol.calls.aio.service import CallControl, CallControlSettings, CallServices
from callcontrol.calls.recording import RECORDINGS_FOLDER
from callcontrol.masking.aio.routing import MaskedRouter
from callcontrol.masking.aio.service import MaskingService
from callcontrol.messaging.aio.channels import ChannelService
from callcontrol.messaging.aio.templates import TemplateService
from callcontrol.numbers.aio.marketplace import NumberMarket
from callcontrol.numbers.aio.renewals import Renewals
from callcontrol.otp.aio import VoiceOtp
from callcontrol.recordings.aio.service import RecordingService, RecordingSettings
from callcontrol.tools.aio.builtin import call_tools, wallet_tools
from callcontrol.tools.aio.messaging import messaging_tools
from callcontrol.tools.aio.toolbox import Toolbox
from fixtures.carrier import PROMPTS_DIRECTORY, SandboxCarrier
from fixtures.inventory import SandboxInventory
from fixtures.messaging_network import SandboxMessagingNetwork
from fixtures.template_review import SandboxReview
from media.aio import EspeakSynthesizer
from media.aio.agent_types import AgentStreamSettings
from media.audio import PromptLibrary, Speaker
from media.types import EngineSettings
from sip.aio import Destination, HandedOver, HepSettings, Listen, SendFrame

__all__ = ["Server", "run_loop", "serve"]

_log = logging.getLogger("api.process.server")
_HTTP_SHUTDOWN_S = 5.0

ResultT = TypeVar("ResultT")


class Server:
    """
    One server process.

    Attributes:
        url: Root of its API: the public URL of the settings, or else the bound address.
        demo: The demo account, when there is one.
        sandbox: The sandbox carrier, when it runs.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.lifecycle = Lifecycle()
        self.metrics = Metrics()
        self.demo: DemoAccount | None = None
        self.sandbox: SandboxCarrier | None = None
        self.storage: Storage
        self.gate: CallGate
        self.control: CallControl
        self.otp: VoiceOtp
        self.recordings: RecordingService
        self.masking: MaskingService
        self.market: NumberMarket
        self.assistant: AssistantService
        self.tools: Toolbox
        self.mcp: McpGateway
        self.messaging: Messaging
        self.templates: TemplateService
        self.channels: ChannelService
        self.succession = Succession(settings.data_dir, settings.node)
        self.front: HttpFront
        self._sandbox_sid: str | None = None
        self.url = settings.public_url or ""
        self._parts = AsyncExitStack()

    async def start(self) -> None:
        """
        Start every part, and accept calls from then on.

        Raises:
            StartFailed: A part cannot start; those before it are stopped again.
        """
        try:
            if self.settings.takeover:
                await self.succession.meet()
            await self._start_storage()
            await self._start_sandbox()
            self.demo = await prepare_demo(self.storage) if self.sandbox is not None else None
            await self._start_control()
            await self._start_market()
            await self._start_messaging()
            await self._start_tools()
            await self._start_templates()
            await answer_interrupted(self.storage)
            await self._start_http()
            if self.settings.takeover:
                await self.succession.open_door(self)
        except BaseException:
            await self._parts.aclose()
            raise
        self.control.guard.starting = False
        self.lifecycle.phase = Phase.READY
        self.succession.ready(self.control.sharing.answer, self._alone)

    async def drain(self) -> None:
        """Refuse new calls, and wait for active ones up to the drain time of the settings."""
        if self.lifecycle.phase is not Phase.READY:
            return
        self.lifecycle.phase = Phase.DRAINING
        _log.info(
            "draining: %d calls are up, they have %g s", self.control.active_calls, self.settings.drain_s
        )
        succeeded = self.succession.taken.is_set()
        if succeeded:
            # Open connections still bring requests here: closing them makes their clients reconnect.
            await self.mcp.close()
            await self.front.close()
        await self.control.drain(self.settings.drain_s, succeeded=succeeded)

    async def stop(self) -> None:
        """End active calls and stop every part. Idempotent."""
        if self.lifecycle.phase is Phase.READY:
            self.lifecycle.phase = Phase.DRAINING
        await self._parts.aclose()
        self.lifecycle.phase = Phase.STOPPED

    # Hot restart; see `api.process.handover`.

    async def hand_over(self) -> HandedOver:
        """Stop receiving on all addresses, and return the state that another process needs to take over."""
        handed = self.control.sharing.hand_over()
        handed.sockets[self.front.name] = await self.front.pause()
        return handed

    async def take_back(self) -> None:
        """Resume receiving: the other process has ended."""
        await self.control.sharing.take_back()
        await self.front.resume()

    def receive(self, frame: bytes, answer: SendFrame) -> None:
        """Handle a SIP message that the other process forwards."""
        self.control.sharing.receive(frame, answer)

    async def _alone(self, died: str | None) -> None:
        _log.info("the server before is gone; %d SIP messages were passed on", self.control.sharing.end())
        if died is not None:
            await self.control.adopt(died)

    async def _start_storage(self) -> None:
        settings = self.settings
        await asyncio.to_thread(settings.data_dir.mkdir, parents=True, exist_ok=True)
        lock = await NodeLock.take(settings.data_dir, settings.node)
        self._parts.callback(lock.release)
        self.storage = await Storage.open(
            settings.database_url,
            allow_private_destinations=settings.allow_private_destinations,
            allowed_countries=settings.allowed_countries,
            name_servers=name_servers(settings),
            node=settings.node,
            secrets=await asyncio.to_thread(secret_box, settings),
        )
        self.gate = CallGate(lambda: self.storage.writer.failing)
        self.lifecycle.lacks = self.gate.lacks
        self.storage.housekeeper.webhooks_kept = timedelta(days=settings.webhook_retention_days)
        self._parts.push_async_callback(self.storage.close)

    async def _start_sandbox(self) -> None:
        settings = self.settings
        if not settings.sandbox_carrier:
            await prepare_sandbox(self.storage, None)
            return
        (listen,) = settings.sandbox_listen
        sandbox = SandboxCarrier(
            Listen(listen.transport, listen.host, listen.port, None),
            rtp_listen=listen.host,
            rtp_ports=(settings.sandbox_rtp_ports.first, settings.sandbox_rtp_ports.last),
        )
        try:
            await sandbox.start()
        except OSError as error:
            raise _cannot_listen("TRUNKLINE_SANDBOX_LISTEN", str(listen), error) from error
        self._parts.push_async_callback(sandbox.stop)
        self.sandbox = sandbox
        self._sandbox_sid = await prepare_sandbox(self.storage, sandbox.address)

    async def _start_control(self) -> None:
        storage = self.storage
        routes = MaskedRouter(
            storage.masking_sessions,
            storage.masking_settings,
            storage.destinations,
            storage.directory,
            storage.secrets_of,
            self.settings.allowed_countries,
        )
        self._parts.push_async_callback(routes.close)
        speech = make_speech(self.settings.data_dir)
        self._parts.push_async_callback(speech.close)
        self.control = CallControl(
            _control_settings(self.settings),
            CallServices(
                calls=storage.calls,
                wallets=storage.wallet,
                numbers=storage.numbers,
                routes=storage.directory,
                destinations=storage.destinations,
                refresh=storage.refresh,
                gate=self.gate,
                masked_routes=routes,
                transcripts=storage.transcripts,
                speech=speech,
                messages=storage.messages,
            ),
        )
        self._parts.push_async_callback(self.succession.close)
        self._parts.push_async_callback(self.control.close)
        self._parts.callback(naming_calls(self.control.call_of))
        storage.trunks.legs_at = self.control.legs_at
        self.recordings = RecordingService(
            storage.database,
            storage.writer,
            storage.calls,
            storage.messages,
            storage.directory,
            storage.secrets,
            RecordingSettings(
                folder=self.settings.data_dir / RECORDINGS_FOLDER,
                node=self.settings.node,
                kept_days=self.settings.recording_retention_days,
            ),
        )
        storage.housekeeper.also(self.recordings.sweep)
        handed = await self.succession.take()
        if handed is not None:
            self.control.sharing.inherit(handed, self.succession.pass_on)
        self.control.guard.starting = True
        try:
            await self.control.start()
        except OSError as error:
            listens = ",".join(str(listen) for listen in self.settings.sip_listen)
            raise _cannot_listen("TRUNKLINE_SIP_LISTEN", listens, error) from error
        except ValueError as error:
            raise StartFailed(
                f"cannot use the files of TRUNKLINE_SIP_TLS_CERT, _KEY and _CA: {error}"
            ) from error
        synthesizer = EspeakSynthesizer()
        self._parts.push_async_callback(synthesizer.close)
        self.otp = VoiceOtp(
            storage.database,
            storage.writer,
            self.control,
            storage.destinations,
            Speaker(PromptLibrary(PROMPTS_DIRECTORY)),
            synthesizer,
            storage.secrets,
            self.settings.allowed_countries,
        )
        self.assistant = AssistantService(
            storage.database,
            storage.writer,
            self.control,
            storage.agents,
            storage.transcripts,
            self.settings.allowed_countries,
            lambda: self._sandbox_sid,
        )
        self.masking = MaskingService(
            storage.database, self.control, storage.masking_settings, self.settings.allowed_countries
        )
        if self.sandbox is not None:
            udp = next((listen for listen in self.control.sip_addresses if listen.transport == "udp"), None)
            if udp is not None:
                self.sandbox.target = Destination("udp", udp.host, udp.port)

    async def _start_market(self) -> None:
        storage = self.storage
        inventory = SandboxInventory()
        if self.settings.number_inventory == "sandbox":
            inventory = SandboxInventory.standard(lambda number: storage.directory.number(number) is not None)
        self.market = NumberMarket(storage.database, storage.writer, storage.directory, inventory)
        self._parts.push_async_callback(self.market.close)
        renewals = Renewals(storage.database, storage.writer, storage.directory, also=self.market.sweep)
        await renewals.start()
        self._parts.push_async_callback(renewals.close)

    async def _start_tools(self) -> None:
        storage = self.storage
        self.tools = Toolbox(
            storage.database,
            storage.writer,
            storage.destinations,
            storage.keys,
            {
                **call_tools(storage.database, self.control, self.otp),
                **wallet_tools(storage.wallet),
                **messaging_tools(self.messaging.messages, storage.contacts),
            },
        )
        storage.housekeeper.also(self.tools.usage.forget)
        self._parts.push_async_callback(self.tools.close)

    async def _start_messaging(self) -> None:
        settings = self.settings
        self.messaging = Messaging(
            self.storage,
            SandboxMessagingNetwork(),
            node=settings.node,
            default_rate=settings.messages_per_second,
        )
        self._parts.push_async_callback(self.messaging.close)
        await self.messaging.start()

    async def _start_templates(self) -> None:
        storage = self.storage
        self.channels = ChannelService(storage.database, storage.writer, self.settings.messages_per_second)
        self.templates = TemplateService(storage.database, storage.writer, SandboxReview(), storage.outbox)
        await self.templates.start()
        self._parts.push_async_callback(self.templates.close)

    async def _start_http(self) -> None:
        settings = self.settings
        listen = settings.http_listen
        self._watch()
        inherited = self.succession.inherited(f"http:{listen}")
        try:
            self.front = await asyncio.to_thread(HttpFront, listen, inherited)
        except OSError as error:
            raise _cannot_listen("TRUNKLINE_HTTP_LISTEN", str(listen), error) from error
        self._parts.push_async_callback(self.front.close)
        host, port = self.front.address
        if settings.public_url is None:
            reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
            self.url = f"http://{HostPort(reachable, port)}"
        self.storage.calls.public_url = self.url
        self.mcp = McpGateway(self.tools.service, self.storage.keys, self.lifecycle, self.url)
        app = create_app(
            self._services(),
            metrics=self.metrics,
            public_url=self.url,
            trusted_sources=settings.trusted_sources,
        )
        # Its streams stay open until it closes, so it closes before HTTP waits for their connections.
        self._parts.push_async_callback(self.mcp.close)
        await self.front.serve(app)

    def _watch(self) -> None:
        lag = LoopLag()
        lag.start()
        self._parts.callback(lag.close)
        watch(self.metrics, self.control, self.storage)
        watch_messages(self.metrics, self.messaging)
        watch_storage(self.metrics, self.storage)
        watch_tools(self.metrics, self.tools.service, lambda: len(self.mcp.sessions))
        watch_process(self.metrics, lag, self.lifecycle, self.settings.data_dir, self.settings.node)
        self._parts.push_async_callback(self.metrics.close)

    def _services(self) -> Services:
        storage = self.storage
        return Services(
            keys=storage.keys,
            calls=self.control,
            numbers=storage.numbers,
            market=self.market,
            trunks=storage.trunks,
            otp=self.otp,
            recordings=self.recordings,
            masking=self.masking,
            masking_sessions=storage.masking_sessions,
            masking_numbers=storage.masking_numbers,
            masking_logs=storage.masking_logs,
            masking_settings=storage.masking_settings,
            stream_settings=storage.stream_settings,
            masking_webhooks=storage.masking_webhooks,
            trunk_numbers=storage.trunk_numbers,
            applications=storage.applications,
            call_logs=storage.call_logs,
            campaigns=storage.campaigns,
            agents=storage.agents,
            assistant=self.assistant,
            assistant_keys=storage.assistant_keys,
            assistant_webhooks=storage.assistant_webhooks,
            messages=self.messaging.messages,
            subscriptions=storage.subscriptions,
            contacts=storage.contacts,
            contact_lists=storage.contact_lists,
            webhook_endpoints=storage.webhook_endpoints,
            templates=self.templates,
            channels=self.channels,
            wallets=storage.wallet,
            mcp=self.mcp,
            tools=self.tools.service,
            tool_registry=self.tools.registry,
            tool_usage=self.tools.usage,
            app_keys=self.tools.app_keys,
            idempotency=storage.idempotency,
            lifecycle=self.lifecycle,
        )


async def serve(settings: Settings, command: str = "trunkline") -> None:
    """
    Run a server in the foreground; a first signal or a successor drains it, the next signal ends it at once.

    Args:
        settings: Settings of the server.
        command: Shell command for `trunkline`, with which the printed commands begin.
    """
    for name in settings.unknown_variables:
        _log.warning("%s is no setting of this server; see trunkline serve --help", name)
    signals = _Signals()
    server = Server(settings)
    await server.start()
    try:
        _calm_collector()
        say(greeting(server.demo, server.url, command))
        _log.info("ready: API %s, SIP %s", server.url, ", ".join(_sip_addresses(server)))
        await _either(signals.first, server.succession.taken)
        drain = asyncio.create_task(server.drain())
        impatience = asyncio.create_task((signals.second if signals.first.is_set() else signals.first).wait())
        await asyncio.wait({drain, impatience}, return_when=asyncio.FIRST_COMPLETED)
        impatience.cancel()
        if not drain.done():
            drain.cancel()
            await asyncio.wait({drain})
        elif drain.exception() is not None:
            _log.error("the drain failed", exc_info=drain.exception())
    finally:
        await server.stop()
        gc.unfreeze()
        _log.info("stopped")


async def _either(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def _calm_collector() -> None:
    """
    Keep the garbage collector from pausing calls.

    Objects that exist after the start live as long as the process, so they are frozen. Calls leave few
    cycles, and a full collection over the objects of a thousand calls takes up to 100 ms, so it is made rare.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


class _Signals:
    """Events of the first and the second SIGTERM or SIGINT."""

    def __init__(self) -> None:
        self.first, self.second = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._note)

    def _note(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


def run_loop(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine on a new event loop, of uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _control_settings(settings: Settings) -> CallControlSettings:
    return CallControlSettings(
        sip_listens=sip_listens(settings),
        sip=user_agent_settings(settings),
        data_dir=settings.data_dir,
        media=EngineSettings(
            listen=settings.rtp_listen,
            advertise=settings.rtp_advertise,
            port_min=settings.rtp_ports.first,
            port_max=settings.rtp_ports.last,
            threads=settings.rtp_threads,
        ),
        prompts_dir=PROMPTS_DIRECTORY,
        allowed_countries=settings.allowed_countries,
        max_calls=settings.max_calls,
        max_cps=settings.max_cps,
        silent_to_strangers=settings.sip_strangers == "silent",
        trusted_sources=settings.trusted_sources,
        ping_every_s=settings.options_interval_s,
        media_timeout_s=settings.media_timeout_s,
        hold_timeout_s=settings.hold_timeout_s,
        stream_protocol=settings.stream_default_protocol,
        streams=AgentStreamSettings(start_timeout_s=settings.stream_start_timeout_s or None),
        hold_music=settings.hold_music,
        tone_plan=settings.tone_plan,
        hep=_hep_settings(settings),
    )


def _hep_settings(settings: Settings) -> HepSettings | None:
    target = settings.hep_target
    if target is None:
        return None
    return HepSettings(target.host, target.port, settings.hep_id, settings.hep_password or "")


def _sip_addresses(server: Server) -> list[str]:
    return [
        f"{listen.transport}:{HostPort(listen.host, listen.port)}" for listen in server.control.sip_addresses
    ]


def _cannot_listen(variable: str, address: str, error: OSError) -> StartFailed:
    return StartFailed(
        f"cannot listen on {address}: {error.strerror or error}; "
        f"stop what listens there, or set {variable} to another address"
    )
