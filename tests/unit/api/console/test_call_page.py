"""The page of a call: what its key may see, its exports, and its waveform."""

from __future__ import annotations

import json
import struct
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from aiohttp import web

from api.console.pcap import capture
from api.console.waveform import Unreadable, read_waveform
from callcontrol.calls.aio.sip_trace import TraceEntry
from callcontrol.calls.events.commands import MuteRequested
from callcontrol.calls.records.journal import MAX_MARKS, CallJournal, HookBodies
from callcontrol.calls.records.quality import leg_history
from callcontrol.database.tables.calls import calls
from callcontrol.errors import NodeUnreachable
from callcontrol.models import Attempt, Delivery, WebhookEvent
from callcontrol.webhooks.store import deliveries
from media.types import QualityInterval
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    ENDED_SID,
    MESSAGING_KEY,
    MOMENT,
    OTHER_CALL_SID,
    READER_KEY,
)
from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, console_client, sign_in
from tests.unit.api.client import Client

PAGE = f"/console/calls/{CALL_SID}"


def entry(message: str, direction: str = "out", peer: str = "192.0.2.1:5070") -> TraceEntry:
    return TraceEntry(MOMENT, "a", direction, "udp", peer, "call-id", message)


@pytest.mark.parametrize("rest", ["", "/timeline", "/call.json", "/sip.pcap", "/recording.wav", "/waveform"])
async def test_a_call_of_another_account_is_not_there(person: Person, rest: str) -> None:
    answer = await person.get(f"/console/calls/{OTHER_CALL_SID}{rest}")
    assert answer.status == 404
    assert ACCOUNT not in answer.body.decode()


async def test_a_call_of_another_account_is_not_hung_up(person: Person) -> None:
    assert (await person.post(f"/console/calls/{OTHER_CALL_SID}/hangup")).status in (403, 404)


async def test_hanging_up_needs_the_scope(web: Client, stage: ApiStage) -> None:
    parked = stage.park(record=await stage.storage.calls.get(ACCOUNT, CALL_SID))
    reader = await sign_in(web, READER_KEY)
    assert (await reader.get(PAGE)).status == 200
    assert "/hangup" not in (await reader.get(PAGE)).body.decode()
    assert (await reader.post(f"{PAGE}/hangup")).status == 403
    assert parked.posted == []
    owner = await sign_in(web)
    assert (await owner.post(f"{PAGE}/hangup", {"back": "live"})).headers["Location"] == (
        "/console/live?done=hung_up"
    )
    assert len(parked.posted) == 1


async def test_a_party_is_muted_and_heard_again(web: Client, stage: ApiStage) -> None:
    parked = stage.park(record=await stage.storage.calls.get(ACCOUNT, CALL_SID))
    wanted = {"party": "a", "mute_status": "mute"}
    reader = await sign_in(web, READER_KEY)
    assert " data-mute " not in (await reader.get("/console/live")).body.decode()
    assert (await reader.post(f"{PAGE}/mute", wanted)).status == 403
    owner = await sign_in(web)
    page = (await owner.get("/console/live")).body.decode()
    assert page.count(" data-mute ") == 1
    for status, party, done in (("mute", "a", "muted"), ("unmute", "b", "unmuted")):
        answer = await owner.post(f"{PAGE}/mute", {"party": party, "mute_status": status})
        assert answer.headers["Location"] == f"/console/live?done={done}"
    assert parked.posted == [MuteRequested("a", says=True), MuteRequested("b", says=False)]
    for wrong in ({"party": "c"}, {"mute_status": "quiet"}, {"mute_status": ""}):
        assert (await owner.post(f"{PAGE}/mute", {**wanted, **wrong})).status == 400
    assert (await owner.post(f"/console/calls/{OTHER_CALL_SID}/mute", wanted)).status == 403
    assert (await owner.post(f"/console/calls/{ENDED_SID}/mute", wanted)).status == 409
    assert len(parked.posted) == 2


async def test_listening_in_needs_a_scope_that_names_it(web: Client, stage: ApiStage) -> None:
    stage.park(record=await stage.storage.calls.get(ACCOUNT, CALL_SID))
    usual = await sign_in(web, await stage.storage.keys.create(ACCOUNT, "platform"))
    assert " data-listen" not in (await usual.get("/console/live")).body.decode()
    refused = await usual.post(f"{PAGE}/listen", {"sdp": "x"})
    assert refused.status == 403 and "calls.listen" in refused.body.decode()
    owner = await sign_in(web)
    assert (await owner.get("/console/live")).body.decode().count(" data-listen") == 1
    for call_sid, status in ((ENDED_SID, 409), (OTHER_CALL_SID, 403)):
        answer = await owner.post(f"/console/calls/{call_sid}/listen", {"sdp": "x"})
        assert (answer.status, list(answer.json())) == (status, ["problem"])


async def test_a_call_that_is_over_is_not_hung_up(person: Person) -> None:
    answer = await person.post(f"/console/calls/{ENDED_SID}/hangup")
    assert answer.status == 409
    assert "ended" in answer.body.decode()


async def test_the_axis_has_the_journal_and_the_webhooks(person: Person, stage: ApiStage) -> None:
    at = MOMENT + timedelta(seconds=2)
    stage.storage.calls.journal.note(CALL_SID, at.timestamp(), "step", "play", {"url": "prompt:x"})
    event = WebhookEvent("e", ACCOUNT, "call.answered", "https://a.example", b"{}", at, CALL_SID)
    stage.storage.calls.update(await stage.storage.calls.get(ACCOUNT, CALL_SID), events=[event])
    data = (await person.get(f"{PAGE}/timeline")).json()
    assert data["journal"] == [
        {"at_ms": 2000, "kind": "step", "name": "play", "details": {"url": "prompt:x"}}
    ]
    (hook,) = data["webhooks"]
    assert (hook["event"], hook["at_ms"], hook["status"], hook["attempts"]) == (
        *("call.answered", 2000, "pending"),
        0,
    )


async def test_the_axis_has_each_attempt_with_its_answer(person: Person, stage: ApiStage) -> None:
    event = WebhookEvent("e", ACCOUNT, "call.answered", "https://a.example", b"{}", MOMENT, CALL_SID)
    log = [
        Attempt(MOMENT + timedelta(seconds=1), 1, 20, 500, "answered 500", "<script>", 8),
        Attempt(MOMENT + timedelta(seconds=6), 3, 30, 200, None, None, 70_000, False),
    ]
    await stage.write(partial(deliveries.insert, rows=[deliveries.row_of(event)]))
    done = Delivery(event, MOMENT, "delivered", 3, 200, None, MOMENT, log)
    await stage.write(partial(deliveries.record_outcomes, rows=[deliveries.outcome_row(done)]))
    (hook,) = (await person.get(f"{PAGE}/call.json")).json()["webhooks"]
    assert [list(attempt.values()) for attempt in hook["log"]] == [
        [1000, 1, 20, 500, "answered 500", "<script>", 8, True],
        [6000, 3, 30, 200, None, None, 70_000, False],
    ]


async def test_the_axis_has_the_quality_of_each_direction(person: Person, stage: ApiStage) -> None:
    interval = QualityInterval(5.0, 5000, 200, 1, 0, 1.0, 1.5, 4.2, 0, 0, None, None, 33.0)
    histories = [leg_history("a", [interval], MOMENT, 0.0)]
    journal = stage.storage.calls.journal
    journal.keep_quality(CALL_SID, histories)
    assert journal.quality_of(CALL_SID) == (), "it is kept with the entries of its call"
    parked = stage.park(record=await stage.storage.calls.get(ACCOUNT, CALL_SID))
    parked.media.over_time = histories
    shown = (await person.get(f"{PAGE}/timeline")).json()["quality"]
    assert [(line["leg"], line["direction"], line["points"]) for line in shown] == [
        ("a", "received", [{"at_ms": 5000, "mos": 4.2, "jitter_ms": 1.5, "packet_loss_pct": 0.5}]),
        ("a", "sent", [{"at_ms": 5000, "mos": None, "jitter_ms": None, "packet_loss_pct": None}]),
    ]
    journal.note(ENDED_SID, MOMENT.timestamp(), "event", "call.completed", {})
    journal.keep_quality(ENDED_SID, histories)
    journal.note_level(ENDED_SID, "b", MOMENT.timestamp() + 2, -30.0, -40.0)
    ended = (await person.get(f"/console/calls/{ENDED_SID}/timeline")).json()
    assert [line["direction"] for line in ended["quality"]] == ["received", "sent"]
    assert [
        (line["leg"], line["direction"], [point["level_dbfs"] for point in line["points"]])
        for line in ended["levels"]
    ] == [("b", "received", [-30.0]), ("b", "sent", [-40.0])]


async def test_webhooks_are_left_out_without_their_scope(web: Client) -> None:
    reader = await sign_in(web, READER_KEY)
    assert (await reader.get(f"{PAGE}/timeline")).json()["webhooks"] is None
    chat = await sign_in(web, MESSAGING_KEY)
    assert (await chat.get(f"{PAGE}/timeline")).status == 403


async def test_an_export_is_a_file(person: Person) -> None:
    answer = await person.get(f"{PAGE}/call.json")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="call-{CALL_SID}.json"'
    assert answer.json()["call"]["call_sid"] == CALL_SID
    assert (await person.get(f"{PAGE}/sip.pcap")).status == 404


# Capture files


def packets(data: bytes) -> list[bytes]:
    """Packets of a capture file."""
    assert struct.unpack("<IHHiIII", data[:24])[0::6] == (0xA1B2C3D4, 101)
    found, place = [], 24
    while place < len(data):
        _, _, size, whole = struct.unpack("<IIII", data[place : place + 16])
        assert size == whole
        found.append(data[place + 16 : place + 16 + size])
        place += 16 + size
    return found


def internet_sum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_a_capture_has_each_message_between_its_ends() -> None:
    sent, received = packets(capture([entry("INVITE"), entry("SIP/2.0 200", "in")], "198.51.100.1:5060"))
    for packet, source, target, ports, text in (
        (sent, "c6336401", "c0000201", (5060, 5070), b"INVITE"),
        (received, "c0000201", "c6336401", (5070, 5060), b"SIP/2.0 200"),
    ):
        assert packet[0] == 0x45 and packet[9] == 17
        assert struct.unpack(">H", packet[2:4])[0] == len(packet)
        assert internet_sum(packet[:20]) == 0xFFFF
        assert (packet[12:16].hex(), packet[16:20].hex()) == (source, target)
        assert struct.unpack(">HHH", packet[20:26]) == (*ports, len(text) + 8)
        assert packet[28:] == text
        pseudo = packet[12:20] + struct.pack(">BBH", 0, 17, len(packet) - 20)
        assert internet_sum(pseudo + packet[20:]) == 0xFFFF


def test_a_capture_of_ipv6_and_of_hosts_without_an_address() -> None:
    six, named = packets(
        capture([entry("A", peer="[2001:db8::1]:5061"), entry("B", peer="host.example:x")], "127.0.0.1:5060")
    )
    assert six[0] >> 4 == 6 and six[24:40].hex().startswith("20010db8") and six[48:] == b"A"
    assert named[16:20] == b"\0\0\0\0" and named[28:] == b"B"


# Waveforms


def wav(samples: bytes, encoding: int, channels: int, *, extra: bytes = b"") -> bytes:
    size = 2 if encoding == 1 else 1
    form = struct.pack("<HHIIHH", encoding, channels, 8000, 8000 * size * channels, size * channels, 8 * size)
    chunks = extra + b"fmt " + struct.pack("<I", len(form)) + form
    return b"RIFF\0\0\0\0WAVE" + chunks + b"data" + struct.pack("<I", 0xFFFFFFFF) + samples


def test_the_waveform_has_the_peaks_of_each_channel(tmp_path: Path) -> None:
    quiet, loud = struct.pack("<hh", 0, -8192), struct.pack("<hh", 32767, 16384)
    path = tmp_path / "a.wav"
    path.write_bytes(wav(quiet * 4000 + loud * 4000, 1, 2, extra=b"JUNK\x02\0\0\0ab"))
    wave = read_waveform(path, 4)
    assert wave.duration_s == 1.0
    assert wave.channels == [[0.0, 0.0, 1.0, 1.0], [0.25, 0.25, 0.5, 0.5]]


def test_the_waveform_of_mulaw(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    # Silence, and the loudest code of each sign (ITU-T G.711, table 2a).
    path.write_bytes(wav(b"\xff" * 100 + b"\x00\x80" * 50, 7, 1))
    (channel,) = read_waveform(path, 2).channels
    assert channel[0] == 0.0 and channel[1] == pytest.approx(32124 / 32768, abs=0.001)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RIFF",
        b"RIFF\0\0\0\0AVI " + b"\0" * 40,
        wav(b"", 3, 2),
        wav(b"", 1, 9),
        b"RIFF\0\0\0\0WAVE" * 40,
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    with pytest.raises(Unreadable):
        read_waveform(path)
    with pytest.raises(Unreadable):
        read_waveform(tmp_path / "none.wav")


def test_a_recording_without_audio_has_no_peaks_to_speak_of(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav(b"", 1, 2))
    assert read_waveform(path).duration_s == 0.0


# The journal


def test_marks_leave_room_for_the_rest_of_a_call() -> None:
    journal = CallJournal()
    for number in range(MAX_MARKS + 5):
        journal.note("a", MOMENT.timestamp(), "mark", "mark.played", {"name": str(number)})
    journal.note("a", MOMENT.timestamp(), "event", "call.completed", {})
    kinds = [entry.kind for entry in journal.of("a")]
    assert kinds == ["mark"] * MAX_MARKS + ["event"]
    assert journal.dropped("a") == 5


async def test_bodies_of_webhooks_need_their_scope(web: Client, person: Person, stage: ApiStage) -> None:
    asked = HookBodies('{"digits": "12"}', "<b>no</b>", 9, is_whole=True)
    details = {"url": "https://a.example/", "method": "POST", "attempt": 1, "status": 500, "took_ms": 3}
    note = stage.storage.calls.journal.note
    note(CALL_SID, MOMENT.timestamp(), "webhook", "call.answered", details, asked)
    [shown] = json.loads((await person.get(f"{PAGE}/timeline")).body)["journal"]
    assert (shown["kind"], shown["name"], shown["details"]) == ("webhook", "call.answered", details)
    exchange = {"request": asked.request, "body": asked.answer, "body_bytes": 9, "is_whole": True}
    assert shown["exchange"] == exchange
    reader = await sign_in(web, READER_KEY)
    [shown] = json.loads((await reader.get(f"{PAGE}/timeline")).body)["journal"]
    assert shown["details"] == details and "exchange" not in shown


def test_the_journal_is_bounded() -> None:
    journal, told = CallJournal(max_calls=2, max_entries=3), list[str]()
    journal.watcher = told.append
    for call in ("a", "b", "c"):
        for _ in range(5):
            journal.note(call, MOMENT.timestamp(), "event", "call.dtmf", {})
    assert [len(journal.of(call)) for call in ("a", "b", "c")] == [0, 3, 3]
    assert [journal.dropped(call) for call in ("a", "b", "c")] == [0, 2, 2]
    assert len(told) == 15


async def test_details_of_any_type_are_exported(person: Person, stage: ApiStage) -> None:
    details: dict[str, Any] = {"a": MOMENT, "b": {"c": [b"x", 1]}, "d": None}
    stage.storage.calls.journal.note(CALL_SID, MOMENT.timestamp(), "event", "x", details)
    text = (await person.get(f"{PAGE}/call.json")).body.decode()
    assert json.loads(text)["journal"][0]["details"] == {"a": str(MOMENT), "b": {"c": ["b'x'", 1]}}


# Another node


class Elsewhere:
    """Stand-in for the forwarder to other nodes; it keeps what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def answer(self, request: web.Request, elsewhere: NodeUnreachable) -> web.StreamResponse:
        self.asked.append((request.path, elsewhere.node))
        return web.Response(text="from there")


async def test_what_another_node_has_is_asked_there(stage: ApiStage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lives(node: str) -> bool:
        return node == "other"

    monkeypatch.setattr(stage.storage.membership, "is_another", lives)
    record = await stage.storage.calls.get(ACCOUNT, CALL_SID)
    assert record.node != "other"
    forwarder = Elsewhere()
    async with console_client(stage, forwarder=forwarder) as web_client:
        person = await sign_in(web_client)
        await stage.write(
            lambda connection: connection.execute(
                sa.update(calls).where(calls.c.call_sid == CALL_SID).values(node="other")
            ).close()
        )
        for rest in ("/timeline", "/sip.pcap"):
            assert (await person.get(PAGE + rest)).body == b"from there"
        assert (await person.post(f"{PAGE}/hangup")).body == b"from there"
    assert forwarder.asked == [(f"{PAGE}{rest}", "other") for rest in ("/timeline", "/sip.pcap", "/hangup")]


async def test_a_mark_with_a_name_that_is_no_text_leaves_the_page_as_it_is(
    person: Person, stage: ApiStage
) -> None:
    name = json.loads('"\\ud800mark"')
    stage.storage.calls.journal.note(CALL_SID, MOMENT.timestamp(), "mark", "mark.played", {"name": name})
    for page in ("timeline", "call.json"):
        answer = await person.get(f"{PAGE}/{page}")
        assert answer.status == 200 and b'"?mark"' in answer.body
