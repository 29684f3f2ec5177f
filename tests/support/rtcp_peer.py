"""A far end made by hand: RTP and RTCP over plain sockets, every field under the test's control."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from types import TracebackType

__all__ = ["Report", "ReportBlock", "RtcpPeer", "read_compound"]

SENDER_REPORT, RECEIVER_REPORT, DESCRIPTION, BYE = 200, 201, 202, 203


@dataclass(frozen=True, slots=True)
class ReportBlock:
    """A report block (RFC 3550 6.4.1)."""

    ssrc: int
    fraction_lost: int = 0
    cumulative_lost: int = 0
    highest_sequence: int = 0
    jitter: int = 0
    last_report: int = 0
    delay: int = 0

    def to_bytes(self) -> bytes:
        """As it goes over the wire."""
        lost = self.fraction_lost << 24 | self.cumulative_lost & 0xFFFFFF
        return struct.pack(
            "!6I", self.ssrc, lost, self.highest_sequence, self.jitter, self.last_report, self.delay
        )


@dataclass(frozen=True, slots=True)
class Report:
    """Content of a compound packet; `packets` is None in a receiver report."""

    ssrc: int
    types: tuple[int, ...]
    packets: int | None
    middle: int
    blocks: tuple[ReportBlock, ...]


def read_compound(data: bytes) -> Report:
    """Read a compound packet that begins with a report."""
    kinds = []
    at = 0
    while at < len(data):
        kinds.append(data[at + 1])
        at += 4 + 4 * int.from_bytes(data[at + 2 : at + 4], "big")
    assert at == len(data), "lengths do not add up"
    ssrc = int.from_bytes(data[4:8], "big")
    blocks_at, packets, middle = 8, None, 0
    if data[1] == SENDER_REPORT:
        seconds, fraction, _, packets, _ = struct.unpack_from("!5I", data, 8)
        middle = (seconds << 16 | fraction >> 16) & 0xFFFFFFFF
        blocks_at = 28
    blocks = []
    for number in range(data[0] & 0x1F):
        values = struct.unpack_from("!6I", data, blocks_at + 24 * number)
        blocks.append(ReportBlock(values[0], values[1] >> 24, values[1] & 0xFFFFFF, *values[2:]))
    return Report(ssrc, tuple(kinds), packets, middle, tuple(blocks))


class RtcpPeer:
    """An RTP port and the RTCP port above it, on one host of the loopback network."""

    def __init__(self, host: str = "127.0.0.1", ssrc: int = 0xFA12) -> None:
        self.ssrc = ssrc
        self.sequence = 100
        self.rtp, self.rtcp = _even_and_odd(host)
        self.address: tuple[str, int] = self.rtp.getsockname()
        for sock in (self.rtp, self.rtcp):
            sock.setblocking(False)

    def __enter__(self) -> RtcpPeer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.rtp.close()
        self.rtcp.close()

    def speak(self, to: tuple[str, int], count: int = 1, *, skip: int = 0) -> None:
        """Send packets of 20 ms in a row; of numbers that are skipped nothing is sent."""
        self.sequence += skip
        for _ in range(count):
            header = struct.pack(
                "!BBHII", 0x80, 0, self.sequence & 0xFFFF, self.sequence * 160 & 0xFFFFFFFF, self.ssrc
            )
            self.rtp.sendto(header + b"\xff" * 160, to)
            self.sequence += 1

    def report(self, to: tuple[str, int], *blocks: ReportBlock, shared: bool = False) -> None:
        """Send a receiver report and a CNAME, from the port for RTCP or the one of RTP."""
        body = b"".join(block.to_bytes() for block in blocks)
        report = struct.pack("!BBHI", 0x80 | len(blocks), RECEIVER_REPORT, 1 + len(body) // 4, self.ssrc)
        description = struct.pack("!BBHIBB4sH", 0x81, DESCRIPTION, 3, self.ssrc, 1, 4, b"peer", 0)
        (self.rtp if shared else self.rtcp).sendto(report + body + description, to)

    def heard(self, *, shared: bool = False) -> list[Report]:
        """Compound packets that have come since the last call."""
        sock = self.rtp if shared else self.rtcp
        reports: list[Report] = []
        while True:
            try:
                data = sock.recv(2048)
            except BlockingIOError:
                return reports
            if 192 <= data[1] <= 223:
                reports.append(read_compound(data))


def _even_and_odd(host: str) -> tuple[socket.socket, socket.socket]:
    for _ in range(100):
        rtp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        rtcp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        rtp.bind((host, 0))
        port = rtp.getsockname()[1]
        try:
            if port % 2 == 0 and port < 65535:
                rtcp.bind((host, port + 1))
                return rtp, rtcp
        except OSError:
            pass
        rtp.close()
        rtcp.close()
    raise AssertionError("no pair of ports is free")
