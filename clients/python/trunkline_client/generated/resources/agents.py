# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.agents`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import agents as fields_of
from trunkline_client.generated.results import agents
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/api/v1/agents")
_LIST = Operation("GET", "/api/v1/agents", queries=frozenset({"per_page"}))
_GET = Operation("GET", "/api/v1/agents/{agent_id}")
_UPDATE = Operation("PATCH", "/api/v1/agents/{agent_id}")
_DELETE = Operation("DELETE", "/api/v1/agents/{agent_id}")


class AgentsResource(Resource):
    """Operations of `client.agents`."""

    def create(self, **fields: Unpack[fields_of.CreateAgentFields]) -> agents.Agent:
        """Create a voice agent."""
        return self._transport.item(_CREATE, (), fields, agents.Agent)

    def list(self, **fields: Unpack[fields_of.ListAgentsFields]) -> Pages[agents.Agent]:
        """List voice agents, newest first."""
        return self._transport.pages(_LIST, (), fields, agents.Agent)

    def get(self, agent_id: str, /) -> agents.Agent:
        """Get a voice agent."""
        return self._transport.item(_GET, (agent_id,), {}, agents.Agent)

    def update(self, agent_id: str, /, **fields: Unpack[fields_of.UpdateAgentFields]) -> agents.Agent:
        """Update a voice agent."""
        return self._transport.item(_UPDATE, (agent_id,), fields, agents.Agent)

    def delete(self, agent_id: str, /) -> None:
        """Delete a voice agent."""
        return self._transport.nothing(_DELETE, (agent_id,), {})


class AsyncAgentsResource(AsyncResource):
    """Operations of `client.agents`."""

    async def create(self, **fields: Unpack[fields_of.CreateAgentFields]) -> agents.Agent:
        """Create a voice agent."""
        return await self._transport.item(_CREATE, (), fields, agents.Agent)

    def list(self, **fields: Unpack[fields_of.ListAgentsFields]) -> AsyncPages[agents.Agent]:
        """List voice agents, newest first."""
        return self._transport.pages(_LIST, (), fields, agents.Agent)

    async def get(self, agent_id: str, /) -> agents.Agent:
        """Get a voice agent."""
        return await self._transport.item(_GET, (agent_id,), {}, agents.Agent)

    async def update(self, agent_id: str, /, **fields: Unpack[fields_of.UpdateAgentFields]) -> agents.Agent:
        """Update a voice agent."""
        return await self._transport.item(_UPDATE, (agent_id,), fields, agents.Agent)

    async def delete(self, agent_id: str, /) -> None:
        """Delete a voice agent."""
        return await self._transport.nothing(_DELETE, (agent_id,), {})
