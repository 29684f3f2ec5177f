"""The money rules as a property: whatever happens in whatever order, the books agree."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from callcontrol.errors import Conflict, InsufficientBalance, NotFound
from callcontrol.store.repositories import wallet
from callcontrol.store.tables import accounts, metadata

NOW = datetime(2026, 8, 1, tzinfo=UTC)
ACCOUNT = "a"
CALLS = st.sampled_from([f"call-{number}" for number in range(6)])
AMOUNTS = st.integers(min_value=0, max_value=500)


class WalletMachine(RuleBasedStateMachine):
    """A wallet over a real database, beside the plainest model of one."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = sa.create_engine("sqlite://").connect()
        metadata.create_all(self.connection)
        self.connection.execute(
            sa.insert(accounts).values(
                account_sid=ACCOUNT,
                name="n",
                is_active=True,
                kyc_complete=True,
                max_cps=1,
                max_calls=1,
                webhook_secret="",
                created_at=0,
                updated_at=0,
                revision=0,
            )
        )
        wallet.create(self.connection, ACCOUNT, NOW)
        self.balance = 0
        self.held: dict[str, int] = {}
        self.charged: dict[str, int] = {}
        self.references: set[str] = set()
        self.paid: set[str] = set()

    def teardown(self) -> None:
        self.connection.close()

    @property
    def available(self) -> int:
        return self.balance - sum(self.held.values())

    @rule(amount=st.integers(min_value=1, max_value=1000), reference=st.sampled_from([None, "r1", "r2"]))
    def top_up(self, amount: int, reference: str | None) -> None:
        if reference not in self.references:
            self.balance += amount
        if reference is not None:
            self.references.add(reference)
        assert wallet.top_up(self.connection, ACCOUNT, amount, NOW, reference=reference) == self.balance

    @rule(call=CALLS, amount=AMOUNTS)
    def reserve(self, call: str, amount: int) -> None:
        if call in self.charged:
            return  # A call that was settled is over.
        refusal = wallet.reserve(self.connection, ACCOUNT, call, amount, NOW)
        if call in self.held:
            assert refusal is None
        elif amount <= self.available:
            assert refusal is None
            self.held[call] = amount
        else:
            assert isinstance(refusal, InsufficientBalance)

    @rule(call=CALLS, total=AMOUNTS)
    def extend(self, call: str, total: int) -> None:
        refusal = wallet.extend(self.connection, call, total, NOW)
        if call not in self.held:
            assert isinstance(refusal, NotFound)
        elif total - self.held[call] > self.available:
            assert isinstance(refusal, InsufficientBalance)
        else:
            assert refusal is None
            self.held[call] = max(self.held[call], total)

    @rule(call=CALLS, charge=AMOUNTS)
    def settle(self, call: str, charge: int) -> None:
        charged = wallet.settle(self.connection, call, charge, NOW)
        if call not in self.held:
            assert charged == self.charged.get(call, 0)
            return
        expected = min(charge, self.held[call] + self.available)
        assert charged == expected
        del self.held[call]
        self.charged[call] = charged
        self.balance -= charged

    @rule(amount=AMOUNTS, reference=st.sampled_from(["r1", "n1", "n2", "n3"]))
    def charge(self, amount: int, reference: str) -> None:
        answer = wallet.charge(
            self.connection, ACCOUNT, amount, NOW, kind="number_purchase", reference=reference
        )
        if reference in self.paid:
            assert answer == self.balance
        elif reference in self.references:
            assert isinstance(answer, Conflict)
        elif amount > self.available:
            assert isinstance(answer, InsufficientBalance)
        else:
            self.balance -= amount
            self.paid.add(reference)
            self.references.add(reference)
            assert answer == self.balance

    @invariant()
    def the_books_agree(self) -> None:
        found = wallet.get(self.connection, ACCOUNT)
        assert found is not None
        assert found.balance_paise == self.balance == wallet.ledger_sum(self.connection, ACCOUNT)
        assert found.reserved_paise == sum(self.held.values())
        assert found.available_paise >= 0
        held = {item.call_sid: item.amount_paise for item in wallet.open_reserves(self.connection)}
        assert held == self.held


WalletMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestWallet = WalletMachine.TestCase
