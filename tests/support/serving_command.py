"""`trunkline serve` as a process of its own on loopback, and the environment that commands share with it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.ports import port_range

__all__ = ["TIMEOUT_S", "Process", "environment_in", "running"]

TIMEOUT_S = 60
_ROOT = Path(__file__).resolve().parents[2]


def environment_in(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")}
    return {
        **kept,
        "PYTHONPATH": str(_ROOT),
        "PYTHONUNBUFFERED": "1",
        "TRUNKLINE_DATA_DIR": str(folder / "data"),
        "TRUNKLINE_HTTP_LISTEN": "127.0.0.1:0",
        "TRUNKLINE_SIP_LISTEN": "udp:127.0.0.1:0",
        "TRUNKLINE_SANDBOX_LISTEN": "udp:127.0.0.1:0",
        "TRUNKLINE_RTP_PORTS": "{}-{}".format(*port_range(200)),
        "TRUNKLINE_SANDBOX_RTP_PORTS": "{}-{}".format(*port_range(200)),
        "TRUNKLINE_DRAIN_S": "1",
    }


class Process:
    """`trunkline serve`, up and greeting."""

    def __init__(self, environment: dict[str, str], *options: str) -> None:
        self.environment = environment
        self.process = subprocess.Popen(
            [sys.executable, "-m", "api", "serve", *options],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.greeting = ""
        while "curl" not in self.greeting and "another key" not in self.greeting:
            line = self.process.stdout.readline()
            assert line, self.process.communicate()[1]
            self.greeting += line
        found = re.search(r"up at (\S+)", self.greeting)
        assert found is not None
        self.url = found[1]

    def get(self, path: str, key: str) -> tuple[int, Any]:
        return self.ask(urllib.request.Request(self.url + path), key)

    def post(self, path: str, key: str, body: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method="POST")
        return self.ask(request, key)

    def ask(self, request: urllib.request.Request, key: str) -> tuple[int, Any]:
        request.add_header("Authorization", f"Bearer {key}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, errors


@contextlib.contextmanager
def running(environment: dict[str, str]) -> Iterator[Process]:
    process = Process(environment)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.kill()
            process.process.communicate()
