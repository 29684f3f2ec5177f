"""
`trunkline demo`: two calls over real sockets, shown and checked.

The first goes over SIP to the sandbox carrier's echo number and is streamed to a WebSocket agent; the
second plays a prompt and is bridged to a second leg. The server is the one of `trunkline serve`, on free
ports and with its own data directory; the demo drives it over its REST API only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from api.process.config import Settings
from api.process.failures import StartFailed
from api.process.run import run_loop
from api.process.server import Server
from api.process.values import parse_host_port, parse_listens
from fixtures.agent import AgentSession, DemoAgent
from fixtures.audio_check import best_match, find_tone, level_dbfs, read_stereo, samples_of
from fixtures.carrier import PROMPTS_DIRECTORY
from fixtures.carrier_call import SandboxCall
from media.audio import PromptLibrary, tone

__all__ = ["run"]

ECHO_NUMBER, TONE_NUMBER = "+919800000001", "+919800000007"
PROMPT = "en/speech-sample"
# The agent's greeting: a tone to measure the frequency of, then speech to find by correlation.
GREETING_TONE_HZ, GREETING_TONE_MS, GREETING_LEVEL_DBFS = 880.0, 700, -12.0
GREETING_SPEECH_MS = 2000
CARRIER_TONE_HZ = 1000.0
# G.711 alone lowers the correlation a little; losing half of the audio lowers it far more.
LEAST_CORRELATION = 0.9
MOST_LEVEL_CHANGE_DB = 1.5
STEP_TIMEOUT_S = 30.0
BRIDGED_S = 3.0
RUNS_KEPT = 5
ENDED = frozenset({"completed", "busy", "no-answer", "failed", "canceled"})


class DemoFailed(Exception):
    """A step that later steps depend on did not happen; the demo stops."""


@dataclass(slots=True)
class Verdicts:
    """Number of checks, and the names of those that failed."""

    failed: list[str] = field(default_factory=list)
    count: int = 0

    def check(self, what: str, holds: bool, detail: str = "") -> None:
        """Print one verdict."""
        self.count += 1
        if not holds:
            self.failed.append(what)
        print(f"    {'ok  ' if holds else 'FAIL'}  {what}{': ' + detail if detail else ''}")


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run the demo; return 0 when every check passed, else 1."""
    directory = fresh_directory(arguments.directory or settings.data_dir / "demo")
    verdicts = Verdicts()
    try:
        with _logged_to(directory / "server.log"):
            run_loop(_demonstrate(_demo_settings(settings, directory), directory, verdicts))
    except (DemoFailed, StartFailed, OSError, ValueError, aiohttp.ClientError) as error:
        verdicts.failed.append(str(error) or type(error).__name__)
    if verdicts.failed:
        print(f"\nThe demo failed; see {directory / 'server.log'}. This did not happen:")
        for what in verdicts.failed:
            print(f"  - {what}")
        return 1
    print(f"\nAll {verdicts.count} checks hold.")
    return 0


def _demo_settings(settings: Settings, directory: Path) -> Settings:
    """Settings of the same server on free ports, with its own empty database."""
    return replace(
        settings,
        http_listen=parse_host_port("127.0.0.1:0"),
        public_url=None,
        sip_listen=parse_listens("udp:127.0.0.1:0,tcp:127.0.0.1:0"),
        sip_advertise=(),
        rtp_listen="127.0.0.1",
        rtp_advertise=None,
        database_url=f"sqlite+aiosqlite:///{directory / 'trunkline.db'}",
        data_dir=directory,
        sandbox_carrier=True,
        sandbox_listen=parse_listens("udp:127.0.0.1:0"),
        allow_private_destinations=True,
        allowed_countries=frozenset({"IN"}),
    )


def fresh_directory(parent: Path) -> Path:
    """Make a directory for this run, and remove those of all but the latest runs."""
    parent.mkdir(parents=True, exist_ok=True)
    directory = parent / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    directory.mkdir()
    runs = sorted(path for path in parent.iterdir() if re.fullmatch(r"\d{8}-\d{6}-\d{6}", path.name))
    for old in runs[:-RUNS_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return directory.resolve()


@contextlib.contextmanager
def _logged_to(path: Path) -> Iterator[None]:
    """Send the server's log to a file, so that it does not mix with the demo's output."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        handler.close()


async def _demonstrate(settings: Settings, directory: Path, verdicts: Verdicts) -> None:
    prompt = PromptLibrary(PROMPTS_DIRECTORY).get(PROMPT)
    greeting = (
        tone(GREETING_TONE_HZ, GREETING_TONE_MS, GREETING_LEVEL_DBFS) + prompt[: GREETING_SPEECH_MS * 16]
    )
    agent = DemoAgent(greeting)
    server = Server(settings)
    await server.start()
    try:
        await agent.start()
        async with aiohttp.ClientSession() as http:
            demo = _Demo(server, agent, http, directory, verdicts)
            demo.introduce()
            await demo.streamed_call()
            await demo.bridged_call(prompt)
    finally:
        await agent.stop()
        await server.stop()


class _Demo:
    """The two calls, over one running server."""

    def __init__(
        self,
        server: Server,
        agent: DemoAgent,
        http: aiohttp.ClientSession,
        directory: Path,
        verdicts: Verdicts,
    ) -> None:
        if server.sandbox is None or server.demo is None or server.demo.api_key is None:
            raise DemoFailed("the server made no demo account or sandbox carrier")
        self.server, self.agent, self.http = server, agent, http
        self.directory, self.verdicts = directory, verdicts
        self.account, self.sandbox = server.demo, server.sandbox
        self.sandbox.record_directory = directory

    def introduce(self) -> None:
        """Print the addresses of the server, the carrier and the agent."""
        host, port = self.sandbox.address
        print("Trunkline demo")
        print(f"  server   {self.server.url}, account {self.account.account_sid}")
        print(f"  carrier  sandbox, sip udp:{host}:{port}")
        print(f"  agent    {self.agent.url}")

    async def streamed_call(self) -> None:
        """Call the echo number and stream the call to the agent, which receives its own greeting back."""
        print(f"\n1. A call to {ECHO_NUMBER}, which answers and echoes, streamed to the agent")
        call = await self.place(to=ECHO_NUMBER, stream_url=self.agent.url, record=True)
        session = await self.within("the agent's stream began", self.agent.session())
        await self.within("the agent's greeting was played", session.greeted.wait())
        whole_echo = session.hears(len(self.agent.greeting) + 2 * 8000)
        await self.within("the agent heard the whole echo", whole_echo)
        await session.hang_up()
        call = await self.ended(call["call_sid"])
        await self.within("the agent's stream was closed", session.closed.wait())
        await self.show(call, session)
        carrier = await self.carrier_call(ECHO_NUMBER)
        self.judge_record(call, hangup_source="stream")
        self.judge_stream(call, session)
        greeting = samples_of(self.agent.greeting)
        self.judge_greeting("the carrier heard the agent", read_stereo(_recording(carrier))[0], greeting)
        self.judge_greeting("the agent heard the carrier's echo", samples_of(bytes(session.heard)), greeting)
        await self.judge_recording(call, greeting)

    async def bridged_call(self, prompt: bytes) -> None:
        """Call the echo number, play a prompt, and bridge it to the number that sends a tone."""
        print(f"\n2. A call to {ECHO_NUMBER} that plays a prompt and is bridged to {TONE_NUMBER}, a tone")
        verbs = [
            {"verb": "play", "url": f"prompt:{PROMPT}"},
            {"verb": "dial", "target": [{"type": "phone", "number": TONE_NUMBER}], "timeout": 20},
        ]
        call = await self.place(to=ECHO_NUMBER, verbs=verbs)
        far = await self.carrier_call(TONE_NUMBER, over=False)
        await self.within("the second leg was answered", far.answered())
        await asyncio.sleep(BRIDGED_S)
        await self.request("DELETE", self.path_of(call["call_sid"]))
        call = await self.ended(call["call_sid"])
        await self.show(call, None)
        await self.within("the second leg ended", far.finished())
        near = await self.carrier_call(ECHO_NUMBER)
        self.judge_record(call, hangup_source="api")
        heard, _, rate = read_stereo(_recording(near))
        match = best_match(samples_of(prompt)[: 2 * rate], heard[: 8 * rate], rate)
        self.verdicts.check(
            "the first leg heard the prompt",
            match.correlation >= LEAST_CORRELATION,
            f"{match.correlation:.2f}",
        )
        # The beginning may hold ringback: the first leg receives it, and echoes what is still in flight.
        settled = -round((BRIDGED_S - 1) * rate)
        self.judge_tone("the first leg heard the second one's tone", heard[settled:], rate)
        heard, _, rate = read_stereo(_recording(far))
        self.judge_tone("the second leg heard its tone again by way of the first", heard[settled:], rate)
        self.verdicts.check("no call is left over", self.server.control.active_calls == 0)

    # The REST API

    def path_of(self, call_sid: str) -> str:
        """Path of the call in the REST API."""
        return f"/v1/Accounts/{self.account.account_sid}/Calls/{call_sid}"

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed, and return its `data`."""
        headers = {"Authorization": f"Bearer {self.account.api_key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            answer = await response.json(content_type=None)
            if response.status >= 400:
                raise DemoFailed(f"{method} {path} was answered {response.status}: {answer.get('error')}")
            return answer["data"]

    async def place(self, **body: Any) -> dict[str, Any]:
        """Place a call from the demo account's number."""
        call: dict[str, Any] = await self.request("POST", "/v1/calls", {"from": self.account.number, **body})
        print(f"  placed {call['call_sid']}")
        return call

    async def ended(self, call_sid: str) -> dict[str, Any]:
        """Wait until the call has ended, and return it."""
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while True:
            call: dict[str, Any] = await self.request("GET", self.path_of(call_sid))
            if call["status"] in ENDED:
                return call
            if time.monotonic() > deadline:
                raise DemoFailed(f"the call did not end; it is still {call['status']}")
            await asyncio.sleep(0.1)

    async def within(self, what: str, awaitable: Any) -> Any:
        """Await something that must happen within the step's time limit."""
        try:
            return await asyncio.wait_for(awaitable, STEP_TIMEOUT_S)
        except TimeoutError:
            raise DemoFailed(what) from None

    async def carrier_call(self, number: str, *, over: bool = True) -> SandboxCall:
        """The sandbox's side of the latest call to a number."""
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while True:
            calls = [call for call in self.sandbox.calls if call.number == number]
            if calls:
                if over:
                    await self.within(f"the carrier's call to {number} ended", calls[-1].finished())
                return calls[-1]
            if time.monotonic() > deadline:
                raise DemoFailed(f"the carrier got a call to {number}")
            await asyncio.sleep(0.05)

    # What is shown

    async def show(self, call: dict[str, Any], session: AgentSession | None) -> None:
        """Print the call's timeline and its signalling."""
        began = _seconds(call["created_at"])
        moments = [("created_at", "created"), ("ringing_at", "ringing"), ("answered_at", "answered")]
        # Events within the same hundredth of a second stay in causal order.
        events = [(_seconds(call[name]), f"call {what}") for name, what in moments if call[name]]
        events += session.events if session is not None else []
        if call["ended_at"]:
            end = f"call {call['status']}: {call['hangup_cause']}, by {call['hangup_source']}"
            events.append((_seconds(call["ended_at"]), end))
        print("  timeline")
        for at, what in sorted(events, key=lambda event: round(event[0], 2)):
            print(f"    {at - began:+8.3f} s  {what}")
        print("  signalling")
        trace = await self.request("GET", f"/v1/calls/{call['call_sid']}/trace")
        for line in trace["ladder"].splitlines():
            print(f"    {line}")
        print("  checks")
        self.verdicts.check("the signalling was traced", bool(trace["messages"]))

    # What is checked

    def judge_record(self, call: dict[str, Any], hangup_source: str) -> None:
        """Check the final status and the cost in the call record."""
        found = (call["status"], call["hangup_cause"], call["hangup_source"])
        wanted = ("completed", "NORMAL_CLEARING", hangup_source)
        self.verdicts.check("the call completed", found == wanted, ", ".join(map(str, found)))
        price = call["price"]
        detail = f"{price} {call['currency']} for {call['bill_duration_sec']} s"
        self.verdicts.check("the call was charged", isinstance(price, int | float) and price > 0, detail)

    def judge_stream(self, call: dict[str, Any], session: AgentSession) -> None:
        """Check that the agent received everything the stream protocol promises."""
        right = session.start.get("call_sid") == call["call_sid"] and session.stop is not None
        self.verdicts.check("the agent was told start and stop of this call", right)
        self.verdicts.check(
            "the stream kept to its protocol", not session.problems, "; ".join(session.problems[:3])
        )
        self.verdicts.check(
            "the stream was closed normally", session.close_code == 1000, str(session.close_code)
        )

    def judge_greeting(self, what: str, heard: Any, greeting: Any) -> None:
        """Check that the greeting arrived whole, and its tone with the right frequency and level."""
        match = best_match(greeting, heard, 8000)
        self.verdicts.check(
            what, match.correlation >= LEAST_CORRELATION, f"correlation {match.correlation:.3f}"
        )
        begin = round(match.lag_ms * 8)
        stretch = heard[begin : begin + GREETING_TONE_MS * 8]
        found, level = find_tone(stretch, 8000), level_dbfs(stretch)
        reference = level_dbfs(greeting[: GREETING_TONE_MS * 8])
        self.verdicts.check(
            f"  with its {GREETING_TONE_HZ:.0f} Hz tone",
            abs(found.frequency_hz - GREETING_TONE_HZ) < 3
            and found.share > 0.8
            and abs(level - reference) < MOST_LEVEL_CHANGE_DB,
            f"{found.frequency_hz:.1f} Hz, {level:.1f} dBFS (sent {reference:.1f})",
        )

    def judge_tone(self, what: str, heard: Any, rate_hz: int) -> None:
        """Check that the carrier's tone arrived."""
        found = find_tone(heard, rate_hz)
        self.verdicts.check(
            what,
            abs(found.frequency_hz - CARRIER_TONE_HZ) < 3 and found.share > 0.8,
            f"{found.frequency_hz:.1f} Hz, {found.share:.0%} of the energy",
        )

    async def judge_recording(self, call: dict[str, Any], greeting: Any) -> None:
        """Check that the server's recording holds both sides; the file is kept."""
        path = self.directory / "recording.wav"
        await self._fetch_recording(call, path)
        received, sent, rate = read_stereo(path)
        self.judge_greeting("the recording holds what was sent", sent, greeting)
        self.judge_greeting("the recording holds what came back", received, greeting)
        length_s = len(sent) / rate
        print(f"  recording: {path} ({length_s:.1f} s, left: received, right: sent)")

    async def _fetch_recording(self, call: dict[str, Any], path: Path) -> None:
        # The file is completed after the call; its URL appears in the call then.
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while not call["recording_url"]:
            if time.monotonic() > deadline:
                raise DemoFailed("the call was recorded")
            await asyncio.sleep(0.1)
            call = await self.request("GET", self.path_of(call["call_sid"]))
        where = self.server.url + call["recording_url"]
        headers = {"Authorization": f"Bearer {self.account.api_key}"}
        async with self.http.get(where, headers=headers) as response:
            if response.status != 200:
                raise DemoFailed(f"the recording was served, not answered {response.status}")
            await asyncio.to_thread(path.write_bytes, await response.read())


def _recording(call: SandboxCall) -> Path:
    if call.heard.recording is None:
        raise DemoFailed(f"the carrier recorded its call to {call.number}")
    return call.heard.recording


def _seconds(moment: str) -> float:
    """Seconds since the epoch of an RFC 3339 time."""
    return datetime.fromisoformat(moment).timestamp()
