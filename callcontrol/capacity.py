"""How many calls there may be at once, and how many may begin in a second: for all, an account, a carrier."""

from typing import Final

from callcontrol.errors import DomainError, RateLimited, ServiceUnavailable
from callcontrol.models import Account, Carrier

_IDLE_PACES: Final = 4096
_NEVER_S: Final = 60.0  # when to ask again where nothing may begin


class _Pace:
    """A bucket of starts: ``per_second`` flow in, and as many may be used at once."""

    __slots__ = ("_at", "_left")

    def __init__(self) -> None:
        self._left: float | None = None
        self._at = 0.0

    def ready_in_s(self, per_second: int, now: float) -> float:
        """Seconds until one more may begin; 0.0 when it may now."""
        if per_second <= 0:
            return _NEVER_S
        limit = float(per_second)
        if self._left is None:
            self._left, self._at = limit, now
        self._left = min(limit, self._left + (now - self._at) * per_second)
        self._at = now
        if self._left >= 1.0:
            return 0.0
        return (1.0 - self._left) / per_second

    def use(self) -> None:
        """Count one start."""
        if self._left is not None:
            self._left -= 1.0


class Capacity:
    """Counts calls and their legs at carriers; every ``enter`` is matched by one ``leave``."""

    def __init__(self, max_calls: int, max_cps: int) -> None:
        self.calls = 0
        self._max_calls = max_calls
        self._max_cps = max_cps
        self._pace = _Pace()
        self._account_calls: dict[str, int] = {}
        self._account_paces: dict[str, _Pace] = {}
        self._carrier_legs: dict[str, int] = {}
        self._carrier_paces: dict[str, _Pace] = {}

    def enter(self, account: Account, now: float) -> None:
        """
        Count a new call.

        Raises:
            ServiceUnavailable: There are as many calls as there may be, or the server's rate is used up.
            RateLimited: The account begins calls faster than it may.
        """
        refusal = self._refusal(account, now)
        if refusal is not None:
            raise refusal
        self._pace.use()
        self._account_pace(account.account_sid).use()
        self.calls += 1
        self._account_calls[account.account_sid] = self._account_calls.get(account.account_sid, 0) + 1

    def has_room(self, now: float) -> bool:
        """Whether the server itself could begin one more call now, whoever it is for."""
        return self.calls < self._max_calls and self._pace.ready_in_s(self._max_cps, now) == 0.0

    def leave(self, account_sid: str) -> None:
        """Count a call no more."""
        self.calls -= 1
        _lower(self._account_calls, account_sid)

    def carrier_has_room(self, carrier: Carrier, now: float) -> bool:
        """Whether the carrier's own limits allow one more leg now."""
        legs = self._carrier_legs.get(carrier.carrier_sid, 0)
        if carrier.max_concurrent_calls is not None and legs >= carrier.max_concurrent_calls:
            return False
        if carrier.max_cps is None:
            return True
        return self._carrier_pace(carrier.carrier_sid).ready_in_s(carrier.max_cps, now) == 0.0

    def enter_carrier(self, carrier: Carrier, now: float) -> None:
        """Count a leg at a carrier."""
        self._carrier_legs[carrier.carrier_sid] = self._carrier_legs.get(carrier.carrier_sid, 0) + 1
        if carrier.max_cps is not None:
            pace = self._carrier_pace(carrier.carrier_sid)
            pace.ready_in_s(carrier.max_cps, now)
            pace.use()

    def leave_carrier(self, carrier_sid: str) -> None:
        """Count a leg at a carrier no more."""
        _lower(self._carrier_legs, carrier_sid)

    def carrier_legs(self, carrier_sid: str) -> int:
        """Legs that are at the carrier now."""
        return self._carrier_legs.get(carrier_sid, 0)

    def _refusal(self, account: Account, now: float) -> DomainError | None:
        if self.calls >= self._max_calls:
            return ServiceUnavailable(
                f"All {self._max_calls} calls that this server carries are in use; try again later.",
                retry_after_s=5.0,
            )
        if self._account_calls.get(account.account_sid, 0) >= account.max_calls:
            return ServiceUnavailable(
                f"The account has {account.max_calls} calls up, which is its limit; wait until one ends.",
                retry_after_s=5.0,
            )
        wait_s = self._pace.ready_in_s(self._max_cps, now)
        if wait_s > 0.0:
            return ServiceUnavailable(
                "The server is beginning as many calls as it can; try again in a moment.",
                retry_after_s=max(1.0, wait_s),
            )
        wait_s = self._account_pace(account.account_sid).ready_in_s(account.max_cps, now)
        if wait_s > 0.0:
            return RateLimited(
                f"The account may begin {account.max_cps} calls a second; slow down.", retry_after_s=wait_s
            )
        return None

    def _account_pace(self, account_sid: str) -> _Pace:
        return _remembered(self._account_paces, account_sid)

    def _carrier_pace(self, carrier_sid: str) -> _Pace:
        return _remembered(self._carrier_paces, carrier_sid)


def _remembered(paces: dict[str, _Pace], key: str) -> _Pace:
    """The pace of a key; the oldest is forgotten when there are very many."""
    pace = paces.get(key)
    if pace is None:
        if len(paces) >= _IDLE_PACES:
            del paces[next(iter(paces))]
        pace = paces[key] = _Pace()
    return pace


def _lower(counts: dict[str, int], key: str) -> None:
    left = counts.get(key, 0) - 1
    if left > 0:
        counts[key] = left
    else:
        counts.pop(key, None)
