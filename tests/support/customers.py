"""Accounts that can call, on the storage of a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from callcontrol.accounts.keys import SCOPES
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.models import Carrier

__all__ = ["Customer", "add_customer", "add_platform_carrier", "add_registered_number"]


@dataclass(frozen=True)
class Customer:
    """An account, its key with every scope of the platform, and its registered number."""

    account_sid: str
    key: str
    phone_number_id: str


async def add_customer(storage: Storage, number: str, **account: Any) -> Customer:
    """Add an account with much money, a key and a registered number; the platform has a carrier."""
    given = {"balance_paise": 10_000_000, "kyc": True, "max_cps": 1000, "max_calls": 1000, **account}
    made, _ = await storage.accounts.create("Customer", **given)
    key = await storage.keys.create(made.account_sid, "platform", SCOPES["platform"])
    return Customer(made.account_sid, key, await add_registered_number(storage, made.account_sid, number))


async def add_registered_number(storage: Storage, account_sid: str, number: str) -> str:
    """Add a number that may call; its identifier."""
    added = await storage.numbers.add(account_sid, number)
    await storage.numbers.register(account_sid, added.phone_number_id)
    return added.phone_number_id


async def add_platform_carrier(storage: Storage) -> Carrier:
    """Add a carrier of the platform whose gateway nobody answers at."""
    carrier, _ = await storage.trunks.add_platform_carrier("Platform", [("udp", "192.0.2.1", 5060)])
    return carrier
