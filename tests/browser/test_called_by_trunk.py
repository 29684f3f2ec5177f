"""A page of the console that a SIP endpoint of another make calls through a trunk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.test_phone import LISTEN_FOR_KEYS, Telephone, telephone
from tests.interop.conftest import HELD_IN_SILENCE, number, trust
from tests.interop.peers import Pjsua
from tests.interop.test_rtcp import LONG_ENOUGH_S
from tests.sipp.exchange import Exchange
from tests.support.browser import HEARD, Browsing
from tests.support.needs import needs_pjsua
from tests.support.server_process import wait_until

pytestmark = [
    pytest.mark.long("a real browser, and a real endpoint"),
    needs_pjsua,
]

CALLER_HZ = 500
# The loudest frequency that the newest connection receives.
_LOUDEST_HZ = """async () => {
    const context = new AudioContext();
    const analyser = new AnalyserNode(context, { fftSize: 8192, smoothingTimeConstant: 0 });
    const { track } = window.connections.at(-1).getReceivers()[0];
    context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
    await new Promise((resolve) => setTimeout(resolve, 400));
    const bins = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(bins);
    const rate = context.sampleRate;
    await context.close();
    return bins.indexOf(Math.max(...bins)) * rate / analyser.fftSize;
}"""


@contextmanager
def called_page(browsing: Browsing, exchange: Exchange) -> Iterator[Telephone]:
    """The telephone of the console, to which calls to the number lead."""
    exchange.bind({"target": "browser", "identity": "desk", "timeout": 60})
    with telephone(browsing, exchange.server, exchange.account.api_key) as phone:
        phone.page.add_init_script(LISTEN_FOR_KEYS)
        phone.page.reload()
        phone.page.get_by_label("Name", exact=True).fill("desk")
        phone.press("Be called")
        phone.shows("Can be called as desk.")
        yield phone


def hears_nothing_more(phone: Telephone) -> bool:
    """Return True if a second of what the page hears is silent."""
    before = float(phone.page.evaluate(HEARD))
    phone.page.wait_for_timeout(1000)
    return float(phone.page.evaluate(HEARD)) < before + 1e-5


def test_an_endpoint_calls_the_page_with_digits_and_hold_both_ways(
    browsing: Browsing, tmp_path: Path
) -> None:
    with (
        Exchange(tmp_path / "exchange", HELD_IN_SILENCE) as exchange,
        Pjsua(tmp_path / "alice", "alice", tone_hz=CALLER_HZ) as caller,
        called_page(browsing, exchange) as phone,
    ):
        trust(exchange, caller.port)
        caller.do("call", call="c", uri=number(exchange))
        caller.wait("state", state="EARLY", code=180)
        phone.shows("calls.")
        phone.press("Answer")
        caller.wait("state", state="CONFIRMED")
        phone.shows("In a call with")
        caller.wait_for_audio("c")
        answered_s = time.monotonic()
        assert wait_until(lambda: abs(phone.page.evaluate(_LOUDEST_HZ) - CALLER_HZ) < 10, 30.0)

        phone.press("4", "2", "#")
        assert [caller.wait("digit")["digit"] for _ in range(3)] == ["4", "2", "#"]
        caller.do("digits", call="c", digits="17*")
        assert wait_until(lambda: len(phone.page.evaluate("window.keys")) >= 3, 30.0)
        assert phone.page.evaluate("window.keys") == "17*"

        phone.press("Hold")
        phone.shows("is on hold.")
        caller.wait_for_silence("c")
        phone.press("Hold")
        phone.shows("In a call with")
        caller.wait_for_audio("c")
        phone.hears()

        caller.do("hold", call="c")
        assert wait_until(lambda: hears_nothing_more(phone), 30.0)
        caller.do("resume", call="c")
        phone.hears()
        caller.wait_for_audio("c")

        # The browser reports what it receives by RTCP, within SRTP, also of a report of ours.
        phone.page.wait_for_timeout(max(0.0, 1000 * (answered_s + LONG_ENOUGH_S - time.monotonic())))
        caller.do("hangup", call="c")
        caller.wait("state", call="c", state="DISCONNECTED")
        phone.shows("has ended")
        exchange.assert_clean()
        ((call,), _) = exchange.calls(per_page=1)
        assert (call["status"], call["hangup_source"]) == ("completed", "caller")
        legs = {leg["leg"]: leg for leg in call["quality"]["legs"]}
        assert legs["b"]["encrypted"] and legs["b"]["sent"]["jitter_ms"] is not None, legs
        assert legs["b"]["rtt_ms"] is not None and legs["a"]["received"]["mos"] is not None, legs
