"""Templates on their way through a network: handed in once, judged, told of once, taken back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.tables.webhooks import deliveries
from callcontrol.errors import (
    AlreadyExists,
    ChannelNotConfigured,
    Conflict,
    NotFound,
    ProviderRejected,
    ServiceUnavailable,
)
from callcontrol.messaging.aio.template_reviews import LEASE
from callcontrol.messaging.aio.templates import TemplateService
from callcontrol.messaging.approval import ReviewFailure, SubmissionRefused, Verdict, VerdictGiven
from callcontrol.messaging.models import Template
from callcontrol.messaging.store import channels, templates
from callcontrol.messaging.templates import new_template
from callcontrol.models import Account
from callcontrol.webhooks.store import subscriptions
from callcontrol.webhooks.subscriptions import Subscription
from tests.support.campaigns import request
from tests.support.waiting import until


class Network:
    """A network that says what a test has it say, and remembers what it was asked."""

    def __init__(self) -> None:
        self.said = VerdictGiven(Verdict.PENDING)
        self.reachable = True
        self.refusal: str | None = None
        self.taken: dict[str, str] = {}
        self.asked: list[str] = []
        self.withdrawn: list[tuple[str, str | None]] = []

    async def submit(self, template: Template, number: str) -> str:
        self._check()
        if self.refusal is not None:
            raise SubmissionRefused(self.refusal)
        self.asked.append(template.reference)
        return self.taken.setdefault(template.reference, f"net-{len(self.taken) + 1}")

    async def verdict(self, network_ref: str) -> VerdictGiven:
        self._check()
        return self.said

    async def withdraw(self, reference: str, network_ref: str | None) -> None:
        self._check()
        self.withdrawn.append((reference, network_ref))

    def _check(self) -> None:
        if not self.reachable:
            raise ReviewFailure("no answer")


class Stage:
    """The service on a network and a clock of the test's own; nothing runs by itself."""

    def __init__(self, storage: Storage, account: Account) -> None:
        self.storage, self.sid = storage, account.account_sid
        self.network = Network()
        self.now = datetime(2026, 1, 31, 12, tzinfo=UTC)
        self.service = self.process()

    def process(self) -> TemplateService:
        """The service as one more process on the same database has it."""
        storage = self.storage
        return TemplateService(
            storage.database, storage.writer, self.network, storage.outbox, lambda: self.now
        )

    async def create(self, name: str = "order_update", body: str = "Hello {{1}}.") -> Template:
        return await self.service.create(self.sid, name=name, category="UTILITY", language="en_US", body=body)

    async def cut_off(self) -> None:
        """Leave a template behind as a process does that is killed before the network has answered."""
        template = new_template(
            new_id(),
            self.sid,
            name="order_update",
            category="UTILITY",
            language="en_US",
            body="Hello {{1}}.",
            now=self.now,
        )
        await self.storage.writer.commit(
            lambda connection: templates.insert(connection, template, self.now + LEASE)
        )

    async def only(self) -> Template:
        (template,) = (await self.service.list(self.sid, ["PENDING", "APPROVED", "REJECTED", "PAUSED"])).items
        return template

    async def pass_time(self, **span: float) -> None:
        """Do what is due until then, each when it is."""
        end = self.now + timedelta(**span)
        while (wait := await self.service.run()) is not None and self.now + wait <= end:
            self.now += wait
        self.now = end

    async def subscribe(self) -> None:
        now = utc_now()
        events = ("template.approved", "template.rejected")
        made = Subscription(new_id(), self.sid, "messaging", "https://receiver.example/", events, now, now)
        await self.storage.writer.commit(lambda connection: subscriptions.insert(connection, made))

    async def told(self) -> list[str]:
        """The events that were published, in their order."""
        found = await self.storage.database.read(
            lambda connection: connection.execute(
                sa.select(deliveries.c.event).order_by(deliveries.c.position)
            ).all()
        )
        return [row.event for row in found]


@pytest.fixture
def stage(storage: Storage, account: Account) -> Stage:
    return Stage(storage, account)


async def test_a_template_is_handed_in_and_pending(stage: Stage) -> None:
    created = await stage.create()
    assert (created.status, created.variables, created.network_ref) == ("PENDING", 1, "net-1")
    assert await stage.service.get(stage.sid, created.template_id) == created
    assert (await stage.service.list(stage.sid, ["APPROVED"])).items == []


@pytest.mark.parametrize(
    ("verdict", "status", "event", "reason"),
    [
        (Verdict.APPROVED, "APPROVED", "template.approved", None),
        (Verdict.REJECTED, "REJECTED", "template.rejected", "too loud"),
    ],
    ids=["approved", "rejected"],
)
async def test_what_the_network_decides_is_told_once_by_watch_and_by_sync(
    stage: Stage, verdict: Verdict, status: str, event: str, reason: str | None
) -> None:
    await stage.subscribe()
    by_watch, by_sync = await stage.create("one"), await stage.create("two")
    await stage.pass_time(seconds=2)
    assert await stage.told() == []
    stage.network.said = VerdictGiven(verdict, "too loud")
    synced = await stage.service.sync(stage.sid, by_sync.template_id)
    assert (synced.status, synced.rejection_reason) == (status, reason)
    assert await stage.told() == [event]
    await stage.pass_time(minutes=5)
    for template in (by_watch, by_sync):
        await stage.service.sync(stage.sid, template.template_id)
        found = await stage.service.get(stage.sid, template.template_id)
        assert (found.status, found.rejection_reason) == (status, reason)
    await stage.pass_time(days=1)
    assert await stage.told() == [event, event]


async def test_an_approved_one_may_be_paused_and_come_back(stage: Stage) -> None:
    template = await stage.create()
    for verdict, status in (
        (Verdict.APPROVED, "APPROVED"),
        (Verdict.PAUSED, "PAUSED"),
        (Verdict.PENDING, "PAUSED"),
        (Verdict.APPROVED, "APPROVED"),
    ):
        stage.network.said = VerdictGiven(verdict)
        assert (await stage.service.sync(stage.sid, template.template_id)).status == status
    assert (await stage.service.get(stage.sid, template.template_id)).rejection_reason is None


async def test_what_a_killed_process_had_begun_is_handed_in_once(stage: Stage) -> None:
    await stage.cut_off()
    await stage.pass_time(seconds=1)
    assert stage.network.asked == []
    await stage.pass_time(seconds=16)
    assert (await stage.only()).network_ref == "net-1"
    await stage.pass_time(minutes=5)
    assert len(stage.network.asked) == 1


async def test_two_processes_hand_the_same_one_in_as_one(stage: Stage) -> None:
    await stage.cut_off()
    stage.now += LEASE
    await asyncio.gather(stage.process().run(), stage.service.run())
    assert len(stage.network.asked) == 1


async def test_one_that_is_refused_after_its_customer_was_answered_is_kept_as_rejected(stage: Stage) -> None:
    await stage.subscribe()
    await stage.cut_off()
    stage.network.refusal = "not here"
    await stage.pass_time(seconds=16)
    kept = await stage.only()
    assert (kept.status, kept.rejection_reason) == ("REJECTED", "not here")
    assert await stage.told() == ["template.rejected"]


async def test_a_network_that_is_away_keeps_no_template_from_being_created(stage: Stage) -> None:
    stage.network.reachable = False
    created = await stage.create()
    assert (created.status, created.network_ref) == ("PENDING", None)
    with pytest.raises(ServiceUnavailable):
        await stage.service.sync(stage.sid, created.template_id)
    await stage.pass_time(seconds=5)
    assert (await stage.only()).network_ref is None
    stage.network.reachable = True
    await stage.pass_time(minutes=1)
    assert (await stage.only()).network_ref == "net-1"


async def test_nothing_is_left_of_one_that_the_network_refuses(stage: Stage) -> None:
    stage.network.refusal = "no swearing"
    with pytest.raises(ProviderRejected, match="no swearing"):
        await stage.create()
    stage.network.refusal = None
    assert (await stage.create()).status == "PENDING"


async def test_without_a_channel_nothing_is_handed_in(stage: Stage) -> None:
    await stage.storage.writer.commit(
        lambda connection: channels.change(connection, stage.sid, {"is_connected": False}, utc_now())
    )
    with pytest.raises(ChannelNotConfigured):
        await stage.create()
    assert stage.network.taken == {}


async def test_one_name_and_language_is_one_template(stage: Stage) -> None:
    first = await stage.create()
    with pytest.raises(AlreadyExists) as refusal:
        await stage.create()
    assert refusal.value.details == {"id": first.template_id}
    assert len(stage.network.taken) == 1


async def test_what_is_deleted_is_withdrawn_from_the_network_in_time(stage: Stage) -> None:
    template = await stage.create()
    stage.network.reachable = False
    await stage.service.delete(stage.sid, template.template_id)
    with pytest.raises(NotFound):
        await stage.service.get(stage.sid, template.template_id)
    await stage.pass_time(seconds=1)
    stage.network.reachable = True
    await stage.pass_time(minutes=1)
    await stage.pass_time(minutes=2)
    assert stage.network.withdrawn == [(template.reference, "net-1")]
    with pytest.raises(NotFound):
        await stage.service.delete(stage.sid, template.template_id)


async def test_one_that_may_still_be_handed_in_is_withdrawn_after_that(stage: Stage) -> None:
    stage.network.reachable = False
    template = await stage.create()
    stage.network.reachable = True
    await stage.service.delete(stage.sid, template.template_id)
    await stage.pass_time(seconds=30)
    assert stage.network.withdrawn == []
    await stage.pass_time(seconds=61)
    assert stage.network.withdrawn == [(template.reference, None)]


async def test_templates_of_others_are_not_there(stage: Stage, storage: Storage) -> None:
    template = await stage.create()
    other, _ = await storage.accounts.create("Other")
    for use in (stage.service.get, stage.service.sync, stage.service.delete):
        with pytest.raises(NotFound):
            await use(other.account_sid, template.template_id)
    assert (await stage.only()).template_id == template.template_id


async def test_a_template_stays_while_a_campaign_uses_it(stage: Stage, storage: Storage) -> None:
    template = await stage.create("order_shipped", "Hello {{1}}, {{2}}.")
    stage.network.said = VerdictGiven(Verdict.APPROVED)
    await stage.service.sync(stage.sid, template.template_id)
    later = utc_now() + timedelta(hours=1)
    wanted = request(template_name="order_shipped", variables={"1": "a", "2": "b"}, scheduled_for=later)
    taken = await storage.campaigns.create(stage.sid, wanted)
    with pytest.raises(Conflict, match="campaign"):
        await stage.service.delete(stage.sid, template.template_id)
    await storage.campaigns.cancel(stage.sid, taken.view.campaign.campaign_id)
    await stage.service.delete(stage.sid, template.template_id)


async def test_the_watch_runs_by_itself(stage: Stage) -> None:
    stage.network.said = VerdictGiven(Verdict.APPROVED)
    template = await stage.create()
    stage.now += timedelta(seconds=2)

    async def approved() -> bool:
        return (await stage.only()).status == "APPROVED"

    stage.service.start()
    try:
        await until(approved)
    finally:
        await stage.service.close()
    assert (await stage.service.get(stage.sid, template.template_id)).rejection_reason is None
