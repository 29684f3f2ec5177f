"""Endpoints of webhooks, common to all products: registration, test, delivery log and replay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from pydantic import BaseModel

from api.http.endpoint import Context, Declaration, Reply, Routes
from api.http.time_ranges import time_span
from api.schemas.base import NoBody, NoQuery, RequestModel
from api.schemas.serializers import shown
from api.schemas.subscriptions import (
    DeliveryLog,
    DeliveryObject,
    DeliveryObjects,
    ReplayedAll,
    ReplayedOne,
    ReplayFailed,
    TestOutcome,
)
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import Conflict, DomainError
from callcontrol.webhooks.aio.subscriptions import SubscriptionService
from callcontrol.webhooks.subscriptions import LoggedDelivery, Subscription

__all__ = ["WebhookModels", "WebhookRoutes", "path_parameter"]

TESTS_PER_MINUTE = 60

Service = Callable[[Storage], SubscriptionService]


def _delivery_json(_: Context[Any, Any], delivery: LoggedDelivery) -> dict[str, Any]:
    return shown(
        DeliveryObject,
        delivery,
        id=delivery.delivery_id,
        call_sid=delivery.call_sid or "",
        error=delivery.error or "",
    )


def path_parameter(name: str) -> Callable[[Context[Any, Any]], Awaitable[str]]:
    """Make a finder of the subscription whose id is a path parameter."""

    async def find(context: Context[Any, Any]) -> str:
        return context.path[name]

    return find


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookModels:
    """
    Request and response models of webhooks that customers register.

    Without ``created``, a new one is shown as any other, without its secret. Without ``deleted``, a deletion
    has no response body.
    """

    create: type[RequestModel]
    update: type[RequestModel]
    one: type[BaseModel]
    many: type[BaseModel]
    created: type[BaseModel] | None = None
    deleted: type[BaseModel] | None = None


@dataclass(frozen=True, slots=True)
class WebhookRoutes:
    """
    Declares the endpoints of a product's webhooks.

    ``one`` is the path of a webhook, and ``find`` its subscription id. ``webhook`` and ``events`` are the
    words for the webhook and its events in descriptions; ``operation`` and ``delivery`` those in operation
    ids. ``errors`` are those of a webhook that may not exist. ``outcome`` and ``log`` are the response models
    of the test and the log; ``delivery_json`` serializes an entry of the log.
    """

    routes: Routes
    service: Service
    one: str
    find: Callable[[Context[Any, Any]], Awaitable[str]]
    webhook: str
    events: str
    operation: str
    delivery: str
    errors: tuple[type[DomainError], ...] = ()
    outcome: type[BaseModel] = TestOutcome
    log: type[BaseModel] = DeliveryObjects
    delivery_json: Callable[[Context[Any, Any], LoggedDelivery], dict[str, Any]] = _delivery_json
    names: Mapping[str, str] = field(default_factory=dict)
    """Operation ids that do not follow from ``operation`` and ``delivery``."""

    def _add(self, name: str, method: str, path: str, handler: Any, **declared: Unpack[Declaration]) -> None:
        handler.__name__ = self.names.get(name, name)
        self.routes.add(method, path, handler, **declared)

    def add_deliveries(self) -> None:
        """Declare the endpoints of the test, the delivery log and the replay."""
        service, find, log = self.service, self.find, self.one + "/deliveries"

        async def test(context: Context[NoBody, NoQuery]) -> Reply:
            trial = await service(context.storage).test(context.account_sid, await find(context))
            # The receiver's status is in the body, not in the response's status.
            return Reply(shown(self.outcome, trial, error=trial.error or ""))

        async def listed(context: Context[NoBody, DeliveryLog]) -> Reply:
            webhooks, found = service(context.storage), await find(context)
            newest = await webhooks.deliveries(context.account_sid, found, context.query.limit)
            return Reply([self.delivery_json(context, delivery) for delivery in newest])

        async def replay(context: Context[NoBody, NoQuery]) -> Reply:
            webhooks, found = service(context.storage), await find(context)
            replayed = await webhooks.replay(context.account_sid, found, context.path["delivery_id"])
            return Reply({"replayed": replayed.count})

        async def replay_failed(context: Context[ReplayFailed, NoQuery]) -> Reply:
            webhooks, found = service(context.storage), await find(context)
            since, until = time_span(context.body.since, context.body.until, ("since", "until"))
            replayed = await webhooks.replay_failed(context.account_sid, found, since, until)
            return Reply({"replayed": replayed.count, "truncated": replayed.truncated})

        self._add(
            f"test_{self.operation}",
            "POST",
            self.one + "/test",
            test,
            summary=f"Send a test event to {self.webhook} now",
            description="The status is 200 whatever the receiver answers; the body has its result.",
            response=self.outcome,
            errors=self.errors,
            **{"requests_per_minute": TESTS_PER_MINUTE, **self.routes.common},
        )
        self._add(
            f"list_{self.delivery}deliveries",
            "GET",
            log,
            listed,
            summary=f"The delivery log of {self.webhook}, newest first",
            query=DeliveryLog,
            response=self.log,
            errors=self.errors,
        )
        self._add(
            f"replay_{self.delivery}delivery",
            "POST",
            log + "/{delivery_id}/replay",
            replay,
            summary=f"Resend one of {self.events}",
            description="It keeps its id. It is not charged.",
            response=ReplayedOne,
            errors=(Conflict,),
        )
        self._add(
            f"replay_failed_{self.delivery}deliveries",
            "POST",
            log + "/replay",
            replay_failed,
            summary=f"Resend those of {self.events} that failed",
            description=(
                "Up to 10,000 of the window, the oldest first. They keep their ids and are not charged."
            ),
            body=ReplayFailed,
            response=ReplayedAll,
            errors=(*self.errors, Conflict),
        )

    def add(self, models: WebhookModels, *, get: bool = True) -> None:
        """Declare the endpoints of webhooks that customers register, with those of their deliveries."""
        service, find = self.service, self.find

        def show(webhook: Subscription) -> dict[str, Any]:
            name = webhook.number or webhook.subscription_id
            return shown(models.one, webhook, id=name, events=webhook.event_types)

        async def create(context: Context[Any, NoQuery]) -> Reply:
            values = _stored(context.body.model_dump(exclude_none=True))
            made = await service(context.storage).create(context.account_sid, values)
            return Reply({**show(made), "secret": made.secret} if models.created else show(made))

        async def list_all(context: Context[NoBody, NoQuery]) -> Reply:
            return Reply([show(found) for found in await service(context.storage).list(context.account_sid)])

        async def get_one(context: Context[NoBody, NoQuery]) -> Reply:
            return Reply(show(await service(context.storage).get(context.account_sid, await find(context))))

        async def update(context: Context[Any, NoQuery]) -> Reply:
            webhooks, found = service(context.storage), await find(context)
            values = _stored(context.body.model_dump(exclude_unset=True))
            return Reply(show(await webhooks.update(context.account_sid, found, values)))

        async def delete(context: Context[NoBody, NoQuery]) -> Reply:
            await service(context.storage).delete(context.account_sid, await find(context))
            return Reply({"id": context.number(), "deleted": True} if models.deleted else None)

        path, noun = self.one.rpartition("/")[0], self.webhook.removeprefix("a ")
        secret = " The secret that signs events is shown this once." if models.created else ""
        self._add(
            f"create_{self.operation}",
            "POST",
            path,
            create,
            summary=f"Register a {noun}",
            description=f"The URL must be https and public.{secret}",
            success=201,
            body=models.create,
            response=models.created or models.one,
            errors=(Conflict,),
        )
        self._add(
            f"list_{self.operation}s",
            "GET",
            path,
            list_all,
            summary=f"List {noun}s, newest first",
            response=models.many,
        )
        if get:
            self._add(
                f"get_{self.operation}",
                "GET",
                self.one,
                get_one,
                summary=f"Get a {noun}",
                response=models.one,
            )
        self._add(
            f"update_{self.operation}",
            "PATCH",
            self.one,
            update,
            summary=f"Update a {noun}",
            description="Omitted fields keep their values. Pending deliveries go to the new URL.",
            body=models.update,
            response=models.one,
        )
        self._add(
            f"delete_{self.operation}",
            "DELETE",
            self.one,
            delete,
            summary=f"Delete a {noun}",
            description="Pending deliveries are dropped.",
            response=models.deleted,
        )
        self.add_deliveries()


def _stored(given: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the fields of a webhook's body to those of subscriptions."""
    return {"event_types" if name == "events" else name: value for name, value in given.items()}
