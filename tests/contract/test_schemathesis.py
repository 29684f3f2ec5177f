"""schemathesis asks a running server for all that its OpenAPI document allows, and much that it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.openapi.examples import EXAMPLES
from api.routes import ENDPOINTS
from callcontrol.accounts.keys import SCOPES
from callcontrol.models import Service
from tests.support.phone import PATIENCE_S
from tests.support.server_process import ServerProcess, wait_until

_SETTINGS = Path(__file__).with_name("schemathesis.toml")
_HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
_SEED = "20261121"
_EXAMPLES = "6"
_TIMEOUT_S = 900
_KEYS: tuple[Service, ...] = ("assistant", "messaging", "admin")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server as it is after its first start: with a sandbox carrier, and a demo account with a number."""
    environment = {
        "TRUNKLINE_SANDBOX_CARRIER": "1",
        "TRUNKLINE_SANDBOX_LISTEN": "udp:127.0.0.1:0",
        "TRUNKLINE_DRAIN_S": "1",
    }
    server = ServerProcess(tmp_path, environment=environment)
    server.start()
    yield server
    server.stop()


@pytest.mark.long(reason="generates requests for minutes")
@pytest.mark.timeout(_TIMEOUT_S + 30)
def test_schemathesis_finds_nothing(server: ServerProcess, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(_SETTINGS)),
            # All checks run unless the settings say otherwise; naming them here would overrule the settings.
            *("run", f"{server.url}/openapi.json", "--no-color"),
            *("--seed", _SEED, "--max-examples", _EXAMPLES, "--continue-on-failure"),
        ],
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": str(_HOOKS),
            **{name: str(value) for name, value in _what_is_there(server).items()},
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
    tested = re.search(r"Tested: (\d+)", done.stdout)
    assert tested is not None and int(tested[1]) >= len(ENDPOINTS), done.stdout[-5000:]
    assert "Traceback" not in server.log()


def test_what_is_said_of_operations_is_said_of_some_that_are_there() -> None:
    settings: dict[str, Any] = tomllib.loads(_SETTINGS.read_text())
    named = {name for item in settings["operations"] for name in item.get("include-operation-id", ())}
    assert named <= {endpoint.name for endpoint in ENDPOINTS}


def _demo_key(server: ServerProcess) -> str:
    return server.first_key()


def _every_scope(server: ServerProcess, key: str) -> str:
    """A key of the same account that opens what no key does unless it is asked for."""
    call = server.request("POST", "/v1/calls", key, EXAMPLES["create_call"]).data
    scopes = ",".join(SCOPES["platform"])
    account = ("--account", call["account_sid"], "--service", "platform")
    return str(server.command("keys", "create", *account, "--scopes", scopes)["key"])


def _what_is_there(server: ServerProcess) -> dict[str, str]:
    """Make one of everything, and name it as the settings do."""
    key = _every_scope(server, _demo_key(server))

    def made(path: str, name: str, key: str = key, **changes: Any) -> Any:
        reply = server.request("POST", path, key, {**EXAMPLES[name], **changes})
        assert reply.status == 201, reply
        return reply.data

    (number,) = server.request("GET", "/v1/phone-numbers", key).data
    call = made("/v1/calls", "create_call")
    masked = made("/v1/masking/calls", "start_masked_call")
    made("/v1/masking/numbers", "enrol_masked_number")
    carrier = made("/v1/trunk-portal/carriers", "create_carrier")
    numbers = "/v1/trunk-portal/numbers"
    gateways = f"/v1/trunk-portal/carriers/{carrier['carrier_sid']}/gateways"

    def key_of(service: Service) -> str:
        account = ("--account", call["account_sid"], "--service", service)
        return str(server.command("keys", "create", *account, "--scopes", ",".join(SCOPES[service]))["key"])

    assistant, messaging, admin = (key_of(service) for service in _KEYS)
    message = server.request("POST", "/api/v1/messages", messaging, EXAMPLES["send_message"])
    template_id = str(made("/api/v1/templates", "create_template", messaging)["id"])
    assert wait_until(lambda: server.request("GET", "/api/v1/templates", messaging).data, PATIENCE_S)
    agent_id = made("/api/v1/agents", "create_agent", assistant)["id"]
    outbound = made("/api/v1/calls/outbound", "start_assistant_call", assistant, agent_id=agent_id)
    return {
        "CONTRACT_KEY": key,
        "CONTRACT_SPARE_KEY": made("/v1/keys", "create_key")["id"],
        "CONTRACT_ASSISTANT_KEY": assistant,
        "CONTRACT_MESSAGING_KEY": messaging,
        "CONTRACT_CONTACT": str(made("/api/v1/contacts", "create_contact", messaging)["id"]),
        "CONTRACT_CONTACT_LIST": str(made("/api/v1/contact-lists", "create_contact_list", messaging)["id"]),
        "CONTRACT_MESSAGE": message.body["messageId"],
        "CONTRACT_TEMPLATE": template_id,
        "CONTRACT_CAMPAIGN": str(made("/api/v1/send", "send_campaign", messaging)["campaignId"]),
        "CONTRACT_TOOLS_KEY": key_of("tools"),
        "CONTRACT_ADMIN_TOKEN": admin,
        "CONTRACT_TOOL": made("/integrations/admin/tools", "register_tool", admin)["name"],
        "CONTRACT_AGENT": agent_id,
        "CONTRACT_ASSISTANT_CALL": outbound["id"],
        "CONTRACT_WEBHOOK": made("/api/v1/webhooks", "create_assistant_webhook", assistant)["id"],
        "CONTRACT_WEBHOOK_ENDPOINT": str(
            made("/api/webhook-endpoints", "create_webhook_endpoint", messaging)["id"]
        ),
        "CONTRACT_PASSWORD": made("/v1/voice-otp/send", "send_otp")["id"],
        "CONTRACT_ACCOUNT": call["account_sid"],
        "CONTRACT_CALL": call["call_sid"],
        "CONTRACT_MASKED_CALL": masked["call_sid"],
        "CONTRACT_SESSION": made("/v1/masking/sessions", "create_masking_session")["session_id"],
        "CONTRACT_SUBSCRIPTION": made("/v1/webhooks/subscriptions", "create_subscription")["id"],
        "CONTRACT_NUMBER": number["id"],
        "CONTRACT_CARRIER": carrier["carrier_sid"],
        "CONTRACT_GATEWAY": made(gateways, "create_gateway")["gateway_sid"],
        "CONTRACT_TRUNK_NUMBER": made(numbers, "register_trunk_number", carrier_sid=carrier["carrier_sid"])[
            "number_sid"
        ],
        "CONTRACT_APPLICATION": made("/v1/trunk-portal/applications", "create_application")["app_sid"],
    }
