"""Header fields come back byte for byte, in responses and within dialogs (RFC 3261 8.2.6.2, 12.1.1)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.message.fields import Via, stamp_via
from sip.message.message import Request, reply, serialise
from sip.message.parser import parse_message
from tests.support.sip_agents import SDP, Agent
from tests.support.sip_stage import BOB, RAW, Stage
from tests.unit.sip import strategies

odd_bytes = st.lists(
    st.sampled_from([*(bytes([byte]) for byte in range(0x80, 0x100)), b"a", b"Z", b"0", b"-", b"."]),
    min_size=1,
    max_size=12,
).map(b"".join)


def request(
    method: bytes, *, via: bytes, name: bytes, call_id: bytes = b"c", more: bytes = b"", body: bytes = b""
) -> bytes:
    """A request as an old or careless peer may write it."""
    return (
        method + b" sip:ua@192.0.2.2 SIP/2.0\r\nVia: " + via + b"\r\nMax-Forwards: 70\r\n"
        b"From: " + name + b"  < sip:raw@example.net >; X-Odd = \xff;Tag=raw\r\n"
        b't: "\xe9\\"t\xe9" <sip:ua@example.net>;p\r\nCall-ID: ' + call_id + b"\r\n"
        b"CSeq: 001   " + method + b"\r\n" + more + b"\r\n" + body
    )


def values(data: bytes, name: bytes) -> list[bytes]:
    """The values of a header field as they stand in a message."""
    lines = [line.partition(b": ") for line in data.partition(b"\r\n\r\n")[0].split(b"\r\n")]
    return [value for found, _, value in lines if found == name]


def sent_by_bob(stage: Stage) -> list[bytes]:
    return [data for _, source, _, data in stage.network.wire if source == BOB]


@given(name=odd_bytes, quoted=st.booleans(), call_id=odd_bytes, param=odd_bytes, tag=odd_bytes)
def test_bytes_that_are_not_utf_8_come_back_the_same(
    name: bytes, quoted: bool, call_id: bytes, param: bytes, tag: bytes
) -> None:
    data = request(
        b"INVITE",
        via=b"SIP/2.0/UDP gw.example;x=" + param + b";branch=z9hG4bK" + param + b';y="' + name + b'"',
        name=b'"' + name + b'"' if quoted else name,
        call_id=call_id + b"@" + call_id,
    ).replace(b";Tag=raw", b";Tag=" + tag)
    message = parse_message(data)
    assert isinstance(message, Request)
    for status in (100, 180, 200, 486):
        answer = serialise(reply(message, status, to_tag="ours"))
        for field in (b"Via", b"From", b"Call-ID", b"CSeq"):
            assert values(answer, field) == values(data, field)
        assert values(answer, b"To") == [values(data, b"t")[0] + b";tag=ours"]


@pytest.mark.parametrize(
    ("via", "stamped"),
    [
        (b"SIP / 2.0/udp GW.Example : 05060 ; Branch=z9hG4bKa", None),
        (b"SIP/2.0/UDP gw.example;branch=z9hG4bK\xe9;x=\xff", None),
        (
            b"SIP/2.0/UDP gw.example;RPort ;ttl=016;branch=z9hG4bKa;Alias",
            b"SIP/2.0/UDP gw.example;RPort=5060;ttl=016;branch=z9hG4bKa;Alias;received=192.0.2.9",
        ),
        (
            b'SIP/2.0/UDP gw.example;x="a;rport;received=b \\" ";received=10.0.0.1;branch=z9hG4bKa;rport=1',
            b'SIP/2.0/UDP gw.example;x="a;rport;received=b \\" ";branch=z9hG4bKa;rport=5060'
            b";received=192.0.2.9",
        ),
        (
            b"SIP/2.0/UDP gw.example;;branch=z9hG4bKa;",
            b"SIP/2.0/UDP gw.example;;branch=z9hG4bKa;received=192.0.2.9",
        ),
        (
            b"SIP/2.0/UDP 192.0.2.9;received=10.0.0.1;branch=z9hG4bKa",
            b"SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKa",
        ),
    ],
    ids=["unusual", "no utf-8", "rport", "quoted", "semicolons", "received"],
)
async def test_the_source_is_added_to_the_top_via_and_nothing_else_of_it_changes(
    stage: Stage, via: bytes, stamped: bytes | None
) -> None:
    """RFC 3261 18.2.1, RFC 3581 4."""
    below = b"SIP/2.0/TCP  Next ;x = \xe9"
    stage.network.carry(request(b"OPTIONS", via=via, name=b"A", more=b"v: " + below + b"\r\n"), RAW, BOB)
    stage.advance()
    [answer] = sent_by_bob(stage)
    assert values(answer, b"Via") == [via + b";received=192.0.2.9" if stamped is None else stamped, below]
    stage.finish()


@given(strategies.vias, st.ip_addresses().map(str), st.integers(1, 65535))
def test_the_text_of_a_stamped_via_reads_as_its_parts(via: Via, host: str, port: int) -> None:
    stamped = via.with_source(host, port)
    assert Via.parse(stamp_via(str(via), stamped)) == stamped


async def test_a_folded_field_comes_back_in_one_line(stage: Stage) -> None:
    """RFC 3261 7.3.1: the fold equals one space."""
    data = request(b"OPTIONS", via=b"SIP/2.0/UDP gw.example\r\n ;branch=z9hG4bKa", name=b"A\xe9 \r\n\t B")
    stage.network.carry(data, RAW, BOB)
    stage.advance()
    [answer] = sent_by_bob(stage)
    assert values(answer, b"Via") == [b"SIP/2.0/UDP gw.example ;branch=z9hG4bKa;received=192.0.2.9"]
    assert values(answer, b"From") == [b"A\xe9 B  < sip:raw@example.net >; X-Odd = \xff;Tag=raw"]
    stage.finish()


async def test_a_malformed_request_is_refused_in_its_own_bytes(stage: Stage) -> None:
    data = request(b"OPTIONS", via=b"SIP/2.0/UDP gw.example;X=\xe9;rport", name=b'"\xe9', call_id=b"\xff")
    stage.network.carry(data, RAW, BOB)
    stage.advance()
    [answer] = sent_by_bob(stage)
    assert answer.startswith(b"SIP/2.0 400 ")
    assert values(answer, b"Via") == [b"SIP/2.0/UDP gw.example;X=\xe9;rport=5060;received=192.0.2.9"]
    for field in (b"From", b"Call-ID", b"CSeq"):
        assert values(answer, field) == values(data, field)
    stage.finish()


@pytest.mark.parametrize("restarted", [False, True], ids=["hung up", "hung up by the next process"])
async def test_a_dialog_keeps_the_bytes_of_its_peer(stage: Stage, restarted: bool) -> None:
    raw = stage.raw()
    routes = [b"<sip:%2b\xe9@192.0.2.9;LR;lr>;y = \xff", b"<sip:p.example:05070;lr>"]
    more = (
        b"Contact: <sip:far@192.0.2.9;x=\xe9>\r\nRecord-Route: " + b" , ".join(routes) + b"\r\n"
        b"Content-Type: application/sdp\r\nContent-Length: " + str(len(SDP)).encode() + b"\r\n"
    )
    via, name, call_id = b"SIP/2.0/UDP 192.0.2.9;branch=z9hG4bK%d;rport", b'"\xe9"', b"\xff\x80@\xc3"
    invite = request(b"INVITE", via=via % 1, name=name, call_id=call_id, more=more, body=SDP)
    raw.send(invite)
    stage.advance()
    answer = sent_by_bob(stage)[-1]
    assert answer.startswith(b"SIP/2.0 200 ")
    assert values(answer, b"Record-Route") == routes
    [to] = values(answer, b"To")
    assert to.startswith(values(invite, b"t")[0] + b";tag=")
    ack = request(b"ACK", via=via % 2, name=name, call_id=call_id)
    raw.send(ack.replace(b"t: " + values(ack, b"t")[0], b"To: " + to))
    stage.advance()
    [side] = stage.bob.inbound
    assert side.names == ["Confirmed"]
    if restarted:
        saved = json.loads(json.dumps(side.session.saved()))
        stage.bob.ua.layer.close()
        stage.bob = await Agent(stage.network, BOB).start()
        stage.bob.ua.terminate_recovered(saved, "SIP;cause=503", None, lambda: None)
    else:
        side.session.hangup()
    stage.advance(1)
    bye = sent_by_bob(stage)[-1]
    assert bye.startswith(b"BYE sip:far@192.0.2.9;x=\xe9 SIP/2.0\r\n")
    assert values(bye, b"From") == [to]
    assert values(bye, b"To") == values(invite, b"From")
    assert values(bye, b"Call-ID") == [call_id]
    assert values(bye, b"Route") == routes
    raw.respond(raw.requests("BYE")[-1], 200)
    stage.finish()
