"""The script that keeps the SIP front's list of nodes at the addresses of a DNS name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "kamailio" / "nodes.sh"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A DNS that answers what stands in a file, and a Kamailio that refuses its first order."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "getent").write_text('#!/bin/sh\ncat "$ANSWER"\n')
    (folder / "kamcmd").write_text(
        '#!/bin/sh\necho . >>"$ORDERS"\n'
        '[ "$(wc -l <"$ORDERS")" -gt 1 ] && echo "Ok. Dispatcher successfully reloaded."\n'
    )
    # After enough rounds the script is ended by its pause, and not by its test.
    (folder / "sleep").write_text(
        '#!/bin/sh\necho . >>"$ROUNDS"\n[ "$(wc -l <"$ROUNDS")" -lt 5 ] || kill "$PPID"\n'
    )
    for program in folder.iterdir():
        program.chmod(0o755)
    return folder


def run(programs: Path, answer: str, *more: str) -> tuple[Path, int]:
    """Run the script on an answer of DNS; its list, and how many orders Kamailio got."""
    folder = programs.parent
    names = {name: folder / name.lower() for name in ("ANSWER", "ORDERS", "ROUNDS")}
    for path in names.values():
        path.write_text("")
    names["ANSWER"].write_text(answer)
    subprocess.run(
        ["sh", SCRIPT, "nodes.example", "5070", folder / "list", *more],
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            **{name: str(path) for name, path in names.items()},
        },
        timeout=60,
    )
    return folder / "list", len(names["ORDERS"].read_text().splitlines())


def test_the_list_has_each_address_once(programs: Path) -> None:
    answer = "".join(
        f"{address} {kind}\n" for address in ("192.0.2.12", "192.0.2.11") for kind in ("STREAM", "DGRAM")
    )
    written, orders = run(programs, answer, "once")
    assert written.read_text() == "1 sip:192.0.2.11:5070\n1 sip:192.0.2.12:5070\n"
    assert orders == 0


def test_kamailio_is_asked_until_it_has_read_a_new_list(programs: Path) -> None:
    _, orders = run(programs, "192.0.2.11 STREAM\n")
    assert orders == 2
    _, orders = run(programs, "192.0.2.11 STREAM\n")
    assert orders == 0


def test_no_answer_of_dns_takes_the_nodes_away(programs: Path) -> None:
    written, _ = run(programs, "192.0.2.11 STREAM\n", "once")
    run(programs, "")
    assert written.read_text() == "1 sip:192.0.2.11:5070\n"
