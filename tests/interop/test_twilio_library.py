"""Twilio's own libraries for Python and Node, unmodified but for the base address."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.interop.conftest import CACHE, Sandbox

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "scripts"

pytestmark = [
    pytest.mark.long(reason="installs the library, and waits for calls in real time"),
    pytest.mark.timeout(300),
]


def prepare(*command: str | Path) -> None:
    """Make an environment, unless it stands."""
    subprocess.run(command, check=True, env={**os.environ, "PYTHON": sys.executable})


def run(command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
    """Run a program of a customer, which fails at the first result that it does not expect."""
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_library_for_python_finds_what_it_expects(sandbox: Sandbox) -> None:
    prepare(SCRIPTS / "library-environment", "twilio", CACHE / "twilio")
    python = CACHE / "twilio" / "bin" / "python"
    run([python, HERE / "twilio_program.py", *sandbox.arguments], {})


def test_the_library_for_node_finds_what_it_expects(sandbox: Sandbox) -> None:
    node = shutil.which("node")
    assert node is not None, "node is missing; scripts/system-packages test installs it"
    prepare(SCRIPTS / "node-environment", "twilio", CACHE / "twilio-node")
    modules = {"NODE_PATH": str(CACHE / "twilio-node" / "node_modules")}
    run([node, HERE / "twilio_program.js", *sandbox.arguments], modules)
