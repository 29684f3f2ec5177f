"""Templates of accounts: stored here, approved by the network."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from sqlalchemy.engine import Connection

from callcontrol.aio.tasks import Worker
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import AlreadyExists, ChannelNotConfigured, Conflict, DomainError, NotFound
from callcontrol.messaging.aio.template_reviews import LEASE, Clock, TemplateReviews
from callcontrol.messaging.approval import TemplateReview
from callcontrol.messaging.models import Channel, Template, TemplateCategory, TemplateStatus
from callcontrol.messaging.store import campaigns, channels, templates
from callcontrol.messaging.templates import MAX_TEMPLATES, new_template
from callcontrol.models import Page
from callcontrol.webhooks.aio.outbox import Outbox

log = logging.getLogger(__name__)

T = TypeVar("T")

_AT_ONCE: Final = 50
_SHORTEST_S: Final = 0.05
_LONGEST_S: Final = 30.0
_AFTER_FAILURE_S: Final = 5.0
# By then its submission has ended, and the network knows the template that it has to forget.
_HANDED_IN_WITHIN: Final = timedelta(minutes=1)


class TemplateService:
    """
    Templates, of one network.

    A template of another account is treated as missing.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        review: TemplateReview,
        outbox: Outbox,
        clock: Clock = utc_now,
    ) -> None:
        self._clock = clock
        self._database = database
        self._writer = writer
        self._reviews = TemplateReviews(writer, review, outbox, clock)
        self._poller = Worker("template-poller", self._step, retry_s=_AFTER_FAILURE_S, log=log)

    def start(self) -> None:
        """
        Start polling the network about every template that is due, in one process at a time.

        The work of a killed process is due again when its lease expires, and any process may take it over.
        """
        self._poller.start()

    async def close(self) -> None:
        """Stop polling; the next start takes over the work under way."""
        await self._poller.close()

    async def run(self) -> timedelta | None:
        """
        Ask the network about all due templates; return the time until the next is due, None when none is.

        Raises:
            ServiceUnavailable: The database is failing.
        """
        now = self._clock()
        while (due := await self._database.read(templates.next_due)) is not None and due <= now:
            await self._handle(now, templates.claim_due, self._reviews.submit_or_check)
            await self._handle(now, templates.claim_withdrawals, self._reviews.withdraw)
        return None if due is None else due - now

    async def create(
        self, account_sid: str, *, name: str, category: TemplateCategory, language: str, body: str
    ) -> Template:
        """
        Create a template and submit it.

        While the network is unavailable the template stays, and is submitted as soon as possible.

        Raises:
            ValidationFailed: Names every wrong field.
            ChannelNotConfigured: The account's channel is not connected.
            AlreadyExists: The account has one of this name and language.
            Conflict: It has as many as it may have.
            ProviderRejected: The network does not accept it; it is deleted here.
        """
        now = self._clock()
        template = new_template(
            new_id(), account_sid, name=name, category=category, language=language, body=body, now=now
        )

        def write(connection: Connection) -> tuple[Template, Channel] | DomainError:
            channel = channels.channel_of(connection, account_sid)
            if not channel.is_connected:
                return ChannelNotConfigured(
                    "The account's channel is not connected; connect it with PATCH /api/v1/channel."
                )
            if templates.number_of(connection, account_sid) >= MAX_TEMPLATES:
                return Conflict(f"The account has {MAX_TEMPLATES} templates; delete one first.")
            kept = templates.insert(connection, template, now + LEASE)
            if kept is None:
                return _name_taken(connection, template)
            return kept, channel

        kept, channel = await self._writer.commit(write)
        submitted = await self._reviews.submit_new(kept, channel)
        self._poller.wake()
        return submitted

    async def list(
        self,
        account_sid: str,
        statuses: Collection[TemplateStatus],
        page: int = 1,
        per_page: int = MAX_TEMPLATES,
    ) -> Page[Template]:
        """Templates of the account that have one of the statuses, newest first."""
        return await self._database.page(
            partial(templates.page, account_sid=account_sid, statuses=statuses), page, per_page
        )

    async def get(self, account_sid: str, template_id: int) -> Template:
        """
        One template of the account.

        Raises:
            NotFound: The template does not exist.
        """
        return await self._database.look_up(partial(_own, account_sid, template_id))

    async def sync(self, account_sid: str, template_id: int) -> Template:
        """
        One template of the account, as the network has it now.

        Raises:
            NotFound: The template does not exist.
            ServiceUnavailable: The network does not answer.
        """
        template = await self.get(account_sid, template_id)
        refreshed = await self._reviews.refresh(template)
        self._poller.wake()
        if refreshed is None:
            raise _not_found()
        return refreshed

    async def delete(self, account_sid: str, template_id: int) -> None:
        """
        Delete a template, here and at the network.

        Raises:
            NotFound: The template does not exist.
            Conflict: A campaign that has not ended uses it.
        """
        now = self._clock()

        def write(connection: Connection) -> DomainError | None:
            template = _own(account_sid, template_id, connection, lock=True)
            if isinstance(template, DomainError):
                return template
            if campaigns.uses_template(connection, template_id):
                return Conflict(
                    "A campaign that has not ended uses this template; wait for its end or cancel it first."
                )
            due_at = now if template.network_ref is not None else now + _HANDED_IN_WITHIN
            templates.withdraw(connection, template, now, due_at)
            templates.delete(connection, template.reference)
            return None

        await self._writer.commit(write)
        self._poller.wake()

    async def _handle(
        self, now: datetime, claim: Callable[..., Sequence[T]], process: Callable[[T], Awaitable[None]]
    ) -> None:
        claimed = await self._writer.commit(partial(claim, now=now, until=now + LEASE, limit=_AT_ONCE))
        await asyncio.gather(*(process(item) for item in claimed))

    async def _step(self) -> float:
        wait = await self.run()
        wait_s = _LONGEST_S if wait is None else wait.total_seconds()
        return min(max(wait_s, _SHORTEST_S), _LONGEST_S)


def _own(
    account_sid: str, template_id: int, connection: Connection, *, lock: bool = False
) -> Template | DomainError:
    found = templates.get(connection, template_id, lock=lock)
    return found if found is not None and found.account_sid == account_sid else _not_found()


def _not_found() -> NotFound:
    return NotFound("There is no such template.")


def _name_taken(connection: Connection, template: Template) -> AlreadyExists:
    other = templates.named(connection, template.account_sid, template.name, template.language)
    return AlreadyExists(
        f"The account has a template {template.name} in {template.language}; delete it or take another name.",
        details={} if other is None else {"id": other.template_id},
    )
