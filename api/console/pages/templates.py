"""Templates of messages: their texts, their review, and new ones."""

from __future__ import annotations

from typing import Any, Final, get_args

from aiohttp import web

from api.console.operations import Listed, ask_list, change, may_ask, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.errors import DomainError
from callcontrol.messaging.models import TemplateStatus

__all__ = ["pages"]

PATH: Final = f"{HOME}/templates"
_CATEGORIES: Final = ("UTILITY", "MARKETING", "AUTHENTICATION")

pages = Pages(
    "templates",
    scope="templates.read",
    writes="templates.write",
    service="messaging",
    nav=Navigation("products", 40, PATH),
)


@pages.get(PATH)
async def list_templates(visit: Visit) -> web.StreamResponse:
    """Show the templates of the account."""
    return await _templates(visit)


@pages.post(PATH)
async def create_template(visit: Visit) -> web.StreamResponse:
    """Create a template, which then is reviewed."""
    return await change(visit, "create_template", again=_templates, to=PATH, done="made", form=visit.form)


@pages.post(PATH + "/{id}/sync", scope="templates.read")
async def sync_template(visit: Visit) -> web.StreamResponse:
    """Ask how the review of a template stands."""
    path = {"id": visit.path("id")}
    return await change(visit, "sync_template", path, again=_templates, to=PATH, done="synced")


@pages.post(PATH + "/{id}/delete")
async def delete_template(visit: Visit) -> web.StreamResponse:
    """Delete a template."""
    path = {"id": visit.path("id")}
    return await change(visit, "delete_template", path, again=_templates, to=PATH, done="deleted")


async def _templates(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    wanted = visit.queries("status")
    values: dict[str, Any] = {
        "wanted": wanted,
        "templates": Listed([]),
        "statuses": get_args(TemplateStatus),
        "categories": [(it, visit.texts["categories"][it]) for it in _CATEGORIES],
        "may_change": may_ask(visit, "create_template"),
    }
    try:
        query = {"status": wanted["status"] or "ALL"}
        values["templates"] = await ask_list(visit, "list_templates", query=query)
    except DomainError as error:
        return refused(visit, "templates.html", refusal or error, **values)
    if refusal is not None:
        return refused(visit, "templates.html", refusal, **values)
    return visit.show("templates.html", **values)
