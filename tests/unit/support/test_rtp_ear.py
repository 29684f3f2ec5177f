"""The ear of the acceptance tests: tells packets that came late from packets that were never sent."""

from __future__ import annotations

import os
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from tests.acceptance.clients.rtp import FRAME_S, Packet, assert_unbroken

_SPOKEN_S = 4.0


def stream(*, pause_s: float = 0.0, late_s: float = 0.0, skips: bool = False) -> Any:
    """Stream of 4 s that pauses after 2 s, for good or until what is due follows; its clock may go on."""
    packets, at_s = [], 0.0
    for number in range(round(_SPOKEN_S / FRAME_S)):
        due_s = number * FRAME_S
        at_s = max(at_s, due_s)
        if pause_s and due_s >= 2.0:
            at_s = due_s + pause_s
        elif 2.0 <= due_s < 2.0 + late_s:
            at_s = 2.0 + late_s
        ticks = 160 * number + (round(8000 * pause_s) if skips and due_s >= 2.0 else 0)
        packets.append(Packet(at_s, 0, False, number, ticks, 7, b"\xff" * 160))
    return SimpleNamespace(packets=packets)


def end_s(rtp: Any) -> float:
    return float(rtp.packets[-1].at_s)


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has nothing else to do."""
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))


@pytest.mark.parametrize("late_s", [0.0, 0.05, 0.061, 0.1, 0.3, 0.48])
def test_what_comes_late_and_all_at_once_is_no_gap(late_s: float) -> None:
    rtp = stream(late_s=late_s)
    assert_unbroken(rtp, 0.0, end_s(rtp))


@pytest.mark.parametrize("pause_s", [0.045, 0.06, 0.1, 0.2])
def test_what_never_comes_is_a_gap(pause_s: float) -> None:
    rtp = stream(pause_s=pause_s)
    assert max(later.at_s - earlier.at_s for earlier, later in pairwise(rtp.packets)) > 0.06
    with pytest.raises(AssertionError, match="nothing for"):
        assert_unbroken(rtp, 0.0, end_s(rtp))


def test_a_machine_that_stood_still_for_long_is_a_gap() -> None:
    rtp = stream(late_s=0.7)
    with pytest.raises(AssertionError, match="nothing for 0.7"):
        assert_unbroken(rtp, 0.0, end_s(rtp))


@pytest.mark.parametrize(("pause_s", "forgiven"), [(0.3, True), (0.6, False)])
def test_a_busy_machine_is_forgiven_short_pauses(
    pause_s: float, forgiven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (100.0, 0.0, 0.0))
    # The clock of the stream goes on meanwhile: it may lag by a quarter of a second at most.
    rtp = stream(pause_s=pause_s, skips=True)
    if forgiven:
        assert_unbroken(rtp, 0.0, end_s(rtp))
    else:
        with pytest.raises(AssertionError, match="nothing for"):
            assert_unbroken(rtp, 0.0, end_s(rtp))
