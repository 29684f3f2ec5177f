"""Webhook subscriptions of accounts; ``callcontrol.webhooks.subscriptions`` says what makes sense."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, new_webhook_secret, utc_now
from callcontrol.clock import timestamp
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import Conflict, DomainError, FieldError, NotFound, ValidationFailed
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.aio.client import Answer
from callcontrol.webhooks.store import publish as fan_out
from callcontrol.webhooks.store import subscriptions
from callcontrol.webhooks.subscriptions import (
    MAX_REPLAYED,
    NUMBERED,
    WEBHOOK_TEST,
    LoggedDelivery,
    Replayed,
    SubscribedService,
    Subscription,
    Trial,
    changed_subscription,
    new_subscription,
)

__all__ = ["Deliverer", "SubscriptionService", "clear_waiting", "reach_errors"]

_MAX_SUBSCRIPTIONS: Final = 100
# A campaign's receipts come in batches, and each of them makes a delivery for every endpoint.
_MAX_ENDPOINTS: Final = 10
_RESOLVE_S: Final = 2.0
# A transaction of so many keeps others waiting for some milliseconds.
_REPLAYED_AT_ONCE: Final = 250
_STEP_PAUSE_S: Final = 0.005
_PAUSED: Final = "the subscription was paused"
# How the events of a service say when they came about, where they say it in their own way.
_CREATED_AT: Final[Mapping[SubscribedService, str]] = {"assistant": "timestamp", "messaging": "createdAt"}


class Deliverer(Protocol):
    """What subscriptions need of the outbox."""

    def changed(self) -> None:
        """Deliveries were made due: look at them now."""

    async def attempt(self, event: WebhookEvent, secrets: Sequence[str]) -> Answer:
        """Send an event once, beside everything that is queued; without secrets it is not signed."""


class SubscriptionService:
    """
    The subscriptions of one service of the platform.

    One of another account or another service is not there, as far as anybody can tell.

    ``secrets_of`` gives the secrets of an account that sign for a subscription without one of its own. One
    that is created without a secret gets one where the service ``makes_secrets``.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        destinations: Destinations,
        outbox: Deliverer,
        service: SubscribedService = "calls",
        secrets_of: Callable[[str], Sequence[str]] = lambda _: (),
        *,
        makes_secrets: bool = False,
    ) -> None:
        self._database = database
        self._writer = writer
        self._destinations = destinations
        self._outbox = outbox
        self._service: SubscribedService = service
        self._secrets_of = secrets_of
        self._makes_secrets = makes_secrets
        self._called = "webhook endpoint" if service in NUMBERED else "subscription"

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Subscription:
        """
        Subscribe a URL to events.

        Raises:
            ValidationFailed: With every wrong, missing or unknown field; the URL may lead where this server
                does not go.
            Conflict: The account has as many subscriptions as it may have.
        """
        if self._makes_secrets and values.get("secret") is None:
            values = {**values, "secret": new_webhook_secret()}
        made = await self._judged(
            partial(new_subscription, new_id(), account_sid, self._service, values, utc_now()), values
        )

        most = _MAX_ENDPOINTS if self._service in NUMBERED else _MAX_SUBSCRIPTIONS

        def write(connection: Connection) -> Subscription | DomainError:
            if subscriptions.count(connection, account_sid, self._service) >= most:
                return Conflict(f"The account has {most} {self._called}s; delete one first.")
            return subscriptions.insert(connection, made)

        return await self._writer.commit(write)

    async def list(self, account_sid: str) -> list[Subscription]:
        """The account's subscriptions, newest first."""
        return await self._database.read(
            lambda connection: subscriptions.of_account(connection, account_sid, self._service)
        )

    async def get(self, account_sid: str, subscription_id: str) -> Subscription:
        """
        One subscription of the account.

        Raises:
            NotFound: The account has no such subscription.
        """
        found = await self._database.look_up(
            lambda connection: self._own(connection, account_sid, subscription_id)
        )
        if isinstance(found, DomainError):
            raise found
        return found

    async def numbered(self, account_sid: str, number: int) -> Subscription:
        """
        One subscription of the account by its number.

        Raises:
            NotFound: The account has no such subscription.
        """
        found = await self._database.look_up(
            lambda connection: self._found(account_sid, subscriptions.by_number(connection, number))
        )
        if isinstance(found, DomainError):
            raise found
        return found

    async def update(self, account_sid: str, subscription_id: str, values: Mapping[str, Any]) -> Subscription:
        """
        Change the fields that are given.

        What waits to be sent goes to the new URL, signed with the new secret. Once a subscription is paused
        nothing is queued for it, and what was has failed, so that it can be replayed.

        Raises:
            NotFound: The account has no such subscription.
            ValidationFailed: With every field that would be wrong.
        """
        former, now = await self.get(account_sid, subscription_id), utc_now()
        await self._judged(partial(changed_subscription, former, values, now), values)

        def write(connection: Connection) -> Subscription | DomainError:
            owned = self._own(connection, account_sid, subscription_id, lock=True)
            if isinstance(owned, DomainError):
                return owned
            changed = changed_subscription(owned, values, now)
            subscriptions.change(connection, owned, changed, _PAUSED)
            return changed

        changed = await self._writer.commit(write)
        self._outbox.changed()
        if not changed.is_active:
            await clear_waiting(self._writer, subscription_id, _PAUSED)
        return changed

    async def delete(self, account_sid: str, subscription_id: str) -> None:
        """
        Delete a subscription with its log; what waits to be sent to it is not sent.

        Raises:
            NotFound: The account has no such subscription.
        """

        def write(connection: Connection) -> DomainError | None:
            owned = self._own(connection, account_sid, subscription_id, lock=True)
            if isinstance(owned, DomainError):
                return owned
            subscriptions.delete(connection, subscription_id)
            return None

        await self._writer.commit(write)
        self._outbox.changed()
        await clear_waiting(self._writer, subscription_id, _PAUSED)

    async def test(self, account_sid: str, subscription_id: str) -> Trial:
        """
        Send a ``webhook.test`` event now, once, and say how that went; a paused subscription gets it too.

        Raises:
            NotFound: The account has no such subscription.
        """
        found = await self.get(account_sid, subscription_id)
        secrets = self._secrets_of(account_sid) if found.secret is None else (found.secret,)
        answer = await self._outbox.attempt(_test_event(found, new_id(), utc_now()), secrets)
        return Trial(answer.status, answer.problem)

    async def deliveries(
        self, account_sid: str, subscription_id: str, limit: int
    ) -> Sequence[LoggedDelivery]:
        """
        The newest deliveries of a subscription, newest first.

        Raises:
            NotFound: The account has no such subscription.
        """

        def read(connection: Connection) -> Sequence[LoggedDelivery] | DomainError:
            owned = self._own(connection, account_sid, subscription_id)
            if isinstance(owned, DomainError):
                return owned
            return subscriptions.log_of(connection, subscription_id, limit)

        await self._writer.catch_up()
        found = await self._database.read(read)
        if isinstance(found, DomainError):
            raise found
        return found

    async def replay(self, account_sid: str, subscription_id: str, delivery_id: str) -> Replayed:
        """
        Send a delivery again, whatever became of it; one that is being sent at this moment is left alone.

        Raises:
            NotFound: The account has no such subscription, or that no such delivery.
            Conflict: The subscription is paused.
        """

        def write(connection: Connection) -> Replayed | DomainError:
            owned = self._awake(connection, account_sid, subscription_id)
            if isinstance(owned, DomainError):
                return owned
            count = subscriptions.replay(connection, owned, delivery_id, utc_now())
            return NotFound("There is no such delivery.") if count is None else Replayed(count)

        replayed = await self._writer.commit(write)
        self._outbox.changed()
        return replayed

    async def replay_failed(
        self,
        account_sid: str,
        subscription_id: str,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Replayed:
        """
        Send failed deliveries again, the oldest first, up to ``MAX_REPLAYED``.

        They are marked in many small transactions, between which calls have theirs. Should the subscription
        be paused or deleted meanwhile, or the database fail, those that are marked are sent again.

        Args:
            account_sid: Whose subscription it is.
            subscription_id: The subscription.
            since: Deliveries created then or later.
            until: Deliveries created before.

        Raises:
            NotFound: The account has no such subscription.
            Conflict: The subscription is paused.
        """
        window, count = (since, until), 0

        def write(connection: Connection) -> int | DomainError:
            owned = self._awake(connection, account_sid, subscription_id)
            if isinstance(owned, DomainError):
                return owned
            limit = min(_REPLAYED_AT_ONCE, MAX_REPLAYED - count)
            return subscriptions.replay_failed(connection, owned, window, utc_now(), limit)

        try:
            while count < MAX_REPLAYED:
                marked = await self._writer.commit(write)
                count += marked
                if marked < min(_REPLAYED_AT_ONCE, MAX_REPLAYED - count + marked):
                    return Replayed(count)
                await asyncio.sleep(_STEP_PAUSE_S)
        finally:
            self._outbox.changed()
        found = await self.get(account_sid, subscription_id)
        left = await self._database.read(
            lambda connection: subscriptions.any_failed(connection, found, window)
        )
        return Replayed(count, truncated=left)

    async def _judged(self, make: Any, values: Mapping[str, Any]) -> Subscription:
        """What ``make`` makes, if neither that nor the reach of a URL is wrong; one refusal names it all."""
        errors: list[FieldError] = []
        made: Subscription | None = None
        try:
            made = make()
        except ValidationFailed as refusal:
            errors += refusal.errors
        if isinstance(values.get("url"), str):
            errors += await reach_errors(self._destinations, values["url"])
        if errors or made is None:
            raise ValidationFailed(errors)
        return made

    def _own(
        self, connection: Connection, account_sid: str, subscription_id: str, *, lock: bool = False
    ) -> Subscription | DomainError:
        return self._found(account_sid, subscriptions.get(connection, subscription_id, lock=lock))

    def _found(self, account_sid: str, found: Subscription | None) -> Subscription | DomainError:
        if found is None or (found.account_sid, found.service) != (account_sid, self._service):
            return NotFound(f"There is no such {self._called}.")
        return found

    def _awake(
        self, connection: Connection, account_sid: str, subscription_id: str
    ) -> Subscription | DomainError:
        found = self._own(connection, account_sid, subscription_id, lock=True)
        if isinstance(found, Subscription) and not found.is_active:
            return Conflict(f"The {self._called} is paused; make it active, then replay.")
        return found


async def clear_waiting(writer: Writer, subscription_id: str, reason: str) -> None:
    """
    Take out what still waits for a subscription that was paused or deleted, in many small transactions.

    Should the database fail, the outbox does the same to the rest, one by one when they are due.
    """
    with contextlib.suppress(DomainError):
        while True:
            if await writer.commit(partial(_clear, subscription_id, reason)) < fan_out.AT_ONCE:
                return
            await asyncio.sleep(_STEP_PAUSE_S)


def _clear(subscription_id: str, reason: str, connection: Connection) -> int:
    return fan_out.clear(connection, subscription_id, reason)


async def reach_errors(destinations: Destinations, url: str, field: str = "url") -> list[FieldError]:
    """
    Why this server does not send to a URL, as far as that can be seen now; its host is resolved for it.

    A name that does not resolve, or not in two seconds, is taken: it may not have been set up yet, and every
    connection is judged again.
    """
    schemes = ("http", "https") if url.lower().startswith("http:") else ("https",)
    try:
        destinations.check_url(url, schemes=schemes)
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        async with asyncio.timeout(_RESOLVE_S):
            await destinations.resolve(parts.hostname or "", parts.port or (443 if tls else 80), tls)
    except ValidationFailed as refusal:
        return [FieldError(field, error.message) for error in refusal.errors]
    except DomainError as refusal:
        return [FieldError(field, refusal.message.removeprefix("url: "))]
    except OSError:  # A timeout is one as well.
        pass
    return []


def _test_event(subscription: Subscription, event_id: str, now: datetime) -> WebhookEvent:
    body = {
        "id": event_id,
        "event": WEBHOOK_TEST,
        _CREATED_AT.get(subscription.service, "created_at"): timestamp(now),
        "data": {"message": "test"},
    }
    return WebhookEvent(
        event_id=event_id,
        account_sid=subscription.account_sid,
        event=WEBHOOK_TEST,
        url=subscription.url,
        body=json.dumps(body, separators=(",", ":")).encode(),
        created_at=now,
        subscription_id=subscription.subscription_id,
    )
