"""Runner of SIPp with the scenarios of `fixtures/sipp`, for tests and benchmarks."""

from __future__ import annotations

import csv
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SIPP", "Load", "Sipp", "SippResult", "start_sipp"]

SIPP = shutil.which("sipp")
_SCENARIOS = Path(__file__).parents[2] / "fixtures" / "sipp"


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a run: number of calls, calls per second, and the scenario's pause (hold or ringing) in ms."""

    calls: int = 1
    rate: float = 10.0
    pause_ms: int = 0


@dataclass(frozen=True, slots=True)
class SippResult:
    """
    Result of a SIPp run.

    Attributes:
        exit_status: 0 when every call followed the scenario.
        retransmissions: Number of requests and responses that SIPp retransmitted.
        set_up_ms: Time from INVITE to final response of each call, for callers.
        log: Lines of the scenario's log actions.
        errors: SIPp's error file and the end of its output.
    """

    exit_status: int
    successful: int
    failed: int
    retransmissions: int
    set_up_ms: tuple[float, ...]
    log: tuple[str, ...]
    errors: str


class Sipp:
    """A running SIPp; its files in the given directory are named after scenario and port."""

    def __init__(self, process: subprocess.Popen[bytes], files: Path) -> None:
        self._process = process
        self._files = files

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return self._process.poll() is None

    def wait(self, timeout_s: float) -> SippResult:
        """Wait until every call has ended; a run that takes longer is killed, which its result shows."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        return self._result()

    def place_no_more(self) -> None:
        """Place no further calls; SIPp ends when the calls in progress have ended."""
        if self.running:
            self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> SippResult:
        """End a SIPp that waits for calls; wait up to 10 s for calls in progress."""
        self.place_no_more()
        return self.wait(10.0)

    def kill(self) -> None:
        """Kill it at once, with calls in progress."""
        if self.running:
            self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Suspend it (SIGSTOP), to simulate a machine that hangs; `resume` continues it."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it after `pause`."""
        self._process.send_signal(signal.SIGCONT)

    def _result(self) -> SippResult:
        last: dict[str, str] = {}
        statistics = self._files.with_suffix(".csv")
        if statistics.exists():
            with statistics.open(newline="") as file:
                last = next(iter(deque(csv.DictReader(file, delimiter=";"), maxlen=1)), {})
        return SippResult(
            exit_status=self._process.returncode,
            successful=int(last.get("SuccessfulCall(C)") or 0),
            failed=int(last.get("FailedCall(C)") or 0),
            retransmissions=int(last.get("Retransmissions(C)") or 0),
            set_up_ms=self._set_up_ms(),
            log=tuple(_text(self._files.with_suffix(".log")).splitlines()),
            errors=_text(self._files.with_suffix(".err")) + _text(self._files.with_suffix(".out"))[-2000:],
        )

    def _set_up_ms(self) -> tuple[float, ...]:
        # SIPp chooses this name: SCENARIO_PID_rtt.csv in its working directory.
        times = []
        for path in self._files.parent.glob(f"*_{self._process.pid}_rtt.csv"):
            for line in path.read_text().splitlines()[1:]:
                fields = line.split(";")
                if len(fields) >= 3 and fields[2] == "1":
                    times.append(float(fields[1]))
        return tuple(times)


def start_sipp(
    scenario: str,
    directory: Path,
    port: int,
    load: Load,
    *,
    target: str | None = None,
    number: str | None = None,
    extra: Sequence[str] = (),
    prefix: Sequence[str] = (),
) -> Sipp:
    """
    Start SIPp on 127.0.0.1.

    Args:
        scenario: File name in `fixtures/sipp`, or a path.
        directory: Folder of its files, and its working directory.
        port: Its SIP port, by which the server identifies it.
        load: Number and rate of calls; it ends after them.
        target: `HOST:PORT` to call; None for a trunk that waits for calls.
        number: The number to call.
        extra: Further options of SIPp.
        prefix: Command to run it under, for example taskset.
    """
    assert SIPP is not None, "SIPp is not installed"
    files = directory / f"{Path(scenario).stem}-{port}"
    command = [*prefix, SIPP]
    command += [target] if target is not None else []
    command += ["-sf", str(_SCENARIOS / scenario), "-i", "127.0.0.1", "-p", str(port), "-nostdin"]
    command += ["-m", str(load.calls), "-r", str(load.rate), "-l", str(load.calls), "-d", str(load.pause_ms)]
    command += ["-s", number] if number is not None else []
    command += ["-trace_stat", "-fd", "1", "-stf", f"{files}.csv"]
    command += ["-trace_err", "-error_file", f"{files}.err", "-trace_logs", "-log_file", f"{files}.log"]
    command += ["-trace_rtt", "-rtt_freq", "1", *extra]
    for suffix in (".csv", ".err", ".log"):
        files.with_suffix(suffix).unlink(missing_ok=True)
    with files.with_suffix(".out").open("wb") as out:
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
    return Sipp(process, files)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
