"""Client of Trunkline: its API, its webhooks, and voice agents for its streams."""

from trunkline_client.calls import AsyncCall, Call, CallEvent
from trunkline_client.client import AsyncClient, Client
from trunkline_client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    FieldError,
    Forbidden,
    NotFound,
    PaymentRequired,
    RateLimited,
    ResponseInvalid,
    ServerError,
    TrunklineError,
    Unauthorized,
    WebhookInvalid,
)
from trunkline_client.retries import RetryPolicy
from trunkline_client.webhooks import WebhookEvent, verify_webhook

__all__ = [
    "ApiError",
    "AsyncCall",
    "AsyncClient",
    "BadRequest",
    "Call",
    "CallEvent",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "FieldError",
    "Forbidden",
    "NotFound",
    "PaymentRequired",
    "RateLimited",
    "ResponseInvalid",
    "RetryPolicy",
    "ServerError",
    "TrunklineError",
    "Unauthorized",
    "WebhookEvent",
    "WebhookInvalid",
    "verify_webhook",
]
