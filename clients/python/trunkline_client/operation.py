"""One operation of the API: the request that it makes, and the data in its responses. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError
from pydantic_core import to_jsonable_python

from trunkline_client.errors import ResponseInvalid

__all__ = ["Operation", "Prepared", "Result", "ResultT", "Slice", "read_result"]

_OWN_ACCOUNT: Final = "/v1/Accounts/{sid}/"


class Result(BaseModel):
    """An object of a response. Fields that a later server adds are kept in `model_extra`."""

    # A program uses few of the models; those it does not use are never built.
    model_config = ConfigDict(extra="allow", populate_by_name=True, defer_build=True)

    _client: Any = PrivateAttr(default=None)

    def bind(self, client: object) -> None:
        """Remember the client that methods of the object ask."""
        self._client = client


ResultT = TypeVar("ResultT", bound=Result)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request without the address of the server."""

    method: str
    path: str
    query: Mapping[str, Any]
    body: Mapping[str, Any] | None
    idempotency_key: str | None

    @property
    def is_repeatable(self) -> bool:
        """True if a lost response does no harm: the server does it once, however often it is asked."""
        return self.method != "POST" or self.idempotency_key is not None


@dataclass(frozen=True, slots=True)
class Slice:
    """One response of a list: its items, and the query of the next one, None at the end."""

    items: list[Any]
    total: int
    following: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Operation:
    """
    An operation as the OpenAPI document describes it.

    `queries` names the fields that go into the query; all others are the body. The data of a `bare` response
    is the whole of it.
    """

    method: str
    path: str
    queries: frozenset[str] = frozenset()
    idempotent: bool = False
    bare: bool = False

    @property
    def needs_account(self) -> bool:
        """True if the path begins with the account, which the caller does not name."""
        return self.path.startswith(_OWN_ACCOUNT)

    def prepare(
        self, path: Iterable[str | int], fields: Mapping[str, Any], idempotency_key: str | None
    ) -> Prepared:
        """
        Make the request. Fields that are None are left out of the query, and stay in the body as null.

        An underscore at the end of a field's name, as in ``from_``, is not part of it.
        """
        named = {name.removesuffix("_"): value for name, value in fields.items()}
        parts = iter(path)
        filled = "/".join(
            quote(str(next(parts)), safe="") + part.partition("}")[2] if part.startswith("{") else part
            for part in self.path.split("/")
        )
        query = {
            name: to_jsonable_python(value)
            for name, value in named.items()
            if name in self.queries and value is not None
        }
        body = {name: to_jsonable_python(value) for name, value in named.items() if name not in self.queries}
        has_body = self.method != "GET" and bool(body)
        return Prepared(self.method, filled, query, body if has_body else None, idempotency_key)

    def data_of(self, content: Any) -> Any:
        """Return the data of a response."""
        if self.bare:
            return content
        if not isinstance(content, dict) or "data" not in content:
            raise ResponseInvalid(f"{self.method} {self.path}: the response has no data")
        return content["data"]

    def slice_of(self, content: Any, page: int) -> Slice:
        """Read a response of a list, which is the page of that number."""
        items = self.data_of(content)
        meta = content.get("meta") or content.get("pagination") or {}
        pages = meta.get("total_pages", meta.get("totalPages", page))
        following: Mapping[str, Any] | None
        if "next_cursor" in meta:
            following = {"cursor": meta["next_cursor"]} if meta["next_cursor"] is not None else None
        else:
            following = {"page": page + 1} if page < pages else None
        return Slice(items, meta.get("total", len(items)), following)


def read_result(kind: type[ResultT], data: Any, client: object) -> ResultT:
    """Read an object of a response, whose methods then ask the client."""
    try:
        result = kind.model_validate(data)
    except ValidationError as error:
        raise ResponseInvalid(f"the response is no {kind.__name__}: {error}") from error
    result.bind(client)
    return result
