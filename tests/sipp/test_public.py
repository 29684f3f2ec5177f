"""Calls of a server behind a 1:1 NAT: peers are told its public addresses, and ask for them in the call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sipp.exchange import Exchange
from tests.support.sipp_run import Load


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    public = {"TRUNKLINE_SIP_ADVERTISE": "203.0.113.5", "TRUNKLINE_RTP_ADVERTISE": "203.0.113.6"}
    with Exchange(tmp_path_factory.mktemp("public"), public) as running:
        yield running


def test_both_parties_are_told_the_public_addresses(clean: Exchange) -> None:
    callee = clean.callee("uas_public.xml", Load(pause_ms=0))
    clean.finish(clean.caller("uac_public.xml", load=Load(pause_ms=300)), callee)
    [call], _ = clean.calls(per_page=1)
    ended = clean.wait_for_status(call["call_sid"], "completed")
    assert ended["hangup_cause"] == "NORMAL_CLEARING"
