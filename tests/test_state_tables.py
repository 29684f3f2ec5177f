"""Every state machine is a complete table: each (state, event) has a rule or is ignored on purpose."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SEARCHED = ("sip", "media", "callcontrol")

Pair = tuple[IntEnum, Enum]
Table = tuple[str, Mapping[Pair, Any], frozenset[Pair], frozenset[Pair]]


def tables() -> Iterator[Table]:
    """
    All tables of the sources: (name, rules, ignored, every pair that can be).

    A table is a pair of names RULES and IGNORED with the same prefix, if any. Where two machines share an
    enumeration of events, INPUTS with that prefix says which of them each can be given.
    """
    for package in SEARCHED:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "RULES" not in path.read_text():
                continue
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            module = importlib.import_module(name)
            for attribute in vars(module):
                if attribute.endswith("RULES"):
                    prefix = attribute.removesuffix("RULES")
                    ignored = getattr(module, f"{prefix}IGNORED", None)
                    if isinstance(ignored, set | frozenset):
                        rules = module.__dict__[attribute]
                        state, event = next(iter(rules))
                        events = getattr(module, f"{prefix}INPUTS", type(event))
                        every = frozenset((s, e) for s in type(state) for e in events)
                        yield f"{name}.{attribute}", rules, frozenset(ignored), every


TABLES = list(tables())


def test_the_known_machines_are_among_the_tables() -> None:
    names = {name for name, *_ in TABLES}
    # Those of the transactions are in C++: `transactions.hpp` does not compile unless they are complete.
    assert {"sip.session.inbound.RULES", "sip.session.outbound.RULES"} <= names
    assert {
        "callcontrol.calls.call.RULES",
        "callcontrol.calls.steps.bridge.RULES",
        "callcontrol.calls.dialer.RULES",
    } <= names
    assert {"callcontrol.calls.leg.INBOUND_RULES", "callcontrol.calls.leg.OUTBOUND_RULES"} <= names


def test_only_the_one_helper_runs_tables() -> None:
    sources = (path for package in SEARCHED for path in sorted((ROOT / package).rglob("*.py")))
    assert [str(path) for path in sources if "RULES.get(" in path.read_text()] == []


@pytest.mark.parametrize("table", TABLES, ids=[name for name, *_ in TABLES])
def test_rules_and_ignored_pairs_cover_every_pair_once(table: Table) -> None:
    name, rules, ignored, every = table
    assert set(rules) & ignored == set(), f"{name}: pairs both ruled and ignored"
    assert every - set(rules) - ignored == set(), f"{name}: pairs that nobody thought of"
    assert (set(rules) | ignored) - every == set(), f"{name}: pairs that cannot be"


# What comes and goes for as long as the process lives; everything else has an end.
CYCLES = {
    "callcontrol.trunks.gateway_health.RULES",
    "callcontrol.messaging.template_states.RULES",
    "callcontrol.numbers.renewal.RULES",
    "media.audio.circuit_breaker.RULES",
}

# The few steps back of machines that otherwise go forward only: an agent has reconnected.
RETURNS = {"callcontrol.calls.steps.agent_stream.RULES": ["RECONNECTING"]}


@pytest.mark.parametrize("table", TABLES, ids=[name for name, *_ in TABLES])
def test_states_never_go_back(table: Table) -> None:
    name, rules, _, _ = table
    if name in CYCLES:
        return
    back = [pair for pair, rule in rules.items() if rule[0] < pair[0]]
    assert [state.name for state, _ in back] == RETURNS.get(name, []), name
