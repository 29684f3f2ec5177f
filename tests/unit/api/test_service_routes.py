"""Health, readiness, metrics, and the documents."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import re
from importlib import resources
from typing import Any

import pytest

from api.http.endpoint import path_parameters
from api.http.errors import ErrorStyle
from api.process.lifecycle import Phase
from api.process.metrics import Metrics
from api.routes import ENDPOINTS
from callcontrol.histogram import Histogram
from tests.support.api_stage import ApiStage
from tests.unit.api.client import Client


async def test_health_and_readiness(client: Client, stage: ApiStage) -> None:
    assert (await client.get("/health", key=None)).json() == {"status": "ok"}
    for phase, status in (
        (Phase.STARTING, 503),
        (Phase.READY, 200),
        (Phase.LEAVING, 503),
        (Phase.DRAINING, 503),
        (Phase.STOPPED, 503),
    ):
        stage.lifecycle.phase = phase
        answer = await client.get("/ready", key=None)
        assert (answer.status, answer.json()) == (status, {"status": phase.value})
    assert (await client.get("/health", key=None)).status == 200


async def test_metrics_count_requests_by_declared_path(client: Client) -> None:
    await client.get("/v1/calls")
    await client.get("/v1/calls/nonsense/trace")
    await client.get("/secret/path")
    await client.request("PROPFIND", "/v1/calls")
    text = (await client.get("/metrics", key=None)).body.decode()
    assert 'trunkline_http_requests_total{method="GET",route="/v1/calls",status="200"} 1.0' in text
    assert (
        'trunkline_http_requests_total{method="GET",route="/v1/calls/{callSid}/trace",status="404"} 1.0'
        in text
    )
    assert 'route="unmatched",status="404"' in text
    assert 'method="other"' in text
    assert "secret" not in text


async def test_distributions_are_read_at_the_scrape() -> None:
    metrics, loss_pct = Metrics(), Histogram((0.5, 1.0))
    metrics.watch_histogram("trunkline_rtp_loss_percent", "Loss.", lambda: loss_pct)
    loss_pct.observe(0.75)
    loss_pct.observe(40.0)
    text = (await metrics.scrape()).decode()
    for line in (
        'trunkline_rtp_loss_percent_bucket{le="0.5"} 0.0',
        'trunkline_rtp_loss_percent_bucket{le="1.0"} 1.0',
        'trunkline_rtp_loss_percent_bucket{le="+Inf"} 2.0',
        "trunkline_rtp_loss_percent_count 2.0",
        "trunkline_rtp_loss_percent_sum 40.75",
    ):
        assert line in text


async def test_watched_values_are_read_at_the_scrape() -> None:
    metrics = Metrics()
    calls: dict[tuple[str, ...], float] = {("outbound", "completed"): 1}
    metrics.watch_gauge("trunkline_calls_active", "Calls.", lambda: 3)
    metrics.watch_counter("trunkline_calls_ended", "Ended.", lambda: calls, ("direction", "status"))
    calls["outbound", "completed"] = 2
    text = (await metrics.scrape()).decode()
    assert "trunkline_calls_active 3.0" in text
    assert 'trunkline_calls_ended_total{direction="outbound",status="completed"} 2.0' in text


async def test_a_reading_that_fails_does_not_hide_the_others() -> None:
    metrics = Metrics()

    def broken() -> float:
        raise RuntimeError("closed")

    metrics.watch_gauge("trunkline_broken", "Broken.", broken)
    metrics.watch_gauge("trunkline_whole", "Whole.", lambda: 1)
    text = (await metrics.scrape()).decode()
    assert "trunkline_whole 1.0" in text
    assert "trunkline_broken " not in text.replace("# HELP trunkline_broken ", "").replace(
        "# TYPE trunkline_broken ", ""
    )


async def test_the_page_is_whole_and_its_parts_are_cached(client: Client) -> None:
    answer = await client.get("/docs", key=None)
    assert answer.headers["Content-Type"].startswith("text/html")
    parts = re.findall(r"""src="([^"]+)\"""", answer.body.decode())
    assert parts == ["/docs/scalar.js", "/docs/page.js"]
    for path in parts:
        part = await client.get(path, key=None)
        assert part.headers["Content-Type"].startswith("text/javascript")
        assert "Scalar" in part.body.decode()
        again = await client.get(path, key=None, headers={"If-None-Match": part.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")
        packed = await client.get(path, key=None, headers={"Accept-Encoding": "gzip"})
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.body) == part.body
    for missing in ("/docs/scalar.json", "/docs/page.html", "/docs/..%2f..%2fpy.typed", "/docs/page.js%00"):
        assert (await client.get(missing, key=None)).status == 404


async def test_the_shipped_library_is_the_pinned_one() -> None:
    folder = resources.files("api") / "static" / "reference"
    pin = json.loads((folder / "scalar.json").read_text())
    script = gzip.decompress((folder / "scalar.js.gz").read_bytes())
    assert hashlib.sha256(script).hexdigest() == pin["sha256"]
    assert pin["version"] in script.decode()
    assert "MIT License" in (folder / "scalar.LICENSE").read_text()


async def test_distributions_may_have_a_label() -> None:
    metrics = Metrics()
    by_direction = {"inbound": Histogram((1.0,)), "outbound": Histogram((1.0,))}
    metrics.watch_histogram("trunkline_call_seconds", "Calls.", lambda: by_direction, ("direction",))
    by_direction["inbound"].observe(0.5)
    text = (await metrics.scrape()).decode()
    assert 'trunkline_call_seconds_bucket{direction="inbound",le="1.0"} 1.0' in text
    assert 'trunkline_call_seconds_count{direction="outbound"} 0.0' in text


async def test_a_scrape_does_not_wait_for_a_value_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.process.metrics._REFRESH_S", 0.01)
    metrics, answer = Metrics(), asyncio.Event()
    begun: list[None] = []

    async def refresh() -> None:
        begun.append(None)
        await answer.wait()

    metrics.refresh_with(refresh)
    metrics.watch_gauge("trunkline_known", "Known.", lambda: 1)
    for _ in range(3):
        assert "trunkline_known 1.0" in (await metrics.scrape()).decode()
    assert len(begun) == 1, "what has not come is not asked for anew"
    answer.set()
    await metrics.scrape()
    await metrics.scrape()
    assert len(begun) > 1
    await metrics.close()


async def document(client: Client) -> dict[str, Any]:
    answer = await client.get("/openapi.json", key=None)
    assert answer.headers["Content-Type"].startswith("application/json")
    loaded = answer.json()
    assert isinstance(loaded, dict)
    return loaded


async def test_every_endpoint_is_in_the_document(client: Client) -> None:
    paths = (await document(client))["paths"]
    described = {(method.upper(), path) for path, item in paths.items() for method in item}
    declared = {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    documents = ("/openapi.json", "/docs", "/asyncapi.json", "/schemas/streams/{dialect}.json")
    own = ("/health", "/ready", "/metrics", "/integrations", "/integrations/health")
    modules = ("/webrtc/trunkline-phone.js",)
    public = {("GET", path) for path in (*own, *modules, *documents)}
    assert described == declared | public
    assert {("POST", "/v1/calls"), ("DELETE", "/v1/Accounts/{sid}/Calls/{callSid}")} <= declared


async def test_the_document_is_whole(client: Client) -> None:
    loaded = await document(client)
    assert loaded["openapi"].startswith("3.1.")
    assert loaded["servers"] == [{"url": "http://127.0.0.1:8080"}]
    references = set(re.findall(r'"\$ref": ?"#/([^"]+)"', str(loaded).replace("'", '"')))
    assert references
    for reference in references:
        node: Any = loaded
        for part in reference.split("/"):
            node = node[part]
        assert isinstance(node, dict)
    names = [operation["operationId"] for item in loaded["paths"].values() for operation in item.values()]
    assert len(set(names)) == len(names)


def codes_of(operation: dict[str, Any], status: str) -> list[str]:
    schema = operation["responses"][status].get("content", {}).get("application/json", {}).get("schema", {})
    if not schema or "jsonrpc" in schema.get("properties", {}):
        return []  # What a protocol of its own answers has no code of ours.
    if "anyOf" in schema:
        schema = schema["anyOf"][0]  # Beside what a protocol of its own answers under the same status.
    if "allOf" not in schema:
        return list(schema["properties"]["code"]["enum"])
    codes: list[str] = schema["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"]
    return codes


async def test_each_operation_is_described(client: Client) -> None:
    loaded = await document(client)
    for endpoint in ENDPOINTS:
        operation = loaded["paths"][endpoint.path][endpoint.method.lower()]
        in_path = [item["name"] for item in operation["parameters"] if item["in"] == "path"]
        assert in_path == path_parameters(endpoint.path)
        assert operation["summary"]
        assert ("requestBody" in operation) == endpoint.reads_body
        assert {str(endpoint.success), "400", "401", "403", "429", "500", "503"} <= set(
            operation["responses"]
        )
        if endpoint.style in (ErrorStyle.PLAIN, ErrorStyle.TWILIO):
            continue
        codes = {
            code
            for status in operation["responses"]
            if status >= "400"
            for code in codes_of(operation, status)
        }
        masking = endpoint.style is ErrorStyle.MASKING
        assert ("unauthorized" if masking else "UNAUTHORIZED") in codes
        lower = masking or endpoint.style is ErrorStyle.WIRING
        assert ("validation" in codes) == lower
        assert ("VALIDATION_ERROR" in codes) != lower


@pytest.mark.parametrize(
    ("method", "path", "codes"),
    [
        (
            "post",
            "/v1/calls",
            {
                "402": ["INSUFFICIENT_BALANCE", "SPEND_LIMIT_EXCEEDED"],
                "403": ["FORBIDDEN", "NUMBER_NOT_OWNED"],
            },
        ),
        ("delete", "/v1/Accounts/{sid}/Calls/{callSid}", {"404": ["NOT_FOUND"], "409": ["CALL_ENDED"]}),
        (
            "put",
            "/v1/phone-numbers/{id}/inbound",
            {"400": ["bind_failed", "validation"], "404": ["not_found"]},
        ),
        ("delete", "/v1/phone-numbers/{id}/carrier", {"409": ["inbound_bound"], "503": ["not_configured"]}),
    ],
)
async def test_codes_of_the_document(
    client: Client, method: str, path: str, codes: dict[str, list[str]]
) -> None:
    responses = (await document(client))["paths"][path][method]["responses"]
    for status, listed in codes.items():
        assert codes_of({"responses": responses}, status) == listed


async def test_values_are_refreshed_before_the_scrape() -> None:
    metrics = Metrics()
    reserved = [0.0]

    async def refresh() -> None:
        reserved[0] += 60

    async def broken() -> None:
        raise RuntimeError("the database is away")

    metrics.refresh_with(broken)
    metrics.refresh_with(refresh)
    metrics.watch_gauge("trunkline_wallet_reserved_paise", "Reserved.", lambda: reserved[0])
    assert "trunkline_wallet_reserved_paise 60.0" in (await metrics.scrape()).decode()
