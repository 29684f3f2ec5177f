"""Claims of the endpoint list about each row, and their proof by the cases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.http.endpoint import Endpoint
from api.http.errors import ErrorStyle, status_of
from tests.contract.cases import Case

_LIST = Path(__file__).with_name("endpoints.json")

# Success where the specification shows none, as it was decided.
_SUCCESS: Mapping[str, int] = {
    "POST /v1/calls": 201,
    "POST /v1/Accounts/{sid}/Calls": 201,
    "DELETE /v1/Accounts/{sid}/Calls/{callSid}": 200,
    "POST /v1/voice-otp/send": 201,
}

_ENDPOINTS = "/api/webhook-endpoints"
_ADMIN = "/integrations/admin"
PUBLIC = frozenset({"GET /integrations", "GET /integrations/health"})
"""Rows that are for anybody; they are asked without a key."""

# What is meant by a row that stands for several, as it was decided, and with which success.
_MEANT: Mapping[str, Mapping[str, int]] = {
    f"* {_ENDPOINTS}": {
        f"POST {_ENDPOINTS}": 201,
        f"GET {_ENDPOINTS}": 200,
        f"GET {_ENDPOINTS}/{{id}}": 200,
        f"PATCH {_ENDPOINTS}/{{id}}": 200,
        f"DELETE {_ENDPOINTS}/{{id}}": 200,
        f"POST {_ENDPOINTS}/{{id}}/test": 200,
    },
    f"GET {_ADMIN}/*": dict.fromkeys(
        (f"GET {_ADMIN}/{path}" for path in ("tools", "tools/{name}", "keys", "usage")), 200
    ),
    f"POST {_ADMIN}/*": {
        f"POST {_ADMIN}/tools": 201,
        f"POST {_ADMIN}/tools/{{name}}": 200,
        f"POST {_ADMIN}/tools/{{name}}/enable": 200,
        f"POST {_ADMIN}/tools/{{name}}/disable": 200,
        f"POST {_ADMIN}/tools/{{name}}/delete": 204,
        f"POST {_ADMIN}/keys": 201,
        f"POST {_ADMIN}/keys/{{key_id}}/revoke": 200,
    },
}

_WIRING = "/v1/phone-numbers/{id}"
_CALL = "/v1/Accounts/{sid}/Calls/{callSid}"
_VALIDATION, _BUSY_KEY = (400, "VALIDATION_ERROR"), (409, "IDEMPOTENCY_CONFLICT")
_PLACED = {
    _VALIDATION,
    _BUSY_KEY,
    (402, "INSUFFICIENT_BALANCE"),
    (402, "SPEND_LIMIT_EXCEEDED"),
    (403, "NUMBER_NOT_OWNED"),
    (429, "RATE_LIMITED"),
    (503, "SERVICE_UNAVAILABLE"),
}
_WIRED = {(400, "validation"), (404, "not_found"), (503, "not_configured")}

# The refusals that the specifications name by their code, beyond the statuses of the list.
_NAMED: Mapping[str, set[tuple[int, str]]] = {
    "POST /v1/dids/purchase-live": {
        _VALIDATION,
        _BUSY_KEY,
        (402, "INSUFFICIENT_BALANCE"),
        (403, "KYC_REQUIRED"),
        (404, "NOT_FOUND"),
        (409, "NUMBER_NOT_OWNED"),
        (409, "QUOTE_STALE"),
    },
    "GET /v1/phone-numbers": {_VALIDATION},
    f"GET {_WIRING}/telephony": {(400, "validation"), (404, "not_found")},
    f"POST {_WIRING}/carrier": _WIRED,
    f"DELETE {_WIRING}/carrier": _WIRED | {(409, "inbound_bound")},
    f"PUT {_WIRING}/inbound": _WIRED | {(400, "bind_failed"), (409, "inbound_conflict")},
    f"DELETE {_WIRING}/inbound": _WIRED,
    "POST /v1/calls": _PLACED,
    "POST /v1/Accounts/{sid}/Calls": _PLACED | {(403, "FORBIDDEN")},
    f"GET {_CALL}": {(403, "FORBIDDEN"), (404, "NOT_FOUND")},
    f"DELETE {_CALL}": {(403, "FORBIDDEN"), (404, "NOT_FOUND"), (409, "CALL_ENDED")},
    "POST /v1/voice-otp/send": _PLACED,
    "GET /v1/voice-otp/stats": {_VALIDATION},
    "POST /v1/masking/calls": {
        (400, "invalid_numbers"),
        (400, "validation"),
        (402, "insufficient_balance"),
        (409, "idempotency_conflict"),
        (429, "rate_limited"),
    },
    **{f"GET /v1/masking/calls/{{call_sid}}{part}": {(404, "not_found")} for part in ("", "/recording")},
    "GET /v1/masking/stats": {(400, "validation")},
    "POST /api/v1/calls/outbound": _PLACED | {(404, "NOT_FOUND")},
    "GET /api/v1/calls/{call_id}": {(404, "NOT_FOUND")},
    "GET /api/v1/calls/{call_id}/transcript": {(404, "NOT_FOUND")},
    "POST /api/v1/webhooks": {_VALIDATION},
}


@dataclass(frozen=True)
class Row:
    """One row of the list."""

    service: str
    name: str
    success: int | None
    errors: tuple[int, ...]

    def needs(self) -> tuple[set[int], set[tuple[int, str]]]:
        """The statuses, and the statuses with codes, under which it must be shown to refuse."""
        # Shown of every endpoint alike, see the edges: 401, and 403 where it is about the scope alone.
        alike = {401, 403} if self.service == "messaging" else {401}
        return {status for status in self.errors if status not in alike}, _NAMED.get(self.name, set())


def read_rows() -> tuple[Row, ...]:
    """Every row of the list that is for somebody with a key."""
    listed = json.loads(_LIST.read_text())["endpoints"]
    rows = (row for entry in listed for row in _rows_of(entry))
    return tuple(row for row in rows if row.name not in PUBLIC)


def missing(row: Row, cases: Iterable[Case]) -> list[str]:
    """Return the claims of the row that no case proves."""
    own = [case for case in cases if case.row == row.name]
    refusals = {(case.status, case.code) for case in own if case.proves != "success"}
    statuses, coded = row.needs()
    lacks = [f"refusal {status}" for status in sorted(statuses - {status for status, _ in refusals})]
    lacks += [f"refusal {status} {code}" for status, code in sorted(coded - refusals)]
    successes = {case.status for case in own if case.proves == "success"}
    expected = row.success or _SUCCESS.get(row.name) or _usual_success(row.name)
    if expected not in successes:
        lacks.append(f"success {expected}")
    if not any(case.proves == "foreign" for case in own):
        lacks.append("what another account gets")
    return lacks


def unshown(endpoint: Endpoint[Any, Any], cases: Iterable[Case]) -> list[str]:
    """Return the properties that an endpoint declares and no case proves."""
    own = [case for case in cases if case.row == row_of(endpoint)]
    shown = {(case.status, case.code) for case in own if case.proves != "success"}
    lacks = [
        f"refusal {status} {code}" for status, code in _declared(endpoint) if (status, code) not in shown
    ]
    if endpoint.success not in {case.status for case in own if case.proves == "success"}:
        lacks.append(f"success {endpoint.success}")
    if not any(case.proves == "foreign" for case in own):
        lacks.append("what another account gets")
    return lacks


def row_of(endpoint: Endpoint[Any, Any]) -> str:
    """Return the name of an endpoint in the list."""
    return f"{endpoint.method} {endpoint.path}"


def _declared(endpoint: Endpoint[Any, Any]) -> Iterator[tuple[int, str | None]]:
    """The refusals an endpoint declares; those in plain words have no code that could be told apart."""
    plain = endpoint.style is ErrorStyle.PLAIN
    declared = (status_of(error, endpoint.style) for error in endpoint.errors)
    yield from dict.fromkeys((status, None if plain else code) for status, code in declared)


def _usual_success(name: str) -> int:
    return {"POST": 201, "DELETE": 204}.get(name.split(" ", 1)[0], 200)


def _rows_of(entry: Mapping[str, Any]) -> Iterator[Row]:
    service, method, path = entry["service"], entry["method"], entry["path"]
    row = f"{method} {path}"
    if row not in _MEANT:
        yield Row(service, row, entry["success"], tuple(entry["errors"]))
        return
    for name, success in _MEANT[row].items():
        # The statuses of such a row are those of any of its methods: the one that creates has them all.
        yield Row(service, name, success, tuple(entry["errors"]) if success == 201 else ())
