"""Copies of SIP messages, told to a capture server that somebody else has written."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.sandbox_process import NUMBER, place_call, sandbox_process
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.real_time(reason="sngrep and a server in processes of their own")

SNGREP = shutil.which("sngrep")
FIRST_LINE = re.compile(rb"(?:INVITE|ACK|BYE) sip:[^ ]+ SIP/2\.0|SIP/2\.0 \d{3} ")


@pytest.mark.skipif(SNGREP is None, reason="no sngrep is installed to listen for HEP")
def test_a_capture_server_sees_every_message_of_a_call(tmp_path: Path) -> None:
    """sngrep, listening for HEP, writes down each SIP message of a call that the server says it has sent."""
    port, captured = free_port(), tmp_path / "captured.pcap"
    with (tmp_path / "sngrep.log").open("wb") as log:
        sngrep = subprocess.Popen(
            [str(SNGREP), "-N", "-q", "-L", f"udp:127.0.0.1:{port}", "-O", str(captured)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={"TERM": "xterm", "HOME": str(tmp_path)},
        )
    server = sandbox_process(tmp_path / "data", HEP_TARGET=f"udp:127.0.0.1:{port}")
    try:
        assert wait_until(lambda: listens(port), PATIENCE_S), (tmp_path / "sngrep.log").read_text()
        server.start()
        account = server.add_account()
        server.add_number(account, NUMBER)
        call = place_call(server, account)
        assert wait_until(lambda: server.metric("trunkline_sip_sessions") == 0, PATIENCE_S)
        trace = server.request("GET", f"/v1/calls/{call['call_sid']}/trace", account.api_key).data
        sent = [message["message"].split("\r\n", 1)[0] for message in trace["messages"]]
        assert sent[0].startswith("INVITE") and any(line.startswith("BYE") for line in sent)
        assert server.metric("trunkline_hep_sent_total") >= len(sent)
        assert server.metric("trunkline_hep_dropped_total") == 0
    finally:
        server.stop()
        sngrep.send_signal(signal.SIGINT)
        sngrep.wait(PATIENCE_S)
    seen = FIRST_LINE.findall(captured.read_bytes())
    for line in {line for line in sent if FIRST_LINE.match(line.encode())}:
        wanted = FIRST_LINE.match(line.encode())
        assert wanted is not None and wanted[0] in seen, f"{line} was not captured"


def listens(port: int) -> bool:
    """Return True if some process has the UDP port (column 2 of /proc/net/udp, in hexadecimal)."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(int(line.split()[1].rpartition(":")[2], 16) == port for line in lines)
