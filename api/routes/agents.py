"""Voice agents (telephony specification, voice assistant API)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.schemas.agents import AgentList, AgentObject, CreateAgent, UpdateAgent
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import page_meta, rfc3339
from callcontrol.errors import Conflict
from callcontrol.models import VoiceAgent

__all__ = ["ENDPOINTS"]

_SHOWN = ("name", "language", "voice", "greeting", "instructions", "workspace_id", "script")
_SHOWN_OF_STREAM = ("stream_url", "sample_rate", "stream_protocol", "encoding", "custom_parameters")


async def create_agent(context: Context[CreateAgent, NoQuery]) -> Reply:
    """Answer POST /v1/agents of the voice assistant."""
    values = context.body.model_dump(exclude_none=True)
    return Reply(_json(await context.storage.agents.create(context.account_sid, values)))


async def list_agents(context: Context[NoBody, AgentList]) -> Reply:
    """Answer GET /v1/agents of the voice assistant."""
    query = context.query
    page = await context.storage.agents.list(context.account_sid, query.page, query.per_page)
    return Reply([_json(agent) for agent in page.items], page_meta(page))


async def get_agent(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /v1/agents/{agent_id} of the voice assistant."""
    return Reply(_json(await context.storage.agents.get(context.account_sid, context.path["agent_id"])))


async def update_agent(context: Context[UpdateAgent, NoQuery]) -> Reply:
    """Answer PATCH /v1/agents/{agent_id} of the voice assistant."""
    values = context.body.model_dump(exclude_unset=True)
    if context.body.script is not None:
        values["script"] = context.body.script.model_dump(exclude_none=True)
    if values.get("stream_auth") is not None:
        values["stream_auth"] = {name: value for name, value in values["stream_auth"].items() if value}
    changed = await context.storage.agents.update(context.account_sid, context.path["agent_id"], values)
    return Reply(_json(changed))


async def delete_agent(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /v1/agents/{agent_id} of the voice assistant."""
    await context.storage.agents.delete(context.account_sid, context.path["agent_id"])
    return Reply(None)


def _json(agent: VoiceAgent) -> dict[str, Any]:
    """Public fields of an agent: an explicit list, so that no secret can leak."""
    return {
        "id": agent.agent_id,
        **{name: getattr(agent, name) for name in _SHOWN},
        **{name: getattr(agent.stream, name, None) for name in _SHOWN_OF_STREAM},
        "created_at": rfc3339(agent.created_at),
        "updated_at": rfc3339(agent.updated_at),
    }


_AGENTS = "/api/v1/agents"
_ONE = _AGENTS + "/{agent_id}"
# Every endpoint of the assistant requires a key of that service.
_COMMON: dict[str, Any] = {
    "tag": "voice agents",
    "scope": "assistant",
    "service": "assistant",
}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_AGENTS,
        handler=create_agent,
        summary="Create a voice agent",
        description="Numbers and calls name it by its id. Without stream_url the built-in agent speaks.",
        success=201,
        body=CreateAgent,
        response=AgentObject,
        errors=(Conflict,),
        **_COMMON,
    ),
    Endpoint(
        method="GET",
        path=_AGENTS,
        handler=list_agents,
        summary="List voice agents, newest first",
        query=AgentList,
        response=AgentObject,
        paged=True,
        **_COMMON,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_agent,
        summary="Get a voice agent",
        response=AgentObject,
        **_COMMON,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        handler=update_agent,
        summary="Update a voice agent",
        description="Omitted fields keep their values. The next call uses the new ones.",
        body=UpdateAgent,
        response=AgentObject,
        **_COMMON,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=delete_agent,
        summary="Delete a voice agent",
        description="Refused while numbers or applications send calls to it.",
        success=204,
        response=None,
        errors=(Conflict,),
        **_COMMON,
    ),
)
