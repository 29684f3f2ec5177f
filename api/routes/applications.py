"""Applications of the trunk portal (telephony specification, carrier trunks)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.schemas.applications import ApplicationObject, CreateApplication, UpdateApplication
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import page_meta, rfc3339
from api.schemas.trunks import Paging
from callcontrol.errors import Conflict
from callcontrol.models import Application

__all__ = ["ENDPOINTS"]

_SHOWN = (
    "webhook_url",
    "webhook_method",
    "webhook_format",
    "fallback_url",
    "status_webhook_url",
    "stream_url",
    "sample_rate",
    "stream_protocol",
    "encoding",
    "custom_parameters",
    "stream_track",
    "agent_id",
    "workspace_id",
    "forward_to",
    "caller_id",
)


async def create_application(context: Context[CreateApplication, NoQuery]) -> Reply:
    """Answer POST /trunk-portal/applications."""
    values = _values(context.body.model_dump(exclude_none=True))
    return Reply(_json(await context.storage.applications.create(context.account_sid, values)))


async def list_applications(context: Context[NoBody, Paging]) -> Reply:
    """Answer GET /trunk-portal/applications."""
    query = context.query
    page = await context.storage.applications.list(context.account_sid, query.page, query.per_page)
    return Reply([_json(application) for application in page.items], page_meta(page))


async def get_application(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /trunk-portal/applications/:app_sid."""
    return Reply(_json(await context.storage.applications.get(context.account_sid, context.path["app_sid"])))


async def update_application(context: Context[UpdateApplication, NoQuery]) -> Reply:
    """Answer PATCH /trunk-portal/applications/:app_sid."""
    values = _values(context.body.model_dump(exclude_unset=True))
    changed = await context.storage.applications.update(context.account_sid, context.path["app_sid"], values)
    return Reply(_json(changed))


async def delete_application(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /trunk-portal/applications/:app_sid."""
    await context.storage.applications.delete(context.account_sid, context.path["app_sid"])
    return Reply(None)


def _values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Rename fields to the domain's names: the interface's `timeout` is in seconds."""
    return {"timeout_s" if name == "timeout" else name: value for name, value in given.items()}


def _json(application: Application) -> dict[str, Any]:
    """Public fields of an application: an explicit list, so that no secret can leak."""
    binding = application.binding
    return {
        "app_sid": application.app_sid,
        "sid": application.app_sid,
        "name": application.name,
        "target": binding.target,
        **{name: getattr(binding, name) for name in _SHOWN},
        "status_webhook_events": binding.status_webhook_events and list(binding.status_webhook_events),
        "timeout": binding.timeout_s,
        "record_all_calls": application.record_all_calls,
        "created_at": rfc3339(application.created_at),
        "updated_at": rfc3339(application.updated_at),
    }


_APPLICATIONS = "/v1/trunk-portal/applications"
_ONE = _APPLICATIONS + "/{app_sid}"
_READ: dict[str, Any] = {"tag": "applications", "scope": "trunks.read"}
_WRITE: dict[str, Any] = {"tag": "applications", "scope": "trunks.write"}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_APPLICATIONS,
        handler=create_application,
        summary="Create an application",
        description="Configuration of calls, shared by any number of phone numbers and calls.",
        success=201,
        body=CreateApplication,
        response=ApplicationObject,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_APPLICATIONS,
        handler=list_applications,
        summary="List applications",
        query=Paging,
        response=ApplicationObject,
        paged=True,
        **_READ,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_application,
        summary="Get an application",
        response=ApplicationObject,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        handler=update_application,
        summary="Update an application",
        description="Omitted fields keep their values. The next call uses the new ones.",
        body=UpdateApplication,
        response=ApplicationObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=delete_application,
        summary="Delete an application",
        description="Refused while calls use it or numbers are attached.",
        success=204,
        response=None,
        errors=(Conflict,),
        **_WRITE,
    ),
)
