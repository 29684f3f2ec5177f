"""Templates and channels of messaging, in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from callcontrol.errors import DomainError, NotFound
from callcontrol.messaging.models import SANDBOX_NUMBER, Channel, Template, TemplateCategory, TemplateStatus
from callcontrol.messaging.templates import new_template
from callcontrol.models import Page
from tests.support.api_facts import ACCOUNT, MOMENT

TEMPLATE_ID: Final = 7


class FakeTemplates:
    def __init__(self) -> None:
        self.template = replace(
            new_template(
                "ref-7",
                ACCOUNT,
                name="order_update",
                category="UTILITY",
                language="en_US",
                body="Hello {{1}}, your order {{2}} is on its way.",
                now=MOMENT,
            ),
            template_id=TEMPLATE_ID,
            status="APPROVED",
            network_ref="net-7",
        )
        self.statuses: list[Collection[TemplateStatus]] = []
        self.synced: list[int] = []
        self.failure: DomainError | None = None

    async def create(
        self, account_sid: str, *, name: str, category: TemplateCategory, language: str, body: str
    ) -> Template:
        if self.failure is not None:
            raise self.failure
        return new_template(
            "ref-8", account_sid, name=name, category=category, language=language, body=body, now=MOMENT
        )

    async def list(
        self, account_sid: str, statuses: Collection[TemplateStatus], page: int, per_page: int
    ) -> Page[Template]:
        self.statuses.append(statuses)
        return Page([self.template], 1, page, per_page)

    async def get(self, account_sid: str, template_id: int) -> Template:
        if template_id != TEMPLATE_ID:
            raise NotFound("There is no such template.")
        return self.template

    async def sync(self, account_sid: str, template_id: int) -> Template:
        self.synced.append(template_id)
        return await self.get(account_sid, template_id)

    async def delete(self, account_sid: str, template_id: int) -> None:
        if self.failure is not None:
            raise self.failure
        await self.get(account_sid, template_id)


class FakeChannels:
    def __init__(self) -> None:
        self.changes: list[Mapping[str, Any]] = []

    async def of(self, account_sid: str) -> Channel:
        return Channel(account_sid, SANDBOX_NUMBER, "Sandbox", True, 80)

    async def update(self, account_sid: str, values: Mapping[str, Any]) -> Channel:
        self.changes.append(values)
        given = {name: value for name, value in values.items() if value is not None}
        return replace(await self.of(account_sid), **given)
