"""
The ledger oracle: far ends, a receiver of webhooks, and a comparison of what all parties know of each call.

It shares no code with the product. `stage` runs it beside a server; `reconcile` finds what does not agree.
"""

from tests.faults.oracle.evidence import Discrepancy, Evidence, Hook, Leg, Tariff
from tests.faults.oracle.explain import assert_nothing_lost
from tests.faults.oracle.reconcile import reconcile

__all__ = ["Discrepancy", "Evidence", "Hook", "Leg", "Tariff", "assert_nothing_lost", "reconcile"]
