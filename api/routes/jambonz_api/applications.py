"""Applications in jambonz's interface; the domain functions are those of the trunk portal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.http.errors import ErrorStyle
from api.routes.jambonz_api.calls import ACCOUNT
from api.schemas.base import NoBody, NoQuery
from api.schemas.jambonz_api.applications import (
    CreateJambonzApplication,
    JambonzApplication,
    JambonzApplications,
)
from api.schemas.jambonz_api.base import JambonzSid, hook_of, status_url
from callcontrol.errors import Conflict, ValidationFailed
from callcontrol.models import Application

__all__ = ["routes"]

_ALL = f"{ACCOUNT}/Applications"
_ONE = f"{ACCOUNT}/Applications/{{applicationSid}}"
_MAX_LISTED = 1000
_NAMES: Mapping[str, str] = {
    "webhook_url": "call_hook",
    "webhook_method": "call_hook.method",
    "status_webhook_url": "call_status_hook",
}
"""jambonz's name of each field that the domain may refuse."""

routes = Routes(
    "trunks.read", "trunks.write", style=ErrorStyle.JAMBONZ, tag="applications, as jambonz's clients ask"
)


@routes.post(_ALL, success=201, response=JambonzSid, errors=(Conflict,))
async def create_jambonz_application(context: Context[CreateJambonzApplication, NoQuery]) -> Reply:
    """
    Create an application, as jambonz's clients do.

    Numbers are bound to it as to any other.
    """
    body = context.body
    hook, told = hook_of(body.call_hook), status_url(body.call_status_hook)
    values: dict[str, Any] = {
        "name": body.name,
        "target": "webhook",
        "webhook_url": hook.url,
        "webhook_method": hook.method,
        "webhook_format": "jambonz",
        "record_all_calls": body.record_all_calls,
    }
    if told is not None:
        values["status_webhook_url"] = told
    try:
        created = await context.storage.applications.create(context.account_sid, values)
    except ValidationFailed as refusal:
        raise refusal.renamed(lambda field: _NAMES.get(field, field)) from refusal
    return Reply({"sid": created.app_sid})


@routes.get(_ALL, response=JambonzApplications)
async def list_jambonz_applications(context: Context[NoBody, NoQuery]) -> Reply:
    """List all applications of the account in jambonz's shape."""
    page = await context.storage.applications.list(context.account_sid, 1, _MAX_LISTED)
    return Reply([_shown(application) for application in page.items])


@routes.get(_ONE, response=JambonzApplication)
async def get_jambonz_application(context: Context[NoBody, NoQuery]) -> Reply:
    """Get an application, in jambonz's shape."""
    found = await context.storage.applications.get(context.account_sid, context.path["applicationSid"])
    return Reply(_shown(found))


@routes.delete(_ONE, errors=(Conflict,))
async def delete_jambonz_application(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete an application.

    Refused while calls use it or numbers are attached.
    """
    await context.storage.applications.delete(context.account_sid, context.path["applicationSid"])
    return Reply(None)


def _shown(application: Application) -> dict[str, Any]:
    binding = application.binding
    asks = binding.target == "webhook" and binding.webhook_format == "jambonz"
    told = binding.status_webhook_url
    return {
        "application_sid": application.app_sid,
        "account_sid": application.account_sid,
        "name": application.name,
        "call_hook": {"url": binding.webhook_url, "method": binding.webhook_method} if asks else None,
        "call_status_hook": {"url": told, "method": "POST"} if told else None,
        "record_all_calls": application.record_all_calls,
    }
