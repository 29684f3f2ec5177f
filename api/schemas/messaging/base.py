"""What all models of messaging share: their fields are spelled in camelCase."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import MAX_PAGE

__all__ = ["CamelQuery", "CamelRequest", "CamelResponse", "Deleted", "PagedQuery"]


class CamelRequest(RequestModel):
    """A request body; ``phone_number`` is written ``phoneNumber``, and only so."""

    model_config = ConfigDict(alias_generator=to_camel)


class CamelResponse(ResponseModel):
    """A part of a response body, spelled as `CamelRequest` is."""

    model_config = ConfigDict(alias_generator=to_camel)


class CamelQuery(RequestModel):
    """A query, spelled as `CamelRequest` is."""

    model_config = ConfigDict(alias_generator=to_camel)


class PagedQuery(CamelQuery):
    """Which page of a list."""

    page: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 1
    page_size: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 50


class Deleted(CamelResponse):
    """What has been deleted."""

    id: int
    deleted: Literal[True]
