"""
Tools, app keys and usage, managed with an admin key (tool-integration service).

The specification defines only GET and POST for these paths, so changes and deletions are POSTs too.
"""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Identifiers, Reply, Routes
from api.routes.tools import tool_json
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import shown
from api.schemas.tools import (
    AppKeyObject,
    AppKeyObjects,
    CreateAppKey,
    ManagedTool,
    ManagedTools,
    NewAppKey,
    NewTool,
    RegisterTool,
    UpdateTool,
    UsageObject,
    UsageQuery,
    UsageRow,
)
from callcontrol.accounts.keys import tools_of
from callcontrol.aio.tokens import utc_now
from callcontrol.clock import timestamp
from callcontrol.errors import Conflict
from callcontrol.models import ApiKey
from callcontrol.otp.otp import period_of
from callcontrol.tools.aio.registry import RegisteredTool
from callcontrol.tools.usage import Usage, UsageFilter

__all__ = ["routes"]

_ALL_TOOLS = "/integrations/admin/tools"
_TOOL = _ALL_TOOLS + "/{name}"
_ALL_KEYS = "/integrations/admin/keys"

routes = Routes("admin", tag="tools administration", service="admin")


@routes.get(_ALL_TOOLS, response=ManagedTools)
async def list_managed_tools(context: Context[NoBody, NoQuery]) -> Reply:
    """List all tools, disabled ones too."""
    return Reply([_json(tool) for tool in await context.services.tools.registry.list(context.account_sid)])


@routes.post(_ALL_TOOLS, response=NewTool, success=201, errors=(Conflict,))
async def register_tool(context: Context[RegisterTool, NoQuery]) -> Reply:
    """
    Register a tool that sends requests to your server.

    Its secret is shown this once.
    """
    values = _values(context.body)
    made = await context.services.tools.registry.register(context.account_sid, values)
    return Reply({**_json(RegisteredTool(made.described(is_enabled=True), made)), "secret": made.secret})


@routes.get(_TOOL, response=ManagedTool, identifiers=Identifiers.NAME)
async def get_managed_tool(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a tool."""
    return Reply(_json(await context.services.tools.registry.get(context.account_sid, context.path["name"])))


@routes.post(_TOOL, response=ManagedTool, errors=(Conflict,), identifiers=Identifiers.NAME)
async def update_tool(context: Context[UpdateTool, NoQuery]) -> Reply:
    """
    Change a tool.

    Omitted fields keep their values. The next execution uses the new ones.
    """
    values = _values(context.body)
    if "output_schema" in context.body.model_fields_set:
        values["output_schema"] = context.body.output_schema
    changed = await context.services.tools.registry.update(context.account_sid, context.path["name"], values)
    return Reply(_json(changed))


@routes.post(_TOOL + "/enable", response=ManagedTool, identifiers=Identifiers.NAME)
async def enable_tool(context: Context[NoBody, NoQuery]) -> Reply:
    """Enable a tool."""
    return await _set_enabled(context, enabled=True)


@routes.post(_TOOL + "/disable", response=ManagedTool, identifiers=Identifiers.NAME)
async def disable_tool(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Disable a tool, built-in ones too.

    It is no longer listed to apps, and cannot be executed.
    """
    return await _set_enabled(context, enabled=False)


@routes.post(_TOOL + "/delete", errors=(Conflict,), identifiers=Identifiers.NAME)
async def delete_tool(context: Context[NoBody, NoQuery]) -> Reply:
    """Delete a tool that you have registered."""
    await context.services.tools.registry.delete(context.account_sid, context.path["name"])
    return Reply(None)


@routes.get(_ALL_KEYS, response=AppKeyObjects, tag="app keys")
async def list_app_keys(context: Context[NoBody, NoQuery]) -> Reply:
    """List app keys, oldest first."""
    return Reply([_key_json(key) for key in await context.services.tools.app_keys.list(context.account_sid)])


@routes.post(_ALL_KEYS, response=NewAppKey, success=201, errors=(Conflict,), tag="app keys")
async def create_app_key(context: Context[CreateAppKey, NoQuery]) -> Reply:
    """
    Create an app key.

    It is shown this once.
    """
    body = context.body
    made, key = await context.services.tools.app_keys.create(context.account_sid, body.name, body.tools)
    return Reply({**_key_json(made), "key": key})


@routes.post(_ALL_KEYS + "/{key_id}/revoke", response=AppKeyObject, tag="app keys")
async def revoke_app_key(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Revoke an app key.

    At once.
    """
    revoked = await context.services.tools.app_keys.revoke(context.account_sid, context.path["key_id"])
    return Reply(_key_json(revoked))


@routes.get("/integrations/admin/usage", response=UsageObject, tag="tools usage")
async def tool_usage(context: Context[NoBody, UsageQuery]) -> Reply:
    """
    Usage of tools by day, tool and key.

    The last 30 days unless dates are given; days are those of UTC.
    """
    query = context.query
    period = period_of(query.start_date, query.end_date, utc_now().date())
    wanted = UsageFilter(period.first.isoformat(), period.last.isoformat(), query.tool, query.key_id)
    rows, truncated = await context.services.tools.usage.of_account(context.account_sid, wanted)
    total = sum((usage for _, usage in rows), Usage())
    shown_rows = [
        shown(UsageRow, usage, day=key.day, tool=key.tool, key_id=key.key_id) for key, usage in rows
    ]
    return Reply(shown(UsageObject, total, truncated=truncated, rows=shown_rows))


async def _set_enabled(context: Context[NoBody, NoQuery], *, enabled: bool) -> Reply:
    registry, name = context.services.tools.registry, context.path["name"]
    return Reply(_json(await registry.set_enabled(context.account_sid, name, enabled=enabled)))


def _values(body: RegisterTool | UpdateTool) -> dict[str, Any]:
    values = body.model_dump(exclude_unset=True, exclude_none=True)
    if "timeout_sec" in values:
        values["timeout_s"] = values.pop("timeout_sec")
    return values


def _json(registered: RegisteredTool) -> dict[str, Any]:
    """Public fields of a tool for its account: an explicit list, so that no secret can leak."""
    http = registered.http
    return {
        **tool_json(registered.tool),
        "is_enabled": registered.tool.is_enabled,
        "url": http.url if http else None,
        "method": http.method if http else None,
        "headers": sorted(http.headers) if http else [],
        "timeout_sec": http.timeout_s if http else None,
        "created_at": timestamp(http.created_at) if http else None,
        "updated_at": timestamp(http.updated_at) if http else None,
    }


def _key_json(key: ApiKey) -> dict[str, Any]:
    limits = tools_of(key.scopes)
    tools = sorted(limits) if limits is not None else None
    return shown(AppKeyObject, key, id=key.key_id, tools=tools, expires_at=key.revoked_at)
