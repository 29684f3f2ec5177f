"""Webhook subscriptions of accounts; ``callcontrol.webhooks.subscriptions`` validates them."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, new_webhook_secret, utc_now
from callcontrol.clock import timestamp
from callcontrol.database.aio.database import Database, outcome
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import WEB_SCHEMES, Destinations
from callcontrol.errors import Conflict, DomainError, FieldError, NotFound, ValidationFailed
from callcontrol.models import Delivery, WebhookEvent
from callcontrol.webhooks.aio.outbox import Outbox
from callcontrol.webhooks.store import deliveries, subscriptions
from callcontrol.webhooks.store import publish as fan_out
from callcontrol.webhooks.subscriptions import (
    CALL_EVENTS,
    MAX_REPLAYED,
    WEBHOOK_TEST,
    LoggedDelivery,
    Replayed,
    ServiceEvents,
    Subscription,
    Trial,
    changed_subscription,
    new_subscription,
)

__all__ = ["SubscriptionService", "clear_waiting", "reach_errors"]

T = TypeVar("T")

_MAX_SUBSCRIPTIONS: Final = 100
# A campaign's receipts come in batches, and each receipt creates a delivery for every endpoint.
_MAX_ENDPOINTS: Final = 10
_RESOLVE_S: Final = 2.0
# A transaction of this size delays others by some milliseconds.
_REPLAYED_AT_ONCE: Final = 250
_STEP_PAUSE_S: Final = 0.005


class SubscriptionService:
    """
    Subscriptions of one service of the platform.

    A subscription of another account or another service is reported as not found.

    ``secrets_of`` returns the secrets of an account, which sign for a subscription without its own secret.
    With ``makes_secrets`` a subscription that is created without a secret gets a new one.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        destinations: Destinations,
        outbox: Outbox,
        events: ServiceEvents = CALL_EVENTS,
        secrets_of: Callable[[str], Sequence[str]] = lambda _: (),
        *,
        makes_secrets: bool = False,
    ) -> None:
        self._database = database
        self._writer = writer
        self._destinations = destinations
        self._outbox = outbox
        self._events = events
        self._service = events.service
        self._secrets_of = secrets_of
        self._makes_secrets = makes_secrets

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Subscription:
        """
        Subscribe a URL to events.

        Raises:
            ValidationFailed: With every wrong, missing or unknown field, or a URL that this server may not
                connect to.
            Conflict: The account is at its limit of subscriptions.
        """
        if self._makes_secrets and values.get("secret") is None:
            values = {**values, "secret": new_webhook_secret()}
        made = await self._validated(
            partial(new_subscription, new_id(), account_sid, self._events, values, utc_now()), values
        )

        most = _MAX_ENDPOINTS if self._events.numbered else _MAX_SUBSCRIPTIONS

        def write(connection: Connection) -> Subscription:
            if subscriptions.count(connection, account_sid, self._service) >= most:
                raise Conflict(f"The account has {most} {self._events.called}s; delete one first.")
            return subscriptions.insert(connection, made, numbered=self._events.numbered)

        return await self._writer.commit(partial(outcome, write))

    async def list(self, account_sid: str) -> list[Subscription]:
        """List the account's subscriptions, newest first."""
        return await self._database.read(
            lambda connection: subscriptions.of_account(connection, account_sid, self._service)
        )

    async def get(self, account_sid: str, subscription_id: str) -> Subscription:
        """
        Get a subscription of the account.

        Raises:
            NotFound: The account has no such subscription.
        """
        return await self._database.look_up(
            lambda connection: self._own(connection, account_sid, subscription_id)
        )

    async def numbered(self, account_sid: str, number: int) -> Subscription:
        """
        Get a subscription of the account by its number.

        Raises:
            NotFound: The account has no such subscription.
        """
        return await self._database.look_up(
            lambda connection: self._found(account_sid, subscriptions.by_number(connection, number))
        )

    async def update(self, account_sid: str, subscription_id: str, values: Mapping[str, Any]) -> Subscription:
        """
        Change the given fields.

        Pending deliveries go to the new URL, signed with the new secret. For a paused subscription nothing
        is queued, and its pending deliveries fail, so that they can be replayed.

        Raises:
            NotFound: The account has no such subscription.
            ValidationFailed: With every wrong field.
        """
        former, now = await self.get(account_sid, subscription_id), utc_now()
        await self._validated(partial(changed_subscription, former, self._events, values, now), values)

        def write(connection: Connection) -> Subscription:
            owned = self._own(connection, account_sid, subscription_id, lock=True)
            changed = changed_subscription(owned, self._events, values, now)
            subscriptions.change(connection, owned, changed, self._events.was_paused)
            return changed

        changed = await self._change(write)
        if not changed.is_active:
            await clear_waiting(self._writer, subscription_id, self._events.was_paused)
        return changed

    async def delete(self, account_sid: str, subscription_id: str) -> None:
        """
        Delete a subscription and its pending deliveries; its log is no longer available.

        Raises:
            NotFound: The account has no such subscription.
        """

        def write(connection: Connection) -> None:
            self._own(connection, account_sid, subscription_id, lock=True)
            subscriptions.delete(connection, subscription_id)

        await self._change(write)
        await clear_waiting(self._writer, subscription_id, self._events.was_paused)

    async def test(self, account_sid: str, subscription_id: str) -> Trial:
        """
        Send a ``webhook.test`` event once, now, and return the result; works while paused.

        Raises:
            NotFound: The account has no such subscription.
        """
        found = await self.get(account_sid, subscription_id)
        secrets = self._secrets_of(account_sid) if found.secret is None else (found.secret,)
        answer = await self._outbox.attempt(
            _test_event(found, self._events.created_at, new_id(), utc_now()), secrets
        )
        return Trial(answer.status, answer.problem)

    async def deliveries(
        self, account_sid: str, subscription_id: str, limit: int
    ) -> Sequence[LoggedDelivery]:
        """
        List the latest deliveries of a subscription, newest first.

        Raises:
            NotFound: The account has no such subscription.
        """

        def read(connection: Connection) -> Sequence[LoggedDelivery]:
            self._own(connection, account_sid, subscription_id)
            return subscriptions.log_of(connection, subscription_id, limit)

        await self._writer.flush_pending()
        return await self._database.read(read)

    async def delivery(self, account_sid: str, subscription_id: str, delivery_id: str) -> Delivery:
        """
        Get a delivery of a subscription with its request.

        Raises:
            NotFound: The account has no such subscription, or the subscription no such delivery.
        """

        def read(connection: Connection) -> Delivery:
            self._own(connection, account_sid, subscription_id)
            found = deliveries.of_subscription(connection, subscription_id, delivery_id)
            if found is None:
                raise NotFound("There is no such delivery.")
            return found

        await self._writer.flush_pending()
        return await self._database.read(read)

    async def deliveries_of_call(self, account_sid: str, call_sid: str) -> Sequence[Delivery]:
        """List the deliveries of a call's events, in order of publication; none of another account's call."""
        await self._writer.flush_pending()
        found = await self._database.read(lambda connection: deliveries.of_call(connection, call_sid))
        return [delivery for delivery in found if delivery.event.account_sid == account_sid]

    async def replay(self, account_sid: str, subscription_id: str, delivery_id: str) -> Replayed:
        """
        Send a delivery again, whatever its status; one that is in progress is left alone.

        Raises:
            NotFound: The account has no such subscription, or the subscription no such delivery.
            Conflict: The subscription is paused.
        """

        def write(connection: Connection) -> Replayed:
            owned = self._active_own(connection, account_sid, subscription_id)
            count = subscriptions.replay(connection, owned, delivery_id, utc_now())
            if count is None:
                raise NotFound("There is no such delivery.")
            return Replayed(count)

        return await self._change(write)

    async def replay_failed(
        self,
        account_sid: str,
        subscription_id: str,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Replayed:
        """
        Send failed deliveries again, the oldest first, up to ``MAX_REPLAYED``.

        They are marked in many small transactions, so that those of calls can run in between. If the
        subscription is paused or deleted meanwhile, or the database fails, the call raises, and deliveries
        already marked stay due.

        Args:
            account_sid: Owner of the subscription.
            subscription_id: The subscription.
            since: Only deliveries created then or later.
            until: Only deliveries created before.

        Raises:
            NotFound: The account has no such subscription.
            Conflict: The subscription is paused.
        """
        window, count = (since, until), 0

        def write(connection: Connection) -> int:
            owned = self._active_own(connection, account_sid, subscription_id)
            limit = min(_REPLAYED_AT_ONCE, MAX_REPLAYED - count)
            return subscriptions.replay_failed(connection, owned, window, utc_now(), limit)

        try:
            while count < MAX_REPLAYED:
                marked = await self._writer.commit(partial(outcome, write))
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

    async def _change(self, operation: Callable[[Connection], T]) -> T:
        changed = await self._writer.commit(partial(outcome, operation))
        self._outbox.changed()
        return changed

    async def _validated(self, make: Any, values: Mapping[str, Any]) -> Subscription:
        """Return the result of ``make`` after checking the URL's destination; all errors in one exception."""
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
    ) -> Subscription:
        return self._found(account_sid, subscriptions.get(connection, subscription_id, lock=lock))

    def _found(self, account_sid: str, found: Subscription | None) -> Subscription:
        if found is None or (found.account_sid, found.service) != (account_sid, self._service):
            raise NotFound(f"There is no such {self._events.called}.")
        return found

    def _active_own(self, connection: Connection, account_sid: str, subscription_id: str) -> Subscription:
        found = self._own(connection, account_sid, subscription_id, lock=True)
        if not found.is_active:
            raise Conflict(
                f"The {self._events.called} is paused; set {self._events.switch} to true, then replay."
            )
        return found


async def clear_waiting(writer: Writer, subscription_id: str, reason: str) -> None:
    """
    Remove the pending deliveries of a paused or deleted subscription, in many small transactions.

    If the database fails, the outbox removes the remaining ones one by one when they are due.
    """
    clear = partial(fan_out.clear, subscription_id=subscription_id, reason=reason)
    with contextlib.suppress(DomainError):
        while True:
            if await writer.commit(clear) < fan_out.AT_ONCE:
                return
            await asyncio.sleep(_STEP_PAUSE_S)


async def reach_errors(destinations: Destinations, url: str, field: str = "url") -> list[FieldError]:
    """
    Errors of a URL that this server may not connect to; resolves its host.

    A name that does not resolve within two seconds is accepted: it may not be set up yet, and every
    connection is checked again.
    """
    schemes = WEB_SCHEMES if destinations.allow_private else ("https",)
    try:
        destinations.check_url(url, schemes=schemes)
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        async with asyncio.timeout(_RESOLVE_S):
            await destinations.resolve(parts.hostname or "", parts.port or (443 if tls else 80), tls)
    except ValidationFailed as refusal:
        return [FieldError(field, error.message) for error in refusal.errors]
    except DomainError as refusal:
        return [FieldError(field, refusal.message)]
    except OSError:  # Includes TimeoutError.
        pass
    return []


def _test_event(subscription: Subscription, created_at: str, event_id: str, now: datetime) -> WebhookEvent:
    body = {
        "id": event_id,
        "event": WEBHOOK_TEST,
        created_at: timestamp(now),
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
