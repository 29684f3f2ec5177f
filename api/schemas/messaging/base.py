"""
Base of all messaging models: their fields are in camelCase.

In a request, null for an optional field is the same as leaving it out. In a change, whose omitted fields keep
their values, null removes a value instead.
"""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from api.schemas.base import RequestModel, ResponseModel, all_optional
from api.schemas.common import Page

__all__ = ["CamelQuery", "CamelRequest", "CamelResponse", "Deleted", "PagedQuery"]


def _null_as_absent(schema: dict[str, Any]) -> None:
    """Permit null for the optional fields of a schema."""
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        if name not in required and {"type": "null"} not in field.get("anyOf", ()):
            about = {key: field.pop(key) for key in ("default", "description", "title") if key in field}
            value = dict(field)
            field.clear()
            field.update(anyOf=[value, {"type": "null"}], **about)


class CamelRequest(RequestModel):
    """A request body; ``phone_number`` is accepted as ``phoneNumber`` only."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra=_null_as_absent)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict) or cls.model_config.get("json_schema_extra") is all_optional:
            return given
        optional = _optional_names(cls)
        return {name: value for name, value in given.items() if value is not None or name not in optional}


@cache
def _optional_names(model: type[CamelRequest]) -> frozenset[str]:
    fields = model.model_fields.items()
    return frozenset(field.alias or name for name, field in fields if not field.is_required())


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
