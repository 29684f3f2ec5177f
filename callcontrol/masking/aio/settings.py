"""Masking settings of accounts: read for every masked call, changed rarely."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DomainError, FieldError, ValidationFailed
from callcontrol.masking.settings import EVENTS, MaskingSettings
from callcontrol.masking.store import settings as rows
from callcontrol.webhooks.aio.outbox import Outbox
from callcontrol.webhooks.aio.subscriptions import clear_waiting, reach_errors
from callcontrol.webhooks.store import subscriptions
from callcontrol.webhooks.subscriptions import Subscription, changed_subscription

_FIELDS: Final = {"url": "webhook_url", "secret": "webhook_secret", "is_active": "webhook_active"}
_NO_WEBHOOK: Final = "needs a webhook_url; set that with it"


class MaskingSettingsService:
    """
    Masking settings.

    They are read by their key for every call: a change applies to the next call, on every node.
    """

    def __init__(
        self, database: Database, writer: Writer, destinations: Destinations, outbox: Outbox
    ) -> None:
        self._database = database
        self._writer = writer
        self._destinations = destinations
        self._outbox = outbox

    async def of(self, account_sid: str) -> MaskingSettings:
        """The settings of an account; the defaults when it has set nothing."""
        return await self._database.look_up(partial(rows.of, account_sid=account_sid))

    async def update(self, account_sid: str, changes: Mapping[str, Any]) -> MaskingSettings:
        """
        Change the given settings, named as in `MaskingSettings`; None removes one.

        Raises:
            ValidationFailed: Names every error: a URL is wrong or leads where this server does not go, or a
                secret or a pause is given without a webhook.
        """
        errors = [
            error
            for field in ("webhook_url", "routing_url")
            if changes.get(field) is not None
            for error in await reach_errors(self._destinations, changes[field], field)
        ]
        if errors:
            raise ValidationFailed(errors)
        new_sid, now = new_id(), utc_now()

        def write(connection: Connection) -> tuple[MaskingSettings, MaskingSettings] | DomainError:
            before = rows.of(connection, account_sid)
            try:
                return before, _write(connection, before, changes, new_sid, now)
            except ValidationFailed as refusal:
                return refusal

        former, changed = await self._writer.commit(write)
        self._outbox.changed()
        if former.subscription_id is not None and changed.events_to is None:
            await clear_waiting(self._writer, former.subscription_id, EVENTS.was_paused)
        return changed


def _write(
    connection: Connection, before: MaskingSettings, changes: Mapping[str, Any], new_sid: str, now: datetime
) -> MaskingSettings:
    values = {name: changes[field] for name, field in _FIELDS.items() if field in changes}
    former = subscriptions.get(connection, before.subscription_id or "", lock=True)
    blank = Subscription(new_sid, before.account_sid, EVENTS.service, "", EVENTS.names, now, now)
    webhook = _webhook(former, values, blank)
    _keep(connection, former, webhook)
    after = MaskingSettings(
        account_sid=before.account_sid,
        routing_url=changes.get("routing_url", before.routing_url),
        record_calls=changes.get("record_calls", before.record_calls),
        updated_at=now,
    )
    if webhook is not None:
        after = replace(
            after,
            subscription_id=webhook.subscription_id,
            webhook_url=webhook.url,
            webhook_secret=webhook.secret,
            webhook_active=webhook.is_active,
        )
    rows.save(connection, after, now)
    return after


def _webhook(
    former: Subscription | None, values: Mapping[str, Any], blank: Subscription
) -> Subscription | None:
    """The webhook after a change; None when there is none."""
    wanted = values.get("url", former.url if former is not None else None)
    if wanted is None:
        needing = [name for name in ("secret", "is_active") if values.get(name) is not None]
        if needing:
            raise ValidationFailed([FieldError(_FIELDS[name], _NO_WEBHOOK) for name in needing])
        return None
    try:
        return changed_subscription(former or blank, EVENTS, values, blank.created_at)
    except ValidationFailed as refusal:
        raise ValidationFailed(
            [FieldError(_FIELDS.get(error.field, error.field), error.message) for error in refusal.errors]
        ) from None


def _keep(connection: Connection, former: Subscription | None, webhook: Subscription | None) -> None:
    """Insert, change or delete the subscription of the webhook."""
    if former is not None and webhook is not None:
        subscriptions.change(connection, former, webhook, EVENTS.was_paused)
    elif webhook is not None:
        subscriptions.insert(connection, webhook)
    elif former is not None:
        subscriptions.delete(connection, former.subscription_id)
