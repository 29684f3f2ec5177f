"""
Limits of an account over all servers that share a PostgreSQL database: calls at once, and calls per second.

Both are conditions of the UPDATE that holds the money of a call, so they cost no statement. Calls at once are
the open reserves of the account. They are counted in one statement, which is exact because writing
transactions take turns; a reserve ends with its call, whoever ends it. The rate is a token bucket of
``max_cps`` tokens, kept as the moment up to which it is used (the generic cell rate algorithm), by the clock
of the database.
"""

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import CLOCK_US, Given, Statement
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.wallet import reserves, wallets
from callcontrol.errors import RateLimited, ServiceUnavailable, too_many_calls, too_many_starts
from callcontrol.wallet.store.ledger import ACCOUNT

_CLOCK: Final = sa.literal_column(CLOCK_US, sa.BigInteger)
# Rounded up, so that no second has more calls than it may.
_SPACING_US: Final = (accounts.c.max_cps + 999_999) // accounts.c.max_cps
_USED_US: Final = sa.func.greatest(wallets.c.paced_until - _CLOCK, 0)


def _up(given: Given) -> sa.ScalarSelect[int]:
    open_reserves = sa.select(sa.func.count()).select_from(reserves)
    return (
        open_reserves.where(reserves.c.account_sid == given.text("account_sid"))
        .correlate(given.rows)
        .scalar_subquery()
    )


def within(given: Given) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions of a hold for ``calls`` new calls; the transaction also holds for ``opening`` others."""
    new = given.whole("calls")
    return (
        accounts.c.account_sid == wallets.c.account_sid,
        _up(given) + given.whole("opening") + new <= accounts.c.max_calls,
        _USED_US <= (accounts.c.max_cps - new) * _SPACING_US,
    )


def paced(given: Given) -> sa.ColumnElement[int]:
    """Return the rate used, with that of the new calls."""
    return sa.func.greatest(wallets.c.paced_until, _CLOCK) + given.whole("calls") * _SPACING_US


_STANDING: Final = Statement(
    sa.select(
        accounts.c.max_calls,
        accounts.c.max_cps,
        _up(Given()).label("up"),
        _USED_US.label("used_us"),
        _SPACING_US.label("spacing_us"),
    )
    .select_from(wallets.join(accounts, accounts.c.account_sid == wallets.c.account_sid))
    .where(ACCOUNT)
)


class Standing:
    """An account against its limits, for the refusal of a call."""

    def __init__(self, connection: Connection, account_sid: str) -> None:
        self._found = _STANDING.first(connection, {"account_sid": account_sid})

    def refusal(self) -> ServiceUnavailable | RateLimited | None:
        """Refusal of one more call; None if the account may begin it now, or does not exist."""
        found = self._found
        if found is None:
            return None
        if found["up"] >= found["max_calls"]:
            return too_many_calls(found["max_calls"])
        return self.rate_refusal() if self._wait_us(found) > 0 else None

    def rate_refusal(self) -> RateLimited | None:
        """Refusal for the rate, which may have had a token again since."""
        found = self._found
        if found is None:
            return None
        return too_many_starts(found["max_cps"], max(self._wait_us(found), 0) / 1_000_000)

    @staticmethod
    def _wait_us(found: Mapping[str, Any]) -> int:
        return int(found["used_us"] - (found["max_cps"] - 1) * found["spacing_us"])
