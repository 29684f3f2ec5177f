"""The vocabulary in which cases are declared."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlencode

from callcontrol.numbers.binding import UUID as _UUID
from tests.contract.stage import Answer, Stage

Given = Callable[[Stage], Awaitable[Any]]
"""Brings about what a request needs, and gives what is to stand in the request for it."""

Then = Callable[[Stage, Answer], Awaitable[None]]
"""Looks at what became of the request."""

During = Callable[[Stage], AbstractAsyncContextManager[None]]
"""Context in which the request is made."""

_OF_FORMS = "/2010-04-01/"

Proof = Literal["success", "refusal", "foreign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    One request and what it must be answered.

    Values in `path`, `query`, `body` and `headers` may be givens; they are brought about in the order they
    stand. `before` are givens that nothing in the request stands for. `by` names the account that asks.
    `proves` is what the case shows of its row; foreign: what another account's key gets, be it refused or
    shown nothing. `fields` are those that details.errors must name, neither more nor less; of an error
    that is a plain text, those that the text must name.
    """

    row: str = ""
    name: str = ""
    status: int
    code: str | None = None
    proves: Proof
    by: str = "own"
    before: tuple[Given, ...] = ()
    path: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    during: During | None = None
    then: Then | None = None

    @property
    def title(self) -> str:
        """Name of the case in a report."""
        shown = f"{self.row} {self.status}"
        return f"{shown} {self.name or self.code or self.proves}"

    async def run(self, stage: Stage) -> None:
        """Ask, and hold the answer against what it must be."""
        for given in self.before:
            await given(stage)
        path = self.row.split(" ", 1)[1]
        account = stage.accounts[self.by]
        values = {"sid": account.account_sid, **await _brought(stage, self.path)}
        query, body = await _brought(stage, self.query), await _brought(stage, self.body)
        headers = await _brought(stage, self.headers)
        if self.during is None:
            answer = await self._ask(stage, path.format(**values), query, body, headers)
        else:
            async with self.during(stage):
                answer = await self._ask(stage, path.format(**values), query, body, headers)
        assert (answer.status, answer.code) == (self.status, self.code), answer
        stage.check_schema(self.row, answer)
        if self.fields:
            assert answer.wrong_fields(self.fields) == set(self.fields), answer
        if self.proves == "foreign" and self.status == 404 and self.path:
            nobodys = {**values, **{name: _nobodys(str(values[name])) for name in self.path}}
            unknown = await self._ask(stage, path.format(**nobodys), query, body, headers)
            assert (unknown.status, unknown.code) == (answer.status, answer.code), unknown
            told, untold = _without(nobodys, unknown.message), _without(values, answer.message)
            assert told == untold, "the text tells what is another account's from what is nobody's"
        if self.then is not None:
            await self.then(stage, answer)

    async def _ask(self, stage: Stage, path: str, query: Any, body: Any, headers: Any) -> Answer:
        method = self.row.split(" ", 1)[0]
        parts: dict[str, Any] = {"raw": body} if isinstance(body, bytes) else {"body": body}
        if body is not None and path.startswith(_OF_FORMS):
            parts = {"raw": urlencode(body, doseq=True).encode()}
            headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        return await stage.ask(method, path, by=self.by, query=query, headers=headers, by_front=True, **parts)


def row(text: str, *cases: Case) -> tuple[Case, ...]:
    """The cases of one row, such as `POST /v1/calls`."""
    return tuple(replace(case, row=text) for case in cases)


def ok(status: int = 200, **parts: Any) -> Case:
    """The row does what it is there for."""
    return Case(status=status, proves="success", **parts)


def refused(status: int, code: str | None, **parts: Any) -> Case:
    """The row refuses, under a code; without one where errors are plain texts."""
    return Case(status=status, code=code, proves="refusal", **parts)


def foreign(status: int, code: str | None, **parts: Any) -> Case:
    """The row refuses what belongs to another account."""
    return Case(status=status, code=code, proves="foreign", **{"by": "other", **parts})


def unseen(status: int = 200, **parts: Any) -> Case:
    """The row shows nothing of what belongs to another account; `then` must look."""
    assert "then" in parts, "a case that looks at nothing shows nothing"
    return Case(status=status, proves="foreign", **{"by": "other", **parts})


def _nobodys(identifier: str) -> str:
    """An identifier of the same form, of nothing that there is."""
    if identifier.isdecimal():
        return str(2**62)
    return str(uuid.uuid4()) if _UUID.fullmatch(identifier) else "nobody_has_it"


def _without(identifiers: Mapping[str, Any], text: str) -> str:
    """A text without the identifiers that the request gave."""
    for identifier in identifiers.values():
        text = text.replace(str(identifier), "")
    return text


async def _brought(stage: Stage, value: Any) -> Any:
    """The value with all givens in it brought about."""
    if callable(value):
        return await value(stage)
    if isinstance(value, Mapping):
        return {name: await _brought(stage, item) for name, item in value.items()}
    if isinstance(value, list):
        return [await _brought(stage, item) for item in value]
    return value
