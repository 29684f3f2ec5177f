"""Settings of all streams to an account's voice agents: default dialect and secret (additive)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from api.http.endpoint import Context, Reply, Routes
from api.schemas.base import NoBody, NoQuery, RequestModel, ResponseModel
from api.schemas.common import Timestamp
from callcontrol.agents.stream_settings import DEFAULT_OVERLAP_S, MAX_OVERLAP_S
from callcontrol.aio.tokens import utc_now
from callcontrol.clock import timestamp
from callcontrol.models import Account
from media.streams import WEBSOCKET_DIALECTS

__all__ = ["routes"]

_OVERLAP_HELP = "Seconds for which requests are also signed with the previous secret; default one day."


class UpdateStreamSettings(RequestModel):
    """Settings to change."""

    default_stream_protocol: Annotated[
        Annotated[
            str, Field(min_length=1, max_length=32, json_schema_extra={"enum": sorted(WEBSOCKET_DIALECTS)})
        ]
        | None,
        Field(description="Protocol of streams that name none; null: the server's default."),
    ]


class RotateStreamSecret(RequestModel):
    """Rotation of the stream secret."""

    overlap_sec: Annotated[int, Field(ge=0, le=MAX_OVERLAP_S, description=_OVERLAP_HELP)] = DEFAULT_OVERLAP_S


class StreamSettingsObject(ResponseModel):
    """The settings; the secret itself is never shown again."""

    default_stream_protocol: Annotated[str | None, Field(description="null: the server's default.")]
    has_stream_secret: Annotated[
        bool, Field(description="false: requests are signed with the webhook secret.")
    ]
    stream_secret_made_at: Timestamp | None
    former_secret_until: Annotated[
        Timestamp | None, Field(description="Until then requests are also signed with the previous secret.")
    ]


class StreamSecretObject(ResponseModel):
    """The new secret, shown once."""

    stream_secret: str
    stream_secret_made_at: Timestamp
    former_secret_until: Timestamp | None


routes = Routes("calls.read", "calls.write", tag="streams")


@routes.get("/v1/streams/settings", response=StreamSettingsObject)
async def get_stream_settings(context: Context[NoBody, NoQuery]) -> Reply:
    """Get how agents are spoken to by default."""
    return Reply(_settings(await context.storage.stream_settings.of(context.account_sid)))


@routes.patch("/v1/streams/settings", response=StreamSettingsObject)
async def update_stream_settings(context: Context[UpdateStreamSettings, NoQuery]) -> Reply:
    """Set how agents are spoken to by default."""
    changed = await context.storage.stream_settings.set_protocol(
        context.account_sid, context.body.default_stream_protocol
    )
    return Reply(_settings(changed))


@routes.post("/v1/streams/secret/rotate", response=StreamSecretObject)
async def rotate_stream_secret(context: Context[RotateStreamSecret, NoQuery]) -> Reply:
    """
    Make a new secret that signs requests to agents.

    Shown once. Requests carry the signatures by both secrets until the overlap is over.
    """
    account, secret = await context.storage.stream_settings.rotate_secret(
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
