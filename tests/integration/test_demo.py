"""`trunkline demo` does what it says, and says what it could not do."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from api.cli import demo
from api.cli.parser import build_parser
from api.process.config import Settings, load_settings
from api.process.failures import StartFailed
from api.process.server import Server
from fixtures.audio_check import find_tone, read_stereo

pytestmark = pytest.mark.real_time(reason="the command runs in a process of its own")

ROOT = Path(__file__).parents[2]


def settings(directory: Path) -> Settings:
    return load_settings({"TRUNKLINE_DATA_DIR": str(directory)})


def arguments(directory: Path | None = None) -> argparse.Namespace:
    return build_parser().parse_args(
        ["demo", *([] if directory is None else ["--directory", str(directory)])]
    )


@pytest.mark.long(reason="the whole demonstration, in real time")
@pytest.mark.timeout(180)
def test_everything_it_shows_happened(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "api", "demo", "--directory", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    printed = process.stdout + process.stderr
    assert process.returncode == 0, printed
    assert "FAIL" not in printed and "Traceback" not in printed
    assert printed.count("timeline") == 2 and printed.count("signalling\n") == 2
    assert re.search(r"\|-+ INVITE \[SDP\] -+>\|", printed)
    assert re.search(r"\|<-+ 200 OK \[SDP\] -+\|", printed)
    found = re.search(r"recording: (\S+\.wav)", printed)
    assert found is not None
    received, sent, rate = read_stereo(Path(found.group(1)))
    for channel in (received, sent):
        assert find_tone(channel, rate).frequency_hz == pytest.approx(demo.GREETING_TONE_HZ, abs=3)
    [log] = tmp_path.glob("*/server.log")
    assert "Traceback" not in log.read_text()


def test_a_server_that_cannot_start_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refuse(self: Server) -> None:
        raise StartFailed("TRUNKLINE_RTP_PORTS holds no port")

    monkeypatch.setattr(Server, "start", refuse)
    assert demo.run(settings(tmp_path), arguments()) == 1
    assert "TRUNKLINE_RTP_PORTS holds no port" in capsys.readouterr().out


def test_what_does_not_hold_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = demo.Verdicts()
    verdicts.check("water is wet", True)
    verdicts.check("the moon is made of cheese", False, "it is rock")
    assert (verdicts.count, verdicts.failed) == (2, ["the moon is made of cheese"])
    assert "FAIL  the moon is made of cheese: it is rock" in capsys.readouterr().out


def test_only_the_latest_runs_are_kept(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    kept = [demo.fresh_directory(tmp_path) for _ in range(demo.RUNS_KEPT + 2)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [path.name for path in kept[2:]] + ["mine"]
    )
