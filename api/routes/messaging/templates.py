"""Templates and the channel that messages come from (messaging specification)."""

from __future__ import annotations

from typing import Any, get_args

from api.http.endpoint import Context, Endpoint, Reply
from api.routes.messaging.base import messaging
from api.schemas.base import NoBody, NoQuery
from api.schemas.messaging.base import Deleted
from api.schemas.messaging.templates import (
    ChannelObject,
    CreateTemplate,
    TemplateList,
    TemplateObject,
    UpdateChannel,
)
from api.schemas.serializers import page_meta, rfc3339
from callcontrol.errors import ChannelNotConfigured, Conflict, ProviderRejected
from callcontrol.messaging.models import SANDBOX_NUMBER, Channel, Template, TemplateStatus

__all__ = ["ENDPOINTS"]


async def create_template(context: Context[CreateTemplate, NoQuery]) -> Reply:
    """Answer POST /api/v1/templates."""
    body = context.body
    created = await context.services.templates.create(
        context.account_sid, name=body.name, category=body.category, language=body.language, body=body.body
    )
    return Reply(_template(created))


async def list_templates(context: Context[NoBody, TemplateList]) -> Reply:
    """Answer GET /api/v1/templates."""
    query = context.query
    statuses = get_args(TemplateStatus) if query.status == "ALL" else (query.status,)
    page = await context.services.templates.list(context.account_sid, statuses, query.page, query.page_size)
    return Reply([_template(template) for template in page.items], page_meta(page))


async def get_template(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /api/v1/templates/{id}."""
    return Reply(_template(await context.services.templates.get(context.account_sid, _id(context))))


async def sync_template(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /api/v1/templates/{id}/sync."""
    return Reply(_template(await context.services.templates.sync(context.account_sid, _id(context))))


async def delete_template(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /api/v1/templates/{id}."""
    await context.services.templates.delete(context.account_sid, _id(context))
    return Reply({"id": _id(context), "deleted": True})


async def get_channel(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /api/v1/channel."""
    return Reply(_channel(await context.services.channels.of(context.account_sid)))


async def update_channel(context: Context[UpdateChannel, NoQuery]) -> Reply:
    """Answer PATCH /api/v1/channel."""
    values = context.body.model_dump(exclude_unset=True)
    return Reply(_channel(await context.services.channels.update(context.account_sid, values)))


def _id(context: Context[Any, Any]) -> int:
    return int(context.path["id"])


def _template(template: Template) -> dict[str, Any]:
    return {
        "id": template.template_id,
        "name": template.name,
        "category": template.category,
        "language": template.language,
        "body": template.body,
        "variables": template.variables,
        "status": template.status,
        "rejectionReason": template.rejection_reason,
        "submitted": template.network_ref is not None,
        "createdAt": rfc3339(template.created_at),
        "updatedAt": rfc3339(template.updated_at),
    }


def _channel(channel: Channel) -> dict[str, Any]:
    return {
        "number": channel.number,
        "displayName": channel.display_name,
        "isConnected": channel.is_connected,
        "messagesPerSecond": channel.messages_per_second,
        "isSandbox": channel.number == SANDBOX_NUMBER,
    }


_TEMPLATES = "/api/v1/templates"
_ONE = _TEMPLATES + "/{id}"
_CHANNEL = "/api/v1/channel"
_READ = messaging("templates", "templates.read")
_WRITE = messaging("templates", "templates.write")

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_TEMPLATES,
        handler=create_template,
        summary="Create a template and submit it for approval",
        description="It is PENDING until the network has judged it, and can be sent once it is APPROVED.",
        success=201,
        body=CreateTemplate,
        response=TemplateObject,
        errors=(Conflict, ChannelNotConfigured, ProviderRejected),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_TEMPLATES,
        handler=list_templates,
        summary="List approved templates, newest first",
        description="All of them, unless pageSize asks for fewer at a time; with status, those of another.",
        query=TemplateList,
        response=TemplateObject,
        paged=True,
        **_READ,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_template,
        summary="Get a template with its approval status",
        response=TemplateObject,
        **_READ,
    ),
    Endpoint(
        method="POST",
        path=_ONE + "/sync",
        handler=sync_template,
        summary="Refresh a template's approval status from the network",
        description="The server asks by itself, too, the less often the longer nothing has changed.",
        response=TemplateObject,
        **_READ,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=delete_template,
        summary="Delete a template, here and at the network",
        description="Refused while a campaign that has not ended uses it.",
        response=Deleted,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_CHANNEL,
        handler=get_channel,
        summary="Get the channel that messages come from",
        response=ChannelObject,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path=_CHANNEL,
        handler=update_channel,
        summary="Change the channel that messages come from",
        description="Fields that are left out stay as they are; null sets one back.",
        body=UpdateChannel,
        response=ChannelObject,
        **_WRITE,
    ),
)
