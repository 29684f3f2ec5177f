"""Twilio's own library for Python, unmodified but for the base address, in an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".cache" / "twilio"
PROGRAM = Path(__file__).with_name("twilio_program.py")
CALLER, ECHO = "+918047000001", "+919800000001"


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


@pytest.mark.long(reason="installs the library, and waits for calls in real time")
@pytest.mark.timeout(300)
def test_the_library_finds_what_it_expects(server: ServerProcess) -> None:
    script = ROOT / "scripts" / "twilio-environment"
    subprocess.run([script, ENVIRONMENT], check=True, env={**os.environ, "PYTHON": sys.executable})
    key = re.search(r"vk_[\w-]{43}", server.log())
    assert key is not None, server.log()
    account_sid = server.request("GET", "/v1/account", key[0]).data["account_sid"]
    channel = server.request("GET", "/api/v1/channel", key[0]).data["number"]
    arguments = (server.url, account_sid, key[0], CALLER, ECHO, channel)
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in server.log()
