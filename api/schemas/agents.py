"""Request and response models of voice agents."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from api.schemas.agent_scripts import AgentScript
from api.schemas.base import RequestModel, ResponseModel, all_optional
from api.schemas.common import Page, PerPage, Timestamp
from api.schemas.streams import CustomParameters, StreamAuth
from callcontrol.agents.agent import LANGUAGE, built_in_errors, field_errors
from callcontrol.egress.url_policy import STREAM_SCHEMES
from callcontrol.errors import FieldError

__all__ = ["AgentList", "AgentObject", "CreateAgent", "UpdateAgent"]

_Text = Annotated[str, Field(max_length=128)]
_Workspace = Annotated[str, Field(max_length=64, json_schema_extra={"format": "uuid"})]
_StreamUrl = Annotated[
    str, Field(max_length=2048, json_schema_extra={"pattern": r"^(wss?|audiosocket)://[^\s]+$"})
]
_Language = Annotated[str, Field(max_length=16, json_schema_extra={"pattern": f"^{LANGUAGE.pattern}$"})]


class AgentFields(RequestModel):
    """Attributes of an agent and of the connection to its server."""

    language: Annotated[_Language, Field(description="Such as hi-IN; default en-IN.")] | None = None
    voice: Annotated[_Text, Field(description="For the agent's server to know.")] | None = None
    greeting: Annotated[str, Field(max_length=2000)] | None = None
    instructions: Annotated[str, Field(max_length=20_000)] | None = None
    workspace_id: Annotated[_Workspace, Field(description="Bindings must name it too.")] | None = None
    stream_url: Annotated[_StreamUrl, Field(description="Where the agent's server listens.")] | None = None
    sample_rate: (
        Annotated[int, Field(description="Default 8000.", json_schema_extra={"enum": [8000, 16000]})] | None
    ) = None
    stream_protocol: Annotated[str, Field(max_length=32, description="Wire dialect.")] | None = None
    encoding: Annotated[str, Field(max_length=32, description="l16, mulaw or alaw.")] | None = None
    custom_parameters: (
        Annotated[CustomParameters, Field(description="Handed to the agent at start.")] | None
    ) = None
    stream_auth: StreamAuth | None = None
    script: (
        Annotated[AgentScript, Field(description="For agents without stream_url: what is said and asked.")]
        | None
    ) = None

    urls = {"stream_url": STREAM_SCHEMES}

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the single fields."""
        return field_errors(sound)


class CreateAgent(AgentFields):
    """A new agent."""

    name: Annotated[str, Field(min_length=1, max_length=128)]

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse what needs a stream_url without one."""
        return [] if given.get("stream_url") is not None else built_in_errors(given)


class UpdateAgent(AgentFields):
    """Fields of an agent to change; null removes a value, omitted fields keep theirs."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    name: Annotated[str, Field(min_length=1, max_length=128)] = ""


class AgentList(RequestModel):
    """Page of the list of agents."""

    page: Page = 1
    per_page: PerPage = 20


class AgentObject(ResponseModel):
    """A voice agent; credentials of its stream are never shown."""

    id: str
    name: str
    language: str
    voice: str | None
    greeting: str | None
    instructions: str | None
    workspace_id: str | None
    stream_url: str | None
    sample_rate: int | None
    stream_protocol: str | None
    encoding: str | None
    custom_parameters: dict[str, str] | None
    script: AgentScript | None
    created_at: Timestamp
    updated_at: Timestamp
