"""
Server process: builds every part, and starts and stops them in order.

Started: storage, sandbox carrier, demo account, services with their SIP and RTP sockets, responses of
interrupted requests, HTTP. Stopped: no new calls, active calls end or are ended, then the parts in reverse
order, also when a later part cannot start.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from api.console.app import Console, ConsoleSettings
from api.http.app import Neighbours, create_app, trusts
from api.http.server_socket import HttpServerSocket
from api.mcp.gateway import McpGateway
from api.openapi.document import product_version
from api.process.caches import collect_caches
from api.process.call_lines import CallLines
from api.process.collectors import (
    LoopLag,
    collect_calls,
    collect_messages,
    collect_process,
    collect_recognition,
    collect_recordings,
    collect_speech,
    collect_storage,
    collect_tools,
)
from api.process.config import Settings, shown_settings
from api.process.failures import StartFailed
from api.process.first_run import DemoAccount, prepare_demo, prepare_sandbox
from api.process.handover import HotRestart
from api.process.idempotency_recovery import answer_interrupted
from api.process.lifecycle import Lifecycle, Phase
from api.process.logs import naming_calls
from api.process.metrics import Metrics
from api.process.node_collectors import collect_nodes
from api.process.node_lock import NodeLock
from api.process.secret_keys import secret_box
from api.process.values import HostPort
from callcontrol.bootstrap.aio.services import Providers, Services, ServiceSettings, Storage, StorageSettings
from callcontrol.calls.aio.context import CallControlSettings
from callcontrol.calls.aio.service import CallControl
from callcontrol.nodes.aio import place_of
from callcontrol.recordings.objects import ObjectStore, StoreFailed, StoreRefused
from callcontrol.webrtc.ice_servers import IceServers
from fixtures.carrier import PROMPTS_DIRECTORY, SandboxCarrier
from fixtures.echo_agent import EchoAgent
from fixtures.inventory import SandboxInventory
from fixtures.messaging_network import SandboxMessagingNetwork
from fixtures.template_review import SandboxReview
from media.aio import EspeakSynthesizer
from media.aio.agent_settings import AgentStreamSettings
from media.aio.recognizer import Recognizer
from media.aio.speech_server import ServerSynthesizer, SpeechServer
from media.audio import PromptLibrary, Speaker
from media.audio.recognition import DEFAULT_MODELS, RecognizerServer
from media.audio.speech import Synthesizer
from media.types import EngineSettings
from sip import Destination, DigestSettings
from sip.aio import (
    ClientCertificates,
    HandedOverState,
    HepSettings,
    Listen,
    NameServer,
    SendFrame,
    StreamLimits,
    TlsSettings,
    UserAgentSettings,
)

if TYPE_CHECKING:
    from api.http.forward import Forwarder

__all__ = ["Server"]

_log = logging.getLogger("api.process.server")

SPEECH_FOLDER: Final = "speech"
"""Folder of synthesized sentences, in the data directory."""

# Load balancers that check /ready each half second send no new calls after it.
_LEAVING_S: Final = 2.0
_SPEECH_PROGRAM: Final = "espeak-ng"
# A burst of greetings waits for a moment; more than this would wait too long.
_MAX_TEXTS: Final = 256


class Server:
    """
    One server process.

    Attributes:
        url: Root of its API: the public URL of the settings, or else the bound address.
        node_url: Root of its API for other nodes: that of the settings, or else the bound address; empty if
            it is bound to any.
        console: The console, unless the settings switch it off.
        demo: The demo account, when there is one.
        sandbox: The sandbox carrier, when it runs.
        echo: The echo agent of the sandbox, when the settings have the sandbox.
        fenced: Set when another node has taken over the calls of this one, which has to end at once.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.storage: Storage
        self.services: Services
        self.lifecycle = Lifecycle()
        self.metrics = Metrics()
        self.demo: DemoAccount | None = None
        self.sandbox: SandboxCarrier | None = None
        self.echo: EchoAgent | None = None
        self._speech: ServerSynthesizer | None = None
        self._recognizer: Recognizer | None = None
        self.mcp: McpGateway
        self.console: Console | None = None
        self.hot_restart = HotRestart(settings.data_dir, settings.node)
        self.http_socket: HttpServerSocket
        self.fenced = asyncio.Event()
        self._sandbox_sid: str | None = None
        self.url = settings.public_url or ""
        self.node_url = settings.node_url or _own_url(settings.http_listen)
        self._parts = AsyncExitStack()

    @property
    def control(self) -> CallControl:
        """Call control."""
        return self.services.calls

    async def start(self) -> None:
        """
        Start every part, and accept calls from then on.

        Raises:
            StartFailed: A part cannot start; those before it are stopped again.
        """
        try:
            if self.settings.hot_restart:
                await self.hot_restart.connect()
            await self._start_storage()
            async with self.storage.membership.setup() as is_shared:
                await self._start_sandbox(is_shared)
                self.demo = await prepare_demo(self.storage) if self.sandbox is not None else None
            await self._start_services()
            await answer_interrupted(self.storage)
            await self._start_http()
            if self.settings.hot_restart:
                await self.hot_restart.listen(self)
        except BaseException:
            await self._parts.aclose()
            raise
        self.control.guard.starting = False
        self.storage.database.serving = True
        self.lifecycle.phase = Phase.READY
        self.storage.membership.start_adopting(self._adopt, self.storage.release_node)
        self.hot_restart.ready(self.control.user_agent.sharing.answer, self._alone)

    async def drain(self) -> None:
        """Refuse new calls, and wait for active ones up to the drain time of the settings."""
        if self.lifecycle.phase is not Phase.READY:
            return
        self.lifecycle.phase = Phase.LEAVING
        self.storage.membership.start_draining()
        succeeded = self.hot_restart.taken.is_set()
        if self.storage.database.shared is not None and not succeeded:
            await asyncio.sleep(_LEAVING_S)
        self.lifecycle.phase = Phase.DRAINING
        _log.info("draining: %d active calls, up to %g s", self.control.active_calls, self.settings.drain_s)
        if succeeded:
            # Open connections still bring requests here: closing them makes their clients reconnect.
            await self.mcp.close()
            if self.console is not None:
                await self.console.close()
            await self.http_socket.close()
        await self.control.drain(self.settings.drain_s, succeeded=succeeded)

    async def stop(self) -> None:
        """End active calls and stop every part. Idempotent."""
        if self.lifecycle.takes_calls:
            self.lifecycle.phase = Phase.DRAINING
        await self._parts.aclose()
        self.lifecycle.phase = Phase.STOPPED

    # Hot restart; see `api.process.handover`.

    async def hand_over(self) -> HandedOverState:
        """Stop receiving on all addresses, and return the state that another process needs to take over."""
        handed = self.control.hand_over()
        handed.sockets[self.http_socket.name] = await self.http_socket.pause()
        return handed

    async def take_back(self) -> None:
        """Resume receiving: the other process has ended."""
        await self.control.take_back()
        await self.http_socket.resume()

    def receive(self, frame: bytes, answer: SendFrame) -> None:
        """Handle a SIP message that the other process forwards."""
        self.control.user_agent.sharing.receive(frame, answer)

    async def _alone(self, died: str | None) -> None:
        _log.info(
            "the previous server has ended; %d SIP messages were forwarded",
            self.control.user_agent.sharing.end(),
        )
        if died is not None:
            await self.control.recover_node(died)
        if self.services.uploads is not None:
            await self.services.uploads.take_over(self.hot_restart.previous_node)

    async def _adopt(self, node: str, before: datetime) -> int:
        """End the calls of a dead node that are older than a moment, and send what it owed."""
        self.storage.outbox.changed()
        ended = await self.control.recover_node(node, before=before, has_recordings=False)
        if self.storage.membership.holds(node):
            await answer_interrupted(self.storage, node)
        return ended

    async def _start_storage(self) -> None:
        settings = self.settings
        await asyncio.to_thread(settings.data_dir.mkdir, parents=True, exist_ok=True)
        lock = await NodeLock.take(settings.data_dir, settings.node)
        self._parts.callback(lock.release)
        self.storage = await Storage.open(
            settings.database_url,
            StorageSettings(
                allow_private_destinations=settings.allow_private_destinations,
                allowed_countries=settings.allowed_countries,
                name_servers=name_servers(settings),
                outbound_proxy=settings.sip_outbound_proxy,
                node=settings.node,
                place=place_of(lock.path),
                public_url=lambda: self.url,
                node_url=lambda: self.node_url,
                version=product_version(),
                webhooks_kept=timedelta(days=settings.webhook_retention_days),
            ),
            secrets=await asyncio.to_thread(secret_box, settings),
        )
        self._parts.push_async_callback(self.storage.close)
        self.fenced = self.storage.membership.fenced

    async def _start_sandbox(self, is_shared: bool) -> None:
        settings = self.settings
        if not settings.sandbox_carrier:
            await prepare_sandbox(self.storage, None, is_shared=is_shared)
            return
        self.echo = EchoAgent()
        await self.echo.start()
        self._parts.push_async_callback(self.echo.stop)
        self.storage.destinations.permit(self.echo.url)
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
        self._sandbox_sid = await prepare_sandbox(self.storage, sandbox.address, is_shared=is_shared)
        if self._sandbox_sid is None:
            _log.warning("another node has the sandbox carrier; this one runs none")
            await sandbox.stop()
            return
        self.sandbox = sandbox

    async def _start_services(self) -> None:
        store = await _open_store(self.settings)
        self.services = Services(self.storage, _service_settings(self.settings), self._providers(store))
        self.lifecycle.lacks = self.services.gate.lacks
        self._parts.push_async_callback(self.hot_restart.close)
        self._parts.push_async_callback(self.services.close)
        self._parts.callback(naming_calls(self.control.call_of))
        handed = await self.hot_restart.take()
        if handed is not None:
            self.control.user_agent.sharing.inherit(handed, self.hot_restart.forward)
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
        if self.sandbox is not None:
            udp = next(
                (listen for listen in self.control.user_agent.addresses if listen.transport == "udp"), None
            )
            if udp is not None:
                self.sandbox.target = Destination("udp", udp.host, udp.port)
        await self.services.start()

    def _make_speech(self) -> Synthesizer:
        """
        Make the speech synthesizer of calls; sentences that were synthesized before are read from disk.

        A server without espeak-ng starts all the same; its calls skip texts, unless a speech server speaks
        them.
        """
        settings = self.settings
        folder = settings.data_dir / SPEECH_FOLDER
        if shutil.which(_SPEECH_PROGRAM) is None:
            _log.warning(
                "%s is not installed: calls speak no texts until it is (apt install %s)",
                *2 * (_SPEECH_PROGRAM,),
            )
        espeak = EspeakSynthesizer(folder, program=_SPEECH_PROGRAM, max_waiting=_MAX_TEXTS)
        self._parts.push_async_callback(espeak.close)
        if settings.speech_url is None:
            return espeak
        server = SpeechServer(
            settings.speech_url, settings.speech_model, settings.speech_voice, settings.speech_key
        )
        speech = self._speech = ServerSynthesizer(server, espeak, folder)
        self._parts.push_async_callback(speech.close)
        return speech

    def _make_recognizer(self) -> Recognizer | None:
        settings = self.settings
        if settings.recognizer_url is None:
            return None
        protocol = settings.recognizer_protocol
        model = settings.recognizer_model or DEFAULT_MODELS[protocol]
        made = Recognizer(RecognizerServer(settings.recognizer_url, model, settings.recognizer_key, protocol))
        self._recognizer = made
        self._parts.push_async_callback(made.close)
        return made

    def _providers(self, store: ObjectStore | None) -> Providers:
        directory = self.storage.directory
        inventory = SandboxInventory()
        if self.settings.number_inventory == "sandbox":
            inventory = SandboxInventory.standard(lambda number: directory.number(number) is not None)
        speech, announcements = self._make_speech(), EspeakSynthesizer()
        self._parts.push_async_callback(announcements.close)
        return Providers(
            inventory=inventory,
            network=SandboxMessagingNetwork(),
            review=SandboxReview(),
            speech=speech,
            recognizer=self._make_recognizer(),
            announcer=Speaker(PromptLibrary(PROMPTS_DIRECTORY)),
            announcements=announcements,
            sandbox_carrier=self._sandbox_sid,
            sandbox_parties=self.sandbox,
            recordings=store,
        )

    async def _start_http(self) -> None:
        settings = self.settings
        listen = settings.http_listen
        self._collect_metrics()
        inherited = self.hot_restart.inherited(f"http:{listen}")
        try:
            self.http_socket = await asyncio.to_thread(HttpServerSocket, listen, inherited)
        except OSError as error:
            raise _cannot_listen("TRUNKLINE_HTTP_LISTEN", str(listen), error) from error
        self._parts.push_async_callback(self.http_socket.close)
        host, port = self.http_socket.address
        if settings.public_url is None:
            reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
            self.url = f"http://{HostPort(reachable, port)}"
        self.node_url = self.node_url or _own_url(HostPort(host, port))
        forwarder = self._forwarder()
        collect_nodes(self.metrics, self.storage, forwarder)
        self.mcp = McpGateway(
            self.services.tools.service,
            self.storage.keys,
            self.lifecycle,
            self.url,
            membership=self.storage.membership,
            forwarder=forwarder,
        )
        app = create_app(
            self.services,
            mcp=self.mcp,
            lifecycle=self.lifecycle,
            metrics=self.metrics,
            public_url=self.url,
            neighbours=Neighbours(
                trusted=settings.trusted_sources, origins=settings.cors_origins, forwarder=forwarder
            ),
        )
        # Their streams stay open until they close, so they close before HTTP waits for their connections.
        self._parts.push_async_callback(self.mcp.close)
        if settings.console:
            lines = CallLines(self.control.call_of)
            self._parts.callback(lines.attach())
            console = Console(
                self.services,
                self.lifecycle,
                ConsoleSettings(
                    public_url=self.url,
                    is_trusted=trusts(settings.trusted_sources),
                    forwarder=forwarder,
                    shown=shown_settings(settings),
                    operators=settings.console_operators,
                    scrape=self.metrics.scrape,
                    banned=lambda: self.control.guard.banned,
                    lines=lines,
                    echo_url=self.echo.url if self.echo is not None else None,
                ),
            )
            console.attach(app)
            self.console = console
            self._parts.push_async_callback(console.close)
        await self.http_socket.serve(app)

    def _forwarder(self) -> Forwarder | None:
        """Make what forwards requests to other nodes; None on a database that has one node."""
        if self.storage.database.shared is None:
            return None
        from api.http.forward import Forwarder

        if not self.node_url:
            _log.info(
                "TRUNKLINE_NODE_URL is not set and this server listens on every address:"
                " other servers cannot forward requests to it"
            )
        forwarder = Forwarder(self.storage.membership)
        self._parts.push_async_callback(forwarder.close)
        return forwarder

    def _collect_metrics(self) -> None:
        lag = LoopLag()
        lag.start()
        self._parts.callback(lag.close)
        collect_calls(self.metrics, self.control, self.storage)
        collect_messages(self.metrics, self.services)
        collect_recordings(self.metrics, self.services.uploads)
        collect_speech(self.metrics, self._speech)
        collect_recognition(self.metrics, self._recognizer)
        collect_storage(self.metrics, self.storage)
        collect_tools(self.metrics, self.services.tools.service, lambda: len(self.mcp.sessions))
        collect_caches(self.metrics, self.control, self.storage)
        collect_process(self.metrics, lag, self.lifecycle, self.settings.data_dir, self.settings.node)
        self._parts.push_async_callback(self.metrics.close)


def _service_settings(settings: Settings) -> ServiceSettings:
    return ServiceSettings(
        calls=_control_settings(settings),
        node=settings.node,
        webrtc_port=settings.webrtc_port,
        ice=IceServers(settings.ice_servers, settings.turn_secret),
        recording_days=settings.recording_retention_days,
        messages_per_second=settings.messages_per_second,
    )


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
            continuous=True,
        ),
        prompts_dir=PROMPTS_DIRECTORY,
        allowed_countries=settings.allowed_countries,
        max_calls=settings.max_calls,
        max_cps=settings.max_cps,
        silent_to_unknown_sources=settings.sip_unknown_sources == "silent",
        trusted_sources=settings.trusted_sources,
        fronts=settings.sip_fronts,
        front=settings.sip_outbound_proxy if settings.sip_fronts else None,
        node_sip=None if (own := settings.node_sip) is None else Listen("udp", own.host, own.port),
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


def _own_url(listen: HostPort) -> str:
    """URL of a listening address; empty for one that is any, or not known before it is bound."""
    return "" if listen.is_any or listen.port == 0 else f"http://{listen}"


async def _open_store(settings: Settings) -> ObjectStore | None:
    """
    Open the object store of recordings, if there is one, and try it.

    A wrong bucket or key ends the start, as all recordings would stay on this disk. A store that does not
    answer does not: calls need it as little as while the server runs.
    """
    folder, name = settings.recordings_store, "TRUNKLINE_RECORDINGS_STORE"
    if folder is None:
        return None
    from callcontrol.recordings.aio.s3 import open_s3

    try:
        store = await open_s3(folder)
    except ImportError as error:
        raise StartFailed(f"{name} needs a library: pip install 'trunkline[s3]'") from error
    except StoreFailed as error:
        raise StartFailed(f"cannot use the AWS_ variables for {name}: {error}") from error
    try:
        await store.check(settings.node)
    except StoreRefused as error:
        raise StartFailed(f"cannot use {name}={folder}: {error}") from error
    except StoreFailed as error:
        _log.warning("%s does not answer; recordings wait on the disk until it does: %s", folder, error)
    return store


def _cannot_listen(variable: str, address: str, error: OSError) -> StartFailed:
    return StartFailed(
        f"cannot listen on {address}: {error.strerror or error}; "
        f"stop what listens there, or set {variable} to another address"
    )


def sip_listens(settings: Settings) -> list[Listen]:
    """Listening addresses, each with the advertised address of its IP version."""
    return [
        Listen(listen.transport, listen.host, listen.port, _advertised(listen.host, settings.sip_advertise))
        for listen in settings.sip_listen
    ]


def _advertised(host: str, addresses: Sequence[str]) -> str | None:
    return next((address for address in addresses if (":" in address) is (":" in host)), None)


def user_agent_settings(settings: Settings) -> UserAgentSettings:
    """Settings of the user agent."""
    return UserAgentSettings(
        streams=replace(StreamLimits(), keepalive_s=settings.sip_keepalive_s),
        tls=_tls(settings),
        digest=DigestSettings(realm=settings.sip_realm, algorithms=settings.sip_digest),
        min_se_s=settings.sip_min_se,
        max_udp_request_bytes=settings.sip_udp_max_bytes,
        name_servers=name_servers(settings),
    )


def name_servers(settings: Settings) -> list[NameServer]:
    """DNS servers for peers' names; an empty list means those of the system."""
    return [(server.host, server.port) for server in settings.dns_servers]


def _tls(settings: Settings) -> TlsSettings | None:
    if settings.sip_tls_cert is None or settings.sip_tls_key is None:
        return None
    return TlsSettings(
        settings.sip_tls_cert,
        settings.sip_tls_key,
        settings.sip_tls_ca,
        verify_servers=settings.sip_tls_verify,
        clients=ClientCertificates(settings.sip_tls_clients),
        wildcards=settings.sip_tls_wildcards,
    )
