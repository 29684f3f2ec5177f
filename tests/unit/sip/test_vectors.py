"""Every message in tests/vectors/sip meets the fate its table declares."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from sip.errors import ParseError
from sip.message.encoding import to_bytes
from sip.message.framer import PING, StreamFramer
from sip.message.message import Request, Response, serialise
from sip.message.parser import parse_message

FOLDER = Path(__file__).parents[2] / "vectors" / "sip"
FATES: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "fates.toml").read_text())


def vector(name: str) -> bytes:
    return (FOLDER / f"{name}.sip").read_bytes()


def names(fate: str) -> list[str]:
    return [name for name, entry in FATES.items() if entry["fate"] == fate]


def test_table_and_folder_name_the_same_vectors() -> None:
    assert {path.stem for path in FOLDER.glob("*.sip")} == set(FATES)


@pytest.mark.parametrize("name", names("accept"))
def test_accepted(name: str) -> None:
    expected = FATES[name]
    message = parse_message(vector(name))
    seen: dict[str, Any] = {
        "call_id": message.call_id,
        "cseq": message.cseq.number,
        "from_tag": message.from_.tag,
        "from_name": message.from_.display_name,
        "to_tag": message.to.tag,
        "to_name": message.to.display_name,
        "to_uri": str(message.to.uri),
        "vias": len(message.headers.get_all("Via")),
        "routes": len(message.headers.get_all("Route")),
        "body_bytes": len(message.body),
        "content_type": message.content_type,
        "max_forwards": message.max_forwards,
        "no_max_forwards": message.max_forwards is None,
    }
    if isinstance(message, Request):
        seen |= {"method": message.method, "uri": str(message.uri)}
    else:
        seen |= {"status": message.status, "reason": message.reason}
    if "contact" in expected:
        assert message.contact is not None
        seen["contact"] = str(message.contact.uri)
    described = {"clause", "name", "situation", "wire", "fate", "frames", "stream_error"}
    for key in expected.keys() - described:
        assert seen[key] == expected[key], key


@pytest.mark.parametrize("name", names("accept"))
def test_accepted_survive_writing(name: str) -> None:
    message = parse_message(vector(name))
    again = parse_message(serialise(message))
    assert type(again) is type(message)
    message.headers.set("Content-Length", str(len(message.body)))  # The writer puts it last.
    fields = sorted((field, value) for field, value in message.headers.items())
    assert sorted(again.headers.items()) == fields
    assert again.body == message.body
    assert serialise(again) == serialise(parse_message(serialise(again)))


@pytest.mark.parametrize("name", names("refuse"))
def test_refused(name: str) -> None:
    data = vector(name)
    with pytest.raises(ParseError) as caught:
        parse_message(data)
    error = caught.value
    assert error.reason.isprintable() and 0 <= error.offset <= len(data)
    answer = error.answer
    assert (answer.status if answer else None) == FATES[name].get("answer")
    if answer is not None:
        check_answer(data, answer)


def check_answer(data: bytes, answer: Response) -> None:
    wire = serialise(answer)
    assert wire.startswith(b"SIP/2.0 ")
    assert ";tag=" in (answer.headers.get("To") or "")
    for field in ("From", "Call-ID", "CSeq"):
        value = answer.headers.get(field)
        assert value and to_bytes(value) in data
    assert answer.via.branch is None or to_bytes(answer.via.branch) in data


@pytest.mark.parametrize("name", list(FATES))
def test_on_a_stream(name: str) -> None:
    expected = FATES[name]
    data = vector(name)
    for chunk_bytes in (len(data), 1, 7):
        frames: list[bytes] = []
        framer = StreamFramer()

        def feed_all(
            framer: StreamFramer = framer, step: int = chunk_bytes, out: list[bytes] = frames
        ) -> None:
            for at in range(0, len(data), step):
                out.extend(framer.feed(data[at : at + step]))
            out.extend(framer.feed(b""))

        if expected.get("stream_error"):
            with pytest.raises(ParseError):
                feed_all()
        else:
            feed_all()
            assert len(frames) == expected.get("frames", 1)
            assert all(frame == PING or frame in data for frame in frames)


def test_equal_requests_get_equal_answers() -> None:
    answers = []
    for _ in range(2):
        with pytest.raises(ParseError) as caught:
            parse_message(vector("refuse-cseq-method"))
        assert caught.value.answer is not None
        answers.append(serialise(caught.value.answer))
    assert answers[0] == answers[1]
