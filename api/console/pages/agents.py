"""Voice agents: the built-in one with its script, those at a stream URL, their numbers and a test call."""

from __future__ import annotations

import json
from typing import Any, Final

from aiohttp import web

from api.console.operations import ask, ask_list, change, may_ask, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.errors import DomainError
from media.streams.schemas import FRAMES

__all__ = ["pages"]

PATH: Final = f"{HOME}/agents"
ONE: Final = PATH + "/{id}"

_FIELDS: Final = (
    *("name", "stream_url", "stream_protocol", "sample_rate", "encoding"),
    *("language", "voice", "greeting", "instructions", "script"),
)
_OPTIONAL: Final = _FIELDS[1:]

pages = Pages("agents", scope="assistant", service="assistant", nav=Navigation("resources", 30, PATH))


@pages.get(PATH)
async def list_agents(visit: Visit) -> web.StreamResponse:
    """Show the agents of the account."""
    return await _agents(visit)


@pages.post(PATH)
async def create_agent(visit: Visit) -> web.StreamResponse:
    """Create an agent, and go to it."""
    try:
        made = await ask(visit, "create_agent", form=visit.form)
    except DomainError as refusal:
        return await _agents(visit, refusal)
    visit.go(f"{PATH}/{made['id']}", done="made")


@pages.get(ONE)
async def show_agent(visit: Visit) -> web.StreamResponse:
    """Show an agent, its numbers, and what can be done with it."""
    return await _agent(visit)


@pages.post(ONE)
async def change_agent(visit: Visit) -> web.StreamResponse:
    """Change an agent; an empty field takes its value away."""
    emptied = {name: None for name in _OPTIONAL if not visit.form.get(name, "").strip()}
    path, to = {"agent_id": visit.sid("id")}, f"{PATH}/{visit.sid('id')}"
    return await change(
        visit, "update_agent", path, again=_agent, to=to, done="changed", form=visit.form, body=emptied
    )


@pages.post(ONE + "/delete")
async def delete_agent(visit: Visit) -> web.StreamResponse:
    """Delete an agent that no number is bound to."""
    path = {"agent_id": visit.sid("id")}
    return await change(visit, "delete_agent", path, again=_agent, to=PATH, done="deleted")


@pages.post(ONE + "/bind")
async def bind_agent(visit: Visit) -> web.StreamResponse:
    """Bind the inbound calls of a number to an agent."""
    number = {"id": visit.form.get("number", "")}
    try:
        agent = await ask(visit, "get_agent", {"agent_id": visit.sid("id")})
        # An agent without a workspace is in that of its account.
        workspace = agent["workspace_id"] or visit.account_sid
        body = {"target": "voice_agent", "agent_id": agent["id"], "workspace_id": workspace}
        await ask(visit, "bind_number", number, form={"force": visit.form.get("force", "")}, body=body)
    except DomainError as refusal:
        return await _agent(visit, refusal)
    visit.go(f"{PATH}/{visit.sid('id')}", done="bound")


@pages.post(ONE + "/call")
async def call_agent(visit: Visit) -> web.StreamResponse:
    """Call a number by an agent, and go to that call."""
    try:
        body = {"agent_id": visit.sid("id")}
        call = await ask(visit, "start_assistant_call", form=visit.form, body=body)
    except DomainError as refusal:
        return await _agent(visit, refusal)
    visit.go(f"{HOME}/calls/{call['id']}")


def _choices(visit: Visit) -> dict[str, list[tuple[str, str]]]:
    none = ("", "\N{EN DASH}")
    return {
        "stream_protocol": [none, *((it, it) for it in FRAMES)],
        "sample_rate": [none, ("8000", "8000"), ("16000", "16000")],
        "encoding": [none, *((it, it) for it in ("l16", "mulaw", "alaw"))],
        "force": [("", visit.texts["no"]), ("true", visit.texts["yes"])],
    }


async def _agents(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    values: dict[str, Any] = {
        "agents": await ask_list(visit, "list_agents"),
        "names": _FIELDS,
        "choices": _choices(visit),
    }
    if refusal is not None:
        return refused(visit, "agents.html", refusal, **values)
    return visit.show("agents.html", **values)


async def _agent(visit: Visit, refusal: DomainError | None = None) -> web.StreamResponse:
    agent = await ask(visit, "get_agent", {"agent_id": visit.sid("id")})
    held = {name: "" if agent[name] is None else agent[name] for name in _FIELDS}
    if agent["script"]:
        held["script"] = json.dumps(agent["script"], indent=1, ensure_ascii=False)
    choices = _choices(visit)
    if may_ask(visit, "bind_number") and may_ask(visit, "list_numbers"):
        numbers = (await ask_list(visit, "list_numbers", query={"status": "active"})).items
        choices["number"] = [(it["id"], f"{it['number']} ({it['inbound_target_type']})") for it in numbers]
    query = {"agent_id": agent["id"], "per_page": "10"}
    calls = await ask(visit, "list_assistant_calls", query=query)
    values: dict[str, Any] = {
        "agent": agent,
        "held": held,
        "names": _FIELDS,
        "choices": choices,
        "calls": calls,
    }
    if refusal is not None:
        return refused(visit, "agent.html", refusal, **values)
    return visit.show("agent.html", **values)
