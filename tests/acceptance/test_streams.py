"""Streams of voice agents: what the agent is sent, and what its commands do (the protocols of agents)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from tests.acceptance.clients.agent import Agent, AgentCall, upgrade_signature
from tests.acceptance.clients.phone import Manner, PhoneCall
from tests.acceptance.clients.rtp import level, tone
from tests.acceptance.clients.waiting import appears
from tests.acceptance.clients.webhooks import Receiver
from tests.acceptance.shapes import assert_fits, uuid_text
from tests.acceptance.stage import Customer, Line, mobile


async def streaming(
    line: Line, agent: Agent, path: str = "/ws", **fields: Any
) -> tuple[dict[str, Any], PhoneCall, AgentCall]:
    """A call whose agent is connected, and whose telephone has answered."""
    placed, rung = await line.connect(mobile(), stream_url=agent.url(path), **fields)
    return placed, rung, await agent.connected()


def sequence(frames: list[dict[str, Any]]) -> list[int]:
    """Numbers of the frames that have one."""
    return [int(frame["sequence_number"]) for frame in frames if "sequence_number" in frame]


@pytest.mark.parametrize(("rate", "size"), [(8000, 320), (16000, 640)])
async def test_frames_of_the_default_protocol(
    line: Line, agent: Agent, customer: Customer, rate: int, size: int
) -> None:
    placed, rung, stream = await streaming(line, agent, sample_rate=rate)
    start = await stream.frame("start")
    assert stream.frames[0] == {"event": "connected"}
    assert_fits(
        start,
        {
            "sequence_number": "1",
            "stream_sid": uuid_text,
            "start": {
                "stream_sid": start["stream_sid"],
                "call_sid": placed["call_sid"],
                "account_sid": customer.account_sid,
                "from": line.number,
                "to": mobile(),
                "direction": "outbound",
                "custom_parameters": {},
                "media_format": {
                    **{"encoding": "raw", "sample_rate": str(rate), "bit_rate": str(rate * 16 // 1000)},
                    **{"bits": 16, "channels": 1, "endian": "little"},
                },
            },
        },
    )
    await stream.frame("media", lambda frame: frame["media"]["chunk"] == "50")
    media = stream.named("media")[:50]
    for index, frame in enumerate(media, 1):
        assert frame["media"]["chunk"] == str(index)
        assert int(frame["media"]["timestamp"]) == 20 * (index - 1) + int(media[0]["media"]["timestamp"])
        assert len(base64.b64decode(frame["media"]["payload"])) == size
    assert sequence(stream.frames) == list(range(1, len(sequence(stream.frames)) + 1))
    await rung.hang_up()
    stop = await stream.frame("stop")
    assert_fits(stop["stop"], {"call_sid": placed["call_sid"], "account_sid": customer.account_sid})
    assert (stop["stop"]["reason"], stop["stop"]["detail"]) == ("callended", "callee_hangup")
    assert await stream.until_closed() == 1000


async def test_the_upgrade_request_is_verbatim_and_signed(
    line: Line, agent: Agent, customer: Customer
) -> None:
    auth = {"type": "bearer", "token": "a-token"}
    placed, _, stream = await streaming(line, agent, "/ws?customer=42&x=%2B", stream_auth=auth)
    start = (await stream.frame("start"))["start"]
    assert stream.path == "/ws?customer=42&x=%2B"
    assert start["custom_parameters"] == {"customer": "42", "x": "+"}
    headers = stream.headers
    assert headers["Authorization"] == "Bearer a-token"
    assert headers["User-Agent"].startswith("trunkline/")
    assert headers["X-Call-Sid"] == placed["call_sid"]
    assert headers["X-Account-Sid"] == customer.account_sid
    assert headers["X-Stream-Sid"] == start["stream_sid"]
    assert "Sec-WebSocket-Protocol" not in headers
    # Without a secret of its own for streams, the account's webhook secret signs.
    settings = (await line.api.get("/v1/streams/settings")).expect(200).data
    assert settings["has_stream_secret"] is False
    url = agent.url("/ws?customer=42&x=%2B")
    wanted = upgrade_signature(customer.webhook_secret, headers["X-Service-Timestamp"], url)
    assert wanted in headers["X-Service-Signature"].split()


async def test_marks_come_back_when_the_audio_before_them_was_played(line: Line, agent: Agent) -> None:
    _, rung, stream = await streaming(line, agent)
    await stream.frame("start")
    await stream.say(tone(440, 0.4))
    await stream.send(event="mark", mark={"name": "first"})
    await stream.say(tone(440, 0.4))
    await stream.send(event="mark", mark={"name": "second"})
    await stream.frame("mark", lambda frame: frame["mark"]["name"] == "second")
    marks = [(frame["mark"]["name"], frame["mark"]["status"]) for frame in stream.named("mark")]
    assert marks == [("first", "played"), ("second", "played")]
    assert level(rung.rtp.heard()) > 1000


async def test_clear_silences_the_agent_and_returns_its_marks(line: Line, agent: Agent) -> None:
    _, rung, stream = await streaming(line, agent)
    await stream.frame("start")
    await stream.say(tone(440, 20.0))
    await stream.send(event="mark", mark={"name": "long"})
    await appears(lambda: level(rung.rtp.heard()[-800:]) > 2000, "the agent's audio")
    await stream.send(event="clear")
    mark = await stream.frame("mark")
    assert mark["mark"] == {"name": "long", "status": "cleared"}
    await appears(lambda: level(rung.rtp.heard()[-1600:]) < 100, "silence", 2.0)


async def test_digits_in_both_directions(line: Line, agent: Agent) -> None:
    _, rung, stream = await streaming(line, agent)
    await stream.frame("start")
    rung.rtp.press("5")
    pressed = await stream.frame("dtmf")
    assert_fits(pressed["dtmf"], {"digit": "5", "duration": str})
    await stream.send(event="dtmf", dtmf={"digits": "1#"})
    sent = await stream.frame("dtmf_sent")
    assert sent["dtmf"]["digits"] == "1#"
    assert rung.rtp.digits == "1#"


async def test_a_bad_command_is_answered_and_closes_nothing(line: Line, agent: Agent) -> None:
    _, _, stream = await streaming(line, agent)
    await stream.frame("start")
    await stream.send(event="transfer", transfer={"to": mobile(2), "mode": "teleport"})
    error = await stream.frame("error")
    assert_fits(error["error"], {"code": "invalid_command", "message": str, "ref": "transfer"})
    await stream.send(event="mark", mark={"name": "alive"})
    await stream.frame("mark")


async def test_an_agent_hangs_up_by_command_and_by_closing(line: Line, agent: Agent) -> None:
    placed, rung, stream = await streaming(line, agent)
    await stream.frame("start")
    await stream.send(event="hangup", hangup={"drain": False})
    await stream.frame("stop")
    assert await stream.until_closed() == 1000
    await rung.until_ended()
    assert (await line.ended(placed))["hangup_source"] == "stream"
    placed, rung, stream = await streaming(line, agent)
    await stream.frame("start")
    await stream.say(tone(440, 0.6))
    await stream.close(1000)
    await rung.until_ended()
    # What was queued is played before the end.
    loud = sum(abs(sample) > 4000 for sample in rung.rtp.heard())
    assert loud > 0.8 * (2 / 3) * 0.6 * 8000
    assert (await line.ended(placed))["status"] == "completed"


async def test_a_transfer_joins_the_two_parties(line: Line, agent: Agent, receiver: Receiver) -> None:
    placed, first, stream = await streaming(line, agent, status_webhook_url=receiver.url("/status"))
    await stream.frame("start")
    await stream.send(event="transfer", transfer={"to": mobile(2), "timeout": 30})
    second = await (await line.phone.rings(mobile(2))).until_answered()
    await stream.frame("transfer", lambda frame: frame["transfer"]["status"] == "answered")
    assert (await stream.frame("stop"))["stop"]["detail"] == "transferred"
    first.rtp.say(tone(440, 1.0))
    await appears(lambda: level(second.rtp.heard()[-800:]) > 2000, "the first party at the second")
    await receiver.event("call.transferred", "/status")
    await second.hang_up()
    await first.until_ended()
    await line.ended(placed)
    await receiver.event("call.completed", "/status")


async def test_a_failed_transfer_leaves_the_agent_with_its_party(line: Line, agent: Agent) -> None:
    line.phone.manners[mobile(2)] = Manner(status=486)
    _, rung, stream = await streaming(line, agent)
    await stream.frame("start")
    await stream.send(event="transfer", transfer={"to": mobile(2)})
    failed = await stream.frame("transfer", lambda frame: frame["transfer"]["status"] == "failed")
    assert_fits(failed["transfer"], {"sip_status": 486, "hangup_cause": "USER_BUSY"})
    await stream.send(event="mark", mark={"name": "alive"})
    await stream.frame("mark")
    assert not rung.ended.is_set()


async def test_a_lost_agent_ends_the_call(line: Line, agent: Agent) -> None:
    placed, rung, stream = await streaming(line, agent)
    await stream.frame("start")
    await stream.close(1011)
    await rung.until_ended()
    assert (await line.ended(placed))["hangup_cause"] == "STREAM_DISCONNECTED"


async def test_the_twilio_protocol(line: Line, agent: Agent, customer: Customer) -> None:
    placed, rung, stream = await streaming(line, agent, "/ws?customer=42", stream_protocol="twilio")
    start = await stream.frame("start")
    assert stream.frames[0] == {"event": "connected", "protocol": "Call", "version": "1.0.0"}
    told = {"customer": "42", "from_number": line.number, "to_number": mobile()}
    assert_fits(
        start["start"],
        {
            **{"accountSid": customer.account_sid, "streamSid": start["streamSid"]},
            **{"callSid": placed["call_sid"], "tracks": ["inbound"], "customParameters": told},
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        },
    )
    media = await stream.frame("media")
    assert media["media"]["track"] == "inbound"
    assert len(base64.b64decode(media["media"]["payload"])) == 160
    digest = hmac.new(customer.webhook_secret.encode(), agent.url("/ws?customer=42").encode(), hashlib.sha1)
    assert stream.headers["X-Twilio-Signature"] == base64.b64encode(digest.digest()).decode()
    await rung.hang_up()
    stop = await stream.frame("stop")
    assert stop["stop"]["callSid"] == placed["call_sid"]


async def test_the_vonage_protocol_sends_binary_audio(line: Line, agent: Agent) -> None:
    placed, _, stream = await streaming(line, agent, stream_protocol="vonage", sample_rate=16000)
    await appears(lambda: len(stream.binary) > 10, "binary audio")
    assert {len(frame) for frame in stream.binary} == {640}
    first = stream.frames[0]
    assert first["event"] == "websocket:connected"
    assert first["content-type"] == "audio/l16;rate=16000"
    assert first["call_sid"] == placed["call_sid"]


async def test_the_plivo_protocol(line: Line, agent: Agent) -> None:
    placed, _, stream = await streaming(
        line, agent, stream_protocol="plivo", encoding="l16", sample_rate=16000
    )
    start = await stream.frame("start")
    assert_fits(
        start,
        {
            "sequenceNumber": 1,
            "start": {
                "callId": placed["call_sid"],
                "streamId": uuid_text,
                "mediaFormat": {"encoding": "audio/x-l16", "sampleRate": 16000},
            },
        },
    )
    await stream.send(event="checkpoint", streamId=start["start"]["streamId"], name="m1")
    assert (await stream.frame("playedStream"))["name"] == "m1"
    media = await stream.frame("media")
    assert len(base64.b64decode(media["media"]["payload"])) == 640


async def test_the_jambonz_protocol(line: Line, agent: Agent) -> None:
    agent.subprotocols = ("audio.drachtio.org",)
    placed, rung, stream = await streaming(line, agent, stream_protocol="jambonz")
    await appears(lambda: len(stream.binary) > 10, "binary audio")
    assert stream.headers["Sec-WebSocket-Protocol"] == "audio.drachtio.org"
    assert {len(frame) for frame in stream.binary} == {320}
    wanted = {"sampleRate": 8000, "mixType": "mono", "callSid": placed["call_sid"], "to": mobile()}
    assert_fits(stream.frames[0], wanted)
    await stream.send(type="disconnect")
    await rung.until_ended()
