"""
Setup of a fresh installation: a demo account with balance and number, and the sandbox carrier to call.

The account is created when the sandbox carrier runs and no account exists. Its key opens every service with
every scope, and is shown once; later runs show the command that creates another.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from callcontrol.accounts.keys import EVERY_SCOPE
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.models import TEST_PREFIX, Account

__all__ = ["DemoAccount", "console_link", "greeting", "prepare_demo", "prepare_sandbox"]

DEMO_NAME = "Demo"
DEMO_NUMBER = "+918047000001"
DEMO_BALANCE_PAISE = 1000 * 100
DEMO_MAX_CPS, DEMO_MAX_CALLS = 10, 100
SANDBOX_NAME = "Sandbox"
ECHO_NUMBER = "+919800000001"


@dataclass(frozen=True, slots=True)
class DemoAccount:
    """The demo account; only the process that created it knows `api_key`."""

    account_sid: str
    number: str
    api_key: str | None = field(repr=False)


async def prepare_sandbox(
    storage: Storage, address: tuple[str, int] | None, *, is_shared: bool = False
) -> str | None:
    """
    Add the sandbox as a platform carrier at `address` and return its sid; None removes it.

    Calls over a carrier without its sandbox would run into a timeout. With `is_shared` another node lives:
    a sandbox elsewhere may be its own. That stays, and None is returned.
    """
    carriers = [
        carrier for carrier in await storage.trunks.platform_carriers() if carrier.name == SANDBOX_NAME
    ]
    for carrier in carriers:
        gateways = await storage.trunks.platform_gateways(carrier.carrier_sid)
        same = [(gateway.host, gateway.port) for gateway in gateways] == [address]
        if same and carrier.prefixes == (TEST_PREFIX,):
            return carrier.carrier_sid
        if is_shared:
            return None
        await storage.trunks.delete_carrier(None, carrier.carrier_sid)
    if address is None:
        return None
    made, _ = await storage.trunks.add_platform_carrier(
        SANDBOX_NAME, [("udp", *address)], inbound=True, outbound=True, prefixes=(TEST_PREFIX,)
    )
    return made.carrier_sid


async def prepare_demo(storage: Storage) -> DemoAccount | None:
    """Create the demo account if no account exists; else find it, if it still exists."""
    accounts = await storage.accounts.list()
    if accounts:
        return next((_known(account) for account in accounts if account.name == DEMO_NAME), None)
    account, key = await storage.accounts.create(
        name=DEMO_NAME,
        balance_paise=DEMO_BALANCE_PAISE,
        kyc=True,
        max_cps=DEMO_MAX_CPS,
        max_calls=DEMO_MAX_CALLS,
        service="all",
        scopes=(EVERY_SCOPE,),
    )
    number = await storage.numbers.add(account.account_sid, DEMO_NUMBER, friendly_name="Demo number")
    # It may call, and is free for the first binding that somebody tries.
    await storage.numbers.register(account.account_sid, number.phone_number_id)
    return DemoAccount(account.account_sid, DEMO_NUMBER, key)


def _known(account: Account) -> DemoAccount:
    return DemoAccount(account.account_sid, DEMO_NUMBER, None)


async def console_link(storage: Storage, demo: DemoAccount | None, url: str) -> str | None:
    """Make a link that signs in to the console once, with a key of the demo account; None without one."""
    if demo is None:
        return None
    now = utc_now()
    for key in await storage.keys.list(demo.account_sid):
        if key.service == "all" and not key.is_revoked(now):
            token = await storage.console_sessions.make_link(key.key_id)
            return f"{url}/console/sign-in?token={token}"
    return None


def greeting(
    demo: DemoAccount | None, url: str, command: str = "trunkline", *, console: str | None = None
) -> str:
    """Text for the operator at startup: `command` is the shell command, `console` the link that signs in."""
    lines = [f"Trunkline is up at {url}", f"  documentation   {url}/docs"]
    if console is not None:
        lines.append(f"  console         {console}  (signs in once, within ten minutes)")
    if demo is None:
        lines.append(f"  an account      {command} accounts create --name NAME --kyc")
    elif demo.api_key is None:
        lines.append(f"  demo account    {demo.account_sid}, number {demo.number}")
        lines.append(f"  another key     {_new_key(demo, command)}")
    else:
        lines.append(f"  demo account    {demo.account_sid}, number {demo.number}, wallet 1000 INR")
        lines.append(f"  API key         {demo.api_key}  (for every service; shown this once)")
        lines += ["", "Place a call to the sandbox carrier, which answers and echoes:", curl(demo, url)]
    return "\n".join(lines)


def _new_key(demo: DemoAccount, command: str) -> str:
    return f"{command} keys create --account {demo.account_sid} --service all --scopes '{EVERY_SCOPE}'"


def curl(demo: DemoAccount, url: str) -> str:
    """Shell command line that places a call with curl."""
    body = (
        f'{{"from":"{demo.number}","to":"{ECHO_NUMBER}",'
        '"verbs":[{"verb":"play","url":"prompt:en/welcome"},{"verb":"pause","length":2},{"verb":"hangup"}]}'
    )
    words = [
        *("curl", "-sS", "-X", "POST", f"{url}/v1/calls"),
        *("-H", f"Authorization: Bearer {demo.api_key}"),
        *("-H", "Content-Type: application/json"),
        *("-d", body),
    ]
    return shlex.join(words)
