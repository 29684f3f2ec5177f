"""What all models of messaging share: their fields are spelled in camelCase."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from api.schemas.base import RequestModel, ResponseModel

__all__ = ["CamelQuery", "CamelRequest", "CamelResponse", "Deleted"]


class CamelRequest(RequestModel):
    """A request body; ``phone_number`` is written ``phoneNumber``, and only so."""

    model_config = ConfigDict(alias_generator=to_camel)


class CamelResponse(ResponseModel):
    """A part of a response body, spelled as `CamelRequest` is."""

    model_config = ConfigDict(alias_generator=to_camel)


class CamelQuery(RequestModel):
    """A query, spelled as `CamelRequest` is."""

    model_config = ConfigDict(alias_generator=to_camel)


class Deleted(CamelResponse):
    """What has been deleted."""

    id: int
    deleted: Literal[True]
