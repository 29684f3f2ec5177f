"""Applications of the trunk portal (telephony specification, carrier trunks)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.schemas.applications import ApplicationObject, CreateApplication, UpdateApplication
from api.schemas.base import NoBody, NoQuery
from api.schemas.model import model_json
from api.schemas.serializers import page_meta, shown
from api.schemas.trunks import Paging
from callcontrol.errors import Conflict
from callcontrol.models import Application

__all__ = ["routes"]

_APPLICATIONS = "/v1/trunk-portal/applications"
_ONE = _APPLICATIONS + "/{app_sid}"

routes = Routes("trunks.read", "trunks.write", tag="applications")


@routes.post(_APPLICATIONS, response=ApplicationObject, success=201, errors=(Conflict,))
async def create_application(context: Context[CreateApplication, NoQuery]) -> Reply:
    """
    Create an application.

    Configuration of calls, shared by any number of phone numbers and calls.
    """
    values = _values(context.body.model_dump(exclude_none=True))
    return Reply(_json(await context.storage.applications.create(context.account_sid, values)))


@routes.get(_APPLICATIONS, response=ApplicationObject, paged=True)
async def list_applications(context: Context[NoBody, Paging]) -> Reply:
    """List applications."""
    query = context.query
    page = await context.storage.applications.list(context.account_sid, query.page, query.per_page)
    return Reply([_json(application) for application in page.items], page_meta(page))


@routes.get(_ONE, response=ApplicationObject)
async def get_application(context: Context[NoBody, NoQuery]) -> Reply:
    """Get an application."""
    return Reply(_json(await context.storage.applications.get(context.account_sid, context.path["app_sid"])))


@routes.patch(_ONE, response=ApplicationObject)
async def update_application(context: Context[UpdateApplication, NoQuery]) -> Reply:
    """
    Update an application.

    Omitted fields keep their values. The next call uses the new ones.
    """
    values = _values(context.body.model_dump(exclude_unset=True))
    changed = await context.storage.applications.update(context.account_sid, context.path["app_sid"], values)
    return Reply(_json(changed))


@routes.delete(_ONE, errors=(Conflict,))
async def delete_application(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete an application.

    Refused while calls use it or numbers are attached.
    """
    await context.storage.applications.delete(context.account_sid, context.path["app_sid"])
    return Reply(None)


def _values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Rename fields to the domain's names: the interface's `timeout` is in seconds."""
    return {"timeout_s" if name == "timeout" else name: value for name, value in given.items()}


def _json(application: Application) -> dict[str, Any]:
    return shown(
        ApplicationObject,
        application.binding,
        app_sid=application.app_sid,
        sid=application.app_sid,
        name=application.name,
        timeout=application.binding.timeout_s,
        record_all_calls=application.record_all_calls,
        model=model_json(application.binding.model),
        created_at=application.created_at,
        updated_at=application.updated_at,
    )
