"""A single server on SQLite needs nothing of what several need, and pays next to nothing for it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from benchmarks.call_cost import FOR_CLUSTERS, share_of_clusters
from tests.support.needs import needs_sipp

pytestmark = pytest.mark.real_time(reason="a server in a process of its own")

_ROOT = Path(__file__).resolve().parents[2]
_OF_CLUSTERS = ("postgres", "s3")
_OWN = ("callcontrol.database.aio.postgres", "callcontrol.recordings.aio.s3")
_PROGRAM = """
import asyncio, json, pathlib, sys
from api.process.server import Server
from tests.support.loopback_server import loopback_settings

async def main():
    server = Server(loopback_settings(pathlib.Path(sys.argv[1]), rtp_ports=20))
    await server.start()
    await server.stop()

asyncio.run(main())
print(json.dumps(sorted(sys.modules)))
"""


def modules_of_extras() -> set[str]:
    """Modules of the libraries of the extras for clusters; all are installed for the tests."""
    extras = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {re.split(r"[\[<>=;]", line)[0].strip() for extra in _OF_CLUSTERS for line in extras[extra]}
    found = {
        module for module, distributions in packages_distributions().items() if wanted & set(distributions)
    }
    assert len(found) >= len(wanted), f"of {wanted} only {found} are installed"
    return found


def test_a_single_server_imports_no_library_of_clusters(tmp_path: Path) -> None:
    """From its start to its stop it imports neither the extras nor our own modules that use them."""
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    imported = set(json.loads(ran.stdout.splitlines()[-1]))
    assert "api.process.server" in imported and "callcontrol.database.aio.sqlite" in imported
    assert imported & {*modules_of_extras(), *_OWN} == set()


@needs_sipp
@pytest.mark.long(reason="a server whose function calls are counted, with and without calls")
def test_clusters_cost_a_call_of_a_single_server_little(tmp_path: Path) -> None:
    """At most 3 % of the function calls of a forwarded call are of code that exists for clusters alone."""
    for place in FOR_CLUSTERS:
        path, _, function = place.partition(":")
        assert (_ROOT / path).exists(), place
        assert not function or f"def {function.rpartition('.')[2]}(" in (_ROOT / path).read_text(), place
    counted = tmp_path / "counts.json"
    command = [sys.executable, "-m", "benchmarks.call_cost", "--functions", "--calls", "5"]
    subprocess.run([*command, "--json", counted], cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
    found, share = share_of_clusters(json.loads(counted.read_text()))
    assert found > 0, "the list of what is for clusters has nothing of a call's way"
    assert share <= 0.03, f"{found} function calls, {share:.1%}"
