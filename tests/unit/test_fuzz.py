"""The fuzz driver works, and all targets stand a short run and every crash of the past."""

from pathlib import Path

import pytest

from fuzz import run
from fuzz.harness import VECTORS, Fuzzer, Target, load_targets

TARGETS = load_targets()
CRASHES = [
    (folder.name, path)
    for folder in sorted((VECTORS / "fuzz").iterdir())
    if folder.is_dir()
    for path in sorted(folder.iterdir())
]


@pytest.mark.parametrize("name", TARGETS)
def test_short_run(name: str) -> None:
    fuzzer = Fuzzer(TARGETS[name], seed=7)
    finding = fuzzer.run(executions=200)
    assert finding is None, finding


@pytest.mark.parametrize(("name", "path"), CRASHES, ids=[path.name for _, path in CRASHES])
def test_past_crashes_stay_mended(name: str, path: Path) -> None:
    finding = Fuzzer(TARGETS[name], seed=0).execute(path.read_bytes())
    assert finding is None, finding


def check_planted(data: bytes) -> str:
    if len(data) > 5 and b"\r\n" in data:
        raise RuntimeError("planted")
    if not data:
        raise ValueError("permitted")
    return str(len(data) % 3)


PLANTED = Target("planted", check_planted, (ValueError,), [b"", b"seed"])


def test_a_planted_bug_is_found_again_with_the_same_seed() -> None:
    first, second = (Fuzzer(PLANTED, seed=1).run(executions=50_000) for _ in range(2))
    assert first is not None and second is not None
    assert first.data == second.data and b"\r\n" in first.data
    assert isinstance(first.error, RuntimeError)


def test_driver_reports_saves_and_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "load_targets", lambda: {"planted": PLANTED})
    assert run.main(["--time", "20", "--seed", "1", "--crashes", str(tmp_path), "planted"]) == 1
    (saved,) = tmp_path.iterdir()
    assert saved.name.startswith("planted-")
    assert run.main(["--replay", str(saved), "--crashes", str(tmp_path), "planted"]) == 1
    assert "planted" in capsys.readouterr().err
    saved.write_bytes(b"harmless")
    assert run.main(["--replay", str(saved), "planted"]) == 0


def test_driver_knows_its_targets(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["--time", "1", "no-such-target"])
    assert "sip-message" in capsys.readouterr().err
