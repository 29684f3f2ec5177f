"""The services beside the calls, in memory: what a test may look into and break."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.product import CallAttachment
from callcontrol.calls.recording import PENDING
from callcontrol.calls.records.aio import CallStore
from callcontrol.calls.records.journal import CallJournal
from callcontrol.directory.directory import Changes, Directory
from callcontrol.errors import (
    DestinationForbidden,
    InsufficientBalance,
    NotFound,
    NumberNotOwned,
    ServiceUnavailable,
    no_free_trunk,
)
from callcontrol.models import (
    Account,
    Binding,
    CallFilter,
    CallRecord,
    CallStatus,
    Carrier,
    Direction,
    Gateway,
    Page,
    PhoneNumber,
    Position,
    PublishedEvent,
    Reserve,
    SubscribedEvent,
    Wallet,
    WebhookEvent,
)
from callcontrol.numbers.aio.service import NumberService
from callcontrol.trunks.aio.places import TrunkPlaces
from callcontrol.trunks.places import Limits, Place, first_leg, sids_of
from callcontrol.wallet.aio import WalletService

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ACCOUNT_SID = "a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12"
OTHER_SID = "b3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12"
OWN_NUMBER = "+918047491899"
CALLEE = "+919876543210"
CALLER = "+919811111111"
CALL_SID = "6f1f1a52-6d0b-4b5f-8d39-1f0a5e1f7c11"


def make_account(account_sid: str = ACCOUNT_SID, **changes: Any) -> Account:
    return Account(
        **{"account_sid": account_sid, "name": "Test", "created_at": NOW, "updated_at": NOW, **changes}
    )


def make_record(direction: Direction = "outbound", **changes: Any) -> CallRecord:
    """A call from the account's number, or to it."""
    from_, to = (OWN_NUMBER, CALLEE) if direction == "outbound" else (CALLER, OWN_NUMBER)
    return CallRecord(
        **{
            "call_sid": CALL_SID,
            "account_sid": ACCOUNT_SID,
            "direction": direction,
            "from_": from_,
            "to": to,
            "created_at": NOW,
            **changes,
        }
    )


def make_ringing(**changes: Any) -> CallRecord:
    """A call that has just come in to the account's number."""
    return make_record(**{"direction": "inbound", "status": CallStatus.RINGING, **changes})


def new_record(account_sid: str, direction: Direction = "outbound", **changes: Any) -> CallRecord:
    """A call that begins now, with an identifier of its own."""
    fresh = {"call_sid": new_id(), "account_sid": account_sid, "created_at": utc_now()}
    return make_record(**{"direction": direction, **fresh, **changes})


def make_number(number: str = OWN_NUMBER, binding: Binding | None = None, **changes: Any) -> PhoneNumber:
    return PhoneNumber(
        **{
            "phone_number_id": f"id-{number}",
            "account_sid": ACCOUNT_SID,
            "number": number,
            "created_at": NOW,
            "updated_at": NOW,
            "registered": True,
            "binding": binding,
            **changes,
        }
    )


def make_carrier(carrier_sid: str = "carrier-1", account_sid: str | None = None, **changes: Any) -> Carrier:
    return Carrier(
        **{
            "carrier_sid": carrier_sid,
            "account_sid": account_sid,
            "name": carrier_sid,
            "created_at": NOW,
            "updated_at": NOW,
            **changes,
        }
    )


def make_gateway(
    gateway_sid: str = "gateway-1", host: str = "127.0.0.1", port: int = 5080, **changes: Any
) -> Gateway:
    return Gateway(
        **{
            "gateway_sid": gateway_sid,
            "carrier_sid": "carrier-1",
            "host": host,
            "port": port,
            "created_at": NOW,
            "updated_at": NOW,
            **changes,
        }
    )


class MemoryDirectory(Directory):
    """A directory that is filled by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.put(accounts=[make_account()])

    def put(
        self,
        *,
        accounts: Sequence[Account] = (),
        numbers: Sequence[PhoneNumber] = (),
        carriers: Sequence[Carrier] = (),
        gateways: Sequence[Gateway] = (),
    ) -> None:
        self.apply(
            Changes(
                revision=self.revision + 1,
                accounts=accounts,
                numbers=[(number, True) for number in numbers],
                carriers=[(carrier, True) for carrier in carriers],
                gateways=[(gateway, True) for gateway in gateways],
            )
        )


class MemoryWallets(WalletService):
    """Prepaid money of one account."""

    def __init__(self, balance_paise: int = 100_000) -> None:
        self.balance_paise = balance_paise
        self.reserves: dict[str, int] = {}
        self.failing = False

    @property
    def available_paise(self) -> int:
        return self.balance_paise - sum(self.reserves.values())

    async def balance(self, account_sid: str) -> int:
        return self.balance_paise

    async def wallet(self, account_sid: str) -> Wallet:
        return Wallet(account_sid, self.balance_paise, sum(self.reserves.values()), NOW)

    async def reserve(self, account_sid: str, call_sid: str, amount_paise: int) -> None:
        self.hold(call_sid, amount_paise)

    def hold(self, call_sid: str, amount_paise: int) -> None:
        if amount_paise > self.available_paise:
            raise InsufficientBalance("Top up the wallet.")
        if amount_paise:
            self.reserves[call_sid] = amount_paise

    async def extend(self, call_sid: str, total_paise: int) -> None:
        if self.failing:
            raise ServiceUnavailable("The database is away.")
        held_paise = self.reserves[call_sid]
        if total_paise - held_paise > self.available_paise:
            raise InsufficientBalance("Top up the wallet.")
        self.reserves[call_sid] = max(held_paise, total_paise)

    async def settle(self, call_sid: str, charge_paise: int) -> int:
        self.reserves.pop(call_sid, None)
        self.balance_paise -= charge_paise
        return charge_paise

    async def open_reserves(self) -> list[Reserve]:
        return [Reserve(sid, ACCOUNT_SID, paise, NOW) for sid, paise in self.reserves.items()]


class MemoryPlaces(TrunkPlaces):
    """Places at trunks without rates, of calls here and of ``elsewhere``, by carrier or gateway."""

    def __init__(self) -> None:
        self.elsewhere: Counter[str] = Counter()
        self.held: dict[str, Place] = {}
        self.may_answer = asyncio.Event()
        """Cleared to let legs wait for their places."""
        self.may_answer.set()

    async def check(self, choices: Sequence[Limits]) -> None:
        if choices and not any(self._is_free(limits) for limits in choices):
            raise no_free_trunk()

    async def take(self, place: Place) -> bool:
        await self.may_answer.wait()
        free = self._is_free(place.limits)
        if free:
            self.held[place.leg] = place
        return free

    def note(self, place: Place) -> None:
        self.held[place.leg] = place

    def leave(self, place: Place) -> None:
        assert self.held.pop(place.leg) == place, "a place is left once"

    def choose(self, call_sid: str, choices: Sequence[Limits]) -> int:
        """Acquire a place for the first leg of a call."""
        if not choices:
            return 0
        for number, limits in enumerate(choices):
            if not limits:
                return number
            if self._is_free(limits):
                self.held[first_leg(call_sid)] = Place(first_leg(call_sid), limits)
                return number
        raise no_free_trunk()

    def _is_free(self, limits: Limits) -> bool:
        legs = self.elsewhere + Counter(
            sid for place in self.held.values() for sid in sids_of([place.limits])
        )
        return all(limit.max_legs is None or legs[limit.sid] < limit.max_legs for limit in limits)


class MemoryRecords(CallStore):
    """Call records, the money of their calls, and the events that were published with them."""

    def __init__(self, wallets: MemoryWallets, places: MemoryPlaces | None = None) -> None:
        self.wallets = wallets
        self.places = places
        self.journal = CallJournal()
        self.watcher = None
        self.records: dict[str, CallRecord] = {}
        self.events: list[WebhookEvent] = []
        self.broadcasts: list[SubscribedEvent] = []
        self.finished: list[str] = []
        self.failing = False

    async def insert(
        self,
        record: CallRecord,
        *,
        reserve_paise: int = 0,
        events: Sequence[WebhookEvent] = (),
        attachment: CallAttachment | None = None,
        limited: bool = False,
        choices: Sequence[Limits] = (),
    ) -> int:
        assert attachment is None, "there is no database that could be written to"
        if self.failing:
            raise ServiceUnavailable("The database is away.")
        choice = 0 if self.places is None else self.places.choose(record.call_sid, choices)
        try:
            self.wallets.hold(record.call_sid, reserve_paise)
        except InsufficientBalance:
            if self.places is not None:
                self.places.held.pop(first_leg(record.call_sid), None)
            raise
        self.records[record.call_sid] = record
        self.events += events
        return choice

    def update(self, record: CallRecord, *, events: Sequence[PublishedEvent] = ()) -> None:
        for event in events:
            if isinstance(event, SubscribedEvent):
                self.broadcasts.append(event)
            else:
                self.events.append(event)

    def finish(
        self, record: CallRecord, *, charge_paise: int = 0, events: Sequence[PublishedEvent] = ()
    ) -> None:
        assert record.call_sid not in self.finished, "a call is finished once"
        self.finished.append(record.call_sid)
        record.price_paise = charge_paise
        self.wallets.reserves.pop(record.call_sid, None)
        self.wallets.balance_paise -= charge_paise
        self.update(record, events=events)

    async def flush(self) -> None:
        pass

    async def get(self, account_sid: str, call_sid: str) -> CallRecord:
        record = self.records.get(call_sid)
        if record is None or record.account_sid != account_sid:
            raise NotFound("There is no such call on the account.")
        return record

    async def list(
        self,
        account_sid: str,
        query: CallFilter,
        page: int,
        per_page: int,
        *,
        after: Position | None = None,
    ) -> Page[CallRecord]:
        found = [record for record in self.records.values() if record.account_sid == account_sid]
        return Page(found, len(found), page, per_page)

    async def unfinished(self, node: str | None = None) -> Sequence[CallRecord]:
        return [record for record in self.records.values() if not record.status.ended]

    async def keep_dialogs(self, records: Sequence[CallRecord]) -> Mapping[str, Mapping[str, Any]]:
        return {record.call_sid: dict(record.dialogs) for record in records if record.dialogs}

    async def forget_dialogs(self, call_sids: Sequence[str]) -> None:
        pass

    async def cut_recordings(self, node: str | None = None) -> Sequence[CallRecord]:
        return [
            record
            for record in self.records.values()
            if record.status.ended and record.recording_status in PENDING
        ]

    def only(self) -> CallRecord:
        """The record, when there is exactly one."""
        (record,) = self.records.values()
        return record

    def event_names(self) -> Sequence[str]:
        return [event.event for event in self.events]


class MemoryNumbers(NumberService):
    """Numbers of accounts, as the directory has them."""

    def __init__(self, directory: Directory) -> None:
        self._numbers = directory

    async def owned(self, account_sid: str, number: str) -> PhoneNumber:
        found = self._numbers.number(number)
        if found is None or found.account_sid != account_sid or not found.registered:
            raise NumberNotOwned("The number is not on the account.")
        return found


class OpenDestinations:
    """Lets every address be connected to, but for hosts named ``forbidden.example``."""

    allow_private = True

    def check_url(self, url: str, *, schemes: Sequence[str]) -> None:
        if "forbidden.example" in url:
            raise DestinationForbidden("This address must not be connected to.")

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        if host == "forbidden.example":
            raise DestinationForbidden("This address must not be connected to.")
        if host == "unknown.example":
            raise OSError("no such host")
        return [(host, port)]


__all__ = [
    "ACCOUNT_SID",
    "CALLEE",
    "CALLER",
    "CALL_SID",
    "NOW",
    "OTHER_SID",
    "OWN_NUMBER",
    "MemoryDirectory",
    "MemoryNumbers",
    "MemoryRecords",
    "MemoryWallets",
    "OpenDestinations",
    "make_account",
    "make_carrier",
    "make_gateway",
    "make_number",
    "make_record",
    "make_ringing",
    "new_record",
]
