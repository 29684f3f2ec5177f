"""Settings of all streams to an account's voice agents: default dialect and secret (additive)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.schemas.base import NoBody, NoQuery
from api.schemas.stream_settings import (
    RotateStreamSecret,
    StreamSecretObject,
    StreamSettingsObject,
    UpdateStreamSettings,
)
from callcontrol.aio.tokens import utc_now
from callcontrol.clock import timestamp
from callcontrol.models import Account

__all__ = ["ENDPOINTS"]


async def get_stream_settings(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /streams/settings."""
    return Reply(_settings(await context.services.stream_settings.of(context.account_sid)))


async def update_stream_settings(context: Context[UpdateStreamSettings, NoQuery]) -> Reply:
    """Answer PATCH /streams/settings."""
    changed = await context.services.stream_settings.set_protocol(
        context.account_sid, context.body.default_stream_protocol
    )
    return Reply(_settings(changed))


async def rotate_stream_secret(context: Context[RotateStreamSecret, NoQuery]) -> Reply:
    """Answer POST /streams/secret/rotate."""
    account, secret = await context.services.stream_settings.rotate_secret(
        context.account_sid, context.body.overlap_sec
    )
    made = account.stream_secret
    return Reply(
        {
            "stream_secret": secret,
            "stream_secret_made_at": timestamp(made.made_at if made else None),
            "former_secret_until": timestamp(made.former_until if made else None),
        }
    )


def _settings(account: Account) -> dict[str, Any]:
    made = account.stream_secret
    _, former = account.stream_secrets(utc_now())
    return {
        "default_stream_protocol": account.stream_protocol,
        "has_stream_secret": made is not None,
        "stream_secret_made_at": timestamp(made.made_at if made else None),
        "former_secret_until": timestamp(made.former_until if made and former else None),
    }


_READ: dict[str, Any] = {"scope": "calls.read", "tag": "streams"}
_WRITE: dict[str, Any] = {"scope": "calls.write", "tag": "streams"}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="GET",
        path="/v1/streams/settings",
        handler=get_stream_settings,
        summary="Get how agents are spoken to by default",
        response=StreamSettingsObject,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path="/v1/streams/settings",
        handler=update_stream_settings,
        summary="Set how agents are spoken to by default",
        body=UpdateStreamSettings,
        response=StreamSettingsObject,
        **_WRITE,
    ),
    Endpoint(
        method="POST",
        path="/v1/streams/secret/rotate",
        handler=rotate_stream_secret,
        summary="Make a new secret that signs requests to agents",
        description="Shown once. Requests carry the signatures by both secrets until the overlap is over.",
        body=RotateStreamSecret,
        response=StreamSecretObject,
        **_WRITE,
    ),
)
