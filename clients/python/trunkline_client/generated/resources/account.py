# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.account`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import account as fields_of
from trunkline_client.generated.results import account
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_GET = Operation("GET", "/v1/account")
_ROTATE_WEBHOOK_SECRET = Operation("POST", "/v1/account/webhook-secret/rotate", idempotent=True)


class AccountResource(Resource):
    """Operations of `client.account`."""

    def get(self) -> account.Account:
        """Get the account of your key, and what the key opens."""
        return self._transport.item(_GET, (), {}, account.Account)

    def rotate_webhook_secret(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.RotateWebhookSecretFields]
    ) -> account.WebhookSecret:
        """Make a new secret that signs the account's webhooks."""
        return self._transport.item(
            _ROTATE_WEBHOOK_SECRET, (), fields, account.WebhookSecret, idempotency_key
        )


class AsyncAccountResource(AsyncResource):
    """Operations of `client.account`."""

    async def get(self) -> account.Account:
        """Get the account of your key, and what the key opens."""
        return await self._transport.item(_GET, (), {}, account.Account)

    async def rotate_webhook_secret(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.RotateWebhookSecretFields]
    ) -> account.WebhookSecret:
        """Make a new secret that signs the account's webhooks."""
        return await self._transport.item(
            _ROTATE_WEBHOOK_SECRET, (), fields, account.WebhookSecret, idempotency_key
        )
