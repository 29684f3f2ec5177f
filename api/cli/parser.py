"""The command's grammar: sub-commands, options and their help."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from api.process.collector import collector_paused
from api.process.config import PREFIX, VARIABLES, Settings
from api.process.values import CONTROLS_AND_BREAKS, ListenAddress, WholeNumber, parse_gateway
from callcontrol.accounts.keys import MAX_OVERLAP_S
from callcontrol.models.accounts import MAX_RETENTION_DAYS

__all__ = ["build_parser"]

SERVICES = ("platform", "messaging", "assistant", "tools", "admin", "all")
MAX_BALANCE_INR = Decimal(100_000_000)
# Decimal also reads exponents, underscores and digits of other scripts.
_AMOUNT = re.compile(r"-?[0-9]{1,12}(\.[0-9]+)?")

_Subparsers = argparse._SubParsersAction


def build_parser() -> argparse.ArgumentParser:
    """
    Make the parser of the whole command.

    Modules that only one command needs are imported when it runs: the administrative commands start fast, and
    work where the media engine is not built.
    """
    parser = argparse.ArgumentParser(
        prog="trunkline",
        description="A telephony-edge call control and media server: SIP trunks, RTP media, voice agents.",
        epilog="Start with `trunkline serve`; it prints a key and a call to try. "
        "Every command takes --help. Settings: `trunkline serve --help`.",
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version, and exit")
    parser.set_defaults(parser=parser, config=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _serve(commands)
    _demo(commands)
    _health(commands)
    _backup(commands)
    _accounts(commands)
    _wallet(commands)
    _keys(commands)
    _numbers(commands)
    _carriers(commands)
    _nodes(commands)
    _console(commands)
    return parser


class _ShowVersion(argparse.Action):
    """Print the version; it is looked for in what is installed, so only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:

        try:
            version = metadata.version("trunkline")
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"trunkline {version}")
        parser.exit()


def _command(
    commands: _Subparsers[argparse.ArgumentParser], name: str, help_text: str, epilog: str | None = None
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=help_text,
        description=help_text[0].upper() + help_text[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", metavar="FILE", help="TOML file with settings; environment variables override it"
    )
    parser.set_defaults(parser=parser)
    return parser


def _group(
    commands: _Subparsers[argparse.ArgumentParser], name: str, help_text: str
) -> _Subparsers[argparse.ArgumentParser]:
    parser = commands.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
    parser.set_defaults(parser=parser)
    return parser.add_subparsers(title="commands", metavar="COMMAND")


def _serve(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    lines = ["settings (environment, or FILE with the same names in lower case):"]
    for variable in VARIABLES:
        default = f" [{variable.default}]" if variable.default else ""
        lines.append(f"  {PREFIX + variable.name}{default}\n      {variable.help}")
    lines.append("\nSIGTERM and SIGINT drain: no new calls, then an end after TRUNKLINE_DRAIN_S seconds.")
    parser = _command(commands, "serve", "run the server in the foreground", "\n".join(lines))
    parser.add_argument(
        "--dev",
        action="store_true",
        help="for development: webhooks and streams may reach private and loopback addresses; refuses to"
        " listen on other addresses than loopback",
    )
    parser.set_defaults(run=_later("serve", "run"))


def _demo(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "demo", "place one call to the sandbox carrier and show everything it did")
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="where recordings and logs go (default: DATA_DIR/demo)"
    )
    parser.set_defaults(run=_later("demo", "run"))


def _health(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "health", "exit with 0 when the server of these settings is alive")
    parser.set_defaults(run=_later("health", "run"))


def _backup(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "backup",
        "copy the SQLite database, whole, while the server runs; prints JSON",
        "Recordings are files of their own in the data directory, and are copied as files.",
    )
    parser.add_argument("--to", required=True, metavar="DIR", help="folder to make the copy in")
    parser.add_argument(
        "--with-key",
        action="store_true",
        help="copy secret.key as well: both together reveal the secrets in the database",
    )
    parser.set_defaults(run=_later("backup", "run"))


def _accounts(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    group = _group(commands, "accounts", "manage accounts")
    parser = _command(
        group, "create", "create an account and its first key; prints JSON with account_sid and api_key"
    )
    parser.add_argument("--name", required=True, type=_name, help="name of the customer")
    parser.add_argument(
        "--balance",
        type=_inr,
        default=_inr("500"),
        metavar="INR",
        help="opening balance of the wallet in rupees (500)",
    )
    parser.add_argument("--kyc", action="store_true", help="mark KYC as done")
    parser.add_argument(
        "--max-cps", type=_whole(1, 100_000), default=10, metavar="N", help="new calls per second (10)"
    )
    parser.add_argument(
        "--max-calls",
        type=_whole(1, 1_000_000),
        default=100,
        metavar="N",
        help="concurrent calls (100)",
    )
    parser.set_defaults(run=_later("admin", "create_account"))
    _accounts_update(group)
    parser = _command(
        group, "webhook-secret", "print JSON with the secret that signs an account's webhooks and streams"
    )
    parser.add_argument("--account", required=True, metavar="SID", help="account of the secret")
    parser.set_defaults(run=_later("admin", "webhook_secret"))


def _accounts_update(group: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(
        group,
        "update",
        "change an account; prints JSON with the account",
        "What is not named stays as it is. A running server goes by it within a second.",
    )
    parser.add_argument("--account", required=True, metavar="SID", help="account to change")
    parser.add_argument("--name", type=_name, help="name of the customer")
    both = argparse.BooleanOptionalAction
    parser.add_argument("--kyc", action=both, dest="kyc_complete", help="mark KYC as done or not")
    parser.add_argument("--active", action=both, dest="is_active", help="enable or disable the account")
    parser.add_argument("--max-cps", type=_whole(1, 100_000), metavar="N", help="new calls per second")
    parser.add_argument("--max-calls", type=_whole(1, 100_000), metavar="N", help="concurrent calls")
    parser.add_argument(
        "--requests-per-minute",
        type=_or_none(_whole(1, 1_000_000)),
        default=argparse.SUPPRESS,
        metavar="N|none",
        help="requests of all its keys together per minute; none: 600 for each key",
    )
    parser.add_argument(
        "--assistant-requests-per-minute",
        type=_or_none(_whole(1, 10_000)),
        default=argparse.SUPPRESS,
        metavar="N|none",
        help="requests of all its keys of the voice assistant per minute; none: 100",
    )
    parser.add_argument(
        "--max-spend-per-hour",
        type=_or_none(_inr),
        default=argparse.SUPPRESS,
        dest="max_spend_paise_per_hour",
        metavar="INR|none",
        help="maximum cost of calls per hour, in rupees; none: no limit",
    )
    parser.add_argument(
        "--recording-retention-days",
        type=_or_none(_whole(0, MAX_RETENTION_DAYS)),
        default=argparse.SUPPRESS,
        metavar="N|none",
        help="retention of recordings in days, 0: unlimited; none: the server's default",
    )
    parser.set_defaults(run=_later("admin", "update_account"))


def _wallet(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    group = _group(commands, "wallet", "manage wallets")
    parser = _command(
        group,
        "top-up",
        "add money to a wallet; prints JSON with balance",
        "A reference that was used before adds nothing, so the command may be repeated.",
    )
    parser.add_argument("--account", required=True, metavar="SID", help="account of the wallet")
    parser.add_argument("--amount", required=True, type=_inr, metavar="INR", help="amount in rupees")
    parser.add_argument("--reference", required=True, metavar="R", help="reference of the payment")
    parser.add_argument("--note", metavar="TEXT", help="a note for the ledger")
    parser.set_defaults(run=_later("admin", "top_up"))


def _keys(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    group = _group(commands, "keys", "manage API keys")
    parser = _command(group, "create", "create a key, shown this once; prints JSON with key")
    parser.add_argument("--account", required=True, metavar="SID", help="account of the key")
    parser.add_argument("--service", required=True, choices=SERVICES, help="service of the key, or all")
    parser.add_argument(
        "--scopes",
        metavar="A,B",
        help="scopes of the key, separated by commas; '*' is every scope of the service (default: see docs)",
    )
    parser.add_argument("--name", type=_name, metavar="TEXT", help="label of the key")
    parser.add_argument(
        "--environment",
        choices=("live", "sandbox"),
        default="live",
        help="a sandbox key of the voice assistant calls test numbers only (default: live)",
    )
    parser.set_defaults(run=_later("admin", "create_key"))
    parser = _command(group, "list", "list the keys of an account; prints JSON, without the keys themselves")
    parser.add_argument("--account", required=True, metavar="SID", help="account of the keys")
    parser.set_defaults(run=_later("admin", "list_keys"))
    parser = _command(
        group,
        "rotate",
        "create the successor of a key, shown this once; prints JSON with key",
        "The successor has the old key's service and scopes, and works at once. The old key works until the\n"
        "overlap is over, so that clients can change from one to the other without a gap.",
    )
    _add_key(parser, "key to replace")
    parser.add_argument(
        "--overlap",
        type=_whole(0, MAX_OVERLAP_S),
        default=3600,
        metavar="SECONDS",
        help="seconds for which the old key remains valid (3600)",
    )
    parser.set_defaults(run=_later("admin", "rotate_key"))
    parser = _command(
        group,
        "revoke",
        "revoke a key; prints JSON",
        "A running server takes it no more within a second.",
    )
    _add_key(parser, "key to revoke")
    parser.set_defaults(run=_later("admin", "revoke_key"))


def _add_key(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--account", required=True, metavar="SID", help="account of the key")
    parser.add_argument("--key", required=True, metavar="KEY_ID", help=f"{what}, by its key_id")


def _numbers(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    group = _group(commands, "numbers", "manage phone numbers")
    parser = _command(
        group, "add", "give a number to an account without a purchase; prints JSON with phone_number_id"
    )
    parser.add_argument("--account", required=True, metavar="SID", help="account that gets the number")
    parser.add_argument("--number", required=True, metavar="+91...", help="the number")
    parser.add_argument("--friendly-name", metavar="NAME", help="label")
    parser.set_defaults(run=_later("admin", "add_number"))
    parser = _command(group, "list", "list the numbers of an account; prints JSON with numbers")
    parser.add_argument("--account", required=True, metavar="SID", help="account of the numbers")
    parser.set_defaults(run=_later("admin", "list_numbers"))
    parser = _command(
        group,
        "release",
        "take a number from its account; prints JSON",
        "Its inbound calls go nowhere from then on. What was prepaid is not paid back.",
    )
    parser.add_argument("--account", required=True, metavar="SID", help="account that has the number")
    parser.add_argument("--number", required=True, metavar="+91...", help="the number")
    parser.set_defaults(run=_later("admin", "release_number"))


def _carriers(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    group = _group(commands, "carriers", "manage carriers of the platform")
    parser = _command(
        group,
        "add",
        "add a platform-owned carrier; prints JSON with carrier_sid",
        "Several gateways are preferred in the order given.\n"
        "With neither --inbound nor --outbound the gateways serve both directions.",
    )
    parser.add_argument("--name", required=True, type=_name, help="name of the carrier")
    parser.add_argument(
        "--gateway",
        required=True,
        action="append",
        type=_gateway,
        metavar="udp:HOST[:PORT]",
        help="a reachable host of the carrier, over udp, tcp, tls, tls/srtp or auto; without port, and with "
        "auto, its servers are looked up (NAPTR, SRV); may be repeated",
    )
    parser.add_argument("--inbound", action="store_true", help="accept calls from its gateways")
    parser.add_argument("--outbound", action="store_true", help="route outbound calls through its gateways")
    parser.add_argument("--username", metavar="U", help="user name of digest authentication")
    parser.add_argument("--password", metavar="P", help="password of digest authentication")
    _add_set(parser, required=False)
    parser.set_defaults(run=_later("admin", "add_carrier"))
    parser = _command(group, "list", "list the platform-owned carriers; prints JSON with carriers")
    parser.set_defaults(run=_later("admin", "list_carriers"))
    parser = _command(
        group,
        "update",
        "change fields of a platform-owned carrier; the next call goes by them",
        "Fields that are not named stay as they are.",
    )
    parser.add_argument("--carrier", required=True, metavar="SID", help="carrier to change")
    _add_set(parser, required=True)
    parser.set_defaults(run=_later("admin", "update_carrier"))


def _nodes(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    group = _group(commands, "nodes", "look at and drain the servers that share a PostgreSQL")
    parser = _command(
        group, "list", "list the nodes with state, lease, calls and duties; prints JSON with nodes"
    )
    parser.set_defaults(run=_later("nodes", "list_nodes"))
    parser = _command(
        group,
        "drain",
        "drain a node as SIGTERM does, from any machine; prints JSON",
        "Within some 4 s it refuses new calls. It ends with the status 0 when its calls have ended, or\n"
        "TRUNKLINE_DRAIN_S is over. When it is started again it takes calls.",
    )
    parser.add_argument("node", metavar="NODE", help="name of the node, as TRUNKLINE_NODE has it")
    parser.add_argument(
        "--wait", action="store_true", help="wait until it has ended; shows how many calls are left"
    )
    parser.set_defaults(run=_later("nodes", "drain_node"))


def _console(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    group = _group(commands, "console", "sign operators in to the console, and out")
    parser = _command(
        group,
        "link",
        "make a link that signs an operator in to the console once; prints JSON with url",
        "An operator sees the calls of all accounts, and acts in one that is chosen. The link is for ten\n"
        "minutes, the session for twelve hours.",
    )
    _add_operator(parser)
    parser.add_argument(
        "--url", metavar="URL", help="address of the console's server (default: TRUNKLINE_PUBLIC_URL or here)"
    )
    parser.set_defaults(run=_later("admin", "console_link"))
    parser = _command(group, "end", "end all sessions and links of an operator; prints JSON with ended")
    _add_operator(parser)
    parser.set_defaults(run=_later("admin", "end_operator"))


def _add_operator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--operator",
        required=True,
        metavar="NAME",
        help="name of the person, with which changes are recorded",
    )


def _add_set(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        required=required,
        type=_setting,
        metavar="FIELD=VALUE",
        help="a field of the carrier as the trunk portal names it, or gateway.FIELD for all its gateways; "
        "VALUE is JSON or plain text; may be repeated",
    )


def _later(module: str, name: str) -> Callable[[Settings, argparse.Namespace], int]:
    """Make a command whose module of this package is imported when the command runs."""

    def run(settings: Settings, arguments: argparse.Namespace) -> int:
        with collector_paused():
            loaded = import_module(f"api.cli.{module}")
        command: Callable[[Settings, argparse.Namespace], int] = getattr(loaded, name)
        return command(settings, arguments)

    return run


def _gateway(text: str) -> ListenAddress:
    try:
        gateway = parse_gateway(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if gateway.is_any:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address that can be reached")
    return gateway


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _name(text: str) -> str:
    """Read a name, which is shown on pages and terminals."""
    if not text.strip() or CONTROLS_AND_BREAKS.search(text):
        raise argparse.ArgumentTypeError(f"{text!r} must be one line without control characters")
    return text


def _inr(text: str) -> int:
    """Read an amount in INR and return paise."""
    if _AMOUNT.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount such as 500 or 99.50")
    amount = Decimal(text)
    if amount < 0 or amount > MAX_BALANCE_INR or amount != round(amount, 2):
        raise argparse.ArgumentTypeError(
            f"{text!r} must be from 0 to {MAX_BALANCE_INR} with at most two decimals"
        )
    return int(amount * 100)


def _or_none(read: Callable[[str], int]) -> Callable[[str], int | None]:
    return lambda text: None if text == "none" else read(text)


def _whole(least: int, most: int) -> Callable[[str], int]:
    parse = WholeNumber(least, most)

    def read(text: str) -> int:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read
