"""Composition root: builds, starts and closes every service once."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import ArgumentError

from callcontrol.accounts.aio.accounts import AccountService
from callcontrol.accounts.aio.keys import KeyService
from callcontrol.accounts.aio.managed_keys import ManagedKeys
from callcontrol.accounts.aio.sessions import ConsoleSessions, OperatorSessions
from callcontrol.agents.aio.service import AgentService, StreamSettingsService
from callcontrol.agents.aio.transcripts import TranscriptStore
from callcontrol.aio.tokens import utc_now
from callcontrol.applications.aio import ApplicationService
from callcontrol.assistant.aio.keys import AssistantKeys
from callcontrol.assistant.aio.service import AssistantService
from callcontrol.assistant.calls import EVENTS as ASSISTANT_EVENTS
from callcontrol.assistant.calls import agent_updated
from callcontrol.bootstrap.aio.administration import seal_secrets
from callcontrol.bootstrap.aio.call_features import call_features, secrets_now, verb_rules_of
from callcontrol.bootstrap.aio.housekeeping import WEBHOOKS_KEPT, Housekeeper
from callcontrol.bootstrap.directory_rows import changes_since
from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.aio.context import CallControlSettings, CallServices
from callcontrol.calls.aio.host_limits import CallGate
from callcontrol.calls.aio.media.shared_conferences import ConferenceOwners
from callcontrol.calls.aio.sandbox import SandboxCalls
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.recording import RECORDINGS_FOLDER
from callcontrol.calls.records.aio import CallStore, CdrService
from callcontrol.calls.sandbox import SandboxParties
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.idempotency import IdempotencyStore
from callcontrol.database.aio.listener import Listener
from callcontrol.database.aio.writer import Writer, WriterSettings
from callcontrol.database.notifications import DIRECTORY, KEY
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.directory.directory import Directory
from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.masking.aio.logs import MaskingLogs
from callcontrol.masking.aio.numbers import MaskingNumberService
from callcontrol.masking.aio.routing import MaskedRouter
from callcontrol.masking.aio.service import MaskingService
from callcontrol.masking.aio.sessions import MaskingSessionService
from callcontrol.masking.aio.settings import MaskingSettingsService
from callcontrol.masking.settings import EVENTS as MASKING_EVENTS
from callcontrol.messaging.aio.campaigns import CampaignService
from callcontrol.messaging.aio.channels import ChannelService
from callcontrol.messaging.aio.contacts import ContactListService, ContactService
from callcontrol.messaging.aio.dispatcher import Dispatcher, DispatcherSettings
from callcontrol.messaging.aio.messages import MessageService
from callcontrol.messaging.aio.receiving import Receiver
from callcontrol.messaging.aio.templates import TemplateService
from callcontrol.messaging.approval import TemplateReview
from callcontrol.messaging.events import EVENTS as MESSAGING_EVENTS
from callcontrol.messaging.models import DEFAULT_MESSAGES_PER_SECOND
from callcontrol.messaging.network import MessagingNetwork
from callcontrol.messaging.store import campaigns, channels
from callcontrol.messaging.store import queue as chat_queue
from callcontrol.model_keys.aio import ModelKeys
from callcontrol.nodes.aio import Membership
from callcontrol.nodes.lease import LeaseSettings
from callcontrol.numbers.aio.marketplace import NumberMarket
from callcontrol.numbers.aio.renewals import Renewals
from callcontrol.numbers.aio.service import DEFAULT_COUNTRIES, NumberService
from callcontrol.numbers.aio.trunk_numbers import TrunkNumberService
from callcontrol.numbers.inventory import Inventory
from callcontrol.otp import store as otps
from callcontrol.otp.aio import VoiceOtp
from callcontrol.recordings.aio.messages import MessageStore
from callcontrol.recordings.aio.service import RecordingService, RecordingSettings
from callcontrol.recordings.aio.uploads import Uploader, UploadQueue
from callcontrol.recordings.objects import ObjectStore
from callcontrol.secrets.aio import KEY_FILE, SecretBox, key_file
from callcontrol.tools.aio.builtin import call_tools, messaging_tools, wallet_tools
from callcontrol.tools.aio.call_messages import CallMessages
from callcontrol.tools.aio.registry import tool_names
from callcontrol.tools.aio.service import AccountModels, Toolbox
from callcontrol.trunks.aio.places import TrunkPlaces
from callcontrol.trunks.aio.service import TrunkService
from callcontrol.wallet.aio import WalletService
from callcontrol.webhooks.aio.outbox import Outbox, OutboxSettings
from callcontrol.webhooks.aio.subscriptions import SubscriptionService
from callcontrol.webhooks.store import deliveries
from callcontrol.webrtc.aio.listeners import CallListeners
from callcontrol.webrtc.aio.service import BrowserCalls, BrowserCallSettings
from callcontrol.webrtc.ice_servers import IceServers
from media.aio.recognizer import Recognizer
from media.audio import Speaker
from media.audio.speech import Synthesizer
from sip.aio import NameServer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """
    Settings of the services on the database.

    Attributes:
        node: Name of this process, unique on the database; the same after a restart, so that it finds the
            rows of its earlier run.
        place: Machine and data directory of this process; see ``callcontrol.nodes.aio.place_of``.
        leases: Times of the lease on the node's name, for PostgreSQL.
        allow_private_destinations: Let webhooks and streams reach private addresses and plain HTTP.
        allowed_countries: Countries that numbers may be forwarded to, as ISO 3166 codes.
        name_servers: Name servers for the host names of gateways; those of the system when empty.
        outbound_proxy: SIP proxy of carriers that have none of their own.
        public_url: Base URL of links in events.
        node_url: URL at which other nodes reach the API of this one; empty for none.
        version: Version of the program, for those who look at its node.
        webhooks_kept: Retention of finished webhook deliveries.
    """

    node: str = "local"
    place: str = ""
    leases: LeaseSettings = LeaseSettings()
    allow_private_destinations: bool = False
    allowed_countries: Collection[str] = DEFAULT_COUNTRIES
    name_servers: Sequence[NameServer] = ()
    outbound_proxy: str | None = None
    public_url: Callable[[], str] = lambda: ""
    node_url: Callable[[], str] = lambda: ""
    version: str = ""
    webhooks_kept: timedelta = WEBHOOKS_KEPT


class Storage:
    """
    Database and the services on it.

    Attributes:
        database: For reading.
        writer: For writing.
        membership: Lease of this process among those that share the database.
        secrets: Encrypts secrets in the database, and computes digests of those that are only compared.
        directory: Accounts, numbers and trunks in memory, kept up to date.
        destinations: Decides which destinations of webhooks and streams are permitted.
        secrets_of: Secrets that sign the webhooks of an account at this moment, the current one first.
        outbox: Delivers webhooks.
        listener: Hears of changes that other servers make.
        places: Counts legs at trunks with limits; None on SQLite, where limits are counted in memory.
        conferences: Nodes that have conferences; None on SQLite, where this one has all.
        housekeeper: Deletes expired rows.
        calls, messages, uploads, transcripts, wallet, accounts, keys, managed_keys, assistant_keys,
            model_keys, console_sessions, operators, numbers, masking_numbers, masking_sessions,
            masking_settings, masking_logs, masking_webhooks, assistant_webhooks, webhook_endpoints,
            applications, agents, trunks, trunk_numbers, call_logs, subscriptions, campaigns, contacts,
            contact_lists, idempotency: The services.
    """

    def __init__(self, database: Database, secrets: SecretBox, settings: StorageSettings) -> None:
        node, allowed_countries = settings.node, settings.allowed_countries
        self.database = database
        self.secrets = secrets
        self.writer = Writer(database, WriterSettings(node=node))
        self.membership = Membership(
            database,
            self.writer,
            node,
            settings.place,
            settings.node_url,
            settings.leases,
            version=settings.version,
        )
        self.directory = DirectoryLoader(
            database, changes_since, settings.name_servers, settings.outbound_proxy
        )
        self.destinations = DestinationGuard(settings.allow_private_destinations)
        self.secrets_of = partial(secrets_now, self.directory)
        self.outbox = Outbox(
            self.writer,
            self.destinations,
            self.secrets_of,
            OutboxSettings(node=node),
            partial(_form_secret_now, self.directory),
        )
        # Before the calls: transcripts, messages and uploads of a call must be durable when its end is.
        self.transcripts = TranscriptStore(database, self.writer)
        self.messages = MessageStore(database, self.writer, node=node)
        self.places = None if database.shared is None else TrunkPlaces(database, self.writer, node)
        self.conferences = None
        if database.shared is not None:
            self.conferences = ConferenceOwners(self.membership, self.writer, secrets, node)
        self.uploads = UploadQueue(database, self.writer, node=node)
        self.calls = CallStore(
            database,
            self.writer,
            self.outbox,
            PRODUCTS,
            node=node,
            public_url=settings.public_url,
            places=self.places,
        )
        self.wallet = WalletService(database, self.writer)
        self.keys = KeyService(database, self.writer)
        self.model_keys = ModelKeys(database, self.writer)
        self.managed_keys = ManagedKeys(self.keys, partial(tool_names, database))
        self.assistant_keys = AssistantKeys(self.keys)
        self.console_sessions = ConsoleSessions(database, self.writer, self.keys)
        self.operators = OperatorSessions(database, self.writer)
        self.accounts = AccountService(database, self.writer, self.keys, self.directory.refresh)
        self.numbers = NumberService(
            database, self.writer, self.directory, self.destinations, allowed_countries
        )
        self.masking_numbers = MaskingNumberService(database, self.writer, self.directory, self.numbers)
        self.masking_sessions = MaskingSessionService(database, self.writer)
        self.stream_settings = StreamSettingsService(self.accounts)
        self.applications = ApplicationService(
            database, self.writer, self.directory, self.destinations, allowed_countries
        )
        self.agents = AgentService(
            database, self.writer, self.directory, self.destinations, self.outbox, agent_updated
        )
        subscriptions = partial(SubscriptionService, database, self.writer, self.destinations, self.outbox)
        self.subscriptions = subscriptions()
        self.trunks = TrunkService(database, self.writer, self.directory)
        self.trunk_numbers = TrunkNumberService(database, self.writer, self.directory)
        self.call_logs = CdrService(database, self.writer)
        self.masking_settings = MaskingSettingsService(database, self.writer, self.destinations, self.outbox)
        self.masking_webhooks = subscriptions(MASKING_EVENTS, self.secrets_of)
        self.assistant_webhooks = subscriptions(ASSISTANT_EVENTS, self.secrets_of, makes_secrets=True)
        self.contacts = ContactService(database, self.writer)
        self.contact_lists = ContactListService(database, self.writer)
        self.webhook_endpoints = subscriptions(MESSAGING_EVENTS, makes_secrets=True)
        self.masking_logs = MaskingLogs(database, self.writer)
        self.campaigns = CampaignService(database, self.writer, self.outbox)
        self.listener = Listener(
            database.shared,
            {DIRECTORY: self.directory.hear, KEY: self.keys.changed},
            self._look_again,
        )
        self.idempotency = IdempotencyStore(database, self.writer, self.secrets, node=node)
        self.housekeeper = Housekeeper(
            self.writer,
            self.idempotency,
            [
                self.forget_passwords,
                self.masking_sessions.sweep,
                self.console_sessions.sweep,
                self.operators.sweep,
            ],
            settings.webhooks_kept,
        )

    @classmethod
    async def open(
        cls,
        url: str,
        settings: StorageSettings = StorageSettings(),
        *,
        deliver: bool = True,
        secrets: SecretBox | None = None,
    ) -> "Storage":
        """
        Open a database, bring its schema up to date and start the services.

        Args:
            url: See ``Database.open``.
            settings: Settings of the services.
            deliver: Deliver webhooks. A process beside the server, e.g. the command line, must not: it would
                take over deliveries that the server is sending.
            secrets: Encrypts secrets in the database, with a key that every process on this database has.
                Optional for an SQLite database: the key is then in a file beside it.

        Raises:
            ValueError: The URL names no supported database, or ``secrets`` is missing.
            SecretsUnreadable: The database is sealed with a key that this process does not have.
            NodeTaken: Another server on the database has this node's name.
        """
        cipher = secrets if secrets is not None else await asyncio.to_thread(_key_beside, url)
        database = await Database.open(url, secrets=cipher)
        storage = cls(database, cipher, settings)
        try:
            if deliver:
                await storage.membership.join()
            await storage.writer.start()
            await seal_secrets(database, storage.writer, cipher, thorough=deliver)
            await storage.directory.start()
            if deliver:
                await storage.outbox.start()
                freed = await storage.idempotency.free()
                if freed:
                    log.info("%d idempotency keys of interrupted requests are released", freed)
                if storage.places is not None:
                    await storage.places.sweep()
                if storage.conferences is not None:
                    await storage.conferences.sweep()
                storage.listener.start()
                storage.housekeeper.start()
        except BaseException:
            await storage.close()
            raise
        return storage

    async def refresh(self) -> None:
        """Refresh the directory after a failed lookup; never raises."""
        await self.directory.refresh_after_miss()

    def release_node(self, connection: Connection, node: str) -> None:
        """Release what a dead node held: keys, deliveries, messages, dialogs, places, conferences."""
        self.idempotency.free_node(connection, node)
        deliveries.release(connection, node)
        chat_queue.release(connection, node)
        self.calls.take_dialogs(connection, node)
        if self.places is not None:
            self.places.release(connection, node)
        if self.conferences is not None:
            self.conferences.release(connection, node)

    def _look_again(self) -> None:
        """Look for changes of other servers that were not notified."""
        self.directory.look()
        self.keys.expire()

    async def close(self) -> None:
        """Stop delivering, write all pending changes and close everything."""
        await self.housekeeper.close()
        await self.listener.close()
        await self.directory.close()
        await self.outbox.close()
        await self.writer.close()
        await self.membership.close()
        await self.database.close()

    async def forget_passwords(self) -> int:
        """Delete the digests of expired one-time passwords; returns their number."""
        now = utc_now()
        return await self.writer.commit(lambda connection: otps.forget(connection, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """
    Settings of the services of a server.

    Finished recordings are kept for ``recording_days``, where the account has no retention of its own.
    ``messages_per_second`` is the rate of a messaging channel without its own. Browsers' calls use the UDP
    port ``webrtc_port`` of the address of RTP, 0 for any; ``ice`` are the servers that their pages get.
    """

    calls: CallControlSettings
    node: str = "local"
    webrtc_port: int = 0
    ice: IceServers = IceServers()
    recording_days: int = 30
    messages_per_second: int = DEFAULT_MESSAGES_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """
    External systems that the services use.

    Attributes:
        inventory: Numbers for sale.
        network: Network of chat messages.
        review: Review of message templates.
        speech: Synthesizer of the texts that calls speak; without it none are spoken.
        recognizer: Recogniser of what parties say; without it nothing is recognised.
        announcer: Prompts of voice OTP.
        announcements: Synthesizer of announcements with passwords, which must not be stored.
        sandbox_carrier: Carrier of sandbox calls, when there is one.
        sandbox_parties: Parties behind it that call this server, when it runs in this process.
        recordings: Object store of recordings; without it they stay in the data directory.
    """

    inventory: Inventory
    network: MessagingNetwork
    review: TemplateReview
    speech: Synthesizer | None
    recognizer: Recognizer | None = None
    announcer: Speaker
    announcements: Synthesizer
    sandbox_carrier: str | None = None
    sandbox_parties: SandboxParties | None = None
    recordings: ObjectStore | None = None


class Services:
    """
    All services of a server: those on the database, in `storage`, and those that need calls or a provider.

    Attributes:
        storage: The database and the services on it.
        gate: Admits calls while they can be recorded.
        calls: Call control, with its SIP and RTP sockets.
        sandbox_calls: Calls of sandbox parties to numbers of accounts.
        browser_calls: Calls of browsers to numbers of accounts.
        listeners: Browsers that listen in on active calls.
        trunks: Carriers and gateways; it refuses to delete those with active legs.
        uploads: Uploads of recordings to the object store, if there is one.
        receiver, dispatcher: Events of the messaging network, and submission to it.
        verb_rules: Countries, prompts and hosts that requests may name.
    """

    def __init__(self, storage: Storage, settings: ServiceSettings, providers: Providers) -> None:
        database, writer, directory = storage.database, storage.writer, storage.directory
        countries, rate = settings.calls.allowed_countries, settings.messages_per_second
        self.storage = storage
        self.verb_rules = verb_rules_of(settings.calls, storage.destinations)
        self.gate = CallGate(database)
        self._rate = rate
        folder = settings.calls.data_dir / RECORDINGS_FOLDER
        self.uploads: Uploader | None = None
        if providers.recordings is not None:
            self.uploads = Uploader(
                storage.uploads, writer, storage.outbox, PRODUCTS, providers.recordings, folder
            )
        self.masked_routes = MaskedRouter(
            storage.masking_sessions,
            storage.masking_settings,
            storage.destinations,
            directory,
            storage.secrets_of,
            countries,
            storage.calls.journal,
        )
        self.calls = CallControl(
            settings.calls,
            CallServices(
                calls=storage.calls,
                wallets=storage.wallet,
                numbers=storage.numbers,
                routes=directory,
                destinations=storage.destinations,
                features=call_features(
                    settings.calls,
                    directory,
                    storage.destinations,
                    storage.refresh,
                    self.masked_routes,
                    CallMessages(lambda: self.tools.service, self._channel_number),
                ),
                refresh=storage.refresh,
                gate=self.gate,
                add_segment=storage.transcripts.add,
                add_message=storage.messages.add,
                uploads=self.uploads,
                speech=providers.speech,
                recognizer=providers.recognizer,
                registering=storage.membership.registrations,
                places=storage.places,
                conferences=storage.conferences,
                models=AccountModels(storage.model_keys, lambda: self.tools.service),
            ),
        )
        self.sandbox_calls = SandboxCalls(self.calls, directory, storage.refresh, providers.sandbox_parties)
        self.browser_calls = BrowserCalls(
            self.calls,
            directory,
            storage.refresh,
            lambda: [node.node for node in storage.membership.others if node.is_living],
            storage.keys,
            storage.secrets,
            BrowserCallSettings(settings.node, settings.webrtc_port, settings.ice),
        )
        self.listeners = CallListeners(database, writer, storage.calls, self.calls, self.browser_calls.socket)
        self.trunks = TrunkService(database, writer, directory, self.calls.legs_at)
        self.recordings = RecordingService(
            database,
            writer,
            storage.calls,
            storage.messages,
            directory,
            storage.secrets,
            RecordingSettings(
                folder=folder,
                node=settings.node,
                kept_days=settings.recording_days,
                is_another=storage.membership.is_another,
                store=providers.recordings,
                uploads=self.uploads,
            ),
        )
        self.otp = VoiceOtp(
            database,
            writer,
            self.calls,
            storage.destinations,
            providers.announcer,
            providers.announcements,
            storage.secrets,
            countries,
        )
        self.assistant = AssistantService(
            database,
            writer,
            self.calls,
            storage.agents,
            storage.transcripts,
            countries,
            lambda: providers.sandbox_carrier,
        )
        self.masking = MaskingService(database, self.calls, storage.masking_settings, countries)
        self.market = NumberMarket(database, writer, directory, providers.inventory)
        self.renewals = Renewals(database, writer, directory, also=self.market.sweep)
        self.receiver = Receiver(writer, storage.outbox, campaigns.moved)
        self.dispatcher = Dispatcher(
            database,
            writer,
            providers.network,
            self.receiver,
            partial(_rate_of, default_rate=rate),
            DispatcherSettings(node=settings.node),
        )
        self.messages = MessageService(
            database, writer, self.dispatcher, self.receiver, storage.destinations, rate
        )
        self.channels = ChannelService(database, writer, rate)
        self.templates = TemplateService(database, writer, providers.review, storage.outbox)
        self.tools = Toolbox(
            database,
            writer,
            storage.destinations,
            storage.keys,
            {
                **call_tools(database, self.calls, self.otp),
                **wallet_tools(storage.wallet),
                **messaging_tools(self.messages, storage.contacts),
            },
        )
        storage.housekeeper.also(self.recordings.sweep)
        storage.housekeeper.also(self.tools.usage.forget)

    async def _channel_number(self, account_sid: str) -> str:
        return (await self.channels.of(account_sid)).number

    async def start(self) -> None:
        """Start uploads, renewals, messaging and templates; `calls` are started before."""
        if self.uploads is not None:
            await self.uploads.start()
        await self.renewals.start()
        await self.dispatcher.start()
        self.storage.campaigns.start(self.dispatcher.wake, self._rate)
        self.templates.start()

    async def close(self) -> None:
        """Stop all services in reverse order, calls and their uploads last; `storage` stays open."""
        async with AsyncExitStack() as closing:
            if self.uploads is not None:
                closing.push_async_callback(self.uploads.close)
            for close in (
                self.masked_routes.close,
                self.calls.close,
                self.browser_calls.close,
                self.listeners.close,
                self.market.close,
                self.renewals.close,
                self.dispatcher.close,
                self.storage.campaigns.close,
                self.tools.close,
                self.templates.close,
            ):
                closing.push_async_callback(close)


def _rate_of(connection: Connection, account_sid: str, *, default_rate: int) -> int:
    return channels.channel_of(connection, account_sid, default_rate=default_rate).messages_per_second


def _form_secret_now(directory: Directory, account_sid: str) -> str | None:
    account = directory.account(account_sid)
    return None if account is None else account.stream_secrets(utc_now())[0]


def _key_beside(url: str) -> SecretBox:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ValueError(f"{url!r} is not a database URL") from None
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        raise ValueError("this database needs a key for its secrets")
    return SecretBox([key_file(Path(parsed.database).with_name(KEY_FILE))])
