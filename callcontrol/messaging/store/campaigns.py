"""
Campaigns; their states change only by the rules of ``callcontrol.messaging.campaigns``.

Code that changes messages of a campaign calls ``moved`` in the same transaction: so a campaign completes
once, even if the process that had the last of its messages was killed.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.rows import JSON_TUPLE, Codec, ValueTable, count
from callcontrol.database.statements import Statement, pack, to_micros, to_moment, unpack
from callcontrol.database.tables.campaigns import campaigns
from callcontrol.database.tables.chat import chat_messages as messages
from callcontrol.messaging.campaigns import (
    CANCELLED_REASON,
    RECEIPTS_AWAITED,
    RULES,
    Campaign,
    CampaignCounts,
    CampaignEvent,
    CampaignState,
    settled,
)
from callcontrol.messaging.events import campaign_completed
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.webhooks.store import publish as fan_out
from sip.machine import next_state

# A literal condition, so that the partial indexes of open campaigns apply.
_OPEN: Final = sa.text("campaigns.state IN ('scheduled', 'running')")

_ANY_IN_STATE: Final = Statement(
    sa.select(messages.c.message_id)
    .where(messages.c.campaign_id == sa.bindparam("campaign_id"), messages.c.status == sa.bindparam("status"))
    .limit(1)
)
_STATE: Final = Codec(lambda state: state.status, lambda text: CampaignState[text.upper()])
_CAMPAIGNS: Final = ValueTable(campaigns, Campaign, codecs={"state": _STATE, "body_parameters": JSON_TUPLE})
_ONE: Final = sa.select(*(column for column in campaigns.c if column is not campaigns.c.recipients))


def insert(connection: Connection, campaign: Campaign, recipients: Sequence[str]) -> Campaign:
    """Write a new campaign with its recipients, and return it with its number; an existing one stays."""
    known = connection.execute(_ONE.where(campaigns.c.reference == campaign.reference)).first()
    if known is not None:
        return _CAMPAIGNS.value_of(connection, known)
    row = {**_CAMPAIGNS.row_of(connection, campaign), "recipients": pack(recipients)}
    del row["campaign_id"]
    written = connection.execute(sa.insert(campaigns).values(row))
    assert written.inserted_primary_key is not None
    return replace(campaign, campaign_id=written.inserted_primary_key[0])


def get(connection: Connection, campaign_id: int) -> Campaign | None:
    """One campaign, of any account."""
    row = connection.execute(_ONE.where(campaigns.c.campaign_id == campaign_id)).first()
    return _CAMPAIGNS.value_of(connection, row) if row is not None else None


def with_counts(
    connection: Connection, account_sid: str, campaign_id: int
) -> tuple[Campaign, CampaignCounts] | None:
    """A campaign of the account and its counts, read at one time."""
    wanted = _ONE.where(campaigns.c.campaign_id == campaign_id, campaigns.c.account_sid == account_sid)
    return next(iter(_counted(connection, wanted)), None)


def page(
    connection: Connection, account_sid: str, state: CampaignState | None, *, offset: int, limit: int
) -> tuple[list[tuple[Campaign, CampaignCounts]], int]:
    """A page of the account's campaigns, newest first, each with its counts; and their total number."""
    mine = [campaigns.c.account_sid == account_sid]
    if state is not None:
        mine.append(campaigns.c.state == state.status)
    wanted = _ONE.where(*mine).order_by(campaigns.c.created_at.desc(), campaigns.c.campaign_id.desc())
    return _counted(connection, wanted.offset(offset).limit(limit)), count(connection, campaigns, *mine)


def open_count(connection: Connection, account_sid: str) -> int:
    """Number of scheduled or running campaigns of the account."""
    return count(connection, campaigns, campaigns.c.account_sid == account_sid, _OPEN)


def draft_count(connection: Connection, account_sid: str) -> int:
    """Number of drafts of the account."""
    return count(connection, campaigns, campaigns.c.account_sid == account_sid, campaigns.c.state == "draft")


def start(connection: Connection, campaign: Campaign, now: datetime) -> None:
    """Start a draft."""
    started = replace(_started(campaign, now), starts_at=now)
    _CAMPAIGNS.update(connection, started, None, "state", "starts_at", "started_at")


def uses_template(connection: Connection, template_id: int) -> bool:
    """True if a scheduled or running campaign uses a template."""
    wanted = sa.select(campaigns.c.campaign_id).where(campaigns.c.template_id == template_id, _OPEN)
    return connection.execute(wanted.limit(1)).first() is not None


def unfinished(
    connection: Connection, now: datetime, after: tuple[datetime, int] | None, limit: int
) -> list[Campaign]:
    """Open campaigns that are due, earliest first."""
    place = (-1, 0) if after is None else (to_micros(after[0]), after[1])
    here = sa.tuple_(sa.literal(place[0], sa.BigInteger), sa.literal(place[1], sa.BigInteger))
    rows = connection.execute(
        _ONE.where(
            _OPEN,
            campaigns.c.starts_at <= to_micros(now),
            sa.tuple_(campaigns.c.starts_at, campaigns.c.campaign_id) > here,
        )
        .order_by(campaigns.c.starts_at, campaigns.c.campaign_id)
        .limit(limit)
    )
    return [_CAMPAIGNS.value_of(connection, row) for row in rows]


def queued(connection: Connection, campaign_id: int) -> int:
    """Number of messages of a campaign that wait for the network."""
    return count(connection, messages, messages.c.campaign_id == campaign_id, messages.c.status == "queued")


def latest_due(connection: Connection, campaign_ids: Collection[int]) -> dict[int, datetime]:
    """The latest time for which a queued message waits, of each campaign that has one."""
    if not campaign_ids:
        return {}
    rows = connection.execute(
        sa.select(messages.c.campaign_id, sa.func.max(messages.c.due_at).label("due_at"))
        .where(messages.c.campaign_id.in_(campaign_ids), messages.c.status == "queued")
        .group_by(messages.c.campaign_id)
    )
    return {row.campaign_id: to_moment(row.due_at) for row in rows}


def take(connection: Connection, campaign: Campaign, size: int, now: datetime) -> Sequence[str]:
    """
    Advance a campaign past its next recipients, and return them; the first batch starts it.

    The caller writes their messages in the same transaction.
    """
    text = connection.scalar(
        sa.select(campaigns.c.recipients).where(campaigns.c.campaign_id == campaign.campaign_id)
    )
    assert text is not None
    recipients: Sequence[str] = unpack(text)[campaign.made : campaign.made + size]
    _update(connection, replace(_started(campaign, now), made=campaign.made + len(recipients)))
    return recipients


def advance(
    connection: Connection, campaign: Campaign, event: CampaignEvent, now: datetime
) -> Campaign | None:
    """Apply an event to a campaign; return the campaign afterwards, None if its state has no rule for it."""
    state = next_state(RULES, campaign.state, event)
    if state is None:
        return None
    changed = _after(campaign, state, now)
    _update(connection, changed)
    return changed


def cancel(connection: Connection, campaign: Campaign, now: datetime) -> Campaign | None:
    """Cancel a campaign; return it afterwards, None if it is over already."""
    cancelled = advance(connection, campaign, CampaignEvent.CANCEL, now)
    if cancelled is not None:
        chat_messages.cancel(connection, campaign.campaign_id, now, CANCELLED_REASON)
    return cancelled


def ripe(connection: Connection, campaign: Campaign, now: datetime) -> bool:
    """True if all recipients of a campaign have become messages, and a change is to be recorded."""
    if campaign.made < campaign.total or _is_any(connection, campaign.campaign_id, "queued"):
        return False
    if campaign.handed_at is None or now >= campaign.handed_at + RECEIPTS_AWAITED:
        return True
    return not _is_any(connection, campaign.campaign_id, "sent")


def moved(connection: Connection, campaign_ids: Iterable[int], now: datetime) -> bool:
    """
    Complete campaigns that wait for nothing any more, after their messages changed or time has passed.

    Returns True if events were published, so that the outbox is notified once this is committed.
    """
    return any([_settle(connection, campaign_id, now) for campaign_id in sorted(set(campaign_ids))])


def _settle(connection: Connection, campaign_id: int, now: datetime) -> bool:
    campaign = get(connection, campaign_id)
    if campaign is None or not campaign.state.is_open or not ripe(connection, campaign, now):
        return False
    handed_at = campaign.handed_at or now
    if _is_any(connection, campaign_id, "sent") and now < handed_at + RECEIPTS_AWAITED:
        if campaign.handed_at is None:
            _update(connection, replace(campaign, handed_at=handed_at))
        return False
    ((_, counts),) = _counted(connection, _ONE.where(campaigns.c.campaign_id == campaign_id))
    ended = advance(connection, replace(campaign, handed_at=handed_at), settled(counts), now)
    if ended is None:
        return False
    fan_out.publish(connection, [campaign_completed(ended, counts, now)])
    return True


def _is_any(connection: Connection, campaign_id: int, status: str) -> bool:
    return _ANY_IN_STATE.first(connection, {"campaign_id": campaign_id, "status": status}) is not None


def _counted(connection: Connection, wanted: sa.Select[Any]) -> list[tuple[Campaign, CampaignCounts]]:
    """
    Campaigns with their counts.

    It is one statement, so that state and counts are read at one time on either database.
    """
    found = wanted.cte("found")
    state = sa.case((messages.c.error_code == chat_messages.CANCELLED, "cancelled"), else_=messages.c.status)
    counted = (
        sa.select(messages.c.campaign_id, state.label("message_state"), sa.func.count().label("state_total"))
        .where(messages.c.campaign_id.in_(sa.select(found.c.campaign_id)))
        .group_by(messages.c.campaign_id, state)
        .cte("counted")
    )
    rows = connection.execute(
        sa.select(found, counted.c.message_state, counted.c.state_total)
        .select_from(found.outerjoin(counted, counted.c.campaign_id == found.c.campaign_id))
        .order_by(found.c.created_at.desc(), found.c.campaign_id.desc())
    )
    tallied: dict[int, tuple[Campaign, dict[str, int]]] = {}
    for row in rows:
        _, counts = tallied.setdefault(row.campaign_id, (_CAMPAIGNS.value_of(connection, row), {}))
        if row.message_state is not None:
            counts[row.message_state] = row.state_total
    return [(campaign, _counts(campaign, counts)) for campaign, counts in tallied.values()]


def _counts(campaign: Campaign, counts: dict[str, int]) -> CampaignCounts:
    """The counts including recipients without messages: they are queued, or cancelled."""
    rest = "cancelled" if campaign.state is CampaignState.CANCELLED else "queued"
    return CampaignCounts(**{**counts, rest: counts.get(rest, 0) + campaign.total - campaign.made})


def _started(campaign: Campaign, now: datetime) -> Campaign:
    state = next_state(RULES, campaign.state, CampaignEvent.STARTED)
    return campaign if state is None else _after(campaign, state, now)


def _after(campaign: Campaign, state: CampaignState, now: datetime) -> Campaign:
    if state.is_open:
        return replace(campaign, state=state, started_at=now)
    return replace(campaign, state=state, ended_at=now)


def _update(connection: Connection, campaign: Campaign) -> None:
    changing = ("state", "made", "started_at", "handed_at", "ended_at")
    _CAMPAIGNS.update(connection, campaign, None, *changing)
