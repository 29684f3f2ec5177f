"""
Limits of concurrent calls and of calls per second: for the server, per account, per trunk.

Counted in memory. Among servers that share a database this is a first check, which costs nothing: what the
others have is counted there (``callcontrol.wallet.store.limits``, ``callcontrol.trunks.aio.places``).
"""

from collections import Counter
from typing import Final

from callcontrol.errors import DomainError, ServiceUnavailable, too_many_calls, too_many_starts
from callcontrol.models import Account, Carrier, Gateway

_LIMITS: Final = ("server_calls", "server_rate", "account_calls", "account_rate", "trunk")
_IDLE_PACES: Final = 4096
_NEVER_S: Final = 60.0  # retry delay when the limit is zero
_FULL_S: Final = 5.0  # retry delay when calls have to end first


class _Pace:
    """Token bucket of call starts: ``per_second`` tokens a second, and a burst of as many."""

    __slots__ = ("_at", "_left")

    def __init__(self) -> None:
        self._left: float | None = None
        self._at = 0.0

    def ready_in_s(self, per_second: int, now: float) -> float:
        """Seconds until another start is allowed; 0.0 if it is allowed now."""
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
    """Counts calls, and their legs at carriers and gateways; each ``enter`` needs one ``leave``."""

    def __init__(self, max_calls: int, max_cps: int) -> None:
        self.calls = 0
        self.refused: Counter[str] = Counter(dict.fromkeys(_LIMITS, 0))
        """Rejected calls by the limit that was reached."""
        self._max_calls = max_calls
        self._max_cps = max_cps
        self._pace = _Pace()
        self._account_calls: dict[str, int] = {}
        self._account_paces: dict[str, _Pace] = {}
        self._trunk_legs: dict[str, int] = {}
        self._trunk_paces: dict[str, _Pace] = {}

    def check(self, account: Account, now: float) -> None:
        """
        Check that a new call is allowed now, without counting it.

        Raises:
            ServiceUnavailable: The server or the account is at its limit of calls, or the server at its rate.
            RateLimited: The account exceeds its rate of new calls.
        """
        refusal = self._refusal(account, now)
        if refusal is not None:
            self.note(refusal)
            raise refusal

    def note(self, refusal: DomainError) -> bool:
        """Count a refused call; False if the refusal is for no limit of calls."""
        if refusal.limit is None:
            return False
        self.refused[refusal.limit] += 1
        return True

    def enter(self, account: Account, now: float) -> None:
        """Count a new call; raises the errors of ``check``."""
        self.check(account, now)
        account_sid = account.account_sid
        self._pace.use()
        _remembered(self._account_paces, account_sid).use()
        self.calls += 1
        self._account_calls[account_sid] = self._account_calls.get(account_sid, 0) + 1

    def has_room(self, now: float) -> bool:
        """Return True if the server's own limits allow another call now."""
        return self.calls < self._max_calls and self._pace.ready_in_s(self._max_cps, now) == 0.0

    def leave(self, account_sid: str) -> None:
        """Count the end of a call."""
        self.calls -= 1
        _lower(self._account_calls, account_sid)

    def wait_for_trunk_s(self, carrier: Carrier, gateway: Gateway, now: float) -> float:
        """
        Seconds until another leg is allowed at a gateway of a carrier; 0.0 if it is allowed now.

        Legs of both directions count; carrier and gateway have separate limits.
        """
        wait_s = 0.0
        if carrier.max_concurrent_calls is not None or carrier.max_cps is not None:
            wait_s = self._wait_s(carrier.carrier_sid, carrier.max_concurrent_calls, carrier.max_cps, now)
        if gateway.max_concurrent_calls is not None or gateway.max_cps is not None:
            other_s = self._wait_s(gateway.gateway_sid, gateway.max_concurrent_calls, gateway.max_cps, now)
            wait_s = max(wait_s, other_s)
        return wait_s

    def enter_trunk(self, carrier: Carrier, gateway: Gateway, now: float) -> None:
        """Count a leg at a gateway of a carrier."""
        for sid, max_cps in (
            (carrier.carrier_sid, carrier.max_cps),
            (gateway.gateway_sid, gateway.max_cps),
        ):
            self._trunk_legs[sid] = self._trunk_legs.get(sid, 0) + 1
            if max_cps is not None:
                pace = _remembered(self._trunk_paces, sid)
                pace.ready_in_s(max_cps, now)
                pace.use()

    def leave_trunk(self, carrier: Carrier, gateway: Gateway) -> None:
        """Count the end of a leg."""
        _lower(self._trunk_legs, carrier.carrier_sid)
        _lower(self._trunk_legs, gateway.gateway_sid)

    def legs_at(self, sid: str) -> int:
        """Number of current legs at a carrier or gateway."""
        return self._trunk_legs.get(sid, 0)

    def _wait_s(self, sid: str, max_legs: int | None, max_cps: int | None, now: float) -> float:
        if max_legs is not None and self._trunk_legs.get(sid, 0) >= max_legs:
            return _FULL_S
        if max_cps is None:
            return 0.0
        return _remembered(self._trunk_paces, sid).ready_in_s(max_cps, now)

    def _refusal(self, account: Account, now: float) -> DomainError | None:
        if self.calls >= self._max_calls:
            return ServiceUnavailable(
                f"All {self._max_calls} calls that this server carries are in use; try again later.",
                retry_after_s=5.0,
                limit="server_calls",
            )
        if self._account_calls.get(account.account_sid, 0) >= account.max_calls:
            return too_many_calls(account.max_calls)
        wait_s = self._pace.ready_in_s(self._max_cps, now)
        if wait_s > 0.0:
            return ServiceUnavailable(
                "The server is beginning as many calls as it can; try again in a moment.",
                retry_after_s=max(1.0, wait_s),
                limit="server_rate",
            )
        wait_s = _remembered(self._account_paces, account.account_sid).ready_in_s(account.max_cps, now)
        return too_many_starts(account.max_cps, wait_s) if wait_s > 0.0 else None


def _remembered(paces: dict[str, _Pace], key: str) -> _Pace:
    """Token bucket of a key; the oldest is dropped when there are too many."""
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
