"""Real endpoints of other makes as processes of their own: PJSIP and baresip."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.support.ports import free_port, port_range
from tests.support.server_process import wait_until

__all__ = ["HAVE_BARESIP", "HAVE_PJSUA", "Baresip", "Peer", "Pjsua"]

HAVE_PJSUA = importlib.util.find_spec("pjsua2") is not None
HAVE_BARESIP = shutil.which("baresip") is not None

PATIENCE_S = 40.0
_PROGRAM = Path(__file__).parent / "pjsua_program.py"

Event = dict[str, Any]


class Peer:
    """Common part of both kinds: a process, and its events in order."""

    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.port = free_port()
        self._events: queue.Queue[Event] = queue.Queue()
        self._process: subprocess.Popen[bytes] | None = None

    def wait(self, event: str, timeout_s: float = PATIENCE_S, **wanted: Any) -> Event:
        """The next event of that kind with those details; events before it are kept in `seen` only."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                found = self._events.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                last = "\n".join(map(str, self.seen[-20:]))
                raise AssertionError(f"no {event} {wanted} came from the peer; seen:\n{last}") from None
            self.seen.append(found)
            matches = all(found.get(name) == value for name, value in wanted.items())
            if found["event"] == event and matches:
                return found

    def poll(self, ask: Callable[[], None], event: str, holds: Callable[[Event], bool]) -> None:
        """Ask again and again until an event of that kind is as it should be."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            ask()
            found = self.wait(event)
            if holds(found):
                return
            assert time.monotonic() < deadline, f"{event} stays {found}"
            threading.Event().wait(0.1)

    def pause(self, for_s: float) -> None:
        """Keep the call up for a while."""
        threading.Event().wait(for_s)

    def _put(self, event: Event) -> None:
        self._events.put(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(OSError, ValueError):
                if process.stdin is not None:
                    process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Pjsua(Peer):
    """
    A PJSIP endpoint; see `pjsua_program` for its commands, which `do` gives, and its events.

    `options` are those of the program, such as `transport`, `timer`, `rel100`, `registrar` and `password`.
    """

    def __init__(self, folder: Path, user: str = "pjsua", **options: Any) -> None:
        super().__init__()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        given = {
            "user": user,
            "port": self.port,
            "rtp_ports": port_range(100),
            "transport": "udp",
            "folder": str(folder),
            **options,
        }
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), json.dumps(given)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.wait("ready")

    def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                self._put(json.loads(line))

    def do(self, command: str, **details: Any) -> None:
        """Run one command."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": command, **details}).encode() + b"\n")
        self._process.stdin.flush()

    def wait_for_audio(self, call: str) -> None:
        """Wait until something is heard on a call."""
        self.poll(lambda: self.do("level", call=call), "level", lambda event: event["level"] > 5)

    def wait_for_silence(self, call: str) -> None:
        """Wait until nothing is heard any more on a call."""
        self.poll(lambda: self.do("level", call=call), "level", lambda event: event["level"] < 2)


class Baresip(Peer):
    """
    A baresip with its TCP control interface; events are those of baresip, by their type.

    `codecs` are in its own notation, `encryption` is its `mediaenc`. What it hears is written to WAV files
    in `folder`, whose names end in `-dec.wav`.
    """

    def __init__(
        self,
        folder: Path,
        user: str = "baresip",
        *,
        transport: str = "udp",
        codecs: str = "pcmu/8000,pcma/8000",
        encryption: str = "",
        tone_hz: int = 440,
        extra: str = "",
    ) -> None:
        super().__init__()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        control_port = free_port()
        first_port, last_port = port_range(100)
        modules = ("g711", "g722", "l16", "opus", "srtp", "sndfile", "ausine", "aubridge")
        media = "".join(f"module\t{name}.so\n" for name in modules)
        application = "".join(f"module_app\t{name}.so\n" for name in ("menu", "ctrl_tcp"))
        (folder / "config").write_text(
            f"sip_listen\t127.0.0.1:{self.port}\nrtp_ports\t{first_port}-{last_port}\n"
            # It would name another address of the machine for its audio, which is then latched 0.2 s late.
            "net_interface\t127.0.0.1\n"
            f"audio_source\tausine,{tone_hz}\naudio_player\taubridge,p\naudio_alert\taubridge,a\n"
            # The only format of its tone source.
            "ausrc_srate\t48000\nauplay_srate\t48000\nausrc_channels\t2\nauplay_channels\t1\n"
            f"module_path\t{_module_path()}\n{media}"
            f"module_tmp\tuuid.so\nmodule_tmp\taccount.so\n{application}"
            f"ctrl_tcp_listen\t127.0.0.1:{control_port}\nsnd_path\t{folder}\n{extra}"
        )
        protection = f";mediaenc={encryption}" if encryption else ""
        (folder / "accounts").write_text(
            f"<sip:{user}@127.0.0.1:{self.port};transport={transport}>;regint=0"
            f";audio_codecs={codecs}{protection}\n"
        )
        (folder / "contacts").write_text("")
        self._log = (folder / "baresip.log").open("wb")
        self._process = subprocess.Popen(
            ["baresip", "-f", str(folder), "-4"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        self._control = _connect(control_port)
        threading.Thread(target=self._read, daemon=True).start()

    def __exit__(self, *details: object) -> None:
        with contextlib.suppress(OSError):
            self.do("quit")
        super().__exit__(*details)
        self._control.close()
        self._log.close()

    def do(self, command: str, params: str = "") -> None:
        """Run one command of baresip's menu; its answer comes as an event `response`."""
        text = json.dumps({"command": command, "params": params, "token": command})
        self._control.sendall(f"{len(text)}:{text},".encode())

    def secured(self) -> bool:
        """Return True if it reports that its media is encrypted."""
        return "SRTP is Enabled" in (self.folder / "baresip.log").read_text(errors="replace")

    def _read(self) -> None:
        pending = b""
        with contextlib.suppress(OSError):
            while chunk := self._control.recv(65536):
                pending += chunk
                while (colon := pending.find(b":")) > 0:
                    end = colon + 1 + int(pending[:colon])
                    if len(pending) <= end:
                        break
                    message = json.loads(pending[colon + 1 : end])
                    pending = pending[end + 1 :]
                    self._put({**message, "event": message.get("type", "response")})


def _module_path() -> str:
    for path in Path("/usr/lib").glob("**/baresip/modules"):
        return str(path)
    return "/usr/lib/baresip/modules"


def _connect(port: int) -> socket.socket:
    made: list[socket.socket] = []

    def reached() -> bool:
        with contextlib.suppress(OSError):
            made.append(socket.create_connection(("127.0.0.1", port), 5))
        return bool(made)

    assert wait_until(reached, PATIENCE_S), "baresip does not take control connections"
    made[0].settimeout(None)
    return made[0]
