"""Conversion of objects of the domain to their JSON form."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from api.http.cursor import write_cursor
from callcontrol.clock import timestamp
from callcontrol.models import Page

__all__ = ["keyset_meta", "page_meta", "shown"]


def shown(model: type[BaseModel], source: object, /, **values: Any) -> dict[str, Any]:
    """
    Public fields of an object: those of its response model, and no others, so that no secret can leak.

    Args:
        model: The response model.
        source: The object whose attributes have the names of the fields.
        values: Fields that the object has not, or has in another form.
    """
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        value = values[name] if name in values else getattr(source, name)
        if isinstance(value, datetime):
            value = timestamp(value)
        fields[field.alias or name] = list(value) if isinstance(value, tuple) else value
    return fields


def page_meta(page: Page[Any]) -> dict[str, int]:
    """Fields of ``meta`` for a list."""
    return {
        "total": page.total,
        "page": page.page,
        "per_page": page.per_page,
        "total_pages": page.total_pages,
    }


def keyset_meta(page: Page[Any], listed: str, *, by_cursor: bool) -> dict[str, Any]:
    """Fields of ``meta`` for a list that may be read by cursor; a page by cursor has no number."""
    meta: dict[str, Any] = {**page_meta(page), "next_cursor": write_cursor(listed, page.after)}
    if by_cursor:
        del meta["page"]
    return meta
