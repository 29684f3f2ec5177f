"""Whatever happens to a campaign, in whatever order: its counts are its total, and it completes once."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy.engine import Connection
from sqlalchemy.pool import StaticPool

from callcontrol.database.statements import to_micros
from callcontrol.database.tables import metadata
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.chat import chat_messages as messages
from callcontrol.database.tables.webhooks import deliveries
from callcontrol.messaging.campaigns import RECEIPTS_AWAITED, Campaign, CampaignCounts, CampaignState
from callcontrol.messaging.models import Template
from callcontrol.messaging.network import Receipt, ReceiptStatus
from callcontrol.messaging.store import campaigns, contacts, templates
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.messaging.store.campaign_batches import make_batch
from callcontrol.webhooks.store import subscriptions
from callcontrol.webhooks.subscriptions import Subscription
from tests.support.domain import NOW
from tests.support.examples import examples

ACCOUNT = "account-1"
TOLD = ["campaign.completed"]


def database() -> Connection:
    """An empty database in memory, with an account that hears of its campaigns."""
    engine = sa.create_engine("sqlite://", poolclass=StaticPool)
    metadata.create_all(engine)
    connection = engine.connect()
    connection.execute(
        sa.insert(accounts).values(account_sid=ACCOUNT, name="Acme", created_at=0, updated_at=0, **_limits())
    )
    heard = Subscription("hook-1", ACCOUNT, "messaging", "https://receiver.example/", tuple(TOLD), NOW, NOW)
    subscriptions.insert(connection, heard)
    template = Template(
        template_id=0,
        account_sid=ACCOUNT,
        name="offer",
        language="en_US",
        category="UTILITY",
        body="Hello",
        variables=0,
        status="APPROVED",
        created_at=NOW,
        updated_at=NOW,
        reference="template-1",
    )
    templates.insert(connection, template, NOW)
    connection.commit()
    return connection


def _limits() -> dict[str, Any]:
    """A value for every other column of an account that needs one."""
    given = {"account_sid", "name", "created_at", "updated_at"}
    needed = (column for column in accounts.c if not column.nullable and column.name not in given)
    return {column.name: "" if isinstance(column.type, sa.Text) else 0 for column in needed}


class CampaignLife(RuleBasedStateMachine):
    """One campaign; transactions are committed, or lost with their process."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = database()
        self.random = random.Random(1)
        self.now = NOW
        self.made = 0
        self.campaign_id = 0
        self.was = CampaignState.SCHEDULED

    def teardown(self) -> None:
        engine = self.connection.engine
        self.connection.close()
        engine.dispose()

    @initialize(total=st.integers(1, 160), later=st.booleans())
    def take(self, total: int, later: bool) -> None:
        campaign = Campaign(
            reference="campaign-1",
            account_sid=ACCOUNT,
            name="Diwali",
            template_id=1,
            template_name="offer",
            language="en_US",
            body_parameters=(),
            total=total,
            created_at=NOW,
            starts_at=NOW,
            state=CampaignState.SCHEDULED if later else CampaignState.RUNNING,
            started_at=None if later else NOW,
        )
        recipients = [f"+9198002{number:05d}" for number in range(total)]
        # The second time is the repetition of a commit whose answer was lost.
        for _ in range(2):
            self.commit(lambda connection: campaigns.insert(connection, campaign, recipients))
        ((written, _),), _ = campaigns.page(self.connection, ACCOUNT, None, offset=0, limit=9)
        self.campaign_id = written.campaign_id

    def commit(self, operation: Callable[[Connection], Any], *, killed: bool = False) -> Any:
        """Run a transaction, which is undone when its process is killed."""
        result = operation(self.connection)
        if killed:
            self.connection.rollback()
        else:
            self.connection.commit()
        return result

    def new_id(self) -> str:
        self.made += 1
        return f"message-{self.made:05d}"

    @rule(killed=st.booleans())
    def make_messages(self, killed: bool) -> None:
        self.commit(
            lambda connection: make_batch(connection, self.campaign_id, self.now, 20, self.new_id),
            killed=killed,
        )

    @rule(
        status=st.sampled_from(["sent", "delivered", "read", "failed"]),
        share=st.sampled_from([0.05, 0.5, 1.0]),
        killed=st.booleans(),
    )
    def tell(self, status: ReceiptStatus, share: float, killed: bool) -> None:
        def apply(connection: Connection) -> None:
            ids = connection.scalars(sa.select(messages.c.message_id)).all()
            told = [Receipt(each, status, self.now) for each in ids if self.random.random() < share]
            if chat_messages.apply(connection, told):
                campaigns.moved(connection, [self.campaign_id], self.now)

        self.commit(apply, killed=killed)

    @rule(killed=st.booleans())
    def hand_over(self, killed: bool) -> None:
        def claim(connection: Connection) -> None:
            leased = to_micros(self.now + timedelta(seconds=60))
            free = sa.select(messages.c.message_id).where(messages.c.status == "queued").limit(7)
            connection.execute(
                sa.update(messages).where(messages.c.message_id.in_(free)).values(leased_until=leased)
            )

        self.commit(claim, killed=killed)

    @rule(seconds=st.sampled_from([1, 30, 90]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self.commit(lambda connection: campaigns.moved(connection, [self.campaign_id], self.now))

    @rule(number=st.integers(0, 159))
    def opt_out(self, number: int) -> None:
        text = f"+9198002{number:05d}"
        self.commit(lambda connection: contacts.set_opted_out(connection, ACCOUNT, text, True, self.now))

    @precondition(lambda self: self.was.is_open)
    @rule(killed=st.booleans(), dice=st.integers(0, 5))
    def cancel(self, killed: bool, dice: int) -> None:
        if dice:
            return

        def write(connection: Connection) -> None:
            campaign = campaigns.get(connection, self.campaign_id)
            assert campaign is not None
            campaigns.cancel(connection, campaign, self.now)

        self.commit(write, killed=killed)

    @invariant()
    def counts_are_the_total(self) -> None:
        if not self.campaign_id:
            return
        found = campaigns.with_counts(self.connection, ACCOUNT, self.campaign_id)
        assert found is not None
        campaign, counts = found
        listed = campaigns.page(self.connection, ACCOUNT, None, offset=0, limit=9)
        assert listed == ([(campaign, counts)], 1)
        assert counts.total == campaign.total
        assert self.was <= campaign.state
        self.was = campaign.state
        self._holds_for(campaign, counts)

    def _holds_for(self, campaign: Campaign, counts: CampaignCounts) -> None:
        state = campaign.state
        told = self.connection.scalar(sa.select(sa.func.count()).select_from(deliveries))
        assert told == int(state in (CampaignState.COMPLETED, CampaignState.FAILED))
        if state is CampaignState.SCHEDULED:
            assert counts.queued == counts.total
        assert counts.cancelled == 0 or state is CampaignState.CANCELLED
        if told:
            assert counts.queued == 0 and campaign.ended_at is not None
            assert campaign.handed_at is not None
            waited = campaign.ended_at - campaign.handed_at
            assert counts.sent == 0 or waited >= RECEIPTS_AWAITED
        recipients = self.connection.scalars(sa.select(messages.c.to_number)).all()
        assert len(set(recipients)) == len(recipients) == campaign.made


CampaignLife.TestCase.settings = settings(max_examples=examples(15), stateful_step_count=20, deadline=None)
TestCampaignLife = CampaignLife.TestCase
