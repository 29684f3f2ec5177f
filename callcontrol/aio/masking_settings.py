"""Masking settings of accounts: read for every masked call, changed once in a while."""

from dataclasses import replace
from functools import partial
from typing import TypeVar

from sqlalchemy.engine import Connection

from callcontrol.aio.database import Database
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.aio.writer import Writer
from callcontrol.errors import DomainError, FieldError, ValidationFailed
from callcontrol.interfaces import Destinations
from callcontrol.masking_settings import (
    UNCHANGED,
    MaskingSettings,
    SettingsChange,
    Unchanged,
)
from callcontrol.store.repositories import masking_settings as rows

__all__ = ["MaskingSettingsService"]

T = TypeVar("T")


class MaskingSettingsService:
    """
    Masking settings.

    They are read anew for every call, by their key: a change holds for the next call, on every node.
    """

    def __init__(self, database: Database, writer: Writer, destinations: Destinations) -> None:
        self._database = database
        self._writer = writer
        self._destinations = destinations

    async def of(self, account_sid: str) -> MaskingSettings:
        """The settings of an account; the defaults when it has set nothing."""
        return await self._database.look_up(partial(_of, account_sid))

    async def update(self, account_sid: str, change: SettingsChange) -> MaskingSettings:
        """
        Change what is given.

        Raises:
            ValidationFailed: A URL is wrong or leads where this server does not go, or there is a secret
                or a pause for a webhook that there is not; all of it is named.
        """
        errors = [
            *self._url_errors("webhook_url", change.webhook_url),
            *self._url_errors("routing_url", change.routing_url),
        ]
        if errors:
            raise ValidationFailed(errors)
        subscription_id, now = new_id(), utc_now()

        def write(connection: Connection) -> MaskingSettings | DomainError:
            before = rows.of(connection, account_sid)
            try:
                after = _changed(before, change, subscription_id)
            except ValidationFailed as refusal:
                return refusal
            rows.save(connection, before, after, now)
            return replace(after, updated_at=now)

        return await self._writer.commit(write)

    def _url_errors(self, field: str, url: str | None | Unchanged) -> list[FieldError]:
        if not isinstance(url, str):
            return []
        try:
            self._destinations.check_url(url, schemes=("http", "https"))
        except ValidationFailed as refusal:
            return [FieldError(field, error.message) for error in refusal.errors]
        except DomainError as refusal:
            return [FieldError(field, refusal.message)]
        return []


def _changed(before: MaskingSettings, change: SettingsChange, subscription_id: str) -> MaskingSettings:
    routed = replace(
        before,
        routing_url=_new(change.routing_url, before.routing_url),
        record_calls=_new(change.record_calls, before.record_calls),
    )
    url = _new(change.webhook_url, before.webhook_url)
    if url is None:
        errors = [
            FieldError(name, "needs a webhook_url; set that with it")
            for name in ("webhook_secret", "webhook_active")
            if getattr(change, name) not in (UNCHANGED, None)
        ]
        if errors:
            raise ValidationFailed(errors)
        return replace(
            routed, subscription_id=None, webhook_url=None, webhook_secret=None, webhook_active=True
        )
    return replace(
        routed,
        subscription_id=before.subscription_id or subscription_id,
        webhook_url=url,
        webhook_secret=_new(change.webhook_secret, before.webhook_secret),
        webhook_active=_new(change.webhook_active, before.webhook_active),
    )


def _new(wanted: T | Unchanged, before: T) -> T:
    return before if isinstance(wanted, Unchanged) else wanted


def _of(account_sid: str, connection: Connection) -> MaskingSettings:
    return rows.of(connection, account_sid)
