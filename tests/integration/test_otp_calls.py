"""Voice OTP over real SIP and RTP: the digits are heard, events are told, the password is left nowhere."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.process.server import Server
from callcontrol.otp.product import otp_object
from fixtures.audio_check import Match, best_match, read_stereo, samples_of
from fixtures.carrier import PROMPTS_DIRECTORY, SandboxCarrier
from fixtures.carrier_call import SandboxCall
from media.audio import PromptLibrary, Speaker
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import look_again, until
from tests.support.webhook_stage import Receiver

PATIENCE_S = 40.0
BUSY, LISTENS = "+919800000003", "+919800000009"
CODE, SHORT = "73194628", "9306"
MASK = "******0009"
RATE, GAP_MS = 4000, 150
SPEAKER = Speaker(PromptLibrary(PROMPTS_DIRECTORY))
# Digits come to 0.2; on a busy machine some of the audio is late, and less like itself.
ALIKE = 0.5
PROMPT_MS = SPEAKER.prompt("hi", "code-is").duration_ms + 250


@dataclass
class Town:
    """A server with its sandbox carrier, a receiver of webhooks, and a client of the API."""

    server: Server
    sandbox: SandboxCarrier
    receiver: Receiver
    http: aiohttp.ClientSession
    directory: Path

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, str]:
        account = self.server.demo
        assert account is not None
        headers = {"Authorization": f"Bearer {account.api_key}", **headers}
        url = f"{self.server.url}/v1/voice-otp{path}"
        async with self.http.request(method, url, json=body, headers=headers) as response:
            text = await response.text()
            return response.status, json.loads(text), text

    async def api(self, method: str, path: str, body: Any = None) -> Any:
        status, answer, _ = await self.ask(method, path, body)
        assert status < 300, answer
        return answer["data"]

    async def send(self, to: str = LISTENS, **body: Any) -> str:
        url = f"http://127.0.0.1:{self.receiver.port}/otp"
        sent = await self.api("POST", "/send", {"to": to, "status_webhook_url": url, **body})
        return str(sent["id"])

    async def when(self, otp_id: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The call once something holds; asked beside the API, whose limits would soon be reached."""
        account = self.server.demo
        assert account is not None
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.server.services.otp.get(account.account_sid, otp_id)
                if condition(otp_object(found.record)):
                    call: dict[str, Any] = await self.api("GET", f"/calls/{otp_id}")
                    return call
                await look_again()

    async def ended(self, otp_id: str) -> dict[str, Any]:
        return await self.when(otp_id, lambda call: call["ended_at"] is not None)

    async def told(self, *events: str) -> list[dict[str, Any]]:
        """Return the customer's events, once all have arrived."""
        await until(lambda: len(self.receiver.requests) >= len(events))
        bodies = [json.loads(request.body) for request in self.receiver.requests]
        assert [body["event"] for body in bodies] == list(events)
        return bodies


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Everything that is logged, down to the last detail."""
    path = tmp_path / "log" / "everything.log"
    path.parent.mkdir()
    handler, root = logging.FileHandler(path), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield path
    root.setLevel(level)
    root.removeHandler(handler)
    handler.close()


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    data = tmp_path / "data"
    settings = loopback_settings(data)
    server, receiver = Server(settings), Receiver()
    await receiver.start()
    await server.start()
    assert server.sandbox is not None
    far_end = tmp_path / "far end"
    far_end.mkdir()
    server.sandbox.record_directory = far_end
    async with aiohttp.ClientSession() as http:
        yield Town(server, server.sandbox, receiver, http, data)
        await until(lambda: server.control.active_calls == 0)
        assert await server.storage.wallet.open_reserves() == []
    await server.stop()
    await receiver.close()


async def far_end_of(town: Town) -> SandboxCall:
    [call] = town.sandbox.calls
    await asyncio.wait_for(call.finished(), PATIENCE_S)
    return call


def thinned(pcm: bytes | Sequence[int]) -> list[int]:
    """Samples at half the rate, which is quicker to search and enough to tell digits apart."""
    samples = samples_of(pcm) if isinstance(pcm, bytes) else pcm
    return [first + second for first, second in zip(samples[0::2], samples[1::2], strict=False)]


@dataclass
class Ear:
    """Finds spoken passwords in what the far end of a call received."""

    heard: list[int]
    language: str

    @classmethod
    def of(cls, call: SandboxCall, language: str) -> Ear:
        assert call.heard.recording is not None
        received, _, rate = read_stereo(call.heard.recording)
        assert rate == 2 * RATE
        return cls(thinned(received), language)

    def likeness(self, prompt: str, from_ms: float, to_ms: float) -> Match:
        """Return the match of a prompt; its lag counts from the beginning of the call."""
        begin, end = (max(0, int(ms * RATE / 1000)) for ms in (from_ms, to_ms))
        sound = thinned(SPEAKER.prompt(self.language, prompt).pcm)
        found = best_match(sound, self.heard[begin:end], RATE)
        return Match(1000 * begin / RATE + found.lag_ms, found.correlation)

    def passwords(self, length: int) -> list[tuple[float, str]]:
        """Every password that was said: when its prompt began, and the digits that were heard behind it."""
        found: list[tuple[float, str]] = []
        at_ms = 0.0
        while at_ms + PROMPT_MS < 1000 * len(self.heard) / RATE:
            # Looked for in short stretches: the prompt comes again, and the first one is wanted.
            intro = self.likeness("code-is", at_ms, at_ms + 2 * PROMPT_MS)
            if intro.correlation < ALIKE:
                at_ms += PROMPT_MS / 2
                continue
            at_ms, digits = intro.lag_ms + PROMPT_MS, ""
            for _ in range(length):
                digit, at_ms = self.digit(at_ms)
                digits += digit
            found.append((intro.lag_ms, digits))
        return found

    def digit(self, at_ms: float) -> tuple[str, float]:
        """The digit that is said about then, and when the next one is."""
        best = ("", Match(at_ms, 0.0), 0)
        for digit in "0123456789":
            length_ms = SPEAKER.prompt(self.language, digit).duration_ms
            # On a busy machine it may come late, but never as late as the one behind it.
            match = self.likeness(digit, at_ms - 100, at_ms + length_ms + 300)
            if match.correlation > best[1].correlation:
                best = (digit, match, length_ms)
        return best[0], best[1].lag_ms + best[2] + GAP_MS


async def test_the_digits_are_heard_twice_and_again_for_a_star(town: Town) -> None:
    otp_id = await town.send(otp=SHORT, language="hi-IN", reference="login-7")
    await town.when(otp_id, lambda call: call["played_count"] == 2)
    town.sandbox.calls[0].press("*")
    call = await town.ended(otp_id)
    far = await far_end_of(town)
    assert far.heard.ended_by == "remote"
    assert (call["status"], call["played_count"], call["hangup_cause"]) == ("completed", 3, "NORMAL_CLEARING")
    said = Ear.of(far, "hi").passwords(len(SHORT))
    assert [digits for _, digits in said] == [SHORT] * 3
    first, second, third = (at_ms for at_ms, _ in said)
    round_ms = sum(sound.duration_ms for sound in SPEAKER.digits("hi", SHORT)) + PROMPT_MS
    assert second - first > round_ms + 350, "half a second of silence between them"
    assert third > second + round_ms + 500
    assert (call["to"], call["language"], call["reference"], call["price"]) == (MASK, "hi-IN", "login-7", 0.6)
    bodies = await town.told("otp.initiated", "otp.answered", "otp.completed")
    assert [body["sequence"] for body in bodies] == [1, 2, 3]
    assert bodies[-1]["data"]["played_count"] == 3 and bodies[-1]["data"]["to"] == MASK


async def test_the_password_is_left_nowhere(town: Town, log: Path) -> None:
    key = {"Idempotency-Key": "once"}
    body = {"to": LISTENS, "otp": CODE, "repeat": 1, "length": 8}
    body["status_webhook_url"] = f"http://127.0.0.1:{town.receiver.port}/otp"
    answers = []
    status, answer, text = await town.ask("POST", "/send", body, **key)
    assert status == 201
    otp_id, call_sid = answer["data"]["id"], answer["data"]["call_sid"]
    answers += [text, (await town.ask("POST", "/send", body, **key))[2]]
    assert answers[0] == answers[1]
    answers.append((await town.ask("POST", "/send", {**body, "otp": CODE + "1"}))[2])
    answers.append((await town.ask("POST", f"/{otp_id}/verify", {"otp": "00000000"}))[2])
    await town.when(otp_id, lambda call: call["status"] == "in-progress")
    town.sandbox.calls[0].press("5*")
    await town.ended(otp_id)
    await town.told("otp.initiated", "otp.answered", "otp.completed")
    status, verified, text = await town.ask("POST", f"/{otp_id}/verify", {"otp": CODE})
    assert verified["data"]["verified"]
    for path in ("/calls", f"/calls/{otp_id}", "/stats"):
        answers.append((await town.ask("GET", path))[2])
    trace = "".join(entry.message for entry in town.server.control.trace(call_sid))
    assert "INVITE" in trace
    assert town.server.sandbox is not None and len(town.sandbox.calls) == 1, "one key, one call"
    await town.server.storage.calls.flush()
    webhooks = b"".join(repr(request).encode() + request.body for request in town.receiver.requests)
    kept = files_of(town.directory) | files_of(log.parent)
    assert {"trunkline.db", log.name} <= kept.keys()
    assert not [name for name in files_of(town.directory) if name.endswith(".wav")], "nothing was recorded"
    kept |= {"webhooks": webhooks, "trace": trace.encode()}
    kept["answers"] = text.encode() + "".join(answers).encode()
    assert call_sid.encode() in kept[log.name] and call_sid.encode() in kept["webhooks"]
    request = json.dumps(body).encode()
    for name, content in kept.items():
        for trail in trails(CODE.encode()) + trails(request):
            assert trail not in content, f"{trail!r} is in {name}"


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def trails(secret: bytes) -> list[bytes]:
    """Return the forms of a secret that must not leak: itself, spelled out, encoded, or plainly hashed."""
    text = secret.decode()
    hashes = [hashlib.new(name, secret) for name in ("md5", "sha1", "sha256", "sha512")]
    return [
        *(separator.join(text).encode() for separator in ("", " ", ",", "-", ", ")),
        text.encode("utf-16-le"),
        base64.b64encode(secret).rstrip(b"="),
        secret.hex().encode(),
        *(digest.hexdigest().encode() for digest in hashes),
        *(digest.digest() for digest in hashes),
    ]


async def test_a_party_that_is_busy_heard_nothing(town: Town) -> None:
    otp_id = await town.send(BUSY)
    call = await town.ended(otp_id)
    assert (call["status"], call["played_count"], call["answered_at"], call["price"]) == (
        "busy",
        0,
        None,
        0.0,
    )
    await town.told("otp.initiated", "otp.failed")
    stats = await town.api("GET", "/stats")
    assert (stats["total_calls"], stats["busy_calls"], stats["answered_calls"]) == (1, 1, 0)


async def test_the_number_is_called_five_times_and_no_more(town: Town) -> None:
    for _ in range(5):
        await town.ended(await town.send(BUSY))
    status, answer, _ = await town.ask("POST", "/send", {"to": BUSY})
    assert (status, answer["error"]["code"]) == (429, "RATE_LIMITED")
    assert len(town.sandbox.calls) == 5
