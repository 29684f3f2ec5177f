"""Storage: the database and all services on it, opened and closed together."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from callcontrol.accounts.aio.accounts import AccountService
from callcontrol.accounts.aio.keys import KeyService
from callcontrol.agents.aio.service import AgentService
from callcontrol.agents.aio.stream_settings import StreamSettingsService
from callcontrol.agents.aio.transcripts import TranscriptStore
from callcontrol.aio.tokens import utc_now
from callcontrol.applications.aio import ApplicationService
from callcontrol.assistant.aio.keys import AssistantKeys
from callcontrol.bootstrap import reseal as sealed_rows
from callcontrol.bootstrap.aio.housekeeping import Housekeeper
from callcontrol.calls.aio.call_records import CallLogService
from callcontrol.calls.records.aio import CallStore
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.idempotency import IdempotencyStore
from callcontrol.database.aio.writer import Writer, WriterSettings
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.errors import SecretsUnreadable
from callcontrol.masking.aio.logs import MaskingLogs
from callcontrol.masking.aio.numbers import MaskingNumberService
from callcontrol.masking.aio.sessions import MaskingSessionService
from callcontrol.masking.aio.settings import MaskingSettingsService
from callcontrol.messaging.aio.campaigns import CampaignService
from callcontrol.messaging.aio.contacts import ContactListService, ContactService
from callcontrol.numbers.aio.service import DEFAULT_COUNTRIES, NumberService
from callcontrol.otp import store as otps
from callcontrol.recordings.aio.messages import MessageStore
from callcontrol.secrets.aio import SecretBox, key_file
from callcontrol.trunks.aio.numbers import TrunkNumberService
from callcontrol.trunks.aio.service import TrunkService
from callcontrol.wallet.aio import WalletService
from callcontrol.webhooks.aio.outbox import Outbox, OutboxSettings
from callcontrol.webhooks.aio.subscriptions import SubscriptionService
from sip.aio import NameServer

log = logging.getLogger(__name__)

KEY_FILE: Final = "secret.key"
"""File of the default key, in the data directory beside the SQLite database."""


class Storage:
    """
    Database and the services on it.

    Attributes:
        database: For reading.
        writer: For writing.
        secrets: Encrypts secrets in the database, and computes digests of those that are only compared.
        directory: Accounts, numbers and trunks in memory, kept up to date.
        destinations: Decides which destinations of webhooks and streams are permitted.
        outbox: Delivers webhooks.
        housekeeper: Deletes expired rows.
        calls, messages, transcripts, wallet, accounts, keys, assistant_keys, numbers, masking_numbers,
            masking_sessions, masking_settings, masking_logs, masking_webhooks, assistant_webhooks,
            webhook_endpoints, applications, agents, trunks, trunk_numbers, call_logs, subscriptions,
            campaigns, contacts, contact_lists, idempotency: The services.
    """

    def __init__(
        self,
        database: Database,
        *,
        node: str = "local",
        allow_private_destinations: bool = False,
        allowed_countries: Collection[str] = DEFAULT_COUNTRIES,
        settings: WriterSettings | None = None,
        name_servers: Sequence[NameServer] = (),
        secrets: SecretBox,
    ) -> None:
        self.database = database
        self.secrets = secrets
        self.writer = Writer(database, settings or WriterSettings(node=node))
        database.hurried = lambda: self.writer.failing
        self.directory = DirectoryLoader(database, name_servers)
        self.destinations = DestinationGuard(allow_private_destinations)
        self.outbox = Outbox(self.writer, self.destinations, self.secrets_of, OutboxSettings(node=node))
        # Before the calls: transcripts and messages of a call must be durable when its end is.
        self.transcripts = TranscriptStore(database, self.writer)
        self.messages = MessageStore(database, self.writer, node=node)
        self.calls = CallStore(database, self.writer, self.outbox, node=node)
        self.wallet = WalletService(database, self.writer)
        self.keys = KeyService(database, self.writer)
        self.assistant_keys = AssistantKeys(self.keys)
        self.accounts = AccountService(database, self.writer, self.keys, self.directory)
        self.numbers = NumberService(
            database, self.writer, self.directory, self.destinations, allowed_countries
        )
        self.masking_numbers = MaskingNumberService(database, self.writer, self.directory, self.numbers)
        self.masking_sessions = MaskingSessionService(database, self.writer)
        self.stream_settings = StreamSettingsService(database, self.writer, self.directory)
        self.applications = ApplicationService(
            database, self.writer, self.directory, self.destinations, allowed_countries
        )
        self.agents = AgentService(database, self.writer, self.directory, self.destinations, self.outbox)
        self.subscriptions = SubscriptionService(database, self.writer, self.destinations, self.outbox)
        self.trunks = TrunkService(database, self.writer, self.directory)
        self.trunk_numbers = TrunkNumberService(database, self.writer, self.directory)
        self.call_logs = CallLogService(database, self.writer)
        self.masking_settings = MaskingSettingsService(database, self.writer, self.destinations, self.outbox)
        self.masking_webhooks = SubscriptionService(
            database, self.writer, self.destinations, self.outbox, "masking", self.secrets_of
        )
        self.assistant_webhooks = SubscriptionService(
            database,
            self.writer,
            self.destinations,
            self.outbox,
            "assistant",
            self.secrets_of,
            makes_secrets=True,
        )
        self.contacts = ContactService(database, self.writer)
        self.contact_lists = ContactListService(database, self.writer)
        self.webhook_endpoints = SubscriptionService(
            database, self.writer, self.destinations, self.outbox, "messaging", makes_secrets=True
        )
        self.masking_logs = MaskingLogs(database, self.writer)
        self.campaigns = CampaignService(database, self.writer, self.outbox)
        self.idempotency = IdempotencyStore(database, self.writer, self.secrets, node=node)
        self.housekeeper = Housekeeper(
            self.writer, self.idempotency, [self.forget_passwords, self.masking_sessions.sweep]
        )

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        node: str = "local",
        allow_private_destinations: bool = False,
        allowed_countries: Collection[str] = DEFAULT_COUNTRIES,
        deliver: bool = True,
        settings: WriterSettings | None = None,
        name_servers: Sequence[NameServer] = (),
        secrets: SecretBox | None = None,
    ) -> "Storage":
        """
        Open a database, bring its schema up to date and start the services.

        Args:
            url: See ``Database.open``.
            node: Name of this process, unique on the database; the same after a restart, so that it finds
                the rows of its earlier run.
            allow_private_destinations: Let webhooks and streams reach private addresses and plain HTTP.
            allowed_countries: Countries that numbers may be forwarded to, as ISO 3166 codes.
            deliver: Deliver webhooks. A process beside the server, e.g. the command line, must not: it would
                take over deliveries that the server is sending.
            settings: Settings of the writer.
            name_servers: Name servers for the host names of gateways; those of the system when empty.
            secrets: Encrypts secrets in the database, with a key that every process on this database has.
                Optional for an SQLite database: the key is then in a file beside it.

        Raises:
            ValueError: The URL names no supported database, or ``secrets`` is missing.
            SecretsUnreadable: The database is sealed with a key that this process does not have.
        """
        box = secrets if secrets is not None else await asyncio.to_thread(_key_beside, url)
        database = await Database.open(url, secrets=box)
        storage = cls(
            database,
            node=node,
            allow_private_destinations=allow_private_destinations,
            allowed_countries=allowed_countries,
            settings=settings,
            name_servers=name_servers,
            secrets=box,
        )
        try:
            await storage.writer.start()
            await storage._prepare_secrets(thorough=deliver)
            await storage.directory.start()
            if deliver:
                await storage.outbox.start()
                freed = await storage.idempotency.free()
                if freed:
                    log.info("%d idempotency keys of requests that a restart cut off are free again", freed)
                storage.housekeeper.start()
        except BaseException:
            await storage.close()
            raise
        return storage

    async def refresh(self) -> None:
        """Refresh the directory after a failed lookup; never raises."""
        await self.directory.refresh_after_miss()

    async def close(self) -> None:
        """Stop delivering, write all pending changes and close everything."""
        await self.housekeeper.close()
        await self.directory.close()
        await self.outbox.close()
        await self.writer.close()
        await self.database.close()

    async def _prepare_secrets(self, *, thorough: bool) -> None:
        """
        Reject a wrong key, and seal all secrets with the first key.

        With ``thorough`` all secrets are checked: those of an earlier version may be in the clear, and during
        a rotation other processes may have sealed some with the previous first key.
        """
        current = await self.database.read(sealed_rows.sample_is_current)
        if current and not (thorough and await self.database.read(sealed_rows.any_stale)):
            return
        count = await self.writer.commit(sealed_rows.reseal_all)
        if isinstance(count, SecretsUnreadable):
            raise count
        if count:
            log.info("%d secrets were sealed with the key %s", count, self.secrets.key_names[0])

    def secrets_of(self, account_sid: str) -> Sequence[str]:
        """Signing secrets of an account."""
        account = self.directory.account(account_sid)
        return (account.webhook_secret,) if account is not None else ()

    async def forget_passwords(self) -> int:
        """Delete the digests of expired one-time passwords; returns their number."""
        now = utc_now()
        return await self.writer.commit(lambda connection: otps.forget(connection, now))


def _key_beside(url: str) -> SecretBox:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ValueError(f"{url!r} is not a database URL") from None
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        raise ValueError("this database needs a key for its secrets")
    return SecretBox([key_file(Path(parsed.database).with_name(KEY_FILE))])
