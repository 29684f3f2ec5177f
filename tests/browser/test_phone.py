"""The telephone of the console in a real browser with a microphone that beeps."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Error, Page, expect

from tests.acceptance.stage import Customer
from tests.support.browser import DESKTOP, HEARD, KEEP, PHONE, Browsing, Scheme, picture, violations
from tests.support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.long("real calls of a real browser")

ECHO, BUSY = "+919800000001", "+919800000003"


_PACKETS = HEARD.replace("totalAudioEnergy", "packetsReceived")
# A browser plays the tones of telephone events that it receives, and tells a page of them by nothing else.
LISTEN_FOR_KEYS = """
    window.keys = "";
    const ROWS = [697, 770, 852, 941], COLUMNS = [1209, 1336, 1477, 1633];
    const KEYS = ["123A", "456B", "789C", "*0#D"];
    const Kept = window.RTCPeerConnection;
    window.RTCPeerConnection = class extends Kept {
        constructor(...given) {
            super(...given);
            this.addEventListener("track", ({ track }) => listenForKeys(track));
        }
    };
    function listenForKeys(track) {
        const context = new AudioContext();
        const analyser = context.createAnalyser();
        analyser.smoothingTimeConstant = 0;
        // A line for each 12 Hz keeps the tones of neighbours apart.
        analyser.fftSize = 4096;
        context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
        const levels = new Float32Array(analyser.frequencyBinCount);
        const of = (hz) => levels[Math.round(hz * analyser.fftSize / context.sampleRate)];
        const loudest = (tones) => {
            const sorted = [...tones].sort((one, other) => of(other) - of(one));
            return of(sorted[0]) > -60 && of(sorted[0]) > of(sorted[1]) + 10 ? tones.indexOf(sorted[0]) : -1;
        };
        let down = "", seenMs = 0;
        setInterval(() => {
            analyser.getFloatFrequencyData(levels);
            const [row, column] = [loudest(ROWS), loudest(COLUMNS)];
            const key = row < 0 || column < 0 ? "" : KEYS[row][column];
            if (key && key !== down) window.keys += key;
            if (key) [down, seenMs] = [key, performance.now()];
            else if (performance.now() > seenMs + 200) down = "";
        }, 10);
    }
"""
# What a restart changes.
_PATH = r"""() => /a=ice-ufrag:(\S+)/.exec(window.connections.at(-1).currentLocalDescription.sdp)[1]"""


@dataclass
class Telephone:
    """The page."""

    page: Page

    def shows(self, text: str) -> None:
        """Wait until its state has a text."""
        expect(self.page.locator("#phone-state")).to_contain_text(text, timeout=30_000)

    def press(self, *names: str) -> None:
        """Press buttons."""
        for name in names:
            self.page.get_by_role("button", name=name, exact=True).click()

    def call(self, to: str) -> None:
        """Type whom to call, and call."""
        self.page.get_by_label("Number or address").fill(to)
        self.press("Call")

    def hears(self) -> None:
        """Wait until more is heard than before."""
        before = float(self.page.evaluate(HEARD))
        assert wait_until(lambda: float(self.page.evaluate(HEARD)) > before + 1e-4, 30.0)


@contextmanager
def telephone(
    browsing: Browsing, server: ServerProcess, key: str, *, errors: tuple[str, ...] = (), **person: Any
) -> Iterator[Telephone]:
    """Open the page, signed in, until the block ends."""
    with browsing.person(errors=errors, **person) as page:
        page.add_init_script(KEEP)
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/phone")
        yield Telephone(page)


@dataclass
class Network:
    """The network of a page, from before its first connection: that of requests, and that of packets."""

    page: Page

    def __post_init__(self) -> None:
        self._session = self.page.context.new_cdp_session(self.page)
        self._session.send("Network.enable")
        self._set(offline=False, loss=0)

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Cut it until the block ends."""
        self._set(offline=True, loss=100)
        try:
            yield
        finally:
            self._set(offline=False, loss=0)

    def _set(self, *, offline: bool, loss: int) -> None:
        free = {"latency": 1, "downloadThroughput": -1, "uploadThroughput": -1}
        self._session.send(
            "Network.emulateNetworkConditions", {"offline": offline, "packetLoss": loss, **free}
        )


@dataclass
class Keys:
    """A webhook that asks for two digits, and then hangs up."""

    url: str = ""
    digits: list[str] = field(default_factory=list)


@contextmanager
def keys_webhook() -> Iterator[Keys]:
    keys = Keys()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            verbs: list[dict[str, Any]] = [
                {"verb": "gather", "num_digits": 2, "timeout": 60, "action_url": f"{keys.url}keys"}
            ]
            if self.path.endswith("/keys"):
                keys.digits.append(body["data"]["digits"])
                verbs = [{"verb": "hangup"}]
            told = json.dumps(verbs).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        keys.url = f"http://127.0.0.1:{httpd.server_address[1]}/"
        thread = Thread(target=httpd.serve_forever)
        thread.start()
        try:
            yield keys
        finally:
            httpd.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["light", "dark on a telephone's screen"]
)
def test_a_party_of_the_sandbox_is_called_and_heard(
    browsing: Browsing,
    server: ServerProcess,
    customer: Customer,
    key: str,
    scheme: Scheme,
    size: tuple[int, int],
) -> None:
    number, _ = customer.lease()
    with telephone(browsing, server, key, scheme=scheme, size=size) as phone:
        phone.shows("No call.")
        assert violations(phone.page) == []
        phone.call(ECHO)
        phone.shows(f"In a call with {ECHO}.")
        phone.hears()
        assert violations(phone.page) == []
        if size == DESKTOP:
            picture(phone.page, "phone", 700)
        wider = phone.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} px wider than the screen"
        phone.press("Mute")
        expect(phone.page.get_by_role("button", name="Mute")).to_have_attribute("aria-pressed", "true")
        phone.press("Mute", "Hold")
        phone.shows(f"{ECHO} is on hold.")
        phone.press("Hold")
        phone.shows(f"In a call with {ECHO}.")
        phone.hears()
        phone.press("Hang up")
        phone.shows("has ended")
        phone.page.get_by_role("link", name="Page of the call").click()
        expect(phone.page.locator("#ladder")).to_contain_text("BYE")
    (call,) = server.request("GET", "/v1/calls", key).data
    assert (call["direction"], call["from"], call["to"]) == ("inbound", number, ECHO)


def test_digits_reach_the_verbs_of_a_number(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with keys_webhook() as keys:
        number, _ = customer.lease({"target": "webhook", "webhook_url": keys.url})
        with telephone(browsing, server, key) as phone:
            phone.call(number)
            phone.shows("In a call with")
            phone.press("4", "2")
            phone.shows("has ended: hung up.")
        assert keys.digits == ["42"]


def test_a_call_from_a_trunk_rings_in_the_page_and_is_answered(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, _ = customer.lease({"target": "browser", "identity": "desk", "timeout": 60})
    with telephone(browsing, server, key) as phone:
        phone.page.get_by_label("Name", exact=True).fill("desk")
        phone.press("Be called")
        phone.shows("Can be called as desk.")
        placed = {"to": number, "behaviour": "tone", "hangup_after_seconds": 4}
        call_sid = server.request("POST", "/v1/sandbox/inbound", key, placed).data["call_sid"]
        phone.shows("calls.")
        phone.press("Answer")
        phone.shows("In a call with")
        phone.hears()
        # The caller hangs up.
        phone.shows("has ended")
    call = server.request("GET", f"/v1/calls/{call_sid}", key).data
    assert (call["direction"], call["to"], call["status"]) == ("inbound", number, "completed")


def test_digits_of_a_trunk_reach_the_page_as_tones(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, _ = customer.lease({"target": "browser", "identity": "desk", "timeout": 60})
    with telephone(browsing, server, key) as phone:
        phone.page.add_init_script(LISTEN_FOR_KEYS)
        phone.page.reload()
        phone.page.get_by_label("Name", exact=True).fill("desk")
        phone.press("Be called")
        phone.shows("Can be called as desk.")
        # The events of the sandbox: no tone is in its audio.
        placed = {"to": number, "behaviour": "listen", "send_digits": "ww5w#w1", "hangup_after_seconds": 20}
        server.request("POST", "/v1/sandbox/inbound", key, placed)
        phone.shows("calls.")
        phone.press("Answer")
        phone.shows("In a call with")
        wait_until(lambda: len(phone.page.evaluate("window.keys")) >= 3, 20.0)
        assert phone.page.evaluate("window.keys") == "5#1"
        phone.press("Hang up")
        phone.shows("has ended")


def test_a_network_that_is_gone_for_five_seconds_ends_no_call(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    customer.lease()
    lost = ("ERR_INTERNET_DISCONNECTED", "Failed to load resource")
    with telephone(browsing, server, key, errors=lost) as phone:
        network = Network(phone.page)
        phone.call(ECHO)
        phone.shows(f"In a call with {ECHO}.")
        phone.hears()
        with network.gone():
            before, path = phone.page.evaluate(_PACKETS), phone.page.evaluate(_PATH)
            began_ms = phone.page.evaluate("performance.now()")
            phone.page.wait_for_function("since => performance.now() > since + 5000", arg=began_ms)
            assert phone.page.evaluate(_PACKETS) < before + 50, "it was not cut"
        # The module asks for another path, whether or not the connection has found itself lost by then.
        assert wait_until(lambda: phone.page.evaluate(_PATH) != path, 20.0)
        phone.hears()
        phone.shows(f"In a call with {ECHO}.")
        phone.press("Hang up")
        phone.shows("has ended")


@pytest.mark.parametrize("leaves", ["closed", "crashed"])
def test_a_page_that_is_left_ends_its_call_within_ten_seconds(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str, leaves: str
) -> None:
    customer.lease()
    with telephone(browsing, server, key) as phone:
        phone.call(ECHO)
        phone.shows(f"In a call with {ECHO}.")
        (call,) = server.request("GET", "/v1/calls", key).data
        path = f"/v1/calls/{call['call_sid']}"
        left_s = time.monotonic()
        if leaves == "closed":
            phone.page.close()
        else:
            # It tells the server nothing, as a telephone that is switched off.
            with pytest.raises(Error, match="crash"):
                phone.page.goto("chrome://crash")
        assert wait_until(lambda: server.request("GET", path, key).data["status"] == "completed", 10.0)
        assert time.monotonic() - left_s < 10.0
    sent = [
        entry["message"].split()[0] for entry in server.request("GET", f"{path}/trace", key).data["messages"]
    ]
    # Of the page to the server, and of the server to the party.
    assert sent.count("BYE") == 2, sent


def test_what_is_refused_is_said_and_the_next_call_is_made(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    customer.lease()
    with telephone(browsing, server, key, errors=("400", "403")) as phone:
        phone.call("<b>12</b>")
        problem = phone.page.get_by_role("alert")
        expect(problem).to_contain_text("to must be")
        phone.page.get_by_label("Name", exact=True).fill("1 wrong")
        phone.call(ECHO)
        expect(problem).to_contain_text("must be 1 to 64 letters")
        phone.page.get_by_label("Name", exact=True).fill("asha")
        phone.call(BUSY)
        phone.shows(f"The call with {BUSY} has ended")
        expect(problem).to_be_hidden()


def test_one_page_calls_another_which_refuses_and_then_answers(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with telephone(browsing, server, key) as asha, telephone(browsing, server, key) as ravi:
        asha.page.get_by_label("Name", exact=True).fill("asha")
        asha.press("Be called")
        asha.shows("Can be called as asha.")
        ravi.page.get_by_label("Name", exact=True).fill("ravi")
        ravi.call("browser:asha")
        asha.shows("ravi calls.")
        assert violations(asha.page) == []
        asha.press("Refuse")
        ravi.shows("The call with browser:asha has ended")
        ravi.call("browser:asha")
        asha.shows("ravi calls.")
        asha.press("Answer")
        asha.shows("In a call with ravi.")
        ravi.shows("In a call with browser:asha.")
        asha.hears()
        ravi.hears()
        asha.press("Hang up")
        ravi.shows("has ended")
        asha.press("Be called no more")
        expect(asha.page.get_by_role("button", name="Be called", exact=True)).to_be_enabled()
