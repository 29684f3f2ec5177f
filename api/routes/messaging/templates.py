"""Templates and the channel that messages come from (messaging specification)."""

from __future__ import annotations

from typing import Any, get_args

from api.http.endpoint import Context, Reply
from api.routes.messaging.base import messaging_routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.messaging.base import Deleted
from api.schemas.messaging.templates import (
    ChannelObject,
    CreateTemplate,
    TemplateList,
    TemplateObject,
    UpdateChannel,
)
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import AlreadyExists, ChannelNotConfigured, Conflict, ProviderRejected
from callcontrol.messaging.models import SANDBOX_NUMBER, Channel, Template, TemplateStatus

__all__ = ["routes"]

_TEMPLATES = "/api/v1/templates"
_ONE = _TEMPLATES + "/{id}"
_CHANNEL = "/api/v1/channel"

routes = messaging_routes("templates", "templates.read", "templates.write")


@routes.post(
    _TEMPLATES,
    response=TemplateObject,
    success=201,
    errors=(AlreadyExists, Conflict, ChannelNotConfigured, ProviderRejected),
)
async def create_template(context: Context[CreateTemplate, NoQuery]) -> Reply:
    """
    Create a template and submit it for approval.

    It is PENDING until the network has judged it, and can be sent once it is APPROVED.
    """
    body = context.body
    created = await context.services.templates.create(
        context.account_sid, name=body.name, category=body.category, language=body.language, body=body.body
    )
    return Reply(_template(created))


@routes.get(_TEMPLATES, response=TemplateObject, paged=True)
async def list_templates(context: Context[NoBody, TemplateList]) -> Reply:
    """
    List approved templates, newest first.

    All of them, unless pageSize asks for fewer at a time; with status, those of another.
    """
    query = context.query
    statuses = get_args(TemplateStatus) if query.status == "ALL" else (query.status,)
    page = await context.services.templates.list(context.account_sid, statuses, query.page, query.page_size)
    return Reply([_template(template) for template in page.items], page_meta(page))


@routes.get(_ONE, response=TemplateObject)
async def get_template(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a template with its approval status."""
    return Reply(_template(await context.services.templates.get(context.account_sid, context.number())))


@routes.post(_ONE + "/sync", scope="templates.read", response=TemplateObject)
async def sync_template(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Refresh a template's approval status from the network.

    The server asks by itself, too, the less often the longer nothing has changed.
    """
    return Reply(_template(await context.services.templates.sync(context.account_sid, context.number())))


@routes.delete(_ONE, response=Deleted, errors=(Conflict,))
async def delete_template(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete a template, here and at the network.

    Refused while a campaign that has not ended uses it.
    """
    await context.services.templates.delete(context.account_sid, context.number())
    return Reply({"id": context.number(), "deleted": True})


@routes.get(_CHANNEL, response=ChannelObject)
async def get_channel(context: Context[NoBody, NoQuery]) -> Reply:
    """Get the channel that messages come from."""
    return Reply(_channel(await context.services.channels.of(context.account_sid)))


@routes.patch(_CHANNEL, response=ChannelObject)
async def update_channel(context: Context[UpdateChannel, NoQuery]) -> Reply:
    """
    Change the channel that messages come from.

    Fields that are left out stay as they are; null sets one back.
    """
    values = context.body.model_dump(exclude_unset=True)
    return Reply(_channel(await context.services.channels.update(context.account_sid, values)))


def _template(template: Template) -> dict[str, Any]:
    submitted = template.network_ref is not None
    return shown(TemplateObject, template, id=template.template_id, submitted=submitted)


def _channel(channel: Channel) -> dict[str, Any]:
    return shown(ChannelObject, channel, is_sandbox=channel.number == SANDBOX_NUMBER)
