"""jambonz's own packages for Node, unmodified but for the base address, in an environment of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callcontrol.calls.plan import Step
from callcontrol.errors import ValidationFailed
from callcontrol.instructions.instructions import read_instructions
from callcontrol.instructions.verbs import VerbRules, WebhookDefaults
from tests.support.domain import OpenDestinations, make_ringing
from tests.support.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".cache" / "jambonz"
PROGRAM = Path(__file__).with_name("jambonz_program.cjs")
VERBS = Path(__file__).with_name("jambonz_verbs.cjs")


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


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with an environment that has the packages."""
    found = shutil.which("node")
    assert found is not None, "Node is missing: scripts/system-packages test installs it"
    subprocess.run([ROOT / "scripts" / "node-environment", "jambonz", ENVIRONMENT], check=True)
    return found


@pytest.mark.long(reason="installs the packages, and waits for calls in real time")
@pytest.mark.timeout(300)
def test_the_packages_find_what_they_expect(server: ServerProcess, node: str) -> None:
    key = server.first_key()
    account_sid = server.request("GET", "/v1/account", key).data["account_sid"]
    (number,) = server.request("GET", "/v1/phone-numbers", key).data
    secret = str(server.command("accounts", "webhook-secret", "--account", account_sid)["webhook_secret"])
    arguments = (ENVIRONMENT, server.url, account_sid, key, secret, number["number"], number["id"])
    done = subprocess.run(
        [node, PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in server.log()


@pytest.mark.long(reason="installs the packages")
@pytest.mark.timeout(300)
def test_every_verb_that_the_packages_write_is_read(node: str) -> None:
    written = subprocess.run([node, VERBS, ENVIRONMENT], capture_output=True, check=True, timeout=60)
    answers = json.loads(written.stdout)
    rules = VerbRules({"IN"}, {"beep"}, OpenDestinations().check_url)

    def read(verb: dict[str, Any]) -> list[Step]:
        return read_instructions(
            "application/json",
            json.dumps([verb]).encode(),
            rules,
            make_ringing(),
            caller=None,
            url="https://shop.example/hello",
            webhooks=WebhookDefaults("jambonz"),
        )

    for kind in ("old", "sdk"):
        for verb in answers[kind]["runs"]:
            assert read(verb), verb
        for verb in answers[kind]["refused"]:
            with pytest.raises(ValidationFailed, match=f"verbs\\[0\\].verb: {verb['verb']} is not available"):
                read(verb)
