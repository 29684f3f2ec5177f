"""
The command: JSON on standard output, errors that say what to do, exit codes; as a process, also SIGTERM.

Most commands run within the test: a process for each would take longer to start than to do its work.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from api.cli import main
from tests.support.serving_command import TIMEOUT_S, Process, environment_in, running

pytestmark = pytest.mark.real_time(reason="the command runs in processes of its own")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return environment_in(tmp_path)


Done = subprocess.CompletedProcess[str]


def run_process(environment: dict[str, str], *arguments: str) -> Done:
    return subprocess.run(
        [sys.executable, "-m", "api", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def run(environment: dict[str, str], *arguments: str) -> Done:
    """The command as it runs in a process of its own, but for that."""
    printed, complained = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(complained),
    ):
        try:
            code = main(arguments)
        except SystemExit as exit_of_the_parser:
            code = int(exit_of_the_parser.code or 0)
    return Done(["trunkline", *arguments], code, printed.getvalue(), complained.getvalue())


def result(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    done = run(environment, *arguments)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert isinstance(printed, dict)
    return printed


def test_a_wrong_key_of_the_secrets_ends_the_start_with_a_word(environment: dict[str, str]) -> None:
    result(environment, "accounts", "create", "--name", "Acme")
    key = Path(environment["TRUNKLINE_DATA_DIR"]) / "secret.key"
    kept = key.read_text()
    key.unlink()
    for way, command in ((run_process, ["serve"]), (run, ["accounts", "create", "--name", "Other"])):
        failed = way(environment, *command)
        assert failed.returncode == 1
        assert "TRUNKLINE_SECRET_KEY" in failed.stderr and "Traceback" not in failed.stderr
        key.unlink()
    result({**environment, "TRUNKLINE_SECRET_KEY": kept}, "accounts", "create", "--name", "Third")
    failed = run({**environment, "TRUNKLINE_SECRET_KEY": "hunter2"}, "serve")
    assert failed.returncode == 2
    assert "TRUNKLINE_SECRET_KEY" in failed.stderr and "hunter2" not in failed.stderr


def test_accounts_keys_numbers_and_carriers(environment: dict[str, str]) -> None:
    account = result(environment, "accounts", "create", "--name", "Acme", "--balance", "250.50", "--kyc")
    assert account["api_key"].startswith("vp_")
    assert (account["balance"], account["kyc_complete"]) == (250.5, True)
    sid = account["account_sid"]
    key = result(environment, "keys", "create", "--account", sid, "--service", "platform")
    assert key["key"].startswith("vp_") and key["key"] != account["api_key"]
    number = result(environment, "numbers", "add", "--account", sid, "--number", "+918047000010")
    assert re.fullmatch(r"[0-9a-f-]{36}", number["phone_number_id"])
    carrier = result(
        environment,
        *(
            "carriers",
            "add",
            "--name",
            "Trunk",
            "--gateway",
            "udp:192.0.2.1:5060",
            "--gateway",
            "tcp:192.0.2.2:5070",
        ),
        *("--outbound", "--username", "u", "--password", "p"),
    )
    assert re.fullmatch(r"[0-9a-f-]{36}", carrier["carrier_sid"])
    assert [(gateway["address"], gateway["inbound"]) for gateway in carrier["gateways"]] == [
        ("udp:192.0.2.1:5060", False),
        ("tcp:192.0.2.2:5070", False),
    ]
    changed = result(
        environment,
        *("carriers", "update", "--carrier", carrier["carrier_sid"]),
        *("--set", "tech_prefix=77", "--set", "gateway.max_cps=5"),
    )
    assert (changed["name"], changed["gateways_changed"]) == ("Trunk", 2)
    result(environment, "carriers", "update", "--carrier", carrier["carrier_sid"], "--set", "is_active=false")
    listed = json.loads(run(environment, "carriers", "list").stdout)["carriers"]
    assert {**carrier, "is_active": False} in listed
    assert len({item["carrier_sid"] for item in listed}) == len(listed)


def test_an_operator_is_signed_in_by_a_link_and_out(environment: dict[str, str]) -> None:
    made = result(environment, "console", "link", "--operator", "asha@desk")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/console/sign-in\?token=operator_[\w-]{43}", made["url"])
    assert made["operator"] == "asha@desk"
    elsewhere = {**environment, "TRUNKLINE_PUBLIC_URL": "https://calls.example"}
    assert result(elsewhere, "console", "link", "--operator", "asha@desk")["url"].startswith(
        "https://calls.example/console/sign-in?token=operator_"
    )
    given = result(environment, "console", "link", "--operator", "x", "--url", "https://a.example/")
    assert given["url"].startswith("https://a.example/console/")
    assert result(environment, "console", "end", "--operator", "asha@desk")["ended"] == 2
    refused = run(environment, "console", "link", "--operator", "<b>")
    assert refused.returncode == 1 and "--operator: must be" in refused.stderr


def test_a_link_to_a_console_that_is_off_is_refused(environment: dict[str, str]) -> None:
    off = {**environment, "TRUNKLINE_CONSOLE": "0", "TRUNKLINE_PUBLIC_URL": "https://calls.example"}
    refused = run(off, "console", "link", "--operator", "asha")
    assert refused.returncode == 1 and refused.stdout == ""
    assert "TRUNKLINE_CONSOLE=0" in refused.stderr and "Traceback" not in refused.stderr
    # Another server of the database may have it.
    other = result(off, "console", "link", "--operator", "asha", "--url", "https://a.example")
    assert other["url"].startswith("https://a.example/console/")
    # Sessions are ended all the same.
    assert result(off, "console", "end", "--operator", "asha")["ended"] == 1


def test_keys_are_listed_rotated_and_revoked(environment: dict[str, str]) -> None:
    sid = result(environment, "accounts", "create", "--name", "Acme")["account_sid"]
    made = result(
        environment, *("keys", "create", "--account", sid, "--service", "platform", "--scopes", "calls.read")
    )
    of_key = ("--account", sid, "--key", made["key_id"])
    rotated = result(environment, "keys", "rotate", *of_key, "--overlap", "600")
    assert rotated["key"].startswith("vp_") and rotated["key"] != made["key"]
    assert (rotated["state"], rotated["scopes"]) == ("active", ["calls.read"])
    assert (rotated["replaces"]["key_id"], rotated["replaces"]["state"]) == (made["key_id"], "retiring")
    assert result(environment, "keys", "revoke", *of_key)["state"] == "revoked"

    shown = run(environment, "keys", "list", "--account", sid).stdout
    listed = json.loads(shown)["keys"]
    assert [key["state"] for key in listed] == ["active", "revoked", "active"]
    assert [key["key_id"] for key in listed[1:]] == [made["key_id"], rotated["key_id"]]
    assert made["key"].startswith(listed[1]["prefix"]) and len(listed[1]["prefix"]) == 8
    assert made["key"] not in shown and rotated["key"] not in shown

    again = run(environment, "keys", "rotate", *of_key)
    assert (again.returncode, again.stdout) == (1, "")
    assert "rotate its successor" in again.stderr


def test_accounts_are_changed_wallets_topped_up_and_numbers_listed_and_released(
    environment: dict[str, str],
) -> None:
    sid = result(environment, "accounts", "create", "--name", "Acme", "--balance", "10")["account_sid"]
    limits = ("--max-cps", "3", "--requests-per-minute", "70", "--max-spend-per-hour", "99.50")
    kept = ("--recording-retention-days", "30")
    changed = result(environment, "accounts", "update", "--account", sid, "--kyc", *limits, *kept)
    assert changed == {
        "account_sid": sid,
        "name": "Acme",
        "kyc_complete": True,
        "is_active": True,
        "max_cps": 3,
        "max_calls": 100,
        "requests_per_minute": 70,
        "assistant_requests_per_minute": None,
        "max_spend_per_hour": 99.5,
        "recording_retention_days": 30,
    }
    shown = result(environment, "accounts", "webhook-secret", "--account", sid)
    assert shown["account_sid"] == sid and shown["webhook_secret"].startswith("whsec_")
    lifted = ("--requests-per-minute", "none", "--max-spend-per-hour", "none")
    kept = ("--recording-retention-days", "none")
    off = ("--no-kyc", "--no-active")
    changed = result(environment, "accounts", "update", "--account", sid, *off, *lifted, *kept)
    assert (changed["kyc_complete"], changed["is_active"], changed["max_cps"]) == (False, False, 3)
    assert (changed["requests_per_minute"], changed["max_spend_per_hour"]) == (None, None)
    assert changed["recording_retention_days"] is None

    payment = ("wallet", "top-up", "--account", sid, "--amount", "90.50", "--reference", "payment-1")
    for _ in range(2):
        assert result(environment, *payment) == {"account_sid": sid, "balance": 100.5, "currency": "INR"}

    result(environment, "numbers", "add", "--account", sid, "--number", "+918047000010")
    (listed,) = result(environment, "numbers", "list", "--account", sid)["numbers"]
    assert (listed["number"], listed["status"], listed["next_billing_at"]) == (
        "+918047000010",
        "active",
        None,
    )
    released = result(environment, "numbers", "release", "--account", sid, "--number", "+918047000010")
    assert (released["phone_number_id"], released["status"]) == (listed["id"], "released")
    assert result(environment, "numbers", "list", "--account", sid)["numbers"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["accounts", "update", "--account", "nobody", "--kyc"], 1, "account"),
        (["accounts", "webhook-secret", "--account", "nobody"], 1, "account"),
        (["accounts", "update", "--account", "nobody"], 1, "--help"),
        (
            ["wallet", "top-up", "--account", "nobody", "--amount", "5", "--reference", "r"],
            1,
            "account",
        ),
        (["numbers", "release", "--account", "nobody", "--number", "+918047000010"], 1, "number"),
        (["numbers", "release", "--account", "nobody", "--number", "nonsense"], 1, "telephone number"),
        (["keys", "list", "--account", "nobody"], 1, "account"),
        (["keys", "revoke", "--account", "nobody", "--key", "nothing"], 1, "key"),
        (["keys", "rotate", "--account", "nobody", "--key", "nothing", "--overlap", "-1"], 2, "--overlap"),
        (["numbers", "add", "--account", "nobody", "--number", "+918047000010"], 1, "account"),
        (["keys", "create", "--account", "nobody", "--service", "platform"], 1, "account"),
        (
            ["carriers", "add", "--name", "x", "--gateway", "udp:192.0.2.1:5060", "--username", "u"],
            1,
            "--password",
        ),
        (
            ["carriers", "add", "--name", "x", "--gateway", "udp:192.0.2.1:5060", "--set", "max_cps=fast"],
            1,
            "--set max_cps: must be a whole number",
        ),
        (
            [
                "carriers",
                "add",
                "--name",
                "x",
                "--gateway",
                "udp:192.0.2.1:5060",
                "--set",
                "gateway.weight=-1",
            ],
            1,
            "--set gateway.weight: ",
        ),
        (["carriers", "update", "--carrier", "nobody", "--set", "max_cps=5"], 1, "carrier"),
        (
            ["console", "link", "--operator", "asha", "--url", "ftp://here"],
            1,
            "--url: must be an http or https",
        ),
        (["numbers", "add"], 2, "--account"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_errors_say_what_to_do(
    environment: dict[str, str], arguments: list[str], code: int, part: str
) -> None:
    done = run(environment, *arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_a_number_in_the_wrong_form_and_one_that_is_taken(environment: dict[str, str]) -> None:
    sid = result(environment, "accounts", "create", "--name", "Acme")["account_sid"]
    wrong = run(environment, "numbers", "add", "--account", sid, "--number", "nonsense")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "--number" in wrong.stderr
    result(environment, "numbers", "add", "--account", sid, "--number", "+918047000010")
    taken = run(environment, "numbers", "add", "--account", sid, "--number", "+918047000010")
    assert taken.returncode == 1
    assert "Traceback" not in taken.stderr


def test_a_data_directory_that_cannot_be_made(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    broken = {**environment, "TRUNKLINE_DATA_DIR": str(tmp_path / "file" / "data")}
    for way, arguments in ((run, ["accounts", "create", "--name", "x"]), (run_process, ["serve"])):
        done = way(broken, *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert "Traceback" not in done.stderr


OF_SERVERS = {
    *(
        "aiohttp.web",
        "alembic",
        "asyncpg",
        "dns",
        "mcp",
        "mcp_types",
        "phonenumbers",
        "prometheus_client",
        "pydantic",
    ),
    *(
        "sqlalchemy.ext.asyncio",
        "starlette",
        "uvicorn",
        "callcontrol.calls.aio.service",
        "media.aio",
        "sip.aio",
    ),
}
"""Modules that take long to import, and that a command needs for no more than a second of work."""


def imported(environment: dict[str, str], *arguments: str) -> set[str]:
    """The modules that a program imports, as the interpreter lists them."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))


def test_a_command_imports_nothing_that_only_a_server_needs(environment: dict[str, str]) -> None:
    first = ("-m", "api", "accounts", "create", "--name", "Acme")
    assert not imported(environment, *first) & OF_SERVERS
    account = json.loads(run(environment, *first[2:]).stdout)["account_sid"]
    of_account = ("--account", account)
    for arguments in (
        ("--help",),
        ("keys", "create", *of_account, "--service", "platform"),
        ("keys", "list", *of_account),
        ("accounts", "update", *of_account, "--max-cps", "20"),
        ("wallet", "top-up", *of_account, "--amount", "1", "--reference", "r"),
        ("nodes", "list"),
        ("demo", "--help"),
    ):
        loaded = imported(environment, "-m", "api", *arguments)
        assert "api.cli.parser" in loaded
        assert not loaded & OF_SERVERS, arguments
    # Its service reads numbers as people write them.
    loaded = imported(environment, "-m", "api", "numbers", "list", *of_account)
    assert loaded & OF_SERVERS == {"phonenumbers"}


def test_a_server_imports_nothing_that_only_later_requests_need(environment: dict[str, str]) -> None:
    loaded = imported(environment, "-c", "import api.process.server")
    assert "api.routes" in loaded
    assert not loaded & {
        "alembic",
        "asyncpg",
        "mcp",
        "mcp_types",
        "sqlalchemy.dialects.postgresql",
        "sqlalchemy.ext.asyncio",
        "starlette",
        "uvicorn",
    }


def test_a_server_builds_validators_only_of_requests_that_come(environment: dict[str, str]) -> None:
    program = """
import api.process.server
from api.schemas.base import RequestModel, ResponseList, ResponseModel

models = [RequestModel, ResponseModel, ResponseList]
for model in models:
    models += model.__subclasses__()
print(len(models), [model.__name__ for model in models if model.__pydantic_complete__])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    count, built = done.stdout.split(maxsplit=1)
    assert int(count) > 200
    # The bases themselves have no fields of requests.
    assert set(json.loads(built.replace("'", '"'))) <= {"RequestModel", "ResponseModel", "ResponseList"}


@pytest.fixture
def server(environment: dict[str, str]) -> Iterator[Process]:
    with running(environment) as process:
        yield process


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One server for tests that leave it running; a start takes seconds."""
    with running(environment_in(tmp_path_factory.mktemp("shared"))) as process:
        yield process


def test_the_commands_work_beside_a_running_server(shared: Process) -> None:
    server, environment = shared, shared.environment
    account = result(environment, "accounts", "create", "--name", "Beside")
    assert server.get("/v1/calls", account["api_key"])[0] == 200
    number = result(
        environment, "numbers", "add", "--account", account["account_sid"], "--number", "+918047000011"
    )
    status, answer = server.get(
        f"/v1/phone-numbers/{number['phone_number_id']}/telephony", account["api_key"]
    )
    assert (status, answer["data"]["number"]) == (200, "+918047000011")
    reader = result(
        environment,
        *("keys", "create", "--account", account["account_sid"], "--service", "platform"),
        *("--scopes", "numbers.read"),
    )
    assert server.get("/v1/phone-numbers", reader["key"])[0] == 200
    assert server.get("/v1/calls", reader["key"])[0] == 403


def test_the_key_of_the_first_run_opens_every_service(shared: Process) -> None:
    server = shared
    found = re.search(r"vk_[\w-]{43}", server.greeting)
    assert found is not None
    key = found[0]
    for path in (
        "/v1/calls",
        "/v1/webhooks/subscriptions",
        "/v1/keys",
        "/api/webhook-endpoints",
        "/api/v1/agents",
        "/api/v1/keys",
        "/integrations/v1/tools",
        "/integrations/admin/keys",
    ):
        assert server.get(path, key)[0] == 200, path
    status, account = server.get("/v1/account", key)
    assert (status, account["data"]["name"], account["data"]["balance"]) == (200, "Demo", 1000.0)
    assert (account["data"]["key"]["service"], account["data"]["key"]["scopes"]) == ("all", ["*"])
    assert account["data"]["account_sid"] in server.greeting


def test_scopes_of_webhooks_are_given_to_keys_that_name_them(shared: Process) -> None:
    server, environment = shared, shared.environment
    sid = result(environment, "accounts", "create", "--name", "Acme")["account_sid"]
    arguments = ("keys", "create", "--account", sid, "--service", "messaging")
    plain = result(environment, *arguments)["key"]
    assert plain.startswith("vm_")
    status, answer = server.get("/api/webhook-endpoints", plain)
    assert (status, answer["success"], answer["code"]) == (403, False, "FORBIDDEN")
    for scopes in ("webhooks.read,webhooks.write", "*"):
        key = result(environment, *arguments, "--scopes", scopes)["key"]
        assert server.get("/api/webhook-endpoints", key) == (200, {"success": True, "data": []})
    wrong = run(environment, *arguments, "--scopes", "webhooks.read,calls.read")
    assert wrong.returncode != 0 and "calls.read" in wrong.stderr and "Traceback" not in wrong.stderr


def test_health_before_and_after_sigterm_which_ends_it_in_order_and_the_log_holds_no_key(
    server: Process,
) -> None:
    here = server.environment | {"TRUNKLINE_HTTP_LISTEN": server.url.removeprefix("http://")}
    assert run(here, "health").returncode == 0
    found = re.search(r"vk_[A-Za-z0-9_-]+", server.greeting)
    assert found is not None
    line = next(line for line in server.greeting.splitlines() if line.startswith("curl "))
    words = shlex.split(line)
    request = urllib.request.Request(
        words[words.index("-X") + 2],
        data=words[words.index("-d") + 1].encode(),
        headers={"Authorization": f"Bearer {found[0]}", "Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 201
    code, errors = server.stop()
    assert code == 0, errors
    assert "leaked" not in errors
    assert "Traceback" not in errors
    assert found[0] not in errors
    assert "stopped" in errors
    gone = run(here, "health")
    assert gone.returncode == 1
    assert "does not answer" in gone.stderr
    assert "Traceback" not in gone.stderr


def test_only_a_server_for_development_reaches_agents_on_loopback(environment: dict[str, str]) -> None:
    call = {"from": "+918047000001", "to": "+919800000003", "stream_url": "ws://127.0.0.1:9/ws"}
    for options, status in (((), 400), (("--dev",), 201)):
        data = {"TRUNKLINE_DATA_DIR": f"{environment['TRUNKLINE_DATA_DIR']}-{status}"}
        process = Process(environment | data, *options)
        try:
            assert ("--dev" in process.greeting.splitlines()[0]) is bool(options)
            found = re.search(r"vk_[A-Za-z0-9_-]+", process.greeting)
            assert found is not None
            assert process.post("/v1/calls", found[0], call)[0] == status
        finally:
            process.stop()


@pytest.mark.parametrize("variable", ["HTTP_LISTEN", "SIP_LISTEN"])
def test_a_server_for_development_refuses_addresses_that_others_reach(
    environment: dict[str, str], variable: str
) -> None:
    address = {"HTTP_LISTEN": "0.0.0.0:0", "SIP_LISTEN": "udp:127.0.0.1:0,udp:192.0.2.1:0"}[variable]
    done = run({**environment, f"TRUNKLINE_{variable}": address}, "serve", "--dev")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"TRUNKLINE_{variable}" in done.stderr and "--dev" in done.stderr
