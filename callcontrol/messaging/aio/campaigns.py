"""Campaigns over the database: created, shown, cancelled, and turned into messages when they are due."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tasks import Worker
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database import idempotency
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.database.aio.writer import Writer
from callcontrol.e164 import read_number
from callcontrol.errors import (
    ChannelNotConfigured,
    Conflict,
    DomainError,
    FieldError,
    NotFound,
    ValidationFailed,
)
from callcontrol.messaging.campaigns import (
    MAX_DRAFTS,
    MAX_OPEN,
    NO_RECIPIENTS,
    Campaign,
    CampaignCounts,
    CampaignState,
    body_parameters,
    estimated_end,
    first_state,
    schedule_errors,
)
from callcontrol.messaging.models import DEFAULT_MESSAGES_PER_SECOND, Template
from callcontrol.messaging.store import campaigns as rows
from callcontrol.messaging.store import channels, contacts, templates
from callcontrol.messaging.store.campaign_batches import make_batch
from callcontrol.models import Page
from callcontrol.webhooks.aio.outbox import Outbox

log = logging.getLogger(__name__)

_EVERY_S: Final = 1.0
_AT_ONCE: Final = 100
_SLICE_S: Final = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRequest:
    """A request for a campaign; without a time and not ``immediately`` it is a draft."""

    name: str
    template_name: str
    phone_numbers: Sequence[str]
    language: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    immediately: bool = True
    scheduled_for: datetime | None = None


@dataclass(frozen=True, slots=True)
class CampaignView:
    """A campaign at one time, its counts, and an estimate of when its last message will have left."""

    campaign: Campaign
    counts: CampaignCounts
    estimated_end: datetime | None


@dataclass(frozen=True, slots=True)
class TakenCampaign:
    """A campaign that was accepted, and the numbers it is not sent to, as they were given."""

    view: CampaignView
    duplicates: tuple[str, ...]
    invalid: tuple[str, ...]
    opted_out: tuple[str, ...]


@dataclass(slots=True)
class _Recipients:
    """Numbers in E.164, each once, in the order given; also the duplicates and the invalid numbers."""

    numbers: dict[str, None] = field(default_factory=dict)
    duplicates: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Sort one number of the request."""
        try:
            number = read_number(text)
        except ValueError:
            self.invalid.append(text)
            return
        if number in self.numbers:
            self.duplicates.append(text)
        else:
            self.numbers[number] = None


class CampaignService:
    """
    The campaigns of accounts.

    Nothing is kept in memory. Any number of processes may create messages of the same campaign: its progress
    is stored in its row, and is written with the messages.
    """

    def __init__(self, database: Database, writer: Writer, outbox: Outbox) -> None:
        self._database = database
        self._writer = writer
        self._outbox = outbox
        self._default_rate = DEFAULT_MESSAGES_PER_SECOND
        self._worker = Worker("campaigns", self._step, retry_s=_EVERY_S, log=log, level=logging.DEBUG)
        self._on_queued: Callable[[], None] | None = None

    def start(self, queued: Callable[[], None], default_rate: int = DEFAULT_MESSAGES_PER_SECOND) -> None:
        """
        Start creating messages.

        ``queued`` is called when new ones wait for the network; ``default_rate`` are the messages per second
        of accounts that have set none.
        """
        self._on_queued = queued
        self._default_rate = default_rate
        self._worker.start()

    async def close(self) -> None:
        """Stop; the next process that runs does what is left."""
        await self._worker.close()

    async def create(self, account_sid: str, request: CampaignRequest) -> TakenCampaign:
        """
        Accept a campaign: once this returns it is sent, even if this process ends.

        A draft waits for ``send``.

        Raises:
            ValidationFailed: Names every wrong field; ``phoneNumbers`` when nobody is left to send to.
            NotFound: There is no approved template of that name.
            ChannelNotConfigured: The account's channel is not connected.
            Conflict: The account has the maximum number of campaigns under way, or of drafts.
        """
        now = utc_now()
        errors = schedule_errors(request.scheduled_for, now)
        recipients = await _validated(request.phone_numbers)
        if not recipients.numbers:
            errors.append(NO_RECIPIENTS)
        if errors:
            errors += await self._database.read(partial(_wrong_variables, account_sid, request))
            raise ValidationFailed(errors)
        reference, claim = new_id(), CLAIM.get()

        def write(connection: Connection) -> TakenCampaign | DomainError:
            taken = self._take(connection, account_sid, request, recipients, reference, now)
            if claim is not None and isinstance(taken, TakenCampaign):
                idempotency.note_effect(connection, claim, f"campaign:{taken.view.campaign.campaign_id}")
            return taken

        taken = await self._writer.commit(write)
        if taken.view.campaign.state is CampaignState.RUNNING:
            self._worker.wake()
        return taken

    async def status(self, account_sid: str, campaign_id: int) -> CampaignView:
        """
        The campaign and its counts, which are read at one time and add up to its total.

        Raises:
            NotFound: The campaign does not exist on the account.
        """
        now = utc_now()

        def read(connection: Connection) -> CampaignView | None:
            found = rows.with_counts(connection, account_sid, campaign_id)
            return None if found is None else self._views(connection, account_sid, [found], now)[0]

        view = await self._database.read(read)
        if view is None:
            raise _unknown()
        return view

    async def list(
        self, account_sid: str, state: CampaignState | None, page: int, per_page: int
    ) -> Page[CampaignView]:
        """The account's campaigns, newest first."""
        now = utc_now()

        def read(connection: Connection) -> Page[CampaignView]:
            offset = (page - 1) * per_page
            found, total = rows.page(connection, account_sid, state, offset=offset, limit=per_page)
            return Page([*self._views(connection, account_sid, found, now)], total, page, per_page)

        return await self._database.read(read)

    async def send(self, account_sid: str, campaign_id: int) -> CampaignView:
        """
        Start a draft; one that runs already stays so.

        Raises:
            NotFound: The campaign does not exist on the account, or its template is not approved any more.
            ChannelNotConfigured: The account's channel is not connected.
            Conflict: It is scheduled or over, or the account has the maximum number of campaigns under way.
        """
        now = utc_now()

        def write(connection: Connection) -> DomainError | None:
            campaign = rows.get(connection, campaign_id)
            if campaign is None or campaign.account_sid != account_sid:
                return _unknown()
            if campaign.state is CampaignState.RUNNING:
                return None
            if campaign.state is not CampaignState.DRAFT:
                return _already(campaign)
            name, language = campaign.template_name, campaign.language
            template = templates.usable(connection, account_sid, name, language, hold=True)
            if template is None or template.template_id != campaign.template_id:
                return _no_template(name, language)
            refusal = _refusal(connection, account_sid, CampaignState.RUNNING)
            if refusal is None:
                rows.start(connection, campaign, now)
            return refusal

        await self._writer.commit(write)
        self._worker.wake()
        return await self.status(account_sid, campaign_id)

    async def cancel(self, account_sid: str, campaign_id: int) -> CampaignView:
        """
        Stop a campaign. Messages being handed to the network at this time still leave.

        Raises:
            NotFound: The campaign does not exist on the account.
            Conflict: It is over already.
        """
        now = utc_now()

        def write(connection: Connection) -> DomainError | None:
            campaign = rows.get(connection, campaign_id)
            if campaign is None or campaign.account_sid != account_sid:
                return _unknown()
            if campaign.state is CampaignState.CANCELLED:
                return None
            if rows.cancel(connection, campaign, now) is None:
                return _already(campaign)
            return None

        await self._writer.commit(write)
        return await self.status(account_sid, campaign_id)

    async def run(self, now: datetime) -> bool:
        """
        Do all due work of every campaign; return True if there may be more to do at once.

        Raises:
            ServiceUnavailable: The database is failing; what was done is done.
        """
        more = False
        last: tuple[datetime, int] | None = None
        while found := await self._database.read(
            partial(rows.unfinished, now=now, after=last, limit=_AT_ONCE)
        ):
            for campaign in found:
                more |= await self._process(campaign, now)
            last = found[-1].starts_at, found[-1].campaign_id
        return more

    async def _process(self, campaign: Campaign, now: datetime) -> bool:
        if campaign.made < campaign.total:
            made, published = await self._writer.commit(
                lambda connection: make_batch(
                    connection, campaign.campaign_id, now, self._default_rate, new_id
                )
            )
            if made and self._on_queued is not None:
                self._on_queued()
            if published:
                self._outbox.changed()
            return made > 0
        if await self._database.read(partial(rows.ripe, campaign=campaign, now=now)):
            if await self._writer.commit(
                lambda connection: rows.moved(connection, [campaign.campaign_id], now)
            ):
                self._outbox.changed()
        return False

    async def _step(self) -> float:
        return 0.0 if await self.run(utc_now()) else _EVERY_S

    def _take(
        self,
        connection: Connection,
        account_sid: str,
        request: CampaignRequest,
        recipients: _Recipients,
        reference: str,
        now: datetime,
    ) -> TakenCampaign | DomainError:
        """Decide on and write a campaign in one transaction."""
        template = templates.usable(
            connection, account_sid, request.template_name, request.language, hold=True
        )
        if template is None:
            return _no_template(request.template_name, request.language)
        values = body_parameters(request.variables, template.variables)
        if not isinstance(values, tuple):
            return ValidationFailed(values)
        state = first_state(request.scheduled_for, immediately=request.immediately)
        refusal = _refusal(connection, account_sid, state)
        if refusal is not None:
            return refusal
        opted_out = contacts.opted_out(connection, account_sid, list(recipients.numbers))
        numbers = [number for number in recipients.numbers if number not in opted_out]
        if not numbers:
            return ValidationFailed.of("phoneNumbers", "holds only numbers of contacts who have opted out")
        campaign = rows.insert(
            connection,
            _campaign(account_sid, request, template, values, len(numbers), reference, state, now),
            numbers,
        )
        (view,) = self._views(
            connection, account_sid, [(campaign, CampaignCounts(queued=campaign.total))], now
        )
        return TakenCampaign(
            view,
            tuple(recipients.duplicates),
            tuple(recipients.invalid),
            tuple(number for number in recipients.numbers if number in opted_out),
        )

    def _views(
        self,
        connection: Connection,
        account_sid: str,
        found: Sequence[tuple[Campaign, CampaignCounts]],
        now: datetime,
    ) -> Sequence[CampaignView]:
        """Campaigns of the account with their estimates."""
        channel = channels.channel_of(connection, account_sid, default_rate=self._default_rate)
        unsent = [campaign.campaign_id for campaign, counts in found if campaign.made and counts.queued]
        due_at = rows.latest_due(connection, unsent)
        return [
            CampaignView(
                campaign,
                counts,
                estimated_end(
                    campaign, counts, channel.messages_per_second, now, due_at.get(campaign.campaign_id)
                ),
            )
            for campaign, counts in found
        ]


def _wrong_variables(
    account_sid: str, request: CampaignRequest, connection: Connection
) -> Sequence[FieldError]:
    """Errors in the values of the template's variables; none if there is no such template."""
    template = templates.usable(connection, account_sid, request.template_name, request.language)
    if template is None:
        return ()
    values = body_parameters(request.variables, template.variables)
    return () if isinstance(values, tuple) else values


async def _validated(texts: Sequence[str]) -> _Recipients:
    """Sort the numbers of a request; parsing a thousand is slow, so this yields to other tasks meanwhile."""
    loop = asyncio.get_running_loop()
    recipients, since = _Recipients(), loop.time()
    for text in texts:
        recipients.add(text)
        if loop.time() - since > _SLICE_S:
            await asyncio.sleep(0)
            since = loop.time()
    return recipients


def _campaign(
    account_sid: str,
    request: CampaignRequest,
    template: Template,
    values: tuple[str, ...],
    total: int,
    reference: str,
    state: CampaignState,
    now: datetime,
) -> Campaign:
    later = request.scheduled_for
    return Campaign(
        reference=reference,
        account_sid=account_sid,
        name=request.name,
        template_id=template.template_id,
        template_name=template.name,
        language=template.language,
        body_parameters=values,
        total=total,
        created_at=now,
        starts_at=later or now,
        scheduled_for=later,
        state=state,
        started_at=now if state is CampaignState.RUNNING else None,
    )


def _refusal(connection: Connection, account_sid: str, state: CampaignState) -> DomainError | None:
    """Reason why the account can have no further campaign in a state now; None if it can."""
    if not channels.channel_of(connection, account_sid).is_connected:
        return ChannelNotConfigured(
            "The account's channel is not connected; connect it with PATCH /api/v1/channel."
        )
    if state is CampaignState.DRAFT:
        if rows.draft_count(connection, account_sid) >= MAX_DRAFTS:
            return Conflict(f"The account has {MAX_DRAFTS} drafts; send or cancel one.")
    elif rows.open_count(connection, account_sid) >= MAX_OPEN:
        return Conflict(f"The account has {MAX_OPEN} campaigns under way; cancel one or wait for its end.")
    return None


def _already(campaign: Campaign) -> Conflict:
    status = campaign.state.status
    return Conflict(f"The campaign is {status} already.", details={"status": status})


def _no_template(name: str, language: str | None) -> NotFound:
    wanted = name + (f" in {language}" if language else "")
    return NotFound(f"There is no approved template {wanted}; GET /api/v1/templates lists them.")


def _unknown() -> NotFound:
    return NotFound("There is no such campaign on the account.")
