"""
A real browser with the console open: Debian's Chromium, driven by playwright.

It is headless, and the machine must have it: a test fails where it is missing, and says what to install.
Everything here blocks, and the driver has an event loop of its own: no test of a module that opens a browser
may be a coroutine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

__all__ = [
    "ARGUMENTS",
    "DESKTOP",
    "HEARD",
    "KEEP",
    "PHONE",
    "SCHEMES",
    "SHOWS_FOCUS",
    "Browsing",
    "Scheme",
    "chromium",
    "open_browser",
    "picture",
    "violations",
    "violations_in_all_looks",
]

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

DESKTOP = (1280, 860)
PHONE = (390, 844)

KEEP = """
    window.connections = [];
    const Real = window.RTCPeerConnection;
    window.RTCPeerConnection = class extends Real {
        constructor(...given) { super(...given); window.connections.push(this); }
    };
"""
"""Script of a page that keeps its connections."""

HEARD = """async () => {
    const stats = [...(await window.connections.at(-1).getStats()).values()];
    return stats.find((one) => one.type === "inbound-rtp")?.totalAudioEnergy ?? 0;
}"""
"""Expression for the energy of what the newest connection has received."""

SHOWS_FOCUS = """() => {
    const it = document.activeElement;
    const drawn = getComputedStyle(it);
    const outlined = drawn.outlineStyle !== "none" && parseFloat(drawn.outlineWidth) >= 1;
    const row = it.querySelector?.(":scope > .hit");
    const framed = row && getComputedStyle(row).stroke !== "none";
    const box = it.getBoundingClientRect();
    const onScreen = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    const focused = it.matches(":focus-visible, input[type=datetime-local]:focus-within");
    return focused && Boolean(outlined || framed) && onScreen;
}"""
"""Function: does what has the focus show it, by an outline, or as a line of the axis by a frame?"""

# What the policy of a page forbids is an error of the page, whether or not the browser says so.
_REPORT = """
    document.addEventListener("securitypolicyviolation", (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
"""
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_AXE = Path(__file__).resolve().parents[1] / "browser" / "axe" / "axe.min.js"
_TIMEOUT_MS = 30_000
_PICTURE_WIDTH = 1180
_NEXT_FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Fake devices: a microphone that beeps, and no question for it.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    # Where loopback is the only network, as in a container without one.
    "--allow-loopback-in-peer-connection",
)


@dataclass
class Browsing:
    """A running browser."""

    browser: Browser

    @contextmanager
    def person(
        self, *, scheme: Scheme = "light", size: tuple[int, int] = DESKTOP, errors: Sequence[str] = ()
    ) -> Iterator[Page]:
        """
        Open a page of a new person, without cookies, until the block ends.

        The block fails if the page has reported an error, but for those that contain one of `errors`; and if
        it has asked more than one host for anything.
        """
        context = self.browser.new_context(
            color_scheme=scheme,
            viewport={"width": size[0], "height": size[1]},
            locale="en-GB",
            timezone_id="Asia/Kolkata",
        )
        context.set_default_timeout(_TIMEOUT_MS)
        context.add_init_script(_REPORT)
        wrong: list[str] = []
        context.on("weberror", lambda error: wrong.append(f"script: {error.error}"))
        context.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        hosts = _hosts_of(context)
        try:
            yield context.new_page()
        finally:
            context.close()
        told = [line for line in wrong if not any(part in line for part in errors)]
        assert told == [], told
        assert len(hosts) <= 1, hosts

    def sign_in(self, page: Page, url: str, key: str) -> None:
        """Sign in with an API key, and wait for the first page."""
        page.goto(f"{url}/console/sign-in")
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda there: "sign-in" not in there)


def _hosts_of(context: BrowserContext) -> set[str]:
    """Hosts that the pages of a person ask for anything, as they do."""
    hosts: set[str] = set()

    def asks(url: str) -> None:
        # Addresses of data: and blob: have no host.
        if host := urlsplit(url).netloc:
            hosts.add(host)

    context.on("request", lambda request: asks(request.url))
    context.on("page", lambda page: page.on("websocket", lambda socket: asks(socket.url)))
    return hosts


def violations(page: Page) -> list[str]:
    """Rules for accessibility (axe-core: WCAG 2.2 A and AA, best practices) that a page violates."""
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(_AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {node['target']} {node.get('failureSummary', '')}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def violations_in_all_looks(page: Page) -> list[str]:
    """
    Rules that a page violates, in light and dark, at the width of a desktop and of a telephone.

    It is loaded once. That it is wider than the screen is a violation, too.
    """
    found: list[str] = []
    before, is_dark = page.viewport_size, page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    for width, height in (DESKTOP, PHONE):
        page.set_viewport_size({"width": width, "height": height})
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wider > 0:
            found.append(f"{width} px: {wider} px wider than the screen")
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            # Plots are drawn anew, in the next frame.
            page.evaluate(_NEXT_FRAME)
            found += [f"{scheme}, {width} px: {rule}" for rule in violations(page)]
    if before is not None:
        page.set_viewport_size(before)
    # None would leave it dark.
    page.emulate_media(color_scheme="dark" if is_dark else "light")
    return found


def picture(page: Page, name: str, height: int = 940) -> None:
    """
    Write a picture of a page for the documents, if TRUNKLINE_CONSOLE_PICTURES names their folder.

    It begins at the top of the page, and is of the width that they show.
    """
    folder = os.environ.get("TRUNKLINE_CONSOLE_PICTURES")
    if folder:
        page.set_viewport_size({"width": _PICTURE_WIDTH, "height": height})
        # Plots are drawn anew for the width, in the next frame.
        page.evaluate(_NEXT_FRAME)
        page.screenshot(path=Path(folder) / f"{name}.png", animations="disabled")


def chromium() -> str:
    """Path of the browser; fails where there is none."""
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    assert program is not None, "no Chromium; scripts/system-packages test installs it (apt: chromium)"
    return program


@contextmanager
def open_browser() -> Iterator[Browsing]:
    """Run a browser until the block ends; fails where there is none."""
    with sync_playwright() as driver:
        expect.set_options(timeout=_TIMEOUT_MS)
        browser = driver.chromium.launch(executable_path=chromium(), headless=True, args=list(ARGUMENTS))
        try:
            yield Browsing(browser)
        finally:
            browser.close()
