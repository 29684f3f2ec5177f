"""Webhooks: subscriptions of all products, their deliveries, replays and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from aiohttp import web

from api.console.operations import Listed, ask, ask_list, change, may_ask, refused
from api.console.page import Navigation, Pages
from api.console.rendering import refusal_text
from api.console.visit import HOME, Visit
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import DomainError, NotFound, ValidationFailed
from callcontrol.webhooks.aio.subscriptions import SubscriptionService

__all__ = ["pages"]

PATH: Final = f"{HOME}/webhooks"
ONE: Final = PATH + "/{product}/{id}"
_SHOWN_BODY_BYTES: Final = 100_000


@dataclass(frozen=True, slots=True)
class _Product:
    """Operations of the webhooks of a product: `one` and `log` are words in their names."""

    one: str
    many: str
    log: str
    replay_failed: str
    service: Callable[[Storage], SubscriptionService]
    identifier: str = "id"
    events: str = "events"


_PRODUCTS: Final[Mapping[str, _Product]] = {
    "calls": _Product(
        "subscription",
        "list_subscriptions",
        "",
        "replay_failed",
        attrgetter("subscriptions"),
        events="event_types",
    ),
    "messaging": _Product(
        "webhook_endpoint",
        "list_webhook_endpoints",
        "endpoint_",
        "replay_failed_endpoint_deliveries",
        attrgetter("webhook_endpoints"),
    ),
    "assistant": _Product(
        "assistant_webhook",
        "list_assistant_webhooks",
        "assistant_",
        "replay_failed_assistant_deliveries",
        attrgetter("assistant_webhooks"),
        "webhook_id",
    ),
}

pages = Pages("webhooks", nav=Navigation("resources", 40, PATH))


@pages.get(PATH)
async def list_webhooks(visit: Visit) -> web.StreamResponse:
    """Show the webhooks of all products that the key may see."""
    return await _webhooks(visit)


@pages.post(PATH)
async def create_webhook(visit: Visit) -> web.StreamResponse:
    """Create a webhook of a product; a secret that was made for it is shown this once."""
    product = _PRODUCTS.get(visit.form.get("product", ""))
    try:
        if product is None:
            raise NotFound(refusal_text("no_such_webhooks"))
        form = {**visit.form, product.events: visit.form.get("events", "")}
        made = await ask(visit, f"create_{product.one}", form=form)
    except DomainError as refusal:
        return await _webhooks(visit, refusal)
    if made.get("secret"):
        return await _webhooks(visit, secret=made["secret"])
    visit.go(PATH, done="made")


@pages.get(ONE)
async def show_webhook(visit: Visit) -> web.StreamResponse:
    """Show a webhook and its newest deliveries."""
    return await _webhook(visit)


@pages.get(ONE + "/deliveries/{delivery}")
async def show_delivery(visit: Visit) -> web.StreamResponse:
    """Show a delivery: the request, the answer, and the attempts."""
    name, product = _product(visit)
    webhook = await _one(visit, product)
    service = product.service(visit.storage)
    subscription = webhook["id"]
    if isinstance(subscription, int):
        subscription = (await service.numbered(visit.account_sid, subscription)).subscription_id
    delivery = await service.delivery(visit.account_sid, str(subscription), visit.path("delivery"))
    return visit.show(
        "delivery.html",
        product=name,
        webhook=webhook,
        delivery=delivery,
        body=delivery.event.body[:_SHOWN_BODY_BYTES].decode("utf-8", "replace"),
        is_cut=len(delivery.event.body) > _SHOWN_BODY_BYTES,
        may_change=may_ask(visit, f"update_{product.one}"),
    )


@pages.post(ONE + "/deliveries/{delivery}/replay")
async def replay_delivery(visit: Visit) -> web.StreamResponse:
    """Send a delivery again."""
    _, product = _product(visit)
    name = f"replay_{product.log}delivery"
    return await _change(visit, name, "replayed", {"delivery_id": visit.path("delivery")})


@pages.post(ONE + "/replay")
async def replay_failed(visit: Visit) -> web.StreamResponse:
    """Send all deliveries that failed again."""
    _, product = _product(visit)
    return await _change(visit, product.replay_failed, "replayed", body={"status": "failed"})


@pages.post(ONE + "/active")
async def switch_webhook(visit: Visit) -> web.StreamResponse:
    """Pause a webhook, or go on with it."""
    _, product = _product(visit)
    return await _change(visit, f"update_{product.one}", "changed", form=visit.form)


@pages.post(ONE + "/test")
async def test_webhook(visit: Visit) -> web.StreamResponse:
    """Send a test event now, and show what the receiver answered."""
    _, product = _product(visit)
    try:
        outcome = await ask(visit, f"test_{product.one}", {product.identifier: visit.path("id")})
    except DomainError as refusal:
        return await _webhook(visit, refusal)
    return await _webhook(visit, outcome=outcome)


@pages.post(ONE + "/delete")
async def delete_webhook(visit: Visit) -> web.StreamResponse:
    """Delete a webhook; what waits for it is dropped."""
    _, product = _product(visit)
    path = {product.identifier: visit.path("id")}
    return await change(visit, f"delete_{product.one}", path, again=_webhook, to=PATH, done="deleted")


def _product(visit: Visit) -> tuple[str, _Product]:
    name = visit.path("product")
    if name not in _PRODUCTS:
        raise NotFound(refusal_text("no_such_webhooks"))
    return name, _PRODUCTS[name]


async def _one(visit: Visit, product: _Product) -> dict[str, Any]:
    """Find a webhook among those that the key may see."""
    for webhook in await ask(visit, product.many):
        if str(webhook["id"]) == visit.path("id"):
            found: dict[str, Any] = webhook
            return {**found, "events": found[product.events]}
    raise NotFound(refusal_text("no_such_webhook"))


async def _change(
    visit: Visit, operation: str, done: str, path: Mapping[str, str] | None = None, **given: Any
) -> web.StreamResponse:
    """Do an operation on the webhook, and go back to it."""
    name, product = _product(visit)
    whole = {product.identifier: visit.path("id"), **(path or {})}
    to = f"{PATH}/{name}/{visit.path('id')}"
    return await change(visit, operation, whole, again=_webhook, to=to, done=done, **given)


async def _webhooks(
    visit: Visit, refusal: DomainError | None = None, secret: str | None = None
) -> web.StreamResponse:
    listed: dict[str, Listed] = {}
    for name, product in _PRODUCTS.items():
        listed[name] = await ask_list(visit, product.many)
        for webhook in listed[name].items:
            webhook["events"] = webhook[product.events]
    creates = [
        (name, visit.texts["products"][name])
        for name, product in _PRODUCTS.items()
        if may_ask(visit, f"create_{product.one}")
    ]
    values: dict[str, Any] = {"listed": listed, "creates": creates, "secret": secret}
    if refusal is not None:
        if isinstance(refusal, ValidationFailed):
            # The form has one field for what products name differently.
            refusal = refusal.renamed(lambda field: field.replace("event_types", "events"))
        return refused(visit, "webhooks.html", refusal, **values)
    return visit.show("webhooks.html", **values)


async def _webhook(
    visit: Visit, refusal: DomainError | None = None, outcome: Mapping[str, Any] | None = None
) -> web.StreamResponse:
    name, product = _product(visit)
    webhook = await _one(visit, product)
    path = {product.identifier: str(webhook["id"])}
    newest = await ask(visit, f"list_{product.log}deliveries", path)
    for delivery in newest:
        delivery["event"] = delivery.get("event") or delivery.get("event_type")
    values: dict[str, Any] = {
        "product": name,
        "webhook": webhook,
        "deliveries": newest,
        "outcome": outcome,
        "may_change": may_ask(visit, f"update_{product.one}"),
    }
    if refusal is not None:
        return refused(visit, "webhook.html", refusal, **values)
    return visit.show("webhook.html", **values)
