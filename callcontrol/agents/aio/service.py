"""Voice agents of accounts; ``callcontrol.agents.agent`` validates them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.accounts.aio.accounts import Refresher
from callcontrol.agents.agent import changed_agent, new_agent
from callcontrol.agents.store import agents
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database import revisions
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.cached_rows import CachedRows
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import Conflict, DomainError, Forbidden, NotFound, ValidationFailed
from callcontrol.models import Page, SubscribedEvent, VoiceAgent
from callcontrol.webhooks.aio.outbox import Outbox
from callcontrol.webhooks.store import publish as fan_out

__all__ = ["AgentService"]

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
        directory: Refresher,
        destinations: Destinations,
        outbox: Outbox,
        updated_event: Callable[[VoiceAgent, Iterable[str], str, datetime], SubscribedEvent],
    ) -> None:
        self._rows = CachedRows(database, writer, directory)
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

        def write(connection: Connection) -> DomainError | None:
            if agents.page(connection, account_sid, offset=0, limit=1)[1] >= _MAX_AGENTS:
                return Conflict(f"The account has {_MAX_AGENTS} agents; delete one first.")
            agents.insert(connection, agent, revisions.next_revision(connection))
            return None

        await self._rows.change(write)
        return agent

    async def list(self, account_sid: str, page: int = 1, per_page: int = 20) -> Page[VoiceAgent]:
        """Agents of the account, newest first."""
        return await self._rows.page(partial(agents.page, account_sid=account_sid), page, per_page)

    async def get(self, account_sid: str, agent_id: str) -> VoiceAgent:
        """
        One agent of the account.

        Raises:
            NotFound: The agent does not exist.
            Forbidden: It is another account's.
        """
        return await self._rows.look_up(lambda connection: _own(connection, account_sid, agent_id))

    async def update(self, account_sid: str, agent_id: str, values: Mapping[str, Any]) -> VoiceAgent:
        """
        Change the given fields, from the next call on, and publish an event of the change.

        Raises:
            NotFound: The agent does not exist.
            Forbidden: It is another account's.
            ValidationFailed: Names every unknown field, and every field with a wrong value.
        """
        now, event_id = utc_now(), new_id()

        def write(connection: Connection) -> VoiceAgent | DomainError:
            owned = _own(connection, account_sid, agent_id, lock=True)
            if isinstance(owned, DomainError):
                return owned
            try:
                changed = changed_agent(owned, values, now)
                self._check_reach(changed)
            except ValidationFailed as refusal:
                return refusal
            agents.update(connection, changed, revisions.next_revision(connection))
            if replace(changed, updated_at=owned.updated_at) != owned:
                fan_out.publish(connection, [self._updated_event(changed, values, event_id, now)])
            return changed

        changed = await self._rows.change(write)
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
        now = utc_now()

        def write(connection: Connection) -> DomainError | None:
            owned = _own(connection, account_sid, agent_id, lock=True)
            refusal = (
                owned if isinstance(owned, DomainError) else _reject_reason(connection, account_sid, agent_id)
            )
            if refusal is None:
                agents.delete(connection, agent_id, now, revisions.next_revision(connection))
            return refusal

        await self._rows.change(write)

    def _check_reach(self, agent: VoiceAgent) -> None:
        if agent.stream is None or agent.stream.stream_url is None:
            return
        try:
            self._destinations.check_url(agent.stream.stream_url, schemes=("ws", "wss"))
        except DomainError as refusal:
            raise ValidationFailed.of("stream_url", refusal.message) from None


def _own(
    connection: Connection, account_sid: str, agent_id: str, *, lock: bool = False
) -> VoiceAgent | DomainError:
    found = agents.get(connection, agent_id, lock=lock)
    if found is None:
        return NotFound("There is no such agent.")
    if found.account_sid != account_sid:
        return Forbidden("The agent belongs to another account.")
    return found


def _reject_reason(connection: Connection, account_sid: str, agent_id: str) -> Conflict | None:
    attached = agents.attached(connection, account_sid, agent_id)
    if not attached:
        return None
    message = "Numbers or applications send calls to this agent; bind them elsewhere first."
    return Conflict(message, details=attached)
