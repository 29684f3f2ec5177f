"""The server that the contract is asked of: whole, with its sandbox carrier, and accounts of every kind."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import jsonschema_rs
import pytest

from api.http import pipeline
from api.http.ratelimit import Allowance, allowances_of
from api.process.server import Server
from api.routes import ENDPOINTS
from callcontrol.accounts.keys import EVERY_SCOPE, SCOPES
from callcontrol.models import Principal, Service
from callcontrol.webhooks.aio import subscriptions
from fixtures.agent import DemoAgent
from media.audio import tone
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, look_again, until
from tests.support.webhook_stage import Receiver

ENDED = {"completed", "busy", "no-answer", "failed", "canceled"}

# Who asks: an account that may do everything; a stranger to it; one that buys numbers; one without money; one
# that may hardly spend any; one whose KYC is not done; one that may begin one call a second; one that asks as
# often as it may, and once more; one without numbers.
_ACCOUNTS: Mapping[str, Mapping[str, Any]] = {
    "own": {"balance_paise": 10_000_000, "kyc": True, "max_cps": 1000},
    "other": {"balance_paise": 10_000_000, "kyc": True, "max_cps": 1000},
    "buyer": {"balance_paise": 10_000_000, "kyc": True},
    "thrifty": {"balance_paise": 10_000_000, "kyc": True},
    "poor": {"balance_paise": 0, "kyc": True},
    "unknown": {"balance_paise": 10_000_000, "kyc": False},
    "slow": {"balance_paise": 10_000_000, "kyc": True, "max_cps": 1},
    "hasty": {"balance_paise": 10_000_000, "kyc": True},
    "numberless": {"balance_paise": 10_000_000, "kyc": True},
}
_SPEND: Mapping[str, int] = {"thrifty": 1}
_DOCUMENT = "urn:trunkline:openapi"


@dataclass(frozen=True)
class Customer:
    """
    An account, with a key of each service that carries every scope, and some that open little.

    `every_scope_key` is of all services, and has all scopes by their wildcard.
    """

    account_sid: str
    keys: Mapping[Service, str]
    narrow_keys: Mapping[tuple[Service, str], str]
    revoked_key: str
    every_scope_key: str

    @property
    def key(self) -> str:
        """The key of the platform."""
        return self.keys["platform"]

    def narrow_key_without(self, service: Service, scope: str) -> str | None:
        """A key of a service with one scope, which is another; None where there is only one."""
        keys = self.narrow_keys.items()
        return next((key for (of, one), key in keys if of == service and one != scope), None)


@dataclass(frozen=True)
class Answer:
    """Answer of the server."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    body: Any

    @property
    def code(self) -> str | None:
        """The code of a refusal; None of a success, and of a refusal that is a plain text."""
        if self.status >= 400 and "code" in self.body:
            return str(self.body["code"])
        if self.status < 400 or isinstance(self.body["error"], str):
            return None
        return self.error.get("code")

    @property
    def error(self) -> dict[str, Any]:
        """The error of the envelope; the body itself where there is none."""
        error = self.body.get("error", self.body)
        return error if isinstance(error, dict) else self.body

    @property
    def message(self) -> str:
        """Text of a refusal for people, in either style."""
        if isinstance(self.body.get("error"), str) and "message" not in self.body:
            return str(self.body["error"])
        return str(self.error["msg"] if "msg" in self.error else self.error["message"])

    def wrong_fields(self, of: Sequence[str]) -> set[str]:
        """The fields that a refusal names; of a plain text, those of `of` that stand in it."""
        if "details" not in self.error:
            return {name for name in of if name in self.message}
        return {error["field"] for error in self.error["details"]["errors"]}

    @property
    def data(self) -> Any:
        """The data of the envelope."""
        return self.body["data"]

    @property
    def meta(self) -> Any:
        """The meta of the envelope."""
        return self.body["meta"]


@dataclass
class Stage:
    """A running server, its customers, and a client."""

    server: Server
    agent: DemoAgent
    receiver: Receiver
    http: aiohttp.ClientSession
    document: dict[str, Any]
    accounts: dict[str, Customer] = field(default_factory=dict)
    #: What givens made once for all cases, by name.
    kept: dict[str, Any] = field(default_factory=dict)
    #: Another node on the database, which the requests of cases are sent to.
    front: Server | None = None
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(918047500000))
    _schemas: dict[tuple[str, int], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Shared by hundreds of validators: one that holds the document itself takes megabytes.
        self._registry = jsonschema_rs.Registry([(_DOCUMENT, self.document)])

    @property
    def own(self) -> Customer:
        """The account most cases are about."""
        return self.accounts["own"]

    @property
    def asked(self) -> Server:
        """The node that the requests of cases are sent to."""
        return self.front or self.server

    def fresh_number(self) -> str:
        """A number in E.164 that nobody has."""
        return f"+{next(self._numbers)}"

    async def ask(
        self,
        method: str,
        path: str,
        *,
        by: str = "own",
        key: str | None = None,
        query: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        body: Any = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        by_front: bool = False,
    ) -> Answer:
        """
        Ask with the account's key, or with the one that is given; with none when it is empty.

        `by_front` asks the other node, if there is one.
        """
        lines = dict(headers or {})
        account = self.accounts[by]
        if key is None:
            key = account.keys[_service_of(method, path)]
        if key:
            lines.setdefault("Authorization", f"Bearer {key}")
        if by_front:
            await self.share()
        url = (self.asked if by_front else self.server).url + path
        async with self.http.request(
            method, url, params=query, json=body, data=raw, headers=lines
        ) as response:
            answered = await response.read()
            shown = response.content_type == "application/json" and answered
            parsed = json.loads(answered) if shown else None
            return Answer(response.status, response.headers, answered, parsed)

    async def share(self) -> None:
        """Wait until the other node, if there is one, knows what has happened: it is up to 0.1 s behind."""
        if self.front is not None:
            await self.server.storage.writer.flush_pending()
            known, made = self.front.storage.directory, self.server.storage.directory
            await until(lambda: known.revision >= made.revision)

    async def data(self, method: str, path: str, **parts: Any) -> Any:
        """Ask for what must succeed, and give its data."""
        answer = await self.ask(method, path, **parts)
        assert answer.status < 300, (method, path, answer)
        return answer.data if answer.raw else None

    async def call(self, call_sid: str, by: str = "own") -> dict[str, Any]:
        """A call as it stands."""
        sid = self.accounts[by].account_sid
        found = await self.data("GET", f"/v1/Accounts/{sid}/Calls/{call_sid}", by=by)
        assert isinstance(found, dict)
        return found

    async def call_when(self, call_sid: str, *statuses: str, by: str = "own") -> dict[str, Any]:
        """The call once it has one of the statuses."""
        async with asyncio.timeout(PATIENCE_S):
            while (call := await self.call(call_sid, by))["status"] not in statuses:
                assert call["status"] not in ENDED, call
                await look_again()
        return call

    async def recorded(self, call_sid: str) -> str:
        """The call's SID, once its recording can be had."""

        async def complete() -> bool:
            return str((await self.call(call_sid))["recording_status"]) == "completed"

        await until(complete)
        return call_sid

    def check_schema(self, row: str, answer: Answer) -> None:
        """Hold an answer against what the OpenAPI document says of it."""
        name = (row, answer.status)
        if name not in self._schemas:
            self._schemas[name] = self._schema(*name)
        assert answer.headers["X-Request-Id"]
        validator = self._schemas[name]
        if validator is None or not answer.headers["Content-Type"].startswith("application/json"):
            method, path = row.split(" ", 1)
            declared = self.document["paths"][path][method.lower()]["responses"][str(answer.status)]
            assert not answer.raw or answer.headers["Content-Type"] in declared["content"], answer
            assert answer.body is None, answer
            return
        validator.validate(answer.body)

    def _schema(self, row: str, status: int) -> Any:
        method, path = row.split(" ", 1)
        responses = self.document["paths"][path][method.lower()]["responses"]
        assert str(status) in responses, f"{row} does not declare that it answers {status}"
        if "application/json" not in responses[str(status)].get("content", {}):
            return None
        keys = (
            "paths",
            path,
            method.lower(),
            "responses",
            str(status),
            "content",
            "application/json",
            "schema",
        )
        pointer = "/".join(key.replace("~", "~0").replace("/", "~1") for key in keys)
        schema = {"$ref": f"{_DOCUMENT}#/{quote(pointer, safe='/~')}"}
        return jsonschema_rs.Draft202012Validator(schema, registry=self._registry)

    async def open_accounts(self) -> None:
        """Make the customers."""
        storage = self.server.storage
        for name, kind in _ACCOUNTS.items():
            account, _ = await storage.accounts.create(name, max_calls=1000, **kind)
            sid = account.account_sid
            # All cases together ask more often than a key may.
            limits = {
                "requests_per_minute": 100_000,
                "assistant_requests_per_minute": 10_000,
                "max_spend_paise_per_hour": _SPEND.get(name),
            }
            await storage.accounts.update(sid, limits)
            record, revoked = await storage.keys.issue(sid, "platform")
            await storage.keys.revoke(sid, record.key_id)
            self.accounts[name] = Customer(
                sid,
                {of: await storage.keys.create(sid, of, scopes) for of, scopes in SCOPES.items()},
                {
                    (of, scope): await storage.keys.create(sid, of, [scope])
                    for of, scopes in SCOPES.items()
                    for scope in scopes[:2]
                    if of != "assistant"
                },
                revoked,
                await storage.keys.create(sid, "all", [EVERY_SCOPE]),
            )


def _service_of(method: str, path: str) -> Service:
    """Whose key opens a path: the platform's where nothing says otherwise."""
    for known, pattern, service in _SERVICES:
        if known == method and pattern.fullmatch(path):
            return service
    return "platform"


_SERVICES = [
    (endpoint.method, re.compile(re.sub(r"\{[^}]+\}", "[^/]+", endpoint.path)), endpoint.service)
    for endpoint in ENDPOINTS
    if endpoint.service != "platform"
]


@asynccontextmanager
async def staged(data_dir: Path, **settings: str) -> AsyncIterator[Stage]:
    """Run a stage; `settings` of the server are names as in the environment, without their prefix."""
    server = Server(loopback_settings(data_dir, rtp_ports=800, **settings))
    agent = DemoAgent(tone(700.0, 200))
    lifted = pytest.MonkeyPatch()
    lifted.setattr(pipeline, "allowances_of", allowances_of_many)
    # Every case about one makes one.
    lifted.setattr(subscriptions, "_MAX_ENDPOINTS", 1000)
    await server.start()
    receiver = Receiver()
    await agent.start()
    await receiver.start()
    try:
        async with aiohttp.ClientSession() as http:
            async with http.get(server.url + "/openapi.json") as response:
                document = await response.json()
            stage = Stage(server, agent, receiver, http, document)
            await stage.open_accounts()
            yield stage
    finally:
        lifted.undo()
        await agent.stop()
        await receiver.close()
        await server.stop()


def allowances_of_many(
    principal: Principal, service: Service, endpoint: str, default: int, endpoint_limit: int | None
) -> list[Allowance]:
    """
    Return the rate limits of a request, without those of masking.

    All masking endpoints share one limit, and all cases together ask more often; `held_to_its_limit` is where
    it holds.
    """
    lifted = 100_000 if endpoint == "masking" else endpoint_limit
    return allowances_of(principal, service, endpoint, default, lifted)
