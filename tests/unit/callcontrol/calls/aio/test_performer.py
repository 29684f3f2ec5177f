"""The table of performers of effects."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import Counter

from callcontrol.calls import effects
from callcontrol.calls.aio.performer import EFFECTS, TABLES
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.instructions import AskWebhook, StopAsking

PLUGGED_IN = (AskWebhook, StopAsking)
"""Effects that a feature above the calls performs."""


def test_every_effect_has_exactly_one_performer() -> None:
    topics = [
        importlib.import_module(f"{effects.__name__}.{topic.name}")
        for topic in pkgutil.iter_modules(effects.__path__)
    ]
    known = {
        found
        for topic in topics
        for _, found in inspect.getmembers(topic, inspect.isclass)
        if issubclass(found, Effect) and found is not Effect
    }
    performers = Counter([*(effect for _, table in TABLES for effect in table), *PLUGGED_IN])
    assert len(known) > 60
    assert set(performers) == {*EFFECTS, *PLUGGED_IN} == known
    assert set(performers.values()) == {1}
