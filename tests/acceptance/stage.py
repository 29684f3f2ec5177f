"""A customer of a running server: an account with its keys, and a number on a carrier of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Phone, PhoneCall
from tests.support.server_process import ServerProcess

__all__ = ["ENDED", "Customer", "Line", "NewCustomer", "mobile", "open_line", "own_number"]

ENDED: Final = {"completed", "busy", "no-answer", "failed", "canceled"}
_numbers = itertools.count(1)


def own_number() -> str:
    """Return a number that no account of this process has."""
    return f"+9180475{next(_numbers):05}"


def mobile(last: int = 1) -> str:
    """Return an Indian mobile number in E.164."""
    return f"+9198111{last:05}"


@dataclass
class Customer:
    """An account, and its keys by service; `key` is of the platform, with the scopes it gets by itself."""

    server: ServerProcess
    account_sid: str
    key: str
    _keys: dict[tuple[str, ...], str] = field(default_factory=dict)

    def key_of(self, service: str, *scopes: str) -> str:
        """Return a key of a service: with its default scopes, or with those that are named."""
        if (service, *scopes) not in self._keys:
            named = ("--scopes", ",".join(scopes)) if scopes else ()
            made = self.server.command(
                "keys", "create", "--account", self.account_sid, "--service", service, *named
            )
            self._keys[service, *scopes] = str(made["key"])
        return self._keys[service, *scopes]

    @property
    def webhook_secret(self) -> str:
        """Secret that signs the account's webhooks."""
        told = self.server.command("accounts", "webhook-secret", "--account", self.account_sid)
        return str(told["webhook_secret"])

    def lease(self, binding: dict[str, Any] | None = None) -> tuple[str, str]:
        """Add a number of the platform to the account, registered for calls; return the number and its id."""
        number = own_number()
        found = self.server.command("numbers", "add", "--account", self.account_sid, "--number", number)
        number_id = str(found["phone_number_id"])
        path = f"/v1/phone-numbers/{number_id}"
        wired = self.server.request("POST", f"{path}/carrier", self.key)
        assert wired.status == 200, wired
        if binding is not None:
            bound = self.server.request("PUT", f"{path}/inbound", self.key, binding)
            assert bound.status == 200, bound
        return number, number_id


NewCustomer = Callable[..., Customer]


@dataclass(frozen=True, slots=True)
class Line:
    """A number of the customer on a carrier of its own; calls from it ring at the telephones of the test."""

    api: Api
    phone: Phone
    number: str
    number_id: str
    carrier_sid: str
    gateway_sid: str

    async def place(self, to: str, **fields: Any) -> dict[str, Any]:
        """Place a call by `POST /v1/calls`; it pauses until it is ended, unless fields say otherwise."""
        body: dict[str, Any] = {"from": self.number, "to": to, **fields}
        if not {"stream_url", "webhook_url", "agent_id", "app_sid", "verbs"} & set(fields):
            body["verbs"] = [{"verb": "pause", "length": 60}]
        placed: dict[str, Any] = (await self.api.post("/v1/calls", body)).expect(201).data
        return placed

    async def connect(self, to: str, **fields: Any) -> tuple[dict[str, Any], PhoneCall]:
        """Place a call, and wait until the telephone has answered it."""
        placed = await self.place(to, **fields)
        return placed, await (await self.phone.rings(to)).until_answered()

    async def ended(self, placed: dict[str, Any]) -> dict[str, Any]:
        """Wait for the end of a call, and return it."""
        path = f"/v1/Accounts/{placed['account_sid']}/Calls/{placed['call_sid']}"
        found: dict[str, Any] = await self.api.until(path, lambda call: call["status"] in ENDED)
        return found

    async def bind(self, **binding: Any) -> dict[str, Any]:
        """Bind the number."""
        path = f"/v1/phone-numbers/{self.number_id}/inbound"
        bound: dict[str, Any] = (await self.api.put(path, {**binding, "force": True})).expect(200).data
        return bound


async def open_line(api: Api, phone: Phone, **carrier: Any) -> Line:
    """Create a carrier with the telephone as its gateway, and register a number on it."""
    made = await api.post("/v1/trunk-portal/carriers", {"name": f"Carrier of {phone.host}", **carrier})
    carrier_sid = made.expect(201).data["carrier_sid"]
    gateway = {"host": phone.host, "port": phone.port, "inbound": True, "outbound": True}
    created = await api.post(f"/v1/trunk-portal/carriers/{carrier_sid}/gateways", gateway)
    number = own_number()
    registered = await api.post(
        "/v1/trunk-portal/numbers", {"number": number, "carrier_sid": carrier_sid, "friendly_name": "Shop"}
    )
    return Line(
        api,
        phone,
        number,
        registered.expect(201).data["number_sid"],
        carrier_sid,
        created.expect(201).data["gateway_sid"],
    )
