"""Request and response models of an account and its keys."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import Name, Page, PerPage, Timestamp
from api.schemas.serializers import shown
from callcontrol.accounts.keys import (
    DEFAULT_OVERLAP_S,
    DEFAULT_SECRET_OVERLAP_S,
    EVERY_SCOPE,
    MAX_OVERLAP_S,
    SCOPES,
    check_environment,
    scope_errors,
)
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.models import Account, ApiKey, Environment, Service

__all__ = [
    "AccountKeyObject",
    "AccountObject",
    "CreateAccountKey",
    "KeyPage",
    "LimitsObject",
    "NewAccountKey",
    "RotateAccountKey",
    "RotateWebhookSecret",
    "RotatedAccountKey",
    "WebhookSecretObject",
    "account_key_json",
    "limits_json",
]

_MAX_SCOPE_CHARS = 80
_MAX_SCOPES = 200
_SCOPES_HELP = (
    f"{EVERY_SCOPE} alone: every scope of the service. Or any of {', '.join(SCOPES['all'])}; for tools also "
    "tool:NAME. Default: those of the service but webhooks.*, keys.write and assistant.keys. None that your "
    "key lacks."
)


class KeyPage(RequestModel):
    """Page of the keys."""

    page: Page = 1
    per_page: PerPage = 20


class CreateAccountKey(RequestModel):
    """A new key."""

    service: Annotated[Service, Field(description="all: one key for every service.")]
    name: Name
    scopes: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=_MAX_SCOPE_CHARS)]],
            Field(min_length=1, max_length=_MAX_SCOPES, description=_SCOPES_HELP),
        ]
        | None
    ) = None
    environment: (
        Annotated[
            Environment,
            Field(description="sandbox, for the service assistant alone: calls test numbers. Default: live."),
        ]
        | None
    ) = None

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the scopes and the environment, which depend on the service."""
        if "service" not in sound:
            return []
        service, errors = sound["service"], scope_errors(sound["service"], sound.get("scopes"))
        try:
            check_environment(service, sound.get("environment", "live"))
        except ValidationFailed as refusal:
            errors += refusal.errors
        return errors


class RotateAccountKey(RequestModel):
    """Rotation of a key."""

    overlap_seconds: Annotated[
        int,
        Field(ge=0, le=MAX_OVERLAP_S, description="Seconds for which the old key remains valid."),
    ] = DEFAULT_OVERLAP_S


class RotateWebhookSecret(RequestModel):
    """Rotation of the webhook secret."""

    overlap_seconds: Annotated[
        int,
        Field(ge=0, le=MAX_OVERLAP_S, description="Seconds for which the previous secret signs as well."),
    ] = DEFAULT_SECRET_OVERLAP_S


class AccountKeyObject(ResponseModel):
    """A key; the key itself is never shown again."""

    id: str
    service: Service
    name: str | None
    environment: Environment
    scopes: Annotated[list[str], Field(description=f"{EVERY_SCOPE}: every scope of the service.")]
    prefix: Annotated[str, Field(description="First characters of the key.")]
    current: Annotated[bool, Field(description="The key of this request.")]
    created_at: Timestamp
    expires_at: Annotated[Timestamp | None, Field(description="End of a key that was rotated.")]


class NewAccountKey(AccountKeyObject):
    """A new key, with the key itself."""

    key: Annotated[str, Field(description="Shown this once.")]


class RotatedAccountKey(NewAccountKey):
    """The new key that replaces an old one."""

    replaces: AccountKeyObject


class WebhookSecretObject(ResponseModel):
    """The new secret, shown this once."""

    webhook_secret: str
    former_secret_until: Annotated[
        Timestamp | None, Field(description="Until then the previous secret signs as well.")
    ]


class LimitsObject(ResponseModel):
    """Limits of an account."""

    max_calls: Annotated[int, Field(description="Calls at once.")]
    max_cps: Annotated[int, Field(description="New calls a second.")]
    requests_per_minute: Annotated[
        int | None, Field(description="Of all keys together. null: each key has the server's limit.")
    ]
    assistant_requests_per_minute: Annotated[
        int | None, Field(description="To the voice assistant. null: the server's limit.")
    ]


class AccountObject(ResponseModel):
    """The account of the key that asks, and that key."""

    account_sid: str
    name: str
    kyc_complete: Annotated[bool, Field(description="true: numbers can be bought.")]
    environment: Annotated[Environment, Field(description="That of the key.")]
    balance: Annotated[float | None, Field(description="As in the wallet. null: the key lacks calls.read.")]
    available: Annotated[float | None, Field(description="balance less what active calls reserve.")]
    currency: str
    limits: LimitsObject
    key: AccountKeyObject
    created_at: Timestamp


def account_key_json(key: ApiKey, current_id: str) -> dict[str, Any]:
    """Public fields of a key, for a request with the key ``current_id``."""
    return shown(
        AccountKeyObject, key, id=key.key_id, current=key.key_id == current_id, expires_at=key.revoked_at
    )


def limits_json(account: Account) -> dict[str, Any]:
    """Limits of an account."""
    return shown(LimitsObject, account)
