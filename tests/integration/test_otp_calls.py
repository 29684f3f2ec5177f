"""Voice OTP over real SIP and RTP: the digits are heard, events are told, the password is left nowhere."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.config import load_settings
from api.server import Server
from callcontrol.otp_calls import otp_object
from fixtures.audio_check import best_match, read_stereo, samples_of
from fixtures.carrier import PROMPTS_DIRECTORY, SandboxCarrier
from fixtures.carrier_call import SandboxCall
from media.audio import PromptLibrary, Speaker
from tests.support.webhook_stage import Receiver, until

PATIENCE_S = 40.0
BUSY, LISTENS = "+919800000003", "+919800000009"
CODE, SHORT = "73194628", "7304"
MASK = "******0009"
RATE = 8000
SPEAKER = Speaker(PromptLibrary(PROMPTS_DIRECTORY))
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
                found = await self.server.otp.get(account.account_sid, otp_id)
                if condition(otp_object(found.record)):
                    call: dict[str, Any] = await self.api("GET", f"/calls/{otp_id}")
                    return call
                await asyncio.sleep(0.05)

    async def ended(self, otp_id: str) -> dict[str, Any]:
        return await self.when(otp_id, lambda call: call["ended_at"] is not None)

    async def told(self, *events: str) -> list[dict[str, Any]]:
        """What the customer was told, once it is all there."""
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
    settings = load_settings(
        {
            "TRUNKLINE_HTTP_LISTEN": "127.0.0.1:0",
            "TRUNKLINE_SIP_LISTEN": "udp:127.0.0.1:0,tcp:127.0.0.1:0",
            "TRUNKLINE_SANDBOX_LISTEN": "udp:127.0.0.1:0",
            "TRUNKLINE_RTP_PORTS": "42800-42999",
            "TRUNKLINE_SANDBOX_RTP_PORTS": "43000-43199",
            "TRUNKLINE_DATA_DIR": str(data),
            "TRUNKLINE_ALLOW_PRIVATE_DESTINATIONS": "1",
        }
    )
    server, receiver = Server(settings), Receiver()
    await receiver.start()
    await server.start()
    assert server.sandbox is not None
    far_end = tmp_path / "far end"
    far_end.mkdir()
    server.sandbox.record_directory = far_end
    async with aiohttp.ClientSession() as http:
        yield Town(server, server.sandbox, receiver, http, data)
        assert server.control.active_calls == 0
        assert await server.storage.wallet.open_reserves() == []
    await server.stop()
    await receiver.close()


async def far_end_of(town: Town) -> SandboxCall:
    [call] = town.sandbox.calls
    await asyncio.wait_for(call.finished(), PATIENCE_S)
    return call


def message(language: str, code: str) -> list[tuple[int, bytes]]:
    """Each digit as it sounds, and how many milliseconds behind the first one it begins."""
    at_ms, found = 0, []
    for sound in SPEAKER.digits(language, code):
        if hasattr(sound, "pcm"):
            found.append((at_ms, sound.pcm))
        at_ms += sound.duration_ms
    return found


def times_heard(call: SandboxCall, language: str, code: str) -> list[float]:
    """
    When the whole code was heard, in milliseconds: at each such time all its digits follow, in their order.

    The prompt before the digits is looked for, then each digit where it must be.
    """
    assert call.heard.recording is not None
    received, _, rate = read_stereo(call.heard.recording)
    assert rate == RATE
    intro = samples_of(SPEAKER.prompt(language, "code-is").pcm)
    intro_ms = 1000 * len(intro) // RATE
    found: list[float] = []
    begin = 0
    while True:
        match = best_match(intro, received[begin : begin + 8 * RATE], RATE)
        if match.correlation < 0.9:
            return found
        at_ms = 1000 * begin / RATE + match.lag_ms
        first_ms = at_ms + intro_ms + 250
        assert all(hears(received, first_ms + digit_ms, pcm) for digit_ms, pcm in message(language, code))
        found.append(at_ms)
        begin = int((at_ms + intro_ms) * RATE / 1000)


def hears(received: Any, at_ms: float, pcm: bytes) -> bool:
    """Whether a sound is there, give or take 40 ms."""
    around = int((at_ms - 40) * RATE / 1000)
    sound = samples_of(pcm)
    heard = received[around : around + len(sound) + 80 * RATE // 1000]
    return best_match(sound, heard, RATE).correlation > 0.9


async def test_the_digits_are_heard_twice_and_again_for_a_star(town: Town) -> None:
    otp_id = await town.send(otp=SHORT, language="hi-IN", reference="login-7")
    await town.when(otp_id, lambda call: call["played_count"] == 2)
    town.sandbox.calls[0].press("*")
    call = await town.ended(otp_id)
    far = await far_end_of(town)
    assert far.heard.ended_by == "remote"
    first, second, third = times_heard(far, "hi", SHORT)
    round_ms = sum(sound.duration_ms for sound in SPEAKER.digits("hi", SHORT)) + PROMPT_MS
    assert second - first == pytest.approx(round_ms + 500, abs=60), "half a second of silence between them"
    assert third > second + round_ms + 500
    assert (call["status"], call["played_count"], call["hangup_cause"]) == ("completed", 3, "NORMAL_CLEARING")
    assert (call["to"], call["language"], call["reference"], call["price"]) == (MASK, "hi-IN", "login-7", 0.6)
    bodies = await town.told("otp.initiated", "otp.answered", "otp.completed")
    assert [body["sequence"] for body in bodies] == [1, 2, 3]
    assert bodies[-1]["data"]["played_count"] == 3 and bodies[-1]["data"]["to"] == MASK
    with pytest.raises(AssertionError):
        times_heard(far, "hi", SHORT[::-1])


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
    """What a secret may look like where it should not be: itself, spelled out, encoded, or plainly hashed."""
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
