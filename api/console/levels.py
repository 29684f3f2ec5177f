"""
Level and loss of the legs of active calls, for the pages that show them.

Levels are measured by the engine while somebody looks, and read for all pages of an account at once. What
has not changed since is not told again.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from callcontrol.calls.aio.runner import CallRunner
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.records.journal import CallJournal
from callcontrol.ids import LegId
from media.types import StreamMeter

__all__ = ["MOST_MEASURED", "CallLevels", "Levels"]

MOST_MEASURED: Final = 100
"""Newest calls of a page that are measured, be it of an account or of all; a leg costs 0.02 % of a core."""

_MOST_OF_ALL: Final = 250
_FLOOR_DB: Final = 60
_STEP_DB: Final = 2
# With a look each 1.2 s: 10 s, which has two reports of the far end.
_LOOKS: Final = 9

LegLevel = tuple[LegId, int, float | None, float | None]
"""Leg, level above -60 dB in decibels, and loss of what it sent and of what it was sent, in percent."""

CallLevels = Mapping[str, list[LegLevel]]
"""Levels of the legs by call."""


class _Watched:
    """An active call that is measured: the latest figures of its legs, and what was told of them."""

    def __init__(self, runner: CallRunner) -> None:
        self.runner = runner
        self.told: list[LegLevel] | None = None
        self._looks: dict[LegId, deque[StreamMeter]] = {}

    def look(self, note: Callable[[str, float, float], None]) -> list[LegLevel] | None:
        """Return the levels of its legs, and note them; None if they are those told before."""
        meters = self.runner.media.meters()
        self._looks = {leg: self._looks.get(leg) or deque(maxlen=_LOOKS) for leg in meters}
        levels: list[LegLevel] = []
        for leg, meter in meters.items():
            looks = self._looks[leg]
            looks.append(meter)
            if meter.level_db is not None and meter.sent_level_db is not None:
                name = "a" if leg == self.runner.media.first_leg else "b"
                note(name, _dbfs(meter.level_db), _dbfs(meter.sent_level_db))
            levels.append((leg, _level(meter.level_db), _received_loss(looks), _sent_loss(looks)))
        if levels == self.told:
            return None
        self.told = levels
        return levels


class Levels:
    """
    Levels of the active calls of this process, which the journal of calls keeps.

    Attributes:
        changed: Levels that have changed at the latest look, of all calls.
    """

    def __init__(self, calls: CallControl, journal: CallJournal) -> None:
        self.changed: Mapping[str, list[LegLevel]] = {}
        self._calls = calls
        self._journal = journal
        self._watched: dict[str, _Watched] = {}

    @property
    def measured(self) -> int:
        """Number of calls that are measured."""
        return len(self._watched)

    def look(
        self, accounts: Collection[str | None], calls: Collection[str] = ()
    ) -> Mapping[str | None, CallLevels]:
        """
        Return the levels that have changed, by account; None stands for all accounts together.

        Those of ``calls`` are measured, too, and no others any more.
        """
        now_s, changed = time.time(), dict[str, list[LegLevel]]()
        found: dict[str | None, dict[str, list[LegLevel]]] = {}
        watched, counts = dict[str, _Watched](), Counter[str | None]()
        for runner in reversed(list(self._calls.all_active)):
            call_sid = runner.record.call_sid
            looking = [
                account_sid
                for account_sid in (runner.record.account_sid, None)
                if account_sid in accounts and counts[account_sid] < MOST_MEASURED
            ]
            if not looking and call_sid not in calls:
                continue
            if len(watched) >= _MOST_OF_ALL:
                break
            counts.update(looking)
            call = watched[call_sid] = self._watched.get(call_sid) or _Watched(runner)
            self._watched.pop(call_sid, None)
            levels = call.look(partial(self._note, call_sid, now_s))
            if levels is not None:
                changed[call_sid] = levels
                for account_sid in looking:
                    found.setdefault(account_sid, {})[call_sid] = levels
        self.stop()
        self._watched, self.changed = watched, changed
        return found

    def _note(self, call_sid: str, at_s: float, leg: str, received_dbfs: float, sent_dbfs: float) -> None:
        self._journal.note_level(call_sid, leg, at_s, received_dbfs, sent_dbfs)

    def told_of(self, call_sid: str) -> list[LegLevel] | None:
        """Return the levels of a call that were told last; None if it is not measured."""
        call = self._watched.get(call_sid)
        return None if call is None else call.told

    def tell_again(self, account_sid: str | None) -> None:
        """Tell the levels of an account's calls, or of all, the next time, also if they have not changed."""
        for call in self._watched.values():
            if account_sid in (None, call.runner.record.account_sid):
                call.told = None

    def stop(self) -> None:
        """Measure nothing any more."""
        watched, self._watched = self._watched, {}
        for call in watched.values():
            call.runner.media.stop_meters()


def _dbfs(level_db: int) -> float:
    return -float(min(level_db, _FLOOR_DB))


def _level(level_db: int | None) -> int:
    if level_db is None:
        return 0
    return max(0, _FLOOR_DB - level_db) // _STEP_DB * _STEP_DB


def _received_loss(looks: Sequence[StreamMeter]) -> float | None:
    first, last = looks[0], looks[-1]
    lost = max(0, last.lost - first.lost)
    return _percent(lost, last.packets_in - first.packets_in + lost)


def _sent_loss(looks: Sequence[StreamMeter]) -> float | None:
    first, last = looks[0], looks[-1]
    if last.sent_lost is None:
        return None
    return _percent(max(0, last.sent_lost - (first.sent_lost or 0)), last.packets_out - first.packets_out)


def _percent(lost: int, expected: int) -> float | None:
    return round(min(100.0, 100.0 * lost / expected), 1) if expected > 0 else None
