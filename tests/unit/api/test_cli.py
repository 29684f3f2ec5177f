"""The command's grammar and what it says when something is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from api.cli.admin import listed_number
from api.cli.parser import build_parser
from api.process.config import PREFIX, VARIABLES
from api.process.values import ListenAddress
from api.schemas.numbers import number_json
from callcontrol.models import Billing, Binding, PhoneNumber


def parse(*arguments: str) -> Any:
    return build_parser().parse_args(arguments)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        parse(*arguments)
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for word in ("serve", "demo", "accounts", "wallet", "keys", "numbers", "carriers", "nodes"):
        assert word in text
    assert max(len(line) for line in text.splitlines()) <= 110


def test_serve_help_names_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    text = capsys.readouterr().out
    for variable in VARIABLES:
        assert PREFIX + variable.name in text
        assert variable.default in text


@pytest.mark.parametrize("arguments", [[], ["accounts"], ["carriers"]])
def test_no_command_prints_help(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    assert "usage: trunkline" in capsys.readouterr().err


def test_account_defaults() -> None:
    chosen = parse("accounts", "create", "--name", "Acme")
    assert (chosen.name, chosen.balance, chosen.kyc) == ("Acme", 50_000, False)
    assert (chosen.max_cps, chosen.max_calls) == (10, 100)
    assert parse("accounts", "create", "--name", "x", "--balance", "0").balance == 0
    assert parse("accounts", "create", "--name", "x", "--balance", "99.50").balance == 9950


@pytest.mark.parametrize("name", ["", " ", "a\x1b[31mb", "a\nb", "a\x07", "a\u2028b"])
def test_names_that_are_none(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for command in (("accounts", "create"), ("keys", "create", "--account", "x", "--service", "admin")):
        assert "argument --name" in refused(capsys, *command, f"--name={name}")


@pytest.mark.parametrize("number", ["1_0", "+1", "１０", "0x1", "1.0"])
def test_whole_numbers_are_plain_digits(capsys: pytest.CaptureFixture[str], number: str) -> None:
    assert "--max-cps" in refused(capsys, "accounts", "create", "--name", "x", f"--max-cps={number}")


@pytest.mark.parametrize(
    "amount", ["-1", "1.005", "NaN", "Infinity", "lots", "1e30", "1_0", "１０", "+1", "1."]
)
def test_amounts_that_are_none(capsys: pytest.CaptureFixture[str], amount: str) -> None:
    assert "--balance" in refused(capsys, "accounts", "create", "--name", "x", f"--balance={amount}")


def test_an_account_is_changed_in_what_is_named_alone() -> None:
    nothing = parse("accounts", "update", "--account", "a")
    assert (nothing.name, nothing.kyc_complete, nothing.is_active) == (None, None, None)
    assert not hasattr(nothing, "requests_per_minute")
    some = parse("accounts", "update", "--account", "a", "--no-kyc", "--max-spend-per-hour", "none")
    assert (some.kyc_complete, some.max_spend_paise_per_hour) == (False, None)
    some = parse("accounts", "update", "--account", "a", "--max-spend-per-hour", "12.50")
    assert some.max_spend_paise_per_hour == 1250
    for text, days in (("none", None), ("0", 0), ("3650", 3650)):
        some = parse("accounts", "update", "--account", "a", "--recording-retention-days", text)
        assert some.recording_retention_days == days


def test_a_node_is_drained_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert (parse("nodes", "drain", "b").node, parse("nodes", "drain", "b").wait) == ("b", False)
    assert parse("nodes", "drain", "--wait", "b").wait
    assert "NODE" in refused(capsys, "nodes", "drain")


def test_what_is_missing_or_out_of_range(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--max-cps" in refused(capsys, "accounts", "update", "--account", "a", "--max-cps", "0")
    assert "--reference" in refused(capsys, "wallet", "top-up", "--account", "a", "--amount", "5")


def test_carriers_keep_the_order_of_their_gateways() -> None:
    chosen = parse(
        *(
            "carriers",
            "add",
            "--name",
            "x",
            "--gateway",
            "udp:192.0.2.1:5060",
            "--gateway",
            "tcp:sip.example.com:5070",
        )
    )
    assert chosen.gateway == [
        ListenAddress("192.0.2.1", 5060, "udp"),
        ListenAddress("sip.example.com", 5070, "tcp"),
    ]


@pytest.mark.parametrize(
    ("gateway", "port"),
    [
        ("udp:sip.example.com", 0),
        ("auto:example.com", 0),
        ("tls:192.0.2.1", 5061),
        ("tcp:[2001:db8::1]", 5060),
    ],
)
def test_gateways_without_a_port_are_looked_up_unless_they_are_addresses(gateway: str, port: int) -> None:
    chosen = parse("carriers", "add", "--name", "x", "--gateway", gateway)
    assert [item.port for item in chosen.gateway] == [port]


@pytest.mark.parametrize(
    "gateway", ["192.0.2.1:5060", "udp:", "auto:x:5060:1", "udp:0.0.0.0:5060", "udp:x:0", "sctp:x:5060"]
)
def test_gateways_that_are_none(capsys: pytest.CaptureFixture[str], gateway: str) -> None:
    assert "--gateway" in refused(capsys, "carriers", "add", "--name", "x", "--gateway", gateway)


def test_services_of_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert "invalid choice: 'telepathy'" in refused(
        capsys, "keys", "create", "--account", "x", "--service", "telepathy"
    )


def test_wrong_settings_are_all_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_MAX_CALLS", "lots")
    monkeypatch.setenv("TRUNKLINE_RTP_PORTS", "everything")
    assert main(["serve"]) == 2
    text = capsys.readouterr().err
    assert "TRUNKLINE_MAX_CALLS (from the environment): 'lots' is not a whole number" in text
    assert "TRUNKLINE_RTP_PORTS" in text


def test_a_missing_config_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["serve", "--config", str(tmp_path / "missing.toml")]) == 2
    assert "--config" in capsys.readouterr().err


def test_a_server_is_for_development_when_asked() -> None:
    assert parse("serve", "--dev").dev
    assert not parse("serve").dev


MOMENT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize("status", ["active", "suspended", "released"])
@pytest.mark.parametrize("billing", [None, Billing(MOMENT, 1, MOMENT), Billing(MOMENT, 1, MOMENT, MOMENT)])
@pytest.mark.parametrize("binding", [None, Binding("missed_call")])
def test_a_number_is_listed_as_the_api_shows_it(
    status: str, billing: Billing | None, binding: Binding | None
) -> None:
    number = PhoneNumber(
        phone_number_id="number-1",
        account_sid="account-1",
        number="+918047000010",
        created_at=MOMENT,
        updated_at=MOMENT,
        friendly_name="Front desk",
        status=status,
        number_type="mobile",
        sms_enabled=True,
        monthly_cost_paise=49_950,
        binding=binding,
        region="Karnataka",
        billing=billing,
    )
    assert listed_number(number) == number_json(number)
