"""Requests over httpx, in both kinds: `Transport` blocks, `AsyncTransport` awaits."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from trunkline_client.errors import ConnectionFailed, ResponseInvalid, TrunklineError, error_of
from trunkline_client.operation import Operation, Prepared, ResultT, Slice, read_result
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.retries import DEFAULT_POLICY, RetryPolicy

__all__ = ["AsyncResource", "AsyncTransport", "Options", "Resource", "Transport"]

_ACCOUNT = Operation("GET", "/v1/account")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    Options of a client.

    `timeout_s` limits connecting, each wait for bytes, and each wait for a free connection. Without an
    `account_sid` the client asks for that of the key when it needs it.
    """

    base_url: str
    key: str = field(repr=False)
    timeout_s: float = 30.0
    policy: RetryPolicy = DEFAULT_POLICY
    account_sid: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Header fields of every request."""
        return {"Authorization": f"Bearer {self.key}", "User-Agent": "trunkline-client"}


def _key(operation: Operation, given: str | None) -> str | None:
    """Key of the caller, or a new one where the server honours it, so that the request can be repeated."""
    return given or (str(uuid.uuid4()) if operation.idempotent else None)


def _arguments(request: Prepared) -> dict[str, Any]:
    """Arguments of a request of httpx."""
    headers = {"Idempotency-Key": request.idempotency_key} if request.idempotency_key else {}
    return {
        "method": request.method,
        "url": request.path,
        "params": request.query,
        "json": request.body,
        "headers": headers,
    }


def _checked(response: httpx.Response) -> httpx.Response:
    """Raise the error of a response that is a refusal."""
    if response.is_success:
        return response
    try:
        content = response.json()
    except ValueError:
        content = None
    raise error_of(response.status_code, content, response.headers)


def _content(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise ResponseInvalid("the response is no JSON") from error


class Transport:
    """Makes requests and waits for their responses."""

    def __init__(self, options: Options, transport: httpx.BaseTransport | None = None) -> None:
        self.options = options
        self.client: object = None
        self._account_sid = options.account_sid
        self._pause = threading.Event()
        self._http = httpx.Client(
            base_url=options.base_url, headers=options.headers, timeout=options.timeout_s, transport=transport
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def item(
        self,
        operation: Operation,
        path: tuple[str | int, ...],
        fields: Mapping[str, Any],
        kind: type[ResultT],
        idempotency_key: str | None = None,
    ) -> ResultT:
        """Return the object that is answered."""
        content = _content(self._do(operation, path, fields, idempotency_key))
        return read_result(kind, operation.data_of(content), self.client)

    def items(
        self,
        operation: Operation,
        path: tuple[str | int, ...],
        fields: Mapping[str, Any],
        kind: type[ResultT],
    ) -> list[ResultT]:
        """Return the objects of a list without pages."""
        content = _content(self._do(operation, path, fields))
        return [read_result(kind, item, self.client) for item in operation.data_of(content)]

    def pages(
        self,
        operation: Operation,
        path: tuple[str | int, ...],
        fields: Mapping[str, Any],
        kind: type[ResultT],
    ) -> Pages[ResultT]:
        """Return a list, which asks for its pages as it is read."""

        def turn(page: int, query: Mapping[str, Any]) -> Slice:
            asked = Operation(operation.method, operation.path, operation.queries | query.keys())
            return operation.slice_of(_content(self._do(asked, path, {**fields, **query})), page)

        return Pages(turn, lambda item: read_result(kind, item, self.client))

    def nothing(self, operation: Operation, path: tuple[str | int, ...], fields: Mapping[str, Any]) -> None:
        """Make a request that is answered without a body."""
        self._do(operation, path, fields)

    def file(self, operation: Operation, path: tuple[str | int, ...], fields: Mapping[str, Any]) -> bytes:
        """Return a file."""
        return self._do(operation, path, fields).content

    def account_sid(self) -> str:
        """Account of the key; asked for once."""
        if self._account_sid is None:
            content = _content(self._repeat(_ACCOUNT.prepare((), {}, None)))
            self._account_sid = str(_ACCOUNT.data_of(content)["account_sid"])
        return self._account_sid

    def _do(
        self,
        operation: Operation,
        path: Iterable[str | int],
        fields: Mapping[str, Any],
        key: str | None = None,
    ) -> httpx.Response:
        parts = (self.account_sid(), *path) if operation.needs_account else path
        return self._repeat(operation.prepare(parts, fields, _key(operation, key)))

    def _repeat(self, request: Prepared) -> httpx.Response:
        attempt = 1
        while True:
            try:
                return self._attempt(request)
            except TrunklineError as error:
                wait_s = self.options.policy.wait_s(attempt, request, error)
                if wait_s is None:
                    raise
            self._pause.wait(wait_s)
            attempt += 1

    def _attempt(self, request: Prepared) -> httpx.Response:
        try:
            return _checked(self._http.request(**_arguments(request)))
        except httpx.TransportError as error:
            raise ConnectionFailed(f"{request.method} {request.path}: {error!r}") from error


class AsyncTransport:
    """Makes requests; the loop does other things until they are answered."""

    def __init__(self, options: Options, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.options = options
        self.client: object = None
        self._account_sid = options.account_sid
        self._http = httpx.AsyncClient(
            base_url=options.base_url, headers=options.headers, timeout=options.timeout_s, transport=transport
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def item(
        self,
        operation: Operation,
        path: tuple[str | int, ...],
        fields: Mapping[str, Any],
        kind: type[ResultT],
        idempotency_key: str | None = None,
    ) -> ResultT:
        """Return the object that is answered."""
        content = _content(await self._do(operation, path, fields, idempotency_key))
        return read_result(kind, operation.data_of(content), self.client)

    async def items(
        self,
        operation: Operation,
        path: tuple[str | int, ...],
        fields: Mapping[str, Any],
        kind: type[ResultT],
    ) -> list[ResultT]:
        """Return the objects of a list without pages."""
        content = _content(await self._do(operation, path, fields))
        return [read_result(kind, item, self.client) for item in operation.data_of(content)]

    def pages(
        self,
        operation: Operation,
        path: tuple[str | int, ...],
        fields: Mapping[str, Any],
        kind: type[ResultT],
    ) -> AsyncPages[ResultT]:
        """Return a list, which asks for its pages as it is read."""

        async def turn(page: int, query: Mapping[str, Any]) -> Slice:
            asked = Operation(operation.method, operation.path, operation.queries | query.keys())
            return operation.slice_of(_content(await self._do(asked, path, {**fields, **query})), page)

        return AsyncPages(turn, lambda item: read_result(kind, item, self.client))

    async def nothing(
        self, operation: Operation, path: tuple[str | int, ...], fields: Mapping[str, Any]
    ) -> None:
        """Make a request that is answered without a body."""
        await self._do(operation, path, fields)

    async def file(
        self, operation: Operation, path: tuple[str | int, ...], fields: Mapping[str, Any]
    ) -> bytes:
        """Return a file."""
        return (await self._do(operation, path, fields)).content

    async def account_sid(self) -> str:
        """Account of the key; asked for once."""
        if self._account_sid is None:
            content = _content(await self._repeat(_ACCOUNT.prepare((), {}, None)))
            self._account_sid = str(_ACCOUNT.data_of(content)["account_sid"])
        return self._account_sid

    async def _do(
        self,
        operation: Operation,
        path: Iterable[str | int],
        fields: Mapping[str, Any],
        key: str | None = None,
    ) -> httpx.Response:
        parts = (await self.account_sid(), *path) if operation.needs_account else path
        return await self._repeat(operation.prepare(parts, fields, _key(operation, key)))

    async def _repeat(self, request: Prepared) -> httpx.Response:
        attempt = 1
        while True:
            try:
                return await self._attempt(request)
            except TrunklineError as error:
                wait_s = self.options.policy.wait_s(attempt, request, error)
                if wait_s is None:
                    raise
            await asyncio.sleep(wait_s)
            attempt += 1

    async def _attempt(self, request: Prepared) -> httpx.Response:
        try:
            return _checked(await self._http.request(**_arguments(request)))
        except httpx.TransportError as error:
            raise ConnectionFailed(f"{request.method} {request.path}: {error!r}") from error


class Resource:
    """Operations of one part of the API."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport


class AsyncResource:
    """Operations of one part of the API."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
