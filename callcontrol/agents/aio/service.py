"""Voice agents of accounts, which ``callcontrol.agents.agent`` validates, and settings for their streams."""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.accounts.aio.accounts import AccountService
from callcontrol.accounts.store import set_streams
from callcontrol.agents.agent import changed_agent, new_agent
from callcontrol.agents.store.agents import AGENTS, attached
from callcontrol.agents.stream_settings import check_protocol, rotated
from callcontrol.aio.tokens import new_id, new_secret_bytes, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.cached_rows import OwnedRows
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.egress.url_policy import STREAM_SCHEMES, Destinations, url_errors
from callcontrol.errors import Conflict, ValidationFailed
from callcontrol.models import Account, Page, SubscribedEvent, VoiceAgent
from callcontrol.webhooks.aio.outbox import Outbox
from callcontrol.webhooks.store import publish as fan_out

_MAX_AGENTS: Final = 1000


class AgentService:
    """
    Voice agents.

    An agent of another account is refused with ``Forbidden``, an unknown one with ``NotFound``.

    ``updated_event`` makes the event of a change from the agent, the names of the given fields, the event's
    identifier and the time.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        directory: DirectoryLoader,
        destinations: Destinations,
        outbox: Outbox,
        updated_event: Callable[[VoiceAgent, Iterable[str], str, datetime], SubscribedEvent],
    ) -> None:
        self._rows = OwnedRows(database, writer, directory, AGENTS)
        self._destinations = destinations
        self._outbox = outbox
        self._updated_event = updated_event

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> VoiceAgent:
        """
        Create an agent with the given fields.

        Raises:
            ValidationFailed: Names every wrong, missing or unknown field.
            Conflict: The account has the maximum number of agents.
        """
        agent = new_agent(new_id(), account_sid, values, utc_now())
        self._check_reach(agent)
        return await self._rows.create(account_sid, agent, _MAX_AGENTS)

    async def list(self, account_sid: str, page: int = 1, per_page: int = 20) -> Page[VoiceAgent]:
        """Agents of the account, newest first."""
        return await self._rows.list(account_sid, page, per_page)

    async def get(self, account_sid: str, agent_id: str) -> VoiceAgent:
        """
        One agent of the account.

        Raises:
            NotFound: The agent does not exist.
            Forbidden: It is another account's.
        """
        return await self._rows.get(account_sid, agent_id)

    async def update(self, account_sid: str, agent_id: str, values: Mapping[str, Any]) -> VoiceAgent:
        """
        Change the given fields, from the next call on, and publish an event of the change.

        Raises:
            NotFound: The agent does not exist.
            Forbidden: It is another account's.
            ValidationFailed: Names every unknown field, and every field with a wrong value.
        """
        now, event_id = utc_now(), new_id()

        def change(connection: Connection, owned: VoiceAgent) -> VoiceAgent:
            changed = changed_agent(owned, values, now)
            self._check_reach(changed)
            if replace(changed, updated_at=owned.updated_at) != owned:
                fan_out.publish(connection, [self._updated_event(changed, values, event_id, now)])
            return changed

        changed = await self._rows.update(account_sid, agent_id, change)
        self._outbox.changed()
        return changed

    async def delete(self, account_sid: str, agent_id: str) -> None:
        """
        Delete an agent; active calls with it go on.

        Raises:
            NotFound: The agent does not exist.
            Forbidden: It is another account's.
            Conflict: Numbers or applications send calls to it.
        """

        def check(connection: Connection) -> None:
            found = attached(connection, account_sid, agent_id)
            if found:
                message = "Numbers or applications send calls to this agent; bind them elsewhere first."
                raise Conflict(message, details=found)

        await self._rows.delete(account_sid, agent_id, check)

    def _check_reach(self, agent: VoiceAgent) -> None:
        if agent.stream is None or agent.stream.stream_url is None:
            return
        url = agent.stream.stream_url
        errors = url_errors(self._destinations.check_url, "stream_url", url, schemes=STREAM_SCHEMES)
        if errors:
            raise ValidationFailed(errors)


class StreamSettingsService:
    """The default dialect and the stream secret of accounts."""

    def __init__(self, accounts: AccountService) -> None:
        self._accounts = accounts

    async def of(self, account_sid: str) -> Account:
        """
        The account, with its settings.

        Raises:
            NotFound: The account does not exist.
        """
        return await self._accounts.get(account_sid)

    async def set_protocol(self, account_sid: str, protocol: str | None) -> Account:
        """
        Set the stream protocol used when a call names none; None for the server's default.

        Raises:
            ValidationFailed: The protocol is not supported.
            NotFound: The account does not exist.
        """
        check_protocol(protocol)
        return await self._accounts.change(
            account_sid,
            lambda account, now: replace(account, stream_protocol=protocol, updated_at=now),
            set_streams,
        )

    async def rotate_secret(self, account_sid: str, overlap_s: int) -> tuple[Account, str]:
        """
        Rotate the account's stream secret; the new one cannot be shown again.

        Raises:
            ValidationFailed: The overlap is too long.
            NotFound: The account does not exist.
        """
        secret = "strsec_" + base64.b64encode(new_secret_bytes()).decode()
        account = await self._accounts.change(
            account_sid, lambda account, now: rotated(account, secret, overlap_s, now), set_streams
        )
        return account, secret
