"""No secret of a run is found in anything that the server lets out."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.secret_run import secret_run
from tests.support.postgres import running_postgres


@pytest.fixture(params=[pytest.param("text", marks=pytest.mark.long("the same run on SQLite")), "json"])
def log_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(log_format: str) -> Iterator[dict[str, str]]:
    """SQLite for one format, for the other PostgreSQL with a password in its URL."""
    with contextlib.ExitStack() as stack:
        if log_format == "text":
            yield {}
            return
        url = asyncio.run(stack.enter_context(running_postgres()).url())
        yield {"TRUNKLINE_DATABASE_URL": url.replace("trunkline@", "trunkline:db-pw-2f6c9e8d@")}


def test_a_run_lets_out_no_secret_that_it_used(
    tmp_path: Path, log_format: str, database: dict[str, str]
) -> None:
    """
    No secret that a run uses stands in its files, in its log at any level, in its metrics, in copies of SIP
    messages, in traces of its calls, in answers to wrong requests, or in what it says of a planted defect.
    """
    sealing = base64.b64encode(os.urandom(32)).decode()
    environment = {"TRUNKLINE_SECRET_KEY": sealing, "TRUNKLINE_HEP_PASSWORD": "hep-6d1e0f93"}
    with secret_run(tmp_path, log_format, {**environment, **database}) as run:
        run.keep("key of the secrets", sealing)
        run.keep("capture password", "hep-6d1e0f93")
        run.keep("database password", "db-pw-2f6c9e8d")
        run.everything()
    assert len(run.carrier.secrets) >= 4, "answers to challenges of INVITE and REGISTER, and keys of media"
    assert len(run.capture.messages) > 10
    assert "DEBUG" in run.server.log() or '"debug"' in run.server.log()
    assert run.found() == []
    assert run.kept() == []
