"""Deployment: the container, its composition and the systemd unit, read as files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.process.config import PREFIX, VARIABLES

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy/trunkline.service"
DEFAULTS = {PREFIX + variable.name: variable.default for variable in VARIABLES}


def stages() -> list[list[str]]:
    """The instructions of each stage of the Dockerfile, continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found: list[list[str]] = []
    for line in lines:
        if line.startswith("FROM "):
            found.append([])
        if found:
            found[-1].append(line)
    return found


def said(stage: list[str], instruction: str) -> list[str]:
    return [line.split(maxsplit=1)[1] for line in stage if line.split()[0] == instruction]


def test_the_image_is_built_on_a_base_that_does_not_move() -> None:
    """Both stages of the image begin with one base, of one release."""
    (base,) = re.findall(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"debian(:\d+\.\d+-slim|@sha256:[0-9a-f]{64})", base)
    assert [stage[0].split()[1] for stage in stages()] == ["${BASE}", "${BASE}"]


def test_the_image_holds_the_program_and_no_compiler() -> None:
    """Nothing that builds stands in the image, no recommended package, and no list of packages."""
    build, final = stages()
    for stage in (build, final):
        for command in said(stage, "RUN"):
            if "apt-get install" in command:
                assert "--no-install-recommends" in command and "rm -rf /var/lib/apt/lists/*" in command
    installed = " ".join(said(final, "RUN")).split()
    assert not {"g++", "cmake", "python3-pip", "curl", "sudo"} & set(installed)
    assert not [name for name in installed if name.endswith("-dev")]
    assert said(final, "COPY") == ["--from=build /opt/trunkline /opt/trunkline"]
    assert not said(final, "ADD") and not said(build, "ADD")


def test_the_image_does_not_run_as_root() -> None:
    """The program runs as a numbered user that is not root; it is drained, and asked for its health."""
    final = stages()[-1]
    (user,) = said(final, "USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    assert said(final, "STOPSIGNAL") == ["SIGTERM"]
    assert said(final, "CMD") == ['["trunkline", "serve"]']
    assert "trunkline" in said(final, "HEALTHCHECK")[0]
    ports = said(final, "EXPOSE")[0]
    assert DEFAULTS["TRUNKLINE_RTP_PORTS"] + "/udp" in ports
    assert DEFAULTS["TRUNKLINE_HTTP_LISTEN"].split(":")[1] + "/tcp" in ports


def settings_of(environment: dict[str, str]) -> set[str]:
    return {name for name in environment if name.startswith(PREFIX)}


def test_the_composition_gives_the_container_nothing_it_does_not_need() -> None:
    """compose.yaml runs the container read-only and without capabilities, and lets it drain."""
    service: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["trunkline"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service and "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all("noexec" in mount and "nosuid" in mount for mount in service["tmpfs"])
    assert service["volumes"] == ["data:/var/lib/trunkline"]
    assert service["ulimits"]["nofile"] >= 6 * int(DEFAULTS["TRUNKLINE_MAX_CALLS"])
    assert int(service["stop_grace_period"].removesuffix("s")) > int(DEFAULTS["TRUNKLINE_DRAIN_S"])
    assert {"max-size", "max-file"} <= set(service["logging"]["options"])
    assert settings_of(service["environment"]) <= set(DEFAULTS)


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_drains_and_starts_again() -> None:
    """The systemd unit lets calls end, comes back after a crash, and has descriptors for every call."""
    options = unit()
    assert int(options["TimeoutStopSec"][0].removesuffix("s")) > int(DEFAULTS["TRUNKLINE_DRAIN_S"])
    assert options["Restart"] == ["always"]
    assert int(options["LimitNOFILE"][0]) >= 6 * int(DEFAULTS["TRUNKLINE_MAX_CALLS"])
    environment = dict(pair.split("=", 1) for pair in options["Environment"][0].split())
    assert settings_of(environment) <= set(DEFAULTS)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """systemd finds nothing wrong with the unit, and judges it well shut in."""
    copy = tmp_path / UNIT.name
    # Where the program will be there is nothing yet.
    copy.write_text(re.sub(r"(?m)^ExecStart=.*$", "ExecStart=/bin/true", UNIT.read_text()))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", str(copy)],
        capture_output=True,
        text=True,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_a_step_of_the_set_up_tells_that_it_runs_and_how_long_it_took(tmp_path: Path) -> None:
    """The command of the step ends when the step has said that it still runs."""
    output = tmp_path / "output"
    wait = f"until grep -q 'so far' {output}; do :; done"
    with output.open("w") as file:
        subprocess.run(
            [ROOT / "scripts" / "step", "counting", "bash", "-c", wait],
            stdout=file,
            env={**os.environ, "STEP_EVERY_S": "0.1"},
            check=True,
            timeout=60,
        )
    begin, *running, end = output.read_text().splitlines()
    assert begin == "setup: counting"
    assert running and all(re.fullmatch(r"setup: counting: \d+ s so far", line) for line in running)
    assert re.fullmatch(r"setup: counting took \d+ s", end)


def test_a_step_of_the_set_up_that_fails_ends_it_with_its_own_status() -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "step", "failing", "bash", "-c", "exit 3"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (3, "setup: failing\n")
    assert re.fullmatch(r"setup: failing failed after \d+ s\n", done.stderr)


def test_the_libraries_of_the_set_up_are_those_of_the_package() -> None:
    listed = subprocess.check_output(
        [sys.executable, ROOT / "scripts" / "requirements", "postgres", "test"], text=True
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["postgres"], *extras["test"]]
    assert listed.splitlines() == list(dict.fromkeys(wanted))
