"""The first visit in a real browser: three clicks to a call that talks, whatever happens in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from fixtures.agent import DemoAgent
from media.audio import tone
from tests.acceptance.conftest import customers_of, start_server
from tests.acceptance.stage import Customer
from tests.browser.far_ends import served
from tests.support.browser import HEARD, KEEP, Browsing, violations
from tests.support.levels import tone_level_dbfs
from tests.support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.long("real calls of a real browser")

SAID_HZ, ANSWERED_HZ = 1000, 700

# A microphone that says one tone all the time, and an ear that knows which of two it hears.
_EAR = (
    f"const SAID = {SAID_HZ}, ANSWERED = {ANSWERED_HZ};"
    """
    navigator.mediaDevices.getUserMedia = async () => {
        const context = new AudioContext();
        const [voice, volume] = [context.createOscillator(), context.createGain()];
        voice.frequency.value = SAID;
        volume.gain.value = 0.3;
        const microphone = context.createMediaStreamDestination();
        voice.connect(volume).connect(microphone);
        voice.start();
        return microphone.stream;
    };
    window.heard = {};
    const Kept = window.RTCPeerConnection;
    window.RTCPeerConnection = class extends Kept {
        constructor(...given) {
            super(...given);
            this.addEventListener("track", ({ track }) => listen(track));
        }
    };
    function listen(track) {
        const context = new AudioContext();
        const analyser = context.createAnalyser();
        analyser.fftSize = 4096;
        context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
        const levels = new Float32Array(analyser.frequencyBinCount);
        const of = (hz) => levels[Math.round(hz * analyser.fftSize / context.sampleRate)];
        setInterval(() => {
            analyser.getFloatFrequencyData(levels);
            for (const hz of [SAID, ANSWERED]) {
                // Loud, and far above what is beside it: a tone, and no voice.
                const beside = Math.max(of(hz - 150), of(hz + 150));
                if (of(hz) > -60 && of(hz) > beside + 25) window.heard[hz] = true;
            }
        }, 50);
    }
"""
)


def visit(browsing: Browsing, server: ServerProcess, key: str, page: Page) -> None:
    """Sign in, to the page of the first visit, with a microphone and an ear."""
    page.add_init_script(KEEP)
    page.add_init_script(_EAR)
    browsing.sign_in(page, server.url, key)
    assert page.url == f"{server.url}/console/first"


def click_to_call(page: Page, does: str) -> None:
    """Choose this browser and what happens, and call: three clicks."""
    page.get_by_text("Your browser").click()
    page.get_by_text(does).click()
    page.get_by_role("button", name="3. Call").click()
    expect(page.locator("#first-state")).to_contain_text("You are talking with it")


def hears(page: Page, hz: int) -> None:
    """Wait until the browser hears a tone."""
    assert wait_until(lambda: bool(page.evaluate(f"Boolean(window.heard[{hz}])")), 30.0)


def hang_up(page: Page) -> None:
    """End the call, and wait for its end on the axis."""
    page.get_by_role("button", name="Hang up").click()
    expect(page.locator("#first-state")).to_contain_text("ended")
    expect(page.locator("#ladder")).to_contain_text("BYE")
    assert violations(page) == []


def test_a_prompt_is_heard(browsing: Browsing, server: ServerProcess, customer: Customer, key: str) -> None:
    customer.lease()
    with browsing.person() as page:
        visit(browsing, server, key, page)
        click_to_call(page, "Plays a prompt")
        assert wait_until(lambda: float(page.evaluate(HEARD)) > 1e-3, 30.0)
        expect(page.locator("#ladder")).to_contain_text("play")
        # A prompt is no echo, and the ear knows the difference.
        assert page.evaluate("window.heard") == {}
        # It ends by itself.
        expect(page.locator("#first-state")).to_contain_text("ended", timeout=60_000)
        assert violations(page) == []


def test_the_echo_agent_says_what_the_browser_says(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    customer.lease()
    with browsing.person() as page:
        visit(browsing, server, key, page)
        click_to_call(page, "the echo agent")
        assert '"stream_url":"ws://127.0.0.1:' in page.locator("#first code").inner_text().replace(" ", "")
        hears(page, SAID_HZ)
        for told in ("stream", "agent.mark", "mark.played", "first echo"):
            expect(page.locator("#ladder")).to_contain_text(told)
        hang_up(page)


def test_an_agent_of_ones_own_hears_the_browser_and_is_heard(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    customer.lease()
    with browsing.person() as page, served(DemoAgent(tone(float(ANSWERED_HZ), 3000))) as agent:
        visit(browsing, server, key, page)
        page.get_by_text("Streams to your own agent").click()
        page.get_by_label("URL of your agent").fill(agent.url)
        assert agent.url in page.locator("#first code").inner_text()
        click_to_call(page, "Streams to your own agent")
        hears(page, ANSWERED_HZ)
        assert page.evaluate(f"window.heard[{SAID_HZ}]") is None, "this agent is no echo"
        [session] = agent.sessions
        assert wait_until(lambda: tone_level_dbfs(bytes(session.heard[-8000:]), float(SAID_HZ)) > -40.0, 30.0)
        hang_up(page)
        assert session.problems == []


def test_an_agent_that_is_not_there_is_told(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    customer.lease()
    with browsing.person(errors=["400"]) as page:
        visit(browsing, server, key, page)
        page.get_by_text("Streams to your own agent").click()
        page.get_by_label("URL of your agent").fill("http://no-socket.example/")
        page.get_by_role("button", name="3. Call").click()
        expect(page.locator("#h-stream_url")).to_contain_text("ws://")


@pytest.fixture(scope="module")
def closed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that connects to no private address, as in production."""
    yield from start_server(tmp_path_factory, ALLOW_PRIVATE_DESTINATIONS="0")


def test_a_party_of_the_sandbox_talks_with_the_echo_agent(
    browsing: Browsing, closed_server: ServerProcess
) -> None:
    customer = customers_of(closed_server)()
    customer.lease()
    with browsing.person() as page:
        browsing.sign_in(page, closed_server.url, customer.key_of("all", "*"))
        page.get_by_text("answers and plays a tone").click()
        page.get_by_text("the echo agent").click()
        page.get_by_role("button", name="3. Call").click()
        page.wait_for_url("**/console/first?call=*")
        expect(page.locator("#ladder")).to_contain_text("mark.played")
        page.get_by_role("link", name="Open the page of the call").click()
        page.get_by_role("button", name="Hang up").click()
        expect(page.locator("#ladder")).to_contain_text("BYE")
