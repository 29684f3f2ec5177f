"""
Order of what the native engine and its Python face hand over by position.

Most of these values are numbers, so a type checker takes one for another, and no short test brings each of
them about with a value of its own. The order is therefore read from the sources of both.
"""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from media import _engine
from media.aio.engine import _DROPS
from media.aio.stream import _settings_of
from media.types import OpusSettings, QualityInterval, RemoteMedia, SrtpKey, StreamStats

_MEDIA = Path(__file__).resolve().parents[3] / "media"
_BINDINGS = _MEDIA / "native" / "bindings"


def _read_by(function: str, source: str, variable: str) -> list[str]:
    """Return the members of a variable that a function puts into a tuple, in this order and by our names."""
    body = (
        (_BINDINGS / source)
        .read_text()
        .split(f" {function}(", 1)[1]
        .split("make_tuple(", 1)[1]
        .split("\n}", 1)[0]
    )
    # Whether a figure is known precedes it, and is no figure.
    body = re.sub(r"when\([^,]*, |\breported \? ", "", body)
    return [_ours(name) for name in re.findall(rf"\b{variable}\.(\w+)", body)]


def _ours(name: str) -> str:
    renamed = {
        "round_trip_us": "rtt_ms",
        "burst_hundredths": "burst_packets",
        "ended_ns": "ended_monotonic_s",
    }
    return renamed.get(name) or re.sub("_us$", "_ms", name)


def test_figures_come_in_the_order_of_their_fields() -> None:
    assert tuple(_read_by("stats", "quality.cpp", "now")) == StreamStats._fields
    intervals = [field.name for field in fields(QualityInterval)]
    assert _read_by("interval_fields", "quality.cpp", "interval") == intervals
    drops = _read_by("engine_drops", "module.cpp", "drops")
    assert [name.removesuffix("s") if name == "duplicates" else name for name in drops] == list(_DROPS)


def test_settings_go_in_the_order_of_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = ast.parse((_MEDIA / "_engine.pyi").read_text())
    (made,) = [
        item
        for kind in stub.body
        if isinstance(kind, ast.ClassDef) and kind.name == "MediaSettings"
        for item in kind.body
        if isinstance(item, ast.FunctionDef) and item.name == "__init__"
    ]
    names = [argument.arg for argument in made.args.posonlyargs][1:]
    native = (_BINDINGS / "settings.cpp").read_text().split("void make_settings(", 1)[1].split(")", 1)[0]
    assert [parameter.split()[-1] for parameter in native.split(",")[1:]] == names
    taken: list[tuple[Any, ...]] = []
    monkeypatch.setattr(_engine, "MediaSettings", lambda *values: taken.append(values))
    remote = RemoteMedia(
        "192.0.2.1",
        4000,
        "OPUS",
        97,
        30,
        dtmf_payload_type=101,
        direction="sendonly",
        dtmf_receive_payload_type=102,
        receive_payload_type=98,
        clock_rate=48_000,
        dtmf_tones=True,
        comfort_noise_payload_type=13,
        rtcp_port=4005,
        rtcp_address="192.0.2.2",
        opus=OpusSettings(20_000, False, True, 8_000),
        srtp_send=SrtpKey("AES_CM_128_HMAC_SHA1_80", b"s" * 30),
        srtp_receive=SrtpKey("AES_CM_128_HMAC_SHA1_32", b"r" * 30),
    )
    _settings_of(remote, "192.0.2.3")
    assert dict(zip(names, taken[0], strict=True)) == {
        "remote": ("192.0.2.3", 4000),
        "rtcp_remote": ("192.0.2.2", 4005),
        "codec": "OPUS",
        "clock_hz": 48_000,
        "payload_type": 97,
        "receive_type": 98,
        "ptime_ms": 30,
        "send": True,
        "receive": False,
        "dtmf_send_type": 101,
        "dtmf_receive_type": 102,
        "dtmf_tones": True,
        "noise_type": 13,
        "encoding": (20_000, False, True, 8_000),
        "srtp_send": ("AES_CM_128_HMAC_SHA1_80", b"s" * 30),
        "srtp_receive": ("AES_CM_128_HMAC_SHA1_32", b"r" * 30),
    }
    encoder = re.search(r"std::tie\((.*)\) = encoding", (_BINDINGS / "settings.cpp").read_text())
    assert encoder is not None
    assert tuple(re.findall(r"encoder\.(\w+)", encoder[1])) == OpusSettings._fields
