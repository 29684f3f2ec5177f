"""Voice agents (telephony specification, voice assistant API)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.schemas.agents import AgentList, AgentObject, CreateAgent, UpdateAgent
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import Conflict
from callcontrol.models import VoiceAgent

__all__ = ["routes"]

_SHOWN_OF_STREAM = ("stream_url", "sample_rate", "stream_protocol", "encoding", "custom_parameters")

_AGENTS = "/api/v1/agents"
_ONE = _AGENTS + "/{agent_id}"

routes = Routes("assistant", tag="voice agents", service="assistant")


@routes.post(_AGENTS, response=AgentObject, success=201, errors=(Conflict,))
async def create_agent(context: Context[CreateAgent, NoQuery]) -> Reply:
    """
    Create a voice agent.

    Numbers and calls name it by its id. Without stream_url the built-in agent speaks.
    """
    values = context.body.model_dump(exclude_none=True)
    return Reply(_json(await context.storage.agents.create(context.account_sid, values)))


@routes.get(_AGENTS, response=AgentObject, paged=True)
async def list_agents(context: Context[NoBody, AgentList]) -> Reply:
    """List voice agents, newest first."""
    query = context.query
    page = await context.storage.agents.list(context.account_sid, query.page, query.per_page)
    return Reply([_json(agent) for agent in page.items], page_meta(page))


@routes.get(_ONE, response=AgentObject)
async def get_agent(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a voice agent."""
    return Reply(_json(await context.storage.agents.get(context.account_sid, context.path["agent_id"])))


@routes.patch(_ONE, response=AgentObject)
async def update_agent(context: Context[UpdateAgent, NoQuery]) -> Reply:
    """
    Update a voice agent.

    Omitted fields keep their values. The next call uses the new ones.
    """
    values = context.body.model_dump(exclude_unset=True)
    if context.body.script is not None:
        values["script"] = context.body.script.model_dump(exclude_none=True)
    if values.get("stream_auth") is not None:
        values["stream_auth"] = {name: value for name, value in values["stream_auth"].items() if value}
    changed = await context.storage.agents.update(context.account_sid, context.path["agent_id"], values)
    return Reply(_json(changed))


@routes.delete(_ONE, errors=(Conflict,))
async def delete_agent(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete a voice agent.

    Refused while numbers or applications send calls to it.
    """
    await context.storage.agents.delete(context.account_sid, context.path["agent_id"])
    return Reply(None)


def _json(agent: VoiceAgent) -> dict[str, Any]:
    stream = {name: getattr(agent.stream, name, None) for name in _SHOWN_OF_STREAM}
    return shown(AgentObject, agent, id=agent.agent_id, **stream)
