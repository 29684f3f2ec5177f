"""Base of all messaging models: their fields are in camelCase."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import Page

__all__ = ["CamelQuery", "CamelRequest", "CamelResponse", "Deleted", "PagedQuery"]


class CamelRequest(RequestModel):
    """A request body; ``phone_number`` is accepted as ``phoneNumber`` only."""

    model_config = ConfigDict(alias_generator=to_camel)


class CamelResponse(ResponseModel):
    """A part of a response body, in the spelling of `CamelRequest`."""

    model_config = ConfigDict(alias_generator=to_camel)


class CamelQuery(RequestModel):
    """A query, in the spelling of `CamelRequest`."""

    model_config = ConfigDict(alias_generator=to_camel)


class PagedQuery(CamelQuery):
    """Page of a list."""

    page: Page = 1
    page_size: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 50


class Deleted(CamelResponse):
    """Result of a deletion."""

    id: int
    deleted: Literal[True]
