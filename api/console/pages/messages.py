"""Messages: those that were sent and received, and a new one."""

from __future__ import annotations

import json
from typing import Any, Final

from aiohttp import web

from api.console.operations import Listed, ask, ask_list, change, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.errors import DomainError

__all__ = ["pages"]

PATH: Final = f"{HOME}/messages"
_SEARCHED: Final = ("status", "direction", "to", "from")

pages = Pages("messages", scope="messages.send", service="messaging", nav=Navigation("products", 30, PATH))


@pages.get(PATH)
async def list_messages(visit: Visit) -> web.StreamResponse:
    """Show messages, newest first."""
    return await _messages(visit)


@pages.post(PATH)
async def send_message(visit: Visit) -> web.StreamResponse:
    """Send a text, or an approved template with its values."""
    form, body = visit.form, {}
    if form.get("form") == "template":
        values = [line.strip() for line in form.get("values", "").splitlines() if line.strip()]
        template = {"name": form.get("name", "").strip(), "bodyParameters": values}
        body["template"] = template | ({"language": form["language"]} if form.get("language") else {})
    sent = {**form, "template": ""}
    return await change(visit, "send_message", again=_messages, to=PATH, done="sent", form=sent, body=body)


@pages.get(PATH + "/{id}")
async def show_message(visit: Visit) -> web.StreamResponse:
    """Show a message with its parts."""
    message = await ask(visit, "get_chat_message", {"messageId": visit.path("id")})
    parts = {
        name: json.dumps(message[name], indent=1, ensure_ascii=False)
        for name in ("template", "media", "interactive")
        if message[name]
    }
    return visit.show("message.html", message=message, parts_of_it=parts)


async def _messages(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    wanted = visit.queries(*_SEARCHED)
    values: dict[str, Any] = {"wanted": wanted, "messages": Listed([])}
    try:
        values["messages"] = await ask_list(visit, "list_chat_messages", query=wanted)
    except DomainError as error:
        return refused(visit, "messages.html", refusal or error, **values)
    if refusal is not None:
        return refused(visit, "messages.html", refusal, **values)
    return visit.show("messages.html", **values)
